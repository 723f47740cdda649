//! Step 1: decodes an agent's JSON into events. The platform's adapter knows the fields.

use super::run::Run;
use crate::model::{Event, Platform};
use crate::platforms::{self, DecodeContext};
use anyhow::{Result, anyhow};
use serde_json::Value;

/// The input of the pipeline.
#[derive(Debug)]
pub enum Input<'a> {
    /// A hook's JSON.
    Payload { platform: Platform, json: &'a Value },
    /// Events that the caller has already decoded, in order: from a request or a past session.
    Events(Vec<Event>),
}

/// Decodes an input into events. Returns none if there is nothing to store or answer.
pub fn decode(run: &Run, input: Input) -> Result<Vec<Event>> {
    let (platform, json) = match input {
        Input::Events(events) => return Ok(events),
        Input::Payload { platform, json } => (platform, json),
    };
    let around = DecodeContext { now: run.now, skip_tools: &run.config.skip_tools.value };
    platforms::adapter(platform).decode(json, &around).map_err(|reason| anyhow!("a payload was not stored: {reason}"))
}
