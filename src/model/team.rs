//! Team memory: what machines exchange about shared memories (ADR/0051).

use super::fields::each_field;
use super::spelled::spelled;
use super::{ENTITY_TEXT, FAILURE, Limit, Maker, MemoryFile, MemoryKind, Millis, NAME, Provenance, SUBTITLE, TITLE, Texts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

spelled! {
/// With whom memories of a project are shared.
Share, default None {
    None = "none",
    /// With a team: everything but private memories.
    Team = "team",
    /// With the same person's machines: private memories too.
    Mine = "mine",
}
}

spelled! {
/// Whose words a shared memory consists of, on the machine where it was made.
Author, default Tool {
    /// A person wrote, changed or pinned it.
    Hand = "hand",
    User = "user",
    Agent = "agent",
    Tool = "tool",
}
}

/// A change of a shared memory: its new state, or a tombstone. Each machine numbers its own changes; the newest change of
/// a memory by (`counter`, `machine`) is its state on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedChange {
    /// Ed25519 public key of the machine that made the change, in hex.
    pub machine: String,
    /// Number in that machine's series, from 1. Numbers of overtaken changes are missing.
    pub seq: i64,
    /// Of the memory.
    pub uuid: String,
    /// Logical counter: one more than that of the change before.
    pub counter: i64,
    /// The memory was forgotten or withdrawn. It has no body then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// A tombstone of a memory that became private: where it was made, it stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
    /// Keys by which other machines know the project: `repo:…`, `root:…`, `name:…`.
    #[serde(default)]
    pub projects: Vec<String>,
    /// The person's chosen name.
    pub name: String,
    /// SHA-256 of the body in hex.
    pub digest: String,
    /// Ed25519 signature of all other fields but the body, in hex.
    pub signature: String,
    /// A [`SharedMemory`] as JSON; `None` for a tombstone, and where a later change has removed the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// A memory as it leaves the machine. It has no ids of sessions, prompts or tool uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedMemory {
    pub kind: MemoryKind,
    #[serde(rename = "type")]
    pub kind_type: Option<String>,
    pub title: String,
    pub subtitle: Option<String>,
    #[serde(rename = "narrative")]
    pub body: Option<String>,
    pub content: Map<String, Value>,
    pub concepts: Vec<String>,
    /// Path, whether it was modified, and its content's hash.
    pub files: Vec<(String, bool, Option<String>)>,
    pub created_at: Millis,
    pub made_by: String,
    pub author: Author,
    pub pinned: bool,
    /// Uuid of the memory that supersedes it.
    pub superseded_by: Option<String>,
    pub platform: Option<String>,
    /// Random-looking, so that the digest of a forgotten text cannot be guessed.
    pub salt: String,
}

impl SharedMemory {
    /// Who created it.
    pub fn maker(&self) -> Maker {
        Maker::from(self.made_by.clone())
    }

    /// Its files.
    pub fn files(&self) -> Vec<MemoryFile> {
        let file = |(path, modified, hash): &(String, bool, Option<String>)| MemoryFile {
            path: path.clone(),
            modified: *modified,
            hash: hash.clone(),
        };
        self.files.iter().map(file).collect()
    }

    /// Whose words it consists of, for a machine of the same person.
    pub fn provenance(&self) -> Provenance {
        match self.author {
            Author::Hand | Author::User => Provenance::User,
            Author::Agent => Provenance::Agent,
            Author::Tool => Provenance::Tool,
        }
    }
}

impl Texts for SharedMemory {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        visit(&mut self.title, TITLE);
        for (text, limit) in
            [(&mut self.subtitle, SUBTITLE), (&mut self.body, FAILURE), (&mut self.kind_type, NAME), (&mut self.platform, NAME)]
        {
            if let Some(text) = text {
                visit(text, limit);
            }
        }
        visit(&mut self.made_by, NAME);
        let limit = if self.kind == MemoryKind::Entity { ENTITY_TEXT } else { FAILURE };
        each_field(&mut self.content, "", limit, visit);
        self.concepts.iter_mut().for_each(|concept| visit(concept, NAME));
        self.files.iter_mut().for_each(|(path, ..)| visit(path, NAME));
    }
}

/// A machine that shares memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub id: i64,
    /// Ed25519 public key in hex.
    pub key: String,
    pub name: String,
    /// This machine: the last number given. Others: everything up to here is applied.
    pub seq: i64,
    pub is_own: bool,
    pub is_trusted: bool,
    pub seen_at: Millis,
}

impl Machine {
    /// The first digits of its key, for people.
    pub fn short(&self) -> &str {
        &self.key[..self.key.len().min(8)]
    }
}

/// Where a memory of the team comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamOrigin {
    /// The person's chosen name.
    pub name: String,
    /// The user trusts this person.
    pub is_trusted: bool,
    pub author: Author,
}

/// A project whose memories are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedProject {
    pub id: i64,
    pub name: String,
    pub share: Share,
    /// Keys that also hold on other machines.
    pub keys: Vec<String>,
}

/// Why a change of a memory is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SendReason {
    New,
    Changed,
    /// The memory became private.
    Withdrawn,
    Forgotten,
}

impl SendReason {
    /// One word, for people and JSON.
    pub fn name(self) -> &'static str {
        match self {
            SendReason::New => "new",
            SendReason::Changed => "changed",
            SendReason::Withdrawn => "withdrawn",
            SendReason::Forgotten => "forgotten",
        }
    }
}

/// A change that is due: it is sent at the next sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueChange {
    pub uuid: String,
    pub reason: SendReason,
    /// Row id, title and kind, unless the memory is gone.
    pub memory: Option<(i64, String, MemoryKind)>,
    pub project: Option<String>,
}

/// Tasks, decisions and lessons of other programs, and what became of changes of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub new: usize,
    pub changed: usize,
    pub forgotten: usize,
    /// Own memories that others changed or forgot: kept, and private from now on.
    pub kept: usize,
    /// Changes without a valid signature or with an unreadable body.
    pub invalid: usize,
    /// Changes that name a memory of a project that is not shared.
    pub refused: usize,
    /// Changes of projects that this machine does not share.
    pub elsewhere: usize,
    /// By name of the person: new memories.
    pub people: std::collections::BTreeMap<String, usize>,
}

/// How the last sync ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastSync {
    pub done_at: Option<Millis>,
    pub failed_at: Option<Millis>,
    /// Why it failed.
    pub error: Option<String>,
}
