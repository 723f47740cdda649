//! Edits of settings files and shell files, undone byte for byte.

use crate::files;
use crate::platforms::json_repair::NotEditable;
use crate::platforms::settings_file::{self, Hook, McpForm, Shape, WindowsShell};
use crate::render::clean::shell_quoted;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Marks around a block in a file with general instructions, and in a TOML file.
const BLOCK: [&str; 2] = ["<!-- begin nmem -->", "<!-- end nmem -->"];
const TABLE: [&str; 2] = ["# begin nmem", "# end nmem"];

/// One addition to a file.
#[derive(Clone, Debug)]
pub enum Edit {
    Hooks {
        shape: Shape,
        hooks: Vec<Hook>,
    },
    /// Strings in a list below two keys of a JSON file.
    Listed {
        list: [&'static str; 2],
        entries: &'static [&'static str],
    },
    /// The whole file.
    Whole(String),
    /// A marked block in a Markdown file.
    Block(String),
    /// An MCP server below a key of a JSON file.
    Server {
        key: &'static str,
        server: Value,
    },
    /// An MCP server in a marked block of a TOML file.
    Table(String),
    /// The command for an agent's status line, below keys of a JSON file.
    StatusLine {
        keys: &'static [&'static str],
        command: String,
    },
    /// This program as an extension of Goose, in a YAML file.
    Extension(String),
}

impl Edit {
    /// Returns the text with the addition. Adding it twice has the same result as adding it once.
    pub fn add(&self, text: &str) -> Result<String, NotEditable> {
        match self {
            Edit::Hooks { shape: shape @ Shape::Toml { named }, hooks } => {
                let with = with_block(text, TABLE, &settings_file::hook_tables(hooks, *named));
                let value = settings_file::checked(&with, *shape)?;
                let has_all =
                    hooks.iter().all(|hook| settings_file::commands(&value, *shape, hook.on.event).contains(&hook.command));
                if has_all { Ok(with) } else { Err(NotEditable("its `hooks` are not written as [[hooks]]".into())) }
            }
            Edit::Hooks { shape, hooks } => {
                // Hooks of a moved binary are also ours: they are replaced, not duplicated.
                let stale = |command: &str| is_ours(command) && !hooks.iter().any(|hook| hook.command == command);
                let cleared =
                    if text.trim().is_empty() { text.to_string() } else { settings_file::remove(text, *shape, &stale)? };
                settings_file::add(&cleared, *shape, hooks)
            }
            Edit::Listed { list, entries } => settings_file::add_to_list(text, *list, entries),
            // Only one script can have an event's name.
            Edit::Whole(whole) if whole.starts_with("#!") && !text.trim().is_empty() && self.as_in(text).is_none() => {
                Err(NotEditable("it is a script of somebody else".into()))
            }
            Edit::Whole(whole) => Ok(whole.clone()),
            Edit::Block(block) => Ok(with_block(text, BLOCK, block)),
            Edit::Server { key, server } => match settings_file::server(text, key).is_some_and(|known| !is_our_server(&known)) {
                true => Err(taken()),
                false => settings_file::add_server(text, key, server),
            },
            Edit::StatusLine { keys, command } => {
                match settings_file::value_at(text, keys).is_some_and(|known| !is_our_status_line(&known)) {
                    true => Err(NotEditable("it has a status line already".into())),
                    false => settings_file::set_value(text, keys, &status_line(command)),
                }
            }
            Edit::Extension(program) => settings_file::add_extension(text, program),
            Edit::Table(table) => {
                let is_foreign = settings_file::has_table(&without_block(text, TABLE))?;
                if is_foreign {
                    return Err(taken());
                }
                let with = with_block(text, TABLE, table);
                let is_read = settings_file::has_table(&with).is_ok_and(|is_there| is_there);
                let unread = || NotEditable("its `mcp_servers` is not written as [mcp_servers.NAME]".into());
                if is_read { Ok(with) } else { Err(unread()) }
            }
        }
    }

    /// Returns the text without the addition.
    pub fn remove(&self, text: &str) -> Result<String, NotEditable> {
        match self {
            _ if text.trim().is_empty() => Ok(text.to_string()),
            Edit::Hooks { shape: Shape::Toml { .. }, .. } => Ok(without_block(text, TABLE)),
            Edit::Hooks { shape, .. } => settings_file::remove(text, *shape, &is_ours),
            Edit::Listed { list, entries } => settings_file::remove_from_list(text, *list, entries),
            Edit::Whole(_) => Ok(String::new()),
            Edit::Block(_) => Ok(without_block(text, BLOCK)),
            Edit::Server { key, .. } => settings_file::remove_server(text, key),
            Edit::Table(_) => Ok(without_block(text, TABLE)),
            Edit::StatusLine { keys, .. } => settings_file::remove_value(text, keys),
            Edit::Extension(_) => Ok(settings_file::remove_extension(text)),
        }
    }

    /// Returns the addition as a text contains it. An older nmem or another binary may have written it.
    pub fn as_in(&self, text: &str) -> Option<Edit> {
        match self {
            Edit::Hooks { shape, hooks } => {
                let value = settings_file::checked(text, *shape).ok()?;
                let ours = |event: &str| settings_file::commands(&value, *shape, event).into_iter().find(|c| is_ours(c));
                let hooks = hooks.iter().filter_map(|hook| Some(Hook { on: hook.on, command: ours(hook.on.event)? }));
                Some(Edit::Hooks { shape: *shape, hooks: hooks.collect() })
            }
            Edit::Block(_) => {
                let [_, inside, _] = parts(text, BLOCK)?;
                Some(Edit::Block(inside.trim().to_string()))
            }
            Edit::Table(_) => {
                let [_, inside, _] = parts(text, TABLE)?;
                let is_ours = inside.trim_start().starts_with(&format!("[mcp_servers.{}]", settings_file::NAME));
                is_ours.then(|| Edit::Table(inside.trim().to_string()))
            }
            Edit::Extension(_) => {
                let entry = settings_file::extension(text)?;
                let program = entry.lines().find_map(|line| line.trim().strip_prefix("cmd:"))?.trim().trim_matches(['"', '\'']);
                is_this_program(program).then(|| Edit::Extension(program.to_string()))
            }
            // Another server of that name is not ours.
            Edit::Server { key, .. } => {
                let server = settings_file::server(text, key).filter(is_our_server)?;
                Some(Edit::Server { key, server })
            }
            Edit::StatusLine { keys, .. } => {
                let known = settings_file::value_at(text, keys).filter(is_our_status_line)?;
                Some(Edit::StatusLine { keys, command: known["command"].as_str()?.to_string() })
            }
            // The first two lines identify a file that nmem wrote, even if an older version wrote the rest.
            Edit::Whole(whole) => Some(self.clone()).filter(|_| text.lines().take(2).eq(whole.lines().take(2))),
            // The user may have added a single entry.
            Edit::Listed { list, entries } => {
                let value = settings_file::checked(text, Shape::Nested).ok()?;
                let listed = value[list[0]][list[1]].as_array()?;
                Some(self.clone()).filter(|_| entries.iter().all(|entry| listed.iter().any(|known| known == entry)))
            }
        }
        .filter(|_| self.remove(text).is_ok_and(|without| without != text))
    }
}

/// Appends the block to the text, or replaces the existing block.
fn with_block(text: &str, marks: [&str; 2], block: &str) -> String {
    if let Some([before, _, behind]) = parts(text, marks) {
        return format!("{before}{}\n{block}\n{}{behind}", marks[0], marks[1]);
    }
    let gap = match text {
        "" => "",
        _ if text.ends_with("\n\n") => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{}\n{block}\n{}\n", marks[0], marks[1])
}

/// Splits the text into the parts before, inside and after the block. Each mark is a line of its own.
fn parts<'a>(text: &'a str, marks: [&str; 2]) -> Option<[&'a str; 3]> {
    let last = |mark: &str, text: &str, more: &str| {
        let is_line = |at: &usize| {
            let rest = text[at + mark.len()..].trim_start_matches('\r');
            let ends = rest.starts_with('\n') || rest.is_empty() && more.is_empty();
            ends && (*at == 0 || text[..*at].ends_with('\n'))
        };
        text.rmatch_indices(mark).map(|(at, _)| at).find(is_line)
    };
    let end = last(marks[1], text, "")?;
    let begin = last(marks[0], &text[..end], marks[1])?;
    Some([&text[..begin], &text[begin + marks[0].len()..end], &text[end + marks[1].len()..]])
}

fn without_block(text: &str, marks: [&str; 2]) -> String {
    let Some([before, _, behind]) = parts(text, marks) else { return text.to_string() };
    let behind = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\n')).unwrap_or(behind);
    // An empty line separates the block from the text before it.
    let before = before.strip_suffix('\n').filter(|before| before.ends_with('\n')).unwrap_or(before);
    format!("{before}{behind}")
}

/// Returns the error for another server with nmem's name, which is not changed.
fn taken() -> NotEditable {
    NotEditable(format!("it has an MCP server named {}", settings_file::NAME))
}

/// Whether an installation of nmem wrote an MCP server, from any folder. A server with additional settings is the
/// user's.
fn is_our_server(server: &Value) -> bool {
    let program = match &server["command"] {
        Value::Array(words) => words.first(),
        word => Some(word),
    };
    let is_written = |program: &str| McpForm::ALL.iter().any(|form| settings_file::server_of(*form, program) == *server);
    program.and_then(Value::as_str).is_some_and(|program| is_this_program(program) && is_written(program))
}

/// The setting of a status line.
fn status_line(command: &str) -> Value {
    json!({"type": "command", "command": command})
}

/// Whether an installation of nmem wrote the setting of a status line. One with additional settings is the user's.
fn is_our_status_line(value: &Value) -> bool {
    let command = value["command"].as_str().unwrap_or_default();
    let is_ours = first_word(without_guard(command))
        .is_some_and(|(program, rest)| is_this_program(&program) && rest.trim() == "statusline");
    is_ours && *value == status_line(command)
}

/// Whether a program is nmem, by its name or because it is the running program.
fn is_this_program(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    matches!(name, "nmem" | "nmem.exe") || std::env::current_exe().is_ok_and(|exe| exe == Path::new(program))
}

/// Whether a command line is one of nmem's hooks, from any folder: this program and a verb, a platform, and the part
/// that silences the error of a missing program. A command line with anything else is the user's.
pub fn is_ours(command: &str) -> bool {
    let Some((program, rest)) = first_word(without_guard(command.trim())) else { return false };
    let mut words = rest.split_whitespace().peekable();
    if !is_this_program(&program) || !words.next().is_some_and(|verb| matches!(verb, "record" | "context")) {
        return false;
    }
    if words.next_if_eq(&"--platform").is_some() {
        words.next();
    } else {
        words.next_if(|word| word.starts_with("--platform="));
    }
    while words.next_if(|word| matches!(*word, ">/dev/null" | "2>/dev/null" | "2>&1")).is_some() {}
    // Silences the error of a missing program, in a Unix shell or in PowerShell.
    if words.next_if_eq(&"||").is_some() && words.next() != Some("true")
        || words.next_if_eq(&"2>$null;").is_some() && (words.next(), words.next()) != (Some("exit"), Some("0"))
    {
        return false;
    }
    words.next().is_none()
}

/// Parts of a guard: in a Unix shell, it starts the program only if it is there, without another process.
const GUARD: [&str; 2] = ["[ ! -x ", " ] || exec "];

/// The guard of a hook's command line: it does nothing if the program was removed without `nmem uninstall`.
pub fn if_there(program: &str) -> String {
    format!("{}{program}{}", GUARD[0], GUARD[1])
}

/// Returns the command line behind its guard.
pub fn without_guard(command: &str) -> &str {
    let guarded = command.strip_prefix(GUARD[0]).and_then(|rest| rest.split_once(GUARD[1]));
    guarded.filter(|(program, rest)| rest.starts_with(program)).map_or(command, |(_, rest)| rest)
}

/// Returns a program's path as the first word of a command line.
pub fn program_word(path: &str, shell: Option<WindowsShell>) -> String {
    let Some(shell) = shell else { return shell_quoted(path) };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    // Git Bash treats a backslash as an escape; all of these shells accept forward slashes.
    let path = path.replace('\\', "/");
    match shell {
        _ if path.chars().all(is_plain) => path,
        // PowerShell treats a quoted word on its own as a string.
        WindowsShell::PowerShell => format!("& '{}'", path.replace('\'', "''")),
        WindowsShell::Bash | WindowsShell::Cmd => format!("\"{path}\""),
    }
}

/// Returns the first word of a command line, as a shell reads it, and the rest.
pub fn first_word(command: &str) -> Option<(String, &str)> {
    let command = command.strip_prefix("& ").unwrap_or(command);
    let (mut word, mut quote, mut chars) = (String::new(), None, command.char_indices());
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('\\', None) if cfg!(unix) => word.extend(chars.next().map(|(_, escaped)| escaped)),
            (c, None) if c.is_whitespace() => return Some((word, &command[at..])),
            (c, _) => word.push(c),
        }
    }
    None
}

/// Maximum bytes of a settings file.
const SETTINGS_BYTES: u64 = 4 << 20;

/// Reads a file's text; `None` if there is no file.
pub fn read(file: &Path) -> Result<Option<String>> {
    // A settings file may be a link to a file elsewhere.
    let real = match files::canonical(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        real => real.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let mut text = String::new();
    let read = files::reader(&real, SETTINGS_BYTES).and_then(|mut reader| reader.read_to_string(&mut text));
    read.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Some(text))
}

/// Returns the path of a file's backup.
pub fn backup(file: &Path) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.with_file_name(format!("{name}.before-nmem"))
}

/// Writes a temporary file and renames it. Links are kept, even dangling ones. Settings may contain keys, so a new file
/// is private; an existing file keeps its mode.
pub fn write_whole(file: &Path, text: &str) -> Result<()> {
    let target = match fs::read_link(file) {
        Ok(link) => file.parent().unwrap_or(Path::new("/")).join(link),
        Err(_) => file.to_path_buf(),
    };
    let target = files::canonical(&target).unwrap_or(target);
    let folder = target.parent().context("a settings file without a folder")?;
    let temporary = target.with_extension(format!("nmem-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let _ = fs::remove_file(&temporary);
        let mut out = files::append_private(&temporary)?;
        out.write_all(text.as_bytes())?;
        if let Ok(meta) = fs::metadata(&target) {
            out.set_permissions(meta.permissions())?;
        }
        #[cfg(unix)]
        if text.starts_with("#!") {
            out.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        }
        out.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write().with_context(|| format!("cannot write {}", file.display())).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Removes a file, and the folders below `base` that become empty. `base` is kept: the agent's folder indicates that
/// the agent is installed.
pub fn remove_file(file: &Path, base: &Path) -> Result<()> {
    fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(base) && *folder != base);
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_of_ours_are_known_from_whichever_folder() {
        for command in [
            "/usr/bin/nmem record",
            "nmem context",
            "'/my tools/nmem' record",
            "nmem record --platform claude-code",
            "nmem record --platform gemini 2>/dev/null || true",
            "nmem record || true",
            "nmem record 2>/dev/null",
            "[ ! -x /usr/bin/nmem ] || exec /usr/bin/nmem record --platform codex",
            "\"C:/Program Files/nmem.exe\" record",
            "& 'C:/Program Files/nmem.exe' record --platform gemini 2>$null; exit 0",
        ] {
            assert!(is_ours(command), "{command}");
        }
        // Only Unix shells know such quotes.
        assert_eq!(is_ours(r"'/tmp/it'\''s/nmem' record"), cfg!(unix));
        for command in [
            "/usr/bin/nmemo record",
            "nmem",
            "echo nmem record x",
            "nmem status",
            "rsync -a /data/nmem context",
            "backup --to /srv/nmem record",
            "timeout 5 /usr/bin/nmem record",
            "echo start; /opt/x/nmem record",
            "nmem record 2>/dev/null; /home/me/other",
            "nmem record || /home/me/fallback",
            "nmem record > /tmp/log && notify-send done",
            "nmem context --platform claude-code; echo extra",
            "[ ! -x /home/me/flag ] || exec /usr/bin/nmem record",
        ] {
            assert!(!is_ours(command), "{command}");
        }
    }

    /// Thirty files in TOML: every beginning with every end.
    #[test]
    fn hooks_in_toml_come_and_go_byte_for_byte() {
        let on = settings_file::to("PostToolUse", "record", 10);
        let hooks = vec![Hook { on, command: "/usr/bin/nmem record --platform kimi-code".into() }];
        let beginnings = ["", "a = 1\n", "# mine\n\na = \"b\"\n", "a = { b = 1 }\r\n", "[t]\na = [\n  1,\n]\n"];
        let ends =
            ["", "\n", "[x.y]\nz = 'c'\n", "[[hooks]]\nevent = \"Stop\"\ncommand = \"mine\"\n", "[last]\n# end", "k.l = true\n"];
        for text in beginnings.iter().flat_map(|beginning| ends.iter().map(move |end| format!("{beginning}{end}"))) {
            for named in [false, true] {
                let edit = Edit::Hooks { shape: Shape::Toml { named }, hooks: hooks.clone() };
                let with = edit.add(&text).unwrap();
                assert_eq!(edit.add(&with).unwrap(), with, "twice is once");
                assert!(edit.as_in(&with).is_some() && edit.as_in(&text).is_none());
                let without = edit.remove(&with).unwrap();
                // A missing newline at the end is the only thing that stays added; the backup has the file without it.
                assert_eq!(without.trim_end_matches('\n'), text.trim_end_matches('\n'), "{text:?}");
            }
        }
        let edit = Edit::Hooks { shape: Shape::Toml { named: false }, hooks };
        for text in ["hooks = []\n", "hooks = 7\n", "[hooks]\na = 1\n", "a = \n"] {
            assert!(edit.add(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_script_of_somebody_else_is_left_alone() {
        let edit = Edit::Whole("#!/bin/sh\n# Written by nmem\nexec nmem record\n".into());
        assert!(edit.add("#!/bin/sh\necho mine\n").is_err());
        assert!(edit.add("").is_ok() && edit.add("#!/bin/sh\n# Written by nmem\nexec old/nmem record\n").is_ok());
    }

    proptest! {
        #[test]
        fn a_block_comes_and_goes(text in "([a-z# ]{0,10}\n){0,4}") {
            let edit = Edit::Block("Use `nmem search`.".into());
            let with = edit.add(&text).unwrap();
            prop_assert_eq!(edit.add(&with).unwrap(), with.clone());
            prop_assert!(with.contains("nmem search"));
            let without = edit.remove(&with).unwrap();
            prop_assert_eq!(without.trim_end(), text.trim_end());
        }
    }

    #[test]
    fn a_path_is_one_word_for_the_shell_that_reads_it() {
        for (path, shell, word) in [
            ("/usr/bin/nmem", None, "/usr/bin/nmem"),
            #[cfg(unix)]
            ("/my tools/it's/nmem", None, r"'/my tools/it'\''s/nmem'"),
            #[cfg(unix)]
            (r"/back\slash/nmem", None, r"'/back\slash/nmem'"),
            (r"C:\tools\nmem.exe", Some(WindowsShell::Bash), "C:/tools/nmem.exe"),
            (r"C:\tools\nmem.exe", Some(WindowsShell::PowerShell), "C:/tools/nmem.exe"),
            (r"C:\Program Files\nmem.exe", Some(WindowsShell::Bash), "\"C:/Program Files/nmem.exe\""),
            (r"C:\Program Files\nmem.exe", Some(WindowsShell::Cmd), "\"C:/Program Files/nmem.exe\""),
            (r"C:\it's\nmem.exe", Some(WindowsShell::PowerShell), "& 'C:/it''s/nmem.exe'"),
            ("nmem", Some(WindowsShell::PowerShell), "nmem"),
        ] {
            assert_eq!(program_word(path, shell), word);
            if !path.contains('\'') {
                let command = format!("{word} record --platform codex");
                let read = if shell.is_some() { path.replace('\\', "/") } else { path.to_string() };
                assert_eq!(first_word(&command).unwrap(), (read, " record --platform codex"));
            }
        }
    }
}
