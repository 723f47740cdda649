//! Work that is not over: what was tried and did not help, and what is left open.

use super::commands::acts;
use super::findings::{RuleMemory, worded};
use super::score::{Class, ScoredStatements};
use super::statements::{
    StatementForm, Words, begins_with, capitalized, has_word_of, is_one_of, own_sentences, plain, word_count,
};
use super::superseded::{claims, retracts};
use super::turns::conventional;
use super::turns::{Speaker, Turn, TurnFacts, UnitStatement, WordSet, commit, content_words, is_project_change, likeness};
use crate::languages::in_english;
use crate::model::{Draft, Finding, MemoryKind, MemoryRow, Provenance, Source, ToolUseRow, UnitStory};
use crate::text::{alike, cut, is_plan_of_agent, is_stop_word};

/// Characters of the user's sentence in a memory of something tried.
const QUOTED: usize = 120;

/// Adds what was tried and did not help: the main claim of a turn that the next prompt refutes, with the user's words. A choice
/// of the user that led there is one of them.
pub fn add_tried(memories: &mut Vec<RuleMemory>, turns: &[Turn], scored: &ScoredStatements) {
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| acts(turn) || turn.changes()) {
        let Some((said, asked)) = &turn.refuted else { continue };
        let quoted = format!("The user: \"{}\"", cut(said.trim(), QUOTED));
        // Between the choice and the work, the agent may have asked for something.
        let leads_here = |memory: &RuleMemory| {
            let chosen = memory.turns.last().copied().unwrap_or(turns.len());
            is_choice(memory) && chosen <= at && (chosen..at).all(|turn| !turns[turn].changes() && !acts(&turns[turn]))
        };
        if let Some(choice) = memories.iter_mut().rev().find(|memory| leads_here(memory)) {
            did_not_help(choice, &quoted);
            continue;
        }
        let (Some(closing), Some(title)) = (turn.closing, tried(turn, at, scored)) else { continue };
        if !was_given_up(turns, at, said, &title, scored) {
            continue;
        }
        let mut memory = RuleMemory::new(format!("tried:p{asked}"), Some(Finding::Tried), &title, vec![at]);
        memory.fact(&quoted);
        memory.sources = vec![Source::Prompt(closing.id), Source::Prompt(*asked)];
        memories.push(memory);
    }
    overtaken_choices(memories, turns, scored);
}

/// Words of a complaint about a part, or about another case.
const IN_PART: Words = "perfect|great|better|almost|nearly|fully|completely|100%|absolutely";
/// Words of a report that the work before was replaced.
const REPLACED: Words =
    "instead of|revert|replaced|switched|rolled back|was wrong|real cause|actual cause|turned out|was not the|wasn't the";

/// Whether the work of a turn was given up after a complaint: the complaint names what the work was, the next work changes the
/// same files again, or its report says so.
fn was_given_up(turns: &[Turn], at: usize, complaint: &str, title: &str, scored: &ScoredStatements) -> bool {
    let lower = in_english(complaint).to_lowercase();
    if has_word_of(IN_PART, &lower) || begins_with("if |when |now |now,", &lower) {
        return false;
    }
    let next = turns.get(at + 1).and_then(|next| next.asked).map_or(complaint, |asked| &asked.text);
    let asked = content_words(next);
    if content_words(title).iter().any(|word| asked.contains(word) && !is_stop_word(word)) {
        return true;
    }
    let is_code = |file: &&String| !file.ends_with(".md") && !file.ends_with(".txt");
    let says = |one: &UnitStatement| one.speaker == Speaker::Agent && has_word_of(REPLACED, &one.lower);
    let again = |next: &TurnFacts| next.files.iter().filter(is_code).any(|file| scored.facts[at].files.contains(file));
    scored.facts.get(at + 1).is_some_and(again) || scored.statements[scored.of_turn(at + 1)].iter().any(says)
}

/// The change of a turn in words: its last commit's subject, else its main claim.
fn tried(turn: &Turn, at: usize, scored: &ScoredStatements) -> Option<String> {
    let subject = turn.tools.iter().rev().find_map(|tool| commit(tool)?.1).map(|subject| conventional(subject).1);
    let worth = |i: usize| {
        let counts = scored.lexicon.count(&scored.statements[i].lower);
        scored.scores[i] + if counts.has(Class::Change) { 0.3 } else { 0.0 } - if counts.has(Class::Check) { 0.3 } else { 0.0 }
    };
    let is_claim = |i: &usize| {
        let said = &scored.statements[*i];
        said.is_report()
            && claims(said)
            && word_count(&said.text) >= LEAST
            && !begins_with("you |now you |try |please ", &said.lower)
    };
    let lead = scored.of_turn(at).filter(is_claim).max_by(|a, b| worth(*a).total_cmp(&worth(*b)));
    subject.map(String::from).or_else(|| lead.map(|lead| worded(scored, lead)))
}

fn is_choice(memory: &RuleMemory) -> bool {
    memory.key.starts_with("choice:")
}

/// Turns a choice into something that was tried.
fn did_not_help(choice: &mut RuleMemory, why: &str) {
    choice.finding = Some(Finding::Tried);
    choice.title = choice.title.trim_start_matches("Chosen: ").to_string();
    choice.content.clear();
    choice.facts.clear();
    choice.fact(why);
}

/// A choice that the agent takes back before the next one did not help; choices that the user throws away before any work
/// go.
fn overtaken_choices(memories: &mut Vec<RuleMemory>, turns: &[Turn], scored: &ScoredStatements) {
    let chosen: Vec<usize> =
        memories.iter().filter(|memory| is_choice(memory)).filter_map(|memory| memory.turns.last().copied()).collect();
    for memory in memories.iter_mut().filter(|memory| is_choice(memory) && memory.finding != Some(Finding::Tried)) {
        let at = memory.turns.last().copied().unwrap_or_default();
        let Some(&next) = chosen.iter().find(|next| **next > at) else { continue };
        let retraction = scored.statements.iter().find(|one| (at..next).contains(&one.turn) && retracts(one));
        if let Some(retraction) = retraction {
            did_not_help(memory, &retraction.text);
        }
    }
    let thrown_away = |memory: &RuleMemory| {
        let at = memory.turns.last().copied().unwrap_or_default();
        let before_work = turns[at..].iter().enumerate().take_while(|(n, turn)| *n == 0 || !acts(turn) && !turn.changes());
        before_work.skip(1).any(|(_, turn)| {
            let no = turn.asked.is_some_and(|asked| begins_with("no|nope|scrap|forget", &in_english(&asked.text).to_lowercase()));
            no && turn
                .closing
                .is_some_and(|closing| has_word_of("scrap|forget|drop the|dropping", &in_english(&closing.text).to_lowercase()))
        })
    };
    memories.retain(|memory| !is_choice(memory) || !thrown_away(memory));
}

/// Words of a claim that says what was tried.
const LEAST: usize = 4;

/// Maximum open ends of a unit, and files to name.
const NAMED: usize = 4;
/// Labels and headings of next steps.
const LEFT: Words = "next|next step|next steps|remaining|remaining work|still to do|still open|todo|to do|not done|not done yet|left|left to do|what's left|what is left|follow-up|follow-ups|you still need to|open|open questions|pending|not yet done|still missing";
/// Words of what is left, in a sentence of its own.
const DEFERRED: Words = "not been verified|not verified|unverified|untested|still needs to|still need to|still has to|remains to be|to be verified|worth validating|worth checking|worth verifying|deferred to v|deferred to phase|deferred to a |deferred to the next|deferred to later|deferred to future|deferred until|left for later|left as a follow-up|out of scope for now|not yet implemented|not yet tested|not yet deployed|not yet wired|haven't tested|haven't verified|couldn't test|could not test|couldn't verify|could not verify|todo:";
/// First words of a step that belongs to any work, or that speaks to the user.
const ROUTINE: Words = "if you|let me know|feel free|test|verify|try|check|monitor|review|restart|refresh|reload|open|visit|enjoy|commit|push|run|deploy|merge|create a pr|open a pr|pull|wait|you can|start";
/// First words of an aside, which is never work to be done.
const ASIDES: Words = "tip|one aside|aside";
/// First words of a remark, and words of what is done: messages also end with such sentences under "Next steps".
const REMARKS: Words = "note|alternative|alternatively|fyi|the plan|the spec|the report|this |these |that |both |everything";
const DONE_ALREADY: Words =
    " is now | are now |has been |have been | was saved| were saved|is in place|are in place| is done| is complete";
/// Words of an open end by which work on it is recognized, as a share of its own.
const DONE: f32 = 0.6;
/// Minimum words of an open end.
const SAYS: usize = 4;
/// Beginnings of open ends that rules word.
const PLANNED: &str = "Planned, not implemented yet: ";
const UNCOMMITTED: &str = "Changed after the last commit and not committed: ";
const REPORTED: &str = "Reported last, not confirmed as solved: ";

/// Returns the files that an open end calls not committed; empty for another open end.
pub fn uncommitted_files(end: &str) -> Vec<&str> {
    let files = end.strip_prefix(UNCOMMITTED).unwrap_or_default();
    files.split('`').skip(1).step_by(2).collect()
}

/// Whether an open end is a plan that was not carried out.
pub fn is_plan(end: &str) -> bool {
    end.starts_with(PLANNED)
}

/// Returns the user's words in an open end that reports a complaint.
pub fn complaint(end: &str) -> Option<&str> {
    end.strip_prefix(REPORTED)
}

/// Returns what a unit leaves open, at most four ends: next steps and deferred risks of all its turns that no later turn took
/// up, the user's last complaint, a plan that was not carried out, edits after the last commit.
pub fn open_ends(story: &UnitStory, turns: &[Turn], scored: &ScoredStatements) -> Vec<RuleMemory> {
    let mut ends: Vec<RuleMemory> = Vec::new();
    let mut add = |key: String, title: &str, at: usize, provenance: Provenance, sources: Vec<Source>| {
        let words = content_words(title);
        let is_known = ends.iter().any(|end: &RuleMemory| likeness(&content_words(&end.title), &words) > 0.5);
        if ends.len() < NAMED && !is_known && word_count(title) >= SAYS {
            let mut end = RuleMemory::new(key, Some(Finding::Open), title, vec![at]);
            (end.provenance, end.sources) = (provenance, sources);
            ends.push(end);
        }
    };
    if let Some((at, said)) = last_complaint(story, turns) {
        let asked = turns[at].asked.map_or(0, |asked| asked.id);
        add(format!("complaint:p{asked}"), &said, at, Provenance::User, vec![Source::Prompt(asked)]);
    }
    if let Some((at, tool, title)) = plan_not_carried_out(turns) {
        add(format!("plan:t{}", tool.id), &format!("{PLANNED}{title}"), at, Provenance::Agent, vec![Source::ToolUse(tool.id)]);
    }
    for (n, at) in left(turns, scored).into_iter().enumerate() {
        let said = &scored.statements[at];
        let Source::Prompt(id) = said.source else { continue };
        let text = worded(scored, at);
        // "Next: a test for two threads" is filed under what is left.
        let labelled =
            text.split_once([':', '：']).filter(|(label, _)| is_one_of(LEFT, in_english(label).trim().to_lowercase().as_str()));
        let text = labelled.map_or(text.clone(), |(_, rest)| capitalized(rest.trim()));
        add(format!("left:p{id}:{n}"), &text, said.turn, Provenance::Agent, vec![said.source]);
    }
    if let Some((at, tool, files)) = left_uncommitted(turns) {
        add(
            format!("uncommitted:t{}", tool.id),
            &format!("{UNCOMMITTED}{files}"),
            at,
            Provenance::Tool,
            vec![Source::ToolUse(tool.id)],
        );
    }
    ends
}

/// Returns the open ends of earlier units that a unit has ended: a prompt that led to changes, a commit or a report of work has
/// most of their words. What was not committed ends with the next commit.
pub fn ended(story: &UnitStory, turns: &[Turn], scored: &ScoredStatements) -> Vec<i64> {
    // Only changes end something.
    if story.open_before.is_empty() || !turns.iter().any(Turn::changes) {
        return Vec::new();
    }
    let said: Vec<&WordSet> = scored
        .statements
        .iter()
        .filter(|one| turns[one.turn].changes() && one.speaker != Speaker::Pasted)
        .map(|one| &one.words)
        .collect();
    let commits = turns.iter().flat_map(|turn| &turn.tools).any(|tool| commit(tool).is_some());
    let is_over = |end: &&MemoryRow| {
        if end.title.starts_with(UNCOMMITTED) {
            return commits;
        }
        let title = [PLANNED, REPORTED].iter().find_map(|begin| end.title.strip_prefix(begin)).unwrap_or(&end.title);
        let words = content_words(title);
        let subject = subject(&words);
        words.len() >= WORDS && said.iter().any(|other| share(&subject, other) >= DONE)
    };
    story.open_before.iter().filter(is_over).map(|end| end.id).collect()
}

/// Whether an open end stands in an earlier unit already and is not among those that this one `ended`.
pub fn is_known(draft: &Draft, story: &UnitStory, ended: &[i64]) -> bool {
    draft.kind == MemoryKind::Open
        && story.open_before.iter().any(|end| !ended.contains(&end.id) && alike(&end.title, &draft.title))
}

/// Minimum words of an open end that can be recognized in later work.
const WORDS: usize = 2;

/// Next steps and deferred risks in the messages of a unit that no later prompt, commit or report of work has the words of.
fn left(turns: &[Turn], scored: &ScoredStatements) -> Vec<usize> {
    let is_left = |at: &usize| {
        let said = &scored.statements[*at];
        // An earlier message of the turn says what was to be done in it.
        let is_last = turns[said.turn].closing.is_some_and(|closing| said.source == Source::Prompt(closing.id));
        if said.speaker != Speaker::Agent || !is_last || matches!(said.form, StatementForm::Shown | StatementForm::Heading) {
            return false;
        }
        let english = &said.lower;
        let heading = &scored.headings[*at];
        let label = english.split_once([':', '-', '：']).map_or("", |(label, _)| label.trim());
        // What a document decided to leave out is quoted, or stands below its decisions.
        let is_decided = has_word_of("decision|decided", heading) || english.contains(['"', '“']);
        let is_said = is_one_of(LEFT, heading.trim())
            || is_one_of(LEFT, label)
            || has_word_of(DEFERRED, english) && !(is_decided && english.contains("deferred"));
        // What the agent asked is open until the user says something.
        let is_answered = is_one_of("open|open questions|pending", heading.trim()) && said.turn + 1 < turns.len();
        is_said
            && !is_answered
            && !said.text.ends_with(['?', '？'])
            && !begins_with(ROUTINE, english)
            && (has_word_of(DEFERRED, english) || !begins_with(REMARKS, english) && !has_word_of(DONE_ALREADY, english))
            && !begins_with(ASIDES, english)
            && !scored.facts[said.turn].repeats_outside(&said.text)
    };
    let taken_up = |at: usize| {
        let one = &scored.statements[at];
        let subject = subject(&one.words);
        let is_work = |turn: usize| turns[turn].changes() || acts(&turns[turn]);
        (one.turn + 1..turns.len())
            .filter(|turn| is_work(*turn))
            .any(|turn| scored.statements[scored.of_turn(turn)].iter().any(|other| share(&subject, &other.words) >= DONE))
    };
    let mut all: Vec<usize> = (0..scored.statements.len()).filter(is_left).filter(|at| !taken_up(*at)).collect();
    // The newest first.
    all.reverse();
    all
}

/// The words of a set that have a meaning for its subject.
fn subject(words: &WordSet) -> Vec<&String> {
    words.iter().filter(|word| !is_stop_word(word)).collect()
}

/// The share of words that a set has.
fn share(words: &[&String], other: &WordSet) -> f32 {
    words.iter().filter(|word| other.contains(**word)).count() as f32 / words.len().max(1) as f32
}

/// The user's complaint in the last prompt of a unit that says that the work did not help, if no prompt accepts it since.
fn last_complaint(story: &UnitStory, turns: &[Turn]) -> Option<(usize, String)> {
    // A user who goes on with something else is content.
    if story.followed_by.as_ref().is_some_and(|next| next.session_id == story.session) {
        return None;
    }
    let last = turns.iter().rposition(|turn| turn.asked.is_some())?;
    let said = turns[last].refutes.as_ref()?;
    // A check that passes after the last change confirms it.
    let tools: Vec<&ToolUseRow> = turns[last..].iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let changed = tools.iter().rposition(|tool| is_project_change(tool));
    if changed.is_some_and(|changed| tools[changed..].iter().any(|tool| tool.is_check() && tool.succeeded == Some(true))) {
        return None;
    }
    let own = own_sentences(&turns[last].asked?.text);
    // A question says what is wrong; behind it comes something else.
    let sentences = if said.ends_with(['?', '？']) { 1 } else { 2 };
    let whole = own.iter().skip_while(|sentence| *sentence != said).take(sentences).cloned().collect::<Vec<_>>().join(" ");
    Some((last, format!("{REPORTED}{whole}")))
}

/// A plan that the agent wrote to a file, and no change of the project since: its turn, the tool use and its title.
fn plan_not_carried_out<'a>(turns: &[Turn<'a>]) -> Option<(usize, &'a ToolUseRow, String)> {
    let is_plan = |tool: &ToolUseRow| tool.is_edit() && tool.path.as_deref().is_some_and(is_plan_of_agent);
    let tools: Vec<(usize, &ToolUseRow)> =
        turns.iter().enumerate().flat_map(|(at, turn)| turn.tools.iter().map(move |tool| (at, *tool))).collect();
    let last = tools.iter().rposition(|(_, tool)| is_plan(tool))?;
    if tools[last..].iter().any(|(_, tool)| is_project_change(tool)) {
        return None;
    }
    let (at, tool) = tools[last];
    let title =
        tool.input.as_deref()?.lines().map(|line| line.trim_start_matches('+').trim()).find(|line| line.starts_with("# "))?;
    Some((at, tool, plain(title.trim_start_matches('#')).trim_start_matches("Plan: ").to_string()))
}

/// The files that were edited after the last commit of a unit that commits: the turn and the tool use of the last edit.
fn left_uncommitted<'a>(turns: &[Turn<'a>]) -> Option<(usize, &'a ToolUseRow, String)> {
    let tools: Vec<(usize, &ToolUseRow)> =
        turns.iter().enumerate().flat_map(|(at, turn)| turn.tools.iter().map(move |tool| (at, *tool))).collect();
    let last = tools.iter().rposition(|(_, tool)| commit(tool).is_some())?;
    let edits: Vec<&(usize, &ToolUseRow)> = tools[last + 1..].iter().filter(|(_, tool)| is_project_change(tool)).collect();
    let (at, tool) = **edits.last()?;
    let mut files: Vec<&str> = Vec::new();
    for path in edits.iter().filter_map(|(_, tool)| tool.path.as_deref()) {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    let named: Vec<String> = files.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
    Some((at, tool, named.join(", ")))
}
