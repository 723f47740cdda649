//! What was found out: an investigation that changed nothing and ended in an answer.

use super::causes::cause;
use super::cues::{Words, first_word, holds, is_one_of};
use super::failures::is_change;
use super::finding::{Cue, Finding};
use super::own_words::own_sentences;
use super::prose::{plain_headline, word_count};
use super::said::points_at;
use super::told::{Told, asked_for};
use super::turns::Turn;
use crate::model::{CommandKind, Kind, Source};

/// Discoveries of one unit.
const MOST: usize = 3;
/// Words of an answer that says something.
const WORDS: usize = 25;
/// What a question begins with that has no question mark.
const ASKS: Words = "why|how|what|where|which|who|when|is|are|does|do|did|explain|check|investigate|look|find|review|debug|analyze|analyse|understand|tell|show|compare|research|figure|summarize|summarise|describe|walk|verify|see";
/// Words of a question that asks for work: the answer to it is a report.
const REQUESTS: Words = "can you|could you|would you|will you|please|can we|right?";

/// Discoveries of a unit, in order; of many those for which most was looked at.
pub fn discoveries(turns: &[Turn]) -> Vec<Told> {
    let mut found: Vec<(usize, usize, Told)> = turns
        .iter()
        .enumerate()
        .filter_map(|(at, turn)| discovery(turns, at, turn).map(|(worth, told)| (worth, at, told)))
        .collect();
    found.sort_by_key(|(worth, ..)| std::cmp::Reverse(*worth));
    found.truncate(MOST);
    found.sort_by_key(|(_, at, _)| *at);
    found.into_iter().map(|(.., told)| told).collect()
}

/// What a turn found out, and how much it is worth.
fn discovery(turns: &[Turn], at: usize, turn: &Turn) -> Option<(usize, Told)> {
    let (asked, closing) = (turn.asked?, turn.closing?);
    let looks = turn.looks().filter(|tool| !is_check_run(tool)).count();
    if turn.changes() || looks == 0 || word_count(&closing.text) < WORDS || !is_question(&asked.text) {
        return None;
    }
    let named = cause(&turn.prose);
    let points = turn.prose.points().count();
    if looks < 2 && points < 3 && named.is_none() {
        return None;
    }
    // What was changed right after is told with the change.
    let solved = turns[at..].iter().skip(1).take(2).any(Turn::changes);
    let proposes = || turn.prose.question().is_some() || turn.prose.parts.iter().any(|part| part.under.contains("propos"));
    if solved && (named.is_some() || proposes()) {
        return None;
    }
    // What a file was like that the work changes afterwards is told by the change.
    let read: Vec<&str> = turn.tools.iter().filter_map(|tool| tool.path.as_deref()).collect();
    let later = turns[at + 1..].iter().flat_map(|turn| turn.tools.iter());
    if later.filter(|tool| is_change(tool)).filter_map(|tool| tool.path.as_deref()).any(|path| read.contains(&path)) {
        return None;
    }
    let title = named.or_else(|| turn.prose.statements().into_iter().find(|said| word_count(said) >= 6))?;
    let mut told = Told::observation(format!("answer:p{}", closing.id), Finding::Discovery, title, vec![at]);
    told.subtitle = Some(asked_for(&asked.text)).filter(|asked| !asked.is_empty());
    // A title that points at something is understood with its question only.
    if let (true, Some(question)) = (points_at(title), question(&asked.text)) {
        (told.title, told.subtitle) = (question, Some(title.to_string()));
    }
    turn.prose.points().for_each(|point| told.fact(point));
    // What follows it in the same section, up to a list: what stands elsewhere may be about something else.
    let from = turn.prose.parts.iter().position(|part| part.text == title).unwrap_or(0);
    let under = turn.prose.parts.get(from).map(|part| part.under.as_str());
    let rest = turn.prose.parts[from..].iter().take_while(|part| !part.is_point && Some(part.under.as_str()) == under);
    let rest: Vec<&str> = rest.map(|part| part.text.as_str()).filter(|text| !text.ends_with(['?', ':'])).collect();
    told.body = (rest.len() > 1).then(|| rest.join(" "));
    let lower = asked.text.to_lowercase();
    let why = lower.contains("why") || closing.text.contains(" because ");
    told.cues = match (named.is_some(), why) {
        (true, _) => vec![Cue::Solution, Cue::Mechanism],
        (false, true) => vec![Cue::Reason, Cue::Mechanism],
        (false, false) => vec![Cue::Mechanism, Cue::Reason],
    };
    told.files = turn.files_read(10);
    told.sources = turn.said();
    told.sources.extend(
        turn.looks()
            .filter(|tool| matches!(tool.kind, Kind::Read | Kind::Search | Kind::Fetch | Kind::Delegate))
            .take(10)
            .map(|tool| Source::ToolUse(tool.id)),
    );
    Some((looks.min(12) + 2 * points.min(5) + if named.is_some() { 10 } else { 0 }, told))
}

/// The last question of a prompt that can stand for itself; of a long one its last clause.
fn question(prompt: &str) -> Option<String> {
    let own = own_sentences(prompt);
    let asked = own.into_iter().rev().find(|sentence| sentence.ends_with('?') && word_count(sentence) >= 4)?;
    if holds(REQUESTS, &asked.to_lowercase()) {
        return None;
    }
    let clause =
        asked.rsplit(", ").next().filter(|clause| asked.chars().count() > 110 && word_count(clause) >= 5).map(String::from);
    Some(clause.unwrap_or(asked))
}

fn is_check_run(tool: &crate::model::ToolUseRow) -> bool {
    matches!(
        tool.command_kind,
        Some(CommandKind::Test | CommandKind::Build | CommandKind::Lint | CommandKind::Commit | CommandKind::Install)
    )
}

fn is_question(prompt: &str) -> bool {
    let own = own_sentences(prompt);
    let asks = |sentence: &String| sentence.ends_with('?') || is_one_of(ASKS, &first_word(sentence));
    own.iter().any(asks) || asks(&plain_headline(prompt))
}
