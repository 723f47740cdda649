//! Command lines for a person to copy: for `sh`, on Windows for PowerShell.

use std::path::Path;

/// Joins words, each quoted if a shell would split or expand it.
pub fn words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A command that runs in a folder.
pub fn in_folder(folder: Option<&Path>, command: &[String]) -> String {
    let Some(folder) = folder else { return words(command) };
    let (change, and) = if cfg!(windows) { ("Set-Location", ";") } else { ("cd", " &&") };
    format!("{change} {}{and} {}", quoted(&folder.to_string_lossy()), words(command))
}

/// Quotes a word for a shell if needed.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=@\\".contains(c) && (c != '\\' || cfg!(windows));
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false if cfg!(windows) => format!("'{}'", word.replace('\'', "''")),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
