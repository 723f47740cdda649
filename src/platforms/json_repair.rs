//! Converts arbitrary bytes to valid JSON, in one pass and in bounded memory.
//!
//! Long strings keep their head and tail, open containers are closed, input that no JSON parser accepts (control
//! characters, lone surrogates, `NaN`, extra commas) is repaired or becomes `null`, and deep nesting is dropped. The
//! tests are in `payload`.

use super::bounded_json;
use serde_json::Value;

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
            return bounded_json::parse(text.as_bytes()).ok();
        }
        bounded_json::parse(with_sound_escapes(&text).as_bytes()).ok()
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
