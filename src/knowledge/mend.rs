//! Use case: what a person changes about a memory: mended, pinned, replaced. What they touched, no rule and no model touches again.

use super::{Told, draft};
use crate::domains;
use crate::error::Failure;
use crate::model::{MemoryRow, Provenance};
use crate::redact::Redactor;
use crate::store::Store;
use anyhow::Result;
use serde_json::{Map, Value};

/// What of a memory can be mended, by the names that [`draft`] takes.
pub fn editable(memory: &MemoryRow) -> Told {
    let mut told = Map::new();
    let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::from);
    told.insert("title".into(), Value::from(memory.title.clone()));
    told.insert("subtitle".into(), text(&memory.subtitle));
    told.insert("type".into(), text(&memory.kind_type));
    told.insert("narrative".into(), text(&memory.body));
    told.insert("facts".into(), Value::from(memory.list("facts")));
    told.insert("concepts".into(), Value::from(memory.concepts.clone()));
    for (name, modified) in [("files_read", false), ("files_modified", true)] {
        let paths: Vec<String> = memory.files.iter().filter(|f| f.modified == modified).map(|f| f.path.clone()).collect();
        told.insert(name.into(), Value::from(paths));
    }
    // The lists of a summary are its files, which stand above.
    let content = memory.content.iter().filter(|(name, _)| !matches!(name.as_str(), "facts" | "files_read" | "files_edited"));
    told.extend(content.map(|(name, value)| (name.clone(), value.clone())));
    told
}

/// Mends a memory: `changes` replaces fields of the same name, `null` empties one.
pub fn edit(store: &mut Store, redactor: &Redactor, memory: &MemoryRow, changes: Told) -> Result<()> {
    let (name, config) = match (memory.session, memory.project_id) {
        (Some(session), _) => store.domain_of_session(session)?.unwrap_or_default(),
        (None, Some(project)) => store.domain_of_project(project)?.unwrap_or_default(),
        (None, None) => Default::default(),
    };
    let domain = domains::of(Some(&name), config.as_deref());
    let mut told = editable(memory);
    told.extend(changes);
    told.insert("kind".into(), Value::from(memory.kind.name()));
    // What stands already is not refused: the domain may have changed since.
    let standing = |told: &mut Told, name: &str, kept: Value| {
        if told.get(name) == Some(&kept) { told.remove(name).map(|_| kept) } else { None }
    };
    let kept_type = standing(&mut told, "type", memory.kind_type.clone().map_or(Value::Null, Value::from));
    let kept_concepts = standing(&mut told, "concepts", Value::from(memory.concepts.clone()));
    let mut draft = draft(&told, &domain, memory.created_at)?;
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
    // Who changes the words makes them their own; who adds a field does not.
    let own = draft.title != memory.title || draft.body != memory.body || draft.subtitle != memory.subtitle;
    let draft = redactor.clean(draft);
    store.write(|tx| tx.edit_memory(memory.id, &draft, own))
}

/// Pins a memory, so that each session is told of it, or takes the pin out.
///
/// # Errors
/// A memory made of what a tool printed, or of what somebody else shared: it could hold anything.
pub fn pin(store: &mut Store, memory: &MemoryRow, pinned: bool) -> Result<()> {
    if let (true, Some(by)) = (pinned, memory.superseded_by) {
        return Err(Failure::new(format!("m{} no longer holds: m{by} does instead", memory.id), format!("nmem pin m{by}")).into());
    }
    if pinned && !memory.by_hand && matches!(memory.provenance, Provenance::Tool | Provenance::Team) {
        let what = format!("m{} is made of what a tool printed, and such memories are not pinned", memory.id);
        return Err(Failure::new(what, "say it in your own words: nmem remember --pin TEXT").into());
    }
    store.write(|tx| tx.set_pinned(memory.id, pinned))
}

/// Says that a memory no longer holds, and which one holds instead.
///
/// # Errors
/// Two that are one, or a circle.
pub fn supersede(store: &mut Store, old: &MemoryRow, new: &MemoryRow) -> Result<()> {
    if old.project_id != new.project_id {
        let what = format!("m{} and m{} are of different projects", old.id, new.id);
        return Err(Failure::usage(what, "`nmem show` names the project of each").into());
    }
    let mut at = Some(new.clone());
    while let Some(memory) = at {
        if memory.id == old.id {
            let what = format!("m{} can't stand in the place of m{}: that would be a circle", new.id, old.id);
            return Err(Failure::usage(what, "nmem supersede OLD NEW").into());
        }
        at = memory.superseded_by.map(|id| store.memory_by_row(id)).transpose()?.flatten();
    }
    store.write(|tx| tx.supersede(old.id, new.id))
}
