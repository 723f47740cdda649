//! Quoting of a program's path in a hook's command line, for the shell in which the agent runs hooks.

use crate::platforms::setup::WindowsShell;
use crate::render::command_line::quoted;

/// Returns a program's path as the first word of a command line.
pub fn program_word(path: &str, shell: Option<WindowsShell>) -> String {
    let Some(shell) = shell else { return quoted(path) };
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

#[cfg(test)]
mod tests {
    use super::*;

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
