//! Step 2: what the user does not want remembered goes no further. Two switches are asked: `nmem off` before anything is
//! read or opened, and, once the session's row is known, whether its turn began with `#nomem`. (Tools of the skip list and
//! the text of a `#nomem` prompt are gone already: an adapter never makes events of them.)

use super::run::Run;
use crate::model::{Event, Happening};
use crate::runtime::{self, Where};
use crate::store::sessions::StoredSession;

/// Whether recording is off for the event's session, folder or project.
pub fn is_paused(run: &Run, event: &Event) -> bool {
    runtime::is_paused(&run.projects(), &whereabouts(run, event), run.now)
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
pub fn is_muted(session: &StoredSession, event: &Event) -> bool {
    let begins = matches!(event.what, Happening::SessionStarted(_) | Happening::Prompted { .. } | Happening::Muted);
    let late = event.prompt.is_some() && event.prompt == session.muted_prompt;
    (session.muted || late) && !begins
}
