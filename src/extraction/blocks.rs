//! Numbered blocks of a request: one for each message and tool use, cut to a budget by priority.

use crate::model::{CommandKind, Domain, Kind, Millis, PromptKind, PromptSource, Source, ToolUseRow, UnitStory};
use crate::prompt_injection;
use crate::text::{ends, seen};
use std::collections::HashSet;

/// Maximum bytes of a message of the user, and of the agent. Messages and commits are shown whole before any look
/// (`fit`); a longer one is pasted or a document.
const SAID_BY_USER: usize = 4_000;
const SAID_BY_AGENT: usize = 6_000;
/// Maximum bytes of a change, a commit, the output of a failure, the verdict of a check, a command, a look, and the
/// result of a look.
const CHANGE: usize = 480;
const COMMIT: usize = 3_000;
const FAILURE: usize = 600;
const VERDICT: usize = 160;
const OTHER: usize = 240;
const LOOKED: usize = 110;
const FOUND: usize = 64;
/// Bytes of each text in an entry that is shortened once, twice, and three times.
const LONG: usize = 1_200;
const MEDIUM: usize = 320;
const SHORT: usize = 140;
/// Entries of a lower priority are looks: reading a file, searching, a command that changed nothing.
const LOOK: u8 = 60;
/// Entries of at least this priority are messages.
const MESSAGE: u8 = 90;
const SAME_CHANGE: &str = "(a change that is shown above)";
/// Approximate bytes of an entry's number, marks and indents.
const FRAME: usize = 12;

/// A message or a tool use.
#[derive(Clone, Debug, PartialEq)]
pub struct EventBlock {
    pub source: Source,
    /// A tool's name, `user` or `agent`.
    pub what: String,
    pub at: Millis,
    /// Number of its prompt.
    pub prompt: Option<i64>,
    pub parameters: Option<String>,
    pub outcome: Option<String>,
    pub failed: bool,
    /// The user wrote it.
    pub by_user: bool,
    /// It came from outside: a page, a search, a server.
    pub from_outside: bool,
    pub path: Option<String>,
    pub edits: bool,
    pub reads: bool,
    /// The lowest priority is dropped first.
    pub block_priority: u8,
    /// Withheld lines that address the reader.
    pub withheld: Vec<String>,
}

impl EventBlock {
    /// Bytes including its frame.
    pub fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        FRAME + self.what.len() + text(&self.parameters) + text(&self.outcome)
    }

    /// Whether something was changed, checked or failed.
    pub fn matters(&self) -> bool {
        matches!(self.source, Source::ToolUse(_)) && self.block_priority >= LOOK
    }

    /// Cuts each text to at most `most` bytes.
    fn shorten(&mut self, most: usize) {
        for text in [&mut self.parameters, &mut self.outcome].into_iter().flatten() {
            *text = cut_middle(text, most);
        }
    }
}

/// The blocks after the last call, in order. `left_out` are rows that a person wants no memories of.
pub fn blocks(story: &UnitStory, domain: &Domain, after: i64, left_out: &HashSet<Source>) -> Vec<EventBlock> {
    let numbers: Vec<(i64, i64)> =
        story.prompts.iter().filter(|p| p.kind == PromptKind::Prompt).map(|p| (p.id, p.number)).collect();
    let number = |tool: &ToolUseRow| numbers.iter().find(|(id, _)| Some(*id) == tool.prompt_id).map(|(_, number)| *number);
    let ignored = |path: &str| domain.ignore.iter().any(|glob| fast_glob::glob_match(glob, path));
    let tools = story.tools.iter().filter(|tool| {
        tool.seq > after
            && !domain.skip_tools.contains(&tool.tool_name)
            && !tool.path.as_deref().is_some_and(ignored)
            && !left_out.contains(&Source::ToolUse(tool.id))
    });
    // A message from before the last call is shown again if work on it followed.
    let since = story.tools.iter().filter(|tool| tool.seq <= after).map(|tool| tool.received_at).max().unwrap_or(0);
    let going: HashSet<i64> = tools.clone().filter_map(&number).collect();
    let mut all: Vec<EventBlock> = Vec::new();
    let mut said = HashSet::new();
    for prompt in &story.prompts {
        let by_user = prompt.source == PromptSource::User;
        let new = prompt.received_at >= since || by_user && going.contains(&prompt.number);
        if !new || left_out.contains(&Source::Prompt(prompt.id)) {
            continue;
        }
        let text = seen(&prompt.text);
        // A long message that comes twice says nothing new.
        if text.len() > SHORT && !said.insert(text.trim().to_string()) {
            continue;
        }
        let (text, withheld) = if by_user { (text, Vec::new()) } else { prompt_injection::without(&text) };
        all.push(EventBlock {
            source: Source::Prompt(prompt.id),
            what: if by_user { "user" } else { "agent" }.to_string(),
            at: prompt.received_at,
            prompt: Some(prompt.number),
            parameters: None,
            outcome: Some(cut_middle(&text, if by_user { SAID_BY_USER } else { SAID_BY_AGENT })),
            failed: false,
            by_user,
            from_outside: false,
            path: None,
            edits: false,
            reads: false,
            block_priority: if by_user { 100 } else { 90 },
            withheld,
        });
    }
    let (mut known, mut changes) = (HashSet::new(), HashSet::new());
    for tool in tools {
        // A description only repeats its command.
        let described = tool.metadata["description"].as_str().filter(|_| tool.content.is_none());
        let hunk = tool.input.as_deref().filter(|_| tool.is_edit()).map(|input| what_changed(tool.kind, input));
        // The same change of another file needs no second copy.
        let repeats = hunk.as_ref().is_some_and(|hunk| hunk.len() > SHORT && !changes.insert(hunk.clone()));
        let input = if repeats { Some(SAME_CHANGE) } else { hunk.as_deref().or(tool.input.as_deref()) };
        let parts = [described, tool.path.as_deref(), tool.content.as_deref(), input];
        let mut given: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
        given.dedup();
        let (parameters, mut withheld) = prompt_injection::without(&seen(&given.join("\n")));
        // The output of a failure is kept longer.
        let printed = tool.metadata["response"].as_str().or(tool.outcome.as_deref()).unwrap_or_default();
        let verdict = Some(printed).filter(|_| tool.is_check()).and_then(verdict);
        let (outcome, more) = prompt_injection::without(&seen(verdict.as_deref().unwrap_or(printed)));
        withheld.extend(more);
        let failed = tool.succeeded == Some(false);
        let (most_given, most_printed) = most_bytes(tool, failed);
        let again = !known.insert((tool.kind, tool.path.as_deref(), tool.content.as_deref()));
        all.push(EventBlock {
            source: Source::ToolUse(tool.id),
            // Servers choose the names of their tools.
            what: Some(seen(&tool.tool_name))
                .filter(|name| !prompt_injection::looks_like_prompt_injection(name))
                .unwrap_or_else(|| "tool".into()),
            at: tool.received_at,
            prompt: number(tool),
            parameters: Some(cut_middle(&parameters, most_given)).filter(|text| !text.is_empty()),
            outcome: Some(cut_middle(&outcome, most_printed)).filter(|text| !text.is_empty()),
            failed,
            by_user: false,
            from_outside: is_from_outside(tool),
            path: tool.path.clone(),
            edits: tool.is_edit(),
            reads: tool.kind == Kind::Read,
            block_priority: block_priority(tool, failed, again),
            withheld,
        });
    }
    // In order of events; a closing message follows the work on its prompt.
    all.sort_by_key(|block| (block.at, matches!(block.source, Source::Prompt(_)) && !block.by_user));
    all
}

/// Returns the maximum bytes of a tool's input and of its output.
fn most_bytes(tool: &ToolUseRow, failed: bool) -> (usize, usize) {
    match tool.kind {
        _ if failed => (CHANGE, FAILURE),
        Kind::Edit | Kind::Write => (CHANGE, FOUND),
        Kind::Command if tool.command_kind == Some(CommandKind::Commit) => (COMMIT, LOOKED),
        Kind::Read | Kind::Search => (LOOKED, FOUND),
        Kind::Command if tool.is_check() => (OTHER, VERDICT),
        Kind::Command => (OTHER, SHORT),
        _ => (OTHER, OTHER),
    }
}

/// Whether the output comes from beyond the people and programs of this machine.
fn is_from_outside(tool: &ToolUseRow) -> bool {
    let fetches = |command: &str| command.split_whitespace().any(|word| matches!(word, "curl" | "wget" | "gh" | "glab"));
    matches!(tool.kind, Kind::Fetch | Kind::Mcp) || tool.kind == Kind::Command && tool.content.as_deref().is_some_and(fetches)
}

/// Cuts the entries to a byte budget by priority. Looks are shortened and then dropped before anything else is; changes
/// are shortened before messages, in which the outcome stands; all of them are shortened before any is dropped. At
/// equal priority, the oldest come first. The result is deterministic. Returns the number of dropped entries.
pub fn fit(blocks: &mut Vec<EventBlock>, budget: usize) -> usize {
    let before = blocks.len();
    // Reading a file again adds nothing.
    blocks.retain(|block| block.block_priority > 0);
    let mut size: usize = blocks.iter().map(EventBlock::size).sum();
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|at| (blocks[*at].block_priority, *at));
    let from = |priority: u8| order.iter().position(|at| blocks[*at].block_priority >= priority).unwrap_or(order.len());
    let (looks, rest) = order.split_at(from(LOOK));
    let (changes, messages) = rest.split_at(from(MESSAGE) - looks.len());
    let mut gone = HashSet::new();
    let steps = [
        (looks, Some(SHORT)),
        (looks, None),
        (changes, Some(MEDIUM)),
        (messages, Some(LONG)),
        (changes, Some(SHORT)),
        (messages, Some(MEDIUM)),
        (rest, Some(SHORT)),
        (rest, None),
    ];
    for (part, most) in steps {
        for at in part.iter().filter(|at| !gone.contains(*at)).copied().collect::<Vec<_>>() {
            if size <= budget {
                break;
            }
            size -= blocks[at].size();
            match most {
                Some(most) => {
                    blocks[at].shorten(most);
                    size += blocks[at].size();
                }
                None => drop(gone.insert(at)),
            }
        }
    }
    let mut at = 0;
    blocks.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    before - blocks.len()
}

/// Cuts a text to its start and end, where results and errors are; removes blank lines and names of co-authors.
fn cut_middle(text: &str, most: usize) -> String {
    let says = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("Co-Authored-By:");
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(says).collect();
    let text = lines.join("\n");
    let text = text.trim();
    if text.len() <= most {
        return text.to_string();
    }
    let (head, tail) = ends(text, most * 3 / 5, most * 2 / 5);
    format!("{} […] {}", head.trim_end(), tail.trim_start())
}

/// Words of a line that says how a check ended.
const VERDICTS: [&str; 12] = [
    "passed",
    "failed",
    "passing",
    "failing",
    "test result",
    "tests:",
    "errors",
    "error:",
    "warnings",
    "finished",
    "build succe",
    "ok",
];

/// The last lines of a check's output that say how it ended; `None` if none does.
fn verdict(printed: &str) -> Option<String> {
    let says = |line: &&str| {
        let lower = line.to_lowercase();
        VERDICTS.iter().any(|word| lower.contains(word))
    };
    let last: Vec<&str> = printed.lines().map(str::trim).filter(says).collect();
    let verdict = last[last.len().saturating_sub(3)..].join("\n");
    (!verdict.is_empty()).then_some(verdict)
}

/// First words of lines that name what a file defines.
const DEFINES: [&str; 24] = [
    "fn ",
    "pub ",
    "def ",
    "class ",
    "async ",
    "func ",
    "type ",
    "struct ",
    "enum ",
    "trait ",
    "impl ",
    "interface ",
    "export ",
    "function ",
    "const ",
    "var ",
    "let ",
    "create ",
    "alter ",
    "# ",
    "## ",
    "### ",
    "[",
    "module ",
];

/// Returns the lines that an edit changed, or those that name what a written file defines.
fn what_changed(kind: Kind, input: &str) -> String {
    let lines = changed_lines(input);
    if kind != Kind::Write || lines.len() <= CHANGE {
        return lines;
    }
    let defines = |line: &&str| {
        let text = line.strip_prefix('+').unwrap_or(line);
        let lower = text.to_lowercase();
        !text.starts_with(char::is_whitespace) && DEFINES.iter().any(|word| lower.starts_with(word))
    };
    let named: Vec<&str> = lines.lines().filter(defines).collect();
    if named.len() < 2 { lines } else { named.join("\n") }
}

/// Length in bytes above which the shared prefix of two lines is left out.
const SHARED: usize = 48;
/// Maximum bytes of removed lines that are kept; added lines matter more.
const REMOVED: usize = 150;
/// Bytes of a shared prefix that are kept, to show where in the line the change is.
const STAYS: usize = 20;

/// Returns the lines that differ. If a line replaces another one, a long shared prefix is left out.
pub fn changed_lines(hunk: &str) -> String {
    let side = |sign: char| hunk.lines().filter_map(move |line| line.strip_prefix(sign));
    let texts = |sign: char| side(sign).map(str::trim).collect::<HashSet<_>>();
    let (old, new) = (texts('-'), texts('+'));
    let differs = |line: &&str| match (line.strip_prefix('-').map(str::trim), line.strip_prefix('+').map(str::trim)) {
        (Some(text), _) => !text.is_empty() && !new.contains(text),
        (_, Some(text)) => !text.is_empty() && !old.contains(text),
        // Context lines and hunk headers.
        _ => false,
    };
    let lines: Vec<&str> = hunk.lines().filter(differs).collect();
    let removed: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix('-')).collect();
    let added: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix('+')).collect();
    if removed.is_empty() && added.is_empty() {
        // Only blanks differ, or the record cut the difference away: only the location can be shown.
        let place = side('+').find(|line| !line.trim().is_empty()).map(|line| format!("+{line}"));
        return place.unwrap_or_else(|| hunk.to_string());
    }
    let mut pairs = added.iter().zip(&removed).filter(|_| added.len() == removed.len()).map(|(new, old)| shared(new, old));
    let mut left = REMOVED;
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix('+'), line.starts_with('-')) {
            (Some(text), _) => out.push(match pairs.next() {
                Some(shared) if shared > SHARED => format!("+…{}", &text[text.ceil_char_boundary(shared - STAYS)..]),
                _ => line.to_string(),
            }),
            (None, true) if line.len() > left => {
                // The first line that does not fit is cut, the others are dropped.
                out.extend((left > 0).then(|| format!("{}…", &line[..line.floor_char_boundary(left)])));
                left = 0;
            }
            (None, removed) => {
                left -= if removed { line.len() } else { 0 };
                out.push(line.to_string());
            }
        }
    }
    out.join("\n")
}

/// Returns the length in bytes of the shared prefix of two lines.
fn shared(a: &str, b: &str) -> usize {
    a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map_or(a.len().min(b.len()), |((at, _), _)| at)
}

/// Returns a priority from 0 (always dropped) to 89; messages rank higher.
pub fn block_priority(tool: &ToolUseRow, failed: bool, again: bool) -> u8 {
    if failed {
        return 80;
    }
    match tool.kind {
        Kind::Edit | Kind::Write => 70,
        Kind::Command if tool.command_kind == Some(CommandKind::Commit) => 78,
        Kind::Command if tool.is_check() => 60,
        Kind::Fetch | Kind::Mcp => 45,
        // Its result may differ, its text does not.
        Kind::Command if again => 15,
        Kind::Command => 40,
        Kind::Read | Kind::Search if again => 0,
        Kind::Search => 20,
        Kind::Read => 25,
        _ => 35,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(n: i64, block_priority: u8, size: usize) -> EventBlock {
        EventBlock {
            source: Source::ToolUse(n),
            what: "Bash".into(),
            at: n,
            prompt: None,
            parameters: Some("x".repeat(size)),
            outcome: None,
            failed: false,
            by_user: false,
            from_outside: false,
            path: None,
            edits: false,
            reads: false,
            block_priority,
            withheld: Vec::new(),
        }
    }

    #[test]
    fn what_is_worth_least_is_shortened_first_and_then_goes() {
        let mut all = vec![block(1, 20, 2000), block(2, 80, 2000), block(3, 20, 2000), block(4, 0, 10)];
        assert_eq!(fit(&mut all, 4400), 1, "a repeated read goes");
        assert!(all[0].size() < 200 && all[1].size() > 2000 && all[2].size() > 2000, "the oldest of the least is cut");
        let left = fit(&mut all, 2100);
        let kept: Vec<Source> = all.iter().map(|block| block.source).collect();
        assert_eq!((left, kept), (2, vec![Source::ToolUse(2)]), "looks go before a failure is shortened");
    }

    #[test]
    fn changes_are_shortened_twice_before_one_goes() {
        let mut all: Vec<EventBlock> = (1..=10).map(|n| block(n, 70, 700)).collect();
        assert_eq!(fit(&mut all, 6000), 0);
        assert!(all[0].size() > 300 && all[9].size() > 700, "the oldest are shortened to a third first");
        assert_eq!(fit(&mut all, 1000), 4);
        assert!(all.iter().all(|block| block.size() < 200));
    }

    #[test]
    fn a_cut_text_keeps_its_beginning_and_its_end() {
        let cut = cut_middle(&format!("begin {} ende", "ä".repeat(500)), 100);
        assert!(cut.starts_with("begin") && cut.ends_with("ende") && cut.len() < 120, "{cut}");
    }

    #[test]
    fn only_what_differs_is_left() {
        assert_eq!(changed_lines("-a\n-b\n-\n+a\n+c\n+"), "-b\n+c");
        let long = "**Skill** — A folder with a file that is loaded on demand when a task asks for it.";
        let hunk = format!("-{long}\n+{long} It may hold more.");
        assert_eq!(changed_lines(&hunk), format!("-{long}\n+… a task asks for it. It may hold more."));
        let removed = format!("-{}\n-gone\n+x", "r".repeat(200));
        assert_eq!(changed_lines(&removed), format!("-{}…\n+x", "r".repeat(149)));
        assert_eq!(changed_lines("-x\n-y\n+x\n+ y"), "+x", "only blanks differ");
        assert_eq!(changed_lines("new file"), "new file");
    }
}
