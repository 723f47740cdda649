//! Keys by prefix, and shapes without one: JWTs, PEM private keys, passwords in URLs.

use super::families::{Body, KEYS};
use super::span::{LOOKED_AT, Span, boundary, find, run};
use super::values::{is_variable, looks_random};

/// How a private key begins.
pub const PEM: &str = "-----BEGIN ";

/// Rows of `KEYS`, ordered by their first byte, and where each byte's rows begin.
static BY_FIRST: ([u8; KEYS.len()], [u8; 257]) = by_first();

const fn by_first() -> ([u8; KEYS.len()], [u8; 257]) {
    let (mut order, mut starts) = ([0; KEYS.len()], [0; 257]);
    let (mut byte, mut at) = (0, 0);
    while byte < 256 {
        starts[byte] = at as u8;
        let mut i = 0;
        while i < KEYS.len() {
            if KEYS[i].prefix.as_bytes()[0] as usize == byte {
                order[at] = i as u8;
                at += 1;
            }
            i += 1;
        }
        byte += 1;
    }
    starts[256] = at as u8;
    (order, starts)
}

/// A key of the table of families.
pub fn key(bytes: &[u8], at: usize) -> Option<Span> {
    let (order, starts) = &BY_FIRST;
    let first = bytes[at] as usize;
    let rows = order[starts[first] as usize..starts[first + 1] as usize].iter().map(|&row| &KEYS[row as usize]);
    rows.filter(|k| bytes[at..].starts_with(k.prefix.as_bytes())).find_map(|k| {
        let start = at + k.prefix.len();
        let near = &bytes[start..bytes.len().min(start + LOOKED_AT)];
        let body = &near[..run(near, 0, |b| k.body.has(b))];
        // Words that hang together by dashes, or stand behind a short prefix, have neither a digit nor both cases.
        let mixed = body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
        let wordlike = matches!(k.body, Body::Url | Body::Dotted) || k.prefix.len() <= 3 && k.min < 28;
        let random = !wordlike || mixed || body.iter().any(u8::is_ascii_digit);
        (body.len() >= k.min && random && !inside_base64(bytes, at)).then(|| Span {
            start: at,
            end: aws_pair(bytes, run(bytes, start, |b| k.body.has(b)), k.family),
            family: k.family,
            guessless: true,
        })
    })
}

/// Behind an access key id the secret one stands in a table or a list: 40 characters of base64 (AWS IAM user guide).
fn aws_pair(bytes: &[u8], end: usize, family: &str) -> usize {
    if family != "aws-access-key" {
        return end;
    }
    let from = run(bytes, end, |b| matches!(b, b' ' | b'\t' | b',' | b':' | b';' | b'"' | b'\'' | b'|'));
    let secret = run(bytes, from, |b| Body::Base64.has(b));
    if (1..=6).contains(&(from - end)) && secret - from == 40 { secret } else { end }
}

/// A slash or a plus within base64 ends no word. A path has no digits and both cases in the forty bytes before it.
fn inside_base64(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(40)..at];
    matches!(before.last(), Some(b'/' | b'+'))
        && before.iter().all(|b| Body::Base64.has(*b))
        && before.iter().any(u8::is_ascii_digit)
        && before.iter().any(u8::is_ascii_uppercase)
        && before.iter().any(u8::is_ascii_lowercase)
}

/// RFC 7519: three base64url parts, of which the first two begin as `{"` does.
pub fn jwt(bytes: &[u8], at: usize) -> Option<Span> {
    if !bytes[at..].starts_with(b"eyJ") {
        return None;
    }
    let part = |from: usize| run(bytes, from, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let near = &bytes[..bytes.len().min(at + LOOKED_AT)];
    let first = run(near, at, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if first - at < 12 || bytes.get(first) != Some(&b'.') || !bytes[first + 1..].starts_with(b"eyJ") {
        return None;
    }
    let second = part(first + 1);
    let end = if bytes.get(second) == Some(&b'.') { part(second + 1) } else { second };
    Some(Span { start: at, end, family: "jwt", guessless: true })
}

/// RFC 7468: from the begin line to the end line, also where a JSON escape stands for the line's end; without an end
/// line, all that follows.
pub fn pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY")?;
    let close = find(&bytes[at + PEM.len()..], b"-----END ").map(|i| at + PEM.len() + i + 9);
    let end = close.map_or(bytes.len(), |i| {
        let dashes = find(&bytes[i..bytes.len().min(i + 64)], b"-----");
        // Not in the middle of a word, which may be a key.
        dashes.map_or_else(|| run(bytes, bytes.len().min(i + 32), |b| Body::Url.has(b)), |d| i + d + 5)
    });
    Some(Span { start: at, end: boundary(bytes, end), family: "private-key", guessless: true })
}

/// The end of a private key whose beginning was cut off (`tail key.pem`): the lines of base64 before it.
pub fn cut_pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY")?;
    let far = at.saturating_sub(16 << 10);
    let line = |b: &u8| Body::Base64.has(*b) || matches!(b, b'\n' | b'\r' | b'\\');
    let start = bytes[far..at].iter().rposition(|b| !line(b)).map_or(far, |i| far + i + 1);
    let end = find(&label[9..], b"-----").map(|i| at + 9 + i + 5)?;
    Some(Span { start: boundary(bytes, start), end: boundary(bytes, end), family: "private-key", guessless: false })
}

/// Where a private key's block ends that began before this text does.
pub fn end_of_cut_block(text: &str) -> Option<usize> {
    let end = text.find("-----END ").filter(|&i| text[i..].get(..64).unwrap_or(&text[i..]).contains("PRIVATE KEY"))?;
    let begins = text[..end].contains(PEM);
    let close = end + 9 + text[end + 9..].find("-----")? + 5;
    (!begins).then_some(close)
}

/// `scheme://user:password@host`: the password alone goes; a user without one that looks random is a token. The address
/// of a webhook is a secret by itself (Slack, Discord, Telegram).
pub fn url_password(bytes: &[u8], at: usize) -> Option<Span> {
    let from = at + 3;
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let span = |start, end, family| Some(Span { start, end, family, guessless: false });
    if let Some(hook) = HOOKS.iter().find(|hook| near[from.min(near.len())..].starts_with(hook.as_bytes())) {
        let start = from + hook.len();
        let end = run(near, start, |b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b':'));
        return if end - start >= 20 { span(start, end, "webhook") } else { None };
    }
    let stop = run(near, from, |b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>'));
    let authority = &bytes[from..stop];
    let sign = authority.iter().rposition(|&b| b == b'@')?;
    let Some(colon) = authority[..sign].iter().position(|&b| b == b':') else {
        return if looks_random(&authority[..sign]) { span(from, from + sign, "url-password") } else { None };
    };
    let password = &authority[colon + 1..sign];
    if password.is_empty() || is_variable(password) { None } else { span(from + colon + 1, from + sign, "url-password") }
}

/// What stands before the secret part of a webhook's address.
const HOOKS: [&str; 5] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "api.telegram.org/bot",
];
