//! `nmem rad VERB`: memory for any program, one request a process and no server (docs/protocol.md, ADR/0034). What is
//! recorded goes the way of hooks: the same redaction, skip list, switches, spool and rules.

mod batch;
mod entities;
mod knowledge;
mod reading;
mod request;
mod sessions;

use crate::config::{self, Config, environment};
use crate::domains;
use crate::ingest::{self, Caller, Run};
use crate::model::{DEPTH, Domain, Millis, Platform, ProjectId, depth};
use crate::platforms::intake::Intake;
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
pub use batch::batch;
pub use request::Problem;
use request::Request;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

/// Answers one request; `read` is what stdin held.
pub fn answer(verb: Option<&str>, read: Intake) -> Result<Answered> {
    let mut rad = Rad::begin()?;
    Ok(match (read, verb) {
        (_, None) => Err(Problem::bad("no verb is named: `nmem rad --help` lists them")),
        (Intake::Json { value, mended: false }, Some(verb)) => rad.answer(verb, &value),
        (Intake::Empty, Some(verb)) => rad.answer(verb, &Value::Object(Default::default())),
        (Intake::Json { mended: true, .. } | Intake::Garbage(_), _) => {
            Err(Problem::bad("stdin is no sound JSON of at most 16 MB"))
        }
    })
}

/// What a request is answered: JSON, or what is wrong with it.
pub type Answered = Result<Value, Problem>;

/// Settings as they hold in one folder.
struct Settings {
    config: Config,
    redactor: Redactor,
    /// The store, once something was written, for the next line of a batch.
    store: RefCell<Option<Store>>,
    /// Domains of projects, which are long to read.
    domains: RefCell<HashMap<i64, Rc<Domain>>>,
}

/// What answering needs to know of this run.
struct Rad {
    /// Where the program runs.
    folder: PathBuf,
    settings: HashMap<PathBuf, Settings>,
    read_at: Instant,
    now: Millis,
}

impl Rad {
    fn begin() -> Result<Rad> {
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        if let Some(begun) = environment::session_folder() {
            // In an agent's shell a project's settings have set variables.
            environment::enter_hook(&folder, &begun);
        }
        Ok(Rad { folder, settings: HashMap::new(), read_at: Instant::now(), now: environment::now() })
    }

    fn answer(&mut self, verb: &str, value: &Value) -> Result<Value, Problem> {
        let request = self.request(value)?;
        let folder = self.folder_of(request)?;
        self.load(&folder)?;
        let here = self.here(&folder);
        match verb {
            "sessions/ensure" => sessions::ensure(&here, request),
            "sessions/init" => sessions::init(&here, request),
            "observations" => sessions::observations(&here, request),
            "sessions/summarize" => sessions::summarize(&here, request),
            "sessions/complete" => sessions::complete(&here, request),
            "context" => reading::context(&here, request),
            "search" => reading::search(&here, request),
            "observation" => reading::observation(&here, request),
            "session" => reading::session(&here, request),
            "entities" => entities::entities(&here, request),
            "knowledge/record" => knowledge::record(&here, request),
            "knowledge/related" => knowledge::related(&here, request),
            "health" => reading::health(&here),
            _ => Err(Problem::bad(format!("{verb:?} is no verb: `nmem rad --help` lists them"))),
        }
    }

    /// Takes an entity of a batch into the group that is stored next.
    fn take(&mut self, value: &Value, group: &mut entities::Group) {
        let taken = self.request(value).and_then(|request| {
            let folder = self.folder_of(request)?;
            self.load(&folder)?;
            entities::prepare(&self.here(&folder), request).map(|prepared| (folder.clone(), prepared))
        });
        group.push(taken);
    }

    /// Stores a group; an answer each, in their order.
    fn store(&self, group: entities::Group) -> Vec<Result<Value, Problem>> {
        entities::store(group, |folder| self.here(folder))
    }

    /// A request, and not before its time: a batch may go on for as long as an agent does.
    fn request<'v>(&mut self, value: &'v Value) -> Result<Request<'v>, Problem> {
        self.now = environment::now();
        if depth(value) > DEPTH {
            return Err(Problem::bad(format!("fields stand more than {DEPTH} deep inside one another")));
        }
        Request::of(value)
    }

    /// The place of a folder whose settings are loaded.
    fn here(&self, folder: &Path) -> Here<'_> {
        let (folder, settings) = self.settings.get_key_value(folder).expect("settings are loaded before");
        Here { folder, settings, now: self.now }
    }

    /// Forgets what was read of settings and store: they may have changed while nothing was asked.
    fn refresh(&mut self) {
        self.settings.clear();
        self.read_at = Instant::now();
    }

    /// Where the work happens that a request is about.
    fn folder_of(&self, request: Request) -> Result<PathBuf, Problem> {
        let Some(cwd) = request.text(&["cwd"])? else { return Ok(self.folder.clone()) };
        let sound = cwd.len() <= environment::PATH_BYTES && !cwd.contains('\0') && Path::new(cwd).is_absolute();
        if sound { Ok(PathBuf::from(cwd)) } else { Err(Problem::bad("`cwd` must be an absolute path")) }
    }

    fn load(&mut self, folder: &Path) -> Result<(), Problem> {
        if !self.settings.contains_key(folder) {
            let config = config::load(&[folder])?;
            let redactor = runtime::redactor(&config)?;
            self.settings.insert(
                folder.to_path_buf(),
                Settings { config, redactor, store: RefCell::default(), domains: RefCell::default() },
            );
        }
        Ok(())
    }
}

/// One request's place.
#[derive(Clone, Copy)]
struct Here<'a> {
    folder: &'a Path,
    settings: &'a Settings,
    now: Millis,
}

impl<'a> Here<'a> {
    fn projects(&self) -> Projects<'a> {
        Projects { config: &self.settings.config, redactor: &self.settings.redactor }
    }

    /// What the pipeline of events is given.
    fn run(&self) -> Run<'a> {
        Run { now: self.now, ..Run::new(Caller::Program, &self.settings.config, &self.settings.redactor) }
    }

    /// The store as it is.
    fn reader(&self) -> Result<Option<Store>, Problem> {
        Ok(Store::open_to_read(&self.settings.config.files.value, PERSON_WAIT)?)
    }

    /// Looks into the store as it is; `None` where nothing was ever recorded.
    fn look<T>(&self, at: impl FnOnce(&Store) -> Result<T>) -> Result<Option<T>, Problem> {
        match self.settings.store.borrow().as_ref() {
            Some(store) => Ok(Some(at(store)?)),
            None => Ok(self.reader()?.as_ref().map(at).transpose()?),
        }
    }

    /// Writes into the store.
    fn write<T>(&self, work: impl FnOnce(&mut Store) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut kept = self.settings.store.borrow_mut();
        match kept.as_mut() {
            Some(store) => work(store),
            None => work(kept.insert(Store::open(&self.settings.config.files.value, PERSON_WAIT)?)),
        }
    }

    /// What kind of work a project is.
    fn domain(&self, store: &Store, project: i64) -> Result<Rc<Domain>, Problem> {
        if let Some(known) = self.settings.domains.borrow().get(&project) {
            return Ok(known.clone());
        }
        let domain = store.domain_of_project(project)?.unwrap_or_default();
        let domain = Rc::new(domains::of(Some(&domain.0), domain.1.as_deref()));
        self.settings.domains.borrow_mut().insert(project, domain.clone());
        Ok(domain)
    }

    /// The store, for reading, after what waits; `None` where nothing was ever recorded.
    fn store(&self) -> Result<Option<Store>, Problem> {
        let files = &self.settings.config.files.value;
        if crate::store::spool::is_waiting(files) {
            let mut store = Store::open(files, PERSON_WAIT)?;
            ingest::drain(&self.run(), &mut store)?;
        }
        self.reader()
    }

    /// What a project is known by that a request names: the one that is stored by that name, else the folder's own, if that
    /// is its name, else one of that name and nothing more. `None` where none is named.
    fn identity(&self, request: Request) -> Result<Option<ProjectId>, Problem> {
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
    fn own_identity(&self) -> Option<ProjectId> {
        self.projects().identify(&self.folder.to_string_lossy())
    }

    /// Whether anything may be recorded now: of this session, here, and in the project that is named.
    fn may_record(&self, session: Option<(Platform, &str)>, named: Option<&ProjectId>) -> Result<(), Problem> {
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
    fn project(&self, store: &Store, request: Request) -> Result<Option<(i64, String)>, Problem> {
        let Some(identity) = self.identity(request)?.or_else(|| self.own_identity()) else { return Ok(None) };
        let row = store.project_by_identity(&self.settings.redactor.clean(identity))?;
        Ok(row.map(|row| (row.id, row.name)))
    }
}
