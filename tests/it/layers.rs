//! Holds the shape of `src/`: imports run one way, no file grows past what one reads in one go (STYLE §3, ADR/0009).

use std::fs;
use std::path::{Path, PathBuf};

/// Levels from the ground up. A file imports only from lower levels, or from its own folder.
const LEVELS: &[&[&str]] = &[
    // words
    &["model", "error", "words"],
    // what is known of texts: how they are cut for the indexes, which of them give orders
    &["index_text", "hostile"],
    // rules: values in, values out
    &["redact", "command_kind", "segmentation", "rules", "observer", "rank", "render"],
    // the gate to files, which every edge goes through
    &["files"],
    // edges: one outside thing each
    &["config", "project", "platforms", "store", "domains", "llm", "log"],
    // what every run has at hand: the redactor, the log, which project a folder is
    &["runtime"],
    // use cases
    &["distil", "knowledge", "recall", "archive", "doctor", "lookup", "installation"],
    // the way of an event through the use cases, and what goes that way with events of its own
    &["ingest"],
    &["replay", "forget"],
    // surface
    &["rad"],
    &["cli", "lib", "main"],
];

const MOST_LINES: usize = 400;

fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.sort();
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The module at the top of `src/` that a file belongs to.
fn room(path: &Path) -> String {
    let inside = path.strip_prefix(root()).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_string()
}

fn level(room: &str) -> usize {
    LEVELS.iter().position(|rooms| rooms.contains(&room)).unwrap_or_else(|| panic!("src/{room} stands on no level: give it one"))
}

/// The rooms that a file names: in `use crate::{a, b::c}`, `use crate::a::…` and `crate::a::…` inside code.
fn named(text: &str) -> Vec<String> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut rooms = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = &list[..list.find('}').unwrap_or(list.len())];
                rooms.extend(list.split(',').map(word));
            }
            None => rooms.push(word(rest)),
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

/// A file without its comments and its tests, which may look wherever they must.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let text = text.split("#[cfg(test)]\npub(crate) mod testing").next().unwrap();
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn imports_run_one_way() {
    let mut breaches = Vec::new();
    for path in sources() {
        let own = room(&path);
        for other in named(&code(&path)) {
            if other != own && level(&other) >= level(&own) {
                breaches.push(format!("{} (level {}) imports {other} (level {})", path.display(), level(&own), level(&other)));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn no_file_is_longer_than_one_reads() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|path| (fs::read_to_string(&path).unwrap().lines().count(), path))
        .filter(|(lines, _)| *lines > MOST_LINES)
        .map(|(lines, path)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn sql_and_rusqlite_stay_in_the_store_and_every_file_says_what_it_is() {
    for path in sources() {
        let text = code(&path);
        if room(&path) != "store" {
            for word in ["rusqlite", "\"SELECT ", "\"INSERT ", "\"UPDATE ", "\"DELETE "] {
                assert!(!text.contains(word), "{} holds {word}", path.display());
            }
        }
        let head = fs::read_to_string(&path).unwrap();
        assert!(head.starts_with("//!"), "{} does not begin with what it is", path.display());
    }
}
