//! A sync with PostgreSQL.

use super::incoming::{self, BODY, Inbox, SyncBudget};
use super::outgoing::Outbox;
use super::people::is_authentic;
use crate::model::{KEY_DIGITS, Machine, Received, SharedChange, SharedMemory};
use crate::postgres::{ANSWER, BATCH, RadRow, SeriesHead, TeamServer};
use crate::store::Store;
use anyhow::Result;
use std::collections::HashMap;

/// Receives the changes of other machines. `heads` states the last number of each series on the server.
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
        .map(|head| (head, known.get(&head.machine).copied().unwrap_or(0)))
        .filter(|(head, seq)| head.seq > *seq)
        .map(|(head, seq)| (head.machine.clone(), seq))
        .collect();
    let projects: Vec<String> = inbox.projects.iter().flat_map(|project| project.keys.clone()).collect();
    let mut budgets: HashMap<String, SyncBudget> = HashMap::new();
    let mut count = 0;
    while !applied.is_empty() {
        let changes = server.changes(&applied, &projects, BODY)?;
        let bytes: usize = changes.iter().map(|change| change.body.as_ref().map_or(0, String::len)).sum();
        // An answer that is cut by bytes has nearly all that it may have.
        let is_last = changes.len() < BATCH as usize && bytes < ANSWER;
        for of_machine in changes.chunk_by(|one, next| one.machine == next.machine) {
            let (machine, last) = (&of_machine[0].machine, of_machine[of_machine.len() - 1].seq);
            let budget = budgets.entry(machine.clone()).or_insert_with(|| inbox.budget());
            inbox.apply(store, of_machine, Some(last), budget, received)?;
            budget.spend(of_machine.len(), of_machine.iter().filter_map(|change| change.body.as_ref()).map(String::len).sum());
            if let Some(mark) = applied.iter_mut().find(|(known, _)| known == machine) {
                mark.1 = last;
            }
            count += of_machine.len();
        }
        progress(&format!("received {count} changes"));
        // What is over the budget of a machine waits for the next sync.
        let is_spent = |(machine, _): &mut (String, i64)| budgets.get(machine).is_some_and(SyncBudget::is_spent);
        let spent = applied.extract_if(.., is_spent);
        received.over_budget.extend(spent.map(|(machine, _)| machine[..machine.floor_char_boundary(KEY_DIGITS)].to_string()));
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Whether the server has later changes that this machine signed: the database was copied or restored. Removes forged
/// changes in this machine's name.
pub fn is_forked(server: &mut TeamServer, heads: &[SeriesHead], own: &Machine) -> Result<bool> {
    if !heads.iter().any(|head| head.machine == own.key && head.seq > own.seq) {
        return Ok(false);
    }
    loop {
        let mut later = server.last_changes(&own.key, LAST)?;
        later.retain(|change| change.seq > own.seq);
        if later.iter().any(is_authentic) {
            return Ok(true);
        }
        let Some(first) = later.iter().map(|change| change.seq).min() else { return Ok(false) };
        server.remove_forged(&own.key, first)?;
    }
}

/// Number of a series' last changes that are read at a time.
const LAST: i64 = 1000;

/// Sends this machine's changes, and withdraws texts that were forgotten or superseded since; returns how many were
/// sent.
pub fn push(
    store: &Store,
    server: &mut TeamServer,
    heads: &[SeriesHead],
    outbox: &Outbox,
    progress: &mut dyn FnMut(&str),
) -> Result<usize> {
    let key = &outbox.own.machine.key;
    let texts = store.own_texts()?;
    let here = heads.iter().find(|head| head.machine == *key);
    let is_done = here.is_some_and(|head| head.seq == outbox.own.machine.seq && head.texts == texts.len() as i64);
    if is_done || here.is_none() && outbox.own.machine.seq == 0 {
        return Ok(0);
    }
    let behind = server.last_changes(key, 1)?.first().map_or(0, |last| last.seq.min(outbox.own.machine.seq));
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
        incoming::write_repositories(store, server, outbox.projects)?;
    }
    server.keep_texts(key, outbox.own.machine.seq, &texts)?;
    Ok(sent)
}

/// Returns the row of a change for other programs. Private memories have none.
fn rad_row(store: &Store, outbox: &Outbox, change: &SharedChange) -> Result<Option<RadRow>> {
    let memory = change.body.as_deref().and_then(|body| serde_json::from_str::<SharedMemory>(body).ok());
    let Some(memory) = memory.filter(|_| !change.gone) else { return Ok(None) };
    if store.is_private(&change.uuid)? {
        return Ok(None);
    }
    let repo = change.projects.first().map_or("", |key| incoming::repo_id(key));
    Ok(RadRow::of(&change.uuid, &memory, repo, &outbox.own.machine.name))
}
