//! Sessions in other languages: facts that rules keep, work units, and searches for what was kept
//! (`NMEM_BENCH_DATA/recall` and `recall-2`, default `../shared/bench`)?
//!
//! `cargo bench --bench languages`: seven sessions, three in German, three in Chinese, one in French, each put together from
//! four or five real English ones of one project. `sessions/` has what was said in them, translated by a reader who speaks
//! the language; the same reader wrote down where topics begin and what a later session should know. Of tools, what they
//! took and printed stays English, but commit messages. `-- --show NAME` prints units, memories and searches, `-- --write
//! FOLDER` writes the sessions, `NMEM_BENCH_BINARY` names another build to measure. The last line is one JSON object.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

#[path = "../facts/score.rs"]
#[expect(dead_code, reason = "the bench of facts uses the rest")]
mod score;
#[path = "../facts/stored.rs"]
mod stored;
#[path = "../recall/world.rs"]
#[expect(dead_code, reason = "the other benches use the rest")]
mod world;

use nmem::model::Files;
use nmem::store::{PERSON_WAIT, Store};
use score::{Kept, Named, round};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use world::{World, binary, millis};

const SESSIONS: [&str; 7] = ["de1", "de2", "de3", "zh1", "zh2", "zh3", "fr1"];
const FOLDER: &str = "benches/languages/sessions";
/// Results of a search that are read.
const HITS: &str = "5";

/// Milliseconds between two of the sessions that one is put together from.
const PAUSE: i64 = 240_000;

/// Notes of the session's translator.
#[derive(Deserialize)]
struct Truth {
    /// The English sessions.
    parts: Vec<String>,
    topics: Vec<Topic>,
    facts: Vec<Fact>,
    texts: Vec<Translation>,
}

/// A text in the session's language.
#[derive(Deserialize)]
struct Translation {
    /// Index of its event.
    event: usize,
    /// `prompt`, `last_assistant_message`, or `command`.
    field: String,
    text: String,
    /// Git's output for a commit's English message, and for the translated one.
    printed: Option<[String; 2]>,
}

impl Truth {
    /// The events of the session in order, each with its time.
    fn events(&self, data: &Path) -> Vec<(i64, Value)> {
        let (mut events, mut begins) = (Vec::new(), millis(&json!("2026-03-02T09:00:00Z")));
        for part in &self.parts {
            let folder = data.join(if part.starts_with("rd") { "recall" } else { "recall-2" });
            let text = fs::read_to_string(folder.join(format!("sessions/{part}.jsonl"))).unwrap();
            let part: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let first = millis(&part[0]["ts"]);
            events.extend(part.into_iter().map(|event| (begins + millis(&event["ts"]) - first, event)));
            begins = events.last().map_or(begins, |(at, _)| *at) + PAUSE;
        }
        for Translation { event, field, text, printed } in &self.texts {
            let event = &mut events[*event].1;
            match field.as_str() {
                "command" => event["tool_input"]["command"] = json!(text),
                field => event[field] = json!(text),
            }
            if let Some([old, new]) = printed {
                let response = event["tool_response"].to_string().replace(old, new);
                event["tool_response"] = serde_json::from_str(&response).unwrap();
            }
        }
        events
    }
}

#[derive(Deserialize)]
struct Topic {
    title: String,
    /// Index of the prompt with which it begins.
    prompt: usize,
}

#[derive(Deserialize)]
struct Fact {
    kind: String,
    quote: String,
    /// Parts of words that any restatement has.
    keys: Vec<String>,
    by: String,
    question: String,
}

impl Fact {
    fn is_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.keys.iter().all(|key| text.contains(&key.to_lowercase()))
    }

    /// A decision or a standing wish in the person's own words.
    fn is_of_person(&self) -> bool {
        self.by == "person" && matches!(self.kind.as_str(), "decision" | "wish" | "constraint")
    }
}

fn main() {
    score::check();
    let args: Vec<String> = std::env::args().collect();
    let shown = args.iter().position(|arg| arg == "--show").and_then(|at| args.get(at + 1));
    let written = args.iter().position(|arg| arg == "--write").and_then(|at| args.get(at + 1));
    let data = std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    if !data.join("recall-2/sessions").exists() {
        println!("there is no {}: nothing was measured", data.join("recall-2/sessions").display());
        println!("{}", json!({"bench": "languages", "measured": false}));
        return;
    }
    let mut table = Map::new();
    for name in SESSIONS {
        let session = Session::record(name, &data, written.map(Path::new));
        if shown.is_some_and(|shown| shown == name) {
            session.show();
        }
        let scores = session.scores();
        println!("{name}: {scores}");
        table.insert(name.into(), scores);
    }
    println!("\n{}", json!({"bench": "languages", "measured": true, "sessions": table}));
}

/// A session as nmem recorded it.
struct Session {
    world: World,
    truth: Truth,
    memories: Vec<Kept>,
    units: Vec<Named>,
}

impl Session {
    fn record(name: &str, data: &Path, written: Option<&Path>) -> Session {
        let truth: Truth = serde_json::from_str(&fs::read_to_string(format!("{FOLDER}/{name}.json")).unwrap()).unwrap();
        let world = World::new(&format!("languages-{name}"));
        if name.starts_with("fr") {
            let config = world.home.join(".config/nmem/config.toml");
            fs::create_dir_all(config.parent().unwrap()).unwrap();
            fs::write(config, "rule_languages = [\"en\", \"de\", \"zh\", \"fr\"]\n").unwrap();
        }
        world.branch("main");
        let events = truth.events(data);
        if let Some(folder) = written {
            fs::create_dir_all(folder).unwrap();
            let lines: String = events.iter().map(|(_, event)| event.to_string() + "\n").collect();
            fs::write(folder.join(format!("{name}.jsonl")), lines).unwrap();
        }
        let (first, last) = (events[0].0, events[events.len() - 1].0);
        world.hook(name, json!({"hook_event_name": "SessionStart", "source": "startup"}), first - 1000);
        for (at, mut event) in events {
            event["hook_event_name"] = event["event"].take();
            world.hook(name, event, at);
        }
        world.hook(name, json!({"hook_event_name": "SessionEnd", "reason": "other"}), last + 1000);
        let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
        let (memories, units) = (stored::memories(&store), stored::units(&store));
        Session { world, truth, memories, units }
    }

    /// Prompts at which units begin, without the first.
    fn boundaries(&self) -> BTreeSet<usize> {
        let firsts = self.units.iter().filter_map(|unit| unit.prompts.iter().min().copied());
        firsts.filter(|first| *first > 0).collect()
    }

    fn scores(&self) -> Value {
        let wanted: BTreeSet<usize> = self.truth.topics.iter().map(|topic| topic.prompt).filter(|prompt| *prompt > 0).collect();
        let found = self.boundaries();
        let right = found.intersection(&wanted).count();
        let facts = &self.truth.facts;
        let kept = facts.iter().filter(|fact| self.memories.iter().any(|memory| fact.is_in(&memory.text))).count();
        let of_person: Vec<&Fact> = facts.iter().filter(|fact| fact.is_of_person()).collect();
        let decided: Vec<&Kept> = self.memories.iter().filter(|memory| memory.is_users && memory.kind != "summary").collect();
        let drawn = of_person.iter().filter(|fact| decided.iter().any(|memory| fact.is_in(&memory.text))).count();
        let true_ones = decided.iter().filter(|memory| facts.iter().any(|fact| fact.is_in(&memory.text))).count();
        let searched = facts.iter().filter(|fact| fact.is_in(&self.search(&fact.question))).count();
        json!({
            "boundaries": {"right": right, "found": found.len(), "wanted": wanted.len(),
                           "f1": round(2.0 * right as f64 / (found.len() + wanted.len()).max(1) as f64)},
            "facts": [kept, facts.len()],
            "of_the_person": [drawn, of_person.len()],
            "persons_that_are_facts": [true_ones, decided.len()],
            "memories": self.memories.len(),
            "bytes": self.memories.iter().map(|memory| memory.text.len()).sum::<usize>(),
            "searches": [searched, facts.len()],
        })
    }

    /// The first results of a search, whole.
    fn search(&self, query: &str) -> String {
        let done = Command::new(binary())
            .args(["search", "--format", "full", "--limit", HITS, query])
            .env_clear()
            .envs([("HOME", self.world.home.to_str().unwrap()), ("PATH", "/usr/bin:/bin")])
            .current_dir(self.world.project())
            .output()
            .unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn show(&self) {
        println!("wanted:");
        self.truth.topics.iter().for_each(|topic| println!("  from prompt {}: {}", topic.prompt, topic.title));
        println!("units:");
        self.units.iter().for_each(|unit| println!("  {:?}: {}", unit.prompts, unit.title));
        for memory in &self.memories {
            println!("\n[{}{}]\n{}", memory.kind, if memory.is_users { ", the user's" } else { "" }, memory.text);
        }
        println!();
        for fact in &self.truth.facts {
            let kept = self.memories.iter().any(|memory| fact.is_in(&memory.text));
            let (kept, found) = (if kept { "kept" } else { "    " }, fact.is_in(&self.search(&fact.question)));
            println!("{kept} {} {} by {}: {}", if found { "found" } else { "     " }, fact.kind, fact.by, fact.quote);
        }
    }
}
