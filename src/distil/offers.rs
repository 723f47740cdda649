//! Options that the user chose from the agent's offers, recommendations and questions.

use super::statements::{Words, begins_with, has_word_of, is_one_of, own_sentences, plain, word_count};
use super::user_decisions::with_reason;
use crate::languages::{gloss, in_english};
use crate::text::{cut, is_stop_word, words};
use std::cell::LazyCell;

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
const ALTERNATIVES: usize = 2;
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

/// Words of a report, which recommends nothing: "the permissions are now a recommended config".
const REPORTS: Words = "are now |is now |has been |have been |i've |i have |i added|i updated";
/// Words of a user who was misunderstood: "no, I'm talking about the other page".
const CORRECTS: Words = "talking about|i mean|i meant|referring to";

/// First words of options that are work to be done, not ways to choose among.
const CHORES: Words = "wait|stage|unstage|commit|push|merge|resolve|rebase|run|rerun|re-run|test|check|review|go|log|open|close|select|click|continue|proceed|verify|monitor|refresh|restart|retry|reload|deploy|investigate|look|create a pr|open a pr";
/// Words of options about how the agent goes on, or for this moment.
const PROCESS_OPTIONS: Words =
    "subagent|this session|inline execution|don't commit|do not commit|without committing|for now|force-add|skip it";
/// Words of a message that offers ways to choose among.
const OFFERS: Words =
    "option|options|approach|approaches|alternatives|choices|ways|which |prefer|pick one|choose|would you rather|recommend";

/// The user's choice in the prompt that answers an agent's message.
pub fn choice(offer: &str, prompt: &str) -> Option<Choice> {
    let own = own_sentences(prompt);
    let first = own.first().filter(|first| first.chars().count() <= 160)?;
    // "let's do 2, can you …?": what follows the comma asks for something else.
    let first = first.split(", can ").next().unwrap_or_default();
    let lower = in_english(first).to_lowercase().replace('’', "'");
    let bare = lower.trim().trim_end_matches(['.', '!', ' ']);
    // A message is long, and most prompts choose nothing.
    let offered = LazyCell::new(|| options(offer));
    let others = |but: &[&str]| {
        let others = offered.iter().map(|(_, text)| text.as_str()).filter(|text| !but.contains(text));
        others.map(|text| cut(text, ALTERNATIVE)).take(ALTERNATIVES).collect()
    };
    let made = |chosen: &[&str], is_refusal: bool| {
        let is_chore = chosen.iter().any(|text| {
            let english = in_english(text).to_lowercase();
            begins_with(CHORES, &english) || has_word_of(PROCESS_OPTIONS, &english)
        });
        let each = if chosen.len() > 1 { OPTION / chosen.len() + 20 } else { OPTION };
        let made = Choice {
            chosen: chosen.iter().map(|text| cut(text, each)).collect::<Vec<_>>().join("; "),
            alternatives: if is_refusal { Vec::new() } else { others(chosen) },
            reason: with_reason(first).1,
            is_refusal,
        };
        (!is_chore).then_some(made)
    };
    if is_one_of(ACCEPTS, bare) {
        return recommended(offer).and_then(|text| made(&[&text], false));
    }
    if begins_with("no|nope|don't|please don't", bare) && word_count(bare) <= 14 {
        let refuses = !bare.ends_with('?') && !has_word_of(CORRECTS, bare);
        return recommended(offer).filter(|_| refuses).and_then(|text| made(&[&text], true));
    }
    if first.trim_end().ends_with('?')
        || word_count(first) > 14
        || begins_with(SPEAKS_OF, bare)
        || has_word_of(REFUSES, bare)
        || offered.len() < 2
    {
        return None;
    }
    let marks = chosen_marks(bare);
    let chosen: Vec<&str> = match marks.as_slice() {
        [] if has_word_of("both", bare) => match offered.as_slice() {
            [(_, one), (_, other)] => vec![one, other],
            _ => return None,
        },
        [] => vec![&offered[named(bare, &offered)?].1],
        marks => {
            let of = |mark: &String| offered.iter().find(|(known, _)| known == mark).map(|(_, text)| text.as_str());
            marks.iter().map(of).collect::<Option<Vec<_>>>()?
        }
    };
    made(&chosen, false)
}

/// The answers of a prompt that numbers them, each with the question of that number: `2. we show fifty`. An answer whose
/// question is not known has none, if the list shows by a yes or a no that it answers.
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
    let is_short = |(_, answer): &(String, String)| is_one_of("yes|no|nope|yep|yeah|both|none", &answer.to_lowercase());
    let answers_all = answers.len() > 2 && answers.iter().any(is_short);
    let question = |number: &String| questions.iter().rev().find(|(known, text)| known == number && text.contains('?'));
    let paired = |(number, answer): &(String, String)| match question(number) {
        Some((_, question)) => Some((question.clone(), answer.clone())),
        None => (answers_all && word_count(answer) >= WORDS_ALONE).then(|| (String::new(), answer.clone())),
    };
    answers.iter().filter_map(paired).collect()
}

/// Words from which an answer says something without its question.
pub const WORDS_ALONE: usize = 6;

/// The marks (`2`, `b`) that a user names: alone, as an ordinal, behind "option", or behind a verb of choosing. Two are both
/// chosen: `1 and 3`.
fn chosen_marks(lower: &str) -> Vec<String> {
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    let digit = |word: &str| word.len() == 1 && matches!(word.as_bytes()[0], b'1'..=b'9');
    let letter = |word: &str| word.len() == 1 && matches!(word.as_bytes()[0], b'a'..=b'e');
    // Behind the first mark another one may follow: "options 1 and 3".
    let with_next = |at: usize| {
        let next = words.get(at + 1).filter(|word| **word == "and").and_then(|_| words.get(at + 2)).or(words.get(at + 1));
        let next = next.filter(|word| digit(word) || letter(word) && words[at + 1] == "and");
        [Some(&words[at]), next].into_iter().flatten().map(|word| (*word).to_string()).collect::<Vec<_>>()
    };
    for (at, pair) in words.windows(2).enumerate() {
        let named =
            ["option", "options", "approach", "choice", "number"].contains(&pair[0]) && (digit(pair[1]) || letter(pair[1]));
        let chosen = ["do", "with", "for", "prefer", "choose", "pick", "take", "like"].contains(&pair[0]) && digit(pair[1]);
        if named || chosen {
            return with_next(at + 1);
        }
    }
    let rest: Vec<&str> = words.iter().copied().filter(|word| !is_one_of(FILLERS, word)).collect();
    let is_mark = |word: &str| digit(word) || letter(word);
    match rest.as_slice() {
        [only] | [only, "option"] if is_mark(only) => vec![(*only).to_string()],
        [one, other] if is_mark(one) && is_mark(other) => vec![(*one).to_string(), (*other).to_string()],
        [only] | [only, "option"] => {
            ORDINALS.iter().position(|known| known == only).map(|at| (at + 1).to_string()).into_iter().collect()
        }
        _ => Vec::new(),
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

/// The options of a message that lets somebody choose: their marks and what they say. A list of questions, findings or steps
/// offers nothing to choose among.
fn options(offer: &str) -> Vec<(String, String)> {
    const LABELS: [&str; 2] = ["option ", "approach "];
    // Most messages offer nothing, and a translation costs time.
    let is_labelled = || LABELS.iter().any(|label| offer.to_ascii_lowercase().contains(label));
    if !offer.contains(['?', '？']) && !is_labelled() {
        return Vec::new();
    }
    let tail: String = offer.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
    let tail = in_english(&tail).to_lowercase();
    let whole = in_english(offer).to_lowercase();
    let labelled = LABELS.iter().any(|label| whole.matches(label).count() >= 2);
    if !(labelled || tail.contains('?') && has_word_of(OFFERS, &whole)) {
        return Vec::new();
    }
    let mut found: Vec<(bool, String, String)> = Vec::new();
    for line in offer.lines() {
        let own = plain(line.trim().trim_start_matches(['#', '-', '*', ' ']));
        let gloss = gloss(&own);
        let bare = gloss.text().trim_start();
        let lower = bare.to_lowercase();
        let label = LABELS.iter().find(|label| lower.starts_with(**label)).map_or(0, |label| label.len());
        let Some((mark, text)) = bare.get(label..).and_then(|rest| rest.split_once([':', ')', '.', '-', '–', '—'])) else {
            continue;
        };
        let mark = mark.trim().to_lowercase();
        let is_mark = mark.len() == 1 && (mark.as_bytes()[0].is_ascii_digit() || matches!(mark.as_bytes()[0], b'a'..=b'e'));
        let text = text.trim().trim_start_matches([':', '-', '–', ' ']);
        if is_mark && word_count(text) >= 1 {
            // The last list counts.
            if label == 0 && (mark == "1" || mark == "a") {
                found.retain(|(is_labelled, ..)| *is_labelled);
            }
            found.push((label > 0, mark, gloss.original(text).unwrap_or(text).to_string()));
        }
    }
    // A list below a labelled option has its steps.
    if found.iter().filter(|(is_labelled, ..)| *is_labelled).count() >= 2 {
        found.retain(|(is_labelled, ..)| *is_labelled);
    }
    let is_question = |(_, _, text): &(bool, String, String)| text.ends_with(['?', '？']);
    if found.iter().any(is_question) {
        return Vec::new();
    }
    found.into_iter().map(|(_, mark, text)| (mark, text)).collect()
}

/// The options that a message lets somebody choose from, in its words.
pub fn offered(message: &str) -> Vec<String> {
    options(message).into_iter().map(|(_, text)| text).collect()
}

/// Returns the recommendation of a message, in its words.
fn recommended(offer: &str) -> Option<String> {
    let statements = crate::distil::statements::statements(offer);
    let says = |text: &str| {
        let lower = in_english(text).to_lowercase();
        has_word_of(RECOMMENDS, &lower)
            && !has_word_of(REPORTS, &lower)
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
        let both = choice(OFFER, "1 and 3").unwrap();
        assert_eq!(
            (both.chosen.as_str(), both.alternatives),
            ("SQLite - one file; A JSON file", vec!["Postgres - a server".into()])
        );
    }

    #[test]
    fn findings_steps_questions_and_chores_are_no_options() {
        let findings = "1. **Merge conflicts** - 17 files\n2. **No checks** - none ran\n\nWould you like me to fix these?";
        assert_eq!(choice(findings, "2"), None);
        let questions = "Before I choose an approach:\n1. Should it be cached?\n2. Which port?\n\nLet me know?";
        assert_eq!(choice(questions, "2"), None);
        let chores = "Option 1: Disable the archive\nOption 2: Wait for the build to complete\n\nWhich do you prefer?";
        assert_eq!(choice(chores, "option 2"), None);
        assert_eq!(choice(chores, "option 1").unwrap().chosen, "Disable the archive");
        let steps = "### Option 1: Invalidate the cache\n1. Go to the console\n2. Select the distribution\n### Option 2: Add a subdomain\n\nWhich option?";
        assert_eq!(choice(steps, "Option 2").unwrap().chosen, "Add a subdomain");
    }

    #[test]
    fn how_the_agent_goes_on_is_no_choice() {
        let ways = "1. **Subagent-Driven** - a fresh subagent for each task\n2. **Inline Execution** - batches with checkpoints\n\nWhich approach?";
        assert_eq!(choice(ways, "1"), None);
        let shell = "Option 1: Symlink it\nOption 2: Just alias for this session\n\nWhich option?";
        assert_eq!(choice(shell, "do option 2"), None);
        assert_eq!(choice(shell, "do option 1").unwrap().chosen, "Symlink it");
    }

    #[test]
    fn both_of_two_options_are_chosen_in_words() {
        let offer = "Two approaches:\n1. One orchestrator\n2. A worker for each queue\n\nWhich one?";
        assert_eq!(choice(offer, "I want both").unwrap().chosen, "One orchestrator; A worker for each queue");
        assert_eq!(choice(OFFER, "both"), None, "both of three");
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
        let said = "1. no\n2. we read the last fifty commits of main\n3. yes";
        assert_eq!(answers("This is how it works.", said), [(String::new(), "we read the last fifty commits of main".into())]);
    }
}
