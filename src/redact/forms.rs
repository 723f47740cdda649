//! Forms in which a value follows its name: assignments, JSON, XML, calls, prose, and on the lines nearby.

use super::families::Body;
use super::names::Name;
use super::values::{
    LOOKED_AT, Span, changes_often, find, has_marks, is_mixed_case, is_not_code, is_variable, is_words, looks_random, run,
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

    /// Extends the value to the end of its word, if that is a password with marks: what ends a value in code belongs to it.
    pub fn through_password(mut self, bytes: &[u8], name: &Name) -> Option<Value> {
        if self.quote.is_some() {
            return None;
        }
        let before = line_before(bytes, name.start);
        let outer = before.last().copied().filter(|b| matches!(b, b'"' | b'\'' | b'`'));
        let is_option = bytes[name.start] == b'-';
        let near = &bytes[..bytes.len().min(self.start + LOOKED_AT)];
        let word_end = run(near, self.start, |b| !b.is_ascii_whitespace());
        let end = run(near, self.start, |b| !b.is_ascii_whitespace() && b != b'\\' && b != b'`' && Some(b) != outer);
        // In JSON, what closes the string and its object follows.
        let closing = bytes[self.start..end].iter().rposition(|b| !matches!(b, b'}' | b']' | b')' | b',' | b'"'));
        let closing = self.start + closing.map_or(0, |i| i + 1);
        let is_closed = bytes.get(closing) == Some(&b'"');
        // A line of a configuration file is a name and a value.
        let is_line = bytes.get(word_end).is_none_or(|b| matches!(b, b'\n' | b'\r')) && begins_line(before);
        let is_whole = (is_line || is_option) && outer.is_none() && !is_closed;
        let end = if is_closed { closing } else { end };
        let word = &bytes[self.start..if is_whole { word_end } else { end }];
        // A connection string goes on with the next name.
        let next = word.iter().enumerate().filter(|(_, b)| **b == b';').find(|(at, _)| {
            let end = run(word, at + 1, |b| b.is_ascii_alphabetic());
            end > at + 2 && word.get(end) == Some(&b'=')
        });
        let word = next.map_or(word, |(at, _)| &word[..at]);
        let trimmed = word.strip_suffix(b",").or(word.strip_suffix(b";")).or(word.strip_suffix(b"\"")).unwrap_or(word);
        let is_password = |word: &[u8]| match is_whole {
            true => is_not_code(word) && (word == trimmed || is_not_code(trimmed)),
            false => !word.contains(&b'"') && has_marks(word),
        };
        let word = if is_whole && is_not_code(word) { word } else { trimmed };
        self.end = self.start + word.len();
        let is_longer = !word.iter().all(|b| Body::Token68.has(*b)) && !is_variable(word);
        (is_longer && is_password(word)).then_some(self)
    }

    /// Returns the end of the value with what is joined to it.
    pub fn joined_end(&self, bytes: &[u8], end: usize) -> usize {
        joined_end(bytes, end, self.quote)
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

/// Whether what is before a name on its line is the beginning of a line in a configuration file.
fn begins_line(before: &[u8]) -> bool {
    let before = before.trim_ascii_start();
    let before = before.strip_prefix(b"export ").or(before.strip_prefix(b"- ")).unwrap_or(before);
    before.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/'))
}

/// Returns the end of a value with the strings that are joined to it: the next ones in quotes, and the next lines of a value
/// that is wrapped.
pub fn joined_end(bytes: &[u8], mut end: usize, quote: Option<u8>) -> usize {
    loop {
        let near = &bytes[..bytes.len().min(end + 96)];
        let next = match quote {
            Some(quote @ (b'"' | b'\'' | b'`')) if near.get(end) == Some(&quote) => {
                let at = run(near, end + 1, |b| b.is_ascii_whitespace() || matches!(b, b'+' | b'.' | b'&' | b'\\'));
                if at == end + 1 || near.get(at) != Some(&quote) { None } else { Some(at + 1) }
            }
            _ => wrapped(near, end),
        };
        let Some(next) = next else { return end };
        let far = &bytes[..bytes.len().min(next + LOOKED_AT)];
        let stop = run(far, next, |b| Body::Token68.has(b));
        let closes = quote.is_none_or(|quote| matches!(far.get(stop), Some(b'\\' | b'\n')) || far.get(stop) == Some(&quote));
        if !closes
            || stop - next < 12
            || !(looks_random(&bytes[next..stop]) || is_mixed_case(&bytes[next..stop]))
            || is_words(&bytes[next..stop])
        {
            return end;
        }
        end = stop;
    }
}

/// Returns the start of the next line of a wrapped value: after a backslash, or after the `=` of quoted-printable text.
fn wrapped(near: &[u8], end: usize) -> Option<usize> {
    let mark = run(near, end, |b| matches!(b, b'\\' | b'='));
    let is_marked = mark > end || end > 0 && near[end - 1] == b'=';
    let next = run(near, mark, |b| matches!(b, b'\n' | b'\r' | b' '));
    (is_marked && near.get(mark).is_some_and(|b| matches!(b, b'\n' | b'\r'))).then_some(next)
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
    let from = if bytes[from..].starts_with(b"\\\n") { run(bytes, from + 2, |b| matches!(b, b' ' | b'\t')) } else { from };
    let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\''));
    let line = line_before(bytes, name.start);
    let own = &bytes[name.start..name.end];
    let is_assigned = matches!(bytes.get(from), Some(b'=' | b':'));
    let is_option =
        !is_assigned && own.starts_with(b"--") || own.starts_with(b"-") && own.len() > 4 && own[1..].iter().all(|b| *b != b'-');
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
    let set = set || find(line, b"nmcli ").is_some() || find(line, b" config set ").is_some() && own.starts_with(b"_auth");
    let netrc = password && is_netrc(line);
    let config = own.eq_ignore_ascii_case(b"requirepass") || own.eq_ignore_ascii_case(b"masterauth");
    // Redis, at the start of a line.
    let config = config || own == b"AUTH" && (line.is_empty() || line.ends_with(b"\""));
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
    let line = line.rsplit(|b| *b == b'"').next().unwrap_or(line);
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
    // `AWS Secret Access Key [None]: …`, `Unseal Key 1: …`
    let begun = cursor.at;
    let default = cursor.skip(b"[") && {
        cursor.at = run(bytes, cursor.at, |b| b.is_ascii_alphanumeric() || b == b'*').min(cursor.at + 24);
        cursor.skip(b"]")
    };
    let numbered = !default && cursor.skip(b"0123456789");
    if !(default || numbered) || !matches!(cursor.peek(), Some(b':')) {
        cursor.at = begun;
    }
    // Markdown: `**Password:** …`.
    let begun = cursor.at;
    if cursor.eat(":**") || cursor.eat("**:") || cursor.eat(":__") {
        cursor.skip(b" ");
        return Some(match cursor.quote() {
            Some(quote) => quoted(bytes, cursor.at, quote, Form::Quoted),
            None => plain(bytes, cursor.at, Form::Plain),
        });
    }
    cursor.at = begun;
    // The colon of Chinese and Japanese.
    if cursor.eat("：") {
        cursor.skip(b" ");
        return Some(plain(bytes, cursor.at, Form::Plain));
    }
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
    // A value on the next line, and a tag of YAML.
    if cursor.eat("\\\n") {
        cursor.skip(b" \t");
    } else if colon && cursor.peek() == Some(b'!') {
        let end = run(bytes, cursor.at, |b| b == b'!' || b.is_ascii_alphabetic());
        cursor.at = if bytes.get(end) == Some(&b' ') { end + 1 } else { cursor.at };
    }
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
pub fn line_before(bytes: &[u8], at: usize) -> &[u8] {
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
