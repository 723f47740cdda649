//! Search: ranked hits, and overviews of sessions.

use crate::distil::statements::sentences;
use crate::model::Maker;
use crate::model::{
    Filter, Hit, HitKind, Millis, PromptKind, PromptRow, SessionOverview, SessionRow, SessionStatus, TurnOverview, UnitOverview,
    Vector,
};
use crate::project::client;
use crate::rank;
use crate::store::Store;
use crate::store::query::Query;
use anyhow::Result;
use std::collections::HashSet;

/// Weights for the scores of prompts and of answers: a person who searches already knows the question.
const ASKED: f64 = 0.6;
const ANSWERED: f64 = 1.2;
/// Number of hits whose passages are compared.
const COMPARED: usize = 60;
/// Maximum characters of a passage.
const PASSAGE: usize = 240;
/// Minimum share of a message's words that a memory must have to replace it.
const SAME: f64 = 0.7;

/// The constant k of the paper.
const K: f64 = 60.0;
/// Number of nearest memories by embedding.
const NEAR: usize = 30;

/// Maximum hits to count beyond those shown; each costs a few microseconds.
const COUNTED: usize = 100;

/// Result of a search.
#[derive(Debug, Default)]
pub struct Searched {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Number of matches, and whether there may be more.
    pub total: usize,
    pub is_open_ended: bool,
    /// The query with corrected spelling, if only that had results.
    pub corrected: Option<String>,
}

/// Searches by words, then by words with corrected spelling, and by embedding if a model answers; returns at most
/// `limit` hits. `text` is a query with operators, `request` its words as typed.
pub fn search(
    store: &Store,
    text: &str,
    request: &str,
    kinds: &[HitKind],
    filter: &Filter,
    limit: usize,
    embedding: &dyn Fn(&str) -> Option<(String, Vector)>,
) -> Result<Searched> {
    let query = Query::parse(text);
    let most = limit.max(COUNTED);
    let mut found = store.search(&query, kinds, filter, most)?;
    let mut corrected = None;
    if found.is_empty()
        && let Some(nearest) = store.corrected(&query)?
    {
        found = store.search(&nearest, kinds, filter, most)?;
        corrected = (!found.is_empty()).then(|| nearest.sought());
    }
    if !text.is_empty()
        && kinds.contains(&HitKind::Memory)
        && let Some((model, vector)) = embedding(text)
    {
        found = with_meaning(store, found, filter, &model, &vector, most)?;
    }
    let mut hits = refined(request, found, limit);
    let total = hits.len();
    hits.truncate(limit);
    Ok(Searched { hits, total, is_open_ended: total >= COUNTED, corrected })
}

/// Merges the nearest memories into full-text hits, at most `limit`.
fn with_meaning(store: &Store, found: Vec<Hit>, filter: &Filter, model: &str, vector: &Vector, limit: usize) -> Result<Vec<Hit>> {
    if filter.scope.is_all() {
        return Ok(found);
    }
    let mut ranked: Vec<(i64, f64)> = Vec::new();
    for project in &filter.scope.projects {
        let near = store.nearest_memories(*project, model, vector, NEAR)?;
        ranked.extend(near.memories.iter().filter_map(|(id, cosine)| Some((*id, near.stands_out(*cosine)?))));
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let near = store.memories_as_hits(&ranked, filter)?;
    let mut all: Vec<Hit> = Vec::new();
    for list in [found, near] {
        for (rank, hit) in list.into_iter().enumerate() {
            let adds = 1.0 / (K + rank as f64 + 1.0);
            match all.iter_mut().find(|known| known.kind == hit.kind && known.id == hit.id) {
                Some(known) => known.score += adds,
                None => all.push(Hit { score: adds, ..hit }),
            }
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
    all.truncate(limit);
    Ok(all)
}

/// Gives each hit the passage that answers a request best. Removes hits without information: messages of one word, and
/// messages whose content a memory has. Prompts of the user count less than answers. Among the first `limit` hits,
/// those of one session are grouped.
fn refined(request: &str, mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
    if rank::terms(request).is_empty() {
        return hits;
    }
    hits.retain(|hit| hit.kind != HitKind::Prompt || rank::terms(&hit.text).len() > 1);
    for hit in hits.iter_mut().filter(|hit| hit.kind == HitKind::Prompt && hit.score > 0.0) {
        hit.score *= if hit.what == "user" { ASKED } else { ANSWERED };
    }
    for hit in hits.iter_mut().filter(|hit| hit.kind == HitKind::Memory && hit.score > 0.0) {
        hit.score *= hit.made_by.clone().map_or(1.0, |by| Maker::from(by).trust().factor());
    }
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
    let rest = hits.split_off(hits.len().min(COMPARED));
    add_passages(request, &mut hits);
    let mut hits = without_repeated(hits);
    hits.extend(rest);
    let later = hits.split_off(hits.len().min(limit));
    let mut grouped: Vec<Hit> = Vec::new();
    for hit in hits {
        let behind = grouped.iter().rposition(|known| known.session == hit.session && !hit.session.is_empty());
        grouped.insert(behind.map_or(grouped.len(), |at| at + 1), hit);
    }
    grouped.extend(later);
    grouped
}

/// Gives each hit the statements of its text that fit the request best, with the sentences around them.
fn add_passages(request: &str, hits: &mut [Hit]) {
    let texts: Vec<Vec<String>> = hits.iter().map(statements).collect();
    let all: Vec<&str> = texts.iter().flatten().map(String::as_str).collect();
    let mut fits = rank::fit(request, &all).into_iter();
    for (hit, texts) in hits.iter_mut().zip(&texts) {
        let fits: Vec<f64> = fits.by_ref().take(texts.len()).collect();
        let Some(best) = (0..texts.len()).max_by(|a, b| fits[*a].total_cmp(&fits[*b]).then(b.cmp(a))) else { continue };
        let (mut from, mut to) = (best, best + 1);
        let length = |from: usize, to: usize| texts[from..to].iter().map(|text| text.chars().count() + 1).sum::<usize>();
        loop {
            let before = (from > 0 && length(from - 1, to) <= PASSAGE).then(|| fits[from - 1]);
            let after = (to < texts.len() && length(from, to + 1) <= PASSAGE).then(|| fits[to]);
            match (before, after) {
                (Some(before), after) if after.is_none_or(|after| before > after) => from -= 1,
                (_, Some(_)) => to += 1,
                _ => break,
            }
        }
        // A dash separates the title from the text after it.
        let titles = hit.text.lines().map(|line| sentences(line).len()).sum::<usize>();
        let (title, text) = texts[from..to].split_at(titles.clamp(from, to) - from);
        let parts = [title.join(" "), text.join(" ")];
        hit.passage = Some(parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" — "));
    }
}

/// The sentences of a hit's title and text.
fn statements(hit: &Hit) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for sentence in hit.text.lines().chain(hit.more.lines()).flat_map(sentences) {
        if all.last().is_none_or(|last| *last != sentence) {
            all.push(sentence);
        }
    }
    all
}

/// Returns the hits without messages and units whose passage is mostly contained in a memory among them.
fn without_repeated(hits: Vec<Hit>) -> Vec<Hit> {
    let words = |hit: &Hit| rank::terms(hit.passage.as_deref().unwrap_or(&hit.text)).into_iter().collect::<HashSet<String>>();
    let memories: Vec<HashSet<String>> = hits.iter().filter(|hit| hit.kind == HitKind::Memory).map(words).collect();
    let is_repeated = |hit: &Hit| {
        let own = words(hit);
        let known = |memory: &HashSet<String>| own.intersection(memory).count() as f64 >= SAME * own.len() as f64;
        matches!(hit.kind, HitKind::Prompt | HitKind::Unit) && !own.is_empty() && memories.iter().any(known)
    };
    hits.into_iter().filter(|hit| !is_repeated(hit)).collect()
}

/// A session whose client cannot be checked counts as active for this long after its last event.
const SILENCE: Millis = 30 * 60_000;

/// Adds to each session its last units, newest first, and its last turns, in order.
pub fn overviews(
    store: &Store,
    sessions: Vec<SessionRow>,
    project: Option<i64>,
    units_each: usize,
    turns_each: usize,
    now: Millis,
) -> Result<Vec<SessionOverview>> {
    let units = store.last_units(&sessions.iter().map(|session| session.id).collect::<Vec<_>>(), project, units_each)?;
    let mut summaries = store.summaries_of_units(&units.iter().map(|unit| unit.id).collect::<Vec<_>>())?;
    let mut units: Vec<UnitOverview> =
        units.into_iter().map(|unit| UnitOverview { summary: summaries.remove(&unit.id), unit }).collect();
    let overviews = sessions.into_iter().map(|session| {
        let last_event_at = store.last_use(session.id)?.unwrap_or(0).max(session.active_at);
        let alive = session.client.and_then(client::is_alive);
        let state = match (session.ended_at, alive) {
            (Some(_), _) => SessionStatus::Ended,
            (None, Some(true)) => SessionStatus::Active,
            (None, None) if now - last_event_at < SILENCE => SessionStatus::Active,
            (None, _) => SessionStatus::Interrupted,
        };
        let units = units.extract_if(.., |overview| overview.unit.session == session.id).collect();
        let mut turns = turns(&store.last_said(session.id, project)?);
        turns.drain(..turns.len().saturating_sub(turns_each));
        Ok(SessionOverview { session, state, last_event_at, turns, units })
    });
    overviews.collect()
}

/// Groups consecutive messages into turns.
pub(super) fn turns(prompts: &[PromptRow]) -> Vec<TurnOverview> {
    let mut turns: Vec<TurnOverview> = Vec::new();
    for prompt in prompts {
        match (prompt.kind, turns.last_mut()) {
            // A prompt that was interrupted and asked again is one turn.
            (PromptKind::Prompt, Some(turn)) if turn.answer.is_none() && turn.prompt == prompt.text => {
                turn.number = prompt.number
            }
            (PromptKind::Prompt, _) => {
                turns.push(TurnOverview { number: prompt.number, prompt: prompt.text.clone(), answer: None })
            }
            // A turn may end several times (a stop hook continues it, a background task reports); the last message
            // counts.
            (PromptKind::Closing, Some(turn)) if turn.number == prompt.number => turn.answer = Some(prompt.text.clone()),
            _ => {}
        }
    }
    turns
}
