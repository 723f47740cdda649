//! Agents' programs as models, with the user's own sign-in: a description for each. A program runs in an empty folder,
//! without tools, hooks, MCP servers, memory files or a transcript, and a guard kills it when the hook ends. It finds its
//! sign-in, but none of the user's other settings: those that Codex, Gemini and Copilot need lie in a folder of nmem's own.
//! Measured with the versions in ADR/0060.

use super::guard::{Guarded, Printed};
use super::servers::{ANSWER_BYTES, failure};
use crate::files;
use crate::model::{Answer, Endpoint, LlmError, Program, Question};
use crate::redact::Redactor;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;
use std::time::Duration;

/// A call of a program.
struct ProgramCall<'a> {
    question: &'a Question,
    model: &'a str,
    program: &'a Program,
}

/// Arguments, environment and input of a start.
#[derive(Default)]
struct ProgramStart {
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    input: String,
}

/// A program: how it is started, and where its answer stands in what it prints.
struct ProgramForm {
    start: fn(&ProgramCall) -> io::Result<ProgramStart>,
    answer: fn(&[Value]) -> Said,
}

/// The answer in a program's output.
#[derive(Default)]
struct Said {
    text: String,
    /// The program's error message.
    error: Option<String>,
    is_cut: bool,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
}

/// The program of a name in the config file.
fn form(name: &str) -> Option<ProgramForm> {
    Some(match name {
        "claude" => ProgramForm { start: claude, answer: claude_answer },
        "codex" => ProgramForm { start: codex, answer: codex_answer },
        "gemini" => ProgramForm { start: gemini, answer: gemini_answer },
        "opencode" => ProgramForm { start: opencode, answer: opencode_answer },
        "copilot" => ProgramForm { start: copilot, answer: copilot_answer },
        _ => return None,
    })
}

/// Sends one request.
pub fn ask(question: &Question, to: &Endpoint, limit: Duration) -> Result<Answer, LlmError> {
    let name = to.provider.name();
    let says = |what: String| failure("program", format!("the {name} program {what}"));
    let program = to.program.as_ref().ok_or_else(|| says("is not on PATH".into()))?;
    let form = form(name).ok_or_else(|| says("is unknown".into()))?;
    let cannot = |error: io::Error| says(format!("cannot be started: {error}"));
    files::make_folder(&program.folder).map_err(cannot)?;
    let start = (form.start)(&ProgramCall { question, model: &to.model, program }).map_err(cannot)?;
    // A call that was killed may have left some.
    remove_sessions(&program.home);
    let guarded = Guarded::start(program, &start.arguments, &start.environment, start.input).map_err(cannot)?;
    let printed = guarded.output(limit, ANSWER_BYTES);
    remove_sessions(&program.home);
    let printed = printed?;
    let said = (form.answer)(&values(&printed.out));
    if let Some(error) = said.error.filter(|_| said.text.trim().is_empty()) {
        return Err(says(format!("says: {}", explained(&error))));
    }
    if said.text.trim().is_empty() && (printed.failed || values(&printed.out).is_empty()) {
        let first = last_words(&printed);
        return Err(says(if first.is_empty() {
            "printed nothing: is it logged in?".into()
        } else {
            format!("gave no answer: {}", explained(&first))
        }));
    }
    let Said { text, is_cut, input_tokens, output_tokens, .. } = said;
    Ok(Answer { text, is_cut, input_tokens, output_tokens })
}

/// The JSON values in an output: one document, or a value a line between other lines, such as notices of updates.
fn values(out: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(out);
    if let Ok(value) = serde_json::from_str::<Value>(text.trim()) {
        return if let Value::Array(all) = value { all } else { vec![value] };
    }
    let by_line: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).filter(Value::is_object).collect();
    if !by_line.is_empty() {
        return by_line;
    }
    // A document below a notice.
    let from = text.find("\n{").map(|at| &text[at..]);
    from.and_then(|text| serde_json::from_str(text.trim()).ok()).into_iter().collect()
}

/// The line of an output that says most of a failure.
fn last_words(printed: &Printed) -> String {
    let (out, err) = (String::from_utf8_lossy(&printed.out), String::from_utf8_lossy(&printed.err));
    let message = |text: &str| {
        let from = text.find('{')?;
        let value: Value = serde_json::Deserializer::from_str(&text[from..]).into_iter().next()?.ok()?;
        message_in(&value)
    };
    let says = |line: &&str| !line.trim().is_empty();
    let line = |text: &str| {
        let errors = text.lines().rev().find(|line| line.to_lowercase().contains("error"));
        errors.or_else(|| text.lines().rev().find(says)).map(String::from)
    };
    message(&err).or_else(|| message(&out)).or_else(|| line(&out)).or_else(|| line(&err)).unwrap_or_default()
}

/// The message of an error in JSON, wherever it stands.
fn message_in(value: &Value) -> Option<String> {
    let own =
        [&value["error"]["data"]["message"], &value["error"]["message"], &value["error"], &value["message"], &value["result"]];
    own.into_iter().find_map(Value::as_str).map(String::from)
}

/// Longest text of a program in an error, in characters.
const WORDS: usize = 200;
/// Parts of messages, and what the user can do.
const HINTS: [(&[&str], &str); 5] = [
    (
        &["not logged in", "/login", "log in", "login", "sign in", "authenticat", "api key", "api_key", "401", "unauthorized"],
        "sign in to it again",
    ),
    (
        &["usage limit", "rate limit", "quota", "429", "resource_exhausted", "limit reached"],
        "its limit is reached; nmem tries again later",
    ),
    (&["overloaded", "529", "503", "unavailable"], "its server is overloaded; nmem tries again later"),
    (&["model"], "choose another `model` in [llm]"),
    (&["update"], "update it"),
];

/// A program's message in one line, without secrets, and a hint.
fn explained(text: &str) -> String {
    let text = Redactor::default().clean(text.to_string()).to_string();
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS).collect();
    let lower = text.to_lowercase();
    let hint = HINTS.iter().find(|(parts, _)| parts.iter().any(|part| lower.contains(part)));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    hint.map_or(text.clone(), |(_, hint)| format!("{}; {hint}", text.trim_end_matches('.')))
}

fn tokens(usage: &Value, names: &[&str]) -> Option<i64> {
    let mut counts = names.iter().filter_map(|name| usage[*name].as_i64().filter(|n| *n >= 0)).peekable();
    counts.peek()?;
    Some(counts.fold(0, i64::saturating_add))
}

fn arguments(all: &[&str]) -> Vec<String> {
    all.iter().map(|argument| argument.to_string()).collect()
}

/// A folder of nmem's own for a program: its home, without the user's settings.
fn own_home(program: &Program) -> io::Result<&Path> {
    files::make_folder(&program.home)?;
    Ok(&program.home)
}

/// Writes the instructions to a file named by their content, since another call may have others at the same time.
fn instructions(call: &ProgramCall) -> io::Result<String> {
    let text = call.question.system_with_form();
    let name: String = Sha256::digest(&text)[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let path = own_home(call.program)?.join(format!("instructions-{name}.md"));
    if !path.exists() {
        files::replace_private(&path, &text)?;
    }
    path.to_str().map(String::from).ok_or_else(|| io::Error::other("the data folder's name is not UTF-8"))
}

/// Writes a file of a program's home, unless it has that text already.
fn write_if_new(path: &Path, text: &str) -> io::Result<()> {
    if files::whole_text(path, ANSWER_BYTES).ok().as_deref() == Some(text) { Ok(()) } else { files::replace_private(path, text) }
}

/// Lets a program find a file of the user's, such as its sign-in: a link, so that what it renews is renewed for the user.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if !from.exists() || to.symlink_metadata().is_ok() {
        return Ok(());
    }
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(from, to);
    #[cfg(not(unix))]
    let made = std::fs::hard_link(from, to);
    // Another call may have been first.
    made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

fn claude(call: &ProgramCall) -> io::Result<ProgramStart> {
    let system = call.question.system_with_form();
    let arguments = arguments(&[
        "--print",
        "--output-format",
        "json",
        "--model",
        call.model,
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
    ]);
    Ok(ProgramStart { arguments, input: call.question.user.clone(), ..ProgramStart::default() })
}

fn claude_answer(values: &[Value]) -> Said {
    // Some versions print a list of messages; the last one is the result.
    let Some(result) = values.last() else { return Said::default() };
    let text = result["result"].as_str().unwrap_or_default().to_string();
    let usage = &result["usage"];
    let mut said = Said {
        is_cut: result["stop_reason"] == "max_tokens",
        input_tokens: tokens(usage, &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]),
        output_tokens: tokens(usage, &["output_tokens"]),
        ..Said::default()
    };
    if result["is_error"].as_bool() == Some(true) {
        let kind = result["subtype"].as_str().filter(|_| text.trim().is_empty());
        said.error = Some(kind.map_or(text, |kind| format!("an error, {kind}")));
    } else {
        said.text = text;
    }
    said
}

/// Codex's settings: nothing that the agent does, and the provider that the user has chosen.
fn codex(call: &ProgramCall) -> io::Result<ProgramStart> {
    let home = own_home(call.program)?;
    if let Some(folder) = &call.program.agent_folder {
        link(&folder.join("auth.json"), &home.join("auth.json"))?;
    }
    let off = [
        "hooks",
        "shell_tool",
        "goals",
        "multi_agent",
        "view_image",
        "apps",
        "plugins",
        "image_generation",
        "sleep_tool",
        "collaboration_modes",
    ];
    let features: Map<String, Value> = off.iter().map(|name| (name.to_string(), json!(false))).collect();
    let mut config = json!({
        "model_instructions_file": instructions(call)?,
        "web_search": "disabled",
        "project_doc_max_bytes": 0,
        "include_environment_context": false,
        "include_permissions_instructions": false,
        "include_apps_instructions": false,
        "features": features,
        "skills": {"include_instructions": false},
        "tools": {"experimental_request_user_input": {"enabled": false}},
    });
    // Codex gives a model of its catalog tools for edits; one that it does not know gets none.
    let unknown = json!({
        "slug": "none", "display_name": "none", "base_instructions": "none", "supported_reasoning_levels": [],
        "shell_type": "disabled", "visibility": "none", "supported_in_api": true, "priority": 0, "support_verbosity": false,
        "truncation_policy": {"mode": "bytes", "limit": 10000}, "experimental_supported_tools": [],
    });
    let catalog = home.join("models.json");
    write_if_new(&catalog, &json!({"models": [unknown]}).to_string())?;
    config["model_catalog_json"] = json!(catalog);
    let settings = &call.program.settings;
    for name in ["model_provider", "openai_base_url", "chatgpt_base_url", "forced_login_method", "cli_auth_credentials_store"] {
        if settings[name].is_string() {
            config[name] = settings[name].clone();
        }
    }
    if let Some(own) = settings["model_provider"].as_str().filter(|own| settings["model_providers"][own].is_object()) {
        config["model_providers"] = json!({own: settings["model_providers"][own]});
    }
    write_if_new(&home.join("config.toml"), &toml::to_string(&config).map_err(io::Error::other)?)?;
    let arguments = arguments(&[
        "exec",
        "--ephemeral",
        "--ignore-rules",
        "--skip-git-repo-check",
        "-s",
        "read-only",
        "--json",
        "-m",
        call.model,
        "-",
    ]);
    let environment = vec![("CODEX_HOME", home.display().to_string())];
    Ok(ProgramStart { arguments, environment, input: call.question.user.clone() })
}

fn codex_answer(values: &[Value]) -> Said {
    let mut said = Said::default();
    for event in values {
        match event["type"].as_str().unwrap_or_default() {
            "item.completed" if event["item"]["type"] == "agent_message" => {
                said.text = event["item"]["text"].as_str().unwrap_or_default().to_string();
            }
            "turn.completed" => {
                said.input_tokens = tokens(&event["usage"], &["input_tokens"]);
                said.output_tokens = tokens(&event["usage"], &["output_tokens"]);
            }
            // Items of the type "error" may be warnings.
            "turn.failed" | "error" => said.error = message_in(event),
            _ => {}
        }
    }
    said
}

fn gemini(call: &ProgramCall) -> io::Result<ProgramStart> {
    let home = own_home(call.program)?;
    let own = home.join(".gemini");
    files::make_folder(&own)?;
    if let Some(folder) = &call.program.agent_folder {
        for name in ["oauth_creds.json", "google_accounts.json", "installation_id"] {
            link(&folder.join(name), &own.join(name))?;
        }
    }
    let settings = json!({
        "security": {"auth": call.program.settings["security"]["auth"]},
        "tools": {"core": ["none_such"]},
        "context": {"includeDirectoryTree": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
        "privacy": {"usageStatisticsEnabled": false},
        "hooksConfig": {"enabled": false},
        "skills": {"enabled": false},
    });
    write_if_new(&own.join("settings.json"), &settings.to_string())?;
    let arguments = arguments(&["-m", call.model, "-o", "json", "-e", "none", "--allowed-mcp-server-names", "none"]);
    let environment = vec![
        ("GEMINI_CLI_HOME", home.display().to_string()),
        ("GEMINI_SYSTEM_MD", instructions(call)?),
        ("GEMINI_CLI_NO_RELAUNCH", "true".into()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".into()),
    ];
    Ok(ProgramStart { arguments, environment, input: call.question.user.clone() })
}

fn gemini_answer(values: &[Value]) -> Said {
    let Some(result) = values.last() else { return Said::default() };
    let models = result["stats"]["models"].as_object().into_iter().flatten();
    let counts: Vec<&Value> = models.map(|(_, model)| &model["tokens"]).collect();
    let sum = |names: &[&str]| counts.iter().filter_map(|usage| tokens(usage, names)).reduce(i64::saturating_add);
    Said {
        text: result["response"].as_str().unwrap_or_default().to_string(),
        error: message_in(result),
        input_tokens: sum(&["prompt"]),
        output_tokens: sum(&["candidates", "thoughts"]),
        is_cut: false,
    }
}

/// OpenCode's settings: an agent without tools, and the providers that the user has set up.
fn opencode(call: &ProgramCall) -> io::Result<ProgramStart> {
    let agent = json!({"mode": "primary", "prompt": call.question.system_with_form(), "tools": {"*": false}});
    let mut config = json!({"autoupdate": false, "share": "disabled", "agent": {"nmem": agent}});
    for name in ["provider", "disabled_providers", "enabled_providers"] {
        if !call.program.settings[name].is_null() {
            config[name] = call.program.settings[name].clone();
        }
    }
    let mut arguments = arguments(&["run", "--pure", "--agent", "nmem", "--format", "json", "--title", "nmem"]);
    // The program's name as the model means its own choice.
    if call.model != "opencode" {
        arguments.extend(["-m".to_string(), call.model.to_string()]);
    }
    let environment = vec![
        ("XDG_CONFIG_HOME", own_home(call.program)?.display().to_string()),
        ("OPENCODE_CONFIG_CONTENT", config.to_string()),
        ("OPENCODE_DB", ":memory:".to_string()),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_string()),
        // It reads Claude Code's memory file and skills, too.
        ("OPENCODE_DISABLE_CLAUDE_CODE", "1".to_string()),
    ];
    Ok(ProgramStart { arguments, environment, input: call.question.user.clone() })
}

fn opencode_answer(values: &[Value]) -> Said {
    let mut said = Said::default();
    for event in values {
        let part = &event["part"];
        match event["type"].as_str().unwrap_or_default() {
            "text" => said.text += part["text"].as_str().unwrap_or_default(),
            "step_finish" => {
                said.is_cut = part["reason"] == "length";
                let read = tokens(&part["tokens"], &["input"])
                    .map(|n| n + tokens(&part["tokens"]["cache"], &["read", "write"]).unwrap_or(0));
                said.input_tokens = read;
                said.output_tokens = tokens(&part["tokens"], &["output", "reasoning"]);
            }
            "error" => said.error = message_in(event),
            _ => {}
        }
    }
    said
}

/// Copilot takes no system prompt, so the instructions stand above the record.
fn copilot(call: &ProgramCall) -> io::Result<ProgramStart> {
    let home = own_home(call.program)?;
    if let Some(folder) = &call.program.agent_folder {
        link(&folder.join("config.json"), &home.join("config.json"))?;
    }
    let arguments = arguments(&[
        "-s",
        "--output-format",
        "json",
        "--no-custom-instructions",
        "--disable-builtin-mcps",
        "--available-tools=none_such",
        "--model",
        call.model,
    ]);
    let environment = vec![("COPILOT_HOME", home.display().to_string()), ("COPILOT_AUTO_UPDATE", "false".to_string())];
    let input = format!("{}\n\n=====\n\n{}", call.question.system_with_form(), call.question.user);
    Ok(ProgramStart { arguments, environment, input })
}

fn copilot_answer(values: &[Value]) -> Said {
    let mut said = Said::default();
    for event in values {
        match event["type"].as_str().unwrap_or_default() {
            "assistant.message" => {
                said.text = event["data"]["content"].as_str().unwrap_or_default().to_string();
                said.output_tokens = event["data"]["outputTokens"].as_i64();
            }
            "session.error" => said.error = message_in(&event["data"]),
            _ => {}
        }
    }
    said
}

/// Folders and files in a program's home that hold the record: sessions of Copilot and Gemini.
const TRANSCRIPTS: [&str; 6] =
    ["session-state", "logs", "session-store.db", "session-store.db-wal", "session-store.db-shm", ".gemini/tmp"];

/// Removes the transcripts that a program left in its home.
fn remove_sessions(home: &Path) {
    for name in TRANSCRIPTS {
        let path = home.join(name);
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}
