//! The error log that `nmem status` shows.

use crate::files::{append_private, make_folder};
use crate::model::{Files, LogLevel, Millis, beside};
use crate::redact::Clean;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};

/// Bytes at which the log is rotated.
const LIMIT: u64 = 256 << 10;

/// One log entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogLine {
    pub at: Millis,
    pub level: String,
    pub message: String,
}

/// Appends an entry. Failures are ignored: there is nowhere left to report them.
pub fn write(files: &Files, wanted: LogLevel, level: LogLevel, at: Millis, message: &Clean<String>) {
    if wanted < level || level == LogLevel::Off {
        return;
    }
    if let Some(folder) = files.log.parent().filter(|f| !f.is_dir()) {
        let _ = make_folder(folder);
    }
    if fs::metadata(&files.log).is_ok_and(|m| m.len() > LIMIT) {
        let _ = fs::rename(&files.log, beside(&files.log, "-old"));
    }
    let level = format!("{level:?}").to_lowercase();
    let line = serde_json::json!({"at": at, "level": level, "message": **message});
    if let Ok(mut file) = append_private(&files.log) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// Returns the last errors, newest first.
pub fn last_errors(files: &Files, limit: usize) -> Vec<LogLine> {
    let Ok(file) = File::open(&files.log) else { return Vec::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut errors: Vec<LogLine> =
        lines.filter_map(|l| serde_json::from_str(&l).ok()).filter(|l: &LogLine| l.level == "error").collect();
    errors.reverse();
    errors.truncate(limit);
    errors
}
