//! Random values shortly after a sensitive name, in any notation: `.setToken("…")`, `Field(default="…")`,
//! `| password |⏎| … |`, `ngrok authtoken …`.
//!
//! Nothing proves that the value belongs to the name, so it must look as only issued secrets do.

use super::names::{Name, is_last};
use super::span::{Span, run};
use super::values::{changes_often, is_random_letters, is_reference, is_strong_short, is_words, looks_random, looks_set};

/// Bytes after a name that are searched for a value.
const NEAR: usize = 96;
/// Length of a value that can only be a secret, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 20..=128;

/// Returns the value near a name; called if the name's own forms gave none.
pub fn nearby(bytes: &[u8], name: &Name) -> Option<Span> {
    let near = &bytes[..bytes.len().min(name.end + NEAR)];
    let in_value = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let mut at = run(near, name.end, in_value);
    let at_end = is_last(&bytes[name.start..name.end]);
    if let Some(span) = at_end.then(|| declared(near, name.end).or_else(|| said(near, name.end))).flatten() {
        return Some(span);
    }
    if let Some(span) = quoted(near, at) {
        return Some(span);
    }
    while at < near.len() {
        let start = run(near, at, |b| !b.is_ascii_alphanumeric());
        let end = run(bytes, start, in_value);
        if stands_alone(bytes, start, end) && is_issued(&bytes[start..end]) {
            return Some(Span { start, end, family: "assigned-secret", guessless: true });
        }
        at = end.max(start + 1);
    }
    None
}

/// Returns a random value in the first quotes after a name, with only code in between: `char api_key[] = "…"`,
/// `{ get; set; } = "…"`, `setToken("…")`, `(setq token "…")`, `variable "db_key" {⏎  default = "…"`.
fn declared(near: &[u8], from: usize) -> Option<Span> {
    let from = run(near, from, |b| matches!(b, b'"' | b'\''));
    let quote = run(near, from, |b| !matches!(b, b'"' | b'\'' | b'`'));
    let between = near.get(from..quote).filter(|between| between.len() <= 48)?;
    let line_ends = between.contains(&b'\n') && !between.trim_ascii_end().ends_with(b"default =");
    let compared = between.windows(2).any(|two| matches!(two, b"==" | b"!="));
    let end = run(near, quote + 1, |b| Some(&b) != near.get(quote) && b != b'\n');
    let value = near.get(quote + 1..end)?;
    let found = !line_ends && !compared && !between.contains(&b',') && near.get(end) == near.get(quote);
    (found && looks_random(value) && !is_words(value)).then_some(Span {
        start: quote + 1,
        end,
        family: "assigned-secret",
        guessless: value.len() >= 16,
    })
}

/// Returns a value given in prose: `the db password is … for staging`.
fn said(near: &[u8], from: usize) -> Option<Span> {
    let behind = near.get(from..)?;
    let start = from + [&b" is: "[..], b" is "].iter().find(|verb| behind.starts_with(verb))?.len();
    let end = run(near, start, |b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b')'));
    let value = &near[start..end];
    let value = value.strip_suffix(b".").unwrap_or(value);
    let found = looks_set(value) || is_strong_short(value) || looks_random(value);
    (found && !is_words(value)).then_some(Span { start, end: start + value.len(), family: "assigned-secret", guessless: false })
}

/// Returns a strong value in quotes on the name's line: `setPassword("…")`, `if password == "…"`,
/// `ENV.fetch('PW', '…')`.
fn quoted(near: &[u8], from: usize) -> Option<Span> {
    let line = &near[..run(near, from, |b| b != b'\n')];
    let is_quote = |b: u8| matches!(b, b'"' | b'\'' | b'`');
    let mut at = run(line, from, |b| !is_quote(b));
    while at < line.len() {
        let start = at + 1;
        let end = run(line, start, |b| b != line[at]);
        if end < line.len() && is_strong_short(&line[start..end]) {
            return Some(Span { start, end, family: "assigned-secret", guessless: false });
        }
        // Where quotes are not paired, the closing quote may open the next string.
        at = run(line, start, |b| !is_quote(b));
    }
    None
}

/// Whether a value is not part of a path, of base64 or of a name.
fn stands_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let in_other = |b: Option<&u8>| b.is_some_and(|b| matches!(b, b'/' | b'+' | b'.' | b'$' | b'#' | b'@' | b'\\' | b'%'));
    !in_other(start.checked_sub(1).map(|i| &bytes[i])) && !in_other(bytes.get(end)) && bytes.get(end) != Some(&b'(')
}

/// Whether a value looks issued: upper case, lower case and digits alternate as in random text, or it is random
/// letters.
fn is_issued(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit) && changes_often(value);
    LENGTH.contains(&value.len()) && (mixed && !is_words(value) && !is_reference(value) || is_random_letters(value))
}

#[cfg(test)]
mod tests {
    use crate::redact::scan::scan;

    #[test]
    fn random_values_near_a_telling_name_are_found() {
        for text in [
            "client.setToken(\"9DUxl2wzmESR9Vm0avo7lbxSX2tRLOUe\")",
            "Dim password As String = \"Wdc2Dy5u8PXGbsFgxD3FZMyXzR6rrlJM\"",
            "api_key: str = Field(default=\"bot974DZpXMgUNs6jEUSf9UroEVuytrx\")",
            "| user | password |\n|------|----------|\n| bob  | sy9THQNDnndIE1v0yhTlcFKMQ9TbLee6 |",
            "poetry config pypi-token.pypi 2Y71Am8W9fiquaR7mlcKNGLxWHdnRfqD",
            "password = os.getenv(\"P\") or \"4IbTw0FpKG1VZm3QBhxTuIYNgBZ5sJ7Z\"",
            "var jwtSecret = []byte(\"GE3jPSvsto0lM6S9sT2SFHk7FH5bp7kg\")",
        ] {
            assert_eq!(scan(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn names_hashes_and_paths_near_one_stay() {
        for text in [
            "token = tokenizer.getNextTokenFromBuffer2(input)",
            "password_hash(\"MyVeryLongClassNameForTests2\")",
            "key: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "the token cache was built from 8f14e45fceea167a5a36dedd4bea2543",
            "token file at /home/me/AbCdEf12GhIjKl34MnOpQr56/x",
        ] {
            assert_eq!(scan(text), [], "{text}");
        }
    }
}
