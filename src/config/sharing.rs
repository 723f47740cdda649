//! Team memory: `[team]` in the config file, and `RAD_DATABASE_URL`.

use super::folders::expanded;
use super::setting::{Setting, SettingSource, Wrong, text, wrong};
use std::path::{Path, PathBuf};

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
    /// Reads `[team]`; unknown keys are added to `unknown`.
    pub fn read(&mut self, value: &toml::Value, home: Option<&Path>, unknown: &mut Vec<String>) -> Result<(), Wrong> {
        let source = SettingSource::File;
        for (key, value) in value.as_table().ok_or("`team` must be written as [team]")? {
            let name = format!("team.{key}");
            match key.as_str() {
                "sync" => {
                    let when = match value.as_str() {
                        Some("manual") => SyncWhen::Manual,
                        Some("session") => SyncWhen::Session,
                        _ => return Err(wrong(&name, "\"manual\" or \"session\"", value)),
                    };
                    self.when = Setting { value: when, source: source.clone() };
                }
                "name" => {
                    let given = text(&name, value)?;
                    let is_name = given.chars().count() <= NAME && !given.chars().any(char::is_control);
                    if !is_name {
                        return Err(wrong(&name, "a name of at most 40 characters", value));
                    }
                    let given = Some(given.trim().to_string()).filter(|given| !given.is_empty());
                    self.name = Setting { value: given, source: source.clone() };
                }
                "folder" => {
                    let given = text(&name, value)?;
                    let folder = PathBuf::from(expanded(&given, home));
                    if !given.is_empty() && !folder.is_absolute() {
                        return Err(wrong(&name, "an absolute path or begin with ~/", value));
                    }
                    let folder = (!given.is_empty()).then_some(folder);
                    self.folder = Setting { value: folder, source: source.clone() };
                }
                _ => unknown.push(name),
            }
        }
        Ok(())
    }

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
