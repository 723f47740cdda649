//! Use case: one event → completed from disk → redacted → stored, or kept in the spool.

use crate::config::Config;
use crate::config::switches::{Known, Off};
use crate::domains;
use crate::files;
use crate::model::{Event, Happening, Millis, Platform, ProjectId, ProjectRow, TurnUsage};
use crate::platforms::transcript::{self, Wanted};
use crate::project::{self, client, git};
use crate::redact::{Clean, Redactor};
use crate::store::events::{Identify, TranscriptRead};
use crate::store::{self, HOOK_WAIT, Store, spool};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Bytes of a transcript that are read at the end of one turn.
const TRANSCRIPT_BYTES: u64 = 4 << 20;

/// What recording needs to know of this run.
#[derive(Debug)]
pub struct Recorder<'a> {
    pub config: &'a Config,
    pub redactor: &'a Redactor,
    /// The agent's process, where the platform tells it.
    pub client_pid: Option<u32>,
    /// Where the agent was started.
    pub session_folder: Option<PathBuf>,
    /// The platform's own folder: a transcript elsewhere is not opened.
    pub transcripts: Option<PathBuf>,
}

impl Recorder<'_> {
    /// Tells whether the user switched recording off for an event's session or project.
    pub fn is_off(&self, event: &Event, now: Millis) -> bool {
        self.is_off_for(Some((event.platform, &event.session)), event.cwd.as_deref(), event.project.as_ref(), now)
    }

    /// The same for a session, for a folder, and for a project that is named: one that is off is enough.
    pub fn is_off_for(
        &self,
        session: Option<(Platform, &str)>,
        folder: Option<&str>,
        named: Option<&ProjectId>,
        now: Millis,
    ) -> bool {
        let off: Vec<&Off> = self.config.switches.off.iter().filter(|off| off.holds(now)).collect();
        let places = self.places(folder, named, &off);
        off.iter().any(|off| off.is_about(session, &places))
    }

    /// The folder, where the session was begun, and the project that is named, if one of the switches asks for it: to know
    /// a project takes a look at its repository and at the store.
    fn places(&self, folder: Option<&str>, named: Option<&ProjectId>, switches: &[&Off]) -> Vec<Known> {
        if !switches.iter().any(|off| off.asks_for_project()) {
            return Vec::new();
        }
        let store = Store::open_to_read(&self.config.files.value, HOOK_WAIT).ok().flatten();
        let begun = self.session_folder.as_ref().and_then(|f| f.to_str());
        let folders = folder.into_iter().chain(begun).map(|folder| self.known(folder, store.as_ref()).0);
        let named = named.map(|id| self.known_by(PathBuf::new(), &self.redactor.clean(id.clone()), store.as_ref()).0);
        folders.chain(named).collect()
    }

    /// What the project of a folder is known by: what is found there, and what the store knows of it.
    pub fn known(&self, folder: &str, store: Option<&Store>) -> (Known, Option<ProjectId>, Option<ProjectRow>) {
        let path = Path::new(folder);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let Some(id) = self.project(folder) else { return (Known { folder: real, ..Known::default() }, None, None) };
        let id = self.redactor.clean(id);
        let (known, row) = self.known_by(real, &id, store);
        (known, Some((*id).clone()), row)
    }

    fn known_by(&self, folder: PathBuf, id: &Clean<ProjectId>, store: Option<&Store>) -> (Known, Option<ProjectRow>) {
        let row = store.and_then(|s| s.project_by_identity(id).ok().flatten());
        let mut keys = row.as_ref().zip(store).and_then(|(row, s)| s.project_keys(row.id).ok()).unwrap_or_default();
        let is_part = id.places.iter().any(|place| keys.contains(place));
        if !is_part {
            keys.extend(id.keys.iter().cloned());
        }
        (Known { folder, keys, is_part }, row)
    }

    /// The project of an event: the one that it names, or that of its folder.
    fn project_of(&self, event: &Event) -> Option<Clean<ProjectId>> {
        let found = event.project.clone().or_else(|| self.project(event.cwd.as_deref()?));
        found.map(|id| self.redactor.clean(id))
    }

    /// The project of a folder, by the name that the user gave it or by what is found there.
    pub fn project(&self, cwd: &str) -> Option<ProjectId> {
        let cwd = Path::new(cwd);
        let project = project::identify(cwd, self.home(), self.config.project_named(cwd))?;
        let domain = self.config.domain.value.clone().filter(|name| domains::text(name).is_some());
        Some(ProjectId { domain, ..project })
    }

    fn home(&self) -> Option<&Path> {
        self.config.home.as_deref()
    }

    /// Adds what the disk knows at this moment (git, the client's process), makes paths relative, and redacts.
    pub fn complete(&self, mut event: Event) -> Clean<Event> {
        let cwd = event.cwd.clone();
        let state = || git::state_at(Path::new(cwd.as_deref()?), self.home());
        // A session may be met in its middle, and a fork's transcript begins with its parent's.
        if matches!(event.what, Happening::SessionStarted(_) | Happening::Prompted { .. }) {
            event.transcript_length = self.transcript(&event).and_then(|path| files::length(&path));
        }
        match &mut event.what {
            Happening::SessionStarted(start) => {
                start.git = state();
                start.client = self.client_pid.map(client::client);
            }
            Happening::SessionEnded { git, .. } => *git = state(),
            Happening::AboutToEdit { path } => *path = project::relative(path, cwd.as_deref(), self.home()),
            Happening::ToolUsed(tool) => {
                if let Some(path) = &mut tool.path {
                    let relative = project::relative(path, cwd.as_deref(), self.home());
                    // A tool of which the path is all that is to say shows it as it is stored.
                    if tool.content.as_ref() == Some(path) {
                        tool.content = Some(relative.clone());
                    }
                    *path = relative;
                }
            }
            _ => {}
        }
        self.redactor.clean(event)
    }

    /// Stores an event, after all that waits in the spool. On an error nothing of it is stored. A database that turns
    /// out to be broken is set aside, and the event goes into a new one.
    pub fn store(&self, event: &Clean<Event>) -> Result<Store> {
        let mut store = Store::open(&self.config.files.value, HOOK_WAIT)?;
        match self.store_in(&mut store, event) {
            Ok(()) => Ok(store),
            // On a full disk the log is written back, which makes room, and once more.
            Err(error) if store::is_full(&error) => {
                store.settle_all();
                self.store_in(&mut store, event).map(|()| store)
            }
            Err(error) => {
                if !store.set_aside_if_broken(&error)? {
                    return Err(error);
                }
                let mut store = Store::open(&self.config.files.value, HOOK_WAIT)?;
                self.store_in(&mut store, event)?;
                Ok(store)
            }
        }
    }

    fn store_in(&self, store: &mut Store, event: &Clean<Event>) -> Result<()> {
        let read = self.read_transcript(store, event)?;
        let identify: Identify = &|event| self.project_of(event);
        let work = |tx: &crate::store::Tx| tx.store_event(event, read.as_ref(), identify);
        if spool::is_waiting(&self.config.files.value) {
            store.write_after_spool(self.redactor, &|tx, event| tx.store_event(event, None, identify), work)?;
        } else {
            store.write(work)?;
        }
        if matches!(event.what, Happening::SessionStarted(_)) {
            self.close_left_units(store, event)?;
        }
        Ok(())
    }

    /// Closes what sessions of this project left open whose client is gone, or of which nothing was heard for long.
    fn close_left_units(&self, store: &mut Store, event: &Event) -> Result<()> {
        let left = store.left_open(event.platform, &event.session)?;
        let closed = left.iter().filter_map(|l| Some((l, l.closed_by(l.client.and_then(client::is_alive), event.at)?)));
        let closed: Vec<_> = closed.collect();
        if closed.is_empty() {
            return Ok(());
        }
        store.write(|tx| closed.iter().try_for_each(|(left, by)| tx.close_units(left.session, *by, left.heard_of)))
    }

    /// Stores what waits in the spool.
    pub fn drain(&self, store: &mut Store) -> Result<()> {
        if !spool::is_waiting(&self.config.files.value) {
            return Ok(());
        }
        let identify: Identify = &|event| self.project_of(event);
        store.write_after_spool(self.redactor, &|tx, event| tx.store_event(event, None, identify), |_| Ok(()))
    }

    /// At the end of a turn: what the transcript holds since the last one. A transcript that can't be read is none.
    fn read_transcript(&self, store: &Store, event: &Clean<Event>) -> Result<Option<TranscriptRead>> {
        if !matches!(event.what, Happening::TurnEnded { .. } | Happening::SessionEnded { .. }) {
            return Ok(None);
        }
        let Some(path) = self.transcript(event) else { return Ok(None) };
        let mark = store.transcript_mark(event.platform, &event.session)?.unwrap_or_default();
        let Ok(stretch) = files::tail(&path, mark.offset, TRANSCRIPT_BYTES) else { return Ok(None) };
        if event.platform != Platform::ClaudeCode {
            return Ok(None);
        }
        let switches: Vec<&Off> = self.config.switches.off.iter().collect();
        let places = self.places(event.cwd.as_deref(), event.project.as_ref(), &switches);
        let session = Some((event.platform, event.session.as_str()));
        let off = |at: Option<Millis>| {
            // What tells no time may be of any time.
            switches.iter().any(|off| off.is_about(session, &places) && at.is_none_or(|at| off.held(at)))
        };
        // Thinking of a turn that was not recorded is not the next turn's.
        let turn = mark.turn.filter(|_| self.config.thinking.value);
        let wanted = Wanted {
            from_start: stretch.from == mark.offset,
            last_message: mark.last_message.as_deref(),
            thinking_from: turn.map(|turn| turn.saturating_sub(stretch.from) as usize),
            passed_over: &off,
        };
        let reading = transcript::read(&stretch.bytes, &wanted);
        if reading.consumed == 0 {
            return Ok(None);
        }
        let usage: Clean<TurnUsage> = self.redactor.clean(reading.usage);
        Ok(Some(TranscriptRead { usage, from: mark.offset, to: stretch.from + reading.consumed as u64 }))
    }

    /// The transcript, if it really lies in the platform's own folder: a link out of it is not followed.
    fn transcript(&self, event: &Event) -> Option<PathBuf> {
        let path = Path::new(event.transcript.as_deref()?);
        let own = self.transcripts.as_ref()?;
        if !path.starts_with(own) || path.extension().is_none_or(|e| e != "jsonl") {
            return None;
        }
        path.canonicalize().ok().filter(|real| own.canonicalize().is_ok_and(|own| real.starts_with(own)))
    }
}
