//! Selects the context of a session start, and a session's state after compaction or `/clear`.

use super::ranked::is_topic;
use super::stale::{is_gone, not_committed, remove_overtaken, stale};
use crate::distil::statements::is_fragment;
use crate::distil::{commands, open_ends, user_decisions};
use crate::files;
use crate::files::{canonical, small_text};
use crate::model::{
    Annotations, Author, Check, Failing, MemoryKind, MemoryRow, Millis, Platform, PromptKind, PromptRow, PromptSource,
    Provenance, Recalled, SessionOverview, SessionRow, SessionState, SessionStatus, SettledHead, ToolUseRow, Trust, TurnOverview,
    UnitOverview,
};
use crate::project::git::{Repository, state_at};
use crate::project::worktree_root;
use crate::prompt_injection::looks_like_prompt_injection;
use crate::rank::{self, stem, terms};
use crate::store::candidates::TIMELINE;
use crate::store::{Store, is_broken};
use crate::text::files_named;
use anyhow::Result;
use std::cell::Cell;
use std::collections::HashSet;
use std::path::Path;

/// Number of newest sessions, and of sessions of the branch, to read.
const SESSIONS: usize = 8;
const OF_BRANCH: usize = 3;
/// Maximum sessions in a trunk's timeline. A branch with a topic may be older.
const ON_TRUNK: usize = 60;
/// Maximum units per session.
const UNITS: usize = 5;
/// Maximum sessions that are at work now.
const ACTIVE: usize = 2;
/// Maximum pinned memories; maximum decisions and lessons, without those that a person wrote and with them; and the number of
/// the newest to look at.
const PINNED: usize = 12;
const SETTLED: usize = 3;
const MOST_SETTLED: usize = 6;
/// Maximum decisions and lessons of the team, in addition to those that contradict one of the user's own, and the
/// number of the newest to look at.
const OF_TEAM: usize = 3;
const NEWEST_OF_TEAM: usize = 200;
const NEWEST: usize = 60;
/// Maximum open ends on a branch with a topic, and on a trunk.
const OPEN: usize = 3;
const OPEN_ON_TRUNK: usize = 2;
/// Maximum lessons on calls that fail again and again; in how many of the newest sessions each must have failed, and the
/// number of failures to look at in each.
const MISTAKES: usize = 2;
const REPEATED: usize = 2;
const FAILED: usize = 20;
/// Maximum failing checks, and how often each must have run.
const CHECKS: usize = 2;
const RAN: usize = 2;

/// The session that starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionContext<'a> {
    /// The session itself, which is excluded.
    pub own: Option<i64>,
    /// The agent that starts, if it is known.
    pub agent: Option<Platform>,
    pub branch: Option<&'a str>,
    /// Root of the worktree, for checking files.
    pub root: Option<&'a Path>,
    /// The user's home, for the agents' own memory files.
    pub home: Option<&'a Path>,
}

/// Reads the result in parts; a part on a damaged page counts as empty.
#[derive(Default)]
struct ReadableParts {
    is_damaged: Cell<bool>,
}

impl ReadableParts {
    fn read<T: Default>(&self, part: Result<T>) -> Result<T> {
        match part {
            Err(error) if is_broken(&error) => {
                self.is_damaged.set(true);
                Ok(T::default())
            }
            part => part,
        }
    }
}

/// Gathers memories for a session start.
pub fn at_start(store: &Store, project: i64, here: SessionContext, now: Millis) -> Result<Recalled> {
    let parts = ReadableParts::default();
    let limit = if here.branch.is_some_and(rank::is_trunk) { ON_TRUNK } else { TIMELINE };
    let all = parts.read(store.sessions_in_time(project, here.own, limit))?;
    let on_topic_branch = here.branch.is_some_and(|branch| is_topic(branch, &all));
    let Recent { mut active, mut last, own_units } = parts.read(recent(store, project, here, &all, on_topic_branch, now))?;
    if let Some(last) = &mut last {
        last.turns = turns(&parts.read(store.last_worked_turn(last.session.id, project))?);
    }
    // The user may have taken back all its work.
    last = last.filter(|last| !last.turns.is_empty() || last.units.iter().any(|overview| overview.unit.tool_uses > 0));
    let mut not_committed = match &last {
        Some(last) => parts.read(store.edited_since_commit(last.session.id, project))?,
        None => Vec::new(),
    };
    let mut open = parts.read(store.open_ends(Some(project), here.branch, NEWEST))?;
    retain_not_committed(last.as_ref(), &mut not_committed, &mut open, here.root);
    active.retain(|session| is_on(session_branch(&session.session), here.branch) || shares_file(session, &not_committed));
    active.truncate(ACTIVE);

    let memory_files = MemoryFileLines::read(here.root, here.home);
    let is_new = |memory: &MemoryRow| !memory_files.say(&memory.title);
    let pinned = parts.read(store.pinned_memories(project, PINNED))?;

    let last_units: Vec<i64> = last.iter().flat_map(|last| &last.units).map(|overview| overview.unit.id).collect();
    let may_hold = |head: &SettledHead| {
        let of_own_unit = head.unit.is_some_and(|unit| {
            head.made_by.trust() == Trust::Agent && last_units.contains(&unit) || on_topic_branch && own_units.contains(&unit)
        });
        head.is_about_files || of_own_unit || may_hold_everywhere(head)
    };
    let mut heads = parts.read(store.newest_settled(project, false, NEWEST, &not_committed))?;
    let newest: Vec<i64> = all.iter().take(SESSIONS).map(|(id, _)| *id).collect();
    let mut mistakes = parts.read(repeated_mistakes(store, &heads, &newest))?;
    mistakes.retain(|lesson| !lesson.pinned && is_new(lesson) && !looks_like_prompt_injection(&lesson.title));
    heads.retain(may_hold);
    let mut decisions = parts.read(store.memories_by_rows(&ids(&heads)))?;
    let is_in_play = |memory: &MemoryRow| memory.files.iter().any(|file| not_committed.contains(&file.path));
    let holds_here = |memory: &MemoryRow| {
        let of_branch = on_topic_branch && memory.unit.is_some_and(|unit| own_units.contains(&unit));
        // The agent noted it, or a model found it worth recording, in the work that goes on here.
        let of_last = memory.trust() == Trust::Agent && memory.unit.is_some_and(|unit| last_units.contains(&unit));
        // On a trunk, an order is done with its task.
        let of_files = is_in_play(memory) && (on_topic_branch || lasts(memory) || memory.title.starts_with(CHOSEN));
        let holds = || holds_everywhere(memory) || (of_last || of_branch || of_files) && !settles_nothing(memory);
        let is_whole = || memory.by_hand || !is_fragment(&memory.title);
        !memory.pinned && is_new(memory) && is_whole() && holds()
    };
    decisions.retain(holds_here);
    parts.read(remove_overtaken(store, project, &mut decisions))?;
    // Those about files in play come first, each kind newest first.
    decisions.sort_by_key(|memory| !is_in_play(memory));
    // What a person wrote is always given.
    let mut others = 0;
    decisions.retain(|memory| {
        others += usize::from(!memory.by_hand);
        memory.by_hand || others <= SETTLED
    });
    decisions.truncate(MOST_SETTLED);
    let of_team = parts.read(store.newest_settled(project, true, NEWEST_OF_TEAM, &[]))?;
    let mut of_team = parts.read(store.memories_by_rows(&ids(&of_team)))?;
    of_team.retain(|memory| !memory.is_of_stranger() && holds_here(memory) && !looks_like_prompt_injection(&memory.title));

    open.retain(|end| !end.is_of_team() && !end.pinned && is_new(end) && !looks_like_prompt_injection(&end.title));
    // "Again, this is not correct": of what, nobody knows any more.
    open.retain(|end| open_ends::complaint(&end.title).is_none_or(|said| !rank::subject(said).is_empty()));
    // On a trunk, an older open end is hardly what comes next.
    let since = last.as_ref().map_or(0, |last| last.session.started_at);
    // Next steps of an older session of a branch may have been taken.
    let may_last = |end: &MemoryRow| on_topic_branch && (end.provenance != Provenance::Agent || open_ends::is_plan(&end.title));
    open.retain(|end| end.created_at >= since || may_last(end));
    open.truncate(if on_topic_branch { OPEN } else { OPEN_ON_TRUNK });
    let contradicted_by = rank::contradicted(&[&pinned[..], &decisions[..], &of_team[..]].concat());
    let decisions = rank::side_by_side(decisions, &contradicted_by);
    let decisions = rank::with_team(decisions, of_team, &contradicted_by, OF_TEAM);
    let shown = pinned.iter().chain(&decisions);
    let stale = here.root.map(|root| parts.read(stale(store, project, root, shown))).transpose()?.unwrap_or_default();
    // What a person pinned is theirs to unpin.
    let holds = |memory: &MemoryRow| !is_gone(memory, &stale);
    let decisions = decisions.into_iter().filter(holds).collect();
    let annotations = Annotations { contradicted_by, stale };
    let is_newer = |last: &SessionOverview| {
        let before = all.iter().take_while(|(id, _)| *id != last.session.id);
        before.filter_map(|(_, branch)| branch.as_deref()).any(|branch| here.branch.is_some_and(|here| here != branch))
    };
    let others_are_newer = last.as_ref().is_some_and(is_newer);
    let recent: Vec<i64> = last.iter().map(|last| last.session.id).collect();
    let failing = failing_checks(parts.read(store.checks_of_sessions(&recent, project, here.root))?);
    let strangers = parts.read(store.count_of_strangers(project))?;
    let is_damaged = parts.is_damaged.get();
    Ok(Recalled {
        agent: here.agent,
        folder: None,
        last,
        branch: here.branch.map(String::from),
        on_topic_branch,
        others_are_newer,
        not_committed,
        active,
        pinned,
        decisions,
        annotations,
        open,
        failing,
        mistakes,
        strangers,
        is_damaged,
    })
}

/// Removes the files that are committed by now, or unchanged again, and the open ends that name only such files. Git is asked
/// only if HEAD has moved since: it takes some milliseconds (ADR/0064).
fn retain_not_committed(last: Option<&SessionOverview>, files: &mut Vec<String>, open: &mut Vec<MemoryRow>, root: Option<&Path>) {
    let mut named: HashSet<String> = files.iter().cloned().collect();
    let mut since = last.filter(|_| !files.is_empty()).map(|last| last.last_event_at);
    for end in open.iter() {
        let of_end = open_ends::uncommitted_files(&end.title);
        if !of_end.is_empty() {
            since = Some(since.map_or(end.created_at, |since| since.min(end.created_at)));
            named.extend(of_end.into_iter().map(String::from));
        }
    }
    let (Some(since), Some(root)) = (since, root) else { return };
    let moved = Repository::open(root).and_then(|repository| repository.head_moved_at());
    let Some(differ) = moved.filter(|moved| *moved > since).and_then(|_| not_committed(root, &named)) else { return };
    files.retain(|file| differ.contains(file));
    open.retain(|end| {
        let named = open_ends::uncommitted_files(&end.title);
        named.is_empty() || named.into_iter().any(|file| differ.contains(file))
    });
}

/// Maximum repositories below the folder of a session that are described.
const BELOW: usize = 3;

/// Gathers memories of the repositories below a folder that is in none: a session that starts there may work in each.
pub fn below(store: &Store, folder: &Path, here: SessionContext, now: Millis) -> Result<Vec<Recalled>> {
    if worktree_root(folder, here.home).is_some() {
        return Ok(Vec::new());
    }
    let folder = canonical(folder).unwrap_or_else(|_| folder.to_path_buf());
    let mut all = Vec::new();
    for project in store.projects_below(&folder.to_string_lossy())?.into_iter().take(BELOW) {
        let root = Path::new(&project.root);
        let Ok(inside) = root.strip_prefix(&folder) else { continue };
        let branch = state_at(root, here.home).and_then(|state| state.branch);
        let own = SessionContext { branch: branch.as_deref(), root: Some(root), ..here };
        let recalled = at_start(store, project.id, own, now)?;
        all.push(Recalled { folder: Some(inside.display().to_string()), ..recalled });
    }
    Ok(all)
}

fn ids(heads: &[SettledHead]) -> Vec<i64> {
    heads.iter().map(|head| head.id).collect()
}

/// The sessions that a start may name.
#[derive(Default)]
struct Recent {
    /// Those that are at work now.
    active: Vec<SessionOverview>,
    /// The last one of the branch that did something.
    last: Option<SessionOverview>,
    /// Units of the last sessions of a branch with a topic, else of the last session.
    own_units: Vec<i64>,
}

/// Finds the newest sessions of the branch and of the project. Only those that are named are read whole.
fn recent(
    store: &Store,
    project: i64,
    here: SessionContext,
    all: &[(i64, Option<String>)],
    on_topic_branch: bool,
    now: Millis,
) -> Result<Recent> {
    let mut found = Recent::default();
    for session in newest_sessions(store, project, here, all)? {
        let is_active = session.ended_at.is_none() && status(store, &session, now)?.0 == SessionStatus::Active;
        // A program's session says nothing about what the person wants next.
        let is_own = !is_active && session.prompts > 0 && is_on(session_branch(&session), here.branch);
        if !is_active && !(is_own && (on_topic_branch || found.last.is_none())) {
            continue;
        }
        let overviews = overviews(store, vec![session], Some(project), UNITS, 1, now)?;
        for session in overviews.into_iter().filter(did_something) {
            if is_active {
                found.active.push(session);
                continue;
            }
            found.own_units.extend(session.units.iter().map(|unit| unit.unit.id));
            found.last.get_or_insert(session);
        }
    }
    Ok(found)
}

/// The newest sessions of the project and of the branch, newest first.
fn newest_sessions(store: &Store, project: i64, here: SessionContext, all: &[(i64, Option<String>)]) -> Result<Vec<SessionRow>> {
    let (newest, older) = all.split_at(all.len().min(SESSIONS));
    let of_branch = |(_, branch): &&(i64, Option<String>)| here.branch.is_some() && branch.as_deref() == here.branch;
    let known = newest.iter().filter(of_branch).count();
    let mut sessions = Vec::new();
    for (id, _) in newest.iter().chain(older.iter().filter(of_branch).take(OF_BRANCH.saturating_sub(known))) {
        sessions.extend(store.session_by_row(*id)?);
    }
    // Sessions of nothing but questions hide no work.
    let is_work = |session: &SessionRow| session.tool_uses > 0 && is_on(session_branch(session), here.branch);
    if !sessions.iter().any(is_work) {
        sessions.extend(store.last_session_with_tools(project, here.branch)?.filter(|last| Some(last.id) != here.own));
    }
    Ok(sessions)
}

/// The branch on which a session ended.
fn session_branch(session: &SessionRow) -> Option<&str> {
    session.end_branch.as_deref().or(session.start_branch.as_deref())
}

/// Whether work on a branch belongs to the branch here. A session that began above its repositories has no branch.
fn is_on(branch: Option<&str>, here: Option<&str>) -> bool {
    here.is_none() || branch.is_none() || branch == here
}

fn did_something(session: &SessionOverview) -> bool {
    let plans =
        |unit: &crate::model::UnitOverview| unit.summary.as_ref().is_some_and(|summary| summary.text("next_steps").is_some());
    session.session.tool_uses > 0 || session.units.iter().any(plans)
}

/// Beginning of a decision that answers a question with options.
const CHOSEN: &str = "Chosen:";

/// Whether a decision or lesson applies to the whole project: a person wrote it, or the user stated that it lasts, and
/// it names no file.
pub(super) fn holds_everywhere(memory: &MemoryRow) -> bool {
    let author = memory.team.as_ref().map(|team| team.author);
    let is_by_hand = memory.by_hand || author == Some(Author::Hand);
    let is_users = author == Some(Author::User) || memory.provenance == Provenance::User;
    // A wish in a question was about the task.
    let states = !memory.title.ends_with(['?', '？']) && files_named(&memory.title).is_empty();
    is_by_hand && memory.files.is_empty() || is_users && states && lasts(memory)
}

/// Whether a decision or lesson may apply to the whole project, as far as its head says.
pub(super) fn may_hold_everywhere(head: &SettledHead) -> bool {
    let lasts = || user_decisions::lasts(&head.title) || user_decisions::answer_lasts(&head.title);
    let may_last = || head.kind == MemoryKind::Lesson || user_decisions::may_last(&head.title) && lasts();
    head.by_hand || head.provenance == Provenance::User && may_last()
}

/// Whether a decision says that it outlasts its task.
pub(super) fn lasts(memory: &MemoryRow) -> bool {
    memory.kind == MemoryKind::Lesson
        || !memory.is_from_plan() && user_decisions::lasts(&memory.title)
        || memory.text("question").is_some() && user_decisions::answer_lasts(&memory.title)
}

/// Whether a decision or lesson decides nothing here: the user only asked, or pointed at what was said before, or it is a
/// working command, which `nmem how` shows.
fn settles_nothing(memory: &MemoryRow) -> bool {
    let is_users = memory.provenance == Provenance::User;
    let is_question = is_users && (memory.title.ends_with('?') || user_decisions::needs_context(&memory.title));
    let is_tool_output = || memory.team.as_ref().is_some_and(|team| team.author == Author::Tool);
    !memory.by_hand && (memory.provenance == Provenance::Tool || is_question || is_tool_output())
}

/// Lessons on calls that failed in several of the newest sessions, newest first: most sessions try such a call once more.
fn repeated_mistakes(store: &Store, heads: &[SettledHead], sessions: &[i64]) -> Result<Vec<MemoryRow>> {
    let mut calls: Vec<(i64, &str)> = Vec::new();
    for head in heads.iter().filter(|head| head.kind == MemoryKind::Lesson && head.provenance == Provenance::Tool) {
        if let Some(call) = commands::failed_call(&head.title).filter(|call| !calls.iter().any(|(_, known)| known == call)) {
            calls.push((head.id, call));
        }
    }
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let mut failed: Vec<Vec<ToolUseRow>> = Vec::new();
    for session in sessions {
        failed.push(store.failed_commands_of(*session, FAILED)?.into_iter().map(|(tool, _)| tool).collect());
    }
    let fails = |call: &str, tool: &ToolUseRow| tool.content.as_deref().is_some_and(|line| commands::is_call(line, call));
    calls.retain(|(_, call)| failed.iter().filter(|tools| tools.iter().any(|tool| fails(call, tool))).count() >= REPEATED);
    store.memories_by_rows(&calls.into_iter().take(MISTAKES).map(|(id, _)| id).collect::<Vec<_>>())
}

/// Whether the last unit of a session edited one of the files.
fn shares_file(session: &SessionOverview, files: &[String]) -> bool {
    let last = session.units.first().into_iter().flat_map(|overview| &overview.unit.files);
    last.filter(|file| file.edits > 0).any(|file| files.contains(&file.path))
}

/// Returns the checks whose last run failed, by the whole command, the most frequent ones first. A chain of commands is no
/// check that anybody runs again.
fn failing_checks(all: Vec<Check>) -> Vec<Check> {
    let mut counted: Vec<(usize, Check)> = Vec::new();
    for check in all.into_iter().filter(|check| !commands::is_look(&check.command)) {
        let command = check.command.split(" 2>").next().unwrap_or_default();
        let command = command.split(" |").next().unwrap_or_default().trim().to_string();
        if command.contains("&&") || command.contains(';') || command.contains('\n') {
            continue;
        }
        match counted.iter_mut().find(|(_, known)| known.command == command) {
            Some((times, _)) => *times += 1,
            None => counted.push((1, Check { command, passed: check.passed })),
        }
    }
    counted.retain(|(times, newest)| *times >= RAN && !newest.passed);
    counted.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    counted.into_iter().take(CHECKS).map(|(_, newest)| newest).collect()
}

/// Files in the root of the worktree.
const IN_ROOT: [&str; 4] = ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md"];
/// Minimum words of a statement to compare, and the share of them, in percent, that one line must contain.
const WORDS: usize = 3;
const SHARE: usize = 80;

/// The lines of memory files, as sets of words.
#[derive(Debug, Default)]
pub struct MemoryFileLines {
    lines: Vec<HashSet<String>>,
}

impl MemoryFileLines {
    /// Reads the first 64 kB of each file.
    pub fn read(root: Option<&Path>, home: Option<&Path>) -> MemoryFileLines {
        let Some(root) = root else { return MemoryFileLines::default() };
        let own = home.map(|home| home.join(".claude/projects").join(folder_name(root)).join("memory/MEMORY.md"));
        let files = IN_ROOT.iter().map(|name| root.join(name)).chain(own);
        let texts: Vec<String> = files.filter_map(|file| small_text(&file)).collect();
        MemoryFileLines {
            lines: texts.iter().flat_map(|text| text.lines()).map(words).filter(|line| line.len() >= WORDS).collect(),
        }
    }

    /// Whether one line contains most words of a statement.
    pub fn say(&self, statement: &str) -> bool {
        let said = if self.lines.is_empty() { HashSet::new() } else { words(statement) };
        said.len() >= WORDS && self.lines.iter().any(|line| said.intersection(line).count() * 100 >= said.len() * SHARE)
    }
}

/// Returns Claude Code's name for the folder of a project.
fn folder_name(root: &Path) -> String {
    root.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn words(text: &str) -> HashSet<String> {
    terms(text).iter().map(|term| stem(term)).collect()
}

/// Maximum number of units.
const STATE_UNITS: usize = 12;
/// Maximum number of failing commands.
const FAILING: usize = 4;
/// Maximum time after `/clear` in which the new session continues the cleared one, in milliseconds.
const JUST_NOW: Millis = 60_000;

/// Returns the session of a project that `/clear` has just ended; the client continues in a new one.
pub fn cleared(store: &Store, project: i64, own: i64, now: Millis) -> Result<Option<i64>> {
    let client = store.session_by_row(own)?.and_then(|session| session.client);
    let last = store.last_sessions(project, 4)?.into_iter().find(|session| {
        // Two clients in one folder each continue their own session.
        let is_same = client.as_ref().zip(session.client.as_ref()).is_none_or(|(own, other)| own.pid == other.pid);
        let ended = session.ended_at.is_some_and(|at| now - at <= JUST_NOW);
        session.id != own && is_same && ended && session.end_reason.as_deref() == Some("clear")
    });
    Ok(last.map(|session| session.id))
}

/// Gathers the state of a session; `None` if it is empty.
pub fn session_state(store: &Store, session: i64) -> Result<Option<SessionState>> {
    let Some(session) = store.session_by_row(session)?.filter(|session| session.prompts + session.tool_uses > 0) else {
        return Ok(None);
    };
    let mut units = store.last_units(&[session.id], None, STATE_UNITS)?.into_iter();
    let unit = units.next();
    let overview = |unit: crate::model::UnitRow| {
        let summary = store.summary_of_unit(unit.session, unit.id)?;
        Ok(UnitOverview { unit, summary })
    };
    let earlier_units = units.map(overview).collect::<Result<_>>()?;
    let story = unit.as_ref().map(|unit| store.unit_story(unit.id)).transpose()?.flatten();
    let texts =
        |source: PromptSource| story.iter().flat_map(|story| &story.prompts).filter(move |prompt| prompt.source == source);
    let prompts = texts(PromptSource::User).map(|prompt| (prompt.number, prompt.text.clone())).collect();
    let last_answer = texts(PromptSource::Agent).next_back().map(|prompt| prompt.text.clone());
    let mut failing: Vec<Failing> = story.as_ref().map(crate::distil::failing).unwrap_or_default();
    failing.reverse();
    failing.truncate(FAILING);
    let mut memories = store.memories_of_session(session.id)?;
    memories.retain(|memory| memory.superseded_by.is_none());
    memories.reverse();
    memories.sort_by_key(|memory| std::cmp::Reverse(memory.trust()));
    let (decisions, rest): (Vec<MemoryRow>, Vec<MemoryRow>) = memories.into_iter().partition(|memory| memory.kind.is_lasting());
    let is_current = |memory: &MemoryRow| memory.kind.is_finding() && (memory.kind != MemoryKind::Open || memory.is_open());
    let observations = rest.into_iter().filter(is_current).collect();
    let contradicted_by = rank::contradicted(&decisions);
    let open = session.tasks.iter().filter(|task| task.status != "completed").map(|task| task.subject.clone());
    Ok(Some(SessionState {
        open_tasks: open.collect(),
        unit,
        prompts,
        last_answer,
        failing,
        decisions: rank::side_by_side(decisions, &contradicted_by),
        annotations: Annotations { contradicted_by, ..Annotations::default() },
        observations,
        earlier_units,
        session,
    }))
}

/// A session whose client cannot be checked counts as active for this long after its last event.
const SILENCE: Millis = 30 * 60_000;

/// Adds to each session its last units, newest first, and its last turns, in order.
pub fn overviews(
    store: &Store,
    sessions: Vec<SessionRow>,
    project: Option<i64>,
    units_each: usize,
    turns_each: usize,
    now: Millis,
) -> Result<Vec<SessionOverview>> {
    let units = store.last_units(&sessions.iter().map(|session| session.id).collect::<Vec<_>>(), project, units_each)?;
    let mut summaries = store.summaries_of_units(&units.iter().map(|unit| unit.id).collect::<Vec<_>>())?;
    let mut units: Vec<UnitOverview> =
        units.into_iter().map(|unit| UnitOverview { summary: summaries.remove(&unit.id), unit }).collect();
    let overviews = sessions.into_iter().map(|session| {
        let (state, last_event_at) = status(store, &session, now)?;
        let units = units.extract_if(.., |overview| overview.unit.session == session.id).collect();
        let mut turns = turns(&store.last_said(session.id, project)?);
        turns.drain(..turns.len().saturating_sub(turns_each));
        Ok(SessionOverview { session, state, last_event_at, turns, units })
    });
    overviews.collect()
}

/// The status of a session, and the time of its last event.
fn status(store: &Store, session: &SessionRow, now: Millis) -> Result<(SessionStatus, Millis)> {
    let last_event_at = store.last_use(session.id)?.unwrap_or(0).max(session.active_at);
    let alive = session.client.and_then(files::is_alive);
    let status = match (session.ended_at, alive) {
        (Some(_), _) => SessionStatus::Ended,
        (None, Some(true)) => SessionStatus::Active,
        (None, None) if now - last_event_at < SILENCE => SessionStatus::Active,
        (None, _) => SessionStatus::Interrupted,
    };
    Ok((status, last_event_at))
}

/// Groups consecutive messages into turns.
fn turns(prompts: &[PromptRow]) -> Vec<TurnOverview> {
    let mut turns: Vec<TurnOverview> = Vec::new();
    for prompt in prompts {
        match (prompt.kind, turns.last_mut()) {
            // A prompt that was interrupted and asked again is one turn.
            (PromptKind::Prompt, Some(turn)) if turn.answer.is_none() && turn.prompt == prompt.text => {
                turn.number = prompt.number
            }
            (PromptKind::Prompt, _) => {
                turns.push(TurnOverview { number: prompt.number, prompt: prompt.text.clone(), answer: None })
            }
            // A turn may end several times (a stop hook continues it, a background task reports); the last message
            // counts.
            (PromptKind::Closing, Some(turn)) if turn.number == prompt.number => turn.answer = Some(prompt.text.clone()),
            _ => {}
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_known_if_a_line_has_most_of_its_words() {
        let lines = ["- Always run `mise run lint` before committing anything", "- tabs"].map(words).to_vec();
        let known = MemoryFileLines { lines };
        assert!(known.say("Always run mise run lint before you commit"));
        assert!(!known.say("Always run the integration tests before you commit"));
        assert!(!known.say("tabs"));
        assert_eq!(folder_name(Path::new("/srv/my.app")), "-srv-my-app");
    }
}
