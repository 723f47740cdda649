//! Where a request is answered: its folder, the settings that hold there, and the store.

use super::request::{Problem, Request};
use crate::config::{Config, environment};
use crate::domains;
use crate::ingest::{self, Caller, Run};
use crate::model::{Domain, Millis, Platform, ProjectId};
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// Settings as they hold in one folder.
pub struct Settings {
    pub config: Config,
    pub redactor: Redactor,
    /// The store, once something was written, for the next line of a batch.
    pub store: RefCell<Option<Store>>,
    /// Domains of projects, which are long to read.
    pub domains: RefCell<HashMap<i64, Rc<Domain>>>,
}

/// One request's place.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    pub folder: &'a Path,
    pub settings: &'a Settings,
    pub now: Millis,
}

impl<'a> Here<'a> {
    pub fn projects(&self) -> Projects<'a> {
        Projects { config: &self.settings.config, redactor: &self.settings.redactor }
    }

    /// What the pipeline of events is given.
    pub fn run(&self) -> Run<'a> {
        Run { now: self.now, ..Run::new(Caller::Program, &self.settings.config, &self.settings.redactor) }
    }

    /// The store as it is.
    pub fn reader(&self) -> Result<Option<Store>, Problem> {
        Ok(Store::open_to_read(&self.settings.config.files.value, PERSON_WAIT)?)
    }

    /// Looks into the store as it is; `None` where nothing was ever recorded.
    pub fn look<T>(&self, at: impl FnOnce(&Store) -> Result<T>) -> Result<Option<T>, Problem> {
        match self.settings.store.borrow().as_ref() {
            Some(store) => Ok(Some(at(store)?)),
            None => Ok(self.reader()?.as_ref().map(at).transpose()?),
        }
    }

    /// Writes into the store.
    pub fn write<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut kept = self.settings.store.borrow_mut();
        match kept.as_mut() {
            Some(store) => work(store),
            None => work(kept.insert(Store::open(&self.settings.config.files.value, PERSON_WAIT)?)),
        }
    }

    /// What kind of work a project is.
    pub fn domain(&self, store: &Store, project: i64) -> Result<Rc<Domain>, Problem> {
        if let Some(known) = self.settings.domains.borrow().get(&project) {
            return Ok(known.clone());
        }
        let domain = store.domain_of_project(project)?.unwrap_or_default();
        let domain = Rc::new(domains::of(Some(&domain.0), domain.1.as_deref()));
        self.settings.domains.borrow_mut().insert(project, domain.clone());
        Ok(domain)
    }

    /// The store, for reading, after what waits; `None` where nothing was ever recorded.
    pub fn store(&self) -> Result<Option<Store>, Problem> {
        let files = &self.settings.config.files.value;
        if crate::store::spool::is_waiting(files) {
            let mut store = Store::open(files, PERSON_WAIT)?;
            ingest::drain(&self.run(), &mut store)?;
        }
        self.reader()
    }

    /// What a project is known by that a request names: the one that is stored by that name, else the folder's own, if that
    /// is its name, else one of that name and nothing more. `None` where none is named.
    pub fn identity(&self, request: Request) -> Result<Option<ProjectId>, Problem> {
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

    /// What the folder's own project is known by.
    pub fn own_identity(&self) -> Option<ProjectId> {
        self.projects().identify(&self.folder.to_string_lossy())
    }

    /// Whether anything may be recorded now: of this session, here, and in the project that is named.
    pub fn may_record(&self, session: Option<(Platform, &str)>, named: Option<&ProjectId>) -> Result<(), Problem> {
        let config = &self.settings.config;
        let off = |what: String| Err(Problem { code: "off", message: what });
        if let Some(name) = environment::switched_off() {
            return off(format!("{name} switches nmem off"));
        }
        if !config.enabled.value {
            return off(format!("enabled = false ({}): nothing is recorded here", config.enabled.source));
        }
        let begun = environment::session_folder();
        let folders = [self.folder.to_str(), begun.as_ref().and_then(|folder| folder.to_str())];
        if runtime::is_paused(&self.projects(), &Where { session, folders, project: named }, self.now) {
            return off("recording is switched off here: `nmem on` resumes it".into());
        }
        Ok(())
    }

    /// The project that a request names, or that its folder is.
    pub fn project(&self, store: &Store, request: Request) -> Result<Option<(i64, String)>, Problem> {
        let Some(identity) = self.identity(request)?.or_else(|| self.own_identity()) else { return Ok(None) };
        let row = store.project_by_identity(&self.settings.redactor.clean(identity))?;
        Ok(row.map(|row| (row.id, row.name)))
    }
}
