//! Adds hooks to an agent's settings file and removes them, leaving everything else untouched. The file is edited as a
//! syntax tree that keeps every byte (`jsonc-parser`), not parsed and rewritten.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstRootNode};
use serde_json::Value;

/// A hook to add: an event, and the handler's JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    pub event: &'static str,
    /// Tool names to match.
    pub matcher: Option<&'static str>,
    pub command: String,
    /// Seconds.
    pub timeout: u32,
}

/// Why a file cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotEditable(pub String);

/// Adds missing hooks. An empty text becomes a complete file.
pub fn add(text: &str, hooks: &[Hook]) -> Result<String, NotEditable> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let value = checked(text)?;
    let mut root = tree(text)?;
    for hook in hooks.iter().filter(|hook| !commands(&value, hook.event).contains(&hook.command)) {
        add_one(&mut root, hook).ok_or_else(|| NotEditable("`hooks` has an unexpected shape".into()))?;
    }
    let text = root.to_string();
    checked(&text)?;
    Ok(text)
}

/// Removes every handler whose command satisfies `is_ours`, and whatever becomes empty.
pub fn remove(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Result<String, NotEditable> {
    checked(text)?;
    let root = tree(text)?;
    while remove_one(&root, is_ours).is_some() {}
    let text = root.to_string();
    checked(&text)?;
    Ok(text)
}

/// The commands in a settings value for an event.
pub fn commands(settings: &Value, event: &str) -> Vec<String> {
    let groups = settings["hooks"][event].as_array().into_iter().flatten();
    let handlers = groups.filter_map(|g| g["hooks"].as_array()).flatten();
    handlers.filter_map(|h| h["command"].as_str()).map(String::from).collect()
}

/// Parses the text and rejects shapes that the agent would reject too.
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

fn add_one(root: &mut CstRootNode, hook: &Hook) -> Option<()> {
    let object = |members: Vec<(&str, CstInputValue)>| {
        CstInputValue::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    };
    let command = hook.command.as_str();
    let handler = object(vec![("type", "command".into()), ("command", command.into()), ("timeout", hook.timeout.into())]);
    let handlers = ("hooks", CstInputValue::Array(vec![handler]));
    let group = object(hook.matcher.map(|tools| ("matcher", tools.into())).into_iter().chain([handlers]).collect());
    let top = root.object_value()?;
    let hooks = top.get("hooks");
    let groups = hooks.as_ref().and_then(|hooks| hooks.object_value()?.get(hook.event));
    // A file on one line stays on one line: the entry goes before the bracket that closes the innermost container.
    let innermost =
        groups.as_ref().or(hooks.as_ref()).map_or(Some(top.to_string()), |property| Some(property.value()?.to_string()))?;
    let is_empty = innermost[1..innermost.len() - 1].trim().is_empty();
    if innermost.contains('\n') || is_empty {
        top.object_value_or_create("hooks")?.array_value_or_create(hook.event)?.append(group);
        return Some(());
    }
    let group = on_one_line(&group);
    let event = format!("\"{}\":[{group}]", hook.event);
    let (property, written) = match (groups, hooks) {
        (Some(groups), _) => (groups, with_entry(&innermost, &group)),
        (None, Some(hooks)) => (hooks, with_entry(&innermost, &event)),
        (None, None) => {
            let with_hooks = with_entry(&innermost, &format!("\"hooks\":{{{event}}}"));
            *root = tree(&root.to_string().replacen(&innermost, &with_hooks, 1)).ok()?;
            return Some(());
        }
    };
    property.set_value("".into());
    property.value()?.as_string_lit()?.set_raw_value(written);
    *root = tree(&root.to_string()).ok()?;
    Some(())
}

/// The text of a non-empty container with one more entry at its end.
fn with_entry(container: &str, entry: &str) -> String {
    let inside = container[..container.len() - 1].trim_end();
    format!("{inside},{entry}{}", &container[inside.len()..])
}

fn on_one_line(value: &CstInputValue) -> String {
    match value {
        CstInputValue::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), on_one_line(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        CstInputValue::Array(items) => format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(",")),
        CstInputValue::String(text) => Value::from(text.as_str()).to_string(),
        CstInputValue::Number(number) => number.clone(),
        CstInputValue::Bool(truth) => truth.to_string(),
        CstInputValue::Null => "null".into(),
    }
}

/// Removes our first handler, with its group, event or all hooks if nothing else is left in them.
fn remove_one(root: &CstRootNode, is_ours: &dyn Fn(&str) -> bool) -> Option<()> {
    let hooks = root.object_value()?.get("hooks")?;
    for event in hooks.object_value()?.properties() {
        for group in event.array_value()?.elements() {
            let Some(handlers) = group.as_object().and_then(|group| group.array_value("hooks")) else { continue };
            let command = |handler: &CstNode| handler.as_object()?.get("command")?.value()?.as_string_lit()?.decoded_value().ok();
            let ours = |handler: &CstNode| command(handler).is_some_and(|command| is_ours(&command));
            let Some(handler) = handlers.elements().into_iter().find(ours) else { continue };
            match (handlers.elements().len(), event.array_value()?.elements().len(), hooks.object_value()?.properties().len()) {
                (1, 1, 1) => hooks.remove(),
                (1, 1, _) => event.remove(),
                (1, ..) => group.remove(),
                _ => handler.remove(),
            }
            return Some(());
        }
    }
    None
}

fn tree(text: &str) -> Result<CstRootNode, NotEditable> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|e| NotEditable(format!("it is not JSON: {e}")))
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
        let group = |event: &str| {
            format!(
                "    \"{event}\": [\n      {{\n        \"hooks\": [\n          {{\n            \"type\": \"command\",\n            \
                 \"command\": \"/bin/nmem record\",\n            \"timeout\": 10\n          }}\n        ]\n      }}\n    ]"
            )
        };
        let groups = [group("SessionStart"), group("PostToolUse")].join(",\n");
        assert_eq!(text, format!("{{\n  \"hooks\": {{\n{groups}\n  }}\n}}\n"));
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
