//! A home with a project, and real sessions that are sent through the hooks.

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder of the recorded projects.
const ROOTS: [&str; 2] = ["/srv/cli/", "/Users/dev/Code/agents-md-evaluator/"];

/// The program to measure: `NMEM_BENCH_BINARY`, or the one built with the bench.
pub fn binary() -> PathBuf {
    std::env::var_os("NMEM_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_nmem").into()).into()
}

/// A home with a project in it.
pub struct World {
    pub home: PathBuf,
}

impl World {
    pub fn new(name: &str) -> World {
        World::at(std::env::temp_dir().join(format!("nmem-bench-{}-{name}", std::process::id())))
    }

    /// A home at a path of one's choice, emptied first.
    pub fn at(home: PathBuf) -> World {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join("proj/.git/refs/heads")).unwrap();
        fs::write(home.join("proj/.git/config"), "[remote \"origin\"]\n\turl = https://example.org/dev/cli.git\n").unwrap();
        World { home }
    }

    pub fn project(&self) -> PathBuf {
        self.home.join("proj")
    }

    pub fn branch(&self, branch: &str) {
        fs::write(self.home.join("proj/.git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    }

    pub fn db(&self) -> PathBuf {
        self.home.join(".local/share/nmem/nmem.db")
    }

    /// Sends one event through the built binary, as a hook would; returns what it answers.
    pub fn hook(&self, session: &str, mut payload: Value, at: i64) -> String {
        payload["session_id"] = json!(session);
        payload["cwd"] = json!(self.project());
        let own = format!("{}/", self.project().display());
        let text = ROOTS.iter().fold(payload.to_string(), |text, root| text.replace(root, &own));
        let mut child = Command::new(binary())
            .arg("record")
            .env_clear()
            .envs([("HOME", self.home.to_str().unwrap()), ("PATH", "/usr/bin:/bin"), ("NMEM_NOW", &at.to_string())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success());
        String::from_utf8(done.stdout).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

pub fn millis(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// Sends one session: its start, its events and its end.
pub fn send(world: &World, folder: &Path, session: &Value) {
    send_with(world, folder, session, &mut |_| {});
}

/// The same with changes of events.
pub fn send_with(world: &World, folder: &Path, session: &Value, change: &mut dyn FnMut(&mut Value)) {
    let id = session["id"].as_str().unwrap();
    world.branch(session["branch"].as_str().unwrap());
    world.hook(id, json!({"hook_event_name": "SessionStart", "source": "startup"}), millis(&session["start"]) - 1000);
    for event in fs::read_to_string(folder.join(format!("sessions/{id}.jsonl"))).unwrap().lines() {
        let mut event: Value = serde_json::from_str(event).unwrap();
        let at = millis(&event["ts"]);
        event["hook_event_name"] = event["event"].take();
        change(&mut event);
        world.hook(id, event, at);
    }
    world.hook(id, json!({"hook_event_name": "SessionEnd", "reason": "other"}), millis(&session["end"]) + 1000);
}
