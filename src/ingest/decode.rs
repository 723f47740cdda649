//! Step 1: an agent's JSON becomes events. What a field of it means, its platform's adapter knows.

use super::run::Run;
use crate::model::{Event, Platform};
use crate::platforms::{self, Surroundings};
use anyhow::{Result, bail};
use serde_json::Value;

/// What is to be ingested.
#[derive(Debug)]
pub enum Input<'a> {
    /// A hook's JSON.
    Payload { platform: Platform, json: &'a Value },
    /// Events that the caller has decoded: of a request, or of a session that is over, in order.
    Events(Vec<Event>),
}

/// Makes events of an input; none where it holds nothing to be stored or answered.
pub fn decode(run: &Run, input: Input) -> Result<Vec<Event>> {
    let (platform, json) = match input {
        Input::Events(events) => return Ok(events),
        Input::Payload { platform, json } => (platform, json),
    };
    let around = Surroundings { now: run.now, skip_tools: &run.config.skip_tools.value };
    match platforms::decode(platform, json, &around) {
        Ok(event) => Ok(event.into_iter().collect()),
        Err(reason) => bail!("a payload was not stored: {reason}"),
    }
}
