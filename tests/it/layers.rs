//! Holds the shape of `src/`: imports run one way, no file grows past what one reads in one go (STYLE §3, ADR/0009).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Levels, lowest first. A file imports only from lower levels, or from its own folder.
const LEVELS: &[&[&str]] = &[
    // plain types and text functions
    &["model", "error", "text", "commit_message"],
    &["languages"],
    &["index_text", "passages", "prompt_injection", "command_kind"],
    // logic without I/O
    &["redact", "segmentation", "extraction", "rank", "render"],
    // safe access to files
    &["files"],
    // adapters to one outside thing each
    &["config", "project", "platforms", "store", "domains", "llm", "postgres"],
    // shared by every run
    &["runtime"],
    // use cases
    &["distil"],
    &["knowledge", "recall", "archive", "team", "installation"],
    &["lookup", "evidence"],
    // the pipeline of an event, and use cases that send events through it
    &["ingest"],
    &["replay", "import", "forgetting"],
    &["hook_event", "diagnosis"],
    &["redact_stored"],
    // the page for browsers
    &["view"],
    // surface
    &["rad"],
    &["server", "mcp"],
    &["cli", "lib", "main"],
];

/// Lines of a file that a reader can take in; more is a breach, and 400 is the advice.
const MOST_LINES: usize = 800;

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

/// Every path of a file that begins with `crate` or `super`, lists in braces taken apart, each as its parts.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::").chain(text.match_indices("super::")) {
        let before = text[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            branches(&text[at..], Vec::new(), &mut found);
        }
    }
    found
}

/// Reads one path from the beginning of a text; returns what is behind it.
fn branches<'a>(text: &'a str, mut so_far: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end > 0 {
            so_far.push(rest[..end].to_string());
            rest = &rest[end..];
        }
        match rest.strip_prefix("::") {
            Some(more) if more.starts_with('{') => {
                rest = &more[1..];
                loop {
                    rest = branches(rest, so_far.clone(), found).trim_start();
                    match rest.chars().next() {
                        Some(',') => rest = rest[1..].trim_start(),
                        Some('}') => return &rest[1..],
                        _ => return rest.get(1..).unwrap_or_default(),
                    }
                    if let Some(behind) = rest.strip_prefix('}') {
                        return behind;
                    }
                }
            }
            Some(more) => rest = more,
            None => break,
        }
    }
    found.push(so_far);
    // `as name` in a list is none of its paths.
    rest.find([',', '}', ';']).filter(|_| rest.starts_with(" as ")).map_or(rest, |at| &rest[at..])
}

/// A file as a module: `src/store/unit_rows.rs` is `store::units`.
fn module(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(root()).unwrap().with_extension("");
    let mut parts: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// The files that each file imports: by `crate::` and `super::`, and a room's head those of its own files that it uses
/// itself. What it only hands on (`pub use`) is no import.
fn imports() -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let files: BTreeMap<Vec<String>, String> = sources().iter().map(|path| (module(path), code(path))).collect();
    let imports = files.iter().map(|(own, text)| {
        let mut all = BTreeSet::new();
        for path in paths(text) {
            let mut whole: Vec<String> = own.clone();
            let ups = path.iter().take_while(|part| *part == "super").count();
            whole.truncate(own.len().saturating_sub(ups));
            if path[0] == "crate" {
                whole.clear();
            }
            whole.extend(path[ups.max(1)..].iter().cloned());
            while !whole.is_empty() && !files.contains_key(&whole) {
                whole.pop();
            }
            all.insert(whole);
        }
        let handed_on = text.split("pub use ").skip(1).map(|rest| &rest[..rest.find(';').unwrap_or(rest.len())]);
        let used = handed_on.fold(text.clone(), |text, list| text.replace(&format!("pub use {list};"), ""));
        for child in files.keys().filter(|other| other.len() == own.len() + 1 && other.starts_with(own)) {
            let name = format!("{}::", child[child.len() - 1]);
            let mut places = used.match_indices(&name);
            if places.any(|(at, _)| !used[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')) {
                all.insert(child.clone());
            }
        }
        all.remove(own);
        all.remove(&Vec::new());
        (own.clone(), all)
    });
    imports.collect()
}

/// A file without its comments and its tests, which may look wherever they must.
fn code(path: &Path) -> String {
    if path.ends_with("tests.rs") {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let text = text.split("#[cfg(test)]\npub(crate) mod testing").next().unwrap();
    text.lines().filter(|l| !l.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[test]
fn imports_run_one_way() {
    let mut breaches = Vec::new();
    for (file, imports) in imports() {
        let Some(own) = file.first() else { continue };
        for other in imports.iter().filter_map(|other| other.first()).filter(|other| *other != own) {
            if level(other) >= level(own) {
                breaches.push(format!("{} (level {}) imports {other} (level {})", file.join("::"), level(own), level(other)));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// A file that another one needs, and that needs it, can't be read alone.
#[test]
fn no_file_imports_itself_by_way_of_others() {
    let imports = imports();
    let mut circles = Vec::new();
    for file in imports.keys() {
        let mut reached: BTreeSet<&Vec<String>> = BTreeSet::new();
        let mut next: Vec<&Vec<String>> = imports[file].iter().collect();
        while let Some(other) = next.pop() {
            if reached.insert(other) {
                next.extend(imports.get(other).into_iter().flatten());
            }
        }
        if reached.contains(file) {
            circles.push(file.join("::"));
        }
    }
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 300, "the imports were not found");
    assert!(circles.is_empty(), "these files import each other: {}", circles.join(", "));
}

/// Code that two commands share belongs to neither.
#[test]
fn no_command_imports_another_commands_file() {
    let shared = ["output", "hook", "editor", "project_argument"];
    for (file, imports) in imports().into_iter().filter(|(file, _)| file.len() == 2 && file[0] == "cli") {
        for other in imports.iter().filter(|other| other.len() == 2 && other[0] == "cli") {
            assert!(shared.contains(&other[1].as_str()), "cli/{}.rs imports cli/{}.rs", file[1], other[1]);
        }
    }
}

/// A newcomer reads a room's head first: it says in which order to read the files.
#[test]
fn the_head_of_each_room_names_its_files() {
    let mut missing = Vec::new();
    for head in sources().into_iter().filter(|path| path.ends_with("mod.rs")) {
        let text = fs::read_to_string(&head).unwrap();
        let head_lines: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        for entry in fs::read_dir(head.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            // A file that is no source is named with its end.
            let is_source = path.is_dir() || path.extension().is_some_and(|end| end == "rs");
            let name = if is_source { path.file_stem() } else { path.file_name() };
            let name = name.unwrap().to_string_lossy().into_owned();
            if name != "mod" && !head_lines.contains(&format!("`{name}`")) && !head_lines.contains(&format!("[`{name}`]")) {
                missing.push(format!("{}: {name}", head.display()));
            }
        }
    }
    assert!(missing.is_empty(), "not named by the head of their room:\n{}", missing.join("\n"));
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

const SQL: [&str; 4] = ["\"SELECT ", "\"INSERT ", "\"UPDATE ", "\"DELETE "];

#[test]
fn sql_and_rusqlite_stay_in_the_store_and_every_file_says_what_it_is() {
    for path in sources() {
        let text = code(&path);
        if room(&path) != "store" {
            // The team's PostgreSQL is another database, with its own room for SQL.
            let sql = if room(&path) == "postgres" { &[][..] } else { &SQL[..] };
            for word in ["rusqlite"].iter().chain(sql) {
                assert!(!text.contains(word), "{} holds {word}", path.display());
            }
        }
        let head = fs::read_to_string(&path).unwrap();
        assert!(head.starts_with("//!"), "{} does not begin with what it is", path.display());
    }
}

/// A newcomer opens a file by its name.
#[test]
fn file_names_occur_once() {
    let mut names: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in sources() {
        names.entry(path.file_name().unwrap().to_string_lossy().into_owned()).or_default().push(path);
    }
    let shared = ["mod.rs", "hooks.rs", "past.rs"];
    let twice: Vec<_> = names.iter().filter(|(name, paths)| paths.len() > 1 && !shared.contains(&name.as_str())).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let all = sources().len();
    assert!(all <= 260, "{all} files");
}

/// Names of fields in agents' JSON are known to their adapters, to the RAD protocol and to the replay of hook events.
#[test]
fn field_names_of_agents_stay_in_their_adapters() {
    const FIELDS: [&str; 8] = [
        "\"hook_event_name\"",
        "\"hookEventName\"",
        "\"sessionId\"",
        "\"tool_input\"",
        "\"tool_response\"",
        "\"transcript_path\"",
        "\"last_assistant_message\"",
        "\"conversation_id\"",
    ];
    let mut found = Vec::new();
    for path in sources().into_iter().filter(|path| !["platforms", "rad", "replay"].contains(&room(path).as_str())) {
        let text = code(&path);
        found.extend(FIELDS.iter().filter(|field| text.contains(*field)).map(|field| format!("{}: {field}", path.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The files that the usual changes touch, as CONTRIBUTING names them: how many files of `src/` contain a word that each
/// change needs, besides files of its own.
#[test]
fn the_usual_changes_touch_few_files() {
    let contributing = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CONTRIBUTING.md")).unwrap();
    let within = |word: &str, own: &str| -> Vec<String> {
        let files = sources().into_iter().filter(|path| code(path).contains(word));
        let names = files.map(|path| path.strip_prefix(root()).unwrap().display().to_string());
        names.filter(|name| own.is_empty() || !name.starts_with(own)).collect()
    };
    for (change, word, own, most) in [
        ("a setting (3 files)", ".file_bytes", "", 3),
        ("an agent with hooks (3 files outside its folder)", "OpenCode", "platforms/opencode", 3),
        ("a memory kind (at most 10 files)", "MemoryKind::Observation", "", 10),
        ("a memory kind (at most 10 files)", "MemoryKind::Summary", "", 10),
        ("a memory kind (at most 10 files)", "MemoryKind::Decision", "", 10),
        ("a memory kind (at most 10 files)", "MemoryKind::Lesson", "", 10),
        ("a memory kind (at most 10 files)", "MemoryKind::Task", "", 10),
        ("a memory kind (at most 10 files)", "MemoryKind::Entity", "", 10),
        ("a block of the session start (3 files)", "on_topic_branch", "", 3),
        ("a column (at most 7 files)", "source_event", "platforms", 7),
    ] {
        assert!(contributing.contains(&format!("| {change} |")), "CONTRIBUTING does not name: {change}");
        let files = within(word, own);
        assert!(!files.is_empty() && files.len() <= most, "{change}: {word} is in {files:?}");
    }
}
