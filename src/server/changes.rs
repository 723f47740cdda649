//! Changes of memories on the page: pin, edit, supersede, forget. The use cases are those of the commands.

use super::state::Served;
use crate::config::environment;
use crate::forget::{ForgetPlan, rows_of};
use crate::knowledge;
use crate::lookup;
use crate::model::{MemoryRow, Provenance, StoredItem};
use crate::rad::ProtocolError;
use crate::render::memories;
use crate::runtime::redactor;
use crate::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};

/// Changes a memory; returns it.
pub fn change(served: &Served, id: &str, action: &str, mut fields: Map<String, Value>) -> Result<Value, ProtocolError> {
    let mut store = writer(served)?;
    let found = memory(&store, id)?;
    match action {
        "pin" => {
            let pinned =
                fields.get("pinned").and_then(Value::as_bool).ok_or_else(|| ProtocolError::bad("`pinned` is true or false"))?;
            if pinned && served.editor != Provenance::User {
                return Err(ProtocolError::bad("this server was started by an agent, and agents cannot pin memories"));
            }
            knowledge::pin(&mut store, &found, pinned).map_err(refused)?;
        }
        "supersede" => {
            let by = fields.get("by").and_then(Value::as_str).ok_or_else(|| ProtocolError::bad("`by` is the id of a memory"))?;
            let by = memory(&store, by)?;
            knowledge::supersede(&mut store, &found, &by).map_err(refused)?;
        }
        _ => {
            fields.retain(|name, _| knowledge::editable(&found).contains_key(name));
            knowledge::edit(&mut store, &redactor(&served.config)?, &found, fields, served.editor).map_err(refused)?;
        }
    }
    Ok(memories::json(&memory(&store, id)?))
}

/// Deletes the item with an id; with `dry_run`, reports what would be deleted.
pub fn forget(served: &Served, fields: &Map<String, Value>) -> Result<Value, ProtocolError> {
    let id = fields.get("id").and_then(Value::as_str).ok_or_else(|| ProtocolError::bad("`id` is missing"))?;
    let mut store = writer(served)?;
    let plan = ForgetPlan::of(&store, rows_of(&store, &[id.to_string()]).map_err(refused)?)?;
    if plan.is_empty() {
        return Err(ProtocolError::not_found(format!("nothing of {id:?} is left")));
    }
    let is_trial = fields.get("dry_run").and_then(Value::as_bool).unwrap_or(false);
    let summary = plan.summary(is_trial, "");
    if !is_trial {
        plan.carry_out(&mut store, &served.config, environment::now(), &mut |_| ())?;
    }
    Ok(json!({"forgotten": !is_trial, "summary": summary}))
}

fn writer(served: &Served) -> Result<Store, ProtocolError> {
    Ok(Store::open(&served.config.files.value, PERSON_WAIT)?)
}

fn memory(store: &Store, id: &str) -> Result<MemoryRow, ProtocolError> {
    match lookup::find(store, id).map_err(refused)? {
        Some(StoredItem::Memory(memory)) => Ok(*memory),
        _ => Err(ProtocolError::not_found(format!("{id:?} is not a memory"))),
    }
}

/// Converts an error: a mistake of a person is a bad request; anything else is the store's fault.
fn refused(error: anyhow::Error) -> ProtocolError {
    match error.downcast::<crate::error::UserError>() {
        Ok(wrong) => ProtocolError::bad(wrong.what),
        Err(error) => error.into(),
    }
}
