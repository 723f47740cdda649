//! Memories without a model (DESIGN §6 "by rules", ADR/0019): what a work unit's messages and tool uses say, drawn out by
//! plain rules. Each memory names what it is drawn from; what isn't sure is left out, and nothing worth saying gives nothing.
//!
//! Read in this order: here the list of rules; `finding`, `told` and `turns` (what rules share); `prose`, `cues`, `said`,
//! `own_words` and `left` (how texts are read); then the rules: `changes` with `subject`, `symbols` and `retraction`;
//! `failures` and `causes`; `answers`; `decisions` and `settled`; `lessons`; `about`; `summary`; and for patterns
//! `recurring` and `reverts`.

mod about;
mod answers;
mod causes;
mod changes;
mod cues;
mod decisions;
mod failures;
mod finding;
mod left;
mod lessons;
mod own_words;
mod prose;
mod recurring;
mod retraction;
mod reverts;
mod said;
mod settled;
mod subject;
mod summary;
mod symbols;
mod told;
mod turns;

pub use failures::reason;
pub use finding::{Cue, Finding};
pub use left::split_left;
pub use prose::cut;
pub use recurring::{OFTEN, Recurs, recurring, shape};
pub use reverts::{Reverted, reverted};

use crate::model::{Domain, Draft, Failing, MemoryKind, PromptRow, PromptSource, UnitStory};
use told::Told;
use turns::{Turn, turns};

/// Draws memories from a unit, closed or as far as it goes.
pub fn drafts(story: &UnitStory, domain: &Domain) -> Vec<Draft> {
    let turns = turns(story, domain);
    let solved = causes::problems(&turns);
    let changes = changes::changes(&turns, domain);
    let mut told: Vec<Told> = changes;
    causes::merge(&mut told, solved);
    told.extend(answers::discoveries(&turns));
    told.extend(settled::decisions(&turns));
    told.extend(lessons::lessons(&turns));
    about::place(&mut told, &turns);
    let summary = summary::summary(story, &turns, &told);
    let task = summary::task(story, &turns, &told);
    told.extend(summary);
    told.extend(task);
    let shares = shares(&turns, &told);
    told.into_iter().zip(shares).map(|(told, tokens)| told.draft(domain, &turns, tokens)).collect()
}

/// Lines of a failure that are told where it stands.
const REASONS: usize = 3;

/// What failed in a unit and has not gone through since, in order.
pub fn failing(story: &UnitStory) -> Vec<Failing> {
    let tools: Vec<_> = story.tools.iter().collect();
    let standing = failures::failures(&tools).into_iter().filter(|failure| failure.passed.is_none());
    // A look that found nothing is no failure of the work.
    let told = standing.filter(|failure| !causes::is_look(failure.command()));
    told.map(|failure| Failing {
        command: failure.command().to_string(),
        times: failure.failed.len(),
        reason: failure.failed.last().map(|tool| failures::reasons(tool, REASONS)).unwrap_or_default(),
    })
    .collect()
}

/// Whether a unit in which no tool was used says nothing that is worth remembering.
pub fn nothing_in(prompts: &[PromptRow]) -> bool {
    let said = |prompt: &PromptRow| match prompt.source {
        PromptSource::User => !decisions::by_user(&prompt.text).is_empty() || lessons::asks_to_remember(&prompt.text),
        PromptSource::Agent => prose::word_count(&prompt.text) >= summary::WORDS,
    };
    !prompts.iter().any(said)
}

/// What finding out each memory cost: a turn's tokens go in equal parts to what was drawn from it, so that no token is
/// counted twice (ADR/0021). A summary gets what nothing else was drawn from, a task nothing.
fn shares(turns: &[Turn], told: &[Told]) -> Vec<Option<(i64, bool)>> {
    let mut shares = vec![None; told.len()];
    for (at, turn) in turns.iter().enumerate() {
        let of_turn = |kind: &dyn Fn(MemoryKind) -> bool| -> Vec<usize> {
            (0..told.len()).filter(|i| kind(told[*i].kind) && told[*i].turns.contains(&at)).collect()
        };
        let mut takers = of_turn(&|kind| !matches!(kind, MemoryKind::Summary | MemoryKind::Task));
        if takers.is_empty() {
            takers = of_turn(&|kind| kind == MemoryKind::Summary);
        }
        let (cost, estimated) = turn.cost;
        for taker in &takers {
            let (sum, rough) = shares[*taker].unwrap_or((0, false));
            shares[*taker] = Some((sum + cost / takers.len() as i64, rough || estimated));
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::failures::testing::tool;
    use super::*;
    use crate::model::{PromptRow, Reach};
    use proptest::prelude::*;

    fn story(said: &[(bool, String)], commands: &[(u8, String, bool)]) -> UnitStory {
        let prompt = |(id, (by_user, text)): (i64, &(bool, String))| PromptRow {
            id,
            session_id: 1,
            number: id / 2 + 1,
            source: if *by_user { "user" } else { "agent" }.into(),
            kind: if *by_user { "prompt" } else { "closing" }.into(),
            agent_id: None,
            text: text.clone(),
            received_at: id,
        };
        let used = |(id, (kind, text, ok)): (i64, &(u8, String, bool))| {
            let kind = ["command", "edit", "read", "fetch"][usize::from(*kind % 4)];
            let mut tool = tool(id, kind, text, *ok);
            tool.prompt_id = Some(id % 4);
            tool.outcome = Some(text.clone());
            tool.input = Some(text.clone());
            tool
        };
        UnitStory {
            unit: 1,
            session: 1,
            intent: said.first().map(|(_, text)| text.clone()),
            outcome: Some("done".into()),
            evidence: Some("1 commit".into()),
            platform: "claude-code".into(),
            project: None,
            folder: None,
            prompts: (0..).zip(said).map(prompt).collect(),
            costs: Vec::new(),
            tools: (0..).zip(commands).map(used).collect(),
            reach: Reach::Whole,
            open_tasks: Vec::new(),
            seen: None,
            mark: None,
            domain: None,
        }
    }

    fn domain() -> Domain {
        toml::from_str(include_str!("../../presets/coding.toml")).unwrap()
    }

    /// Words of which rules make much, in any order, beside anything else.
    const TEXT: &str = "(always |never |use |let's |go with |, not | because |root cause: |the bug was |option 1|2\\. |- |\\* |# |```\n|\\||> |\n|\n\n|Next: |`|\"|“|”|İ|記憶|\\.|\\?|!|:|git commit -m |<<'EOF'\n|\\PC){0,60}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn whatever_was_said_and_done_gives_sound_memories(
            said in prop::collection::vec((any::<bool>(), TEXT), 0..8),
            commands in prop::collection::vec((any::<u8>(), TEXT, any::<bool>()), 0..12),
        ) {
            let drafts = drafts(&story(&said, &commands), &domain());
            for draft in &drafts {
                prop_assert!(!draft.title.contains('\n') && draft.title.chars().count() <= 145, "{}", draft.title);
                prop_assert!(draft.concepts.len() <= 5);
                let words = draft.subtitle.as_deref().unwrap_or_default().split_whitespace().count();
                prop_assert!(words <= crate::model::SUBTITLE_WORDS, "{:?}", draft.subtitle);
            }
            let keys: std::collections::BTreeSet<_> = drafts.iter().map(|draft| &draft.key).collect();
            prop_assert_eq!(keys.len(), drafts.len(), "each memory has a key of its own");
        }
    }

    #[test]
    fn a_long_and_stubborn_text_costs_milliseconds() {
        let long = "e.g. no. removed the tables of users and orders. ".repeat(160);
        let said: Vec<(bool, String)> = (0..120).map(|n| (n % 2 == 0, long.clone())).collect();
        let commands: Vec<(u8, String, bool)> =
            (0..400_u16).map(|n| ((n % 3) as u8, format!("go test ./p{n}"), n % 5 != 0)).collect();
        let begun = std::time::Instant::now();
        drafts(&story(&said, &commands), &domain());
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?} unoptimised", begun.elapsed());
    }
}
