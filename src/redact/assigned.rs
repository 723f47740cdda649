//! Finds values assigned to the name of a secret, in headers, assignments and calls.

use super::families::Body;
use super::forms::{self, Form, Value};
use super::names::{Name, NameKind, TELLING, is_last};
use super::values::{
    LOOKED_AT, Span, begins, boundary, find, is_address, is_file_name, is_hex_number, is_mixed_case, is_not_code, is_reference,
    is_secret_string, is_short_random, is_strong_short, is_variable, is_version, is_words, looks_chosen, looks_generated,
    looks_random, looks_set, run, starts_with_folded,
};

/// Headers whose whole value is removed.
pub const HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "x-api-key",
    "private-token",
    "document.cookie",
    "ocp-apim-subscription-key",
    "x-goog-api-key",
    "x-hub-signature-256",
    "x-hub-signature",
];

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
    let one_word = !token.iter().any(|b| matches!(b, b' ' | b'('));
    let has_digit = token.iter().any(u8::is_ascii_digit);
    let header = match *name {
        "cookie" | "document.cookie" => is_cookie(value),
        "authorization" => one_word && has_digit || known_scheme(value) && (one_word || parameters || token.len() >= 40),
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
        && value.split(|b| matches!(b, b';' | b',')).any(|part| !is_plain_cookie(part))
}

/// Whether a part of a cookie is an attribute, or a value of words: `theme=dark`, `CUSTOMER=WILE_E_COYOTE`.
fn is_plain_cookie(part: &[u8]) -> bool {
    const ATTRIBUTES: [&str; 6] = ["expires", "path", "domain", "max-age", "samesite", "version"];
    let mut sides = part.trim_ascii().splitn(2, |b| *b == b'=');
    let (name, value) = (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
    let value = value.strip_prefix(b"\\").unwrap_or(value);
    let is_words = is_words(value) || value.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-'));
    ATTRIBUTES.iter().any(|attribute| name.eq_ignore_ascii_case(attribute.as_bytes()))
        || value.len() < 6
        || value.len() < 24 && is_words && !is_mixed_case(value)
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
pub fn of_name(bytes: &[u8], name: &Name) -> Option<Span> {
    let password = matches!(name.kind, NameKind::Password | NameKind::ShortPassword);
    let value = forms::value(bytes, name, password)?;
    let telling = password || name.kind == NameKind::Secret && is_last(&bytes[name.start..name.end]);
    let is_constant_argument = |value: &Value| bytes[value.start..value.end].strip_suffix(b")").is_some_and(is_constant);
    if telling && let Some(value) = value.through_password(bytes, name).filter(|value| !is_constant_argument(value)) {
        return Some(Span { start: value.start, end: boundary(bytes, value.end), family: "assigned-secret", guessless: false });
    }
    let text = &bytes[value.start..value.end];
    let shell = value.form == Form::Shell;
    let quoted = value.is_quoted();
    let own = &bytes[name.start..name.end];
    let found = match name.kind {
        _ if text.is_empty() || is_variable(text) || is_code(bytes, name, &value, password) => false,
        NameKind::Password if own.ends_with(b"pwd") || own.ends_with(b"PWD") => {
            !is_path(text) && looks_chosen(text, shell, quoted)
        }
        NameKind::Password => looks_chosen(text, shell, quoted) || looks_random(text),
        // `PASS: tests/x.rs` is what test runners print; `pass: 2` counts.
        NameKind::ShortPassword => {
            let equals = bytes.get(run(bytes, name.end, |b| b == b' ')) == Some(&b'=');
            (value.form != Form::Plain || own.len() > 4 || equals) && looks_chosen(text, shell, quoted)
        }
        // `JWT_SECRET=s3cr3t!`, but not `TOKEN_URL=https://…`.
        NameKind::Secret => {
            let set = (shell || quoted) && looks_set(text) || is_strong_short(text) || quoted && is_secret_string(text);
            looks_random(text)
                || is_last(own) && (set || value.form == Form::Plain && is_alone(bytes, &value) && is_short_plain(text))
        }
        NameKind::Key => {
            quoted && is_secret_string(text) && !is_words(text)
                || !is_words(text)
                    && (looks_random(text)
                        || shell && looks_set(text)
                        || quoted && is_short_random(text)
                        || is_strong_short(text))
        }
    };
    let found = found && (value.form != Form::Neighbour || is_last(own) && (looks_random(text) || password || looks_set(text)));
    found.then(|| Span {
        start: value.start,
        end: boundary(bytes, value.joined_end(bytes, value.whole_end(bytes))),
        family: "assigned-secret",
        guessless: !password && text.len() >= 16,
    })
}

/// Whether a value is code: a comment, a number, another name.
fn is_code(bytes: &[u8], name: &Name, value: &Value, password: bool) -> bool {
    let own = &bytes[name.start..name.end];
    let text = &bytes[value.start..value.end];
    let ends_with = |text: &[u8], end: &[u8]| text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end);
    let same = ends_with(text, own) || ends_with(own, text);
    // `MessageField('CloudOauth2Credentials', 1)`, `'fs.s3.materials.uri'`, `include_bytes!("test_key.bin")`
    let is_telling = TELLING.iter().any(|word| ends_with(text, word.as_bytes())) && (!password || capitals(text) >= 3);
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    let is_type = capitals(text) >= 4 && capitals(text) * 4 <= text.len() && digits <= 2;
    let is_path = text.iter().filter(|b| **b == b'.').count() >= 2;
    let is_argument = matches!(bytes.get(value.end), Some(b')' | b',')) || text.ends_with(b")");
    let is_other = is_file_name(text)
        || is_address(text)
        || is_version(text)
        || is_array_type(text)
        || find(text, b"(?").is_some()
        || is_argument && is_constant(text.strip_suffix(b")").unwrap_or(text));
    if is_other || is_reference(text) && (is_telling || !password && (same || is_path || is_type)) {
        return true;
    }
    match value.form {
        Form::Plain => {
            let next = bytes.get(value.end);
            let in_code = text.contains(&b'.') || next.is_some_and(|b| matches!(b, b';' | b',' | b')' | b'}' | b'|' | b'['));
            let is_type = next == Some(&b';') && bytes[..value.start].ends_with(b": ");
            let is_name = in_code && (same || is_reference(text) && (!password || is_type)) || is_constant(text);
            // `const KEY: Type = …`
            let after = run(bytes, value.end, |b| b == b' ');
            let is_typed = after > value.end && bytes.get(after) == Some(&b'=') && bytes[..value.start].ends_with(b": ");
            text.starts_with(b"/*") || is_hex_number(text) || is_name || is_typed
        }
        // A list of names in code, and not the arguments of a program.
        Form::Neighbour => {
            let is_option = name.start > 0 && bytes[name.start - 1] == b'-';
            let is_listed = bytes.get(name.end..value.start).is_some_and(|between| between.contains(&b'\n'));
            is_reference(text) && is_listed && !is_option
        }
        _ => false,
    }
}

/// Whether a value is the type of an array of numbers: `privateKey: Uint8Array`, `let private_key = [0u8; 32]`.
fn is_array_type(text: &[u8]) -> bool {
    const ELEMENTS: [&[u8]; 7] = [b"Uint8", b"Uint16", b"Uint32", b"Int8", b"Int16", b"Int32", b"BigUint64"];
    let element = text.strip_suffix(b"[]").unwrap_or(text).strip_suffix(b"Array");
    element.is_some_and(|element| ELEMENTS.contains(&element)) || text == b"[0u8" || text.starts_with(b"Vec<u8>")
}

/// Whether nothing follows a value in its line, or words do: `token: …` in a note, and not in code.
fn is_alone(bytes: &[u8], value: &Value) -> bool {
    let after = run(bytes, value.end, |b| b == b' ');
    bytes.get(after).is_none_or(|b| matches!(b, b'\n' | b'\r') || after > value.end && b.is_ascii_alphanumeric())
}

/// Whether a short value without quotes is more than a name or a word: letters with digits.
fn is_short_plain(text: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| text.iter().any(class);
    let is_part_of_it = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'!' | b'@' | b'#' | b'%' | b'*' | b'+');
    // `token2`, `v1beta1`
    let is_numbered = text.iter().rev().skip_while(|b| b.is_ascii_digit()).all(|b| !b.is_ascii_digit());
    let digits = text.iter().filter(|b| b.is_ascii_digit()).count();
    (8..16).contains(&text.len())
        && text.iter().all(is_part_of_it)
        && has(u8::is_ascii_alphabetic)
        && digits > 0
        && (digits >= 4 || !is_numbered)
        && !is_version(text)
        && !is_words(text)
}

fn capitals(text: &[u8]) -> usize {
    text.iter().filter(|b| b.is_ascii_uppercase()).count()
}

/// Whether a value without quotes is the name of a constant: `TEST_DATA_BASE64`.
fn is_constant(text: &[u8]) -> bool {
    let is_part = |part: &[u8]| part.first().is_some_and(u8::is_ascii_uppercase);
    text.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
        && text.contains(&b'_')
        && is_reference(text)
        && text.split(|b| *b == b'_').filter(|part| !part.is_empty()).all(is_part)
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

/// Whether a value is an app password of Google: four times four letters.
fn is_app_password(value: &[u8]) -> bool {
    value.len() == 19 && value.split(|b| *b == b' ').all(|part| part.len() == 4 && part.iter().all(u8::is_ascii_lowercase))
}

/// Calls that take a password or a key without a name. The scan stops at the second part, which is rarer than the first.
const CALLS: [(&str, &str); 25] = [
    ("", "hmac.new("),
    ("", "Wallet("),
    ("ge", "tConnection("),
    ("co", "nnect("),
    ("B", "asicAuth("),
    ("Sec", "ureString "),
    ("pgp_", "sym_encrypt("),
    ("pgp_", "sym_decrypt("),
    ("se", "rver.login("),
    ("", "smtp.login("),
    ("", "PDO("),
    ("", "WiFi.begin("),
    ("", "sp_addlogin "),
    ("", "jwt.sign("),
    ("", "jwt.verify("),
    ("", "jwt.encode("),
    ("", "jwt.decode("),
    ("St", "ripe("),
    ("Ope", "nAI("),
    ("An", "thropic("),
    ("", "Octokit("),
    ("Tel", "egramBot("),
    ("", "Fernet("),
    ("", "ldap_bind("),
    ("crea", "teHmac("),
];
/// The second parts, for the table of prefixes.
pub const CALL_LITERALS: [&str; CALLS.len()] = seconds(CALLS);

/// Returns the second parts of pairs.
pub const fn seconds<const N: usize>(pairs: [(&'static str, &'static str); N]) -> [&'static str; N] {
    let mut all = [""; N];
    let mut i = 0;
    while i < N {
        all[i] = pairs[i].1;
        i += 1;
    }
    all
}

/// Returns the strings in a call that can only be secrets; `at` is the start of the call's second part.
pub fn in_call(bytes: &[u8], at: usize) -> Vec<Span> {
    let is_here = |(first, second): &&(&str, &str)| begins(&bytes[at..], second) && bytes[..at].ends_with(first.as_bytes());
    let Some((_, call)) = CALLS.iter().find(is_here) else { return Vec::new() };
    let near = &bytes[..bytes.len().min(at + 256)];
    let end = run(near, at + call.len(), |b| b != b'\n' && b != b';');
    let is_quote = |b: u8| matches!(b, b'"' | b'\'' | b'`');
    let (mut found, mut from) = (Vec::new(), at + call.len());
    loop {
        let quote = run(&near[..end], from, |b| !is_quote(b));
        if quote >= end {
            return found;
        }
        let close = run(&near[..end], quote + 1, |b| b != near[quote]);
        let value = without_escape(&near[quote + 1..close]);
        if close < end && (is_secret_string(value) || is_app_password(value)) && !is_path(value) {
            found.push(Span { start: quote + 1, end: quote + 1 + value.len(), family: "assigned-secret", guessless: false });
        }
        from = close + 1;
    }
}

/// Returns a string without the backslash of the quote that ends it.
pub fn without_escape(value: &[u8]) -> &[u8] {
    value.strip_suffix(b"\\").unwrap_or(value)
}

/// Returns secrets that their surroundings tell: a masked value of a workflow, a line of `.pgpass` or of a file of cookies, an
/// account key of Azure, a code of OAuth, what `expect` types.
pub fn in_place(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    if !PLACES.iter().any(|place| begins(rest, place)) {
        return None;
    }
    let found = |start, end| Some(Span { start, end, family: "assigned-secret", guessless: false });
    let line = |from: usize| run(&bytes[..bytes.len().min(at + LOOKED_AT)], from, |b| !matches!(b, b'\n' | b'\r' | b'"'));
    if rest.starts_with(b"::add-mask::") {
        let start = at + 12;
        let end = line(start);
        return if end > start && !is_variable(&bytes[start..end]) { found(start, end) } else { None };
    }
    if rest.starts_with(b":5432:") || rest.starts_with(b":6432:") || rest.starts_with(b"*:*:*:") || rest.starts_with(b":*:*:") {
        let before = forms::line_before(bytes, at).rsplit(|b| *b == b'"').next().unwrap_or_default();
        let whole = [before, &bytes[at..line(at)]].concat();
        let fields: Vec<&[u8]> = whole.splitn(5, |b| *b == b':').collect();
        let [host, port, _, user, password] = fields[..] else { return None };
        let is_line = !host.contains(&b' ') && (port == b"*" || port.iter().all(u8::is_ascii_digit)) && !user.contains(&b' ');
        let end = line(at);
        return if is_line && password.len() >= 4 && !password.contains(&b' ') { found(end - password.len(), end) } else { None };
    }
    if rest.starts_with(b"\tTRUE\t") || rest.starts_with(b"\tFALSE\t") {
        let end = line(at);
        let value = bytes[at..end].rsplit(|b| *b == b'\t').next().unwrap_or_default();
        let is_row = bytes[at..end].iter().filter(|b| **b == b'\t').count() == 6;
        return if is_row && looks_random(value) { found(end - value.len(), end) } else { None };
    }
    if rest.starts_with(b"==\"") {
        let start = at - bytes[..at].iter().rev().take(90).take_while(|b| Body::Base64.has(**b)).count();
        let around = &bytes[start.saturating_sub(160)..start];
        let is_account =
            at - start == 86 && around.ends_with(b"\"") && (find(around, b"key").is_some() || find(around, b"Key").is_some());
        return if is_account { found(start, at + 2) } else { None };
    }
    if rest.starts_with(b"code=") && at > 0 && matches!(bytes[at - 1], b'&' | b'?') {
        let end = run(&bytes[..bytes.len().min(at + LOOKED_AT)], at + 5, |b| Body::Token68.has(b) && b != b'=');
        return if end - at >= 25 && looks_random(&bytes[at + 5..end]) { found(at + 5, end) } else { None };
    }
    if PRINTERS.iter().any(|command| begins(rest, command)) {
        let before = forms::line_before(bytes, at).trim_ascii();
        let next = run(bytes, line(at), |b| matches!(b, b'\n' | b'\r'));
        let end = run(&bytes[..bytes.len().min(next + 200)], next, |b| !b.is_ascii_whitespace());
        let value = &bytes[next..end];
        let is_alone = bytes.get(end).is_none_or(|b| matches!(b, b'\n' | b'\r'));
        let is_made = looks_generated(value) || is_not_code(value) || value.len() >= 16 && looks_random(value);
        return if (before.is_empty() || before.ends_with(b"$")) && is_alone && is_made { found(next, end) } else { None };
    }
    if rest.starts_with(b"send \"") {
        let end = run(&bytes[..bytes.len().min(at + 80)], at + 6, |b| !matches!(b, b'\\' | b'"' | b'\r' | b'\n'));
        return if looks_generated(&bytes[at + 6..end]) { found(at + 6, end) } else { None };
    }
    None
}

/// Commands that print a secret on the next line.
const PRINTERS: [&str; 8] = [
    "pwgen ",
    "openssl rand ",
    "pass show ",
    "bw get ",
    "lpass show ",
    "op read ",
    "gopass show ",
    "aws secretsmanager get-random",
];
/// Other literals at which [`in_place`] looks.
const SURROUNDINGS: [&str; 10] =
    ["::add-mask::", ":5432:", ":6432:", "*:*:*:", ":*:*:", "\tTRUE\t", "\tFALSE\t", "==\"", "code=", "send \""];
/// All of them, for the table of prefixes.
pub const PLACES: [&str; PRINTERS.len() + SURROUNDINGS.len()] = {
    let mut all = [""; PRINTERS.len() + SURROUNDINGS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < PRINTERS.len() { PRINTERS[i] } else { SURROUNDINGS[i - PRINTERS.len()] };
        i += 1;
    }
    all
};

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
