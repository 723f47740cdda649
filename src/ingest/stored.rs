//! The stored rows of an event, as input for segmentation.

use crate::model::{ClosedBy, Millis};
use crate::segmentation::{StepRow, StoredToolUse};

/// The rows of one event, on the stack.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum StoredRows<'a> {
    /// Nothing, nothing new, or nothing that affects units.
    Nothing,
    Prompt {
        session: i64,
        row: i64,
        text: &'a str,
        at: Millis,
    },
    ToolUse {
        session: i64,
        /// The step in which the tool use was stored.
        step: StepRow,
        used: StoredToolUse<'a>,
    },
    TurnEnd {
        session: i64,
        prompt: Option<i64>,
        /// The agent's closing message.
        closing: Option<&'a str>,
        is_new: bool,
        at: Millis,
    },
    UnitClosed {
        session: i64,
        by: ClosedBy,
        at: Millis,
    },
}
