//! Injections without a question. Real sessions of two projects go through the hooks in the order in which
//! they happened. For each, this reads the block at its start and the answer to its first prompt; beside it, what
//! `nmem context --query` would say to the same prompt.
//!
//! A line is related if it cites (`m12`, `u5`, `s3`) what edited a file that the session then edits, or what is of the
//! session's branch, unless that is a trunk.

use super::score::{Query, score};
use super::world::{World, millis};
use nmem::model::{Files, Platform};
use nmem::recall::{RecallQuery, ranked};
use nmem::render::ranked_units::for_query;
use nmem::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

const SETS: [&str; 2] = ["recall", "recall-2"];
const QUERY_BYTES: usize = 2000;
const TRUNKS: [&str; 2] = ["main", "master"];

/// A recorded session.
struct Recorded {
    id: String,
    branch: String,
    edited: HashSet<String>,
    start: i64,
    end: i64,
    events: Vec<Value>,
}

impl Recorded {
    fn first_prompt(&self) -> Option<&str> {
        self.events.iter().find(|event| event["event"] == "UserPromptSubmit")?["prompt"].as_str()
    }
}

/// Texts that a session received.
struct Received {
    session: usize,
    start: Text,
    first_prompt: Text,
    query: Text,
    long_query: Text,
}

/// A text, and what its lines cite.
#[derive(Default)]
struct Text {
    bytes: usize,
    lines: Vec<Vec<Cited>>,
}

/// Ids that a line cites.
struct Cited {
    /// The agent's id of its session.
    session: String,
    edited: HashSet<String>,
}

/// Prints the tables; returns them as JSON. With `keep`, the databases before each session's start are kept there, and
/// taken from there the next time: then only recall is measured again.
pub fn run(data: &Path, keep: Option<&Path>) -> Value {
    let mut all = Map::new();
    for set in SETS {
        let Some(sessions) = recorded(&data.join(set)) else {
            println!("\nthere is no {}: nothing was measured there", data.join(set).display());
            continue;
        };
        let world = World::new(set);
        let received = match keep.map(|keep| keep.join(set)) {
            Some(kept) if kept.exists() => from_copies(&world, &sessions, &kept),
            kept => play(&world, &sessions, kept.as_deref()),
        };
        all.insert(set.into(), report(set, &data.join(set), &sessions, &received));
    }
    Value::Object(all)
}

fn recorded(folder: &Path) -> Option<Vec<Recorded>> {
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

/// Plays all sessions at once, as they happened.
fn play(world: &World, sessions: &[Recorded], keep: Option<&Path>) -> Vec<Received> {
    let mut all: Vec<(i64, usize, Value)> = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        all.push((session.start - 1000, at, json!({"event": "SessionStart", "source": "startup"})));
        all.extend(session.events.iter().map(|event| (millis(&event["ts"]), at, event.clone())));
        all.push((session.end + 1000, at, json!({"event": "SessionEnd", "reason": "other"})));
    }
    all.sort_by_key(|event| event.0);
    let mut received: HashMap<usize, Received> = HashMap::new();
    for (at, of, mut event) in all {
        let session = &sessions[of];
        event["hook_event_name"] = event["event"].take();
        let name = event["hook_event_name"].as_str().unwrap().to_string();
        match name.as_str() {
            "SessionStart" => {
                if let Some(folder) = keep.filter(|_| world.db().exists()) {
                    fs::create_dir_all(folder).unwrap();
                    Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap().checkpoint();
                    fs::copy(world.db(), folder.join(format!("{}.db", session.id))).unwrap();
                }
                received.insert(of, at_start(world, sessions, of));
            }
            "UserPromptSubmit" if received.get(&of).is_some_and(|received| received.query.bytes == usize::MAX) => {
                at_first_prompt(world, sessions, received.get_mut(&of).unwrap());
            }
            _ => {
                world.branch(&session.branch);
                world.hook(&session.id, event, at);
            }
        }
    }
    let mut received: Vec<Received> = received.into_values().collect();
    received.sort_by_key(|received| received.session);
    received
}

/// The same from copies of the databases.
fn from_copies(world: &World, sessions: &[Recorded], kept: &Path) -> Vec<Received> {
    fs::create_dir_all(world.db().parent().unwrap()).unwrap();
    let of = |of: usize| {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(PathBuf::from(format!("{}{end}", world.db().display())));
        }
        let copy = kept.join(format!("{}.db", sessions[of].id));
        if copy.exists() {
            fs::copy(copy, world.db()).unwrap();
        }
        let mut received = at_start(world, sessions, of);
        at_first_prompt(world, sessions, &mut received);
        received
    };
    (0..sessions.len()).map(of).collect()
}

fn at_start(world: &World, sessions: &[Recorded], of: usize) -> Received {
    let session = &sessions[of];
    world.branch(&session.branch);
    let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
    let answer = world.hook(&session.id, start, session.start - 1000);
    let query = Text { bytes: usize::MAX, ..Text::default() };
    Received {
        session: of,
        start: text(world, &context(&answer)),
        first_prompt: Text::default(),
        query,
        long_query: Text::default(),
    }
}

fn at_first_prompt(world: &World, sessions: &[Recorded], received: &mut Received) {
    let session = &sessions[received.session];
    let prompt = session.first_prompt().unwrap_or_default();
    let asked = json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt});
    world.branch(&session.branch);
    let answer = world.hook(&session.id, asked, session.start);
    received.first_prompt = text(world, &context(&answer));
    let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
    let scope = store.session_scope(Platform::ClaudeCode, &session.id).unwrap().unwrap();
    let query = RecallQuery {
        project: scope.project,
        own: Some(scope.session),
        request: Some(prompt),
        branch: Some(&session.branch),
        ..RecallQuery::default()
    };
    let ranked = ranked(&store, &query, super::RANKED).unwrap();
    received.query = text(world, &for_query(&ranked, QUERY_BYTES).text);
    received.long_query = text(world, &for_query(&ranked, 2 * QUERY_BYTES).text);
}

fn context(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_string()
}

/// The lines of a text that cite something.
fn text(world: &World, text: &str) -> Text {
    if std::env::var_os("NMEM_BENCH_SHOW").is_some() {
        println!("{text}\n----");
    }
    let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
    let cited = |word: &str| -> Option<Cited> {
        let kind = word.chars().next().filter(|kind| matches!(kind, 'm' | 'u' | 's'))?;
        let id: i64 = word[1..].parse().ok()?;
        let (session, units) = match kind {
            'm' => store.memory_by_row(id).unwrap().map(|memory| (memory.session, memory.unit.into_iter().collect()))?,
            'u' => store.unit_by_row(id).unwrap().map(|unit| (Some(unit.session), vec![unit.id]))?,
            _ => (Some(id), store.last_units(&[id], None, 200).unwrap().iter().map(|unit| unit.id).collect::<Vec<_>>()),
        };
        let session = store.session_by_row(session?).unwrap()?.agent_session_id;
        let edited = units.iter().flat_map(|unit| store.edited_by_unit(*unit).unwrap()).collect();
        Some(Cited { session, edited })
    };
    let cites = |line: &str| {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.len() > 1);
        words.filter_map(cited).collect::<Vec<_>>()
    };
    Text { bytes: text.len(), lines: text.lines().map(cites).filter(|cited| !cited.is_empty()).collect() }
}

fn report(set: &str, folder: &Path, sessions: &[Recorded], received: &[Received]) -> Value {
    let branches: HashMap<&str, &str> = sessions.iter().map(|session| (session.id.as_str(), session.branch.as_str())).collect();
    let editing: Vec<&Received> = received.iter().filter(|received| !sessions[received.session].edited.is_empty()).collect();
    let editors = |path: &str| sessions.iter().filter(|session| session.edited.contains(path)).count();
    let rarity = |path: &String| 1.0 - editors(path) as f64 / sessions.len() as f64;
    // How related a line is: wholly by its branch, else as much as the rarest shared file is rare.
    let weight = |received: &Received, line: &Vec<Cited>| {
        let session = &sessions[received.session];
        let of = |cited: &Cited| {
            let is_branch = branches.get(cited.session.as_str()) == Some(&session.branch.as_str());
            let shared = cited.edited.intersection(&session.edited).map(rarity).fold(0.0, f64::max);
            if is_branch && !TRUNKS.contains(&session.branch.as_str()) { 1.0 } else { shared }
        };
        line.iter().map(of).fold(0.0, f64::max)
    };
    println!("\nUnasked, {set}: {} sessions that edit something", editing.len());
    println!("{:32} bytes  lines  related  by rarity  sessions answered, with anything related", "");
    let mut json = Map::new();
    for (name, of) in [
        ("at the start", (|received| &received.start) as fn(&Received) -> &Text),
        ("at the first prompt", |received| &received.first_prompt),
        ("context --query, 2,000 bytes", |received| &received.query),
    ] {
        let weights: Vec<Vec<f64>> =
            editing.iter().map(|received| of(received).lines.iter().map(|line| weight(received, line)).collect()).collect();
        let lines = weights.iter().flatten().count().max(1) as f64;
        let related = weights.iter().flatten().filter(|weight| **weight > 0.0).count() as f64 / lines;
        let by_rarity = weights.iter().flatten().sum::<f64>() / lines;
        let bytes = editing.iter().map(|received| of(received).bytes).sum::<usize>() / editing.len();
        let answered = editing.iter().filter(|received| of(received).bytes > 0).count();
        let some = weights.iter().filter(|weights| weights.iter().any(|weight| *weight > 0.0)).count();
        let lines = lines / editing.len() as f64;
        println!("{name:32} {bytes:5}  {lines:5.1}    {related:.3}      {by_rarity:.3}  {answered}, {some}");
        json.insert(
            name.into(),
            json!({"bytes": bytes, "lines": rounded(lines), "related": rounded(related), "by_rarity": rounded(by_rarity),
                "answered": answered, "with_related": some}),
        );
    }
    let queries = queries(folder, sessions);
    let order = |texts: &dyn Fn(&Received) -> Vec<&Text>| {
        let of = |query: &Query| -> Vec<String> {
            let received = received.iter().find(|received| sessions[received.session].id == query.session).unwrap();
            let lines = texts(received).into_iter().flat_map(|text| &text.lines).flatten();
            lines.map(|cited| cited.session.clone()).filter(|session| query.past.contains(session)).collect()
        };
        let asked: Vec<&Query> = queries.iter().collect();
        score(&asked, &queries.iter().map(of).collect::<Vec<_>>()).all
    };
    for (name, measures) in [
        ("received unasked", order(&|received| vec![&received.first_prompt, &received.start])),
        ("context --query, 2,000 bytes", order(&|received| vec![&received.query])),
        ("context --query, 4,000 bytes", order(&|received| vec![&received.long_query])),
    ] {
        println!("{name:32} recall@5 {:.3}  MRR {:.3}  nDCG@5 {:.3}", measures[0], measures[1], measures[2]);
        json.insert(format!("{name}, order"), json!(measures.map(rounded)));
    }
    let (mut known, mut first) = (0, 0);
    for received in received {
        let session = &sessions[received.session];
        let is_own = |other: &&Recorded| other.branch == session.branch && other.end < session.start;
        if TRUNKS.contains(&session.branch.as_str()) || !sessions.iter().any(|other| is_own(&other)) {
            continue;
        }
        known += 1;
        let named = received.start.lines.iter().flatten().next();
        first += usize::from(named.is_some_and(|cited| branches.get(cited.session.as_str()) == Some(&session.branch.as_str())));
    }
    println!("{:32} {first} of {known}", "the branch's own session first");
    json.insert("own_branch_first".into(), json!([first, known]));
    Value::Object(json)
}

fn queries(folder: &Path, sessions: &[Recorded]) -> Vec<Query> {
    let data: Value = serde_json::from_str(&fs::read_to_string(folder.join("queries.json")).unwrap()).unwrap();
    let of = |query: &Value| {
        let own = sessions.iter().find(|session| session.id == query["session"].as_str().unwrap()).unwrap();
        let mut past: Vec<&Recorded> = sessions.iter().filter(|session| session.end < own.start).collect();
        past.sort_by_key(|session| std::cmp::Reverse(session.end));
        let relevant = query["relevant"].as_object().unwrap().iter();
        Query {
            id: query["id"].as_str().unwrap().into(),
            session: own.id.clone(),
            text: query["query"].as_str().unwrap().into(),
            branch: own.branch.clone(),
            specific: query["specific"].as_bool().unwrap_or_default(),
            relevant: relevant.map(|(id, weight)| (id.clone(), weight.as_f64().unwrap())).collect(),
            past: past.into_iter().map(|session| session.id.clone()).collect(),
            edited: Vec::new(),
        }
    };
    data["queries"].as_array().unwrap().iter().map(of).collect()
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}
