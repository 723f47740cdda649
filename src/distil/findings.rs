//! One memory per change or finding, from a turn's selected statements and commits; and the form of a rule memory.

use super::score::{Class, ScoredStatements};
use super::statements::{
    StatementForm, Words, begins_with, begins_with_file, capitalized, has_word_of, headed, names_cause, word_count,
};
use super::superseded::by_work;
use super::turns::{Speaker, Turn, TurnFacts, UnitStatement, commit, content_words, is_project_change, overlap};
use super::turns::{by_first_word, conventional};
use crate::model::{Becomes, Domain, Draft, Finding, MemoryFile, MemoryKind, Provenance, Source, ToolUseRow};
use crate::text::{alike, cut, files_named, width};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Characters of a fact.
const FACT: usize = 400;
/// Bytes of title and facts together.
const BYTES: usize = 2400;
const SOURCES: usize = 24;
const FILES: usize = 40;

/// A memory of one thing that was changed, found or decided, or the summary of a unit.
#[derive(Clone, Debug)]
pub struct RuleMemory {
    /// Identifies it when the unit is distilled again.
    pub key: String,
    /// The finding, which the domain maps to a kind; `None` for a summary.
    pub finding: Option<Finding>,
    /// Kind of the task, in a summary.
    pub task_kind: Option<&'static str>,
    pub title: String,
    pub facts: Vec<String>,
    pub files: Vec<MemoryFile>,
    pub sources: Vec<Source>,
    pub provenance: Provenance,
    /// Indexes of its turns; it belongs to the last one.
    pub turns: Vec<usize>,
    pub content: Map<String, Value>,
}

impl RuleMemory {
    /// A memory without facts, but for the rest of a title that is too long.
    pub fn new(key: String, finding: Option<Finding>, title: &str, turns: Vec<usize>) -> RuleMemory {
        let whole = title.trim_end_matches(['.', ' ', ':', ',', '。', '：', '，', '；']);
        let (title, rest) = headed(whole);
        RuleMemory {
            key,
            finding,
            task_kind: None,
            facts: rest.into_iter().collect(),
            title,
            files: Vec::new(),
            sources: Vec::new(),
            provenance: Provenance::Agent,
            turns,
            content: Map::new(),
        }
    }

    pub fn is_summary(&self) -> bool {
        self.finding.is_none()
    }

    /// Whether the user said it.
    pub fn is_decided(&self) -> bool {
        matches!(self.finding, Some(Finding::Decision | Finding::Constraint | Finding::Reminder))
    }

    /// Adds a fact unless it repeats another or there is no room for it; returns whether it is there now.
    pub fn fact(&mut self, fact: &str) -> bool {
        let fact = cut(fact.trim(), FACT);
        let repeats = alike(&self.title, &fact) || self.facts.iter().any(|other| alike(other, &fact));
        let size: usize = self.title.len() + self.facts.iter().map(String::len).sum::<usize>();
        let fits = !fact.is_empty() && size + fact.len() <= BYTES;
        if fits && !repeats {
            self.facts.push(fact);
        }
        fits || repeats
    }

    /// Takes over a commit: its subject titles what the agent reported, and is a fact of what the user decided.
    pub fn commit(&mut self, commit: RuleMemory) {
        if self.is_decided() {
            self.fact(&commit.title);
        } else {
            let facts = std::mem::replace(&mut self.facts, commit.facts);
            let reported = std::mem::replace(&mut self.title, commit.title);
            self.finding = commit.finding.filter(|_| self.finding != Some(Finding::Fix)).or(self.finding);
            self.fact(&reported);
            for fact in facts {
                self.fact(&fact);
            }
        }
        self.content.extend(commit.content);
        self.files.extend(commit.files);
        self.sources.extend(commit.sources);
        // A decision keeps the time at which the user said it.
        if !self.is_decided() {
            self.turns.extend(commit.turns);
            self.turns.sort_unstable();
            self.turns.dedup();
        }
    }

    /// Makes the draft, in the words of a domain.
    pub fn draft(mut self, domain: &Domain, turns: &[Turn], tokens: Option<(i64, bool)>) -> Draft {
        let turn = self.turns.last().and_then(|at| turns.get(*at));
        let happened = turn.and_then(|turn| {
            let said = turn.closing.or(turn.asked).map(|prompt| prompt.received_at);
            said.into_iter().chain(turn.tools.last().map(|tool| tool.received_at)).max()
        });
        if !self.facts.is_empty() {
            self.content.insert("facts".into(), Value::from(std::mem::take(&mut self.facts)));
        }
        let Becomes { kind, kind_type, concepts } = match self.finding {
            Some(finding) => domain.becomes(finding),
            None => {
                let kind_type = self.task_kind.map(String::from);
                Becomes { kind: MemoryKind::Summary, kind_type, concepts: Vec::new() }
            }
        };
        self.sources.sort_unstable();
        self.sources.dedup();
        let mut files: Vec<MemoryFile> = Vec::new();
        for file in self.files {
            match files.iter().position(|known| known.path == file.path) {
                Some(at) => files[at].modified |= file.modified,
                None => files.push(file),
            }
        }
        files.truncate(FILES);
        Draft {
            key: Some(self.key),
            kind,
            kind_type,
            title: capitalized(&self.title),
            subtitle: None,
            body: None,
            content: self.content,
            concepts,
            files,
            prompt: turn.map(|turn| turn.number).filter(|number| *number > 0),
            sources: thinned(self.sources),
            provenance: self.provenance,
            at: happened.unwrap_or(0),
            tokens,
        }
    }
}

/// Keeps the first and the last of many sources.
fn thinned(sources: Vec<Source>) -> Vec<Source> {
    if sources.len() <= SOURCES {
        return sources;
    }
    let (head, tail) = (&sources[..SOURCES / 2], &sources[sources.len() - SOURCES / 2..]);
    [head, tail].concat()
}

/// First words that point at something said before.
const POINTING: &str = "it|it's|this|that|these|those|they|both|he|there|all|one|same|so|but|and|also|which|then";
/// Characters of a statement that is better a fact than a title.
const LONG: usize = 140;

/// Adds one memory per change or finding. A bare commit belongs to the memory of the work that it commits.
pub fn add(memories: &mut Vec<RuleMemory>, turns: &[Turn], scored: &ScoredStatements, selected: &[usize], domain: &Domain) {
    for finding in findings(turns, scored, selected, domain) {
        match memories.iter_mut().rev().find(|memory| is_committed_by(memory, &finding) || is_amended_by(memory, &finding)) {
            Some(work) => work.commit(finding),
            None => memories.push(finding),
        }
    }
    drop_bare_commits(memories);
    // A line in a changelog is a line about other work.
    let is_changelog = |path: &str| path.rsplit('/').next().unwrap_or(path).to_lowercase().starts_with("changelog");
    let says_more = |memory: &RuleMemory| memory.is_decided() || !memory.facts.is_empty() || memory.files.is_empty();
    memories.retain(|memory| says_more(memory) || !memory.files.iter().all(|file| is_changelog(&file.path)));
}

/// Facts from which a memory is about more than its first one.
const SEVERAL: usize = 3;

/// Gives the unit's title to the first memory of its work that has a detail as its title, unless a memory has it already.
/// The user's own request is no title of what the agent reports; a plan's is.
pub fn give_title(memories: &mut [RuleMemory], title: &str, turns: &[Turn], scored: &ScoredStatements) {
    let is_detail = |memory: &RuleMemory| begins_with_file(&memory.title) || memory.facts.len() >= SEVERAL;
    let is_work = |memory: &&mut RuleMemory| {
        let is_changed = memory.files.iter().any(|file| file.modified);
        !memory.is_decided() && !memory.is_summary() && !memory.content.contains_key("commit") && is_changed
    };
    // A title that is cut says less than a detail.
    if title.ends_with('…') || memories.iter().any(|memory| !memory.is_decided() && alike(&memory.title, title)) {
        return;
    }
    let is_plans = (0..turns.len()).filter_map(|at| scored.plan(at)).any(|plan| scored.statements[plan].text.ends_with(title));
    let is_request = || {
        let lower = title.to_lowercase();
        turns.iter().filter_map(|turn| turn.asked).any(|asked| asked.text.to_lowercase().contains(&lower))
    };
    // What another turn reports is no title of this work.
    let says = |turn: &usize| scored.statements[scored.of_turn(*turn)].iter().any(|one| alike(&one.text, title));
    let is_elsewhere = |work: &RuleMemory| !work.turns.iter().any(says) && (0..turns.len()).any(|turn| says(&turn));
    let work = memories.iter_mut().find(is_work).filter(|work| is_detail(work));
    if let Some(work) = work.filter(|work| is_plans || !is_request() && !is_elsewhere(work)) {
        let detail = std::mem::replace(&mut work.title, title.to_string());
        let facts = std::mem::take(&mut work.facts);
        for fact in std::iter::once(detail).chain(facts) {
            work.fact(&fact);
        }
    }
}

/// Takes out commits of which only the subject is known, where the unit has better or the subject is of a chore.
fn drop_bare_commits(memories: &mut Vec<RuleMemory>) {
    let is_bare = |memory: &RuleMemory| memory.facts.is_empty() && memory.key.starts_with("commit:");
    let is_chore = |memory: &RuleMemory| {
        let subject = memory.content.get("commit").and_then(|commit| commit["subject"].as_str()).unwrap_or(&memory.title);
        is_bare(memory) && begins_with(CHORES, &subject.to_lowercase())
    };
    memories.retain(|memory| !is_chore(memory));
    if memories.iter().any(|memory| !memory.is_decided() && !is_bare(memory)) {
        memories.retain(|memory| !is_bare(memory));
    }
}

/// Turns the memories of a unit into drafts of the domain's kinds, each with its share of the tokens.
pub fn drafts(memories: Vec<RuleMemory>, turns: &[Turn], domain: &Domain) -> Vec<Draft> {
    let shares = shares(turns, &memories);
    let drafts = memories.into_iter().zip(shares).map(|(memory, tokens)| memory.draft(domain, turns, tokens));
    // The store finds a memory again by its key: two of one key would be one.
    let mut keys = HashSet::new();
    drafts.filter(|draft| draft.key.as_ref().is_none_or(|key| keys.insert(key.clone()))).collect()
}

/// Whether a commit belongs to an earlier memory: "commit this".
fn is_committed_by(work: &RuleMemory, finding: &RuleMemory) -> bool {
    let is_commit = finding.key.starts_with("commit:");
    let is_bare = is_commit && finding.facts.is_empty();
    // A decision about something else is not what was committed.
    let is_about = !work.is_decided() || overlap(&content_words(&work.title), &content_words(&finding.title)) > 0.0;
    let is_open = is_about && !work.content.contains_key("commit") && work.turns <= finding.turns;
    // A turn that only commits, maybe with its line in the changelog, says once more what the work was.
    let only_commits = finding.files.iter().all(|file| is_document(&file.path));
    let commits_work = only_commits && work.files.iter().any(|file| file.modified);
    is_open && (is_bare && work.turns == finding.turns || commits_work && (is_bare || is_commit && !work.is_decided()))
}

/// Whether a commit has the subject of an earlier one of the unit: it was amended, or made again.
fn is_amended_by(work: &RuleMemory, finding: &RuleMemory) -> bool {
    let are_commits = [work, finding].iter().all(|memory| memory.content.contains_key("commit"));
    are_commits && !work.is_decided() && alike(&work.title, &finding.title)
}

/// Tokens spent on each memory: those of a turn are divided equally among its memories, so that no token is counted twice
/// (ADR/0021). A summary gets the turns that have no other memory.
fn shares(turns: &[Turn], memories: &[RuleMemory]) -> Vec<Option<(i64, bool)>> {
    let mut shares = vec![None; memories.len()];
    for (at, turn) in turns.iter().enumerate() {
        let of_turn = |summary: bool| -> Vec<usize> {
            let takes = |memory: &RuleMemory| memory.is_summary() == summary && memory.turns.contains(&at);
            (0..memories.len()).filter(|i| takes(&memories[*i])).collect()
        };
        let mut takers = of_turn(false);
        if takers.is_empty() {
            takers = of_turn(true);
        }
        let (cost, estimated) = turn.cost;
        for taker in &takers {
            let (sum, rough) = shares[*taker].unwrap_or((0, false));
            shares[*taker] = Some((sum + cost / takers.len() as i64, rough || estimated));
        }
    }
    shares
}

/// First words of a statement that says nothing without the one before it.
const FOLLOWING: Words = "this|that|these|those|they|it|its|both|with this|with that|in turn|one aside|side note|otherwise|instead|then|also|so|but|and|however|for that|from that point|from then on|at that point|after that|that way|because of this|here|there";

/// Memories of the chosen statements, in the order of their turns.
fn findings(turns: &[Turn], scored: &ScoredStatements, chosen: &[usize], domain: &Domain) -> Vec<RuleMemory> {
    let mut memories = Vec::new();
    // "This meant …" says nothing without the sentence before it.
    let stands = |i: &usize| {
        let said = &scored.statements[*i];
        let follows = *i > 0 && scored.statements[*i - 1].source == said.source && chosen.contains(&(*i - 1));
        follows || !begins_with(FOLLOWING, &said.text.to_lowercase())
    };
    for (at, turn) in turns.iter().enumerate() {
        let of_turn: Vec<usize> = chosen.iter().copied().filter(|i| scored.statements[*i].turn == at && stands(i)).collect();
        let commits = turn.tools.iter().copied().filter(|tool| commit(tool).is_some());
        let commits = commits.filter(|tool| !scored.undone_commits.contains(&tool.id));
        let holds = |tool: &&ToolUseRow| is_worth_telling(tool, at, &scored.facts);
        let commits: Vec<&ToolUseRow> = commits.filter(holds).collect();
        match commits.as_slice() {
            [] => memories.extend(memories_of(turns, scored, at, &of_turn, None, "", domain)),
            // What the message closes with belongs to the last commit; each commit has its own message.
            [earlier @ .., last] => {
                for made in earlier {
                    let own: Vec<usize> =
                        of_turn.iter().copied().filter(|i| scored.statements[*i].source == Source::ToolUse(made.id)).collect();
                    memories.extend(memories_of(turns, scored, at, &own, Some(made), "", domain));
                }
                let of_earlier = |i: &usize| earlier.iter().any(|made| scored.statements[*i].source == Source::ToolUse(made.id));
                let own: Vec<usize> = of_turn.iter().copied().filter(|i| !of_earlier(i)).collect();
                memories.extend(memories_of(turns, scored, at, &own, Some(last), "", domain));
            }
        }
    }
    memories
}

/// Characters from which one statement is worth a memory.
const ALONE: usize = 100;

/// First words of an errand for the user, and words of how things stand at the moment.
const ERRANDS: Words = "open |try |visit |restart |reload |go to |you can |let me |i'll |i haven't";
const MOMENT: Words = "is running|are running|is now running|still running|still watching|will report back|is now live|been merged into|been pushed|all fixes applied|deployed and tested|ready to use|you should now|you should see|you're seeing";

/// Whether a statement alone says only what is so at the moment, or what the user may do next.
fn is_of_the_moment(said: &UnitStatement) -> bool {
    let lower = &said.lower;
    said.speaker == Speaker::Agent && (begins_with(ERRANDS, lower) || has_word_of(MOMENT, lower))
}

/// Types of commits that later ones clear away, and of those of which the subject alone says too little.
const PASSING: Words = "debug|wip|tmp|temp|fixup!|squash!";
const CHORES: Words = "chore|docs|style|ci|test|build|start work|add todo|merge|bump|update changelog";

/// Whether a commit's subject still holds: later work has not taken out what it names, and it is no passing one.
fn is_worth_telling(tool: &ToolUseRow, turn: usize, facts: &[TurnFacts]) -> bool {
    let subject = commit(tool).and_then(|(_, subject)| subject).unwrap_or_default();
    !begins_with(PASSING, &subject.to_lowercase()) && by_work(subject, turn, facts).is_none()
}

/// The memory of a turn's statements, with the commit that they belong to, and more for what has no room in it.
fn memories_of(
    turns: &[Turn],
    scored: &ScoredStatements,
    at: usize,
    statements: &[usize],
    made: Option<&ToolUseRow>,
    part: &str,
    domain: &Domain,
) -> Vec<RuleMemory> {
    let turn = &turns[at];
    let subject = made.and_then(|tool| commit(tool)?.1).map(conventional).filter(|(_, subject)| !subject.is_empty());
    let lead = statements.iter().copied().max_by(|a, b| lead(scored, *a).total_cmp(&lead(scored, *b)));
    let finding = lead.map_or(Finding::Change, |lead| found(scored, turn, lead));
    let (title, finding) = match (subject, lead) {
        (Some((named, subject)), _) => (subject.to_string(), named.unwrap_or_else(|| kind_of_change(subject, turn, domain))),
        (None, Some(lead)) => (
            worded(scored, lead),
            if finding == Finding::Change { kind_of_change(&scored.statements[lead].text, turn, domain) } else { finding },
        ),
        (None, None) => return Vec::new(),
    };
    let key = match (made, turn.closing.or(turn.asked)) {
        (Some(tool), _) => format!("commit:t{}", tool.id),
        (None, Some(said)) => format!("thing:p{}{part}", said.id),
        (None, None) => return Vec::new(),
    };
    let mut memory = RuleMemory::new(key, Some(finding), &title, vec![at]);
    let mut left = Vec::new();
    for statement in statements.iter().copied().filter(|i| subject.is_some() || Some(*i) != lead) {
        // The first line of a commit's message is the title.
        if made.is_some() && scored.statements[statement].text.ends_with(&memory.title) {
            continue;
        }
        if !memory.fact(&worded(scored, statement)) {
            left.push(statement);
        }
    }
    if lead.is_some_and(|lead| scored.statements[lead].speaker == Speaker::Agent && is_own_choice(&scored.statements[lead].text))
        && made.is_none()
    {
        memory.finding = Some(Finding::Decision);
    }
    if let Some((sha, subject)) = made.and_then(commit) {
        let mut note = json!({});
        if let Some(sha) = sha {
            note["sha"] = Value::from(sha.chars().take(12).collect::<String>());
        }
        // The title has the subject, except for the type of a conventional commit.
        if let Some(subject) = subject.filter(|subject| !subject.ends_with(&memory.title)) {
            note["subject"] = Value::from(subject);
        }
        memory.content.insert("commit".into(), note);
    }
    let edits = made.map_or_else(|| project_changes(&turn.tools), |made| committed_changes(&turn.tools, made));
    memory.files =
        edits.iter().filter_map(|tool| Some(MemoryFile { path: tool.path.clone()?, modified: true, hash: None })).collect();
    memory.sources = turn.said();
    memory.sources.extend(statements.iter().map(|i| scored.statements[*i].source));
    memory.sources.extend(edits.iter().map(|tool| Source::ToolUse(tool.id)));
    memory.sources.extend(made.map(|tool| Source::ToolUse(tool.id)));
    let is_alone = made.is_none() && left.is_empty() && memory.facts.is_empty();
    // One short sentence that nobody acted on is hardly ever worth a memory of its own.
    let is_short = scored.facts[at].edits == 0 && domain.name == "coding" && width(&memory.title) < ALONE;
    let names_cause = || lead.is_some_and(|lead| names_cause(&scored.statements[lead].lower));
    let passes = || lead.is_some_and(|lead| is_of_the_moment(&scored.statements[lead]));
    if is_alone && (is_short || passes()) && !names_cause() {
        return Vec::new();
    }
    let mut memories = vec![memory];
    // What has no room in one memory is another thing.
    if !left.is_empty() {
        let of_commit = made.map(|tool| format!(":t{}", tool.id)).unwrap_or_default();
        memories.extend(memories_of(turns, scored, at, &left, None, &format!("{part}+{of_commit}"), domain));
    }
    memories
}

fn project_changes<'a>(tools: &[&'a ToolUseRow]) -> Vec<&'a ToolUseRow> {
    tools.iter().copied().filter(|tool| is_project_change(tool)).collect()
}

/// The edits of a turn that a commit holds: those since the commit before it, of the files that its command adds if it names
/// them. Where none is left, what the turn did before the commit.
fn committed_changes<'a>(tools: &[&'a ToolUseRow], made: &ToolUseRow) -> Vec<&'a ToolUseRow> {
    let end = tools.iter().position(|tool| tool.id == made.id).unwrap_or(tools.len());
    let begin = tools[..end].iter().rposition(|tool| commit(tool).is_some()).unwrap_or(0);
    let since = project_changes(&tools[begin..end]);
    let since = if since.is_empty() { project_changes(&tools[..end]) } else { since };
    let named = added_paths(made.content.as_deref().unwrap_or_default());
    let is_named = |tool: &&&ToolUseRow| {
        let path = tool.path.as_deref().unwrap_or_default();
        let is_below = |named: &str| path.strip_prefix(named).is_some_and(|rest| rest.starts_with('/'));
        // Paths of a command may be relative to a folder below the root.
        let is_end = |named: &str| path.strip_suffix(named).is_some_and(|rest| rest.ends_with('/'));
        named.iter().any(|named| path == *named || is_below(named) || is_end(named))
    };
    let of_these: Vec<&ToolUseRow> = since.iter().filter(is_named).copied().collect();
    if of_these.is_empty() { since } else { of_these }
}

/// The paths that a command adds before it commits: `git add a.rs docs && git commit`. None for `git add -A`, nor where a shell
/// completes them.
fn added_paths(line: &str) -> Vec<&str> {
    let added = line.split("git add ").skip(1).filter_map(|rest| rest.split(['&', ';', '|', '\n']).next());
    let paths = added.flat_map(str::split_whitespace).map(|path| path.trim_matches(['"', '\'']).trim_start_matches("./"));
    let named: Vec<&str> = paths.map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty()).collect();
    let is_open = |path: &&str| *path == "." || path.starts_with('-') || path.contains(['*', '$', '{', '`']);
    if named.iter().any(is_open) { Vec::new() } else { named }
}

/// Suitability of a statement as a title.
fn lead(scored: &ScoredStatements, at: usize) -> f32 {
    const DETAILS: Words = "line |lines |updated assertion|updated the assertion|updated test|updated the test|added test|added import|added the import|tests |test |import |imports |changelog|updated changelog|updated the changelog|readme|updated readme|removed unused|also ";
    let said = &scored.statements[at];
    let points = begins_with(POINTING, &said.text.to_lowercase());
    let change = scored.facts[said.turn].edits > 0 && scored.lexicon.count(&said.lower).has(Class::Change);
    let long = said.text.chars().count() > LONG;
    let is_detail = begins_with(DETAILS, &said.lower);
    // A row of a table says little without its table, and the name of a file little of the work.
    let listed = said.form == StatementForm::Row || begins_with_file(&said.text);
    scored.scores[at] - if listed { 0.4 } else { 0.0 } + if change { 0.2 } else { 0.0 }
        - if points || is_detail { 0.3 } else { 0.0 }
        - if long { 0.3 } else { 0.0 }
}

/// Finding that a statement reports.
fn found(scored: &ScoredStatements, turn: &Turn, at: usize) -> Finding {
    let said = &scored.statements[at];
    let words = scored.lexicon.count(&said.lower);
    let edits = turn.tools.iter().any(|tool| is_project_change(tool));
    let is_fixed = worded(scored, at).starts_with("Fixed");
    let cause = is_fixed || said.under.to_lowercase().contains("cause") || words.has(Class::Cause) && words.has(Class::Problem);
    match (edits, cause) {
        (true, true) => Finding::Fix,
        (true, false) if words.has(Class::Limit) && !words.has(Class::Change) => Finding::Limit,
        (true, false) => Finding::Change,
        // Who only read may quote what a page wants of its reader, so nothing of it is filed as a trap or a remedy.
        (false, true) => Finding::Cause,
        (false, false) => Finding::Discovery,
    }
}

/// Whether the agent tells of its own choice: "I chose X because Y".
fn is_own_choice(text: &str) -> bool {
    const CHOSE: &str = "i chose|i've chosen|i went with|i opted for|i decided|i picked|i settled on";
    begins_with(CHOSE, &text.to_lowercase())
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md") || path.ends_with(".txt") || path.starts_with("docs/")
}

/// The kind of a change by its first words. Where code is the work, documents are neither fixed nor given abilities.
fn kind_of_change(text: &str, turn: &Turn, domain: &Domain) -> Finding {
    let mut paths = turn.tools.iter().filter(|tool| is_project_change(tool)).filter_map(|tool| tool.path.as_deref()).peekable();
    match domain.name == "coding" && paths.peek().is_some() && paths.all(is_document) {
        true => Finding::Change,
        false => by_first_word(text),
    }
}

/// Headings without which an item says something else: `Removed:`, `Kept as "checkpoints":`.
const TURNING: Words = "alternatives|options rejected|considered|removed|deleted|dropped|kept|unchanged|not changed|reverted|before|old|previously|not done|skipped|rejected|deprecated|limitations|limitation|known limitations|known issues|out of scope";
/// Headings over the description of a defect.
const DEFECTS: Words = "cause|problem|issue|bug|what was wrong|why it|before|symptom|current behavior|current behaviour";
/// First words of a description of a defect.
const BEGINS: Words = "root cause|the root cause|the bug|the issue|the problem|problem|issue|bug|before|the old |cause|previously|critical:|high:|medium:|high/medium|critical-|high-|medium-";
/// Words of a remark, a guess or a check: no description of a defect.
const NO_DEFECT: Words = " you |possibly|likely|maybe|might|unnecessary|unreachable|not needed|accurate|confirmed|checked|explains|was considered|were considered";
/// First words of what was done about it.
const ORDERS: Words = "add|adds|guard|handle|use|make|ensure|validate|document|allow|without|no|only|but";
/// Words of one who reports what is so now.
const REPORTS: Words =
    "fixed|fix |fix:|now |no longer|added|removed|replaced|changed|instead|updated|moved|implemented|i've|created|introduced";

/// The text of a statement as it is remembered.
pub fn worded(scored: &ScoredStatements, at: usize) -> String {
    let said = &scored.statements[at];
    let text = compact(&said.text);
    if is_fixed_defect(scored, said) {
        return format!("Fixed: {text}");
    }
    let above = said.under.rsplit(" > ").next().unwrap_or_default().trim_start_matches("File: ");
    // An item below the name of a file is about that file.
    if word_count(above) <= NAME_OF_FILE && !files_named(above).is_empty() && files_named(&text).is_empty() {
        return format!("{above}: {text}");
    }
    let heading = above.to_lowercase();
    let heading = heading.as_str();
    match heading.chars().count() < 40 && begins_with(TURNING, heading) && !said.text.to_lowercase().contains(heading) {
        true => format!("{}: {text}", upper_first(heading)),
        false => text,
    }
}

/// Maximum words of a heading that is the name of a file.
const NAME_OF_FILE: usize = 6;

/// First words that say nothing of the matter.
const LEADS: Words = "yes — |yep — |done — |right, |yes, |yep, |now |also |i've |i have |so |and |note: |done. |root cause: |summary: |result: |then ";

/// A statement without first words that say nothing, and without numbers of lines, which move.
fn compact(text: &str) -> String {
    let mut rest = text.trim();
    for lead in LEADS.split('|') {
        if rest.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead)) {
            rest = rest[lead.len()..].trim_start();
        }
    }
    let mut text = rest.trim_end_matches([':', '：']).to_string();
    for open in [" (line ", " (lines ", " (L"] {
        if let Some(from) = text.find(open)
            && let Some(to) = text[from..].find(')')
            && text[from + open.len()..from + to].chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '–' | ',' | ' '))
        {
            text.replace_range(from..=from + to, "");
        }
    }
    capitalized(&text)
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Whether a statement describes a defect on which the unit then worked: what is said in the past tense, or below a
/// heading about a problem, where edits of its turn or of a later one have its names or words.
fn is_fixed_defect(scored: &ScoredStatements, said: &UnitStatement) -> bool {
    let lower = said.text.to_lowercase();
    // A plan says what shall be, also in these words.
    if said.speaker == Speaker::Plan
        || has_word_of(REPORTS, &lower)
        || has_word_of(NO_DEFECT, &lower)
        || begins_with(ORDERS, &lower)
        || !scored.lexicon.count(&said.lower).has(Class::Problem)
        || said.text.ends_with(['?', '？'])
    {
        return false;
    }
    let past = [" was ", " were ", " wasn't ", " weren't ", " didn't ", " lacked "];
    let describes = has_word_of(DEFECTS, &said.under.to_lowercase())
        || begins_with(BEGINS, &lower)
        || begins_with("the|a|an|our", &lower) && past.iter().any(|word| lower.contains(word));
    describes
        && scored.facts[said.turn..].iter().any(|context| {
            let known = said.words.iter().filter(|word| context.edited.contains(*word)).count();
            context.edits > 0 && known * 4 >= said.words.len()
        })
}

#[cfg(test)]
mod tests {
    use super::super::testing::unit;
    use super::*;
    use crate::domains;
    use std::collections::HashSet;

    #[test]
    fn what_has_no_room_beside_two_commits_of_a_turn_is_kept_for_each() {
        // Thirty items that share no words, of a hundred characters each.
        let long = |name: &str| -> String {
            let word = |at: usize| format!("{name}{}", char::from(b'a' + (at % 26) as u8).to_string().repeat(3 + at / 26));
            let item = |n: usize| {
                let words: Vec<String> = (0..9).map(|w| word(n * 9 + w)).collect();
                format!("- `{}_{}` now writes {}\n", words[0], words[1], words[2..].join(" "))
            };
            (0..30).map(item).collect()
        };
        let commit = |name: &str| format!("git commit -m 'Write {name} whole\n\n{}'", long(name));
        let (first, second) = (commit("header"), commit("footer"));
        let mut story = unit(&[(
            "Write the header and the footer whole",
            &[
                ("edit", "src/cache.rs", true),
                ("command", &first, true),
                ("edit", "src/cache.rs", true),
                ("command", &second, true),
            ],
            "Both are written whole.",
        )]);
        for tool in story.tools.iter_mut().filter(|tool| tool.path.is_none()) {
            tool.metadata = serde_json::json!({"commit": {"sha": format!("{:07x}", tool.id), "subject": "Write it whole"}});
        }
        let drafts =
            super::super::distil_unit(&story, &domains::of(None, None), &super::super::ScoreWeights::fitted(), None).drafts;
        let keys: Vec<&String> = drafts.iter().filter_map(|draft| draft.key.as_ref()).collect();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "{keys:?}");
        assert_eq!(keys.iter().filter(|key| key.contains('+')).count(), 2, "{keys:?}");
    }
    #[test]
    fn a_commit_of_the_next_turn_heads_the_memory_of_the_work_that_it_commits() {
        let mut story = unit(&[
            (
                "Cache the parsed header",
                &[("edit", "src/cache.rs", true), ("edit", "src/header.rs", true)],
                "- `src/cache.rs` — Added `HeaderCache`, which keeps the parsed header until the file's time changes\n\
                 - `src/header.rs` — `parse_header` now asks the cache first and stores what it parsed",
            ),
            (
                "commit it",
                &[
                    ("edit", "CHANGELOG.md", true),
                    ("command", "git commit -m 'Cache the parsed header\n\nParsing took 40 ms of each start.'", true),
                ],
                "Committed.",
            ),
        ]);
        let made = story.tools.iter_mut().find(|tool| tool.path.is_none()).expect("a commit");
        made.metadata = serde_json::json!({"commit": {"sha": "4f2a9c1", "subject": "Cache the parsed header"}});
        let drafts =
            super::super::distil_unit(&story, &domains::of(None, None), &super::super::ScoreWeights::fitted(), None).drafts;
        let headed: Vec<_> = drafts.iter().filter(|draft| draft.title == "Cache the parsed header").collect();
        assert_eq!((headed.len(), drafts.len()), (1, 1), "{drafts:#?}");
        assert!(headed[0].content["facts"].to_string().contains("HeaderCache"), "{:?}", headed[0].content);
        assert_eq!(headed[0].content["commit"]["sha"], "4f2a9c1");
    }

    #[test]
    fn a_commit_has_the_edits_since_the_commit_before_it_of_the_files_that_it_adds() {
        let mut story = unit(&[(
            "Cache the header, then the footer",
            &[
                ("edit", "src/header.rs", true),
                ("command", "git add -A && git commit -m 'Cache the header'", true),
                ("edit", "src/footer.rs", true),
                ("edit", "scratch/notes.txt", true),
                ("command", "cd src && git add footer.rs && git commit -m 'Cache the footer'", true),
                ("command", "git commit --allow-empty -m 'Release it'", true),
                ("edit", "src/later.rs", true),
            ],
            "Both are cached.",
        )]);
        for tool in story.tools.iter_mut().filter(|tool| tool.path.is_none()) {
            tool.metadata = serde_json::json!({"commit": {"sha": format!("{:07x}", tool.id), "subject": "x"}});
        }
        let turns = super::super::turns::turns(&story, &domains::of(None, None));
        let tools = &turns[0].tools;
        let held = |made: &&ToolUseRow| -> Vec<String> {
            committed_changes(tools, made).iter().filter_map(|tool| tool.path.clone()).collect()
        };
        let of_commits: Vec<Vec<String>> = tools.iter().filter(|tool| commit(tool).is_some()).map(held).collect();
        let all = ["src/header.rs", "src/footer.rs", "scratch/notes.txt"].map(String::from);
        // Where no edit lies between two commits, what came before.
        assert_eq!(of_commits, [vec!["src/header.rs".to_string()], vec!["src/footer.rs".into()], all.to_vec()]);
        let none: [&str; 0] = [];
        assert_eq!(added_paths("git add -A && git commit"), none);
        assert_eq!(added_paths("git add src/*.rs docs && git commit"), none);
        assert_eq!(added_paths("git add ./docs/ 'a b.md'; git add c.rs\ngit commit"), ["docs", "a", "b.md", "c.rs"]);
    }

    #[test]
    fn only_a_defect_that_was_worked_on_is_called_fixed() {
        let answer = "Medium: `HeaderCache` can return a missing header of the file.\n\nThe `HeaderCache` was being read while the header was missing from the file.\n\n\
                      Add missing `HeaderCache` tests for the file. The `HeaderCache` was unnecessary, so the error is gone. \
                      You were right that the `HeaderCache` was missing from the file.";
        let mut story = unit(&[("Read the header after the file", &[("edit", "src/cache.rs", true)], answer)]);
        story.tools[0].input = Some("+let cache = HeaderCache::of(file, header);".into());
        let turns = super::super::turns::turns(&story, &domains::of(None, None));
        let scored = ScoredStatements::new(&turns, &super::super::ScoreWeights::fitted());
        let of_agent = (0..scored.statements.len()).filter(|at| scored.statements[*at].speaker == Speaker::Agent);
        let fixed: Vec<bool> = of_agent.map(|at| worded(&scored, at).starts_with("Fixed: ")).collect();
        assert_eq!(fixed, [true, true, false, false, false], "{answer}");
    }

    #[test]
    fn a_heading_goes_before_its_items_only_if_it_is_a_files_name() {
        let answer = "Added a section to `notes/context.md` that covers these points:\n\
                      - The cache keeps the header of each file until its time changes\n\n\
                      **`src/cache.rs`**:\n- The cache keeps the footer as well until it is written";
        let story = unit(&[("Cache the header", &[("edit", "src/cache.rs", true)], answer)]);
        let turns = super::super::turns::turns(&story, &domains::of(None, None));
        let scored = ScoredStatements::new(&turns, &super::super::ScoreWeights::fitted());
        let all: Vec<String> = (0..scored.statements.len()).map(|at| worded(&scored, at)).collect();
        assert!(all.contains(&"The cache keeps the header of each file until its time changes".into()), "{all:#?}");
        assert!(all.iter().any(|text| text.starts_with("`src/cache.rs`: The cache keeps the footer")), "{all:#?}");
    }

    #[test]
    fn a_line_in_a_changelog_is_no_memory() {
        let drawn = |path: &str| {
            let story = unit(&[(
                "Add a line for the cache",
                &[("edit", path, true)],
                "Added the line about the header cache to the list of changes.",
            )]);
            super::super::distil_unit(&story, &domains::of(None, None), &super::super::ScoreWeights::fitted(), None)
                .drafts
                .iter()
                .filter(|draft| draft.kind == MemoryKind::Observation)
                .count()
        };
        assert_eq!((drawn("src/changes.rs"), drawn("CHANGELOG.md")), (1, 0));
    }

    #[test]
    fn a_memory_of_several_details_has_the_units_title() {
        let details = ["`src/a.rs` — Added `first_part` for the parser", "`src/b.rs` — Added `second_part` for the writer"];
        let work = |title: &str, facts: &[&str]| {
            let mut memory = RuleMemory::new("thing:p2".into(), Some(Finding::Change), title, vec![0]);
            assert!(facts.iter().all(|fact| memory.fact(fact)));
            memory.files = vec![MemoryFile { path: "src/a.rs".into(), modified: true, hash: None }];
            memory
        };
        let titles = |mut memories: Vec<RuleMemory>, title: &str| {
            let story = unit(&[("Make the parser its own file", &[("edit", "src/a.rs", true)], "Done.")]);
            let turns = super::super::turns::turns(&story, &domains::of(None, None));
            let scored = ScoredStatements::new(&turns, &super::super::ScoreWeights::fitted());
            give_title(&mut memories, title, &turns, &scored);
            memories.into_iter().map(|memory| (memory.title, memory.facts)).collect::<Vec<_>>()
        };
        let of_unit = "Split the parser from the writer";
        assert_eq!(
            titles(vec![work(details[0], &details[1..])], of_unit),
            [(of_unit.into(), details.map(String::from).to_vec())]
        );
        // A title that is cut, that another memory has, or that is the user's request is not given.
        assert_eq!(titles(vec![work(details[0], &[])], "Make the parser its own file")[0].0, details[0]);
        assert_eq!(titles(vec![work(details[0], &[])], "Split the parser from…")[0].0, details[0]);
        assert_eq!(titles(vec![work(details[0], &[]), work(of_unit, &[])], of_unit)[0].0, details[0]);
    }

    #[test]
    fn what_is_so_only_at_the_moment_is_no_memory_by_itself() {
        let drawn = |answer: &str| {
            let story = unit(&[("Quote the fields of the exporter", &[("edit", "src/export.rs", true)], answer)]);
            let drafts = super::super::distil_unit(&story, &domains::of(None, None), &super::super::ScoreWeights::fitted(), None);
            drafts.drafts.into_iter().filter(|draft| draft.kind == MemoryKind::Observation).count()
        };
        assert_eq!(drawn("Added quotes around fields with commas in `src/export.rs`."), 1);
        assert_eq!(drawn("The server is running with all fixes applied in `src/export.rs`."), 0);
        assert_eq!(drawn("Open `http://localhost:8080/export` and you should see the fields of `src/export.rs`."), 0);
    }

    #[test]
    fn a_commit_that_is_made_again_is_one_memory_with_the_last_id() {
        let made = |sha: &str, fact: &str, turn: usize| {
            let mut memory = RuleMemory::new(format!("commit:{sha}"), Some(Finding::Change), "Cache the header", vec![turn]);
            memory.fact(fact);
            memory.content.insert("commit".into(), json!({"sha": sha}));
            memory
        };
        let (mut first, second) =
            (made("4f2a9c1", "`cache.rs` keeps the header", 0), made("77b01de", "`cache.rs` is bounded now", 1));
        assert!(is_amended_by(&first, &second));
        first.commit(second);
        assert_eq!(first.facts, ["`cache.rs` is bounded now", "`cache.rs` keeps the header"]);
        assert_eq!((&first.content["commit"]["sha"], first.turns), (&json!("77b01de"), vec![0, 1]));
        // A decision keeps the time at which the user said it.
        let mut decided = RuleMemory::new("decision:p1:0".into(), Some(Finding::Decision), "Never cache the body", vec![0]);
        decided.commit(made("4f2a9c1", "", 1));
        assert_eq!(decided.turns, [0]);
    }
}
