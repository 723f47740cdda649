//! Classifies a value: a variable, a mark, a password that a person chose, or something random.

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

/// A value that was set on purpose: eight characters or more, letters and digits, no path and no address.
pub fn looks_set(value: &[u8]) -> bool {
    (8..=512).contains(&value.len())
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && !value.iter().any(|b| matches!(b, b'/' | b'$' | b'(' | b'{' | b'%'))
}

/// A password that a person chose: letters with digits or marks, and not a call, a type or a placeholder. In a quoted
/// string every character is one of the password's own.
pub fn looks_chosen(value: &[u8], shell: bool, quoted: bool) -> bool {
    let code = |b: &u8| matches!(b, b'(' | b'[' | b'{' | b'$' | b'|' | b'%');
    let plain = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'-' | b':' | b'/' | b'*' | b' ');
    let placeholder = PLACEHOLDERS.iter().any(|p| value.eq_ignore_ascii_case(p));
    let number = quoted && value.iter().all(u8::is_ascii_digit);
    let mixed = number || !value.iter().all(plain) && value.iter().any(u8::is_ascii_alphabetic);
    (6..=128).contains(&value.len()) && !placeholder && (quoted || !value.iter().any(code)) && (shell || mixed)
}

/// At least 16 characters of a key's alphabet, letters and digits mixed, with 3 bits of entropy a character or more:
/// names in code have no digits or repeat themselves.
pub fn looks_random(value: &[u8]) -> bool {
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
