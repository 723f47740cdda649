//! One session file through the pipeline.

use super::find::{FoundFile, first_lines, is_compressed, open};
use super::report::ImportReport;
use crate::config::{Config, environment};
use crate::distil::Distiller;
use crate::ingest::{Caller, Input, Run, ingest};
use crate::model::{Event, EventKind, Millis, Platform};
use crate::platforms::past::{Found, PastOptions, line_id};
use crate::platforms::transcript::time;
use crate::redact::Redactor;
use crate::store::imports::{ImportedFile, StoredMessage};
use crate::store::memories::Gone;
use crate::store::{PERSON_WAIT, Store};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A session without an event for this time, in milliseconds, is over.
const OVER: Millis = 12 * 3_600_000;
/// Minimum number of events in a transaction, if the file has so many.
const AT_ONCE: usize = 400;
/// Maximum time to wait for leases of a killed run, in milliseconds: they last as long.
const LEASE: Millis = 10_000;
/// Maximum bytes of a line; a longer one is skipped.
const LINE: u64 = 256 << 20;

/// What an import needs besides the files.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// Settings without those of a folder.
    pub config: &'a Config,
    pub redactor: &'a Redactor,
    pub now: Millis,
}

/// What the first lines of a file say.
#[derive(Debug, Default)]
pub struct Head {
    pub at: Millis,
    pub cwd: Option<String>,
    pub first_line: Option<u64>,
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
pub fn import(
    import: &Import,
    config: &Config,
    due: &DueFile,
    known: &mut HashMap<String, ImportedFile>,
    report: &mut ImportReport,
) -> Result<u64> {
    let (file, name) = (&due.file, due.file.name());
    let agent = report.agent(file.format.platform);
    agent.files += 1;
    if !config.enabled.value {
        agent.counts.skip("session in a folder where recording is off");
        return Ok(0);
    }
    let before = known.get(&name).filter(|known| known.version == file.format.version && known.size <= file.length);
    let from = before.map_or(0, |known| known.offset);
    let options = PastOptions {
        path: file.path.clone(),
        length: file.length,
        skip_tools: config.skip_tools.value.clone(),
        thinking: config.thinking.value,
        copied: if from == 0 { copied(due, known)? } else { HashSet::new() },
        first: first_lines(&file.path).into_iter().find(|line| from > 0 && (file.format.is_line)(line)),
    };
    let mut reader = (file.format.reader)(&options);
    let mut found = Found { resume_at: from, ..Found::default() };
    let run = Run::new(Caller::History, config, import.redactor);
    let mut writer = Writer {
        run: &run,
        by_hooks: None,
        session: None,
        is_known: before.is_some(),
        began: due.head.cwd.as_deref(),
        found_more: false,
        is_forgotten: false,
    };
    let imported = |size, offset| ImportedFile {
        platform: file.format.platform,
        version: file.format.version,
        size,
        modified_at: file.modified_at,
        offset,
        first_line: due.head.first_line,
    };
    if before.is_none() {
        // After a kill, the next run must not take what is here for a hook's.
        Store::open(&config.files.value, PERSON_WAIT)?.set_imported(&name, &imported(0, 0))?;
    }
    let mut last = None;
    let mut lines = Lines::open(&file.path, from)?;
    while let Some((at, line)) = lines.next()? {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            // The last line may still be growing.
            if !lines.is_complete {
                break;
            }
            agent.broken_line(&file.path, lines.number);
            continue;
        };
        if let Some(at) = time(&record) {
            agent.saw(at);
            last = last.max(Some(at));
        }
        reader.line(record, at, &mut found);
        if found.events.len() >= AT_ONCE {
            writer.write(std::mem::take(&mut found.events), &mut agent.sessions)?;
        }
    }
    let is_over = last.is_none_or(|last| import.now - last > OVER);
    reader.end(lines.end, is_over, &mut found);
    writer.write(std::mem::take(&mut found.events), &mut agent.sessions)?;
    match writer.is_forgotten {
        true => agent.counts.skip("session of which something was forgotten"),
        false => agent.counts.add(&found.counts),
    }
    let read = imported(file.length, found.resume_at);
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    if let Some(session) = &writer.session {
        distil_rest(&run, &mut store, file.format.platform, session)?;
    }
    store.set_imported(&name, &read)?;
    known.insert(name, read);
    Ok(lines.end - from)
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
fn copied(due: &DueFile, known: &HashMap<String, ImportedFile>) -> Result<HashSet<u64>> {
    let mut copied = HashSet::new();
    let name = due.file.name();
    if (due.file.format.is_part)(&due.file.path) {
        return Ok(copied);
    }
    let Some(first) = due.head.first_line else { return Ok(copied) };
    for (path, _) in known.iter().filter(|(path, known)| **path != name && known.first_line == Some(first)) {
        let path = Path::new(path);
        let Ok(mut lines) = Lines::open(path, 0) else { continue };
        while let Some((_, line)) = lines.next()? {
            copied.extend(serde_json::from_slice::<Value>(line).ok().as_ref().and_then(line_id));
        }
    }
    Ok(copied)
}

/// Sends events through the pipeline.
struct Writer<'a> {
    run: &'a Run<'a>,
    /// What hooks recorded of the session, if they did.
    by_hooks: Option<Vec<StoredMessage>>,
    /// The agent's id of the session.
    session: Option<String>,
    /// Whether it was looked for.
    is_known: bool,
    /// The folder in which the session began.
    began: Option<&'a str>,
    /// Whether something of the session was forgotten: then none of it comes back.
    is_forgotten: bool,
    /// Whether there was something that hooks had not recorded.
    found_more: bool,
}

impl Writer<'_> {
    fn write(&mut self, mut events: Vec<Event>, sessions: &mut BTreeSet<String>) -> Result<()> {
        let Some(first) = events.first() else { return Ok(()) };
        if self.session.is_none() {
            let store = Store::open(&self.run.config.files.value, PERSON_WAIT)?;
            self.is_forgotten = store.was_forgotten(first.platform, &first.session)?;
        }
        self.session.get_or_insert_with(|| first.session.clone());
        if self.is_forgotten {
            return Ok(());
        }
        sessions.insert(first.session.clone());
        if !self.is_known {
            self.is_known = true;
            let store = Store::open(&self.run.config.files.value, PERSON_WAIT)?;
            let session = store.session_by_agent_id(first.platform, &first.session)?;
            self.by_hooks = session.map(|session| store.texts_of_session(session.id)).transpose()?;
        }
        for event in &mut events {
            self.put_in_folder(event);
        }
        if let Some(recorded) = self.by_hooks.take() {
            events = self.without_recorded(events, &recorded);
            self.by_hooks = Some(recorded);
        }
        ingest(self.run, Input::Events(events)).map(drop)
    }

    /// Where a project's folder is gone, nothing says where its root was: paths are relative to where the session began.
    fn put_in_folder(&self, event: &mut Event) {
        let (Some(began), Some(cwd)) = (self.began, event.cwd.as_deref()) else { return };
        if cwd != began && Path::new(cwd).starts_with(began) && !Path::new(began).is_dir() {
            event.cwd = Some(began.to_string());
        }
    }

    /// Leaves out what hooks have recorded, also under other ids. Tool uses are known by their ids when they are stored.
    fn without_recorded(&mut self, events: Vec<Event>, recorded: &[StoredMessage]) -> Vec<Event> {
        let mut left = Vec::new();
        let mut renamed: HashMap<String, Option<String>> = HashMap::new();
        let stored = |of_user: bool, event: &Event| {
            let clean = self.run.redactor.clean(event.clone());
            let (EventKind::UserPrompt { text } | EventKind::TurnEnded { closing: Some(text), .. }) = &clean.what else {
                return None;
            };
            recorded.iter().find(|known| known.is_users == of_user && known.text == *text)
        };
        for mut event in events {
            match &event.what {
                EventKind::UserPrompt { .. } => {
                    let is_named =
                        event.prompt.is_some() && recorded.iter().any(|known| known.is_users && known.prompt == event.prompt);
                    if is_named {
                        continue;
                    }
                    if let Some(known) = stored(true, &event) {
                        if let Some(own) = event.prompt {
                            renamed.insert(own, known.prompt.clone());
                        }
                        continue;
                    }
                    self.found_more = true;
                }
                EventKind::TurnEnded { .. } if stored(false, &event).is_some() => continue,
                EventKind::TurnEnded { .. } => self.found_more = true,
                EventKind::SessionStarted(_) => continue,
                EventKind::SessionEnded { .. } if !self.found_more => continue,
                _ => {}
            }
            if let Some(id) = event.prompt.as_ref().and_then(|own| renamed.get(own)) {
                event.prompt.clone_from(id);
            }
            left.push(event);
        }
        left
    }
}

/// The lines of a part of a file.
struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Number of the last line, from 1 at the beginning of the part.
    number: u64,
    /// Offset behind the last complete line.
    end: u64,
    /// Offset behind the last line.
    at: u64,
    /// Whether the last line ended.
    is_complete: bool,
    path: String,
}

impl Lines {
    /// Reads from an offset on, in bytes of the text.
    fn open(path: &Path, from: u64) -> Result<Lines> {
        let unreadable = || format!("cannot read {}", path.display());
        let mut reader: Box<dyn BufRead> = if is_compressed(path) {
            open(path).with_context(unreadable)?
        } else {
            let mut file = File::open(path).with_context(unreadable)?;
            file.seek(SeekFrom::Start(from)).with_context(unreadable)?;
            Box::new(BufReader::with_capacity(1 << 18, file))
        };
        if is_compressed(path) {
            std::io::copy(&mut reader.by_ref().take(from), &mut std::io::sink()).with_context(unreadable)?;
        }
        let path = path.display().to_string();
        Ok(Lines { reader, line: Vec::new(), number: 0, end: from, at: from, is_complete: true, path })
    }

    /// The next line that is not blank, and its offset.
    fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        loop {
            self.line.clear();
            let at = self.at;
            let read = self.reader.by_ref().take(LINE).read_until(b'\n', &mut self.line);
            let read = read.with_context(|| format!("cannot read {}", self.path))? as u64;
            if read == 0 {
                return Ok(None);
            }
            self.at += read;
            self.number += 1;
            self.is_complete = self.line.ends_with(b"\n");
            if self.is_complete {
                self.end = self.at;
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((at, self.line.trim_ascii())));
            }
        }
    }
}
