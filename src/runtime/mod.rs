//! What every run of nmem has at hand beside its settings. Read in this order: here the redactor with the user's own
//! patterns, `log` the error log that takes redacted lines only, `projects` which project a folder is, `pause` whether the
//! user switched recording off.

mod log;
mod pause;
mod projects;

pub use log::{log_at, log_error};
pub use pause::{Where, is_paused, places};
pub use projects::{FolderProject, Projects};

use crate::config::Config;
use crate::error::Failure;
use crate::files;
use crate::redact::Redactor;
use anyhow::Result;

/// The redactor with the user's own patterns; the key of marks is read when the first mark is made.
///
/// # Errors
/// A pattern that can't be compiled: without it, what the user calls a secret is unknown.
pub fn redactor(config: &Config) -> Result<Redactor> {
    let key = config.mark_key.clone();
    let made = Redactor::new(&config.redact.value, &config.ignored(), Some(Box::new(move || files::own_key(&key))));
    made.map_err(|e| {
        let what = format!("{}: {}", config.file.display(), e.split_whitespace().collect::<Vec<_>>().join(" "));
        Failure::new(what, "mend it; until then hooks record nothing").into()
    })
}
