//! Parses an LLM's answer, whatever its form: keeps what is usable and adds nothing.

use super::lenient_xml::{MarkupPart, parts};
use crate::model::Domain;
use crate::text::seen;
use std::collections::BTreeMap;

/// The content of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedAnswer {
    pub observations: Vec<ParsedObservation>,
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
        self.observations.is_empty() && self.summary.is_empty() && !self.nothing
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
    /// Block numbers.
    pub sources: Vec<usize>,
    /// Custom fields of the domain.
    pub fields: BTreeMap<String, Vec<String>>,
}

/// Maximum observations per answer; more is a list of everything.
const MOST: usize = 12;
/// Maximum entries of a list and of block numbers; far fewer are kept in the end.
const ENTRIES: usize = 100;
/// Sections of a summary.
pub const SECTIONS: [&str; 6] = ["request", "investigated", "learned", "completed", "next_steps", "notes"];
/// Fields with one text.
const TEXTS: [&str; 4] = ["type", "title", "subtitle", "narrative"];
/// Fields with a list, and the names of their items.
const LISTS: [(&str, &[&str]); 5] = [
    ("facts", &["fact"]),
    ("concepts", &["concept", "tag"]),
    ("files_read", &["file", "path"]),
    ("files_modified", &["file", "path"]),
    ("sources", &["source", "block"]),
];
/// Names of items in any list.
const ITEMS: [&str; 4] = ["item", "li", "entry", "value"];
/// Other names that models use for a field.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("files_edited", "files_modified"),
    ("files_changed", "files_modified"),
    ("blocks", "sources"),
    ("block", "source"),
    ("description", "narrative"),
    ("details", "narrative"),
    ("tags", "concepts"),
    ("nextsteps", "next_steps"),
    ("next", "next_steps"),
];

/// Reads an answer. Of several summaries the last one counts; the others fill its gaps.
pub fn read(text: &str, domain: &Domain) -> ParsedAnswer {
    let is_tag = |name: &str| {
        matches!(name, "observation" | "observations" | "summary" | "none")
            || TEXTS.contains(&name)
            || SECTIONS.contains(&name)
            || ITEMS.contains(&name)
            || OTHER_NAMES.iter().any(|(other, _)| *other == name)
            || LISTS.iter().any(|(list, items)| *list == name || items.contains(&name))
            || domain.fields.iter().any(|field| field.name.replace('-', "_") == name)
    };
    let mut reader = AnswerReader {
        domain,
        answer: ParsedAnswer::default(),
        position: Position::Outside,
        list: None,
        leaf: None,
        fields: AnswerFields::default(),
    };
    let all = parts(text, &is_tag);
    for part in &all {
        match part {
            MarkupPart::Open(name, attributes) => reader.open(name, attributes),
            MarkupPart::Close(name) => reader.close(name),
            MarkupPart::Text(text) => reader.text(text),
        }
    }
    if reader.position != Position::Outside {
        reader.answer.cut = true;
        reader.leave_leaf(true);
        reader.leave();
    }
    let mut answer = reader.answer;
    answer.nothing = answer.observations.is_empty() && answer.summary.is_empty() && says_nothing(text, &all);
    answer
}

/// "Nothing worth recording", `<none/>`, or a bare "none".
fn says_nothing(answer: &str, parts: &[MarkupPart]) -> bool {
    if parts.iter().any(|part| matches!(part, MarkupPart::Open(name, _) if name == "none" || name == "observations")) {
        return true;
    }
    let plain = answer.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let starts = ["none", "nothing", "no observation", "no new observation", "there is nothing", "there are no"];
    plain.len() < 400 && starts.iter().any(|start| plain.starts_with(start))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Position {
    Outside,
    Observation,
    Summary,
}

/// Texts by field, in order.
type AnswerFields = BTreeMap<String, Vec<String>>;

/// An open field and its text so far.
struct Leaf {
    name: String,
    /// Its text is one value, not a list of lines.
    whole: bool,
    text: String,
}

impl Leaf {
    fn new(name: String, whole: bool) -> Leaf {
        Leaf { name, whole, text: String::new() }
    }
}

struct AnswerReader<'a> {
    domain: &'a Domain,
    answer: ParsedAnswer,
    position: Position,
    /// The open list.
    list: Option<String>,
    /// The field being read.
    leaf: Option<Leaf>,
    fields: AnswerFields,
}

impl AnswerReader<'_> {
    fn open(&mut self, name: &str, attributes: &[(String, String)]) {
        let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, usual)| *usual);
        match name {
            "observations" | "none" => return,
            "observation" => {
                self.leave();
                self.position = Position::Observation;
                for (name, value) in attributes {
                    self.attribute(name, value);
                }
                return;
            }
            "summary" => {
                self.leave();
                self.position = Position::Summary;
                return;
            }
            _ => {}
        }
        if self.position == Position::Outside {
            // Fields of an observation without an opening tag.
            self.position = if SECTIONS.contains(&name) { Position::Summary } else { Position::Observation };
        }
        // A field that is still open was never closed.
        self.leave_leaf(false);
        if self.is_list(name) {
            self.list = Some(name.to_string());
            self.leaf = Some(Leaf::new(name.to_string(), false));
            return;
        }
        if ITEMS.contains(&name) || LISTS.iter().any(|(_, items)| items.contains(&name)) {
            let usual = LISTS.iter().find(|(_, items)| items.contains(&name)).map(|(list, _)| list.to_string());
            let list = self.list.clone().filter(|list| usual.is_none() || items_of(list).contains(&name)).or(usual);
            if let Some(list) = list {
                for (_, value) in
                    attributes.iter().filter(|(key, _)| matches!(key.as_str(), "n" | "id" | "number" | "path" | "name"))
                {
                    self.fields.entry(list.clone()).or_default().push(value.clone());
                }
                self.leaf = Some(Leaf::new(list, true));
            }
            return;
        }
        self.list = None;
        self.leaf = Some(Leaf::new(name.to_string(), true));
    }

    fn attribute(&mut self, name: &str, value: &str) {
        let is_known = TEXTS.contains(&name) || self.is_list(name) || name == "source";
        if is_known {
            let name = if name == "source" { "sources" } else { name };
            self.fields.entry(name.to_string()).or_default().push(value.to_string());
        }
    }

    fn close(&mut self, name: &str) {
        let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, usual)| *usual);
        self.leave_leaf(false);
        match name {
            "observation" if self.position == Position::Observation => self.leave(),
            "summary" if self.position == Position::Summary => self.leave(),
            _ if self.list.as_deref() == Some(name) => self.list = None,
            // Text after an item belongs to its list.
            _ => self.leaf = self.list.clone().map(|list| Leaf::new(list, false)),
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(leaf) = &mut self.leaf {
            leaf.text.push_str(text);
        }
    }

    fn is_list(&self, name: &str) -> bool {
        let own = |field: &&crate::model::Field| {
            field.name.replace('-', "_") == name && matches!(field.kind.as_str(), "list" | "numbers")
        };
        LISTS.iter().any(|(list, _)| *list == name) || self.domain.fields.iter().any(|field| own(&field))
    }

    /// Stores the text of a field. If it was cut, only whole sentences are kept.
    fn leave_leaf(&mut self, cut: bool) {
        let Some(Leaf { name, whole, text }) = self.leaf.take() else { return };
        let text = if cut { whole_sentences(&text) } else { text.trim().to_string() };
        if text.is_empty() {
            return;
        }
        let values = self.fields.entry(name.clone()).or_default();
        match whole {
            true => values.push(text),
            false => values.extend(listed(&text, name != "facts")),
        }
        values.truncate(ENTRIES);
    }

    /// Closes whatever is open.
    fn leave(&mut self) {
        self.leave_leaf(false);
        self.list = None;
        let mut fields = std::mem::take(&mut self.fields);
        match std::mem::replace(&mut self.position, Position::Outside) {
            Position::Outside => {}
            Position::Summary => {
                for section in SECTIONS {
                    if let Some(text) = fields.remove(section).map(|texts| texts.join(" ")) {
                        self.answer.summary.insert(section.to_string(), tidy(&text));
                    }
                }
            }
            Position::Observation => {
                let observed = ParsedObservation::of(fields);
                let again = |other: &ParsedObservation| other.title.eq_ignore_ascii_case(&observed.title);
                if !observed.title.is_empty()
                    && self.answer.observations.len() < MOST
                    && !self.answer.observations.iter().any(again)
                {
                    self.answer.observations.push(observed);
                }
            }
        }
    }
}

impl ParsedObservation {
    fn of(mut fields: AnswerFields) -> ParsedObservation {
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
        let sources: Vec<usize> = list("sources").iter().flat_map(|text| numbers(text)).collect();
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
        ParsedObservation { kind_type, title, subtitle, narrative, facts, concepts, files_read, files_modified, sources, fields }
    }
}

fn items_of(list: &str) -> Vec<&'static str> {
    let own = LISTS.iter().find(|(name, _)| *name == list).map_or(&[][..], |(_, items)| *items);
    own.iter().chain(&ITEMS).copied().collect()
}

/// Splits a list written as text: at lines, bullets, and commas if `commas`.
fn listed(text: &str, commas: bool) -> Vec<String> {
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    let bare = |line: &'_ str| -> String { line.trim().trim_start_matches(['-', '*', '•']).trim().to_string() };
    let lines: Vec<String> = text.lines().map(bare).filter(|line| !line.is_empty()).take(ENTRIES).collect();
    let cut = |line: &String| -> Vec<String> {
        if commas { line.split([',', ';']).take(ENTRIES).map(String::from).collect() } else { vec![line.clone()] }
    };
    let items = lines.iter().flat_map(cut).map(|item| item.trim().trim_matches(['"', '\'', '`']).to_string());
    items.filter(|item| !item.is_empty()).take(ENTRIES).collect()
}

/// Numbers in "3, 7", "#3 and #7", "blocks 3-5".
fn numbers(text: &str) -> Vec<usize> {
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
fn tidy(text: &str) -> String {
    // An entity may have encoded an invisible character.
    let text = seen(text).split_whitespace().collect::<Vec<_>>().join(" ");
    text.trim_matches('*').trim().to_string()
}

/// A cut text up to its last full stop.
fn whole_sentences(text: &str) -> String {
    let text = text.trim();
    let end = text.rmatch_indices(['.', '!', '?', '。']).find(|(at, mark)| {
        let after = &text[at + mark.len()..];
        after.is_empty() || after.starts_with(char::is_whitespace) || *mark == "。"
    });
    end.map_or(String::new(), |(at, mark)| text[..at + mark.len()].to_string())
}
