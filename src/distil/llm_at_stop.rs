//! After a turn: whether to call a language model, for which folders, and for how long. `nmem distil` uses the same
//! checks.

use super::llm::{DistilOutcome, Observer};
use super::rules::Distiller;
use crate::config::{self, Config, environment, llm::When};
use crate::model::{Event, LogLevel, Provider};
use crate::runtime::{log_at, log_error, redactor};
use crate::store::Store;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// Makes a blocking call if one is due and fits into the hook's remaining time. A failure is logged and never affects
/// stored data.
pub fn llm_at_stop(config: &Config, distiller: &Distiller, store: &mut Store, event: &Event) {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return;
    }
    let run = || -> Result<Vec<DistilOutcome>> {
        // A missing setting is reported at session start, not at every Stop.
        let Ok(Some(to)) = llm.endpoint(&config.files.value) else { return Ok(Vec::new()) };
        let language = &config.language.value;
        let observer = Observer { distiller, to: &to, language, daily_tokens: llm.daily_tokens.value };
        let here = event.cwd.as_deref();
        let may_see = |folder: &str| Some(folder) == here || llm_may_see(folder, to.provider);
        let left = || llm.stop_limit().saturating_sub(environment::started().elapsed());
        observer.at_stop(store, event.platform, &event.session, &may_see, &left)
    };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    match done.unwrap_or_else(|_| Err(anyhow::anyhow!("panic during a model call"))) {
        Ok(outcomes) => outcomes.iter().for_each(log_outcome),
        Err(error) => log_error(&format!("the model was not called: {error:#}")),
    }
}

fn log_outcome(outcome: &DistilOutcome) {
    match outcome {
        DistilOutcome::Failed(refusal) => {
            log_error(&format!("the model request failed: {}; nmem will try again later", refusal.what))
        }
        DistilOutcome::OverBudget => log_at(LogLevel::Info, "the model was not called: the daily token budget is used up"),
        _ => {}
    }
}

/// Whether the model may see what was recorded in a folder: recording is on there, and the folder uses the same
/// provider.
pub fn llm_may_see(folder: &str, provider: Provider) -> bool {
    let folder = Path::new(folder);
    let allowed = |config: Config| config.enabled.value && config.llm.provider.value == provider && redactor(&config).is_ok();
    folder.is_absolute() && config::load(&[folder]).is_ok_and(allowed)
}

/// A note about the model for the person at session start.
pub fn llm_note(config: &Config, store: Option<&Store>) -> Option<String> {
    let llm = &config.llm;
    if llm.provider.value == Provider::None || llm.when.value == When::Manual {
        return None;
    }
    if let Err(error) = llm.endpoint(&config.files.value) {
        return Some(format!("nmem: LLM distillation is off: {error:#}. Rule-based memories are still created."));
    }
    let spent = store?.spent_since(environment::now() - Duration::from_secs(86_400).as_millis() as i64).ok()?.tokens();
    let most = llm.daily_tokens.value;
    (spent * 2 > most).then(|| {
        format!("nmem: models have used {spent} of {most} daily tokens (`llm.daily_tokens`); `nmem status` shows the calls.")
    })
}
