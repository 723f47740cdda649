//! A setting: its value and its origin.

use std::fmt;
use std::path::PathBuf;

/// Maximum bytes to inject: the strictest platform cuts off at 10,000 characters.
pub const CONTEXT_BYTES_MAX: usize = 9000;

/// Origin of a setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingSource {
    Default,
    File,
    Environment(&'static str),
    /// A folder rule, by its pattern.
    Folder(String),
    /// A repository's `.nmem.toml` file.
    Repository(PathBuf),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Default => f.write_str("default"),
            SettingSource::File => f.write_str("config file"),
            SettingSource::Environment(name) => f.write_str(name),
            SettingSource::Folder(pattern) => write!(f, "[[folder]] {pattern}"),
            SettingSource::Repository(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A value and its origin.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub source: SettingSource,
}

impl<T> Setting<T> {
    /// A default value.
    pub(super) fn default(value: T) -> Setting<T> {
        Setting { value, source: SettingSource::Default }
    }
}

/// The injections that are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject {
    None,
    Start,
    All,
}

impl Inject {
    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            Inject::None => "none",
            Inject::Start => "start",
            Inject::All => "all",
        }
    }
}
