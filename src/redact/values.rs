//! Spans of bytes, and whether a value looks like a secret.
//!
//! The surer the place, the less a value must show. Anywhere: [`looks_generated`]. In quotes near a name: [`is_secret_string`].
//! As a word in a sentence or a cell: also [`has_marks`] and [`looks_invented`]. As the only word on the line of a name:
//! [`is_not_code`]. Directly assigned to a name: [`looks_random`], [`looks_set`], [`looks_chosen`], by the kind of the name.

/// Words that people write instead of a password.
const PLACEHOLDERS: [&[u8]; 8] =
    [b"password", b"changeme", b"example", b"secret", b"string", b"prompt", b"required", b"undefined"];

/// Whether a value is a placeholder, not an actual value: `$NAME`, `${…}`, `$(…)`, `{…}`, `%s`, `<…>`, `***`.
pub fn is_variable(value: &[u8]) -> bool {
    let name = |rest: &[u8]| {
        rest.iter().all(|b| b.is_ascii_uppercase() || *b == b'_') || rest.iter().all(|b| b.is_ascii_lowercase() || *b == b'_')
    };
    let numbered = |rest: &[u8]| rest.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    match value {
        [b'$', rest @ ..] => rest.starts_with(b"{") || rest.starts_with(b"(") || name(rest) || numbered(rest),
        [b'{', inner @ .., b'}'] => !looks_random(inner) && !is_secret_string(inner),
        [b'<', .., b'>'] | [b'%', _] => true,
        _ => is_mark(value) || value.iter().all(|b| matches!(b, b'*' | b'.' | b'x' | b'X')),
    }
}

/// Whether a value is a number in code: `0x0B96`.
pub fn is_hex_number(value: &[u8]) -> bool {
    value.strip_prefix(b"0x").is_some_and(|digits| digits.len() <= 8 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a value is a name in code or a path of names: `index_1.refreshToken`, `x25519.X25519PrivateKey`,
/// `__stringMin1Max64`.
pub fn is_reference(value: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        let digits = part.iter().filter(|b| b.is_ascii_digit()).count();
        let groups = part.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).filter(|run| run[0].is_ascii_digit()).count();
        let breaks = |two: &&[u8]| two[0].is_ascii_digit() != two[1].is_ascii_digit() || is_camel(two[0], two[1]);
        let breaks = part.windows(2).filter(breaks).count();
        groups == 0 || groups == 1 && part.len() <= 7 || groups <= 2 && digits * 3 <= part.len() && breaks * 10 <= part.len() * 3
    };
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$');
    value.first().is_some_and(|b| !b.is_ascii_digit())
        && value.iter().all(is_name)
        && value.split(|b| matches!(b, b'_' | b'.' | b'$')).all(is_part)
}

/// Whether a camel-case word ends between two letters.
fn is_camel(before: u8, after: u8) -> bool {
    before.is_ascii_lowercase() && after.is_ascii_uppercase()
}

/// Whether a value is one of our marks and nothing else. Text from the spool is cleaned a second time.
pub fn is_mark(value: &[u8]) -> bool {
    let inside = value.strip_prefix(b"[redacted:").map(|rest| rest.strip_suffix(b"]").unwrap_or(rest));
    inside.is_some_and(|name| {
        name.len() < 40 && name.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'#'))
    })
}

/// Whether a short value was set on purpose: at least eight characters, letters mixed with digits or marks, and not a
/// path, an address or a word followed by a number (`sha256`, `oauth2`, `user-1`).
pub fn looks_set(value: &[u8]) -> bool {
    let stem = &value[..value.len() - value.iter().rev().take_while(|b| b.is_ascii_digit()).count().min(4)];
    let digit = stem.iter().any(u8::is_ascii_digit);
    let mark = stem.iter().any(|b| matches!(b, b'!' | b'#' | b'@' | b'^' | b'*' | b'?' | b'~' | b'&' | b'+'));
    value.len() >= 8
        && (digit || mark)
        && value.iter().any(u8::is_ascii_alphabetic)
        && value.iter().any(u8::is_ascii_digit)
        && !value.iter().any(|b| matches!(b, b'/' | b'$' | b'(' | b'{' | b'%' | b'<' | b'[' | b' ' | b','))
}

/// Whether a value is words, perhaps numbered, with separators between them: `user-2-profile-10`, `cache.v2.items`.
pub fn is_words(value: &[u8]) -> bool {
    let words: Vec<&[u8]> = value.split(|b| !b.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_word = |word: &&[u8]| {
        let letters = word.iter().filter(|b| b.is_ascii_alphabetic()).count();
        let changes = word.windows(2).filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit()).count();
        letters == 0 && word.len() <= 4 || changes <= 1 && letters > 0 && word.len() - letters <= 4 && word.len() <= 16
    };
    words.len() > 1 && words.iter().all(is_word)
}

/// Whether a value is words without the marks of passwords.
pub fn is_plain_words(value: &[u8]) -> bool {
    is_words(value) && !value.iter().any(|b| OF_PASSWORDS.contains(b))
}

/// Whether a value is a password that a person chose: letters with digits or marks, and not a call, a type or a
/// placeholder. In a quoted string, every character belongs to the password.
pub fn looks_chosen(value: &[u8], shell: bool, quoted: bool) -> bool {
    let code = |b: &u8| matches!(b, b'(' | b'[' | b'{' | b'$' | b'|' | b'%');
    let plain = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'-' | b':' | b'/' | b'*' | b' ');
    let placeholder = PLACEHOLDERS.iter().any(|p| value.eq_ignore_ascii_case(p));
    let number = quoted && value.iter().all(u8::is_ascii_digit);
    let mixed = number || !value.iter().all(plain) && value.iter().any(u8::is_ascii_alphabetic);
    let prose = value.len() > 128 && value.contains(&b' ');
    // In an `.env` file, marks within a word belong to the value.
    let own = quoted || shell && value[0].is_ascii_alphanumeric() || !value.iter().any(code);
    value.len() >= 6 && !prose && !placeholder && own && (shell || mixed || quoted && is_mixed_case(value))
}

/// No secret contains all letters in order.
const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// Whether a value looks random: at least 16 characters of a key's alphabet (a long value may also contain `%`),
/// letters and digits mixed, and at least 3 bits of entropy per character. Names in code have no digits or repeat
/// themselves.
pub fn looks_random(value: &[u8]) -> bool {
    let long = value.len() >= 40;
    let in_alphabet =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-' | b'=' | b'.' | b'~') || long && *b == b'%';
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let both_cases = value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase);
    is_random_letters(value)
        || value.len() >= 16
            && value.iter().all(in_alphabet)
            && (digits >= 2 || digits == 1 && both_cases && value.len() >= 20)
            && letters >= 2
            && entropy(value) >= 3.0
            && !is_version(value)
            && !is_file_name(value)
            && find(value, ALPHABET).is_none()
}

/// Whether a value is only letters that change case as no words do: `kQwZtRbnMxLp`.
pub fn is_mixed_case(value: &[u8]) -> bool {
    let changes = value.windows(2).filter(|two| two[0].is_ascii_uppercase() != two[1].is_ascii_uppercase()).count();
    let upper = value.iter().filter(|b| b.is_ascii_uppercase()).count();
    let is_long = value.len() >= 16 && upper * 10 >= value.len() * 3 && changes * 4 >= value.len();
    value.len() >= 8 && value.iter().all(u8::is_ascii_alphabetic) && (changes * 2 >= value.len() || is_long)
}

/// Whether a short value can only be a secret: letters of both cases with several groups of digits, or with digits and
/// marks.
pub fn is_strong_short(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let marks = value.iter().filter(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'?')).count();
    let both = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let digit_runs =
        value.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).filter(|run| run[0].is_ascii_digit()).count();
    (10..=64).contains(&value.len())
        && has(u8::is_ascii_alphabetic)
        && (both && digit_runs >= 2 && !is_reference(value) && !is_words(value) || marks > 0 && digit_runs > 0 && both)
        && !value.iter().any(|b| matches!(b, b'/' | b'(' | b'{' | b'<' | b'[' | b' ' | b',' | b'\\' | b':' | b'='))
}

/// Whether a value can only come from a generator, wherever it is: letters of both cases alternate with digits, or with marks,
/// or it is long and random.
pub fn looks_generated(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let alternates = (10..=64).contains(&value.len())
        && value.iter().all(u8::is_ascii_alphanumeric)
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && changes_often(value)
        && !is_reference(value);
    alternates || is_strong_short(value) || looks_random(value) && !is_plain_words(value) && !is_reference(value)
}

/// Marks that join words in code without blanks, and marks that hardly do.
const OF_CODE: &[u8] = b"()[]{}.,:;/_-'\"<>$=\\";
const OF_PASSWORDS: &[u8] = b"!?#@^~&*+%|";
/// Parts of expressions, types, templates and regular expressions.
const EXPRESSIONS: [&[u8]; 29] = [
    b"(?", b"://", b"==", b"!=", b"=>", b"->", b"::", b"&&", b"||", b"()", b"[]", b"{}", b"%s", b"%d", b"%(", b"${", b"$(",
    b"{{", b"a-z", b"A-Z", b"0-9", b"</", b":=", b"[\"", b"['", b"(\"", b"('", b"?.", b"&#",
];

/// Whether a word is a date or a time: `2026-02-19T20:13:44Z`.
fn is_time(word: &[u8]) -> bool {
    word.iter().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b':' | b'.' | b'/' | b'+' | b'T' | b'Z'))
}

/// Whether a value is the name of a file that may hold a secret.
pub fn is_file_name(text: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 14] = [
        b".pem", b".key", b".crt", b".cer", b".der", b".bin", b".pub", b".p12", b".json", b".toml", b".yaml", b".yml", b".txt",
        b".env",
    ];
    ENDINGS.iter().any(|ending| text.ends_with(ending))
}

/// Whether a value is a host and a port: `proxy.example.com:3128`.
pub fn is_address(value: &[u8]) -> bool {
    let colon = value.iter().position(|b| *b == b':').unwrap_or(value.len());
    let (host, port) = (&value[..colon], value.get(colon + 1..).unwrap_or_default());
    let is_host = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    (host.contains(&b'.') || host == b"localhost")
        && host.iter().all(is_host)
        && (2..=5).contains(&port.len())
        && port.iter().all(u8::is_ascii_digit)
}

/// Whether a word is a version: `1:4.16.0-2+really2.41.5`, `2.84.4-3~deb13u5`.
pub fn is_version(word: &[u8]) -> bool {
    let parts = || word.split(|b| matches!(b, b'.' | b':' | b'-' | b'+' | b'~'));
    let numbers = parts().filter(|part| part.iter().all(u8::is_ascii_digit)).count();
    word.first().is_some_and(u8::is_ascii_digit)
        && word.contains(&b'.')
        && parts().all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_alphanumeric))
        && numbers * 2 >= parts().count()
}

/// Whether a word without quotes is a password with marks in it, and no expression of a language.
pub fn has_marks(word: &[u8]) -> bool {
    let is_mark_of_password = |b: &u8| OF_PASSWORDS.contains(b);
    let has = |class: fn(&u8) -> bool| word.iter().any(class);
    let is_expression = || {
        EXPRESSIONS.iter().any(|part| find(word, part).is_some())
            || matches!(word.first(), Some(b'/' | b'~' | b'.' | b'<' | b'{' | b'[' | b'(' | b'&'))
            || calls(word)
            || is_query(word)
    };
    let is_strange = word.iter().any(is_mark_of_password)
        || word.iter().any(|b| OF_CODE.contains(b)) && !word.contains(&b'\\') && !is_words(word) && !is_reference(word);
    (8..=128).contains(&word.len())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && is_strange
        && !is_expression()
        && !is_time(word)
        && !is_version(word)
}

/// Whether the only word on a line after a name is a password, and no code: its brackets are not closed, or it has the marks of
/// passwords and none of code.
pub fn is_not_code(word: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| word.iter().any(class);
    let is_long = (8..=128).contains(&word.len()) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_template =
        [&b"${"[..], b"$(", b"{{", b"}}", b"%s", b"%(", b"://", b"a-z", b"A-Z", b"0-9", b"[redacted:", b"::", b"(?"];
    let is_template = is_template.iter().any(|part| find(word, part).is_some());
    let goes_on = word.last().is_some_and(|b| matches!(b, b'(' | b'[' | b'{' | b',' | b'.' | b'\\')) && calls(word);
    let has_quotes = find(word, b"(\"").is_some()
        || find(word, b"('").is_some()
        || find(word, b"[\"").is_some()
        || find(word, b"['").is_some();
    let is_code = calls(word) && (is_balanced(word) || has_quotes || goes_on) || has_quotes;
    let is_path = matches!(word.first(), Some(b'/' | b'~' | b'<')) && is_balanced(word);
    let is_strange = word.iter().any(|b| OF_PASSWORDS.contains(b)) || !is_balanced(word) || has_marks(word);
    let is_one_word = !has(u8::is_ascii_whitespace) && !is_time(word);
    is_long
        && !is_version(word)
        && is_one_word
        && is_strange
        && !is_template
        && !is_code
        && !is_path
        && !is_query(word)
        && !(is_balanced(word) && is_plain_words(word))
}

/// Whether a string in quotes near a telling name can only be a secret.
pub fn is_secret_string(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let both = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let marks = value.iter().filter(|b| OF_PASSWORDS.contains(b)).count();
    let is_noise = both
        && marks >= 4
        && has(u8::is_ascii_digit)
        && value.len() >= 20
        && !value.contains(&b' ')
        && find(value, b"${").is_none();
    let is_path = value.contains(&b'\\') || value.contains(&b'/') && value.contains(&b'.') || is_file_name(value);
    !is_path && (looks_generated(value) || both && is_not_code(value) || is_noise)
}

/// Whether a value is a password as people invent them: two words, a mark between them, and a number at the end, such as
/// `Coffee.oslo273`, `Timber-beacon_4743`. It begins with a capital letter, or the mark does not occur in names.
pub fn looks_invented(value: &[u8]) -> bool {
    let letters = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let first = letters(value);
    let rest = value.get(first + 1..).unwrap_or_default();
    let second = letters(rest);
    let number = rest.get(second..).unwrap_or_default();
    let number = number.strip_prefix(b"_").or(number.strip_prefix(b"-")).unwrap_or(number);
    let digits = number.iter().filter(|b| b.is_ascii_digit()).count();
    let Some(mark) = value.get(first) else { return false };
    let is_strong = matches!(mark, b'!' | b'@' | b'#' | b'?' | b'*' | b'&' | b'+' | b'$');
    let ends = number.iter().all(|b| b.is_ascii_digit() || matches!(b, b'!' | b'?' | b'#' | b'$' | b'*'));
    first >= 3
        && (second >= 3 || is_strong)
        && (2..=6).contains(&digits)
        && ends
        && value.len() >= 10
        && (is_strong || value[0].is_ascii_uppercase() && matches!(mark, b'.' | b'-' | b'_'))
}

/// Whether each bracket of a word is closed.
fn is_balanced(word: &[u8]) -> bool {
    let mut open = Vec::new();
    for b in word {
        match b {
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            b')' | b']' | b'}' if open.pop() != Some(*b) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

/// Whether a word continues with another parameter of a URL: `…&name=…`.
fn is_query(word: &[u8]) -> bool {
    word.iter().enumerate().filter(|(_, b)| **b == b'&').any(|(at, _)| {
        let end = run(word, at + 1, |b| b.is_ascii_alphabetic() || b == b'_');
        end > at + 2 && word.get(end) == Some(&b'=')
    })
}

/// Whether a word contains a call or an index: a name directly before a bracket.
fn calls(word: &[u8]) -> bool {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$');
    word.iter().enumerate().filter(|(_, b)| matches!(b, b'(' | b'[' | b'<' | b'{')).any(|(at, _)| {
        let before = word[..at].rsplit(|b| !is_name(*b)).next().unwrap_or_default();
        before.len() >= 3 && is_reference(before)
    })
}

/// Whether a value is only letters, about half of them upper case, that change case often: `sQVGEabfWeBqLEQnXd`, but
/// not `camelCaseNames` or `HTTPSConnectionPool`.
pub fn is_random_letters(value: &[u8]) -> bool {
    let upper = value.iter().filter(|b| b.is_ascii_uppercase()).count();
    let changes = value.windows(2).filter(|two| two[0].is_ascii_uppercase() != two[1].is_ascii_uppercase()).count();
    value.len() >= 18
        && value.iter().all(u8::is_ascii_alphabetic)
        && (upper * 10 >= value.len() * 3 && upper * 10 <= value.len() * 7)
        && changes * 3 >= value.len()
        && entropy(value) >= 3.5
}

/// Whether a value is a key of 12 to 15 letters and digits that alternate often.
pub fn is_short_random(value: &[u8]) -> bool {
    let digit_runs =
        value.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).filter(|run| run[0].is_ascii_digit()).count();
    (12..16).contains(&value.len()) && value.iter().all(u8::is_ascii_alphanumeric) && digit_runs >= 3
}

/// Whether upper case, lower case and digits alternate as in random text, unlike in `camelCaseNames2`.
pub fn changes_often(value: &[u8]) -> bool {
    let class = |b: &u8| match b {
        b'A'..=b'Z' => 0,
        b'a'..=b'z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let changes = value.windows(2).filter(|two| class(&two[0]) != class(&two[1])).count();
    changes * 5 >= value.len() * 2
}

/// Shannon entropy in bits per byte.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for &b in value {
        counts[b as usize] += 1;
    }
    let n = value.len() as f64;
    counts.iter().filter(|&&c| c > 0).map(|&c| f64::from(c) / n).map(|p| -p * p.log2()).sum()
}
/// Bytes `start..end` of the scanned text, to be replaced by a mark. Never empty, on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: usize,
    pub end: usize,
    pub family: &'static str,
    /// Too random to be guessed, so that a hash of it reveals nothing.
    pub guessless: bool,
}

/// Bytes after a position that are examined before a match there is certain. Without a limit, a text of nothing but
/// prefixes would take quadratic time.
pub const LOOKED_AT: usize = 1024;

/// Returns the end of the run of bytes that begins at `from`.
pub fn run(bytes: &[u8], from: usize, while_: impl Fn(u8) -> bool) -> usize {
    bytes[from.min(bytes.len())..].iter().position(|&b| !while_(b)).map_or(bytes.len(), |i| from + i)
}

/// Returns the first position of `needle` in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w == needle)
}

/// Whether `bytes` starts with a literal of at least two bytes. Most do not, which the first bytes tell.
pub fn begins(bytes: &[u8], literal: &str) -> bool {
    let literal = literal.as_bytes();
    bytes.len() >= literal.len() && bytes[0] == literal[0] && bytes[1] == literal[1] && bytes.starts_with(literal)
}

/// Whether `bytes` starts with `name`, in either case.
pub fn starts_with_folded(bytes: &[u8], name: &str) -> bool {
    bytes.len() >= name.len() && bytes[..name.len()].eq_ignore_ascii_case(name.as_bytes())
}

/// Returns the next position that is not inside a UTF-8 character.
pub fn boundary(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at += 1;
    }
    at
}
