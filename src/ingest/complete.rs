//! Step 3: what only the disk knows at this moment is added (git's state, the client's process, a transcript's length), and
//! paths become relative to the worktree.

use super::run::{Caller, Run};
use super::transcript;
use crate::files;
use crate::model::{Event, Happening};
use crate::project::{self, client, git};
use std::path::Path;

/// Completes an event.
pub fn complete(run: &Run, mut event: Event) -> Event {
    let cwd = event.cwd.clone();
    let is_past = run.caller == Caller::History;
    let state = || git::state_at(Path::new(cwd.as_deref()?), run.home()).filter(|_| !is_past);
    // A session may be met in its middle, and a fork's transcript begins with its parent's.
    if !is_past && matches!(event.what, Happening::SessionStarted(_) | Happening::Prompted { .. }) {
        event.transcript_length = transcript::path(run, &event).and_then(|path| files::length(&path));
    }
    match &mut event.what {
        Happening::SessionStarted(start) if !is_past => {
            start.git = state();
            start.client = run.client_pid.map(client::client);
        }
        Happening::SessionEnded { git, .. } if !is_past => *git = state(),
        Happening::AboutToEdit { path } => *path = project::relative(path, cwd.as_deref(), run.home()),
        Happening::ToolUsed(tool) => {
            if let Some(path) = &mut tool.path {
                let relative = project::relative(path, cwd.as_deref(), run.home());
                // A tool of which the path is all that is to say shows it as it is stored.
                if tool.content.as_ref() == Some(path) {
                    tool.content = Some(relative.clone());
                }
                *path = relative;
            }
        }
        _ => {}
    }
    event
}
