//! Reads a hook's stdin whatever comes: too much of it, half of it, broken bytes. What can be kept is kept.
//!
//! Sound JSON of a sound size is parsed as it is. Everything else goes through `Slimmer`, one pass over the bytes that
//! shortens long strings to head and tail, closes what was left open, escapes control characters and drops what is nested
//! too deep: so the call's id, which stands behind a 100 MB output, is still found, in bounded memory.

use serde_json::Value;
use std::io::{self, Read};

/// Bytes of input that are kept as they are.
const KEPT: usize = 16 << 20;
/// Bytes of input that are looked at at all; what comes after is left in the pipe.
const SEEN: usize = 1 << 30;
/// A string longer than this, in a payload that is too large or broken, keeps its two ends.
const STRING: usize = 128 << 10;
/// A string that the end of the input cuts is kept from this length on: half a text is a text, half an id is a wrong one.
const CUT: usize = 256;
/// Nesting beyond this is dropped; serde_json refuses 128.
const DEPTH: usize = 100;

/// What stdin held.
#[derive(Debug)]
pub enum Intake {
    /// A JSON value; `mended` where the input was not sound.
    Json { value: Value, mended: bool },
    /// Nothing but white space.
    Empty,
    /// No JSON object can be made of it. Holds the reason.
    Garbage(String),
}

/// Reads all of `input`.
pub fn read(mut input: impl Read) -> io::Result<Intake> {
    let mut bytes = Vec::with_capacity(8 << 10);
    input.by_ref().take(KEPT as u64).read_to_end(&mut bytes)?;
    if bytes.len() < KEPT {
        return Ok(parse(&bytes));
    }
    let mut slimmer = Slimmer::default();
    slimmer.push(&bytes);
    bytes.clear();
    bytes.resize(1 << 16, 0);
    let mut seen = KEPT;
    while seen < SEEN {
        match input.read(&mut bytes)? {
            0 => break,
            n => {
                slimmer.push(&bytes[..n]);
                seen += n;
            }
        }
    }
    Ok(from_slimmed(slimmer, "too large"))
}

/// Makes a JSON value of bytes.
pub fn parse(bytes: &[u8]) -> Intake {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Intake::Empty;
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Intake::Json { value, mended: false },
        Err(error) => {
            let mut slimmer = Slimmer::default();
            slimmer.push(bytes);
            from_slimmed(slimmer, &error.to_string())
        }
    }
}

fn from_slimmed(slimmer: Slimmer, reason: &str) -> Intake {
    let text = slimmer.finish();
    match serde_json::from_str(&text) {
        Ok(value @ Value::Object(_)) => Intake::Json { value, mended: true },
        _ => Intake::Garbage(reason.to_string()),
    }
}

/// Rewrites JSON of any quality into sound JSON, byte by byte.
#[derive(Debug, Default)]
struct Slimmer {
    out: Vec<u8>,
    /// Open containers: the byte that closes each.
    open: Vec<u8>,
    /// Containers that are open beyond [`DEPTH`] and not written.
    dropped: usize,
    string: Option<InString>,
    /// Length of `out` up to which all members are whole, and how many containers are open there.
    whole: (usize, usize),
    ended: bool,
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
    fn push(&mut self, bytes: &[u8]) {
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
        match b {
            b'"' => {
                let unwritten = self.dropped > 0;
                if !unwritten {
                    self.out.push(b);
                }
                self.string = Some(InString { unwritten, start: self.out.len(), ..InString::default() });
            }
            b'{' | b'[' if self.dropped > 0 || self.open.len() >= DEPTH => {
                if self.dropped == 0 {
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
                self.out.push(b);
                self.open.pop();
                self.whole = (self.out.len(), self.open.len());
                self.ended = self.open.is_empty();
            }
            b'}' | b']' => self.ended = true,
            b',' => {
                self.whole = (self.out.len(), self.open.len());
                self.out.push(b);
            }
            b if b.is_ascii_control() && !b.is_ascii_whitespace() => {}
            b => self.out.push(b),
        }
    }

    /// Closes what is open. A long string that was cut is kept as far as it came; a member without a whole value goes.
    fn finish(mut self) -> String {
        if let Some(string) = self.string.take().filter(|s| !s.unwritten) {
            let start = string.start;
            if string.length < CUT {
                return self.closed(self.whole.0, self.whole.1).unwrap_or_default();
            }
            self.close_string(InString { escaped: false, ..string });
            if let Some(text) = self.closed(self.out.len(), self.open.len()) {
                return text;
            }
            // The cut has halved an escape.
            self.out.pop();
            trim_escape(&mut self.out, start);
            self.out.push(b'"');
        }
        let all = self.closed(self.out.len(), self.open.len());
        all.or_else(|| self.closed(self.whole.0, self.whole.1)).unwrap_or_default()
    }

    /// The first `length` bytes with `open` containers closed, if that is sound.
    fn closed(&self, length: usize, open: usize) -> Option<String> {
        let mut out = self.out[..length].to_vec();
        out.extend(self.open[..open].iter().rev());
        let text = String::from_utf8_lossy(&out).into_owned();
        serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok().then_some(text)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn mended(text: &str) -> Value {
        match parse(text.as_bytes()) {
            Intake::Json { value, mended: true } => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn truncated_json_keeps_what_was_whole_and_a_long_string_that_was_cut() {
        let long = "x".repeat(CUT);
        assert_eq!(mended(&format!(r#"{{"a":1,"b":{{"c":"{long}"#)), json!({"a":1,"b":{"c":long}}));
        assert_eq!(mended(&format!(r#"{{"a":1,"b":"{long}\u00"#)), json!({"a":1,"b":long}));
        assert_eq!(mended(&format!(r#"{{"a":1,"b":"{long}\"#)), json!({"a":1,"b":long}));
        assert_eq!(mended(r#"{"a":1,"id":"toolu_0"#), json!({"a":1}));
        assert_eq!(mended(r#"{"a":1,"b":tr"#), json!({"a":1}));
        assert_eq!(mended(r#"{"a":1,"b""#), json!({"a":1}));
        assert_eq!(mended(r#"{"a":1,"b":"#), json!({"a":1}));
        assert_eq!(mended(r#"{"a":[1,2"#), json!({"a":[1,2]}));
    }

    #[test]
    fn control_characters_bom_and_broken_utf8_are_no_obstacle() {
        assert_eq!(mended("{\"a\":\"x\u{0}y\nz\"}"), json!({"a":"x\u{0}y\nz"}));
        assert!(matches!(parse(b"\xEF\xBB\xBF{\"a\":1}"), Intake::Json { mended: false, .. }));
        let Intake::Json { value, .. } = parse(b"{\"a\":\"\xFF\xFEok\"}") else { panic!() };
        assert!(value["a"].as_str().unwrap().ends_with("ok"));
    }

    #[test]
    fn what_is_nested_too_deep_goes_and_its_neighbours_stay() {
        let text = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(mended(&text)["b"], 2);
    }

    #[test]
    fn what_stands_behind_a_hundred_megabytes_is_found() {
        let head = br#"{"tool_response":{"stdout":"begin "#.to_vec();
        let tail = br#" end"},"tool_use_id":"toolu_1"}"#.to_vec();
        let big = io::repeat(b'x').take(100 << 20);
        let Intake::Json { value, mended } = read(io::Cursor::new(head).chain(big).chain(io::Cursor::new(tail))).unwrap() else {
            panic!()
        };
        assert!(mended);
        assert_eq!(value["tool_use_id"], "toolu_1");
        let out = value["tool_response"]["stdout"].as_str().unwrap();
        assert!(out.starts_with("begin x") && out.ends_with("x end") && out.len() <= 2 * STRING + 16);
    }

    #[test]
    fn what_is_no_object_is_garbage_and_white_space_is_nothing() {
        assert!(matches!(parse(b" \n"), Intake::Empty));
        assert!(matches!(parse(b"hello"), Intake::Garbage(_)));
        assert!(matches!(parse(b"\x00\x01"), Intake::Garbage(_)));
    }

    proptest! {
        #[test]
        fn any_cut_of_a_payload_keeps_its_whole_members(cut in 40usize..200) {
            let text = json!({"session_id": "abc", "tool_name": "Bash", "tool_input": {"command": "echo \"hi\" \\ é 記"}, "list": [1, {"x": null}], "last": "\n\t"}).to_string();
            let cut = cut.min(text.len() - 1);
            let Intake::Json { value, .. } = parse(&text.as_bytes()[..cut]) else { panic!("{}", &text[..cut]) };
            prop_assert!(value.is_object());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn no_json_like_bytes_panic(text in "[{}\\[\\]\",:\\\\a1 \u{0}é]{0,80}") {
            parse(text.as_bytes());
        }
    }
}
