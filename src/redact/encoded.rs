//! Base64 whose content holds a secret: configuration files, service accounts, Kubernetes secrets.

use super::families::Body;
use super::values::{Span, find, run};

/// Length of the shortest run that is decoded, in characters.
const SHORTEST: usize = 24;

/// Maximum bytes of a run that are decoded.
const DECODED: usize = 4096;

/// Returns the runs of base64 that decode to text in which `holds_secret` finds something.
pub fn encoded(text: &str, holds_secret: impl Fn(&str) -> bool) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = SHORTEST - 1;
    // A run of this length covers one of these positions, so the others need no check.
    while at < bytes.len() {
        if !Body::Base64.has(bytes[at]) {
            at += SHORTEST;
            continue;
        }
        let floor = found.last().map_or(0, |span: &Span| span.end).max(at.saturating_sub(SHORTEST - 1));
        let start = bytes[floor..at].iter().rposition(|&b| !Body::Base64.has(b)).map_or(floor, |i| floor + i + 1);
        let end = run(bytes, at, |b| Body::Base64.has(b));
        if end - start >= SHORTEST && decoded(&bytes[start..end]).is_some_and(|inside| holds_secret(&inside)) {
            found.push(Span { start, end, family: "encoded-secret", guessless: false });
        }
        at = end + SHORTEST;
    }
    found
}

/// Returns the text inside base64; `None` if it is not all printable ASCII.
fn decoded(base64: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(base64.len().min(DECODED) * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for &b in base64.iter().take(DECODED).take_while(|b| **b != b'=') {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            let byte = (bits >> count) as u8;
            if !(byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
                return None;
            }
            out.push(char::from(byte));
        }
    }
    Some(out)
}

/// Returns the values below `data:` or `stringData:` of a Kubernetes secret; `at` is the start of that key.
pub fn kubernetes(bytes: &[u8], at: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    let colon = run(bytes, at, |b| b != b':' && b != b'\n');
    if !matches!(bytes.get(colon + 1), Some(b'\n' | b'\r')) {
        return spans;
    }
    let around = &bytes[at.saturating_sub(2048)..bytes.len().min(at + 2048)];
    if find(around, b"kind: Secret").is_none() {
        return spans;
    }
    let margin = bytes[..at].iter().rev().take_while(|b| **b == b' ').count();
    let mut line = run(bytes, at, |b| b != b'\n') + 1;
    while line < bytes.len() {
        let name = run(bytes, line, |b| b == b' ');
        let end = run(bytes, name, |b| b != b'\n');
        if name - line <= margin || name == end {
            break;
        }
        let colon = bytes[name..end].iter().position(|&b| b == b':').map(|i| name + i);
        // A block scalar's lines have no name.
        let start = colon.map_or(name, |colon| run(bytes, colon + 1, |b| matches!(b, b' ' | b'"' | b'\'')));
        let value = bytes[start.min(end)..end].trim_ascii_end();
        let value = value.strip_suffix(b"\"").or(value.strip_suffix(b"'")).unwrap_or(value);
        if value.len() >= 4 && !value.starts_with(b"{{") && !value.starts_with(b"[redacted:") {
            spans.push(Span { start, end: start + value.len(), family: "assigned-secret", guessless: false });
        }
        line = end + 1;
    }
    spans
}
