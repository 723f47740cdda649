//! OpenCode's plugin in its second generation, which no program on npm has yet: a script plays it. Needs node.

use crate::world::World;
use serde_json::Value;
use std::process::Command;

#[test]
fn the_plugin_reports_to_nmem_and_gives_the_next_session_what_was_decided() {
    if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("PASSED OVER: there is no node here, so OpenCode's plugin was not tried");
        return;
    }
    let world = World::new();
    world.nmem(&["install", "opencode"]);
    // As an ES module, whatever node makes of `.js`.
    let plugin = world.folder.join("nmem.mjs");
    std::fs::copy(world.home().join(".config/opencode/plugins/nmem.js"), &plugin).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/opencode_2.mjs");
    let mut command = world.program("node", &[script, &plugin.display().to_string(), &world.project().display().to_string()]);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let output = world.finish(command.spawn().unwrap());
    assert_eq!(output.code, Some(0), "{}", output.text());
    let system: Vec<Value> = serde_json::from_str(output.stdout.trim()).unwrap();
    assert_eq!(system.len(), 2, "one block, however often it is asked for: {}", output.text());
    assert!(system[1].as_str().unwrap().contains("Always use tabs, never spaces"), "{}", output.text());
    let tools = world.sql("SELECT tool_name, kind, coalesce(path, content), succeeded FROM tool_uses ORDER BY id");
    assert_eq!(tools, "shell|command|exit 3|0\nedit|edit|a.py|1\nread|read|none|0");
    let said = world.sql("SELECT source, text FROM prompts ORDER BY id");
    assert_eq!(said, "user|Always use tabs, never spaces\nagent|Tabs it is.\nuser|Which indentation?");
    assert_eq!(world.sql("SELECT agent_session_id, end_reason FROM sessions ORDER BY id"), "s1|other\ns2|other");
}
