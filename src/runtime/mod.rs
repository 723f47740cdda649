//! Services that every run needs besides its settings.
//!
//! Read in this order: the redactor with the user's patterns, in this file; `log` (the error log), `projects` (the
//! project of a folder), `pause` (pauses of recording).

mod log;
mod pause;
mod projects;

pub use log::{log_at, log_error};
pub use pause::{Where, is_paused, pause, places, why_off};
pub use projects::{FolderProject, Projects};

use crate::config::Config;
use crate::error::UserError;
use crate::files;
use crate::redact::Redactor;
use anyhow::Result;

/// Creates the redactor with the user's patterns. The redactor reads the key for marks when it creates its first mark.
///
/// # Errors
///
/// A pattern that does not compile: without it, nmem does not know everything that the user considers secret.
pub fn redactor(config: &Config) -> Result<Redactor> {
    let key = config.mark_key.clone();
    let made = Redactor::new(&config.redact.value, &config.ignored(), Some(Box::new(move || files::own_key(&key))));
    made.map_err(|e| {
        let what = format!("{}: {}", config.file.display(), e.split_whitespace().collect::<Vec<_>>().join(" "));
        UserError::new(what, "fix it; until then hooks record nothing").into()
    })
}
