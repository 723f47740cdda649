//! Adds nmem's MCP server to an agent's list of servers and removes it, leaving everything else untouched.

use super::json_tree::{NotEditable, lenient, once, tree};
use super::setup::McpForm;
use jsonc_parser::cst::CstInputValue;
use serde_json::{Value, json};

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
pub fn add(text: &str, key: &str, server: &Value) -> Result<String, NotEditable> {
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
pub fn remove(text: &str, key: &str) -> Result<String, NotEditable> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_comes_and_goes_among_others_and_comments() {
        let text = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n";
        let added = add(text, "mcpServers", &server_of(McpForm::Plain, "/bin/nmem")).unwrap();
        assert!(added.contains("// mine") && added.contains("/bin/nmem"), "{added}");
        assert_eq!(add(&added, "mcpServers", &server_of(McpForm::Plain, "/bin/nmem")).unwrap(), added);
        let moved = add(&added, "mcpServers", &server_of(McpForm::Plain, "/opt/nmem")).unwrap();
        assert!(moved.contains("/opt/nmem") && !moved.contains("/bin/nmem"), "{moved}");
        assert_eq!(remove(&moved, "mcpServers").unwrap(), text);
        let alone = add("", "mcp", &server_of(McpForm::List, "nmem")).unwrap();
        assert_eq!(lenient(&remove(&alone, "mcp").unwrap()).unwrap(), json!({}));
        assert!(add("{\"mcp\": {}, \"mcp\": {}}", "mcp", &json!({})).is_err());
        assert!(add("{\"mcp\": 7}", "mcp", &json!({})).is_err() && add("[]", "mcp", &json!({})).is_err());
    }

    #[test]
    fn a_program_with_backslashes_and_quotes_is_a_string_of_toml() {
        let text = table(r#"C:\my "tools"\nmem.exe"#);
        let parsed: toml::Table = text.parse().unwrap();
        assert_eq!(parsed["mcp_servers"]["nmem"]["command"].as_str(), Some(r#"C:\my "tools"\nmem.exe"#));
        assert!(has_table(&text).unwrap() && !has_table("").unwrap() && has_table("[").is_err());
    }
}
