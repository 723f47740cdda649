//! Several agents on one project: one memory, in which each is named.

use crate::world::World;
use serde_json::{Value, json};

/// Sends an event of an agent in this world's project.
fn hook(world: &World, platform: &str, event: &str, session: &str, more: Value) -> String {
    let mut payload = json!({"hook_event_name": event, "session_id": session, "cwd": world.project(), "agent": platform});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let verb = if event == "SessionStart" { "context" } else { "record" };
    let output = world.feed(&[verb, "--platform", platform], payload.to_string().as_bytes());
    assert_eq!((output.stderr.as_str(), output.code), ("", Some(0)));
    output.stdout
}

fn start(world: &World, platform: &str, session: &str) -> String {
    let answer = hook(world, platform, "SessionStart", session, json!({"source": "startup"}));
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    answer.pointer("/hookSpecificOutput/additionalContext").and_then(Value::as_str).unwrap_or_default().to_string()
}

/// A turn of Codex that edits a file and explains a choice.
fn codex_works(world: &mut World) {
    start(world, "codex", "codex-1");
    hook(
        world,
        "codex",
        "UserPromptSubmit",
        "codex-1",
        json!({"turn_id": "t1", "prompt": "Cache the parsed config. Never read it twice in one request."}),
    );
    world.minutes_later(1);
    let patch = "*** Begin Patch\n*** Update File: src/config.rs\n@@\n-a\n+b\n*** End Patch";
    let edit = json!({"turn_id": "t1", "tool_name": "apply_patch", "tool_use_id": "c1", "tool_input": {"command": patch}, "tool_response": "Exit code: 0\nOutput:\nSuccess."});
    hook(world, "codex", "PostToolUse", "codex-1", edit);
    world.minutes_later(1);
}

fn codex_answers(world: &mut World) {
    let said = "The config is cached now. I chose a OnceLock because the config never changes while the server runs.";
    hook(world, "codex", "Stop", "codex-1", json!({"turn_id": "t1", "last_assistant_message": said}));
    world.minutes_later(1);
}

#[test]
fn a_session_that_is_at_work_in_another_agent_is_shown_as_such() {
    let mut world = World::new();
    codex_works(&mut world);
    let given = start(&world, "gemini", "gemini-1");
    assert!(given.contains("Active right now in another session, 2026-11-21 09:00, 1 min, in Codex:"), "{given}");
    codex_answers(&mut world);
    hook(&world, "codex", "SessionEnd", "codex-1", json!({"reason": "other"}));
    world.minutes_later(1);
    let given = start(&world, "claude-code", "claude-1");
    assert!(!given.contains("Active right now"), "{given}");
    assert!(given.contains("Last session, 2026-11-21 09:00, 3 min, in Codex:"), "{given}");
    let own = start(&world, "codex", "codex-2");
    assert!(own.contains("Last session, 2026-11-21 09:00, 3 min:"), "its own sessions need no name: {own}");
}

#[test]
fn what_an_agent_said_is_shown_with_its_name() {
    let mut world = World::new();
    codex_works(&mut world);
    codex_answers(&mut world);
    let given = start(&world, "opencode", "opencode-1");
    assert!(given.contains("the user: \"Never read it twice in one request\""), "{given}");
    let all = world.nmem(&["search", "OnceLock", "--json"]).stdout;
    assert!(all.contains("OnceLock"), "{all}");
    let listed = world.nmem(&["context", "--query", "which cache holds the config"]).text();
    assert!(!listed.contains("the agent"), "{listed}");
}

#[test]
fn units_of_several_agents_are_one_list_that_names_them() {
    let mut world = World::new();
    codex_works(&mut world);
    codex_answers(&mut world);
    let alone = world.nmem(&["units"]).text();
    assert!(!alone.contains("Codex"), "of one agent, its name says nothing: {alone}");
    start(&world, "opencode", "opencode-1");
    hook(
        &world,
        "opencode",
        "UserPromptSubmit",
        "opencode-1",
        json!({"prompt_id": "m1", "prompt": "Add a test for the cached config"}),
    );
    let edit = json!({"tool_name": "write", "tool_use_id": "o1", "tool_input": {"filePath": world.project().join("tests/config.rs"), "content": "x"}, "tool_response": {"output": "ok"}});
    hook(&world, "opencode", "PostToolUse", "opencode-1", edit);
    hook(&world, "opencode", "Stop", "opencode-1", json!({"last_assistant_message": "The test is there."}));
    let units = world.nmem(&["units"]).text();
    assert!(units.contains("Codex") && units.contains("OpenCode"), "{units}");
    let platforms: Vec<Value> = world.nmem(&["units", "--json"]).lines().iter().map(|unit| unit["platform"].clone()).collect();
    assert_eq!(platforms, ["opencode", "codex"]);
    assert_eq!(
        world.nmem(&["search", "config", "--platform", "codex", "--json"]).lines().len(),
        world.nmem(&["search", "config", "--platform", "codex", "--limit", "0", "--json"]).lines().len()
    );
}

#[test]
fn decisions_of_a_person_become_markdown_and_those_of_agents_do_not() {
    let mut world = World::new();
    codex_works(&mut world);
    codex_answers(&mut world);
    insta::assert_snapshot!(world.nmem(&["export", "--format", "agents"]).text(), @"
    ## Decisions in this project

    - Never read it twice in one request (the user, 2026-11-21)
    [exit 0]
    ");
    world.nmem(&["export", "decisions.md", "--format", "agents"]);
    assert!(world.read("project/decisions.md").contains("Never read it twice"));
    let again = world.nmem(&["export", "decisions.md", "--format", "agents"]);
    assert_eq!(again.code, Some(2), "{}", again.text());
}
