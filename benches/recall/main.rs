//! Does recall bring the right earlier sessions (`NMEM_BENCH_DATA/recall`, default `../shared/bench`)?
//!
//! `cargo bench --bench recall`: sends real sessions through the hooks; for each query, shows what a session that
//! begins with it would receive, and again with its first three files in play, beside the simple rankings; then LoCoMo through `nmem search`'s own
//! way; then what `nmem context` and `nmem search` take in time and memory at up to a million tool uses and 100,000 memories.
//! `-- --ablation` drops one route at a time and moves weights, `-- --prompts` asks only when hooks speak at a prompt, `-- --sets` scores `nmem context --query` on each set, `-- --unasked [DIR] [--measures FILE]` what sessions receive unasked, `-- --locomo` only long conversations, `-- --large`
//! measures time and memory alone. Prints tables for
//! people and one JSON object as its last line.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

mod baselines;
mod large;
mod locomo;
mod prompts;
mod recorded;
mod score;
mod sessions;
mod unasked;
mod world;

use nmem::model::{Files, Filter, HitKind, RelatedWork, SearchScope};
use nmem::rank::RankWeights;
use nmem::recall::{RecallQuery, ranked_by, search};
use nmem::render::ranked_units::for_request;
use nmem::store::{PERSON_WAIT, Store};
use score::{Query, Scores, score};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use world::World;

const BUDGETS: [usize; 3] = [2000, 4000, 9000];
/// Pieces of work among which a block is chosen, as `nmem context` does.
const RANKED: usize = 16;

/// The query before which about a thousand tool uses are known.
const SMALL: usize = 5;

/// A query, and what was known when it was asked.
struct Case {
    query: Query,
    store: Store,
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let asked = |name: &str| args.iter().any(|arg| arg == name);
    score::check();
    let folder =
        std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from).join("recall");
    if !folder.join("queries.json").exists() {
        println!("there is no {}: nothing was measured", folder.join("queries.json").display());
        println!("{}", json!({"bench": "recall", "measured": false}));
        return;
    }
    if asked("--prompts") {
        println!("\n{}", json!({"bench": "recall", "measured": true, "prompts": prompts::run(folder.parent().unwrap())}));
        return;
    }
    if asked("--locomo") {
        println!("\n{}", json!({"bench": "recall", "measured": true, "locomo": locomo::run(folder.parent().unwrap())}));
        return;
    }
    if let Some(at) = args.iter().position(|arg| arg == "--unasked") {
        let keep = args.get(at + 1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from);
        let measures = args.iter().position(|arg| arg == "--measures").and_then(|at| args.get(at + 1)).map(PathBuf::from);
        println!(
            "\n{}",
            json!({"bench": "recall", "measured": true, "unasked": unasked::run(folder.parent().unwrap(), keep.as_deref(), measures.as_deref())})
        );
        return;
    }
    if asked("--sets") {
        println!("\n{}", json!({"bench": "recall", "measured": true, "sets": sets(folder.parent().unwrap())}));
        return;
    }
    let world = World::new("queries");
    let replayed = sessions::replayed(&world, &folder);
    let (small, whole) = (replayed[SMALL].1.clone(), world.keep("whole"));
    if asked("--large") {
        println!("\n{}", json!({"bench": "recall", "measured": true, "large": large::run(&world, &small, &whole)}));
        return;
    }
    let open = |copy| Store::open(&Files::of(copy, false), PERSON_WAIT).unwrap();
    let moments: Vec<Case> = replayed.into_iter().map(|(query, copy)| Case { query, store: open(copy) }).collect();
    println!("{} queries; recall@5 / MRR / nDCG@5\n", moments.len());
    let mut table = Table::default();
    for (name, rule) in baselines::RULES {
        let texts = baselines::texts(&folder);
        table.row(name, &moments, moments.iter().map(|case| rule(&case.query, &texts)).collect());
    }
    if asked("--ablation") {
        return ablation(table, &moments);
    }
    for files in [false, true] {
        for budget in BUDGETS {
            let name = format!("nmem, {}, {budget} bytes", if files { "first three files" } else { "first prompt" });
            table.row(&name, &moments, moments.iter().map(|case| shown(case, &RankWeights::default(), files, budget)).collect());
        }
    }
    let locomo = locomo::run(folder.parent().unwrap());
    let prompts = prompts::run(folder.parent().unwrap());
    let unasked = unasked::run(folder.parent().unwrap(), None, None);
    let large = large::run(&world, &small, &whole);
    println!(
        "\n{}",
        json!({"bench": "recall", "measured": true, "sessions": table.json, "locomo": locomo, "prompts": prompts,
            "unasked": unasked, "large": large})
    );
}

/// The sets of queries.
const SETS: [&str; 2] = ["recall", "recall-2"];

/// Scores `nmem context --query` on each set; their mean and their worst.
fn sets(data: &Path) -> Value {
    let mut all: Vec<[f64; 3]> = Vec::new();
    let open = |copy| Store::open(&Files::of(copy, false), PERSON_WAIT).unwrap();
    for set in SETS.into_iter().filter(|set| data.join(set).join("queries.json").exists()) {
        let world = World::new(set);
        let replayed = sessions::replayed(&world, &data.join(set));
        let cases: Vec<Case> = replayed.into_iter().map(|(query, copy)| Case { query, store: open(copy) }).collect();
        let rankings: Vec<Vec<String>> =
            cases.iter().map(|case| shown(case, &RankWeights::default(), false, BUDGETS[1])).collect();
        let queries: Vec<&Query> = cases.iter().map(|case| &case.query).collect();
        let measures = score(&queries, &rankings).all;
        println!("{set:20} {} queries: R@5 {:.3}, MRR {:.3}", queries.len(), measures[0], measures[1]);
        all.push(measures);
    }
    let mean = |at: usize| all.iter().map(|measures| measures[at]).sum::<f64>() / all.len() as f64;
    let worst = |at: usize| all.iter().map(|measures| measures[at]).fold(1.0, f64::min);
    println!("mean R@5 {:.3}, MRR {:.3}; worst {:.3}, {:.3}", mean(0), mean(1), worst(0), worst(1));
    json!({"recall_at_5": mean(0), "mrr": mean(1), "worst": [worst(0), worst(1)]})
}

/// The sessions of what a session would be given, in its order.
fn shown(case: &Case, weights: &RankWeights, files: bool, budget: usize) -> Vec<String> {
    let query = &case.query;
    let files: &[String] = if files { &query.edited[..query.edited.len().min(3)] } else { &[] };
    let asked = RecallQuery {
        project: 1,
        own: None,
        request: Some(&query.text),
        branch: Some(&query.branch),
        embedding: None,
        files,
        root: None,
    };
    let found = ranked_by(&case.store, &asked, weights, RANKED).unwrap();
    let filter = Filter { scope: SearchScope::of(1), ..Filter::default() };
    let answer = search(&case.store, &query.text, &HitKind::ALL, &filter, RANKED, &|_| None).unwrap();
    let work = RelatedWork { passages: answer.hits, grade: answer.grade, units: found, strangers: 0 };
    for_request(&work, budget).shown.iter().map(|shown| shown.ranked.unit.agent_session_id.clone()).collect()
}

/// Gain of each route, and the effect of its weight.
fn ablation(mut table: Table, moments: &[Case]) {
    let mut row = |name: &str, weights: RankWeights| {
        table.row(name, moments, moments.iter().map(|case| shown(case, &weights, false, 4000)).collect());
    };
    let all = RankWeights::default();
    row("all", all);
    for (name, without) in [
        ("without words", RankWeights { words: 0.0, ..all }),
        ("without the branch's name", RankWeights { branch_name: 0.0, ..all }),
        ("without named files", RankWeights { named: 0.0, ..all }),
        ("without the same branch", RankWeights { branch: 0.0, ..all }),
        ("without often edited files", RankWeights { often_edited: 0.0, ..all }),
        ("words alone", RankWeights { branch_name: 0.0, named: 0.0, branch: 0.0, often_edited: 0.0, ..all }),
    ] {
        row(name, without);
    }
    for factor in [0.5, 0.75, 1.33, 2.0] {
        row(&format!("words × {factor}"), RankWeights { words: all.words * factor, ..all });
        row(&format!("branch's name × {factor}"), RankWeights { branch_name: all.branch_name * factor, ..all });
        row(&format!("often edited × {factor}"), RankWeights { often_edited: all.often_edited * factor, ..all });
        row(&format!("half sure × {factor}"), RankWeights { half_sure: all.half_sure * factor, ..all });
    }
}

#[derive(Default)]
struct Table {
    json: Map<String, Value>,
}

impl Table {
    fn row(&mut self, name: &str, moments: &[Case], rankings: Vec<Vec<String>>) {
        let queries: Vec<&Query> = moments.iter().map(|case| &case.query).collect();
        let Scores { all, specific, older } = score(&queries, &rankings);
        let cell = |[a, b, c]: [f64; 3]| format!("{a:.3} / {b:.3} / {c:.3}");
        println!("{name:36} all {}   specific {}   older {}", cell(all), cell(specific), cell(older));
        let rounded = |measures: [f64; 3]| measures.map(|x| (x * 1000.0).round() / 1000.0);
        self.json.insert(name.into(), json!({"all": rounded(all), "specific": rounded(specific), "older": rounded(older)}));
    }
}
