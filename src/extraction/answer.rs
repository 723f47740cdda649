//! Content of an answer in any form: only the usable parts, with nothing added.

use crate::text::seen;
use std::collections::BTreeMap;

/// The content of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedAnswer {
    pub observations: Vec<ParsedObservation>,
    /// Numbers of notes that are right as they are.
    pub keeps: Vec<usize>,
    /// Numbers of notes that are wrong, superseded, or useless.
    pub withdraws: Vec<usize>,
    /// Sections by name; empty without a summary.
    pub summary: BTreeMap<String, String>,
    /// It ends in the middle.
    pub cut: bool,
    /// It says explicitly that nothing is worth recording.
    pub nothing: bool,
}

impl ParsedAnswer {
    /// Whether it is empty without saying so: not an answer at all.
    pub fn is_unusable(&self) -> bool {
        let judges = !self.keeps.is_empty() || !self.withdraws.is_empty();
        self.observations.is_empty() && self.summary.is_empty() && !judges && !self.nothing
    }

    /// Adds an observation, unless it has no title or that of another one.
    pub(super) fn add(&mut self, observation: ParsedObservation) {
        let again = |other: &ParsedObservation| other.title.eq_ignore_ascii_case(&observation.title);
        if !observation.title.is_empty() && self.observations.len() < MOST && !self.observations.iter().any(again) {
            self.observations.push(observation);
        }
    }
}

/// An observation as the model wrote it: texts by field, not checked further.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedObservation {
    pub kind_type: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    pub narrative: Option<String>,
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    /// Numbers of entries.
    pub sources: Vec<usize>,
    /// Numbers of notes that it replaces.
    pub corrects: Vec<usize>,
    /// Custom fields of the domain.
    pub fields: BTreeMap<String, Vec<String>>,
}

/// Maximum observations per answer; more is a list of everything.
const MOST: usize = 12;
/// Maximum values of a list; far fewer are kept in the end.
pub(super) const ENTRIES: usize = 100;
/// Sections of a summary.
pub const SECTIONS: [&str; 6] = ["request", "investigated", "learned", "completed", "next_steps", "notes"];
/// Other names that models use for a field.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("files_edited", "files_modified"),
    ("files_changed", "files_modified"),
    ("blocks", "sources"),
    ("block", "source"),
    ("entries", "sources"),
    ("correct", "corrects"),
    ("replaces", "corrects"),
    ("keeps", "keep"),
    ("description", "narrative"),
    ("details", "narrative"),
    ("tags", "concepts"),
    ("nextsteps", "next_steps"),
    ("next", "next_steps"),
];

/// Texts by field, in order.
pub(super) type AnswerFields = BTreeMap<String, Vec<String>>;

impl ParsedObservation {
    pub(super) fn of(mut fields: AnswerFields) -> ParsedObservation {
        let mut first = |name: &str| {
            fields.remove(name).and_then(|texts| texts.into_iter().map(|text| tidy(&text)).find(|text| !text.is_empty()))
        };
        let (title, subtitle, narrative, kind_type) = (first("title"), first("subtitle"), first("narrative"), first("type"));
        let mut list = |name: &str| -> Vec<String> {
            let mut seen: Vec<String> = Vec::new();
            for text in fields.remove(name).unwrap_or_default().iter().map(|text| tidy(text)).filter(|text| !text.is_empty()) {
                if !seen.contains(&text) {
                    seen.push(text);
                }
            }
            seen
        };
        let facts = list("facts");
        let mut all_numbers = |name: &str| list(name).iter().flat_map(|text| numbers(text)).collect::<Vec<usize>>();
        let (sources, corrects) = (all_numbers("sources"), all_numbers("corrects"));
        let (concepts, files_read, files_modified) = (list("concepts"), list("files_read"), list("files_modified"));
        // Without a title, the first text serves as one.
        let (title, subtitle) = match (title, subtitle) {
            (Some(title), subtitle) => (title, subtitle),
            (None, Some(subtitle)) => (subtitle, None),
            (None, None) => {
                // One or two words say nothing on their own.
                let says = |text: &&String| text.split_whitespace().count() > 2 || text.len() > 20;
                (facts.first().or(narrative.as_ref()).filter(says).cloned().unwrap_or_default(), None)
            }
        };
        ParsedObservation {
            kind_type,
            title,
            subtitle,
            narrative,
            facts,
            concepts,
            files_read,
            files_modified,
            sources,
            corrects,
            fields,
        }
    }
}

/// Whether models use this name for a field.
pub(super) fn is_other_name(name: &str) -> bool {
    OTHER_NAMES.iter().any(|(other, _)| *other == name)
}

/// The name that this module uses for a field.
pub(super) fn usual_name(name: &str) -> &str {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, usual)| *usual)
}

/// Parses the numbers in "3, 7", "#3 and #7", "r3, r7", "entries 3-5".
pub(super) fn numbers(text: &str) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut rest = text;
    let mut range = None;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()).filter(|_| found.len() < ENTRIES) {
        let between = &rest[..at];
        let length = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = rest[at..at + length].parse().unwrap_or(usize::MAX);
        match range {
            Some(from) if matches!(between.trim(), "-" | "–" | "to" | "..") && number > from && number - from < 50 => {
                found.extend(from + 1..=number)
            }
            _ => found.push(number),
        }
        range = Some(number);
        rest = &rest[at + length..];
    }
    found
}

/// Joins a text's lines and removes emphasis around all of it.
pub(super) fn tidy(text: &str) -> String {
    // An entity may have encoded an invisible character.
    let text = seen(text).split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_matches('*').trim().to_string()
}
