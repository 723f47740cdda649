//! Repairs JSON that is cut, too large or invalid, and reads it without building what is not stored.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstObject, CstRootNode};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Maximum size of input that is kept complete, in bytes.
pub const KEPT: usize = 16 << 20;
/// Maximum bytes of a string in a payload that is too large or broken; longer ones keep only head and tail.
pub const STRING: usize = 128 << 10;
/// Minimum length of a string, cut by the end of the input, to keep: half a text is useful, half an id is wrong.
pub const CUT: usize = 256;
/// Maximum nesting depth; deeper nesting is dropped. serde_json's limit is 128.
const DEPTH: usize = 100;

/// Rewrites bytes into valid JSON, byte by byte.
#[derive(Debug, Default)]
pub struct JsonRepairer {
    out: Vec<u8>,
    /// The closing byte of each open container.
    open: Vec<u8>,
    /// Number of open containers beyond [`DEPTH`], which are not written.
    dropped: usize,
    string: Option<InString>,
    /// The number or word being read.
    scalar: Vec<u8>,
    /// Length of `out` up to which all members are complete, and the number of containers open there.
    whole: (usize, usize),
    ended: bool,
    /// True if the output limit is reached: only top-level members are still kept.
    full: bool,
}

#[derive(Debug, Default)]
struct InString {
    /// Start of its text in `out`.
    start: usize,
    escaped: bool,
    length: usize,
    /// The last bytes of a string whose middle is dropped.
    tail: Vec<u8>,
    unwritten: bool,
}

impl JsonRepairer {
    /// Processes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for &b in bytes {
            if self.ended {
                return;
            }
            match self.string.take() {
                Some(string) => self.in_string(string, b),
                None => self.between(b),
            }
        }
    }

    fn in_string(&mut self, mut string: InString, b: u8) {
        if b == b'"' && !string.escaped {
            if !string.unwritten {
                self.close_string(string);
            }
            return;
        }
        string.escaped = b == b'\\' && !string.escaped;
        string.length += 1;
        if string.unwritten {
        } else if string.length <= STRING {
            put(&mut self.out, b);
        } else {
            put(&mut string.tail, b);
            if string.tail.len() > 2 * STRING {
                string.tail.drain(..STRING);
            }
        }
        self.string = Some(string);
    }

    /// Ends a string. If its middle is dropped, trims both parts to whole escapes, since the cut may have split one.
    fn close_string(&mut self, string: InString) {
        if string.length > STRING {
            trim_escape(&mut self.out, string.start);
            if string.length > 2 * STRING {
                self.out.extend_from_slice("…".as_bytes());
            }
            let tail = &string.tail[string.tail.len().saturating_sub(STRING)..];
            // An escape takes at most 6 bytes, so a longer run without a backslash contains none.
            let from = if string.length > 2 * STRING {
                tail.windows(6).position(|w| !w.contains(&b'\\')).map_or(tail.len(), |i| i + 6)
            } else {
                0
            };
            self.out.extend_from_slice(&tail[from..]);
        }
        self.out.push(b'"');
    }

    fn between(&mut self, b: u8) {
        if self.dropped == 0 && !matches!(b, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':') {
            if !b.is_ascii_whitespace() && !b.is_ascii_control() && self.scalar.len() < 64 {
                self.scalar.push(b);
            }
            return;
        }
        self.end_scalar();
        // If there are millions of small values, nested ones are dropped; top-level members are kept, up to a separate
        // limit.
        self.ended |= self.out.len() > KEPT + STRING && self.open.len() < 2 && matches!(b, b',' | b'[');
        if self.out.len() > KEPT && self.open.len() >= 2 && self.dropped == 0 {
            self.out.truncate(self.whole.0);
            self.full = true;
        }
        if self.full && !matches!(b, b'{' | b'}' | b'[' | b']' | b'"') {
            return;
        }
        match b {
            b'"' => {
                let unwritten = self.dropped > 0 || self.full;
                if !unwritten {
                    self.out.push(b);
                }
                self.string = Some(InString { unwritten, start: self.out.len(), ..InString::default() });
            }
            b'{' | b'[' if self.dropped > 0 || self.full || self.open.len() >= DEPTH => {
                if self.dropped == 0 && !self.full {
                    self.out.extend_from_slice(b"null");
                }
                self.dropped += 1;
            }
            b'}' | b']' if self.dropped > 0 => self.dropped -= 1,
            _ if self.dropped > 0 => {}
            b'{' | b'[' => {
                self.out.push(b);
                self.open.push(if b == b'{' { b'}' } else { b']' });
                self.whole = (self.out.len(), self.open.len());
            }
            b'}' | b']' if self.open.last() == Some(&b) => {
                if self.out.last() == Some(&b',') {
                    self.out.pop();
                }
                self.out.push(b);
                self.open.pop();
                self.whole = (self.out.len(), self.open.len());
                self.full &= self.open.len() >= 2;
                self.ended = self.open.is_empty();
            }
            b'}' | b']' => self.ended = true,
            b',' => {
                self.whole = (self.out.len(), self.open.len());
                self.out.push(b);
            }
            b => self.out.push(b),
        }
    }

    /// Writes the scalar, or `null` for one that no JSON parser accepts (`NaN`, `1e999`, `undefined`).
    fn end_scalar(&mut self) {
        if self.scalar.is_empty() {
            return;
        }
        let scalar = std::mem::take(&mut self.scalar);
        if !self.full {
            let sound = serde_json::from_slice::<Value>(&scalar).is_ok();
            self.out.extend_from_slice(if sound { &scalar } else { b"null" });
        }
    }

    /// Closes open containers and parses the result; `None` if it is not valid JSON. A long string that was cut is kept
    /// up to the cut; a member without a complete value is dropped.
    pub fn finish(mut self) -> Option<Value> {
        if let Some(string) = self.string.take().filter(|s| !s.unwritten) {
            let start = string.start;
            if string.length < CUT {
                return self.closed(self.whole.0, self.whole.1);
            }
            self.close_string(InString { escaped: false, ..string });
            // The cut may have split an escape.
            self.out.pop();
            trim_escape(&mut self.out, start);
            self.out.push(b'"');
        }
        // A word cut by the end of the input is not a value; a number may be.
        if self.scalar.iter().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.')) {
            self.end_scalar();
        }
        let all = self.closed(self.out.len(), self.open.len());
        all.or_else(|| self.closed(self.whole.0, self.whole.1))
    }

    /// Parses the first `length` bytes with `open` containers closed; `None` if that is invalid. Drops the bytes after
    /// them.
    fn closed(&mut self, length: usize, open: usize) -> Option<Value> {
        self.out.truncate(length);
        self.out.extend(self.open[..open].iter().rev());
        let text = String::from_utf8_lossy(&self.out);
        if !text.contains('\\') {
            return parse_bounded(text.as_bytes()).ok();
        }
        parse_bounded(with_sound_escapes(&text).as_bytes()).ok()
    }
}

/// Replaces invalid escapes with U+FFFD: lone surrogates, which clients produce by cutting inside an emoji, and unknown
/// letters. Backslashes occur only in strings.
fn with_sound_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let code = |from: usize| {
            rest.get(from..from + 6).filter(|e| e.starts_with("\\u")).and_then(|e| u16::from_str_radix(&e[2..], 16).ok())
        };
        let length = match (rest.as_bytes().get(1), code(0)) {
            (Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'), _) => Some(2),
            (_, Some(0xD800..=0xDBFF)) => matches!(code(6), Some(0xDC00..=0xDFFF)).then_some(12),
            (_, Some(0xDC00..=0xDFFF)) => None,
            (_, Some(_)) => Some(6),
            _ => None,
        };
        match length {
            Some(length) => {
                out.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            None => {
                out.push('\u{FFFD}');
                let skipped = if code(0).is_some() { 6 } else { 1 };
                rest = &rest[skipped..];
            }
        }
    }
    out + rest
}

/// Appends a byte of a string; escapes control characters, which JSON strings must not contain raw.
fn put(out: &mut Vec<u8>, b: u8) {
    if b < 0x20 {
        out.extend_from_slice(format!("\\u{b:04x}").as_bytes());
    } else {
        out.push(b);
    }
}

/// Removes a split escape of up to 5 bytes from the end of the string that begins at `start`.
fn trim_escape(out: &mut Vec<u8>, start: usize) {
    let from = out.len().saturating_sub(5).max(start);
    if let Some(i) = out[from..].iter().rposition(|&b| b == b'\\') {
        out.truncate(from + i);
    }
}

/// The reason why a file cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEditable(pub String);

/// Removes a leading byte order mark, which Windows programs write.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Parses a text into a tree.
pub fn tree(text: &str) -> Result<CstRootNode, NotEditable> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|e| NotEditable(format!("it is not JSON: {e}")))
}

/// Checks that no key occurs twice at the top level or in the object under the key `below`.
///
/// # Errors
///
/// A key that occurs twice: programs differ in which value they use.
pub fn once(text: &str, below: &str) -> Result<(), NotEditable> {
    let twice = |object: &CstObject| {
        let names = object.properties().into_iter().filter_map(|member| member.name()?.decoded_value().ok());
        let mut seen = std::collections::HashSet::new();
        names.into_iter().find(|name| !seen.insert(name.clone()))
    };
    let Some(top) = tree(text).ok().and_then(|root| root.object_value()) else { return Ok(()) };
    match twice(&top).or_else(|| twice(&top.object_value(below)?)) {
        Some(name) => Err(NotEditable(format!("`{name}` is in it twice"))),
        None => Ok(()),
    }
}

/// Parses JSON with comments.
pub fn lenient(text: &str) -> Result<Value, NotEditable> {
    let parsed: Result<Value, _> = jsonc_parser::parse_to_serde_value(text, &ParseOptions::default());
    match parsed.map_err(|e| NotEditable(format!("it is not JSON: {e}")))? {
        Value::Null => Err(NotEditable("it is not a JSON object".into())),
        value => Ok(value),
    }
}

/// Maximum bytes for the values of one text, not counting strings.
const BYTES: usize = 32 << 20;
/// Bytes of a value in a list, of an object's first node, and of a member with its name.
const VALUE: usize = size_of::<Value>();
const OBJECT: usize = 640;
const MEMBER: usize = 160;
/// Maximum members of the outermost object to keep beyond the bound: an event has about twenty.
const OUTER: usize = 1000;

/// Parses a text. Values beyond the bound are skipped, except for members of the outermost object.
pub fn parse_bounded(text: &[u8]) -> serde_json::Result<Value> {
    let (left, outer) = (Cell::new(BYTES), Cell::new(OUTER));
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = Bounded { left: &left, outer: &outer, depth: 0 }.deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Bounded<'a> {
    left: &'a Cell<usize>,
    outer: &'a Cell<usize>,
    depth: usize,
}

impl Bounded<'_> {
    /// Reserves room for one more value; returns true if there was room.
    fn has_room(&self, bytes: usize) -> bool {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Reserves room for a member of the outermost object beyond the bound; returns true if there was room.
    fn has_outer_room(&self) -> bool {
        let left = self.outer.get().checked_sub(1).filter(|_| self.depth == 0);
        self.outer.set(left.unwrap_or(self.outer.get()));
        left.is_some()
    }

    fn inside(self) -> Self {
        Bounded { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while self.has_room(VALUE) {
            let Some(value) = list.next_element_seed(self.inside())? else { return Ok(values.into()) };
            values.push(value);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        self.has_room(OBJECT);
        while let Some(name) = members.next_key::<String>()? {
            if self.has_room(MEMBER) || self.has_outer_room() {
                values.insert(name, members.next_value_seed(self.inside())?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_list_beyond_the_bound_is_cut_and_the_outer_members_stay() {
        let text = format!("{{\"list\":[{}0],\"id\":\"x\"}}", "{\"a\":0},".repeat(100_000));
        let value = parse_bounded(text.as_bytes()).unwrap();
        let kept = value["list"].as_array().unwrap().len();
        assert!(kept > 10_000 && kept < BYTES / OBJECT, "{kept}");
        assert_eq!(value["id"], "x");
    }

    #[test]
    fn what_follows_a_value_is_an_error() {
        assert!(parse_bounded(b"{} x").is_err());
    }

    proptest! {
        #[test]
        fn a_small_text_gives_what_serde_json_gives(numbers in proptest::collection::vec(any::<f64>(), 0..5), text in "\\PC*") {
            let value = json!({"numbers": numbers, "text": text, "more": [null, true, -1, u64::MAX, {"a": {}}]});
            let bytes = value.to_string().into_bytes();
            prop_assert_eq!(parse_bounded(&bytes).unwrap(), serde_json::from_slice::<Value>(&bytes).unwrap());
        }
    }
}
