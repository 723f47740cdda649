//! `nmem rad`: requests of other programs.

use super::output;
use crate::platforms::payload;
use crate::rad::{self, Answered};
use anyhow::Result;

/// Handle a JSON request from another program (RAD protocol)
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: echo '{\"agent_session_id\": \"a-1\", \"project\": \"my-app\", \"user_prompt\": \"Add a login\"}' | nmem rad sessions/ensure\n\nVerbs: sessions/init, sessions/ensure, observations, sessions/summarize, sessions/complete, context, search, observation, session, entities, knowledge/record, knowledge/related, health. An invalid request is answered with {\"error\": {\"code\", \"message\"}} and exit 1. With --batch each line is a request, which may name its own verb in \"verb\"; each answer is a line."
)]
pub struct RadArguments {
    /// The request, such as sessions/init or search
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    /// One request per line, one answer per line
    #[arg(long)]
    batch: bool,
}

/// Runs the command; returns true if every request was answered.
pub fn run(args: &RadArguments) -> Result<bool> {
    let verb = args.verb.as_deref();
    let mut say = |answer: Answered| output::print(&answer.unwrap_or_else(|problem| problem.json()).to_string());
    if args.batch {
        return rad::batch(verb, std::io::stdin().lock(), &mut say);
    }
    let answer = rad::answer(verb, payload::read(std::io::stdin().lock())?)?;
    let answered = answer.is_ok();
    say(answer)?;
    Ok(answered)
}
