//! Hooks and MCP servers in an agent's settings file, added and removed without touching other entries.

use super::json_repair::{NotEditable, lenient, once, tree, without_mark};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Value, json};

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
    if let Shape::Toml { .. } = shape {
        let all = settings["hooks"].as_array().into_iter().flatten();
        let own = all.filter(|hook| hook["event"] == event || hook["type"] == event);
        return own.filter_map(|hook| hook["command"].as_str()).map(String::from).collect();
    }
    let handlers: Vec<&Value> = match shape {
        Shape::Flat => entries.collect(),
        _ => entries.filter_map(|group| group["hooks"].as_array()).flatten().collect(),
    };
    handlers.into_iter().filter_map(|handler| handler["command"].as_str()).map(String::from).collect()
}

/// Hooks as tables of a TOML file.
pub fn hook_tables(hooks: &[Hook], named: bool) -> String {
    let table = |hook: &Hook| {
        let (event, command) = (Value::from(hook.on.event), Value::from(hook.command.as_str()));
        let head = match named {
            true => format!("name = {}\ntype = {event}", Value::from(format!("{NAME}-{}", hook.on.event))),
            false => format!("event = {event}"),
        };
        format!("[[hooks]]\n{head}\ncommand = {command}\ntimeout = {}", hook.on.timeout)
    };
    hooks.iter().map(table).collect::<Vec<_>>().join("\n\n")
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
        Shape::Toml { .. } => {
            let table: toml::Table = text.parse().map_err(|e| NotEditable(format!("it is not TOML: {e}")))?;
            return serde_json::to_value(table).map_err(|e| NotEditable(e.to_string()));
        }
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

/// The name of the server.
pub const NAME: &str = "nmem";

/// Creates the server entry for a program.
pub fn server_of(form: McpForm, program: &str) -> Value {
    match form {
        McpForm::Plain => json!({"command": program, "args": ["mcp"]}),
        McpForm::Stdio => json!({"type": "stdio", "command": program, "args": ["mcp"]}),
        McpForm::Local => json!({"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}),
        McpForm::List => json!({"type": "local", "command": [program, "mcp"], "enabled": true}),
    }
}

/// Creates the TOML table for a program.
pub fn table(program: &str) -> String {
    format!("[mcp_servers.{NAME}]\ncommand = {}\nargs = [\"mcp\"]", Value::from(program))
}

/// Returns true if a TOML file has a server named [`NAME`].
pub fn has_table(text: &str) -> Result<bool, NotEditable> {
    let table: toml::Table = text.parse().map_err(|error| NotEditable(format!("it is not TOML: {error}")))?;
    Ok(table.get("mcp_servers").and_then(|servers| servers.get(NAME)).is_some())
}

/// Returns nmem's server in a JSON file.
pub fn server(text: &str, key: &str) -> Option<Value> {
    lenient(text).ok()?.get(key)?.get(NAME).cloned()
}

/// Adds the server, or replaces the one named [`NAME`].
pub fn add_server(text: &str, key: &str, server: &Value) -> Result<String, NotEditable> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let value = lenient(text)?;
    once(text, key)?;
    if value[key][NAME] == *server {
        return Ok(text.to_string());
    }
    let root = tree(text)?;
    let top = root.object_value().ok_or_else(|| NotEditable("it is not a JSON object".into()))?;
    let shape = || NotEditable(format!("`{key}` has an unexpected shape"));
    let servers = top.object_value_or_create(key).ok_or_else(shape)?;
    match servers.get(NAME) {
        Some(known) => known.set_value(input(server)),
        None => drop(servers.append(NAME, input(server))),
    }
    Ok(root.to_string())
}

/// Removes the server, and the list if it has no other server.
pub fn remove_server(text: &str, key: &str) -> Result<String, NotEditable> {
    lenient(text)?;
    let root = tree(text)?;
    let list = root.object_value().and_then(|top| top.get(key));
    if let Some(list) = list
        && let Some(servers) = list.object_value()
        && let Some(ours) = servers.get(NAME)
    {
        match servers.properties().len() {
            1 => list.remove(),
            _ => ours.remove(),
        }
    }
    Ok(root.to_string())
}

/// Returns the value below keys of a JSON file.
pub fn value_at(text: &str, keys: &[&str]) -> Option<Value> {
    keys.iter().try_fold(lenient(text).ok()?, |value, key| value.get(key).cloned())
}

/// Sets the value below keys of a JSON file.
pub fn set_value(text: &str, keys: &[&str], value: &Value) -> Result<String, NotEditable> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    lenient(text)?;
    let root = tree(text)?;
    let mut object = root.object_value().ok_or_else(|| NotEditable("it is not a JSON object".into()))?;
    let Some((last, outer)) = keys.split_last() else { return Ok(text.to_string()) };
    for key in outer {
        let shape = || NotEditable(format!("`{key}` has an unexpected shape"));
        object = object.object_value_or_create(key).ok_or_else(shape)?;
    }
    match object.get(last) {
        Some(known) => known.set_value(input(value)),
        None => drop(object.append(last, input(value))),
    }
    Ok(root.to_string())
}

/// Removes the value below keys of a JSON file, and objects that hold nothing else.
pub fn remove_value(text: &str, keys: &[&str]) -> Result<String, NotEditable> {
    lenient(text)?;
    let root = tree(text)?;
    let mut found = Vec::new();
    let mut object = root.object_value();
    for key in keys {
        let Some(property) = object.as_ref().and_then(|object| object.get(key)) else { return Ok(text.to_string()) };
        let is_alone = object.as_ref().is_some_and(|object| object.properties().len() == 1);
        object = property.object_value();
        found.push((property, is_alone));
    }
    // The outermost property that holds nothing but the value.
    let from = found.iter().rposition(|(_, is_alone)| !is_alone).unwrap_or(0);
    if let Some((property, _)) = found.into_iter().nth(from) {
        property.remove();
    }
    Ok(root.to_string())
}

/// Goose's list of servers in a YAML file. It writes the file again itself, without comments, so nmem's entry is known by
/// its name.
const EXTENSIONS: &str = "extensions:";

/// Adds nmem's entry below `extensions`, or replaces it.
pub fn add_extension(text: &str, program: &str) -> Result<String, NotEditable> {
    let is_other = |line: &str| line.starts_with("extensions") && line.split('#').next().unwrap_or(line).trim_end() != EXTENSIONS;
    if text.lines().any(is_other) {
        return Err(NotEditable("its `extensions` is not written as a block".into()));
    }
    if extension(text).is_some_and(|entry| !entry.contains("- mcp\n")) {
        return Err(NotEditable(format!("it has an extension named {NAME}")));
    }
    let text = remove_extension(text);
    let at = text.lines().position(|line| line.starts_with(EXTENSIONS));
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let next = at.and_then(|at| lines[at + 1..].iter().find(|line| !line.trim().is_empty() && !line.trim().starts_with('#')));
    let own = next.map_or(0, |line| line.len() - line.trim_start().len());
    let indent = " ".repeat(if own == 0 { 2 } else { own });
    let fields = [
        "enabled: true",
        "type: stdio",
        "name: nmem",
        &format!("cmd: {}", Value::from(program)),
        "args:",
        "- mcp",
        "timeout: 300",
    ];
    let fields: String = fields.iter().map(|field| format!("{indent}{indent}{field}\n")).collect();
    let entry = format!("{indent}{NAME}:\n{fields}");
    let ends = lines.last().is_none_or(|line| line.ends_with('\n'));
    let with_key = format!("{}{EXTENSIONS}\n{entry}", if ends { "" } else { "\n" });
    match at {
        Some(at) if lines[at].ends_with('\n') => lines.insert(at + 1, &entry),
        Some(_) => return Ok(format!("{text}\n{entry}")),
        None => lines.push(&with_key),
    }
    Ok(lines.concat())
}

/// Returns nmem's entry below `extensions`.
pub fn extension(text: &str) -> Option<String> {
    let range = extension_lines(text)?;
    Some(text.split_inclusive('\n').skip(range.start).take(range.len()).collect())
}

/// Removes nmem's entry, and the list if it has no other.
pub fn remove_extension(text: &str) -> String {
    let Some(range) = extension_lines(text) else { return text.to_string() };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.drain(range.clone());
    let is_last = lines.get(range.start).is_none_or(|line| !line.starts_with([' ', '-', '#']));
    if is_last && lines[range.start - 1].trim_end() == EXTENSIONS {
        lines.remove(range.start - 1);
    }
    lines.concat()
}

/// The numbers of the lines of nmem's entry, from 0.
fn extension_lines(text: &str) -> Option<std::ops::Range<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let list = lines.iter().position(|line| line.starts_with(EXTENSIONS))?;
    let inside = |line: &&str| line.trim().is_empty() || line.starts_with([' ', '#']);
    let end = lines[list + 1..].iter().position(|line| !inside(line)).map_or(lines.len(), |at| list + 1 + at);
    let start = (list + 1..end).find(|at| lines[*at].trim_end() == format!("{}{NAME}:", &lines[*at][..indent(lines[*at])]))?;
    let deeper = |at: &usize| !lines[*at].trim().is_empty() && indent(lines[*at]) > indent(lines[start]);
    Some(start..(start + 1..end).take_while(deeper).last().map_or(start + 1, |last| last + 1))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => text.as_str().into(),
        Value::Null => CstInputValue::Null,
    }
}
/// A subscription to an event.
#[derive(Clone, Copy, Debug)]
pub struct Subscribed {
    pub event: &'static str,
    /// Tool names to match; `None` matches all, or does not apply.
    pub tools: Option<&'static str>,
    /// `record` or `context`.
    pub verb: &'static str,
    /// Seconds.
    pub timeout: u32,
}

/// Creates a subscription without a matcher; the timeout is in seconds.
pub const fn to(event: &'static str, verb: &'static str, timeout: u32) -> Subscribed {
    Subscribed { event, tools: None, verb, timeout }
}

/// The format of a hook in a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Groups with a matcher and a list of handlers. Timeouts in seconds.
    Nested,
    /// The same with timeouts in milliseconds, in a file that may have comments.
    NestedMillis,
    /// Handlers directly below the event, in a file with a version.
    Flat,
    /// A table of `[[hooks]]` for each event, in a TOML file; with a name for each if `named`.
    Toml { named: bool },
}

/// A file that only nmem writes.
#[derive(Clone, Copy, Debug)]
pub struct OwnFile {
    /// Below the agent's own folder.
    pub user: &'static str,
    /// Below the root of the worktree.
    pub project: &'static str,
    /// Its text. In `const NMEM = "nmem"`, the program's path takes the place of its name.
    pub text: &'static str,
}

/// The way to let an agent search memories without a permission prompt.
#[derive(Clone, Copy, Debug)]
pub enum Permission {
    /// Entries of a list in a JSON file below the agent's own folder.
    Listed { file: &'static str, list: [&'static str; 2], entries: &'static [&'static str] },
    /// A separate file.
    Own(OwnFile),
    /// Instructions for a person, because nmem cannot set the permission.
    ByHand(&'static str),
}

/// Location of an agent's list of MCP servers. A path is empty if nmem cannot write the file.
#[derive(Clone, Copy, Debug)]
pub enum McpServers {
    /// In an object of a JSON file, which may have comments.
    Json {
        /// Below the agent's own folder.
        user: &'static str,
        /// Below the root of the worktree.
        project: &'static str,
        key: &'static str,
        form: McpForm,
    },
    /// In tables of a TOML file.
    Toml { user: &'static str, project: &'static str },
}

/// The format of a server in a JSON file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpForm {
    /// `command` and `args`.
    Plain,
    /// The same with `type: stdio`.
    Stdio,
    /// With `type: local`, and all tools.
    Local,
    /// `command` is a list, with `type: local`.
    List,
}

impl McpForm {
    pub const ALL: [McpForm; 4] = [McpForm::Plain, McpForm::Stdio, McpForm::Local, McpForm::List];
}

/// The shell in which an agent runs hooks on Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowsShell {
    /// Git Bash.
    Bash,
    PowerShell,
    Cmd,
}

/// Data for installing an agent's hooks.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Programs on `PATH` that show that the agent is installed.
    pub programs: &'static [&'static str],
    /// The usual settings folder in the home folder.
    pub folder: Option<&'static str>,
    /// The settings file below the agent's own folder; empty if hooks are in a separate file.
    pub user: &'static str,
    /// The file that counts if that one is not there.
    pub or_user: Option<&'static str>,
    /// The same below the root of the worktree; empty if there is none.
    pub project: &'static str,
    pub shape: Shape,
    pub hooks: &'static [Subscribed],
    pub windows_shell: WindowsShell,
    /// Arguments after the program and the verb in a hook's command line.
    pub arguments: &'static str,
    /// Additional files.
    pub files: &'static [OwnFile],
    pub permission: Permission,
    /// Location of the agent's list of MCP servers.
    pub mcp: McpServers,
    /// The file with general instructions that the agent reads, below the root of the worktree.
    pub instructions: &'static str,
    /// Steps after the installation that only a person can do.
    pub afterwards: &'static [&'static str],
    /// The keys of the command for the status line in the settings file, from the outermost; empty if there is none.
    pub status_line: &'static [&'static str],
}

impl Setup {
    /// The number of hooks, as people read it. Without hooks in a settings file, one file is a plugin, more are scripts.
    pub fn hooks_text(&self) -> String {
        match (self.hooks.len(), self.files.len()) {
            (0, files @ 2..) => format!("{files} scripts"),
            (0, _) => "a plugin".to_string(),
            (hooks, _) => format!("{hooks} events"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn a_server_comes_and_goes_among_others_and_comments() {
        let text = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
        let added = add_server(text, "mcpServers", &server_of(McpForm::Plain, "/bin/nmem")).unwrap();
        assert!(added.contains("// mine") && added.contains("/bin/nmem"), "{added}");
        assert_eq!(add_server(&added, "mcpServers", &server_of(McpForm::Plain, "/bin/nmem")).unwrap(), added);
        let moved = add_server(&added, "mcpServers", &server_of(McpForm::Plain, "/opt/nmem")).unwrap();
        assert!(moved.contains("/opt/nmem") && !moved.contains("/bin/nmem"), "{moved}");
        assert_eq!(remove_server(&moved, "mcpServers").unwrap(), text);
        let alone = add_server("", "mcp", &server_of(McpForm::List, "nmem")).unwrap();
        assert_eq!(lenient(&remove_server(&alone, "mcp").unwrap()).unwrap(), json!({}));
        assert!(add_server("{\"mcp\": {}, \"mcp\": {}}", "mcp", &json!({})).is_err());
        assert!(add_server("{\"mcp\": 7}", "mcp", &json!({})).is_err() && add_server("[]", "mcp", &json!({})).is_err());
    }

    #[test]
    fn an_extension_comes_and_goes_among_others() {
        let first = "GOOSE_MODEL: m\nextensions:\n    developer:\n        enabled: true\n        type: builtin\nother: 1\n";
        for text in ["", "GOOSE_MODEL: m\n", first, "extensions: # mine\n  a:\n    cmd: x\n\n\n# end\n", "a: 1\nextensions:\n"] {
            let with = add_extension(text, "/bin/nmem").unwrap();
            assert_eq!(add_extension(&with, "/bin/nmem").unwrap(), with, "twice is once");
            let moved = add_extension(&with, "/opt/nmem").unwrap();
            assert!(moved.contains("cmd: \"/opt/nmem\"") && !moved.contains("/bin/nmem"), "{moved}");
            // A list that was there and empty is the only thing lost; the backup has it.
            assert_eq!(remove_extension(&moved), text.trim_end_matches("extensions:\n"), "{with}");
        }
        let with = add_extension(first, "/bin/nmem").unwrap();
        assert!(with.contains("extensions:\n    nmem:\n        enabled: true\n"), "{with}");
        for text in ["extensions: {}\n", "extensions: [a]\n", "extensions:\n  nmem:\n    type: sse\n"] {
            assert!(add_extension(text, "/bin/nmem").is_err(), "{text}");
        }
    }

    #[test]
    fn a_program_with_backslashes_and_quotes_is_a_string_of_toml() {
        let text = table(r#"C:\my "tools"\nmem.exe"#);
        let parsed: toml::Table = text.parse().unwrap();
        assert_eq!(parsed["mcp_servers"]["nmem"]["command"].as_str(), Some(r#"C:\my "tools"\nmem.exe"#));
        assert!(has_table(&text).unwrap() && !has_table("").unwrap() && has_table("[").is_err());
    }
}
