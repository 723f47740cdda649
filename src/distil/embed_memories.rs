//! Use case: embeddings of memories and requests, computed in batches by the model that the user configured. If
//! anything fails, full-text search still works.

use crate::llm::embed::embed;
use crate::model::{Endpoint, LlmError, Passages, Vector};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::vectors::Unembedded;
use anyhow::Result;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

/// Texts per request.
pub const BATCH: usize = 16;

/// Computes embeddings.
#[derive(Debug)]
pub struct EmbeddingClient<'a> {
    pub to: &'a Endpoint,
    pub redactor: &'a Redactor,
}

impl EmbeddingClient<'_> {
    /// The embedding of a text, within a time limit.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn of(&self, text: &str, limit: Duration) -> Result<Vector, LlmError> {
        let vectors = embed(&self.redactor.clean(Passages(vec![text.to_string()])), self.to, limit)?;
        vectors.into_iter().next().ok_or(LlmError {
            outcome: "no vectors".into(),
            what: "there is no vector".into(),
            again: None,
        })
    }

    /// Embeds memories without a vector, batch by batch. Each batch is stored at once, so an interrupted run can
    /// continue. `more` receives the number done and returns the time limit of the next batch; `None` stops.
    pub fn of_memories(
        &self,
        store: &mut Store,
        waiting: &[Unembedded],
        more: &mut dyn FnMut(usize) -> Option<Duration>,
    ) -> Result<Result<usize, LlmError>> {
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

    /// At the end of a turn: embeds the session's own memories in the hook's remaining time.
    pub fn at_stop(
        &self,
        store: &mut Store,
        session: i64,
        until: Instant,
        may_see: &dyn Fn(&str) -> bool,
    ) -> Result<Result<usize, LlmError>> {
        let waiting = store.unembedded((None, Some(session)), &self.to.model, 4 * BATCH)?;
        let waiting = shown(store, waiting, may_see)?;
        self.of_memories(store, &waiting, &mut |_| Some(until.saturating_duration_since(Instant::now())))
    }
}

/// Keeps the memories whose folders the model may all see.
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
