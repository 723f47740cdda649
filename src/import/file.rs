//! One session file through the pipeline.

use super::find::{FoundFile, Imported, first_lines};
use super::lines::{Lines, lines_before};
use super::report::{AgentReport, FORGOTTEN, OFF, UNREADABLE};
use crate::config::{Config, environment};
use crate::distil::Distiller;
use crate::ingest::{Caller, Input, Run, ingest};
use crate::model::{Event, EventKind, Millis, Platform};
use crate::platforms::past::{Found, PastOptions, PastReader, line_id};
use crate::platforms::transcript::time;
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::imports::{ImportedFile, StoredMessage};
use crate::store::memories::Gone;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// A session without an event for this time, in milliseconds, is over.
const OVER: Millis = 12 * 3_600_000;
/// Minimum number of events in a transaction, if the file has so many.
const AT_ONCE: usize = 400;
/// Maximum time to wait for leases of a killed run, in milliseconds: they last as long.
const LEASE: Millis = 10_000;

/// What the first lines of a file say.
#[derive(Debug, Default)]
pub struct Head {
    pub at: Millis,
    pub cwd: Option<String>,
    pub first_line: Option<u64>,
}

impl Head {
    /// The folder in which the session began, whose settings count.
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
        let lines = first_lines(&file.path);
        let head = Head {
            at: lines.iter().find_map(time).unwrap_or(file.modified_at),
            cwd: lines.iter().find_map(|line| (file.format.cwd)(line).map(String::from)),
            first_line: lines.iter().find_map(line_id),
        };
        DueFile { file, head }
    }
}

/// Imports a file; returns how many bytes were read.
pub fn import(config: &Config, redactor: &Redactor, due: &DueFile, known: &mut Imported, agent: &mut AgentReport) -> Result<u64> {
    let (file, name) = (&due.file, due.file.name());
    let before = known.get(&name).filter(|known| known.version == file.format.version && known.size <= file.length);
    if known.get(&name).is_some_and(|known| file.is_unchanged(known)) {
        agent.unchanged += 1;
        return Ok(0);
    }
    agent.files += 1;
    let here = Where { folders: [due.head.cwd.as_deref(), None], ..Where::default() };
    let is_paused = runtime::is_paused(&Projects { config, redactor }, &here, environment::now());
    if !config.enabled.value || is_paused {
        agent.counts.skip(OFF);
        return Ok(0);
    }
    let from = before.map_or(0, |known| known.offset);
    agent.whole += u64::from(from == 0);
    let options = PastOptions {
        path: file.path.clone(),
        length: file.length,
        skip_tools: config.skip_tools.value.clone(),
        thinking: config.thinking.value,
        copied: if from == 0 { copied(due, known) } else { HashSet::new() },
        first: first_lines(&file.path).into_iter().find(|line| from > 0 && (file.format.is_line)(line)),
    };
    let imported = |size, offset| ImportedFile {
        platform: file.format.platform,
        version: file.format.version,
        size,
        modified_at: file.modified_at,
        offset,
        first_line: due.head.first_line,
    };
    let run = Run::new(Caller::History, config, redactor);
    let began = due.head.cwd.as_deref();
    let mut writer = Writer { run: &run, session: None, began, is_imported: before.is_some() };
    if before.is_none() {
        // After a kill, the next run must not take what is here for a hook's.
        Store::open(&config.files.value, PERSON_WAIT)?.set_imported(&name, &imported(0, 0))?;
    }
    let mut reader = (file.format.reader)(&options);
    let mut found = Found { resume_at: from, ..Found::default() };
    let end = match read(&mut *reader, file, from, &mut found, &mut writer, agent)? {
        Ok(end) => end,
        Err(error) => {
            // What came before is stored, and the next run tries again.
            agent.counts.skip(UNREADABLE);
            agent.unreadable.push(format!("{name}: {error}"));
            return Ok(0);
        }
    };
    writer.write(std::mem::take(&mut found.events), agent)?;
    match &writer.session {
        Some(session) if session.is_forgotten => agent.counts.skip(FORGOTTEN),
        _ => agent.counts.add(&found.counts),
    }
    let read = imported(file.length, found.resume_at);
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    if let Some(session) = &writer.session {
        distil_rest(&run, &mut store, file.format.platform, &session.id)?;
    }
    store.set_imported(&name, &read)?;
    known.insert(name, read);
    Ok(end - from)
}

/// Reads the lines of a file; returns the offset behind the last one, or why the file cannot be read.
fn read(
    reader: &mut dyn PastReader,
    file: &FoundFile,
    from: u64,
    found: &mut Found,
    writer: &mut Writer,
    agent: &mut AgentReport,
) -> Result<io::Result<u64>> {
    let mut lines = match Lines::open(&file.path, from) {
        Ok(lines) => lines,
        Err(error) => return Ok(Err(error)),
    };
    let mut last = None;
    loop {
        let (at, line) = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => return Ok(Err(error)),
        };
        let Some(record) = serde_json::from_slice::<Value>(line).ok().filter(Value::is_object) else {
            // The last line may still be growing.
            if lines.is_complete {
                agent.broken_line(|| (file.path.clone(), lines_before(&file.path, from) + lines.number));
            }
            continue;
        };
        if let Some(at) = time(&record) {
            agent.saw(at);
            last = last.max(Some(at));
        }
        reader.line(record, at, found);
        if found.events.len() >= AT_ONCE {
            writer.write(std::mem::take(&mut found.events), agent)?;
        }
    }
    let is_over = last.is_none_or(|last| environment::now() - last > OVER);
    reader.end(lines.end, is_over, found);
    Ok(Ok(lines.end))
}

/// Distils what a killed run has left, once its leases have ended.
fn distil_rest(run: &Run, store: &mut Store, platform: Platform, session: &str) -> Result<()> {
    let due = store.due_in_session(platform, session)?;
    let units: Vec<i64> = due.iter().map(|due| due.unit).collect();
    let Some(until) = store.leased_until(&units)? else { return Ok(()) };
    let wait = until - environment::now();
    if wait > 0 {
        thread::sleep(Duration::from_millis(wait.min(LEASE) as u64));
    }
    let (ignored, now) = (run.config.ignored(), environment::now());
    let home = run.config.home.as_deref();
    Distiller { redactor: run.redactor, home, ignored: &ignored, now, gone: Gone::Deleted }.distil(store, &due).map(drop)
}

/// Ids of lines that an earlier file has too: a continued session begins with a copy of the session that it continues.
/// An earlier file that cannot be read has none.
fn copied(due: &DueFile, known: &Imported) -> HashSet<u64> {
    let mut copied = HashSet::new();
    let name = due.file.name();
    let Some(first) = due.head.first_line.filter(|_| !(due.file.format.is_part)(&due.file.path)) else { return copied };
    for (path, _) in known.iter().filter(|(path, known)| **path != name && known.first_line == Some(first)) {
        let Ok(mut lines) = Lines::open(Path::new(path), 0) else { continue };
        while let Ok(Some((_, line))) = lines.next() {
            copied.extend(serde_json::from_slice::<Value>(line).ok().as_ref().and_then(line_id));
        }
    }
    copied
}

/// The session of a file.
struct KnownSession {
    /// The agent's id.
    id: String,
    /// Something of it was forgotten: then none of it comes back.
    is_forgotten: bool,
    /// What hooks recorded of it, if they did.
    by_hooks: Option<Vec<StoredMessage>>,
    /// Whether there was something that hooks had not recorded.
    found_more: bool,
}

/// Sends events through the pipeline.
struct Writer<'a> {
    run: &'a Run<'a>,
    session: Option<KnownSession>,
    /// The folder in which the session began.
    began: Option<&'a str>,
    /// Whether an import has read a part of the file before.
    is_imported: bool,
}

impl Writer<'_> {
    fn write(&mut self, mut events: Vec<Event>, agent: &mut AgentReport) -> Result<()> {
        let Some(first) = events.first() else { return Ok(()) };
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.look_up(first.platform, &first.session)?,
        };
        if !session.is_forgotten {
            agent.sessions.insert(session.id.clone());
            events.iter_mut().for_each(|event| self.put_in_folder(event));
            if session.by_hooks.is_some() {
                events = without_recorded(self.run, &mut session, events);
            }
            ingest(self.run, Input::Events(events))?;
        }
        self.session = Some(session);
        Ok(())
    }

    fn look_up(&self, platform: Platform, id: &str) -> Result<KnownSession> {
        let store = Store::open(&self.run.config.files.value, PERSON_WAIT)?;
        let recorded = if self.is_imported { None } else { store.session_by_agent_id(platform, id)? };
        Ok(KnownSession {
            id: id.to_string(),
            is_forgotten: store.was_forgotten(platform, id)?,
            by_hooks: recorded.map(|session| store.texts_of_session(session.id)).transpose()?,
            found_more: false,
        })
    }

    /// Where a project's folder is gone, nothing says where its root was: paths are relative to where the session began.
    fn put_in_folder(&self, event: &mut Event) {
        let (Some(began), Some(cwd)) = (self.began, event.cwd.as_deref()) else { return };
        if cwd != began && Path::new(cwd).starts_with(began) && !Path::new(began).is_dir() {
            event.cwd = Some(began.to_string());
        }
    }
}

/// Leaves out what hooks have recorded, also under other ids. Tool uses are known by their ids when they are stored.
fn without_recorded(run: &Run, session: &mut KnownSession, events: Vec<Event>) -> Vec<Event> {
    let mut left = Vec::new();
    let mut renamed: HashMap<String, Option<String>> = HashMap::new();
    let recorded = session.by_hooks.as_deref().unwrap_or_default();
    let stored = |of_user: bool, event: &Event| {
        let clean = run.redactor.clean(event.clone());
        let (EventKind::UserPrompt { text } | EventKind::TurnEnded { closing: Some(text), .. }) = &clean.what else {
            return None;
        };
        recorded.iter().find(|known| known.is_users == of_user && known.text == *text)
    };
    for mut event in events {
        match &event.what {
            EventKind::UserPrompt { .. } => {
                let is_same = |known: &StoredMessage| known.is_users && known.prompt == event.prompt;
                if event.prompt.is_some() && recorded.iter().any(is_same) {
                    continue;
                }
                if let Some(known) = stored(true, &event) {
                    renamed.extend(event.prompt.map(|own| (own, known.prompt.clone())));
                    continue;
                }
                session.found_more = true;
            }
            EventKind::TurnEnded { .. } if stored(false, &event).is_some() => continue,
            EventKind::TurnEnded { .. } => session.found_more = true,
            EventKind::SessionStarted(_) => continue,
            EventKind::SessionEnded { .. } if !session.found_more => continue,
            _ => {}
        }
        if let Some(id) = event.prompt.as_ref().and_then(|own| renamed.get(own)) {
            event.prompt.clone_from(id);
        }
        left.push(event);
    }
    left
}
