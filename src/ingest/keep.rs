//! The pipeline's one question about an event before it is stored: is it kept?
//!
//! An event of a hook is left out while recording is paused, or off in the repository that it is about. One of a past
//! session may also have happened in a pause or in a muted turn (`#nomem`), may have been forgotten or deleted by
//! retention, or may be stored already. Nothing of a program that answers nmem itself is kept.

use super::complete;
use super::run::{self, Run};
use crate::config;
use crate::config::llm::OBSERVER;
use crate::config::pauses::{RecordingPause, What};
use crate::files;
use crate::model::{Event, EventKind, Millis, Platform, UserAnswer};
use crate::project;
use crate::redact::Redactor;
use crate::runtime::{self, Where};
use crate::store::Store;
use crate::store::events::answers_id;
use crate::store::imports::{ImportedSession, StoredMessage};
use anyhow::Result;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Reasons for leaving out an event.
pub const PAUSED: &str = "event while recording was paused";
pub const FORGOTTEN: &str = "forgotten event";
pub const MUTED: &str = "event of a turn that begins with #nomem";
pub const EXPIRED: &str = "tool use that retention deleted";
pub const STORED: &str = "event that is stored already";
pub const OFF_ELSEWHERE: &str = "work in a repository where recording is off";
pub const OWN: &str = "a question of nmem's own to an agent's program";

/// Decides whether an event is kept; otherwise returns the reason. The prompt of a kept event gets the id under which it
/// is stored.
pub fn keep(run: &Run, past: Option<&mut PastSession>, event: &mut Event) -> Result<(), &'static str> {
    if event.cwd.as_deref().is_some_and(|cwd| Path::new(cwd).starts_with(run.config.files.value.folder().join(OBSERVER))) {
        return Err(OWN);
    }
    if let Some(past) = past {
        past.check(run, event)?;
    }
    if run::is_paused(run, event) {
        return Err(PAUSED);
    }
    if is_off_elsewhere(run, event) { Err(OFF_ELSEWHERE) } else { Ok(()) }
}

/// Returns true if a tool worked in another repository than that of its working directory, where recording is off.
fn is_off_elsewhere(run: &Run, event: &Event) -> bool {
    let EventKind::ToolUsed(tool) = &event.what else { return false };
    let cwd = event.cwd.as_deref();
    let Some(root) = complete::repository(run, tool, cwd) else { return false };
    if project::repository_of("", cwd, run.home()).is_some_and(|own| own == Path::new(&root)) {
        return false;
    }
    *run.off_in.borrow_mut().entry(root.clone()).or_insert_with(|| {
        // Settings that cannot be read may forbid it.
        let is_enabled = config::load(&[Path::new(&root)]).is_ok_and(|config| config.enabled.value);
        let there = Where { folders: [Some(&root), None], ..Where::default() };
        !is_enabled || runtime::is_paused(&run.projects(), &there, run.now)
    })
}

/// The extent to which a session's file was read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBefore {
    No,
    /// By another version of the reader.
    ByAnother,
    /// In part, by the same version.
    InPart,
}

/// A session's file, as it is known before its session is looked up.
#[derive(Clone, Debug)]
pub struct PastFile<'a> {
    /// The folder in which the session began.
    pub began: Option<&'a str>,
    pub before: ReadBefore,
    /// Hashes of forgotten sessions, events and memories.
    pub forgotten: &'a HashSet<Vec<u8>>,
    /// All pauses of recording, also those that have ended.
    pub pauses: Vec<&'a RecordingPause>,
    /// Retention limit: tool uses that nmem learnt of before this time are deleted.
    pub keep_since: Option<Millis>,
}

/// A past session, as far as its events are stored.
#[derive(Debug)]
pub struct PastSession<'a> {
    pub id: String,
    pub platform: Platform,
    /// True if the whole session was forgotten.
    pub is_forgotten: bool,
    /// True if hooks are recording the session now.
    pub is_at_work: bool,
    /// Times of the first and the last kept event.
    pub first: Option<Millis>,
    pub until: Option<Millis>,
    /// Secrets that were hidden only to compare texts with stored ones.
    pub compared_secrets: u64,
    file: PastFile<'a>,
    /// The pauses of recording that may apply, by folder.
    pauses: HashMap<Option<String>, Vec<&'a RecordingPause>>,
    /// Start of the current muted turn (`#nomem`).
    muted_since: Option<Millis>,
    /// Muted turns that have ended. Subagents' files do not name their turn, so they are matched by time.
    muted: Vec<RecordingPause>,
    /// Ids of stored prompts and tool uses, if the file was read before.
    stored: HashSet<String>,
    /// Messages that hooks recorded, if hooks recorded the session.
    by_hooks: Option<Vec<StoredMessage>>,
    /// Tool uses that hooks recorded without an id: kind and content. Each matches one tool use in the file.
    unnamed: Vec<(String, Option<String>)>,
    /// Ids of prompts in the file that are stored under other ids.
    renamed: HashMap<String, Option<String>>,
    /// True if its old tool uses may have been stored and deleted before.
    had_old_ones: bool,
    /// True if the file has a message that hooks did not record.
    found_more: bool,
}

impl<'a> PastSession<'a> {
    /// Looks up the session of a file's first event.
    pub fn look_up(run: &Run, first: &Event, file: PastFile<'a>) -> Result<PastSession<'a>> {
        let (platform, id) = (first.platform, first.session.as_str());
        let store = Store::open(&run.config.files.value, run.wait)?;
        let recorded = store.session_by_agent_id(platform, id)?;
        let unkeyed = || file.forgotten.contains(Redactor::unkeyed_identity_hash(platform.name(), id).as_slice());
        let is_emptied = recorded.as_ref().map_or(Ok(false), |row| store.is_emptied(row.id))?;
        let had_old_ones = match file.before {
            ReadBefore::No => recorded.is_some(),
            ReadBefore::ByAnother => true,
            ReadBefore::InPart => false,
        };
        // What an import stored is kept as long as if it had happened then.
        let imported_at = recorded.as_ref().map_or(Ok(None), |row| store.imported_at(row.id))?;
        let had_old_ones = had_old_ones && imported_at.is_none_or(|at| file.keep_since.is_some_and(|since| at < since));
        let client = recorded.as_ref().and_then(|row| row.client);
        let is_at_work = recorded.as_ref().is_some_and(|row| row.ended_at.is_none())
            && client.is_some_and(|client| files::is_alive(client) == Some(true));
        let of_hooks = recorded.as_ref().filter(|row| file.before != ReadBefore::InPart || row.client.is_some());
        let stored = if file.before == ReadBefore::No { HashSet::new() } else { store.stored_ids(platform, id)? };
        Ok(PastSession {
            id: id.to_string(),
            platform,
            is_forgotten: is_emptied || was_forgotten(run, &file, platform, id, "") || unkeyed(),
            is_at_work,
            first: None,
            until: None,
            compared_secrets: 0,
            pauses: HashMap::new(),
            muted_since: None,
            muted: Vec::new(),
            stored,
            by_hooks: of_hooks.map(|session| store.texts_of_session(session.id)).transpose()?,
            unnamed: of_hooks.map(|session| store.unnamed_tool_uses(session.id)).transpose()?.unwrap_or_default(),
            renamed: HashMap::new(),
            had_old_ones,
            found_more: false,
            file,
        })
    }

    fn check(&mut self, run: &Run, event: &mut Event) -> Result<(), &'static str> {
        if self.is_muted(event) {
            return Err(MUTED);
        }
        if self.is_paused(run, event) {
            return Err(PAUSED);
        }
        if self.is_forgotten_event(run, event) {
            return Err(FORGOTTEN);
        }
        if self.is_expired(event) {
            return Err(EXPIRED);
        }
        self.put_in_folder(event);
        let before = run.redactor.replaced();
        let is_stored = self.is_stored(event) || self.is_recorded(run, event) || self.is_recorded_without_id(run, event);
        self.compared_secrets += run.redactor.replaced() - before;
        if is_stored {
            return Err(STORED);
        }
        if let Some(id) = event.prompt.as_ref().and_then(|own| self.renamed.get(own)) {
            event.prompt.clone_from(id);
        }
        self.first = Some(self.first.map_or(event.at, |first| first.min(event.at)));
        self.until = self.until.max(Some(event.at));
        Ok(())
    }

    /// Returns true if an event belongs to a muted turn. Such events never reach the store: hooks may be in another turn.
    fn is_muted(&mut self, event: &Event) -> bool {
        let begins = match &event.what {
            EventKind::UserPrompt { text } => Some(run::begins_with_mute(text)),
            EventKind::PrivatePrompt => Some(true),
            _ => None,
        };
        if let Some(is_muted) = begins {
            self.end_muted_turn(event.at);
            self.muted_since = is_muted.then_some(event.at);
        }
        self.muted_since.is_some() && !matches!(event.what, EventKind::SessionStarted(_) | EventKind::SessionEnded { .. })
    }

    /// Ends the current muted turn, if any, and keeps it as a pause of the session.
    fn end_muted_turn(&mut self, at: Millis) {
        if let Some(since) = self.muted_since.take() {
            let what = What::Session { platform: self.platform.name().into(), id: self.id.clone() };
            self.muted.push(RecordingPause { what, since, until: Some(at) });
        }
    }

    /// The muted turns so far, as pauses of the session.
    pub fn take_muted(&mut self, now: Millis) -> Vec<RecordingPause> {
        self.end_muted_turn(now);
        std::mem::take(&mut self.muted)
    }

    fn is_paused(&mut self, run: &Run, event: &Event) -> bool {
        if !self.pauses.contains_key(&event.cwd) {
            let pauses = self.pauses_in(run, event.cwd.as_deref());
            self.pauses.insert(event.cwd.clone(), pauses);
        }
        self.pauses[&event.cwd].iter().any(|pause| pause.held(event.at))
    }

    /// The pauses of recording that may apply in a folder.
    fn pauses_in(&self, run: &Run, folder: Option<&str>) -> Vec<&'a RecordingPause> {
        if self.file.pauses.is_empty() {
            return Vec::new();
        }
        let at = Where { session: Some((self.platform, &self.id)), folders: [self.file.began, folder], project: None };
        let places = runtime::places(&run.projects(), &at, &self.file.pauses);
        self.file.pauses.iter().filter(|pause| pause.is_about(at.session, &places)).copied().collect()
    }

    fn is_forgotten_event(&self, run: &Run, event: &Event) -> bool {
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
            |id: &String| [self.id.as_str(), ""].iter().any(|session| was_forgotten(run, &self.file, self.platform, session, id));
        id.as_ref().is_some_and(is_forgotten)
    }

    fn is_expired(&self, event: &Event) -> bool {
        let is_old = self.file.keep_since.is_some_and(|since| event.at < since);
        self.had_old_ones && is_old && matches!(event.what, EventKind::ToolUsed(_))
    }

    /// Moves an event to the folder where the session began if that folder is gone: the project's root is then unknown,
    /// so paths become relative to this folder.
    fn put_in_folder(&self, event: &mut Event) {
        let (Some(began), Some(cwd)) = (self.file.began, event.cwd.as_deref()) else { return };
        if cwd != began && Path::new(cwd).starts_with(began) && !Path::new(began).is_dir() {
            event.cwd = Some(began.to_string());
        }
    }

    /// Returns true if a prompt or tool use is stored under its id, and the file was read before.
    pub fn is_stored(&self, event: &Event) -> bool {
        let id = match &event.what {
            EventKind::UserPrompt { .. } => event.prompt.as_ref(),
            EventKind::ToolUsed(tool) => tool.id.as_ref(),
            _ => None,
        };
        id.is_some_and(|id| self.stored.contains(id))
    }

    /// Returns true if hooks recorded this event, also under another id. Stored tool uses are recognized by their ids
    /// later.
    fn is_recorded(&mut self, run: &Run, event: &Event) -> bool {
        let Some(recorded) = &self.by_hooks else { return false };
        let stored = |of_user: bool| {
            let clean = run.redactor.clean(event.clone());
            let text = match &clean.what {
                EventKind::UserPrompt { text } | EventKind::TurnEnded { closing: Some(text), .. } => text.clone(),
                EventKind::Answered { answers, .. } => UserAnswer::to_text(answers),
                _ => return None,
            };
            recorded.iter().find(|known| known.is_users == of_user && known.text == text)
        };
        match &event.what {
            EventKind::UserPrompt { .. } => {
                let is_same = |known: &StoredMessage| known.is_users && known.prompt == event.prompt;
                if event.prompt.is_some() && recorded.iter().any(is_same) {
                    return true;
                }
                if let Some(known) = stored(true) {
                    self.renamed.extend(event.prompt.clone().map(|own| (own, known.prompt.clone())));
                    return true;
                }
                self.found_more = true;
                false
            }
            EventKind::Answered { .. } => stored(true).is_some(),
            EventKind::TurnEnded { .. } => {
                let is_recorded = stored(false).is_some();
                self.found_more |= !is_recorded;
                is_recorded
            }
            EventKind::SessionStarted(_) => true,
            EventKind::SessionEnded { .. } => !self.found_more,
            _ => false,
        }
    }

    /// Returns true if hooks recorded this tool use without its id: some platforms do not send ids.
    fn is_recorded_without_id(&mut self, run: &Run, event: &Event) -> bool {
        let EventKind::ToolUsed(_) = event.what else { return false };
        if self.unnamed.is_empty() {
            return false;
        }
        let clean = complete::completed(run, event.clone());
        let EventKind::ToolUsed(tool) = &clean.what else { return false };
        let done = tool.content.as_ref().or(tool.path.as_ref());
        let same = self.unnamed.iter().position(|(kind, known)| kind == tool.kind.name() && known.as_ref() == done);
        same.map(|at| self.unnamed.swap_remove(at)).is_some()
    }

    /// The session, as an import leaves it.
    pub fn imported(&self, now: Millis) -> ImportedSession {
        ImportedSession { platform: self.platform, id: self.id.clone(), until: self.until, at: now }
    }
}

fn was_forgotten(run: &Run, file: &PastFile, platform: Platform, session: &str, id: &str) -> bool {
    let hash = || run.redactor.identity_hash([platform.name(), session, id]);
    !file.forgotten.is_empty() && file.forgotten.contains(hash().as_slice())
}
