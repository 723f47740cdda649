//! A sync with PostgreSQL.

use super::incoming::{self, BODY, Inbox, SeriesProgress, SyncBudget};
use super::outgoing::Outbox;
use super::people::{are_authentic, is_authentic};
use crate::model::{KEY_DIGITS, Machine, Received, SeriesContents, SharedChange, SharedMemory};
use crate::postgres::{ANSWER, BATCH, RadRow, SeriesHead, TeamServer};
use crate::store::Store;
use anyhow::Result;

/// A machine's series that is being read.
struct Series {
    machine: String,
    /// The last number that was read.
    last: i64,
    progress: SeriesProgress,
    /// Begins with the first change that arrives.
    budget: Option<SyncBudget>,
}

impl Series {
    fn new(head: &SeriesHead, mark: i64, inbox: &Inbox) -> Series {
        let signed = head.contents.as_ref().filter(|contents| are_authentic(contents, &head.machine));
        let progress = SeriesProgress::new(mark, signed, inbox.projects);
        Series { machine: head.machine.clone(), last: mark, progress, budget: None }
    }
}

/// Returns the heads of all series on the server: this machine's, those of trusted people, and others.
pub fn heads(server: &mut TeamServer, store: &Store, own_key: &str) -> Result<Vec<SeriesHead>> {
    let mut known = store.machines()?;
    known.sort_by_key(|machine| (machine.key != own_key, !machine.is_trusted));
    // The contents of this machine's own series are always wanted.
    let read = |machine: &Machine| if machine.key == own_key { -1 } else { machine.seq };
    let read: Vec<(&str, i64)> = known.iter().map(|machine| (machine.key.as_str(), read(machine))).collect();
    server.heads(&read)
}

/// Receives the changes of other machines. `heads` states the last number of each series on the server.
pub fn pull(
    store: &mut Store,
    server: &mut TeamServer,
    heads: &[SeriesHead],
    inbox: &Inbox,
    received: &mut Received,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let known = store.machines()?;
    let mark = |head: &SeriesHead| known.iter().find(|machine| machine.key == head.machine).map_or(0, |machine| machine.seq);
    let behind = heads.iter().filter(|head| head.machine != inbox.own_key && head.seq > mark(head));
    let mut due: Vec<Series> = behind.map(|head| Series::new(head, mark(head), inbox)).collect();
    let projects: Vec<String> = inbox.projects.iter().flat_map(|project| project.keys.clone()).collect();
    let mut count = 0;
    while !due.is_empty() {
        let read: Vec<(&str, i64)> = due.iter().map(|series| (series.machine.as_str(), series.last)).collect();
        let changes = server.changes(&read, &projects, BODY)?;
        let bytes: usize = changes.iter().map(|change| change.body.as_ref().map_or(0, String::len)).sum();
        // An answer that is cut by bytes has nearly all that it may have.
        let is_last = changes.len() < BATCH as usize && bytes < ANSWER;
        for of_machine in changes.chunk_by(|one, next| one.machine == next.machine) {
            let Some(series) = due.iter_mut().find(|series| series.machine == of_machine[0].machine) else { continue };
            let budget = series.budget.get_or_insert_with(|| inbox.budget());
            inbox.apply(store, of_machine, Some(&mut series.progress), budget, received)?;
            let bytes = of_machine.iter().filter_map(|change| change.body.as_ref()).map(String::len).sum();
            budget.spend(of_machine.len(), bytes);
            series.last = of_machine[of_machine.len() - 1].seq;
            count += of_machine.len();
        }
        progress(&format!("received {count} changes"));
        // What is over the budget of a machine waits for the next sync.
        let spent =
            due.extract_if(.., |series| series.budget.as_ref().is_some_and(SyncBudget::is_spent)).map(|series| series.machine);
        received.over_budget.extend(spent.map(|machine| machine[..machine.floor_char_boundary(KEY_DIGITS)].to_string()));
        if is_last {
            due.iter_mut().for_each(|series| series.progress.end());
            return store.set_applied(due.iter().map(|series| (series.machine.as_str(), series.progress.mark)));
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
    let last = outbox.own.machine.seq;
    let here = heads.iter().find(|head| head.machine == *key);
    let is_signed = |contents: &SeriesContents| contents.last == last && are_authentic(contents, key);
    let is_done =
        |head: &SeriesHead| head.seq == last && head.texts == texts.len() as i64 && head.contents.as_ref().is_some_and(is_signed);
    if here.map_or(last == 0, is_done) {
        return Ok(0);
    }
    // What somebody removed is sent again, too.
    let there = server.numbers(key, last)?;
    let mut missing = store.own_numbers(0)?;
    missing.retain(|(seq, _)| !there.contains(seq));
    let mut sent = 0;
    for numbers in missing.chunks(BATCH as usize) {
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
    server.keep_texts(key, &outbox.contents(store)?, &texts)?;
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
