//! What the user switched by command: recording off here or for a while, and repositories' wishes that are trusted.
//!
//! One small JSON file in the data folder, written whole; hooks read it before anything else is opened. One that can't be
//! read stops recording, as a broken config file does: what the user forbade is then unknown.

use crate::error::Failure;
use crate::files;
use crate::model::{Millis, Platform};
use crate::render::clean::line;
use crate::render::time;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// For so long it is known when recording was off: a transcript that is read later tells of that time too.
const REMEMBERED: Millis = 7 * 86_400_000;
/// Bytes of the file that are read.
const BYTES: u64 = 256 * 1024;

/// All switches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switches {
    #[serde(default)]
    pub off: Vec<Off>,
    #[serde(default)]
    pub trusted: Vec<Trusted>,
}

/// Something for which recording is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Off {
    #[serde(flatten)]
    pub what: What,
    pub since: Millis,
    /// When it is over; without, it holds until `nmem on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
}

/// What is off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum What {
    Everything,
    /// By the project's keys, any of which is it, and by its folder: what is begun below it later is off too.
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

/// A repository's file of which the content was read and approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trusted {
    pub path: PathBuf,
    pub sha256: String,
}

impl Off {
    /// Whether it is about a project.
    pub fn asks_for_project(&self) -> bool {
        matches!(self.what, What::Project { .. })
    }

    /// Whether it was off at a moment of the past.
    pub fn held(&self, at: Millis) -> bool {
        self.since <= at && self.until.is_none_or(|until| at < until)
    }

    /// Whether it is off now. When it began does not matter: a clock that goes back switches nothing on.
    pub fn holds(&self, now: Millis) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// What is off and until when, for a person.
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

    /// Whether it is about a session, or about a folder that is known so.
    pub fn is_about(&self, session: Option<(Platform, &str)>, places: &[Known]) -> bool {
        match &self.what {
            What::Everything => true,
            What::Project { keys, root, .. } => places.iter().any(|place| place.is(keys, root)),
            What::Session { platform, id } => session.is_some_and(|(p, s)| p.name() == platform && s == id),
        }
    }
}

/// A folder, and what its project is known by.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub folder: PathBuf,
    pub keys: Vec<String>,
    /// It was split off from the project that its folder lies in.
    pub is_part: bool,
}

impl Known {
    fn is(&self, keys: &[String], root: &Path) -> bool {
        let below = self.folder.starts_with(root) && !self.is_part;
        below || self.keys.iter().any(|key| keys.contains(key))
    }
}

impl Switches {
    /// Where the file lies in a data folder.
    pub fn file(data: &Path) -> PathBuf {
        data.join("switches.json")
    }

    /// Reads the switches; none where there is no file.
    pub fn load(path: &Path) -> Result<Switches> {
        let text = match files::whole_text(path, BYTES) {
            // A link that leads nowhere is no absence.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                    && fs::symlink_metadata(path).is_err() =>
            {
                return Ok(Switches::default());
            }
            read => read.map_err(|e| e.to_string()),
        };
        // serde takes a list for a struct; `[]` would be "nothing is off".
        let object = |text: &String| text.trim_start().starts_with('{');
        let read = text.and_then(|text| match object(&text) {
            true => serde_json::from_str(&text).map_err(|e| e.to_string()),
            false => Err("not a JSON object".into()),
        });
        let remedy = "mend it, or delete it and switch off again what was off (`nmem off`); until then hooks record nothing";
        read.map_err(|e| Failure::new(format!("{}: {e}", path.display()), remedy).into())
    }

    /// Changes the switches, one process at a time.
    pub fn change(path: &Path, now: Millis, change: impl FnOnce(&mut Switches)) -> Result<Switches> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let done = || -> Result<Switches> {
            if !folder.is_dir() {
                files::make_folder(folder)?;
            }
            let held = fs::File::open(folder)?;
            let _ = held.lock();
            let mut switches = Switches::load(path)?;
            switches.off.retain(|off| off.until.is_none_or(|until| until > now - REMEMBERED));
            change(&mut switches);
            files::replace_private(path, &format!("{}\n", serde_json::to_string_pretty(&switches)?))?;
            Ok(switches)
        };
        done().with_context(|| format!("cannot change {}", path.display()))
    }

    /// The switch that is off for a session in a project, if one is.
    pub fn off_for(&self, session: Option<(Platform, &str)>, places: &[Known], now: Millis) -> Option<&Off> {
        self.off.iter().find(|off| off.is_about(session, places) && off.holds(now))
    }

    /// The switch by which recording is off for all of a folder, if one is.
    pub fn off_in(&self, folder: &Known, now: Millis) -> Option<&Off> {
        self.off_for(None, std::slice::from_ref(folder), now)
    }

    /// Whether a file's content is trusted.
    pub fn trusts(&self, path: &Path, sha256: &str) -> bool {
        self.trusted.iter().any(|t| t.path == path && t.sha256 == sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_kept_and_run_out() {
        let folder = std::env::temp_dir().join(format!("nmem-switches-{}", std::process::id()));
        let path = Switches::file(&folder);
        assert_eq!(Switches::load(&path).unwrap(), Switches::default());
        let session = What::Session { platform: "claude-code".into(), id: "s1".into() };
        Switches::change(&path, 0, |s| {
            s.off.push(Off { what: What::Everything, since: 0, until: Some(100) });
            s.off.push(Off { what: session, since: 0, until: None });
        })
        .unwrap();
        let read = Switches::load(&path).unwrap();
        let off = |now, id| read.off_for(Some((Platform::ClaudeCode, id)), &[], now).is_some();
        assert_eq!([off(50, "s2"), off(100, "s2"), off(100, "s1")], [true, false, true]);
        assert_eq!(Switches::change(&path, REMEMBERED + 101, |_| ()).unwrap().off.len(), 1);
        fs::write(&path, "{").unwrap();
        assert!(Switches::load(&path).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
