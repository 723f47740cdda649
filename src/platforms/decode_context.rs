//! Input that adapters need from the current run.

use crate::model::Millis;

/// Input for decoding, in addition to the payload.
#[derive(Debug)]
pub struct DecodeContext<'a> {
    pub now: Millis,
    /// Tools that are not recorded.
    pub skip_tools: &'a [String],
}
