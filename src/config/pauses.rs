//! Pauses of recording: scope, start and end; the switches file, and pauses that have ended.

use crate::error::UserError;
use crate::files;
use crate::model::{Millis, Platform};
use crate::render::clean::line;
use crate::render::time;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::{fs, io};

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

/// Time for which ended pauses remain in this file: a transcript that a hook reads later may cover that time.
const REMEMBERED: Millis = 7 * 86_400_000;
/// Maximum bytes of the file.
const BYTES: u64 = 256 * 1024;

/// All switches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switches {
    #[serde(default)]
    pub off: Vec<RecordingPause>,
    #[serde(default)]
    pub trusted: Vec<Trusted>,
    /// Settings folders that an environment variable named when hooks were installed there.
    #[serde(default)]
    pub installed: Vec<PathBuf>,
}

/// An approved file of a repository, by content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trusted {
    pub path: PathBuf,
    pub sha256: String,
}

impl Switches {
    /// Path of the file in a data folder.
    pub fn file(data: &Path) -> PathBuf {
        data.join("switches.json")
    }

    /// Reads the switches; none if there is no file.
    pub fn load(path: &Path) -> Result<Switches> {
        let text = match files::whole_text(path, BYTES) {
            // A dangling link is not treated as a missing file.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
                    && fs::symlink_metadata(path).is_err() =>
            {
                return Ok(Switches::default());
            }
            read => read.map_err(|e| e.to_string()),
        };
        // serde accepts a list for a struct; `[]` would mean that nothing is paused.
        let object = |text: &String| text.trim_start().starts_with('{');
        let read = text.and_then(|text| match object(&text) {
            true => serde_json::from_str(&text).map_err(|e| e.to_string()),
            false => Err("not a JSON object".into()),
        });
        let remedy = "fix it, or delete it and repeat your `nmem off` commands; until then hooks record nothing";
        read.map_err(|e| UserError::new(format!("{}: {e}", path.display()), remedy).into())
    }

    /// Changes the switches; a lock keeps other processes out.
    pub fn change(path: &Path, now: Millis, change: impl FnOnce(&mut Switches)) -> Result<Switches> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let done = || -> Result<Switches> {
            if !folder.is_dir() {
                files::make_folder(folder)?;
            }
            let _held = files::lock_folder(folder)?;
            let mut switches = Switches::load(path)?;
            let is_past = |off: &mut RecordingPause| off.until.is_some_and(|until| until <= now - REMEMBERED);
            let past: Vec<RecordingPause> = switches.off.extract_if(.., is_past).collect();
            if !past.is_empty() {
                store_past(path, &[load_past(path)?, past].concat())?;
            }
            change(&mut switches);
            files::replace_private(path, &format!("{}\n", serde_json::to_string_pretty(&switches)?))?;
            Ok(switches)
        };
        done().with_context(|| format!("cannot change {}", path.display()))
    }

    /// The pause that applies to a session in any of the folders, if there is one.
    pub fn off_for(&self, session: Option<(Platform, &str)>, places: &[ProjectIdentity], now: Millis) -> Option<&RecordingPause> {
        self.off.iter().find(|off| off.is_about(session, places) && off.holds(now))
    }

    /// The pause that applies to a whole folder, if there is one.
    pub fn off_in(&self, folder: &ProjectIdentity, now: Millis) -> Option<&RecordingPause> {
        self.off_for(None, std::slice::from_ref(folder), now)
    }

    /// Whether a file is approved with this content.
    pub fn trusts(&self, path: &Path, sha256: &str) -> bool {
        self.trusted.iter().any(|t| t.path == path && t.sha256 == sha256)
    }
}

/// Maximum bytes to read: about ten thousand pauses.
const PAST_BYTES: u64 = 4 << 20;

/// Returns the path of the file that belongs to a switches file.
pub fn past_file(switches: &Path) -> PathBuf {
    switches.with_file_name("past-pauses.jsonl")
}

/// Reads all pauses in the file.
///
/// # Errors
///
/// An unreadable file, because it may contain any pause.
pub fn load_past(switches: &Path) -> Result<Vec<RecordingPause>> {
    let path = past_file(switches);
    let text = match files::whole_text(&path, PAST_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let pause = |line: &str| serde_json::from_str(line).with_context(|| format!("{}: {line:.80}", path.display()));
    text.lines().filter(|line| !line.trim().is_empty()).map(pause).collect()
}

/// Adds the pauses that the file does not contain yet. A lock on the folder of the switches keeps other processes out.
pub fn add_past(switches: &Path, new: &[RecordingPause]) -> Result<()> {
    let _held = files::lock_folder(switches.parent().unwrap_or(Path::new("/")))?;
    let mut all = load_past(switches)?;
    let known = all.len();
    for pause in new {
        if !all.contains(pause) {
            all.push(pause.clone());
        }
    }
    if all.len() > known { store_past(switches, &all) } else { Ok(()) }
}

/// Replaces all pauses in the file.
pub fn store_past(switches: &Path, pauses: &[RecordingPause]) -> Result<()> {
    let lines = pauses.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(files::replace_private(&past_file(switches), &lines.iter().map(|line| format!("{line}\n")).collect::<String>())?)
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
            s.off.push(RecordingPause { what: What::Everything, since: 0, until: Some(100) });
            s.off.push(RecordingPause { what: session, since: 0, until: None });
        })
        .unwrap();
        let read = Switches::load(&path).unwrap();
        let off = |now, id| read.off_for(Some((Platform::ClaudeCode, id)), &[], now).is_some();
        assert_eq!([off(50, "s2"), off(100, "s2"), off(100, "s1")], [true, false, true]);
        assert_eq!(Switches::change(&path, REMEMBERED + 101, |_| ()).unwrap().off.len(), 1);
        let past = load_past(&path).unwrap();
        assert_eq!((past.len(), past[0].held(50), past[0].held(100)), (1, true, false));
        fs::write(&path, "{").unwrap();
        assert!(Switches::load(&path).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
