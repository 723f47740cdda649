//! Lessons: what the person asks to remember, what the agent names as a limitation or a trap, and what was tried again and
//! again and given up.

use super::causes::is_look;
use super::cues::{Words, begins_with, is_one_of};
use super::failures::{failures, program};
use super::finding::{Cue, Finding};
use super::own_words::own_sentences;
use super::prose::{cut, word_count};
use super::said::is_statement;
use super::told::{Told, alike};
use super::turns::Turn;
use crate::model::{MemoryKind, Provenance, Source, ToolUseRow};
use serde_json::Value;

/// Lessons of one unit.
const MOST: usize = 4;
/// Runs of one command that failed before it counts as given up.
const GIVEN_UP: usize = 3;
/// How a person asks to remember something.
const REMEMBER: Words = "remember that |remember: |remember to |keep in mind |note that |bear in mind |don't forget that |for future |lesson learned|watch out |be careful |be aware ";
/// Labels under which an agent tells of a trap.
const TRAPS: Words =
    "limitation|limitations|gotcha|caveat|caveats|known issue|known limitation|pitfall|lesson|lesson learned|warning";

/// Lessons of a unit, in order.
pub fn lessons(turns: &[Turn]) -> Vec<Told> {
    let mut found: Vec<Told> = Vec::new();
    let mut add = |told: Told| {
        if found.len() < MOST && !found.iter().any(|known| alike(&known.title, &told.title)) {
            found.push(told);
        }
    };
    for (at, turn) in turns.iter().enumerate() {
        if let Some(asked) = turn.asked {
            for (n, said) in own_sentences(&asked.text).iter().filter_map(|sentence| to_remember(sentence)).enumerate() {
                let key = format!("lesson:p{}:{n}", asked.id);
                add(lesson(key, "warning", &said, at, Provenance::User, vec![Source::Prompt(asked.id)]));
            }
        }
        // A trap of what was only proposed is none yet.
        if let Some(closing) = turn.closing.filter(|_| turn.changes()) {
            for (n, trap) in traps(turn).into_iter().enumerate() {
                let key = format!("lesson:p{}:{n}", closing.id);
                add(lesson(key, "warning", &trap, at, Provenance::Agent, vec![Source::Prompt(closing.id)]));
            }
        }
    }
    found.into_iter().chain(given_up(turns)).collect()
}

fn lesson(key: String, kind_type: &str, said: &str, at: usize, by: Provenance, sources: Vec<Source>) -> Told {
    let mut told = Told::of_kind(MemoryKind::Lesson, Some(kind_type), key, said, vec![at]);
    told.content.insert("description".into(), Value::from(cut(said, 600)));
    told.cues = vec![Cue::Trap];
    told.provenance = by;
    told.sources = sources;
    told
}

/// Whether a prompt asks to remember something.
pub fn asks_to_remember(prompt: &str) -> bool {
    own_sentences(prompt).iter().any(|sentence| to_remember(sentence).is_some())
}

fn to_remember(sentence: &str) -> Option<String> {
    let sentence = sentence.trim();
    let lower = sentence.to_ascii_lowercase();
    let bare = ["please ", "also ", "and ", "but ", "so "].iter().find_map(|word| lower.strip_prefix(word)).unwrap_or(&lower);
    let asks = begins_with(REMEMBER, bare) && !sentence.ends_with('?') && word_count(sentence) >= 5;
    asks.then(|| sentence[sentence.len() - bare.len()..].to_string())
}

/// What a closing message says under a label such as "Limitation".
fn traps(turn: &Turn) -> Vec<String> {
    let labelled = |text: &str| {
        let (label, rest) = text.split_once(": ")?;
        is_one_of(TRAPS, &label.trim().to_lowercase()).then(|| rest.trim().to_string())
    };
    let mut told: Vec<String> = Vec::new();
    let mut under = "";
    for part in &turn.prose.parts {
        // Of what stands below such a heading only the first sentence is sure to be about it.
        let below = is_one_of(TRAPS, &part.under) && part.under != under;
        under = &part.under;
        told.extend(labelled(&part.text).or_else(|| below.then(|| part.text.clone())));
    }
    told.retain(|text| is_statement(text) && word_count(text) >= 6);
    told.truncate(2);
    told
}

/// Commands that failed again and again, in which way ever they were put, and never went through.
fn given_up(turns: &[Turn]) -> Vec<Told> {
    let all: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let is_check = |tool: &ToolUseRow| tool.is_check();
    let last = all.last().map_or(0, |tool| tool.seq);
    let failed = failures(&all).into_iter().filter(|failure| {
        let end = failure.failed.last().map_or(0, |tool| tool.seq);
        failure.passed.is_none()
            && failure.failed.len() >= GIVEN_UP
            && !is_look(failure.command())
            && !is_check(failure.failed[0])
            && end < last
    });
    let told = failed.filter_map(|failure| {
        let reason = failure.reason();
        let first = failure.failed[0];
        let at = turns.iter().position(|turn| turn.tools.iter().any(|tool| tool.id == first.id))?;
        let program = Some(program(failure.command())).filter(|program| !program.is_empty() && !reason.is_empty())?;
        let title = format!("`{program}` failed {} times and was given up: {reason}", failure.failed.len());
        let mut told = Told::observation(format!("gaveup:t{}", first.id), Finding::Discovery, &title, vec![at]);
        told.cues = vec![Cue::Trap, Cue::Mechanism];
        told.provenance = Provenance::Tool;
        told.fact(&format!("last tried: `{}`", cut(failure.command(), 160)));
        told.sources = failure.failed.iter().map(|tool| Source::ToolUse(tool.id)).collect();
        Some(told)
    });
    told.take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_to_remember_is_heard() {
        assert_eq!(
            to_remember("Please remember that the date never changes on rebase.").as_deref(),
            Some("remember that the date never changes on rebase.")
        );
        assert_eq!(to_remember("do you remember that we used X?"), None);
        assert_eq!(to_remember("remember that"), None);
    }
}
