//! A tokenizer for the XML-like text that models write: only expected tags are tags, everything else is text.
//!
//! Models wrap answers in code fences, write `Vec<u8>` and `a && b` unescaped, think aloud in tags of their own, mix
//! cases, forget closing tags and stop mid-word. XML parsers reject that, and HTML parsers take `<u8>` for a tag
//! (ADR/0041).

use crate::text::is_unseen;

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
/// Maximum bytes of a tag with attributes.
const TAG: usize = 1000;
/// Maximum parts of an answer; more is not an answer.
const PARTS: usize = 20_000;

/// Splits an answer. `is_tag` recognizes the expected names.
pub fn parts(answer: &str, is_tag: &dyn Fn(&str) -> bool) -> Vec<MarkupPart> {
    let text = without_asides(&without_sequences(answer));
    let mut parts = Parts::default();
    let mut rest = text.as_str();
    while parts.all.len() < PARTS && !rest.is_empty() {
        let took = match rest.as_bytes()[0] {
            b'<' if rest.starts_with("<!--") => rest.find("-->").map_or(rest.len(), |end| end + 3),
            b'<' if rest.starts_with("<![CDATA[") => {
                let inner = &rest["<![CDATA[".len()..];
                let end = inner.find("]]>");
                parts.text(&inner[..end.unwrap_or(inner.len())]);
                end.map_or(rest.len(), |end| "<![CDATA[".len() + end + 3)
            }
            b'<' => parts.tag(rest, is_tag).unwrap_or_else(|| parts.text(&rest[..1])),
            b'&' => match entity(rest) {
                Some((meant, took)) => {
                    parts.text(meant.encode_utf8(&mut [0; 4]));
                    took
                }
                None => parts.text(&rest[..1]),
            },
            _ => parts.text(&rest[..rest.find(['<', '&']).unwrap_or(rest.len())]),
        };
        rest = &rest[took..];
    }
    parts.end_text();
    parts.all
}

/// Parts in order; adjacent text is merged.
#[derive(Default)]
struct Parts {
    all: Vec<MarkupPart>,
    text: String,
}

impl Parts {
    /// Adds text without invisible characters; returns the bytes consumed.
    fn text(&mut self, text: &str) -> usize {
        self.text.extend(text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()));
        text.len()
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.all.push(MarkupPart::Text(std::mem::take(&mut self.text)));
        }
    }

    /// Adds an expected tag and returns the bytes consumed; `None` if the `<` is text.
    fn tag(&mut self, text: &str, is_tag: &dyn Fn(&str) -> bool) -> Option<usize> {
        let bytes = text.as_bytes();
        let closes = bytes.get(1) == Some(&b'/');
        let from = 1 + usize::from(closes);
        let start = from + usize::from(bytes.get(from).is_some_and(u8::is_ascii_whitespace));
        let length = bytes[start..].iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
        let name = low(&text[start..start + length]);
        let after = start + length;
        let ends = bytes.get(after).is_some_and(|next| matches!(next, b'>' | b'/') || next.is_ascii_whitespace());
        if length == 0 || !is_tag(&name) || !ends {
            return None;
        }
        let end = tag_end(&text[after..])? + after;
        self.end_text();
        if closes {
            self.all.push(MarkupPart::Close(name));
            return Some(end + 1);
        }
        let inner = text[after..end].trim();
        let (inner, is_empty) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
        self.all.push(MarkupPart::Open(name.clone(), attributes(inner)));
        if is_empty {
            self.all.push(MarkupPart::Close(name));
        }
        Some(end + 1)
    }
}

/// Parses `name="value"`, `name='value'` or `name=value`; names without a value are ignored.
fn attributes(inner: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = inner.trim_start();
    while let Some((name, behind)) = rest.split_once('=') {
        let name = name.trim().rsplit(char::is_whitespace).next().unwrap_or_default();
        let behind = behind.trim_start();
        let (value, next) = match behind.chars().next() {
            Some(quote @ ('"' | '\'')) => behind[1..].split_once(quote).unwrap_or((&behind[1..], "")),
            _ => behind.split_once(char::is_whitespace).unwrap_or((behind, "")),
        };
        if !name.is_empty() {
            found.push((low(name), unescaped(value)));
        }
        rest = next.trim_start();
    }
    found
}

/// A value with its entities resolved.
fn unescaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let (meant, took) = entity(&rest[at..]).unwrap_or(('&', 1));
        out.push(meant);
        rest = &rest[at + took..];
    }
    out.push_str(rest);
    out.replace(char::is_control, " ")
}

/// Returns a name in lower case, with `_` instead of `-`.
fn low(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
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

/// End of a tag: a `>` outside quotation marks, or the first one if those do not match.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut first = None;
    for (at, b) in text.bytes().enumerate().take(TAG) {
        match (b, quote) {
            (b'>', None) => return Some(at),
            (b'>', Some(_)) if first.is_none() => first = Some(at),
            (b'"' | b'\'', None) => quote = Some(b),
            (b, Some(open)) if b == open => quote = None,
            _ => {}
        }
    }
    first
}

/// The character of an entity and the bytes consumed; `None` if the `&` is text.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(12).position(|b| b == b';')?;
    let name = &text[1..end];
    let meant = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = name.strip_prefix('#')?;
            let code =
                number.strip_prefix(['x', 'X']).map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
            code.and_then(char::from_u32).filter(|c| !c.is_control() || *c == '\n')?
        }
    };
    Some((meant, end + 1))
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
}
