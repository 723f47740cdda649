//! When is it right to speak at a prompt? Real sessions, those of the recall bench and the hand-labelled ones of the units
//! bench, sent through the hooks in the order in which they happened. For each prompt, the hook's answer is scored.
//!
//! An injected work unit belongs to another session. It is right if it edited a file that this prompt's turn then edits;
//! two wider measures beside it: a file that the turn edits or, if it edits none, reads; a file that the rest of the piece of
//! work edits which the prompt belongs to.

use super::world::{World, millis};
use nmem::model::{Files, Platform};
use nmem::recall::{RecallQuery, ranked};
use nmem::store::unit_index::Effort;
use nmem::store::{PERSON_WAIT, Store};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// A recorded session.
struct Stream {
    id: String,
    branch: String,
    events: Vec<Value>,
}

/// Files that the work on a prompt touched.
#[derive(Default)]
struct Turn {
    edited: HashSet<String>,
    read: HashSet<String>,
}

/// A prompt, and the work units that were injected at it.
struct AtPrompt {
    stream: usize,
    number: usize,
    starts: bool,
    has_right: bool,
    shown: Vec<Vec<String>>,
    always: Vec<Vec<String>>,
}

/// The streams; of those that stand in both benches one.
fn streams(data: &Path) -> Vec<Stream> {
    let text = |path: &str| fs::read_to_string(data.join(path)).unwrap_or_default();
    let read = |path: &str| text(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let recall: Value = serde_json::from_str(&text("recall/queries.json")).unwrap();
    let labels: HashMap<String, Value> = serde_json::from_str(&text("units/labels.json")).unwrap_or_default();
    let mut all: Vec<Stream> = Vec::new();
    for session in recall["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let branch = session["branch"].as_str().unwrap().into();
        all.push(Stream { id: id.into(), branch, events: read(&format!("recall/sessions/{id}.jsonl")) });
    }
    for id in labels.iter().filter(|(_, label)| label["kind"] == "hand").map(|(id, _)| id) {
        let events = read(&format!("units/{id}.jsonl"));
        if !all.iter().any(|known| known.events[0]["ts"] == events[0]["ts"]) {
            all.push(Stream { id: id.clone(), branch: "main".into(), events });
        }
    }
    all.sort_by_key(|stream| millis(&stream.events[0]["ts"]));
    all
}

fn turns(stream: &Stream) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for event in &stream.events {
        if event["event"] == "UserPromptSubmit" {
            turns.push(Turn::default());
        }
        let (Some(turn), "PostToolUse") = (turns.last_mut(), event["event"].as_str().unwrap()) else { continue };
        let Some(path) = event["tool_input"]["file_path"].as_str() else { continue };
        let path = path.strip_prefix("/srv/cli/").unwrap_or(path).to_string();
        match event["tool_name"].as_str() {
            Some("Edit" | "Write" | "MultiEdit") => drop(turn.edited.insert(path)),
            Some("Read") => drop(turn.read.insert(path)),
            _ => {}
        }
    }
    turns
}

/// Plays all streams at once, as they happened, and asks at each prompt.
fn play(world: &World, streams: &[Stream], turns: &[Vec<Turn>]) -> Vec<AtPrompt> {
    let mut all: Vec<(i64, usize, Value)> = Vec::new();
    for (at, stream) in streams.iter().enumerate() {
        let first = millis(&stream.events[0]["ts"]) - 1000;
        let last = millis(&stream.events.last().unwrap()["ts"]) + 1000;
        all.push((first, at, json!({"event": "SessionStart", "source": "startup"})));
        all.extend(stream.events.iter().map(|event| (millis(&event["ts"]), at, event.clone())));
        all.push((last, at, json!({"event": "SessionEnd", "reason": "other"})));
    }
    all.sort_by_key(|shown| shown.0);
    let mut prompts = vec![0; streams.len()];
    let mut answered = Vec::new();
    for (at, of, mut event) in all {
        let stream = &streams[of];
        world.branch(&stream.branch);
        event["hook_event_name"] = event["event"].take();
        let is_prompt = event["hook_event_name"] == "UserPromptSubmit";
        let text = event["prompt"].as_str().unwrap_or_default().to_string();
        let answer = world.hook(&stream.id, event, at);
        if is_prompt {
            let number = prompts[of];
            prompts[of] += 1;
            answered.push(ask(world, (of, number, stream), &turns[of][number], (&text, &answer)));
        }
    }
    answered
}

fn ask(world: &World, (of, number, stream): (usize, usize, &Stream), turn: &Turn, (text, answer): (&str, &str)) -> AtPrompt {
    let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
    let place = store.session_scope(Platform::ClaudeCode, &stream.id).unwrap().unwrap();
    let edited = |unit: i64| store.edited_by_unit(unit).unwrap();
    let shown: Value = serde_json::from_str(answer).unwrap_or_default();
    let shown = shown["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    let units = shown.lines().filter(|line| line.starts_with("- ")).filter_map(|line| {
        let (_, behind) = line.rsplit_once("(u")?;
        behind.split([',', ')']).next()?.parse().ok()
    });
    let request = RecallQuery {
        project: place.project,
        own: Some(place.session),
        request: Some(text),
        branch: Some(&stream.branch),
        embedding: None,
        files: &[],
        root: None,
    };
    let always = ranked(&store, &request, 3).unwrap();
    let paths: Vec<String> = turn.edited.iter().cloned().collect();
    let same = store.units_by_files(place.project, &paths, false, Effort::WHOLE).unwrap();
    let own = store.last_units(&[place.session], None, 200).unwrap();
    AtPrompt {
        stream: of,
        number,
        starts: own.first().is_some_and(|unit| unit.prompts.first() == Some(&(number as i64 + 1))),
        has_right: same.keys().any(|unit| own.iter().all(|own| own.id != *unit)),
        shown: units.map(edited).collect(),
        always: always.iter().map(|past| edited(past.unit.id)).collect(),
    }
}

/// Prints the table; returns it as JSON.
pub fn run(data: &Path) -> Value {
    let world = World::new("prompts");
    let streams = streams(data);
    let turns: Vec<Vec<Turn>> = streams.iter().map(turns).collect();
    let prompts = play(&world, &streams, &turns);
    let with_right = prompts.iter().filter(|prompts| prompts.has_right).count();
    println!("\nAt the prompt: {} prompts of {} sessions, {with_right} with a right piece of work", prompts.len(), streams.len());
    println!("{:24} pieces  right by turn / touched / rest   prompts served  of those with a right one served, rightly", "");
    let mut json = serde_json::Map::new();
    for (name, of) in [("always the best three", (|a| &a.always) as fn(&AtPrompt) -> &Vec<Vec<String>>), ("nmem", |a| &a.shown)] {
        let (mut pieces, mut right, mut served, mut covered, mut rightly) = (0, [0; 3], 0, 0, 0);
        for (at, prompt) in prompts.iter().enumerate() {
            let turn = &turns[prompt.stream][prompt.number];
            let touched = if turn.edited.is_empty() { &turn.read } else { &turn.edited };
            let same_work = prompts[at..].iter().filter(|other| other.stream == prompt.stream);
            let rest = same_work.enumerate().take_while(|(n, other)| *n == 0 || !other.starts).map(|(_, other)| other);
            let rest: HashSet<&String> = rest.flat_map(|other| &turns[other.stream][other.number].edited).collect();
            let shown = of(prompt);
            let holds = |files: &Vec<String>, wanted: &dyn Fn(&String) -> bool| files.iter().any(wanted);
            let by_turn = shown.iter().filter(|files| holds(files, &|file| turn.edited.contains(file))).count();
            pieces += shown.len();
            right[0] += by_turn;
            right[1] += shown.iter().filter(|files| holds(files, &|file| touched.contains(file))).count();
            right[2] += shown.iter().filter(|files| holds(files, &|file| rest.contains(file))).count();
            served += usize::from(!shown.is_empty());
            covered += usize::from(prompt.has_right && !shown.is_empty());
            rightly += usize::from(by_turn > 0);
        }
        let part = |n: usize, of: usize| ((n as f64 / of.max(1) as f64) * 1000.0).round() / 1000.0;
        let precision = right.map(|right| part(right, pieces));
        let (all, some, good) = (part(served, prompts.len()), part(covered, with_right), part(rightly, with_right));
        println!(
            "{name:24} {pieces:6}  {:.2} / {:.2} / {:.2}                {all:.2}            {some:.2}, {good:.2}",
            precision[0], precision[1], precision[2]
        );
        json.insert(name.into(), json!({"pieces": pieces, "precision": precision, "served": all, "coverage": [some, good]}));
    }
    Value::Object(json)
}
