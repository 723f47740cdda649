//! Puts hooks into an agent's settings file, and takes them out again, leaving every other byte as it was.
//!
//! The file is somebody's own work: it is not parsed and written anew, but edited as text at the places that a small
//! scanner finds. The scanner runs on text that serde_json has accepted, so it need not check anything.

use serde_json::Value;
use std::ops::Range;

/// One hook that is to be there: an event, and the handler's JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub event: &'static str,
    /// The tools that the event is about.
    pub matcher: Option<&'static str>,
    pub command: String,
    /// Seconds.
    pub timeout: u32,
}

/// Why a file can't be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEditable(pub String);

/// Adds the hooks that are not there yet; others stay. An empty text becomes a whole file.
pub fn add(text: &str, hooks: &[Hook]) -> Result<String, NotEditable> {
    let mut text = if text.trim().is_empty() { "{}\n".to_string() } else { text.to_string() };
    let value = checked(&text)?;
    for hook in hooks {
        if commands(&value, hook.event).iter().any(|c| c == &hook.command) {
            continue;
        }
        text = add_one(&text, hook)?;
    }
    checked(&text)?;
    Ok(text)
}

/// Takes out every handler whose command `is_ours` says yes to, and what is empty without them.
pub fn remove(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<String, NotEditable> {
    checked(text)?;
    let mut text = text.to_string();
    while let Some(range) = first_of_ours(&text, is_ours) {
        text.replace_range(range, "");
    }
    checked(&text)?;
    Ok(text)
}

/// The commands that a settings value hooks into an event.
pub fn commands(settings: &Value, event: &str) -> Vec<String> {
    let groups = settings["hooks"][event].as_array().into_iter().flatten();
    let handlers = groups.filter_map(|g| g["hooks"].as_array()).flatten();
    handlers.filter_map(|h| h["command"].as_str()).map(String::from).collect()
}

/// Parses the text and refuses shapes that an agent would refuse too.
pub fn checked(text: &str) -> Result<Value, NotEditable> {
    let value: Value = serde_json::from_str(text).map_err(|e| NotEditable(format!("it is not JSON: {e}")))?;
    let object = value.as_object().ok_or_else(|| NotEditable("it is not a JSON object".into()))?;
    let Some(hooks) = object.get("hooks") else { return Ok(value) };
    let events = hooks.as_object().ok_or_else(|| NotEditable("`hooks` is not an object".into()))?;
    match events.iter().find(|(_, groups)| !groups.is_array()) {
        Some((event, _)) => Err(NotEditable(format!("`hooks.{event}` is not a list"))),
        None => Ok(value),
    }
}

fn add_one(text: &str, hook: &Hook) -> Result<String, NotEditable> {
    let command = Value::from(hook.command.as_str());
    let Hook { event, timeout, .. } = hook;
    let matcher = hook.matcher.map(|tools| format!("\"matcher\": {}, ", Value::from(tools))).unwrap_or_default();
    let handler = format!("{{ \"type\": \"command\", \"command\": {command}, \"timeout\": {timeout} }}");
    let group = format!("{{ {matcher}\"hooks\": [{handler}] }}");
    let top = object_at(text, 0);
    let Some(hooks) = member(text, &top, "hooks") else {
        return Ok(insert(
            text,
            &top,
            1,
            &format!("\"hooks\": {{\n{i}{i}\"{event}\": [\n{i}{i}{i}{group}\n{i}{i}]\n{i}}}", i = indent(text)),
        ));
    };
    let events = object_at(text, hooks.start);
    let Some(groups) = member(text, &events, event) else {
        return Ok(insert(text, &events, 2, &format!("\"{event}\": [\n{i}{i}{i}{group}\n{i}{i}]", i = indent(text))));
    };
    Ok(insert(text, &array_at(text, groups.start), 3, &group))
}

/// A container: where it begins and ends, and its entries.
#[derive(Debug)]
struct Container {
    /// From the opening to past the closing bracket.
    range: Range<usize>,
    entries: Vec<Entry>,
}

/// An object's member or an array's element.
#[derive(Debug)]
struct Entry {
    /// Of a member; with quotes, as written.
    key: Option<Range<usize>>,
    value: Range<usize>,
}

impl Entry {
    fn start(&self) -> usize {
        self.key.as_ref().unwrap_or(&self.value).start
    }
}

/// Puts an entry behind the last one of a container, on a line of its own.
fn insert(text: &str, into: &Container, depth: usize, entry: &str) -> String {
    let indent = indent(text);
    let (at, new) = match into.entries.last() {
        Some(last) => (last.value.end, format!(",\n{}{entry}", indent.repeat(depth))),
        None => (into.range.start + 1, format!("\n{}{entry}\n{}", indent.repeat(depth), indent.repeat(depth - 1))),
    };
    // White space inside an empty container is replaced by our own.
    let until = if into.entries.is_empty() { into.range.end - 1 } else { at };
    format!("{}{new}{}", &text[..at], &text[until..])
}

/// What the file indents with: the white space of its first indented line, else two spaces.
fn indent(text: &str) -> String {
    let first = text.lines().find(|l| l.starts_with([' ', '\t']) && !l.trim().is_empty());
    first.map_or("  ".into(), |l| l[..l.len() - l.trim_start().len()].to_string())
}

/// The bytes to take out for the first handler of ours: the handler, or its group, event or all hooks if nothing else is
/// in them, with the comma and white space that belong to it.
fn first_of_ours(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Option<Range<usize>> {
    let top = object_at(text, 0);
    let hooks = member(text, &top, "hooks")?;
    let events = object_at(text, hooks.start);
    for (e, event) in events.entries.iter().enumerate() {
        let groups = array_at(text, event.value.start);
        for (g, group) in groups.entries.iter().enumerate() {
            let Some(list) = object_if(text, group.value.start).and_then(|o| member(text, &o, "hooks")) else { continue };
            let Some(handlers) = array_if(text, list.start) else { continue };
            let ours = |handler: &Entry| {
                let value: Option<Value> = serde_json::from_str(&text[handler.value.clone()]).ok();
                value.is_some_and(|v| v["command"].as_str().is_some_and(is_ours))
            };
            let Some(h) = handlers.entries.iter().position(ours) else { continue };
            let chain = [(&handlers, h), (&groups, g), (&events, e)];
            for (container, at) in chain {
                if container.entries.len() > 1 {
                    return Some(with_comma(container, at));
                }
            }
            let at = top.entries.iter().position(|entry| entry.value == hooks)?;
            return Some(match top.entries.len() {
                1 => top.range.start + 1..top.range.end - 1,
                _ => with_comma(&top, at),
            });
        }
    }
    None
}

fn with_comma(container: &Container, at: usize) -> Range<usize> {
    let entry = &container.entries[at];
    match at {
        0 => entry.start()..container.entries[1].start(),
        _ => container.entries[at - 1].value.end..entry.value.end,
    }
}

fn member(text: &str, object: &Container, name: &str) -> Option<Range<usize>> {
    let is_it =
        |entry: &&Entry| entry.key.clone().is_some_and(|k| serde_json::from_str::<String>(&text[k]).is_ok_and(|k| k == name));
    // A name that stands twice: the last one counts, as for every JSON reader.
    object.entries.iter().rev().find(is_it).map(|e| e.value.clone())
}

fn object_if(text: &str, at: usize) -> Option<Container> {
    text[at..].trim_start().starts_with('{').then(|| object_at(text, at))
}

fn array_if(text: &str, at: usize) -> Option<Container> {
    text[at..].trim_start().starts_with('[').then(|| array_at(text, at))
}

fn object_at(text: &str, at: usize) -> Container {
    container(text, at, true)
}

fn array_at(text: &str, at: usize) -> Container {
    container(text, at, false)
}

fn container(text: &str, at: usize, keyed: bool) -> Container {
    let bytes = text.as_bytes();
    let start = space(bytes, at);
    let mut entries = Vec::new();
    let mut i = space(bytes, start + 1);
    while i < bytes.len() && !matches!(bytes[i], b'}' | b']') {
        let key = keyed.then(|| i..value_end(bytes, i));
        if let Some(key) = &key {
            // Past the colon.
            i = space(bytes, space(bytes, key.end) + 1);
        }
        let value = i..value_end(bytes, i);
        i = space(bytes, value.end);
        entries.push(Entry { key, value });
        if bytes.get(i) == Some(&b',') {
            i = space(bytes, i + 1);
        }
    }
    Container { range: start..(i + 1).min(bytes.len()), entries }
}

fn space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

fn value_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut i) = (0usize, at);
    while i < bytes.len() {
        match bytes[i] {
            b'"' => {
                i += 1;
                while i < bytes.len() && bytes[i] != b'"' {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {
                i += 1;
                while depth == 0 && i < bytes.len() && !matches!(bytes[i], b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                    i += 1;
                }
                if depth == 0 {
                    return i;
                }
                continue;
            }
        }
        i += 1;
        if depth == 0 {
            return i.min(bytes.len());
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hooks() -> Vec<Hook> {
        ["SessionStart", "PostToolUse"]
            .map(|event| Hook { event, matcher: None, command: "/bin/nmem record".into(), timeout: 10 })
            .to_vec()
    }

    fn ours(command: &str) -> bool {
        command == "/bin/nmem record"
    }

    #[test]
    fn an_empty_file_becomes_a_readable_one() {
        let text = add("", &hooks()).unwrap();
        assert_eq!(
            text,
            "{\n  \"hooks\": {\n    \"SessionStart\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"/bin/nmem record\", \"timeout\": 10 }] }\n    ],\n    \
             \"PostToolUse\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"/bin/nmem record\", \"timeout\": 10 }] }\n    ]\n  }\n}\n"
        );
        assert_eq!(remove(&text, &ours).unwrap(), "{}\n");
    }

    const FULL: &str = r#"{
	"model": "opus",   "env": {"A": "1e5", "B\"}": "x, y"},
	"hooks": {
		"PostToolUse": [
			{"matcher": "Bash", "hooks": [{"type": "command", "command": "other \"quoted\" }]"}]}
		],
		"Stop": []
	},
	"big": 12345678901234567890.5e2
}
"#;

    #[test]
    fn other_peoples_bytes_are_untouched_and_twice_is_once() {
        let once = add(FULL, &hooks()).unwrap();
        assert_eq!(add(&once, &hooks()).unwrap(), once);
        assert_eq!(commands(&checked(&once).unwrap(), "PostToolUse"), ["other \"quoted\" }]", "/bin/nmem record"]);
        assert_eq!(remove(&once, &ours).unwrap(), FULL);
    }

    #[test]
    fn a_handler_inside_somebody_elses_group_goes_alone() {
        let text = r#"{"hooks":{"Stop":[{"hooks":[{"command":"a"},{"command":"/bin/nmem record"},{"command":"b"}]}]}}"#;
        assert_eq!(remove(text, &ours).unwrap(), r#"{"hooks":{"Stop":[{"hooks":[{"command":"a"},{"command":"b"}]}]}}"#);
    }

    #[test]
    fn a_file_that_no_agent_would_read_is_refused_with_the_reason() {
        for (text, reason) in [
            ("{,}", "not JSON"),
            ("[]", "not a JSON object"),
            (r#"{"hooks":[]}"#, "`hooks` is not"),
            (r#"{"hooks":{"Stop":1}}"#, "`hooks.Stop` is not"),
        ] {
            assert!(add(text, &hooks()).unwrap_err().0.contains(reason), "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[\\PC\\\\\"{}\\[\\]:,]{0,8}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-z\"\\\\{]{0,4}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_else_the_file_holds_it_comes_back_byte_for_byte(rest in json(), pretty: bool) {
            let value = serde_json::json!({"before": rest, "permissions": {"allow": []}});
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            let with = add(&text, &hooks()).unwrap();
            let mut expected = value.clone();
            let parsed = checked(&with).unwrap();
            expected["hooks"] = parsed["hooks"].clone();
            prop_assert_eq!(&parsed, &expected);
            prop_assert_eq!(remove(&with, &ours).unwrap(), text);
        }
    }
}
