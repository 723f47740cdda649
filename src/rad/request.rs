//! A request: its fields, and the settings of its folder.

use crate::config::{Config, environment};
use crate::domains;
use crate::ingest::persist;
use crate::ingest::run::{Caller, Run};
use crate::model::{Domain, Millis, Platform, ProjectId};
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// Maximum bytes of an id or name.
const ID: usize = 200;

/// Error of a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// `bad_request`, `not_found`, `unavailable`.
    pub code: &'static str,
    pub message: String,
}

impl ProtocolError {
    pub fn bad(message: impl Into<String>) -> ProtocolError {
        ProtocolError { code: "bad_request", message: message.into() }
    }

    pub fn not_found(message: impl Into<String>) -> ProtocolError {
        ProtocolError { code: "not_found", message: message.into() }
    }

    /// The error as an answer.
    pub fn json(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message}})
    }
}

impl From<anyhow::Error> for ProtocolError {
    fn from(error: anyhow::Error) -> ProtocolError {
        ProtocolError { code: "unavailable", message: format!("{error:#}") }
    }
}

/// The fields of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a>(&'a Map<String, Value>);

impl<'a> Request<'a> {
    pub fn of(value: &'a Value) -> Result<Request<'a>, ProtocolError> {
        value.as_object().map(Request).ok_or_else(|| ProtocolError::bad("a request is a JSON object"))
    }

    /// The value of the first of some names (in snake case) that the request has in either case; `null` counts as
    /// missing.
    pub fn value(self, names: &[&str]) -> Option<&'a Value> {
        let wanted: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let found = wanted.iter().find_map(|wanted| self.0.iter().find(|(name, _)| plain(name) == *wanted));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(self, names: &[&str]) -> Result<Option<&'a str>, ProtocolError> {
        let wrong = || ProtocolError::bad(format!("`{}` must be a text", names[0]));
        self.value(names).map(|value| value.as_str().ok_or_else(wrong)).transpose()
    }

    /// A required, non-empty text.
    pub fn needed(self, names: &[&str]) -> Result<&'a str, ProtocolError> {
        let text = self.text(names)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| ProtocolError::bad(format!("`{}` is missing", names[0])))
    }

    /// An id or a name: one line of at most 200 bytes.
    pub fn name(self, names: &[&str]) -> Result<Option<&'a str>, ProtocolError> {
        let Some(text) = self.text(names)?.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
        match text.len() <= ID && !text.chars().any(char::is_control) {
            true => Ok(Some(text)),
            false => Err(ProtocolError::bad(format!("`{}` must be one line of at most {ID} bytes", names[0]))),
        }
    }

    /// A list of texts; empty if missing.
    pub fn list(self, names: &[&str]) -> Result<Vec<String>, ProtocolError> {
        let Some(value) = self.value(names) else { return Ok(Vec::new()) };
        let items = value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(String::from)).collect());
        items.ok_or_else(|| ProtocolError::bad(format!("`{}` must be a list of texts", names[0])))
    }

    /// Fields other than the given ones, in either case.
    pub fn others(self, known: &'a [&'a [&'a str]]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let known: Vec<String> = known.iter().flat_map(|names| names.iter()).map(|name| plain(name)).collect();
        self.0.iter().filter(move |(name, _)| !known.contains(&plain(name)))
    }

    /// A number from 1 to `most`.
    pub fn count(self, names: &[&str], usual: usize, most: usize) -> Result<usize, ProtocolError> {
        let Some(value) = self.value(names) else { return Ok(usual) };
        // Query strings put numbers in quotes.
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.and_then(|number| usize::try_from(number).ok()).filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| ProtocolError::bad(format!("`{}` must be a number from 1 to {most}", names[0])))
    }
}

/// Normalises a name, so that snake case and camel case are equal.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// The settings of a folder.
pub struct Settings {
    pub config: Config,
    pub redactor: Redactor,
    /// The store after the first write, for the next line of a batch.
    pub store: RefCell<Option<Store>>,
    /// Parsed domains of projects; parsing is slow.
    pub domains: RefCell<HashMap<i64, Rc<Domain>>>,
}

/// The context of one request.
#[derive(Clone, Copy)]
pub struct RequestContext<'a> {
    pub folder: &'a Path,
    pub settings: &'a Settings,
    pub now: Millis,
}

impl<'a> RequestContext<'a> {
    pub fn projects(&self) -> Projects<'a> {
        Projects { config: &self.settings.config, redactor: &self.settings.redactor }
    }

    /// Input for the event pipeline.
    pub fn run(&self) -> Run<'a> {
        Run { now: self.now, ..Run::new(Caller::Program, &self.settings.config, &self.settings.redactor) }
    }

    /// The store for reading.
    pub fn reader(&self) -> Result<Option<Store>, ProtocolError> {
        Ok(Store::open_to_read(&self.settings.config.files.value, PERSON_WAIT)?)
    }

    /// Reads from the store; `None` if nothing was ever recorded.
    pub fn look<T>(&self, at: impl FnOnce(&Store) -> Result<T>) -> Result<Option<T>, ProtocolError> {
        match self.settings.store.borrow().as_ref() {
            Some(store) => Ok(Some(at(store)?)),
            None => Ok(self.reader()?.as_ref().map(at).transpose()?),
        }
    }

    /// Writes to the store.
    pub fn write<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, ProtocolError>) -> Result<T, ProtocolError> {
        let mut kept = self.settings.store.borrow_mut();
        match kept.as_mut() {
            Some(store) => work(store),
            None => work(kept.insert(Store::open(&self.settings.config.files.value, PERSON_WAIT)?)),
        }
    }

    /// A project's domain.
    pub fn domain(&self, store: &Store, project: i64) -> Result<Rc<Domain>, ProtocolError> {
        if let Some(known) = self.settings.domains.borrow().get(&project) {
            return Ok(known.clone());
        }
        let domain = store.domain_of_project(project)?.unwrap_or_default();
        let domain = Rc::new(domains::of(Some(&domain.0), domain.1.as_deref()));
        self.settings.domains.borrow_mut().insert(project, domain.clone());
        Ok(domain)
    }

    /// Returns the store for reading, after draining the spool; `None` if nothing was ever recorded. Events that cannot
    /// be drained, because the database is locked or read-only, stay in the spool.
    pub fn store(&self) -> Result<Option<Store>, ProtocolError> {
        Ok(persist::reader(&self.run())?)
    }

    /// The identity of the project that a request names: a stored one with that name, the folder's own if it has that
    /// name, or a new one. `None` without a name.
    pub fn identity(&self, request: Request) -> Result<Option<ProjectId>, ProtocolError> {
        let Some(name) = request.name(&["project", "repo_id", "repo"])? else { return Ok(None) };
        if let Some(own) = self.own_identity().filter(|own| own.name == name) {
            return Ok(Some(own));
        }
        let stored = self.look(|store| store.identity_by_name(name))?.flatten();
        let new = || ProjectId {
            keys: vec![format!("name:{name}")],
            name: name.to_string(),
            root: self.folder.display().to_string(),
            ..ProjectId::default()
        };
        Ok(Some(stored.unwrap_or_else(new)))
    }

    /// The identity of the folder's own project.
    pub fn own_identity(&self) -> Option<ProjectId> {
        self.projects().identify(&self.folder.to_string_lossy())
    }

    /// Checks that recording is on for this session, this folder, and the named project.
    pub fn may_record(&self, session: Option<(Platform, &str)>, named: Option<&ProjectId>) -> Result<(), ProtocolError> {
        let begun = environment::session_folder();
        let folders = [self.folder.to_str(), begun.as_ref().and_then(|folder| folder.to_str())];
        match runtime::why_off(&self.projects(), &Where { session, folders, project: named }, self.now) {
            Some(message) => Err(ProtocolError { code: "off", message }),
            None => Ok(()),
        }
    }

    /// The project that a request names, or that of its folder.
    pub fn project(&self, store: &Store, request: Request) -> Result<Option<(i64, String)>, ProtocolError> {
        let Some(identity) = self.identity(request)?.or_else(|| self.own_identity()) else { return Ok(None) };
        let row = store.project_by_identity(&self.settings.redactor.clean(identity))?;
        Ok(row.map(|row| (row.id, row.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_either_case_and_what_is_wrong_is_named() {
        let value = json!({"claudeSessionId": " a-1 ", "limit": "7", "tool_name": 3, "none": null, "two": "a\nb"});
        let request = Request::of(&value).unwrap();
        assert_eq!(request.name(&["agent_session_id", "claude_session_id"]), Ok(Some("a-1")));
        assert_eq!(request.count(&["limit"], 5, 100), Ok(7));
        assert_eq!(request.value(&["none"]), None);
        assert_eq!(request.text(&["tool_name"]).unwrap_err().message, "`tool_name` must be a text");
        assert_eq!(request.needed(&["user_prompt"]).unwrap_err().message, "`user_prompt` is missing");
        assert!(request.name(&["two"]).is_err() && request.count(&["tool_name"], 1, 2).is_err());
        assert_eq!(Request::of(&json!([])).unwrap_err().code, "bad_request");
    }
}
