//! Shared: edits a memory by hand, also as JSON in the user's editor.

use super::output;
use crate::config::{Config, environment};
use crate::error::UserError;
use crate::files;
use crate::knowledge::{self, MemoryFields};
use crate::model::{MemoryRow, Provenance};
use crate::runtime::redactor;
use crate::store::Store;
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::IsTerminal;
use std::process::Command;

/// Maximum bytes of a memory as JSON.
pub const JSON_BYTES: u64 = 64 * 1024;

/// Opens a memory in the user's editor and stores the changes.
pub fn edit_in_editor(store: &mut Store, config: &Config, memory: &MemoryRow) -> Result<()> {
    let current = knowledge::editable(memory);
    let changes = in_editor(config, &current)?;
    if changes == current { output::say("Nothing was changed.") } else { change(store, config, memory, changes) }
}

/// Stores changed fields of a memory.
pub fn change(store: &mut Store, config: &Config, memory: &MemoryRow, changes: MemoryFields) -> Result<()> {
    knowledge::edit(store, &redactor(config)?, memory, changes, words_of())?;
    output::say(&format!("m{} was changed; rules and models will not change it again.", memory.id))
}

/// Returns the provenance of an argument of this command: the user on a terminal, unless an agent runs the command
/// there.
pub fn words_of() -> Provenance {
    if output::is_person() { Provenance::User } else { Provenance::Agent }
}

/// The fields of a memory in JSON.
pub fn object(text: &str) -> Result<MemoryFields> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(UserError::usage("not a JSON object", "give {\"title\": \"…\", …}").into()),
        Err(error) => Err(UserError::usage(format!("invalid JSON: {error}"), "give {\"title\": \"…\", …}").into()),
    }
}

/// Opens the fields in the user's editor, in a private temporary file next to the database.
fn in_editor(config: &Config, current: &MemoryFields) -> Result<MemoryFields> {
    let editor = environment::editor().filter(|_| std::io::stdin().is_terminal());
    let Some(editor) = editor else {
        return Err(UserError::usage(
            "no changes given",
            "give --title, --subtitle, …; in a terminal, $VISUAL or $EDITOR opens the memory",
        )
        .into());
    };
    let path = config.files.value.folder().join(format!("edit-{}.json", files::unique()));
    files::replace_private(&path, &format!("{}\n", serde_json::to_string_pretty(current)?))
        .with_context(|| format!("cannot write {}", path.display()))?;
    // The setting may contain options: `code --wait`.
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or("vi")).args(words).arg(&path).status();
    let text = files::whole_text(&path, JSON_BYTES);
    let _ = std::fs::remove_file(&path);
    let status = status.with_context(|| format!("cannot start {editor}"))?;
    if !status.success() {
        return Err(UserError::new(format!("{editor} ended with {status}"), "nothing was changed").into());
    }
    object(&text?)
}
