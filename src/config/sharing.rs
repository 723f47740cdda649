//! Team memory: `[team]` in the config file, and `RAD_DATABASE_URL`.

use super::setting::{Setting, Wrong, text, wrong};
use std::path::PathBuf;

/// Longest name, in characters.
const NAME: usize = 40;

/// The occasions for a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWhen {
    /// Only `nmem sync`.
    Manual,
    /// Also at session starts and at Stop.
    Session,
}

impl SyncWhen {
    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            SyncWhen::Manual => "manual",
            SyncWhen::Session => "session",
        }
    }
}

/// Settings of the team memory.
#[derive(Clone, Debug)]
pub struct Team {
    pub when: Setting<SyncWhen>,
    /// Name under which this person shares; `None` for the login name.
    pub name: Setting<Option<String>>,
    /// The shared folder that `nmem sync` uses without an argument.
    pub folder: Setting<Option<PathBuf>>,
    /// URL of the team's PostgreSQL. It may contain a password and is never printed.
    pub url: Setting<Option<String>>,
}

impl Default for Team {
    fn default() -> Team {
        Team {
            when: Setting::default(SyncWhen::Manual),
            name: Setting::default(None),
            folder: Setting::default(None),
            url: Setting::default(None),
        }
    }
}

impl Team {
    /// Whether a session start or a Stop syncs.
    pub fn syncs_in_sessions(&self) -> bool {
        self.when.value == SyncWhen::Session && (self.url.value.is_some() || self.folder.value.is_some())
    }

    /// Returns the host of the PostgreSQL, for display: without user and password.
    pub fn host(&self) -> Option<String> {
        let url = self.url.value.as_deref()?;
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        let host: String = host.split(['/', '?']).next().unwrap_or_default().chars().take(200).collect();
        Some(if host.is_empty() { "on this machine".to_string() } else { host })
    }
}

/// Parses the occasions for a sync.
pub(super) fn sync_when(key: &str, value: &toml::Value) -> Result<SyncWhen, Wrong> {
    let known = [SyncWhen::Manual, SyncWhen::Session].into_iter().find(|when| value.as_str() == Some(when.name()));
    known.ok_or_else(|| wrong(key, "\"manual\" or \"session\"", value))
}

/// Parses a person's name.
pub(super) fn person(key: &str, value: &toml::Value) -> Result<Option<String>, Wrong> {
    let given = text(key, value)?;
    if given.chars().count() > NAME || given.chars().any(char::is_control) {
        return Err(wrong(key, "a name of at most 40 characters", value));
    }
    Ok(Some(given.trim().to_string()).filter(|given| !given.is_empty()))
}
