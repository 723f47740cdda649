//! Common parts of the readers of other programs' memories.

use sha2::{Digest, Sha256};

/// Cuts a text to at most `most` bytes, at a character boundary.
pub fn cut_bytes(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_string()
}

/// Derives a UUID from a key. It is always the same, so a second import finds the memories of the first one.
pub fn stable_uuid(key: &str) -> String {
    let hash = Sha256::digest(key);
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    // Version 8, variant 1 (RFC 9562): 122 bits are up to the program.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
