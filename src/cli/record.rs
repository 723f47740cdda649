//! `nmem record`: reads one hook event from stdin. `ingest` handles it.

use super::stdin::Stdin;
use crate::config::environment;
use crate::ingest::hook;
use crate::platforms::payload;
use anyhow::Result;
use std::ffi::OsString;
use std::time::Duration;

/// Maximum wait for stdin to close: less than the shortest timeout that `install` sets.
const STDIN: Duration = Duration::from_secs(8);

#[derive(Debug, clap::Args)]
pub struct RecordArguments {
    /// The agent that sends the event [default: detected from the payload]
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Runs the hook; returns what to print.
pub fn run(args: &[OsString]) -> Result<Option<String>> {
    if environment::switched_off().is_some() {
        return Ok(None);
    }
    hook::answer(hook::platform(args), payload::read(Stdin::within(STDIN)?)?, &|_, _| ())
}
