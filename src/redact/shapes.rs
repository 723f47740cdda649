//! Keys recognized by prefix, and secrets recognized by structure: JWTs, private keys in files, password hashes.

use super::families::{Body, KEYS};
use super::span::{LOOKED_AT, Span, boundary, find, run};
use super::values::{changes_often, looks_random};

/// Prefix of a private key.
pub const PEM: &str = "-----BEGIN ";

/// Rows of `KEYS`, ordered by their first byte, and the index of each byte's first row.
static BY_FIRST: ([u16; KEYS.len()], [u16; 257]) = by_first();

const fn by_first() -> ([u16; KEYS.len()], [u16; 257]) {
    let (mut order, mut starts) = ([0; KEYS.len()], [0; 257]);
    let (mut byte, mut at) = (0, 0);
    while byte < 256 {
        starts[byte] = at as u16;
        let mut i = 0;
        while i < KEYS.len() {
            if KEYS[i].prefix.as_bytes()[0] as usize == byte {
                order[at] = i as u16;
                at += 1;
            }
            i += 1;
        }
        byte += 1;
    }
    starts[256] = at as u16;
    (order, starts)
}

/// Matches a key from the table of families.
pub fn key(bytes: &[u8], at: usize) -> Option<Span> {
    let (order, starts) = &BY_FIRST;
    let first = bytes[at] as usize;
    let rows = order[starts[first] as usize..starts[first + 1] as usize].iter().map(|&row| &KEYS[row as usize]);
    rows.filter(|k| bytes[at..].starts_with(k.prefix.as_bytes())).find_map(|k| {
        let start = at + k.prefix.len();
        let near = &bytes[start..bytes.len().min(start + LOOKED_AT)];
        let body = &near[..run(near, 0, |b| k.body.has(b))];
        // Words joined by dashes, or following a short prefix, have neither a digit nor both cases.
        let mixed = body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
        let digit = body.iter().any(u8::is_ascii_digit);
        let random = match k.body {
            _ if k.exact => body.len() == k.min && mixed && digit && changes_often(body),
            // Identifiers and dashed words follow short prefixes too.
            Body::Url | Body::Dotted if k.prefix.len() <= 3 => looks_random(body) && changes_often(body),
            Body::Url | Body::Dotted | Body::UpperDashed => mixed || digit,
            _ => k.prefix.len() > 3 || k.min >= 28 || mixed || digit,
        };
        (body.len() >= k.min && random && !inside_base64(bytes, at)).then(|| Span {
            start: at,
            end: aws_pair(bytes, run(bytes, start, |b| k.body.has(b)), k.family),
            family: k.family,
            guessless: true,
        })
    })
}

/// Returns the end of an AWS key pair. In a table or a list, the secret key follows the access key id: 40 characters of
/// base64 (AWS IAM user guide).
fn aws_pair(bytes: &[u8], end: usize, family: &str) -> usize {
    if family != "aws-access-key" {
        return end;
    }
    let from = run(bytes, end, |b| matches!(b, b' ' | b'\t' | b',' | b':' | b';' | b'"' | b'\'' | b'|'));
    let secret = run(bytes, from, |b| Body::Base64.has(b));
    if (1..=6).contains(&(from - end)) && secret - from == 40 { secret } else { end }
}

/// Whether `at` is inside base64, where a slash or a plus does not end a word. The forty bytes before a path segment do
/// not have digits and both cases.
fn inside_base64(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(40)..at];
    matches!(before.last(), Some(b'/' | b'+'))
        && before.iter().all(|b| Body::Base64.has(*b))
        && before.iter().any(u8::is_ascii_digit)
        && before.iter().any(u8::is_ascii_uppercase)
        && before.iter().any(u8::is_ascii_lowercase)
}

/// Prefixes of a JSON object in base64: `{"`, `{ "`, `{⏎ ` and `{⏎"` with either line ending.
const OBJECTS: [&[u8]; 5] = [b"eyJ", b"eyA", b"ewog", b"ewoi", b"ew0K"];

/// Matches a JWT (RFC 7519) or a JWE (RFC 7516): base64url parts separated by dots, the first of them a JSON object.
/// The second part of a JWT is one too; a JWE has five parts, and its second part may be empty.
pub fn jwt(bytes: &[u8], at: usize) -> Option<Span> {
    let is_object = |from: usize| OBJECTS.iter().any(|object| bytes[from.min(bytes.len())..].starts_with(object));
    if !is_object(at) {
        return None;
    }
    let part = |bytes: &[u8], from: usize| run(bytes, from, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let first = part(&bytes[..bytes.len().min(at + LOOKED_AT)], at);
    if first - at < 12 || bytes.get(first) != Some(&b'.') {
        return None;
    }
    let second = part(bytes, first + 1);
    let mut end = second;
    let mut dots = 1;
    while dots < 4 && bytes.get(end) == Some(&b'.') {
        end = part(bytes, end + 1);
        dots += 1;
    }
    (is_object(first + 1) || dots == 4 && end - second > 40).then_some(Span { start: at, end, family: "jwt", guessless: true })
}

/// Matches a PEM block (RFC 7468) from the begin line to the end line, also where a JSON escape replaces the line
/// ending. Without an end line, it covers everything that follows.
pub fn pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY").or(find(label, b"OpenVPN Static key"))?;
    let close = find(&bytes[at + PEM.len()..], b"-----END ").map(|i| at + PEM.len() + i + 9);
    let end = close.map_or(bytes.len(), |i| {
        let dashes = find(&bytes[i..bytes.len().min(i + 64)], b"-----");
        // Not in the middle of a word, which may be a key.
        dashes.map_or_else(|| run(bytes, bytes.len().min(i + 32), |b| Body::Url.has(b)), |d| i + d + 5)
    });
    Some(Span { start: at, end: boundary(bytes, end), family: "private-key", guessless: true })
}

/// Matches the end of a private key whose start was cut off (`tail key.pem`), with the lines of base64 before it.
pub fn cut_pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY")?;
    let far = at.saturating_sub(16 << 10);
    let line = |b: &u8| Body::Base64.has(*b) || matches!(b, b'\n' | b'\r' | b'\\');
    let start = bytes[far..at].iter().rposition(|b| !line(b)).map_or(far, |i| far + i + 1);
    let end = find(&label[9..], b"-----").map(|i| at + 9 + i + 5)?;
    Some(Span { start: boundary(bytes, start), end: boundary(bytes, end), family: "private-key", guessless: false })
}

/// Returns the end of a private key block that began before this text.
pub fn end_of_cut_block(text: &str) -> Option<usize> {
    let end = text.find("-----END ").filter(|&i| text[i..].get(..64).unwrap_or(&text[i..]).contains("PRIVATE KEY"))?;
    let begins = text[..end].contains(PEM);
    let close = end + 9 + text[end + 9..].find("-----")? + 5;
    (!begins).then_some(close)
}

/// Matches private key files that are not PEM: PuTTY's and SSH2's (RFC 4716).
pub fn key_file(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let span = |start, end| Some(Span { start, end: boundary(bytes, end), family: "private-key", guessless: true });
    if rest.starts_with(b"Private-Lines: ") {
        let count_at = at + b"Private-Lines: ".len();
        let digits = run(bytes, count_at, |b| b.is_ascii_digit()).min(count_at + 4);
        let count: usize = std::str::from_utf8(&bytes[count_at..digits]).ok()?.parse().ok()?;
        let start = run(bytes, digits, |b| matches!(b, b'\r' | b'\n' | b'\\' | b'n'));
        let mut end = start;
        for _ in 0..count {
            end = run(bytes, run(bytes, end, |b| Body::Base64.has(b)), |b| matches!(b, b'\r' | b'\n' | b'\\'));
        }
        return if end > start { span(start, end) } else { None };
    }
    let head = &rest[..rest.len().min(64)];
    if !rest.starts_with(b"---- BEGIN ") || find(head, b"PRIVATE KEY").is_none() {
        return None;
    }
    let end = find(&rest[11..], b"---- END ").map_or(bytes.len(), |i| at + 11 + i);
    span(at, end)
}

/// Prefixes of password hashes.
const HASHES: [&str; 22] = [
    "$2a$",
    "$2b$",
    "$2y$",
    "$1$",
    "$apr1$",
    "$5$",
    "$6$",
    "$y$",
    "$7$",
    "$argon2",
    "$scrypt",
    "$pbkdf2",
    "pbkdf2_sha",
    "scrypt:",
    "bcrypt_sha256$",
    "pbkdf2:sha",
    "SCRAM-SHA-256$",
    "$krb5tgs$",
    "$9$",
    "$P$",
    "{SSHA",
    "{S",
];

/// Matches password hashes: `$2b$…`, `$6$salt$…`, `$argon2id$…`, `pbkdf2_sha256$…`, `{SSHA}…` (crypt(5), PHC string
/// format).
pub fn password_hash(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| rest.starts_with(prefix.as_bytes()));
    if !matches!(rest[0], b'$' | b'{' | b'p' | b's' | b'b' | b'S') || !starts(&HASHES) {
        return None;
    }
    let in_hash = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'$' | b'.' | b'/' | b'+' | b'=' | b',' | b'-' | b'_' | b':');
    let near = &bytes[..bytes.len().min(at + LOOKED_AT)];
    let end = match rest.starts_with(b"{") {
        true => run(near, at + find(&rest[..rest.len().min(12)], b"}")? + 1, |b| Body::Base64.has(b)),
        false => run(near, at, in_hash),
    };
    let hash = &bytes[at..end];
    let parts = hash.split(|b| *b == b'$').skip(1);
    let longest = parts.map(<[u8]>::len).max().unwrap_or(0);
    let known = match () {
        _ if starts(&["$2a$", "$2b$", "$2y$"]) => hash.len() >= 59,
        _ if starts(&["$1$", "$apr1$", "$P$"]) => longest >= 22 && hash.len() < 80,
        _ if starts(&[
            "$5$",
            "$6$",
            "$y$",
            "$7$",
            "$argon2",
            "$scrypt",
            "$pbkdf2",
            "pbkdf2_sha",
            "scrypt:",
            "bcrypt_sha256$",
            "pbkdf2:sha",
            "SCRAM-SHA-256$",
            "$krb5tgs$",
            "$9$",
        ]) =>
        {
            longest >= 31
        }
        _ if starts(&["{SSHA", "{SHA}", "{SMD5}"]) => hash.len() >= 28,
        _ => false,
    };
    known.then_some(Span { start: at, end, family: "password-hash", guessless: false })
}

/// Matches a private member of a JSON Web Key (RFC 7518): `d`, `k`, the primes and the values derived from them.
pub fn jwk_member(bytes: &[u8], at: usize) -> Option<Span> {
    let name_end = run(bytes, at + 1, |b| b.is_ascii_lowercase());
    let name = &bytes[at + 1..name_end];
    if ![&b"d"[..], b"k", b"p", b"q", b"dp", b"dq", b"qi"].contains(&name) {
        return None;
    }
    let separator = run(bytes, name_end, |b| matches!(b, b'"' | b'\\' | b' '));
    let start = run(bytes, separator, |b| matches!(b, b':' | b'"' | b'\\' | b' '));
    let end = run(&bytes[..bytes.len().min(start + LOOKED_AT)], start, |b| Body::Url.has(b));
    let around = &bytes[at.saturating_sub(2 * LOOKED_AT)..bytes.len().min(at + 2 * LOOKED_AT)];
    let found = bytes.get(separator) == Some(&b':') && end - start >= 16 && find(around, b"kty").is_some();
    found.then_some(Span { start, end, family: "private-key", guessless: true })
}
