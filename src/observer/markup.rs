//! What models write in place of XML, made into XML: only the tags that are asked for are tags, everything else is text.
//! Then quick-xml reads it, which needs no luck any more.
//!
//! Models put answers in code fences, write `Vec<u8>` and `a && b` bare, think aloud in tags of their own, mix cases, forget
//! to close what they opened, and stop in the middle of a word.

use crate::words::is_unseen;
use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape_with};
use quick_xml::events::{BytesStart, Event};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A tag that was opened, in small letters, and its attributes.
    Open(String, Vec<(String, String)>),
    Close(String),
    Text(String),
}

/// Tags of which the content is nobody's.
const ASIDE: [&str; 5] = ["thinking", "think", "reasoning", "scratchpad", "reflection"];
/// Bytes of a tag with its attributes at most.
const TAG: usize = 1000;
/// Parts of an answer at most: more is no answer.
const PARTS: usize = 20_000;

/// Takes an answer apart. `is_tag` knows the names that are asked for.
pub fn parts(answer: &str, is_tag: &dyn Fn(&str) -> bool) -> Vec<Part> {
    let text = escaped(&without_asides(&without_sequences(answer)), is_tag);
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    config.check_end_names = false;
    let mut parts = Vec::new();
    while parts.len() < PARTS {
        match reader.read_event() {
            Ok(Event::Start(tag)) => parts.push(open(&tag)),
            Ok(Event::Empty(tag)) => {
                let opened = open(&tag);
                let name = name(&tag);
                parts.extend([opened, Part::Close(name)]);
            }
            Ok(Event::End(tag)) => parts.push(Part::Close(low(tag.name().as_ref()))),
            Ok(Event::Text(text)) => parts.push(Part::Text(text.to_string())),
            Ok(Event::GeneralRef(entity)) => parts.push(Part::Text(resolved(&entity))),
            Ok(Event::CData(text)) => parts.push(Part::Text(text.to_string())),
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    parts
}

fn open(tag: &BytesStart) -> Part {
    let mut attributes = Vec::new();
    for attribute in tag.html_attributes().with_checks(false).flatten() {
        let value = attribute.value.to_string();
        let value = unescape_with(&value, resolve_predefined_entity).map(|v| v.into_owned()).unwrap_or(value);
        attributes.push((low(attribute.key.as_ref()), value));
    }
    Part::Open(name(tag), attributes)
}

fn name(tag: &BytesStart) -> String {
    low(tag.name().as_ref())
}

/// Small letters, and `-` as `_`.
fn low(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

fn resolved(entity: &str) -> String {
    let number = entity.strip_prefix('#').and_then(|n| match n.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => n.parse().ok(),
    });
    let known = resolve_predefined_entity(entity).map(String::from);
    known.or_else(|| number.and_then(char::from_u32).map(String::from)).unwrap_or_else(|| format!("&{entity};"))
}

/// Without escape sequences of terminals (ECMA-48: CSI, and strings such as OSC) and without characters that are not seen.
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

/// Thinking aloud goes. Where it is never closed, it ends where an answer begins; where it is only closed, all that stands
/// before was thought.
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
            // What is not closed here is closed nowhere behind it either.
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

/// Escapes all but the tags that are known, comments and CDATA.
fn escaped(text: &str, is_tag: &dyn Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let took = match c {
            '<' if rest.starts_with("<!--") => rest.find("-->").map_or(rest.len(), |end| end + 3),
            '<' if rest.starts_with("<![CDATA[") => {
                let inner = &rest["<![CDATA[".len()..];
                let end = inner.find("]]>");
                push_escaped(&mut out, &inner[..end.unwrap_or(inner.len())]);
                end.map_or(rest.len(), |end| "<![CDATA[".len() + end + 3)
            }
            '<' => match tag(rest, is_tag) {
                Some((written, took)) => {
                    out.push_str(&written);
                    took
                }
                None => {
                    out.push_str("&lt;");
                    1
                }
            },
            '&' => match entity(rest) {
                Some(took) => {
                    out.push_str(&rest[..took]);
                    took
                }
                None => {
                    out.push_str("&amp;");
                    1
                }
            },
            c => {
                push_escaped(&mut out, c.encode_utf8(&mut [0; 4]));
                c.len_utf8()
            }
        };
        rest = &rest[took..];
    }
    out
}

fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
}

/// A tag that is asked for, written soundly, and the bytes that it takes; `None` where the `<` is text.
fn tag(text: &str, is_tag: &dyn Fn(&str) -> bool) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let closes = bytes.get(1) == Some(&b'/');
    let from = 1 + usize::from(closes);
    let start = from + usize::from(bytes.get(from).is_some_and(u8::is_ascii_whitespace));
    let length = bytes[start..].iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')).count();
    let name = low(&text[start..start + length]);
    if length == 0 || !is_tag(&name) {
        return None;
    }
    let after = start + length;
    let next = bytes.get(after)?;
    if !matches!(next, b'>' | b'/') && !next.is_ascii_whitespace() {
        return None;
    }
    let end = tag_end(&text[after..])? + after;
    if closes {
        return Some((format!("</{name}>"), end + 1));
    }
    let inner = text[after..end].trim();
    let (inner, empty) = inner.strip_suffix('/').map_or((inner, ""), |inner| (inner, "/"));
    let inner = inner.replace('<', "&lt;").replace(|c: char| c.is_control(), " ");
    let space = if inner.is_empty() { "" } else { " " };
    Some((format!("<{name}{space}{inner}{empty}>"), end + 1))
}

/// Where a tag ends: a `>` outside quotation marks, or the first one where those don't match.
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

/// The bytes of an entity that means something.
fn entity(text: &str) -> Option<usize> {
    let end = text.bytes().take(12).position(|b| b == b';')?;
    let name = &text[1..end];
    let number = name.strip_prefix('#').is_some_and(|n| {
        let value = n.strip_prefix(['x', 'X']).map_or_else(|| n.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
        value.and_then(char::from_u32).is_some_and(|c| !c.is_control() || c == '\n')
    });
    (number || matches!(name, "amp" | "lt" | "gt" | "quot" | "apos")).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(answer: &str) -> String {
        let is_tag = |name: &str| matches!(name, "title" | "fact");
        let parts = parts(answer, &is_tag);
        parts.iter().map(|part| if let Part::Text(text) = part { text.as_str() } else { "|" }).collect()
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
