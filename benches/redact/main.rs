//! Recall, false alarms and speed of the redactor.
//!
//! `cargo bench --bench redact`: the share of made-up secrets that are removed, by group, and the speed in MB/s.
//! `-- FOLDER…` counts marks in other people's files, per 100,000 lines, and prints each with its line. `-- --missed` lists
//! the samples that were not removed. `-- --seed N` makes other samples. The last line is one JSON object.

#![expect(clippy::disallowed_macros, reason = "a bench prints")]

mod samples;

use nmem::redact::Redactor;
use samples::{leaks, samples};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let seed = args.iter().position(|arg| arg == "--seed").map_or(1, |at| args[at + 1].parse().unwrap());
    let folders: Vec<&String> = args.iter().filter(|arg| Path::new(arg).is_dir()).collect();
    let redactor = Redactor::default();
    let clean = |text: &str| redactor.clean(text.to_string()).to_string();
    let mut result = json!({"removed": removed(&clean, seed, flag("--missed"))});
    for folder in folders {
        result["marks"][folder] = marks(&clean, Path::new(folder));
    }
    result["mb_per_second"] = speed(&clean).into();
    println!("{result}");
}

fn removed(clean: &dyn Fn(&str) -> String, seed: u64, missed: bool) -> Value {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for sample in samples(seed, 3) {
        let stored = clean(&sample.text);
        let group = groups.entry(sample.group).or_default();
        group.1 += 1;
        if !leaks(&stored, &sample.secret) {
            group.0 += 1;
        } else if missed {
            println!("missed: {} | {}", sample.rule, sample.text.replace('\n', "⏎"));
        }
    }
    for (group, (removed, all)) in &groups {
        println!("{group:16} {removed:4} of {all:4} removed, {:5.1} %", *removed as f64 * 100.0 / *all as f64);
    }
    json!(groups)
}

/// Marks in the files below a folder.
fn marks(clean: &dyn Fn(&str) -> String, folder: &Path) -> Value {
    let (mut lines, mut found) = (0, 0);
    for file in files(folder) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        lines += text.lines().count();
        // In pieces, since only head and tail of a long text are kept.
        for piece in text.lines().collect::<Vec<_>>().chunks(200) {
            let text = piece.join("\n");
            let stored = clean(&text);
            if stored == text || !stored.contains("[redacted:") {
                continue;
            }
            for line in stored.lines().filter(|line| line.contains("[redacted:")) {
                found += 1;
                let (before, after) = line.split_once("[redacted:").unwrap();
                let original = text.lines().find(|old| old.starts_with(before) && before.len() > 3).unwrap_or("");
                let cut = |text: &str| text.chars().take(160).collect::<String>();
                println!("mark: {}: [redacted:{}  <<  {}", file.display(), cut(after), cut(original.trim()));
            }
        }
    }
    println!("{}: {found} marks in {lines} lines, {:.2} per 100,000", folder.display(), found as f64 * 1e5 / lines.max(1) as f64);
    json!({"marks": found, "lines": lines})
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)),
            Ok(kind) if kind.is_file() && entry.metadata().is_ok_and(|data| data.len() < 2_000_000) => found.push(path),
            _ => {}
        }
    }
    found.sort();
    found
}

/// The speed over this crate's own sources and lock file, the best of five runs.
fn speed(clean: &dyn Fn(&str) -> String) -> f64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = files(&root.join("src")).into_iter().chain([root.join("Cargo.lock")]);
    let text: String = sources.filter_map(|file| fs::read_to_string(file).ok()).collect();
    // The redactor scans at most two windows of a text, so it gets many of 16 kB.
    let pieces: Vec<&str> = text.as_bytes().chunks(16 << 10).filter_map(|piece| std::str::from_utf8(piece).ok()).collect();
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    let run = || {
        let begun = Instant::now();
        pieces.iter().for_each(|piece| drop(clean(piece)));
        bytes as f64 / 1e6 / begun.elapsed().as_secs_f64()
    };
    let best = (0..5).map(|_| run()).fold(0.0, f64::max);
    println!("{best:.0} MB/s");
    (best * 10.0).round() / 10.0
}
