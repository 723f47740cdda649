//! What all steps need to know of this run of the program.

use crate::config::{Config, environment};
use crate::model::Millis;
use crate::redact::Redactor;
use crate::runtime::Projects;
use std::path::PathBuf;

/// Who brings the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An agent that waits for an answer.
    Hook,
    /// A program that speaks the RAD protocol.
    Program,
    /// A past session: the disk has changed since, and nobody waits for an answer.
    History,
}

/// This run.
#[derive(Debug)]
pub struct Run<'a> {
    pub caller: Caller,
    pub config: &'a Config,
    pub redactor: &'a Redactor,
    pub now: Millis,
    /// The agent's process, where the platform tells it.
    pub client_pid: Option<u32>,
    /// Where the agent was started.
    pub session_folder: Option<PathBuf>,
    /// The platform's own folder: a transcript elsewhere is not opened.
    pub transcripts: Option<PathBuf>,
}

impl<'a> Run<'a> {
    /// A run with what its environment says.
    pub fn new(caller: Caller, config: &'a Config, redactor: &'a Redactor) -> Run<'a> {
        Run {
            caller,
            config,
            redactor,
            now: environment::now(),
            client_pid: environment::client_pid().filter(|_| caller == Caller::Hook),
            session_folder: environment::session_folder(),
            transcripts: environment::claude_folder(config.home.as_deref()),
        }
    }

    pub(super) fn projects(&self) -> Projects<'a> {
        Projects { config: self.config, redactor: self.redactor }
    }

    pub(super) fn home(&self) -> Option<&'a std::path::Path> {
        self.config.home.as_deref()
    }
}
