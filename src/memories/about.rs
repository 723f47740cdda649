//! Which files a decision or lesson is about: those that it names, else the few that were changed for it.

use super::memory::RuleMemory;
use crate::choice::{Turn, is_project_change};
use crate::model::{Finding, MemoryFile};
use crate::text::files_named;

/// What was said with more changed files than these is about none of them in particular.
const FEW: usize = 4;

/// Gives decisions and lessons their files.
pub fn place(memories: &mut [RuleMemory], turns: &[Turn]) {
    let settles = |memory: &&mut RuleMemory| {
        (memory.is_decided() || memory.finding == Some(Finding::WorkingCommand)) && memory.files.is_empty()
    };
    for memory in memories.iter_mut().filter(settles) {
        let paths = about(memory, turns);
        memory.files = paths.into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect();
    }
}

fn about(memory: &RuleMemory, turns: &[Turn]) -> Vec<String> {
    let touched: Vec<&str> = turns.iter().flat_map(|turn| &turn.tools).filter_map(|tool| tool.path.as_deref()).collect();
    let named = files_named(&memory.title);
    if !named.is_empty() {
        // `parser.rs` is `src/parser.rs` if that was edited or read.
        let whole = |name: &str| {
            let ends = |path: &&&str| path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'));
            touched.iter().find(ends).map_or(name, |path| path).to_string()
        };
        return distinct(named.into_iter().map(whole));
    }
    let Some(&at) = memory.turns.last() else { return Vec::new() };
    let changed =
        |turn: &Turn| distinct(turn.tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.clone()));
    // What is decided in one turn may be done in the next.
    let paths = turns[at..].iter().take(2).map(changed).find(|paths| !paths.is_empty()).unwrap_or_default();
    if paths.len() > FEW { Vec::new() } else { paths }
}

fn distinct(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for path in paths {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}
