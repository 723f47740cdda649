//! The gain of a model's answer over rules, and its tokens (`NMEM_BENCH_DATA/facts`, `recall` and
//! `recall-2`, default `../shared/bench`)?
//!
//! `cargo bench --bench model`: sends twenty sessions through the hooks and distils each with a recorded answer to the request
//! about its largest unit; a server on loopback gives it. Ten of the sessions have labelled facts: of those that the unit
//! shows, how much weight is kept with the model and without, per 1,000 tokens of request (bytes / 4)? An answer is bound to
//! its request by a hash; the bench fails if one is stale.
//!
//! `-- --write FOLDER` writes the requests, `-- --record FOLDER` reads answers (`NAME.txt`) and stores them with the
//! hashes of today's requests, `-- --answers FOLDER` scores answers of a folder whatever they answered, `-- --show NAME` prints what is remembered of a session with and without the
//! model. `NMEM_BENCH_BINARY` names another build to measure. The last line is one JSON object.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

#[path = "../facts/score.rs"]
#[expect(dead_code, reason = "the bench of facts uses the rest")]
mod score;
#[path = "../../tests/it/world/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod server;
#[path = "../facts/stored.rs"]
#[expect(dead_code, reason = "the bench of facts uses the rest")]
mod stored;
#[path = "../recall/world.rs"]
#[expect(dead_code, reason = "the other benches use the rest")]
mod world;

use nmem::model::Files;
use nmem::store::{PERSON_WAIT, Store};
use score::{Fact, Kept, Labels, holds};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use server::{RenderedQuestion, Reply, Server};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use world::{World, binary, millis, send};

/// Sessions with labelled facts.
const LABELLED: [&str; 10] = ["rd02", "rd12", "rd14", "rd19", "rd06", "rd21", "rd23", "rd01", "rd27", "rd38"];
/// Sessions of another project, without labels.
const OTHERS: [&str; 10] = ["ce03", "ce06", "ce11", "ce20", "ce26", "ce28", "ce33", "ce35", "ce43", "ce49"];
const ANSWERS: &str = "benches/model/answers";
/// Answer of the server about units without a recorded answer.
const NOTHING: &str = "<none/>";

/// An answer, and the request that it answers.
#[derive(Clone, Deserialize, Serialize)]
struct RecordedAnswer {
    /// SHA-256 of the request's text.
    request: String,
    answer: String,
}

fn main() {
    score::check();
    check();
    let args: Vec<String> = std::env::args().collect();
    let given = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let data = std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let Ok(labels) = fs::read_to_string(data.join("facts/labels.json")) else {
        println!("there is no {}: nothing was measured", data.join("facts/labels.json").display());
        println!("{}", json!({"bench": "model", "measured": false}));
        return;
    };
    let labels: BTreeMap<String, Labels> = serde_json::from_str(&labels).unwrap();
    let mut rows: Vec<Row> = Vec::new();
    for name in LABELLED.iter().chain(&OTHERS) {
        let folder = data.join(if name.starts_with("rd") { "recall" } else { "recall-2" });
        let session = Session::record(name, &folder);
        let request = session.largest_request();
        if let Some(to) = given("--write") {
            fs::create_dir_all(to).unwrap();
            fs::write(Path::new(to).join(format!("{name}.txt")), &request.text).unwrap();
            continue;
        }
        let in_folder = |folder: &String| fs::read_to_string(Path::new(folder).join(format!("{name}.txt"))).unwrap();
        if let Some(from) = given("--record") {
            let recorded = RecordedAnswer { request: hash(&request.text), answer: in_folder(from) };
            fs::write(recorded_at(name), serde_json::to_string_pretty(&recorded).unwrap() + "\n").unwrap();
        }
        let answer = match given("--answers") {
            Some(from) => Path::new(from).join(format!("{name}.txt")).exists().then(|| in_folder(from)),
            None => {
                let recorded: RecordedAnswer = serde_json::from_str(&fs::read_to_string(recorded_at(name)).unwrap()).unwrap();
                assert_eq!(recorded.request, hash(&request.text), "{name}: the answer is stale; its request has changed");
                Some(recorded.answer)
            }
        };
        let Some(answer) = answer else { continue };
        let row = session.score(name, &request, &answer, labels.get(*name));
        if given("--show").is_some_and(|shown| shown == name) {
            row.show();
        }
        row.print();
        rows.push(row);
    }
    println!("\n{}", report(&rows));
}

fn recorded_at(name: &str) -> PathBuf {
    Path::new(ANSWERS).join(format!("{name}.json"))
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request as a model reads it.
#[derive(Clone, Default)]
struct Request {
    text: String,
    /// Entries of the unit, with those that were left out.
    entries: usize,
}

impl Request {
    fn tokens(&self) -> usize {
        self.text.len() / 4
    }
}

/// A session recorded by the hooks, not yet distilled by a model.
struct Session {
    world: World,
    server: Server,
    events: Vec<Value>,
    end: i64,
}

impl Session {
    fn record(name: &str, folder: &Path) -> Session {
        let data: Value = serde_json::from_str(&fs::read_to_string(folder.join("queries.json")).unwrap()).unwrap();
        let session = data["sessions"].as_array().unwrap().iter().find(|session| session["id"] == name).unwrap();
        // Texts are cut after so many bytes, so the length of a path in them must not change.
        let world = World::at(PathBuf::from(format!("/tmp/nmem-b-{name}")));
        send(&world, folder, session);
        let server = Server::new(Reply::Says(NOTHING.into()));
        let config = world.home.join(".config/nmem/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(config, server.config("openai").replace("stop_seconds = 2", "when = \"manual\"")).unwrap();
        let events = fs::read_to_string(folder.join(format!("sessions/{name}.jsonl"))).unwrap();
        let events = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Session { world, server, events, end: millis(&session["end"]) }
    }

    /// Asks about all units; the server has nothing to record, so that the rules' memories stay.
    fn largest_request(&self) -> Request {
        self.server.now(Reply::Depends(Arc::new(|question| without_schema(question).unwrap_or(Reply::Says(NOTHING.into())))));
        self.distil();
        let asked = self.server.asked.lock().unwrap();
        let answered = asked.iter().filter(|asked| asked.body["response_format"].is_null()).map(|asked| self.request(asked));
        answered.max_by_key(|request| request.entries).expect("the session has a unit")
    }

    fn request(&self, asked: &RenderedQuestion) -> Request {
        let home = self.world.home.display().to_string();
        let text = format!("{}\n\n=====\n\n{}\n", asked.system(), asked.user()).replace(&home, "/home/dev");
        Request { entries: entries(&asked.user()), text }
    }

    /// Distils all units; the server has the answer to one.
    fn score(self, name: &str, request: &Request, answer: &str, labels: Option<&Labels>) -> Row {
        let (wanted, given) = (request.text.clone(), answer.to_string());
        let home = self.world.home.display().to_string();
        let before = self.memories();
        self.server.now(Reply::Depends(Arc::new(move |question| {
            let text = format!("{}\n\n=====\n\n{}\n", question.system(), question.user()).replace(&home, "/home/dev");
            let answer = if text == wanted { given.clone() } else { NOTHING.into() };
            without_schema(question).unwrap_or(Reply::Says(answer))
        })));
        self.distil();
        let after = self.memories();
        let facts = labels.map(|labels| self.facts_of(request, labels)).unwrap_or_default();
        let kept = |memories: &[Kept]| {
            let kept = facts.iter().filter(|fact| memories.iter().any(|memory| holds(&memory.text, &fact.must)));
            kept.map(|fact| fact.weight).fold(0.0, |sum, weight| sum + weight)
        };
        Row {
            name: name.to_string(),
            tokens: request.tokens(),
            facts: facts.iter().map(|fact| fact.weight).fold(0.0, |sum, weight| sum + weight),
            by_rules: kept(&before),
            with_model: kept(&after),
            missed: facts
                .iter()
                .filter(|fact| !after.iter().any(|memory| holds(&memory.text, &fact.must)))
                .map(|fact| fact.question.clone())
                .collect(),
            notes: Notes::of(&request.text, answer, &before, &after),
            before,
            after,
        }
    }

    fn distil(&self) {
        let done = Command::new(binary())
            .args(["distil", "--redo", "--all"])
            .env_clear()
            .envs([("HOME", self.world.home.to_str().unwrap()), ("PATH", "/usr/bin:/bin"), ("TEST_KEY", "none")])
            .env("NMEM_NOW", (self.end + 60_000).to_string())
            .current_dir(self.world.project())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn memories(&self) -> Vec<Kept> {
        stored::memories(&Store::open(&Files::of(self.world.db(), false), PERSON_WAIT).unwrap())
    }

    /// Labelled facts whose first evidence is an event of a prompt that the request shows.
    fn facts_of<'a>(&self, request: &Request, labels: &'a Labels) -> Vec<&'a Fact> {
        let prompt_of = |event: &usize| {
            let mut prompts = self.events[..=*event].iter().filter_map(|event| event["prompt"].as_str());
            prompts.next_back().unwrap_or_default().to_string()
        };
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = flat(&request.text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"));
        let is_shown = |prompt: String| shown.contains(flat(&prompt).chars().take(60).collect::<String>().trim());
        labels.facts.iter().filter(|fact| fact.evidence.first().is_some_and(|event| is_shown(prompt_of(event)))).collect()
    }
}

/// The numbers in the line above the entries: how many are shown, how many were left out.
fn entries(user: &str) -> usize {
    let line = user.lines().find(|line| line.contains(" entries") || line.contains(" blocks")).unwrap_or_default();
    line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse::<usize>().ok()).sum()
}

/// A refusal of the answer's schema, so that the question comes again with its form in words.
fn without_schema(question: &RenderedQuestion) -> Option<Reply> {
    let refused =
        json!({"error": {"message": "response_format is not supported by this model", "type": "invalid_request_error"}});
    (!question.body["response_format"].is_null()).then(|| Reply::Raw(400, "", refused.to_string()))
}

/// Outcome of the rules' notes that an answer judged.
#[derive(Default)]
struct Notes {
    shown: usize,
    kept: usize,
    /// Kept ones that are remembered other than once.
    kept_not_once: Vec<String>,
    withdrawn: usize,
    /// Withdrawn ones that are still remembered.
    still_there: Vec<String>,
}

impl Notes {
    fn of(request: &str, answer: &str, before: &[Kept], after: &[Kept]) -> Notes {
        let parsed = nmem::extraction::read(answer, &nmem::domains::of(None, None));
        let titles: HashMap<usize, &str> = request.lines().filter_map(numbered_note).collect();
        let title = |memory: &Kept| memory.text.lines().next().unwrap_or_default().to_string();
        let times = |note: &str| after.iter().filter(|memory| title(memory) == note).count();
        let known = |number: &usize| {
            let note = titles.get(number)?;
            before.iter().map(title).find(|title| note.starts_with(title.trim_end_matches('…').trim()))
        };
        let kept: Vec<String> = parsed.keeps.iter().filter_map(known).collect();
        let withdrawn: Vec<String> = parsed.withdraws.iter().filter_map(known).collect();
        Notes {
            shown: titles.len(),
            kept: kept.len(),
            withdrawn: withdrawn.len(),
            kept_not_once: kept.into_iter().filter(|note| times(note) != 1).collect(),
            still_there: withdrawn.into_iter().filter(|note| times(note) != 0).collect(),
        }
    }
}

/// Number and title of a note's line, `r3 (change) The title`.
fn numbered_note(line: &str) -> Option<(usize, &str)> {
    let (number, rest) = line.strip_prefix('r')?.split_once(' ')?;
    let (_, title) = rest.strip_prefix('(')?.split_once(") ")?;
    Some((number.parse().ok()?, title))
}

/// One session's result.
struct Row {
    name: String,
    tokens: usize,
    /// Weight of the facts that the request's unit shows; kept by rules; kept with the answer.
    facts: f64,
    by_rules: f64,
    with_model: f64,
    notes: Notes,
    missed: Vec<String>,
    before: Vec<Kept>,
    after: Vec<Kept>,
}

impl Row {
    fn print(&self) {
        let bytes = |memories: &[Kept]| memories.iter().map(|memory| memory.text.len()).sum::<usize>();
        println!(
            "{}: {} tokens, facts {} of {} by rules, {} with the answer, bytes {} and {}; of {} notes {} kept, {} withdrawn",
            self.name,
            self.tokens,
            self.by_rules,
            self.facts,
            self.with_model,
            bytes(&self.before),
            bytes(&self.after),
            self.notes.shown,
            self.notes.kept,
            self.notes.withdrawn
        );
        self.notes.kept_not_once.iter().for_each(|note| println!("  kept, but not there once: {note}"));
        self.notes.still_there.iter().for_each(|note| println!("  withdrawn, but still there: {note}"));
    }

    fn show(&self) {
        for (when, memories) in [("by rules", &self.before), ("with the answer", &self.after)] {
            println!("\n{} {when}", self.name);
            memories.iter().for_each(|memory| println!("\n[{}]\n{}", memory.kind, memory.text));
        }
        self.missed.iter().for_each(|question| println!("missed: {question}"));
    }
}

fn report(rows: &[Row]) -> Value {
    let labelled: Vec<&Row> = rows.iter().filter(|row| row.facts > 0.0).collect();
    let sum = |of: &dyn Fn(&Row) -> f64| labelled.iter().map(|row| of(row)).sum::<f64>();
    let tokens = sum(&|row| row.tokens as f64);
    let count = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).sum::<usize>();
    json!({
        "bench": "model", "measured": true, "sessions": rows.len(), "tokens": count(&|row| row.tokens),
        "labelled": {
            "sessions": labelled.len(), "tokens": tokens, "facts": sum(&|row| row.facts),
            "kept_by_rules": sum(&|row| row.by_rules), "kept_with_answers": sum(&|row| row.with_model),
            "per_1000_tokens": score::round(sum(&|row| row.with_model) * 1000.0 / tokens),
            "gained_per_1000_tokens": score::round((sum(&|row| row.with_model) - sum(&|row| row.by_rules)) * 1000.0 / tokens),
        },
        "notes": {
            "shown": count(&|row| row.notes.shown), "kept": count(&|row| row.notes.kept),
            "kept_not_once": count(&|row| row.notes.kept_not_once.len()), "withdrawn": count(&|row| row.notes.withdrawn),
            "still_there": count(&|row| row.notes.still_there.len()),
        },
    })
}

/// Checks that the bench finds a note that was withdrawn and stayed, and one that is remembered twice.
fn check() {
    let memory = |title: &str| Kept { text: format!("{title}\nmore"), ..Kept::default() };
    let request = "r1 (change) Port is 80\nr2 (change) Old cache\nr3 (change) Tests pass\n1 user: r9 (x) no";
    let before = [memory("Port is 80"), memory("Old cache"), memory("Tests pass")];
    let answer = "<keep>r1, r3</keep><withdraw>r2</withdraw>";
    let right = Notes::of(request, answer, &before, &[memory("Port is 80"), memory("Tests pass")]);
    assert_eq!((right.shown, right.kept, right.withdrawn), (3, 2, 1));
    assert!(right.kept_not_once.is_empty() && right.still_there.is_empty());
    let wrong = Notes::of(request, answer, &before, &[memory("Port is 80"), memory("Port is 80"), memory("Old cache")]);
    assert_eq!(wrong.kept_not_once, ["Port is 80", "Tests pass"]);
    assert_eq!(wrong.still_there, ["Old cache"]);
    assert_ne!(hash("a request"), hash("another request"));
}
