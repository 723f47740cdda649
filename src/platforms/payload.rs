//! A hook's stdin, bounded; fields of JSON that agents spell in different ways; the context in which an adapter decodes.

use super::json_repair::{self, JsonRepairer, KEPT};
use crate::files;
use crate::model::Millis;
use anyhow::Result;
use serde_json::Value;
use std::io::{self, Read};
use std::path::Path;

/// Maximum bytes to read; the rest remains in the pipe.
const SEEN: usize = 1 << 30;

/// The content of stdin.
#[derive(Debug)]
pub enum Payload {
    /// A JSON value; `repaired` if the input was invalid.
    Json { value: Value, repaired: bool },
    /// Only white space.
    Empty,
    /// Not a JSON object. Holds the reason.
    Garbage(String),
}

/// Reads `input` to its end, or to the end of a JSON value, because a caller may forget to close the pipe. After an
/// error or timeout, uses the bytes read so far; returns the error only if there are none.
pub fn read(mut input: impl Read) -> io::Result<Payload> {
    let mut bytes = vec![0; 16 << 10];
    let (mut length, mut scanned, mut depth, mut tried) = (0, 0, Depth::default(), false);
    while length < KEPT {
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
        match input.read(&mut bytes[length..]) {
            Ok(0) => return Ok(parse(&bytes[..length])),
            Ok(n) => length += n,
            Err(error) if length == 0 => return Err(error),
            Err(_) => return Ok(parse(&bytes[..length])),
        }
        depth.push(&bytes[scanned..length]);
        scanned = length;
        if depth.is_whole() && !tried {
            tried = true;
            if let Ok(value) = json_repair::parse_bounded(without_mark(&bytes[..length])) {
                return Ok(Payload::Json { value, repaired: false });
            }
        }
    }
    let mut repairer = JsonRepairer::default();
    repairer.push(&bytes[..length]);
    bytes.truncate(1 << 16);
    bytes.shrink_to_fit();
    while length < SEEN {
        match input.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(n) => {
                repairer.push(&bytes[..n]);
                length += n;
            }
        }
    }
    Ok(from_repairer(repairer, "too large"))
}

/// Nesting depth at the end of the bytes read so far: parsing them again after every read would take quadratic time.
#[derive(Default)]
struct Depth {
    open: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Depth {
    fn push(&mut self, bytes: &[u8]) {
        for &b in bytes {
            match b {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.open += 1,
                b'}' | b']' if !self.in_string => {
                    self.open = self.open.saturating_sub(1);
                    self.closed = self.open == 0;
                }
                _ => {}
            }
        }
    }

    /// Returns true if the outermost object or list has ended.
    fn is_whole(&self) -> bool {
        self.closed && self.open == 0
    }
}

/// Removes a leading byte order mark, which Windows programs write.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)
}

/// Parses a line of a file as a JSON object; `None` if it is not one.
pub fn line(bytes: &[u8]) -> Option<Value> {
    stored(bytes).ok().filter(Value::is_object)
}

/// Parses JSON that a program stored. Half of an emoji, left where a program cut a text, and bytes that are no UTF-8
/// become replacement characters.
pub fn stored(bytes: &[u8]) -> serde_json::Result<Value> {
    let bytes = without_mark(bytes);
    serde_json::from_slice(bytes).or_else(|error| {
        let repaired = without_lone_surrogates(&String::from_utf8_lossy(bytes));
        serde_json::from_str(&repaired).map_err(|_| error)
    })
}

/// Reads a JSON file of at most `limit` bytes that a program stored.
pub fn document(path: &Path, limit: u64) -> Result<Value> {
    let mut bytes = Vec::new();
    match serde_json::from_reader(files::reader(path, limit)?) {
        Ok(document) => Ok(document),
        Err(error) if error.is_syntax() => {
            files::reader(path, limit)?.read_to_end(&mut bytes)?;
            Ok(stored(&bytes)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Replaces each escaped surrogate (`\ud800` to `\udfff`) that is no half of a pair.
fn without_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(next) = text[at..].find('\\') {
        let escape = at + next;
        out += &text[at..escape];
        let (length, kept) = match (unit(escape), unit(escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, true),
            (Some(0xD800..=0xDFFF), _) => (6, false),
            _ => (1 + text[escape + 1..].chars().next().map_or(0, char::len_utf8), true),
        };
        out += if kept { &text[escape..escape + length] } else { "\u{FFFD}" };
        at = escape + length;
    }
    out + &text[at..]
}

/// Parses bytes as JSON, repairing them if needed.
pub fn parse(bytes: &[u8]) -> Payload {
    let bytes = without_mark(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Payload::Empty;
    }
    match json_repair::parse_bounded(bytes) {
        Ok(value) => Payload::Json { value, repaired: false },
        Err(error) => {
            let mut repairer = JsonRepairer::default();
            repairer.push(bytes);
            from_repairer(repairer, &error.to_string())
        }
    }
}

fn from_repairer(repairer: JsonRepairer, reason: &str) -> Payload {
    match repairer.finish() {
        Some(value @ Value::Object(_)) => Payload::Json { value, repaired: true },
        _ => Payload::Garbage(reason.to_string()),
    }
}

/// Returns the first field of `names` that has a value: platforms spell the same name in different ways.
pub fn field<'a>(payload: &'a Value, names: &[&str]) -> &'a Value {
    names.iter().map(|name| &payload[*name]).find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

/// Parses JSON inside a string; returns any other value as it is.
pub fn unpacked(value: &Value) -> Value {
    let parsed = value.as_str().filter(|text| text.trim_start().starts_with(['{', '['])).map(|text| stored(text.as_bytes()));
    match parsed {
        Some(Ok(inside)) => inside,
        _ => value.clone(),
    }
}

/// Returns the text of an output: a string, or blocks.
pub fn text_of(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => output["content"].as_str().map_or_else(|| output.to_string(), String::from),
        _ => String::new(),
    }
}

/// Input for decoding, in addition to the payload.
#[derive(Debug)]
pub struct DecodeContext<'a> {
    pub now: Millis,
    /// Tools that are not recorded.
    pub skip_tools: &'a [String],
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::platforms::json_repair::{CUT, STRING};
    use proptest::prelude::*;
    use serde_json::json;

    fn repaired(text: &str) -> Value {
        match parse(text.as_bytes()) {
            Payload::Json { value, repaired: true } => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn half_an_emoji_costs_itself_alone() {
        let parsed = |text: &str| line(text.as_bytes()).map(|value| value["a"].as_str().unwrap().to_string());
        assert_eq!(parsed(r#"{"a":"cut \ud83d"}"#).as_deref(), Some("cut \u{FFFD}"));
        assert_eq!(parsed(r#"{"a":"\udE00 cut \ud83d\ude00\ud83dx"}"#).as_deref(), Some("\u{FFFD} cut 😀\u{FFFD}x"));
        assert_eq!(parsed(r#"{"a":"\\ud83d \ud83d"}"#).as_deref(), Some("\\ud83d \u{FFFD}"));
        assert_eq!(line(b"\xEF\xBB\xBF{\"a\":1}"), Some(json!({"a": 1})));
        assert_eq!(line(br#"{"a":"cut \ud83d"#), None);
    }

    #[test]
    fn truncated_json_keeps_what_was_whole_and_a_long_string_that_was_cut() {
        let long = "x".repeat(CUT);
        assert_eq!(repaired(&format!(r#"{{"a":1,"b":{{"c":"{long}"#)), json!({"a":1,"b":{"c":long}}));
        assert_eq!(repaired(&format!(r#"{{"a":1,"b":"{long}\u00"#)), json!({"a":1,"b":long}));
        assert_eq!(repaired(&format!(r#"{{"a":1,"b":"{long}\"#)), json!({"a":1,"b":long}));
        assert_eq!(repaired(r#"{"a":1,"id":"toolu_0"#), json!({"a":1}));
        assert_eq!(repaired(r#"{"a":1,"b":tr"#), json!({"a":1}));
        assert_eq!(repaired(r#"{"a":1,"b""#), json!({"a":1}));
        assert_eq!(repaired(r#"{"a":1,"b":"#), json!({"a":1}));
        assert_eq!(repaired(r#"{"a":[1,2"#), json!({"a":[1,2]}));
    }

    #[test]
    fn control_characters_bom_and_broken_utf8_are_no_obstacle() {
        assert_eq!(repaired("{\"a\":\"x\u{0}y\nz\"}"), json!({"a":"x\u{0}y\nz"}));
        assert!(matches!(parse(b"\xEF\xBB\xBF{\"a\":1}"), Payload::Json { repaired: false, .. }));
        let Payload::Json { value, .. } = parse(b"{\"a\":\"\xFF\xFEok\"}") else { panic!() };
        assert!(value["a"].as_str().unwrap().ends_with("ok"));
    }

    #[test]
    fn escapes_numbers_and_commas_that_no_reader_takes_cost_themselves_alone() {
        assert_eq!(
            repaired(r#"{"a":"cut \ud83d","b":"\ud83d\ude00 \ude00 \q"}"#),
            json!({"a":"cut \u{FFFD}","b":"😀 \u{FFFD} \u{FFFD}q"})
        );
        assert_eq!(
            repaired(r#"{"a":NaN,"b":1e999,"c":[1,2,],"d":undefined,"e":-1.5,}"#),
            json!({"a":null,"b":null,"c":[1,2],"d":null,"e":-1.5})
        );
    }

    #[test]
    fn millions_of_small_values_stay_within_bounds_and_leave_the_members_of_the_top() {
        let text = format!("{{\"tool_response\":{{\"x\":[{}1]}},\"tool_use_id\":\"toolu_1\"}}", "\"a\",".repeat(6 << 20));
        let Payload::Json { value, .. } = read(text.as_bytes()).unwrap() else { panic!() };
        assert_eq!(value["tool_use_id"], "toolu_1");
    }

    #[test]
    fn a_whole_value_is_not_kept_waiting_for_the_pipes_end() {
        struct Open(Vec<u8>);
        impl Read for Open {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                assert!(!self.0.is_empty(), "read on behind the value");
                let n = self.0.len().min(buf.len());
                buf[..n].copy_from_slice(&self.0[..n]);
                self.0.drain(..n);
                Ok(n)
            }
        }
        assert!(matches!(read(Open(b"{\"a\":{}}\n".to_vec())).unwrap(), Payload::Json { repaired: false, .. }));
    }

    #[test]
    fn what_is_nested_too_deep_goes_and_its_neighbours_stay() {
        let text = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(5000), "]".repeat(5000));
        assert_eq!(repaired(&text)["b"], 2);
    }

    #[test]
    fn what_stands_behind_a_hundred_megabytes_is_found() {
        let head = br#"{"tool_response":{"stdout":"begin "#.to_vec();
        let tail = br#" end"},"tool_use_id":"toolu_1"}"#.to_vec();
        let big = io::repeat(b'x').take(100 << 20);
        let Payload::Json { value, repaired } = read(io::Cursor::new(head).chain(big).chain(io::Cursor::new(tail))).unwrap()
        else {
            panic!()
        };
        assert!(repaired);
        assert_eq!(value["tool_use_id"], "toolu_1");
        let out = value["tool_response"]["stdout"].as_str().unwrap();
        assert!(out.starts_with("begin x") && out.ends_with("x end") && out.len() <= 2 * STRING + 16);
    }

    #[test]
    fn what_is_no_object_is_garbage_and_white_space_is_nothing() {
        assert!(matches!(parse(b" \n"), Payload::Empty));
        assert!(matches!(parse(b"hello"), Payload::Garbage(_)));
        assert!(matches!(parse(b"\x00\x01"), Payload::Garbage(_)));
    }

    proptest! {
        #[test]
        fn any_cut_of_a_payload_keeps_its_whole_members(cut in 40usize..200) {
            let text = json!({"session_id": "abc", "tool_name": "Bash", "tool_input": {"command": "echo \"hi\" \\ é 記"}, "list": [1, {"x": null}], "last": "\n\t"}).to_string();
            let cut = cut.min(text.len() - 1);
            let Payload::Json { value, .. } = parse(&text.as_bytes()[..cut]) else { panic!("{}", &text[..cut]) };
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
