//! Claims of memories about the code, and whether they still hold: a path, a name in a file, a setting with its value, a
//! version in a manifest, a command that passes or fails. A claim counts only if it held when the memory was made, as git
//! knows the files of that time, or a recorded run of the command.

use super::git_program::{Git, ProjectRecords};
use crate::command_kind::classify;
use crate::distil::commands::{called, did_not_run, programs, response};
use crate::files;
use crate::model::{Claim, ClaimState, CommandKind, MemoryClaims, MemoryKind, MemoryRow, Millis, Rotten, ToolUseRow};
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
/// Files that name versions, and the most to read.
const MANIFEST_NAMES: [&str; 7] =
    ["Cargo.toml", "package.json", "go.mod", "pyproject.toml", "requirements.txt", "rust-toolchain.toml", ".tool-versions"];
const MANIFESTS: usize = 20;
/// Maximum recorded runs of a program to look at.
const RUNS: usize = 2_000;

/// Checks the claims of all memories of a project that hold so far.
pub fn check_memories(recorded: &ProjectRecords) -> Result<MemoryClaims> {
    let mut memories = Vec::new();
    for project in &recorded.scope.projects {
        memories.extend(recorded.store.all_memories(Some(*project), MEMORIES)?.0);
    }
    // A summary tells of a time; it claims nothing of today.
    memories.retain(|memory| memory.superseded_by.is_none() && memory.kind != MemoryKind::Summary && !memory.is_tried());
    check(recorded, memories)
}

/// Checks the claims of memories.
pub fn check(recorded: &ProjectRecords, memories: Vec<MemoryRow>) -> Result<MemoryClaims> {
    let git = recorded.git;
    let is_manifest = |path: &String| MANIFEST_NAMES.contains(&path.rsplit('/').next().unwrap_or_default());
    let manifests: Vec<String> = git.tracked()?.into_iter().filter(is_manifest).take(MANIFESTS).collect();
    let claiming = memories.into_iter().map(|memory| (claims_of(&memory, &manifests), memory));
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
        .flat_map(|(_, revision, claims)| claims.iter().filter_map(move |claim| Some(format!("{revision}:{}", claim.path()?))))
        .collect();
    let then = git.contents(asked.into_iter().collect(), BYTES as usize)?;
    let mut now = Now { git, texts: HashMap::new(), tracked: None };
    let mut runs = Runs { recorded, of_programs: HashMap::new() };
    let mut result = MemoryClaims::default();
    for (memory, revision, claims) in of_memories {
        let mut states: Vec<(Claim, ClaimState)> = Vec::new();
        for claim in claims {
            let state = match (&claim, claim.path()) {
                (Claim::Command { line, passes }, _) => runs.state(line, *passes, memory.created_at)?,
                (_, Some(path)) => {
                    let then = then.get(&format!("{revision}:{path}"));
                    then.is_some_and(|text| holds(&claim, text) == ClaimState::Holds).then(|| now.state(&claim, path))
                }
                (_, None) => None,
            };
            states.extend(state.map(|state| (claim, state)));
        }
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
        Claim::Version { name, version, .. } => {
            let found = versions_of(text, name);
            match found.first() {
                None => ClaimState::Gone,
                Some(_) if found.iter().any(|found| is_same_version(found, version)) => ClaimState::Holds,
                Some(other) => ClaimState::Changed(format!("{other} now")),
            }
        }
        Claim::Command { .. } => ClaimState::Holds,
    }
}

/// Recorded runs of commands.
struct Runs<'a> {
    recorded: &'a ProjectRecords<'a>,
    /// By program, the newest first.
    of_programs: HashMap<String, Vec<ToolUseRow>>,
}

impl Runs<'_> {
    /// Whether a command's last run ended as it did before a memory was made; `None` if it did not then.
    fn state(&mut self, line: &str, passes: bool, made: Millis) -> Result<Option<ClaimState>> {
        let Some(program) = programs(line).next() else { return Ok(None) };
        if !self.of_programs.contains_key(&program) {
            let found = self.recorded.store.commands_with(self.recorded.scope, &program, RUNS)?;
            let mut runs: Vec<ToolUseRow> = found.into_iter().map(|command| command.tool).collect();
            // Imported sessions are not stored in the order of time.
            runs.sort_by_key(|run| std::cmp::Reverse(run.received_at));
            self.of_programs.insert(program.clone(), runs);
        }
        let is_same = |run: &&ToolUseRow| run.content.as_deref().is_some_and(|content| called(content) == line);
        let mut runs = self.of_programs[&program].iter().filter(is_same);
        let Some(last) = runs.next() else { return Ok(None) };
        let before = std::iter::once(last).chain(runs).find(|run| run.received_at <= made);
        if before.is_none_or(|run| run.succeeded != Some(passes)) {
            return Ok(None);
        }
        Ok(Some(match last.succeeded == Some(passes) {
            true => ClaimState::Holds,
            false if passes && did_not_run(response(last)) => ClaimState::Gone,
            false => ClaimState::Changed(format!("its last run {}", if passes { "failed" } else { "passed" })),
        }))
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

    fn state(&mut self, claim: &Claim, path: &str) -> ClaimState {
        if let Some(text) = self.text(path) {
            let state = holds(claim, text);
            return match (claim, &state) {
                (Claim::Name { name, .. }, ClaimState::Gone) => self.elsewhere(name),
                _ => state,
            };
        }
        if matches!(claim, Claim::Version { .. }) {
            return ClaimState::Gone;
        }
        match self.moved(path) {
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

/// The claims in a memory's text. `manifests`: the paths of files that name versions.
fn claims_of(memory: &MemoryRow, manifests: &[String]) -> Vec<Claim> {
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
        for (name, version) in versions(line).into_iter().take(CLAIMS) {
            let of = |path: &String| Claim::Version { path: path.clone(), name: name.clone(), version: version.clone() };
            claims.extend(manifests.iter().map(of));
        }
    }
    claims
}

/// Whether a line says that something was taken out: then nothing is claimed to be there.
fn tells_removal(line: &str) -> bool {
    const WORDS: [&str; 9] =
        ["removed", "remove ", "deleted", "delete ", "dropped", "no longer", "reverted", "is gone", "are gone"];
    let lower = line.to_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}

/// The claims in one line. Names and settings are of the only file that the line names, or that the memory is about.
fn claims_in(line: &str, edited: &[&str]) -> Vec<Claim> {
    if tells_removal(line) {
        return Vec::new();
    }
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
    claims.extend(commands(line));
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

/// Commands that a line says to pass or to fail: "`cargo test` passes", "`just deploy` works, not `just ship`".
fn commands(line: &str) -> Vec<Claim> {
    let parts: Vec<&str> = line.split('`').collect();
    let said = |at: usize| {
        let after = parts.get(at + 1).map(|after| after.trim_start()).unwrap_or_default();
        let begins = |words: &[&str]| words.iter().any(|word| after.starts_with(word));
        // That a test command works says how it is called, not that the tests pass.
        let is_check = matches!(classify(parts[at]), CommandKind::Test | CommandKind::Build | CommandKind::Lint);
        match (begins(&["passes", "succeeds"]) || begins(&["works"]) && !is_check, begins(&["fails"])) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    };
    let quoted = (1..parts.len()).step_by(2).filter_map(|at| Some((parts[at], said(at)?)));
    let claims = quoted.filter(|(line, _)| line.contains(' ') && called(line) == *line);
    claims.map(|(line, passes)| Claim::Command { line: line.into(), passes }).collect()
}

/// Names with a version: `tokio 1.38`, `react@18`, `Python 3.12`.
fn versions(line: &str) -> Vec<(String, String)> {
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '@').to_string();
    let words: Vec<String> = line.split_whitespace().map(bare).collect();
    let is_name = |name: &str| {
        name.len() > 1
            && name.starts_with(|c: char| c.is_alphabetic() || c == '@')
            && name.chars().all(|c| c.is_alphanumeric() || "-_./@".contains(c))
    };
    let joined = words.iter().filter_map(|word| {
        let (name, version) = word.rsplit_once('@')?;
        (is_name(name) && version_in(version) == Some(version)).then(|| (name.to_string(), version.to_string()))
    });
    let apart = words.iter().zip(words.iter().skip(1)).filter_map(|(name, version)| {
        let version = version.strip_prefix('v').unwrap_or(version);
        // A number alone may be anything.
        let is_version = version.contains('.') && version_in(version) == Some(version);
        (is_name(name) && is_version).then(|| (name.clone(), version.to_string()))
    });
    joined.chain(apart).collect()
}

/// The first version in a text: digits, with dots between them.
fn version_in(text: &str) -> Option<&str> {
    let begins = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[begins..];
    let ends = rest.find(|c: char| !c.is_ascii_alphanumeric() && !".-+".contains(c)).unwrap_or(rest.len());
    Some(rest[..ends].trim_end_matches(['.', '-', '+']))
}

/// The versions that a manifest's lines give to a package or language.
fn versions_of<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let name = name.to_lowercase();
    let known = match name.as_str() {
        "rust" => "rust-version",
        "python" => "requires-python",
        name => name,
    };
    let of_line = |line: &'t str| {
        let lower = line.to_lowercase();
        let at = lower.match_indices(known).map(|(at, _)| at).find(|at| {
            let is_part = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
            let (before, after) = (&lower[..*at], &lower[at + known.len()..]);
            !before.ends_with(is_part) && !after.starts_with(|c: char| is_part(c) || c == '/')
        })?;
        // Of a line whose lower case has another length, the place is not known.
        (lower.len() == line.len()).then(|| version_in(&line[at + known.len()..])).flatten()
    };
    text.lines().filter_map(of_line).collect()
}

/// Whether two versions agree as far as both say: `1.38` and `1.38.2`.
fn is_same_version(one: &str, other: &str) -> bool {
    one.split('.').zip(other.split('.')).all(|(one, other)| one == other)
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
            Claim::Version { name, version, .. } => format!("{name} {version}"),
            Claim::Command { line, passes } => format!("{line}: {passes}"),
        };
        claims_in(line, edited).into_iter().map(text).collect()
    }

    #[test]
    fn what_was_taken_out_is_not_claimed_to_be_there() {
        assert_eq!(found("Removed `showModal` and `modalType` from `src/summary.tsx`", &[]), [""; 0]);
        assert_eq!(found("`src/summary.tsx` has `showModal`", &[]), ["src/summary.tsx", "src/summary.tsx#showModal"]);
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
        assert_eq!(found("`cargo test --lib` stays", &["src/lib.rs"]), [""; 0]);
    }

    #[test]
    fn commands_and_versions_are_claims() {
        assert_eq!(found("`cargo test --lib` passes", &[]), ["cargo test --lib: true"]);
        assert_eq!(found("`just deploy` works, not `just ship`", &[]), ["just deploy: true"]);
        assert_eq!(found("`cargo test` works, not `cargo tests`", &[]), [""; 0], "its tests may fail");
        assert_eq!(found("`make all` fails without a network; `true` works", &[]), ["make all: false"]);
        let found =
            |line: &str| versions(line).into_iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>();
        assert_eq!(found("It needs tokio 1.38, `react@18` and Python v3.12."), ["react 18", "tokio 1.38", "Python 3.12"]);
        assert_eq!(found("See section 4 and 2.5 of them, at 10:30"), ["and 2.5"], "the manifests decide");
    }

    #[test]
    fn a_version_holds_as_far_as_it_is_said() {
        let state = |name: &str, version: &str, text: &str| {
            holds(&Claim::Version { path: "Cargo.toml".into(), name: name.into(), version: version.into() }, text)
        };
        let cargo = "rust-version = \"1.95\"\ntokio = { version = \"1.38.2\", features = [\"rt\"] }\ntokio-util = \"0.7\"\n";
        assert_eq!(state("tokio", "1.38", cargo), ClaimState::Holds);
        assert_eq!(state("Tokio", "1.40", cargo), ClaimState::Changed("1.38.2 now".into()));
        assert_eq!(state("Rust", "1.95", cargo), ClaimState::Holds);
        assert_eq!(state("serde", "1.0", cargo), ClaimState::Gone);
        assert_eq!(
            state("react", "18.2", "\"react\": \"^19.0.0\",\n\"react-dom\": \"^18.2.0\"\n"),
            ClaimState::Changed("19.0.0 now".into())
        );
        assert_eq!(state("cobra", "1.8", "\tgithub.com/spf13/cobra v1.8.0\n"), ClaimState::Holds);
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
