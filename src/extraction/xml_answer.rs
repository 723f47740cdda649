//! Parses an answer in XML-like text. Models wrap answers in code fences, write `Vec<u8>` and `a && b` unescaped,
//! think aloud in tags of their own, forget closing tags and stop mid-word. A pre-pass escapes what is no expected
//! tag; `quick-xml` with lenient settings reads tags, attributes, entities and CDATA (ADR/0041).

use super::answer::{
    AnswerFields, ENTRIES, ParsedAnswer, ParsedObservation, ParsedUnit, SECTIONS, is_other_name, numbers, usual_name,
};
use crate::model::Domain;
use crate::text::is_unseen;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

/// Fields with one text.
const TEXTS: [&str; 5] = ["type", "by", "title", "subtitle", "narrative"];
/// Fields with a list, and the names of their items.
const LISTS: [(&str, &[&str]); 7] = [
    ("facts", &["fact"]),
    ("concepts", &["concept", "tag"]),
    ("files_read", &["file", "path"]),
    ("files_modified", &["file", "path"]),
    ("sources", &["source", "block", "number"]),
    ("corrects", &["record"]),
    ("open", &["end"]),
];
/// Numbers of earlier records that no longer hold, next to observations.
const WITHDRAW: &str = "withdraw";
/// Names of items in any list.
const ITEMS: [&str; 4] = ["item", "li", "entry", "value"];
/// Parses an answer.
pub fn read(text: &str, domain: &Domain) -> ParsedAnswer {
    let is_tag = |name: &str| {
        matches!(name, "answer" | "observation" | "observations" | "unit" | "units" | "none" | WITHDRAW)
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
    Unit,
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
            "answer" | "observations" | "units" | "none" => return,
            WITHDRAW => {
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
            "unit" => {
                self.leave();
                self.position = Position::Unit;
                for (name, value) in attributes {
                    let name = if matches!(name.as_str(), "n" | "id" | "unit") { "number" } else { name };
                    self.attribute(name, value);
                }
                return;
            }
            _ => {}
        }
        if self.position == Position::Outside {
            // Fields of an observation without an opening tag.
            self.position = if SECTIONS.contains(&name) || name == "open" { Position::Unit } else { Position::Observation };
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
        if TEXTS.contains(&name) || self.is_list(name) || name == "number" {
            self.fields.entry(name.to_string()).or_default().push(value.to_string());
        }
    }

    fn close(&mut self, name: &str) {
        let name = usual_name(name);
        self.leave_leaf(false);
        match name {
            "observation" if self.position == Position::Observation => self.leave(),
            "unit" if self.position == Position::Unit => self.leave(),
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
            WITHDRAW => return self.answer.withdraws.extend(numbers(&text)),
            _ => {}
        }
        let values = self.fields.entry(name.clone()).or_default();
        match whole {
            true => values.push(text),
            false => values.extend(listed(&text, !matches!(name.as_str(), "facts" | "open"))),
        }
        values.truncate(ENTRIES);
    }

    /// Closes whatever is open.
    fn leave(&mut self) {
        self.leave_leaf(false);
        self.list = None;
        let fields = std::mem::take(&mut self.fields);
        match std::mem::replace(&mut self.position, Position::Outside) {
            Position::Outside => {}
            Position::Unit => self.answer.add_unit(ParsedUnit::of(fields)),
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

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkupPart {
    /// An opening tag in lower case, with its attributes.
    Open(String, Vec<(String, String)>),
    Close(String),
    Text(String),
}

/// Tags whose content is dropped.
const ASIDE: [&str; 5] = ["thinking", "think", "reasoning", "scratchpad", "reflection"];
/// Maximum parts of an answer; more is not an answer.
const PARTS: usize = 20_000;

/// Splits an answer. `is_tag` recognizes the expected names. Reading stops at what cannot be a tag any more.
pub fn parts(answer: &str, is_tag: &dyn Fn(&str) -> bool) -> Vec<MarkupPart> {
    let text = only_expected_tags(&without_asides(&without_sequences(answer)), is_tag);
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    config.expand_empty_elements = true;
    let mut parts = Parts::default();
    while parts.all.len() < PARTS {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                let mut attributes = tag.html_attributes();
                let attributes =
                    attributes.with_checks(false).flatten().map(|found| (low(found.key.as_ref()), unescaped(&found.value)));
                let part = MarkupPart::Open(low(tag.name().as_ref()), attributes.collect());
                parts.tag(part);
            }
            Ok(Event::End(tag)) => parts.tag(MarkupPart::Close(low(tag.name().as_ref()))),
            Ok(Event::Text(text)) => parts.text(&text),
            Ok(Event::CData(text)) => parts.text(&text),
            Ok(Event::GeneralRef(name)) => parts.text(&resolved(&name)),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    parts.end_text();
    parts.all
}

/// Escapes each `<` that begins no expected tag, comment or CDATA section, and writes the names of tags in lower case. A
/// comment or section that is never closed ends with the text.
fn only_expected_tags(text: &str, is_tag: &dyn Fn(&str) -> bool) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len() + 64), text);
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let closed = |begin: &str, end: &str| {
            rest.starts_with(begin).then(|| rest[begin.len()..].find(end).map(|at| begin.len() + at + end.len()))
        };
        if let Some(end) = closed("<!--", "-->") {
            rest = &rest[end.unwrap_or(rest.len())..];
        } else if let Some(end) = closed("<![CDATA[", "]]>") {
            out.push_str(&rest[..end.unwrap_or(rest.len())]);
            out.push_str(if end.is_some() { "" } else { "]]>" });
            rest = &rest[end.unwrap_or(rest.len())..];
        } else {
            let inner = &rest[1..];
            let (slash, name) = inner.strip_prefix('/').map_or(("", inner), |name| ("/", name));
            let name = name.strip_prefix(|c: char| c.is_ascii_whitespace()).unwrap_or(name);
            let length = name.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
            let (name, after) = name.split_at(length);
            if is_tag(&low(name)) && after.starts_with(|c: char| matches!(c, '>' | '/') || c.is_ascii_whitespace()) {
                out.extend(["<", slash, &low(name)]);
                rest = after;
            } else {
                out.push_str("&lt;");
                rest = inner;
            }
        }
    }
    out + rest
}

/// Parts in order; adjacent text is merged.
#[derive(Default)]
struct Parts {
    all: Vec<MarkupPart>,
    text: String,
}

impl Parts {
    /// Adds text without invisible characters.
    fn text(&mut self, text: &str) {
        self.text.extend(text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()));
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.all.push(MarkupPart::Text(std::mem::take(&mut self.text)));
        }
    }

    fn tag(&mut self, tag: MarkupPart) {
        self.end_text();
        self.all.push(tag);
    }
}

/// Returns a name in lower case, with `_` instead of `-`.
fn low(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

/// The character of an entity; the entity itself if it is unknown.
fn resolved(name: &str) -> String {
    let number = |name: &str| {
        let number = name.strip_prefix('#')?;
        let code = number.strip_prefix(['x', 'X']).map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
        code.and_then(char::from_u32).filter(|c| !c.is_control() || *c == '\n').map(String::from)
    };
    resolve_xml_entity(name).map(String::from).or_else(|| number(name)).unwrap_or_else(|| format!("&{name};"))
}

/// A value with its entities resolved.
fn unescaped(value: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(value.len()), value);
    while let Some((text, entity)) = rest.split_once('&') {
        out.push_str(text);
        match entity.split_once(';').filter(|(name, _)| name.len() < 12 && !name.contains('&')) {
            Some((name, after)) => {
                out.push_str(&resolved(name));
                rest = after;
            }
            None => {
                out.push('&');
                rest = entity;
            }
        }
    }
    out.push_str(rest);
    out.replace(char::is_control, " ")
}

/// Removes terminal escape sequences (ECMA-48: CSI, and strings such as OSC) and invisible characters.
fn without_sequences(answer: &str) -> String {
    let mut out = String::with_capacity(answer.len());
    let mut chars = answer.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => drop(chars.find(|c| matches!(c, '\u{40}'..='\u{7e}' | '\n'))),
                Some(']' | 'P' | '_' | '^' | 'X') => drop(chars.find(|c| matches!(c, '\u{7}' | '\u{1b}' | '\n'))),
                _ => {}
            },
            c if is_unseen(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Removes thinking. If it is never closed, it ends where an answer begins; if it is only closed, everything before was
/// thinking.
fn without_asides(answer: &str) -> String {
    let small = answer.to_ascii_lowercase();
    let (mut out, mut from, mut at) = (String::with_capacity(answer.len()), 0, 0);
    let mut open = [false; ASIDE.len()];
    while let Some(found) = small[at..].find('<').map(|found| at + found) {
        at = found + 1;
        let closes = small[at..].starts_with('/');
        let named = |name: &str| {
            let rest = small[at + usize::from(closes)..].strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c == '>' || c.is_whitespace()))
        };
        let Some(which) = ASIDE.iter().position(|name| named(name)) else { continue };
        let shut = |from: usize| small[from..].find('>').map_or(small.len(), |shut| from + shut + 1);
        if closes {
            out.clear();
            at = shut(found);
        } else {
            out.push_str(&answer[from..found]);
            out.push(' ');
            // A tag that is not closed here is not closed later either.
            let end = if open[which] { None } else { small[found..].find(&format!("</{}", ASIDE[which])) };
            open[which] = end.is_none();
            let begins = |at: &usize| ["<observation", "<unit", "<summary"].iter().any(|tag| small[*at..].starts_with(tag));
            at = match end {
                Some(end) => shut(found + end),
                None => small[found..].match_indices('<').map(|(at, _)| found + at).find(begins).unwrap_or(small.len()),
            };
        }
        from = at;
    }
    out.push_str(&answer[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(answer: &str) -> String {
        let is_tag = |name: &str| matches!(name, "title" | "fact");
        let parts = parts(answer, &is_tag);
        parts.iter().map(|part| if let MarkupPart::Text(text) = part { text.as_str() } else { "|" }).collect()
    }

    #[test]
    fn a_megabyte_of_anything_is_read_in_moments() {
        for piece in [
            "<think></think>",
            "<think>",
            "<think><observation>",
            "<think><summary>",
            "</think>",
            "<title>",
            "<title \"",
            "<",
            "&",
            "<![CDATA[",
            "<!--",
            "\u{1b}[",
            "a ",
        ] {
            let begun = std::time::Instant::now();
            text_of(&piece.repeat((1 << 20) / piece.len()));
            assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{piece}: {:?} unoptimised", begun.elapsed());
        }
    }

    #[test]
    fn only_known_tags_are_tags() {
        assert_eq!(
            text_of("<title>Vec<u8> & a && b < c &lt;d&gt; &copy; <b>x</b></title>"),
            "|Vec<u8> & a && b < c <d> &copy; <b>x</b>|"
        );
        assert_eq!(text_of("<TITLE>x</Title>"), "|x|");
        assert_eq!(text_of("< title >x</ title>"), "|x|");
        assert_eq!(text_of("<title><![CDATA[a <fact> & b]]></title>"), "|a <fact> & b|");
        assert_eq!(text_of("<title>x<!-- <fact> -->y</title>"), "|xy|");
        assert_eq!(text_of("<think>is it <title>?</think><title>x</title>"), " |x|");
        assert_eq!(text_of("</title></title>x"), "||x");
        assert_eq!(text_of("<title"), "<title");
    }

    /// A quotation mark that is missing in an attribute hides what follows, up to the next mark of its kind.
    #[test]
    fn a_broken_quotation_mark_in_a_tag_loses_text_up_to_the_next_one() {
        assert_eq!(text_of("<title a=\"1\">x</title><fact>y</fact>"), "|x||y|");
        assert_eq!(text_of("<title a=\"1>x</title><fact>a \"b\" c</fact>"), "");
        assert_eq!(text_of("<title>x</title><fact n=\"1>y</fact>"), "|x|");
    }
}
