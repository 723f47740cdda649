//! Forms in which a value follows its name: assignments, JSON, XML, calls, prose, and on the lines nearby.

use super::families::Body;
use super::names::{Name, is_last};
use super::values::{
    LOOKED_AT, Span, changes_often, is_random_letters, is_reference, is_strong_short, is_words, looks_random, looks_set, run,
    starts_with_folded,
};

/// Notation of a value, which decides how likely it is that the value belongs to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `DB_PASSWORD=swordfish`: a shell assignment holds a value where code would hold a name.
    Shell,
    /// `name = "value"`: a string.
    Quoted,
    /// `name: value`, `--name value`: a value without quotes.
    Plain,
    /// `("NAME", "value")`: the two may be next to each other by chance.
    Neighbour,
}

/// The bytes of a value, or the first [`LOOKED_AT`] of a long one.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    pub start: usize,
    pub end: usize,
    pub form: Form,
    quote: Option<u8>,
}

impl Value {
    /// Returns the end of the whole value.
    pub fn whole_end(&self, bytes: &[u8]) -> usize {
        if self.end - self.start < LOOKED_AT { self.end } else { self.end_before(bytes, bytes.len()) }
    }

    /// Whether quotes, tags or similar delimiters enclose the value, so that every character inside belongs to it.
    pub fn is_quoted(&self) -> bool {
        self.quote.is_some()
    }

    fn new(bytes: &[u8], start: usize, form: Form, quote: Option<u8>) -> Value {
        let mut value = Value { start, end: start, form, quote };
        value.end = value.end_before(bytes, bytes.len().min(start + LOOKED_AT));
        value
    }

    /// Returns the end of the value: the closing quote, an escape or the end of the line; without quotes, the end of
    /// the word.
    fn end_before(&self, bytes: &[u8], limit: usize) -> usize {
        let bytes = &bytes[..limit];
        if let Some(quote) = self.quote {
            return self.end_of_quoted(bytes, quote);
        }
        let end = run(bytes, self.start, |b| match () {
            () if b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b';' | b')' | b'\\' | b'&') => false,
            () if self.form == Form::Shell => b != b'|',
            () => !matches!(b, b',' | b'}' | b']' | b'<'),
        });
        // In a URL, `%26` and `%22` end a value.
        let value = &bytes[self.start..end];
        let encoded = value.windows(3).position(|three| matches!(three, b"%26" | b"%22"));
        encoded.map_or(end, |i| self.start + i)
    }

    /// Returns the end of a quoted value. In `"a\"b"`, the escaped quote belongs to the value, unless the quotes are
    /// escaped themselves.
    fn end_of_quoted(&self, bytes: &[u8], quote: u8) -> usize {
        let nested = self.start.checked_sub(2).is_some_and(|i| bytes[i] == b'\\');
        let mut at = self.start;
        while let Some(&b) = bytes.get(at) {
            match b {
                b'\\' if !nested && bytes.get(at + 1) == Some(&quote) => at += 1,
                b'\\' | b'\n' => return at,
                b if b == quote => return at,
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }

    /// Extends the value over `&`, `;` and `)` within a word; in an assignment of a shell or an `.env` file they belong
    /// to it.
    fn through_marks(mut self, bytes: &[u8]) -> Value {
        let in_word = |b: u8| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b'\\' | b'|');
        while matches!(bytes.get(self.end), Some(b'&' | b';' | b')'))
            && bytes.get(self.end + 1).is_some_and(u8::is_ascii_alphanumeric)
        {
            self.end = run(&bytes[..bytes.len().min(self.end + LOOKED_AT)], self.end + 1, |b| {
                in_word(b) && !matches!(b, b'&' | b';' | b')')
            });
        }
        self
    }
}

/// A position in a text that moves forward.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, among: &[u8]) -> bool {
        let begun = self.at;
        self.at = run(self.bytes, self.at, |b| among.contains(&b));
        self.at > begun
    }

    fn eat(&mut self, literal: &str) -> bool {
        let found = self.at <= self.bytes.len() && starts_with_folded(&self.bytes[self.at..], literal);
        self.at += if found { literal.len() } else { 0 };
        found
    }

    fn eat_any(&mut self, literals: &[&str]) -> bool {
        literals.iter().any(|literal| self.eat(literal))
    }

    /// Consumes `"`, `'` or a backtick, also after a string prefix or in a constructor: `b"`, `N'`, `@"`,
    /// `String::from("`.
    fn quote(&mut self) -> Option<u8> {
        let begun = self.at;
        if !self.eat_any(&[
            "String::from(",
            "SecretString::from(",
            "SecretStr(",
            "Secret(",
            "new String(",
            "Buffer.from(",
            "str(",
        ]) {
            self.at = run(self.bytes, self.at, |b| b.is_ascii_alphabetic() || b == b'@').min(self.at + 2);
        }
        self.skip(b"\\");
        match self.peek() {
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                self.at += 1;
                // Python's triple quotes.
                if self.bytes[self.at..].starts_with(&[quote, quote]) {
                    self.at += 2;
                }
                Some(quote)
            }
            _ => {
                self.at = begun;
                None
            }
        }
    }
}

/// Returns the value that belongs to a name.
pub fn value(bytes: &[u8], name: &Name, password: bool) -> Option<Value> {
    let mut cursor = Cursor { bytes, at: name.end };
    spaced(bytes, name, password)
        .or_else(|| tagged(bytes, name))
        .or_else(|| assigned(&mut cursor, name))
        .or_else(|| reversed(bytes, name))
}

/// Matches `--password …`, `ENV NAME …`, `#define NAME …`, `machine h login u password …`, `IDENTIFIED BY '…'`.
fn spaced(bytes: &[u8], name: &Name, password: bool) -> Option<Value> {
    if !matches!(bytes.get(name.end), Some(b' ' | b'\t')) {
        return None;
    }
    let from = run(bytes, name.end, |b| matches!(b, b' ' | b'\t'));
    let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\''));
    let line = line_before(bytes, name.start);
    let own = &bytes[name.start..name.end];
    let is_option = own.starts_with(b"--") || own.starts_with(b"-") && own.len() > 4 && own[1..].iter().all(|b| *b != b'-');
    let setters = [
        "configure set ",
        "ENV ",
        "setx ",
        "setx /m ",
        "setenv ",
        "set -gx ",
        "set -Ux ",
        "set -x ",
        "secret set ",
        "secrets set ",
    ];
    let set = setters.iter().any(|setter| ends_with_folded(line, setter)) || ends_with_folded(line, "#define ");
    let netrc = password && is_netrc(line);
    let config = own.eq_ignore_ascii_case(b"requirepass") || own.eq_ignore_ascii_case(b"masterauth");
    // Redis, at the start of a line.
    let config = config || own == b"AUTH" && line.is_empty();
    let sql = password && quote.is_some() && own.len() > 4;
    if !(is_option || set || netrc || config || sql) || bytes.get(from) == Some(&b'-') {
        return None;
    }
    let form = if set || netrc || config || is_option && !password && own.starts_with(b"--") { Form::Shell } else { Form::Plain };
    // `gh secret set NAME --body …` is found through its option.
    Some(match quote {
        Some(quote) => quoted(bytes, from + 1, quote, if form == Form::Shell { Form::Shell } else { Form::Quoted }),
        None => plain(bytes, from, form),
    })
}

/// Whether a line is `machine host login user` or a part of it: pairs of a keyword and a value.
fn is_netrc(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty()).collect();
    let words = if words.first() == Some(&&b"default"[..]) { &words[1..] } else { &words[..] };
    words.len().is_multiple_of(2)
        && words.chunks(2).any(|pair| pair[0] == b"login" || pair[0] == b"machine")
        && words.chunks(2).all(|pair| matches!(pair[0], b"login" | b"machine" | b"account" | b"port"))
}

/// Matches `<password>…</password>`, `<property name="password">…</property>`, `<key>password</key><string>…</string>`.
fn tagged(bytes: &[u8], name: &Name) -> Option<Value> {
    let before = name.start.checked_sub(1).map(|i| bytes[i]);
    let mut cursor = Cursor { bytes, at: name.end };
    let named = cursor.skip(b"\"'");
    if cursor.eat("</key>") {
        cursor.skip(b" \t\r\n");
        if !cursor.eat("<string>") {
            return None;
        }
    } else if cursor.peek() != Some(b'>') || !(named || matches!(before, Some(b'<' | b':' | b'.'))) {
        return None;
    } else {
        cursor.at += 1;
    }
    let from = cursor.at;
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    let end = run(near, from, |b| b != b'<' && b != b'\n');
    near[end..].starts_with(b"</").then(|| quoted(bytes, from, b'<', Form::Quoted))
}

/// Matches `name = value` and its variants, `("NAME", "value")`, `"name": "NAME", "value": "…"`, `name:⏎  value`.
fn assigned(cursor: &mut Cursor, name: &Name) -> Option<Value> {
    let bytes = cursor.bytes;
    let opening = name.start.checked_sub(1).map(|i| bytes[i]);
    let shell_name = opening != Some(b'.') && !bytes[name.start..name.end].iter().any(u8::is_ascii_lowercase);
    let closing = run(bytes, cursor.at, |b| b == b'\\');
    let in_string = matches!(bytes.get(closing), Some(b'"' | b'\'' | b'`'));
    cursor.skip(b"\"'`\\ \t]");
    cursor.eat("%22");
    if in_string && let Some(found) = neighbour(cursor, opening) {
        return Some(found);
    }
    // `- name: DB_PASSWORD⏎  value: …`
    let begun = cursor.at;
    if cursor.skip(b" \t\r\n") && !cursor.eat("value:") {
        cursor.at = begun;
    } else if cursor.at > begun {
        return Some(match (cursor.skip(b" "), cursor.quote()).1 {
            Some(quote) => quoted(bytes, cursor.at, quote, Form::Quoted),
            None => plain(bytes, cursor.at, Form::Plain),
        });
    }
    let separator = cursor.at;
    cursor.skip(b"|?:+");
    if bytes[separator..cursor.at].contains(&b'+') && cursor.peek() != Some(b'=') {
        return None;
    }
    let encoded = cursor.eat("%3D") || cursor.eat("%3A");
    let colon = bytes.get(separator) == Some(&b':');
    cursor.skip(b"=>:");
    if cursor.at == separator || bytes[separator..cursor.at].ends_with(b"==") || bytes.get(separator) == Some(&b'>') {
        return None;
    }
    let equals = bytes[cursor.at - 1] == b'=';
    cursor.eat_any(&["%22", "%20", "+"]);
    cursor.skip(b" \t");
    // `getpass('Password: ')`: the quote ends a string that began before the name.
    let ends_string = |quote: u8| !bytes[name.end..separator].contains(&quote) && opening == Some(quote);
    let begun = cursor.at;
    if let Some(quote) = cursor.quote() {
        let form = if shell_name && equals && begun == separator + 1 { Form::Shell } else { Form::Quoted };
        return (!ends_string(quote)).then(|| quoted(bytes, cursor.at, quote, form));
    }
    if colon && let Some(found) = typed(cursor) {
        return Some(found);
    }
    if colon && let Some(from) = next_line(bytes, begun, name) {
        return Some(plain(bytes, from, Form::Plain));
    }
    let tight = begun == separator + 1;
    let npmrc = bytes[name.start..].starts_with(b"_auth") || bytes[name.start..].starts_with(b"_password");
    let query = matches!(opening, Some(b'?' | b'&'));
    let shell = encoded || npmrc && equals || (shell_name || query) && equals && tight;
    let value = plain(bytes, begun, if shell { Form::Shell } else { Form::Plain });
    Some(if shell && !query && !encoded { value.through_marks(bytes) } else { value })
}

/// Matches `"NAME", "value"`, `"NAME", "value": "…"`, `"NAME" value="…"`; the cursor is after the name's quote.
fn neighbour(cursor: &mut Cursor, opening: Option<u8>) -> Option<Value> {
    let begun = cursor.at;
    let comma = cursor.peek() == Some(b',');
    cursor.skip(b", \t\r\n\\");
    let in_object = cursor.at;
    cursor.skip(b"\"'\\");
    if cursor.eat_any(&["value", "val", "content", "default"]) {
        cursor.skip(b"\"'\\ \t");
        if matches!(cursor.peek(), Some(b':' | b'=')) {
            cursor.at += 1;
            cursor.skip(b" \t");
            let quote = cursor.quote()?;
            return Some(quoted(cursor.bytes, cursor.at, quote, Form::Quoted));
        }
    }
    cursor.at = in_object;
    if comma
        && matches!(opening, Some(b'"' | b'\'' | b'`' | b'.' | b':'))
        && let Some(quote) = cursor.quote()
    {
        return Some(quoted(cursor.bytes, cursor.at, quote, Form::Neighbour));
    }
    cursor.at = begun;
    None
}

/// Matches `: string = "…"`, `: &'static str = "…"`, `: Optional[str] = "…"`.
fn typed(cursor: &mut Cursor) -> Option<Value> {
    let begun = cursor.at;
    let is_type = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'<' | b'>' | b'[' | b']' | b'&' | b'\'' | b'.' | b'|' | b' ' | b'?')
    };
    let end = run(&cursor.bytes[..cursor.bytes.len().min(begun + 48)], begun, is_type);
    if end > begun && cursor.bytes.get(end) == Some(&b'=') && cursor.bytes[end - 1] == b' ' {
        cursor.at = end + 1;
        cursor.skip(b" \t");
        if let Some(quote) = cursor.quote() {
            return Some(quoted(cursor.bytes, cursor.at, quote, Form::Quoted));
        }
    }
    cursor.at = begun;
    None
}

/// Returns the start of a YAML value on the next line, also in a block scalar, unless it is a mapping or a list.
fn next_line(bytes: &[u8], from: usize, name: &Name) -> Option<usize> {
    let line = line_before(bytes, name.start);
    let is_key = |b: &u8| matches!(b, b' ' | b'-' | b'"' | b'\'');
    let at = run(bytes, from, |b| matches!(b, b'|' | b'>' | b'-' | b'+'));
    let at = run(bytes, at, |b| matches!(b, b' ' | b'\r'));
    if bytes.get(at) != Some(&b'\n') || !line.iter().all(is_key) {
        return None;
    }
    let value = run(bytes, at + 1, |b| b == b' ');
    let end = run(bytes, value, |b| !b.is_ascii_whitespace());
    let mapping = bytes.get(end - 1) == Some(&b':') || bytes.get(value) == Some(&b'-');
    (value - at > line.len() + 1 && end > value && !mapping).then_some(value)
}

/// Matches `"value": "…", "name": "NAME"`, where the value comes before the name.
fn reversed(bytes: &[u8], name: &Name) -> Option<Value> {
    let far = name.start.saturating_sub(256);
    let before = &bytes[far..name.start];
    let trimmed = |text: &[u8], among: &[u8]| text.len() - text.iter().rev().take_while(|b| among.contains(b)).count();
    let before = &before[..trimmed(before, b"\"'\\ :=")];
    let before = before.strip_suffix(b"name").or(before.strip_suffix(b"Name")).or(before.strip_suffix(b"key"))?;
    let end = trimmed(before, b"\"'\\ ,");
    if end == before.len() || !before[end..].iter().any(|b| matches!(b, b'"' | b'\'')) {
        return None;
    }
    let start = before[..end].iter().rposition(|b| matches!(b, b'"' | b'\''))? + 1;
    let head = &before[..start];
    let head = &head[..trimmed(head, b"\"'\\ :=")];
    let named = head.ends_with(b"value") || head.ends_with(b"Value");
    named.then(|| quoted(bytes, far + start, bytes[far + start - 1], Form::Quoted))
}

fn quoted(bytes: &[u8], start: usize, quote: u8, form: Form) -> Value {
    Value::new(bytes, start, form, Some(quote))
}

fn plain(bytes: &[u8], start: usize, form: Form) -> Value {
    Value::new(bytes, start, form, None)
}

/// Returns the line before a position, at most 200 bytes of it.
fn line_before(bytes: &[u8], at: usize) -> &[u8] {
    let far = at.saturating_sub(200);
    let start = bytes[far..at].iter().rposition(|b| *b == b'\n').map_or(far, |i| far + i + 1);
    &bytes[start..at]
}

fn ends_with_folded(bytes: &[u8], end: &str) -> bool {
    bytes.len() >= end.len() && bytes[bytes.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
}

/// Literals within keys, each with its matcher in [`key`].
pub const INFIXES: [&str; 17] = [
    ".atlasv1.",
    "Q~",
    "_mmk",
    "-us",
    ".acc-",
    ".acc_",
    ":AA",
    "0|?",
    "1|?",
    "2|?",
    "3|?",
    "4|?",
    "5|?",
    "6|?",
    "7|?",
    "8|?",
    "9|?",
];

/// Returns the key around the literal at `at`.
pub fn key(bytes: &[u8], at: usize) -> Option<Span> {
    let bytes = &bytes[..bytes.len().min(at + 256)];
    let rest = &bytes[at..];
    let back = |from: usize, has: &dyn Fn(u8) -> bool| {
        let far = from.saturating_sub(128);
        bytes[far..from].iter().rposition(|&b| !has(b)).map_or(far, |i| far + i + 1)
    };
    let found = |family, start, end| Some(Span { start, end, family, guessless: true });
    let alnum = |b: u8| b.is_ascii_alphanumeric();
    if rest.starts_with(b".atlasv1.") {
        let (start, end) = (back(at, &alnum), run(bytes, at + 9, |b| Body::Dotted.has(b)));
        return if at - start >= 14 && end - at >= 60 { found("hashicorp-token", start, end) } else { None };
    }
    if rest.starts_with(b"Q~") {
        let in_secret = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'~' | b'.' | b'-');
        let (start, end) = (back(at, &in_secret), run(bytes, at + 2, in_secret));
        let digit = at > start && bytes[at - 1].is_ascii_digit();
        return if digit && at - start >= 4 && (31..=36).contains(&(end - at - 2)) {
            found("azure-secret", start, end)
        } else {
            None
        };
    }
    if rest.starts_with(b"_mmk") {
        let start = back(at, &|b| alnum(b) || b == b'_');
        return if at - start == 36 && !rest.get(4).is_some_and(|b| alnum(*b)) {
            found("maxmind-key", start, at + 4)
        } else {
            None
        };
    }
    if rest.starts_with(b"-us") {
        let (start, end) = (back(at, &alnum), run(bytes, at + 3, |b| b.is_ascii_digit()));
        let hex = bytes[start..at].iter().all(|b| Body::Hex.has(*b));
        return if at - start == 32 && hex && end > at + 3 { found("mailchimp-key", start, end) } else { None };
    }
    if rest.starts_with(b".acc-") || rest.starts_with(b".acc_") {
        let (start, end) = (back(at, &|b| Body::Dotted.has(b)), run(bytes, at + 5, |b| Body::Token68.has(b)));
        let known = ["sc_", "ext_", "scauth_", "authress_"].iter().any(|prefix| bytes[start..].starts_with(prefix.as_bytes()));
        return if known && end - at > 40 { found("authress-key", start, end) } else { None };
    }
    if rest[0].is_ascii_digit() {
        // An app's id and its token.
        let start = back(at, &|b| b.is_ascii_digit());
        let end = run(bytes, at + 2, |b| b.is_ascii_lowercase() || Body::Url.has(b));
        let facebook = rest.get(1) == Some(&b'|') && (14..=15).contains(&(at - start)) && (27..=40).contains(&(end - at - 2));
        return if facebook { found("facebook-token", at + 2, end) } else { None };
    }
    if rest.starts_with(b":AA") {
        let (start, end) = (back(at, &|b| b.is_ascii_digit()), run(bytes, at + 1, |b| Body::Url.has(b)));
        return if (8..=10).contains(&(at - start)) && end - at - 1 == 35 { found("telegram-token", start, end) } else { None };
    }
    None
}

/// Matches keys that begin with digits, or with a number in base64: Asana's, Bitwarden's and Discord's.
pub fn numbered(bytes: &[u8], at: usize) -> Option<Span> {
    let found = |family, start, end| Some(Span { start, end, family, guessless: true });
    let bytes = &bytes[..bytes.len().min(at + 128)];
    let rest = &bytes[at..];
    if rest.starts_with(b"1/") {
        let number = run(bytes, at + 2, |b| b.is_ascii_digit());
        let end = run(bytes, number + 1, |b| Body::Hex.has(b));
        let asana = bytes.get(number) == Some(&b':') && number - at >= 14 && end - number == 33;
        return if asana { found("asana-token", at, end) } else { None };
    }
    if rest.starts_with(b"0.") {
        // The id of the account, a UUID.
        let id = run(bytes, at + 2, |b| Body::Hex.has(b) || b == b'-');
        let end = run(bytes, id + 1, |b| b == b':' || Body::Base64.has(b));
        let bitwarden = bytes.get(id) == Some(&b'.') && id - at == 38 && end - id > 40;
        return if bitwarden { found("bitwarden-token", at, end) } else { None };
    }
    if !matches!(rest[0], b'M' | b'N' | b'O') {
        return None;
    }
    // A bot's token begins with its id, a number of 17 to 19 digits, in base64.
    let first = run(bytes, at, |b| b.is_ascii_alphanumeric());
    let second = run(bytes, first + 1, |b| Body::Url.has(b));
    let third = run(bytes, second + 1, |b| Body::Url.has(b));
    let dots = bytes.get(first) == Some(&b'.') && bytes.get(second) == Some(&b'.');
    let discord = dots && (23..=28).contains(&(first - at)) && second - first == 7 && (27..=45).contains(&(third - second - 1));
    (discord && changes_often(&bytes[second + 1..third])).then_some(Span {
        start: at,
        end: third,
        family: "discord-token",
        guessless: true,
    })
}

/// Bytes after a name that are searched for a value.
const NEAR: usize = 96;
/// Length of a value that can only be a secret, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 20..=128;

/// Returns the value near a name; called if the name's own forms gave none.
pub fn nearby(bytes: &[u8], name: &Name) -> Option<Span> {
    let near = &bytes[..bytes.len().min(name.end + NEAR)];
    let in_value = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let mut at = run(near, name.end, in_value);
    let at_end = is_last(&bytes[name.start..name.end]);
    if let Some(span) = at_end.then(|| declared(near, name.end).or_else(|| said(near, name.end))).flatten() {
        return Some(span);
    }
    if let Some(span) = quoted_on_line(near, at) {
        return Some(span);
    }
    while at < near.len() {
        let start = run(near, at, |b| !b.is_ascii_alphanumeric());
        let end = run(bytes, start, in_value);
        if stands_alone(bytes, start, end) && is_issued(&bytes[start..end]) {
            return Some(Span { start, end, family: "assigned-secret", guessless: true });
        }
        at = end.max(start + 1);
    }
    None
}

/// Returns a random value in the first quotes after a name, with only code in between: `char api_key[] = "…"`,
/// `{ get; set; } = "…"`, `setToken("…")`, `(setq token "…")`, `variable "db_key" {⏎  default = "…"`.
fn declared(near: &[u8], from: usize) -> Option<Span> {
    let from = run(near, from, |b| matches!(b, b'"' | b'\''));
    let quote = run(near, from, |b| !matches!(b, b'"' | b'\'' | b'`'));
    let between = near.get(from..quote).filter(|between| between.len() <= 48)?;
    let line_ends = between.contains(&b'\n') && !between.trim_ascii_end().ends_with(b"default =");
    let compared = between.windows(2).any(|two| matches!(two, b"==" | b"!="));
    let end = run(near, quote + 1, |b| Some(&b) != near.get(quote) && b != b'\n');
    let value = near.get(quote + 1..end)?;
    let found = !line_ends && !compared && !between.contains(&b',') && near.get(end) == near.get(quote);
    (found && looks_random(value) && !is_words(value)).then_some(Span {
        start: quote + 1,
        end,
        family: "assigned-secret",
        guessless: value.len() >= 16,
    })
}

/// Returns a value given in prose: `the db password is … for staging`.
fn said(near: &[u8], from: usize) -> Option<Span> {
    let behind = near.get(from..)?;
    let start = from + [&b" is: "[..], b" is "].iter().find(|verb| behind.starts_with(verb))?.len();
    let end = run(near, start, |b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b')'));
    let value = &near[start..end];
    let value = value.strip_suffix(b".").unwrap_or(value);
    let found = looks_set(value) || is_strong_short(value) || looks_random(value);
    (found && !is_words(value)).then_some(Span { start, end: start + value.len(), family: "assigned-secret", guessless: false })
}

/// Returns a strong value in quotes on the name's line: `setPassword("…")`, `if password == "…"`,
/// `ENV.fetch('PW', '…')`.
fn quoted_on_line(near: &[u8], from: usize) -> Option<Span> {
    let line = &near[..run(near, from, |b| b != b'\n')];
    let is_quote = |b: u8| matches!(b, b'"' | b'\'' | b'`');
    let mut at = run(line, from, |b| !is_quote(b));
    while at < line.len() {
        let start = at + 1;
        let end = run(line, start, |b| b != line[at]);
        if end < line.len() && is_strong_short(&line[start..end]) {
            return Some(Span { start, end, family: "assigned-secret", guessless: false });
        }
        // Where quotes are not paired, the closing quote may open the next string.
        at = run(line, start, |b| !is_quote(b));
    }
    None
}

/// Whether a value is not part of a path, of base64 or of a name.
fn stands_alone(bytes: &[u8], start: usize, end: usize) -> bool {
    let in_other = |b: Option<&u8>| b.is_some_and(|b| matches!(b, b'/' | b'+' | b'.' | b'$' | b'#' | b'@' | b'\\' | b'%'));
    !in_other(start.checked_sub(1).map(|i| &bytes[i])) && !in_other(bytes.get(end)) && bytes.get(end) != Some(&b'(')
}

/// Whether a value looks issued: upper case, lower case and digits alternate as in random text, or it is random
/// letters.
fn is_issued(value: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit) && changes_often(value);
    LENGTH.contains(&value.len()) && (mixed && !is_words(value) && !is_reference(value) || is_random_letters(value))
}

#[cfg(test)]
mod tests {
    use crate::redact::scan::scan;

    #[test]
    fn random_values_near_a_telling_name_are_found() {
        for text in [
            "client.setToken(\"9DUxl2wzmESR9Vm0avo7lbxSX2tRLOUe\")",
            "Dim password As String = \"Wdc2Dy5u8PXGbsFgxD3FZMyXzR6rrlJM\"",
            "api_key: str = Field(default=\"bot974DZpXMgUNs6jEUSf9UroEVuytrx\")",
            "| user | password |\n|------|----------|\n| bob  | sy9THQNDnndIE1v0yhTlcFKMQ9TbLee6 |",
            "poetry config pypi-token.pypi 2Y71Am8W9fiquaR7mlcKNGLxWHdnRfqD",
            "password = os.getenv(\"P\") or \"4IbTw0FpKG1VZm3QBhxTuIYNgBZ5sJ7Z\"",
            "var jwtSecret = []byte(\"GE3jPSvsto0lM6S9sT2SFHk7FH5bp7kg\")",
        ] {
            assert_eq!(scan(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn names_hashes_and_paths_near_one_stay() {
        for text in [
            "token = tokenizer.getNextTokenFromBuffer2(input)",
            "password_hash(\"MyVeryLongClassNameForTests2\")",
            "key: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "the token cache was built from 8f14e45fceea167a5a36dedd4bea2543",
            "token file at /home/me/AbCdEf12GhIjKl34MnOpQr56/x",
        ] {
            assert_eq!(scan(text), [], "{text}");
        }
    }
}
