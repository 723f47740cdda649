//! Scores of segmentation on labelled sessions (`NMEM_BENCH_DATA/units`, default `../shared/bench`).
//!
//! `cargo bench --bench units`: scores of the compiled-in weights through the hook's own way into a database (they have
//! seen these streams), and cross-validated: for each stream, weights that have seen neither it nor a stream that shares a
//! session with it. Beside them the simple rules. `-- --quick` without cross-validation. `-- --fit` writes
//! `src/segmentation/boundary_weights.rs`. `-- --ablation` drops groups of signals. `-- --errors` lists what is missed and falsely found.
//! Prints tables for people and one JSON object as its last line.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

mod baselines;
mod fit;
mod score;
mod streams;

use baselines::{RULES, Random};
use fit::{Known, by_kind, fit};
use nmem::replay::{self, ScratchStore};
use nmem::segmentation::{DecisionPhase, SIGNALS, WORK};
use score::{Scores, Truth, half_unit, score};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use streams::Stream;

const PROMPTS: &[DecisionPhase] = &[DecisionPhase::Turn, DecisionPhase::Prompt];
/// Resamples of a bootstrap interval.
const RESAMPLES: usize = 1000;
/// Runs of the random rule.
const RUNS: usize = 200;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let prompt_features = |name: &str| args.iter().any(|arg| arg == name);
    score::check();
    let folder =
        std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from).join("units");
    if !folder.join("labels.json").exists() {
        println!("there is no {}: nothing was measured", folder.join("labels.json").display());
        println!("{}", json!({"bench": "units", "measured": false}));
        return;
    }
    let config = nmem::config::load(&[Path::new("/")]).unwrap();
    let streams = streams::load(&folder, &config);
    let known: Vec<Known> = streams.iter().map(Known::of).collect();
    let mute: Vec<Stream> = streams.iter().map(Stream::without_prompts).collect();
    let mute: Vec<Known> = mute.iter().map(Known::of).collect();
    if prompt_features("--fit") {
        let all = |known: &[Known], moments: &[DecisionPhase]| fit(&known.iter().collect::<Vec<_>>(), moments, &|_| true);
        let source = fit::as_source(&fit::merged(all(&known, PROMPTS), all(&mute, &[DecisionPhase::Inside])));
        std::fs::write("src/segmentation/boundary_weights.rs", source).unwrap();
        println!("src/segmentation/boundary_weights.rs is written");
        return;
    }
    if prompt_features("--ablation") {
        return ablation(&known);
    }
    let mut table = Table::default();
    println!("{} streams, {} prompts\n", streams.len(), streams.iter().map(|s| s.truth.prompts).sum::<usize>());
    table.head();
    for (name, rule) in RULES {
        table.rows(name, &streams.iter().map(|s| (&s.truth, rule(s))).collect::<Vec<_>>(), false);
    }
    table.random(&streams);
    let played = played(&streams);
    for (name, inline) in [("compiled in, after late evidence", false), ("compiled in, at the prompt", true)] {
        let chosen = |p: &replay::Starts| to_places(if inline { &p.inline } else { &p.starts });
        table.rows(name, &streams.iter().zip(&played).map(|(s, p)| (&s.truth, chosen(p))).collect::<Vec<_>>(), false);
    }
    if !prompt_features("--quick") {
        let late_and_inline = cross_validated(&known, PROMPTS, &|_| true);
        let rows = |inline: bool| -> Vec<(&Truth, Vec<usize>)> {
            let of = |p: &(Vec<usize>, Vec<usize>)| if inline { p.1.clone() } else { p.0.clone() };
            streams.iter().zip(&late_and_inline).map(|(s, p)| (&s.truth, of(p))).collect()
        };
        table.rows("cross-validated, after late evidence", &rows(false), true);
        table.rows("cross-validated, at the prompt", &rows(true), true);
        let inside = cross_validated(&mute, &[DecisionPhase::Inside], &|_| true);
        let rows: Vec<_> = streams.iter().zip(&inside).map(|(s, p)| (&s.truth, p.0.clone())).collect();
        table.rows("cross-validated, prompts taken out", &rows, true);
        if prompt_features("--errors") {
            errors(&streams, &late_and_inline);
        }
    }
    println!("{}", json!({"bench": "units", "measured": true, "scores": table.json}));
}

fn to_places(prompts: &[i64]) -> Vec<usize> {
    prompts.iter().filter_map(|n| usize::try_from(*n).ok()).collect()
}

/// Boundaries that hooks find in the streams.
fn played(streams: &[Stream]) -> Vec<replay::Starts> {
    let scratch = ScratchStore::new().unwrap();
    let mut store = scratch.store().unwrap();
    streams.iter().map(|stream| replay::play(&mut store, &stream.events).unwrap()).collect()
}

/// Late and inline boundaries of each stream, by weights fitted on the streams that share no session with it.
fn cross_validated(
    known: &[Known],
    moments: &[DecisionPhase],
    keeps: &(dyn Fn(usize) -> bool + Sync),
) -> Vec<(Vec<usize>, Vec<usize>)> {
    let one = |i: usize| {
        let apart = |other: &&Known| other.stream.sources.is_disjoint(&known[i].stream.sources);
        let others: Vec<&Known> = known.iter().filter(apart).collect();
        (i, known[i].live(&fit(&others, moments, keeps)))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let run = |t: usize| scope.spawn(move || (t..known.len()).step_by(threads).map(one).collect::<Vec<_>>());
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, found)| found).collect()
}

/// Collects rows for people and for machines.
#[derive(Default)]
struct Table {
    json: Map<String, Value>,
}

impl Table {
    fn head(&self) {
        println!(
            "{:37} {:8}{:6} {:>5} {:>5}  {:>5} {:>5}  {:>5} {:>5} {:>5}  {:>5} {:>5} {:>5}  95% of F1±1, Pk",
            "", "", "", "true", "found", "Pk", "WD", "P", "R", "F1", "P±1", "R±1", "F1±1"
        );
    }

    fn rows(&mut self, name: &str, predicted: &[(&Truth, Vec<usize>)], interval: bool) {
        for (kind, hand) in [("hand", true), ("spliced", false)] {
            let of: Vec<_> = predicted.iter().filter(|(truth, _)| truth.hand == hand).cloned().collect();
            let k = half_unit(&of.iter().map(|(truth, _)| *truth).collect::<Vec<_>>());
            let (by_stream, pooled) = score(&of, k);
            let bounds = if interval { bootstrap(&of, k) } else { String::new() };
            self.row(name, kind, "macro", &by_stream, &bounds);
            self.row(name, kind, "micro", &pooled, "");
        }
    }

    fn row(&mut self, name: &str, kind: &str, mean: &str, s: &Scores, bounds: &str) {
        println!(
            "{name:37} {kind:8}{mean:6} {:5} {:5}  {:5.3} {:5.3}  {:5.3} {:5.3} {:5.3}  {:5.3} {:5.3} {:5.3}  {bounds}",
            s.truth, s.predicted, s.pk, s.wd, s.precision, s.recall, s.f1, s.precision1, s.recall1, s.f1_1
        );
        let round = |x: f64| (x * 1000.0).round() / 1000.0;
        self.json.insert(
            format!("{name}, {kind}, {mean}"),
            json!({"true": s.truth, "predicted": s.predicted, "pk": round(s.pk), "wd": round(s.wd), "p": round(s.precision),
                   "r": round(s.recall), "f1": round(s.f1), "p1": round(s.precision1), "r1": round(s.recall1), "f1_1": round(s.f1_1)}),
        );
    }

    /// Boundaries at random, at the true rate of each kind: the mean of many runs.
    fn random(&mut self, streams: &[Stream]) {
        let mut random = Random(1);
        for (kind, hand) in [("hand", true), ("spliced", false)] {
            let of: Vec<&Stream> = streams.iter().filter(|s| s.truth.hand == hand).collect();
            let places: usize = of.iter().map(|s| s.truth.prompts - 1).sum();
            let rate = of.iter().map(|s| s.truth.boundaries.len()).sum::<usize>() as f64 / places as f64;
            let k = half_unit(&of.iter().map(|s| &s.truth).collect::<Vec<_>>());
            let mut sums = [Scores::default(); 2];
            for _ in 0..RUNS {
                let mut drawn = |s: &Stream| (1..s.truth.prompts).filter(|_| random.next() < rate).collect::<Vec<_>>();
                let rows: Vec<_> = of.iter().map(|s| (&s.truth, drawn(s))).collect();
                let (by_stream, pooled) = score(&rows, k);
                sums[0].add(&by_stream);
                sums[1].add(&pooled);
            }
            for (mean, sum) in ["macro", "micro"].iter().zip(&sums) {
                self.row("random at the true rate", kind, mean, &sum.over(RUNS), "");
            }
        }
    }
}

/// Streams drawn again and again: between which values 95 of 100 lie.
fn bootstrap(streams: &[(&Truth, Vec<usize>)], k: usize) -> String {
    let mut random = Random(7);
    let (mut f1, mut pk) = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let drawn: Vec<_> =
            (0..streams.len()).map(|_| streams[(random.next() * streams.len() as f64) as usize].clone()).collect();
        let (by_stream, _) = score(&drawn, k);
        f1.push(by_stream.f1_1);
        pk.push(by_stream.pk);
    }
    let bounds = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        format!("{:.2}-{:.2}", values[RESAMPLES / 40], values[RESAMPLES - RESAMPLES / 40])
    };
    format!("{}, {}", bounds(f1), bounds(pk))
}

/// Drops groups of signals, cross-validated: what each is worth.
fn ablation(known: &[Known]) {
    let groups: &[(&str, &[&str])] = &[
        ("nothing", &[]),
        ("length", &["prompt_length"]),
        ("continuing", &["continues"]),
        ("shift words", &["shift_words"]),
        ("pause", &["pause"]),
        ("completion", &["committed_before", "pushed_before", "tests_passed_before"]),
        ("size of the unit", &["unit_size"]),
        ("words of the prompt", &["new_words", "words_of_last_answer"]),
        ("names of the prompt", &["names_of_unit"]),
        ("words of the work", &["work_words_known", "work_against_usual"]),
        ("names of what follows", &["following_names_known"]),
        ("files", &["files_known"]),
        ("kind and size of the work", &["work_size", "investigates"]),
        ("both sides, valley", &["valley", "sides_against_usual"]),
        ("what follows", &["following_with_it"]),
        ("all of the work", &[]),
    ];
    println!("{:36} late: hand F1±1 / Pk, spliced F1±1 / Pk      at the prompt: the same", "without");
    for (name, dropped) in groups {
        let keeps = |signal: usize| !dropped.contains(&SIGNALS[signal].name) && (*name != "all of the work" || signal < WORK);
        let found = cross_validated(known, PROMPTS, &keeps);
        let contributions = |inline: bool| {
            let of = |p: &(Vec<usize>, Vec<usize>)| if inline { p.1.clone() } else { p.0.clone() };
            let rows: Vec<_> = known.iter().zip(&found).map(|(k, p)| (&k.stream.truth, of(p))).collect();
            let (hand, spliced) = by_kind(&rows);
            format!("{:.3} / {:.3}, {:.3} / {:.3}", hand.f1_1, hand.pk, spliced.f1_1, spliced.pk)
        };
        println!("{name:36} {:45}  {}", contributions(false), contributions(true));
    }
}

/// Missed and false boundaries of cross-validated weights, on streams that people labelled.
fn errors(streams: &[Stream], found: &[(Vec<usize>, Vec<usize>)]) {
    for (stream, (late, _)) in streams.iter().zip(found) {
        let prompts: Vec<&str> = stream.events.iter().filter_map(|e| prompt(&e.event)).collect();
        for (place, prompt) in prompts.iter().enumerate().skip(1) {
            let (truth, said) = (stream.truth.boundaries.contains(&place), late.contains(&place));
            if truth != said && !(said && stream.truth.optional.contains(&place)) {
                let text: String = prompt.chars().take(110).collect();
                println!("{} {}:{place} {text:?}", if truth { "missed" } else { "false " }, stream.name);
            }
        }
    }
}

fn prompt(event: &nmem::model::Event) -> Option<&str> {
    match &event.what {
        nmem::model::EventKind::UserPrompt { text } => Some(text),
        _ => None,
    }
}
