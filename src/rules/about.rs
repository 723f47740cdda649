//! Which files a decision or a lesson is about: those that it names, else the few that were changed for it.

use super::told::Told;
use super::turns::{Turn, is_project_change};
use crate::model::{MemoryFile, MemoryKind};
use crate::text::files_named;

/// What was said with more changed files than these is about none of them in particular.
const FEW: usize = 4;

/// Gives decisions and lessons their files.
pub fn place(told: &mut [Told], turns: &[Turn]) {
    let settling = |told: &&mut Told| matches!(told.kind, MemoryKind::Decision | MemoryKind::Lesson) && told.files.is_empty();
    for told in told.iter_mut().filter(settling) {
        let paths = about(told, turns);
        told.files = paths.into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect();
    }
}

fn about(told: &Told, turns: &[Turn]) -> Vec<String> {
    let touched: Vec<&str> = turns.iter().flat_map(|turn| &turn.tools).filter_map(|tool| tool.path.as_deref()).collect();
    let named = files_named(&told.title);
    if !named.is_empty() {
        // `parser.rs` is `src/parser.rs` where that was at hand.
        let whole = |name: &str| {
            let ends = |path: &&&str| path.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/'));
            touched.iter().find(ends).map_or(name, |path| path).to_string()
        };
        return distinct(named.into_iter().map(whole));
    }
    let Some(&at) = told.turns.last() else { return Vec::new() };
    let changed =
        |turn: &Turn| distinct(turn.tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.clone()));
    // What is settled in one turn may be done in the next.
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
