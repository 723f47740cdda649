//! State that all requests share.

use super::access::Access;
use super::events::Listeners;
use crate::config::Config;
use crate::model::Provenance;
use crate::store::Store;
use crate::view::PageScope;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;

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
