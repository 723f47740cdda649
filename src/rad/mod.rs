//! The RAD protocol: single requests, and batches with one request per line. Files: `request` (parsing, settings),
//! `entities`, `knowledge`, `sessions`.

mod entities;
mod knowledge;
mod request;
mod sessions;

pub use request::ProtocolError;

use crate::config::{self, environment};
use crate::model::{DEPTH, Millis, depth};
use crate::platforms::payload::Payload;
use crate::runtime;
use anyhow::Result;
use request::{Request, RequestContext, Settings};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A request of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verb {
    pub name: &'static str,
    /// True if it may change the store.
    pub writes: bool,
}

/// All requests.
pub const VERBS: [Verb; 13] = [
    Verb { name: "sessions/init", writes: true },
    Verb { name: "sessions/ensure", writes: true },
    Verb { name: "observations", writes: true },
    Verb { name: "sessions/summarize", writes: true },
    Verb { name: "sessions/complete", writes: true },
    Verb { name: "context", writes: false },
    Verb { name: "search", writes: false },
    Verb { name: "observation", writes: false },
    Verb { name: "session", writes: false },
    Verb { name: "entities", writes: true },
    Verb { name: "knowledge/record", writes: true },
    Verb { name: "knowledge/related", writes: false },
    Verb { name: "health", writes: false },
];

/// Answers one request of a program that runs in `folder`. `up_since` is the start time of the answering program.
pub fn answer_in(folder: &Path, up_since: Instant, verb: &str, value: &Value) -> Answered {
    Rad { up_since: Some(up_since), ..Rad::in_folder(folder.to_path_buf()) }.answer(verb, value)
}

/// Answers one request; `read` is the content of stdin.
pub fn answer(verb: Option<&str>, read: Payload) -> Result<Answered> {
    let mut rad = Rad::begin();
    Ok(match (read, verb) {
        (_, None) => Err(ProtocolError::bad("no verb given: `nmem rad --help` lists them")),
        (Payload::Json { value, repaired: false }, Some(verb)) => rad.answer(verb, &value),
        (Payload::Empty, Some(verb)) => rad.answer(verb, &Value::Object(Default::default())),
        (Payload::Json { repaired: true, .. } | Payload::Garbage(_), _) => {
            Err(ProtocolError::bad("stdin is not valid JSON of at most 16 MB"))
        }
    })
}

/// The answer to a request: JSON, or an error.
pub type Answered = Result<Value, ProtocolError>;

/// State of this run.
struct Rad {
    /// The program's working directory.
    folder: PathBuf,
    settings: HashMap<PathBuf, Settings>,
    read_at: Instant,
    now: Millis,
    /// Start time of the answering server; `None` for a process that answers once.
    up_since: Option<Instant>,
}

impl Rad {
    fn begin() -> Rad {
        Rad::in_folder(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")))
    }

    fn in_folder(folder: PathBuf) -> Rad {
        if let Some(begun) = environment::session_folder() {
            // In an agent's shell, the project's settings may have set variables.
            environment::enter_hook(&folder, &begun);
        }
        Rad { folder, settings: HashMap::new(), read_at: Instant::now(), now: environment::now(), up_since: None }
    }

    fn answer(&mut self, verb: &str, value: &Value) -> Result<Value, ProtocolError> {
        let request = self.request(value)?;
        let folder = self.folder_of(request)?;
        self.load(&folder)?;
        let context = self.context(&folder);
        match verb {
            "sessions/ensure" => sessions::ensure(&context, request),
            "sessions/init" => sessions::init(&context, request),
            "observations" => sessions::observations(&context, request),
            "sessions/summarize" => sessions::summarize(&context, request),
            "sessions/complete" => sessions::complete(&context, request),
            "context" => entities::context(&context, request),
            "search" => entities::search(&context, request),
            "observation" => entities::observation(&context, request),
            "session" => entities::session(&context, request),
            "entities" => entities::entities(&context, request),
            "knowledge/record" => knowledge::record(&context, request),
            "knowledge/related" => knowledge::related(&context, request),
            "health" => entities::health(&context, self.up_since.map_or(0, |since| since.elapsed().as_secs())),
            _ => Err(ProtocolError::bad(format!("unknown verb {verb:?}: `nmem rad --help` lists them"))),
        }
    }

    /// Adds a batched entity to the group that is stored next.
    fn take(&mut self, value: &Value, group: &mut entities::Group) {
        let taken = self.request(value).and_then(|request| {
            let folder = self.folder_of(request)?;
            self.load(&folder)?;
            entities::prepare(&self.context(&folder), request).map(|prepared| (folder.clone(), prepared))
        });
        group.push(taken);
    }

    /// Stores a group; returns the answers in order.
    fn store(&self, group: entities::Group) -> Vec<Result<Value, ProtocolError>> {
        entities::store(group, |folder| self.context(folder))
    }

    /// Parses a request. Reads the clock for each one, since a batch may run as long as an agent does.
    fn request<'v>(&mut self, value: &'v Value) -> Result<Request<'v>, ProtocolError> {
        self.now = environment::now();
        if depth(value) > DEPTH {
            return Err(ProtocolError::bad(format!("fields are nested more than {DEPTH} levels deep")));
        }
        Request::of(value)
    }

    /// The context of a folder whose settings are loaded.
    fn context(&self, folder: &Path) -> RequestContext<'_> {
        let (folder, settings) = self.settings.get_key_value(folder).expect("settings are loaded before");
        RequestContext { folder, settings, now: self.now }
    }

    /// Drops cached settings and stores, which may have changed meanwhile.
    fn refresh(&mut self) {
        self.settings.clear();
        self.read_at = Instant::now();
    }

    /// The folder that a request is about.
    fn folder_of(&self, request: Request) -> Result<PathBuf, ProtocolError> {
        let Some(cwd) = request.text(&["cwd"])? else { return Ok(self.folder.clone()) };
        let sound = cwd.len() <= environment::PATH_BYTES && !cwd.contains('\0') && Path::new(cwd).is_absolute();
        if sound { Ok(PathBuf::from(cwd)) } else { Err(ProtocolError::bad("`cwd` must be an absolute path")) }
    }

    fn load(&mut self, folder: &Path) -> Result<(), ProtocolError> {
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

/// Maximum bytes of a line.
const LINE: usize = 16 << 20;
/// Bytes to read at once, and entities per transaction, small enough that hooks hardly wait.
const BUFFER: usize = 256 << 10;
const GROUP: usize = 100;
/// Time for which settings stay valid in a batch that does not pause.
const FRESH: Duration = Duration::from_millis(500);

/// Answers one request per line until the input ends; `say` receives each answer. Returns true if every request was
/// answered.
pub fn batch(verb: Option<&str>, input: impl Read, say: &mut dyn FnMut(Answered) -> Result<()>) -> Result<bool> {
    let rad = &mut Rad::begin();
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut all = true;
    let mut line = Vec::new();
    // Entities waiting to be stored together.
    let mut group = entities::Group::default();
    loop {
        // The program waits for an answer before it sends the next request.
        let waits = !input.buffer().contains(&b'\n');
        if group.len() == GROUP || waits {
            all &= flush(rad, &mut group, say)?;
        }
        line.clear();
        if (&mut input).take(LINE as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(all);
        }
        // While the batch waited, the user may have run `nmem off`.
        if group.is_empty() && (waits || rad.read_at.elapsed() > FRESH) {
            rad.refresh();
        }
        if line.len() > LINE && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            line.clear();
        }
        if line.trim_ascii().is_empty() && !line.is_empty() {
            continue;
        }
        let answer = match serde_json::from_slice::<Value>(&line) {
            Err(_) => Err(ProtocolError::bad("the line is not JSON of at most 16 MB")),
            Ok(value) => match value["verb"].as_str().or(verb) {
                None => Err(ProtocolError::bad("no verb given, neither on the command line nor in `verb`")),
                Some("entities") if entities::is_record(&value) => {
                    rad.take(&value, &mut group);
                    continue;
                }
                Some(verb) => {
                    all &= flush(rad, &mut group, say)?;
                    rad.answer(verb, &value)
                }
            },
        };
        all &= flush(rad, &mut group, say)?;
        all &= answer.is_ok();
        say(answer)?;
    }
}

fn flush(rad: &Rad, group: &mut entities::Group, say: &mut dyn FnMut(Answered) -> Result<()>) -> Result<bool> {
    let mut all = true;
    for answer in rad.store(std::mem::take(group)) {
        all &= answer.is_ok();
        say(answer)?;
    }
    Ok(all)
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let read = input.fill_buf()?;
        let (length, ends) = match read.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (read.len(), read.is_empty()),
        };
        input.consume(length);
        if ends {
            return Ok(());
        }
    }
}
