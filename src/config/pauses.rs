//! A pause of recording: its scope, start and end.

use crate::model::{Millis, Platform};
use crate::render::clean::line;
use crate::render::time;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A pause of recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingPause {
    #[serde(flatten)]
    pub what: What,
    pub since: Millis,
    /// End of the pause; without it, the pause lasts until `nmem on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// Scope of a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum What {
    Everything,
    /// A project by any of its keys, and by its folder, so that new projects below it are paused too.
    Project {
        keys: Vec<String>,
        name: String,
        root: PathBuf,
    },
    Session {
        platform: String,
        id: String,
    },
}

impl RecordingPause {
    /// Whether it pauses a project.
    pub fn asks_for_project(&self) -> bool {
        matches!(self.what, What::Project { .. })
    }

    /// Whether recording was paused at a past time.
    pub fn held(&self, at: Millis) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }

    /// Whether recording is paused now. The start is ignored, so that setting the clock back does not resume recording.
    pub fn holds(&self, now: Millis) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Describes the scope and the end of the pause, for display.
    pub fn describe(&self, now: Millis) -> String {
        let what = match &self.what {
            What::Everything => "everywhere".to_string(),
            What::Project { name, .. } => format!("for the project {}", line(name, 80)),
            What::Session { id, .. } => format!("for the session {}", line(id, 80)),
        };
        match self.until {
            None => what,
            Some(until) if time::day(until) == time::day(now) => format!("{what} until {}", time::clock(until)),
            Some(until) => format!("{what} until {} {}", time::day(until), time::clock(until)),
        }
    }

    /// Whether it applies to a session, or to one of the given folders.
    pub fn is_about(&self, session: Option<(Platform, &str)>, places: &[ProjectIdentity]) -> bool {
        match &self.what {
            What::Everything => true,
            What::Project { keys, root, .. } => places.iter().any(|place| place.is(keys, root)),
            What::Session { platform, id } => session.is_some_and(|(p, s)| p.name() == platform && s == id),
        }
    }
}

/// A folder and the identity of its project.
#[derive(Clone, Debug, Default)]
pub struct ProjectIdentity {
    pub folder: PathBuf,
    pub keys: Vec<String>,
    /// True if it was split off the surrounding project.
    pub is_part: bool,
}

impl ProjectIdentity {
    fn is(&self, keys: &[String], root: &Path) -> bool {
        let below = self.folder.starts_with(root) && !self.is_part;
        below || self.keys.iter().any(|key| keys.contains(key))
    }
}
