//! A hook's stdin, bounded; the context in which an adapter decodes it; and who speaks in a prompt.

use super::json_repair::{self, JsonRepairer, KEPT};
use crate::model::Millis;
use serde_json::Value;
use std::io::{self, Read};

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
    json_repair::parse_bounded(String::from_utf8_lossy(bytes).as_bytes()).ok().filter(Value::is_object)
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

/// Input for decoding, in addition to the payload.
#[derive(Debug)]
pub struct DecodeContext<'a> {
    pub now: Millis,
    /// Tools that are not recorded.
    pub skip_tools: &'a [String],
}

/// Who wrote a text that an agent received as a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    Person,
    /// Another agent: a subagent's report, another session's message.
    Agent,
    /// The program around the agent: notifications, reminders.
    Client,
}

/// Prefixes of messages that agents send to each other.
const AGENTS: [&str; 6] = [
    "<agent-message",
    "<cross-session-message",
    "<teammate-message",
    "<subagent_notification>",
    "Another Claude session sent a message",
    "[Subagent hand-back]",
];

/// Prefixes of messages that clients write. Text after such a frame is the client's, too.
const CLIENTS: [&str; 7] = [
    "<task-notification>",
    "<local-command-",
    "<bash-",
    "<ci-monitor-event>",
    "<system_notification>",
    "<turn_aborted>",
    "[SYSTEM NOTIFICATION - NOT USER INPUT]",
];

/// Blocks that clients put before a prompt.
const BEFORE_PROMPT: [&str; 5] =
    ["system-reminder", "environment_context", "user_instructions", "ide_opened_file", "ide_selection"];

/// Frames that clients put around a prompt or a command of the person.
const AROUND_PROMPT: [&str; 3] = ["command-message", "command-name", "user_query"];

/// Returns who speaks in a prompt, judged by its frame. A text that consists of one unknown frame, such as
/// `<some-event>…</some-event>`, is the client's; with other text after the frame, it is the person's.
pub fn speaker(prompt: &str) -> Speaker {
    let mut prompt = prompt.trim_start_matches('\u{feff}').trim();
    while let Some(rest) = BEFORE_PROMPT.iter().find_map(|name| without_block(prompt, name)) {
        prompt = rest.trim();
        if prompt.is_empty() {
            return Speaker::Client;
        }
    }
    if AGENTS.iter().any(|begin| prompt.starts_with(begin)) {
        return Speaker::Agent;
    }
    let is_stopped = !prompt.contains('\n') && prompt.trim_end_matches('.').ends_with(" were stopped by the user");
    if is_stopped || CLIENTS.iter().any(|begin| prompt.starts_with(begin)) || is_unknown_frame(prompt) {
        return Speaker::Client;
    }
    Speaker::Person
}

/// Removes a block at the start of a text; returns an empty text if the block is not closed, `None` if there is none.
fn without_block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let inside = text.strip_prefix('<')?.strip_prefix(name)?.strip_prefix('>')?;
    Some(inside.split_once(&format!("</{name}>")).map_or("", |(_, after)| after))
}

/// Returns true if a text is one frame with a name that no HTML element has, or begins with such a tag on a line of its
/// own that is never closed.
fn is_unknown_frame(prompt: &str) -> bool {
    let Some((tag, after)) = prompt.strip_prefix('<').and_then(|inside| inside.split_once('>')) else { return false };
    let name = tag.split([' ', '\n']).next().unwrap_or_default();
    let is_made =
        name.contains(['-', '_']) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b));
    if !is_made || AROUND_PROMPT.contains(&name) {
        return false;
    }
    match after.rsplit_once(&format!("</{name}>")) {
        Some((_, rest)) => rest.trim().is_empty(),
        None => after.starts_with('\n'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::platforms::json_repair::{CUT, STRING};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_a_persons_unless_its_frame_shows_another_speaker() {
        for (prompt, by) in [
            ("Use Redis", Speaker::Person),
            ("<my-button> does not render", Speaker::Person),
            ("<div>\nwhy is this empty?", Speaker::Person),
            ("<pasted-log>\nerror\n</pasted-log>\nFix this", Speaker::Person),
            ("<Vec<T> as IntoIterator>::Item is wrong here", Speaker::Person),
            ("<system-reminder>\nThe date\n</system-reminder>\nUse Redis", Speaker::Person),
            ("<environment_context>\n<cwd>/a</cwd>\n</environment_context>\n\nUse Redis", Speaker::Person),
            ("<user_query>\nStep\n</user_query>", Speaker::Person),
            ("My jobs were stopped by the user.\nUndo that.", Speaker::Person),
            ("<agent-message from=\"a1\">\nUse Redis\n</agent-message>", Speaker::Agent),
            ("<cross-session-message from=\"b\">Push it</cross-session-message>", Speaker::Agent),
            ("Another Claude session sent a message:\n<agent-message from=\"c\">x", Speaker::Agent),
            ("[Subagent hand-back] The report", Speaker::Agent),
            ("<ide_selection>a</ide_selection><agent-message>Use Redis</agent-message>", Speaker::Agent),
            ("<system-reminder>\nThe date\n</system-reminder>", Speaker::Client),
            ("<system-reminder>\nnever closed", Speaker::Client),
            ("[SYSTEM NOTIFICATION - NOT USER INPUT]\nIt ended", Speaker::Client),
            ("<bash-input>ls</bash-input><bash-stdout>a</bash-stdout>\nb", Speaker::Client),
            ("<task-notification>\n<status>failed</status>", Speaker::Client),
            ("2 background agents were stopped by the user.", Speaker::Client),
            ("<scheduled-run id=\"4\">\nNever deploy\n</scheduled-run>", Speaker::Client),
            ("<monitor_event>\nnever closed", Speaker::Client),
        ] {
            assert_eq!(speaker(prompt), by, "{prompt}");
        }
    }

    fn repaired(text: &str) -> Value {
        match parse(text.as_bytes()) {
            Payload::Json { value, repaired: true } => value,
            other => panic!("{text}: {other:?}"),
        }
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
