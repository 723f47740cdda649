//! `nmem rad VERB`: memory for any program, one request a process and no server (docs/protocol.md, ADR/0034). What is
//! recorded goes the way of hooks: the same redaction, skip list, switches, spool and rules.
//!
//! Read in this order: `request` (what a program may write), here which verb does what, `here` (where a request is
//! answered), `sessions` (events), `entities` and `knowledge` (what is told), `reading` (what is asked), `batch`.

mod batch;
mod entities;
mod here;
mod knowledge;
mod reading;
mod request;
mod sessions;

use crate::config::{self, environment};
use crate::model::{DEPTH, Millis, depth};
use crate::platforms::intake::Intake;
use crate::runtime::{self};
use anyhow::Result;
use here::{Here, Settings};

pub use batch::batch;
pub use request::Problem;
use request::Request;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
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
