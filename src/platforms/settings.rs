//! Adds hooks and permissions to an agent's settings file and removes them, leaving everything else untouched. The file
//! is edited as a syntax tree that keeps every byte (`jsonc-parser`), not parsed and rewritten.

pub use super::json_tree::NotEditable;
use super::json_tree::{lenient, once, tree, without_mark};
use super::setup::{Shape, Subscribed};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

/// A hook to add: a subscription and the command line that handles it.
#[derive(Clone, Debug)]
pub struct Hook {
    pub on: Subscribed,
    pub command: String,
}

/// Adds missing hooks. An empty text becomes a complete file.
pub fn add(text: &str, shape: Shape, hooks: &[Hook]) -> Result<String, NotEditable> {
    let text = match (text.trim().is_empty(), shape) {
        (true, Shape::Flat) => "{\n  \"version\": 1\n}\n",
        (true, _) => "{}\n",
        (false, _) => text,
    };
    let value = checked(text, shape)?;
    let mut root = tree(text)?;
    for hook in hooks.iter().filter(|hook| !commands(&value, shape, hook.on.event).contains(&hook.command)) {
        let path = ["hooks", hook.on.event];
        append(&mut root, &path, entry(shape, hook)).ok_or_else(|| NotEditable("`hooks` has an unexpected shape".into()))?;
    }
    if shape == Shape::Flat && value.get("version").is_none() {
        root.object_value().ok_or_else(|| NotEditable("it is not a JSON object".into()))?.append("version", 1.into());
    }
    let text = root.to_string();
    checked(&text, shape)?;
    Ok(text)
}

/// Removes every handler whose command satisfies `is_ours`, and every container that becomes empty.
pub fn remove(text: &str, shape: Shape, is_ours: &dyn Fn(&str) -> bool) -> Result<String, NotEditable> {
    checked(text, shape)?;
    let root = tree(text)?;
    while remove_one(&root, shape, is_ours).is_some() {}
    let text = root.to_string();
    checked(&text, shape)?;
    Ok(text)
}

/// Returns the commands in a settings value for an event.
pub fn commands(settings: &Value, shape: Shape, event: &str) -> Vec<String> {
    let entries = settings["hooks"][event].as_array().into_iter().flatten();
    let handlers: Vec<&Value> = match shape {
        Shape::Flat => entries.collect(),
        _ => entries.filter_map(|group| group["hooks"].as_array()).flatten().collect(),
    };
    handlers.into_iter().filter_map(|handler| handler["command"].as_str()).map(String::from).collect()
}

/// Adds missing texts to a list under two nested keys.
pub fn add_to_list(text: &str, list: [&str; 2], entries: &[&str]) -> Result<String, NotEditable> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let value = checked(text, Shape::Nested)?;
    let mut root = tree(text)?;
    let known = value[list[0]][list[1]].as_array().cloned().unwrap_or_default();
    for entry in entries.iter().filter(|entry| !known.iter().any(|known| known == *entry)) {
        append(&mut root, &list, (*entry).into()).ok_or_else(|| NotEditable(format!("`{}` has an unexpected shape", list[0])))?;
    }
    let text = root.to_string();
    checked(&text, Shape::Nested)?;
    Ok(text)
}

/// Removes texts from a list under two nested keys, and every container that becomes empty.
pub fn remove_from_list(text: &str, list: [&str; 2], entries: &[&str]) -> Result<String, NotEditable> {
    checked(text, Shape::Nested)?;
    let root = tree(text)?;
    let top = root.object_value();
    let listed = top.as_ref().and_then(|top| top.get(list[0])?.object_value()?.get(list[1])?.array_value());
    let is_ours = |node: &CstNode| {
        let text = node.as_string_lit().and_then(|text| text.decoded_value().ok());
        text.is_some_and(|text| entries.contains(&text.as_str()))
    };
    let ours: Vec<CstNode> = listed.iter().flat_map(CstArray::elements).filter(is_ours).collect();
    if ours.is_empty() {
        return Ok(text.to_string());
    }
    for node in ours {
        node.remove();
    }
    if listed.is_some_and(|listed| listed.elements().is_empty())
        && let Some(outer) = top.as_ref().and_then(|top| top.get(list[0]))
    {
        let siblings = outer.object_value().map_or(0, |object: CstObject| object.properties().len());
        match outer.object_value().and_then(|object| object.get(list[1])).filter(|_| siblings > 1) {
            Some(inner) => inner.remove(),
            None => outer.remove(),
        }
    }
    Ok(root.to_string())
}

/// Parses the text, and rejects shapes that the agent would also reject.
pub fn checked(text: &str, shape: Shape) -> Result<Value, NotEditable> {
    let text = without_mark(text);
    let value = match shape {
        Shape::NestedMillis => lenient(text)?,
        _ => serde_json::from_str(text).map_err(|e| NotEditable(format!("it is not JSON: {e}")))?,
    };
    let object = value.as_object().ok_or_else(|| NotEditable("it is not a JSON object".into()))?;
    once(text, "hooks")?;
    let Some(hooks) = object.get("hooks") else { return Ok(value) };
    let events = hooks.as_object().ok_or_else(|| NotEditable("`hooks` is not an object".into()))?;
    match events.iter().find(|(_, groups)| !groups.is_array()) {
        Some((event, _)) => Err(NotEditable(format!("`hooks.{event}` is not a list"))),
        None => Ok(value),
    }
}

/// Creates the entry of a hook for its event's list.
fn entry(shape: Shape, hook: &Hook) -> CstInputValue {
    let object = |members: Vec<(&str, CstInputValue)>| {
        CstInputValue::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    };
    let timeout = match shape {
        Shape::NestedMillis => hook.on.timeout * 1000,
        _ => hook.on.timeout,
    };
    let handler =
        object(vec![("type", "command".into()), ("command", hook.command.as_str().into()), ("timeout", timeout.into())]);
    if shape == Shape::Flat {
        return handler;
    }
    let handlers = ("hooks", CstInputValue::Array(vec![handler]));
    object(hook.on.tools.map(|tools| ("matcher", tools.into())).into_iter().chain([handlers]).collect())
}

/// Appends a value to the list under two nested keys, which are created if needed.
fn append(root: &mut CstRootNode, [outer, inner]: &[&str; 2], value: CstInputValue) -> Option<()> {
    let top = root.object_value()?;
    let members = top.get(outer);
    let list = members.as_ref().and_then(|members| members.object_value()?.get(inner));
    // A file on one line remains on one line: the entry goes before the innermost container's closing bracket.
    let innermost =
        list.as_ref().or(members.as_ref()).map_or(Some(top.to_string()), |property| Some(property.value()?.to_string()))?;
    let is_empty = innermost.get(1..innermost.len().checked_sub(1)?)?.trim().is_empty();
    if innermost.contains('\n') || is_empty {
        top.object_value_or_create(outer)?.array_value_or_create(inner)?.append(value);
        return Some(());
    }
    let value = on_one_line(&value);
    let member = format!("\"{inner}\":[{value}]");
    let (property, written) = match (list, members) {
        (Some(list), _) => (list, with_entry(&innermost, &value)),
        (None, Some(members)) => (members, with_entry(&innermost, &member)),
        (None, None) => {
            let with_members = with_entry(&innermost, &format!("\"{outer}\":{{{member}}}"));
            *root = tree(&root.to_string().replacen(&innermost, &with_members, 1)).ok()?;
            return Some(());
        }
    };
    property.set_value("".into());
    property.value()?.as_string_lit()?.set_raw_value(written);
    *root = tree(&root.to_string()).ok()?;
    Some(())
}

/// Returns the text of a non-empty container with an entry appended.
fn with_entry(container: &str, entry: &str) -> String {
    let inside = container[..container.len() - 1].trim_end();
    let comma = if inside.ends_with(',') { "" } else { "," };
    format!("{inside}{comma}{entry}{}", &container[inside.len()..])
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

/// Removes our first handler, and its group, its event and the `hooks` object if they become empty.
fn remove_one(root: &CstRootNode, shape: Shape, is_ours: &dyn Fn(&str) -> bool) -> Option<()> {
    let hooks = root.object_value()?.get("hooks")?;
    let events = hooks.object_value()?.properties();
    let command = |handler: &CstNode| handler.as_object()?.get("command")?.value()?.as_string_lit()?.decoded_value().ok();
    let ours = |handler: &CstNode| command(handler).is_some_and(|command| is_ours(&command));
    for event in &events {
        let entries = event.array_value()?.elements();
        for group in &entries {
            let handlers = match shape {
                Shape::Flat => vec![group.clone()],
                _ => group.as_object().and_then(|group| group.array_value("hooks")).map_or(Vec::new(), |list| list.elements()),
            };
            let Some(handler) = handlers.iter().find(|handler| ours(handler)) else { continue };
            match (handlers.len(), entries.len(), events.len()) {
                (1, 1, 1) => hooks.clone().remove(),
                (1, 1, _) => event.clone().remove(),
                (1, ..) => group.clone().remove(),
                _ => handler.clone().remove(),
            }
            return Some(());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platforms::setup::to;
    use proptest::prelude::*;

    fn hooks() -> Vec<Hook> {
        ["SessionStart", "PostToolUse"]
            .map(|event| Hook { on: to(event, "record", 10), command: "/bin/nmem record".into() })
            .to_vec()
    }

    fn ours(command: &str) -> bool {
        command == "/bin/nmem record"
    }

    #[test]
    fn an_empty_file_becomes_a_readable_one() {
        let text = add("", Shape::Nested, &hooks()).unwrap();
        let group = |event: &str| {
            format!(
                "    \"{event}\": [\n      {{\n        \"hooks\": [\n          {{\n            \"type\": \"command\",\n            \
                 \"command\": \"/bin/nmem record\",\n            \"timeout\": 10\n          }}\n        ]\n      }}\n    ]"
            )
        };
        let groups = [group("SessionStart"), group("PostToolUse")].join(",\n");
        assert_eq!(text, format!("{{\n  \"hooks\": {{\n{groups}\n  }}\n}}\n"));
        assert_eq!(remove(&text, Shape::Nested, &ours).unwrap(), "{}\n");
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
        let once = add(FULL, Shape::Nested, &hooks()).unwrap();
        assert_eq!(add(&once, Shape::Nested, &hooks()).unwrap(), once);
        assert_eq!(
            commands(&checked(&once, Shape::Nested).unwrap(), Shape::Nested, "PostToolUse"),
            ["other \"quoted\" }]", "/bin/nmem record"]
        );
        assert_eq!(remove(&once, Shape::Nested, &ours).unwrap(), FULL);
    }

    #[test]
    fn a_handler_inside_somebody_elses_group_goes_alone() {
        let text = r#"{"hooks":{"Stop":[{"hooks":[{"command":"a"},{"command":"/bin/nmem record"},{"command":"b"}]}]}}"#;
        assert_eq!(
            remove(text, Shape::Nested, &ours).unwrap(),
            r#"{"hooks":{"Stop":[{"hooks":[{"command":"a"},{"command":"b"}]}]}}"#
        );
    }

    #[test]
    fn comments_and_trailing_commas_stay_where_the_agent_takes_them() {
        for text in ["{\n  // mine\n  \"theme\": \"x\", // and why\n}\n", "{ // nothing\n}"] {
            let with = add(text, Shape::NestedMillis, &hooks()).unwrap();
            assert!(with.contains("10000") && !with.contains("\"version\""), "{with}");
            assert_eq!(add(&with, Shape::NestedMillis, &hooks()).unwrap(), with);
            let without = remove(&with, Shape::NestedMillis, &ours).unwrap();
            assert_eq!(lenient(&without), lenient(text), "{without}");
            assert!(add(text, Shape::Nested, &hooks()).is_err(), "others refuse comments");
        }
    }

    #[test]
    fn a_flat_file_has_handlers_below_the_event_and_a_version() {
        let text = add("", Shape::Flat, &hooks()).unwrap();
        let value = checked(&text, Shape::Flat).unwrap();
        assert_eq!((&value["version"], &value["hooks"]["PostToolUse"][0]["command"]), (&1.into(), &"/bin/nmem record".into()));
        let others = "{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"other\"}]}}";
        let both = add(others, Shape::Flat, &hooks()).unwrap();
        assert_eq!(remove(&both, Shape::Flat, &ours).unwrap(), others);
    }

    #[test]
    fn entries_of_a_list_come_and_go() {
        let list = ["permissions", "allow"];
        for text in [
            "{\"permissions\": {\"allow\": [\"a\"], \"deny\": []}}",
            "{\"permissions\":{\"deny\":[\"x\"]}}",
            "{\"b\":1}",
            "{\n  \"b\": 1\n}\n",
        ] {
            let with = add_to_list(text, list, &["nmem search", "nmem show"]).unwrap();
            assert!(with.contains("nmem show"), "{with}");
            assert_eq!(add_to_list(&with, list, &["nmem search"]).unwrap(), with);
            assert_eq!(remove_from_list(&with, list, &["nmem search", "nmem show"]).unwrap(), text);
        }
    }

    #[test]
    fn a_file_that_no_agent_would_read_is_refused_with_the_reason() {
        for (text, reason) in [
            ("{,}", "not JSON"),
            ("[]", "not a JSON object"),
            (r#"{"hooks":[]}"#, "`hooks` is not"),
            (r#"{"hooks":{"Stop":1}}"#, "`hooks.Stop` is not"),
        ] {
            assert!(add(text, Shape::Nested, &hooks()).unwrap_err().0.contains(reason), "{text}");
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
            let with = add(&text, Shape::Nested, &hooks()).unwrap();
            let mut expected = value.clone();
            let parsed = checked(&with, Shape::Nested).unwrap();
            expected["hooks"] = parsed["hooks"].clone();
            prop_assert_eq!(&parsed, &expected);
            prop_assert_eq!(remove(&with, Shape::Nested, &ours).unwrap(), text);
        }
    }
}
