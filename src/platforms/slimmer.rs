//! Makes sound JSON of bytes of any quality, in one pass and in bounded memory.
//!
//! Long strings keep their two ends, what was left open is closed, what no JSON reader takes (control characters, lone
//! surrogates, `NaN`, commas too many) is mended or becomes `null`, what is nested too deep goes. Its tests are those of
//! `intake.rs`.

use serde_json::Value;

/// Bytes of input that are kept as they are.
pub const KEPT: usize = 16 << 20;
/// A string longer than this, in a payload that is too large or broken, keeps its two ends.
pub const STRING: usize = 128 << 10;
/// A string that the end of the input cuts is kept from this length on: half a text is a text, half an id is a wrong one.
pub const CUT: usize = 256;
/// Nesting beyond this is dropped; serde_json refuses 128.
const DEPTH: usize = 100;

/// Rewrites JSON of any quality into sound JSON, byte by byte.
#[derive(Debug, Default)]
pub struct Slimmer {
    out: Vec<u8>,
    /// Open containers: the byte that closes each.
    open: Vec<u8>,
    /// Containers that are open beyond [`DEPTH`] and not written.
    dropped: usize,
    string: Option<InString>,
    /// A number or a word that is under way.
    scalar: Vec<u8>,
    /// Length of `out` up to which all members are whole, and how many containers are open there.
    whole: (usize, usize),
    ended: bool,
    /// Too much was written: only members of the top go on being kept.
    full: bool,
}

#[derive(Debug, Default)]
struct InString {
    /// Where its text begins in `out`.
    start: usize,
    escaped: bool,
    length: usize,
    /// The last bytes of a string whose middle is left out.
    tail: Vec<u8>,
    unwritten: bool,
}

impl Slimmer {
    /// Takes the next bytes.
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

    /// An escape that the cut has halved would spoil the string: both ends are trimmed to whole ones.
    fn close_string(&mut self, string: InString) {
        if string.length > STRING {
            trim_escape(&mut self.out, string.start);
            if string.length > 2 * STRING {
                self.out.extend_from_slice("…".as_bytes());
            }
            let tail = &string.tail[string.tail.len().saturating_sub(STRING)..];
            // An escape is 6 bytes at most: behind a run without a backslash of that length, none is under way.
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
        // Nothing but small values, and millions of them: what is nested goes, the members of the top stay.
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

    /// Writes the scalar, or `null` for one that no JSON reader takes (`NaN`, `1e999`, `undefined`).
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

    /// Closes what is open. A long string that was cut is kept as far as it came; a member without a whole value goes.
    pub fn finish(mut self) -> String {
        if let Some(string) = self.string.take().filter(|s| !s.unwritten) {
            let start = string.start;
            if string.length < CUT {
                return self.closed(self.whole.0, self.whole.1).unwrap_or_default();
            }
            self.close_string(InString { escaped: false, ..string });
            // The cut may have halved an escape.
            self.out.pop();
            trim_escape(&mut self.out, start);
            self.out.push(b'"');
        }
        // A word that the end of the input cuts is no value, a number may be one.
        if self.scalar.iter().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.')) {
            self.end_scalar();
        }
        let all = self.closed(self.out.len(), self.open.len());
        all.or_else(|| self.closed(self.whole.0, self.whole.1)).unwrap_or_default()
    }

    /// The first `length` bytes with `open` containers closed, if that is sound.
    fn closed(&self, length: usize, open: usize) -> Option<String> {
        let mut out = self.out[..length].to_vec();
        out.extend(self.open[..open].iter().rev());
        let text = with_sound_escapes(&String::from_utf8_lossy(&out));
        serde_json::from_str::<Value>(&text).is_ok().then_some(text)
    }
}

/// Writes escapes that no JSON reader takes as U+FFFD: a lone surrogate, which a client makes that cuts a text inside an
/// emoji, and letters that mean nothing. A backslash stands in strings alone.
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

/// Control characters may not stand in a JSON string as they are.
fn put(out: &mut Vec<u8>, b: u8) {
    if b < 0x20 {
        out.extend_from_slice(format!("\\u{b:04x}").as_bytes());
    } else {
        out.push(b);
    }
}

/// Takes a halved escape, 5 bytes at most, off the end of the string that begins at `start`.
fn trim_escape(out: &mut Vec<u8>, start: usize) {
    let from = out.len().saturating_sub(5).max(start);
    if let Some(i) = out[from..].iter().rposition(|&b| b == b'\\') {
        out.truncate(from + i);
    }
}
