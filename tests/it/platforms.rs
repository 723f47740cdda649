//! The hooks of every agent, through the binary: what is stored, what is answered, and that no input breaks either. The
//! payloads of Codex, Gemini CLI and Copilot CLI were captured from the real programs; those of Cursor and VS Code follow
//! their documentation, those of OpenCode are what nmem's own plugin sends.

use crate::world::World;
use serde_json::{Value, json};
use std::fs;

const PLATFORMS: [&str; 6] = ["codex", "cursor", "vscode", "copilot-cli", "gemini", "opencode"];

/// The payloads of an agent that works in a world's project, by name.
fn payloads(world: &World, platform: &str) -> Vec<(String, Value)> {
    let file = format!("{}/tests/fixtures/hooks/{platform}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let text = text.replace("/home/dev/project", &world.project().display().to_string());
    let text = text.replace("/home/dev", &world.home().display().to_string());
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["name"].as_str().unwrap().to_string(), line["payload"].clone())
    };
    text.lines().map(line).collect()
}

/// One payload of an agent that works in a world's project.
pub fn payload(world: &World, platform: &str, name: &str) -> Value {
    let found = payloads(world, platform).into_iter().find(|(own, _)| own == name);
    found.unwrap_or_else(|| panic!("{platform} has no {name}")).1
}

/// Whether an agent accepts an answer: nothing, or one JSON object with keys that it knows.
fn is_accepted(platform: &str, answer: &str) -> bool {
    if answer.is_empty() {
        return true;
    }
    let Ok(Value::Object(answer)) = serde_json::from_str::<Value>(answer.trim_end()) else { return false };
    let keys: &[&str] = match platform {
        "cursor" => &["additional_context", "systemMessage", "hookSpecificOutput"],
        "copilot-cli" => &["additionalContext"],
        _ => &["systemMessage", "hookSpecificOutput"],
    };
    answer.keys().all(|key| keys.contains(&key.as_str()))
}

/// The rows that one payload leaves in a world where nothing else happened.
fn stored(platform: &str, name: &str, payload: &Value) -> String {
    let world = World::new();
    let payload: Value =
        serde_json::from_str(&payload.to_string().replace("$PROJECT", &world.project().display().to_string())).unwrap();
    let named = ["record", "--platform", platform];
    // OpenCode's plugin always names it; the others are recognised.
    let args = if platform == "opencode" { &named[..] } else { &named[..1] };
    let output = world.feed(args, payload.to_string().as_bytes());
    assert_eq!((output.stderr.as_str(), output.code), ("", Some(0)), "{platform} {name}");
    assert!(is_accepted(platform, &output.stdout), "{platform} {name}: {}", output.stdout);
    if !world.db().exists() {
        return "nothing".to_string();
    }
    let tool = "SELECT tool_name, kind || coalesce(' ' || command_kind, ''), coalesce(path, '-'), coalesce(content, '-'),
           CASE succeeded WHEN 1 THEN 'ok' WHEN 0 THEN 'failed' ELSE 'unknown' END, coalesce(outcome, '-'), coalesce(json_remove(metadata, '$.written'), '-') FROM tool_uses";
    let prompt = "SELECT source, kind, text FROM prompts";
    let session = "SELECT platform, trim(coalesce('start ' || start_source, '') || coalesce(' ended ' || end_reason, '')
           || coalesce(' stop ' || stop_reason, '') || coalesce(' tasks ' || tasks, '')) FROM sessions";
    let rows = [tool, prompt, session].map(|query| world.sql(query));
    rows.into_iter().filter(|rows| !rows.is_empty()).collect::<Vec<_>>().join(" ; ")
}

#[test]
fn every_payload_leaves_what_it_should() {
    let world = World::new();
    let project = world.project().display().to_string();
    let mut all = Vec::new();
    for platform in PLATFORMS {
        for (name, payload) in payloads(&world, platform) {
            let payload: Value = serde_json::from_str(&payload.to_string().replace(&project, "$PROJECT")).unwrap();
            all.push((platform, name, payload));
        }
    }
    // Each takes a process or two: a few at once.
    let rows: Vec<String> = std::thread::scope(|scope| {
        let one =
            |(platform, name, payload): &(&str, String, Value)| format!("{platform} {name}: {}", stored(platform, name, payload));
        let parts: Vec<_> =
            all.chunks(all.len().div_ceil(4)).map(|part| scope.spawn(move || part.iter().map(one).collect::<Vec<_>>())).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    insta::assert_snapshot!("payloads_of_all_platforms", rows.join("\n"));
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// All places in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(key, inside)| (key.replace('~', "~0").replace('/', "~1"), inside)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(n, inside)| (n.to_string(), inside)).collect(),
        _ => Vec::new(),
    };
    for (key, inside) in inside {
        let place = format!("{at}/{key}");
        places(inside, &place, found);
        found.push(place);
    }
}

/// A payload with one or two of its places changed, or its text cut.
fn mutated(payload: &Value, random: &mut Random) -> Vec<u8> {
    let mut payload = payload.clone();
    for _ in 0..=random.below(2) {
        let mut all = Vec::new();
        places(&payload, "", &mut all);
        let Some(place) = all.get(random.below(all.len())).and_then(|at| payload.pointer_mut(at)) else { continue };
        *place = match random.below(9) {
            0 => Value::Null,
            1 => json!(random.below(1 << 40)),
            2 => json!(-1.5e300),
            3 => json!([]),
            4 => json!({"": {"a": [null]}}),
            5 => json!("x".repeat(random.below(200_000))),
            6 => json!("\u{0}\u{1b}]52;c;x\u{7}\u{202e}<system-reminder>"),
            7 => json!(true),
            _ => json!(place.to_string()),
        };
    }
    let mut bytes = payload.to_string().into_bytes();
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len())),
        1 => drop(bytes.splice(0..0, *b"\xEF\xBB\xBF")),
        2 => {
            let at = random.below(bytes.len());
            bytes[at] = 0xff;
        }
        _ => {}
    }
    bytes
}

#[test]
fn two_hundred_changed_payloads_of_each_agent_end_with_0_and_an_answer_that_it_accepts() {
    std::thread::scope(|scope| {
        for platform in PLATFORMS {
            scope.spawn(move || {
                let world = World::new();
                let all = payloads(&world, platform);
                let mut random = Random(0x9e37_79b9_7f4a_7c15);
                for n in 0..200 {
                    let (name, payload) = &all[n % all.len()];
                    let bytes = mutated(payload, &mut random);
                    let verb = if name.to_lowercase().starts_with("sessionstart") { "context" } else { "record" };
                    let args = [verb, "--platform", platform];
                    let output = world.feed(if n % 2 == 0 { &args } else { &args[..1] }, &bytes);
                    // Without JSON on stdin, `context` shows a person what a session would receive.
                    let is_question = verb == "context" && bytes.trim_ascii().is_empty();
                    let said = String::from_utf8_lossy(&bytes[..bytes.len().min(600)]).into_owned();
                    assert_eq!(output.code, Some(0), "{platform} {name}: {}\n{said}", output.text());
                    assert!(output.stderr.is_empty() || is_question, "{platform} {name}: {}\n{said}", output.text());
                    let fits = PLATFORMS.iter().chain(&["claude-code"]).any(|any| is_accepted(any, &output.stdout));
                    assert!(fits || is_question, "{platform} {name}: {}\n{said}", output.text());
                }
            });
        }
    });
}

#[test]
fn hooks_in_claude_codes_settings_that_another_agent_runs_record_and_inject_once() {
    for (platform, own, others) in [
        (
            "cursor",
            ["sessionStart", "beforeSubmitPrompt", "postToolUse-Shell", "stop"],
            ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"],
        ),
        ("vscode", ["SessionStart", "UserPromptSubmit", "PostToolUse-run_in_terminal", "Stop"], [""; 4]),
        ("copilot-cli", ["SessionStart", "UserPromptSubmit", "PostToolUse-Bash", "Stop"], [""; 4]),
    ] {
        let world = World::new();
        world.nmem(&["remember", "Use tabs, not spaces", "--kind", "decision"]);
        let mut given = 0;
        for (name, other) in own.iter().zip(others) {
            let mut payload = payload(&world, platform, name);
            // Its own settings name the platform; Claude Code's do not.
            given += usize::from(
                world.feed(&["record", "--platform", platform], payload.to_string().as_bytes()).stdout.contains("tabs"),
            );
            if !other.is_empty() {
                payload["hook_event_name"] = json!(other);
            }
            let again = world.feed(&["record"], payload.to_string().as_bytes());
            assert!(is_accepted(platform, &again.stdout), "{}", again.text());
            given += usize::from(again.stdout.contains("tabs"));
        }
        assert_eq!(given, 1, "{platform}: injected once");
        let rows = world.sql("SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM prompts WHERE source = 'user'), (SELECT count(*) FROM tool_uses)");
        assert_eq!(rows, "1|1|1", "{platform}");
        assert_eq!(world.sql("SELECT DISTINCT platform FROM sessions"), platform);
    }
}

#[test]
fn a_decision_of_one_agent_reaches_the_next_ones_in_the_form_that_each_accepts() {
    for (platform, name, pointer) in [
        ("codex", "SessionStart-startup", "/hookSpecificOutput/additionalContext"),
        ("cursor", "sessionStart", "/additional_context"),
        ("vscode", "SessionStart", "/hookSpecificOutput/additionalContext"),
        ("copilot-cli", "SessionStart", "/additionalContext"),
        ("copilot-cli", "sessionStart-resume", "/additionalContext"),
        ("gemini", "SessionStart", "/hookSpecificOutput/additionalContext"),
        ("opencode", "SessionStart", "/hookSpecificOutput/additionalContext"),
    ] {
        let world = World::new();
        world.nmem(&["remember", "Use tabs, not spaces", "--kind", "decision"]);
        let payload = payload(&world, platform, name);
        let output = world.feed(&["context", "--platform", platform], payload.to_string().as_bytes());
        assert!(!output.stdout.is_empty(), "{platform} {name}: {}", output.text());
        let context = output.json().pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_string();
        assert!(context.contains("Use tabs, not spaces"), "{platform} {name}: {}", output.text());
    }
}

#[test]
fn codex_exit_codes_come_from_its_session_file() {
    let world = World::new();
    let mut failing = payload(&world, "codex", "PostToolUse-Bash-failing");
    let id = failing["tool_use_id"].as_str().unwrap().to_string();
    let ended = |code: i64| {
        let item = json!({"type": "CommandExecution", "id": id, "exit_code": code});
        json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}).to_string() + "\n"
    };
    let transcript = failing["transcript_path"].as_str().unwrap().replace(&world.folder.display().to_string(), "");
    world.write(transcript.trim_start_matches('/'), &ended(3));
    world.feed(&["record", "--platform", "codex"], failing.to_string().as_bytes());
    let outcome = "SELECT succeeded, metadata ->> '$.exit_code', metadata ->> '$.failed' FROM tool_uses ORDER BY id DESC LIMIT 1";
    assert_eq!(world.sql(outcome), "0|3|1");
    // A file elsewhere is not opened.
    world.write("elsewhere/rollout-1.jsonl", &ended(0));
    failing["transcript_path"] = json!(world.folder.join("elsewhere/rollout-1.jsonl"));
    failing["tool_use_id"] = json!("call_other");
    world.feed(&["record", "--platform", "codex"], failing.to_string().as_bytes());
    assert_eq!(world.sql(outcome), "1|-|-", "not known");
}

#[test]
fn personal_data_in_payloads_is_stored_nowhere() {
    let world = World::new();
    for (name, payload) in payloads(&world, "cursor") {
        assert!(payload["user_email"].is_string(), "{name}");
        world.feed(&["record"], payload.to_string().as_bytes());
    }
    assert!(world.count("SELECT count(*) FROM tool_uses") > 4);
    let holds = |bytes: &[u8]| bytes.windows(15).any(|window| window == b"someone.private");
    for (path, bytes) in world.all_bytes() {
        assert!(!holds(&bytes), "{}", path.display());
    }
}

#[test]
fn the_end_of_copilots_file_holds_the_closing_message_which_its_hook_lacks() {
    let world = World::new();
    let stop = payload(&world, "copilot-cli", "Stop");
    let said = json!({"type": "assistant.message", "data": {"content": "The greeting is friendlier.", "toolRequests": []}});
    let transcript = stop["transcript_path"].as_str().unwrap().replace(&world.folder.display().to_string(), "");
    world.write(transcript.trim_start_matches('/'), &format!("{said}\n"));
    world.feed(&["record"], payload(&world, "copilot-cli", "UserPromptSubmit").to_string().as_bytes());
    world.feed(&["record"], stop.to_string().as_bytes());
    assert_eq!(world.sql("SELECT text FROM prompts WHERE source = 'agent'"), "The greeting is friendlier.");
}

#[test]
fn what_an_agent_does_not_take_is_not_injected() {
    let world = World::new();
    world.typed(&["remember", "Never edit greet.py by hand", "--kind", "decision", "--file", "greet.py", "--pin"]);
    for (platform, start, name) in [
        ("cursor", "sessionStart", "preToolUse-Write"),
        ("gemini", "SessionStart", "BeforeTool-replace"),
        ("copilot-cli", "SessionStart", "PreToolUse-Edit.apply_patch"),
    ] {
        world.feed(&["context", "--platform", platform], payload(&world, platform, start).to_string().as_bytes());
        let output = world.feed(&["record", "--platform", platform], payload(&world, platform, name).to_string().as_bytes());
        assert_eq!(output.text(), "[exit 0]", "{platform}");
    }
    assert_eq!(world.count("SELECT count(*) FROM injections WHERE point = 'file'"), 0);
    world.feed(&["context", "--platform", "opencode"], payload(&world, "opencode", "SessionStart").to_string().as_bytes());
    let output =
        world.feed(&["record", "--platform", "opencode"], payload(&world, "opencode", "PreToolUse-edit").to_string().as_bytes());
    assert!(output.stdout.contains("by hand"), "{}", output.text());
}
