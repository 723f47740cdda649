//! A unit's summary in the fields of the observation protocol, and its task with the outcome.

use super::causes::cause;
use super::cues::{Words, begins_with, first_word, holds, is_one_of};
use super::failures::{failures, is_change, program};
use super::finding::Finding;
use super::left::split_left;
use super::prose::{cut, plain, plain_headline, word_count};
use super::subject::of_request;
use super::told::{Told, alike};
use super::turns::{Turn, is_inside, result};
use crate::model::{CommandKind, Kind, MemoryFile, MemoryKind, Provenance, Source, ToolUseRow, UnitOutcome, UnitStory};
use serde_json::Value;

/// What is named of each sort.
const NAMED: usize = 4;
/// Characters of a section.
const SECTION: usize = 600;
/// Words of an answer that alone make a summary worth its place.
pub const WORDS: usize = 12;

/// What the unit is about: the first prompt that can be understood by itself, of those that led to changes before others; else
/// what it is called. The second tells whether it can.
fn request(story: &UnitStory, turns: &[Turn]) -> Option<(String, bool)> {
    let told = |turn: &Turn| Some(without_filler(&plain_headline(&turn.asked?.text))).filter(|text| !text.is_empty());
    let fits = |at: &usize| turns[*at].changes();
    let with_result = (0..turns.len()).filter(fits).filter(|at| result(turns, *at).is_some());
    let changing = with_result.chain((0..turns.len()).filter(fits)).filter_map(|at| told(&turns[at]));
    let changing = changing.filter(|text| !text.ends_with('?'));
    let intent = story.intent.as_deref().map(|text| without_filler(&plain_headline(text)));
    let clear = changing.chain(intent.clone()).chain(turns.iter().filter_map(told).take(3)).find(|text| stands_alone(text));
    match clear {
        Some(clear) => Some((clear, true)),
        None => intent.or_else(|| turns.iter().find_map(told)).filter(|text| !text.is_empty()).map(|text| (text, false)),
    }
}

/// Words at the beginning of a request that say nothing.
const FILLERS: Words = "ok|okay|so|yeah|yes|hm|hmm|well|now|alright|great|cool|thanks";

fn without_filler(text: &str) -> String {
    let mut rest = text.trim();
    while let Some((word, behind)) = rest.split_once([' ', ',']) {
        if !is_one_of(FILLERS, &word.trim_end_matches([',', '.', '!', ':']).to_lowercase()) {
            break;
        }
        rest = behind.trim_start_matches([',', ' ', '.', '-']);
    }
    rest.to_string()
}

/// Whether a request can be understood without the conversation before it.
fn stands_alone(text: &str) -> bool {
    let pointing = is_one_of("it|this|that|these|those|but|and|again|one|also|then|both|same|another", &first_word(text));
    let lower = text.to_lowercase();
    // To commit, push and review is part of every work.
    let is_routine = word_count(text) < 12 && holds("commit|push| pr|pull request|merge|rebase|lint|run the test|review", &lower);
    word_count(text) >= 5 && !pointing && !is_routine && !text.ends_with(':') && !text.starts_with('/')
}

/// Summarises a unit in which something was done or said.
pub fn summary(story: &UnitStory, turns: &[Turn], told: &[Told]) -> Option<Told> {
    let tools: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let said = turns.iter().filter_map(|turn| turn.closing).any(|closing| word_count(&closing.text) >= WORDS);
    let (request, is_clear) = request(story, turns)?;
    let worked = tools.iter().any(|tool| matches!(tool.kind, Kind::Read | Kind::Edit | Kind::Write | Kind::Command));
    // "Do you have access to it?" is worth nothing tomorrow.
    let is_small_talk = !worked && told.is_empty() && (!is_clear || word_count(&request) < 8);
    if tools.is_empty() && !said || is_small_talk {
        return None;
    }
    let over: Vec<usize> = (0..turns.len()).collect();
    let key = format!("summary:u{}", story.unit);
    // How the unit went stands with the unit: a summary of several requests is not done or undone as a whole.
    let mut summary = Told::of_kind(MemoryKind::Summary, None, key, &request, over);
    let (read, edited) = (files(&tools, false), files(&tools, true));
    let mut section = |name: &str, parts: Vec<String>| {
        let text = cut(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "), SECTION);
        if !text.is_empty() {
            summary.content.insert(name.into(), Value::from(text));
        }
    };
    section("request", vec![request.clone()]);
    section("investigated", investigated(&tools, &read));
    section("learned", learned(turns, told));
    let completed = completed(turns, told);
    section("completed", completed.clone());
    section("next_steps", next_steps(story, turns));
    section("notes", notes(&tools, told));
    for (name, paths) in [("files_read", &read), ("files_edited", &edited)] {
        if !paths.is_empty() {
            summary.content.insert(name.into(), Value::from(paths.iter().take(20).cloned().collect::<Vec<_>>()));
        }
    }
    // What was only looked at is worth nothing by itself.
    let holds = |sections: &[&str]| sections.iter().any(|section| summary.content.contains_key(*section));
    let changed = turns.iter().any(Turn::changes);
    // Of work that changed something, what was learned by the way is not what it came to.
    if changed && !holds(&["completed", "next_steps", "notes"]) {
        return None;
    }
    if !holds(&["learned", "completed"]) && !((is_clear || changed) && holds(&["next_steps", "notes"])) {
        return None;
    }
    if let Some(first) = completed.first().filter(|_| !is_clear) {
        summary.title = first.clone();
    }
    summary.subtitle =
        completed.first().cloned().or_else(|| summary.content.get("learned").and_then(Value::as_str).map(String::from));
    let as_files = |paths: Vec<String>, modified| paths.into_iter().map(move |path| MemoryFile { path, modified, hash: None });
    summary.files = as_files(edited, true).chain(as_files(read, false)).collect();
    summary.sources = turns.iter().flat_map(Turn::said).collect();
    if summary.sources.is_empty() {
        summary.sources = tools.iter().map(|tool| Source::ToolUse(tool.id)).collect();
    }
    Some(summary)
}

/// The unit's outcome, where what the tools did proves it: a commit, or a test or build that passed after the last change.
/// That the agent says it is done, or that its last message is missing, proves nothing.
fn proven(story: &UnitStory, turns: &[Turn]) -> Option<UnitOutcome> {
    let last = turns.last().and_then(|turn| turn.prose.parts.last()).map(|part| part.text.to_lowercase()).unwrap_or_default();
    let tools = || turns.iter().flat_map(|turn| turn.tools.iter().copied());
    let changed = tools().filter(|tool| is_change(tool)).map(|tool| tool.seq).max().unwrap_or(0);
    let is_check = |tool: &ToolUseRow| {
        matches!(tool.command_kind, Some(CommandKind::Test | CommandKind::Build)) && tool.succeeded == Some(true)
    };
    let checked =
        tools().any(|tool| tool.seq > changed && is_check(tool)) || tools().any(|tool| super::turns::commit(tool).is_some());
    match story.outcome? {
        UnitOutcome::Done if checked => Some(UnitOutcome::Done),
        UnitOutcome::Answered if !begins_with("let me|i'll|i will|now let me|now i'll", &last) => Some(UnitOutcome::Answered),
        UnitOutcome::Struggling => Some(UnitOutcome::Struggling),
        _ => None,
    }
}

/// The unit as a task of the RAD memory specification, once its outcome is known.
pub fn task(story: &UnitStory, turns: &[Turn], told: &[Told]) -> Option<Told> {
    let success = match proven(story, turns)? {
        UnitOutcome::Done => true,
        UnitOutcome::Struggling => false,
        // Of a question the answer is remembered, not that it was a task.
        _ => return None,
    };
    // Somebody who says later that it does not do knows better than a check.
    if success && turns.iter().skip(1).any(|turn| turn.refuses) {
        return None;
    }
    let (request, _) = request(story, turns).filter(|(text, is_clear)| *is_clear && !text.ends_with('?'))?;
    // A task without a word of what it came to says nothing that its prompt doesn't; and the word must be about it.
    let at =
        turns.iter().position(|turn| turn.asked.is_some_and(|asked| without_filler(&plain_headline(&asked.text)) == request))?;
    let committed = told.iter().find(|told| told.key.starts_with("commit:") && told.turns.last() == Some(&at));
    let outcome = committed.map(|told| told.title.as_str()).or_else(|| result(turns, at)).map(|said| cut(said, 120));
    if success && outcome.is_none() {
        return None;
    }
    let conventional = told.iter().find(|told| told.key.starts_with("commit:")).and_then(|told| told.finding);
    // Where neither the request nor a commit says it, the kind stays open.
    let kind = match of_request(&request).or(conventional) {
        Some(Finding::Fix) => Some("bugfix"),
        Some(Finding::Feature) => Some("feature"),
        Some(Finding::Refactor) => Some("refactor"),
        _ => None,
    };
    let mut task = Told::of_kind(MemoryKind::Task, kind, format!("task:u{}", story.unit), &request, (0..turns.len()).collect());
    task.content.insert("task_description".into(), Value::from(cut(&request, SECTION)));
    task.content.insert("success".into(), Value::from(success));
    if let Some(evidence) = &story.evidence {
        let state = if success { "done" } else { "not finished" };
        task.subtitle = Some(format!("{state}: {}", outcome.as_deref().filter(|_| success).unwrap_or(evidence)));
        if !success {
            task.content.insert("error_message".into(), Value::from(evidence.clone()));
        }
    }
    task.sources = turns.iter().flat_map(Turn::said).collect();
    let edited: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    task.files = files(&edited, true).into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect();
    task.provenance = Provenance::User;
    Some(task)
}

/// Paths inside the project, the most used first.
fn files(tools: &[&ToolUseRow], changed: bool) -> Vec<String> {
    let mut paths: Vec<(&str, usize)> = Vec::new();
    let changed_ones: Vec<&str> = tools.iter().filter(|tool| is_change(tool)).filter_map(|tool| tool.path.as_deref()).collect();
    let fits = |tool: &&&ToolUseRow| match changed {
        true => is_change(tool),
        false => {
            tool.kind == Kind::Read
                && tool.succeeded != Some(false)
                && tool.path.as_deref().is_some_and(|path| !changed_ones.contains(&path))
        }
    };
    for path in tools.iter().filter(fits).filter_map(|tool| tool.path.as_deref()).filter(|path| is_inside(path)) {
        match paths.iter_mut().find(|(known, _)| *known == path) {
            Some((_, times)) => *times += 1,
            None => paths.push((path, 1)),
        }
    }
    paths.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    paths.into_iter().map(|(path, _)| path.to_string()).collect()
}

fn investigated(tools: &[&ToolUseRow], read: &[String]) -> Vec<String> {
    let mut parts = Vec::new();
    if !read.is_empty() {
        let more = read.len().saturating_sub(NAMED);
        let names = read.iter().take(NAMED).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        parts.push(format!("read {names}{}", if more > 0 { format!(" and {more} more") } else { String::new() }));
    }
    let looked = tools.iter().filter(|tool| matches!(tool.command_kind, Some(CommandKind::Other | CommandKind::Git)));
    let mut described: Vec<&str> = Vec::new();
    for text in looked.filter_map(|tool| tool.metadata["description"].as_str()).filter(|text| looks_into(text)) {
        if !described.contains(&text) {
            described.push(text);
        }
    }
    parts.extend(described.into_iter().take(NAMED).map(|text| cut(text, 80)));
    let fetched = tools
        .iter()
        .filter(|tool| tool.kind == Kind::Fetch && tool.succeeded != Some(false))
        .filter_map(|tool| tool.content.as_deref());
    parts.extend(fetched.take(2).map(|what| format!("looked up `{}`", cut(what, 80))));
    parts
}

/// Whether the description of a command is that of a look.
fn looks_into(text: &str) -> bool {
    is_one_of(
        "check|show|list|find|search|view|see|look|inspect|get|compare|count|read|examine|verify|fetch|trace|debug",
        &first_word(text),
    )
}

/// What was found out: causes, and the titles of discoveries.
fn learned(turns: &[Turn], told: &[Told]) -> Vec<String> {
    let mut learned: Vec<String> = turns.iter().filter_map(|turn| cause(&turn.prose)).map(|cause| cut(cause, 200)).collect();
    // Of what has a question for its title the answer counts.
    let said = |told: &Told| match &told.subtitle {
        Some(answer) if told.title.ends_with('?') => cut(answer, 200),
        _ => cut(&told.title, 200),
    };
    for title in told.iter().filter(|told| told.finding == Some(Finding::Discovery)).map(said) {
        if !learned.iter().any(|known| alike(known, &title)) {
            learned.push(title);
        }
    }
    learned.truncate(NAMED);
    learned
}

/// What was done, turn by turn: the subjects of commits, else what was reported and holds.
fn completed(turns: &[Turn], told: &[Told]) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let committed = told.iter().filter(|told| told.key.starts_with("commit:"));
    let mut by_turn: Vec<(usize, &str)> = committed.filter_map(|told| Some((*told.turns.last()?, told.title.as_str()))).collect();
    let with_commit: Vec<usize> = by_turn.iter().map(|(at, _)| *at).collect();
    let reported = (0..turns.len()).filter(|at| turns[*at].changes() && !with_commit.contains(at));
    by_turn.extend(reported.filter_map(|at| Some((at, result(turns, at)?))));
    by_turn.sort_by_key(|(at, _)| *at);
    for (_, said) in by_turn {
        if !done.iter().any(|known| alike(known, said)) {
            done.push(cut(said, 140));
        }
    }
    // Of a long piece of work the end says more than the beginning.
    done.split_off(done.len().saturating_sub(NAMED + 2))
}

/// What the last message leaves, the open tasks, and a question that nobody answered yet.
fn next_steps(story: &UnitStory, turns: &[Turn]) -> Vec<String> {
    let Some(last) = turns.last() else { return Vec::new() };
    let mut left: Vec<String> =
        last.closing.and_then(|closing| split_left(&closing.text)).map(|(_, left)| cut(&plain(&left), 300)).into_iter().collect();
    left.extend(story.open_tasks.iter().take(NAMED).map(|task| format!("open: {}", cut(task, 100))));
    if left.is_empty() && last.changes() {
        left.extend(last.prose.question().map(|question| format!("the agent asked: {}", cut(question, 200))));
    }
    left
}

/// What failed and stayed so, and what traps were named.
fn notes(tools: &[&ToolUseRow], told: &[Told]) -> Vec<String> {
    let mut notes: Vec<String> = told
        .iter()
        .filter(|told| told.kind == MemoryKind::Lesson || told.key.starts_with("gaveup:"))
        .map(|told| cut(&told.title, 160))
        .collect();
    // A check of its sort that did not go through in the end.
    let open = failures(tools).into_iter().filter(|failure| {
        let is_check = matches!(failure.failed[0].command_kind, Some(CommandKind::Test | CommandKind::Build | CommandKind::Lint));
        failure.passed.is_none() && is_check && failure.is_told()
    });
    for failure in open {
        let (program, reason) = (program(failure.command()), failure.reason());
        if !program.is_empty() && !reason.is_empty() {
            notes.push(format!("`{program}` failed last: {}", cut(&reason, 120)));
        }
    }
    notes.truncate(NAMED);
    notes
}
