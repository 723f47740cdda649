//! Recorded sessions of four projects: played through the hooks as they happened, with a copy of the database from before
//! each.

use super::world::{World, millis};
use nmem::distil::notes;
use nmem::model::Files;
use nmem::store::{PERSON_WAIT, Store};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The sets, and their folders.
pub const SETS: [(&str, &str); 4] =
    [("recall", "recall"), ("recall-2", "recall-2"), ("safecast", "projects/safecast"), ("skills", "projects/skills")];
/// A recorded session.
pub struct Recorded {
    pub id: String,
    pub branch: String,
    pub edited: HashSet<String>,
    pub start: i64,
    pub end: i64,
    pub events: Vec<Value>,
}

impl Recorded {
    pub fn first_prompt(&self) -> Option<&str> {
        self.events.iter().find(|event| event["event"] == "UserPromptSubmit")?["prompt"].as_str()
    }
}

/// The sessions of a set in time order; `None` if there is no such set.
pub fn recorded(folder: &Path) -> Option<Vec<Recorded>> {
    let data: Value = serde_json::from_str(&fs::read_to_string(folder.join("queries.json")).ok()?).unwrap();
    let of = |session: &Value| {
        let id = session["id"].as_str().unwrap().to_string();
        let events = fs::read_to_string(folder.join(format!("sessions/{id}.jsonl"))).unwrap();
        Recorded {
            branch: session["branch"].as_str().unwrap().into(),
            edited: session["edited"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().into()).collect(),
            start: millis(&session["start"]),
            end: millis(&session["end"]),
            events: events.lines().map(|event| serde_json::from_str(event).unwrap()).collect(),
            id,
        }
    };
    let mut sessions: Vec<Recorded> = data["sessions"].as_array().unwrap().iter().map(of).collect();
    sessions.sort_by_key(|session| session.start);
    Some(sessions)
}

/// Plays all sessions at once, as they happened; keeps the database before each start.
pub fn play(world: &World, sessions: &[Recorded], keep: &Path) {
    fs::create_dir_all(keep).unwrap();
    let mut all: Vec<(i64, usize, Value)> = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        all.push((session.start - 1000, at, json!({"event": "SessionStart", "source": "startup"})));
        all.extend(session.events.iter().map(|event| (millis(&event["ts"]), at, event.clone())));
        all.push((session.end + 1000, at, json!({"event": "SessionEnd", "reason": "other"})));
    }
    all.sort_by_key(|event| event.0);
    for (at, of, mut event) in all {
        let session = &sessions[of];
        event["hook_event_name"] = event["event"].take();
        if event["hook_event_name"] == "SessionStart" && world.db().exists() {
            Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap().checkpoint();
            fs::copy(world.db(), keep.join(format!("{}.db", session.id))).unwrap();
        }
        world.branch(&session.branch);
        world.hook(&session.id, event, at);
    }
}

/// Puts the copy from before a session's start in place.
pub fn restore(world: &World, session: &Recorded, kept: &Path) {
    fs::create_dir_all(world.db().parent().unwrap()).unwrap();
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(PathBuf::from(format!("{}{end}", world.db().display())));
    }
    let copy = kept.join(format!("{}.db", session.id));
    if copy.exists() {
        fs::copy(copy, world.db()).unwrap();
    }
    world.branch(&session.branch);
}

/// The context in a hook's answer, without the request for the agent's notes.
pub fn context(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    context.replace(notes::REQUEST, "").trim().to_string()
}
