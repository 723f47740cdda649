//! Answers a question: passages, best first, and their grade.

use crate::distil::score::{PassageScorer, ScoreWeights};
use crate::index_text::query_terms;
use crate::model::{Filter, Grade, Hit, HitKind, Maker, PassageId, TextId, TextKind, Vector};
use crate::rank;
use crate::rank::passage_score::{LOOKED_AT, best_alone, in_context, raise_common_words, rarity};
use crate::store::Store;
use crate::store::passage_index::PassagesByWord;
use crate::store::query::Query;
use crate::text::{files_named, is_stop_word};
use anyhow::Result;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Number of passages that are read and compared.
const COMPARED: usize = 60;
/// Maximum tool uses to count beyond those shown; each costs a few microseconds.
const COUNTED: usize = 100;

/// Shares of the best score that the source of a passage adds to its own (ADR/0062).
const WORTH: f64 = 0.058;
const MEMORY: f64 = 0.17;
/// A person who searches knows their own question, and what was pasted or planned less than what came of it.
const ASKED: f64 = -0.058;
const PASTED: f64 = -0.077;
/// Bytes of a prompt from which it is pasted, or a plan.
const LONG_PROMPT: usize = 1200;
/// Log-odds of a memory: rules have chosen it.
const CHOSEN: f64 = 0.5;
/// Minimum share of a passage's words that another one must have to replace it.
const SAME: f64 = 0.5;
/// Minimum share of a message's words that a memory must have to precede it.
const REPEATED: f64 = 0.7;
/// Words up to which a message of the user's is an aside.
const ASIDE: usize = 2;
/// Minimum share of a question's score for an answer to precede it, and its distance in messages.
const ANSWERS: f64 = 0.6;
const FOLLOWS: i64 = 3;
/// Words of a query that can quote a message; the message may have as many more.
const QUOTED: usize = 3;
/// Words of a passage that is not short.
const SHORT: usize = 8;

/// The constant k of reciprocal rank fusion.
const K: f64 = 60.0;
/// Number of nearest memories by embedding.
const NEAR: usize = 30;

/// Result of a search.
#[derive(Debug, Default)]
pub struct Searched {
    /// Best first.
    pub hits: Vec<Hit>,
    /// The grade of the answer; `None` for a list without words.
    pub grade: Option<Grade>,
    /// Number of matches, and whether there may be more.
    pub total: usize,
    pub is_open_ended: bool,
    /// The query with corrected spelling, if only that had results.
    pub corrected: Option<String>,
    /// Words of the query that no message and no memory has.
    pub unknown: Vec<String>,
    /// Measurements behind the grade.
    pub asked: AnswerMeasures,
}

/// Computes the embedding of a text, with the model's name.
pub type Embed<'a> = &'a dyn Fn(&str) -> Option<(String, Vector)>;

/// Searches by words, then by words with corrected spelling, and by embedding if a model answers; returns at most
/// `limit` hits. Tool uses come after all passages. `text` is a query with operators.
pub fn search(store: &Store, text: &str, kinds: &[HitKind], filter: &Filter, limit: usize, embed: Embed) -> Result<Searched> {
    let found = search_by(store, text, kinds, filter, limit, embed, ScoreWeights::fitted())?;
    // A wrong answer is worse than none.
    Ok(if found.grade == Some(Grade::None) { Searched { hits: Vec::new(), total: 0, ..found } } else { found })
}

/// The same with other weights of statements, and with the hits of an answer that is none, for benchmarks.
pub fn search_by(
    store: &Store,
    text: &str,
    kinds: &[HitKind],
    filter: &Filter,
    limit: usize,
    embed: Embed,
    weights: ScoreWeights,
) -> Result<Searched> {
    let query = store.loosened(&Query::parse(text))?;
    if query.is_empty() {
        let hits = store.newest_hits(kinds, filter, limit.max(COUNTED))?;
        let (total, is_open_ended) = (hits.len(), hits.len() >= COUNTED);
        return Ok(Searched { hits: hits.into_iter().take(limit).collect(), total, is_open_ended, ..Searched::default() });
    }
    let named = files_named(text);
    let is_unknown = !named.is_empty() && !store.knows_any_file(&named)?;
    if is_unknown && is_about_file(text, &named) {
        return Ok(Searched { grade: Some(Grade::None), ..Searched::default() });
    }
    let mut searched = by_words(store, &query, kinds, filter, limit, embed(text), &weights)?;
    if searched.hits.is_empty()
        && let Some(nearest) = store.corrected(&query)?
    {
        searched = by_words(store, &nearest, kinds, filter, limit, None, &weights)?;
        searched.corrected = (!searched.hits.is_empty()).then(|| nearest.sought());
        // Other words are unknown, too.
        if nearest.len() < query.len() {
            searched.grade = weak_at_most(searched.grade);
        }
    }
    if is_unknown {
        searched.grade = weak_at_most(searched.grade);
    }
    Ok(searched)
}

fn weak_at_most(grade: Option<Grade>) -> Option<Grade> {
    grade.map(|grade| if grade == Grade::Strong { Grade::Weak } else { grade })
}

/// Words of a question besides the files that it names, from which it is about more than these.
const SUBJECT: usize = 4;

/// Whether a question is about nothing but the files that it names: a file that is not known yet may be one to write.
fn is_about_file(question: &str, files: &[&str]) -> bool {
    let rest = files.iter().fold(question.to_string(), |rest, file| rest.replace(file, " "));
    rank::subject(&rest).len() < SUBJECT
}

fn by_words(
    store: &Store,
    query: &Query,
    kinds: &[HitKind],
    filter: &Filter,
    limit: usize,
    embedding: Option<(String, Vector)>,
    weights: &ScoreWeights,
) -> Result<Searched> {
    let (mut found, by_word) = passages(store, query, kinds, filter, limit.max(COMPARED))?;
    let scorer = PassageScorer::new(weights.clone());
    let best = found.first().map_or(0.0, |(_, hit)| hit.score);
    for (id, hit) in &mut found {
        hit.score += best * adds(&scorer, *id, hit);
    }
    sort(&mut found);
    let mut asked = AnswerMeasures::new(query, &by_word, &found);
    let is_unknown = |at: &usize| by_word.counts.get(*at) == Some(&0) && !query.is_pair(*at);
    // With fewer kinds of texts, the others may have it.
    let has_all_kinds = TextKind::ALL.iter().all(|text| kinds.contains(&text.hit()));
    let unknown = (0..query.len()).filter(|at| has_all_kinds && is_unknown(at)).map(|at| query.word(at).to_string()).collect();
    if kinds.contains(&HitKind::Memory)
        && let Some((model, vector)) = embedding
    {
        found = with_meaning(store, found, filter, &model, &vector, &mut asked.near)?;
    }
    without_asides(&mut found, &by_word);
    answers_first(&mut found, &by_word);
    prefer_memories(&mut found);
    sort(&mut found);
    without_more_of_the_same(&mut found, &by_word);
    titles_first(&query.terms(), &mut found);
    let found = without_repeated(found);
    let mut hits: Vec<Hit> = found.into_iter().map(|(_, hit)| hit).collect();
    if kinds.contains(&HitKind::Tool) && hits.len() < limit.max(COUNTED) {
        let is_known = |tool: &Hit| hits.iter().any(|hit| hit.kind == HitKind::Tool && hit.id == tool.id);
        let mut tools = store.tool_uses_with(query, filter, limit.max(COUNTED))?;
        tools.retain(|tool| !is_known(tool));
        hits.extend(tools);
    }
    let grade = grade(&asked, &hits, &query.terms());
    let total = hits.len();
    hits.truncate(limit);
    Ok(Searched { hits, grade: Some(grade), total, is_open_ended: total >= COUNTED, corrected: None, unknown, asked })
}

type Found = Vec<(PassageId, Hit)>;

/// Passages with words of a query, best first.
fn passages(store: &Store, query: &Query, kinds: &[HitKind], filter: &Filter, limit: usize) -> Result<(Found, PassagesByWord)> {
    let texts: Vec<TextKind> = TextKind::ALL.into_iter().filter(|text| kinds.contains(&text.hit())).collect();
    // A search for tool uses alone finds commits by their commands.
    if texts.iter().all(|text| *text == TextKind::Commit) {
        return Ok(Default::default());
    }
    let mut by_word = store.passages_by_word(query, &texts, &filter.scope)?;
    let rarities = by_word.rarities();
    raise_common_words(&mut by_word.by_word, &rarities);
    let mut alone = best_alone(&by_word.by_word);
    alone.truncate(LOOKED_AT.max(limit));
    let mut around: Vec<_> = alone.iter().map(|(id, _)| id.text()).collect();
    around.dedup();
    let ranked = in_context(&by_word.by_word, &alone, &store.sessions_around(&around)?);
    Ok((store.passages_as_hits(&ranked, filter, limit)?, by_word))
}

/// The share of the best score that the source of a passage adds.
fn adds(scorer: &PassageScorer, id: PassageId, hit: &Hit) -> f64 {
    let passage = hit.passage.as_deref().unwrap_or_default();
    match id.text().kind() {
        TextKind::Memory => {
            let trust = hit.made_by.clone().map_or(1.0, |by| Maker::from(by).trust().factor());
            WORTH * CHOSEN + MEMORY * trust
        }
        TextKind::Unit => WORTH * CHOSEN,
        TextKind::Commit => WORTH * f64::from(scorer.worth(passage)),
        TextKind::Message if hit.what == "user" => {
            let pasted = if hit.text.len() >= LONG_PROMPT { PASTED } else { 0.0 };
            WORTH * f64::from(scorer.worth(passage)) + ASKED + pasted
        }
        TextKind::Message => WORTH * f64::from(scorer.worth(passage)),
    }
}

/// Merges the nearest memories into the passages.
fn with_meaning(
    store: &Store,
    mut found: Found,
    filter: &Filter,
    model: &str,
    vector: &Vector,
    nearest: &mut Option<f64>,
) -> Result<Found> {
    let mut ranked: Vec<(PassageId, f64)> = Vec::new();
    let projects: Vec<Option<i64>> = match filter.scope.is_all() {
        true => vec![None],
        false => filter.scope.projects.iter().copied().map(Some).collect(),
    };
    for project in projects {
        let near = store.nearest_memories(project, model, vector, NEAR)?;
        let passage = |id: i64| PassageId::new(TextId::new(TextKind::Memory, id), 0);
        ranked.extend(near.memories.iter().filter_map(|(id, cosine)| Some((passage(*id), near.stands_out(*cosine)?))));
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    sort(&mut found);
    let near = store.passages_as_hits(&ranked, filter, NEAR)?;
    *nearest = Some(near.first().map_or(0.0, |(_, hit)| hit.score));
    let mut all: Found = Vec::new();
    for list in [found, near] {
        for (rank, (id, hit)) in list.into_iter().enumerate() {
            let adds = 1.0 / (K + rank as f64 + 1.0);
            match all.iter_mut().find(|(known, _)| *known == id) {
                Some((_, known)) => known.score += adds,
                None => all.push((id, Hit { score: adds, ..hit })),
            }
        }
    }
    Ok(all)
}

fn sort(found: &mut Found) {
    found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score).then(b.at.cmp(&a.at)));
}

/// Leaves out the user's shortest messages if they have none of the words: "go on" between two messages that have some.
fn without_asides(found: &mut Found, by_word: &PassagesByWord) {
    found.retain(|(id, hit)| {
        let is_short = hit.kind == HitKind::Prompt && hit.what == "user" && words_of(hit).len() <= ASIDE;
        !is_short || by_word.by_word.iter().any(|held| held.keys().any(|other| other.text() == id.text()))
    });
}

/// Puts the agent's answer before the user's question that it follows: the first message after it that has any of the words.
fn answers_first(found: &mut Found, by_word: &PassagesByWord) {
    let has_word = |id: &PassageId| by_word.by_word.iter().any(|held| held.contains_key(id));
    let is_answer = |question: &Hit, (id, hit): &(PassageId, Hit)| {
        hit.kind == HitKind::Prompt
            && hit.what != "user"
            && hit.session == question.session
            && (question.id + 1..=question.id + FOLLOWS).contains(&hit.id)
            && (ANSWERS * question.score..question.score).contains(&hit.score)
            && has_word(id)
    };
    let mut raised: Vec<(usize, f64)> = Vec::new();
    for (_, question) in found.iter().filter(|(_, hit)| hit.kind == HitKind::Prompt && hit.what == "user") {
        let answers = (0..found.len()).filter(|at| is_answer(question, &found[*at]));
        let first = answers.min_by(|a, b| {
            let (a, b) = (&found[*a].1, &found[*b].1);
            a.id.cmp(&b.id).then(b.score.total_cmp(&a.score))
        });
        raised.extend(first.map(|at| (at, question.score.next_up())));
    }
    for (at, score) in raised {
        found[at].1.score = found[at].1.score.max(score);
    }
}

/// Leaves out a further passage of a message, unless it has a word that those before it do not have.
fn without_more_of_the_same(found: &mut Found, by_word: &PassagesByWord) {
    let mut seen: HashMap<TextId, HashSet<usize>> = HashMap::new();
    found.retain(|(id, hit)| {
        if hit.kind != HitKind::Prompt {
            return true;
        }
        let words = by_word.by_word.iter().enumerate().filter(|(_, held)| held.contains_key(id)).map(|(at, _)| at);
        match seen.entry(id.text()) {
            Entry::Vacant(first) => {
                first.insert(words.collect());
                true
            }
            // Not `any`: all of its words are known afterwards.
            Entry::Occupied(mut known) => words.filter(|word| known.get_mut().insert(*word)).count() > 0,
        }
    });
}

/// Puts a memory before the message that it repeats.
fn prefer_memories(found: &mut Found) {
    let words: Vec<HashSet<String>> = found.iter().map(|(_, hit)| words_of(hit)).collect();
    let mut raised: HashMap<usize, f64> = HashMap::new();
    for (at, (_, message)) in found.iter().enumerate().filter(|(_, (_, hit))| hit.kind == HitKind::Prompt) {
        let is_repeat = |other: &usize| {
            let (_, memory) = &found[*other];
            memory.kind == HitKind::Memory && memory.unit == message.unit && holds_share(&words[*other], &words[at], REPEATED)
        };
        if let Some(memory) = (0..found.len()).find(is_repeat) {
            let raise = raised.entry(memory).or_insert(found[memory].1.score);
            *raise = raise.max(message.score.next_up());
        }
    }
    for (at, score) in raised {
        found[at].1.score = score;
    }
}

/// Puts hits whose title consists of the query's words first, longest title first, and messages of the user that the query
/// quotes.
fn titles_first(terms: &[String], found: &mut Found) {
    let asked = rank::terms(&terms.join(" "));
    let quotes = |hit: &Hit| {
        hit.kind == HitKind::Prompt && hit.what == "user" && asked.len() >= QUOTED && {
            let said = rank::terms(hit.passage.as_deref().unwrap_or(&hit.text));
            said.len() <= asked.len() + QUOTED && said.windows(asked.len()).any(|part| part == asked)
        }
    };
    let matched = |hit: &Hit| -> usize {
        if quotes(hit) {
            return terms.len();
        }
        if !matches!(hit.kind, HitKind::Memory | HitKind::Unit) {
            return 0;
        }
        let title = rank::terms(&hit.text);
        let is_whole = title.len() >= 2 && title.iter().all(|term| terms.contains(term));
        if is_whole { title.len() } else { 0 }
    };
    // Most of the query must be in the title, or a short title would precede a better passage.
    let half = terms.len().div_ceil(2);
    found.sort_by_cached_key(|(_, hit)| std::cmp::Reverse(Some(matched(hit)).filter(|words| *words > half).unwrap_or(0)));
}

fn words_of(hit: &Hit) -> HashSet<String> {
    let text = hit.passage.as_deref().unwrap_or(&hit.text);
    query_terms(text).into_iter().filter(|word| !is_stop_word(word)).collect()
}

/// Whether a passage has most of the words of another one; of a short one all.
fn holds(passage: &HashSet<String>, other: &HashSet<String>) -> bool {
    holds_share(passage, other, SAME)
}

fn holds_share(passage: &HashSet<String>, other: &HashSet<String>, share: f64) -> bool {
    let same = if other.len() < SHORT { 1.0 } else { share };
    !other.is_empty() && other.intersection(passage).count() as f64 >= same * other.len() as f64
}

/// Leaves out passages most of whose words a better one has, and messages of a single word.
fn without_repeated(found: Found) -> Found {
    let mut kept: Vec<HashSet<String>> = Vec::new();
    let is_new = |(_, hit): &(PassageId, Hit)| {
        let own = words_of(hit);
        let says = own.len() > 1 || hit.kind != HitKind::Prompt;
        let is_new = says && !kept.iter().any(|known| holds(known, &own));
        if is_new {
            kept.push(own);
        }
        is_new
    };
    found.into_iter().filter(is_new).collect()
}

/// Number of best passages that are looked at, and number whose mean score is compared.
const LOOKED: usize = 5;
const MEAN: usize = 10;

/// Measurements of an answer by the words of its question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AnswerMeasures {
    /// Share of the question's words in the passage that has most of them, weighed by rarity.
    pub coverage: f64,
    /// The same as a number of words as rare as one that no passage has.
    pub covered: f64,
    /// Score of the best passage, and its distance to the mean of the best ten, in the same unit.
    pub score: f64,
    pub lead: f64,
    /// Number of words.
    pub words: f64,
    /// Share of the words that no passage has, weighed by rarity.
    pub unknown: f64,
    /// Number of passages in the index.
    pub among: i64,
    /// The largest share by which a memory's similarity to the question exceeds the mean, by embedding; `None` without a
    /// model.
    pub near: Option<f64>,
}

impl AnswerMeasures {
    pub fn new(query: &Query, by_word: &PassagesByWord, found: &[(PassageId, Hit)]) -> AnswerMeasures {
        let rarest = rarity(0, by_word.all);
        let rarities = by_word.rarities();
        // Pairs across two words stand nowhere, and say nothing.
        let is_unknown = |(at, count): &(usize, &i64)| **count == 0 && !query.is_pair(*at);
        let unknown = by_word.counts.iter().enumerate().filter(is_unknown).count() as f64 * rarest;
        let total = rarities.iter().sum::<f64>() + unknown;
        // A word of a script without spaces is about two pairs.
        let pairs = (0..query.len()).filter(|at| query.is_pair(*at)).count();
        let words = (query.len() - pairs) as f64 + pairs as f64 / 2.0;
        if found.is_empty() || total <= 0.0 {
            let among = by_word.all;
            return AnswerMeasures { words, unknown: 1.0, among, ..AnswerMeasures::default() };
        }
        let covered = |id: &PassageId| -> f64 {
            by_word.by_word.iter().zip(&rarities).filter(|(with, _)| with.contains_key(id)).map(|(_, rarity)| rarity).sum()
        };
        let covered = found.iter().take(LOOKED).map(|(id, _)| covered(id)).fold(0.0, f64::max);
        let scores: Vec<f64> = found.iter().take(MEAN).map(|(_, hit)| hit.score).collect();
        let score = scores.first().copied().unwrap_or(0.0);
        AnswerMeasures {
            coverage: covered / total,
            covered: covered / rarest,
            score: score / rarest,
            lead: (score - scores.iter().sum::<f64>() / scores.len() as f64) / rarest,
            words,
            unknown: unknown / total,
            among: by_word.all,
            near: None,
        }
    }

    /// Log-odds that the answer holds what is asked for.
    pub fn log_odds(&self) -> f64 {
        let (weights, bias) = if self.near.is_some() { (WITH_MODEL, BIAS_WITH_MODEL) } else { (WEIGHTS, BIAS) };
        weights.iter().zip(self.features()).map(|(weight, value)| weight * value).sum::<f64>() + bias
    }

    /// The measurements that the regression uses, in its order.
    pub fn features(&self) -> [f64; 6] {
        [self.coverage, self.covered, self.score, self.lead, self.words.min(LONG), self.near.unwrap_or_default()]
    }

    /// Whether the answer is strong: likely enough to hold what is asked for, and most words of a short question are known.
    fn is_strong(&self) -> bool {
        let least = if self.near.is_some() { STRONG_WITH_MODEL } else { STRONG };
        self.log_odds() >= least && (self.words > FEW || self.unknown < MOST_UNKNOWN)
    }
}

const BIAS: f64 = -4.489;
const WEIGHTS: [f64; 6] = [1.834, 0.273, 2.218, -2.227, -0.414, 0.0];
/// The same where a model also says what is near (ADR/0063).
const BIAS_WITH_MODEL: f64 = -5.243;
const WITH_MODEL: [f64; 6] = [0.936, -0.115, 1.561, -1.024, -0.322, 5.835];
/// Words from which a question counts as long: longer ones were not fitted.
const LONG: f64 = 12.0;
/// Log-odds from which an answer is strong, without and with a model.
const STRONG: f64 = -2.63;
const STRONG_WITH_MODEL: f64 = -2.58;
/// Coverage below which an answer is none: a passage has one of many words.
const NONE: f64 = 0.12;
/// Words of a short question, and the share of them, weighed by rarity, from which too many are unknown.
const FEW: f64 = 4.0;
const MOST_UNKNOWN: f64 = 0.5;
/// Nearness from which an answer without the words is still one.
const NEAR_AT_LEAST: f64 = 0.4;
/// Passages below which the rarity of a word says little: a project of a few days.
const YOUNG: i64 = 100;

/// Grades the answer to a question.
pub fn grade(asked: &AnswerMeasures, hits: &[Hit], terms: &[String]) -> Grade {
    let passages = hits.iter().any(|hit| hit.kind != HitKind::Tool || hit.passage.is_some());
    match (hits.is_empty(), passages) {
        (true, _) => Grade::None,
        // Only tool uses have the words: one has all of them, or it is not what was asked for.
        (_, false) => {
            let words = query_terms(&format!("{} {}", hits[0].text, hits[0].more));
            if terms.iter().all(|term| words.contains(term)) { Grade::Strong } else { Grade::Weak }
        }
        _ if asked.coverage < NONE && asked.among >= YOUNG && asked.near.is_none_or(|near| near < NEAR_AT_LEAST) => Grade::None,
        _ if !asked.is_strong() || terms.iter().all(|term| says_nothing(term)) => Grade::Weak,
        _ => Grade::Strong,
    }
}

/// Whether a word of a question names nothing: a stop word, a word of courtesy, a single letter.
fn says_nothing(term: &str) -> bool {
    const COURTESY: [&str; 12] = ["ok", "okay", "yes", "yeah", "thanks", "thank", "hello", "hi", "hey", "great", "good", "cool"];
    is_stop_word(term) || COURTESY.contains(&term) || term.len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Event, EventKind, Platform, ProjectId, SearchScope};
    use crate::redact::Redactor;
    use crate::store::testing::Scratch;

    #[test]
    fn a_message_comes_first_for_its_own_words_and_unknown_words_are_named() {
        let answer = "Removed `--approval-mode full-auto`. Codex now asks for approval as the user has configured it.";
        let (_scratch, store) = with_prompts(
            "quoted-words",
            &[
                ("one", "don't do full auto for codex"),
                ("one", answer),
                ("one", "codex reads the full file of its configuration"),
            ],
        );
        let found = |text: &str| {
            let kinds = [HitKind::Memory, HitKind::Unit, HitKind::Prompt, HitKind::Tool];
            search(&store, text, &kinds, &Filter::default(), 10, &|_| None).unwrap()
        };
        assert_eq!(found("don't do full auto for codex").hits[0].text, "don't do full auto for codex");
        assert_eq!(found("codex on kubernetes").unknown, ["kubernetes"]);
        assert!(found("codex approval").unknown.is_empty());
    }

    /// A store with prompts, given as project and text, a millisecond apart.
    fn with_prompts(name: &str, prompts: &[(&str, &str)]) -> (Scratch, Store) {
        let scratch = Scratch::new(name);
        let mut store = scratch.open();
        let redactor = Redactor::default();
        let prompt = |(n, (project, text)): (usize, &(&str, &str))| Event {
            platform: Platform::ClaudeCode,
            session: format!("in {project}"),
            at: n as i64,
            time: None,
            cwd: Some((*project).into()),
            project: None,
            transcript: None,
            repository_url: None,
            transcript_length: None,
            usage: None,
            prompt: Some(format!("p{n}")),
            agent: None,
            what: EventKind::UserPrompt { text: (*text).into() },
        };
        let identify = |event: &Event| {
            let cwd = event.cwd.clone()?;
            let id = ProjectId { keys: vec![format!("dir:{cwd}")], name: cwd.clone(), root: cwd.clone(), ..ProjectId::default() };
            Some(redactor.clean(id))
        };
        let mut events = prompts.iter().enumerate().map(prompt);
        store
            .write(|tx| {
                events.try_for_each(|e| {
                    crate::ingest::persist::store_event(tx, &redactor.clean(e.clone()), None, &|_| identify(&e))
                })
            })
            .unwrap();
        store.index_waiting(usize::MAX, &mut |_| ()).unwrap();
        (scratch, store)
    }

    fn prompts_with(store: &Store, text: &str, filter: &Filter, limit: usize) -> Vec<String> {
        let found = search(store, text, &[HitKind::Prompt], filter, limit, &|_| None).unwrap();
        found.hits.into_iter().map(|hit| hit.text).collect()
    }

    #[test]
    fn of_common_words_the_passages_with_most_of_them_are_found() {
        let mut prompts: Vec<(&str, &str)> = (0..1500).map(|n| ("/a", ["deploy the zebra", "zebra", "quagga"][n % 3])).collect();
        prompts.extend([("/a", "quagga and zebra"), ("/a", "deploy")]);
        let (_scratch, store) = with_prompts("most", &prompts);
        let found = |text: &str| prompts_with(&store, text, &Filter::default(), 2);
        assert_eq!(found("deploy zebra")[0], "deploy the zebra", "all words in one row");
        assert_eq!(found("quagga zebra deploy"), ["deploy the zebra", "quagga and zebra"], "two of three");
        assert_eq!(store.corrected(&Query::parse("quagga zebra deploy")).unwrap(), None, "each of them stands somewhere");
        let corrected = store.corrected(&Query::parse("quagga zerba")).unwrap().unwrap();
        assert_eq!(corrected.sought(), "quagga, zebra");
        let swapped = store.corrected(&Query::parse("quagga ezbra")).unwrap().unwrap();
        assert_eq!(swapped.sought(), "quagga, zebra", "the first two letters");
    }

    #[test]
    fn a_search_in_one_project_is_not_drowned_by_another() {
        let mut prompts = vec![("/a", "deploy the 記憶 thing of project1")];
        prompts.extend((1..9000).map(|n| ("/b", if n % 2 == 0 { "deploy zebra" } else { "deploy" })));
        let (_scratch, store) = with_prompts("drowned", &prompts);
        let in_a = Filter { scope: SearchScope::of(1), ..Filter::default() };
        for text in ["deploy", "deploy zebra", "記", "project1"] {
            assert_eq!(prompts_with(&store, text, &in_a, 10).len(), 1, "{text}");
        }
        assert!(
            prompts_with(&store, "project2", &Filter::default(), 10).is_empty(),
            "the index's own word for a project is no text"
        );
    }

    #[test]
    fn what_is_unknown_gets_no_answer_and_what_half_fits_a_weak_one() {
        let texts: Vec<String> = (0..300).map(|n| format!("The exporter writes row {n} of table t{n} with a comma")).collect();
        let mut prompts: Vec<(&str, &str)> = texts.iter().map(|text| ("/a", text.as_str())).collect();
        prompts.push(("/a", "Tokens of the login expire early because the refresh is rounded to the minute"));
        let (_scratch, store) = with_prompts("graded", &prompts);
        let graded = |text: &str| {
            let found = search(&store, text, &[HitKind::Prompt], &Filter::default(), 5, &|_| None).unwrap();
            (found.grade.unwrap(), found.hits.len())
        };
        assert_eq!(graded("why do tokens of the login expire early").0, Grade::Strong);
        assert_eq!(graded("how does the kernel refresh its page cache under memory pressure").0, Grade::Weak);
        for nothing in ["the", "a", "thanks", "yes please"] {
            assert_ne!(graded(nothing).0, Grade::Strong, "{nothing}");
        }
        assert_eq!(graded("zzqqy"), (Grade::None, 0));
        assert_eq!(graded("why does src/never.rs refresh"), (Grade::None, 0), "no such file is known");
        assert!(is_about_file("why does src/never.rs refresh", &["src/never.rs"]));
        let to_write = "add a target for the Gemini agent that writes its rules to GEMINI.md";
        assert!(!is_about_file(to_write, &["GEMINI.md"]), "a file that is to be written is not known yet");
    }

    /// A message's passage as a hit, in the session `s`.
    fn message(id: i64, what: &str, passage: &str, number: usize, score: f64) -> (PassageId, Hit) {
        let hit = Hit {
            kind: HitKind::Prompt,
            id,
            what: what.into(),
            text: passage.into(),
            more: String::new(),
            path: None,
            succeeded: None,
            project: None,
            session: "s".into(),
            platform: String::new(),
            at: id,
            unit: None,
            concepts: Vec::new(),
            files: Vec::new(),
            made_by: None,
            team: None,
            name: String::new(),
            passage: Some(passage.into()),
            score,
        };
        (PassageId::new(TextId::new(TextKind::Message, id), number), hit)
    }

    #[test]
    fn an_answer_precedes_its_question_and_what_adds_no_word_is_left_out() {
        let mut found = vec![
            message(1, "user", "why does the gradient wash out", 0, 1.0),
            message(2, "agent", "the gradient grows into a cap", 0, 0.7),
            message(2, "agent", "again the gradient", 1, 0.65),
            message(3, "user", "go on", 0, 0.6),
            message(9, "agent", "another gradient", 0, 0.5),
        ];
        let held = found.iter().filter(|(_, hit)| hit.id != 3).map(|(id, _)| (*id, 1.0)).collect();
        let by_word = PassagesByWord { by_word: vec![held], ..PassagesByWord::default() };
        without_asides(&mut found, &by_word);
        answers_first(&mut found, &by_word);
        sort(&mut found);
        without_more_of_the_same(&mut found, &by_word);
        let order: Vec<i64> = found.iter().map(|(_, hit)| hit.id).collect();
        assert_eq!(order, [2, 1, 9]);
    }
}
