//! Recall at a prompt that begins a session or a unit: the work that the prompt is about, or nothing (ADR/0064).

use super::during_session::{is_trusted, says_something};
use super::ranked::{LEAST, RecallQuery, mark_stale, nearest};
use super::stale::{is_gone, remove_overtaken};
use crate::distil::score::{PassageScorer, ScoreWeights};
use crate::distil::statements::is_fragment;
use crate::index_text::query_terms;
use crate::model::{
    InjectionPoint, KnownFile, MemoryKind, MemoryRow, Passage, PromptContext, PromptRow, Provenance, RankedUnit, Vector,
};
use crate::passages::passages;
use crate::prompt_injection::looks_like_prompt_injection;
use crate::rank::{self, Route, stem, stem_of, terms};
use crate::store::Store;
use crate::store::candidates::SessionScope;
use crate::store::query::Query;
use crate::text::{alike, files_named, headline, is_in_project, without_slash_command, words};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Number of candidates.
const AMONG: usize = 5;
/// Minimum part of a candidate's score that must come from the words or the embedding of the prompt.
const SAID: f64 = 0.2;
/// Minimum content words of a prompt, unless it names a file.
const WORDS: usize = 2;
/// Number of files that a prompt names, from which on earlier work must have edited one of them.
const PLANNED: usize = 2;
/// Maximum words of a prompt to compare: the beginning of a plan tells what it is about.
const COMPARED: usize = 24;
/// Maximum messages of a unit to read, the newest ones, and the bytes of each.
const MESSAGES: usize = 24;
const MESSAGE_BYTES: usize = 4000;
/// Minimum score of a passage, as a share of the unit's best.
const FITS: f64 = 0.4;
/// Minimum share of the words of the shorter of two statements, in percent, for them to say the same.
const REPEATED: usize = 60;
/// Minimum words of the prompt's subject in a passage, or the rarity of one, as a share of that of a word without passages.
const FEW_SHARED: usize = 2;
const ONE_RARE: f64 = 0.7;
/// Share of the best score that the worth of a statement adds, as in a search (ADR/0062).
const WORTH: f64 = 0.058;
/// Maximum wishes about the files of the best unit, and the number of the newest to look at.
const WISHES: usize = 3;
const NEWEST: usize = 60;
/// Maximum files, maximum characters of a file's role, and its minimum words.
const FILES: usize = 5;
const ROLE: usize = 60;
const ROLE_WORDS: usize = 3;

/// Weight of the relevance of a unit that an embedding found, which need not share a word with the prompt.
const MEANING: f64 = 4.0;
/// Injections that the session itself receives. Those into its subagents do not reach it.
const OWN_CONTEXT: [InjectionPoint; 4] =
    [InjectionPoint::Start, InjectionPoint::Compaction, InjectionPoint::Prompt, InjectionPoint::File];

/// A prompt that was just submitted.
pub struct Prompt<'a> {
    pub text: &'a str,
    /// The model and the embedding of the text, computed only if something could be injected.
    pub embedding: &'a dyn Fn() -> Option<(String, Vector)>,
    /// The current branch, read only if needed. Many branches are created after the session starts.
    pub branch: &'a dyn Fn() -> Option<String>,
    pub root: Option<&'a Path>,
}

/// Strength of a unit's match with a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PromptMeasures {
    /// Words of the prompt's subject in the passage that has most of them, as a number of words as rare as one that no
    /// passage has.
    pub rare: f64,
    /// Share of the prompt's words in the passage that has most of them, weighed by rarity.
    pub coverage: f64,
    /// Number of words of the subject in the names of files that the unit edited, at most [`PromptMeasures::NAMES`].
    pub names: f64,
}

impl PromptMeasures {
    const NAMES: usize = 4;
    const BIAS: f64 = -3.1;
    const WEIGHTS: [f64; 3] = [0.17, 0.95, 2.38];
    /// Log-odds from which a unit is injected: of eleven below, readers wanted none (ADR/0064).
    const ENOUGH: f64 = -0.5;

    /// The numbers that the regression uses, in its order.
    pub fn features(&self) -> [f64; 3] {
        [self.rare, self.names, self.rare * self.coverage]
    }

    /// Log-odds that the session will edit a file of the unit: a logistic regression over the first prompts of four projects.
    pub fn log_odds(&self) -> f64 {
        Self::WEIGHTS.iter().zip(self.features()).map(|(weight, value)| weight * value).sum::<f64>() + Self::BIAS
    }
}

/// Earlier work that a prompt is about, if the prompt begins a session or a unit. Later prompts receive nothing.
pub fn at_prompt(store: &Store, scope: &SessionScope, given: &Prompt) -> Result<PromptContext> {
    if scope.muted || !store.begins_unit(scope.session)? {
        return Ok(PromptContext::default());
    }
    let prompt = without_slash_command(given.text);
    let named: Vec<&str> = files_named(prompt).into_iter().filter(may_be_edited).collect();
    let branch = (given.branch)().or(scope.branch.clone());
    let is_vague = rank::subject(prompt).len() < WORDS && named.is_empty();
    // Only the branch's name says what a link is about. It is used unless the start has described the branch's work.
    let is_link = is_vague && prompt.contains("://");
    let of_branch = branch.as_deref().filter(|_| is_link).map(rank::branch_terms).unwrap_or_default().join(" ");
    let prompt = if is_vague { of_branch.as_str() } else { prompt };
    let is_new = || anyhow::Ok(is_first_prompt(store, scope)? && store.injected_items(scope.session, &OWN_CONTEXT)?.is_empty());
    if is_vague && (rank::subject(prompt).len() < WORDS || !is_new()?) {
        return Ok(PromptContext::default());
    }
    let embedding = (given.embedding)();
    let query = RecallQuery {
        project: scope.project,
        own: Some(scope.session),
        request: Some(prompt),
        branch: branch.as_deref(),
        embedding: embedding.as_ref().map(|(model, vector)| (model.as_str(), vector)),
        files: &[],
        root: given.root,
    };
    let candidates = nearest(store, &query, |relevance| relevance.words >= SAID && relevance.probability() >= LEAST, AMONG)?;
    let words = PromptWords::new(store, prompt)?;
    let mut all: Vec<(f64, RankedUnit)> = Vec::new();
    let mut measures = Vec::new();
    let received = store.injected_items(scope.session, &OWN_CONTEXT)?;
    for unit in candidates {
        // Nothing is said twice.
        if received.contains(&format!("u{}", unit.unit.id)) {
            continue;
        }
        if named.len() >= PLANNED && !unit.unit.files.iter().any(|file| file.edits > 0 && is_named(&file.path, &named)) {
            continue;
        }
        let mut messages = store.said_in_unit(unit.unit.session, unit.unit.id)?;
        messages.drain(..messages.len().saturating_sub(MESSAGES));
        let measured = words.measure(&unit, &messages);
        measures.push((unit.unit.id, measured.features()));
        let by_meaning = if is_found_by_meaning(&unit) { unit.relevance.sum } else { 0.0 };
        all.push((measured.log_odds() + by_meaning * MEANING, unit));
    }
    all.retain(|(log_odds, _)| *log_odds >= PromptMeasures::ENOUGH);
    let best = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.unit.id.cmp(&b.1.unit.id)));
    let mut found = PromptContext { measures, ..PromptContext::default() };
    let Some((_, mut unit)) = best else { return Ok(found) };
    let mut memories = Vec::new();
    for memory in std::mem::take(&mut unit.memories) {
        if !memory.kind.is_summary() && !received.contains(&format!("m{}", memory.id)) && is_trusted(store, &memory)? {
            memories.push(memory);
        }
    }
    unit.memories = memories;
    mark_stale(store, &query, std::slice::from_mut(&mut unit))?;
    unit.memories.retain(|memory| !is_gone(memory, &unit.annotations.stale));
    unit.passages = words.best(&unit).into_iter().collect();
    found.files = files_of(&unit, &named);
    found.wishes = wishes(store, scope.project, &found.files, &unit.passages, &received)?;
    // What an earlier plan said of a file held for that plan.
    found.wishes.retain(|wish| !wish.is_from_plan() && words.speaks_of_subject(&words.in_passage(&wish.title)));
    found.wishes.truncate(WISHES);
    found.unit = Some(unit);
    Ok(found)
}

fn is_first_prompt(store: &Store, scope: &SessionScope) -> Result<bool> {
    Ok(store.session_by_row(scope.session)?.is_some_and(|session| session.prompts <= 1))
}

/// Whether a prompt names a file of the project, by its path, the end of its path, or its absolute path.
fn is_named(path: &str, named: &[&str]) -> bool {
    let ends = |long: &str, end: &str| long.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    named.iter().any(|name| ends(path, name) || ends(name, path))
}

/// Whether a name in a prompt may be that of a file that work edits: a stack trace also names libraries.
fn may_be_edited(name: &&str) -> bool {
    const LIBRARIES: [&str; 5] = ["node_modules/", "site-packages/", "/.cargo/", "/usr/", "/go/pkg/"];
    !LIBRARIES.iter().any(|library| name.contains(library))
}

/// Whether a unit was found by an embedding.
fn is_found_by_meaning(unit: &RankedUnit) -> bool {
    unit.why.iter().any(|why| why.what == Route::Embedding.name())
}

/// A word of a prompt.
#[derive(Clone, Copy)]
struct PromptWord {
    /// Its place among the words, as a bit.
    bit: u32,
    rarity: f64,
    /// It expresses the subject.
    is_subject: bool,
}

/// Words of a prompt that a passage has too: their rarities, and the number of those of the subject.
#[derive(Default)]
struct SharedWords {
    all: f64,
    subject: f64,
    subject_words: usize,
}

/// The words of a prompt that some passages of the project have, but not too many.
struct PromptWords {
    /// By stem; at most [`COMPARED`].
    words: HashMap<String, PromptWord>,
    subject: HashSet<String>,
    /// Rarity of a word that no passage has.
    rarest: f64,
    total: f64,
}

impl PromptWords {
    fn new(store: &Store, prompt: &str) -> Result<PromptWords> {
        let mut words = terms(prompt);
        words.truncate(COMPARED);
        let query = Query::parse(&words.join(" "));
        let (known, rarest) = store.rarities(&query)?;
        let subject = rank::subject(prompt);
        let mut words: HashMap<String, PromptWord> = HashMap::new();
        for (word, rarity) in known {
            let (stem, bit) = (stem(&word), 1 << words.len());
            let is_subject = subject.contains(&stem);
            words.entry(stem).or_insert(PromptWord { bit, rarity, is_subject });
        }
        Ok(PromptWords { total: words.values().map(|word| word.rarity).sum(), words, subject, rarest })
    }

    fn in_passage(&self, passage: &str) -> SharedWords {
        let (mut seen, mut shared) = (0, SharedWords::default());
        let mut add = |term: &str| {
            if let Some(word) = self.words.get(stem_of(term)).filter(|word| seen & word.bit == 0) {
                seen |= word.bit;
                shared.all += word.rarity;
                if word.is_subject {
                    shared.subject += word.rarity;
                    shared.subject_words += 1;
                }
            }
        };
        // Most words are plain, and cost no allocation.
        for word in words(passage) {
            match word.bytes().all(|byte| byte.is_ascii_lowercase()) {
                true => add(word),
                false => query_terms(word).iter().for_each(|term| add(term)),
            }
        }
        shared
    }

    /// Whether a passage speaks of the prompt's subject. One common word is no subject.
    fn speaks_of_subject(&self, shared: &SharedWords) -> bool {
        shared.subject_words >= FEW_SHARED || shared.subject >= ONE_RARE * self.rarest
    }

    fn measure(&self, unit: &RankedUnit, messages: &[PromptRow]) -> PromptMeasures {
        let (mut all, mut subject) = (0.0_f64, 0.0_f64);
        let mut add = |passage: &str| {
            let shared = self.in_passage(passage);
            all = all.max(shared.all);
            subject = subject.max(shared.subject);
        };
        unit.unit.title.iter().for_each(|title| add(title));
        unit.unit.commits.iter().for_each(|commit| add(&commit.subject));
        for memory in &unit.memories {
            let text = statements(memory).join("\n");
            passages(&text).into_iter().for_each(|range| add(&text[range]));
        }
        for message in messages {
            let text = beginning(&message.text);
            passages(text).into_iter().for_each(|range| add(&text[range]));
        }
        let edited =
            unit.unit.files.iter().filter(|file| file.edits > 0).map(|file| file.path.rsplit('/').next().unwrap_or_default());
        let names = rank::subject_of(edited).intersection(&self.subject).count().min(PromptMeasures::NAMES);
        PromptMeasures { rare: subject / self.rarest, coverage: all / self.total.max(f64::MIN_POSITIVE), names: names as f64 }
    }

    /// The passage of a unit's memories to show; what was tried in vain on the subject comes first. Messages find a unit, but
    /// are not shown: an agent may repeat what a page said. Readers wanted half of the best passages, and hardly any second one.
    fn best(&self, unit: &RankedUnit) -> Option<Passage> {
        let scorer = PassageScorer::new(ScoreWeights::fitted());
        let is_by_meaning = is_found_by_meaning(unit);
        let mut all: Vec<(bool, Passage)> = Vec::new();
        for memory in &unit.memories {
            let is_tried = memory.kind == MemoryKind::Tried;
            // Of a decision, only the decision: readers did not want what an agent reported of it.
            let statements = statements(memory).into_iter().take(if memory.kind.is_lasting() { 1 } else { usize::MAX });
            for (n, text) in statements.enumerate() {
                let part = if n == 0 { None } else { Some("facts") };
                let shared = self.in_passage(text);
                let fit = if self.speaks_of_subject(&shared) || is_by_meaning { shared.subject } else { 0.0 };
                all.push((is_tried, Passage { memory: memory.id, part, text: text.to_string(), fit }));
            }
        }
        let most = all.iter().map(|(_, passage)| passage.fit).fold(0.0, f64::max);
        // Of a unit that an embedding found, the memories rank by their own worth.
        all.retain(|(_, passage)| most == 0.0 && is_by_meaning || passage.fit > 0.0 && passage.fit >= FITS * most);
        for (_, passage) in &mut all {
            passage.fit = passage.fit / most.max(f64::MIN_POSITIVE) + WORTH * f64::from(scorer.worth(&passage.text));
        }
        all.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.fit.total_cmp(&a.1.fit)));
        let is_name =
            |text: &str| [&unit.unit.title, &unit.unit.intent].into_iter().flatten().any(|name| alike(&headline(name), text));
        let says_more = |text: &str| !is_name(text) && !is_fragment(text) && !text.trim_end().ends_with('?');
        all.into_iter().map(|(_, passage)| passage).find(|passage| says_more(&passage.text))
    }
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_BYTES)]
}

/// Whether two statements say the same: one has most words of the other.
fn repeats(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| words(text).map(str::to_lowercase).collect::<HashSet<String>>());
    let least = one.len().min(other.len());
    least > 0 && one.intersection(&other).count() * 100 >= least * REPEATED
}

/// A memory's title and facts.
fn statements(memory: &MemoryRow) -> Vec<&str> {
    std::iter::once(memory.title.as_str()).chain(memory.list("facts")).collect()
}

/// The files that a unit edited: those that the prompt names first, then the most edited ones; each with its role, if a memory
/// says it that is not shown.
fn files_of(unit: &RankedUnit, named: &[&str]) -> Vec<KnownFile> {
    let mut edited: Vec<&str> = unit.unit.files.iter().filter(|file| file.edits > 0).map(|file| file.path.as_str()).collect();
    edited.retain(|path| is_in_project(path));
    edited.sort_by_key(|path| !is_named(path, named));
    let is_shown = |role: &String| unit.passages.iter().any(|passage| repeats(&passage.text, role));
    let role = |path: &str| {
        let mut roles = unit.memories.iter().flat_map(statements).filter_map(|line| role_of(path, line));
        roles.find(|role| !is_shown(role))
    };
    edited.into_iter().take(FILES).map(|path| KnownFile { path: path.to_string(), role: role(path) }).collect()
}

/// Returns the role of a file in a line that begins with its name: "`stanza.go`: pure functions"; none if it is longer than
/// a few words.
fn role_of(path: &str, line: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let (before, after) = line.split_once(name)?;
    let is_begin = before.chars().all(|c| !c.is_alphanumeric())
        || path.ends_with(&format!("{}{name}", before.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '.')));
    // `a.go:64`: the number of a line.
    let numbered = after.strip_prefix(':').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-'));
    let after = numbered.filter(|rest| rest.len() + 1 < after.len()).unwrap_or(after);
    let after = after.trim_start_matches(['`', '*', ']', ' ']);
    // A link's target.
    let after = if after.starts_with('(') { after.split_once(')')?.1.trim_start_matches(['`', '*', ' ']) } else { after };
    let role = after.strip_prefix([':', '—', '–', '-', '→'])?.trim_start_matches(['*', ' ']).trim();
    let role = role.split_once(". ").map_or(role, |(first, _)| first);
    let is_short = role.split_whitespace().count() >= ROLE_WORDS && role.chars().count() <= ROLE;
    (is_begin && is_short && !looks_like_prompt_injection(role)).then(|| role.to_string())
}

/// The user's wishes about the files in which the work ended, newest first, that the session has not received.
fn wishes(
    store: &Store,
    project: i64,
    files: &[KnownFile],
    shown: &[Passage],
    received: &HashSet<String>,
) -> Result<Vec<MemoryRow>> {
    let files: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let is_shown = |id: i64| received.contains(&format!("m{id}")) || shown.iter().any(|passage| passage.memory == id);
    let mut wishes = store.newest_settled(project, false, NEWEST, &files)?;
    wishes.retain(|wish| {
        wish.is_about_files && wish.provenance == Provenance::User && wish.kind == MemoryKind::Decision && !is_shown(wish.id)
    });
    let mut wishes = store.memories_by_rows(&wishes.iter().map(|wish| wish.id).collect::<Vec<_>>())?;
    wishes.retain(says_something);
    remove_overtaken(store, project, &mut wishes)?;
    Ok(wishes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_what_a_few_words_behind_a_files_name_say() {
        let role = |line: &str| role_of("src/stanza.rs", line);
        assert_eq!(role("`stanza.rs`: pure functions of text. Called by setup.").as_deref(), Some("pure functions of text"));
        assert_eq!(role("src/stanza.rs - merges two stanzas").as_deref(), Some("merges two stanzas"));
        assert_eq!(role("Moved `stanza.rs`: it is elsewhere now"), None, "the line is about a move");
        let long = "merges two stanzas, keeps the order of their lines and writes what is left";
        assert_eq!(role(&format!("`stanza.rs`: {long}")), None, "a cut one would say little");
    }
}
