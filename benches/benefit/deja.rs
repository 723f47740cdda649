//! deja-vu on the same sessions, written as transcripts of Claude Code: its hooks, and its MCP tool.

use super::recorded::Recorded;
use super::world::World;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// deja-vu in a home of its own.
pub struct Deja {
    program: PathBuf,
    home: PathBuf,
    project: PathBuf,
}

impl Deja {
    /// `None` if `NMEM_BENCH_DEJA` names no program.
    pub fn new(world: &World) -> Option<Deja> {
        let program = std::env::var_os("NMEM_BENCH_DEJA").map(PathBuf::from).filter(|program| program.exists())?;
        let deja = Deja { program, home: world.home.join("deja"), project: world.project() };
        fs::create_dir_all(deja.folder()).unwrap();
        Some(deja)
    }

    fn folder(&self) -> PathBuf {
        self.home.join(".claude/projects").join(self.project.to_string_lossy().replace(['/', '.'], "-"))
    }

    fn add(&self, session: &Recorded) {
        fs::write(self.folder().join(format!("{}.jsonl", session.id)), transcript(session, &self.project)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs([("HOME", self.home.to_str().unwrap()), ("PATH", "/usr/bin:/bin")]);
        command.current_dir(&self.project).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn run(&self, args: &[&str], input: &Value) -> String {
        let mut child = self.command(args).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    }
}

/// The texts that sessions receive from deja-vu's hooks at the start and at the first prompt; `None` if the program is not
/// there.
pub fn texts(world: &World, sessions: &[Recorded], of: &[usize]) -> Option<Vec<String>> {
    let deja = Deja::new(world)?;
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
                deja.add(other);
                written[n] = true;
            }
        }
        deja.run(&["index", "--quiet"], &Value::Null);
        let (id, cwd) = (&session.id, &deja.project);
        let start = json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": id, "cwd": cwd});
        let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": id, "cwd": cwd,
            "prompt": session.first_prompt().unwrap_or_default()});
        all.push(format!("{}\n{}", text(deja.run(&["hook-context"], &start)), text(deja.run(&["hook-prompt"], &prompt))));
    }
    Some(all)
}

/// The answers of deja-vu's MCP tool `recall` to questions about all sessions; `None` if the program is not there.
pub fn answers<'q>(world: &World, sessions: &[Recorded], questions: impl Iterator<Item = &'q str>) -> Option<Vec<String>> {
    let deja = Deja::new(world)?;
    sessions.iter().for_each(|session| deja.add(session));
    deja.run(&["index", "--quiet"], &Value::Null);
    let mut child = deja.command(&["mcp"]).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut call = |id: usize, method: &str, params: Value| -> Value {
        writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["result"].take()
    };
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
    call(0, "initialize", client);
    let ask = |(id, question): (usize, &str)| {
        let answer = call(id + 1, "tools/call", json!({"name": "recall", "arguments": {"query": question}}));
        answer["content"][0]["text"].as_str().unwrap_or_default().to_string()
    };
    let all = questions.enumerate().map(ask).collect();
    drop((to, from));
    child.wait().unwrap();
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
