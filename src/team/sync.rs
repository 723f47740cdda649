//! One sync: numbers local changes, receives changes of others, and sends new changes. A sync that is killed at any
//! point continues where it stopped: every step is a transaction here or at the target, and repeating one changes
//! nothing.

use super::incoming::{self, Inbox, ProgramRows};
use super::outgoing::{self, Outbox};
use super::people::{new_machine, own_machine, person};
use super::server;
use super::shared_folder::{self, FolderSync};
use crate::config::{Config, environment};
use crate::error::UserError;
use crate::files;
use crate::model::{DueChange, Millis, Received, SharedProject};
use crate::postgres::TeamServer;
use crate::redact::Redactor;
use crate::store::Store;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum bytes of a database that a hook rewrites.
const SMALL: u64 = 32 << 20;

/// The target of a sync, and its mode.
#[derive(Clone, Debug)]
pub struct SyncTarget {
    pub place: SyncPlace,
    /// True if a hook waits for the sync, so nothing may take long.
    pub is_in_hook: bool,
}

/// A server or a folder to sync with.
#[derive(Clone, Debug)]
pub enum SyncPlace {
    /// The URL of a PostgreSQL server, and the time limit for each answer.
    Server(String, Duration),
    Folder(PathBuf),
}

/// Result of a sync.
#[derive(Clone, Debug, Default)]
pub struct SyncResult {
    pub projects: Vec<SharedProject>,
    /// Changes sent.
    pub sent: usize,
    pub received: Received,
    pub programs: ProgramRows,
    pub folder: FolderSync,
    /// Number of round trips to the server.
    pub round_trips: usize,
    /// True if the database was copied or restored, so this machine shares under a new key.
    pub is_new_machine: bool,
}

/// Returns the shared projects, and the changes that the next sync would send. Modifies nothing.
pub fn due(store: &mut Store, config: &Config, redactor: &Redactor) -> Result<(Vec<SharedProject>, Vec<DueChange>)> {
    let projects = incoming::shared(store, config)?;
    let mut due = outgoing::due(store, &projects)?;
    for (_, title, _) in due.iter_mut().filter_map(|change| change.memory.as_mut()) {
        *title = (*redactor.clean(std::mem::take(title))).clone();
    }
    Ok((projects, due))
}

/// Syncs all shared projects of a database. Only one sync at a time runs for it; others wait.
///
/// # Errors
///
/// A target that cannot be reached. Completed steps are kept.
pub fn sync(
    store: &mut Store,
    config: &Config,
    redactor: &Redactor,
    target: &SyncTarget,
    now: Millis,
    progress: &mut dyn FnMut(&str),
) -> Result<SyncResult> {
    let path = store.files().sync_lock();
    let alone = files::append_private(&path).with_context(|| format!("cannot open {}", path.display()))?;
    alone.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    store.delete_securely()?;
    let done = run(store, config, redactor, target, now, progress).and_then(|result| {
        remove_traces(store, target, progress)?;
        Ok(result)
    });
    let error = done.as_ref().err().map(|error| format!("{error:#}"));
    store.note_sync(error.as_deref(), now)?;
    done
}

/// Removes the last traces of memories that others have forgotten. A hook has no time to rewrite a large file, so the
/// next `nmem sync` does it.
fn remove_traces(store: &mut Store, target: &SyncTarget, progress: &mut dyn FnMut(&str)) -> Result<()> {
    let is_small = files::length(&store.files().db).is_some_and(|bytes| bytes < SMALL);
    if !store.has_traces()? || target.is_in_hook && !is_small {
        return Ok(());
    }
    progress("rewriting the database");
    let page = store.files().page();
    files::remove(&page).with_context(|| format!("cannot remove {}", page.display()))?;
    store.scrub()?;
    store.note_traces(false)
}

fn run(
    store: &mut Store,
    config: &Config,
    redactor: &Redactor,
    target: &SyncTarget,
    now: Millis,
    progress: &mut dyn FnMut(&str),
) -> Result<SyncResult> {
    let name = person(config.team.name.value.as_deref())?;
    let projects = incoming::shared(store, config)?;
    let (mut own, mut signer) = own_machine(store, &name, now)?;
    if projects.is_empty() && own.machine.seq == 0 {
        let hint = "`nmem project share` shares the project of this folder; `[[folder]] share = true` in the config file several";
        return Err(UserError::new("no project is shared", hint).into());
    }
    store.note_shared_keys(&projects)?;
    let mut server = match &target.place {
        SyncPlace::Server(url, limit) => {
            let certificates = environment::root_certificates();
            let mut connected = TeamServer::connect(url, certificates.as_deref(), *limit)?;
            let heads = server::heads(&mut connected, store, &own.machine.key)?;
            Some((connected, heads))
        }
        SyncPlace::Folder(_) => None,
    };
    let mut result = SyncResult { projects: projects.clone(), ..SyncResult::default() };
    // Done before new numbers are assigned, or they could reuse numbers that are already taken.
    result.is_new_machine = match (&target.place, &mut server) {
        (SyncPlace::Folder(folder), _) => shared_folder::is_forked(folder, &own.machine)?,
        (_, Some((server, heads))) => server::is_forked(server, heads, &own.machine)?,
        _ => false,
    };
    if result.is_new_machine {
        (own, signer) = new_machine(store, &name, now)?;
    }
    progress("looking for changes");
    outgoing::number(store, &projects, &own)?;
    let inbox = Inbox {
        redactor,
        projects: &projects,
        own_key: &own.machine.key.clone(),
        name: &name,
        now,
        is_in_hook: target.is_in_hook,
    };
    match (&target.place, &mut server) {
        (SyncPlace::Folder(folder), _) => {
            progress("reading chunks");
            shared_folder::pull(store, folder, &inbox, &mut result.received, &mut result.folder)?;
        }
        (_, Some((server, heads))) => server::pull(store, server, heads, &inbox, &mut result.received, progress)?,
        _ => {}
    }
    if result.received.forgotten > 0 {
        store.note_traces(true)?;
    }
    if result.received.kept > 0 {
        // A memory that was kept separately has a new uuid, and the memories that it superseded may have changed with
        // it. A number assigned before the pull would belong to a state that no longer exists, and some machines would
        // skip it.
        outgoing::number(store, &projects, &own)?;
    }
    own = own_machine(store, &name, now)?.0;
    let outbox = Outbox { redactor, projects: &projects, own: &own, signer: &signer };
    match (&target.place, &mut server) {
        (SyncPlace::Folder(folder), _) => {
            shared_folder::push(store, folder, &outbox, &mut result.folder)?;
            result.sent = result.folder.sent;
        }
        (_, Some((server, heads))) => result.sent = server::push(store, server, heads, &outbox, progress)?,
        _ => {}
    }
    if let Some((server, _)) = &mut server {
        if server.has_rad {
            result.programs = incoming::read(store, server, redactor, &projects)?;
        }
        result.round_trips = server.round_trips;
    }
    Ok(result)
}
