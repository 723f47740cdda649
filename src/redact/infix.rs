//! Keys recognized by a literal inside them, not by a prefix.

use super::families::Body;
use super::span::{Span, run};
use super::values::changes_often;

/// Literals within keys, each with its matcher in [`key`].
pub const INFIXES: [&str; 17] = [
    ".atlasv1.",
    "Q~",
    "_mmk",
    "-us",
    ".acc-",
    ".acc_",
    ":AA",
    "0|?",
    "1|?",
    "2|?",
    "3|?",
    "4|?",
    "5|?",
    "6|?",
    "7|?",
    "8|?",
    "9|?",
];

/// Returns the key around the literal at `at`.
pub fn key(bytes: &[u8], at: usize) -> Option<Span> {
    let bytes = &bytes[..bytes.len().min(at + 256)];
    let rest = &bytes[at..];
    let back = |from: usize, has: &dyn Fn(u8) -> bool| {
        let far = from.saturating_sub(128);
        bytes[far..from].iter().rposition(|&b| !has(b)).map_or(far, |i| far + i + 1)
    };
    let found = |family, start, end| Some(Span { start, end, family, guessless: true });
    let alnum = |b: u8| b.is_ascii_alphanumeric();
    if rest.starts_with(b".atlasv1.") {
        let (start, end) = (back(at, &alnum), run(bytes, at + 9, |b| Body::Dotted.has(b)));
        return if at - start >= 14 && end - at >= 60 { found("hashicorp-token", start, end) } else { None };
    }
    if rest.starts_with(b"Q~") {
        let in_secret = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'~' | b'.' | b'-');
        let (start, end) = (back(at, &in_secret), run(bytes, at + 2, in_secret));
        let digit = at > start && bytes[at - 1].is_ascii_digit();
        return if digit && at - start >= 4 && (31..=36).contains(&(end - at - 2)) {
            found("azure-secret", start, end)
        } else {
            None
        };
    }
    if rest.starts_with(b"_mmk") {
        let start = back(at, &|b| alnum(b) || b == b'_');
        return if at - start == 36 && !rest.get(4).is_some_and(|b| alnum(*b)) {
            found("maxmind-key", start, at + 4)
        } else {
            None
        };
    }
    if rest.starts_with(b"-us") {
        let (start, end) = (back(at, &alnum), run(bytes, at + 3, |b| b.is_ascii_digit()));
        let hex = bytes[start..at].iter().all(|b| Body::Hex.has(*b));
        return if at - start == 32 && hex && end > at + 3 { found("mailchimp-key", start, end) } else { None };
    }
    if rest.starts_with(b".acc-") || rest.starts_with(b".acc_") {
        let (start, end) = (back(at, &|b| Body::Dotted.has(b)), run(bytes, at + 5, |b| Body::Token68.has(b)));
        let known = ["sc_", "ext_", "scauth_", "authress_"].iter().any(|prefix| bytes[start..].starts_with(prefix.as_bytes()));
        return if known && end - at > 40 { found("authress-key", start, end) } else { None };
    }
    if rest[0].is_ascii_digit() {
        // An app's id and its token.
        let start = back(at, &|b| b.is_ascii_digit());
        let end = run(bytes, at + 2, |b| b.is_ascii_lowercase() || Body::Url.has(b));
        let facebook = rest.get(1) == Some(&b'|') && (14..=15).contains(&(at - start)) && (27..=40).contains(&(end - at - 2));
        return if facebook { found("facebook-token", at + 2, end) } else { None };
    }
    if rest.starts_with(b":AA") {
        let (start, end) = (back(at, &|b| b.is_ascii_digit()), run(bytes, at + 1, |b| Body::Url.has(b)));
        return if (8..=10).contains(&(at - start)) && end - at - 1 == 35 { found("telegram-token", start, end) } else { None };
    }
    None
}

/// Matches keys that begin with digits, or with a number in base64: Asana's, Bitwarden's and Discord's.
pub fn numbered(bytes: &[u8], at: usize) -> Option<Span> {
    let found = |family, start, end| Some(Span { start, end, family, guessless: true });
    let bytes = &bytes[..bytes.len().min(at + 128)];
    let rest = &bytes[at..];
    if rest.starts_with(b"1/") {
        let number = run(bytes, at + 2, |b| b.is_ascii_digit());
        let end = run(bytes, number + 1, |b| Body::Hex.has(b));
        let asana = bytes.get(number) == Some(&b':') && number - at >= 14 && end - number == 33;
        return if asana { found("asana-token", at, end) } else { None };
    }
    if rest.starts_with(b"0.") {
        // The id of the account, a UUID.
        let id = run(bytes, at + 2, |b| Body::Hex.has(b) || b == b'-');
        let end = run(bytes, id + 1, |b| b == b':' || Body::Base64.has(b));
        let bitwarden = bytes.get(id) == Some(&b'.') && id - at == 38 && end - id > 40;
        return if bitwarden { found("bitwarden-token", at, end) } else { None };
    }
    if !matches!(rest[0], b'M' | b'N' | b'O') {
        return None;
    }
    // A bot's token begins with its id, a number of 17 to 19 digits, in base64.
    let first = run(bytes, at, |b| b.is_ascii_alphanumeric());
    let second = run(bytes, first + 1, |b| Body::Url.has(b));
    let third = run(bytes, second + 1, |b| Body::Url.has(b));
    let dots = bytes.get(first) == Some(&b'.') && bytes.get(second) == Some(&b'.');
    let discord = dots && (23..=28).contains(&(first - at)) && second - first == 7 && (27..=45).contains(&(third - second - 1));
    (discord && changes_often(&bytes[second + 1..third])).then_some(Span {
        start: at,
        end: third,
        family: "discord-token",
        guessless: true,
    })
}
