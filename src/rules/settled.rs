//! Decisions as memories: the person's own, their choices, and those that the agent gives a reason for.

use super::decisions::{Decided, by_agent, by_choice, by_user};
use super::prose::{Prose, cut, plain_headline, word_count};
use super::told::{Told, alike};
use super::turns::Turn;
use crate::model::{MemoryKind, Provenance, Source};
use serde_json::Value;

/// Decisions of one unit.
const MOST: usize = 8;

/// Decisions of a unit, in order.
pub fn decisions(turns: &[Turn]) -> Vec<Told> {
    let mut found: Vec<Told> = Vec::new();
    let mut add = |told: Told| {
        if found.len() < MOST && !found.iter().any(|known| alike(&known.title, &told.title)) {
            found.push(told);
        }
    };
    for (at, turn) in turns.iter().enumerate() {
        if let Some(asked) = turn.asked {
            let decided =
                by_user(&asked.text).into_iter().filter(|decided| !was_printed(&turns[..at], &turns[..at], &decided.said));
            for (n, decided) in decided.enumerate() {
                add(told(format!("decision:p{}:{n}", asked.id), &decided, at, Provenance::User, Source::Prompt(asked.id)));
            }
            if let Some((offer, choice)) = at
                .checked_sub(1)
                .and_then(|before| turns[before].closing)
                .and_then(|offer| Some((offer, by_choice(&offer.text, &asked.text)?)))
            {
                let mut told = told(format!("choice:p{}", asked.id), &choice, at, Provenance::User, Source::Prompt(asked.id));
                told.title = format!("Chosen: {}", choice.chosen);
                // What the choice was about: the request that led to the offer, else the question.
                let before = turns[at - 1].asked.map(|asked| plain_headline(&asked.text)).filter(|text| word_count(text) >= 5);
                let question = || Prose::of(&offer.text).question().map(String::from);
                told.subtitle = before.or_else(question).map(|about| format!("Asked: {}", cut(&about, 140)));
                told.sources.push(Source::Prompt(offer.id));
                add(told);
            }
        }
        // Who only read tells of others' decisions; who changed something tells of their own.
        if let Some(closing) = turn.closing.filter(|_| turn.changes()) {
            let decided = by_agent(&closing.text).into_iter().filter(|decided| !was_printed(&turns[..=at], &[], &decided.said));
            for (n, decided) in decided.enumerate() {
                add(told(format!("decision:p{}:{n}", closing.id), &decided, at, Provenance::Agent, Source::Prompt(closing.id)));
            }
        }
    }
    found
}

fn told(key: String, decided: &Decided, at: usize, by: Provenance, source: Source) -> Told {
    let mut told = Told::of_kind(MemoryKind::Decision, Some("approach"), key, &decided.said, vec![at]);
    told.provenance = by;
    told.sources.push(source);
    told.content.insert("chosen".into(), Value::from(decided.chosen.clone()));
    if !decided.alternatives.is_empty() {
        told.content.insert("alternatives".into(), Value::from(decided.alternatives.clone()));
    }
    if let Some(reason) = &decided.reason {
        told.content.insert("reasoning".into(), Value::from(reason.clone()));
    }
    told
}

/// Whether tools of `used` printed the same words, or the agent said them in `heard`: then they were pasted, and are nobody's
/// decision.
fn was_printed(used: &[Turn], heard: &[Turn], said: &str) -> bool {
    let bare = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
    };
    let said = bare(said);
    let mut printed = used
        .iter()
        .flat_map(|turn| &turn.tools)
        .flat_map(|tool| [tool.outcome.as_deref(), tool.metadata["response"].as_str()])
        .flatten();
    let mut closings = heard.iter().filter_map(|turn| turn.closing).map(|closing| closing.text.as_str());
    printed.any(|text| bare(text).contains(&said)) || closings.any(|text| bare(text).contains(&said))
}
