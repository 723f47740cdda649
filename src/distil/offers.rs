//! Options that the user chose from the agent's offers, recommendations and questions.

use super::statements::{Words, begins_with, has_word_of, is_one_of, own_sentences, plain, word_count};
use super::user_decisions::with_reason;
use crate::languages::{gloss, in_english};
use crate::text::{cut, is_stop_word, words};

/// A choice: what was chosen, over what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub chosen: String,
    pub alternatives: Vec<String>,
    pub reason: Option<String>,
    /// The advice was refused.
    pub is_refusal: bool,
}

const OPTION: usize = 110;
const ALTERNATIVE: usize = 60;
const ALTERNATIVES: usize = 3;
/// First words that change nothing.
const FILLERS: Words = "ok|okay|yes|yeah|yep|so|well|and|then|also|please|actually|hmm|hm|right|sure|just|now|but|oh|cool|great|let's|lets|go|the|one|i|we|implement|do|with";
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// First words of a sentence about an option, and words that reject one.
const SPEAKS_OF: Words = "regarding|about|what|why|how|is|does|for option|in option";
const REFUSES: Words = "n't| not |no |wrong|against|instead|except|skip|without|before";
/// Answers that accept what was recommended.
const ACCEPTS: Words = "yes|yes please|yep|yeah|ok|okay|ok, let's do this|ok let's do this|let's do this|let's do it|ok, let's do it|do it|go ahead|sounds good|yes, do it|yes do it|please do|agreed|sure|yes, please|yes let's do it|yes, let's do this|yes, go ahead|ok, go ahead|go for it";
const RECOMMENDS: Words =
    "i recommend|i'd recommend|i would recommend|my recommendation|i suggest|i'd suggest|recommendation:|recommended";

/// The user's choice in the prompt that answers an agent's message.
pub fn choice(offer: &str, prompt: &str) -> Option<Choice> {
    let own = own_sentences(prompt);
    let first = own.first().filter(|first| first.chars().count() <= 160)?;
    // "let's do 2, can you …?": what follows the comma asks for something else.
    let first = first.split(", can ").next().unwrap_or_default();
    let lower = in_english(first).to_lowercase().replace('’', "'");
    let bare = lower.trim().trim_end_matches(['.', '!', ' ']);
    let offered = options(offer);
    let others = |but: &str| {
        offered
            .iter()
            .map(|(_, text)| text.as_str())
            .filter(|text| *text != but)
            .map(|text| cut(text, ALTERNATIVE))
            .take(ALTERNATIVES)
            .collect()
    };
    let made = |chosen: &str, is_refusal: bool| {
        let reason = with_reason(first).1;
        Some(Choice {
            chosen: cut(chosen, OPTION),
            alternatives: if is_refusal { Vec::new() } else { others(chosen) },
            reason,
            is_refusal,
        })
    };
    if is_one_of(ACCEPTS, bare) {
        return recommended(offer).and_then(|text| made(&text, false));
    }
    if begins_with("no|nope|don't|please don't", bare) && word_count(bare) <= 14 {
        return recommended(offer).filter(|_| !bare.ends_with('?')).and_then(|text| made(&text, true));
    }
    if first.trim_end().ends_with('?')
        || word_count(first) > 14
        || begins_with(SPEAKS_OF, bare)
        || has_word_of(REFUSES, bare)
        || offered.len() < 2
    {
        return None;
    }
    let at = match chosen_mark(bare) {
        Some(mark) => offered.iter().position(|(known, _)| *known == mark)?,
        None => named(bare, &offered)?,
    };
    made(&offered[at].1.clone(), false)
}

/// The answers of a prompt that numbers them, each with the question of that number: `2. we show fifty`.
pub fn answers(asked: &str, prompt: &str) -> Vec<(String, String)> {
    let numbered = |text: &str| -> Vec<(String, String)> {
        let item = |line: &str| {
            let (number, rest) = line.trim().trim_start_matches(['#', '*', '-', ' ']).split_once(['.', ')', ':'])?;
            let is_number = !number.is_empty() && number.len() < 3 && number.bytes().all(|b| b.is_ascii_digit());
            (is_number && rest.starts_with([' ', '*'])).then(|| (number.to_string(), plain(rest)))
        };
        text.lines().filter_map(item).collect()
    };
    let questions = numbered(asked);
    let answers = numbered(prompt);
    if answers.len() < 2 {
        return Vec::new();
    }
    let question = |number: &String| questions.iter().rev().find(|(known, text)| known == number && text.contains('?'));
    answers.iter().filter_map(|(number, answer)| Some((question(number)?.1.clone(), answer.clone()))).collect()
}

/// The mark (`2`, `b`) that a user names: alone, as an ordinal, behind "option", or behind a verb of choosing.
fn chosen_mark(lower: &str) -> Option<String> {
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    let digit = |word: &str| word.len() == 1 && matches!(word.as_bytes()[0], b'1'..=b'9');
    let letter = |word: &str| word.len() == 1 && matches!(word.as_bytes()[0], b'a'..=b'e');
    for pair in words.windows(2) {
        let named =
            ["option", "options", "approach", "choice", "number"].contains(&pair[0]) && (digit(pair[1]) || letter(pair[1]));
        let chosen = ["do", "with", "for", "prefer", "choose", "pick", "take", "like"].contains(&pair[0]) && digit(pair[1]);
        if named || chosen {
            return Some(pair[1].to_string());
        }
    }
    let rest: Vec<&str> = words.into_iter().filter(|word| !is_one_of(FILLERS, word)).collect();
    match rest.as_slice() {
        [only] if digit(only) || letter(only) => Some((*only).to_string()),
        [only] | [only, "option"] => Some((ORDINALS.iter().position(|known| known == only)? + 1).to_string()),
        _ => None,
    }
}

/// The option whose words a short answer repeats, if there is just one.
fn named(lower: &str, options: &[(String, String)]) -> Option<usize> {
    let said: Vec<&str> =
        words(lower).filter(|word| word.len() > 2 && !is_stop_word(word) && !is_one_of(FILLERS, word)).collect();
    if said.is_empty() || said.len() > 4 {
        return None;
    }
    let has_all = |(_, text): &&(String, String)| {
        let text = text.to_lowercase();
        said.iter().all(|word| text.contains(word))
    };
    let mut found = options.iter().enumerate().filter(|(_, option)| has_all(option));
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at)
}

/// The options of a message that lets somebody choose: their marks and what they say.
fn options(offer: &str) -> Vec<(String, String)> {
    let tail: String = offer.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
    let tail = in_english(&tail).to_lowercase();
    let asks = ["which", "prefer", "option", "approach", "would you", "want me", "want to", "shall", "should", " or "];
    let labelled = in_english(offer).to_lowercase().matches("option ").count() >= 2;
    if !(labelled || tail.contains('?') && asks.iter().any(|word| tail.contains(word))) {
        return Vec::new();
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for line in offer.lines() {
        let own = plain(line.trim().trim_start_matches(['#', '-', '*', ' ']));
        let gloss = gloss(&own);
        let bare = gloss.text().trim_start();
        let lower = bare.to_lowercase();
        let label = ["option ", "approach "].iter().find(|label| lower.starts_with(**label)).map_or(0, |label| label.len());
        let Some((mark, text)) = bare.get(label..).and_then(|rest| rest.split_once([':', ')', '.', '-', '–', '—'])) else {
            continue;
        };
        let mark = mark.trim().to_lowercase();
        let is_mark = mark.len() == 1 && (mark.as_bytes()[0].is_ascii_digit() || matches!(mark.as_bytes()[0], b'a'..=b'e'));
        let text = text.trim().trim_start_matches([':', '-', '–', ' ']);
        if is_mark && word_count(text) >= 1 {
            // The last list counts.
            if mark == "1" || mark == "a" {
                found.clear();
            }
            found.push((mark, gloss.original(text).unwrap_or(text).to_string()));
        }
    }
    found
}

/// Returns the recommendation of a message, in its words.
fn recommended(offer: &str) -> Option<String> {
    let statements = crate::distil::statements::statements(offer);
    let says = |text: &str| {
        has_word_of(RECOMMENDS, &in_english(text).to_lowercase())
            && word_count(text) >= 4
            && !text.ends_with(['?', ':', '？', '：'])
    };
    let own = statements.iter().rev().find(|statement| says(&statement.text)).map(|statement| statement.text.clone());
    own.or_else(|| {
        let below = statements.iter().find(|statement| {
            let heading = in_english(statement.under.rsplit(" > ").next().unwrap_or_default()).to_lowercase();
            heading.contains("recommend") && word_count(&statement.text) >= 4
        });
        below.map(|statement| statement.text.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str =
        "There are three ways:\n\n1. **SQLite** - one file\n2. **Postgres** - a server\n3. A JSON file\n\nWhich do you prefer?";

    #[test]
    fn an_option_is_chosen_by_its_number_its_place_or_its_name() {
        for said in [
            "2",
            "Option 2.",
            "the second one",
            "let's do 2, can you add a test too?",
            "Postgres please",
            "let's implement option 2",
        ] {
            let choice = choice(OFFER, said).unwrap_or_else(|| panic!("{said}"));
            assert_eq!(choice.chosen, "Postgres - a server", "{said}");
            assert_eq!(choice.alternatives, ["SQLite - one file", "A JSON file"]);
        }
        for said in ["why 2?", "not 2", "what about the second one?", "go on", "fix the exporter"] {
            assert_eq!(choice(OFFER, said), None, "{said}");
        }
    }

    #[test]
    fn a_yes_to_a_recommendation_chooses_it_and_a_no_refuses_it() {
        let offer = "Option A: inform\nOption B: ask\n\nI recommend to inform, since a question is in the way.\n\nShall I go on?";
        let yes = choice(offer, "yes").unwrap();
        assert_eq!((yes.chosen.as_str(), yes.is_refusal), ("I recommend to inform, since a question is in the way.", false));
        assert!(choice(offer, "no, we ask").unwrap().is_refusal);
        assert_eq!(choice("It is done. All tests pass.", "yes"), None);
    }

    #[test]
    fn numbered_answers_are_answers_to_the_questions_of_that_number() {
        let asked = "1. Should it be cached?\n2. How many commits do we read?";
        assert_eq!(
            answers(asked, "1. no\n2. the last fifty"),
            [
                ("Should it be cached?".to_string(), "no".to_string()),
                ("How many commits do we read?".into(), "the last fifty".into())
            ]
        );
    }
}
