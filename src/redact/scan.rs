//! Finds secrets in one pass over a text: a prefilter on byte pairs, then the rules that may begin at that byte.

use super::assigned::{self, CALL_LITERALS, HEADERS, PLACES};
use super::families::{Body, KEYS, PEM, cut_pem, jwk_member, jwt, key, key_file, password_hash, pem};
use super::forms::{self, INFIXES};
use super::names::{BEGINNINGS, name_at};
use super::nearby::{in_column, in_sentence, is_in_pattern, nearby};
use super::options::{self, COMMANDS};
use super::values::{Span, find, is_variable, run};

/// Text after `user:password` in the data source names of Go and Oracle.
const SOURCE_NAMES: [&[u8]; 3] = [b"@tcp(", b"@unix(", b"@/"];

/// Returns the secrets in `text`, in order, none overlapping.
///
/// A matcher may find its secret further on: `://` finds the password before an `@`, `-u` the one after a colon. The
/// text in between is scanned too: in `https://ghp_…:x@host` the user name is the secret.
pub fn scan(text: &str) -> Vec<Span> {
    let mut found = one_pass(text);
    found.extend(encoded(text, |inside| !one_pass(inside).is_empty()));
    found.extend(in_plain_copies(text));
    merged(found)
}

fn one_pass(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut found: Vec<Span> = Vec::new();
    let mut ahead: Option<Span> = None;
    let mut at = 0;
    while at + 2 < bytes.len() {
        if let Some(span) = ahead.take_if(|span| span.start <= at) {
            at = at.max(span.end);
            found.push(span);
            continue;
        }
        if !may_begin([bytes[at], bytes[at + 1], bytes[at + 2]]) {
            at += 1;
            continue;
        }
        if matches!(bytes[at], b'd' | b's') && (bytes[at..].starts_with(b"data:") || bytes[at..].starts_with(b"stringData:")) {
            found.extend(kubernetes(bytes, at));
        }
        match at_literal(bytes, at, &mut found) {
            Some(span) if span.end <= span.start => at += 1,
            Some(span) if span.start <= at => {
                // A value may come before its name.
                at = span.end.max(at + 1);
                found.push(span);
            }
            Some(span) => {
                at += 1;
                match ahead {
                    // The header `X-API-Key` is an assignment to `API-Key` as well.
                    Some(before) if before.start <= span.start && span.end <= before.end => {}
                    Some(before) if before.start <= span.start => found.push(span),
                    Some(behind) => {
                        found.push(behind);
                        ahead = Some(span);
                    }
                    None => ahead = Some(span),
                }
            }
            None => at += 1,
        }
    }
    found.extend(ahead);
    found
}

/// Returns the secrets that show only in the plain copies of lines.
fn in_plain_copies(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let may_differ = line.as_bytes().contains(&b'\\') || !line.is_ascii();
        if may_differ && let Some(plain) = PlainCopy::of(line) {
            let moved = |span: Span| Span { start: span.start + start, end: span.end + start, ..span };
            found.extend(one_pass(&plain.text).into_iter().map(|span| moved(plain.span(&span))));
        }
        start += line.len();
    }
    if let Some(added) = PlainCopy::of_added_lines(text) {
        found.extend(one_pass(&added.text).into_iter().map(|span| added.span(&span)));
    }
    found
}

/// A text as its reader sees it: without the escapes of a JSON string, and without characters that nobody sees.
struct PlainCopy {
    text: String,
    /// Bytes of `text` at which something was left out before, and the bytes left out up to there.
    shifts: Vec<(usize, usize)>,
}

impl PlainCopy {
    /// Returns `None` if it is the text itself.
    fn of(text: &str) -> Option<PlainCopy> {
        let is_unseen = |rest: &str| {
            rest.chars().next().filter(|c| matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}'))
        };
        let bytes = text.as_bytes();
        let begins = |at: usize| match bytes[at] {
            b'\\' => matches!(bytes.get(at + 1), Some(b'n' | b't' | b'r' | b'"')),
            0xC2 | 0xE2 | 0xEF => is_unseen(&text[at..]).is_some(),
            _ => false,
        };
        let first = (0..bytes.len()).find(|at| matches!(bytes[*at], b'\\' | 0xC2 | 0xE2 | 0xEF) && begins(*at))?;
        let mut copy = PlainCopy { text: String::with_capacity(text.len()), shifts: Vec::new() };
        let (mut from, mut at, mut left_out) = (0, first, 0);
        while at < bytes.len() {
            if !matches!(bytes[at], b'\\' | 0xC2 | 0xE2 | 0xEF) || !begins(at) {
                at += 1;
                continue;
            }
            copy.text.push_str(&text[from..at]);
            let (length, plain) = match bytes[at] {
                b'\\' => (
                    2,
                    [b'\n', b'\t', b'\r', b'"'][[b'n', b't', b'r', b'"'].iter().position(|b| *b == bytes[at + 1]).unwrap_or(0)]
                        as char,
                ),
                _ => (is_unseen(&text[at..]).map_or(1, char::len_utf8), '\0'),
            };
            if plain != '\0' {
                copy.text.push(plain);
            }
            left_out += length - usize::from(plain != '\0');
            copy.shifts.push((copy.text.len(), left_out));
            at += length;
            from = at;
        }
        copy.text.push_str(&text[from..]);
        Some(copy)
    }

    /// Returns the added lines of a diff without their mark; `None` if fewer than two lines are added.
    fn of_added_lines(text: &str) -> Option<PlainCopy> {
        let first = if text.starts_with('+') { 0 } else { text.find("\n+")? + 1 };
        text[first + 1..].find("\n+")?;
        let mut copy = PlainCopy { text: String::with_capacity(text.len()), shifts: Vec::new() };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if let Some(added) = line.strip_prefix('+') {
                copy.shifts.push((copy.text.len(), at + 1 - copy.text.len()));
                copy.text.push_str(added);
            }
            at += line.len();
        }
        Some(copy)
    }

    /// Returns a span of the copy as one of the text.
    fn span(&self, of_copy: &Span) -> Span {
        let place = |at: usize| {
            let before = self.shifts.partition_point(|(from, _)| *from <= at);
            at + before.checked_sub(1).map_or(0, |i| self.shifts[i].1)
        };
        Span { start: place(of_copy.start), end: place(of_copy.end - 1) + 1, ..*of_copy }
    }
}

/// Sorts spans and merges those that overlap.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last) if span.start < last.end => {
                // More than one secret, so a hash can no longer identify it.
                last.guessless &= span.end <= last.end;
                last.end = last.end.max(span.end);
            }
            _ => out.push(span),
        }
    }
    out
}

/// Length of the shortest run that is decoded, in characters.
const SHORTEST: usize = 24;

/// Maximum bytes of a run that are decoded.
const DECODED: usize = 4096;

/// Returns the runs of base64 that decode to text in which `holds_secret` finds something.
pub fn encoded(text: &str, holds_secret: impl Fn(&str) -> bool) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = SHORTEST - 1;
    // A run of this length covers one of these positions, so the others need no check.
    while at < bytes.len() {
        if !Body::Base64.has(bytes[at]) {
            at += SHORTEST;
            continue;
        }
        let floor = found.last().map_or(0, |span: &Span| span.end).max(at.saturating_sub(SHORTEST - 1));
        let start = bytes[floor..at].iter().rposition(|&b| !Body::Base64.has(b)).map_or(floor, |i| floor + i + 1);
        let end = run(bytes, at, |b| Body::Base64.has(b));
        if end - start >= SHORTEST && decoded(&bytes[start..end]).is_some_and(|inside| holds_secret(&inside)) {
            found.push(Span { start, end, family: "encoded-secret", guessless: false });
        }
        at = end + SHORTEST;
    }
    found
}

/// Returns the text inside base64; `None` if it is not all printable ASCII.
fn decoded(base64: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(base64.len().min(DECODED) * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for &b in base64.iter().take(DECODED).take_while(|b| **b != b'=') {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            let byte = (bits >> count) as u8;
            if !(byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
                return None;
            }
            out.push(char::from(byte));
        }
    }
    Some(out)
}

/// Returns the values below `data:` or `stringData:` of a Kubernetes secret; `at` is the start of that key.
pub fn kubernetes(bytes: &[u8], at: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    let colon = run(bytes, at, |b| b != b':' && b != b'\n');
    // Not `metadata:`.
    let is_key = at.checked_sub(1).is_none_or(|before| !bytes[before].is_ascii_alphanumeric());
    if !is_key || !matches!(bytes.get(colon + 1), Some(b'\n' | b'\r')) {
        return spans;
    }
    // In the same document of the file.
    let above = &bytes[at.saturating_sub(2048)..at];
    let above = above.windows(4).rposition(|four| four == b"\n---").map_or(above, |end| &above[end..]);
    let below = &bytes[at..bytes.len().min(at + 2048)];
    let below = find(below, b"\n---").map_or(below, |end| &below[..end]);
    if [above, below].iter().all(|part| find(part, b"kind: Secret").is_none()) {
        return spans;
    }
    let margin = bytes[..at].iter().rev().take_while(|b| **b == b' ').count();
    let mut line = run(bytes, at, |b| b != b'\n') + 1;
    while line < bytes.len() {
        let name = run(bytes, line, |b| b == b' ');
        let end = run(bytes, name, |b| b != b'\n');
        if name - line <= margin || name == end {
            break;
        }
        let colon = bytes[name..end].iter().position(|&b| b == b':').map(|i| name + i);
        // A block scalar's lines have no name.
        let start = colon.map_or(name, |colon| run(bytes, colon + 1, |b| matches!(b, b' ' | b'"' | b'\'')));
        let value = bytes[start.min(end)..end].trim_ascii_end();
        let value = value.strip_suffix(b"\"").or(value.strip_suffix(b"'")).unwrap_or(value);
        if value.len() >= 4 && !is_variable(value) {
            spans.push(Span { start, end: start + value.len(), family: "assigned-secret", guessless: false });
        }
        line = end + 1;
    }
    spans
}

fn at_literal(bytes: &[u8], at: usize, found: &mut Vec<Span>) -> Option<Span> {
    let rest = &bytes[at..];
    if has(&PLACE_TRIPLES, [rest[0], rest[1], rest[2]]) {
        found.extend(assigned::in_call(bytes, at));
        found.extend(options::arguments(bytes, at));
        if let Some(span) = assigned::in_place(bytes, at) {
            return Some(span);
        }
    }
    if begins_word(bytes, at)
        && let Some(span) = key(bytes, at)
            .or_else(|| jwt(bytes, at))
            .or_else(|| forms::numbered(bytes, at))
            .or_else(|| password_hash(bytes, at))
            .or_else(|| assigned::header(bytes, at))
            .or_else(|| assigned::bearer(bytes, at))
    {
        return Some(span);
    }
    match rest[0] {
        b'-' if rest.starts_with(PEM.as_bytes()) => return pem(bytes, at),
        b'-' if rest.starts_with(b"-----END ") => return cut_pem(bytes, at),
        b'-' if rest.starts_with(b"---- BEGIN") => return key_file(bytes, at),
        b'P' if rest.starts_with(b"Private-Lines: ") => return key_file(bytes, at),
        b' ' => return options::password(bytes, at),
        b':' if rest.starts_with(b"://") => return options::url_password(bytes, at),
        b'@' if SOURCE_NAMES.iter().any(|name| rest.starts_with(name)) => return options::source_name(bytes, at),
        b't' if rest.starts_with(b"thin:") => return options::oracle(bytes, at),
        b's' if rest.starts_with(b"sqlplus ") => return options::oracle(bytes, at),
        b'c' if rest.starts_with(b"chpasswd") => return options::chpasswd(bytes, at),
        b'"' => return jwk_member(bytes, at),
        b'.' | b'Q' | b':' => return forms::key(bytes, at),
        b'_' if rest.starts_with(b"_mmk") => return forms::key(bytes, at),
        b'0'..=b'9' if rest.get(1) == Some(&b'|') => return forms::key(bytes, at),
        b'-' if rest.starts_with(b"-us") => return forms::key(bytes, at),
        _ => {}
    }
    if rest.starts_with(b"auth=(")
        && let Some(span) = assigned::user_and_password(bytes, at)
    {
        return Some(span);
    }
    let name = name_at(bytes, at)?;
    // The last part of a path before a query, or a badge's public token: `/login?client_id=…`, `badge.svg?token=…`.
    if bytes.get(name.end) == Some(&b'?') && bytes.get(name.end + 1).is_some_and(u8::is_ascii_alphabetic)
        || bytes[..name.start].ends_with(b"badge.svg?")
    {
        return None;
    }
    found.extend(in_column(bytes, &name));
    found.extend(in_sentence(bytes, &name));
    if is_in_pattern(bytes, &name) {
        return None;
    }
    assigned::of_name(bytes, &name).or_else(|| nearby(bytes, &name))
}

/// Whether a word begins at `at`: the byte before it is not a letter or digit, or it is the letter of an escape. Tool
/// input is JSON, where a line ending is `\n`.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).map(|i| bytes[i]);
    match before(1) {
        Some(b'n' | b'r' | b't' | b'b' | b'f') if before(2) == Some(b'\\') => true,
        // A colour that source code spells out: `\\033[1;31m`.
        Some(b'm') if colour_ends(&bytes[..at]) => true,
        // %3D and \u003d
        Some(b) if b.is_ascii_hexdigit() => before(3) == Some(b'%') || before(6) == Some(b'\\') && before(5) == Some(b'u'),
        Some(b) => !b.is_ascii_alphanumeric(),
        None => true,
    }
}

fn colour_ends(before: &[u8]) -> bool {
    let digits = before[..before.len() - 1].iter().rev().take(12).take_while(|b| b.is_ascii_digit() || **b == b';').count();
    before.len().checked_sub(digits + 2).is_some_and(|i| before[i] == b'[')
}

/// Literals with their own matcher; `?` matches any byte of a word.
const SPECIAL: &[&str] = &[
    PEM,
    "-----END ",
    "---- BEGIN",
    "Private-Lines: ",
    "://",
    "eyJ",
    "eyA",
    "ewo",
    "ew0",
    " -?",
    "bearer ",
    "basic ",
    "$2a",
    "$2b",
    "$2y",
    "$1$",
    "$5$",
    "$6$",
    "$7$",
    "$y$",
    "$ar",
    "$ap",
    "$sc",
    "$pb",
    "pbkdf2_",
    "scrypt:",
    "bcrypt_",
    "{SS",
    "{SH",
    "{SM",
    "\"d\"",
    "\"k\"",
    "\"p\"",
    "\"q\"",
    "\"dp",
    "\"dq",
    "\"qi",
    "@tcp(",
    "@unix(",
    "@/?",
    "pbkdf2:",
    "SCRAM-SHA",
    "$P$",
    "$9$",
    "$krb",
    "thin:",
    "sqlplus ",
    "chpasswd",
    "AUTH ",
    "data:",
    "stringData:",
    "1/0",
    "1/1",
    "1/2",
    "1/3",
    "1/4",
    "1/5",
    "1/6",
    "1/7",
    "1/8",
    "1/9",
    "0.?",
    "auth=(",
    " /p?",
    " /us",
];

/// First three characters of a number in base64, one set per position (Discord tokens).
const NUMBER: [&[u8]; 3] = [b"MNO", b"DTjz", b"AEIMQUYcgk"];

/// One bit per hash of a three-byte prefix: keys as they are written, the rest in either case.
static TRIPLES: [u64; 512] = triples();
/// The same for what is found by its surroundings.
static PLACE_TRIPLES: [u64; 512] = with_all([0; 512], &PLACE_LISTS, false);
const PLACE_LISTS: [&[&str]; 3] = [&COMMANDS, &CALL_LITERALS, &PLACES];

const fn triples() -> [u64; 512] {
    let mut bits = [0; 512];
    let mut i = 0;
    while i < KEYS.len() {
        bits = with_literal(bits, KEYS[i].prefix.as_bytes(), false);
        i += 1;
    }
    bits = with_all(bits, &[&BEGINNINGS, HEADERS, SPECIAL, &INFIXES], true);
    bits = with_all(bits, &PLACE_LISTS, false);
    let mut i = 0;
    while i < 10 * 4 * 3 {
        bits = with(bits, [NUMBER[0][i % 3], NUMBER[1][i / 3 % 4], NUMBER[2][i / 12]]);
        i += 1;
    }
    bits
}

/// Adds the literals of some lists.
const fn with_all(mut bits: [u64; 512], lists: &[&[&str]], folded: bool) -> [u64; 512] {
    let mut list = 0;
    while list < lists.len() {
        let mut i = 0;
        while i < lists[list].len() {
            bits = with_literal(bits, lists[list][i].as_bytes(), folded);
            i += 1;
        }
        list += 1;
    }
    bits
}

/// Bytes that may follow a two-byte literal.
const BEHIND: &[u8; 75] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:\"' .~/\\]>";

/// Adds the first three bytes of a literal, or a two-byte literal with each byte that may follow.
const fn with_literal(mut bits: [u64; 512], literal: &[u8], folded: bool) -> [u64; 512] {
    let any = literal.len() < 3 || literal[2] == b'?';
    let mut cases = 0;
    while cases < if folded { 8 } else { 1 } {
        let mut three = [literal[0], literal[1], if any { 0 } else { literal[2] }];
        let mut i = 0;
        while i < 3 {
            if cases >> i & 1 == 1 {
                three[i] = three[i].to_ascii_uppercase();
            }
            i += 1;
        }
        let mut third = 0;
        while third < if any { BEHIND.len() } else { 1 } {
            bits = with(bits, if any { [three[0], three[1], BEHIND[third]] } else { three });
            third += 1;
        }
        cases += 1;
    }
    bits
}

/// Whether a secret may begin with these three bytes.
pub fn may_begin(three: [u8; 3]) -> bool {
    has(&TRIPLES, three)
}

fn has(table: &[u64; 512], three: [u8; 3]) -> bool {
    let bit = hash(three[0], three[1], three[2]);
    table[bit >> 6] >> (bit & 63) & 1 == 1
}

const fn with(mut bits: [u64; 512], three: [u8; 3]) -> [u64; 512] {
    let at = hash(three[0], three[1], three[2]);
    bits[at >> 6] |= 1 << (at & 63);
    bits
}

/// Returns a 15-bit hash of three bytes that keeps letters, digits and marks apart.
const fn hash(a: u8, b: u8, c: u8) -> usize {
    let mixed = (a as u32).wrapping_mul(0x9E3B) ^ (b as u32).wrapping_mul(0x61C9) << 3 ^ (c as u32).wrapping_mul(0xB5) << 7;
    (mixed ^ mixed >> 9) as usize & 0x7FFF
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn families(text: &str) -> Vec<&'static str> {
        scan(text).iter().map(|s| s.family).collect()
    }

    #[test]
    fn every_key_family_is_found_and_only_the_key_goes() {
        for k in KEYS {
            let alphabet = match k.body {
                Body::Hex => "0123456789abcdef",
                Body::Upper | Body::UpperDashed => "A1B2C3D4E5F6G7H8",
                Body::LowerAlnum => "a1b2c3d4e5f6g7h8",
                _ => "a1B2c3D4e5F6g7H8",
            };
            let body = alphabet.repeat(16)[..k.min].to_string();
            let text = format!("x={}{} y", k.prefix, body);
            let spans = scan(&text);
            assert_eq!(spans.len(), 1, "{text}");
            assert_eq!(&text[spans[0].start..spans[0].end], format!("{}{}", k.prefix, body));
        }
    }

    #[test]
    fn a_secret_is_found_behind_the_escapes_of_json_and_unseen_characters() {
        for text in [
            r#"{"command":"builder.withPassword(\"Cobalt&91159oox\")"}"#,
            r#"{"text":"env:\n  - name: API_TOKEN\n    value: UaKIISCyrzVTEAWLx9MZZq2K"}"#,
            "p\u{200b}assword: oX9vr3vQ6airT4UEQ15l",
            "-env:\n+env:\n+  - name: API_TOKEN\n+    value: UaKIISCyrzVTEAWLx9MZZq2K\n",
        ] {
            let spans = scan(text);
            assert_eq!(spans.len(), 1, "{text}");
            let secret = &text[spans[0].start..spans[0].end];
            assert!(["Cobalt&91159oox", "UaKIISCyrzVTEAWLx9MZZq2K", "oX9vr3vQ6airT4UEQ15l"].contains(&secret), "{secret}");
        }
    }

    #[test]
    fn secrets_in_the_forms_that_people_write_them() {
        for (text, family) in [
            ("export DB_PASSWORD=hunter2!", "assigned-secret"),
            ("DB_PASSWORD='pa$$w0rd!'", "assigned-secret"),
            ("PASSWORD=12345678", "assigned-secret"),
            ("\"password\":\"ab,cd9!efgh\"", "assigned-secret"),
            ("password = 'correct horse battery 9'", "assigned-secret"),
            ("postgres://app:%40dm1nS3cret@db/x", "url-password"),
            ("postgres://app:$ecr3tpw@db/x", "url-password"),
            ("X-API-Key: abcdefghijklmnopqrst", "header"),
            ("Cookie: a={b}; sid=9f8a7b6c5d", "header"),
            ("DB_PASS=hunter2!", "assigned-secret"),
            ("\"pass\": \"hunter2!\"", "assigned-secret"),
            ("db_pass: hunter2!", "assigned-secret"),
            ("JWT_SECRET=s3cr3t!x", "assigned-secret"),
            ("TOKEN=abc123def456", "assigned-secret"),
            ("AccountKey=Zm9vYmFyYmF6MTIzNDU2Nzg5MDEyMw==;Endpoint=x", "assigned-secret"),
            ("https://h/x?api_key=9f8a7b6c5d4e3f2a1b0c&x=1", "assigned-secret"),
            ("\"password\": \"12345678\"", "assigned-secret"),
            ("psql --password hunter4", "assigned-secret"),
            ("deploy --token abc123def4567890 --force", "assigned-secret"),
            ("aws configure set aws_secret_access_key abc123def4567890", "assigned-secret"),
            ("ALTER USER me PASSWORD 'hunter2!'", "assigned-secret"),
            ("GRANT ALL TO me IDENTIFIED BY 'hunter2!'", "assigned-secret"),
            ("<password>hunter2!</password>", "assigned-secret"),
            ("- name: DB_PASSWORD\n  value: hunter2!", "assigned-secret"),
            ("{\"name\":\"DB_PASSWORD\",\"value\":\"hunter2!\"}", "assigned-secret"),
            ("DB_PASSWORD=abc1,tail77", "assigned-secret"),
            ("setHeader('Authorization', 'Bearer ' + x) // Bearer 9f8a7b6c5d4e3f2a", "header"),
            ("Authorization: `Bearer 9f8a7b6c5d4e3f2a`", "header"),
            ("https://9f8a7b6c5d4e3f2a1b0c@h.example/x.git", "url-password"),
            (concat!("https://hooks.slack.com/", "services/T0123ABCD/B0123ABCD/a1B2c3D4e5F6g7H8i9J0k1L2"), "webhook"),
            ("curl -su me:hunter2 https://h", "option-password"),
            ("curl 'https://h?a=1&b=2' \\\n -u me:hunter2", "option-password"),
            (concat!("MIIEpAIBAAKCAQEA7\nQIDAQAB\n-----END ", "RSA PRIVATE KEY-----"), "private-key"),
            (concat!("AKIA", "QWERTYUIOPASDFGH,wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEYx"), "aws-access-key"),
            (concat!("line\\n", "ghp_", "x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"), "github-token"),
            (concat!("x%3D", "AKIA", "QWERTYUIOPASDFGH"), "aws-access-key"),
            (concat!("hf_", "abcdefghijklmnopqrstuvwxyzabcdefgh"), "huggingface-token"),
            ("MYSQL_PASSWORD='swordfish' mysqldump", "assigned-secret"),
            (concat!("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/", "bPxRfiCYzEXAMPLEKEY"), "assigned-secret"),
            ("{\"client_secret\": \"9f8a7b6c5d4e3f2a1b0c\"}", "assigned-secret"),
            ("{\\\"api_key\\\": \\\"9f8a7b6c5d4e3f2a1b0c\\\"}", "assigned-secret"),
            ("auth_token: 'Zm9vYmFyYmF6MTIz'", "assigned-secret"),
            ("postgres://app:s3cr3t@db:5432/x", "url-password"),
            ("curl -H 'Authorization: Bearer abcdef123456'", "header"),
            ("\"Cookie\": \"session=abcdef123456\"", "header"),
            (concat!("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"), "jwt"),
            (concat!("-----BEGIN ", "RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----"), "private-key"),
            (concat!("-----BEGIN ", "PRIVATE KEY-----\\nMII\\n-----END PRIVATE KEY-----"), "private-key"),
            (
                concat!("echo '-----BEGIN ", "PRIVATE KEY-----' > k; echo MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw >> k"),
                "private-key",
            ),
            (concat!("-----BEGIN ", "OPENSSH PRIVATE KEY-----\nb3Blb"), "private-key"),
        ] {
            assert_eq!(families(text), [family], "{text}");
        }
    }

    #[test]
    fn a_short_secret_in_a_note_is_found_and_a_name_or_a_number_in_code_is_none() {
        for text in [
            "token: qwertzAPI998877",
            "secret = qwertzAPI998877",
            "here is my client_secret: qwertzAPI998877 thanks",
            "api_key: hunter2zebra",
            "my api key: Zq8vLr2T",
            "apikey = hunter2zebra77",
            "access_token: abcDEF123456ghi",
        ] {
            assert_eq!(families(text), ["assigned-secret"], "{text}");
        }
        for text in [
            "token: token2",
            "let token: Sha256Hash = hash(x);",
            "token: utf8bytes, other",
            "secret: sha256sum()",
            "apiVersion: v1beta1",
            "token: v1.24.0-rc1",
            "api_key: config.key2name",
            "next_token: page2of9x",
            "token = tokens[i]",
            "the token is 16 bytes long",
        ] {
            let none: [&str; 0] = [];
            assert_eq!(families(text), none, "{text}");
        }
    }

    #[test]
    fn a_secret_between_a_matcher_and_what_it_finds_is_found_too() {
        let key = ["ghp", "_x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"].concat();
        for (text, expected) in [
            (format!("https://{key}:pw1@h/x"), &["github-token", "url-password"][..]),
            (format!("https://{key}:x-oauth-basic@h/x"), &["url-password"]),
            (format!("curl -u {key}:pw1 https://h"), &["github-token", "option-password"]),
            (format!("curl -u\" {key} : \"x"), &["github-token", "option-password"]),
            (format!("git clone https://oauth2:{key}@h/x"), &["url-password"]),
        ] {
            assert_eq!(families(&text), expected, "{text}");
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
            "PWD=/home/user/proj2",
            "password = \"Your password is required\"",
            "curl -H \"Authorization: Bearer {token}\"",
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
            "getpass(prompt='Password: ', stream2=None)",
            "PASS: tests/unit2.sh (3 of 4)",
            "if( nToken==pToken2->n1 && memcmp(a, b, c)",
            "exports.SOCKS5_NO_AUTH = exports.SOCKS5_NO_AUTH_2 = 1",
            "the --username and --password arguments can't be used",
            "socks5h://<username>:<password>@h:1080/x1",
            "pass: true, compass=n0rth99",
            "TOKEN_URL=https://h2.example/x1",
            "SECRET_FILE=/run/secrets/db1",
            "the password for user1 is asked for",
            "a basic understanding of bearer tokens",
            "--token-file x1y2z3a4",
            "author=jane.doe2001@example.org",
            "https://user@h.example/x",
            "if cookie == self.cookie2:",
            concat!(
                "AAAPAXAACdEwAAFRIAADkXAADwEgAAChAAAHUSAACtEgAAghMAAE8UAAB/",
                "EAAA1x2y3z4w5v6u7t8s9r0q1p2o3n4m5l6k7j8i9h0g1f2e3d4c5b6a7z8y9x0w1v2u"
            ),
        ] {
            assert_eq!(families(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn a_text_of_nothing_but_beginnings_takes_no_quadratic_time() {
        let took = |piece: &str, length: usize| {
            let text = piece.repeat(length / piece.len());
            let run = || {
                let begun = std::time::Instant::now();
                scan(&text);
                begun.elapsed()
            };
            // The best of three: other programs run at the same time.
            (0..3).map(|_| run()).min().unwrap()
        };
        for piece in ["sk-", "AIza-", "eyJ_", "token", " cookie:", "password=", "://a:", " -p", "-----BEGIN "] {
            let (short, long) = (took(piece, 3_125), took(piece, 25_000));
            // Eight times the text: quadratic it would take 64 times as long.
            assert!(long < short * 32, "{piece}: {short:?}, {long:?}");
            assert!(long.as_millis() < 5000, "{piece}: {long:?}");
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
