//! How a statement is worded when it stands alone: with the part of its heading that changes its meaning, and as fixed
//! where it describes a defect that the work has removed.

use crate::choice::{Class, Judged, Said};
use crate::statements::word_lists::{Words, begins_with, holds};
use crate::text::files_named;

/// Headings without which an item says something else: `Removed:`, `Kept as "checkpoints":`.
const TURNING: Words = "removed|deleted|dropped|kept|unchanged|not changed|reverted|before|old|previously|not done|skipped|rejected|deprecated|limitations|limitation|known limitations|known issues|out of scope";
/// Headings over the description of a defect.
const DEFECTS: Words = "cause|problem|issue|bug|what was wrong|why it|before|symptom|current behavior|current behaviour";
/// How a description of a defect begins.
const BEGINS: Words =
    "root cause|the root cause|the bug|the issue|the problem|problem|issue|bug|before|the old |cause|previously";
/// Words of one who reports what is so now.
const REPORTS: Words =
    "fixed|fix |fix:|now |no longer|added|removed|replaced|changed|instead|updated|moved|implemented|i've|created|introduced";

/// The text of a statement as it is remembered.
pub fn worded(judged: &Judged, at: usize) -> String {
    let said = &judged.said[at];
    let text = compact(&said.text);
    if is_fixed_defect(judged, said) {
        return format!("Fixed: {text}");
    }
    let above = said.under.rsplit(" > ").next().unwrap_or_default();
    // An item below the name of a file is about that file.
    if above.chars().count() < 80 && !files_named(above).is_empty() && files_named(&text).is_empty() {
        return format!("{above}: {text}");
    }
    let heading = above.to_lowercase();
    let heading = heading.as_str();
    match heading.chars().count() < 40 && begins_with(TURNING, heading) && !said.text.to_lowercase().contains(heading) {
        true => format!("{}: {text}", upper_first(heading)),
        false => text,
    }
}

/// First words that say nothing of the matter.
const LEADS: [&str; 12] =
    ["now ", "also ", "i've ", "i have ", "so ", "and ", "note: ", "done. ", "root cause: ", "summary: ", "result: ", "then "];

/// A statement without first words that say nothing, and without numbers of lines, which move.
fn compact(text: &str) -> String {
    let mut rest = text.trim();
    for lead in LEADS {
        if rest.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead)) {
            rest = rest[lead.len()..].trim_start();
        }
    }
    let mut text = rest.trim_end_matches([':', '：']).to_string();
    for open in [" (line ", " (lines ", " (L"] {
        if let Some(from) = text.find(open)
            && let Some(to) = text[from..].find(')')
            && text[from + open.len()..from + to].chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '–' | ',' | ' '))
        {
            text.replace_range(from..=from + to, "");
        }
    }
    crate::choice::capitalized(&text)
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Whether a statement describes a defect on which the unit then worked: what is said in the past tense, or below a
/// heading about a problem, where edits of its turn or of a later one have its names or words.
fn is_fixed_defect(judged: &Judged, said: &Said) -> bool {
    let lower = said.text.to_lowercase();
    if holds(REPORTS, &lower) || !judged.lexicon.count(&said.text).has(Class::Problem) || said.text.ends_with(['?', '？']) {
        return false;
    }
    let past = [" was ", " were ", " wasn't ", " weren't ", " didn't ", " would ", " missing ", " lacked "];
    let describes =
        holds(DEFECTS, &said.under.to_lowercase()) || begins_with(BEGINS, &lower) || past.iter().any(|word| lower.contains(word));
    describes
        && judged.contexts[said.turn..].iter().any(|context| {
            let known = said.words.iter().filter(|word| context.edited.contains(*word)).count();
            context.edits > 0 && known * 4 >= said.words.len()
        })
}
