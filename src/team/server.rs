//! A sync with PostgreSQL.

use super::identity::is_authentic;
use super::incoming::{BODY, Inbox};
use super::outgoing::Outbox;
use super::programs;
use crate::model::{Received, SharedChange, SharedMemory};
use crate::postgres::{BATCH, RadRow, SeriesHead, TeamServer};
use crate::store::Store;
use anyhow::Result;
use std::collections::HashMap;

/// Receives the changes of other machines. `seen` says how far each series went at the last sync.
pub fn pull(
    store: &mut Store,
    server: &mut TeamServer,
    heads: &[SeriesHead],
    inbox: &Inbox,
    received: &mut Received,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let known: HashMap<String, i64> = store.machines()?.into_iter().map(|machine| (machine.key, machine.seq)).collect();
    let others = heads.iter().filter(|head| head.machine != inbox.own_key);
    let mut applied: Vec<(String, i64)> = others
        .map(|head| (head.machine.clone(), known.get(&head.machine).copied().unwrap_or(0)))
        .filter(|(machine, seq)| heads.iter().any(|head| head.machine == *machine && head.seq > *seq))
        .collect();
    let projects: Vec<String> = inbox.projects.iter().flat_map(|project| project.keys.clone()).collect();
    let mut count = 0;
    while !applied.is_empty() {
        let changes = server.changes(&applied, &projects, BODY)?;
        let is_last = changes.len() < BATCH as usize;
        for of_machine in changes.chunk_by(|one, next| one.machine == next.machine) {
            let (machine, last) = (&of_machine[0].machine, of_machine[of_machine.len() - 1].seq);
            inbox.apply(store, of_machine, true, received)?;
            if let Some(mark) = applied.iter_mut().find(|(known, _)| known == machine) {
                mark.1 = last;
            }
            count += of_machine.len();
        }
        progress(&format!("received {count} changes"));
        if is_last {
            break;
        }
    }
    Ok(())
}

/// What a push found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pushed {
    pub sent: usize,
    /// Somebody else continues this machine's series: the database was copied or restored.
    pub is_forked: bool,
}

/// Sends this machine's changes, and takes back texts that were forgotten or overtaken since.
pub fn push(
    store: &Store,
    server: &mut TeamServer,
    heads: &[SeriesHead],
    outbox: &Outbox,
    progress: &mut dyn FnMut(&str),
) -> Result<Pushed> {
    let key = &outbox.own.machine.key;
    let texts = store.own_texts()?;
    let here = heads.iter().find(|head| head.machine == *key);
    let is_done = here.is_some_and(|head| head.seq == outbox.own.machine.seq && head.texts == texts.len() as i64);
    if is_done || here.is_none() && outbox.own.machine.seq == 0 {
        return Ok(Pushed::default());
    }
    let mut behind = 0;
    if let Some(last) = server.last_change(key)? {
        if last.seq > outbox.own.machine.seq {
            if is_authentic(&SharedChange { body: None, ..last.clone() }) {
                return Ok(Pushed { is_forked: true, sent: 0 });
            }
            server.remove_forged(key, outbox.own.machine.seq)?;
        }
        behind = last.seq.min(outbox.own.machine.seq);
    }
    let mut sent = 0;
    for numbers in store.own_numbers(behind)?.chunks(BATCH as usize) {
        let mut changes = Vec::with_capacity(numbers.len());
        let mut rows = Vec::new();
        for (seq, uuid) in numbers {
            let Some(change) = outbox.change(store, *seq, uuid)? else { continue };
            rows.extend(rad_row(store, outbox, &change)?);
            changes.push(change);
        }
        server.add(&changes, &rows)?;
        sent += changes.len();
        progress(&format!("sent {sent} changes"));
    }
    if server.has_rad && sent > 0 {
        programs::write_repositories(store, server, outbox.projects)?;
    }
    server.keep_texts(key, &texts)?;
    Ok(Pushed { sent, is_forked: false })
}

/// What other programs read of a change: private memories are not for them.
fn rad_row(store: &Store, outbox: &Outbox, change: &SharedChange) -> Result<Option<RadRow>> {
    let memory = change.body.as_deref().and_then(|body| serde_json::from_str::<SharedMemory>(body).ok());
    let Some(memory) = memory.filter(|_| !change.gone) else { return Ok(None) };
    if store.is_private(&change.uuid)? {
        return Ok(None);
    }
    let repo = change.projects.first().map_or("", |key| programs::repo_id(key));
    Ok(RadRow::of(&change.uuid, &memory, repo, &outbox.own.machine.name))
}
