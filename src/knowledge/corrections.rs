//! Use case: a person's changes to a memory: edit, pin, supersede. Rules and models never change such a memory again.

use super::{MemoryFields, draft};
use crate::domains;
use crate::error::UserError;
use crate::model::{MemoryRow, Provenance};
use crate::redact::Redactor;
use crate::store::Store;
use anyhow::Result;
use serde_json::{Map, Value};

/// Returns the editable fields of a memory, under the names that [`draft`] accepts.
pub fn editable(memory: &MemoryRow) -> MemoryFields {
    let mut fields = Map::new();
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::from);
    fields.insert("title".into(), Value::from(memory.title.clone()));
    fields.insert("subtitle".into(), text(&memory.subtitle));
    fields.insert("type".into(), text(&memory.kind_type));
    fields.insert("narrative".into(), text(&memory.body));
    fields.insert("facts".into(), Value::from(memory.list("facts")));
    fields.insert("concepts".into(), Value::from(memory.concepts.clone()));
    for (name, modified) in [("files_read", false), ("files_modified", true)] {
        let paths: Vec<String> = memory.files.iter().filter(|f| f.modified == modified).map(|f| f.path.clone()).collect();
        fields.insert(name.into(), Value::from(paths));
    }
    // A summary's file lists are already included above.
    let content = memory.content.iter().filter(|(name, _)| !matches!(name.as_str(), "facts" | "files_read" | "files_edited"));
    fields.extend(content.map(|(name, value)| (name.clone(), value.clone())));
    fields
}

/// Edits a memory: `changes` replaces fields of the same name; `null` clears one. `by` is the provenance of changed
/// text.
pub fn edit(store: &mut Store, redactor: &Redactor, memory: &MemoryRow, changes: MemoryFields, by: Provenance) -> Result<()> {
    let (name, config) = match (memory.session, memory.project_id) {
        (Some(session), _) => store.domain_of_session(session)?.unwrap_or_default(),
        (None, Some(project)) => store.domain_of_project(project)?.unwrap_or_default(),
        (None, None) => Default::default(),
    };
    let domain = domains::of(Some(&name), config.as_deref());
    let mut fields = editable(memory);
    fields.extend(changes);
    fields.insert("kind".into(), Value::from(memory.kind.name()));
    // Unchanged values are accepted even if the domain has changed since.
    let take_unchanged = |fields: &mut MemoryFields, name: &str, kept: Value| {
        if fields.get(name) == Some(&kept) { fields.remove(name).map(|_| kept) } else { None }
    };
    let kept_type = take_unchanged(&mut fields, "type", memory.kind_type.clone().map_or(Value::Null, Value::from));
    let kept_concepts = take_unchanged(&mut fields, "concepts", Value::from(memory.concepts.clone()));
    let mut draft = draft(&fields, &domain, memory.created_at)?;
    if kept_type.is_some() {
        draft.kind_type = memory.kind_type.clone();
    }
    if kept_concepts.is_some() {
        draft.concepts = memory.concepts.clone();
    }
    draft.prompt = memory.prompt;
    draft.sources = memory.sources.clone();
    for file in &mut draft.files {
        file.hash = memory.files.iter().find(|known| known.path == file.path).and_then(|known| known.hash.clone());
    }
    // Changed text gets the provenance of its author. An added field does not change the provenance.
    let own = draft.title != memory.title || draft.body != memory.body || draft.subtitle != memory.subtitle;
    let draft = redactor.clean(draft);
    store.write(|tx| tx.edit_memory(memory.id, &draft, own.then_some(by)))
}

/// Pins or unpins a memory. Pinned memories are part of every session start.
///
/// # Errors
///
/// A superseded memory, or one that consists of tool output or was shared by somebody else: it could contain anything.
pub fn pin(store: &mut Store, memory: &MemoryRow, pinned: bool) -> Result<()> {
    if let (true, Some(by)) = (pinned, memory.superseded_by) {
        return Err(UserError::new(format!("m{} is superseded by m{by}", memory.id), format!("nmem pin m{by}")).into());
    }
    if pinned && !memory.by_hand && matches!(memory.provenance, Provenance::Tool | Provenance::Team) {
        let what = format!("m{} consists of tool output, which cannot be pinned", memory.id);
        return Err(UserError::new(what, "write it in your own words: nmem remember --pin TEXT").into());
    }
    store.write(|tx| tx.set_pinned(memory.id, pinned))
}

/// Keeps a memory as it is: rules and models never change it again.
pub fn keep(store: &mut Store, memory: &MemoryRow) -> Result<()> {
    store.write(|tx| tx.keep_memory(memory.id))
}

/// Marks a memory as superseded by another one.
///
/// # Errors
///
/// Identical memories, memories of different projects, or a cycle.
pub fn supersede(store: &mut Store, old: &MemoryRow, new: &MemoryRow) -> Result<()> {
    if old.project_id != new.project_id {
        let what = format!("m{} and m{} belong to different projects", old.id, new.id);
        return Err(UserError::usage(what, "`nmem show` names the project of each").into());
    }
    let mut at = Some(new.clone());
    while let Some(memory) = at {
        if memory.id == old.id {
            let what = format!("m{} cannot supersede m{}: that would be a cycle", new.id, old.id);
            return Err(UserError::usage(what, "nmem supersede OLD NEW").into());
        }
        at = memory.superseded_by.map(|id| store.memory_by_row(id)).transpose()?.flatten();
    }
    store.write(|tx| tx.supersede(old.id, new.id))
}
