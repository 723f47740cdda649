//! Injections without a question. Real sessions of four projects go through the hooks in the order in which
//! they happened. For each, this reads the block at its start, the answer to its first prompt, and what stands before the
//! edits of its files; beside it, what `nmem context --query` would say to the same prompt.
//!
//! A line is related if it cites (`m12`, `u5`, `s3`) what edited a file that the session then edits, or what is of the
//! session's branch, unless that is a trunk. A wish is a decision of the user's that holds when the session begins; it
//! touches the session if it is about a file that the session then edits.

use super::recorded::{Recorded, SETS, context, play, recorded, restore};
use super::score::{Query, score};
use super::world::World;
use nmem::model::{Files, MemoryKind, Platform, Provenance};
use nmem::platforms::author::without_client_blocks;
use nmem::recall::{Prompt, RecallQuery, at_prompt, ranked};
use nmem::render::ranked_units::for_query;
use nmem::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const TRUNKS: [&str; 2] = ["main", "master"];
const QUERY_BYTES: usize = 2000;
/// Number of memories among which the user's wishes are looked for.
const MEMORIES: usize = 100_000;

fn is_on_trunk(session: &Recorded) -> bool {
    TRUNKS.contains(&session.branch.as_str())
}

/// Texts that a session received.
struct Received {
    session: usize,
    start: Text,
    first_prompt: Text,
    /// Before the edits of its files.
    edits: Text,
    /// Bytes that the prompt of a session of another project received.
    foreign: usize,
    query: Text,
    long_query: Text,
    /// Ids of the user's wishes about the session's files.
    wishes: Vec<String>,
}

/// A text, and what its lines cite.
#[derive(Default)]
struct Text {
    bytes: usize,
    lines: Vec<Vec<Cited>>,
}

impl Text {
    fn and(&mut self, other: Text) {
        self.bytes += other.bytes;
        self.lines.extend(other.lines);
    }
}

/// An id in a line.
struct Cited {
    /// As written: `m12`.
    id: String,
    /// The agent's id of its session.
    session: String,
    unit: Option<i64>,
    edited: HashSet<String>,
}

/// Prints the tables; returns them as JSON. With `keep`, the databases before each session's start are kept there, and
/// taken from there the next time: then only recall is measured again. The measures of each candidate at a first prompt are
/// written to `measures`, one JSON object a line, for the regression of ADR/0064.
pub fn run(data: &Path, keep: Option<&Path>, measures: Option<&Path>) -> Value {
    let known: Vec<(&str, PathBuf, Vec<Recorded>)> =
        SETS.into_iter().filter_map(|(set, folder)| Some((set, data.join(folder), recorded(&data.join(folder))?))).collect();
    let mut all = Map::new();
    for (at, (set, folder, sessions)) in known.iter().enumerate() {
        let world = World::new(set);
        let kept = keep.map_or_else(|| world.home.join("kept"), |keep| keep.join(set));
        if !kept.exists() {
            play(&world, sessions, &kept);
        }
        let others = &known[(at + 1) % known.len()].2;
        let received = from_copies(&world, sessions, others, &kept, measures);
        all.insert((*set).into(), report(set, folder, sessions, &received));
    }
    over_sets(&all);
    Value::Object(all)
}

/// Prints the mean and the worst of the sets.
fn over_sets(all: &Map<String, Value>) {
    println!("\nUnasked, {} sets: mean and worst", all.len());
    for (moment, name, least_is_worst) in [
        ("at the start", "related", true),
        ("at the start", "bytes", false),
        ("at the first prompt", "related", true),
        ("at the first prompt", "related_units", true),
        ("at the first prompt", "answered_with_related", true),
        ("at the first prompt", "answered_without", false),
        ("at the first prompt", "answered_foreign", false),
        ("received unasked, order", "0", true),
        ("received unasked, order", "1", true),
        ("wishes", "given", true),
    ] {
        let of = |set: &Value| match name.parse::<usize>() {
            Ok(at) => set[moment][at].as_f64(),
            Err(_) => set[moment][name].as_f64(),
        };
        let values: Vec<f64> = all.values().filter_map(of).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        let each: Vec<String> = values.iter().map(|value| format!("{value:.3}")).collect();
        let worst = if least_is_worst { least } else { most };
        println!("{:48} {mean:.3}  {worst:.3}   {}", format!("{moment}, {name}"), each.join(" "));
    }
}

/// Asks the hooks of each session, with what was known when it began.
fn from_copies(world: &World, sessions: &[Recorded], others: &[Recorded], kept: &Path, measures: Option<&Path>) -> Vec<Received> {
    let of = |of: usize| {
        let session = &sessions[of];
        restore(world, session, kept);
        let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
        let start = text(world, &context(&world.hook(&session.id, start, session.start - 1000)));
        let wishes = wishes(world, session);
        let prompt = session.first_prompt().unwrap_or_default();
        let asked = |prompt: &str| json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt});
        let first_prompt = text(world, &context(&world.hook(&session.id, asked(prompt), session.start)));
        let (query, long_query) = queried(world, session, prompt);
        let mut edits = Text::default();
        for path in &session.edited {
            let edit = json!({"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": path,
                "tool_input": {"file_path": format!("/srv/cli/{path}"), "old_string": "a", "new_string": "b"}});
            edits.and(text(world, &context(&world.hook(&session.id, edit, session.start + 1))));
        }
        let other = others[of % others.len()].first_prompt().unwrap_or_default();
        if let Some(to) = measures {
            write_measures(to, world, session, [prompt, other]);
        }
        let foreign = context(&world.hook("foreign", asked(other), session.start + 2)).len();
        Received { session: of, start, first_prompt, edits, foreign, query, long_query, wishes }
    };
    (0..sessions.len()).map(of).collect()
}

/// Appends the measures of the candidates for a session's own prompt, and for another project's.
fn write_measures(to: &Path, world: &World, session: &Recorded, prompts: [&str; 2]) {
    let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
    let scope = store.session_scope(Platform::ClaudeCode, &session.id).unwrap().unwrap();
    let branch = || Some(session.branch.clone());
    let mut out = fs::OpenOptions::new().create(true).append(true).open(to).unwrap();
    for (prompt, is_own) in prompts.into_iter().zip([true, false]) {
        let asked = Prompt { text: without_client_blocks(prompt), embedding: &|| None, branch: &branch, root: None };
        for (unit, measures) in at_prompt(&store, &scope, &asked).unwrap().measures {
            let edited = store.edited_by_unit(unit).unwrap();
            let is_related = is_own && edited.iter().any(|path| session.edited.contains(path));
            let line = json!({"session": session.id, "own": is_own, "unit": unit, "measures": measures, "related": is_related});
            writeln!(out, "{line}").unwrap();
        }
    }
}

/// The answers of `context --query` to a prompt.
fn queried(world: &World, session: &Recorded, prompt: &str) -> (Text, Text) {
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
    (text(world, &for_query(&ranked, QUERY_BYTES).text), text(world, &for_query(&ranked, 2 * QUERY_BYTES).text))
}

/// The user's decisions that hold, and are about a file that the session edits.
fn wishes(world: &World, session: &Recorded) -> Vec<String> {
    let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
    let scope = store.session_scope(Platform::ClaudeCode, &session.id).unwrap().unwrap();
    let decisions = store.newest_memories(scope.project, &[MemoryKind::Decision], MEMORIES).unwrap();
    let is_wish = |memory: &nmem::model::MemoryRow| {
        memory.provenance == Provenance::User && memory.files.iter().any(|file| session.edited.contains(&file.path))
    };
    decisions.into_iter().filter(is_wish).map(|memory| format!("m{}", memory.id)).collect()
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
        let unit = units.first().copied().filter(|_| kind != 's');
        Some(Cited { id: word.to_string(), session, unit, edited })
    };
    let cites = |line: &str| {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| word.len() > 1);
        words.filter_map(cited).collect::<Vec<_>>()
    };
    Text { bytes: text.len(), lines: text.lines().map(cites).filter(|cited| !cited.is_empty()).collect() }
}

fn report(set: &str, folder: &Path, sessions: &[Recorded], received: &[Received]) -> Value {
    let by_id: HashMap<&str, &Recorded> = sessions.iter().map(|session| (session.id.as_str(), session)).collect();
    let editing: Vec<&Received> = received.iter().filter(|received| !sessions[received.session].edited.is_empty()).collect();
    let editors = |path: &str| sessions.iter().filter(|session| session.edited.contains(path)).count();
    let rarity = |path: &String| 1.0 - editors(path) as f64 / sessions.len() as f64;
    // How related it is: wholly by its branch, else as much as the rarest shared file is rare.
    let weight = |session: &Recorded, cited: &Cited| {
        let is_branch = by_id.get(cited.session.as_str()).is_some_and(|other| other.branch == session.branch);
        let shared = cited.edited.intersection(&session.edited).map(rarity).fold(0.0, f64::max);
        if is_branch && !is_on_trunk(session) { 1.0 } else { shared }
    };
    let of_line = |received: &Received, line: &Vec<Cited>| {
        line.iter().map(|cited| weight(&sessions[received.session], cited)).fold(0.0, f64::max)
    };
    let has_related = |received: &Received| {
        let session = &sessions[received.session];
        sessions.iter().any(|other| other.end < session.start && !other.edited.is_disjoint(&session.edited))
    };
    println!("\nUnasked, {set}: {} sessions that edit something", editing.len());
    println!("{:32} bytes  lines  related  by rarity  sessions answered, with anything related", "");
    let mut json = Map::new();
    for (name, of) in [
        ("at the start", (|received| &received.start) as fn(&Received) -> &Text),
        ("at the first prompt", |received| &received.first_prompt),
        ("before edits", |received| &received.edits),
        ("context --query, 2,000 bytes", |received| &received.query),
    ] {
        let weights: Vec<Vec<f64>> =
            editing.iter().map(|received| of(received).lines.iter().map(|line| of_line(received, line)).collect()).collect();
        let lines = weights.iter().flatten().count().max(1) as f64;
        let related = weights.iter().flatten().filter(|weight| **weight > 0.0).count() as f64 / lines;
        let by_rarity = weights.iter().flatten().sum::<f64>() / lines;
        let bytes = editing.iter().map(|received| of(received).bytes).sum::<usize>() / editing.len();
        let answered = editing.iter().filter(|received| of(received).bytes > 0).count();
        let some = weights.iter().filter(|weights| weights.iter().any(|weight| *weight > 0.0)).count();
        let (mut units, mut related_units) = (0, 0);
        for received in &editing {
            let mut seen = HashSet::new();
            let cited = of(received).lines.iter().flatten().filter(|cited| cited.unit.is_some_and(|unit| seen.insert(unit)));
            for cited in cited.collect::<Vec<_>>() {
                units += 1;
                related_units += usize::from(weight(&sessions[received.session], cited) > 0.0);
            }
        }
        let (with, without): (Vec<&Received>, Vec<&Received>) = editing.iter().partition(|received| has_related(received));
        let share = |all: &[&Received]| {
            let answered = all.iter().filter(|received| of(received).bytes > 0).count();
            if all.is_empty() { Value::Null } else { rounded(answered as f64 / all.len() as f64).into() }
        };
        let lines = lines / editing.len() as f64;
        println!(
            "{name:32} {bytes:5}  {lines:5.1}    {related:.3}      {by_rarity:.3}  {answered}, {some}; units {related_units} of {units}"
        );
        json.insert(
            name.into(),
            json!({"bytes": bytes, "lines": rounded(lines), "related": rounded(related), "by_rarity": rounded(by_rarity),
                "answered": answered, "with_related": some, "related_units": rounded(related_units as f64 / units.max(1) as f64),
                "answered_with_related": share(&with), "answered_without": share(&without),
                "answered_foreign": rounded(received.iter().filter(|received| received.foreign > 0).count() as f64 / received.len() as f64)}),
        );
    }
    let first = &json["at the first prompt"];
    println!(
        "{:32} of those where anything related exists {}, where nothing does {}, prompts of another project {}",
        "first prompts answered", first["answered_with_related"], first["answered_without"], first["answered_foreign"]
    );
    json.insert("wishes".into(), wishes_given(&editing));
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
        if is_on_trunk(session) || !sessions.iter().any(|other| is_own(&other)) {
            continue;
        }
        known += 1;
        let named = received.start.lines.iter().flatten().next();
        let is_first = named.is_some_and(|cited| by_id.get(cited.session.as_str()).is_some_and(|of| of.branch == session.branch));
        first += usize::from(is_first);
    }
    println!("{:32} {first} of {known}", "the branch's own session first");
    json.insert("own_branch_first".into(), json!([first, known]));
    Value::Object(json)
}

/// Shares of the wishes about the sessions' files that are injected: at the start or the first prompt, and also before edits.
fn wishes_given(editing: &[&Received]) -> Value {
    let all: usize = editing.iter().map(|received| received.wishes.len()).sum();
    let given = |of: &dyn Fn(&Received) -> Vec<&Text>| {
        let of = |received: &&Received| {
            let cited: HashSet<&str> =
                of(received).iter().flat_map(|text| &text.lines).flatten().map(|cited| cited.id.as_str()).collect();
            received.wishes.iter().filter(|wish| cited.contains(wish.as_str())).count()
        };
        editing.iter().map(of).sum::<usize>()
    };
    let early = given(&|received| vec![&received.start, &received.first_prompt]);
    let ever = given(&|received| vec![&received.start, &received.first_prompt, &received.edits]);
    println!("{:32} {early} of {all} at the start or first prompt, {ever} with those before edits", "wishes about the files");
    let share = |given: usize| if all == 0 { Value::Null } else { rounded(given as f64 / all as f64).into() };
    json!({"all": all, "given": share(early), "given_with_edits": share(ever)})
}

/// The queries of a set; without any, the first prompts of sessions that share a file with an earlier one.
fn queries(folder: &Path, sessions: &[Recorded]) -> Vec<Query> {
    let data: Value = serde_json::from_str(&fs::read_to_string(folder.join("queries.json")).unwrap()).unwrap();
    let past = |own: &Recorded| {
        let mut past: Vec<&Recorded> = sessions.iter().filter(|session| session.end < own.start).collect();
        past.sort_by_key(|session| std::cmp::Reverse(session.end));
        past
    };
    let of = |own: &Recorded, specific: bool, relevant: HashMap<String, f64>| Query {
        id: own.id.clone(),
        session: own.id.clone(),
        text: own.first_prompt().unwrap_or_default().into(),
        branch: own.branch.clone(),
        specific,
        relevant,
        past: past(own).into_iter().map(|session| session.id.clone()).collect(),
        edited: Vec::new(),
    };
    let labelled = |query: &Value| {
        let own = sessions.iter().find(|session| session.id == query["session"].as_str().unwrap()).unwrap();
        let relevant = query["relevant"].as_object().unwrap().iter();
        let relevant = relevant.map(|(id, weight)| (id.clone(), weight.as_f64().unwrap())).collect();
        of(own, query["specific"].as_bool().unwrap_or_default(), relevant)
    };
    let labelled: Vec<Query> = data["queries"].as_array().unwrap().iter().map(labelled).collect();
    if !labelled.is_empty() {
        return labelled;
    }
    let by_files = |own: &Recorded| {
        let shared = |other: &&Recorded| (other.id.clone(), other.edited.intersection(&own.edited).count() as f64);
        let relevant: HashMap<String, f64> = past(own).iter().map(shared).filter(|(_, shared)| *shared > 0.0).collect();
        (!relevant.is_empty()).then(|| of(own, true, relevant))
    };
    sessions.iter().filter_map(by_files).collect()
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}
