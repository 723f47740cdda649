//! Runs the events of a session file through the pipeline, without forgotten, paused or expired events.

use super::target::{AgentReport, FORGOTTEN, FORGOTTEN_EVENT, Folder, PAUSED, Target};
use crate::config::pauses::{RecordingPause, What};
use crate::ingest::run::{self, Caller, Run};
use crate::ingest::{completed, ingest};
use crate::model::{Event, EventKind, Millis, Platform, UserAnswer};
use crate::project::client;
use crate::redact::Redactor;
use crate::runtime::{self, Where};
use crate::store::Store;
use crate::store::events::answers_id;
use crate::store::imports::{ImportedSession, StoredMessage};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;

const DAY: Millis = 86_400_000;

/// Writes the events of one file.
pub struct Writer<'a> {
    pub run: Run<'a>,
    folder: &'a Folder,
    forgotten: &'a HashSet<Vec<u8>>,
    session: Option<KnownSession<'a>>,
    /// The folder in which the session began.
    began: Option<&'a str>,
    /// The extent to which an earlier import read the file.
    before: ReadBefore,
    /// Retention limit: tool uses that nmem learnt of before this time are deleted.
    keep_since: Option<Millis>,
}

/// The extent to which a file was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBefore {
    No,
    /// By another version of the reader.
    ByAnother,
    /// In part, by the same version.
    InPart,
}

/// The session of a file.
struct KnownSession<'a> {
    id: String,
    platform: Platform,
    /// True if the whole session was forgotten.
    is_forgotten: bool,
    /// True if hooks are recording the session now.
    is_at_work: bool,
    /// The pauses of recording that may apply, by folder.
    pauses: HashMap<Option<String>, Vec<&'a RecordingPause>>,
    /// Start of the current muted turn (`#nomem`).
    muted_since: Option<Millis>,
    /// Muted turns that have ended. Subagents' files do not name their turn, so they are matched by time.
    muted: Vec<RecordingPause>,
    /// Messages that hooks recorded, if hooks recorded the session.
    by_hooks: Option<Vec<StoredMessage>>,
    /// Tool uses that hooks recorded without an id: kind and content. Each matches one tool use in the file.
    unnamed: Vec<(String, Option<String>)>,
    /// True if its old tool uses may have been stored and deleted before.
    had_old_ones: bool,
    /// True if the file has a message that hooks did not record.
    found_more: bool,
    /// Time of the last event.
    until: Option<Millis>,
}

impl KnownSession<'_> {
    /// Ends the current muted turn, if any, and keeps it as a pause of the session.
    fn end_muted_turn(&mut self, at: Millis) {
        if let Some(since) = self.muted_since.take() {
            let what = What::Session { platform: self.platform.name().into(), id: self.id.clone() };
            self.muted.push(RecordingPause { what, since, until: Some(at) });
        }
    }
}

impl<'a> Writer<'a> {
    /// Creates a writer for one file.
    pub fn new(folder: &'a Folder, target: &'a Target, began: Option<&'a str>, before: ReadBefore) -> Writer<'a> {
        let run = Run::new(Caller::History, &folder.config, &folder.redactor);
        let days = Millis::from(folder.config.tool_uses_days.value);
        let keep_since = (days > 0).then(|| run.now - days * DAY);
        Writer { run, folder, forgotten: &target.forgotten, session: None, began, before, keep_since }
    }

    /// Stores events in one transaction.
    pub fn write(&mut self, mut events: Vec<Event>, agent: &mut AgentReport) -> Result<()> {
        let Some(first) = events.first() else { return Ok(()) };
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.look_up(first)?,
        };
        if session.is_forgotten || session.is_at_work {
            self.session = Some(session);
            return Ok(());
        }
        events.retain(|event| !is_muted(&mut session, event));
        events.retain(|event| self.may_come_back(&mut session, event, agent));
        if !events.is_empty() {
            agent.sessions.insert(session.id.clone());
            events.iter().filter(|event| event.at > 0).for_each(|event| agent.saw(event.at));
            session.until = session.until.max(events.iter().map(|event| event.at).max());
            events.iter_mut().for_each(|event| self.put_in_folder(event));
            if session.by_hooks.is_some() {
                events = without_recorded(&self.folder.redactor, &mut session, events);
                events.retain(|event| !self.is_recorded_without_id(&mut session, event));
            }
            let before = self.folder.redactor.replaced();
            ingest(&self.run, events)?;
            agent.secrets += self.folder.redactor.replaced() - before;
        }
        self.session = Some(session);
        Ok(())
    }

    /// Returns true if the file was read before and is now read again from the start.
    pub fn reads_again(&self) -> bool {
        self.before == ReadBefore::ByAnother
    }

    /// Removes events of muted turns (except the prompts), and prompts and tool uses that are already stored, by id.
    pub fn without_stored(&self, mut events: Vec<Event>) -> Result<Vec<Event>> {
        let Some(first) = events.first() else { return Ok(events) };
        let store = Store::open(&self.run.config.files.value, self.run.wait)?;
        let stored = store.stored_ids(first.platform, &first.session)?;
        let mut is_muted = false;
        events.retain(|event| {
            let begins = match &event.what {
                EventKind::UserPrompt { text } => Some(run::begins_with_mute(text)),
                _ => None,
            };
            is_muted = begins.unwrap_or(is_muted);
            begins.is_some() || !is_muted
        });
        events.retain(|event| {
            let id = match &event.what {
                EventKind::UserPrompt { .. } => event.prompt.as_ref(),
                EventKind::ToolUsed(tool) => tool.id.as_ref(),
                _ => None,
            };
            id.is_none_or(|id| !stored.contains(id))
        });
        Ok(events)
    }

    /// Returns true if the file's whole session was forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_forgotten)
    }

    /// Returns true if hooks are recording the file's session now.
    pub fn is_at_work(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_at_work)
    }

    /// The muted turns, as pauses of the session.
    pub fn muted(&mut self) -> Vec<RecordingPause> {
        let Some(session) = &mut self.session else { return Vec::new() };
        session.end_muted_turn(self.run.now);
        std::mem::take(&mut session.muted)
    }

    /// Returns the imported session; counts a forgotten one as skipped.
    pub fn finish(&self, agent: &mut AgentReport) -> Option<ImportedSession> {
        let session = self.session.as_ref()?;
        if session.is_forgotten {
            agent.counts.skip(FORGOTTEN);
            return None;
        }
        let (platform, id) = (session.platform, session.id.clone());
        Some(ImportedSession { platform, id, until: session.until, at: self.run.now })
    }

    fn look_up(&self, first: &Event) -> Result<KnownSession<'a>> {
        let (platform, id) = (first.platform, first.session.as_str());
        let store = Store::open(&self.run.config.files.value, self.run.wait)?;
        let recorded = store.session_by_agent_id(platform, id)?;
        let unkeyed = || self.forgotten.contains(Redactor::unkeyed_identity_hash(platform.name(), id).as_slice());
        let is_emptied = recorded.as_ref().map_or(Ok(false), |row| store.is_emptied(row.id))?;
        let had_old_ones = match self.before {
            ReadBefore::No => recorded.is_some(),
            ReadBefore::ByAnother => true,
            ReadBefore::InPart => false,
        };
        // What an import stored is kept as long as if it had happened then.
        let imported_at = recorded.as_ref().map_or(Ok(None), |row| store.imported_at(row.id))?;
        let had_old_ones = had_old_ones && imported_at.is_none_or(|at| self.keep_since.is_some_and(|since| at < since));
        let client = recorded.as_ref().and_then(|row| row.client);
        let is_at_work = recorded.as_ref().is_some_and(|row| row.ended_at.is_none())
            && client.is_some_and(|client| client::is_alive(client) == Some(true));
        let of_hooks = recorded.as_ref().filter(|row| self.before != ReadBefore::InPart || row.client.is_some());
        Ok(KnownSession {
            id: id.to_string(),
            platform,
            is_forgotten: is_emptied || self.was_forgotten(platform, id, "") || unkeyed(),
            is_at_work,
            pauses: HashMap::new(),
            muted_since: None,
            muted: Vec::new(),
            by_hooks: of_hooks.map(|session| store.texts_of_session(session.id)).transpose()?,
            unnamed: of_hooks.map(|session| store.unnamed_tool_uses(session.id)).transpose()?.unwrap_or_default(),
            had_old_ones,
            found_more: false,
            until: None,
        })
    }

    /// The pauses of recording that may apply to a session in a folder.
    fn pauses(&self, session: &KnownSession, folder: Option<&str>) -> Vec<&'a RecordingPause> {
        let all: Vec<&'a RecordingPause> = self.folder.config.switches.off.iter().chain(&self.folder.past_pauses).collect();
        if all.is_empty() {
            return all;
        }
        let projects = runtime::Projects { config: self.run.config, redactor: self.run.redactor };
        let at = Where { session: Some((session.platform, &session.id)), folders: [self.began, folder], project: None };
        let places = runtime::places(&projects, &at, &all);
        all.into_iter().filter(|pause| pause.is_about(at.session, &places)).collect()
    }

    fn was_forgotten(&self, platform: Platform, session: &str, id: &str) -> bool {
        !self.forgotten.is_empty()
            && self.forgotten.contains(self.folder.redactor.identity_hash([platform.name(), session, id]).as_slice())
    }

    /// Returns true if hooks recorded this tool use without its id: some platforms do not send ids.
    fn is_recorded_without_id(&self, session: &mut KnownSession, event: &Event) -> bool {
        let EventKind::ToolUsed(_) = event.what else { return false };
        if session.unnamed.is_empty() {
            return false;
        }
        let clean = completed(&self.run, event.clone());
        let EventKind::ToolUsed(tool) = &clean.what else { return false };
        let done = tool.content.as_ref().or(tool.path.as_ref());
        let same = session.unnamed.iter().position(|(kind, known)| kind == tool.kind.name() && known.as_ref() == done);
        same.map(|at| session.unnamed.swap_remove(at)).is_some()
    }

    /// Returns true if an event was not forgotten, did not occur during a pause, and was not deleted by retention.
    fn may_come_back(&self, session: &mut KnownSession<'a>, event: &Event, agent: &mut AgentReport) -> bool {
        if !session.pauses.contains_key(&event.cwd) {
            let pauses = self.pauses(session, event.cwd.as_deref());
            session.pauses.insert(event.cwd.clone(), pauses);
        }
        if session.pauses[&event.cwd].iter().any(|pause| pause.held(event.at)) {
            agent.counts.skip(PAUSED);
            return false;
        }
        let id = match &event.what {
            EventKind::UserPrompt { .. } => event.prompt.clone(),
            EventKind::TurnEnded { .. } | EventKind::SubagentEnded { .. } => {
                event.prompt.as_ref().map(|prompt| format!("answer {prompt}"))
            }
            EventKind::ToolUsed(tool) => tool.id.clone(),
            EventKind::Answered { call, .. } => call.as_deref().map(answers_id),
            _ => None,
        };
        // A continued session repeats the event ids under its own session id.
        let is_forgotten =
            |id: &String| [session.id.as_str(), ""].iter().any(|session_id| self.was_forgotten(session.platform, session_id, id));
        if id.as_ref().is_some_and(is_forgotten) {
            agent.counts.skip(FORGOTTEN_EVENT);
            return false;
        }
        let is_old = self.keep_since.is_some_and(|since| event.at < since);
        !(session.had_old_ones && is_old && matches!(event.what, EventKind::ToolUsed(_)))
    }

    /// Moves an event to the folder where the session began if that folder is gone: the project's root is then unknown,
    /// so paths become relative to this folder.
    fn put_in_folder(&self, event: &mut Event) {
        let (Some(began), Some(cwd)) = (self.began, event.cwd.as_deref()) else { return };
        if cwd != began && Path::new(cwd).starts_with(began) && !Path::new(began).is_dir() {
            event.cwd = Some(began.to_string());
        }
    }
}

/// Returns true if an event belongs to a muted turn. Such events never reach the pipeline: hooks may be in another
/// turn.
fn is_muted(session: &mut KnownSession, event: &Event) -> bool {
    if let EventKind::UserPrompt { text } = &event.what {
        session.end_muted_turn(event.at);
        session.muted_since = run::begins_with_mute(text).then_some(event.at);
    }
    session.muted_since.is_some() && !matches!(event.what, EventKind::SessionStarted(_) | EventKind::SessionEnded { .. })
}

/// Removes events that hooks recorded, also under other ids. Stored tool uses are recognized by their ids later.
fn without_recorded(redactor: &Redactor, session: &mut KnownSession, events: Vec<Event>) -> Vec<Event> {
    let mut left = Vec::new();
    let mut renamed: HashMap<String, Option<String>> = HashMap::new();
    let recorded = session.by_hooks.as_deref().unwrap_or_default();
    let stored = |of_user: bool, event: &Event| {
        let clean = redactor.clean(event.clone());
        let text = match &clean.what {
            EventKind::UserPrompt { text } | EventKind::TurnEnded { closing: Some(text), .. } => text.clone(),
            EventKind::Answered { answers, .. } => UserAnswer::to_text(answers),
            _ => return None,
        };
        recorded.iter().find(|known| known.is_users == of_user && known.text == text)
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
            EventKind::Answered { .. } if stored(true, &event).is_some() => continue,
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
