//! Evidence from commands: failed and fixed by later edits, abandoned, worked in another form.

use super::findings::RuleMemory;
use super::statements::{Words, begins_with, has_word_of, is_one_of};
use super::turns::{Turn, is_project_change};
use crate::command_kind::takes_value;
use crate::model::{Finding, Kind, MemoryFile, Provenance, Source, ToolUseRow};
use crate::text::{cut, is_in_project};

/// A command that failed, as often as it did.
#[derive(Clone, Debug)]
pub struct Failure<'a> {
    /// In order; the last one is reported.
    pub failed: Vec<&'a ToolUseRow>,
    /// Changes of files between the first failure and where it went through.
    pub edits: Vec<&'a ToolUseRow>,
    /// The call that passed after the changes.
    pub passed: Option<&'a ToolUseRow>,
    /// Files had been changed before it failed first: the failure may be of the work's own making.
    pub own_making: bool,
}

impl Failure<'_> {
    /// The command, as it failed last.
    pub fn command(&self) -> &str {
        self.failed.last().and_then(|tool| tool.content.as_deref()).unwrap_or_default()
    }

    /// Whether it is known what failed: of several programs on a line any may have.
    pub fn is_clear(&self) -> bool {
        programs(self.command()).count() == 1
    }

    /// Why, in the tool's words.
    pub fn reason(&self) -> String {
        self.failed.iter().rev().map(|tool| reason(tool)).find(|reason| !reason.is_empty()).unwrap_or_default()
    }
}

/// Follows commands through the work, in order.
pub fn failures<'a>(tools: &[&'a ToolUseRow]) -> Vec<Failure<'a>> {
    let mut found: Vec<(String, Failure)> = Vec::new();
    let mut edited = false;
    for tool in tools.iter().copied() {
        let mut open = found.iter_mut().filter(|(_, failure)| failure.passed.is_none());
        if is_change(tool) {
            edited = true;
            open.for_each(|(_, failure)| failure.edits.push(tool));
            continue;
        }
        let Some(key) = key(tool) else { continue };
        match tool.succeeded {
            Some(false) => match open.find(|(known, _)| *known == key) {
                Some((_, failure)) => failure.failed.push(tool),
                None => {
                    let failure = Failure { failed: vec![tool], edits: Vec::new(), passed: None, own_making: edited };
                    found.push((key, failure));
                }
            },
            // What passes with the changes put aside says nothing of them.
            Some(true) if tool.content.as_deref().is_some_and(|line| line.contains("git stash")) => {}
            // `lint && test` is a test that lints as well.
            Some(true) => {
                let ran: Vec<String> = programs(tool.content.as_deref().unwrap_or_default()).collect();
                let same = open.filter(|(known, failure)| *known == key || ran.contains(&program(failure.command())));
                same.for_each(|(_, failure)| failure.passed = Some(tool));
            }
            None => {}
        }
    }
    found.into_iter().map(|(_, failure)| failure).collect()
}

/// A change of a file that took place.
pub fn is_change(tool: &ToolUseRow) -> bool {
    tool.is_edit() && tool.succeeded != Some(false) && tool.path.is_some()
}

/// Key that runs of one command share: for checks their sort, however they are started (a repaired test is often run by
/// another program than the one that found it), else the whole line.
fn key(tool: &ToolUseRow) -> Option<String> {
    let line = tool.content.as_deref().filter(|_| tool.kind == Kind::Command)?;
    match tool.command_kind.filter(|_| tool.is_check()) {
        Some(kind) => Some(kind.name().to_string()),
        None => Some(line.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// The program of a command line and its verb, without folders, settings and options: `cd x && A=1 go test ./... | tail`
/// is `go test`. Of several the last one.
pub fn program(line: &str) -> String {
    programs(line).last().unwrap_or_default()
}

pub fn programs(line: &str) -> impl Iterator<Item = String> {
    let parts = line.split("&&").flat_map(|part| part.split(';')).flat_map(|part| part.split("||")).map(str::trim);
    let runs = parts.filter(|part| !begins_with("cd |export |source |set |echo ", part));
    let named = runs.map(|part| {
        let words = part.split(['|', '>', '<']).next().unwrap_or_default().split_whitespace();
        let mut words = words.skip_while(|word| word.contains('=')).peekable();
        // Of `python3 -m unittest` the module is the program.
        let runs_module = words.peek().is_some_and(|word| word.starts_with("python"));
        let is_plain = |word: &str| runs_module && word == "-m" || !word.starts_with(['-', '.', '/', '"', '\'', '$']);
        let name = words.peek().copied().unwrap_or_default();
        let (mut kept, mut most) = (Vec::new(), 3);
        while let Some(word) = words.next_if(|word| kept.len() < most && (is_plain(word) || takes_value(name, word))) {
            kept.push(word);
            // `pnpm --filter api test` is another program than `pnpm test`.
            if word.starts_with('-') && takes_value(name, word) {
                kept.extend(words.next());
                most += 2;
            }
        }
        kept.join(" ")
    });
    named.filter(|program| !program.is_empty())
}

/// A tool's answer.
pub fn response(tool: &ToolUseRow) -> &str {
    tool.metadata["response"].as_str().or(tool.outcome.as_deref()).unwrap_or_default()
}

/// Whether an error says that the command did not do its work, rather than what it found.
pub fn did_not_run(error: &str) -> bool {
    const NOT_RUN: Words = "command not found|unrecognized subcommand|not recognized|no such file or directory|unknown command|missing script|no such command|usage:|invalid option|unexpected argument|unknown option|unknown flag|illegal option|no matches found|cannot find module|is not a git command|not supported|unsupported|flag provided but not defined|no test files|build constraints exclude";
    has_word_of(NOT_RUN, &error.to_lowercase())
}

/// Whether a command only looks: that `grep` finds nothing is no failure.
pub fn is_look(command: &str) -> bool {
    let program = program(command);
    let mut words = program.split(' ');
    match words.next().unwrap_or_default().rsplit('/').next().unwrap_or_default() {
        "git" => words.next().is_none_or(|verb| {
            is_one_of("log|diff|show|status|branch|grep|ls-files|rev-parse|cat-file|ls-tree|check-ignore", verb)
        }),
        name => {
            name.is_empty()
                || is_one_of(
                    "ls|cat|grep|rg|find|head|tail|test|which|wc|sed|awk|echo|stat|diff|pgrep|ps|kill|pkill|sleep|jq|for|if|while|[",
                    name,
                )
        }
    }
}

/// Whether a command of a turn did more than to look.
pub fn acts(turn: &Turn) -> bool {
    let acts = |line: &str| !is_look(line);
    turn.tools.iter().any(|tool| tool.kind == Kind::Command && !tool.is_check() && tool.content.as_deref().is_some_and(acts))
}

/// Words that name an error.
const ERRORS: Words = "error|panicked|failed|fatal|exception|not found|denied|cannot|undefined|unknown|--- fail|expected|assert";

/// A line without counts of nothing.
fn bare(line: &str) -> String {
    line.to_lowercase().replace("0 failed", "").replace("0 errors", "").replace("0 issues", "")
}

/// That something failed says less than what did.
fn is_summary(line: &str) -> bool {
    let line = line.to_lowercase();
    line == "fail"
        || begins_with("fail\t|error: process|make: ***", &line)
        || has_word_of("task failed|exit status|tests failed", &line)
}

/// The line of a failure's answer that says most: one that names an error, else the last.
pub fn reason(tool: &ToolUseRow) -> String {
    let lines = lines(response(tool));
    let line = lines.iter().copied().find(|line| is_exception(line)).or_else(|| errors(&lines).next());
    // A single line is all there is to say; the last one of many says nothing of why.
    let line = line.or_else(|| lines.first().copied().filter(|line| lines.len() <= 2 && !is_summary(line))).unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `AssertionError: 55 != 54.85`: below the source lines of a traceback, what was thrown.
fn is_exception(line: &str) -> bool {
    let named = line.split_once(": ").map_or("", |(name, _)| name.rsplit('.').next().unwrap_or_default());
    named.len() > 5 && named.chars().all(char::is_alphanumeric) && (named.ends_with("Error") || named.ends_with("Exception"))
}

/// The first lines of a failure's answer that name errors; else its reason.
pub fn reasons(tool: &ToolUseRow, most: usize) -> String {
    let lines = lines(response(tool));
    let named: Vec<&str> = errors(&lines).take(most).collect();
    if named.is_empty() { reason(tool) } else { named.join(" | ") }
}

/// The lines of an output that name errors; of a short output without any, its first line.
pub fn error_lines(output: &str) -> Vec<String> {
    let lines = lines(output);
    let named: Vec<&str> = lines.iter().copied().filter(|line| is_exception(line)).chain(errors(&lines)).collect();
    let named = if named.is_empty() { lines.into_iter().take(1).collect() } else { named };
    let mut all: Vec<String> = Vec::new();
    for line in named.into_iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")) {
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// Whether a line is the command itself, as package scripts and task runners print it: `[lint] $ golangci-lint run`.
fn is_echo(line: &str) -> bool {
    line.starts_with("$ ") || line.starts_with('[') && line.contains("] $ ")
}

/// Whether a line shows code with its number, as runners print it around a failure: `75| if (key !== undefined) {`.
fn is_shown_code(line: &str) -> bool {
    let rest = line.trim_start_matches(['>', ' ']).trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len()
        && line.trim_start_matches(['>', ' ']).starts_with(|c: char| c.is_ascii_digit())
        && rest.trim_start().starts_with(['|', '│'])
}

fn lines(response: &str) -> Vec<&str> {
    let says = |line: &&str| {
        !line.is_empty()
            && !line.starts_with("Exit code ")
            && !line.starts_with("[…")
            && !line.starts_with("<tool_use_error>")
            && !is_echo(line)
            && !is_shown_code(line)
            && line.chars().any(char::is_alphanumeric)
    };
    response.lines().map(str::trim).filter(says).collect()
}

fn errors<'a>(lines: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let names_error = |line: &&str| has_word_of(ERRORS, &bare(line)) || line.starts_with(['×', '✖', '✗']);
    lines.iter().copied().filter(names_error).filter(|line| !line.starts_with("hint:") && !is_summary(line))
}

#[cfg(test)]
pub(super) mod testing {
    use crate::model::ToolUseRow;
    use serde_json::json;

    /// A tool use with so much as rules look at.
    pub fn tool(id: i64, kind: &str, what: &str, succeeded: bool) -> ToolUseRow {
        let is_command = kind == "command";
        ToolUseRow {
            id,
            session_id: 1,
            seq: id,
            prompt_id: Some(1),
            tool_use_id: None,
            received_at: id * 1000,
            tool_name: "Tool".into(),
            kind: kind.into(),
            command_kind: is_command.then(|| crate::command_kind::classify(what)),
            path: (!is_command).then(|| what.to_string()),
            content: Some(what.into()),
            input: None,
            outcome: None,
            succeeded: Some(succeeded),
            metadata: if succeeded {
                json!({})
            } else {
                json!({"response": format!("Exit code 1\nerror: {what} is broken\nend")})
            },
        }
    }
}

/// Tool uses between the two at most.
const NEAR: usize = 6;
/// Characters of a command that says how to run something.
const LONG: usize = 160;
/// Errors that say nothing of how a command is called.
const PASSING: Words = "connection|timed out|timeout|could not resolve|network|temporary failure|unreachable|rate limit|too many requests|welcome to|last login|banner";

/// Pairs of a command that failed because of how it was called, and the call of the same program that worked, in order.
pub fn worked_after<'a>(tools: &[&'a ToolUseRow]) -> Vec<(&'a ToolUseRow, &'a ToolUseRow)> {
    let mut pairs: Vec<(&ToolUseRow, &ToolUseRow)> = Vec::new();
    for (at, failed) in tools.iter().enumerate().filter(|(_, tool)| tool.kind == Kind::Command && tool.succeeded == Some(false)) {
        let Some(line) = failed.content.as_deref() else { continue };
        let reason = reason(failed);
        // A check that found something says nothing about how it is run.
        let found = (is_look(line) || failed.is_check()) && !did_not_run(response(failed));
        if found || has_word_of(PASSING, &reason.to_lowercase()) {
            continue;
        }
        let next = tools[at + 1..].iter().take(NEAR).take_while(|tool| !tool.is_edit());
        let worked = next.filter(|tool| tool.kind == Kind::Command && tool.succeeded == Some(true)).find(|tool| {
            let other = tool.content.as_deref().unwrap_or_default();
            other.len() < LONG && is_other_form(line, other, &reason)
        });
        let is_known = |tool: &ToolUseRow| pairs.iter().any(|(_, known)| known.id == tool.id);
        pairs.extend(worked.filter(|tool| !is_known(tool)).map(|tool| (*failed, *tool)));
    }
    pairs
}

/// Whether one call is another form of a call that failed: the same program inside, half of the words, and an error that
/// explains the difference.
fn is_other_form(failed: &str, worked: &str, reason: &str) -> bool {
    let (failed, worked) = (inner_words(failed), inner_words(worked));
    let (Some(program), true) = (worked.first(), failed != worked) else { return false };
    // A wrapper that is not known may stand before the program: `rtk bun test`.
    if failed.first() != Some(program) && failed.get(1) != Some(program) {
        return false;
    }
    let shared = worked.iter().filter(|word| failed.contains(word)).count();
    let reason = reason.to_lowercase();
    let missing = failed.iter().filter(|word| !worked.contains(word)).map(|word| word.trim_start_matches('-').to_lowercase());
    // A path that is not there says nothing of the call.
    if has_word_of("no such file|cannot access|can't cd", &reason) {
        return false;
    }
    let explains = did_not_run(&reason) || missing.filter(|word| word.len() > 2).any(|word| reason.contains(&word));
    shared * 2 >= worked.len().max(failed.len()) && explains
}

/// Programs that run another one.
const WRAPPERS: Words = "sudo|env|bash|sh|zsh|powershell|pwsh|nohup|time|exec|command|ssh|timeout|xargs|wsl|cmd";
/// Words of a command line.
const WORDS: usize = 40;

/// The words of the last program that a line runs, without what runs it (`ssh host "…"`, `sudo`, `bash -c`), and without
/// redirections and what reads its output.
fn inner_words(line: &str) -> Vec<String> {
    let bare = line.replace(['"', '\''], " ");
    let parts = bare.split("&&").flat_map(|part| part.split(';')).flat_map(|part| part.split("||")).map(str::trim);
    let last =
        parts.filter(|part| !begins_with("cd |export |source |set |echo ", part) && !part.is_empty()).last().unwrap_or_default();
    let mut words: Vec<&str> =
        last.split(['|', '>']).next().unwrap_or_default().split_whitespace().filter(|word| *word != "2").take(WORDS).collect();
    loop {
        let wrapper = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        if words.first().is_some_and(|word| word.contains('=') && !word.starts_with('-')) {
            words.remove(0);
        } else if is_one_of(WRAPPERS, wrapper) {
            let is_ssh = wrapper == "ssh";
            let takes_number = wrapper == "timeout";
            words.remove(0);
            while words.first().is_some_and(|word| word.starts_with('-') || word.starts_with('/') && wrapper == "cmd") {
                let option = words.remove(0);
                // Options of ssh that have a value.
                if is_ssh && matches!(option, "-i" | "-p" | "-o" | "-l" | "-F" | "-J") && !words.is_empty() {
                    words.remove(0);
                }
            }
            if (is_ssh || takes_number) && !words.is_empty() {
                words.remove(0);
            }
        } else {
            return words.into_iter().map(String::from).collect();
        }
    }
}

/// Failures of a command after which it counts as given up, or as long in solving.
const MANY: usize = 3;
/// Memories of one sort in a unit.
const MOST: usize = 2;
/// Characters of a call that worked, and of one that failed.
const WORKED: usize = 90;
const FAILED: usize = 60;
/// Between both in the title of a working command.
const NOT_CALLED: &str = "` works, not `";

/// Adds what commands show: to the memory of the same turn, else as a memory of its own.
pub fn add_evidence(memories: &mut Vec<RuleMemory>, turns: &[Turn]) {
    let all: Vec<&ToolUseRow> = turns.iter().flat_map(|turn| turn.tools.iter().copied()).collect();
    let failures = failures(&all);
    for failure in failures.iter().filter(|failure| !is_look(failure.command()) && failure.is_clear()) {
        let Some(passed) = failure.passed.filter(|_| failure.edits.iter().any(|edit| is_project_change(edit))) else { continue };
        let (from, to) = (turn_of(turns, failure.failed[0]), turn_of(turns, passed));
        let is_work = |memory: &RuleMemory| !memory.is_summary() && !memory.is_decided();
        let in_turns = |memory: &RuleMemory| is_work(memory) && memory.turns.iter().any(|at| (from..=to).contains(at));
        match memories.iter_mut().rev().find(|memory| in_turns(memory)) {
            Some(memory) if !failure.own_making || memory.finding == Some(Finding::Fix) => {
                memory.finding = Some(Finding::Fix);
                memory.fact(&line(failure));
            }
            // What the work broke by itself says nothing about the project.
            _ if failure.own_making && failure.failed.len() < MANY => {}
            _ if failure.reason().is_empty() || !passed.is_check() => {}
            _ => memories.push(solved(turns, failure, (from, to))),
        }
    }
    memories.extend(given_up(&failures, &all, turns).into_iter().take(MOST));
    let call = |tool: &ToolUseRow, most: usize| cut(called(tool.content.as_deref().unwrap_or_default()), most);
    // Calls that differ only in what is cut or redacted tell nobody which one works.
    let differ = |(failed, worked): &(&ToolUseRow, &ToolUseRow)| {
        !call(worked, WORKED).starts_with(call(failed, FAILED).trim_end_matches('…'))
    };
    memories.extend(worked_after(&all).into_iter().filter(differ).take(MOST).map(|(failed, worked)| {
        let title = format!("`{}{NOT_CALLED}{}`", call(worked, WORKED), call(failed, FAILED));
        let at = turn_of(turns, worked);
        let key = format!("works:t{}", worked.id);
        let mut memory = RuleMemory::new(key, Some(Finding::WorkingCommand), &title, vec![at]);
        memory.fact(&cut(&reason(failed), 110));
        memory.provenance = Provenance::Tool;
        memory.sources = vec![Source::ToolUse(failed.id), Source::ToolUse(worked.id)];
        memory
    }));
}

/// A command line without the change of folder before it and without what reads its output.
pub fn called(line: &str) -> &str {
    let call = line.trim();
    let call = if begins_with("cd ", call) { call.split_once("&&").map_or(call, |(_, rest)| rest.trim()) } else { call };
    let ends = [" 2>", " | ", " > "].iter().filter_map(|mark| call.find(mark)).min();
    call[..ends.unwrap_or(call.len())].trim()
}

/// The call that failed, from the title of a working command: "`just deploy` works, not `just ship`".
pub fn failed_call(title: &str) -> Option<&str> {
    title.rsplit_once(NOT_CALLED).and_then(|(_, call)| call.strip_suffix('`'))
}

/// Whether a command line is a call: with further words, or with what was cut off.
pub fn is_call(line: &str, call: &str) -> bool {
    let line = called(line);
    match call.strip_suffix('…') {
        Some(beginning) => line.starts_with(beginning),
        None => line.strip_prefix(call).is_some_and(|rest| !rest.starts_with(|c: char| !c.is_whitespace())),
    }
}

fn turn_of(turns: &[Turn], tool: &ToolUseRow) -> usize {
    turns.iter().position(|turn| turn.tools.iter().any(|own| own.id == tool.id)).unwrap_or(0)
}

fn solved(turns: &[Turn], failure: &Failure, (from, to): (usize, usize)) -> RuleMemory {
    let title = format!("Fixed `{}`: {}", named(failure), cut(&failure.reason(), 110));
    let first = failure.failed[0];
    let mut memory = RuleMemory::new(format!("fix:t{}", first.id), Some(Finding::Fix), &title, (from..=to).collect());
    memory.fact(&line(failure));
    memory.provenance = Provenance::Tool;
    memory.files = changed_files(&failure.edits);
    memory.sources = failure.failed.iter().chain(&failure.edits).map(|tool| Source::ToolUse(tool.id)).collect();
    memory.sources.extend(failure.passed.map(|tool| Source::ToolUse(tool.id)));
    memory.sources.extend(turns[to].said());
    memory
}

/// `go test` failed twice (undefined: x), passed after changes to `a.go`
fn line(failure: &Failure) -> String {
    let times = match failure.failed.len() {
        1 => String::new(),
        n => format!(" {n} times"),
    };
    let reason = failure.reason();
    let reason = if reason.is_empty() { String::new() } else { format!(" ({})", cut(&reason, 90)) };
    let files = changed_files(&failure.edits);
    let names: Vec<String> = files.iter().take(2).map(|file| format!("`{}`", file.path)).collect();
    let after = if names.is_empty() { String::new() } else { format!(", passed after changes to {}", names.join(", ")) };
    format!("`{}` failed{times}{reason}{after}", named(failure))
}

fn named(failure: &Failure) -> String {
    let program = program(failure.command());
    if program.is_empty() { cut(failure.command(), 60) } else { program }
}

fn changed_files(tools: &[&ToolUseRow]) -> Vec<MemoryFile> {
    let paths = tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.clone());
    let paths: std::collections::BTreeSet<String> = paths.filter(|path| is_in_project(path)).collect();
    paths.into_iter().map(|path| MemoryFile { path, modified: true, hash: None }).collect()
}

/// Commands that failed again and again and never passed.
fn given_up(failures: &[Failure], all: &[&ToolUseRow], turns: &[Turn]) -> Vec<RuleMemory> {
    let last = all.last().map_or(0, |tool| tool.seq);
    let is_given_up = |failure: &&Failure| {
        let end = failure.failed.last().map_or(0, |tool| tool.seq);
        failure.passed.is_none()
            && failure.failed.len() >= MANY
            && !is_look(failure.command())
            && !failure.failed[0].is_check()
            && end < last
    };
    let memory = |failure: &Failure| {
        let (reason, program) = (failure.reason(), program(failure.command()));
        if reason.is_empty() || program.is_empty() {
            return None;
        }
        let first = failure.failed[0];
        let title = format!("`{program}` failed {} times and was given up: {}", failure.failed.len(), cut(&reason, 100));
        let key = format!("gaveup:t{}", first.id);
        let mut memory = RuleMemory::new(key, Some(Finding::FailedApproach), &title, vec![turn_of(turns, first)]);
        memory.provenance = Provenance::Tool;
        memory.fact(&format!("last tried: `{}`", cut(failure.command(), 160)));
        memory.sources = failure.failed.iter().map(|tool| Source::ToolUse(tool.id)).collect();
        Some(memory)
    };
    failures.iter().filter(is_given_up).filter_map(memory).collect()
}

#[cfg(test)]
mod tests {
    use super::testing::tool;
    use super::*;

    #[test]
    fn a_check_that_passes_after_changes_is_solved_and_another_way_of_running_it_counts() {
        let tools = [
            tool(1, "command", "cd x && go test ./... 2>&1 | tail", false),
            tool(2, "command", "ls nowhere", false),
            tool(3, "edit", "a.go", true),
            tool(4, "command", "go test ./a -run TestX", false),
            tool(5, "edit", "b.go", true),
            tool(6, "command", "go test ./...", true),
            tool(7, "command", "go test ./...", false),
        ];
        let found = failures(&tools.iter().collect::<Vec<_>>());
        let reported: Vec<_> =
            found.iter().map(|f| (f.failed.len(), f.edits.len(), f.passed.map(|t| t.id), f.own_making)).collect();
        assert_eq!(reported, [(2, 2, Some(6), false), (1, 2, None, false), (1, 0, None, true)]);
        assert_eq!(found[0].reason(), "error: go test ./a -run TestX is broken");
    }

    #[test]
    fn the_reason_is_what_was_thrown_not_the_line_that_threw_it() {
        let answer = "Traceback (most recent call last):\n  File \"t.py\", line 9\n    self.assertAlmostEqual(total, 54.85)\nAssertionError: 55 != 54.85";
        let failed =
            ToolUseRow { metadata: serde_json::json!({"response": answer}), ..tool(1, "command", "python3 -m unittest", false) };
        assert_eq!(reason(&failed), "AssertionError: 55 != 54.85");
    }

    #[test]
    fn code_that_a_runner_shows_is_no_reason() {
        let shown = "75|  if (key !== undefined) {\n> 76 |    throw new Error(key)\nerror: expect(received).toBe(expected)";
        assert_eq!(error_lines(shown), ["error: expect(received).toBe(expected)"]);
        assert!(!is_shown_code("3 tests failed | 2 passed") && !is_shown_code("error | 75"));
    }

    #[test]
    fn the_program_of_a_line_is_its_name_and_verb() {
        for (line, named) in [
            ("cd /x && A=1 go test ./... -v | tail -3", "go test"),
            ("mise run lint 2>&1 | head", "mise run lint"),
            ("cargo test --all", "cargo test"),
            ("npm run build && echo ok", "npm run build"),
            ("python3 -m unittest -v", "python3 -m unittest"),
            ("nvm use && pnpm --filter @acme/api test -- --run", "pnpm --filter @acme/api test"),
            ("make -C docs html", "make -C docs html"),
        ] {
            assert_eq!(program(line), named);
        }
    }

    #[test]
    fn the_command_that_works_is_found_unless_something_was_changed() {
        let lines = |tools: &[ToolUseRow]| {
            let pairs = worked_after(&tools.iter().collect::<Vec<_>>());
            pairs.iter().map(|(_, worked)| worked.content.clone().unwrap()).collect::<Vec<_>>()
        };
        let failed = || ToolUseRow {
            metadata: serde_json::json!({"response": "build constraints exclude all Go files"}),
            ..tool(1, "command", "go test ./e2e", false)
        };
        let worked = || tool(3, "command", "go test -tags=e2e ./e2e", true);
        assert_eq!(lines(&[failed(), tool(2, "read", "a.go", true), worked()]), ["go test -tags=e2e ./e2e"]);
        assert!(lines(&[failed(), tool(2, "edit", "a.go", true), worked()]).is_empty());
        assert!(lines(&[failed(), tool(3, "command", "go test ./e2e 2>&1 | tail", true)]).is_empty());
        let found = tool(1, "command", "bun run lint", false);
        assert!(lines(&[found, tool(2, "command", "bun run lint --fix", true)]).is_empty(), "a check that found something");
        assert!(lines(&[tool(1, "command", "grep a b", false), tool(2, "command", "grep a c", true)]).is_empty());
    }

    #[test]
    fn calls_that_differ_only_where_they_are_cut_or_redacted_are_no_lesson() {
        let lessons = |failed: &str, worked: &str| {
            let mut story = super::super::testing::unit(&[(
                "Set the secret of the deployment",
                &[("command", failed, false), ("command", worked, true)],
                "Done.",
            )]);
            story.tools[0].metadata = serde_json::json!({"response": "unknown flag: --app"});
            let mut memories = Vec::new();
            add_evidence(&mut memories, &super::super::turns::turns(&story, &crate::domains::of(None, None)));
            memories.len()
        };
        assert_eq!(lessons("gh secret set HOST --app x", "gh secret set HOST"), 1);
        let whole = "gh secret set HOST --env production --body [redacted:option-password] --repos first,second,third";
        assert_eq!(lessons(&format!("{whole} --app actions"), whole), 0);
    }
}
