//! What a closing message says: what it states, what it reports as done, what it lists and what it asks. What is only
//! offered, supposed, or about the talk itself is none of these.

use super::cues::{Words, begins_with, first_word, holds, is_one_of};
use super::prose::{Part, Prose, word_count};

/// Sentences that say nothing.
const FILLERS: Words = "done|perfect|great|good|excellent|yes|no|ok|okay|sure|right|correct|good question|good point|good catch|great question|good idea|exactly|yes, exactly|absolutely|got it|i see|ah|ah, i see|found it|found the issue|found the root cause|all done|nice";
/// How sentences begin that tell of the talk, not of the work.
const TALK: Words = "let me|i'll|i will|let's|let us|would you|do you|want me|shall i|should i|should we|here's|here is|here are|looking at|now let me|first,|to summarize|in summary|i can|i could|if you|feel free|sorry|thanks|thank you|welcome|hello|hi|ready|i'm|i need|please|waiting|what would|how would|happy to|can you|could you|i see|ah, i see|i understand|i don't see|now i|i have the|i've got|understood|you were|you're|you are|pros|cons|note|total|the actual|in this case|great|perfect|yes, that|good";
/// Headings below which ways are offered that nobody has gone.
const OFFERS: Words = "option|alternative|choice|could|can |should|would|recommend|suggest|propos|either|possib|next|want|idea|approach|if you|question|todo|to do|plan";
/// Words of a question that lets somebody choose.
const CHOICE: Words = "which|prefer|option|or |want|would you|should";
/// Words of who isn't sure, or speaks of what could be.
const HEDGES: Words = "likely|might|maybe|could|probably|perhaps|possibly|not sure|may be|would|should|i think|i suspect|seems|potential|looks like|appears to|we can ";
/// First words that point at something said before.
const POINTING: Words =
    "it|it's|its|this|that|these|those|they|both|he|she|there|all|one|same|since|so|but|yes|no|also|and|which";
/// Words with which a report of work begins.
const DONE: Words = "added|adds|updated|updates|changed|changes|fixed|fixes|removed|removes|renamed|moved|created|implemented|refactored|replaced|extracted|simplified|introduced|introduces|made|switched|reverted|restored|cleaned|documented|consolidated|split|merged|converted|wrapped|dropped|exported|inlined|rewrote|now|bumped|set|disabled|enabled|improved|tightened|extended|unified|registered|migrated|configured|deployed|wrote|addressed|increased|reduced|corrected|resolved";
/// Reports inside a sentence.
const I_DID: Words =
    " i added | i fixed | i changed | i removed | i updated | i wrote | i moved | i replaced | i made | i renamed | i created ";
/// First words of a proposal.
const IMPERATIVE: Words = "then|also|create|use|add|get|remove|move|update|make|call|check|run|pass|return|set|change|keep|rename|extract|line|total|or";
/// Words of what is still to do, or was the case before.
const NOT_DONE: Words = " still | yet|more place|added import|added the import|added missing import|imports for|test output| would | could | should | might | we need | needs to | will |before:|after:|now executing|now running|now implementing|first batch|next batch|caveat|careful|note:|problem:|issue:|current|limitation| to do ";
/// Labels before what was done.
const DONE_LABELS: Words = "fix|the fix|solution|result|change|changes|summary|now|root cause fix";
/// Words of checks that went through, and of work that is fine.
const PASSES: Words = "pass|clean|green|succeed|no issues|0 issues|committed|pushed|up to date";
const FINE: Words = "correct|works|working|complete|done|finished|add up|looks good|verified|ready";

impl Prose {
    /// What the message states outside of lists, what can stand for itself before what points at something, and nothing that
    /// only could be so.
    pub fn statements(&self) -> Vec<&str> {
        let sure = |part: &&Part| is_statement(&part.text) && !is_check(&part.text) && !is_hedged(&part.text);
        let told =
            |part: &&Part| !part.is_point && !holds(OFFERS, &part.under) && !is_one_of(IMPERATIVE, &first_word(&part.text));
        let mut parts: Vec<&Part> = self.parts.iter().filter(sure).filter(told).collect();
        parts.sort_by_key(|part| points_at(&part.text));
        parts.into_iter().map(|part| part.text.as_str()).collect()
    }

    /// What the message says was done: the first sentence or point that begins like a report, else its first sentence.
    pub fn done(&self) -> Option<&str> {
        let reports = |part: &Part, text: &str| {
            begins_done(text) || !part.is_point && holds(I_DID, &text.to_lowercase()) || !part.is_point && text.contains(" now ")
        };
        let parts = self.parts.iter().filter(|part| is_done(&part.text)).map(|part| (part, without_done_label(&part.text)));
        let told = parts.filter(|(part, text)| !part.is_point || reports(part, text));
        // "There was none, so I added one" points at something, and tells all the same.
        told.min_by_key(|(part, text)| {
            (points_at(text) && !holds(I_DID, &text.to_lowercase()), !reports(part, text), part.is_point, !text.contains('`'))
        })
        .map(|(_, text)| text)
    }

    /// The points of its lists, as far as they state something.
    pub fn points(&self) -> impl Iterator<Item = &str> {
        let says = |part: &&Part| {
            part.is_point && word_count(&part.text) >= 3 && !part.text.ends_with([':', '?']) && !self.is_offered(part)
        };
        self.parts.iter().filter(says).map(|part| part.text.as_str())
    }

    /// What is only offered: its heading or it itself says so, or it is a choice before a closing question.
    fn is_offered(&self, part: &Part) -> bool {
        let choice = || self.question().is_some_and(|question| holds(CHOICE, &question.to_lowercase()));
        holds(OFFERS, &part.under) || part.text.to_lowercase().starts_with("option ") || part.under.is_empty() && choice()
    }

    /// The question that it ends with.
    pub fn question(&self) -> Option<&str> {
        let last = self.parts.iter().rev().take(6).find(|part| part.text.ends_with('?'))?;
        (word_count(&last.text) >= 3).then_some(last.text.as_str())
    }
}

/// Whether a sentence states something about the work.
pub fn is_statement(text: &str) -> bool {
    let lower = text.to_lowercase();
    let bare = lower.trim_end_matches(['.', '!', ' ', ',', '-', '–', '—']);
    // A line of a log: `3fa106e` fix: …
    let first = bare.trim_start_matches('`').split([' ', '`']).next().unwrap_or_default();
    let is_log = first.len() >= 7 && first.bytes().all(|b| b.is_ascii_hexdigit()) && first.bytes().any(|b| b.is_ascii_digit());
    word_count(text) >= 4 && !is_log && !text.ends_with(['?', ':']) && !is_one_of(FILLERS, bare) && !begins_with(TALK, &lower)
}

/// Whether a sentence only says that checks went through, or that all is well.
pub fn is_check(text: &str) -> bool {
    let lower = text.to_lowercase();
    word_count(text) <= 12 && holds(PASSES, &lower) || word_count(text) <= 8 && holds(FINE, &lower)
}

fn is_hedged(text: &str) -> bool {
    holds(HEDGES, &text.to_lowercase())
}

/// Whether a sentence begins with a word that points at something said before.
pub fn points_at(text: &str) -> bool {
    is_one_of(POINTING, &first_word(text))
}

/// Whether a sentence may report what was done.
fn is_done(text: &str) -> bool {
    is_statement(text) && !is_check(text) && !holds(NOT_DONE, &text.to_lowercase())
}

fn begins_done(text: &str) -> bool {
    let lower = text.to_lowercase();
    let bare =
        ["i've ", "i have ", "i also ", "i ", "also ", "we "].iter().find_map(|who| lower.strip_prefix(who)).unwrap_or(&lower);
    is_one_of(DONE, &first_word(bare))
}

/// Whether a sentence is a report of work: of a long stretch only such ones are facts.
pub fn reports(text: &str) -> bool {
    let lower = text.to_lowercase();
    is_done(text) && (begins_done(text) || lower.contains(" now ") || holds(I_DID, &lower))
}

fn without_done_label(text: &str) -> &str {
    match text.split_once(": ") {
        Some((label, rest)) if is_one_of(DONE_LABELS, &label.to_lowercase()) && word_count(rest) >= 4 => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_itself_and_is_sure_comes_first() {
        let first = |text: &str| Prose::of(text).statements().first().map(|text| text.to_string());
        let text = "It finds the commit first. All tests pass. The list shows `x` first.";
        assert_eq!(first(text).as_deref(), Some("The list shows `x` first."));
        assert_eq!(first("It finds the commit first.").as_deref(), Some("It finds the commit first."));
        assert_eq!(first("Let me look at it. A potential fix would be to wait. Would you like more?"), None);
    }

    #[test]
    fn what_was_done_is_what_a_message_reports() {
        let done = |text: &str| Prose::of(text).done().map(String::from);
        let labelled = "**Problem:** the lock was held.\n\n**Fix:** released it before the call to the server.";
        assert_eq!(done(labelled).as_deref(), Some("released it before the call to the server."));
        assert_eq!(done("We should add a test for the list."), None);
        assert_eq!(done("Perfect! The tests pass.\n\n- Added `x` to the list").as_deref(), Some("Added `x` to the list"));
    }

    #[test]
    fn what_is_offered_is_no_fact() {
        let points = |text: &str| Prose::of(text).points().map(String::from).collect::<Vec<_>>();
        assert_eq!(points("**Changes:**\n- Added x to it\n\n**Options:**\n- Use x or y there"), ["Added x to it"]);
        assert_eq!(points("1. Use x for it\n2. Use y for it\n\nWhich do you prefer?"), [] as [&str; 0]);
    }
}
