//! Use case: what memories mean, asked of the model that the user names for it, in batches; and what a request means.
//! Whatever goes wrong, words still find.

use crate::llm::embed::embed;
use crate::model::{Endpoint, Passages, Refusal, Vector};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::vectors::Unembedded;
use anyhow::Result;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

/// Texts of one request.
pub const BATCH: usize = 16;

/// Who says what texts mean.
#[derive(Debug)]
pub struct Meaning<'a> {
    pub to: &'a Endpoint,
    pub redactor: &'a Redactor,
}

impl Meaning<'_> {
    /// What a text means; nothing is waited for past the limit.
    ///
    /// # Errors
    /// Why that is not known.
    pub fn of(&self, text: &str, limit: Duration) -> Result<Vector, Refusal> {
        let vectors = embed(&self.redactor.clean(Passages(vec![text.to_string()])), self.to, limit)?;
        vectors.into_iter().next().ok_or(Refusal { outcome: "no vectors".into(), what: "there is no vector".into(), again: None })
    }

    /// Asks about memories that have no vector yet, batch after batch, each kept at once: what is broken off goes on there.
    /// `more` is told how many are done, and says how long the next batch may take; `None`: no more.
    pub fn of_memories(
        &self,
        store: &mut Store,
        waiting: &[Unembedded],
        more: &mut dyn FnMut(usize) -> Option<Duration>,
    ) -> Result<Result<usize, Refusal>> {
        let mut done = 0;
        for batch in waiting.chunks(BATCH) {
            let Some(limit) = more(done).filter(|limit| !limit.is_zero()) else { break };
            let texts = self.redactor.clean(Passages(batch.iter().map(|waiting| waiting.text.clone()).collect()));
            match embed(&texts, self.to, limit) {
                Ok(vectors) => {
                    let all: Vec<(Unembedded, Vector)> = batch.iter().cloned().zip(vectors).collect();
                    store.keep_vectors(&self.to.model, &all)?;
                    done += batch.len();
                }
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(done))
    }

    /// At the end of a turn: the session's own memories, within what is left of the hook's time.
    pub fn at_stop(
        &self,
        store: &mut Store,
        session: i64,
        until: Instant,
        may_see: &dyn Fn(&str) -> bool,
    ) -> Result<Result<usize, Refusal>> {
        let waiting = store.unembedded((None, Some(session)), &self.to.model, 4 * BATCH)?;
        let waiting = shown(store, waiting, may_see)?;
        self.of_memories(store, &waiting, &mut |_| Some(until.saturating_duration_since(Instant::now())))
    }
}

/// Those of which a model may see all folders that their sessions worked in.
pub fn shown(store: &Store, mut waiting: Vec<Unembedded>, may_see: &dyn Fn(&str) -> bool) -> Result<Vec<Unembedded>> {
    let mut sessions: HashMap<i64, bool> = HashMap::new();
    let mut folders: HashMap<String, bool> = HashMap::new();
    for session in waiting.iter().filter_map(|waiting| waiting.session) {
        if let Entry::Vacant(unknown) = sessions.entry(session) {
            let all = store.folders_of_session(session)?;
            let shown = |folder: String| *folders.entry(folder).or_insert_with_key(|folder| may_see(folder));
            unknown.insert(all.into_iter().all(shown));
        }
    }
    waiting.retain(|waiting| waiting.session.is_none_or(|session| sessions[&session]));
    Ok(waiting)
}
