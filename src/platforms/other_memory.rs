//! What readers of other programs' memories share.

use sha2::{Digest, Sha256};

/// A text without what exceeds a limit in bytes.
pub fn cut_bytes(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_string()
}

/// The same UUID for the same key: a second import finds what the first one stored.
pub fn stable_uuid(key: &str) -> String {
    let hash = Sha256::digest(key);
    let hex: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    // Version 8, variant 1 (RFC 9562): 122 bits of the program's own.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
