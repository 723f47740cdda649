//! The edit, the unit and the request behind a line or a commit. Identity decides, never time alone: the id that git printed
//! when the commit was made, the same change under another id, or the text that an edit wrote.

use super::git_program::{BlamedLine, CommitChange, Git, ProjectRecords};
use super::verify::{check_names, has_run};
use crate::error::UserError;
use crate::files;
use crate::model::{Certainty, Evidence, FilePart, MemoryRow, Millis, Origin, OriginOf, ToolUseRow, UnitRow};
use crate::redact::{LineMark, Redactor, marks_of};
use crate::store::Store;
use crate::store::edits::{RecordedCommit, RecordedEdit};
use crate::text::slashed;
use anyhow::Result;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

/// The longest file to trace line by line, in bytes.
const FILE_BYTES: u64 = 4 << 20;
/// Letters and digits that make a line stand out by itself.
const TELLING: usize = 8;
/// Lines before and after a line to compare with those that an edit wrote.
const NEAR: isize = 4;
/// Share of a commit's lines, in percent, that edits of recorded sessions must have written to name a unit.
const SHARE: usize = 70;
/// Minimum lines that stand out, to name a unit by text.
const LEAST: usize = 5;
/// Maximum runs of recorded commits to compare with a squashed one.
const RUNS: usize = 60;

/// Answers a question about a line (`FILE:LINE`), a file or a commit; `None` if the subject is neither. Relative paths start
/// in `folder`.
pub fn evidence_of(recorded: &ProjectRecords, folder: &Path, subject: &str) -> Result<Option<Evidence>> {
    let numbered = subject.rsplit_once(':').and_then(|(file, number)| Some((file, number.parse::<usize>().ok()?)));
    let (file, number) = match numbered.filter(|_| !folder.join(subject).exists()) {
        Some((file, number)) => (file, Some(number)),
        None => (subject, None),
    };
    let path = folder.join(file);
    if !path.is_file() {
        let sha = recorded.git.commit_id(subject).filter(|_| number.is_none());
        return sha
            .map(|sha| Ok(Evidence::Origin(Box::new(why_commit(recorded, &CommitIndex::read(recorded)?, &sha)?))))
            .transpose();
    }
    let whole = files::canonical(&path)?;
    let root = files::canonical(&recorded.git.root)?;
    let outside = || UserError::new(format!("{} is not in this repository", path.display()), "change into its project");
    let inside = slashed(&whole.strip_prefix(&root).map_err(|_| outside())?.to_string_lossy()).into_owned();
    let unreadable =
        |error| UserError::new(format!("cannot read {}: {error}", path.display()), "give a text file of at most 4 MB");
    let text = files::whole_text(&whole, FILE_BYTES).map_err(unreadable)?;
    let lines: Vec<String> = text.lines().map(String::from).collect();
    let authors = file_authors(recorded, &inside, &lines)?;
    let Some(number) = number else { return Ok(Some(file_parts(recorded, inside, &authors)?)) };
    let author = number.checked_sub(1).and_then(|at| authors.get(at));
    let author = author.ok_or_else(|| UserError::new(format!("{inside} has {} lines", authors.len()), "lines count from 1"))?;
    Ok(Some(Evidence::Origin(Box::new(why_line(recorded, &inside, author)?))))
}

/// Counts the lines of a file by the units that wrote them.
fn file_parts(recorded: &ProjectRecords, file: String, authors: &[LineAuthor]) -> Result<Evidence> {
    let mut counted: HashMap<Option<i64>, (usize, usize)> = HashMap::new();
    for author in authors.iter().filter(|author| !author.text.trim().is_empty()) {
        counted.entry(author.edit.as_ref().and_then(|edit| edit.unit)).or_insert((0, author.number)).0 += 1;
    }
    let mut counted: Vec<(Option<i64>, (usize, usize))> = counted.into_iter().collect();
    counted.sort_by_key(|(unit, (lines, first))| (unit.is_none(), std::cmp::Reverse(*lines), *first));
    let part = |(unit, (lines, first)): (Option<i64>, (usize, usize))| {
        let unit = unit.map(|unit| recorded.store.unit_by_row(unit)).transpose()?.flatten();
        Ok(FilePart { unit, lines, first })
    };
    Ok(Evidence::File { file, parts: counted.into_iter().map(part).collect::<Result<_>>()? })
}

/// An edit with the marks of its lines.
struct MarkedEdit {
    edit: RecordedEdit,
    marks: Vec<LineMark>,
}

/// The edits of a file, and the marks of its lines.
struct FileEdits {
    edits: Vec<MarkedEdit>,
    /// The edits that wrote a line, by mark.
    by_mark: HashMap<LineMark, Vec<usize>>,
}

impl FileEdits {
    fn read(recorded: &ProjectRecords, path: &str) -> Result<FileEdits> {
        let edits = recorded.store.edits_of_file(recorded.scope, path)?.into_iter().map(|edit| {
            let mut marks = edit.written.as_deref().map(marks_of).unwrap_or_default();
            // Edits from before marks, and from another machine, have an excerpt only.
            if let Some(excerpt) = edit.input.as_deref() {
                let of_excerpt = recorded.redactor.marks_of_edit(edit.kind, excerpt);
                if !of_excerpt.iter().all(|mark| marks.contains(mark)) {
                    marks.extend(of_excerpt);
                }
            }
            MarkedEdit { edit, marks }
        });
        let edits: Vec<MarkedEdit> = edits.collect();
        let mut by_mark: HashMap<LineMark, Vec<usize>> = HashMap::new();
        for (n, edit) in edits.iter().enumerate() {
            for mark in &edit.marks {
                let known = by_mark.entry(*mark).or_default();
                if known.last() != Some(&n) {
                    known.push(n);
                }
            }
        }
        Ok(FileEdits { edits, by_mark })
    }

    /// The edit that wrote a line by a time: the one that also wrote most of the lines around it, then the last one. A line
    /// that says little counts only with a telling one near it.
    fn of_line(&self, lines: &MarkedLines, at: usize, by: Millis) -> Option<&RecordedEdit> {
        let at = *lines.place.get(&at)?;
        let (mark, _) = lines.marks[at];
        let candidates = self.by_mark.get(&mark)?.iter().map(|n| &self.edits[*n]).filter(|edit| edit.edit.at <= by);
        let judged = candidates.filter_map(|edit| {
            let places = edit.marks.iter().enumerate().filter(|(_, known)| **known == mark).map(|(place, _)| place);
            let runs = places.map(|place| lines.run(at, &edit.marks, place)).filter(|(_, telling)| *telling);
            Some((runs.map(|(length, _)| length).max()?, edit))
        });
        let judged: Vec<(usize, &MarkedEdit)> = judged.collect();
        let (run, best) = judged.iter().max_by_key(|(run, edit)| (*run, edit.edit.at, edit.edit.tool_use))?;
        // A bracket that two sessions wrote in like places may be of either.
        let rival = judged.iter().any(|(other, edit)| other == run && edit.edit.session != best.edit.session);
        (lines.marks[at].1 || !rival).then_some(&best.edit)
    }
}

/// The lines of a file that have text, as marks.
struct MarkedLines {
    /// Mark, and whether the line stands out by itself.
    marks: Vec<(LineMark, bool)>,
    /// Places in `marks`, by the number of the line from 0.
    place: HashMap<usize, usize>,
}

impl MarkedLines {
    fn new(redactor: &Redactor, lines: &[&str]) -> MarkedLines {
        let (mut marks, mut place) = (Vec::new(), HashMap::new());
        for (at, line) in lines.iter().enumerate() {
            if let Some(mark) = redactor.line_mark(line) {
                place.insert(at, marks.len());
                marks.push((mark, is_telling(line)));
            }
        }
        MarkedLines { marks, place }
    }

    /// Number of lines around one that an edit wrote in the same order, and whether one of them is telling.
    fn run(&self, at: usize, written: &[LineMark], place: usize) -> (usize, bool) {
        let same = |by: isize| {
            let line = self.marks.get(at.checked_add_signed(by)?)?;
            (written.get(place.checked_add_signed(by)?)? == &line.0).then_some(line.1)
        };
        let before = (1..=NEAR).map_while(|by| same(-by));
        let after = (1..=NEAR).map_while(same);
        let mut telling = vec![self.marks[at].1];
        telling.extend(before.chain(after));
        (telling.len(), telling.contains(&true))
    }
}

fn is_telling(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphanumeric()).count() >= TELLING
}

/// The time in milliseconds by which a line of a commit was written.
fn by_time(seconds: i64) -> Millis {
    (seconds + 1) * 1000
}

/// A line, and the edit or commit behind it.
#[derive(Clone, Debug)]
struct LineAuthor {
    number: usize,
    pub text: String,
    pub commit: Option<String>,
    pub certainty: Certainty,
    pub edit: Option<RecordedEdit>,
    pub made_by: Option<RecordedCommit>,
}

impl LineAuthor {
    pub fn unit(&self) -> Option<i64> {
        self.edit.as_ref().and_then(|edit| edit.unit).or(self.made_by.as_ref().and_then(|commit| commit.unit))
    }

    pub fn session(&self) -> Option<i64> {
        self.edit.as_ref().map(|edit| edit.session).or(self.made_by.as_ref().map(|commit| commit.session))
    }
}

/// Finds the author of each line of a file. `path` is relative to the root of the worktree; `uncommitted` are its lines if no
/// commit has the file.
fn file_authors(recorded: &ProjectRecords, path: &str, uncommitted: &[String]) -> Result<Vec<LineAuthor>> {
    let untracked = || {
        let line = |text: &String| BlamedLine {
            text: text.clone(),
            commit: None,
            path: path.to_string(),
            authored_at: 0,
            committed_at: 0,
        };
        uncommitted.iter().map(line).collect()
    };
    let blamed: Vec<BlamedLine> = if recorded.git.is_committed(path)? { recorded.git.blame(path)? } else { untracked() };
    let texts: Vec<&str> = blamed.iter().map(|line| line.text.as_str()).collect();
    let marked = MarkedLines::new(recorded.redactor, &texts);
    let commits = CommitIndex::read(recorded)?;
    let mut files: HashMap<String, FileEdits> = HashMap::new();
    let mut made: HashMap<String, Option<RecordedCommit>> = HashMap::new();
    let mut lines = Vec::new();
    for (at, line) in blamed.iter().enumerate() {
        for name in [path, line.path.as_str()] {
            if !files.contains_key(name) {
                files.insert(name.to_string(), FileEdits::read(recorded, name)?);
            }
        }
        let times: &[Millis] = match line.commit {
            Some(_) => &[by_time(line.authored_at), by_time(line.committed_at)],
            None => &[Millis::MAX],
        };
        let wrote = |name: &str, by: Millis| files[name].of_line(&marked, at, by);
        let edit = times.iter().find_map(|by| wrote(&line.path, *by).or_else(|| wrote(path, *by))).cloned();
        let made_by =
            line.commit.as_ref().and_then(|sha| made.entry(sha.clone()).or_insert_with(|| commits.by_id(sha).cloned()).clone());
        let certainty = match (&edit, &made_by) {
            (Some(_), _) => Certainty::Edit,
            (None, Some(_)) => Certainty::Commit,
            (None, None) => Certainty::Unknown,
        };
        lines.push(LineAuthor { number: at + 1, text: line.text.clone(), commit: line.commit.clone(), certainty, edit, made_by });
    }
    Ok(lines)
}

/// Explains one line; `number` counts from 1.
fn why_line(recorded: &ProjectRecords, path: &str, author: &LineAuthor) -> Result<Origin> {
    let subject = OriginOf::Line {
        file: path.to_string(),
        number: author.number,
        text: author.text.clone(),
        commit: author.commit.clone(),
    };
    let tool_use = author.edit.as_ref().map(|edit| edit.tool_use).or(author.made_by.as_ref().map(|commit| commit.tool_use));
    explained(recorded, subject, author.certainty, tool_use, author.unit(), author.session())
}

/// Explains a commit, by its full id.
pub fn why_commit(recorded: &ProjectRecords, commits: &CommitIndex, sha: &str) -> Result<Origin> {
    let change = recorded.git.change(sha)?;
    let subject = OriginOf::Commit { sha: change.sha.clone(), subject: change.subject.clone() };
    let AuthoredLines { by_unit, written, all } = written_by(recorded, &change)?;
    let mut certainty = Certainty::Commit;
    let mut same = None;
    let mut made_by = commits.by_id(&change.sha);
    if made_by.is_none() {
        same = commits.same_change(&change.sha, written * 2 >= all);
        made_by = same.as_ref().map(|(commit, _)| *commit);
        certainty = Certainty::SameChange;
    }
    let by_text = by_unit.first().filter(|_| all >= LEAST && written * 100 >= all * SHARE);
    let mut why = match (made_by, by_text) {
        (Some(commit), _) => explained(recorded, subject, certainty, Some(commit.tool_use), commit.unit, Some(commit.session))?,
        (None, Some((unit, _))) => explained(recorded, subject, Certainty::Text, None, Some(*unit), None)?,
        (None, None) => explained(recorded, subject, Certainty::Unknown, None, None, None)?,
    };
    why.recorded_as = same.map(|(_, id)| id);
    why.lines = (all, written);
    let own = why.unit.as_ref().map(|unit| unit.id);
    // Few lines may be alike by chance.
    if why.certainty != Certainty::Unknown || written >= LEAST {
        for (unit, lines) in by_unit.into_iter().filter(|(unit, _)| Some(*unit) != own) {
            why.others.extend(recorded.store.unit_by_row(unit)?.map(|unit| (unit, lines)));
        }
    }
    Ok(why)
}

/// The lines of a commit that stand out.
struct AuthoredLines {
    /// Number of lines by the unit whose edits wrote them, the most first.
    by_unit: Vec<(i64, usize)>,
    /// Lines that recorded edits wrote, and all lines.
    written: usize,
    all: usize,
}

/// Finds the authors of the lines that a commit added.
fn written_by(recorded: &ProjectRecords, change: &CommitChange) -> Result<AuthoredLines> {
    let mut by_unit: HashMap<i64, usize> = HashMap::new();
    let (mut all, mut written) = (0, 0);
    for (path, lines) in &change.added {
        let edits = FileEdits::read(recorded, path)?;
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        let marked = MarkedLines::new(recorded.redactor, &texts);
        for (at, _) in texts.iter().enumerate().filter(|(_, text)| is_telling(text)) {
            all += 1;
            let times = [by_time(change.authored_at), by_time(change.committed_at)];
            let edit = times.iter().find_map(|by| edits.of_line(&marked, at, *by));
            written += usize::from(edit.is_some());
            if let Some(unit) = edit.and_then(|edit| edit.unit) {
                *by_unit.entry(unit).or_default() += 1;
            }
        }
    }
    let mut by_unit: Vec<(i64, usize)> = by_unit.into_iter().collect();
    by_unit.sort_by_key(|(unit, lines)| (std::cmp::Reverse(*lines), *unit));
    Ok(AuthoredLines { by_unit, written, all })
}

/// The recorded commits of a project, and their changes as far as somebody asks for them.
pub struct CommitIndex<'a> {
    git: &'a Git,
    commits: Vec<RecordedCommit>,
    changes: OnceCell<RecordedChanges>,
}

/// The changes of recorded commits that the repository still has.
struct RecordedChanges {
    /// Their full ids in order of time.
    shas: Vec<String>,
    /// Ids of commits, and ids of their patches.
    patches: Vec<(String, String)>,
    /// The first parent of each.
    parents: HashMap<String, String>,
}

impl<'a> CommitIndex<'a> {
    pub fn read(recorded: &'a ProjectRecords) -> Result<CommitIndex<'a>> {
        let commits = recorded.store.recorded_commits(recorded.scope)?;
        Ok(CommitIndex { git: recorded.git, commits, changes: OnceCell::new() })
    }

    /// The recorded commit with an id. Git prints only the first characters.
    fn by_id(&self, sha: &str) -> Option<&RecordedCommit> {
        self.commits.iter().rev().find(|commit| commit.shas.iter().any(|id| sha.starts_with(id)))
    }

    fn changes(&self) -> &RecordedChanges {
        self.changes.get_or_init(|| {
            let ids: Vec<String> = self.commits.iter().flat_map(|commit| commit.shas.iter().cloned()).collect();
            let mut shas = self.git.existing(&ids);
            shas.dedup();
            let (patches, parents) = (self.git.patch_ids(&shas), self.git.parents(&shas));
            RecordedChanges { shas, patches, parents }
        })
    }

    /// The recorded commit that makes the same change, with its id: of a rebased or reworded commit the same patch, of a
    /// squashed one the patch of a run of recorded commits. `is_run`: recorded edits wrote much of it.
    fn same_change(&self, sha: &str, is_run: bool) -> Option<(&RecordedCommit, String)> {
        if self.commits.is_empty() {
            return None;
        }
        let own = self.git.patch_ids(&[sha.to_string()]).pop()?.1;
        let RecordedChanges { shas, patches, parents } = self.changes();
        let of = |sha: &str| Some((self.by_id(sha)?, sha.to_string()));
        if let Some((same, _)) = patches.iter().rev().find(|(known, id)| *id == own && known != sha) {
            return of(same);
        }
        let mut compared = 0;
        for last in shas.iter().rev().filter(|_| is_run) {
            let mut first = last;
            while let Some(parent) = parents.get(first).filter(|_| compared < RUNS) {
                if first != last {
                    compared += 1;
                    if self.git.patch_id_between(parent, last).as_ref() == Some(&own) {
                        return of(last);
                    }
                }
                match shas.iter().find(|sha| *sha == parent) {
                    Some(recorded) => first = recorded,
                    None => break,
                }
            }
        }
        None
    }
}

/// Reads everything around a tool use or a unit.
fn explained(
    recorded: &ProjectRecords,
    subject: OriginOf,
    certainty: Certainty,
    tool_use: Option<i64>,
    unit: Option<i64>,
    session: Option<i64>,
) -> Result<Origin> {
    let store = recorded.store;
    let tool_use = tool_use.map(|id| store.tool_uses_by_row(&[id])).transpose()?.and_then(|mut rows| rows.pop());
    let unit = unit.map(|id| store.unit_by_row(id)).transpose()?.flatten();
    let session = session.or(unit.as_ref().map(|unit| unit.session));
    let session = session.map(|id| store.session_by_row(id)).transpose()?.flatten();
    let prompt = tool_use.as_ref().and_then(|tool| tool.prompt_id).map(|id| store.prompt_by_row(id)).transpose()?.flatten();
    let memories = unit.as_ref().map(|unit| store.memories_of_unit(unit.session, unit.id)).transpose()?.unwrap_or_default();
    let [decisions, tried, _] = sorted(memories);
    let since = tool_use.as_ref().filter(|tool| tool.is_edit()).map_or(0, |tool| tool.seq);
    let checks = unit.as_ref().map(|unit| last_checks(store, unit, since)).transpose()?.unwrap_or_default();
    Ok(Origin {
        subject,
        certainty,
        recorded_as: None,
        tool_use,
        unit,
        session,
        prompt,
        decisions,
        tried,
        checks,
        others: Vec::new(),
        lines: (0, 0),
    })
}

/// The last run of each check of a unit after a tool use, by its number in the session, in the order of time.
pub fn last_checks(store: &Store, unit: &UnitRow, since: i64) -> Result<Vec<ToolUseRow>> {
    let (_, ids) = store.rows_of_unit(unit)?;
    let mut known: Vec<String> = Vec::new();
    let mut checks: Vec<ToolUseRow> = Vec::new();
    for tool in store.tool_uses_by_row(&ids)?.into_iter().rev().filter(|tool| tool.is_check() && tool.seq > since) {
        let names = check_names(tool.content.as_deref().unwrap_or_default());
        if !has_run(&tool) || names.iter().all(|name| known.contains(name)) {
            continue;
        }
        // Of several checks on one line any may have failed.
        if names.len() == 1 || tool.succeeded == Some(true) {
            known.extend(names);
        }
        checks.push(tool);
    }
    checks.reverse();
    Ok(checks)
}

/// Memories that hold: of decisions, of what did not help, and of what is open.
pub fn sorted(memories: Vec<MemoryRow>) -> [Vec<MemoryRow>; 3] {
    let [mut decisions, mut tried, mut open] = [const { Vec::new() }; 3];
    for memory in memories.into_iter().filter(|memory| memory.superseded_by.is_none()) {
        match &memory {
            memory if memory.is_open() => open.push(memory.clone()),
            memory if memory.is_tried() => tried.push(memory.clone()),
            memory if memory.is_decision() => decisions.push(memory.clone()),
            _ => {}
        }
    }
    [decisions, tried, open]
}
