//! The help of `nmem` itself: commands grouped by task.

use clap::Command;

/// The groups and their commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Every day", &["context", "search", "units", "show", "log", "resume", "view", "serve", "status", "error", "how"]),
    ("Curate memories", &["remember", "edit", "pin", "unpin", "supersede", "review", "forget", "distil"]),
    ("Set up and control", &["demo", "install", "uninstall", "import", "doctor", "off", "on", "project", "domain", "trust"]),
    ("Share with a team", &["sync", "team"]),
    ("For programs and backups", &["mcp", "rad", "export", "restore", "completions", "man"]),
];

/// Replaces clap's flat list of commands by groups.
pub fn grouped(command: Command) -> Command {
    let about = |name: &str| {
        let found = command.get_subcommands().find(|sub| sub.get_name() == name);
        found.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let group = |(title, names): &(&str, &[&str])| {
        let lines: String = names.iter().map(|name| format!("  {name:<13}{}\n", about(name))).collect();
        format!("{title}:\n{lines}\n")
    };
    let groups: String = GROUPS.iter().map(group).collect();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group_and_fits_into_80_columns() {
        let command = crate::cli::definition();
        let mut visible: Vec<&str> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
        for sub in command.get_subcommands() {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.len() <= 66, "{}: {about}", sub.get_name());
        }
    }
}
