//! The simple rules beside which the detector stands, as `../shared/bench/units/baselines.py` has them.

use super::streams::Stream;
use nmem::model::{CommandKind, EventKind, Kind, Millis};
use std::collections::{BTreeMap, BTreeSet};

const STOP_WORDS: &str = " about above after again also another been before being both cannot could does doing done down each from \
    further have having here into itself just like make maybe more most need only other over same should some such than that their \
    them then there these they thing think this those through under until very want well were what when where which while will with \
    would your yours please lets sure okay still really right yeah need going goes something anything ";

/// Input of a rule: a turn.
struct Turn {
    text: String,
    files: BTreeMap<String, usize>,
    looks: usize,
    edits: usize,
    /// Since the event before it.
    pause: Millis,
    commits: bool,
}

fn turns(stream: &Stream) -> Vec<Turn> {
    let (mut turns, mut last): (Vec<Turn>, Millis) = (Vec::new(), 0);
    for replayed in &stream.events {
        match (&replayed.event.what, turns.last_mut()) {
            (EventKind::UserPrompt { text }, _) => turns.push(Turn {
                text: text.clone(),
                files: BTreeMap::new(),
                looks: 0,
                edits: 0,
                pause: replayed.event.at - last,
                commits: false,
            }),
            (EventKind::ToolUsed(tool), Some(turn)) => {
                if let Some(path) = tool.path.as_ref().filter(|_| matches!(tool.kind, Kind::Read | Kind::Edit | Kind::Write)) {
                    *turn.files.entry(path.clone()).or_default() += 1;
                }
                turn.looks += usize::from(matches!(tool.kind, Kind::Read | Kind::Search | Kind::Fetch | Kind::Delegate));
                turn.edits += usize::from(matches!(tool.kind, Kind::Edit | Kind::Write));
                let command = tool.content.as_deref().unwrap_or("");
                let pushes = ["git push", "gh pr create"].iter().any(|words| command.contains(words));
                turn.commits |= tool.command == Some(CommandKind::Commit) || (tool.kind == Kind::Command && pushes);
            }
            _ => {}
        }
        last = replayed.event.at;
    }
    turns
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let found: Vec<String> = lower
        .split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .filter(|word| word.len() >= 4 && !word.starts_with('_') && !STOP_WORDS.contains(&format!(" {word} ")))
        .map(String::from)
        .collect();
    found.into_iter()
}

fn jaccard(turns: &[Turn]) -> Vec<usize> {
    let (mut unit, mut out) = (BTreeSet::new(), Vec::new());
    for (i, turn) in turns.iter().enumerate() {
        let words: BTreeSet<String> = words(&turn.text).collect();
        let shared = words.intersection(&unit).count() as f64 / words.union(&unit).count().max(1) as f64;
        if i > 0 && !unit.is_empty() && turn.text.split_whitespace().count() >= 5 && shared < 0.15 {
            out.push(i);
            unit.clear();
        }
        unit.extend(words);
    }
    out
}

/// Hearst 1997: likeness of the blocks on both sides of a place, depth of each valley, cut above mean + half a deviation.
fn text_tiling(turns: &[Turn]) -> Vec<usize> {
    let bags: Vec<BTreeMap<String, f64>> = turns
        .iter()
        .map(|turn| {
            let mut bag = BTreeMap::new();
            words(&turn.text).for_each(|word| *bag.entry(word).or_default() += 1.0);
            for (file, n) in &turn.files {
                words(&file.replace("cmd/entire/cli/", "").replace('_', " "))
                    .for_each(|word| *bag.entry(word).or_default() += *n as f64);
            }
            bag
        })
        .collect();
    let block = |range: std::ops::Range<usize>| {
        let mut sum: BTreeMap<&str, f64> = BTreeMap::new();
        bags[range].iter().flatten().for_each(|(word, n)| *sum.entry(word).or_default() += n);
        sum
    };
    let alike: Vec<f64> = (1..turns.len())
        .map(|i| {
            let (a, b) = (block(i.saturating_sub(3)..i), block(i..turns.len().min(i + 3)));
            let product: f64 = a.iter().filter_map(|(word, n)| Some(n * b.get(word)?)).sum();
            let norm = |bag: &BTreeMap<&str, f64>| bag.values().map(|n| n * n).sum::<f64>();
            if norm(&a) * norm(&b) > 0.0 { product / (norm(&a) * norm(&b)).sqrt() } else { 0.0 }
        })
        .collect();
    let depths: Vec<f64> = (0..alike.len())
        .map(|i| {
            let climb = |mut at: usize, next: &dyn Fn(usize) -> Option<usize>| {
                while let Some(n) = next(at).filter(|n| alike[*n] >= alike[at]) {
                    at = n;
                }
                alike[at] - alike[i]
            };
            climb(i, &|at| at.checked_sub(1)) + climb(i, &|at| Some(at + 1).filter(|n| *n < alike.len()))
        })
        .collect();
    let mean = depths.iter().sum::<f64>() / depths.len().max(1) as f64;
    let deviation = (depths.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / depths.len().max(1) as f64).sqrt();
    (0..depths.len()).filter(|i| depths[*i] > mean + deviation / 2.0).map(|i| i + 1).collect()
}

fn new_files(turns: &[Turn]) -> Vec<usize> {
    let (mut unit, mut out): (BTreeSet<&String>, Vec<usize>) = (BTreeSet::new(), Vec::new());
    for (i, turn) in turns.iter().enumerate() {
        if i > 0 && !turn.files.is_empty() && !unit.is_empty() && !turn.files.keys().any(|file| unit.contains(file)) {
            out.push(i);
            unit.clear();
        }
        unit.extend(turn.files.keys());
    }
    out
}

/// A generator of numbers that is the same on every machine: xorshift64* (Vigna 2016).
pub struct Random(pub u64);

impl Random {
    /// The next number, 0 to below 1.
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A rule, by its name.
pub type Rule = (&'static str, fn(&Stream) -> Vec<usize>);

/// Every rule; "(later)" also sees the turn after the prompt.
pub const RULES: &[Rule] = &[
    ("no boundary", |_| Vec::new()),
    ("every prompt", |s| (1..s.truth.prompts).collect()),
    ("prompt words, Jaccard < .15", |s| jaccard(&turns(s))),
    ("text tiling (later)", |s| text_tiling(&turns(s))),
    ("new files (later)", |s| new_files(&turns(s))),
    ("from editing to looking (later)", |s| {
        let turns = turns(s);
        let turned = |i: &usize| {
            let (before, now) = (&turns[i - 1], &turns[*i]);
            before.edits > 0 && before.edits >= before.looks && now.looks >= 2 && now.edits == 0
        };
        (1..turns.len()).filter(turned).collect()
    }),
    ("after a commit", |s| {
        let turns = turns(s);
        (1..turns.len()).filter(|i| turns[i - 1].commits).collect()
    }),
    ("pause over 30 min", |s| {
        let turns = turns(s);
        (1..turns.len()).filter(|i| turns[*i].pause > 1_800_000).collect()
    }),
    ("prompt of 25 words or more", |s| {
        let turns = turns(s);
        (1..turns.len()).filter(|i| turns[*i].text.split_whitespace().count() >= 25).collect()
    }),
];
