//! Where commands and hooks ask what texts mean: only where the user names a model for it, and never for long.

use super::embed_memories::Meaning;
use crate::config::{self, Config, environment};
use crate::model::{Endpoint, Event, LogLevel, Millis, Vector};
use crate::redact::Redactor;
use crate::runtime::{log_at, log_error};
use crate::store::Store;
use anyhow::Result;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a prompt's hook waits for it, and a person's command.
pub const AT_PROMPT: Duration = Duration::from_millis(120);
pub const FOR_A_PERSON: Duration = Duration::from_secs(2);

/// After a model did not answer a hook, how long hooks ask it no more, in milliseconds.
const PAUSE: Millis = 10 * 60_000;

/// Whether hooks may ask the model: it answered the last one, or some time has gone by.
pub fn may_be_asked(config: &Config, store: &Store, now: Millis) -> bool {
    let paused = |at: Option<Millis>| at.is_some_and(|at| (0..PAUSE).contains(&(now - at)));
    config.embeddings.destination().is_some() && !store.meaning_failed_at().is_ok_and(paused)
}

/// Keeps whether the model answered a hook. What can't be kept is asked again.
pub fn note(store: &mut Store, answered: bool, now: Millis) {
    let known = store.meaning_failed_at().unwrap_or(None).is_some();
    if (known || !answered)
        && let Err(error) = store.set_meaning_failed((!answered).then_some(now))
    {
        log_error(&format!("whether the model of meaning answers is not kept: {error:#}"));
    }
}

/// What a text means, and which model says so; `None` where none is named, or it does not answer in time.
pub fn of_text(config: &Config, redactor: &Redactor, text: &str, limit: Duration) -> Option<(String, Vector)> {
    // What is missing is said by `nmem status`.
    let to = config.embeddings.endpoint().ok().flatten()?;
    match (Meaning { to: &to, redactor }).of(text, limit) {
        Ok(vector) => Some((to.model, vector)),
        Err(refusal) => {
            log_at(LogLevel::Info, &format!("words alone were looked for: {}", refusal.what));
            None
        }
    }
}

/// Whether a model may see what was remembered in a folder: recording is on there, and the user names the same model.
pub fn may_see(folder: &str, to: &Endpoint) -> bool {
    let folder = Path::new(folder);
    let same = |config: Config| {
        let own = config.embeddings.endpoint().ok().flatten();
        config.enabled.value && own.is_some_and(|own| (&own.base_url, &own.model) == (&to.base_url, &to.model))
    };
    folder.is_absolute() && config::load(&[folder]).is_ok_and(same)
}

/// After a turn: the session's new memories, in what is left of the hook's time. Nothing here can undo what is stored.
pub fn embed_at_stop(config: &Config, redactor: &Redactor, store: &mut Store, event: &Event, now: Millis) {
    let Ok(Some(to)) = config.embeddings.endpoint() else { return };
    if !may_be_asked(config, store, now) {
        return;
    }
    let mut run = || -> Result<()> {
        let Some(place) = store.session_place(event.platform, &event.session)? else { return Ok(()) };
        let until = environment::started() + config.llm.stop_limit();
        let until = until.min(Instant::now() + FOR_A_PERSON);
        match (Meaning { to: &to, redactor }).at_stop(store, place.session, until, &|folder| may_see(folder, &to))? {
            Ok(0) => {}
            Ok(_) => note(store, true, now),
            Err(refusal) => {
                note(store, false, now);
                log_error(&format!("memories are not embedded yet: {}; it is tried again later", refusal.what));
            }
        }
        Ok(())
    };
    if let Err(error) = run() {
        log_error(&format!("memories are not embedded: {error:#}"));
    }
}
