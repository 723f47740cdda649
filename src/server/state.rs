//! State of a running server, and the pages that listen.

use super::access::Access;
use crate::config::Config;
use crate::model::Provenance;
use crate::store::Store;
use crate::view::PageScope;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;
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
