//! The `claude` program as a model, with the user's own subscription. It runs in an empty folder, without tools,
//! settings, hooks or a transcript. A guard kills it when the hook ends.

use super::guard::Guarded;
use super::http::{ANSWER_BYTES, failure};
use crate::files;
use crate::model::{Answer, Endpoint, LlmError, Question};
use serde_json::Value;
use std::time::Duration;

/// Sends one request.
pub fn ask(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, LlmError> {
    let program = to.program.as_ref().ok_or_else(|| failure("program", "the claude program is not on PATH"))?;
    files::make_folder(&program.folder)
        .map_err(|error| failure("program", format!("{} cannot be created: {error}", program.folder.display())))?;
    let system = question.system_with_form();
    let arguments = [
        "--print",
        "--output-format",
        "json",
        "--model",
        &to.model,
        "--system-prompt",
        &system,
        "--tools",
        "",
        // Neither user nor project settings: no hooks, servers or skills.
        "--setting-sources",
        "",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--no-session-persistence",
    ];
    let guarded = Guarded::start(program, &arguments, question.user.clone())
        .map_err(|error| failure("program", format!("the claude program cannot be started: {error}")))?;
    let out = guarded.output(limit, ANSWER_BYTES)?;
    let said: Value = serde_json::from_slice(&out).map_err(|_| {
        let first = String::from_utf8_lossy(&out).lines().next().unwrap_or_default().chars().take(200).collect::<String>();
        let what = if first.is_empty() {
            "printed nothing: is it logged in?".to_string()
        } else {
            format!("did not print JSON: {first}")
        };
        failure("program", format!("the claude program {what}"))
    })?;
    // Some versions print a list of messages; the last one is the result.
    let said = said.as_array().and_then(|all| all.last()).unwrap_or(&said);
    let text = said["result"].as_str().unwrap_or_default().to_string();
    if said["is_error"].as_bool() == Some(true) {
        let kind = said["subtype"].as_str().filter(|_| text.trim().is_empty());
        let text = kind.map_or(text, |kind| format!("an error, {kind}"));
        let why: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        return Err(failure("program", format!("the claude program says: {why}")));
    }
    let usage = |name: &str| said["usage"][name].as_i64().filter(|n| *n >= 0);
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"].into_iter().filter_map(usage);
    Ok(Answer {
        is_cut: said["stop_reason"] == "max_tokens",
        text,
        input_tokens: usage("input_tokens").map(|_| read.fold(0, i64::saturating_add)),
        output_tokens: usage("output_tokens"),
    })
}
