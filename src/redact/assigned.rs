//! Values assigned to a telling name: `Authorization: …`, `DB_PASSWORD=…`, `"client_secret": "…"`.
//!
//! Code is full of such names without a secret, so the value decides: it must look chosen or random, and must not be a
//! variable, a call, a type or a placeholder.

use super::families::{HEADERS, PASSWORD_NAMES, SECRET_NAMES, SHORT_NAMES};
use super::span::{LOOKED_AT, Span, boundary, run, starts_with_folded};
use super::values::{is_variable, looks_chosen, looks_random, looks_set};

/// Schemes of `Authorization`, in lower case (IANA HTTP Authentication Scheme Registry, and AWS's own).
const SCHEMES: &[&str] = &[
    "bearer ",
    "basic ",
    "token ",
    "digest ",
    "apikey ",
    "negotiate ",
    "aws4-hmac-sha256 ",
    "bot ",
    "ssws ",
    "geniekey ",
    "key ",
];

/// `Authorization: …` to the end of the line or of the quoted string. Prose about cookies has no `=`, and prose about
/// authorization neither a scheme nor a single word with a digit.
pub fn header(bytes: &[u8], at: usize) -> Option<Span> {
    let name = HEADERS.iter().find(|name| starts_with_folded(&bytes[at..], name))?;
    let mut from = at + name.len();
    from = run(bytes, from, |b| matches!(b, b'"' | b'\'' | b' '));
    // `if cookie == other` is no header.
    if !matches!((*name, bytes.get(from)?), (_, b':') | ("authorization" | "x-api-key" | "private-token", b'=')) {
        return None;
    }
    from = run(bytes, from + 1, |b| matches!(b, b' ' | b'"' | b'\'' | b'`'));
    let in_value = |b| !matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'`');
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let value = &bytes[from..run(near, from, in_value)];
    let scheme = SCHEMES.iter().find(|scheme| starts_with_folded(value, scheme));
    let token = &value[scheme.map_or(0, |s| s.len())..];
    let one_word = !token.contains(&b' ');
    let header = match *name {
        "cookie" => value.contains(&b'='),
        "authorization" => scheme.is_some() || one_word && token.iter().any(u8::is_ascii_digit),
        _ => one_word && token.len() >= 12,
    };
    (token.len() >= 8 && header && !is_variable(token)).then(|| Span {
        start: from,
        end: boundary(bytes, run(bytes, from, in_value)),
        family: "header",
        guessless: false,
    })
}

/// How the value behind a name is written.
struct Value {
    /// Where it begins, behind a quote.
    from: usize,
    quote: Option<u8>,
    /// `DB_PASSWORD=swordfish`: a shell's assignment holds a value, where code would hold a name.
    shell: bool,
}

/// `name = value` in the forms that shells, command lines, code, JSON, YAML, INI, SQL and XML have, where the name holds
/// one of ours.
pub fn assignment(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let short = || SHORT_NAMES.iter().find(|n| starts_with_folded(rest, n) && stands_alone(bytes, at, n.len()));
    let password = PASSWORD_NAMES.iter().find(|n| starts_with_folded(rest, n));
    let secret = || SECRET_NAMES.iter().find(|n| starts_with_folded(rest, n));
    let name = password.or_else(secret).or_else(short)?;
    let is_short = SHORT_NAMES.contains(name);
    let password = password.is_some() || is_short && !matches!(*name, "auth" | "sig");
    let after = at + name.len();
    // `tokenize` is another word; `tokenSecret` and `TOKEN_2` are not.
    let goes_on = |b: &u8| b.is_ascii_alphabetic() && b.is_ascii_uppercase() == bytes[after - 1].is_ascii_uppercase();
    if bytes.get(after).is_some_and(goes_on) {
        return None;
    }
    let name_end = run(bytes, after, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let Value { from, quote, shell } = value(bytes, at, name_end, password && !is_short)?;
    let written = shell || quote.is_some() || bytes[name_end] == b'=' || password && at > 0 && bytes[at - 1] == b'_';
    // `PASS: tests/x.rs` is what test runners print.
    if is_short && !written {
        return None;
    }
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let end = match quote {
        Some(quote) => run(near, from, |b| b != quote && b != b'\n' && b != b'\\'),
        None if shell => {
            run(near, from, |b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b';' | b'&' | b'|' | b')'))
        }
        None => run(near, from, |b| {
            !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'}' | b']' | b'\\' | b'<' | b'&')
        }),
    };
    let value = &bytes[from..end];
    let is_path = matches!(value.first(), Some(b'/' | b'~' | b'.'));
    let found = match (password, *name) {
        (true, "pwd") if is_path => false,
        (true, _) => looks_chosen(value, shell, quote.is_some()),
        // `JWT_SECRET=s3cr3t!`, but not `TOKEN_URL=https://…`.
        (false, _) => looks_random(value) || shell && after == name_end && looks_set(value),
    };
    (found && !is_variable(value)).then_some(Span {
        start: from,
        end: boundary(bytes, end),
        family: "assigned-secret",
        guessless: !password && value.len() >= 16,
    })
}

/// A short name must be a word of its own, or one behind an underscore: `compass` holds no `pass`.
fn stands_alone(bytes: &[u8], at: usize, length: usize) -> bool {
    let before = at.checked_sub(1).is_none_or(|i| !bytes[i].is_ascii_alphanumeric());
    before && bytes.get(at + length).is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_')
}

/// Where the value begins behind a name that ends at `name_end`; `None` where none does.
fn value(bytes: &[u8], at: usize, name_end: usize, password: bool) -> Option<Value> {
    let quoted = |from: usize, shell: bool| {
        let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\'' | b'`'));
        Some(Value { from: from + usize::from(quote.is_some()), quote, shell })
    };
    let blank = |from: usize| run(bytes, from, |b| b == b' ' || b == b'\t');
    let name_start =
        bytes[..at].iter().rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_' && *b != b'-').map_or(0, |i| i + 1);
    match bytes.get(name_end)? {
        // <password>…</password>
        b'>' if name_start > 0 && bytes[name_start - 1] == b'<' && closes(bytes, name_end + 1) => {
            return Some(Value { from: name_end + 1, quote: None, shell: false });
        }
        // `--password …`, `aws configure set aws_secret_access_key …`
        b' ' if bytes[name_start..].starts_with(b"--") || bytes[..name_start].ends_with(b"configure set ") => {
            let from = blank(name_end);
            return if bytes.get(from) == Some(&b'-') { None } else { quoted(from, false) };
        }
        // ALTER USER me PASSWORD '…', IDENTIFIED BY '…'
        b' ' if password && bytes.get(blank(name_end)) == Some(&b'\'') => return quoted(blank(name_end), false),
        _ => {}
    }
    let mut from = run(bytes, name_end, |b| matches!(b, b'"' | b'\'' | b'\\' | b' ' | b']'));
    // `- name: DB_PASSWORD⏎  value: …`, `{"name": "DB_PASSWORD", "value": "…"}`
    let bridge = run(bytes, from, |b| b.is_ascii_whitespace() || matches!(b, b',' | b'"' | b'\''));
    if bytes[bridge.min(bytes.len())..].starts_with(b"value") && bridge > from {
        from = run(bytes, bridge + 5, |b| matches!(b, b'"' | b'\'' | b' '));
    }
    if !matches!(bytes.get(from)?, b':' | b'=') {
        return None;
    }
    let delimiter = from;
    from = run(bytes, from, |b| matches!(b, b':' | b'=' | b'>' | b' ' | b'\t' | b'\\'));
    let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    // `getpass('Password: ')`: the quote ends a string that began before the name.
    if quote.is_some_and(|quote| !bytes[name_end..delimiter].contains(&quote) && at > 0 && bytes[at - 1] == quote) {
        return None;
    }
    // `nToken==other`
    if bytes[delimiter..from].starts_with(b"==") {
        return None;
    }
    quoted(from, !bytes[name_start..name_end].iter().any(u8::is_ascii_lowercase) && bytes[from - 1] == b'=')
}

/// Whether a tag is closed behind its text.
fn closes(bytes: &[u8], from: usize) -> bool {
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    near[run(near, from, |b| b != b'<' && b != b'\n')..].starts_with(b"</")
}

/// `Bearer …` and `Basic …` wherever they stand: code puts headers together from pieces.
pub fn bearer(bytes: &[u8], at: usize) -> Option<Span> {
    let scheme = ["bearer ", "basic "].iter().find(|scheme| starts_with_folded(&bytes[at..], scheme))?;
    let from = at + scheme.len();
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let end = run(near, from, |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'='));
    let token = &bytes[from..end];
    let mixed = token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
    let random = token.len() >= 12 && (token.iter().any(u8::is_ascii_digit) || mixed && token.len() >= 24);
    (random && !token.contains(&b'/') || looks_random(token)).then_some(Span {
        start: from,
        end,
        family: "header",
        guessless: false,
    })
}
