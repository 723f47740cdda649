//! Is more worth remembering remembered with a model than by rules, in how many bytes (`NMEM_BENCH_DATA`, default
//! `../shared/bench`)?
//!
//! `cargo bench --bench model`: sends labelled sessions of four projects through the hooks and distils each with recorded
//! answers to its requests, one after the other, since a request shows what was recorded before; a server on loopback gives
//! them. Scores memories and titles as the bench of facts does, beside those of the rules: by project, in the mean, in the
//! worst. A third of the answers was written by readers in the role of a small, hurried model ("small"). An answer is
//! bound to its request by a hash; the bench fails if one is stale.
//!
//! Twenty sessions are also recorded with notes that readers wrote as the agent, turn by turn (`notes/`), and scored by
//! rules and notes.
//!
//! `-- --write FOLDER` writes the first request of each session that has no answer yet (`NAME-HASH.ROLE.txt`), `-- --record
//! FOLDER` stores the answers to those (`NAME-HASH.answer`) and drops answers that nothing asks for any more, `-- --only
//! PREFIX` takes some sessions, `-- --partly` those whose requests are all answered, `-- --show NAME` prints what is
//! remembered of a session. `NMEM_BENCH_BINARY`
//! names another build to measure. The last line is one JSON object.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

#[expect(dead_code, reason = "the bench of facts uses the rest")]
#[path = "../facts/projects.rs"]
mod projects;
#[path = "../facts/score.rs"]
#[expect(dead_code, reason = "the bench of facts uses the rest")]
mod score;
#[path = "../../tests/it/world/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod server;
#[path = "../facts/stored.rs"]
mod stored;
#[path = "../recall/world.rs"]
#[expect(dead_code, reason = "the other benches use the rest")]
mod world;

use nmem::model::Files;
use nmem::store::{PERSON_WAIT, Store};
use projects::{PROJECTS, Project};
use score::{Kept, Labels, Named, score};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use server::{RenderedQuestion, Reply, Server};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use world::{World, binary, millis, send_with};

const ANSWERS: &str = "benches/model/answers";
const NOTES: &str = "benches/model/notes";
/// Every third session is answered in the role of a small model.
const SMALL: usize = 3;

/// An answer, and the request that it answers.
#[derive(Clone, Deserialize, Serialize)]
struct RecordedAnswer {
    /// SHA-256 of the request's text.
    request: String,
    answer: String,
}

fn main() {
    score::check();
    assert_ne!(hash("a request"), hash("another request"));
    let args: Vec<String> = std::env::args().collect();
    let given = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let data = std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let mut projects = Project::all(&data);
    if projects.len() < PROJECTS.len() {
        println!("there is no {}: nothing was measured", data.join(PROJECTS[0].2).display());
        println!("{}", json!({"bench": "model", "measured": false}));
        return;
    }
    let names = projects.iter().flat_map(|project| project.labels.keys());
    let small: Vec<&String> = names.clone().step_by(SMALL).collect();
    let (mut before, mut after, mut calls) = (Remembered::default(), Remembered::default(), 0);
    // Turns with notes, and notes.
    let (mut noted, mut written) = (Remembered::default(), (0, 0));
    let mut unfinished: Vec<String> = Vec::new();
    for project in &projects {
        let by_id = project.by_id();
        for name in project.labels.keys().filter(|name| given("--only").is_none_or(|only| name.starts_with(only.as_str()))) {
            let session = Session::record(name, &project.sessions, &by_id[name], &Notes::new());
            before.add(name, &session);
            let mut answers = recorded(name);
            let (unanswered, answered) = session.distil(&answers);
            let file = |folder: &str, request: &str, ending: &str| {
                Path::new(folder).join(format!("{name}-{}.{ending}", &hash(request)[..8]))
            };
            if let Some(from) = given("--record") {
                match &unanswered {
                    Some(request) => {
                        if let Ok(answer) = fs::read_to_string(file(from, request, "answer")) {
                            answers.push(RecordedAnswer { request: hash(request), answer });
                        }
                    }
                    // Requests change with the rules, and answers to old ones are dropped.
                    None => answers.retain(|recorded| answered.contains(&recorded.request)),
                }
                if !answers.is_empty() {
                    fs::write(recorded_at(name), serde_json::to_string_pretty(&answers).unwrap() + "\n").unwrap();
                }
            } else if let (Some(request), Some(to)) = (&unanswered, given("--write")) {
                fs::create_dir_all(to).unwrap();
                let role = if small.contains(&name) { "small" } else { "mid" };
                fs::write(file(to, request, &format!("{role}.txt")), request).unwrap();
            } else if args.iter().any(|arg| arg == "--partly") {
                unfinished.extend(unanswered.map(|_| name.clone()));
            } else {
                assert!(unanswered.is_none(), "{name}: an answer is stale or missing; its request has changed");
            }
            calls += answers.len();
            after.add(name, &session);
            if let Ok(notes) = fs::read_to_string(Path::new(NOTES).join(format!("{name}.json"))) {
                drop(session);
                let notes: Notes = serde_json::from_str(&notes).unwrap();
                noted.add(name, &Session::record(name, &project.sessions, &by_id[name], &notes));
                written.0 += notes.len();
                written.1 += notes.values().map(Vec::len).sum::<usize>();
            }
            if given("--show").is_some_and(|shown| shown == name || shown == "all") {
                after.show(name, &project.labels[name]);
            }
        }
    }
    if given("--write").or(given("--record")).is_none() {
        let small: Vec<String> = small.into_iter().cloned().collect();
        let is_whole = |name: &String| after.kept.contains_key(name) && !unfinished.contains(name);
        projects.iter_mut().for_each(|project| project.labels.retain(|name, _| is_whole(name)));
        println!("{calls} answers");
        let mut table = report(&projects, &small, calls, [("rules", &before), ("answers", &after)]);
        table["notes"] = of_notes(&projects, &before, &noted, written);
        println!("\n{table}");
    }
}

fn recorded_at(name: &str) -> PathBuf {
    Path::new(ANSWERS).join(format!("{name}.json"))
}

fn recorded(name: &str) -> Vec<RecordedAnswer> {
    fs::read_to_string(recorded_at(name)).map(|text| serde_json::from_str(&text).unwrap()).unwrap_or_default()
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lines that the agent ends the last message of a turn with, by the turn's number from 1.
type Notes = BTreeMap<String, Vec<String>>;

/// A session recorded by the hooks, not yet distilled by a model.
struct Session {
    world: World,
    server: Server,
    end: i64,
}

impl Session {
    fn record(name: &str, folder: &Path, session: &Value, notes: &Notes) -> Session {
        // Texts are cut after so many bytes, so the length of a path in them must not change.
        let world = World::at(PathBuf::from(format!("/tmp/nmem-b-{name}")));
        let server = Server::new(Reply::Hangs);
        let config = world.home.join(".config/nmem/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        let asks = if notes.is_empty() { "" } else { "[agent_notes]\nask = true\n" };
        fs::write(config, server.config("openai").replace("stop_seconds = 2", "when = \"manual\"") + asks).unwrap();
        let mut turn = 0;
        send_with(&world, folder, session, &mut |event| {
            turn += usize::from(event["hook_event_name"] == "UserPromptSubmit");
            if let (true, Some(lines)) = (event["hook_event_name"] == "Stop", notes.get(&turn.to_string())) {
                let closing = event["last_assistant_message"].as_str().unwrap_or_default();
                event["last_assistant_message"] = json!(format!("{closing}\n\n{}", lines.join("\n")));
            }
        });
        Session { world, server, end: millis(&session["end"]) }
    }

    /// Distils all units with these answers. Returns the first request without one, and the hashes of those that were answered.
    fn distil(&self, answers: &[RecordedAnswer]) -> (Option<String>, BTreeSet<String>) {
        let by_request: BTreeMap<String, String> =
            answers.iter().map(|recorded| (recorded.request.clone(), recorded.answer.clone())).collect();
        let home = self.world.home.display().to_string();
        let unanswered: Arc<Mutex<Option<String>>> = Arc::default();
        let answered: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (first, matched) = (Arc::clone(&unanswered), Arc::clone(&answered));
        self.server.now(Reply::Depends(Arc::new(move |question| {
            if let Some(refusal) = without_schema(question) {
                return refusal;
            }
            let request = format!("{}\n\n=====\n\n{}\n", question.system(), question.user()).replace(&home, "/home/dev");
            let request_hash = hash(&request);
            match by_request.get(&request_hash).filter(|_| first.lock().unwrap().is_none()) {
                Some(answer) => {
                    matched.lock().unwrap().insert(request_hash);
                    Reply::Says(answer.clone())
                }
                None => {
                    first.lock().unwrap().get_or_insert(request);
                    Reply::Raw(400, "", json!({"error": {"message": "credit: no answer is recorded"}}).to_string())
                }
            }
        })));
        let done = Command::new(binary())
            .args(["distil", "--all"])
            .env_clear()
            .envs([("HOME", self.world.home.to_str().unwrap()), ("PATH", "/usr/bin:/bin"), ("TEST_KEY", "none")])
            .env("NMEM_NOW", (self.end + 60_000).to_string())
            .current_dir(self.world.project())
            .output()
            .unwrap();
        let unanswered = unanswered.lock().unwrap().clone();
        assert!(done.status.success() || unanswered.is_some(), "{}", String::from_utf8_lossy(&done.stderr));
        let answered = answered.lock().unwrap().clone();
        (unanswered, answered)
    }

    fn store(&self) -> Store {
        Store::open(&Files::of(self.world.db(), false), PERSON_WAIT).unwrap()
    }
}

/// A refusal of the answer's schema, so that the question comes again with its form in words.
fn without_schema(question: &RenderedQuestion) -> Option<Reply> {
    let refused =
        json!({"error": {"message": "response_format is not supported by this model", "type": "invalid_request_error"}});
    (!question.body["response_format"].is_null()).then(|| Reply::Raw(400, "", refused.to_string()))
}

/// Memories and units of sessions.
#[derive(Default)]
struct Remembered {
    kept: BTreeMap<String, Vec<Kept>>,
    named: BTreeMap<String, Vec<Named>>,
}

impl Remembered {
    fn add(&mut self, name: &str, session: &Session) {
        let store = session.store();
        self.kept.insert(name.into(), stored::memories(&store));
        self.named.insert(name.into(), stored::units(&store));
    }

    fn show(&self, name: &str, labels: &Labels) {
        for memory in &self.kept[name] {
            println!("\n[{}{}]\n{}", memory.kind, if memory.is_users { ", the user's" } else { "" }, memory.text);
        }
        self.named[name].iter().for_each(|unit| println!("\nunit of prompts {:?}: {}", unit.prompts, unit.title));
        let is_kept = |must: &Vec<Vec<String>>| self.kept[name].iter().any(|memory| score::holds(&memory.text, must));
        labels.facts.iter().filter(|fact| !is_kept(&fact.must)).for_each(|fact| println!("missed: {}", fact.question));
        labels.misleading(&self.kept[name]).for_each(|(must, text)| println!("misleads: {must:?} in {text:?}"));
        labels.unnamed(&self.named[name]).for_each(|title| println!("no title says {title:?}"));
    }
}

fn report(projects: &[Project], small: &[String], calls: usize, measured: [(&str, &Remembered); 2]) -> Value {
    let mut out = json!({"bench": "model", "measured": true, "calls": calls});
    for (name, remembered) in measured {
        let mut table = Map::new();
        for project in projects {
            let scores = score(&project.labels, &remembered.kept, &remembered.named);
            print(&format!("{}: {name}", project.name), &scores);
            table.insert(project.name.into(), scores);
        }
        let kept: Vec<f64> = table.values().map(|scores| scores["kept"].as_f64().unwrap()).collect();
        let mean = score::round(kept.iter().sum::<f64>() / kept.len() as f64);
        let worst = kept.iter().copied().fold(1.0, f64::min);
        println!("{:28} kept {mean} in the mean of {} projects, {worst} in the worst", name, projects.len());
        let labels = projects.iter().flat_map(|project| &project.labels);
        let of = |wanted: &dyn Fn(&String) -> bool| -> BTreeMap<String, Labels> {
            labels.clone().filter(|(id, _)| wanted(id)).map(|(id, labels)| (id.clone(), labels.clone())).collect()
        };
        for (role, labels) in
            [("all", of(&|_| true)), ("mid", of(&|id| !small.contains(id))), ("small", of(&|id| small.contains(id)))]
        {
            let scores = score(&labels, &remembered.kept, &remembered.named);
            print(&format!("{role}: {name}"), &scores);
            table.insert(role.into(), scores);
        }
        table.insert("mean".into(), json!(mean));
        table.insert("worst".into(), json!(worst));
        out[name] = Value::Object(table);
    }
    out
}

/// Scores of the sessions with notes, by rules alone and by rules and notes.
fn of_notes(projects: &[Project], before: &Remembered, noted: &Remembered, (turns, lines): (usize, usize)) -> Value {
    let labels: BTreeMap<String, Labels> = projects
        .iter()
        .flat_map(|project| &project.labels)
        .filter(|(id, _)| noted.kept.contains_key(*id))
        .map(|(id, labels)| (id.clone(), labels.clone()))
        .collect();
    println!("{} sessions with {lines} notes at the end of {turns} turns", labels.len());
    let mut out = json!({"sessions": labels.len(), "turns": turns, "notes": lines});
    for (name, remembered) in [("rules", before), ("notes", noted)] {
        let scores = score(&labels, &remembered.kept, &remembered.named);
        print(&format!("noted: {name}"), &scores);
        out[name] = scores;
    }
    out
}

fn print(name: &str, scores: &Value) {
    println!(
        "{name:28} kept {} in {} bytes a session, traps {}, users' decisions {} {}, titles {}",
        scores["kept"],
        scores["bytes_a_session"],
        scores["traps_told"],
        scores["users_decisions_as_such"],
        scores["users_decisions_that_are_facts"],
        scores["titles_that_say_it"]
    );
}
