//! The redacted error log of hooks.

use super::redactor;
use crate::config::{self, environment};
use crate::log;
use crate::model::LogLevel;

/// Logs an error, redacted.
pub fn log_error(message: &str) {
    log_at(LogLevel::Error, message);
}

/// Logs a line, redacted, if the log level includes it.
pub fn log_at(level: LogLevel, message: &str) {
    if let Ok(files) = config::files() {
        // Errors are rare, so loading the user's patterns again costs little.
        let own = config::load(&[]).ok().and_then(|config| redactor(&config).ok());
        let clean = own.unwrap_or_default().clean(message.to_string());
        log::write(&files.value, environment::log_level(), level, environment::now(), &clean);
    }
}
