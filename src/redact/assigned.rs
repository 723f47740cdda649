//! Finds values assigned to the name of a secret, in headers, assignments and calls.

use super::forms::{self, Form, Value, nearby};
use super::names::{Name, NameKind, TELLING, is_last, name_at};
use super::values::{
    LOOKED_AT, Span, boundary, is_hex_number, is_reference, is_short_random, is_strong_short, is_variable, is_words,
    looks_chosen, looks_random, looks_set, run, starts_with_folded,
};

/// Headers whose whole value is removed.
pub const HEADERS: &[&str] =
    &["authorization", "cookie", "x-api-key", "private-token", "document.cookie", "ocp-apim-subscription-key", "x-goog-api-key"];

/// Matches `Authorization: …` up to the end of the line or of the quoted string. Prose about cookies has no `=`, and
/// prose about authorization has no word with a digit.
pub fn header(bytes: &[u8], at: usize) -> Option<Span> {
    if !matches!(bytes[at] | 0x20, b'a' | b'c' | b'x' | b'p' | b'd' | b'o') {
        return None;
    }
    let name = HEADERS.iter().find(|name| starts_with_folded(&bytes[at..], name))?;
    let mut from = at + name.len();
    from = run(bytes, from, |b| matches!(b, b'"' | b'\'' | b' '));
    // `Header.Set("Authorization", "Token …")`, but not `if cookie == other`.
    let quoted = from > at + name.len() && matches!(bytes[at + name.len()], b'"' | b'\'');
    match bytes.get(from)? {
        b':' => {}
        b'=' if *name != "cookie" && bytes.get(from + 1) != Some(&b'=') => {}
        b',' if quoted => {}
        _ => return None,
    }
    from = run(bytes, from + 1, |b| matches!(b, b' ' | b'"' | b'\'' | b'`'));
    // A scheme with parameters in quotes extends to the end of the line, or of the string that holds the header.
    let outer = at.checked_sub(1).map(|i| bytes[i]).filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    let parameters = *name == "authorization" && has_parameters(&bytes[from..]);
    let in_value = |b| match parameters {
        true => !matches!(b, b'\n' | b'\r') && Some(b) != outer,
        false => !matches!(b, b'\n' | b'\r' | b'"' | b'\'' | b'`'),
    };
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let value = &bytes[from..run(near, from, in_value)];
    // Any scheme: one word, followed by the token.
    let blank =
        value.iter().position(|&b| b == b' ').filter(|&i| value[..i].iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-'));
    let token = &value[blank.map_or(0, |i| i + 1)..];
    let one_word = !token.contains(&b' ');
    let has_digit = token.iter().any(u8::is_ascii_digit);
    let header = match *name {
        "cookie" | "document.cookie" => is_cookie(value),
        "authorization" => one_word && has_digit || known_scheme(value),
        _ => one_word && token.len() >= 12,
    };
    (token.len() >= 8 && header && !is_variable(token)).then(|| Span {
        start: from,
        end: boundary(bytes, run(bytes, from, in_value)),
        family: "header",
        guessless: false,
    })
}

/// Whether a header's value is a cookie: `name=value`, but not `cookie: Cookie) => void`.
fn is_cookie(value: &[u8]) -> bool {
    let name = value.iter().position(|&b| !(b.is_ascii_alphanumeric() || b"!#$%&*+-.^_|~".contains(&b)));
    name.is_some_and(|end| value[end] == b'=' && value.get(end + 1).is_some_and(|b| !matches!(b, b' ' | b'=' | b'>')))
}

fn has_parameters(value: &[u8]) -> bool {
    ["digest ", "hawk ", "oauth "].iter().any(|scheme| starts_with_folded(value, scheme))
}

/// Whether a value begins with a scheme whose token may have several parts or no digit (RFC 7616, AWS's own).
fn known_scheme(value: &[u8]) -> bool {
    ["bearer ", "basic ", "digest ", "aws4-hmac-sha256 ", "negotiate ", "hawk ", "oauth "]
        .iter()
        .any(|s| starts_with_folded(value, s))
}

/// Returns the value of a name that announces a secret.
pub fn assignment(bytes: &[u8], at: usize) -> Option<Span> {
    let name = name_at(bytes, at)?;
    of_name(bytes, &name).or_else(|| nearby(bytes, &name))
}

fn of_name(bytes: &[u8], name: &Name) -> Option<Span> {
    let password = matches!(name.kind, NameKind::Password | NameKind::ShortPassword);
    let value = forms::value(bytes, name, password)?;
    let text = &bytes[value.start..value.end];
    let shell = value.form == Form::Shell;
    let quoted = value.is_quoted();
    let own = &bytes[name.start..name.end];
    let found = match name.kind {
        _ if text.is_empty() || is_variable(text) || is_code(bytes, own, &value, password) => false,
        NameKind::Password if own.ends_with(b"pwd") || own.ends_with(b"PWD") => {
            !is_path(text) && looks_chosen(text, shell, quoted)
        }
        NameKind::Password => looks_chosen(text, shell, quoted) || looks_random(text),
        // `PASS: tests/x.rs` is what test runners print; `pass: 2` counts.
        NameKind::ShortPassword => {
            (value.form != Form::Plain || own.len() > 4 || bytes.get(name.end) == Some(&b'='))
                && looks_chosen(text, shell, quoted)
        }
        // `JWT_SECRET=s3cr3t!`, but not `TOKEN_URL=https://…`.
        NameKind::Secret => looks_random(text) || is_last(own) && ((shell || quoted) && looks_set(text) || is_strong_short(text)),
        NameKind::Key => {
            !is_words(text)
                && (looks_random(text) || shell && looks_set(text) || quoted && is_short_random(text) || is_strong_short(text))
        }
    };
    let found = found && (value.form != Form::Neighbour || is_last(own) && (looks_random(text) || password || looks_set(text)));
    found.then(|| Span {
        start: value.start,
        end: boundary(bytes, value.whole_end(bytes)),
        family: "assigned-secret",
        guessless: !password && text.len() >= 16,
    })
}

/// Whether a value is code: a comment, a number, another name.
fn is_code(bytes: &[u8], own: &[u8], value: &Value, password: bool) -> bool {
    let text = &bytes[value.start..value.end];
    let ends_with = |text: &[u8], end: &[u8]| text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end);
    match value.form {
        Form::Plain => {
            let next = bytes.get(value.end);
            let in_code = text.contains(&b'.') || next.is_some_and(|b| matches!(b, b';' | b',' | b')' | b'}' | b'|' | b'['));
            let same = ends_with(text, own) || ends_with(own, text);
            let is_type = next == Some(&b';') && bytes[..value.start].ends_with(b": ");
            let is_name = in_code && is_reference(text) && (!password || same || is_type);
            text.starts_with(b"/*") || is_hex_number(text) || is_name
        }
        Form::Neighbour => is_reference(text) && TELLING.iter().any(|word| ends_with(text, word.as_bytes())),
        _ => false,
    }
}

/// Finds the password in `auth=("user", "password")`; `at` is the start of the literal.
pub fn user_and_password(bytes: &[u8], at: usize) -> Option<Span> {
    let near = &bytes[..bytes.len().min(at + 256)];
    let is_quote = |b: u8| b == b'"' || b == b'\'';
    let user = at + b"auth=(".len();
    let comma = run(near, user, |b| b != b',' && b != b')' && b != b'\n');
    let quote = run(near, comma + 1, |b| b == b' ');
    let start = quote + 1;
    let end = run(near, start, |b| !is_quote(b) && b != b'\n');
    let found = near.get(comma) == Some(&b',')
        && near.get(quote).is_some_and(|b| is_quote(*b))
        && looks_chosen(&near[start..end], false, true);
    found.then_some(Span { start, end, family: "assigned-secret", guessless: false })
}

fn is_path(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'/' | b'~' | b'.'))
}

/// Matches `Bearer …` and `Basic …` anywhere, since code assembles headers from pieces.
pub fn bearer(bytes: &[u8], at: usize) -> Option<Span> {
    let scheme = ["bearer ", "basic "].iter().find(|scheme| starts_with_folded(&bytes[at..], scheme))?;
    let from = at + scheme.len();
    let in_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=');
    let token = &bytes[from..run(&bytes[..bytes.len().min(from + LOOKED_AT)], from, in_token)];
    let mixed = token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
    let random = token.len() >= 12 && (token.iter().any(u8::is_ascii_digit) || mixed && token.len() >= 24);
    (random && !token.contains(&b'/') || looks_random(token)).then(|| Span {
        start: from,
        end: run(bytes, from, in_token),
        family: "header",
        guessless: false,
    })
}
