//! Switches set by commands: recording paused by `nmem off`, and repository files approved by `nmem trust`.
//!
//! They are in one small JSON file in the data folder, replaced atomically. Hooks read it before they open anything
//! else. An unreadable file stops recording, like a broken config file, because it may contain a pause.

use super::past_pauses;
use super::pauses::{ProjectIdentity, RecordingPause};
use crate::error::UserError;
use crate::files;
use crate::model::{Millis, Platform};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
                past_pauses::store(path, &[past_pauses::load(path)?, past].concat())?;
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

#[cfg(test)]
mod tests {
    use super::super::pauses::What;
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
        let past = past_pauses::load(&path).unwrap();
        assert_eq!((past.len(), past[0].held(50), past[0].held(100)), (1, true, false));
        fs::write(&path, "{").unwrap();
        assert!(Switches::load(&path).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
