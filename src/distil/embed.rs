//! Embeddings of memories and of a query, from the user's model.

use crate::config::{self, Config, environment};
use crate::error::UserError;
use crate::llm::embed;
use crate::model::{EmbeddingModel, Event, LlmError, LogLevel, Millis, Passages, Vector};
use crate::redact::Redactor;
use crate::runtime::{log_at, log_error};
use crate::store::candidates::Unembedded;
use crate::store::{PERSON_WAIT, Store};
use anyhow::{Result, anyhow};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::time::{Duration, Instant};

/// Texts per request.
pub const BATCH: usize = 16;

/// Computes embeddings.
#[derive(Debug)]
pub struct EmbeddingClient<'a> {
    pub to: &'a EmbeddingModel,
    pub redactor: &'a Redactor,
}

impl EmbeddingClient<'_> {
    /// The embedding of a text, within a time limit.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
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
                    store.keep_vectors(self.to.name(), &all)?;
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
        let waiting = store.unembedded((None, Some(session)), self.to.name(), 4 * BATCH)?;
        let waiting = shown(store, waiting, may_see)?;
        self.of_memories(store, &waiting, &mut |_| Some(until.saturating_duration_since(Instant::now())))
    }
}

/// Keeps the memories whose folders the model may all see; of a memory without a session, that of its project.
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
    let mut projects: HashMap<i64, bool> = HashMap::new();
    for project in waiting.iter().filter(|waiting| waiting.session.is_none()).map(|waiting| waiting.project) {
        if let Entry::Vacant(unknown) = projects.entry(project) {
            let root = store.project_by_row(project)?.map(|project| project.root);
            let shown = |folder: String| *folders.entry(folder).or_insert_with_key(|folder| may_see(folder));
            unknown.insert(root.filter(|root| !root.is_empty()).is_none_or(shown));
        }
    }
    waiting.retain(|waiting| match waiting.session {
        Some(session) => sessions[&session],
        None => projects[&waiting.project],
    });
    Ok(waiting)
}

/// Time limits of a prompt hook and of a person's command.
pub const AT_PROMPT: Duration = Duration::from_millis(120);
const FOR_A_PERSON: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for memories that wait for a model in this process, when somebody searches.
const BEFORE_A_SEARCH: Duration = Duration::from_secs(1);

/// Time for which hooks stop asking after the model failed to answer one, in milliseconds.
const PAUSE: Millis = 10 * 60_000;

/// Whether hooks may ask the model: it is a server that answered the last time, or the pause is over. Loading a model in
/// this process would take a second.
pub fn may_be_asked(config: &Config, store: &Store, now: Millis) -> bool {
    let paused = |at: Option<Millis>| at.is_some_and(|at| (0..PAUSE).contains(&(now - at)));
    config.embeddings.destination().is_some() && !store.meaning_failed_at().is_ok_and(paused)
}

/// Stores whether the model answered a hook. If that fails, the next hook asks again.
pub fn note(store: &mut Store, answered: bool, now: Millis) {
    let known = store.meaning_failed_at().unwrap_or(None).is_some();
    if (known || !answered)
        && let Err(error) = store.set_meaning_failed((!answered).then_some(now))
    {
        log_error(&format!("cannot store the embedding model's state: {error:#}"));
    }
}

/// The embedding of a text and the model's name; `None` without a model, or if it does not answer in time.
pub fn of_text(config: &Config, redactor: &Redactor, text: &str, limit: Duration) -> Option<(String, Vector)> {
    // `nmem status` reports a missing setting.
    let to = config.embeddings.model().ok().flatten()?;
    match (EmbeddingClient { to: &to, redactor }).of(text, limit) {
        Ok(vector) => Some((to.name().to_string(), vector)),
        Err(refusal) => {
            log_at(LogLevel::Info, &format!("searched by words only: {}", refusal.what));
            None
        }
    }
}

/// The embedding of a query of a program or a person. A model in this process first embeds memories that wait for it.
pub fn of_query(config: &Config, redactor: &Redactor, text: &str) -> Option<(String, Vector)> {
    if config.embeddings.is_local()
        && let Err(error) = embed_waiting(config, redactor)
    {
        log_at(LogLevel::Info, &format!("memories were not embedded: {error:#}"));
    }
    of_text(config, redactor, text, FOR_A_PERSON)
}

/// Embeds memories that wait for the model, for at most [`BEFORE_A_SEARCH`].
fn embed_waiting(config: &Config, redactor: &Redactor) -> Result<()> {
    let Some(to) = config.embeddings.model()? else { return Ok(()) };
    let Some(store) = Store::open_to_read(&config.files.value, PERSON_WAIT)? else { return Ok(()) };
    let waiting = store.unembedded((None, None), to.name(), 64 * BATCH)?;
    if waiting.is_empty() {
        return Ok(());
    }
    let waiting = shown(&store, waiting, &|folder| may_see(folder, &to))?;
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    let until = Instant::now() + BEFORE_A_SEARCH;
    let done = EmbeddingClient { to: &to, redactor }
        .of_memories(&mut store, &waiting, &mut |_| Some(until.saturating_duration_since(Instant::now())))?;
    done.map(drop).map_err(|refusal| anyhow!(refusal.what))
}

/// The result of embedding everything that waits.
#[derive(Debug)]
pub struct Embedded {
    pub done: usize,
    pub remaining: usize,
    pub problem: Option<UserError>,
}

/// Embeds memories without an embedding, of a project, a session or all; `None` if no model is configured. `say` receives the
/// numbers done and waiting, and the model's name.
pub fn embed_all(
    config: &Config,
    redactor: &Redactor,
    store: &mut Store,
    of: (Option<i64>, Option<i64>),
    until: Option<Instant>,
    say: &mut dyn FnMut(usize, usize, &str),
) -> Result<Option<Embedded>> {
    let Some(to) = config.embeddings.model()? else { return Ok(None) };
    let may_see = |folder: &str| may_see(folder, &to);
    let waiting = shown(store, store.unembedded(of, to.name(), usize::MAX >> 1)?, &may_see)?;
    let mut more = |done: usize| {
        say(done, waiting.len(), to.name());
        Some(until.map_or(PATIENCE, |until| until.saturating_duration_since(Instant::now()).min(PATIENCE)))
    };
    let asked = EmbeddingClient { to: &to, redactor }.of_memories(store, &waiting, &mut more)?;
    let hint = "finished embeddings are kept; fix [embeddings] in the config file, or try again later";
    let problem =
        asked.as_ref().err().map(|refusal| UserError::new(format!("the embedding request failed: {}", refusal.what), hint));
    let remaining = shown(store, store.unembedded(of, to.name(), usize::MAX >> 1)?, &may_see)?.len();
    Ok(Some(Embedded { done: waiting.len() - remaining.min(waiting.len()), remaining, problem }))
}

/// Whether the model may see memories of a folder: recording is on there, and the folder uses the same model.
pub fn may_see(folder: &str, to: &EmbeddingModel) -> bool {
    let folder = Path::new(folder);
    let same = |config: Config| {
        let own = config.embeddings.model().ok().flatten();
        config.enabled.value
            && own.is_some_and(|own| match (&own, to) {
                (EmbeddingModel::Server(own), EmbeddingModel::Server(to)) => {
                    (&own.base_url, &own.model) == (&to.base_url, &to.model)
                }
                (EmbeddingModel::Local(own), EmbeddingModel::Local(to)) => own == to,
                _ => false,
            })
    };
    folder.is_absolute() && config::load(&[folder]).is_ok_and(same)
}

/// After a turn: embeds the session's new memories in the hook's remaining time. A failure never affects stored data.
pub fn embed_at_stop(config: &Config, redactor: &Redactor, store: &mut Store, event: &Event, now: Millis) {
    if !may_be_asked(config, store, now) {
        return;
    }
    let Ok(Some(to)) = config.embeddings.model() else { return };
    let mut run = || -> Result<()> {
        let Some(place) = store.session_scope(event.platform, &event.session)? else { return Ok(()) };
        let until = environment::started() + config.llm.stop_limit();
        let until = until.min(Instant::now() + FOR_A_PERSON);
        match (EmbeddingClient { to: &to, redactor }).at_stop(store, place.session, until, &|folder| may_see(folder, &to))? {
            Ok(0) => {}
            Ok(_) => note(store, true, now),
            Err(refusal) => {
                note(store, false, now);
                log_error(&format!("memories were not embedded: {}; nmem will try again later", refusal.what));
            }
        }
        Ok(())
    };
    if let Err(error) = run() {
        log_error(&format!("memories were not embedded: {error:#}"));
    }
}
