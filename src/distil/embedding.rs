//! Embeddings for commands and hooks: only if the user configured a model, and within a short time limit.

use super::embed_memories::EmbeddingClient;
use crate::config::{self, Config, environment};
use crate::model::{Endpoint, Event, LogLevel, Millis, Vector};
use crate::redact::Redactor;
use crate::runtime::{log_at, log_error};
use crate::store::Store;
use anyhow::Result;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limits of a prompt hook and of a person's command.
pub const AT_PROMPT: Duration = Duration::from_millis(120);
pub const FOR_A_PERSON: Duration = Duration::from_secs(2);

/// How long hooks stop asking after the model failed to answer one, in milliseconds.
const PAUSE: Millis = 10 * 60_000;

/// Whether hooks may ask the model: it answered the last time, or the pause is over.
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
    let to = config.embeddings.endpoint().ok().flatten()?;
    match (EmbeddingClient { to: &to, redactor }).of(text, limit) {
        Ok(vector) => Some((to.model, vector)),
        Err(refusal) => {
            log_at(LogLevel::Info, &format!("searched by words only: {}", refusal.what));
            None
        }
    }
}

/// Whether the model may see memories of a folder: recording is on there, and the folder uses the same model.
pub fn may_see(folder: &str, to: &Endpoint) -> bool {
    let folder = Path::new(folder);
    let same = |config: Config| {
        let own = config.embeddings.endpoint().ok().flatten();
        config.enabled.value && own.is_some_and(|own| (&own.base_url, &own.model) == (&to.base_url, &to.model))
    };
    folder.is_absolute() && config::load(&[folder]).is_ok_and(same)
}

/// After a turn: embeds the session's new memories in the hook's remaining time. A failure never affects stored data.
pub fn embed_at_stop(config: &Config, redactor: &Redactor, store: &mut Store, event: &Event, now: Millis) {
    let Ok(Some(to)) = config.embeddings.endpoint() else { return };
    if !may_be_asked(config, store, now) {
        return;
    }
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
