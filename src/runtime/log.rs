//! The error log of hooks, redacted: nothing else says what went wrong in them.

use super::redactor;
use crate::config::{self, environment};
use crate::log;
use crate::model::LogLevel;

/// Writes an error to the log, redacted.
pub fn log_error(message: &str) {
    log_at(LogLevel::Error, message);
}

/// Writes a line to the log, redacted, if the log is to say so much.
pub fn log_at(level: LogLevel, message: &str) {
    if let Ok(files) = config::files() {
        // An error is rare: reading the user's patterns once more costs nothing that counts.
        let own = config::load(&[]).ok().and_then(|config| redactor(&config).ok());
        let clean = own.unwrap_or_default().clean(message.to_string());
        log::write(&files.value, environment::log_level(), level, environment::now(), &clean);
    }
}
