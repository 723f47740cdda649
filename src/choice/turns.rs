//! A unit as a sequence of turns: what was asked, what was done, what was answered.

use crate::languages::in_english;
use crate::model::{Domain, PromptRow, PromptSource, Source, ToolUseRow, UnitStory};
use crate::statements::own_sentences;
use crate::statements::word_lists::{Words, holds};
use std::collections::BTreeMap;

/// A prompt, the work on it, and the message that closed it.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The prompt's number in its session; 0 for work before any prompt.
    pub number: i64,
    pub asked: Option<&'a PromptRow>,
    pub closing: Option<&'a PromptRow>,
    pub tools: Vec<&'a ToolUseRow>,
    /// Its prompt says that the work before it is wrong or wants it otherwise.
    pub refuses: bool,
    /// Tokens, and whether they are estimated.
    pub cost: (i64, bool),
}

/// How a user says that something is wrong.
const REFUSALS: Words = "still not |not working|n't work|not work|not correct|incorrect|still show|still get|is wrong|'s wrong|not right|revert|undo |instead| rather |maybe like|change it to| nope|not what i|still fail|still list|still see|still display";
/// Characters of a token, roughly, where no count is known.
const CHARACTERS: i64 = 4;

/// Splits a unit into turns. Calls of tools that the domain skips are left out, and so are files that it ignores.
pub fn turns<'a>(story: &'a UnitStory, domain: &Domain) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn> = Vec::new();
    let new = |number: i64, asked| Turn { number, asked, closing: None, tools: Vec::new(), refuses: false, cost: (0, true) };
    for prompt in &story.prompts {
        match prompt.source {
            PromptSource::User => turns.push(new(prompt.number, Some(prompt))),
            PromptSource::Agent => match turns.iter_mut().rev().find(|turn| turn.number == prompt.number) {
                Some(turn) => turn.closing = Some(prompt),
                None => turns.push(Turn { closing: Some(prompt), ..new(prompt.number, None) }),
            },
        }
    }
    let by_prompt: BTreeMap<i64, usize> = turns.iter().enumerate().filter_map(|(at, turn)| Some((turn.asked?.id, at))).collect();
    let ignored = |path: &str| domain.ignore.iter().any(|glob| fast_glob::glob_match(glob, path));
    for tool in &story.tools {
        if domain.skip_tools.contains(&tool.tool_name) || tool.path.as_deref().is_some_and(ignored) {
            continue;
        }
        let at = tool.prompt_id.and_then(|id| by_prompt.get(&id).copied());
        let at = at.unwrap_or_else(|| {
            if turns.is_empty() {
                turns.push(new(0, None));
            }
            turns.len() - 1
        });
        turns[at].tools.push(tool);
    }
    for turn in &mut turns {
        turn.refuses = refuses(turn.asked.map_or("", |asked| &asked.text));
        turn.cost = match story.costs.iter().find(|(number, _)| *number == turn.number) {
            Some((_, tokens)) => (*tokens, false),
            None => (estimate(turn), true),
        };
    }
    turns
}

/// Tokens by the length of everything stored of a turn: fewer than it really was, since long texts are stored cut.
fn estimate(turn: &Turn) -> i64 {
    let said = turn.asked.iter().chain(&turn.closing).map(|prompt| prompt.text.len());
    let used = turn.tools.iter().flat_map(|tool| [&tool.content, &tool.input, &tool.outcome]).flatten().map(String::len);
    said.chain(used).sum::<usize>() as i64 / CHARACTERS
}

fn refuses(prompt: &str) -> bool {
    own_sentences(prompt).iter().take(3).any(|sentence| holds(REFUSALS, &format!(" {} ", in_english(sentence).to_lowercase())))
}

impl Turn<'_> {
    /// The prompt and the closing message.
    pub fn said(&self) -> Vec<Source> {
        self.asked.iter().chain(&self.closing).map(|prompt| Source::Prompt(prompt.id)).collect()
    }

    /// Whether files were changed or a commit was made in it.
    pub fn changes(&self) -> bool {
        self.tools.iter().any(|tool| is_project_change(tool) || commit(tool).is_some())
    }
}

/// A file of the project: paths outside of it are stored absolute, or from the home folder on.
pub fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.starts_with("..")
}

/// A change of a file of the project that took place.
pub fn is_project_change(tool: &ToolUseRow) -> bool {
    tool.is_edit() && tool.succeeded != Some(false) && tool.path.as_deref().is_some_and(is_inside)
}

/// The commit that a tool use made: its id and subject.
pub fn commit(tool: &ToolUseRow) -> Option<(Option<&str>, Option<&str>)> {
    // One in a scratch repository is no commit of this project.
    let line = tool.content.as_deref().unwrap_or_default();
    let is_own = !holds("git init|mktemp|cd /tmp|-C /tmp", line);
    let commit = tool.metadata.get("commit").filter(|_| tool.succeeded != Some(false) && is_own)?;
    Some((commit["sha"].as_str(), commit["subject"].as_str()))
}
