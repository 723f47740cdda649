//! Claims of memories about the code, and whether they still hold: a path, a name in a file, a setting with its value. A
//! claim counts only if it held when the memory was made, as git knows the files of that time.

use super::git_program::Git;
use super::origin::ProjectRecords;
use crate::files;
use crate::model::{Claim, ClaimState, MemoryClaims, MemoryKind, MemoryRow, Millis, Rotten};
use crate::text::files_named;
use anyhow::Result;
use std::collections::{HashMap, HashSet};

/// Milliseconds after a memory was made in which its work may still be committed.
const SETTLES: Millis = 3 * 3_600_000;
/// Maximum memories to check, claims of one, and bytes of a file.
const MEMORIES: usize = 20_000;
/// Memories up to which git is asked for the commit of each.
const FEW: usize = 8;
const CLAIMS: usize = 12;
const BYTES: u64 = 1 << 20;
/// Minimum characters of a name, and of a setting's name.
const NAME: usize = 4;
const KEY: usize = 3;

/// Checks the claims of all memories of a project that hold so far.
pub fn check_memories(recorded: &ProjectRecords) -> Result<MemoryClaims> {
    let mut memories = Vec::new();
    for project in &recorded.scope.projects {
        memories.extend(recorded.store.all_memories(Some(*project), MEMORIES)?.0);
    }
    // A summary tells of a time; it claims nothing of today.
    memories.retain(|memory| memory.superseded_by.is_none() && memory.kind != MemoryKind::Summary && !memory.is_tried());
    check(recorded.git, memories)
}

/// Checks the claims of memories.
pub fn check(git: &Git, memories: Vec<MemoryRow>) -> Result<MemoryClaims> {
    let claiming = memories.into_iter().map(|memory| (claims_of(&memory), memory));
    let claiming: Vec<(Vec<Claim>, MemoryRow)> = claiming.filter(|(claims, _)| !claims.is_empty()).collect();
    // The whole history is read for many memories only.
    let history = if claiming.len() > FEW { git.history()? } else { Vec::new() };
    let mut of_memories: Vec<(MemoryRow, String, Vec<Claim>)> = Vec::new();
    for (claims, memory) in claiming {
        let at = memory.created_at + SETTLES;
        let revision = match history.is_empty() {
            true => git.commit_before(at / 1000),
            false => revision_at(&history, at).map(String::from),
        };
        of_memories.extend(revision.map(|revision| (memory, revision, claims)));
    }
    let asked: HashSet<String> = of_memories
        .iter()
        .flat_map(|(_, revision, claims)| claims.iter().map(move |claim| format!("{revision}:{}", claim.path())))
        .collect();
    let then = git.contents(asked.into_iter().collect(), BYTES as usize)?;
    let mut now = Now { git, texts: HashMap::new(), tracked: None };
    let mut result = MemoryClaims::default();
    for (memory, revision, claims) in of_memories {
        let held = claims.into_iter().filter(|claim| {
            then.get(&format!("{revision}:{}", claim.path())).is_some_and(|text| holds(claim, text) == ClaimState::Holds)
        });
        let states: Vec<(Claim, ClaimState)> = held.map(|claim| (claim.clone(), now.state(&claim))).collect();
        result.memories += usize::from(!states.is_empty());
        result.claims += states.len();
        let rotten: Vec<(Claim, ClaimState)> = states.into_iter().filter(|(_, state)| *state != ClaimState::Holds).collect();
        if !rotten.is_empty() {
            result.rotten.push(Rotten { memory, claims: rotten });
        }
    }
    Ok(result)
}

/// The newest commit at a time; `history`: commits and their times in seconds, newest first.
fn revision_at(history: &[(String, i64)], at: Millis) -> Option<&str> {
    history.iter().find(|(_, time)| time * 1000 <= at).map(|(sha, _)| sha.as_str())
}

/// Whether a claim holds in a file's text.
fn holds(claim: &Claim, text: &str) -> ClaimState {
    match claim {
        Claim::Path(_) => ClaimState::Holds,
        Claim::Name { name, .. } if has_word(text, name) => ClaimState::Holds,
        Claim::Name { .. } => ClaimState::Gone,
        Claim::Setting { key, value, .. } => {
            let of_key = text.lines().filter_map(|line| value_of(line, key));
            let values: Vec<&str> = of_key.collect();
            match values.first() {
                None => ClaimState::Gone,
                Some(_) if values.contains(&value.as_str()) => ClaimState::Holds,
                // Its value may be a secret.
                Some(_) => ClaimState::Changed("another value now".into()),
            }
        }
    }
}

/// The files of the working tree.
struct Now<'a> {
    git: &'a Git,
    /// `None`: there is no such file.
    texts: HashMap<String, Option<String>>,
    /// Paths that git tracks, by file name.
    tracked: Option<HashMap<String, Vec<String>>>,
}

impl Now<'_> {
    fn text(&mut self, path: &str) -> Option<&str> {
        let root = &self.git.root;
        let read = || match root.join(path) {
            file if file.is_dir() => Some(String::new()),
            file => files::part(&file, 0..BYTES).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        };
        self.texts.entry(path.to_string()).or_insert_with(read).as_deref()
    }

    fn state(&mut self, claim: &Claim) -> ClaimState {
        if let Some(text) = self.text(claim.path()) {
            let state = holds(claim, text);
            return match (claim, &state) {
                (Claim::Name { name, .. }, ClaimState::Gone) => self.elsewhere(name),
                _ => state,
            };
        }
        match self.moved(claim.path()) {
            Some(path) => {
                let state = self.text(&path).map_or(ClaimState::Gone, |text| holds(claim, text));
                if state == ClaimState::Holds { ClaimState::Changed(format!("now in {path}")) } else { state }
            }
            None => match claim {
                Claim::Name { name, .. } => self.elsewhere(name),
                _ => ClaimState::Gone,
            },
        }
    }

    fn elsewhere(&self, name: &str) -> ClaimState {
        self.git.file_with_word(name).map_or(ClaimState::Gone, |path| ClaimState::Changed(format!("now in {path}")))
    }

    /// The only tracked file with the name of one that is gone.
    fn moved(&mut self, path: &str) -> Option<String> {
        let git = self.git;
        let tracked = self.tracked.get_or_insert_with(|| {
            let mut by_name: HashMap<String, Vec<String>> = HashMap::new();
            for path in git.tracked().unwrap_or_default() {
                by_name.entry(path.rsplit('/').next().unwrap_or(&path).to_string()).or_default().push(path);
            }
            by_name
        });
        let same = tracked.get(path.rsplit('/').next()?)?;
        // Every folder may have such a file.
        let is_common =
            ["mod.rs", "index.ts", "index.js", "__init__.py", "main.go", "README.md"].iter().any(|name| path.ends_with(name));
        (same.len() == 1 && !is_common).then(|| same[0].clone())
    }
}

/// The claims in a memory's text.
pub fn claims_of(memory: &MemoryRow) -> Vec<Claim> {
    let edited: Vec<&str> = memory.files.iter().filter(|file| file.modified).map(|file| file.path.as_str()).collect();
    let facts = memory.content.get("facts").and_then(serde_json::Value::as_array);
    let facts = facts.into_iter().flatten().filter_map(serde_json::Value::as_str);
    let lines = [Some(memory.title.as_str()), memory.subtitle.as_deref(), memory.body.as_deref()];
    let mut claims: Vec<Claim> = Vec::new();
    for line in lines.into_iter().flatten().flat_map(str::lines).chain(facts) {
        for claim in claims_in(line, &edited) {
            if claims.len() < CLAIMS && !claims.contains(&claim) {
                claims.push(claim);
            }
        }
    }
    claims
}

/// The claims in one line. Names and settings are of the only file that the line names, or that the memory is about.
fn claims_in(line: &str, edited: &[&str]) -> Vec<Claim> {
    let quoted: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    let is_inside = |path: &&str| {
        !path.starts_with(['/', '~', '-', '$'])
            && path.split('/').all(|part| part != "..")
            && !path.contains(['*', '{', '\\', '%', '…'])
            && path.contains(char::is_alphabetic)
    };
    // Without quotes, a name with a dot may be a word of a sentence: `Node.js`.
    let named = files_named(line).into_iter().filter(is_inside);
    let paths: Vec<&str> = named.filter(|path| path.contains('/') || quoted.iter().any(|quote| quote.contains(path))).collect();
    let mut claims: Vec<Claim> = paths.iter().map(|path| Claim::Path(path.to_string())).collect();
    let file = match (&paths[..], edited) {
        ([one], _) => Some(*one),
        ([], [one]) => Some(*one),
        _ => None,
    };
    let Some(file) = file else { return claims };
    for quote in quoted.iter().filter(|quote| files_named(quote).is_empty()) {
        if let Some(claim) = setting(quote, file).or_else(|| name(quote).map(|name| Claim::Name { path: file.into(), name })) {
            claims.push(claim);
        }
    }
    claims
}

/// A name of code: `parse_config()`, `Config::load`, `maxRetries`. A plain word is no name.
fn name(quote: &str) -> Option<String> {
    let bare = quote.trim().trim_end_matches("()").trim_start_matches(['.', '#', '@']);
    let last = bare.rsplit([':', '.']).next()?;
    let is_name =
        |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_') && !word.starts_with(|c: char| c.is_ascii_digit());
    let is_telling = bare.len() < quote.trim().len()
        || bare.contains("::")
        || last.contains('_')
        || last.chars().skip(1).any(char::is_uppercase) && last.chars().any(char::is_lowercase);
    let parts_are_names = bare.split([':', '.']).filter(|part| !part.is_empty()).all(is_name);
    (parts_are_names && is_telling && last.len() >= NAME).then(|| last.to_string())
}

/// A setting with its value: `timeout = 30`, `"port": 8080`, `MODE=fast`.
fn setting(quote: &str, file: &str) -> Option<Claim> {
    let (key, value) = quote.split_once('=').or_else(|| quote.split_once(": "))?;
    let (key, value) = (bare_key(key)?, bare_value(value)?);
    Some(Claim::Setting { path: file.into(), key: key.into(), value: value.into() })
}

fn bare_key(key: &str) -> Option<&str> {
    let key = key.trim().trim_start_matches("export ").trim_start_matches("const ").trim_matches(['"', '\'']);
    let is_key = key.len() >= KEY && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c)) && !key.starts_with('-');
    is_key.then_some(key)
}

fn bare_value(value: &str) -> Option<&str> {
    let value = value.trim().trim_end_matches([',', ';']).trim_matches(['"', '\'']);
    (!value.is_empty() && value.len() < 80 && !value.starts_with(['=', '>']) && !value.contains(['(', '{', '['])).then_some(value)
}

/// The value that a line gives to a key.
fn value_of<'t>(line: &'t str, key: &str) -> Option<&'t str> {
    let (found, value) = line.split_once('=').or_else(|| line.split_once(':'))?;
    let found = found.trim().rsplit(' ').next().unwrap_or_default().trim_matches(['"', '\'', '-']);
    let value = value.split(" #").next().unwrap_or(value).split(" //").next().unwrap_or(value);
    (found == key).then(|| bare_value(value)).flatten()
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, edited: &[&str]) -> Vec<String> {
        let text = |claim: Claim| match claim {
            Claim::Path(path) => path,
            Claim::Name { path, name } => format!("{path}#{name}"),
            Claim::Setting { path, key, value } => format!("{path}#{key}={value}"),
        };
        claims_in(line, edited).into_iter().map(text).collect()
    }

    #[test]
    fn paths_names_and_settings_are_claims_and_words_are_not() {
        assert_eq!(found("`parse_config()` in `src/config.rs` reads it", &[]), ["src/config.rs", "src/config.rs#parse_config"]);
        assert_eq!(found("Set `timeout = 30` in deploy/app.toml", &[]), ["deploy/app.toml", "deploy/app.toml#timeout=30"]);
        assert_eq!(found("`Config::load` fails without a home", &["src/config.rs"]), ["src/config.rs#load"]);
        assert_eq!(found("Use `maxRetries` and `error`", &["a.ts"]), ["a.ts#maxRetries"]);
        assert_eq!(found("Node.js 22 is needed; e.g. `true`", &["a.ts"]), [""; 0]);
        assert_eq!(
            found("`first_name` is in `a/b.rs` and `c/d.rs`", &[]),
            ["a/b.rs", "c/d.rs"],
            "of two files, a name is of neither"
        );
        assert_eq!(found("See /etc/hosts, ~/.bashrc, `a/../../b.env` and `src/**/*.ts`", &[]), [""; 0]);
        assert_eq!(found("`cargo test --lib` passes", &["src/lib.rs"]), [""; 0]);
    }

    #[test]
    fn a_setting_has_one_of_the_values_in_the_file() {
        let claim = |value: &str| Claim::Setting { path: "a".into(), key: "timeout".into(), value: value.into() };
        let text = "[net]\ntimeout = 30 # seconds\n\"retries\": 3,\n";
        assert_eq!(holds(&claim("30"), text), ClaimState::Holds);
        assert_eq!(holds(&claim("60"), text), ClaimState::Changed("another value now".into()));
        assert_eq!(holds(&claim("60"), "port = 1\n"), ClaimState::Gone);
        assert_eq!(value_of("\"retries\": 3,", "retries"), Some("3"));
        assert!(has_word("fn parse_config() {", "parse_config") && !has_word("fn parse_config2()", "parse_config"));
    }
}
