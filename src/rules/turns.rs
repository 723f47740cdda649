//! A unit as a sequence of turns: what was asked, what was done, what was answered.

use super::cues::{Words, holds};
use super::left::split_left;
use super::own_words::own_sentences;
use super::prose::Prose;
use super::retraction::{overtaken, retracted};
use super::said::reports;
use crate::model::{Domain, Kind, MemoryFile, PromptRow, PromptSource, Source, ToolUseRow, UnitStory};
use std::collections::BTreeMap;

/// A prompt, the work on it, and the message that closed it.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The prompt's number in its session; 0 for work before any prompt.
    pub number: i64,
    pub asked: Option<&'a PromptRow>,
    pub closing: Option<&'a PromptRow>,
    pub prose: Prose,
    pub tools: Vec<&'a ToolUseRow>,
    /// What its message takes back, in words.
    pub takes_back: Vec<Vec<String>>,
    /// Its prompt says that what was done before it does not do, or is to be otherwise.
    pub refuses: bool,
    /// Tokens, and whether they are an estimate.
    pub cost: (i64, bool),
}

/// How a person says that something does not do.
const REFUSALS: Words = "still not |not working|n't work|not work|not correct|incorrect|still show|still get|is wrong|'s wrong|not right|revert|undo |instead| rather |maybe like|change it to| nope|not what i|still fail|still list|still see|still display";
/// Characters of a token, roughly, where nobody counted.
const CHARACTERS: i64 = 4;

/// Takes a unit apart. Calls of tools that the domain passes over are left out, and so are files that it ignores.
pub fn turns<'a>(story: &'a UnitStory, domain: &Domain) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn> = Vec::new();
    let new = |number: i64, asked| Turn {
        number,
        asked,
        closing: None,
        prose: Prose::default(),
        tools: Vec::new(),
        takes_back: Vec::new(),
        refuses: false,
        cost: (0, true),
    };
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
        let closing = turn.closing.map_or("", |closing| &closing.text);
        turn.refuses = refuses(turn.asked.map_or("", |asked| &asked.text));
        // What is left to do is told as that, and as nothing else.
        turn.prose = match split_left(closing) {
            Some((before, _)) => Prose::of(&before),
            None => Prose::of(closing),
        };
        turn.takes_back = retracted(&turn.prose);
        turn.cost = match story.costs.iter().find(|(number, _)| *number == turn.number) {
            Some((_, tokens)) => (*tokens, false),
            None => (estimate(turn), true),
        };
    }
    turns
}

/// Tokens by the length of all that is stored of a turn: less than it really was, since long texts are stored cut.
fn estimate(turn: &Turn) -> i64 {
    let said = turn.asked.iter().chain(&turn.closing).map(|prompt| prompt.text.len());
    let used = turn.tools.iter().flat_map(|tool| [&tool.content, &tool.input, &tool.outcome]).flatten().map(String::len);
    said.chain(used).sum::<usize>() as i64 / CHARACTERS
}

fn refuses(prompt: &str) -> bool {
    own_sentences(prompt).iter().take(3).any(|sentence| holds(REFUSALS, &format!(" {} ", sentence.to_lowercase())))
}

impl Turn<'_> {
    /// What its memories are drawn from: the question and the answer.
    pub fn said(&self) -> Vec<Source> {
        self.asked.iter().chain(&self.closing).map(|prompt| Source::Prompt(prompt.id)).collect()
    }

    /// Whether files were changed or a commit was made in it.
    pub fn changes(&self) -> bool {
        self.tools.iter().any(|tool| is_project_change(tool) || commit(tool).is_some())
    }

    /// Tool uses by which something was looked at.
    pub fn looks(&self) -> impl Iterator<Item = &&ToolUseRow> {
        self.tools.iter().filter(|tool| !super::failures::is_change(tool) && tool.succeeded != Some(false))
    }

    /// Files that were read and not changed, in order.
    pub fn files_read(&self, most: usize) -> Vec<MemoryFile> {
        let mut files: Vec<MemoryFile> = Vec::new();
        for tool in self.tools.iter().filter(|tool| tool.kind == Kind::Read && tool.succeeded != Some(false)) {
            if let Some(path) = tool.path.as_ref().filter(|path| is_inside(path) && files.iter().all(|file| file.path != **path))
            {
                files.push(MemoryFile { path: path.clone(), modified: false, hash: None });
            }
        }
        files.truncate(most);
        files
    }
}

/// A file of the project: paths outside of it are stored absolute, or from the home folder on.
pub fn is_inside(path: &str) -> bool {
    !path.starts_with(['/', '~']) && !path.starts_with("..")
}

/// A change of a file of the project.
pub fn is_project_change(tool: &ToolUseRow) -> bool {
    super::failures::is_change(tool) && tool.path.as_deref().is_some_and(is_inside)
}

/// The commit that a tool use made: its id and subject.
pub fn commit(tool: &ToolUseRow) -> Option<(Option<&str>, Option<&str>)> {
    // One in a scratch repository is no commit of this project.
    let line = tool.content.as_deref().unwrap_or_default();
    let is_own = !holds("git init|mktemp|cd /tmp|-C /tmp", line);
    let commit = tool.metadata.get("commit").filter(|_| tool.succeeded != Some(false) && is_own)?;
    Some((commit["sha"].as_str(), commit["subject"].as_str()))
}

/// What was reported as done in a turn, unless the next prompt refuses it or a later message takes it back.
pub fn result<'a>(turns: &'a [Turn], at: usize) -> Option<&'a str> {
    let refused = turns.get(at + 1).is_some_and(|next| next.refuses);
    let said = turns[at].prose.done().filter(|said| reports(said) && !refused)?;
    (!overtaken(said, later(&turns[at + 1..]))).then_some(said)
}

/// What later turns take back.
pub fn later<'a>(turns: &'a [Turn]) -> impl Iterator<Item = &'a Vec<String>> {
    turns.iter().flat_map(|turn| &turn.takes_back)
}
