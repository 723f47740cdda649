//! What the rows of an event tell segmentation.

use crate::model::{ClosedBy, Millis};
use crate::segmentation::{StepRow, StoredToolUse};

/// What was stored of an event, as far as work units are concerned. It lives on the stack for one event.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Stored<'a> {
    /// Nothing, or nothing new, or what changes no unit.
    Nothing,
    Prompt {
        session: i64,
        row: i64,
        text: &'a str,
        at: Millis,
    },
    ToolUse {
        session: i64,
        /// The step that it was stored with.
        step: StepRow,
        used: StoredToolUse<'a>,
    },
    TurnEnd {
        session: i64,
        prompt: Option<i64>,
        /// What the agent said at its end.
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
