//! What was decided: by the person in their own words, by a choice among what the agent offered, and, marked as such, by
//! the agent. A wish for this moment ("don't commit yet") is no decision, and nor is a question.

use super::cues::{Words, begins_with, holds, is_one_of};
use super::own_words::own_sentences;
use super::prose::{Prose, cut, plain, word_count};
use super::said::is_statement;

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The sentence, as it was said.
    pub said: String,
    pub chosen: String,
    pub alternatives: Vec<String>,
    pub reason: Option<String>,
}

/// Words at the beginning of a clause that change nothing.
const FILLERS: Words = "ok|okay|yes|yeah|yep|no|nope|so|well|and|then|also|please|actually|hmm|right|sure|just|now|but|oh|cool|great|instead|generally|again";
/// Verbs of a standing order: "always run the tests".
const ORDERS: Words = "accept|access|add|allow|answer|apply|ask|assume|avoid|await|begin|block|build|bump|cache|calculate|call|cast|catch|change|check|cite|clone|close|commit|compute|confirm|convert|copy|count|create|define|delete|deny|depend|deploy|describe|do|document|download|drop|edit|encrypt|end|ensure|escape|expect|explain|expose|extend|fail|fetch|follow|force|force-push|format|free|generate|give|group|guess|handle|hard-code|hardcode|hash|hide|ignore|import|include|indent|insert|install|invent|join|keep|kill|leave|let|lint|load|lock|log|make|map|mark|match|mention|merge|mock|modify|move|name|nest|open|order|overwrite|own|park|parse|pass|pin|plan|poll|prefer|prefix|print|propagate|provide|publish|push|put|query|quote|raise|read|rebase|refer|reject|release|rely|remove|rename|render|reply|report|retry|return|reuse|review|round|run|save|scale|send|serve|set|share|show|sign|skip|sleep|sort|spawn|split|squash|start|stop|store|summarize|swallow|switch|tag|test|think|throw|touch|translate|trim|trust|type|unlock|unwrap|update|upload|use|validate|verify|wait|work|wrap|write";
/// Verbs with which something is settled, behind "let's" and its like.
const SETTLING: [&str; 13] = [
    "use ",
    "go with ",
    "go for ",
    "stick with ",
    "stick to ",
    "stay with ",
    "keep ",
    "rename ",
    "call ",
    "replace ",
    "switch to ",
    "default to ",
    "standardize on ",
];
const TOGETHER: [&str; 11] = [
    "let's ",
    "lets ",
    "let’s ",
    "let us ",
    "we should ",
    "we'll ",
    "we will ",
    "i'd rather ",
    "i'd prefer to ",
    "i want to ",
    "i prefer to ",
];
/// An object that can't be understood without what was said before.
const POINTING: Words =
    "this|that|it|it's|these|those|them|both|one|all|same|other|going|everything|option|options|your|its|their";
/// How a sentence begins that speaks of an option, and words of one that refuses it.
const SPEAKS_OF: Words = "regarding|about|what|why|how|is|does|for option|in option";
const REFUSES: Words = "n't| not |no |wrong|against|instead|except|skip|without|before";
/// What separates the chosen from what it is chosen over.
const OVER: [&str; 4] = [" instead of ", " rather than ", ", not ", " and not "];
/// Words before a clause that say whose it is.
const REPORTING: Words = "says|said|say|states|stated|reads|according|writes|wrote|article|page|docs|documentation|error|message|comment|reviewer|review|readme|blog|suggests";

/// What a person decided in a prompt.
pub fn by_user(prompt: &str) -> Vec<Decided> {
    own_sentences(prompt).iter().filter_map(|sentence| standing(sentence)).collect()
}

/// A sentence that settles something: "use X, not Y", "never …", "always …", "let's go with X".
fn standing(sentence: &str) -> Option<Decided> {
    if sentence.trim_end().ends_with('?') || sentence.chars().count() > 300 {
        return None;
    }
    let starts = clause_starts(sentence);
    starts.into_iter().find_map(|at| {
        let before = sentence[..at].to_ascii_lowercase();
        let reported = before.split(|c: char| !c.is_alphanumeric()).any(|word| is_one_of(REPORTING, word));
        let conditional = before.trim_start().starts_with("if ") || before.contains(" if ");
        if reported || conditional {
            None
        } else {
            settles(
                without_fillers(&sentence[at..]),
                at == 0 || is_one_of("from now on|in future|please", before.trim_matches([' ', ','])),
            )
        }
    })
}

/// Where clauses begin: at the sentence's start, behind commas, dashes, "but" and "and".
fn clause_starts(sentence: &str) -> Vec<usize> {
    let mut starts = vec![0];
    for mark in [", ", "; ", ": ", " - ", " – ", " — ", " but ", " and "] {
        starts.extend(sentence.match_indices(mark).map(|(at, mark)| at + mark.len()));
    }
    starts.sort_unstable();
    starts
}

fn without_fillers(clause: &str) -> &str {
    let mut rest = clause.trim_start();
    while let Some((word, behind)) = rest.split_once(' ') {
        let bare = word.trim_end_matches([',', '.', '!', ':', '-']).to_ascii_lowercase();
        if !is_one_of(FILLERS, &bare) && !bare.is_empty() {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

fn settles(clause: &str, begins: bool) -> Option<Decided> {
    let clause = clause.trim().trim_end_matches(['.', '!', ' ']);
    let lower = clause.to_ascii_lowercase();
    let decided = |chosen: &str, alternatives: Vec<String>| {
        let (chosen, reason) = with_reason(chosen);
        Some(Decided { said: clause.to_string(), chosen, alternatives, reason })
    };
    // "never commit to main", "you should always run the tests"
    let modal = ["you should ", "you must ", "we should ", "we must ", "it should ", "it must ", "should ", "must "];
    let order = modal.iter().find_map(|modal| lower.strip_prefix(modal)).unwrap_or(&lower);
    let order = order.strip_prefix("from now on ").or_else(|| order.strip_prefix("in future ")).unwrap_or(order);
    let order = order.replacen("never ever ", "never ", 1);
    if let Some(rest) = order.strip_prefix("never ").or_else(|| order.strip_prefix("always ")) {
        let verb = rest.split([' ', ',']).next().unwrap_or_default();
        // In the middle of a sentence only what is surely an order; at its beginning whatever may be a verb.
        let orders = is_one_of(ORDERS, verb) || begins && may_order(verb);
        return if orders && word_count(rest) >= 2 { decided(clause, Vec::new()) } else { None };
    }
    let together = TOGETHER.iter().find(|begin| lower.starts_with(**begin)).map_or(0, |begin| begin.len());
    let rest = lower.get(together..)?;
    let verb = SETTLING.iter().chain(&["prefer ", "choose ", "pick "]).find(|verb| rest.starts_with(**verb))?;
    let object = clause.get(together + verb.len()..)?.trim();
    let lower_object = object.to_ascii_lowercase();
    let first = lower_object.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    if is_one_of(POINTING, first) || lower_object.starts_with("the same") {
        return None;
    }
    // "rename to x" doesn't say what.
    if *verb == "rename " && lower_object.starts_with("to ") {
        return None;
    }
    let over = OVER.iter().filter_map(|over| Some((lower_object.find(over)?, over.len()))).min();
    match over {
        Some((at, length)) if at > 0 && object.is_char_boundary(at) && object.is_char_boundary(at + length) => {
            let other = object[at + length..].split([',', ';', '(']).next().unwrap_or_default();
            let other = cut(other.trim_matches([' ', ',', '.', '?']), 120);
            decided(&object[..at], vec![other])
        }
        // Without "let's" a verb alone may be an order for this moment: "use the file".
        _ if together > 0 && word_count(object) >= 2 && word_count(object) <= 25 => decided(object, Vec::new()),
        _ => None,
    }
}

/// Whether a word behind "always" or "never" can be a verb that orders: not what describes, and no verb of the third person,
/// the past or the passive.
fn may_order(word: &str) -> bool {
    const DESCRIBES: Words = "the|a|an|this|that|these|those|my|your|our|his|her|its|their|it|he|she|they|in|on|at|by|for|from|with|to|of|as|again|more|mind|been|had|got|have|be|same|some|any|one|here|there|ever|quite|really|so|too|very|able|sure|true|false|empty|null|present|right|wrong|available|possible|open|closed|up|down|when|if|where|because|seen|shown|known|done|made|taken|given|written|gone|found|built|sent|kept|left|lost|told|slow|fast|good|bad|happy|fun|nice|seem|look|feel|get|thought|knew|saw|went|came|worked|not|just|only|also|about|like|under|over|into|after|before|would|could|should|will|can|may|might|must";
    let plain = word.len() >= 3 && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let inflected = ["ed", "ing", "ly", "s"].iter().any(|end| word.ends_with(end))
        && !["ss", "feed", "need", "bring", "process", "press"].iter().any(|end| word.ends_with(end));
    plain && !inflected && !is_one_of(DESCRIBES, word)
}

/// Parts "X since Y" in two.
fn with_reason(text: &str) -> (String, Option<String>) {
    let lower = text.to_ascii_lowercase();
    let found = [" because ", " since ", " as it ", " so that ", ", so "]
        .iter()
        .filter_map(|mark| Some((lower.find(mark)?, mark.len())))
        .min();
    match found {
        Some((at, length)) if text.is_char_boundary(at) && text.is_char_boundary(at + length) => {
            (text[..at].trim_matches([' ', ',']).to_string(), Some(text[at + length..].trim().to_string()))
        }
        _ => (text.trim_matches([' ', ',']).to_string(), None),
    }
}

/// What a person chose among the numbered options that the agent's last message offered.
pub fn by_choice(offer: &str, prompt: &str) -> Option<Decided> {
    let own = own_sentences(prompt);
    let first = own.first().filter(|first| first.chars().count() <= 160)?;
    // "let's do 2, can you …?": what follows the comma asks for something else.
    let first = &first.split(", can ").next().unwrap_or_default().to_string();
    if first.trim_end().ends_with('?') {
        return None;
    }
    let lower = first.to_ascii_lowercase();
    if word_count(first) > 14 || begins_with(SPEAKS_OF, &lower) || holds(REFUSES, &lower) {
        return None;
    }
    let options = options(offer)?;
    let chosen = chosen_mark(first)?;
    let at = options.iter().position(|(mark, _)| *mark == chosen)?;
    let alternatives = options.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, (_, text))| text.clone()).take(5).collect();
    let reason = with_reason(first).1;
    Some(Decided { said: first.clone(), chosen: options[at].1.clone(), alternatives, reason })
}

/// The mark (`2`, `b`) that a person names: alone, behind "option", or behind a verb of choosing.
fn chosen_mark(sentence: &str) -> Option<String> {
    let lower = sentence.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|w| !w.is_empty()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !is_one_of(FILLERS, word)).collect();
    let digit = |word: &str| word.len() == 1 && matches!(word.as_bytes()[0], b'1'..=b'9');
    let letter = |word: &str| word.len() == 1 && matches!(word.as_bytes()[0], b'a'..=b'e');
    if let [only] = words.as_slice() {
        return (digit(only) || letter(only)).then(|| (*only).to_string());
    }
    for pair in words.windows(2) {
        let named =
            ["option", "options", "approach", "choice", "number"].contains(&pair[0]) && (digit(pair[1]) || letter(pair[1]));
        let chosen = ["do", "with", "for", "prefer", "choose", "pick", "take", "like"].contains(&pair[0]) && digit(pair[1]);
        if named || chosen {
            return Some(pair[1].to_string());
        }
    }
    None
}

/// The options of a message that asks which one: their marks and what they say.
fn options(offer: &str) -> Option<Vec<(String, String)>> {
    let tail: String = offer.chars().rev().take(500).collect::<Vec<_>>().into_iter().rev().collect();
    let asks = ["which", "prefer", "option", "approach", "would you", "want me", "want to", "shall", "should"];
    let tail = tail.to_ascii_lowercase();
    if !tail.contains('?') || !asks.iter().any(|word| tail.contains(word)) {
        return None;
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for line in offer.lines() {
        let bare = plain(line.trim().trim_start_matches(['#', '-', '*', ' ']));
        let lower = bare.to_ascii_lowercase();
        let rest = lower
            .strip_prefix("option ")
            .or_else(|| lower.strip_prefix("approach "))
            .map_or(bare.as_str(), |rest| &bare[bare.len() - rest.len()..]);
        let Some((mark, text)) = rest.split_once([':', ')', '.', '-', '–', '—']) else { continue };
        let mark = mark.trim().to_ascii_lowercase();
        let is_mark = mark.len() == 1 && (mark.as_bytes()[0].is_ascii_digit() || matches!(mark.as_bytes()[0], b'a'..=b'e'));
        let text = text.trim().trim_start_matches([':', '-', '–', ' ']);
        if is_mark && word_count(text) >= 2 {
            // A list that begins anew is the one that counts.
            if mark == "1" || mark == "a" {
                found.clear();
            }
            found.push((mark, cut(text, 160)));
        }
    }
    (found.len() >= 2).then_some(found)
}

/// What the agent says that it decided, with its reason: "I chose X because Y".
pub fn by_agent(closing: &str) -> Vec<Decided> {
    let cues = [
        "i chose ",
        "i've chosen ",
        "i went with ",
        "i opted for ",
        "i decided to ",
        "i decided on ",
        "i picked ",
        "i settled on ",
    ];
    let mut found = Vec::new();
    for part in &Prose::of(closing).parts {
        let lower = part.text.to_ascii_lowercase();
        let Some((at, cue)) = cues.iter().find_map(|cue| Some((lower.find(cue)?, cue))) else { continue };
        let reported = lower[..at].split(|c: char| !c.is_alphanumeric()).any(|word| is_one_of(REPORTING, word));
        let quoted = ['"', '“', '\''].iter().any(|mark| part.text[..at.min(part.text.len())].contains(*mark));
        if reported || quoted || !part.text.is_char_boundary(at + cue.len()) || !is_statement(&part.text) {
            continue;
        }
        let (chosen, reason) = with_reason(part.text[at + cue.len()..].trim_end_matches('.'));
        if let (true, Some(reason)) = (word_count(&chosen) >= 1, reason) {
            let over = OVER.iter().find_map(|over| chosen.to_ascii_lowercase().find(over).map(|at| (at, over.len())));
            let (chosen, alternatives) = match over {
                Some((at, length)) if chosen.is_char_boundary(at) && chosen.is_char_boundary(at + length) => {
                    (chosen[..at].to_string(), vec![chosen[at + length..].to_string()])
                }
                _ => (chosen, Vec::new()),
            };
            found.push(Decided { said: part.text.clone(), chosen, alternatives, reason: Some(reason) });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(prompt: &str) -> Vec<String> {
        by_user(prompt).into_iter().map(|decided| decided.said).collect()
    }

    #[test]
    fn standing_orders_and_choices_in_a_persons_own_words_are_decisions() {
        for (prompt, decided) in [
            ("use tabs, not spaces", "use tabs, not spaces"),
            (
                "ok, let's use true/false and not on/off for the skip flag",
                "let's use true/false and not on/off for the skip flag",
            ),
            ("Never commit to main.", "Never commit to main"),
            ("Always weigh flour.", "Always weigh flour"),
            ("From now on, never ever overmix the batter.", "never ever overmix the batter"),
            ("keep it compatible but always write \"steps_count\" now", "always write \"steps_count\" now"),
            ("You should always run the tests first!", "You should always run the tests first"),
            ("okay, let's rename turns to \"steps\" instead.", "let's rename turns to \"steps\" instead"),
            ("please use the pty instead of mocks", "use the pty instead of mocks"),
        ] {
            assert_eq!(said(prompt), [decided], "{prompt}");
        }
        let both = &by_user("let's use sqlite rather than json files since it is safer")[0];
        assert_eq!(
            (both.chosen.as_str(), both.alternatives.as_slice()),
            ("sqlite", &["json files since it is safer".to_string()][..])
        );
    }

    #[test]
    fn what_only_sounds_like_one_is_none() {
        for prompt in [
            "it always fails in CI",
            "Always the same error",
            "never seen this before",
            "Always slow when it starts",
            "Field computed but never shown to user",
            "should we use X instead of Y?",
            "we never get there",
            "let's do this",
            "let's use that instead",
            "use the file",
            "don't commit yet",
            "the docs say: always use tabs",
            "the reviewer wrote, never use globals",
            "if it fails, always run it again",
            "the page says \"always use X in all of your code\"",
            "let's fix 3 too",
            "I always get an error",
            "it never use to work",
            "ok, let's rename to \"steps\" instead",
        ] {
            assert_eq!(said(prompt), [] as [&str; 0], "{prompt}");
        }
    }

    #[test]
    fn a_mark_chooses_among_what_was_offered() {
        let offer = "Options:\n1. **Create a shared package** - cleanest\n2. **Keep it in strategy** - some duplication\n\nWhich approach would you prefer?";
        assert_eq!(by_choice(offer, "should we do 2?"), None, "a question is none");
        let choice = by_choice(offer, "let's do 2 for now, can you create the issue?").unwrap();
        assert_eq!(choice.chosen, "Keep it in strategy - some duplication");
        assert_eq!(choice.alternatives, ["Create a shared package - cleanest"]);
        assert_eq!(by_choice(offer, "2").unwrap().chosen, "Keep it in strategy - some duplication");
        assert_eq!(by_choice(offer, "fix 2 bugs first"), None);
        assert_eq!(by_choice(offer, "option 1 doesn't work since the hash changes"), None);
        assert_eq!(by_choice("1. Did this\n2. Did that\nDone.", "2"), None, "nothing was asked");
    }

    #[test]
    fn the_agent_decides_with_a_reason_of_its_own() {
        let decided = by_agent("I went with a B-tree instead of a hash because ranges are scanned. All tests pass.");
        assert_eq!((decided[0].chosen.as_str(), decided[0].alternatives[0].as_str()), ("a B-tree", "a hash"));
        assert_eq!(decided[0].reason.as_deref(), Some("ranges are scanned"));
        for text in [
            "The author writes that I chose Y because it is fast.",
            "> I chose Y because it is fast.",
            "The page: \"I chose Y because it is fast.\"",
            "I chose the first one.",
        ] {
            assert_eq!(by_agent(text), [], "{text}");
        }
    }
}
