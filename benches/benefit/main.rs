//! Does what is injected unasked name the file that a session edits first (`NMEM_BENCH_DATA`, default `../shared/bench`)?
//!
//! `cargo bench --bench benefit`: without a model. For each recorded session that edits a file, counts the exploring calls
//! (reads, searches, listings) before that file had been looked at, and finds its place among the files that the start block
//! and the answer to the first prompt name. Also counts the injected items that would count as used by chance. With `NMEM_BENCH_DEJA=/path/to/deja`, the hooks of deja-vu read the same sessions as
//! transcripts. `-- DIR` keeps the databases there. The last line is one JSON object.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

#[expect(dead_code, reason = "the bench of facts asks its MCP tool")]
mod deja;
#[path = "../recall/recorded.rs"]
mod recorded;
#[path = "../recall/world.rs"]
#[expect(dead_code, reason = "the bench of recall uses the rest")]
mod world;

use nmem::model::{Files, SearchScope};
use nmem::recall::judge_use;
use nmem::store::{PERSON_WAIT, Store};
use recorded::{Recorded, SETS, context, play, recorded, restore};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use world::World;

/// The way of a session to the file that it edits first.
struct Way {
    file: String,
    /// Exploring calls before the file had been looked at.
    explored: usize,
    /// An earlier session read or edited it.
    is_known: bool,
}

/// Places of files in the texts of one program, by session; `None` if the file is not named.
type Places = Vec<Option<usize>>;

fn main() {
    let data = std::env::var_os("NMEM_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let keep = std::env::args().nth(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let mut all = Map::new();
    for (set, folder) in SETS {
        let Some(sessions) = recorded(&data.join(folder)) else {
            println!("there is no {}: nothing was measured there", data.join(folder).display());
            continue;
        };
        let world = World::new(&format!("benefit-{set}"));
        let kept = keep.as_deref().map_or_else(|| world.home.join("kept"), |keep| keep.join(set));
        if !kept.exists() {
            play(&world, &sessions, &kept);
        }
        let ways: Vec<(usize, Way)> = (0..sessions.len()).filter_map(|at| Some((at, way(&sessions, at)?))).collect();
        println!("\n{set}: {} sessions that edit something", ways.len());
        let texts: Vec<String> = ways.iter().map(|(at, _)| received(&world, &sessions[*at], &kept)).collect();
        let mut row = Map::new();
        report(&mut row, "nmem", &ways, &texts);
        match deja::texts(&world, &sessions, &ways.iter().map(|(at, _)| *at).collect::<Vec<_>>()) {
            Some(texts) => report(&mut row, "deja-vu", &ways, &texts),
            None => println!("{:10} passed over: NMEM_BENCH_DEJA names no program", "deja-vu"),
        }
        row.insert("used_by_chance".into(), used_by_chance(&world, &sessions, &kept));
        all.insert(set.into(), row.into());
    }
    println!("\n{}", json!({"bench": "benefit", "measured": !all.is_empty(), "sets": all}));
}

/// Prints one program's row.
fn report(row: &mut Map<String, Value>, name: &str, ways: &[(usize, Way)], texts: &[String]) {
    let places: Places = ways.iter().zip(texts).map(|((_, way), text)| place(&way.file, text)).collect();
    let known: Vec<usize> = (0..ways.len()).filter(|at| ways[*at].1.is_known).collect();
    let named: Vec<usize> = known.iter().copied().filter(|at| places[*at].is_some()).collect();
    let explored = |of: &[usize]| of.iter().map(|at| ways[*at].1.explored).sum::<usize>() as f64 / of.len().max(1) as f64;
    let place = named.iter().filter_map(|at| places[*at]).sum::<usize>() as f64 / named.len().max(1) as f64;
    let first_five = named.iter().filter(|at| places[**at].is_some_and(|place| place <= 5)).count();
    let bytes = texts.iter().map(String::len).sum::<usize>() / texts.len().max(1);
    println!(
        "{name:10} {} of {} known files named ({first_five} among the first five, mean place {place:.1}), {bytes} bytes; exploring calls before the file: {:.1} where known, {:.1} where named",
        named.len(),
        known.len(),
        explored(&known),
        explored(&named),
    );
    let rounded = |figure: f64| (figure * 1000.0).round() / 1000.0;
    row.insert(
        name.into(),
        json!({"sessions": ways.len(), "known": known.len(), "named": named.len(), "among_first_five": first_five,
            "mean_place": rounded(place), "bytes": bytes, "explored_where_known": rounded(explored(&known)),
            "explored_where_named": rounded(explored(&named))}),
    );
}

/// The start block and the answer to the first prompt.
fn received(world: &World, session: &Recorded, kept: &Path) -> String {
    restore(world, session, kept);
    let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
    let start = context(&world.hook(&session.id, start, session.start - 1000));
    let asked = json!({"hook_event_name": "UserPromptSubmit", "prompt": session.first_prompt().unwrap_or_default()});
    format!("{start}\n{}", context(&world.hook(&session.id, asked, session.start)))
}

/// Returns the way of a session; `None` if it edits nothing by a tool with a path.
fn way(sessions: &[Recorded], at: usize) -> Option<Way> {
    let session = &sessions[at];
    let calls: Vec<&Value> = session.events.iter().filter(|event| is_call(event)).collect();
    let edits = calls.iter().filter(|call| is_edit(call)).filter_map(|call| path(call));
    let file = edits.into_iter().find(|path| session.edited.contains(path))?;
    let looked = calls.iter().position(|call| looks_at(call, &file)).unwrap_or(calls.len());
    let explored = calls[..looked].iter().filter(|call| explores(call)).count();
    let earlier = sessions.iter().filter(|other| other.end < session.start);
    let is_known = earlier
        .into_iter()
        .any(|other| other.events.iter().filter(|event| is_call(event)).any(|call| path(call).as_ref() == Some(&file)));
    Some(Way { file, explored, is_known })
}

fn is_call(event: &Value) -> bool {
    matches!(event["event"].as_str(), Some("PostToolUse" | "PostToolUseFailure"))
}

fn is_edit(call: &Value) -> bool {
    matches!(call["tool_name"].as_str(), Some("Edit" | "Write" | "MultiEdit" | "NotebookEdit"))
}

/// The path of a call, below the project.
fn path(call: &Value) -> Option<String> {
    let path = call["tool_input"]["file_path"].as_str()?;
    let roots = ["/srv/cli/", "/Users/dev/Code/agents-md-evaluator/"];
    Some(roots.iter().find_map(|root| path.strip_prefix(root)).unwrap_or(path).to_string())
}

fn looks_at(call: &Value, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    path(call).as_deref() == Some(file) || call["tool_input"]["command"].as_str().is_some_and(|command| command.contains(name))
}

/// Whether a call reads, searches or lists.
fn explores(call: &Value) -> bool {
    const COMMANDS: [&str; 13] =
        ["ls", "cat", "rg", "grep", "find", "head", "tail", "sed -n", "tree", "wc", "git log", "git show", "git diff"];
    match call["tool_name"].as_str() {
        Some("Read" | "Grep" | "Glob" | "LS" | "Task" | "Agent") => true,
        _ => {
            call["tool_input"]["command"].as_str().is_some_and(|command| COMMANDS.iter().any(|begin| command.starts_with(begin)))
        }
    }
}

/// The place of a file among the files that a text names, from 1.
fn place(file: &str, text: &str) -> Option<usize> {
    let name = file.rsplit('/').next()?;
    let mut seen: HashSet<&str> = HashSet::new();
    for word in text.split(|c: char| c.is_whitespace() || "`\"'(),:;[]".contains(c)) {
        let last = word.rsplit('/').next().unwrap_or(word).trim_end_matches('.');
        let is_file = last.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty() && (1..=5).contains(&end.len()) && end.chars().all(char::is_alphanumeric)
        });
        if last == name {
            return Some(seen.len() + 1);
        }
        if is_file {
            seen.insert(last);
        }
    }
    None
}

/// Counts the injected items that count as used. The recorded agents never saw them: this is how often words turn up by
/// chance.
fn used_by_chance(world: &World, sessions: &[Recorded], kept: &Path) -> Value {
    let Some(last) = sessions.last() else { return Value::Null };
    restore(world, last, kept);
    let store = Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap();
    let (rows, _) = store.sessions_since(&SearchScope::default(), None, usize::MAX).unwrap();
    let mut injections = store.injections_of(&rows.iter().map(|row| row.id).collect::<Vec<_>>()).unwrap();
    judge_use(&store, &mut injections).unwrap();
    let items: Vec<_> = injections.iter().flat_map(|injection| &injection.items).collect();
    let used = items.iter().filter(|item| item.used.is_some()).count();
    println!("used       {used} of {} injected items, by chance", items.len());
    json!({"items": items.len(), "used": used})
}
