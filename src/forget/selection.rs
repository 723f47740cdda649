//! The rows that an id selects.

use crate::error::UserError;
use crate::lookup;
use crate::model::StoredItem;
use crate::render::clean::line;
use crate::store::Store;
use crate::store::forget::DeleteFilter;
use anyhow::Result;

/// Returns the rows that the given ids select. A unit's id selects its prompts and tool uses.
///
/// # Errors
///
/// A [`UserError`] if an id is unknown, or if one of several ids names a session.
pub fn rows_of(store: &Store, ids: &[String]) -> Result<DeleteFilter> {
    let mut wanted = DeleteFilter::default();
    for id in ids {
        match found(store, id)? {
            StoredItem::Prompt(prompt) => wanted.prompts.push(prompt.id),
            StoredItem::ToolUse(tool) => wanted.tool_uses.push(tool.id),
            StoredItem::Memory(memory) => wanted.memories.push(memory.id),
            StoredItem::Unit(unit) => {
                let (prompts, tool_uses) = store.rows_of_unit(&unit)?;
                wanted.prompts.extend(prompts);
                wanted.tool_uses.extend(tool_uses);
            }
            StoredItem::Session(_) if ids.len() > 1 => {
                return Err(
                    UserError::usage("--session cannot be combined with other options", "nmem forget --session ID").into()
                );
            }
            StoredItem::Session(session) => wanted.session = Some(session.id),
        }
    }
    Ok(wanted)
}

fn found(store: &Store, id: &str) -> Result<StoredItem> {
    lookup::find(store, id)?
        .ok_or_else(|| UserError::new(format!("nothing has the id {}", line(id, 80)), "`nmem search` prints ids").into())
}
