//! A run of the pipeline, and the pauses that apply to an event.

use crate::config::pauses::RecordingPause;
use crate::config::{Config, environment};
use crate::model::{Event, EventKind, Millis};
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::events::StoredSession;
use crate::store::{HOOK_WAIT, PERSON_WAIT};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

/// The source of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An agent that waits for an answer.
    Hook,
    /// A program that uses the RAD protocol.
    Program,
    /// A past session. The disk has changed since then, and nobody waits for an answer.
    History,
}

/// The current run.
#[derive(Debug)]
pub struct Run<'a> {
    pub caller: Caller,
    pub config: &'a Config,
    pub redactor: &'a Redactor,
    pub now: Millis,
    /// Maximum time to wait for the database.
    pub wait: Duration,
    /// True if units are distilled at once; otherwise a later turn end distils them.
    pub distils: bool,
    /// The agent's process, if the platform names it.
    pub client_pid: Option<u32>,
    /// The folder in which the agent was started.
    pub session_folder: Option<PathBuf>,
    /// Whether recording is off in other repositories than the session's, by their roots.
    pub off_in: RefCell<HashMap<String, bool>>,
}

impl<'a> Run<'a> {
    /// Creates a run in the current environment.
    pub fn new(caller: Caller, config: &'a Config, redactor: &'a Redactor) -> Run<'a> {
        Run {
            caller,
            config,
            redactor,
            now: environment::now(),
            wait: if caller == Caller::History { PERSON_WAIT } else { HOOK_WAIT },
            distils: true,
            client_pid: environment::client_pid().filter(|_| caller == Caller::Hook),
            session_folder: environment::session_folder(),
            off_in: RefCell::default(),
        }
    }

    pub(super) fn projects(&self) -> Projects<'a> {
        Projects { config: self.config, redactor: self.redactor }
    }

    pub(super) fn home(&self) -> Option<&'a std::path::Path> {
        self.config.home.as_deref()
    }
}

/// Prefix of prompts that are not stored, nor are their turns.
const MUTE: &str = "#nomem";

/// Returns true if recording is paused for the event's session, folder or project.
pub fn is_paused(run: &Run, event: &Event) -> bool {
    pause(run, event).is_some()
}

/// Returns the pause that applies to an event.
pub fn pause<'a>(run: &'a Run, event: &Event) -> Option<&'a RecordingPause> {
    runtime::pause(&run.projects(), &whereabouts(run, event), run.now)
}

/// Removes the text of a prompt that begins with `#nomem`.
pub fn without_muted_text(mut event: Event) -> Event {
    if matches!(&event.what, EventKind::UserPrompt { text } if begins_with_mute(text)) {
        event.what = EventKind::PrivatePrompt;
    }
    event
}

/// Returns true if the person's own text begins with `#nomem`. Clients put images and open files before that text.
pub fn begins_with_mute(prompt: &str) -> bool {
    let mut rest = prompt.trim_start_matches('\u{feff}').trim_start();
    loop {
        let behind = match rest.as_bytes().first() {
            Some(b'[') => rest.split_once(']').filter(|(inside, _)| inside.len() < 60).map(|(_, behind)| behind),
            Some(b'<') => rest[1..]
                .split_once('>')
                .and_then(|(tag, behind)| behind.split_once(&format!("</{}>", tag.split(' ').next().unwrap_or(tag))))
                .map(|(_, behind)| behind),
            _ => None,
        };
        match behind {
            Some(behind) => rest = behind.trim_start(),
            None => return rest.get(..MUTE.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(MUTE)),
        }
    }
}

/// Returns an event's session, folders and project, for [`is_paused`].
pub fn whereabouts<'a>(run: &'a Run, event: &'a Event) -> Where<'a> {
    let begun = run.session_folder.as_ref().and_then(|folder| folder.to_str());
    Where {
        session: Some((event.platform, &event.session)),
        folders: [event.cwd.as_deref(), begun],
        project: event.project.as_ref(),
    }
}

/// Returns true if an event belongs to a muted turn: the current one, or the last one, whose subagents may report late.
pub fn is_in_muted_turn(session: &StoredSession, event: &Event) -> bool {
    let begins = matches!(event.what, EventKind::SessionStarted(_) | EventKind::UserPrompt { .. } | EventKind::PrivatePrompt);
    let late = event.prompt.is_some() && event.prompt == session.muted_prompt;
    (session.muted || late) && !begins
}
