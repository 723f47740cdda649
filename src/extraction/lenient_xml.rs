//! Splits the XML-like text that models write into tags and text: only expected tags are tags, everything else is text.
//!
//! Models wrap answers in code fences, write `Vec<u8>` and `a && b` unescaped, think aloud in tags of their own, mix
//! cases, forget closing tags and stop mid-word. A pre-pass escapes what is no expected tag; `quick-xml` with lenient
//! settings then reads tags, attributes, entities and CDATA (ADR/0041).

use crate::text::is_unseen;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

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
            let begins = |at: &usize| ["<observation", "<summary"].iter().any(|tag| small[*at..].starts_with(tag));
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
