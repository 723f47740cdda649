//! What an export holds: a line a row, as JSON (ADR/0038).

use super::fields::each_text;
use super::{Limit, Texts};
use serde_json::{Map, Value};

/// The version of the lines. A reader refuses a later one.
pub const ARCHIVE: i64 = 1;
/// A text of a row: what was stored was cut already.
const WHOLE: Limit = Limit(4 << 20);

/// Whose rows they are, in the order in which they are written: what others point to comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    Domains,
    /// With its keys.
    Projects,
    Sessions,
    Prompts,
    WorkUnits,
    /// With its files.
    Steps,
    Boundaries,
    ToolUses,
    Dismissed,
    Told,
    /// An entity of the RAD protocol, with what nmem knows of it in `row`.
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
        Table::Told,
        Table::Memories,
        Table::Spend,
    ];

    /// Its name, in the store and in `table`.
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
            Table::Told => "told",
            Table::Memories => "memories",
            Table::Spend => "spend",
        }
    }

    /// Finds a table by its name.
    pub fn from_name(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Columns that tell rows apart or name one of a few things: nothing private stands there, and a mark in the place of one
    /// would make two rows one.
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
                | "sketch"
                | "hash"
                | "hashes"
                | "rule_key"
                | "item"
                | "moment"
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
        // Of a tool use the outcome is what it printed.
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
