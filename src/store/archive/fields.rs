//! Access to the fields of an imported row.

use crate::error::UserError;
use crate::model::Maker;
use crate::model::Table;
use anyhow::Result;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Upper bound of plausible ids.
const MOST: i64 = 1 << 52;

/// Returns an error that names the invalid part.
pub(super) fn wrong<T>(what: &str) -> Result<T> {
    Err(UserError::new(format!("{what} is invalid"), "nothing was restored").into())
}

/// Returns an id shifted past the existing ones; `None` if it is invalid.
pub(super) fn shifted(id: &Value, offset: i64) -> Option<i64> {
    id.as_i64().filter(|id| (1..MOST).contains(id)).map(|id| id + offset)
}

/// A required number.
pub(super) fn number(values: &Map<String, Value>, name: &str) -> Result<i64> {
    let number = values.get(name).and_then(Value::as_i64).filter(|number| *number > 0);
    number.map_or_else(|| wrong(&format!("`{name}`")), Ok)
}

/// A text field.
pub(super) fn text(values: &Map<String, Value>, name: &str) -> Option<String> {
    values.get(name).and_then(Value::as_str).map(String::from)
}

/// The texts of a list.
pub(super) fn texts<'v>(values: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v str> {
    values.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a person or program added the memory, or a person has changed it.
pub(super) fn is_by_person_or_program(row: &Map<String, Value>) -> bool {
    let is = |name: &str| row.get(name).is_some_and(|value| value.as_i64() == Some(1));
    let made_by = text(row, "made_by").map(Maker::from);
    matches!(made_by, Some(Maker::Hand | Maker::Program)) || is("by_hand") || is("pinned")
}

/// Decodes hex.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    digits.filter(|digits| digits.len() % 2 == 0).map(|digits| digits.chunks_exact(2).map(|two| two[0] * 16 + two[1]).collect())
}

/// Replaces short ids (a letter and a number) in a text with their new ids.
pub(super) fn renamed(text: &str, offsets: &HashMap<Table, i64>) -> String {
    let table = |letter: char| match letter {
        't' => Some(Table::ToolUses),
        'p' => Some(Table::Prompts),
        'u' => Some(Table::WorkUnits),
        'm' => Some(Table::Memories),
        _ => None,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut inside_word = false;
    while let Some(letter) = rest.chars().next() {
        let digits =
            rest[letter.len_utf8()..].len() - rest[letter.len_utf8()..].trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let end = letter.len_utf8() + digits;
        let id = rest[letter.len_utf8()..end].parse::<i64>().ok();
        match (table(letter).filter(|_| !inside_word), id) {
            (Some(table), Some(id)) => out += &format!("{letter}{}", id + offsets.get(&table).copied().unwrap_or(0)),
            _ => out.push_str(&rest[..end]),
        }
        inside_word = letter.is_alphanumeric();
        rest = &rest[end..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_inside_texts_go_by_their_new_numbers() {
        let offsets = HashMap::from([(Table::ToolUses, 100), (Table::Prompts, 10), (Table::WorkUnits, 1000)]);
        for (text, wanted) in [
            ("commit:t12", "commit:t112"),
            ("lesson:p3:1", "lesson:p13:1"),
            ("[\"t12\",\"p3\"]", "[\"t112\",\"p13\"]"),
            ("task:u4", "task:u1004"),
            ("step3:it12", "step3:it12"),
            ("", ""),
        ] {
            assert_eq!(renamed(text, &offsets), wanted);
        }
    }
}
