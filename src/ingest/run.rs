//! Input that all steps of the pipeline share.

use crate::config::{Config, environment};
use crate::model::Millis;
use crate::redact::Redactor;
use crate::runtime::Projects;
use crate::store::{HOOK_WAIT, PERSON_WAIT};
use std::path::PathBuf;
use std::time::Duration;

/// The source of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// An agent that waits for an answer.
    Hook,
    /// A program that uses the RAD protocol.
    Program,
    /// A past session. The disk has changed since then, and nobody waits for an answer.
    History,
}

/// The current run.
#[derive(Debug)]
pub struct Run<'a> {
    pub caller: Caller,
    pub config: &'a Config,
    pub redactor: &'a Redactor,
    pub now: Millis,
    /// Maximum time to wait for the database.
    pub wait: Duration,
    /// True if units are distilled at once; otherwise a later turn end distils them.
    pub distils: bool,
    /// The agent's process, if the platform names it.
    pub client_pid: Option<u32>,
    /// The folder in which the agent was started.
    pub session_folder: Option<PathBuf>,
}

impl<'a> Run<'a> {
    /// Creates a run in the current environment.
    pub fn new(caller: Caller, config: &'a Config, redactor: &'a Redactor) -> Run<'a> {
        Run {
            caller,
            config,
            redactor,
            now: environment::now(),
            wait: if caller == Caller::History { PERSON_WAIT } else { HOOK_WAIT },
            distils: true,
            client_pid: environment::client_pid().filter(|_| caller == Caller::Hook),
            session_folder: environment::session_folder(),
        }
    }

    pub(super) fn projects(&self) -> Projects<'a> {
        Projects { config: self.config, redactor: self.redactor }
    }

    pub(super) fn home(&self) -> Option<&'a std::path::Path> {
        self.config.home.as_deref()
    }
}
