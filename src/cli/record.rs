//! `nmem record`: one hook event on stdin, from an agent. What becomes of it is in `ingest`.

use super::stdin::Stdin;
use crate::config::environment;
use crate::ingest::hook;
use crate::platforms::intake;
use anyhow::Result;
use std::ffi::OsString;
use std::time::Duration;

/// How long a hook waits for its caller to close stdin: less than the shortest timeout that `install` sets.
const STDIN: Duration = Duration::from_secs(8);

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The agent that sends the event; detected from the payload where not given
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
}

/// Runs the hook; returns what is to be printed.
pub fn run(args: &[OsString]) -> Result<Option<String>> {
    if environment::switched_off().is_some() {
        return Ok(None);
    }
    hook::answer(hook::platform(args), intake::read(Stdin::within(STDIN)?)?)
}
