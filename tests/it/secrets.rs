//! No secret reaches the disk: not the database, its log, the spool or the error log.

use crate::world::World;
use serde_json::{Value, json};

/// Built from parts, so that no scanner of repositories takes this file for a leak.
fn secrets() -> Vec<String> {
    [
        ["ghp", "_x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"],
        ["AKIA", "Q3EGRT7LPZ5XWN4M"],
        ["sk-ant-", "api03-Zk4r7TqLw9Xv2Bn6Hy8Pd1Sf5Gj3Ma0C"],
        ["xoxb-", "1234567890-abcdefGHIJKL"],
        ["eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.Zm9vYmFyYmF6"],
    ]
    .map(|parts| parts.concat())
    .to_vec()
}

fn carrying(world: &World, text: &str) -> Vec<Value> {
    let with = |name: &str, path: &str, number: usize| {
        let mut payload = world.payload(name);
        *payload.pointer_mut(path).unwrap() = json!(text);
        if payload["tool_use_id"].is_string() {
            payload["tool_use_id"] = json!(format!("toolu_{number}"));
        }
        payload
    };
    vec![
        with("UserPromptSubmit", "/prompt", 0),
        with("PostToolUse-Bash", "/tool_input/command", 1),
        with("PostToolUse-Bash", "/tool_response/stdout", 2),
        with("PostToolUseFailure-Bash", "/error", 3),
        with("PostToolUse-Write-create", "/tool_input/content", 4),
        with("PostToolUse-Edit", "/tool_input/new_string", 5),
        with("PostToolUse-mcp__fake__echo", "/tool_input/text", 6),
        with("PostToolUse-Bash", "/tool_input/description", 7),
        with("PostToolUse-TaskCreate", "/tool_input/subject", 8),
        with("Stop", "/last_assistant_message", 9),
        with("SessionEnd-other", "/reason", 10),
    ]
}

fn leaks(world: &World, secret: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|w| w == secret.as_bytes());
    world.all_bytes().into_iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path.display().to_string()).collect()
}

#[test]
fn secrets_are_not_stored_wherever_they_stand() {
    for secret in secrets() {
        let world = World::new();
        for payload in carrying(&world, &format!("use {secret} for it, and password=hunter2!x")) {
            assert_eq!(world.feed(&["record"], payload.to_string().as_bytes()).text(), "[exit 0]");
        }
        assert_eq!(leaks(&world, &secret), [] as [String; 0]);
        assert_eq!(leaks(&world, "hunter2!x"), [] as [String; 0]);
        assert!(world.count("SELECT count(*) FROM prompts WHERE text LIKE '%[redacted:%'") >= 2);
    }
}

#[test]
fn secrets_are_not_spooled_or_logged_either() {
    let world = World::new();
    world.hook("UserPromptSubmit");
    let _lock = world.lock();
    let secret = &secrets()[0];
    for payload in carrying(&world, secret).into_iter().take(3) {
        world.feed(&["record"], payload.to_string().as_bytes());
    }
    world.feed(&["record", "--platform", secret], b"{}");
    assert!(world.data().join("nmem.db-spool").exists());
    assert_eq!(leaks(&world, secret), [] as [String; 0]);
}

#[test]
fn private_text_and_the_users_own_patterns_leave_no_trace() {
    let world = World::new();
    world.write("home/.config/nmem/config.toml", "redact = [\"ACME-[0-9]+\"]\n");
    world.hook_with("UserPromptSubmit", &[("/prompt", json!("do <private>call Anna Example</private> ACME-4711 now"))]);
    assert_eq!(world.sql("SELECT text FROM prompts"), "do [redacted:private] [redacted:own-pattern] now");
    assert_eq!(leaks(&world, "Anna"), [] as [String; 0]);
}

#[test]
fn a_prompt_that_begins_with_nomem_leaves_no_trace_nor_does_its_turn() {
    let world = World::new();
    let secret = "the merger with Example Corp";
    world.silently(&["UserPromptSubmit", "PostToolUse-Bash"]);
    let line = |id: &str| {
        let block = json!({"type": "thinking", "thinking": secret});
        let message = json!({"id": id, "model": "m", "usage": {"input_tokens": 7, "output_tokens": 1}, "content": [block]});
        format!("{}\n", json!({"type": "assistant", "message": message}))
    };
    let path = "home/.claude/projects/-p/session.jsonl";
    world.write(path, &line("m1"));
    let transcript = json!(world.folder.join(path));
    let id = world.payload("UserPromptSubmit")["session_id"].clone();
    let with = |name: &str, more: &[(&str, Value)]| {
        let mut changes = vec![("/session_id", id.clone()), ("/transcript_path", transcript.clone())];
        changes.extend(more.iter().cloned());
        world.hook_with(name, &changes)
    };
    with("UserPromptSubmit", &[("/prompt", json!(format!("  #nomem {secret}"))), ("/prompt_id", json!("p-2"))]);
    with("PostToolUse-Write-create", &[("/tool_input/content", json!(secret))]);
    with("PostToolUseFailure-Bash", &[("/error", json!(secret))]);
    with("SubagentStop", &[("/last_assistant_message", json!(secret))]);
    with("Stop", &[("/last_assistant_message", json!(secret))]);
    assert_eq!(world.sql("SELECT prompts, tool_uses, input_tokens FROM sessions"), "1|1|-");
    world.write(path, &(line("m1") + &line("m2")));
    with("UserPromptSubmit", &[("/prompt", json!("and now the tests")), ("/prompt_id", json!("p-3"))]);
    with("PostToolUse-Read", &[]);
    with("Stop", &[]);
    assert_eq!(world.sql("SELECT prompts, tool_uses, input_tokens FROM sessions"), "2|2|-");
    assert_eq!(leaks(&world, secret), [] as [String; 0]);
}

#[test]
fn contents_of_env_files_and_key_stores_are_not_stored_however_an_agent_meets_them() {
    let world = World::new();
    world.write("home/.config/nmem/config.toml", "ignore = [\"**/.env*\", \"*.private\", \"~/vault/**\"]\n");
    let secret = "colour=purple elephant";
    let path = |name: &str| json!(world.project().join(name));
    let send = |name: &str, id: usize, changes: &[(&str, Value)]| {
        let id = json!(format!("toolu_{id}"));
        let mut all = vec![("/tool_use_id", id)];
        all.extend(changes.iter().cloned());
        assert_eq!(world.hook_with(name, &all).text(), "[exit 0]", "{name}");
    };
    let out = |text: &str| ("/tool_response/stdout", json!(text));
    let command = |line: &str| ("/tool_input/command", json!(line));
    send("PostToolUse-Bash", 1, &[command("cat .env"), out(secret)]);
    send("PostToolUse-Bash", 2, &[command(&format!("echo '{secret}' >> config/.env.local")), out("")]);
    send("PostToolUse-Bash", 3, &[command("git diff"), out(&format!("diff --git a/.env b/.env\n+{secret}\n"))]);
    send("PostToolUse-Bash", 4, &[command("grep -rn colour ."), out(&format!("./.env:1:{secret}\n./a.rs:2:colour()\n"))]);
    send("PostToolUse-Bash", 5, &[command("cat ~/vault/notes.txt | head"), out(secret)]);
    send("PostToolUse-Bash", 6, &[command("openssl rsa -in keys/server.key"), out(secret)]);
    send("PostToolUseFailure-Bash", 7, &[command("source .env"), ("/error", json!(format!("Exit code 1\n{secret}: not found")))]);
    send("PostToolUse-Write-create", 8, &[("/tool_input/file_path", path("x.private")), ("/tool_input/content", json!(secret))]);
    let hunk = json!([{"oldStart": 1, "newStart": 1, "lines": [format!("+{secret}")]}]);
    send("PostToolUse-Edit", 9, &[("/tool_input/file_path", path(".env")), ("/tool_response/structuredPatch", hunk)]);
    send("PostToolUse-mcp__fake__echo", 10, &[("/tool_input", json!({"path": path(".env"), "text": secret}))]);
    send("PostToolUse-Grep-content", 11, &[("/tool_response/content", json!(format!(".env:3:{secret}")))]);
    send("PostToolUse-Read", 12, &[("/tool_input/file_path", path(".env"))]);
    let kept = world.sql("SELECT seq, path, content, input, outcome, metadata FROM tool_uses");
    assert_eq!(leaks(&world, "purple"), [] as [String; 0], "{kept}");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 12, "that it happened is known");
    assert_eq!(world.sql("SELECT outcome FROM tool_uses WHERE seq = 4"), "[contents not recorded]⏎./a.rs:2:colour()⏎");
    assert_eq!(world.sql("SELECT content, outcome FROM tool_uses WHERE seq = 1"), "cat .env|[contents not recorded]");
    assert_eq!(world.sql("SELECT path FROM tool_uses WHERE seq = 9"), ".env");
}

#[test]
fn a_muted_turn_is_known_however_it_begins_and_what_comes_late_of_it_too() {
    for begin in ["#nomem ", "#NoMem ", "\u{feff}#nomem", "[Image #1] #nomem", "<ide_opened_file>x</ide_opened_file>\n#nomem"] {
        let world = World::new();
        let with = |name: &str, more: &[(&str, Value)]| {
            let mut changes = vec![("/session_id", json!("the-session"))];
            changes.extend(more.iter().cloned());
            assert_eq!(world.hook_with(name, &changes).text(), "[exit 0]");
        };
        with("UserPromptSubmit", &[("/prompt", json!(format!("{begin} quince"))), ("/prompt_id", json!("p-1"))]);
        with("UserPromptSubmit", &[("/prompt", json!("next")), ("/prompt_id", json!("p-2"))]);
        with("PostToolUse-Bash", &[("/prompt_id", json!("p-1")), ("/tool_response/stdout", json!("quince"))]);
        with("SubagentStop", &[("/prompt_id", json!("p-1")), ("/last_assistant_message", json!("quince"))]);
        with("PostToolUse-Read", &[("/prompt_id", json!("p-2"))]);
        assert_eq!(leaks(&world, "quince"), [] as [String; 0], "{begin}");
        assert_eq!(world.sql("SELECT prompts, tool_uses FROM sessions"), "1|1");
    }
}
