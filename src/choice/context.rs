//! What happened in each turn of a unit, as far as its statements are judged by it.

use super::said::{content_words, words_of_code};
use super::turns::{Turn, is_project_change};
use crate::languages::in_english;
use crate::model::Kind;
use crate::prompt_injection::orders;
use std::collections::HashSet;

/// Bytes of a closing message that may say that the work was undone.
const BEGINNING: usize = 80;

/// What happened in a turn.
#[derive(Debug)]
pub struct Context {
    /// Number of edits of project files.
    pub edits: usize,
    /// A test, build or lint passed after the last edit.
    pub checked: bool,
    /// Words of the prompt, of its own words only, and the prompt in lower case.
    pub asked: HashSet<String>,
    pub own: HashSet<String>,
    pub prompt: String,
    /// The prompt says that the work before it is wrong.
    pub refuses: bool,
    /// The closing message begins by saying that the work before it was undone.
    pub undoes: bool,
    /// Names of the edited files in lower case, without their folders.
    pub files: HashSet<String>,
    /// Words of the edited paths and texts.
    pub edited: HashSet<String>,
    /// Names from code that the edits removed and did not add again, and those that they added.
    pub removed: HashSet<String>,
    pub added: HashSet<String>,
    /// Text from outside the project that was read in this turn or before, in lower case: pages, answers of servers.
    pub outside: String,
    /// Files that a command deleted.
    pub deleted: HashSet<String>,
}

impl Context {
    /// Whether the agent may have a statement from outside: it repeats such a text, or gives an order after reading one.
    pub fn repeats_outside(&self, text: &str) -> bool {
        !self.outside.is_empty() && (orders(text) || quotes(&self.outside, &text.to_lowercase()))
    }
}

/// The context of each turn.
pub fn contexts(turns: &[Turn]) -> Vec<Context> {
    let mut contexts: Vec<Context> = turns.iter().map(context).collect();
    for at in 1..contexts.len() {
        let before = contexts[at - 1].outside.clone();
        contexts[at].outside.insert_str(0, &before);
    }
    contexts
}

fn context(turn: &Turn) -> Context {
    let edits: Vec<_> = turn.tools.iter().filter(|tool| is_project_change(tool)).collect();
    let last_edit = edits.last().map_or(0, |tool| tool.seq);
    let (mut removed, mut added, mut edited) = (HashSet::new(), HashSet::new(), HashSet::new());
    for tool in &edits {
        edited.extend(words_of_code(tool.path.as_deref().unwrap_or_default()));
        for line in tool.input.as_deref().unwrap_or_default().lines() {
            edited.extend(words_of_code(&crate::statements::plain(line)));
            match line.as_bytes().first() {
                Some(b'-') => removed.extend(long_names(line)),
                Some(b'+') => added.extend(long_names(line)),
                _ => {}
            }
        }
    }
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let prompt = turn.asked.map_or("", |asked| &asked.text);
    let closing = turn.closing.map_or("", |closing| &closing.text).trim_start();
    let closing = in_english(&closing[..closing.floor_char_boundary(BEGINNING)]).to_lowercase();
    let commands = turn.tools.iter().filter(|tool| tool.succeeded != Some(false)).filter_map(|tool| tool.content.as_deref());
    let outside = turn.tools.iter().filter(|tool| matches!(tool.kind, Kind::Fetch | Kind::Mcp));
    Context {
        edits: edits.len(),
        checked: turn.tools.iter().any(|tool| tool.seq > last_edit && tool.is_check() && tool.succeeded == Some(true)),
        asked: content_words(prompt),
        own: content_words(&crate::statements::own_sentences(prompt).join(" ")),
        prompt: prompt.to_lowercase(),
        refuses: turn.refuses,
        undoes: ["reverted", "i've reverted", "i reverted", "done. reverted", "rolled back", "undone"]
            .iter()
            .any(|begin| closing.starts_with(begin)),
        files: edits.iter().filter_map(|tool| tool.path.as_deref()).map(name).collect(),
        edited,
        removed: removed.difference(&added).cloned().collect(),
        added,
        outside: outside.flat_map(|tool| [tool.outcome.as_deref(), Some("\n")]).flatten().collect::<String>().to_lowercase(),
        deleted: commands.flat_map(deleted_by).map(|path| name(&path)).collect(),
    }
}

/// The files that a command line deletes with `rm` or `git rm`.
fn deleted_by(line: &str) -> Vec<String> {
    let mut words = line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|')).filter(|word| !word.is_empty());
    match words.find(|word| *word == "rm") {
        Some(_) => words.filter(|word| word.contains('.') && !word.starts_with('-')).map(String::from).collect(),
        None => Vec::new(),
    }
}

/// Letters of a name by which it is recognized in another place.
const NAME: usize = 6;

/// Long names in a line of code, in lower case.
fn long_names(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.len() >= NAME).map(str::to_lowercase)
}

/// Names from code in a statement, in lower case: `camelCase` and `snake_case`.
pub fn names_in(text: &str) -> HashSet<String> {
    let humps = |word: &str| word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let is_name = |word: &&str| word.len() >= NAME && (word.contains('_') || humps(word));
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(is_name).map(str::to_lowercase).collect()
}

/// Whether a prompt repeats 30 characters of a statement in a row; both in lower case.
pub fn quotes(prompt: &str, statement: &str) -> bool {
    const RUN: usize = 30;
    let starts = statement.char_indices().map(|(at, _)| at).step_by(6);
    starts.filter_map(|at| statement.get(at..at + RUN)).any(|piece| prompt.contains(piece))
}

/// The share of the smaller set that both have.
pub fn overlap(a: &HashSet<String>, b: &HashSet<String>) -> f32 {
    let both = a.iter().filter(|word| b.contains(*word)).count();
    both as f32 / a.len().min(b.len()).max(1) as f32
}

/// The share of all words that both sets have.
pub fn likeness(a: &HashSet<String>, b: &HashSet<String>) -> f32 {
    let both = a.iter().filter(|word| b.contains(*word)).count();
    both as f32 / (a.len() + b.len() - both).max(1) as f32
}
