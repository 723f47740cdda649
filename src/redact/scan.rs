//! Finds secrets in a text in one pass: a table of byte pairs says where a matcher is worth calling.
//!
//! No regex and no allocation but for what is found. Measured in ADR/0008.

use super::families::{HEADERS, KEYS, PASSWORD_NAMES, SECRET_NAMES};
use super::options;

/// Bytes `start..end` of the scanned text, to be replaced by a mark. Never empty, on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
    pub family: &'static str,
}

const PEM: &str = "-----BEGIN ";
const PRIVATE: &str = "<private>";
/// Literals with a matcher of their own.
const SPECIAL: &[&str] = &[PEM, PRIVATE, "://", "eyJ", " -"];

/// One bit for each pair of bytes that begins something: keys as they are written, names in either case.
static PAIRS: [u64; 1024] = pairs();

/// Rows of `KEYS`, ordered by their first byte, and where each byte's rows begin.
static BY_FIRST: ([u8; KEYS.len()], [u8; 257]) = by_first();

const fn pairs() -> [u64; 1024] {
    let mut bits = [0; 1024];
    let mut i = 0;
    while i < KEYS.len() {
        let key = KEYS[i].prefix.as_bytes();
        bits = with(bits, key[0], key[1]);
        i += 1;
    }
    let lists = [PASSWORD_NAMES, SECRET_NAMES, HEADERS, SPECIAL];
    let mut list = 0;
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            let name = lists[list][i].as_bytes();
            let (a, b) = ([name[0], name[0].to_ascii_uppercase()], [name[1], name[1].to_ascii_uppercase()]);
            bits = with(with(with(with(bits, a[0], b[0]), a[0], b[1]), a[1], b[0]), a[1], b[1]);
            i += 1;
        }
        list += 1;
    }
    bits
}

const fn with(mut bits: [u64; 1024], a: u8, b: u8) -> [u64; 1024] {
    let at = pair(a, b);
    bits[at >> 6] |= 1 << (at & 63);
    bits
}

const fn pair(a: u8, b: u8) -> usize {
    (a as usize) << 8 | b as usize
}

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

/// Returns the secrets in `text`, in order, none overlapping.
pub fn scan(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at + 1 < bytes.len() {
        let bit = pair(bytes[at], bytes[at + 1]);
        if PAIRS[bit >> 6] >> (bit & 63) & 1 == 0 {
            at += 1;
            continue;
        }
        match at_literal(bytes, at) {
            Some(span) if span.end > span.start => {
                at = span.end;
                found.push(span);
            }
            _ => at += 1,
        }
    }
    found
}

fn at_literal(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let begins_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    if begins_word && let Some(span) = key(bytes, at).or_else(|| jwt(bytes, at)).or_else(|| header(bytes, at)) {
        return Some(span);
    }
    if rest.starts_with(PEM.as_bytes()) {
        return pem(bytes, at);
    }
    if rest.starts_with(PRIVATE.as_bytes()) {
        let end = find(rest, b"</private>").map_or(bytes.len(), |i| at + i + b"</private>".len());
        return Some(Span { start: at, end, family: "private" });
    }
    if rest.starts_with(b" -") {
        return options::password(bytes, at);
    }
    if rest.starts_with(b"://") {
        return url_password(bytes, at);
    }
    assignment(bytes, at)
}

fn key(bytes: &[u8], at: usize) -> Option<Span> {
    let (order, starts) = &BY_FIRST;
    let first = bytes[at] as usize;
    let rows = order[starts[first] as usize..starts[first + 1] as usize].iter().map(|&row| &KEYS[row as usize]);
    rows.filter(|k| bytes[at..].starts_with(k.prefix.as_bytes())).find_map(|k| {
        let start = at + k.prefix.len();
        let end = run(bytes, start, |b| k.body.has(b));
        let body = &bytes[start..end];
        // Words that hang together by dashes have neither a digit nor both cases.
        let mixed = body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
        (body.len() >= k.min && (mixed || body.iter().any(u8::is_ascii_digit))).then_some(Span {
            start: at,
            end,
            family: k.family,
        })
    })
}

/// RFC 7519: three base64url parts, of which the first two begin as `{"` does.
fn jwt(bytes: &[u8], at: usize) -> Option<Span> {
    if !bytes[at..].starts_with(b"eyJ") {
        return None;
    }
    let part = |from: usize| run(bytes, from, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let first = part(at);
    if first - at < 12 || bytes.get(first) != Some(&b'.') || !bytes[first + 1..].starts_with(b"eyJ") {
        return None;
    }
    let second = part(first + 1);
    let end = if bytes.get(second) == Some(&b'.') { part(second + 1) } else { second };
    Some(Span { start: at, end, family: "jwt" })
}

/// RFC 7468: from the begin line to the end line, also where a JSON escape stands for the line's end; without an end
/// line, all that follows.
fn pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY")?;
    let close = find(&bytes[at + PEM.len()..], b"-----END ").map(|i| at + PEM.len() + i + 9);
    let end = close.map_or(bytes.len(), |i| {
        let dashes = find(&bytes[i..bytes.len().min(i + 64)], b"-----");
        dashes.map_or(bytes.len().min(i + 32), |d| i + d + 5)
    });
    Some(Span { start: at, end: boundary(bytes, end), family: "private-key" })
}

/// `scheme://user:password@host`: the password alone goes.
fn url_password(bytes: &[u8], at: usize) -> Option<Span> {
    let from = at + 3;
    let stop = run(bytes, from, |b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>'));
    let authority = &bytes[from..stop];
    let sign = authority.iter().rposition(|&b| b == b'@')?;
    let colon = authority[..sign].iter().position(|&b| b == b':')?;
    let password = &authority[colon + 1..sign];
    let variable = password.first().is_some_and(|b| matches!(b, b'$' | b'{' | b'%' | b'*'));
    (!password.is_empty() && !variable).then_some(Span { start: from + colon + 1, end: from + sign, family: "url-password" })
}

/// Schemes of `Authorization`, in lower case (IANA HTTP Authentication Scheme Registry, and AWS's own).
const SCHEMES: &[&str] = &["bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate ", "aws4-hmac-sha256 "];

/// `Authorization: …` to the end of the line or of the quoted string. Prose about cookies has no `=`, and prose about
/// authorization neither a scheme nor a single word with a digit.
fn header(bytes: &[u8], at: usize) -> Option<Span> {
    let name = HEADERS.iter().find(|name| starts_with_folded(&bytes[at..], name))?;
    let mut from = at + name.len();
    from = run(bytes, from, |b| matches!(b, b'"' | b'\'' | b' '));
    if !matches!(bytes.get(from)?, b':' | b'=') {
        return None;
    }
    from = run(bytes, from + 1, |b| matches!(b, b' ' | b'"' | b'\''));
    let end = run(bytes, from, |b| !matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'`'));
    let value = &bytes[from..end];
    let variable = value.contains(&b'$') || value.contains(&b'{') || value.contains(&b'(');
    let one_word = !value.contains(&b' ') && value.iter().any(u8::is_ascii_digit);
    let header = match *name {
        "cookie" => value.contains(&b'='),
        _ => one_word || SCHEMES.iter().any(|scheme| starts_with_folded(value, scheme)),
    };
    (value.len() >= 8 && header && !variable).then_some(Span { start: from, end: boundary(bytes, end), family: "header" })
}

/// `name = value` in the forms that shells, code, JSON, YAML and INI have, where the name holds one of ours.
fn assignment(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let password = PASSWORD_NAMES.iter().find(|n| starts_with_folded(rest, n));
    let name = password.or_else(|| SECRET_NAMES.iter().find(|n| starts_with_folded(rest, n)))?;
    let after = at + name.len();
    // `tokenize` is another word; `tokenSecret` and `TOKEN_2` are not.
    let goes_on = |b: &u8| b.is_ascii_alphabetic() && b.is_ascii_uppercase() == bytes[after - 1].is_ascii_uppercase();
    if bytes.get(after).is_some_and(goes_on) {
        return None;
    }
    let mut from = run(bytes, after, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    from = run(bytes, from, |b| matches!(b, b'"' | b'\'' | b'\\' | b' ' | b']'));
    if !matches!(bytes.get(from)?, b':' | b'=') {
        return None;
    }
    from = run(bytes, from, |b| matches!(b, b':' | b'=' | b'>' | b' ' | b'\t' | b'\\'));
    let quoted = matches!(bytes.get(from)?, b'"' | b'\'' | b'`');
    from += usize::from(quoted);
    let end = run(bytes, from, |b| {
        !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'}' | b']' | b'\\' | b'<')
    });
    let value = &bytes[from..end];
    // DB_PASSWORD=swordfish: a shell's assignment holds a value, where code would hold a name.
    let shell = bytes[at].is_ascii_uppercase() && bytes[from - 1 - usize::from(quoted)] == b'=';
    let secret = if password.is_some() { looks_chosen(value, shell) } else { looks_random(value) };
    secret.then_some(Span { start: from, end: boundary(bytes, end), family: "assigned-secret" })
}

/// What people write where a password would stand.
const PLACEHOLDERS: [&[u8]; 8] =
    [b"password", b"changeme", b"example", b"secret", b"string", b"prompt", b"required", b"undefined"];

/// A password that a person chose: letters with digits or marks, and not a variable, a call, a type or a placeholder.
fn looks_chosen(value: &[u8], shell: bool) -> bool {
    let code = |b: &u8| matches!(b, b'(' | b'[' | b'{' | b'$' | b'|' | b'%');
    let mixed = value.iter().any(|b| !b.is_ascii_alphabetic() && !matches!(b, b'_' | b'.' | b'-' | b':' | b'/' | b'*'));
    let plain = shell && value.iter().any(u8::is_ascii_alphabetic);
    let placeholder = PLACEHOLDERS.iter().any(|p| value.eq_ignore_ascii_case(p));
    (6..=128).contains(&value.len())
        && !placeholder
        && !value.iter().any(code)
        && (plain || mixed && value.iter().any(u8::is_ascii_alphabetic))
}

/// At least 16 characters of a key's alphabet, letters and digits mixed, with 3 bits of entropy a character or more:
/// names in code have no digits or repeat themselves.
fn looks_random(value: &[u8]) -> bool {
    let alphabet = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-' | b'=' | b'.' | b'~');
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let both_cases = value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    (16..=512).contains(&value.len())
        && value.iter().all(alphabet)
        && (digits >= 2 || digits == 1 && both_cases && value.len() >= 20)
        && letters >= 2
        && entropy(value) >= 3.0
}

/// Shannon entropy in bits a byte.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for &b in value {
        counts[b as usize] += 1;
    }
    let n = value.len() as f64;
    counts.iter().filter(|&&c| c > 0).map(|&c| f64::from(c) / n).map(|p| -p * p.log2()).sum()
}

/// The end of a run of bytes that begins at `from`.
pub fn run(bytes: &[u8], from: usize, while_: impl Fn(u8) -> bool) -> usize {
    bytes[from.min(bytes.len())..].iter().position(|&b| !while_(b)).map_or(bytes.len(), |i| from + i)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

fn starts_with_folded(bytes: &[u8], name: &str) -> bool {
    bytes.len() >= name.len() && bytes[..name.len()].eq_ignore_ascii_case(name.as_bytes())
}

/// Moves on to the next place that isn't inside a UTF-8 character.
fn boundary(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::families::Body;
    use proptest::prelude::*;

    fn families(text: &str) -> Vec<&'static str> {
        scan(text).iter().map(|s| s.family).collect()
    }

    #[test]
    fn every_key_family_is_found_and_only_the_key_goes() {
        for k in KEYS {
            let alphabet = match k.body {
                Body::Hex => "0123456789abcdef",
                Body::Upper => "A1B2C3D4E5F6G7H8",
                Body::LowerAlnum => "a1b2c3d4e5f6g7h8",
                _ => "a1B2c3D4e5F6g7H8",
            };
            let body = alphabet.repeat(8)[..k.min].to_string();
            let text = format!("x={}{} y", k.prefix, body);
            let spans = scan(&text);
            assert_eq!(spans.len(), 1, "{text}");
            assert_eq!(&text[spans[0].start..spans[0].end], format!("{}{}", k.prefix, body));
        }
    }

    #[test]
    fn secrets_in_the_forms_that_people_write_them() {
        for (text, family) in [
            ("export DB_PASSWORD=hunter2!", "assigned-secret"),
            ("MYSQL_PASSWORD='swordfish' mysqldump", "assigned-secret"),
            (concat!("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/", "bPxRfiCYzEXAMPLEKEY"), "assigned-secret"),
            ("{\"client_secret\": \"9f8a7b6c5d4e3f2a1b0c\"}", "assigned-secret"),
            ("{\\\"api_key\\\": \\\"9f8a7b6c5d4e3f2a1b0c\\\"}", "assigned-secret"),
            ("auth_token: 'Zm9vYmFyYmF6MTIz'", "assigned-secret"),
            ("postgres://app:s3cr3t@db:5432/x", "url-password"),
            ("curl -H 'Authorization: Bearer abcdef123456'", "header"),
            ("\"Cookie\": \"session=abcdef123456\"", "header"),
            ("<private>my notes</private>", "private"),
            (concat!("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"), "jwt"),
            (concat!("-----BEGIN ", "RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"), "private-key"),
            (concat!("-----BEGIN ", "PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----"), "private-key"),
            (concat!("-----BEGIN ", "OPENSSH PRIVATE KEY-----\nb3Blb"), "private-key"),
        ] {
            assert_eq!(families(text), [family], "{text}");
        }
    }

    #[test]
    fn code_hashes_and_placeholders_stay() {
        for text in [
            "let token = parser.next_token();",
            "password: String,",
            "if password == expected_password {",
            "secret = os.environ['CLIENT_SECRET']",
            "API_KEY=$OTHER_KEY",
            "DB_PASSWORD=changeme",
            "PGPASSWORD=${PG_PASSWORD}",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "id: 123e4567-e89b-12d3-a456-426614174000",
            "https://example.org/a:b@c",
            "Authorization: Bearer $TOKEN",
            "tokens: 12345",
            "pNew->x1.xTokenize = fts5VtoV2Tokenize;",
            "the cookie: a short history",
            "integrity sha512-abc123/DEF456+ghi789==",
            "task-force-with-lease-1234567890-abcdefghij",
            "-----BEGIN CERTIFICATE-----",
            "password_reset_token_expires_at: DateTime",
        ] {
            assert_eq!(families(text), [] as [&str; 0], "{text}");
        }
    }

    proptest! {
        #[test]
        fn spans_are_in_order_on_boundaries_and_never_panic(text in "(\\PC|password=|://|eyJ|<private>|-----BEGIN ){0,40}") {
            let mut end = 0;
            for span in scan(&text) {
                prop_assert!(span.start >= end && span.end > span.start && span.end <= text.len());
                prop_assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
                end = span.end;
            }
        }
    }
}
