//! What `nmem doctor` found.

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Good,
    /// Worth knowing; nothing is broken.
    Note,
    Problem,
}

impl Level {
    /// Returns the word that is printed.
    pub fn name(self) -> &'static str {
        match self {
            Level::Good => "ok",
            Level::Note => "note",
            Level::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    pub about: &'static str,
    pub level: Level,
    pub what: String,
    /// What to do, where there is something.
    pub remedy: Option<String>,
    pub fixed: bool,
}

impl Finding {
    /// Nothing is wrong.
    pub fn good(about: &'static str, what: impl Into<String>) -> Finding {
        Finding { about, level: Level::Good, what: what.into(), remedy: None, fixed: false }
    }

    /// Worth knowing.
    pub fn note(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { about, level: Level::Note, what: what.into(), remedy: Some(remedy.into()), fixed: false }
    }

    /// Something is broken.
    pub fn problem(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Problem, ..Finding::note(about, what, remedy) }
    }

    /// It was wrong, and no longer is.
    pub fn fixed(mut self) -> Finding {
        self.fixed = true;
        self
    }
}
