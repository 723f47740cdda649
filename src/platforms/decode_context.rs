//! What adapters need from the current run.

use crate::model::Millis;

/// Input for decoding besides the payload.
#[derive(Debug)]
pub struct DecodeContext<'a> {
    pub now: Millis,
    /// Tools that are not recorded.
    pub skip_tools: &'a [String],
}
