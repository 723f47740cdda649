//! Deduplication: decides if two deliveries are the same event. The platform's id of a prompt or tool call identifies
//! it within its session. Without an id, content and the platform's time do so together. Without a time too, equal
//! content within two seconds counts as one event. So a hook that runs twice stores one row, and five equal
//! `cargo test` calls remain five.

use crate::model::{Event, Millis};
use sha2::{Digest, Sha256};

/// Maximum time in milliseconds between deliveries of the same event without id and time.
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
