//! The memories of a unit without a model: the statements that are worth keeping, one memory for each thing that was
//! changed, found or decided; what commands show beside them; and a summary (ADR/0046).
//!
//! Read in this order: here the steps; `memory`; `wording`; `decided` (the user's decisions), `things` (what was
//! changed or found), `evidence` (what commands show), `about` (files of decisions), `summary`,
//! `overtaken` (memories of earlier units).

mod about;
mod decided;
mod evidence;
mod memory;
mod overtaken;
mod summary;
mod things;
mod wording;

use crate::choice::{ChoiceWeights, Judged, TITLE, Turn, short, turns};
use crate::model::{Domain, Failing, PromptRow, PromptSource, UnitDrafts, UnitStory};
use crate::rules::failures;
use crate::statements::word_count;
use memory::RuleMemory;
pub use overtaken::notes_now;

/// Draws the memories of a unit, closed or as far as it goes.
pub fn draw(story: &UnitStory, domain: &Domain, weights: &ChoiceWeights) -> UnitDrafts {
    let turns = turns(story, domain);
    let judged = Judged::new(&turns, weights);

    // The user's decisions come first: what the agent reports of them belongs to them.
    let mut memories = decided::decisions(&turns, &judged);
    let mut used: Vec<usize> = memories.iter().flat_map(|decided| decided.statements.clone()).collect();
    let mut memories: Vec<RuleMemory> = memories.drain(..).map(|decided| decided.memory).collect();

    // Then whatever else is worth its place.
    let chosen = judged.choose(&used, domain);
    for thing in things::things(&turns, &judged, &chosen, domain) {
        match memories.iter_mut().rev().find(|memory| is_committed_by(memory, &thing)) {
            Some(work) => work.commit(thing),
            None => memories.push(thing),
        }
    }
    used.extend(chosen);

    // What commands show is evidence that nobody has to say.
    evidence::add(&mut memories, &turns);
    about::place(&mut memories, &turns);

    let title = title(story, &turns, &judged);
    let outcome = summary::Outcome { story, turns: &turns, judged: &judged, title: title.as_deref() };
    memories.extend(outcome.summary(&memories));
    let shares = shares(&turns, &memories);
    let drafts = memories.into_iter().zip(shares).map(|(memory, tokens)| memory.draft(domain, &turns, tokens)).collect();
    UnitDrafts { title, drafts, ..UnitDrafts::default() }
}

/// Whether a commit without a message of its own carries out what an earlier memory says: "commit this".
fn is_committed_by(work: &RuleMemory, thing: &RuleMemory) -> bool {
    let is_bare = thing.facts.is_empty() && thing.key.starts_with("commit:");
    let is_open = !work.content.contains_key("commit") && work.turns <= thing.turns;
    is_bare && is_open && (work.turns == thing.turns || thing.files.is_empty() && work.files.iter().any(|file| file.modified))
}

/// The unit's title: the last commit's subject, else the best report of a change, else what was asked.
fn title(story: &UnitStory, turns: &[Turn], judged: &Judged) -> Option<String> {
    let subject = turns.iter().rev().flat_map(|turn| turn.tools.iter().rev()).find_map(|tool| crate::choice::commit(tool)?.1);
    let subject = subject.map(|subject| crate::rules::conventional(subject).1);
    let plan =
        (0..turns.len()).find_map(|at| decided::plan(judged, at)).map(|at| judged.said[at].text.trim_start_matches("Plan: "));
    let said = judged.title().map(|at| judged.said[at].text.as_str());
    let text = subject.or(plan).or(said).map(|text| short(text, TITLE)).filter(|text| word_count(text) >= 2);
    text.or_else(|| summary::request(story, turns).map(|text| short(&text, TITLE))).filter(|text| !text.is_empty())
}

/// Lines of a failure to show.
const REASONS: usize = 3;

/// What failed in a unit and has not passed since, in order.
pub fn failing(story: &UnitStory) -> Vec<Failing> {
    let tools: Vec<_> = story.tools.iter().collect();
    let open = failures::failures(&tools).into_iter().filter(|failure| failure.passed.is_none());
    // A look that found nothing is no failure of the work.
    let open = open.filter(|failure| !failures::is_look(failure.command()));
    open.map(|failure| Failing {
        command: failure.command().to_string(),
        times: failure.failed.len(),
        reason: failure.failed.last().map(|tool| failures::reasons(tool, REASONS)).unwrap_or_default(),
    })
    .collect()
}

/// Whether a unit without tool uses says nothing that is worth remembering.
pub fn nothing_in(prompts: &[PromptRow]) -> bool {
    /// Words of an answer that may be worth something.
    const WORDS: usize = 12;
    let says = |prompt: &PromptRow| match prompt.source {
        PromptSource::User => crate::rules::decisions::by_user(&prompt.text).iter().any(|decided| decided.is_rule),
        PromptSource::Agent => word_count(&prompt.text) >= WORDS,
    };
    !prompts.iter().any(says)
}

/// What each memory cost to find out: the tokens of a turn go in equal parts to what was drawn from it, so that no token is
/// counted twice (ADR/0021). A summary gets what nothing else was drawn from.
fn shares(turns: &[Turn], memories: &[RuleMemory]) -> Vec<Option<(i64, bool)>> {
    let mut shares = vec![None; memories.len()];
    for (at, turn) in turns.iter().enumerate() {
        let of_turn = |summary: bool| -> Vec<usize> {
            let takes = |memory: &RuleMemory| memory.is_summary() == summary && memory.turns.contains(&at);
            (0..memories.len()).filter(|i| takes(&memories[*i])).collect()
        };
        let mut takers = of_turn(false);
        if takers.is_empty() {
            takers = of_turn(true);
        }
        let (cost, estimated) = turn.cost;
        for taker in &takers {
            let (sum, rough) = shares[*taker].unwrap_or((0, false));
            shares[*taker] = Some((sum + cost / takers.len() as i64, rough || estimated));
        }
    }
    shares
}
