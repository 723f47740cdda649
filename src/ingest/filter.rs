//! Step 2: drops events that the user does not want remembered: those that occur while recording is paused, and prompts
//! that begin with `#nomem`, together with the rest of their turns. Tools on the skip list never become events.

use super::run::Run;
use crate::config::pauses::RecordingPause;
use crate::model::{Event, EventKind};
use crate::runtime::{self, Where};
use crate::store::sessions::StoredSession;

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
