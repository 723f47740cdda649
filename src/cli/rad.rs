//! `nmem rad`: requests of another program on stdin, answers on stdout. What they do is in `rad`.

use super::output;
use crate::platforms::intake;
use crate::rad::{self, Answered};
use anyhow::Result;

/// Answer one request of another program: JSON on stdin, JSON on stdout
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: echo '{\"agent_session_id\": \"a-1\", \"project\": \"my-app\", \"user_prompt\": \"Add a login\"}' | nmem rad sessions/ensure\n\nVerbs: sessions/init, sessions/ensure, observations, sessions/summarize, sessions/complete, context,\nsearch, observation, session, entities, knowledge/record, knowledge/related, health. What is wrong with a request is said as\n{\"error\": {\"code\", \"message\"}}, with exit 1. With --batch each line is a request, and may name a verb of\nits own in \"verb\"; each answer is a line."
)]
pub struct Arguments {
    /// What is asked
    #[arg(value_name = "VERB")]
    verb: Option<String>,
    /// A request a line, an answer a line
    #[arg(long)]
    batch: bool,
}

/// Runs the command; whether every request was answered.
pub fn run(args: &Arguments) -> Result<bool> {
    let verb = args.verb.as_deref();
    let mut say = |answer: Answered| output::say(&answer.unwrap_or_else(|problem| problem.json()).to_string());
    if args.batch {
        return rad::batch(verb, std::io::stdin().lock(), &mut say);
    }
    let answer = rad::answer(verb, intake::read(std::io::stdin().lock())?)?;
    let answered = answer.is_ok();
    say(answer)?;
    Ok(answered)
}
