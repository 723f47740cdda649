//! Changes that leave this machine: memories of shared projects, redacted once more. Prompts, closing messages and tool
//! uses are never sent, and nothing private is sent to a team.

use super::people::{Signer, digest};
use crate::model::{DueChange, NumberRanges, Provenance, SendReason, SeriesContents, Share, SharedChange, SharedProject};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::team_incoming::OwnMachine;
use crate::store::team_outgoing::{MemoryState, NumberedChange};
use anyhow::Result;
use std::collections::BTreeMap;

/// Memories per step. Each step is committed, so a killed sync continues where it stopped.
const STEP: usize = 2000;

/// Returns the reason to send a memory's change; `None` if it need not be sent.
fn reason(state: &MemoryState, share: Share) -> Option<SendReason> {
    let Some(shared) = &state.shared else {
        // Memories of others are sent by their authors.
        return (state.provenance != Provenance::Team).then_some(SendReason::New);
    };
    let was_sent = shared.fingerprint.is_some();
    if shared.private && share == Share::Team {
        return was_sent.then_some(SendReason::Withdrawn);
    }
    match &shared.fingerprint {
        Some(known) if *known == state.fingerprint => None,
        Some(_) => Some(SendReason::Changed),
        None => (shared.own && state.provenance != Provenance::Team).then_some(SendReason::New),
    }
}

/// Callback that receives some of the due changes.
type TakeDue<'a> = &'a mut dyn FnMut(&mut Store, Vec<(NumberedChange, DueChange)>) -> Result<()>;

/// Finds every change since the last sync and passes it to `take`, in steps.
fn each_due(store: &mut Store, projects: &[SharedProject], take: TakeDue) -> Result<()> {
    let ids: Vec<i64> = projects.iter().map(|project| project.id).collect();
    let mut behind = 0;
    loop {
        let states = store.memory_states(&ids, behind, STEP)?;
        let Some(last) = states.last() else { break };
        behind = last.id;
        let due = states.into_iter().filter_map(|state| {
            let project = projects.iter().find(|project| project.id == state.project)?;
            let reason = reason(&state, project.share)?;
            let counter = state.shared.as_ref().map_or(0, |shared| shared.counter) + 1;
            let own = state.provenance != Provenance::Team && state.shared.as_ref().is_none_or(|shared| shared.own);
            let fingerprint = (reason != SendReason::Withdrawn).then_some(state.fingerprint);
            let numbered = NumberedChange { uuid: state.uuid.clone(), counter, fingerprint, own };
            let memory = Some((state.id, state.title, state.kind));
            Some((numbered, DueChange { uuid: state.uuid, reason, memory, project: Some(project.name.clone()) }))
        });
        let due: Vec<_> = due.collect();
        if !due.is_empty() {
            take(store, due)?;
        }
    }
    let missing = store.missing_memories()?.into_iter().map(|(uuid, counter)| {
        let numbered = NumberedChange { uuid: uuid.clone(), counter: counter + 1, fingerprint: None, own: false };
        (numbered, DueChange { uuid, reason: SendReason::Forgotten, memory: None, project: None })
    });
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() { Ok(()) } else { take(store, missing) }
}

/// Returns the changes that the next sync would send. Modifies nothing.
pub fn due(store: &mut Store, projects: &[SharedProject]) -> Result<Vec<DueChange>> {
    let mut all = Vec::new();
    each_due(store, projects, &mut |_, due| {
        all.extend(due.into_iter().map(|(_, due)| due));
        Ok(())
    })?;
    Ok(all)
}

/// Numbers every change since the last sync in this machine's series; returns how many.
pub fn number(store: &mut Store, projects: &[SharedProject], own: &OwnMachine) -> Result<usize> {
    let mut count = 0;
    each_due(store, projects, &mut |store, due| {
        count += due.len();
        let numbered: Vec<NumberedChange> = due.into_iter().map(|(numbered, _)| numbered).collect();
        store.write(|tx| tx.number_changes(own.machine.id, &numbered))
    })?;
    Ok(count)
}

/// Writes changes of this machine's series as they are sent.
pub struct Outbox<'a> {
    pub redactor: &'a Redactor,
    pub projects: &'a [SharedProject],
    pub own: &'a OwnMachine,
    pub signer: &'a Signer,
}

impl Outbox<'_> {
    /// Returns the signed contents of this machine's series.
    pub fn contents(&self, store: &Store) -> Result<SeriesContents> {
        let mut of_project: BTreeMap<Option<i64>, NumberRanges> = BTreeMap::new();
        for (seq, project) in store.own_numbers_by_project()? {
            let ranges = of_project.entry(project).or_default();
            match ranges.last_mut().filter(|(_, last)| *last + 1 == seq) {
                Some((_, last)) => *last = seq,
                None => ranges.push((seq, seq)),
            }
        }
        let keys = |id: i64| self.projects.iter().find(|project| project.id == id).map(|project| project.keys.clone());
        let ranges = of_project.into_iter().filter_map(|(project, ranges)| match project {
            // What is no longer shared is not sent again, so nobody waits for it.
            Some(id) => Some((keys(id)?, ranges)),
            None => Some((Vec::new(), ranges)),
        });
        let mut contents = SeriesContents { last: self.own.machine.seq, ranges: ranges.collect(), signature: String::new() };
        self.signer.sign_contents(&mut contents);
        Ok(contents)
    }

    /// Returns a signed change of the series; `None` if another change replaced it, or its project is no longer shared.
    pub fn change(&self, store: &Store, seq: i64, uuid: &str) -> Result<Option<SharedChange>> {
        let Some(own) = store.own_change(seq, uuid)? else { return Ok(None) };
        let project = self.projects.iter().find(|project| Some(project.id) == own.project);
        let gone = own.memory.is_none();
        // The project is no longer shared: sent changes stay, and no further ones follow.
        if !gone && project.is_none() {
            return Ok(None);
        }
        let body = own.memory.map(|mut memory| {
            memory.salt = self.signer.salt(uuid, seq);
            serde_json::to_string(&*self.redactor.clean(memory)).unwrap_or_default()
        });
        let mut change = SharedChange {
            machine: self.own.machine.key.clone(),
            seq,
            uuid: own.uuid,
            counter: own.counter,
            gone,
            withdrawn: own.withdrawn,
            projects: project.map(|project| project.keys.clone()).unwrap_or_default(),
            name: self.own.machine.name.clone(),
            digest: body.as_deref().map(digest).unwrap_or_default(),
            signature: String::new(),
            body,
        };
        self.signer.sign(&mut change);
        Ok(Some(change))
    }
}
