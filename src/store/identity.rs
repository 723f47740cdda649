//! What makes two deliveries one event. A platform's own id decides: of a prompt, of a tool call, by session. Without an id
//! it is the event's content and the platform's time, as one name; without a time either, the same content within two
//! seconds. So a hook that runs twice stores once, and five equal `cargo test` stay five.

use crate::model::{Event, Millis};
use sha2::{Digest, Sha256};

/// Two deliveries of an event without an id count as one within this time.
pub(super) const SAME_EVENT: Millis = 2000;

/// A name for an event that the platform gives no id, but a time: the same for each time it is told.
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
