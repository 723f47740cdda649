//! Is what a later session should know remembered, in how many bytes, and still true (`NMEM_BENCH_DATA/facts`, default
//! `../shared/bench`)?
//!
//! `cargo bench --bench facts`: sends labelled sessions through the hooks, one project each, and scores their memories and the titles of
//! their work units beside simple rules. `-- --missed` lists the facts that are not remembered, `-- --show SESSION` prints
//! what is remembered of a session. "nmem" has weights that were fitted on these sessions; "cross-validated" draws the
//! same memories by weights that have not seen the session, "by others" by weights that have not seen its project. The table
//! is of the first project; below it stands each project with both. `-- --fit` writes `src/distil/statement_weights.rs`, `-- --ablate` leaves
//! out each feature, `-- --write FILE` writes its memories as the labels' scorer reads them. The last line is one JSON object.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

mod baselines;
mod fit;
mod projects;
#[expect(dead_code, reason = "the bench of models uses the rest")]
mod score;
mod stored;
#[path = "../recall/world.rs"]
mod world;

use nmem::distil::score::ScoreWeights;
use nmem::model::{Draft, Files, Provenance, UnitStory};
use nmem::store::{PERSON_WAIT, Store};
use projects::{PROJECTS, Project};
use score::{Kept, Named, holds, score};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use stored::{memories, strings, units};
use world::{World, send};

fn main() {
    score::check();
    let args: Vec<String> = std::env::args().collect();
    let data = std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let projects = Project::all(&data);
    let Some(Project { sessions, labels, .. }) = projects.first().filter(|project| project.name == PROJECTS[0].0) else {
        println!("there is no {}: nothing was measured", data.join(PROJECTS[0].2).display());
        println!("{}", json!({"bench": "facts", "measured": false}));
        return;
    };
    let mut table = Map::new();
    for (name, rule) in baselines::RULES {
        let kept = labels.keys().map(|id| (id.clone(), baselines::kept(rule, &events(sessions, id)))).collect();
        row(&mut table, name, score(labels, &kept, &BTreeMap::new()));
    }
    let databases = Databases::new(&projects, args.iter().position(|arg| arg == "--keep").and_then(|at| args.get(at + 1)));
    if args.iter().any(|arg| arg == "--fit") {
        fs::write("src/distil/statement_weights.rs", fit::as_source(&fit::all(&projects, &databases.stories))).unwrap();
        println!("wrote src/distil/statement_weights.rs; build again to measure with it");
    }
    let (kept, named) = (&databases.kept, &databases.named);
    row(&mut table, "nmem", score(labels, kept, named));
    let drawn = |weights: &fit::Fitted| -> ByOfSession<Kept> {
        weights.iter().map(|(id, weights)| (id.clone(), drawn(&databases.stories[id], weights))).collect()
    };
    let weights = fit::cross_validated(&projects, &databases.stories, None);
    let cross_validated = drawn(&weights);
    let (tools, ms) = time_of_largest(&databases.stories);
    println!("drawing the memories of a unit with {tools} tool uses takes {ms:.1} ms");
    row(&mut table, "nmem, cross-validated", score(labels, &cross_validated, named));
    if let Some(to) = args.iter().position(|arg| arg == "--write").and_then(|at| args.get(at + 1)) {
        let line = |(id, memory): (&String, &Kept)| {
            let by = if memory.is_users { "user" } else { "agent" };
            json!({"session": id, "kind": memory.kind, "by": by, "text": memory.text}).to_string() + "\n"
        };
        let all = cross_validated.iter().flat_map(|(id, memories)| memories.iter().map(move |memory| (id, memory)));
        fs::write(to, all.map(line).collect::<String>()).unwrap();
    }
    if args.iter().any(|arg| arg == "--kinds") {
        let mut sizes: BTreeMap<String, [usize; 2]> = BTreeMap::new();
        for memory in cross_validated.values().flatten() {
            let size = sizes.entry(format!("{}{}", memory.kind, if memory.is_users { " by the user" } else { "" })).or_default();
            *size = [size[0] + 1, size[1] + memory.text.len()];
        }
        sizes.iter().for_each(|(kind, [n, bytes])| println!("{kind}: {n}, {} bytes a session", bytes / labels.len()));
    }
    let chosen = |id: &String| vec![Kept { text: fit::chosen(&databases.stories[id], &weights[id]), ..Kept::default() }];
    row(
        &mut table,
        "its choice alone",
        score(labels, &labels.keys().map(|id| (id.clone(), chosen(id))).collect(), &BTreeMap::new()),
    );
    let mut by_project = Map::new();
    let by_others = drawn(&fit::by_others(&projects, &databases.stories));
    for (name, kept) in [("nmem", kept), ("cross-validated", &cross_validated), ("by others", &by_others)] {
        for project in &projects {
            row(&mut by_project, &format!("{}: {name}", project.name), score(&project.labels, kept, named));
        }
        let (mean, worst) = mean_and_worst(&projects, kept, named);
        println!("{name:28} kept {mean:.3} in the mean of {} projects, {worst:.3} in the worst", projects.len());
    }
    if args.iter().any(|arg| arg == "--ablate") {
        for (at, name) in nmem::distil::score::FEATURES.iter().enumerate() {
            let kept = drawn(&fit::cross_validated(&projects, &databases.stories, Some(at)));
            row(&mut Map::new(), &format!("without {name}"), score(labels, &kept, named));
            let (mean, worst) = mean_and_worst(&projects, &kept, named);
            println!("{:28} kept {mean:.3} in the mean of {} projects, {worst:.3} in the worst", "", projects.len());
        }
    }
    if args.iter().any(|arg| arg == "--missed") {
        for (id, fact) in labels.iter().flat_map(|(id, labels)| labels.facts.iter().map(move |fact| (id, fact))) {
            if !cross_validated[id].iter().any(|memory| holds(&memory.text, &fact.must)) {
                println!("missed: {} ({}, events {:?}): {}", fact.id, fact.weight, fact.evidence, fact.question);
            }
        }
    }
    if let Some(at) = args.iter().position(|arg| arg == "--show") {
        let id = args.get(at + 1).map_or("", String::as_str);
        for memory in cross_validated.get(id).into_iter().flatten() {
            println!("\n[{}{}]\n{}", memory.kind, if memory.is_users { ", the user's" } else { "" }, memory.text);
        }
        named.get(id).into_iter().flatten().for_each(|unit| println!("unit of prompts {:?}: {}", unit.prompts, unit.title));
    }
    println!(
        "\n{}",
        json!({"bench": "facts", "measured": true, "sessions": labels.len(), "kept": table, "projects": by_project})
    );
}

/// Share of the facts that is kept: the mean over projects, and the worst project.
fn mean_and_worst(projects: &[Project], kept: &ByOfSession<Kept>, named: &ByOfSession<Named>) -> (f64, f64) {
    let kept = |project: &Project| score(&project.labels, kept, named)["kept"].as_f64().unwrap();
    let kept: Vec<f64> = projects.iter().map(kept).collect();
    (kept.iter().sum::<f64>() / kept.len() as f64, kept.iter().copied().fold(1.0, f64::min))
}

fn row(table: &mut Map<String, Value>, name: &str, scores: Value) {
    println!(
        "{name:28} kept {} in {} bytes a session, traps {}, lines that hold a fact {}, users' decisions {} {}, titles {}",
        scores["kept"],
        scores["bytes_a_session"],
        scores["traps_told"],
        scores["lines_that_hold_a_fact"],
        scores["users_decisions_as_such"],
        scores["users_decisions_that_are_facts"],
        scores["titles_that_say_it"]
    );
    table.insert(name.into(), scores);
}

fn events(sessions: &Path, id: &str) -> Vec<Value> {
    let text = fs::read_to_string(sessions.join(format!("sessions/{id}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

type ByOfSession<T> = BTreeMap<String, Vec<T>>;

/// The labelled sessions as nmem recorded them by rules.
struct Databases {
    kept: ByOfSession<Kept>,
    named: ByOfSession<Named>,
    stories: ByOfSession<UnitStory>,
}

impl Databases {
    /// Sends each session through the hooks; with a folder, its databases are kept there and used again.
    fn new(projects: &[Project], keep: Option<&String>) -> Databases {
        let mut all = Databases { kept: BTreeMap::new(), named: BTreeMap::new(), stories: BTreeMap::new() };
        projects.iter().for_each(|project| all.add(project, keep));
        all
    }

    fn add(&mut self, project: &Project, keep: Option<&String>) {
        let (Project { sessions, labels, .. }, by_id) = (project, project.by_id());
        for id in labels.keys() {
            let kept = keep.map(|folder| Path::new(folder).join(format!("{id}.db")));
            let world = World::new(&format!("facts-{id}"));
            if kept.as_ref().is_none_or(|db| !db.exists()) {
                send(&world, sessions, &by_id[id]);
                if let Some(kept) = &kept {
                    fs::create_dir_all(kept.parent().unwrap()).unwrap();
                    fs::copy(world.db(), kept).unwrap();
                    let _ = fs::copy(world.db().with_extension("db-wal"), kept.with_extension("db-wal"));
                }
            }
            let store = Store::open(&Files::of(kept.unwrap_or_else(|| world.db()), false), PERSON_WAIT).unwrap();
            self.kept.insert(id.clone(), memories(&store));
            self.named.insert(id.clone(), units(&store));
            self.stories.insert(id.clone(), stories(&store));
        }
    }
}

fn stories(store: &Store) -> Vec<UnitStory> {
    let mut ids = Vec::new();
    store
        .each_row(None, &mut |row| {
            if row.table.name() == "work_units" {
                ids.extend(row.values["id"].as_i64());
            }
            Ok(())
        })
        .unwrap();
    ids.into_iter().filter_map(|id| store.unit_story(id).unwrap()).collect()
}

/// Time for the largest unit: its number of tool uses, and milliseconds.
fn time_of_largest(stories: &ByOfSession<UnitStory>) -> (usize, f64) {
    const RUNS: u32 = 20;
    let domain = nmem::domains::of(None, None);
    let largest = stories.values().flatten().max_by_key(|story| story.tools.len()).expect("there are units");
    let begun = std::time::Instant::now();
    for _ in 0..RUNS {
        std::hint::black_box(nmem::distil::distil_unit(largest, &domain, &ScoreWeights::fitted(), None));
    }
    (largest.tools.len(), begun.elapsed().as_secs_f64() * 1e3 / f64::from(RUNS))
}

/// The memories of a session by these weights.
fn drawn(stories: &[UnitStory], weights: &ScoreWeights) -> Vec<Kept> {
    let domain = nmem::domains::of(None, None);
    let mut all: Vec<Draft> = Vec::new();
    for story in stories {
        let drafts = nmem::distil::distil_unit(story, &domain, weights, None).drafts;
        all.extend(drafts);
    }
    let of = |draft: Draft| {
        let mut lines = vec![draft.title];
        strings(&Value::Object(draft.content), &mut lines);
        Kept { kind: draft.kind.name().into(), is_users: draft.provenance == Provenance::User, text: lines.join("\n") }
    };
    all.into_iter().map(of).collect()
}
