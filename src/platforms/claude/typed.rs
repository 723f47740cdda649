//! Finds the texts in a session file that a person typed.

/// Prefixes of prompts that no person typed.
pub const MACHINE_MADE: [&str; 10] = [
    "<task-notification>",
    "<local-command-",
    "<bash-",
    "<system-reminder>",
    "<teammate-message",
    "<ci-monitor-event>",
    "<environment_context>",
    "<subagent_notification>",
    "<system_notification>",
    "<turn_aborted>",
];

/// Text blocks that the client puts before a prompt.
const BEFORE: [&str; 3] = ["system-reminder", "ide_opened_file", "ide_selection"];

/// Returns true if a text is a command that the client itself ran.
pub fn is_command(said: &str) -> bool {
    said.trim_start().starts_with("<command-name>") || said.trim_start().starts_with("<local-command")
}

/// Returns the part of a line's text that a person typed; `None` if the client wrote it.
pub fn typed(said: &str) -> Option<String> {
    let mut said = said.trim();
    while let Some(inside) = BEFORE.iter().find_map(|tag| said.strip_prefix(&format!("<{tag}>")).map(|inside| (tag, inside))) {
        let (tag, inside) = inside;
        said = inside.split_once(&format!("</{tag}>")).map_or("", |(_, behind)| behind).trim();
    }
    // A user-defined command: its name and arguments. The client's own commands begin with their name instead.
    if said.starts_with("<command-message>") {
        let part = |tag: &str| {
            let (_, behind) = said.split_once(&format!("<{tag}>"))?;
            Some(behind.split_once(&format!("</{tag}>"))?.0.trim())
        };
        let name = part("command-name")?;
        return Some(format!("{name} {}", part("command-args").unwrap_or_default()).trim().to_string());
    }
    let is_made = said.starts_with("<command-name>") || MACHINE_MADE.iter().any(|made| said.starts_with(made));
    Some(said.to_string()).filter(|said| !said.is_empty() && !is_made)
}
