//! The hooks of deja-vu on the same sessions, written as transcripts of Claude Code.

use super::recorded::Recorded;
use super::world::World;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The texts that sessions receive from deja-vu's hooks at the start and at the first prompt; `None` if the program is not
/// there.
pub fn texts(world: &World, sessions: &[Recorded], of: &[usize]) -> Option<Vec<String>> {
    let program = std::env::var_os("NMEM_BENCH_DEJA").filter(|program| Path::new(program).exists())?;
    let home = world.home.join("deja");
    let project = world.project();
    let folder = home.join(".claude/projects").join(project.to_string_lossy().replace(['/', '.'], "-"));
    fs::create_dir_all(&folder).unwrap();
    let run = |args: &[&str], input: &Value| -> String {
        let mut child = Command::new(&program)
            .args(args)
            .env_clear()
            .envs([("HOME", home.to_str().unwrap()), ("PATH", "/usr/bin:/bin")])
            .current_dir(&project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    };
    let text = |answer: String| {
        let json: Value = serde_json::from_str(&answer).unwrap_or_default();
        json["hookSpecificOutput"]["additionalContext"].as_str().map_or(answer, String::from)
    };
    let mut written = vec![false; sessions.len()];
    let mut all = Vec::new();
    for at in of {
        let session = &sessions[*at];
        for (n, other) in sessions.iter().enumerate() {
            if other.end < session.start && !written[n] {
                fs::write(folder.join(format!("{}.jsonl", other.id)), transcript(other, &project)).unwrap();
                written[n] = true;
            }
        }
        run(&["index", "--quiet"], &Value::Null);
        let start = json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": session.id, "cwd": project});
        let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": session.id, "cwd": project,
            "prompt": session.first_prompt().unwrap_or_default()});
        all.push(format!("{}\n{}", text(run(&["hook-context"], &start)), text(run(&["hook-prompt"], &prompt))));
    }
    Some(all)
}

/// A session as Claude Code writes it.
fn transcript(session: &Recorded, project: &Path) -> String {
    let mut lines = Vec::new();
    let mut add = |event: &Value, kind: &str, content: Value| {
        let number = lines.len();
        lines.push(
            json!({"type": kind, "sessionId": session.id, "uuid": format!("{}-{number}", session.id), "timestamp": event["ts"],
                "cwd": project, "gitBranch": session.branch, "version": "2.1.0", "message": {"role": kind, "content": content}})
            .to_string(),
        );
    };
    for (number, event) in session.events.iter().enumerate() {
        let id = event["tool_use_id"].as_str().map_or_else(|| format!("toolu_{number}"), String::from);
        match event["event"].as_str() {
            Some("UserPromptSubmit") => add(event, "user", event["prompt"].clone()),
            Some(name @ ("PostToolUse" | "PostToolUseFailure")) => {
                let result = event["tool_response"].as_str().map_or_else(|| event["tool_response"].to_string(), String::from);
                let input = &event["tool_input"];
                add(event, "assistant", json!([{"type": "tool_use", "id": id, "name": event["tool_name"], "input": input}]));
                let is_error = name == "PostToolUseFailure";
                add(event, "user", json!([{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": is_error}]));
            }
            Some("Stop") => add(event, "assistant", json!([{"type": "text", "text": event["last_assistant_message"]}])),
            _ => {}
        }
    }
    let own = project.to_string_lossy();
    lines.iter().map(|line| line.replace("/srv/cli", &own).replace("/Users/dev/Code/agents-md-evaluator", &own) + "\n").collect()
}
