//! A parsed answer, and the reader of its JSON form.

use crate::text::seen;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The content of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedAnswer {
    pub observations: Vec<ParsedObservation>,
    /// Numbers of earlier records that no longer hold.
    pub withdraws: Vec<usize>,
    /// At most one for each number.
    pub units: Vec<ParsedUnit>,
    /// It ends in the middle.
    pub cut: bool,
    /// It says explicitly that nothing is worth recording.
    pub nothing: bool,
}

impl ParsedAnswer {
    /// Whether it is empty without saying so: not an answer at all.
    pub fn is_unusable(&self) -> bool {
        self.observations.is_empty() && self.units.is_empty() && self.withdraws.is_empty() && !self.nothing
    }

    /// Adds what is said of a unit. The last of several answers about a unit counts; earlier ones fill its gaps.
    pub(super) fn add_unit(&mut self, mut unit: ParsedUnit) {
        let is_empty = unit == ParsedUnit { number: unit.number, ..ParsedUnit::default() };
        if is_empty || self.units.len() >= UNITS {
            return;
        }
        if let Some(at) = self.units.iter().position(|other| other.number.is_some() && other.number == unit.number) {
            let before = self.units.remove(at);
            unit.title = if unit.title.is_empty() { before.title } else { unit.title };
            unit.open = if unit.open.is_empty() { before.open } else { unit.open };
            for (name, text) in before.sections {
                unit.sections.entry(name).or_insert(text);
            }
        }
        self.units.push(unit);
    }

    /// Adds an observation, unless it has no title or that of another one.
    pub(super) fn add(&mut self, observation: ParsedObservation) {
        let again = |other: &ParsedObservation| other.title.eq_ignore_ascii_case(&observation.title);
        if !observation.title.is_empty() && self.observations.len() < MOST && !self.observations.iter().any(again) {
            self.observations.push(observation);
        }
    }
}

/// A unit as the model describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedUnit {
    /// Its number in the request; `None` if the answer gives none.
    pub number: Option<usize>,
    pub title: String,
    /// Open ends.
    pub open: Vec<String>,
    /// Other sections of a summary, by name.
    pub sections: BTreeMap<String, String>,
}

impl ParsedUnit {
    pub(super) fn of(mut fields: AnswerFields) -> ParsedUnit {
        let mut texts = |name: &str| fields.remove(name).unwrap_or_default().iter().map(|text| tidy(text)).collect::<Vec<_>>();
        let number = texts("number").iter().flat_map(|text| numbers(text)).next();
        let title = texts("title").join(" ");
        let open = texts("open").into_iter().filter(|text| !text.is_empty()).collect();
        let sections = SECTIONS.iter().map(|name| (name.to_string(), texts(name).join(" ")));
        ParsedUnit { number, title, open, sections: sections.filter(|(_, text)| !text.is_empty()).collect() }
    }
}

/// An observation as the model wrote it: texts by field, not checked further.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedObservation {
    pub kind_type: Option<String>,
    /// The person or the agent, who decided it.
    pub by: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    pub narrative: Option<String>,
    pub facts: Vec<String>,
    pub concepts: Vec<String>,
    pub files_read: Vec<String>,
    pub files_modified: Vec<String>,
    /// Numbers of entries.
    pub sources: Vec<usize>,
    /// Numbers of earlier records that it replaces.
    pub corrects: Vec<usize>,
    /// Custom fields of the domain.
    pub fields: BTreeMap<String, Vec<String>>,
}

/// Maximum units per answer; no request has more.
const UNITS: usize = 8;
/// Maximum observations per answer; more is a list of everything.
const MOST: usize = 12;
/// Maximum values of a list; far fewer are kept in the end.
pub(super) const ENTRIES: usize = 100;
/// Sections of a summary.
pub const SECTIONS: [&str; 6] = ["request", "investigated", "learned", "completed", "next_steps", "notes"];
/// Other names that models use for a field.
const OTHER_NAMES: [(&str, &str); 17] = [
    ("files_edited", "files_modified"),
    ("files_changed", "files_modified"),
    ("blocks", "sources"),
    ("block", "source"),
    ("entries", "sources"),
    ("correct", "corrects"),
    ("replaces", "corrects"),
    ("summary", "unit"),
    ("open_ends", "open"),
    ("decided_by", "by"),
    ("reason", "narrative"),
    ("withdrawn", "withdraw"),
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
        let (title, subtitle, narrative) = (first("title"), first("subtitle"), first("narrative"));
        let (kind_type, by) = (first("type"), first("by"));
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
            by,
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

/// Parses the numbers in "3, 7", "#3 and #7", "k3, k7", "entries 3-5".
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

/// Returns the answer in a text that is JSON, possibly in a code fence; `None` for any other text.
pub fn read(text: &str) -> Option<ParsedAnswer> {
    let start = text.find('{')?;
    let before = text[..start].trim().trim_start_matches('`').trim_start_matches("json");
    if !before.trim().is_empty() {
        return None;
    }
    let text = text[start..].trim_end().trim_end_matches('`').trim_end();
    let (json, cut) = match serde_json::from_str::<Value>(text) {
        Ok(json) => (json, false),
        Err(_) => (serde_json::from_str(&closed(text)?).ok()?, true),
    };
    let members = json.as_object()?;
    let is_answer = ["observations", "units", "summary", "withdraw"].iter().any(|name| members.contains_key(*name));
    is_answer.then(|| answer(members, cut))
}

fn answer(members: &Map<String, Value>, cut: bool) -> ParsedAnswer {
    let mut answer = ParsedAnswer { cut, ..ParsedAnswer::default() };
    answer.withdraws = members.get("withdraw").map(texts).unwrap_or_default().iter().flat_map(|text| numbers(text)).collect();
    for observation in members.get("observations").and_then(Value::as_array).into_iter().flatten() {
        if let Some(observation) = observation.as_object() {
            answer.add(ParsedObservation::of(fields_of(observation)));
        }
    }
    let units = ["units", "summary"].iter().filter_map(|name| members.get(*name));
    for unit in units.flat_map(|value| value.as_array().map_or(vec![value], |list| list.iter().collect())) {
        if let Some(unit) = unit.as_object() {
            answer.add_unit(ParsedUnit::of(fields_of(unit)));
        }
    }
    answer.nothing = answer.is_unusable() && !cut;
    answer
}

/// The texts of an object, by field.
fn fields_of(object: &Map<String, Value>) -> AnswerFields {
    let mut fields = AnswerFields::new();
    for (name, value) in object {
        let name = name.to_lowercase().replace('-', "_");
        let name = if name == "unit" { "number" } else { usual_name(&name) };
        let values = texts(value);
        if !values.is_empty() {
            fields.entry(name.to_string()).or_default().extend(values);
        }
    }
    fields
}

/// Returns a text, a number, or each item of a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Closes the brackets of JSON that ends in the middle, after its last whole value.
fn closed(text: &str) -> Option<String> {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    let mut whole = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                open.pop()?;
                whole = Some((at + 1, open.clone()));
            }
            b',' => whole = Some((at, open.clone())),
            _ => {}
        }
    }
    let (end, open) = whole?;
    Some(text[..end].chars().chain(open.into_iter().rev()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"withdraw": [2, "k4"], "observations": [
        {"sources": [3, 5], "corrects": [3], "type": "bugfix", "by": "user", "title": "The port is 80", "subtitle": null,
         "facts": ["a [b] {c}, \"d\""], "concepts": ["gotcha"], "narrative": "It was 8080."},
        {"sources": [6], "type": "change", "title": "Logs go to stderr", "facts": [], "concepts": []}],
        "units": [{"unit": 1, "title": "Port found", "open": ["The proxy"]}, {"number": 2, "completed": "Done", "notes": null}]}"#;

    #[test]
    fn an_answer_in_json_is_read_like_one_in_xml() {
        for text in [WHOLE.to_string(), format!("```json\n{WHOLE}\n```")] {
            let answer = read(&text).unwrap();
            assert_eq!((answer.withdraws.as_slice(), answer.cut), (&[2, 4][..], false));
            let first = &answer.observations[0];
            assert_eq!((first.title.as_str(), first.sources.as_slice()), ("The port is 80", &[3, 5][..]));
            assert_eq!((first.corrects.as_slice(), first.facts.as_slice()), (&[3][..], &["a [b] {c}, \"d\"".to_string()][..]));
            assert_eq!(first.by.as_deref(), Some("user"));
            let [one, two] = answer.units.as_slice() else { panic!("two units: {:?}", answer.units) };
            assert_eq!(
                (one.number, one.title.as_str(), one.open.as_slice()),
                (Some(1), "Port found", &["The proxy".to_string()][..])
            );
            assert_eq!((two.number, two.sections.keys().next().map(String::as_str)), (Some(2), Some("completed")));
        }
    }

    #[test]
    fn a_cut_answer_keeps_its_whole_values() {
        let text = &WHOLE[..WHOLE.find("Logs go").unwrap()];
        let answer = read(text).unwrap();
        assert!(answer.cut && answer.units.is_empty());
        assert_eq!(answer.observations.len(), 1, "the second one has no title");
        // Wherever it is cut: it is read or refused, without a panic.
        for end in (0..WHOLE.len()).filter(|end| WHOLE.is_char_boundary(*end)) {
            if let Some(answer) = read(&WHOLE[..end]) {
                assert!(answer.cut && answer.observations.len() <= 2);
            }
        }
    }

    #[test]
    fn other_texts_are_not_json_answers() {
        for text in ["", "{", "{}", "[1]", "no {braces}", "<observation>{\"withdraw\": []}</observation>", "{\"x\": 1}"] {
            assert!(read(text).is_none(), "{text}");
        }
        assert!(read("{\"withdraw\": [], \"observations\": [], \"units\": []}").unwrap().nothing);
    }
}
