//! Step 3: adds state that is available only now (git state, the client's process, the transcript's length), and makes
//! paths relative to the worktree.

use super::run::{Caller, Run};
use super::transcript;
use crate::command_kind::commit_folder;
use crate::files;
use crate::model::{CommandKind, Event, EventKind, Platform, ToolUse};
use crate::project::{self, client, git};
use std::path::Path;

/// Completes an event.
pub fn complete(run: &Run, mut event: Event) -> Event {
    let cwd = event.cwd.clone();
    let is_past = run.caller == Caller::History;
    let state = || git::state_at(Path::new(cwd.as_deref()?), run.home()).filter(|_| !is_past);
    // nmem may first see a session midway, and a fork's transcript begins with a copy of its parent's.
    if !is_past && matches!(event.what, EventKind::SessionStarted(_) | EventKind::UserPrompt { .. }) {
        event.transcript_length = transcript::path(run, &event).and_then(|path| files::length(&path));
    }
    if run.caller == Caller::Hook {
        transcript::complete(run, &mut event);
    }
    match &mut event.what {
        EventKind::SessionStarted(start) if !is_past => {
            start.git = state();
            // Only Claude Code names its process. For other agents only the hook call is known, not whether they
            // are still alive.
            start.client = match event.platform {
                Platform::ClaudeCode => run.client_pid.map(client::client),
                _ => (run.caller == Caller::Hook).then(client::caller),
            };
        }
        EventKind::SessionEnded { git, .. } if !is_past => *git = state(),
        EventKind::PreEdit { path } => *path = project::relative(path, cwd.as_deref(), run.home()),
        // A relative name may be relative to any folder; recall completes it.
        EventKind::Delegating { files } => {
            let absolute = files.iter_mut().filter(|path| Path::new(path).is_absolute());
            absolute.for_each(|path| *path = project::relative(path, cwd.as_deref(), run.home()));
        }
        EventKind::ToolUsed(tool) => {
            if let Some(path) = &mut tool.path {
                let relative = project::relative(path, cwd.as_deref(), run.home());
                // If a tool's content is only its path, the content uses the stored form of the path.
                if tool.content.as_ref() == Some(path) {
                    tool.content = Some(relative.clone());
                }
                *path = relative;
            }
            if !is_past && commits_elsewhere(run, tool, cwd.as_deref()) {
                tool.metadata.commit = None;
                tool.command = Some(CommandKind::Git);
            }
        }
        _ => {}
    }
    event
}

/// Returns true if a command committed in a repository other than the one in which the agent was started.
fn commits_elsewhere(run: &Run, tool: &ToolUse, cwd: Option<&str>) -> bool {
    let (Some(_), Some(cwd)) = (&tool.metadata.commit, cwd.map(Path::new).filter(|cwd| cwd.is_absolute())) else { return false };
    let own = run.session_folder.as_deref().unwrap_or(cwd);
    let folder = tool.content.as_deref().and_then(commit_folder).map_or(cwd.to_path_buf(), |folder| cwd.join(folder));
    folder != own && project::is_other_repository(&folder, own, run.home())
}
