//! Values that stand behind a telling name: `Authorization: …`, `DB_PASSWORD=…`, `"client_secret": "…"`.
//!
//! Code is full of such names with no secret behind them, so the value decides: it must look chosen or random, and not be
//! a variable, a call, a type or a placeholder.

use super::families::{HEADERS, PASSWORD_NAMES, SECRET_NAMES};
use super::scan::{LOOKED_AT, Span, boundary, run, starts_with_folded};

/// Schemes of `Authorization`, in lower case (IANA HTTP Authentication Scheme Registry, and AWS's own).
const SCHEMES: &[&str] = &["bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate ", "aws4-hmac-sha256 "];

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
    from = run(bytes, from + 1, |b| matches!(b, b' ' | b'"' | b'\''));
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

/// `name = value` in the forms that shells, code, JSON, YAML and INI have, where the name holds one of ours.
pub fn assignment(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let password = PASSWORD_NAMES.iter().find(|n| starts_with_folded(rest, n));
    let name = password.or_else(|| SECRET_NAMES.iter().find(|n| starts_with_folded(rest, n)))?;
    let after = at + name.len();
    // `tokenize` is another word; `tokenSecret` and `TOKEN_2` are not.
    let goes_on = |b: &u8| b.is_ascii_alphabetic() && b.is_ascii_uppercase() == bytes[after - 1].is_ascii_uppercase();
    if bytes.get(after).is_some_and(goes_on) {
        return None;
    }
    let name_end = run(bytes, after, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let mut from = run(bytes, name_end, |b| matches!(b, b'"' | b'\'' | b'\\' | b' ' | b']'));
    if !matches!(bytes.get(from)?, b':' | b'=') {
        return None;
    }
    from = run(bytes, from, |b| matches!(b, b':' | b'=' | b'>' | b' ' | b'\t' | b'\\'));
    let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\'' | b'`'));
    // `getpass('Password: ')`: the quote ends a string that began before the name.
    if quote.is_some_and(|quote| !bytes[name_end..from].contains(&quote) && at > 0 && bytes[at - 1] == quote) {
        return None;
    }
    // DB_PASSWORD=swordfish: a shell's assignment holds a value, where code would hold a name.
    let shell = bytes[at].is_ascii_uppercase() && bytes[from - 1] == b'=';
    from += usize::from(quote.is_some());
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let end = match quote {
        Some(quote) => run(near, from, |b| b != quote && b != b'\n' && b != b'\\'),
        None => run(near, from, |b| {
            !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'}' | b']' | b'\\' | b'<')
        }),
    };
    let value = &bytes[from..end];
    let is_path = matches!(value.first(), Some(b'/' | b'~' | b'.'));
    let secret = match password {
        Some(&"pwd") if is_path => false,
        Some(_) => looks_chosen(value, shell, quote.is_some()),
        None => looks_random(value),
    };
    (secret && !is_variable(value)).then_some(Span {
        start: from,
        end: boundary(bytes, end),
        family: "assigned-secret",
        guessless: password.is_none(),
    })
}

/// What people write where a password would stand.
const PLACEHOLDERS: [&[u8]; 8] =
    [b"password", b"changeme", b"example", b"secret", b"string", b"prompt", b"required", b"undefined"];

/// `$NAME`, `${…}`, `$(…)`, `{…}`, `%s`, `<…>`, `***`: a place for a value, not the value.
pub fn is_variable(value: &[u8]) -> bool {
    let name = |rest: &[u8]| {
        rest.iter().all(|b| b.is_ascii_uppercase() || *b == b'_') || rest.iter().all(|b| b.is_ascii_lowercase() || *b == b'_')
    };
    let numbered = |rest: &[u8]| rest.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    match value {
        [b'$', rest @ ..] => rest.starts_with(b"{") || rest.starts_with(b"(") || name(rest) || numbered(rest),
        [b'{', .., b'}'] | [b'<', .., b'>'] | [b'%', _] => true,
        _ => is_mark(value) || value.iter().all(|b| matches!(b, b'*' | b'.' | b'x' | b'X')),
    }
}

/// A mark of ours and nothing else: text that waited in the spool is cleaned again.
pub fn is_mark(value: &[u8]) -> bool {
    let inside = value.strip_prefix(b"[redacted:").map(|rest| rest.strip_suffix(b"]").unwrap_or(rest));
    inside.is_some_and(|name| {
        name.len() < 40 && name.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'#'))
    })
}

/// A password that a person chose: letters with digits or marks, and not a call, a type or a placeholder. In a quoted
/// string every character is one of the password's own.
fn looks_chosen(value: &[u8], shell: bool, quoted: bool) -> bool {
    let code = |b: &u8| matches!(b, b'(' | b'[' | b'{' | b'$' | b'|' | b'%');
    let plain = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'-' | b':' | b'/' | b'*' | b' ');
    let placeholder = PLACEHOLDERS.iter().any(|p| value.eq_ignore_ascii_case(p));
    let mixed = !value.iter().all(plain) && value.iter().any(u8::is_ascii_alphabetic);
    (6..=128).contains(&value.len()) && !placeholder && (quoted || !value.iter().any(code)) && (shell || mixed)
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
