//! Is what a later session should know remembered, in how many bytes, and still true (`NMEM_BENCH_DATA/facts`, default
//! `../shared/bench`)?
//!
//! `cargo bench --bench facts`: sends labelled sessions through the hooks, one project each, and scores their memories and the titles of
//! their work units beside simple rules. `-- --missed` lists the facts that are not remembered, `-- --show SESSION` prints
//! what is remembered of a session. "nmem" has weights that were fitted on these sessions, "by others" weights that have
//! not seen the project; `--missed`, `--show` and `--write` are of those. The table is of the first project; below it
//! stands each project. `-- --kept` leaves out what is asked (six of seven minutes), `-- --decisions` lists the user's decisions
//! that hold no fact. `-- --fit` writes `src/distil/statement_weights.rs`, `-- --ablate` leaves
//! out each feature, `-- --write FILE` writes its memories as the labels' scorer reads them. The last line is one JSON object.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

mod asked;
mod baselines;
#[path = "../benefit/deja.rs"]
#[expect(dead_code, reason = "the bench of benefit runs its hooks")]
mod deja;
mod fit;
mod projects;
#[path = "../recall/recorded.rs"]
#[expect(dead_code, reason = "the benches of recall and benefit use the rest")]
mod recorded;
#[expect(dead_code, reason = "the bench of models uses the rest")]
mod score;
mod stored;
#[path = "../recall/world.rs"]
mod world;

use nmem::distil::score::ScoreWeights;
use nmem::model::{Files, PromptKind, PromptSource, Provenance, UnitStory};
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
    let path = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1)).map(Path::new);
    let options = asked::AskedOptions { keep: path("--keep"), grades: path("--grades"), model: path("--model") };
    if args.iter().any(|arg| arg == "--asked") && projects.len() > 1 {
        let databases = Databases::new(&projects, args.iter().position(|arg| arg == "--keep").and_then(|at| args.get(at + 1)));
        let asked = asked::run(&projects, &fit::by_others(&projects, &databases.stories, None), &options);
        println!("\n{}", json!({"bench": "facts", "measured": true, "asked": asked}));
        return;
    }
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
    let stories = &databases.stories;
    let (tools, ms) = time_of_largest(stories);
    println!("drawing the memories of a unit with {tools} tool uses takes {ms:.1} ms");
    row(&mut table, "nmem", score(labels, &databases.kept, &databases.named));
    let weights = fit::by_others(&projects, stories, None);
    if !args.iter().any(|arg| arg == "--kept") {
        asked::run(&projects, &weights, &options);
    }
    let by_others = Drawn::new(stories, &weights);
    let chosen = |id: &String| vec![Kept { text: fit::chosen(&stories[id], &weights[id]), ..Kept::default() }];
    let chosen = labels.keys().map(|id| (id.clone(), chosen(id))).collect();
    row(&mut table, "its choice alone, by others", score(labels, &chosen, &BTreeMap::new()));
    let mut by_project = Map::new();
    let fitted = Drawn::new(stories, &stories.keys().map(|id| (id.clone(), ScoreWeights::fitted())).collect());
    for (name, drawn) in [("nmem", &fitted), ("by others", &by_others)] {
        let scores = drawn.scores(&projects);
        for (project, scores) in projects.iter().zip(&scores) {
            row(&mut by_project, &format!("{}: {name}", project.name), scores.clone());
        }
        println!("{name:28} {}", over_projects(&scores));
    }
    if args.iter().any(|arg| arg == "--ablate") {
        for (at, name) in nmem::distil::score::FEATURES.iter().enumerate() {
            let drawn = Drawn::new(stories, &fit::by_others(&projects, stories, Some(at)));
            println!("{:28} {}", format!("without {name}"), over_projects(&drawn.scores(&projects)));
        }
    }
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    if let Some(to) = value("--write") {
        fs::write(to, by_others.lines()).unwrap();
    }
    if args.iter().any(|arg| arg == "--missed") {
        let all = projects.iter().flat_map(|project| &project.labels);
        for (id, fact) in all.flat_map(|(id, labels)| labels.facts.iter().map(move |fact| (id, fact))) {
            if !by_others.kept[id].iter().any(|memory| holds(&memory.text, &fact.must)) {
                println!("missed: {} ({}, events {:?}): {}", fact.id, fact.weight, fact.evidence, fact.question);
            }
        }
    }
    if args.iter().any(|arg| arg == "--decisions") {
        for (id, labels) in projects.iter().flat_map(|project| &project.labels) {
            let is_users = |memory: &&Kept| memory.is_users && matches!(memory.kind.as_str(), "decision" | "lesson");
            let is_fact = |memory: &&Kept| labels.facts.iter().any(|fact| holds(&memory.text, &fact.must));
            let none = by_others.kept[id].iter().filter(is_users).filter(|memory| !is_fact(memory));
            none.for_each(|memory| println!("no fact: {id}: {}", memory.text.replace('\n', " / ")));
        }
    }
    if let Some(id) = value("--show") {
        for memory in by_others.kept.get(id).into_iter().flatten() {
            println!("\n[{}{}]\n{}", memory.kind, if memory.is_users { ", the user's" } else { "" }, memory.text);
        }
        let units = by_others.named.get(id).into_iter().flatten();
        units.for_each(|unit| println!("unit of prompts {:?}: {}", unit.prompts, unit.title));
    }
    println!(
        "\n{}",
        json!({"bench": "facts", "measured": true, "sessions": labels.len(), "kept": table, "projects": by_project})
    );
}

/// The figures of the goals: means over projects, worst project, sums of what is counted.
fn over_projects(scores: &[Value]) -> String {
    let of = |name: &str| scores.iter().map(|scores| scores[name].as_f64().unwrap()).collect::<Vec<f64>>();
    let mean = |name: &str| of(name).iter().sum::<f64>() / scores.len() as f64;
    let worst = of("kept").iter().copied().fold(1.0, f64::min);
    let sum = |name: &str| {
        let part = |at: usize| scores.iter().map(|scores| scores[name][at].as_u64().unwrap()).sum::<u64>();
        format!("{} of {}", part(0), part(1))
    };
    format!(
        "kept {:.3} in the mean of {} projects, {worst:.3} in the worst; {:.0} bytes a session, traps {}, lines {:.3}, users' decisions {:.3} ({}), titles {}",
        mean("kept"),
        scores.len(),
        mean("bytes_a_session"),
        sum("traps_told"),
        mean("lines_that_hold_a_fact"),
        mean("users_decisions_as_such"),
        sum("users_decisions_that_are_facts"),
        sum("titles_that_say_it"),
    )
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

/// Memories and units that rules draw from the sessions by given weights.
struct Drawn {
    kept: ByOfSession<Kept>,
    named: ByOfSession<Named>,
}

impl Drawn {
    fn new(stories: &ByOfSession<UnitStory>, weights: &fit::Fitted) -> Drawn {
        let mut drawn = Drawn { kept: BTreeMap::new(), named: BTreeMap::new() };
        for (id, stories) in stories {
            let (kept, named) = drawn_of(stories, &weights[id]);
            drawn.kept.insert(id.clone(), kept);
            drawn.named.insert(id.clone(), named);
        }
        drawn
    }

    fn scores(&self, projects: &[Project]) -> Vec<Value> {
        projects.iter().map(|project| score(&project.labels, &self.kept, &self.named)).collect()
    }

    /// The memories and units, as the labels' scorer reads them.
    fn lines(&self) -> String {
        let memory = |id: &str, memory: &Kept| {
            let by = if memory.is_users { "user" } else { "agent" };
            json!({"session": id, "kind": memory.kind, "by": by, "text": memory.text}).to_string() + "\n"
        };
        let unit =
            |id: &str, unit: &Named| json!({"session": id, "prompts": unit.prompts, "title": unit.title}).to_string() + "\n";
        let kept = self.kept.iter().flat_map(|(id, all)| all.iter().map(|one| memory(id, one)));
        let named = self.named.iter().flat_map(|(id, all)| all.iter().map(|one| unit(id, one)));
        kept.chain(named).collect()
    }
}

/// Memories and units of a session.
fn drawn_of(stories: &[UnitStory], weights: &ScoreWeights) -> (Vec<Kept>, Vec<Named>) {
    let domain = nmem::domains::of(None, None);
    let (mut kept, mut named) = (Vec::new(), Vec::new());
    for story in stories {
        let drawn = nmem::distil::distil_unit(story, &domain, weights, None);
        kept.extend(drawn.drafts.into_iter().map(|draft| {
            let mut lines = vec![draft.title];
            strings(&Value::Object(draft.content), &mut lines);
            Kept { kind: draft.kind.name().into(), is_users: draft.provenance == Provenance::User, text: lines.join("\n") }
        }));
        let asked =
            story.prompts.iter().filter(|prompt| prompt.source == PromptSource::User && prompt.kind == PromptKind::Prompt);
        named.push(Named {
            prompts: asked.map(|prompt| prompt.number as usize - 1).collect(),
            title: drawn.title.or_else(|| story.intent.clone()).unwrap_or_default(),
        });
    }
    (kept, named)
}
