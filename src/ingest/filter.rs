//! Step 2: what the user does not want remembered goes no further: what happens while recording is off, prompts that begin
//! with `#nomem`, and the rest of their turns, once the session's row is known. (Tools of the skip list are gone already: an
//! adapter makes no events of them.)

use super::run::Run;
use crate::model::{Event, Happening};
use crate::runtime::{self, Where};
use crate::store::sessions::StoredSession;

/// What a prompt begins with that is not to be stored, nor its turn.
const MUTE: &str = "#nomem";

/// Whether recording is off for the event's session, folder or project.
pub fn is_paused(run: &Run, event: &Event) -> bool {
    runtime::is_paused(&run.projects(), &whereabouts(run, event), run.now)
}

/// Takes the text out of a prompt that begins with `#nomem`.
pub fn without_muted_text(mut event: Event) -> Event {
    if matches!(&event.what, Happening::Prompted { text } if begins_with_mute(text)) {
        event.what = Happening::Muted;
    }
    event
}

/// A prompt begins with what the person typed: what a client puts before it (images, the open file) is not theirs.
fn begins_with_mute(prompt: &str) -> bool {
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

/// Where an event happens, as switches ask for it.
pub fn whereabouts<'a>(run: &'a Run, event: &'a Event) -> Where<'a> {
    let begun = run.session_folder.as_ref().and_then(|folder| folder.to_str());
    Where {
        session: Some((event.platform, &event.session)),
        folders: [event.cwd.as_deref(), begun],
        project: event.project.as_ref(),
    }
}

/// Whether an event belongs to a turn that is not to be remembered: the one under way, or the last such one, whose
/// subagents may report late.
pub fn is_in_muted_turn(session: &StoredSession, event: &Event) -> bool {
    let begins = matches!(event.what, Happening::SessionStarted(_) | Happening::Prompted { .. } | Happening::Muted);
    let late = event.prompt.is_some() && event.prompt == session.muted_prompt;
    (session.muted || late) && !begins
}
