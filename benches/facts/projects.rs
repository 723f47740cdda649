//! The labelled projects.

use super::score::{Fact, Labels};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Their names, where their sessions lie, and their labels. The first one's figures are compared with those of earlier
/// versions.
pub const PROJECTS: [(&str, &str, &str); 4] = [
    ("recall", "recall", "facts/labels.json"),
    ("recall-2", "recall-2", "recall-2/labels.json"),
    ("safecast", "projects/safecast", "projects/safecast/labels.json"),
    ("skills", "projects/skills", "projects/skills/labels.json"),
];

/// A project whose sessions are labelled.
pub struct Project {
    pub name: &'static str,
    pub sessions: PathBuf,
    pub labels: BTreeMap<String, Labels>,
}

impl Project {
    /// Those that there are.
    pub fn all(data: &Path) -> Vec<Project> {
        let of = |(name, sessions, labels): (&'static str, &str, &str)| {
            let labels = fs::read_to_string(data.join(labels)).ok()?;
            Some(Project { name, sessions: data.join(sessions), labels: serde_json::from_str(&labels).unwrap() })
        };
        PROJECTS.into_iter().filter_map(of).collect()
    }

    /// The labelled facts.
    pub fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.labels.values().flat_map(|labels| &labels.facts)
    }

    /// The sessions by id, as `queries.json` describes them.
    pub fn by_id(&self) -> BTreeMap<String, Value> {
        let data: Value = serde_json::from_str(&fs::read_to_string(self.sessions.join("queries.json")).unwrap()).unwrap();
        let sessions = data["sessions"].as_array().unwrap().iter();
        sessions.map(|session| (session["id"].as_str().unwrap().to_string(), session.clone())).collect()
    }
}
