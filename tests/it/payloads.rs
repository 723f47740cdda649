//! Every payload that was captured from the real program goes through the binary: what of it is stored.

use crate::world::{FIXTURES, World};
use std::fs;

fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(FIXTURES)
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_string_lossy().strip_suffix(".json").map(String::from))
        .collect();
    names.sort();
    assert!(names.len() > 60, "fixtures are missing");
    names
}

/// The rows that one payload leaves, in a world where nothing else happened.
fn stored(name: &str) -> String {
    let world = World::new();
    let output = world.feed(&["record"], world.payload(name).to_string().as_bytes());
    assert_eq!((output.stderr.as_str(), output.code), ("", Some(0)), "{name}");
    assert_eq!(
        !output.stdout.is_empty(),
        ["startup", "clear", "resume"].iter().any(|source| name.starts_with(&format!("SessionStart-{source}"))),
        "{name}"
    );
    if !world.db().exists() {
        return "nothing".to_string();
    }
    let tool = world.sql(
        "SELECT kind || coalesce(' ' || command_kind, ''), coalesce(path, '-'), coalesce(content, '-'),
           CASE succeeded WHEN 1 THEN 'ok' WHEN 0 THEN 'failed' ELSE 'unknown' END, coalesce(outcome, '-'), coalesce(json_remove(metadata, '$.written'), '-') FROM tool_uses",
    );
    let prompt = world.sql("SELECT source, kind, text FROM prompts");
    let session = world.sql(
        "SELECT trim(coalesce('start ' || start_source, '') || coalesce(' ended ' || end_reason, '') || coalesce(' stop ' || stop_reason, '')
           || coalesce(' on ' || start_branch, '') || coalesce(' tasks ' || tasks, '')) FROM sessions",
    );
    let rows: Vec<String> = [tool, prompt, session].into_iter().filter(|t| !t.is_empty()).collect();
    if rows.is_empty() { "no row".into() } else { rows.join(" ; ") }
}

#[test]
fn every_captured_payload_leaves_what_it_should() {
    let names = names();
    // Each takes a process or two: a few at once.
    let rows: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(names.len().div_ceil(4))
            .map(|part| scope.spawn(|| part.iter().map(|n| format!("{n}: {}", stored(n))).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|p| p.join().unwrap()).collect()
    });
    insta::assert_snapshot!(rows.join("\n"), @r#"
    InstructionsLoaded: nothing
    MessageDisplay: nothing
    Notification-agent_needs_input-interactive: nothing
    Notification-permission_prompt-interactive: nothing
    PermissionRequest-Bash: nothing
    PermissionRequest-Bash-interactive: nothing
    PostCompact-auto: nothing
    PostCompact-manual: nothing
    PostToolBatch: nothing
    PostToolUse-Agent: delegate|-|Small helper|ok|Sub agent finished.|{"description":"Small helper","subagent_type":"general-purpose","spawned_agent":"ac2b459f1fcacac62","agent_tokens":3196,"duration_ms":306}
    PostToolUse-Bash: command other|-|echo hi|ok|hi|{"description":"Greet","duration_ms":17}
    PostToolUse-Bash-background: command other|-|sleep 1; echo bg|unknown|-|{"description":"Background","background":"b6cv5yuoc","duration_ms":3}
    PostToolUse-Bash-interactive: command other|-|echo short|ok|short|{"description":"Short","duration_ms":26}
    PostToolUse-Bash-subagent: command other|-|echo from-sub|ok|from-sub|{"description":"Sub greet","duration_ms":4,"agent_id":"ac2b459f1fcacac62"}
    PostToolUse-Edit: edit|notes.txt|notes.txt|ok|-|{"lines_added":1,"lines_removed":1,"duration_ms":3}
    PostToolUse-Glob: search|.|**/*.txt|ok|notes.txt|{"results":1,"duration_ms":5}
    PostToolUse-Grep-content: search|.|alpha|ok|notes.txt:1:alpha|{"results":1,"duration_ms":8}
    PostToolUse-Grep-files_with_matches: search|.|alpha|ok|notes.txt|{"results":1,"duration_ms":17}
    PostToolUse-Read: read|notes.txt|notes.txt|ok|3 lines from 1 of 3|{"duration_ms":3}
    PostToolUse-Skill: nothing
    PostToolUse-TaskCreate: other|-|Check|ok|{"task":{"description":"Check it","id":"1","subject":"Check"}}|{"description":"Check it","duration_ms":20} ; tasks [{"id":"1","subject":"Check","status":"pending"}]
    PostToolUse-WebSearch: fetch|-|rust sqlite|ok|No scenario.|{"results":0,"duration_ms":6}
    PostToolUse-Write-create: write|notes.txt|notes.txt|ok|create|{"lines_added":2,"duration_ms":6}
    PostToolUse-Write-update: write|notes.txt|notes.txt|ok|update|{"lines_added":1,"lines_removed":1,"duration_ms":2}
    PostToolUse-mcp__fake__echo: mcp|-|{"text":"hello mcp"}|ok|echo:hello mcp|{"duration_ms":4}
    PostToolUseFailure-Bash: command other|-|echo oops >&2; exit 3|failed|-|{"description":"Fail on purpose","failed":true,"response":"Exit code 3\noops","exit_code":3,"duration_ms":5}
    PostToolUseFailure-Bash-subagent: command other|-|false|failed|-|{"description":"Sub fail","failed":true,"response":"Exit code 1","exit_code":1,"duration_ms":5,"agent_id":"ac2b459f1fcacac62"}
    PostToolUseFailure-Read: read|missing.txt|missing.txt|failed|-|{"failed":true,"response":"File does not exist. Note: your current working directory is $WORLD/project.","duration_ms":2}
    PostToolUseFailure-WebFetch: fetch|-|http://127.0.0.1:18765/page|failed|-|{"failed":true,"response":"Unable to verify if domain 127.0.0.1 is safe to fetch. This may be due to network restrictions or enterprise security policies blocking claude.ai.","duration_ms":8}
    PostToolUseFailure-mcp__fake__fail: mcp|-|{"text":"boom"}|failed|-|{"failed":true,"response":"echo:boom","duration_ms":4}
    PreCompact-auto: no row
    PreCompact-manual: no row
    PreToolUse-Agent: nothing
    PreToolUse-Bash: nothing
    PreToolUse-Bash-interactive: nothing
    PreToolUse-Bash-subagent: nothing
    PreToolUse-Edit: nothing
    PreToolUse-Glob: nothing
    PreToolUse-Grep: nothing
    PreToolUse-Read: nothing
    PreToolUse-Skill: nothing
    PreToolUse-TaskCreate: nothing
    PreToolUse-WebFetch: nothing
    PreToolUse-WebSearch: nothing
    PreToolUse-Write: nothing
    PreToolUse-mcp__fake__echo: nothing
    PreToolUse-mcp__fake__fail: nothing
    SessionEnd-clear: ended clear
    SessionEnd-clear-interactive: ended clear
    SessionEnd-other: ended other
    SessionEnd-prompt_input_exit-interactive: ended prompt_input_exit
    SessionStart-clear: start clear on main
    SessionStart-clear-interactive: start clear on main
    SessionStart-compact: start compact on main
    SessionStart-fork: start fork on main
    SessionStart-resume: start resume on main
    SessionStart-startup: start startup on main
    SessionStart-startup-interactive: start startup on main
    Setup-init: nothing
    Stop: agent|closing|All steps are done.
    Stop-background_tasks: agent|closing|All steps are done.
    Stop-interactive: agent|closing|Short answer done.
    Stop-stop_hook_active: agent|closing|Just text.
    StopFailure: stop error: unknown
    SubagentStart: nothing
    SubagentStop: agent|closing|Sub agent finished.
    SubagentStop-compaction_internal: nothing
    TaskCreated: nothing
    UserPromptExpansion: nothing
    UserPromptSubmit: user|prompt|SCENARIO:MAIN please
    UserPromptSubmit-interactive: user|prompt|SCENARIO:SHORT hello
    UserPromptSubmit-slash: user|prompt|/demo SCENARIO:TEXT
    UserPromptSubmit-task_notification: no row
    "#);
}

#[test]
fn every_captured_payload_delivered_twice_is_stored_once() {
    let world = World::new();
    for _ in 0..2 {
        for name in names() {
            world.feed(&["record"], world.payload(&name).to_string().as_bytes());
        }
    }
    let twice = world.sql("SELECT session_id, tool_use_id, count(*) FROM tool_uses GROUP BY 1, 2 HAVING count(*) > 1");
    assert_eq!(twice, "");
    let prompts =
        world.sql("SELECT session_id, platform_prompt_id, text, count(*) FROM prompts GROUP BY 1, 2, 3 HAVING count(*) > 1");
    assert_eq!(prompts, "");
    let gaps = world.sql("SELECT s.id FROM sessions s WHERE tool_uses <> (SELECT count(*) FROM tool_uses t WHERE t.session_id = s.id) OR tool_uses <> coalesce((SELECT max(seq) FROM tool_uses t WHERE t.session_id = s.id), 0)");
    assert_eq!(gaps, "");
}
