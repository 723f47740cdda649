//! Ended pauses of recording. An import needs them to skip what happened during a pause.
//!
//! `switches.json` contains the current pauses and those that ended recently. Hooks read it every time, so older pauses
//! move to this file next to it: JSON Lines, private, never read by a hook.

use super::pauses::RecordingPause;
use crate::files;
use anyhow::{Context, Result};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum bytes to read: about ten thousand pauses.
const BYTES: u64 = 4 << 20;

/// Returns the path of the file that belongs to a switches file.
pub fn file(switches: &Path) -> PathBuf {
    switches.with_file_name("past-pauses.jsonl")
}

/// Reads all pauses in the file.
///
/// # Errors
///
/// An unreadable file, because it may contain any pause.
pub fn load(switches: &Path) -> Result<Vec<RecordingPause>> {
    let path = file(switches);
    let text = match files::whole_text(&path, BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let pause = |line: &str| serde_json::from_str(line).with_context(|| format!("{}: {line:.80}", path.display()));
    text.lines().filter(|line| !line.trim().is_empty()).map(pause).collect()
}

/// Adds the pauses that the file does not contain yet. A lock on the folder of the switches keeps other processes out.
pub fn add(switches: &Path, new: &[RecordingPause]) -> Result<()> {
    let _held = files::lock_folder(switches.parent().unwrap_or(Path::new("/")))?;
    let mut all = load(switches)?;
    let known = all.len();
    for pause in new {
        if !all.contains(pause) {
            all.push(pause.clone());
        }
    }
    if all.len() > known { store(switches, &all) } else { Ok(()) }
}

/// Replaces all pauses in the file.
pub fn store(switches: &Path, pauses: &[RecordingPause]) -> Result<()> {
    let lines = pauses.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(files::replace_private(&file(switches), &lines.iter().map(|line| format!("{line}\n")).collect::<String>())?)
}
