//! Whether an agent used what it received: words of an item that no prompt has turn up in what the agent then does or says
//! (ADR/0031).

use crate::model::{InjectionRow, Millis, PromptSource, UseEvidence};
use crate::rank::{stem, subject};
use crate::store::Store;
use crate::text::{files_named, words};
use anyhow::Result;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Minimum words of an item that one text of the agent must have, and their minimum share of the item's words.
const SHARED: usize = 3;
const SHARE: f64 = 0.3;
/// Maximum words to name as evidence.
const NAMED: usize = 4;

/// A text of a session: the agent's message or call.
struct SessionText {
    at: Millis,
    /// As `nmem show` accepts it.
    id: String,
    stems: HashSet<String>,
}

/// Adds to each item of some injections the evidence that the agent used it.
pub fn judge_use(store: &Store, injections: &mut [InjectionRow]) -> Result<()> {
    let mut sessions: HashMap<i64, (HashSet<String>, Vec<SessionText>)> = HashMap::new();
    for injection in injections {
        let Some(text) = &injection.text else { continue };
        let (prompted, said) = match sessions.entry(injection.session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(texts(store, injection.session)?),
        };
        let unit = injection.items.iter().find(|item| item.id.starts_with('u')).map(|item| item.id.clone()).unwrap_or_default();
        for item in &mut injection.items {
            // The summary of a unit has no id of its own in the text.
            let lines = Some(lines_of(text, &item.id)).filter(|lines| !lines.is_empty()).unwrap_or_else(|| lines_of(text, &unit));
            let own = own_words(&lines, prompted);
            item.used = evidence(&own, said.iter().filter(|text| text.at > injection.at));
        }
    }
    Ok(())
}

/// The stems of a session's prompts, and the texts of its agent.
fn texts(store: &Store, session: i64) -> Result<(HashSet<String>, Vec<SessionText>)> {
    let (mut prompted, mut said) = (HashSet::new(), Vec::new());
    for prompt in store.prompts_of(session)? {
        match prompt.source {
            PromptSource::User => prompted.extend(stems(&prompt.text)),
            PromptSource::Agent => {
                said.push(SessionText { at: prompt.received_at, id: format!("p{}", prompt.id), stems: stems(&prompt.text) });
            }
        }
    }
    for tool in store.tool_uses_of(session)? {
        let text = [tool.content.as_deref(), tool.input.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("\n");
        said.push(SessionText { at: tool.received_at, id: format!("t{}", tool.id), stems: stems(&text) });
    }
    Ok((prompted, said))
}

/// The lines of an injected text that are about an item: for a unit, also the lines below its name that cite nothing.
fn lines_of(text: &str, item: &str) -> String {
    let cites = |line: &str, id: &str| words(line).any(|word| word == id);
    let mut lines = Vec::new();
    let mut is_below = false;
    for line in text.lines() {
        let is_own = cites(line, item);
        let is_detail =
            line.starts_with("  ") && !words(line).any(|word| word.starts_with('m') && word[1..].parse::<i64>().is_ok());
        is_below = is_own && item.starts_with('u') || is_below && is_detail;
        if is_own || is_below {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// The words of an item's subject that no prompt has, by stem. Names of files do not count: a file may be opened anyway.
fn own_words(lines: &str, prompted: &HashSet<String>) -> HashMap<String, String> {
    let of_files = stems(&files_named(lines).join(" "));
    let subject = subject(lines);
    let stemmed = words(lines).map(|word| (stem(&word.to_lowercase()), word.to_string()));
    stemmed.filter(|(stem, _)| subject.contains(stem) && !prompted.contains(stem) && !of_files.contains(stem)).collect()
}

/// The first text with enough of an item's words.
fn evidence<'a>(own: &HashMap<String, String>, mut said: impl Iterator<Item = &'a SessionText>) -> Option<UseEvidence> {
    let enough = SHARED.max((SHARE * own.len() as f64).ceil() as usize);
    let text = said.find(|text| own.keys().filter(|stem| text.stems.contains(*stem)).count() >= enough)?;
    let mut shared: Vec<&String> = own.iter().filter(|(stem, _)| text.stems.contains(*stem)).map(|(_, word)| word).collect();
    shared.sort_unstable();
    Some(UseEvidence { words: shared.into_iter().take(NAMED).cloned().collect(), source: text.id.clone() })
}

fn stems(text: &str) -> HashSet<String> {
    words(text).map(|word| stem(&word.to_lowercase())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "nmem: earlier work\n- 2026-11-17 \"Passwords are normalised\", asked: \"umlaut\" (u9, done)\n  \
        bugfix: \"The hash compared bytes before the unicode normalisation\" (m9)\n  it ended in `src/login.rs`\n";

    fn text(id: &str, said: &str) -> SessionText {
        SessionText { at: 1, id: id.into(), stems: stems(said) }
    }

    #[test]
    fn an_item_is_used_if_words_that_no_prompt_has_turn_up_in_one_text() {
        let lines = lines_of(BLOCK, "m9");
        assert!(lines.contains("compared bytes") && !lines.contains("login.rs"), "{lines}");
        let none = HashSet::new();
        let said = [text("t1", "Read src/login.rs"), text("p2", "I normalise the unicode bytes before the hash is compared")];
        let found = evidence(&own_words(&lines, &none), said.iter()).unwrap();
        assert_eq!(found.source, "p2");
        assert!(found.words.contains(&"unicode".to_string()), "{found:?}");
        let prompted = stems("the hash compares bytes before unicode normalisation");
        assert_eq!(evidence(&own_words(&lines, &prompted), said.iter()), None, "the prompt has the words already");
        assert_eq!(evidence(&own_words(&lines, &none), said[..1].iter()), None, "only a file was touched");
    }

    #[test]
    fn a_unit_has_the_lines_below_its_name_that_cite_no_memory() {
        let lines = lines_of(BLOCK, "u9");
        assert!(lines.contains("normalised") && lines.contains("src/login.rs") || !lines.contains("compared bytes"), "{lines}");
    }
}
