//! A setting: its value, and where that came from.

use std::fmt;
use std::path::PathBuf;

/// Most bytes that may be given to an agent: the largest platform cuts off at 10,000 characters.
pub const CONTEXT_BYTES_MAX: usize = 9000;

/// Where a setting's value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    File,
    Environment(&'static str),
    /// The user's rule for a folder, by its pattern.
    Folder(String),
    /// A repository's own file.
    Repository(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File => f.write_str("config file"),
            Source::Environment(name) => f.write_str(name),
            Source::Folder(pattern) => write!(f, "[[folder]] {pattern}"),
            Source::Repository(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    pub value: T,
    pub source: Source,
}

impl<T> Setting<T> {
    /// A value that nobody set.
    pub(super) fn default(value: T) -> Setting<T> {
        Setting { value, source: Source::Default }
    }
}

/// What agents are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inject {
    None,
    Start,
    All,
}

impl Inject {
    /// Returns the word of the config file.
    pub fn name(self) -> &'static str {
        match self {
            Inject::None => "none",
            Inject::Start => "start",
            Inject::All => "all",
        }
    }
}
