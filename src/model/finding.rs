//! A finding of `nmem doctor`.

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingLevel {
    Good,
    /// Worth knowing; nothing is broken.
    Note,
    Problem,
}

impl FindingLevel {
    /// Returns the word that is printed.
    pub fn name(self) -> &'static str {
        match self {
            FindingLevel::Good => "ok",
            FindingLevel::Note => "note",
            FindingLevel::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug)]
pub struct DoctorFinding {
    pub about: &'static str,
    pub level: FindingLevel,
    pub what: String,
    /// The suggested action, if any.
    pub remedy: Option<String>,
    pub fixed: bool,
}

impl DoctorFinding {
    /// A check that passed.
    pub fn good(about: &'static str, what: impl Into<String>) -> DoctorFinding {
        DoctorFinding { about, level: FindingLevel::Good, what: what.into(), remedy: None, fixed: false }
    }

    /// Something worth knowing.
    pub fn note(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
        DoctorFinding { about, level: FindingLevel::Note, what: what.into(), remedy: Some(remedy.into()), fixed: false }
    }

    /// Something broken.
    pub fn problem(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> DoctorFinding {
        DoctorFinding { level: FindingLevel::Problem, ..DoctorFinding::note(about, what, remedy) }
    }

    /// Marks a problem as fixed.
    pub fn fixed(mut self) -> DoctorFinding {
        self.fixed = true;
        self
    }
}
