//! What failed: whether it went through again after something was changed, or was given up.

use crate::model::{Kind, ToolUseRow};
use crate::statements::word_lists::{Words, begins_with, holds, is_one_of};

/// A command that failed, as often as it did.
#[derive(Clone, Debug)]
pub struct Failure<'a> {
    /// In order; the last one is the one that is told of.
    pub failed: Vec<&'a ToolUseRow>,
    /// Changes of files between the first failure and where it went through.
    pub edits: Vec<&'a ToolUseRow>,
    /// Where it went through after the changes.
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

/// What runs of one command have in common: of checks their sort, however they are started (a repaired test is often run by
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
        let is_plain = |word: &&str| runs_module && *word == "-m" || !word.starts_with(['-', '.', '/', '"', '\'', '$']);
        words.take_while(is_plain).take(3).collect::<Vec<_>>().join(" ")
    });
    named.filter(|program| !program.is_empty())
}

/// What a tool answered.
pub fn response(tool: &ToolUseRow) -> &str {
    tool.metadata["response"].as_str().or(tool.outcome.as_deref()).unwrap_or_default()
}

/// Whether an error says that the command did not do its work, rather than what it found.
pub fn did_not_run(error: &str) -> bool {
    const NOT_RUN: Words = "command not found|unrecognized subcommand|not recognized|no such file or directory|unknown command|missing script|no such command|usage:|invalid option|unexpected argument|unknown option|unknown flag|flag provided but not defined|no test files|build constraints exclude";
    holds(NOT_RUN, &error.to_lowercase())
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
        || holds("task failed|exit status|tests failed", &line)
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

fn lines(response: &str) -> Vec<&str> {
    let says = |line: &&str| {
        !line.is_empty()
            && !line.starts_with("Exit code ")
            && !line.starts_with("[…")
            && !line.starts_with("<tool_use_error>")
            && !is_echo(line)
            && line.chars().any(char::is_alphanumeric)
    };
    response.lines().map(str::trim).filter(says).collect()
}

fn errors<'a>(lines: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let names_error = |line: &&str| holds(ERRORS, &bare(line)) || line.starts_with(['×', '✖', '✗']);
    lines.iter().copied().filter(names_error).filter(|line| !line.starts_with("hint:") && !is_summary(line))
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
        let told: Vec<_> = found.iter().map(|f| (f.failed.len(), f.edits.len(), f.passed.map(|t| t.id), f.own_making)).collect();
        assert_eq!(told, [(2, 2, Some(6), false), (1, 2, None, false), (1, 0, None, true)]);
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
    fn the_program_of_a_line_is_its_name_and_verb() {
        for (line, named) in [
            ("cd /x && A=1 go test ./... -v | tail -3", "go test"),
            ("mise run lint 2>&1 | head", "mise run lint"),
            ("cargo test --all", "cargo test"),
            ("npm run build && echo ok", "npm run build"),
            ("python3 -m unittest -v", "python3 -m unittest"),
        ] {
            assert_eq!(program(line), named);
        }
    }
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
