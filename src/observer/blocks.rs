//! A unit as numbered blocks: what was said and done, each with what it is worth to somebody who has to sum it up.

use super::worth::worth;
use crate::hostile;
use crate::model::{Domain, Kind, Millis, PromptSource, Source, ToolUseRow, UnitStory};
use crate::words::{ends, seen};
use std::collections::HashSet;

/// Bytes of what went in and of what came out that are shown whole, and of one that is shown short.
const LONG: usize = 1600;
const SAID: usize = 3000;
const SHORT: usize = 160;
/// What is worth less is a look: a file that was read, a search, a command that changed nothing.
const LOOK: u8 = 60;
/// Bytes of a block's tags, time and folder, roughly.
const FRAME: usize = 260;

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub source: Source,
    /// A tool's name, `message of the user`, `message of the agent`.
    pub what: String,
    pub at: Millis,
    /// Number of the prompt that it belongs to.
    pub prompt: Option<i64>,
    pub parameters: Option<String>,
    pub outcome: Option<String>,
    pub failed: bool,
    /// The user said it.
    pub by_user: bool,
    /// It came from outside: a page, a search, a server.
    pub from_outside: bool,
    pub path: Option<String>,
    pub edits: bool,
    /// What it is worth; what is worth least goes first.
    pub worth: u8,
    /// Lines that were withheld, since they speak to whoever reads them.
    pub withheld: Vec<String>,
}

impl Block {
    /// Bytes that it takes with its frame.
    pub fn size(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        FRAME + self.what.len() + text(&self.parameters) + text(&self.outcome)
    }

    /// Whether something was changed, checked or went wrong in it.
    pub fn matters(&self) -> bool {
        matches!(self.source, Source::ToolUse(_)) && self.worth >= LOOK
    }

    /// Cuts it to a line of each of its texts.
    pub fn shorten(&mut self) {
        for text in [&mut self.parameters, &mut self.outcome].into_iter().flatten() {
            *text = cut_middle(text, SHORT);
        }
    }
}

/// What came after the last call, in order. `left_out` are rows of which a person wants nothing remembered.
pub fn blocks(story: &UnitStory, domain: &Domain, after: i64, left_out: &HashSet<Source>) -> Vec<Block> {
    let numbers: Vec<(i64, i64)> =
        story.prompts.iter().filter(|p| p.source == PromptSource::User).map(|p| (p.id, p.number)).collect();
    let number = |tool: &ToolUseRow| numbers.iter().find(|(id, _)| Some(*id) == tool.prompt_id).map(|(_, number)| *number);
    let ignored = |path: &str| domain.ignore.iter().any(|glob| fast_glob::glob_match(glob, path));
    let tools = story.tools.iter().filter(|tool| {
        tool.seq > after
            && !domain.skip_tools.contains(&tool.tool_name)
            && !tool.path.as_deref().is_some_and(ignored)
            && !left_out.contains(&Source::ToolUse(tool.id))
    });
    // A message of before the last call is shown again where work on it came after.
    let since = story.tools.iter().filter(|tool| tool.seq <= after).map(|tool| tool.received_at).max().unwrap_or(0);
    let going: HashSet<i64> = tools.clone().filter_map(&number).collect();
    let mut all: Vec<Block> = Vec::new();
    for prompt in &story.prompts {
        let by_user = prompt.source == PromptSource::User;
        let new = prompt.received_at >= since || by_user && going.contains(&prompt.number);
        if !new || left_out.contains(&Source::Prompt(prompt.id)) {
            continue;
        }
        let text = seen(&prompt.text);
        let (text, withheld) = if by_user { (text, Vec::new()) } else { hostile::without(&text) };
        all.push(Block {
            source: Source::Prompt(prompt.id),
            what: if by_user { "message of the user" } else { "message of the agent" }.to_string(),
            at: prompt.received_at,
            prompt: Some(prompt.number),
            parameters: None,
            outcome: Some(cut_middle(&text, SAID)),
            failed: false,
            by_user,
            from_outside: false,
            path: None,
            edits: false,
            worth: if by_user { 100 } else { 90 },
            withheld,
        });
    }
    let mut known = HashSet::new();
    for tool in tools {
        let described = tool.metadata["description"].as_str();
        let parts = [described, tool.path.as_deref(), tool.content.as_deref(), tool.input.as_deref()];
        let mut given: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
        given.dedup();
        let (parameters, mut withheld) = hostile::without(&seen(&given.join("\n")));
        // What a failure printed is kept longer than what went well.
        let printed = tool.metadata["response"].as_str().or(tool.outcome.as_deref()).unwrap_or_default();
        let (outcome, more) = hostile::without(&seen(printed));
        withheld.extend(more);
        let failed = tool.succeeded == Some(false);
        let again = !known.insert((tool.kind, tool.path.as_deref(), tool.content.as_deref()));
        all.push(Block {
            source: Source::ToolUse(tool.id),
            // A server names its own tools.
            what: Some(seen(&tool.tool_name)).filter(|name| !hostile::is_hostile(name)).unwrap_or_else(|| "tool".into()),
            at: tool.received_at,
            prompt: number(tool),
            parameters: Some(cut_middle(&parameters, LONG)).filter(|text| !text.is_empty()),
            outcome: Some(cut_middle(&outcome, LONG)).filter(|text| !text.is_empty()),
            failed,
            by_user: false,
            from_outside: is_from_outside(tool),
            path: tool.path.clone(),
            edits: tool.is_edit(),
            worth: worth(tool, failed, again),
            withheld,
        });
    }
    // In the order in which it happened; a closing message after the work on its prompt.
    all.sort_by_key(|block| (block.at, matches!(block.source, Source::Prompt(_)) && !block.by_user));
    all
}

/// Whether what came out was written by others than the people and programs of this machine.
fn is_from_outside(tool: &ToolUseRow) -> bool {
    let fetches = |command: &str| command.split_whitespace().any(|word| matches!(word, "curl" | "wget" | "gh" | "glab"));
    matches!(tool.kind, Kind::Fetch | Kind::Mcp) || tool.kind == Kind::Command && tool.content.as_deref().is_some_and(fetches)
}

/// Cuts to a budget of bytes by worth: looks are shortened and then left out before anything that changed, failed or was
/// said is shortened; of equal worth the oldest first. The same blocks always come to the same cut. Returns how many were
/// left out.
pub fn fit(blocks: &mut Vec<Block>, budget: usize) -> usize {
    let before = blocks.len();
    // A file that was read again says nothing new.
    blocks.retain(|block| block.worth > 0);
    let mut size: usize = blocks.iter().map(Block::size).sum();
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_key(|at| (blocks[*at].worth, *at));
    let (looks, rest) = order.split_at(order.iter().position(|at| blocks[*at].worth >= LOOK).unwrap_or(order.len()));
    let mut gone = HashSet::new();
    for part in [looks, rest] {
        for at in part {
            if size > budget {
                let was = blocks[*at].size();
                blocks[*at].shorten();
                size -= was - blocks[*at].size();
            }
        }
        for at in part {
            if size > budget {
                size -= blocks[*at].size();
                gone.insert(*at);
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

/// At most so many bytes: the beginning and the end, where results and errors stand.
fn cut_middle(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.len() <= most {
        return text.to_string();
    }
    let (head, tail) = ends(text, most * 3 / 5, most * 2 / 5);
    format!("{} […] {}", head.trim_end(), tail.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(n: i64, worth: u8, size: usize) -> Block {
        Block {
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
            worth,
            withheld: Vec::new(),
        }
    }

    #[test]
    fn what_is_worth_least_is_shortened_first_and_then_goes() {
        let mut all = vec![block(1, 20, 2000), block(2, 80, 2000), block(3, 20, 2000), block(4, 0, 10)];
        assert_eq!(fit(&mut all, 6100), 1, "a repeated read goes");
        assert!(all[0].size() < 600 && all[1].size() > 2000 && all[2].size() > 2000, "the oldest of the least is cut");
        let left = fit(&mut all, 2800);
        let kept: Vec<Source> = all.iter().map(|block| block.source).collect();
        assert_eq!((left, kept), (1, vec![Source::ToolUse(2), Source::ToolUse(3)]));
    }

    #[test]
    fn a_cut_text_keeps_its_beginning_and_its_end() {
        let cut = cut_middle(&format!("begin {} ende", "ä".repeat(500)), 100);
        assert!(cut.starts_with("begin") && cut.ends_with("ende") && cut.len() < 120, "{cut}");
    }
}
