//! State of a running server, the pages that listen, and the changes of the database that are sent to them.

use super::access::Access;
use crate::config::{Config, environment};
use crate::files::{self, Identity};
use crate::forgetting::{ForgetPlan, rows_of};
use crate::ingest::persist;
use crate::ingest::run::{Caller, Run};
use crate::model::{MemoryRow, Provenance, StoredItem};
use crate::rad::ProtocolError;
use crate::render::clean::line;
use crate::render::memory_text;
use crate::runtime::{log_error, redactor};
use crate::store::injections::{Marks, StoreChanges};
use crate::store::{PERSON_WAIT, Store, spool};
use crate::view::PageScope;
use crate::{knowledge, lookup};
use anyhow::Result;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum requests that read the store at once.
const READERS: usize = 4;
/// Maximum request bodies in memory at once.
const BODIES: usize = 8;

/// The folder, settings and projects to serve.
#[derive(Debug)]
pub struct Served {
    /// The folder whose project and settings apply if a request names no `cwd`.
    pub folder: PathBuf,
    pub config: Config,
    /// True if the page shows all projects, not only that of the folder.
    pub all: bool,
    /// Provenance of an edit on the page.
    pub editor: Provenance,
}

impl Served {
    /// Returns the scope of the page. It can change: a project appears with its first event, and may be merged into
    /// another.
    pub fn scope(&self, store: Option<&Store>) -> PageScope {
        PageScope::of(&self.config, &self.folder, self.all, store).unwrap_or_else(PageScope::nothing)
    }
}

/// The state of a server.
#[derive(Debug)]
pub struct ServerState {
    pub served: Served,
    pub access: Access,
    pub listeners: Listeners,
    pub readers: Arc<Semaphore>,
    /// The data of the page is large, so only one request at a time reads it.
    pub viewer: Arc<Semaphore>,
    /// Requests that write take turns.
    pub writer: Arc<Semaphore>,
    pub bodies: Semaphore,
    /// Start time of the server.
    pub since: Instant,
}

impl ServerState {
    pub fn new(served: Served, access: Access) -> ServerState {
        ServerState {
            served,
            access,
            listeners: Listeners::default(),
            readers: Arc::new(Semaphore::new(READERS)),
            viewer: Arc::new(Semaphore::new(1)),
            writer: Arc::new(Semaphore::new(1)),
            bodies: Semaphore::new(BODIES),
            since: Instant::now(),
        }
    }
}

/// Maximum pages that listen at once.
const PAGES: usize = 32;
/// Maximum events that wait for a slow page. A slower page is disconnected; it connects again and reads everything.
const WAITING: usize = 64;

/// The pages that listen.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Vec<Sender<Bytes>>>);

impl Listeners {
    /// A stream for one more page; `None` if there are too many.
    pub fn add(&self) -> Option<Events> {
        let mut all = self.0.lock().ok()?;
        all.retain(|page| !page.is_closed());
        if all.len() >= PAGES {
            return None;
        }
        let (to, from) = channel(WAITING);
        // Tells the page that it is connected, and when to retry.
        let _ = to.try_send(Bytes::from_static(b"retry: 2000\n\n"));
        all.push(to);
        Some(Events(from))
    }

    pub fn are_any(&self) -> bool {
        self.0.lock().is_ok_and(|all| all.iter().any(|page| !page.is_closed()))
    }

    /// Sends an event; `data` is one line.
    pub fn send(&self, name: &str, data: &str) {
        self.send_bytes(format!("event: {name}\ndata: {data}\n\n").into());
    }

    /// Sends a comment, to detect pages that have disconnected.
    pub fn ping(&self) {
        self.send_bytes(Bytes::from_static(b": ping\n\n"));
    }

    fn send_bytes(&self, bytes: Bytes) {
        if let Ok(mut all) = self.0.lock() {
            all.retain(|page| page.try_send(bytes.clone()).is_ok());
        }
    }
}

/// The body of a streaming answer.
#[derive(Debug)]
pub struct Events(Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Changes a memory; returns it.
pub fn change(served: &Served, id: &str, action: &str, mut fields: Map<String, Value>) -> Result<Value, ProtocolError> {
    let mut store = writer(served)?;
    let found = memory(&store, id)?;
    match action {
        "pin" => {
            let pinned =
                fields.get("pinned").and_then(Value::as_bool).ok_or_else(|| ProtocolError::bad("`pinned` is true or false"))?;
            if pinned && served.editor != Provenance::User {
                return Err(ProtocolError::bad("this server was started by an agent, and agents cannot pin memories"));
            }
            knowledge::pin(&mut store, &found, pinned).map_err(refused)?;
        }
        "supersede" => {
            let by = fields.get("by").and_then(Value::as_str).ok_or_else(|| ProtocolError::bad("`by` is the id of a memory"))?;
            let by = memory(&store, by)?;
            knowledge::supersede(&mut store, &found, &by).map_err(refused)?;
        }
        _ => {
            fields.retain(|name, _| knowledge::editable(&found).contains_key(name));
            knowledge::edit(&mut store, &redactor(&served.config)?, &found, fields, served.editor).map_err(refused)?;
        }
    }
    Ok(memory_text::json(&memory(&store, id)?))
}

/// Deletes the item with an id; with `dry_run`, reports what would be deleted.
pub fn forget(served: &Served, fields: &Map<String, Value>) -> Result<Value, ProtocolError> {
    let id = fields.get("id").and_then(Value::as_str).ok_or_else(|| ProtocolError::bad("`id` is missing"))?;
    let mut store = writer(served)?;
    let plan = ForgetPlan::of(&store, rows_of(&store, &[id.to_string()]).map_err(refused)?)?;
    if plan.is_empty() {
        return Err(ProtocolError::not_found(format!("nothing of {id:?} is left")));
    }
    let is_trial = fields.get("dry_run").and_then(Value::as_bool).unwrap_or(false);
    let summary = plan.summary(is_trial, "");
    if !is_trial {
        plan.carry_out(&mut store, &served.config, environment::now(), &mut |_| ())?;
    }
    Ok(json!({"forgotten": !is_trial, "summary": summary}))
}

fn writer(served: &Served) -> Result<Store, ProtocolError> {
    Ok(Store::open(&served.config.files.value, PERSON_WAIT)?)
}

fn memory(store: &Store, id: &str) -> Result<MemoryRow, ProtocolError> {
    match lookup::find(store, id).map_err(refused)? {
        Some(StoredItem::Memory(memory)) => Ok(*memory),
        _ => Err(ProtocolError::not_found(format!("{id:?} is not a memory"))),
    }
}

/// Converts an error: a mistake of a person is a bad request; anything else is the store's fault.
fn refused(error: anyhow::Error) -> ProtocolError {
    match error.downcast::<crate::error::UserError>() {
        Ok(wrong) => ProtocolError::bad(wrong.what),
        Err(error) => error.into(),
    }
}

/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(200);
const PING: Duration = Duration::from_secs(15);

/// Notifies the pages of changes, until the process ends.
pub fn watch(served: &Served, listeners: &Listeners) {
    let mut watched: Option<Watched> = None;
    let mut pinged = Instant::now();
    let mut last: Option<String> = None;
    loop {
        std::thread::sleep(LOOK);
        if !listeners.are_any() {
            watched = None;
            continue;
        }
        if pinged.elapsed() > PING {
            pinged = Instant::now();
            listeners.ping();
        }
        // The database may be replaced or locked; the next check opens it again. A lasting problem is logged once.
        let problem = look(served, listeners, &mut watched).err().map(|error| format!("{error:#}"));
        if problem.is_some() {
            watched = None;
        }
        if let Some(new) = problem.as_ref().filter(|new| last.as_ref() != Some(new)) {
            log_error(&format!("nmem serve cannot look for changes: {new}"));
        }
        last = problem;
    }
}

/// The watched store, and its state at the last check.
struct Watched {
    store: Store,
    /// Identity of the opened file: a restored or damaged database is another file at the same path.
    file: Option<Identity>,
    version: i64,
    marks: Marks,
}

fn look(served: &Served, listeners: &Listeners, watched: &mut Option<Watched>) -> Result<()> {
    let of = &served.config.files.value;
    if spool::is_waiting(of) {
        let redactor = redactor(&served.config)?;
        let run = Run::new(Caller::Program, &served.config, &redactor);
        persist::drain(&run, &mut Store::open(of, PERSON_WAIT)?)?;
    }
    let file = fs::metadata(&of.db).ok().map(|meta| files::identity(&meta));
    let Some(known) = watched.as_mut().filter(|known| known.file == file) else {
        let Some(store) = Store::open_to_read(of, PERSON_WAIT)? else { return Ok(()) };
        *watched = Some(Watched { version: store.data_version()?, marks: store.marks()?, store, file });
        // Changes before this check are unknown.
        listeners.send("changed", "{}");
        return Ok(());
    };
    let version = known.store.data_version()?;
    if version == known.version {
        return Ok(());
    }
    known.version = version;
    let marks = known.store.marks()?;
    let StoreChanges { sessions, latest } = known.store.changes(served.scope(Some(&known.store)).project, known.marks)?;
    known.marks = marks;
    match sessions.is_empty() {
        // An edit, a deletion, or another project's work.
        true => listeners.send("changed", "{}"),
        false => {
            listeners.send("sessions", &json!({"sessions": sessions, "text": latest.map(|text| line(&text, 80))}).to_string())
        }
    }
    Ok(())
}
