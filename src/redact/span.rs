//! Position of a secret in a text, and byte functions that all matchers share.

/// Bytes `start..end` of the scanned text, to be replaced by a mark. Never empty, on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
    pub family: &'static str,
    /// Too random to be guessed, so that a hash of it reveals nothing.
    pub guessless: bool,
}

/// Bytes after a position that are examined before a match there is certain. Without a limit, a text of nothing but
/// prefixes would take quadratic time.
pub const LOOKED_AT: usize = 1024;

/// Returns the end of the run of bytes that begins at `from`.
pub fn run(bytes: &[u8], from: usize, while_: impl Fn(u8) -> bool) -> usize {
    bytes[from.min(bytes.len())..].iter().position(|&b| !while_(b)).map_or(bytes.len(), |i| from + i)
}

/// Returns the first position of `needle` in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

/// Whether `bytes` starts with `name`, in either case.
pub fn starts_with_folded(bytes: &[u8], name: &str) -> bool {
    bytes.len() >= name.len() && bytes[..name.len()].eq_ignore_ascii_case(name.as_bytes())
}

/// Returns the next position that is not inside a UTF-8 character.
pub fn boundary(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at += 1;
    }
    at
}
