//! The team memory in `nmem status`.

use super::clean::line;
use super::time;
use crate::model::{LastSync, Millis};

/// Time for which sessions pause syncing after a failure, in milliseconds.
const PAUSE: Millis = 30 * 60_000;

/// Returns the lines of `nmem status` about the team: the sync target, the shared projects, and the result of the last
/// sync.
pub fn status(with: Option<&str>, in_sessions: bool, projects: &[String], last: &LastSync, now: Millis) -> Vec<String> {
    let mut lines = Vec::new();
    let when = if in_sessions { "at session starts and ends of turns, once an hour" } else { "only by `nmem sync`" };
    lines.extend(with.map(|with| format!("with {}, {when}", line(with, 200))));
    let names: Vec<String> = projects.iter().map(|name| line(name, 40)).collect();
    lines.push(if names.is_empty() { "no project is shared".to_string() } else { format!("shared: {}", names.join(", ")) });
    lines.extend(last.done_at.map(|at| format!("last sync: {}", time::ago(at, now))));
    if let (Some(at), Some(error)) = (last.failed_at, &last.error) {
        let until = at + PAUSE;
        let pause = if in_sessions && until > now {
            format!("; sessions try again at {}, `nmem sync` at once", time::clock(until))
        } else {
            String::new()
        };
        lines.push(format!("problem: the sync of {} failed: {}{pause}", time::ago(at, now), line(error, 300)));
    }
    lines
}
