//! What adapters are told of this run.

use crate::model::Millis;

/// What decoding needs to know of this run.
#[derive(Debug)]
pub struct Surroundings<'a> {
    pub now: Millis,
    /// Tools that are not recorded.
    pub skip_tools: &'a [String],
}
