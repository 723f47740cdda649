//! Runs one session file through the pipeline.

use super::find::{FoundFile, Imported, OVER, first_lines};
use super::lines::{Databases, Lines, lines_before};
use super::target::{AT_WORK, AgentReport, FORGOTTEN, Folder, OF_MEMORY_TOOL, OFF, Target, UNREADABLE};
use crate::config::pauses::{self, RecordingPause};
use crate::config::{Config, environment};
use crate::distil::distiller::Distiller;
use crate::ingest::ingest_past;
use crate::ingest::keep::{self, PastFile, PastSession, ReadBefore};
use crate::ingest::run::{Caller, Run};
use crate::model::{Event, EventKind, Millis, Platform};
use crate::platforms::past::{Found, PastOptions, PastReader, PastSource, line_id};
use crate::platforms::payload;
use crate::platforms::transcript_tail::time;
use crate::runtime::{self, Projects, Where};
use crate::store::Store;
use crate::store::imports::{ImportedFile, ImportedSession};
use crate::store::rule_memories::Gone;
use anyhow::Result;
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

const DAY: Millis = 86_400_000;
/// Minimum number of events in a transaction, if the file has that many.
const AT_ONCE: usize = 400;
/// The folder in which claude-mem runs its own agents.
const CLAUDE_MEM: &str = ".claude-mem";
/// Approximate time to store one event.
const STORING: Duration = Duration::from_micros(200);
/// Maximum time to wait for the leases of a killed run, in milliseconds. A lease lasts this long.
const LEASE: Millis = 10_000;

/// The time by which a caller must have its answer.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    pub at: Instant,
    /// Maximum time to wait for the database.
    pub wait: Duration,
}

impl Deadline {
    /// Returns the number of events that can be stored before the deadline.
    fn events(self) -> usize {
        (self.at.saturating_duration_since(Instant::now()).as_micros() / STORING.as_micros()) as usize
    }
}

/// Information from the first lines of a file.
#[derive(Debug, Default)]
pub struct Head {
    pub at: Millis,
    pub cwd: Option<String>,
    pub first_line: Option<u64>,
}

impl Head {
    /// The folder in which the session began. Its settings apply.
    pub fn folder(&self) -> Option<PathBuf> {
        self.cwd.as_deref().map(PathBuf::from).filter(|folder| folder.is_absolute())
    }
}

/// A file to import.
#[derive(Debug)]
pub struct DueFile {
    pub file: FoundFile,
    pub head: Head,
}

impl DueFile {
    /// Reads the head of a file.
    pub fn new(file: FoundFile) -> DueFile {
        let is_of_lines = matches!(file.format.source, PastSource::Lines);
        let lines = if is_of_lines { first_lines(&file.path) } else { Vec::new() };
        let of_part = file.part.as_ref().and_then(|part| part.cwd.clone());
        let said = || lines.iter().find_map(|line| (file.format.cwd)(line).map(String::from));
        let head = Head {
            at: lines.iter().find_map(time).unwrap_or(file.modified_at),
            cwd: of_part.or_else(|| (file.format.folder)(&file.path)).or_else(said),
            first_line: lines.iter().find_map(line_id),
        };
        DueFile { file, head }
    }
}

/// Writes the events of one file.
struct Writer<'a> {
    run: Run<'a>,
    file: PastFile<'a>,
    /// The session of the file, once an event has named it.
    past: Option<PastSession<'a>>,
    /// The ids of the turn's calls so far.
    calls: HashSet<String>,
}

impl<'a> Writer<'a> {
    fn new(folder: &'a Folder, target: &'a Target, began: Option<&'a str>, before: ReadBefore) -> Writer<'a> {
        let run = Run::new(Caller::History, &folder.config, &folder.redactor);
        let days = Millis::from(folder.config.tool_uses_days.value);
        let keep_since = (days > 0).then(|| run.now - days * DAY);
        let pauses = folder.config.switches.off.iter().chain(&folder.past_pauses).collect();
        Writer {
            run,
            file: PastFile { began, before, forgotten: &target.forgotten, pauses, keep_since },
            past: None,
            calls: HashSet::new(),
        }
    }

    /// Looks up the session of the file at its first event.
    fn look_up(&mut self, events: &[Event]) -> Result<()> {
        if let (Some(first), None) = (events.first(), &self.past) {
            self.past = Some(PastSession::look_up(&self.run, first, self.file.clone())?);
        }
        Ok(())
    }

    /// Stores events in one transaction.
    fn write(&mut self, events: Vec<Event>, agent: &mut AgentReport) -> Result<()> {
        self.look_up(&events)?;
        if events.is_empty() || self.is_left_alone() {
            return Ok(());
        }
        // The store keeps the first of several calls of a turn with one id.
        for event in &events {
            match &event.what {
                EventKind::UserPrompt { .. } => self.calls.clear(),
                EventKind::ToolUsed(tool) if tool.id.as_ref().is_some_and(|id| !self.calls.insert(id.clone())) => {
                    agent.counts.skip(REPEATED);
                }
                _ => {}
            }
        }
        let before = self.run.redactor.replaced();
        let left_out = ingest_past(&self.run, self.past.as_mut(), events)?.left_out;
        let counted = |reason: &&str| [keep::PAUSED, keep::FORGOTTEN, keep::OFF_ELSEWHERE].contains(reason);
        left_out.iter().map(|(reason, _)| *reason).filter(counted).for_each(|reason| agent.counts.skip(reason));
        let Some(past) = &mut self.past else { return Ok(()) };
        agent.secrets += self.run.redactor.replaced() - before - std::mem::take(&mut past.compared_secrets);
        if past.until.is_some() {
            agent.sessions.insert(past.id.clone());
        }
        past.first.into_iter().chain(past.until).filter(|at| *at > 0).for_each(|at| agent.saw(at));
        Ok(())
    }

    /// Returns true if the whole session was forgotten, or hooks are recording it now.
    fn is_left_alone(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.is_forgotten || past.is_at_work)
    }
}

/// The result of importing a file.
#[derive(Debug, Default)]
pub struct FileResult {
    /// Bytes read.
    pub bytes: u64,
    /// Muted turns (`#nomem`), as pauses of the session.
    pub muted: Vec<RecordingPause>,
    /// Work that is left once the events are stored; `None` if there is none.
    pub rest: Option<FileRest>,
}

/// A file whose events are stored: its session has to be distilled, and the file noted as imported.
#[derive(Debug)]
pub struct FileRest {
    config: Config,
    name: String,
    file: ImportedFile,
    session: Option<ImportedSession>,
}

impl FileRest {
    /// Distils all units of the session at once: a unit may have events in many parts of the file.
    pub fn finish(self) -> Result<()> {
        let redactor = runtime::redactor(&self.config)?;
        let run = Run::new(Caller::History, &self.config, &redactor);
        let mut store = Store::open(&self.config.files.value, run.wait)?;
        if let Some(session) = &self.session {
            distil(&run, &mut store, session.platform, &session.id)?;
        }
        store.set_imported(&self.name, &self.file, self.session.as_ref())
    }
}

/// Imports a file. With a deadline, the next call imports the rest.
pub fn import(
    folder: &Folder,
    due: &DueFile,
    target: &mut Target,
    agent: &mut AgentReport,
    databases: &Databases,
    deadline: Option<Deadline>,
) -> Result<FileResult> {
    let (config, file, name) = (&folder.config, &due.file, due.file.name());
    let known = target.files.get(&name);
    if known.is_some_and(|known| file.is_unchanged(known)) {
        agent.unchanged += 1;
        return Ok(FileResult::default());
    }
    let before = match known {
        // Documents and databases are read as a whole.
        Some(known) if is_same_file(known, due) && matches!(file.format.source, PastSource::Lines) => ReadBefore::InPart,
        Some(_) => ReadBefore::ByAnother,
        None => ReadBefore::No,
    };
    agent.files += 1;
    let here = Where { folders: [due.head.cwd.as_deref(), None], ..Where::default() };
    let is_paused = runtime::is_paused(&Projects { config, redactor: &folder.redactor }, &here, environment::now());
    if !config.enabled.value || is_paused {
        agent.counts.skip(OFF);
        return Ok(FileResult::default());
    }
    if due.head.folder().is_some_and(|folder| folder.components().any(|part| part.as_os_str() == CLAUDE_MEM)) {
        agent.counts.skip(OF_MEMORY_TOOL);
        return Ok(FileResult::default());
    }
    let from = known.filter(|_| before == ReadBefore::InPart).map_or(0, |known| known.offset);
    agent.whole += u64::from(from == 0);
    let options = PastOptions {
        path: file.path.clone(),
        cwd: due.head.cwd.clone(),
        length: file.length,
        skip_tools: config.skip_tools.value.clone(),
        thinking: config.thinking.value,
        copied: if from == 0 { copied(due, &target.files) } else { HashSet::new() },
        first: Some(from > 0).filter(|later| *later).and_then(|_| first_lines(&file.path).into_iter().find(file.format.is_line)),
    };
    let imported = |size, offset| ImportedFile {
        platform: file.format.platform,
        version: file.format.version,
        size,
        modified_at: file.modified_at,
        offset,
        first_line: due.head.first_line,
    };
    let mut writer = Writer::new(folder, target, due.head.cwd.as_deref(), before);
    writer.run.distils = false;
    if let Some(deadline) = deadline {
        writer.run.wait = deadline.wait;
    }
    let open = |writer: &Writer| Store::open(&config.files.value, writer.run.wait);
    if before != ReadBefore::InPart {
        // If this run is killed, the next run must not mistake these events for events from hooks.
        open(&writer)?.set_imported(&name, &imported(0, 0), None)?;
    }
    let mut reader = (file.format.reader)(&options);
    let mut found = Found { resume_at: from, ..Found::default() };
    let read = match databases.records(file) {
        Some(Ok(records)) => Ok(read_records(&mut *reader, records, file.length, &mut found, &mut writer, agent)?),
        Some(Err(error)) => Err(io::Error::other(format!("{error:#}"))),
        None => read(&mut *reader, file, from, &mut found, &mut writer, agent, deadline)?,
    };
    let read = match read {
        Ok(read) => read,
        Err(error) => {
            // Earlier events are stored, and the next run tries again.
            agent.counts.skip(UNREADABLE);
            agent.unreadable.push(format!("{name}: {error}"));
            return Ok(FileResult::default());
        }
    };
    writer.write(std::mem::take(&mut found.events), agent)?;
    if writer.past.as_ref().is_some_and(|past| past.is_at_work) {
        agent.counts.skip(AT_WORK);
        return Ok(FileResult::default());
    }
    let muted = writer.past.as_mut().map(|past| past.take_muted(writer.run.now)).unwrap_or_default();
    if !muted.is_empty() {
        // The files of subagents are read later.
        pauses::add_past(&config.switches_file, &muted)?;
    }
    let is_forgotten = writer.past.as_ref().is_some_and(|past| past.is_forgotten);
    if is_forgotten {
        agent.counts.skip(FORGOTTEN);
    }
    let session = writer.past.as_ref().filter(|_| !is_forgotten).map(|past| past.imported(writer.run.now));
    let after = imported(if read.is_whole { file.length } else { 0 }, found.resume_at);
    if !is_forgotten {
        agent.counts.add(&found.counts);
    }
    let rest = match deadline {
        None => Some(FileRest { config: config.clone(), name: name.clone(), file: after.clone(), session }),
        Some(_) => {
            let mut store = open(&writer)?;
            if let Some(session) = &session {
                store.note_caught_up(session.platform, &session.id)?;
            }
            store.set_imported(&name, &after, session.as_ref())?;
            None
        }
    };
    target.files.insert(name, after);
    Ok(FileResult { bytes: read.end - from, muted, rest })
}

/// Returns true if a file is the one that was read before, even if it has grown.
fn is_same_file(known: &ImportedFile, due: &DueFile) -> bool {
    let begins_alike = known.first_line.zip(due.head.first_line).is_none_or(|(before, now)| before == now);
    known.version == due.file.format.version && known.size <= due.file.length && begins_alike
}

/// The extent to which a file was read.
struct ReadFile {
    /// Offset after the last line, in bytes.
    end: u64,
    is_whole: bool,
}

/// Reads the lines of a file. The inner error states why the file cannot be read.
fn read(
    reader: &mut dyn PastReader,
    file: &FoundFile,
    from: u64,
    found: &mut Found,
    writer: &mut Writer,
    agent: &mut AgentReport,
    deadline: Option<Deadline>,
) -> Result<io::Result<ReadFile>> {
    let mut lines = match Lines::open(&file.path, from) {
        Ok(lines) => lines,
        Err(error) => return Ok(Err(error)),
    };
    lines.deadline = deadline.map(|deadline| deadline.at);
    let mut last = None;
    loop {
        let resume_at = found.resume_at;
        let (at, line) = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        };
        let Some(record) = payload::line(line) else {
            // The last line may still be growing.
            if lines.is_complete {
                agent.broken_line(|| (file.path.clone(), lines_before(&file.path, from) + lines.number));
            }
            continue;
        };
        // Part of an object is no object.
        lines.complete_last();
        if let Some(at) = time(&record) {
            agent.saw(at);
            last = last.max(Some(at));
        }
        reader.line(record, at, found);
        match deadline {
            Some(deadline) if !write_in_time(deadline, found, resume_at, writer, agent)? => {
                return Ok(Ok(ReadFile { end: lines.end, is_whole: false }));
            }
            None if found.events.len() >= AT_ONCE => writer.write(std::mem::take(&mut found.events), agent)?,
            _ => {}
        }
    }
    if lines.is_late {
        return Ok(Ok(ReadFile { end: lines.end, is_whole: false }));
    }
    // Lines of some formats have no time.
    let is_over = environment::now() - last.unwrap_or(file.modified_at) > OVER;
    if is_over {
        lines.complete_last();
    }
    let resume_at = found.resume_at;
    reader.end(lines.end, is_over, found);
    let is_whole = deadline.map_or(Ok(true), |deadline| write_in_time(deadline, found, resume_at, writer, agent))?;
    Ok(Ok(ReadFile { end: lines.end, is_whole }))
}

/// Reads records that are in memory.
fn read_records(
    reader: &mut dyn PastReader,
    records: Vec<Value>,
    length: u64,
    found: &mut Found,
    writer: &mut Writer,
    agent: &mut AgentReport,
) -> Result<ReadFile> {
    let mut last = None;
    for (at, record) in records.into_iter().filter(Value::is_object).enumerate() {
        if let Some(at) = time(&record) {
            agent.saw(at);
            last = last.max(Some(at));
        }
        reader.line(record, at as u64, found);
        write_in_parts(found, AT_ONCE, writer, agent)?;
    }
    let is_over = last.is_none_or(|last| environment::now() - last > OVER);
    reader.end(length, is_over, found);
    write_in_parts(found, 0, writer, agent)?;
    Ok(ReadFile { end: length, is_whole: true })
}

/// Stores the events so far, in parts, if there are at least `least`.
fn write_in_parts(found: &mut Found, least: usize, writer: &mut Writer, agent: &mut AgentReport) -> Result<()> {
    if found.events.len() < least {
        return Ok(());
    }
    let mut events = std::mem::take(&mut found.events);
    while !events.is_empty() {
        let rest = events.split_off(events.len().min(AT_ONCE));
        let mut part = std::mem::replace(&mut events, rest);
        // Documents and databases are read from the start: only new events count.
        writer.look_up(&part)?;
        let stored: Vec<Event> = match &writer.past {
            Some(past) => part.extract_if(.., |event| past.is_stored(event)).collect(),
            None => Vec::new(),
        };
        let (prompts, tool_uses, failures) = counted(&stored);
        found.counts.prompts = found.counts.prompts.saturating_sub(prompts);
        found.counts.tool_uses = found.counts.tool_uses.saturating_sub(tool_uses);
        found.counts.failures = found.counts.failures.saturating_sub(failures);
        writer.write(part, agent)?;
    }
    Ok(())
}

/// Reason for which a call is not stored.
const REPEATED: &str = "call with the id of another one of its turn";

/// Counts the prompts, tool uses and failures among events.
fn counted(events: &[Event]) -> (u64, u64, u64) {
    let mut counts = (0, 0, 0);
    for event in events {
        match &event.what {
            EventKind::UserPrompt { .. } => counts.0 += 1,
            EventKind::ToolUsed(tool) => {
                counts.1 += 1;
                counts.2 += u64::from(tool.succeeded == Some(false));
            }
            _ => {}
        }
    }
    counts
}

/// Stores as many events as the time allows, and returns true if all fit and time remains. A turn that does not fit is
/// read again at the next session start, which stores the rest of it.
fn write_in_time(
    deadline: Deadline,
    found: &mut Found,
    resume_at: u64,
    writer: &mut Writer,
    agent: &mut AgentReport,
) -> Result<bool> {
    let mut events = std::mem::take(&mut found.events);
    writer.look_up(&events)?;
    if let Some(past) = writer.past.as_ref().filter(|_| events.len() > deadline.events()) {
        events.retain(|event| !past.is_stored(event));
    }
    let fitting = deadline.events();
    let fits = events.len() <= fitting;
    events.truncate(fitting);
    writer.write(events, agent)?;
    if !fits {
        found.resume_at = resume_at;
    }
    Ok(fits && Instant::now() < deadline.at)
}

/// Distils the units of a session, those of a killed run after its leases expire, and indexes their texts.
fn distil(run: &Run, store: &mut Store, platform: Platform, session: &str) -> Result<()> {
    let due = store.due_in_session(platform, session)?;
    let units: Vec<i64> = due.iter().map(|due| due.unit).collect();
    let wait = store.leased_until(&units)?.unwrap_or_default() - environment::now();
    if wait > 0 {
        thread::sleep(Duration::from_millis(wait.min(LEASE) as u64));
    }
    let (ignored, now) = (run.config.ignored(), environment::now());
    let home = run.config.home.as_deref();
    Distiller {
        redactor: run.redactor,
        home,
        ignored: &ignored,
        now,
        gone: Gone::Deleted,
        agent_notes: run.config.agent_notes.value,
    }
    .distil(store, &due)?;
    store.index_waiting(usize::MAX, &mut |_| ()).map(drop)
}

/// Returns the ids of lines that an earlier file also has: a continued session begins with a copy of the session that
/// it continues. An earlier file that cannot be read contributes none.
fn copied(due: &DueFile, known: &Imported) -> HashSet<u64> {
    let mut copied = HashSet::new();
    let name = due.file.name();
    let Some(first) = due.head.first_line.filter(|_| (due.file.format.session_file)(&due.file.path).is_none()) else {
        return copied;
    };
    for (path, _) in known.iter().filter(|(path, known)| **path != name && known.first_line == Some(first)) {
        let Ok(mut lines) = Lines::open(Path::new(path), 0) else { continue };
        while let Ok(Some((_, line))) = lines.next() {
            copied.extend(serde_json::from_slice::<Value>(line).ok().as_ref().and_then(line_id));
        }
    }
    copied
}
