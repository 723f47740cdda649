//! The summary and the title of a unit, and notes of earlier summaries that no longer hold.

use super::commands::{Failure, acts, did_not_run, failures, program, programs, response};
use super::findings::RuleMemory;
use super::score::{Class, ScoredStatements};
use super::statements::{
    StatementForm, Words, begins_with, begins_with_file, capitalized, ends_open, first_word, has_word_of, is_one_of, only_shows,
    plain_headline, word_count,
};
use super::turns::{Speaker, Turn, WordSet, commit, content_words, is_project_change, overlap};
use super::turns::{conventional, of_request};
use super::user_decisions::{needs_context, request_in};
use crate::command_kind::checks_by_hooks;
use crate::languages::in_english;
use crate::model::{CommandKind, Finding, MemoryFile, Source, ToolUseRow, UnitOutcome, UnitStory};
use crate::text::{cut, is_stop_word, without_slash_command};
use serde_json::Value;
use std::collections::HashMap;

const REQUEST: usize = 80;
const NOTES: usize = 240;
/// Maximum notes.
const NAMED: usize = 4;
/// Words with which an agent claims that checks passed.
const CLAIMS: Words = "tests pass|test pass|tests are passing|all tests|all checks|everything passes|all green|tests passing|lint is clean|build passes";
/// The note of a claim that checks contradict.
pub const FALSE_CLAIM: &str = "the agent reported passing checks, but the last run failed";
/// Words of other claims of success.
const SUCCESS: Words = "verified|works now|is fixed|fully working|everything works|working correctly|successfully";
/// The note of a commit while a check failed.
pub const COMMITTED: &str = "committed with a failing check";
/// First words of a request that carry no meaning.
const FILLERS: Words = "ok|okay|so|yeah|yes|hm|hmm|well|now|alright|great|cool|thanks|please";

/// Returns the summary of a unit in which something was done or found; `None` if its memories say it all.
pub fn summary(story: &UnitStory, turns: &[Turn], title: Option<&str>, memories: &[RuleMemory]) -> Option<RuleMemory> {
    Outcome { story, turns, title }.summary(memories)
}

/// The result of a unit.
struct Outcome<'a> {
    story: &'a UnitStory,
    turns: &'a [Turn<'a>],
    title: Option<&'a str>,
}

impl Outcome<'_> {
    fn summary(&self, memories: &[RuleMemory]) -> Option<RuleMemory> {
        let notes = self.notes();
        let request = request(self.story, self.turns);
        let edits = self.turns.iter().flat_map(|turn| &turn.tools).filter(|tool| is_project_change(tool));
        let files: Vec<MemoryFile> =
            edits.filter_map(|tool| Some(MemoryFile { path: tool.path.clone()?, modified: true, hash: None })).collect();
        // The unit has a title and an outcome of its own.
        if notes.is_empty() && (files.is_empty() || !memories.is_empty()) {
            return None;
        }
        let over = (0..self.turns.len()).collect();
        let title = self.title.map(String::from).or_else(|| request.clone())?;
        let mut summary = RuleMemory::new(format!("summary:u{}", self.story.unit), None, &title, over);
        let mut section = |name: &str, text: String| {
            if !text.is_empty() {
                summary.content.insert(name.into(), Value::from(text));
            }
        };
        // The request, if the title does not state it.
        let words = content_words(&title);
        let other = request.filter(|text| word_count(text) > 1 && overlap(&content_words(text), &words) < 0.5);
        section("request", other.map(|text| cut(&text, REQUEST)).unwrap_or_default());
        section("notes", cut(&notes.join("; "), NOTES));
        self.succeeded().into_iter().for_each(|success| drop(summary.content.insert("success".into(), Value::from(success))));
        summary.task_kind = self.task_kind();
        summary.files = files;
        summary.sources = self.turns.iter().flat_map(Turn::said).collect();
        if summary.sources.is_empty() {
            summary.sources = self.story.tools.iter().map(|tool| Source::ToolUse(tool.id)).collect();
        }
        Some(summary)
    }

    /// Kind of the task, if a commit or the request names it.
    fn task_kind(&self) -> Option<&'static str> {
        let subject = self.turns.iter().flat_map(|turn| &turn.tools).find_map(|tool| commit(tool)?.1);
        let named = subject.and_then(|subject| conventional(subject).0);
        match named.or_else(|| of_request(&request(self.story, self.turns)?))? {
            Finding::Fix => Some("bugfix"),
            Finding::Feature => Some("feature"),
            Finding::Refactor => Some("refactor"),
            _ => None,
        }
    }

    /// Whether the unit reached its goal, where tools prove it: a commit, or a test or build that passed after the last
    /// change. What the agent claims proves nothing, and a refusal in the next prompt outweighs a check.
    fn succeeded(&self) -> Option<bool> {
        let tools = || self.turns.iter().flat_map(|turn| turn.tools.iter().copied());
        let changed = tools().filter(|tool| is_project_change(tool)).map(|tool| tool.seq).max().unwrap_or(0);
        let passed = |tool: &ToolUseRow| {
            let is_check = matches!(tool.command_kind, Some(CommandKind::Test | CommandKind::Build));
            tool.seq > changed && is_check && tool.succeeded == Some(true)
        };
        let is_proven = tools().any(passed) || tools().any(|tool| commit(tool).is_some());
        match self.story.outcome? {
            UnitOutcome::Done if is_proven && changed > 0 => {
                (!self.turns.last().is_some_and(|turn| turn.refuses)).then_some(true)
            }
            UnitOutcome::Failing => Some(false),
            UnitOutcome::Struggling => (!tools().any(|tool| commit(tool).is_some())).then_some(false),
            _ => None,
        }
    }

    /// Whether the agent claimed in a turn that checks pass, although one had failed by then and has not passed since.
    fn is_falsely_claimed(&self) -> bool {
        let mut tools: Vec<&ToolUseRow> = Vec::new();
        self.turns.iter().any(|turn| {
            tools.extend(turn.tools.iter().copied());
            let claims = turn.closing.is_some_and(|closing| claims_checks(&closing.text));
            claims && !failing_checks(&tools).is_empty()
        })
    }

    /// Checks that failed last, and a claim of success that they contradict.
    fn notes(&self) -> Vec<String> {
        let all: Vec<&ToolUseRow> = self.turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
        let open = failing_checks(&all).into_iter().filter(Failure::is_clear);
        let mut notes: Vec<String> = open
            .filter_map(|failure| {
                let (program, reason) = (program(failure.command()), failure.reason());
                (!program.is_empty()).then(|| match reason.is_empty() {
                    true => format!("`{program}` failed last"),
                    false => format!("`{program}` failed last: {}", cut(&reason, 120)),
                })
            })
            .take(NAMED)
            .collect();
        if !notes.is_empty() && self.is_falsely_claimed() {
            notes.insert(0, FALSE_CLAIM.into());
        }
        if !notes.is_empty() && commits_while_failing(&all) {
            notes.insert(0, COMMITTED.into());
        }
        notes
    }
}

/// Whether a message claims that checks pass.
pub fn claims_checks(message: &str) -> bool {
    has_word_of(CLAIMS, &in_english(message).to_lowercase())
}

/// Checks of a unit that failed and have not passed since, neither by themselves nor by the hooks of a commit.
fn failing_checks<'a>(tools: &[&'a ToolUseRow]) -> Vec<Failure<'a>> {
    let is_check =
        |tool: &ToolUseRow| matches!(tool.command_kind, Some(CommandKind::Test | CommandKind::Build | CommandKind::Lint));
    let mut open = failures(tools);
    let by_hooks = |tool: &&&ToolUseRow| tool.succeeded == Some(true) && tool.command_kind == Some(CommandKind::Commit);
    let by_hooks: Vec<(i64, Vec<CommandKind>)> = tools
        .iter()
        .filter(by_hooks)
        .map(|tool| (tool.seq, checks_by_hooks(tool.content.as_deref().unwrap_or_default(), response(tool))))
        .collect();
    let is_settled = |failure: &Failure| {
        let passed = |failed: &ToolUseRow| {
            by_hooks.iter().any(|(seq, kinds)| *seq > failed.seq && failed.command_kind.is_some_and(|kind| kinds.contains(&kind)))
        };
        failure.failed.last().is_some_and(|failed| passed(failed))
    };
    open.retain(|failure| failure.passed.is_none() && is_check(failure.failed[0]) && !did_not_run(&failure.reason()));
    open.retain(|failure| !is_settled(failure));
    open
}

/// Whether a commit was made after a check had failed that has not passed since.
fn commits_while_failing(tools: &[&ToolUseRow]) -> bool {
    let failed = failing_checks(tools).iter().filter_map(|failure| failure.failed.first()).map(|tool| tool.seq).min();
    failed.is_some_and(|failed| tools.iter().any(|tool| tool.seq > failed && commit(tool).is_some()))
}

/// The request of a unit: the first prompt that can be understood by itself, of those that led to changes before others.
pub fn request(story: &UnitStory, turns: &[Turn]) -> Option<String> {
    let asked = |turn: &Turn| {
        Some(without_fillers(&plain_headline(without_slash_command(&turn.asked?.text)))).filter(|text| !text.is_empty())
    };
    let changing = turns.iter().filter(|turn| turn.changes()).filter_map(asked);
    let intent = story
        .intent
        .as_deref()
        .map(|text| without_fillers(&plain_headline(without_slash_command(text))))
        .filter(|text| !text.is_empty());
    let all: Vec<String> = changing.chain(intent).chain(turns.iter().filter_map(asked)).map(without_marks).collect();
    all.iter().find(|text| stands_alone(text)).or_else(|| all.iter().find(|text| !text.is_empty())).cloned()
}

/// A text without the marks that redaction left.
fn without_marks(text: String) -> String {
    let mut text = text;
    while let Some(from) = text.find("[redacted:") {
        let to = text[from..].find(']').map_or(text.len(), |at| from + at + 1);
        text.replace_range(from..to, "");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_fillers(text: &str) -> String {
    let mut rest = text.trim();
    while let Some((word, behind)) = rest.split_once([' ', ',']) {
        if !is_one_of(FILLERS, &in_english(word.trim_end_matches([',', '.', '!', ':'])).to_lowercase()) {
            break;
        }
        rest = behind.trim_start_matches([',', ' ', '.', '-']);
    }
    rest.to_string()
}

/// Whether a request can be understood without the conversation before it.
fn stands_alone(text: &str) -> bool {
    let points = is_one_of("it|this|that|these|those|but|and|again|one|also|then|both|same|another", &first_word(text));
    let lower = in_english(text).to_lowercase();
    // Committing, pushing and reviewing are part of every work.
    let is_routine =
        word_count(text) < 12 && has_word_of("commit|push| pr|pull request|merge|rebase|lint|run the test|review", &lower);
    let is_markup = text.starts_with(['/', '<', '`', '|', '#', '[', '>'])
        || text.contains(['│', '─', '⎿', '●', '❯'])
        || begins_with("caveat|v ", &lower);
    word_count(text) >= 5 && !points && !is_routine && !is_markup && !text.ends_with([':', '：'])
}

/// The notes of an earlier summary without the checks that passed in a unit; `None` if nothing changes.
pub fn notes_now(notes: &str, story: &UnitStory) -> Option<String> {
    let passed = |program: &str| {
        story.tools.iter().any(|tool| {
            // `cargo test` runs what `cargo test export` does.
            let covers = |own: String| program == own || program.strip_prefix(&own).is_some_and(|rest| rest.starts_with(' '));
            let runs = tool.content.as_deref().is_some_and(|line| programs(line).any(covers));
            tool.succeeded == Some(true) && runs
        })
    };
    let is_over = |note: &&str| {
        let program = note.strip_prefix('`').and_then(|rest| rest.split_once("` failed last"));
        program.is_some_and(|(program, _)| passed(program))
    };
    let mut all: Vec<String> = Vec::new();
    for part in notes.split("; ") {
        match all.last_mut().filter(|_| !part.starts_with('`')) {
            // A reason may contain a semicolon.
            Some(last) if last.starts_with('`') => *last += &format!("; {part}"),
            _ => all.push(part.to_string()),
        }
    }
    let (over, mut left): (Vec<&str>, Vec<&str>) = all.iter().map(String::as_str).partition(is_over);
    if over.is_empty() {
        return None;
    }
    // A claim that is true by now is no longer false.
    if !left.iter().any(|note| note.contains("failed last")) {
        left.retain(|note| *note != FALSE_CLAIM && *note != COMMITTED);
    }
    Some(left.join("; "))
}

/// Characters of a title.
pub const TITLE: usize = 100;
/// Words of a statement that are compared with the rest of the unit, the most frequent ones.
const WORDS: usize = 4;

/// Returns the title of a unit: of its commits' subjects the one that shares most with its prompts and the other subjects, else
/// the heading of a plan, else the report or the request that has most of the words that the unit repeats.
pub fn title(story: &UnitStory, turns: &[Turn], scored: &ScoredStatements) -> Option<String> {
    let plan = (0..turns.len()).find_map(|turn| scored.plan(turn));
    let plan = plan.map(|at| scored.statements[at].text.trim_start_matches("Plan: ").to_string());
    let text = best_subject(turns).or(plan).or_else(|| best_statement(turns, scored));
    let text = text.map(|text| short(&text, TITLE)).filter(|text| word_count(text) >= 2);
    text.or_else(|| request(story, turns).map(|text| short(&text, TITLE))).filter(|text| !text.is_empty())
}

/// Types and first words of commits that say little of the work.
const CHORES: Words = "debug|cleanup|clean up|docs|doc|chore|ci|style|test|tests|merge|bump|wip|revert|update changelog|changelog|format|lint|fixup!|typo";
/// Factor for such a commit.
const CHORE: f32 = 0.6;

/// Returns the commit's subject that shares most words with the prompts and the other subjects; of equals the last.
fn best_subject(turns: &[Turn]) -> Option<String> {
    let subjects: Vec<&str> = turns.iter().flat_map(|turn| &turn.tools).filter_map(|tool| commit(tool)?.1).collect();
    let words: Vec<WordSet> = subjects.iter().map(|subject| content_words(conventional(subject).1)).collect();
    let asked: Vec<WordSet> = turns.iter().filter_map(|turn| Some(content_words(&turn.asked?.text))).collect();
    let shared = |at: usize| {
        let others = words.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, words)| words);
        let all = asked.iter().chain(others);
        let count: usize = words[at].iter().map(|word| all.clone().filter(|set| set.contains(word)).count().min(3)).sum();
        let factor = if begins_with(CHORES, &subjects[at].to_lowercase()) { CHORE } else { 1.0 };
        (1.0 + count as f32) * factor
    };
    let best = (0..subjects.len()).max_by(|a, b| shared(*a).total_cmp(&shared(*b)))?;
    Some(conventional(subjects[best]).1.to_string())
}

/// Factor of a request beside a report: in a unit of several changes a report says only what came of one.
const REQUESTED: f32 = 1.6;
const REQUESTED_ALONE: f32 = 0.6;

/// First words of a report that names no work: what the agent cannot do, and clauses of a longer sentence.
const NO_WORK: Words = "i can't|i cannot|i couldn't|i could not|i'm unable|i am unable|unable to|whenever|because|although|while|since|once|unless|until|no change|no changes|nothing|in:|you're right|you are right|these|this|those|that|it|they|both|combined with|together with|tests and lint|lint and tests|tests pass|the tests pass|all tests|all checks|skipped|i have everything|i have all|i have enough|i have full|i have the full|you'll need|you will need|you need to|you must|you should|to get|to see|to run|to test|to use";

/// Returns the report of a change, or the request for it, that has most of the words that the unit repeats.
fn best_statement(turns: &[Turn], scored: &ScoredStatements) -> Option<String> {
    let mut counts: HashMap<&str, f32> = HashMap::new();
    for one in &scored.statements {
        let weight = if one.speaker == Speaker::User { 2.0 } else { 1.0 };
        one.words.iter().filter(|word| !is_stop_word(word)).for_each(|word| *counts.entry(word).or_default() += weight);
    }
    let changing = turns.iter().filter(|turn| turn.changes()).count();
    let is_work: Vec<bool> = turns.iter().zip(&scored.facts).map(|(turn, facts)| facts.edits > 0 || acts(turn)).collect();
    let requested = if changing > 1 { REQUESTED } else { REQUESTED_ALONE };
    let score = |at: usize| {
        let one = &scored.statements[at];
        let mut words: Vec<f32> = one.words.iter().filter_map(|word| counts.get(word.as_str()).copied()).collect();
        words.sort_by(|a, b| b.total_cmp(a));
        let kinds = scored.lexicon.count(&one.lower);
        let factors = [
            (is_work[one.turn], 2.0),
            (kinds.has(Class::Change), 1.3),
            (kinds.has(Class::Check), 0.7),
            (one.text.ends_with([':', '：']), 0.7),
            (one.text.contains(['→', '…']), 0.7),
            (begins_with("test |try |run |open |note|when |if |currently|you ", &one.lower), 0.7),
            (one.speaker == Speaker::User, requested),
        ];
        let factor: f32 = factors.iter().filter(|(holds, _)| *holds).map(|(_, factor)| factor).product();
        words.iter().take(WORDS).sum::<f32>() * factor
    };
    // No title claims what the last checks contradict.
    let tools: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let fails = !failing_checks(&tools).is_empty();
    let claims = |text: &str| has_word_of(CLAIMS, text) || has_word_of(SUCCESS, text);
    let names_it = |at: &usize| {
        let one = &scored.statements[*at];
        if fails && claims(&one.lower) {
            return false;
        }
        let is_clause = matches!(one.form, StatementForm::Sentence | StatementForm::Item) && one.words.len() >= 3;
        match one.speaker {
            Speaker::Agent | Speaker::Plan => {
                is_clause
                    && !one.text.ends_with(['?', '？'])
                    && !begins_with_file(&one.text)
                    && !only_shows(&one.text)
                    && !ends_open(one.text.trim_end_matches([':', '：']))
                    && !begins_with(NO_WORK, one.lower.trim_start_matches("now "))
            }
            Speaker::User => {
                is_clause && request_in(one.english()).is_some_and(|text| stands_alone(&text) && !needs_context(&text))
            }
            Speaker::Pasted | Speaker::Commit => false,
        }
    };
    let mut all: Vec<(usize, f32)> = (0..scored.statements.len()).filter(names_it).map(|at| (at, score(at))).collect();
    // Of equals the last.
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    let best =
        all.into_iter().map(|(at, _)| at).find(|at| scored.statements[*at].speaker == Speaker::User || scored.is_current(*at))?;
    let one = &scored.statements[best];
    let request = Some(one).filter(|one| one.speaker == Speaker::User && one.english() == one.text);
    Some(request.and_then(|one| request_in(&one.text)).unwrap_or_else(|| one.text.clone()))
}

/// First words that say nothing.
const LEADS: [&str; 25] = [
    "ok, ",
    "ok ",
    "okay, ",
    "so ",
    "hmm, ",
    "hm, ",
    "yeah ",
    "yes, ",
    "done. ",
    "now ",
    "i've ",
    "i have ",
    "also ",
    "i ",
    "can you ",
    "could you ",
    "can we ",
    "could we ",
    "please ",
    "let's ",
    "lets ",
    "one more thing, ",
    "then ",
    "and ",
    "now, ",
];
/// Marks behind which a further clause begins.
const CLAUSES: [&str; 11] =
    [" - ", " — ", " – ", "; ", " so that ", " because ", ", so ", " since ", ", which ", " where ", ", "];

/// Words that begin the object of a German sentence, behind a comma.
const OBJECTS: Words = "dass|ob|wie|was|wo|warum";

/// A statement in one line of at most `most` characters: without first words that say nothing, and, as far as its length
/// demands it, without parentheses and further clauses.
pub fn short(text: &str, most: usize) -> String {
    let mut rest = text.trim().trim_end_matches(['.', ':', ';', '!', ' ', ',', '。', '：', '；', '！', '，']);
    for lead in LEADS {
        if rest.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead)) {
            rest = rest[lead.len()..].trim_start();
        }
    }
    let mut text = rest.to_string();
    let is_long = |text: &str| text.chars().count() > most;
    while is_long(&text)
        && let Some(open) = text.find(" (")
        && let Some(close) = text[open..].find(')')
    {
        text.replace_range(open..=open + close, "");
    }
    for mark in CLAUSES {
        if is_long(&text)
            && let Some(at) = text.find(mark).filter(|at| *at >= most / 3 && text[..*at].split(' ').count() > 2)
            && !begins_with(OBJECTS, &text[at + mark.len()..])
        {
            text.truncate(at);
        }
    }
    capitalized(&cut(text.trim_end_matches([',', ' ', ':', '-']), most))
}

#[cfg(test)]
mod tests {
    use super::super::testing::unit;
    use super::*;
    use crate::domains;

    fn titled(prompt: &str, answer: &str) -> Option<String> {
        let story = unit(&[(prompt, &[("edit", "src/bar.rs", true)], answer)]);
        let turns = super::super::turns::turns(&story, &domains::of(None, None));
        title(&story, &turns, &ScoredStatements::new(&turns, &super::super::ScoreWeights::fitted()))
    }

    #[test]
    fn a_line_that_only_introduces_what_follows_titles_no_unit() {
        let hooks = "The hooks of the enable command are installed once";
        let shown = "The output of the enable command for the hooks will now be:\n\n```\nhooks installed\n```";
        assert_eq!(titled("Check the last change again", &format!("{shown}\n\n{hooks}.")).as_deref(), Some(hooks));
        let knows = "I have everything I need about the last change.";
        assert_eq!(titled("Check the last change", knows).as_deref(), Some("Check the last change"));
    }

    #[test]
    fn neither_the_slash_command_of_a_prompt_nor_one_that_is_shown_titles_a_unit() {
        let bottom = "Move the selection bar to the bottom of the list";
        assert_eq!(titled(&format!("/gsd:quick {bottom}"), "").as_deref(), Some(bottom));
        let shown = "Also available:\n- `/gsd:check-todos [area]` to filter the bar by area";
        assert_eq!(titled(&format!("/gsd:quick {bottom}"), shown).as_deref(), Some(bottom));
        assert_eq!(without_slash_command("/srv/app/bar.rs is too long"), "/srv/app/bar.rs is too long");
    }
}
