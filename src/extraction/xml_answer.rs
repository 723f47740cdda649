//! Parses an LLM's answer in XML.

use super::answer::{AnswerFields, ENTRIES, ParsedAnswer, ParsedObservation, SECTIONS, is_other_name, numbers, tidy, usual_name};
use super::lenient_xml::{MarkupPart, parts};
use crate::model::Domain;

/// Fields with one text.
const TEXTS: [&str; 4] = ["type", "title", "subtitle", "narrative"];
/// Fields with a list, and the names of their items.
const LISTS: [(&str, &[&str]); 6] = [
    ("facts", &["fact"]),
    ("concepts", &["concept", "tag"]),
    ("files_read", &["file", "path"]),
    ("files_modified", &["file", "path"]),
    ("sources", &["source", "block", "number"]),
    ("corrects", &["note"]),
];
/// Verdicts on notes, next to observations.
const VERDICTS: [&str; 2] = ["keep", "withdraw"];
/// Names of items in any list.
const ITEMS: [&str; 4] = ["item", "li", "entry", "value"];
/// Parses an answer. The last of several summaries counts; the others fill its gaps.
pub fn read(text: &str, domain: &Domain) -> ParsedAnswer {
    let is_tag = |name: &str| {
        matches!(name, "answer" | "observation" | "observations" | "summary" | "none")
            || VERDICTS.contains(&name)
            || TEXTS.contains(&name)
            || SECTIONS.contains(&name)
            || ITEMS.contains(&name)
            || is_other_name(name)
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
    answer.nothing = answer.is_unusable() && says_nothing(text, &all);
    answer
}

/// Whether an answer reports nothing: "Nothing worth recording", `<none/>`, or a bare "none".
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
        let name = usual_name(name);
        match name {
            "answer" | "observations" | "none" => return,
            "keep" | "withdraw" => {
                self.leave();
                self.leaf = Some(Leaf::new(name.to_string(), true));
                return;
            }
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
        let name = if name == "source" { "sources" } else { usual_name(name) };
        if TEXTS.contains(&name) || self.is_list(name) {
            self.fields.entry(name.to_string()).or_default().push(value.to_string());
        }
    }

    fn close(&mut self, name: &str) {
        let name = usual_name(name);
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
        match name.as_str() {
            _ if text.is_empty() => return,
            "keep" => return self.answer.keeps.extend(numbers(&text)),
            "withdraw" => return self.answer.withdraws.extend(numbers(&text)),
            _ => {}
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
            Position::Observation => self.answer.add(ParsedObservation::of(fields)),
        }
    }
}

fn items_of(list: &str) -> Vec<&'static str> {
    let own = LISTS.iter().find(|(name, _)| *name == list).map_or(&[][..], |(_, items)| *items);
    own.iter().chain(&ITEMS).copied().collect()
}

/// Splits a list written as text: at lines, bullets, and, if `commas`, commas.
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

/// Returns a cut text up to the end of its last whole sentence.
fn whole_sentences(text: &str) -> String {
    let text = text.trim();
    let end = text.rmatch_indices(['.', '!', '?', '。']).find(|(at, mark)| {
        let after = &text[at + mark.len()..];
        after.is_empty() || after.starts_with(char::is_whitespace) || *mark == "。"
    });
    end.map_or(String::new(), |(at, mark)| text[..at + mark.len()].to_string())
}
