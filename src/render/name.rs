//! The name of a unit: its request or, if that says too little, also its result.

use super::clean::{line, prose, quoted};
use crate::model::UnitRow;
use crate::text::{headline, is_cjk, is_stop_word, words};

/// Minimum content words of a request that can serve as a name.
const SAYS: usize = 2;
/// Maximum characters of a request that cannot.
const VAGUE: usize = 60;

/// For an agent: in quotation marks, about `most` characters.
pub fn for_agent(unit: &UnitRow, most: usize) -> String {
    match parts(unit) {
        (Some(asked), Some(came_to)) => format!("{}, result: {}", quoted(&asked, VAGUE), quoted(&came_to, most)),
        (Some(asked), None) => quoted(&asked, most),
        (None, Some(came_to)) => format!("no prompt was recorded; result: {}", quoted(&came_to, most)),
        (None, None) => "no prompt was recorded".to_string(),
    }
}

/// For a person, in at most `most` characters.
pub fn for_person(unit: &UnitRow, most: usize) -> String {
    match parts(unit) {
        (Some(asked), Some(came_to)) => line(&format!("{} → {came_to}", line(&asked, VAGUE)), most),
        (Some(name), None) | (None, Some(name)) => line(&name, most),
        (None, None) => "(no prompt was recorded)".to_string(),
    }
}

/// The request, and the result if the request says too little.
fn parts(unit: &UnitRow) -> (Option<String>, Option<String>) {
    let asked = unit.intent.as_deref().map(|text| prose(&headline(text))).filter(|text| !line(text, VAGUE).is_empty());
    if asked.as_deref().is_some_and(|text| meaning(text) >= SAYS) {
        return (asked, None);
    }
    let completed = || unit.summary.as_ref()?.get("completed")?.as_str().map(prose);
    (asked, unit.commits.last().map(|commit| commit.subject.clone()).or_else(completed).filter(|text| !text.is_empty()))
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
