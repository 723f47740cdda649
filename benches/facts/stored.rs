//! The memories of a session, as the labels' scorer reads them.

use super::score::{Kept, Named, sentences};
use nmem::store::Store;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The active memories, one text each.
pub fn memories(store: &Store) -> Vec<Kept> {
    let mut out = Vec::new();
    store
        .each_row(None, &mut |row| {
            let (values, own) = (&row.values, &row.values.get("row").cloned().unwrap_or_default());
            if !values.contains_key("entity_type") || !own["superseded_by"].is_null() {
                return Ok(());
            }
            let mut lines: Vec<String> = Vec::new();
            for name in ["title", "subtitle"] {
                lines.extend(values[name].as_str().map(String::from));
            }
            lines.extend(own["body"].as_str().into_iter().flat_map(sentences));
            strings(&values["content"], &mut lines);
            out.push(Kept {
                kind: own["kind"].as_str().unwrap_or_default().into(),
                is_users: own["provenance"] == "user",
                text: lines.join("\n"),
            });
            Ok(())
        })
        .unwrap();
    out
}

/// Every text in a JSON value, each sentence by itself.
pub fn strings(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.extend(sentences(text)),
        Value::Array(list) => list.iter().for_each(|value| strings(value, out)),
        Value::Object(members) => members.values().for_each(|value| strings(value, out)),
        _ => {}
    }
}

/// Units with the prompts of their steps.
pub fn units(store: &Store) -> Vec<Named> {
    let (mut titles, mut prompts, mut steps) = (BTreeMap::new(), HashMap::new(), Vec::new());
    store
        .each_row(None, &mut |row| {
            let values = &row.values;
            let number = |name: &str| values.get(name).and_then(Value::as_i64);
            match row.table.name() {
                "work_units" => {
                    let title = ["title", "intent"].iter().find_map(|name| values.get(*name).filter(|text| text.is_string()));
                    titles.insert(number("id"), title.cloned().unwrap_or_default());
                }
                "prompts" if values["source"] == "user" => {
                    prompts.insert(number("id"), number("number").unwrap() as usize - 1);
                }
                "steps" => steps.push((number("work_unit_id"), number("prompt_id"))),
                _ => {}
            }
            Ok(())
        })
        .unwrap();
    let of = |unit: &Option<i64>| {
        steps.iter().filter(|step| step.0 == *unit).filter_map(|step| prompts.get(&step.1).copied()).collect()
    };
    titles.iter().map(|(id, title)| Named { prompts: of(id), title: title.as_str().unwrap_or_default().into() }).collect()
}
