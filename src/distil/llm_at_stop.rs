//! After a turn: whether a language model is asked, about which folders, and for how long. `nmem distil` asks the same
//! questions.

use super::model::{Observer, Outcome};
use super::rules::Distiller;
use crate::config::{self, Config, environment, llm::When};
use crate::model::{Event, LogLevel, Provider};
use crate::runtime::{log_at, log_error, redactor};
use crate::store::Store;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// A blocking call, where one is due and fits into what is left of the hook's time. Nothing here can undo what is stored;
/// what goes wrong is logged.
pub fn llm_at_stop(config: &Config, distiller: &Distiller, store: &mut Store, event: &Event) {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return;
    }
    let run = || -> Result<Vec<Outcome>> {
        // What is missing is said at the session's start, not at each turn's end.
        let Ok(Some(to)) = llm.endpoint(&config.files.value) else { return Ok(Vec::new()) };
        let language = &config.language.value;
        let observer = Observer { distiller, to: &to, language, daily_tokens: llm.daily_tokens.value };
        let here = event.cwd.as_deref();
        let may_see = |folder: &str| Some(folder) == here || llm_may_see(folder, to.provider);
        let left = || llm.stop_limit().saturating_sub(environment::started().elapsed());
        observer.at_stop(store, event.platform, &event.session, &may_see, &left)
    };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    match done.unwrap_or_else(|_| Err(anyhow::anyhow!("panic while a model was asked"))) {
        Ok(outcomes) => outcomes.iter().for_each(log_outcome),
        Err(error) => log_error(&format!("no model was asked: {error:#}")),
    }
}

fn log_outcome(outcome: &Outcome) {
    match outcome {
        Outcome::Failed(refusal) => log_error(&format!("no model was heard: {}; it is asked again later", refusal.what)),
        Outcome::Spent => log_at(LogLevel::Info, "no model was asked: the day's tokens are used up"),
        _ => {}
    }
}

/// Whether a model may see what was recorded in a folder: recording is on there, and the user names the same provider.
pub fn llm_may_see(folder: &str, provider: Provider) -> bool {
    let folder = Path::new(folder);
    let allowed = |config: Config| config.enabled.value && config.llm.provider.value == provider && redactor(&config).is_ok();
    folder.is_absolute() && config::load(&[folder]).is_ok_and(allowed)
}

/// What a person should know of the model at a session's start.
pub fn llm_note(config: &Config, store: Option<&Store>) -> Option<String> {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return None;
    }
    if let Err(error) = llm.endpoint(&config.files.value) {
        return Some(format!("nmem asks no model: {error:#}. Rules still remember."));
    }
    let spent = store?.spent_since(environment::now() - Duration::from_secs(86_400).as_millis() as i64).ok()?.tokens();
    let most = llm.daily_tokens.value;
    (spent * 2 > most).then(|| {
        format!("nmem: models have used {spent} of {most} tokens a day (`llm.daily_tokens`); `nmem status` shows the calls.")
    })
}
