//! The `claude` program as a model, with the person's own subscription: an empty folder, no tools, no settings and so no
//! hooks, no transcript, and a guard that ends it with the hook.

use super::guard::Guarded;
use super::refusal::{ANSWER_BYTES, refusal};
use crate::files;
use crate::model::{Answer, Endpoint, Question, Refusal};
use serde_json::Value;
use std::time::Duration;

/// Asks once.
pub fn ask(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, Refusal> {
    let program = to.program.as_ref().ok_or_else(|| refusal("program", "the claude program is not on PATH"))?;
    files::make_folder(&program.folder)
        .map_err(|error| refusal("program", format!("{} can't be made: {error}", program.folder.display())))?;
    let arguments = [
        "--print",
        "--output-format",
        "json",
        "--model",
        &to.model,
        "--system-prompt",
        &question.system,
        "--tools",
        "",
        // Neither the user's settings nor any project's: no hooks, no servers, no skills.
        "--setting-sources",
        "",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
    ];
    let guarded = Guarded::start(program, &arguments, question.user.clone())
        .map_err(|error| refusal("program", format!("the claude program can't be started: {error}")))?;
    let out = guarded.output(limit, ANSWER_BYTES)?;
    let said: Value = serde_json::from_slice(&out).map_err(|_| {
        let first = String::from_utf8_lossy(&out).lines().next().unwrap_or_default().chars().take(200).collect::<String>();
        let what = if first.is_empty() { "said nothing: is it logged in?".to_string() } else { format!("said no JSON: {first}") };
        refusal("program", format!("the claude program {what}"))
    })?;
    // A list of messages, of which the last one is the result, in some versions.
    let said = said.as_array().and_then(|all| all.last()).unwrap_or(&said);
    let text = said["result"].as_str().unwrap_or_default().to_string();
    if said["is_error"].as_bool() == Some(true) {
        let why: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        return Err(refusal("program", format!("the claude program says: {why}")));
    }
    let usage = |name: &str| said["usage"][name].as_i64().filter(|n| *n >= 0);
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].into_iter().filter_map(usage);
    Ok(Answer {
        text,
        input_tokens: usage("input_tokens").map(|_| read.fold(0, i64::saturating_add)),
        output_tokens: usage("output_tokens"),
    })
}
