//! Deduplication: when two deliveries are the same event. The platform's id of a prompt or tool call decides, within
//! its session. Without an id, content and the platform's time together do; without a time too, equal content within
//! two seconds. So a hook that runs twice stores one row, and five equal `cargo test` remain five.

use crate::model::{Event, Millis};
use sha2::{Digest, Sha256};

/// Deliveries of an event without id and time count as one within this time, in milliseconds.
pub(super) const SAME_EVENT: Millis = 2000;

/// A stable name for an event that has a time but no id.
pub(super) fn name_of(event: &Event, texts: &[Option<&str>]) -> Option<String> {
    let time = event.time?.to_string();
    let mut hash = Sha256::new();
    for text in texts.iter().copied().chain([Some(time.as_str())]) {
        let text = text.unwrap_or_default();
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    Some(format!("~{}", hash.finalize()[..12].iter().map(|b| format!("{b:02x}")).collect::<String>()))
}
