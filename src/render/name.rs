//! The name of a unit: its title, which states the result, or the request if the unit is not distilled yet.

use super::clean::{line, prose, quoted};
use crate::model::UnitRow;
use crate::text::{alike, headline, is_cjk, is_stop_word, words};

/// Minimum content words of a meaningful request.
const SAYS: usize = 2;
/// Maximum characters of a request next to a title.
const ASKED: usize = 60;

/// Returns the name for an agent, in quotation marks, with about `most` characters; the request follows the title.
pub fn for_agent(unit: &UnitRow, most: usize) -> String {
    match (title(unit), asked(unit)) {
        (Some(title), Some(asked)) if !alike(&title, &asked) => {
            format!("{}, asked: {}", quoted(&title, most), quoted(&asked, ASKED))
        }
        (Some(name), _) | (None, Some(name)) => quoted(&name, most),
        (None, None) => "no prompt was recorded".to_string(),
    }
}

/// Returns the title alone for an agent, with about `most` characters.
pub fn title_for_agent(unit: &UnitRow, most: usize) -> String {
    title(unit).or_else(|| asked(unit)).map(|name| quoted(&name, most)).unwrap_or_default()
}

/// Returns the name for a person, with at most `most` characters.
pub fn for_person(unit: &UnitRow, most: usize) -> String {
    match title(unit).or_else(|| asked(unit)) {
        Some(name) => line(&name, most),
        None => "(no prompt was recorded)".to_string(),
    }
}

fn title(unit: &UnitRow) -> Option<String> {
    let subject = || unit.commits.last().map(|commit| commit.subject.clone());
    unit.title.as_deref().map(prose).or_else(subject).filter(|text| !text.is_empty())
}

/// Returns the request if it is meaningful.
fn asked(unit: &UnitRow) -> Option<String> {
    let asked = unit.intent.as_deref().map(|text| prose(&headline(text)))?;
    (meaning(&asked) >= SAYS && !asked.contains("[redacted:")).then_some(asked)
}

/// Whether a prompt is meaningful without context, unlike "yes" or "go on". A text that begins with a tag is a
/// program's message.
pub fn says_something(prompt: &str) -> bool {
    let is_tagged = prompt.trim_start().strip_prefix('<').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
    !is_tagged && meaning(prompt) >= SAYS
}

/// Number of content words; in scripts without spaces, two characters count as one.
fn meaning(text: &str) -> usize {
    let lower = text.to_lowercase();
    let says = |word: &&str| word.len() > 2 && !is_stop_word(word) && !word.chars().any(is_cjk);
    let words = words(&lower).filter(says).count();
    words + lower.chars().filter(|c| is_cjk(*c)).count() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_says_nothing_is_no_name() {
        for (text, says) in [
            ("can you take a look at this?", false),
            ("mise run lint fails", true),
            ("ログイン画面を直して", true),
            ("ok", false),
        ] {
            assert_eq!(meaning(text) >= SAYS, says, "{text}");
        }
    }
}
