//! The rows of an export: one JSON line each (ADR/0038).

use super::fields::each_text;
use super::{Limit, Texts};
use serde_json::{Map, Value};

/// Version of the export format. A reader rejects later versions.
pub const ARCHIVE: i64 = 2;
/// Maximum bytes of a text in a row. Texts were already truncated when they were first stored.
const WHOLE: Limit = Limit(4 << 20);

/// Exported tables, in the order in which they are written: a row comes after the rows it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    Domains,
    /// Projects, each with its keys.
    Projects,
    Sessions,
    Prompts,
    WorkUnits,
    /// Steps, each with its files.
    Steps,
    Boundaries,
    ToolUses,
    Dismissed,
    Injections,
    /// Entities of the RAD protocol; columns specific to nmem are in `row`.
    Memories,
    Spend,
}

impl Table {
    pub const ALL: [Table; 12] = [
        Table::Domains,
        Table::Projects,
        Table::Sessions,
        Table::Prompts,
        Table::WorkUnits,
        Table::Steps,
        Table::Boundaries,
        Table::ToolUses,
        Table::Dismissed,
        Table::Injections,
        Table::Memories,
        Table::Spend,
    ];

    /// Returns the table's name in the database, which is also the value of the JSON key `table`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Domains => "domains",
            Table::Projects => "projects",
            Table::Sessions => "sessions",
            Table::Prompts => "prompts",
            Table::WorkUnits => "work_units",
            Table::Steps => "steps",
            Table::Boundaries => "boundaries",
            Table::ToolUses => "tool_uses",
            Table::Dismissed => "dismissed",
            Table::Injections => "injections",
            Table::Memories => "memories",
            Table::Spend => "spend",
        }
    }

    /// Finds a table by its current name, or by its name in version 1 of the format.
    pub fn from_name(name: &str) -> Option<Table> {
        let name = if name == "told" { "injections" } else { name };
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Returns true for a column that identifies a row or contains one of a few fixed values. Such columns contain
    /// nothing private, and a redaction mark could make two rows equal.
    fn is_plain(name: &str) -> bool {
        matches!(
            name,
            "table"
                | "id"
                | "uuid"
                | "platform"
                | "agent_session_id"
                | "source_client"
                | "kind"
                | "type"
                | "state"
                | "outcome"
                | "source"
                | "features"
                | "hash"
                | "hashes"
                | "rule_key"
                | "item"
                | "point"
                | "tool_use_id"
                | "platform_prompt_id"
                | "agent_id"
                | "command_kind"
                | "source_event"
                | "made_by"
                | "provenance"
                | "entity_type"
                | "created_at"
                | "sources"
                | "superseded_by"
                | "vector"
                | "rules_mark"
                | "reason"
                | "signals"
                | "history"
                | "start_head"
                | "end_head"
                | "transcript_message"
                | "purpose"
        )
    }
}

/// A row of an export.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub table: Table,
    pub values: Map<String, Value>,
}

impl Texts for Row {
    fn texts(&mut self, visit: &mut dyn FnMut(&mut String, Limit)) {
        // The outcome of a tool use is the tool's output, not one of nmem's fixed values.
        let is_outcome = |name: &str| self.table == Table::ToolUses && name == "outcome";
        for (name, value) in self.values.iter_mut().filter(|(name, _)| !Table::is_plain(name) || is_outcome(name)) {
            match value {
                Value::Object(own) if name == "row" => {
                    let own = own.iter_mut().filter(|(name, _)| !Table::is_plain(name));
                    own.for_each(|(name, value)| each_text(["", name], value, WHOLE, visit));
                }
                value => each_text(["", name], value, WHOLE, visit),
            }
        }
    }
}
