//! Values near a name without a form of their own: in prose, on the next line, in a table, in quotes on the same line.

use super::assigned::without_escape;
use super::forms::{joined_end, line_before};
use super::names::{Name, NameKind, is_last};
use super::values::{
    Span, boundary, changes_often, find, has_marks, is_mark, is_mixed_case, is_not_code, is_plain_words, is_random_letters,
    is_reference, is_secret_string, is_strong_short, is_variable, looks_generated, looks_invented, looks_random, looks_set, run,
    starts_with_folded,
};

/// Bytes after a name that are searched for a value.
const NEAR: usize = 96;
/// Length of a value that can only be a secret, in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 20..=128;

/// Returns the value near a name; called if the name's own forms gave none.
pub fn nearby(bytes: &[u8], name: &Name) -> Option<Span> {
    let near = &bytes[..bytes.len().min(name.end + NEAR)];
    let in_value = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let mut at = run(near, name.end, in_value);
    let own = &bytes[name.start..name.end];
    let is_password = matches!(name.kind, NameKind::Password | NameKind::ShortPassword);
    if is_last(own) || is_password || own.eq_ignore_ascii_case(b"login") {
        let found = declared(bytes, name, is_password)
            .or_else(|| said(near, name.end, is_password))
            .or_else(|| said_before(bytes, name))
            .or_else(|| phrase(bytes, name))
            .or_else(|| with_user(near, name))
            .or_else(|| on_next_line(bytes, name))
            .or_else(|| in_row(bytes, name));
        if found.is_some() {
            return found;
        }
    }
    if let Some(span) = quoted_on_line(near, at) {
        return Some(span);
    }
    // Only on its line: the next lines of code are about something else. Nor the value of another option.
    let line = run(near, name.end, |b| b != b'\n');
    let line = find(&near[at..line], b" --").map_or(line, |option| at + option);
    while at < line {
        let start = run(&near[..line], at, |b| !b.is_ascii_alphanumeric());
        let end = run(bytes, start, in_value);
        if stands_alone(bytes, start, end) && is_issued(&bytes[start..end]) {
            return Some(Span { start, end, family: "assigned-secret", guessless: true });
        }
        at = end.max(start + 1);
    }
    None
}

/// Whether a short name stands in a quoted pattern of words: `grep -E "FAIL|PASS|ok"`.
pub fn is_in_pattern(bytes: &[u8], name: &Name) -> bool {
    let is_part = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'|' | b'^' | b'$' | b':');
    let end = run(&bytes[..bytes.len().min(name.end + NEAR)], name.end, is_part);
    let before = bytes[name.start.saturating_sub(NEAR)..name.start].iter().rev();
    let start = name.start - before.take_while(|b| is_part(**b)).count();
    let quote = start.checked_sub(1).and_then(|at| bytes.get(at));
    name.kind == NameKind::ShortPassword
        && matches!(quote, Some(b'"' | b'\''))
        && bytes.get(end) == quote
        && bytes[start..end].contains(&b'|')
}

fn found(start: usize, end: usize) -> Span {
    Span { start, end, family: "assigned-secret", guessless: false }
}

/// Returns the end of the word at `from` without the marks that end a sentence, and without quotes.
fn word_end(near: &[u8], from: usize) -> usize {
    // In Chinese and Japanese, no blank follows a password: `密码是 …，请`.
    let end = run(near, from, |b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b')'));
    end - near[from..end].iter().rev().take_while(|b| matches!(b, b'.' | b':')).count()
}

/// Returns a random value in the first quotes after a name, with only code in between: `char api_key[] = "…"`,
/// `{ get; set; } = "…"`, `setToken("…")`, `(setq token "…")`, `variable "db_key" {⏎  default = "…"`.
fn declared(bytes: &[u8], name: &Name, is_password: bool) -> Option<Span> {
    let (own, near) = (&bytes[name.start..name.end], &bytes[..bytes.len().min(name.end + NEAR)]);
    let from = run(near, name.end, |b| matches!(b, b'"' | b'\''));
    let quote = run(near, from, |b| !matches!(b, b'"' | b'\'' | b'`'));
    let between = near.get(from..quote).filter(|between| between.len() <= 48)?;
    let opens = between.trim_ascii_end();
    let line_ends = between.contains(&b'\n') && !opens.ends_with(b"default =") && !opens.ends_with(b"= (");
    let compared = between.windows(2).any(|two| matches!(two, b"==" | b"!="));
    let end = run(near, quote + 1, |b| Some(&b) != near.get(quote) && b != b'\n');
    let value = near.get(quote + 1..end)?;
    let value = without_escape(value);
    let end = quote + 1 + value.len();
    let found =
        !line_ends && !compared && !between.contains(&b',') && [end, end + 1].iter().any(|at| near.get(*at) == near.get(quote));
    let is_made = is_last(own) && looks_random(value) && !is_reference(value)
        || is_password && looks_generated(value)
        || is_not_code(value) && is_secret_string(value);
    (found && is_made && !is_plain_words(value)).then(|| Span {
        start: quote + 1,
        end: joined_end(bytes, end, bytes.get(quote).copied()),
        family: "assigned-secret",
        guessless: value.len() >= 16,
    })
}

/// Verbs and marks between a name and its value in prose, in several languages.
const VERBS: [&str; 28] = [
    " is: ",
    " is ",
    " was ",
    " es: ",
    " es ",
    " era ",
    " ist: ",
    " ist ",
    " lautet: ",
    " lautet ",
    " est: ",
    " est ",
    " é: ",
    " é ",
    " è: ",
    " è ",
    " to ",
    " je ",
    " är ",
    " er ",
    " on ",
    " - ",
    " – ",
    " — ",
    "は",
    "是",
    "为",
    "：",
];
/// Phrases after a comma that ask for a value.
const ASKS: [&str; 6] = [", type ", ", enter ", ", use ", ", try ", ", it's ", ", it is "];
/// Maximum bytes of words between a name and its verb: `for the staging box`.
const GAP: usize = 48;

/// Returns a value given in prose: `the db password is … for staging`, `I set the password of root to …`.
fn said(near: &[u8], from: usize, is_password: bool) -> Option<Span> {
    let line = &near[..run(near, from, |b| b != b'\n')];
    let behind = line.get(from..)?;
    let is_gap = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'-' | b'_' | b'/' | b'\'' | b'(' | b')');
    let gap = run(&behind[..behind.len().min(GAP)], 0, is_gap);
    let is_between = [&b" for "[..], b" of ", b" on ", b" to ", b" in ", b" ("].iter().any(|word| behind.starts_with(word));
    let after = |verb: &&str| behind.starts_with(verb.as_bytes()).then_some(verb.len());
    let further = |verb: &&str| find(&behind[..gap.max(verb.len()).min(behind.len())], verb.as_bytes()).map(|at| at + verb.len());
    let direct = VERBS.iter().find_map(&after);
    let behind_gap = || is_between.then(|| [" is: ", " is ", " to "].iter().find_map(&further)).flatten();
    // `pw: …`; a longer name has a form of its own.
    let short = (is_password && behind.starts_with(b": ")).then_some(2).map(|at| from + at);
    if let Some(start) = short {
        let end = word_end(line, start);
        return looks_generated(&line[start..end]).then(|| found(start, end));
    }
    let asked = || ASKS.iter().find_map(&after);
    let candidates = direct.into_iter().chain(behind_gap()).chain(asked());
    candidates.map(|at| value_said(line, from + at)).find(Option::is_some).flatten()
}

/// Returns the value at `from`, in quotes or not, if it can be nothing but one.
fn value_said(line: &[u8], from: usize) -> Option<Span> {
    let start = run(line, from, |b| matches!(b, b' ' | b'"' | b'\'' | b'`'));
    let end = word_end(line, start);
    let value = &line[start..end];
    let is_made = looks_generated(value) || looks_set(value) || has_marks(value) || looks_invented(value);
    (is_made && !is_plain_words(value) && !is_variable(value) && !is_mark(value)).then(|| found(start, end))
}

/// Returns the value of `use … as the password`.
fn said_before(bytes: &[u8], name: &Name) -> Option<Span> {
    let line = line_before(bytes, name.start);
    let line = &line[line.len().saturating_sub(NEAR)..];
    let as_ = line.windows(4).rposition(|four| four == b" as ")?;
    let is_plain = line[as_ + 4..].iter().all(|b| b.is_ascii_alphabetic() || *b == b' ');
    let start = line[..as_].iter().rposition(|b| matches!(b, b' ' | b'"' | b'`' | b'\'')).map_or(0, |i| i + 1);
    let offset = name.start - line.len();
    (is_plain && looks_generated(&line[start..as_])).then(|| found(offset + start, offset + as_))
}

/// Returns a passphrase of words: `the passphrase is basil-yonder-saddle-nectar`, `mnemonic = "abandon ability …"`.
fn phrase(bytes: &[u8], name: &Name) -> Option<Span> {
    let own = &bytes[name.start..name.end];
    let is_phrase = ["phrase", "mnemonic"]
        .iter()
        .any(|word| own.len() >= word.len() && starts_with_folded(&own[own.len() - word.len()..], word));
    let line = &bytes[..run(&bytes[..bytes.len().min(name.end + 320)], name.end, |b| b != b'\n')];
    let behind = line.get(name.end..).filter(|_| is_phrase)?;
    let verb = [" is: ", " is ", ": ", " = ", "=", "\": ", ":"].iter().find(|verb| behind.starts_with(verb.as_bytes()));
    let verb = verb.map(|verb| verb.len()).or_else(|| find(behind, b": ").map(|at| at + 2))?;
    let start = run(line, name.end + verb, |b| matches!(b, b'"' | b'\'' | b'`' | b' '));
    let is_quoted = line[name.end..start].iter().any(|b| matches!(b, b'"' | b'\'' | b'`'));
    let joined = run(line, start, |b| b.is_ascii_lowercase() || matches!(b, b'-' | b'.' | b'_'));
    let spaced = run(line, start, |b| b.is_ascii_lowercase() || b == b' ');
    let parts = |end: usize| bytes[start..end].split(|b| !b.is_ascii_lowercase()).filter(|part| part.len() >= 3).count();
    let is_long = |end: usize| parts(end) >= 12 || is_quoted && parts(end) >= 4;
    let joined = start + bytes[start..joined].trim_ascii_end().strip_suffix(b".").map_or(joined - start, <[u8]>::len);
    if parts(joined) >= 4 && !bytes[start..joined].contains(&b' ') && bytes.get(joined) != Some(&b'(') {
        return Some(found(start, joined));
    }
    is_long(spaced).then(|| found(start, start + bytes[start..spaced].trim_ascii_end().len()))
}

/// Returns the second part of `credentials: bob:…`, `login: bob / …`.
fn with_user(near: &[u8], name: &Name) -> Option<Span> {
    let line = &near[..run(near, name.end, |b| b != b'\n')];
    let user = name.end + [&b": "[..], b" are "].iter().find(|verb| line[name.end..].starts_with(verb))?.len();
    let end = run(line, user, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@'));
    let start = run(line, end, |b| matches!(b, b' ' | b':' | b'/' | b','));
    let stop = word_end(line, start);
    let is_between = line[end..start].iter().any(|b| matches!(b, b':' | b'/')) && find(&line[end..start], b"//").is_none();
    let value = &line[start..stop];
    (user < end && is_between && (looks_generated(value) || looks_invented(value) || has_marks(value) || is_mixed_case(value)))
        .then(|| found(start, stop))
}

/// Returns a value that is alone on the line after its name: `Password:⏎…`, and what a command prints that asks for a secret:
/// `aws ecr get-login-password⏎…`.
fn on_next_line(bytes: &[u8], name: &Name) -> Option<Span> {
    let near = &bytes[..bytes.len().min(name.end + 2 * NEAR)];
    let line_end = run(near, name.end, |b| b != b'\n' && b != b'\r');
    let rest = &near[name.end..line_end];
    let marks = run(rest, 0, |b| matches!(b, b':' | b'}' | b'\'' | b'"' | b')' | b'?' | b' ' | b'>'));
    let decodes = rest[marks..].starts_with(b"| ");
    let is_command = line_before(bytes, name.start).trim_ascii_start().starts_with(b"$ ");
    let announces = rest.trim_ascii_end().ends_with(b":");
    // `def f(password):` and Python's `pass`
    let is_code =
        rest.contains(&b')') && !rest.contains(&b'(') && announces || rest.is_empty() && &bytes[name.start..name.end] == b"pass";
    if is_code {
        return None;
    }
    if marks < rest.len() && !decodes && !is_command && !announces || line_end == near.len() {
        return None;
    }
    let start = run(bytes, line_end, |b| matches!(b, b'\n' | b'\r'));
    let start = run(bytes, start, |b| b == b' ');
    let end = run(&bytes[..bytes.len().min(start + 4096)], start, |b| !b.is_ascii_whitespace());
    let is_alone = start - line_end <= 8 && bytes.get(end).is_none_or(|b| matches!(b, b'\n' | b'\r'));
    let value = &bytes[start..end.min(start + 256)];
    let is_made = looks_generated(value)
        || (has_marks(value) || is_not_code(value)) && value.len() <= 64
        || value.len() >= 20 && looks_random(value);
    (is_alone && is_made && !is_variable(value) && !is_email(value)).then(|| found(start, end))
}

/// Returns the line before the one that begins at `start`.
fn line_above(bytes: &[u8], start: usize) -> &[u8] {
    start.checked_sub(1).map_or(&[], |end| line_before(bytes, end))
}

/// Returns the values below a name in a table whose columns are aligned by blanks.
fn in_aligned_column(bytes: &[u8], name: &Name) -> Vec<Span> {
    let column = line_before(bytes, name.start).len();
    let header_end = run(&bytes[..bytes.len().min(name.end + HEADER)], name.end, |b| b != b'\n');
    let above = line_above(bytes, name.start - column);
    let is_row = above.get(column.saturating_sub(2)..=column).is_some_and(|cell| cell.starts_with(b"  ") && cell[2] != b' ');
    let is_header =
        !is_row && bytes[name.start - column..header_end].iter().all(|b| b.is_ascii_alphanumeric() || b" _-()\r".contains(b));
    let mut spans = Vec::new();
    let mut line = header_end + 1;
    for _ in 0..if is_header { ROWS } else { 0 } {
        let end = run(&bytes[..bytes.len().min(line + 1000).min(header_end + TABLE)], line, |b| b != b'\n');
        let Some(cell) = bytes.get(line + column..end).filter(|_| line < header_end + TABLE) else { break };
        let value = &cell[..run(cell, 0, |b| b.is_ascii_graphic())];
        let begins = bytes.get(line + column - 1) == Some(&b' ');
        if begins && (looks_generated(value) || has_marks(value) || looks_invented(value)) && !is_variable(value) {
            spans.push(found(line + column, line + column + value.len()));
        }
        line = end + 1;
    }
    spans
}

/// Returns the last word of a line, if at most a number is between it and the name: `secret_id            5dc8c331-…`,
/// `db_password  3  …`, `rootpw …`, `password 0 …`. Only words in small letters may come before the name.
fn in_row(bytes: &[u8], name: &Name) -> Option<Span> {
    let line = &bytes[..run(&bytes[..bytes.len().min(name.end + NEAR)], name.end, |b| !matches!(b, b'\n' | b'\r'))];
    let is_first = line_before(bytes, name.start).iter().all(|b| b.is_ascii_whitespace() || b.is_ascii_lowercase());
    let words: Vec<&[u8]> = line[name.end..].split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty()).collect();
    let is_value = match words[..] {
        [_] => true,
        [number, _] => number.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let end = line.trim_ascii_end().len();
    let value = words.last().copied().unwrap_or_default();
    let starts = end - value.len();
    let is_separate = matches!(bytes.get(name.end), Some(b' ' | b'\t'));
    let is_made = looks_generated(value) || has_marks(value) || is_not_code(value) || looks_invented(value);
    (is_value && is_separate && is_first && is_made && !is_variable(value)).then(|| found(starts, end))
}

/// Maximum bytes of a sentence after a name.
const SENTENCE: usize = 80;

/// Returns the words after the name of a password that can only be passwords, with prose between: `the password of root on the
/// old box: …`, `das Passwort lautet …`.
pub fn in_sentence(bytes: &[u8], name: &Name) -> Vec<Span> {
    if !matches!(name.kind, NameKind::Password | NameKind::ShortPassword) {
        return Vec::new();
    }
    let line = &bytes[..run(&bytes[..bytes.len().min(name.end + SENTENCE)], name.end, |b| b != b'\n')];
    let mut spans = Vec::new();
    let mut at = name.end;
    while at < line.len() {
        let start = run(line, at, |b| matches!(b, b' ' | b'"' | b'\'' | b'`' | b',' | b':') || b >= 0x80);
        let end = word_end(line, start);
        let word = &line[start..end];
        let stop = run(line, start, |b| b.is_ascii_graphic());
        // A sentence has words, numbers, and passwords.
        let is_word =
            word.iter().all(|b| b.is_ascii_alphanumeric() || *b >= 0x80 || matches!(b, b'-' | b'.' | b'\'' | b'/' | b'_' | b'@'));
        let is_whole = bytes
            .get(end)
            .is_none_or(|b| b.is_ascii_whitespace() || *b >= 0x80 || matches!(b, b'"' | b'\'' | b'`' | b',' | b'.'));
        let has_mark = word.iter().any(|b| b"!?#@^&*+%$~".contains(b));
        let is_password = is_whole
            && word.len() >= 8
            && (looks_generated(word) || looks_invented(word) || has_mark && has_marks(word) && !is_email(word));
        if is_password && start > name.end && !is_variable(word) && !is_mark(word) {
            spans.push(found(start, end));
        } else if word.starts_with(b"--") || !is_word && !matches!(word, b"=>" | b"->" | b"-") {
            break;
        }
        at = stop.max(end + 1);
    }
    spans
}

/// Whether a word is an address: `name2@host.example`.
fn is_email(word: &[u8]) -> bool {
    let at = word.iter().position(|b| *b == b'@');
    at.is_some_and(|at| word[at..].contains(&b'.') && word.iter().all(|b| b.is_ascii_alphanumeric() || b"@._-+".contains(b)))
}

/// Maximum bytes of a table's header after a name, and maximum rows and bytes below it: each name in a text may be a header.
const HEADER: usize = 400;
const ROWS: usize = 100;
const TABLE: usize = 8000;

/// Returns the values in the column of a table whose header is a name: Markdown, CSV, tabs.
pub fn in_column(bytes: &[u8], name: &Name) -> Vec<Span> {
    let before = bytes[..name.start].iter().rev().find(|b| **b != b' ').copied();
    let after = bytes[name.end..].iter().find(|b| !matches!(b, b' ' | b'\r')).copied();
    let is_end = |b: Option<u8>| b.is_none_or(|b| b == b'\n');
    if bytes[..name.start].ends_with(b"  ") && bytes.get(name.end).is_none_or(|b| b.is_ascii_whitespace()) {
        return in_aligned_column(bytes, name);
    }
    let mark = [before, after].into_iter().flatten().find(|b| matches!(b, b'|' | b'\t' | b',' | b';'));
    let Some(mark) = mark.filter(|mark| [before, after].iter().all(|b| is_end(*b) || *b == Some(*mark))) else {
        return Vec::new();
    };
    let line_start = name.start - line_before(bytes, name.start).len();
    let column = bytes[line_start..name.start].iter().filter(|b| **b == mark).count();
    let header_end = run(&bytes[..bytes.len().min(name.end + HEADER)], name.end, |b| b != b'\n');
    let header = &bytes[line_start..header_end];
    // A list of names in code is no header, and neither is a row.
    if header.len() > HEADER || header.iter().any(|b| matches!(b, b'(' | b')' | b'{' | b'}' | b'=' | b'[' | b'"' | b'\'')) {
        return Vec::new();
    }
    let width = header.iter().filter(|b| **b == mark).count();
    let cells = || header.split(|b| *b == mark).map(<[u8]>::trim_ascii).filter(|cell| !cell.is_empty());
    let above = line_above(bytes, line_start);
    let is_row = above.iter().filter(|b| **b == mark).count() == width && above.iter().any(u8::is_ascii_alphanumeric);
    if is_row || mark != b'|' && cells().count() < 2 || cells().any(|cell| cell[0].is_ascii_digit()) {
        return Vec::new();
    }
    let mut spans = Vec::new();
    let mut line = header_end + 1;
    for _ in 0..ROWS {
        let end = run(&bytes[..bytes.len().min(line + 1000).min(header_end + TABLE)], line, |b| b != b'\n');
        // A line between the header and the rows.
        if end > line && bytes[line..end].iter().all(|b| matches!(b, b'-' | b'+' | b'=' | b'|' | b':' | b' ' | b'\r')) {
            line = end + 1;
            continue;
        }
        let Some(row) = bytes.get(line..end).filter(|row| row.iter().filter(|b| **b == mark).count() == width && !row.is_empty())
        else {
            break;
        };
        let cell = row.split(|b| *b == mark).nth(column).unwrap_or_default();
        let offset = row.split(|b| *b == mark).take(column).map(|cell| cell.len() + 1).sum::<usize>();
        let start = line + offset + (cell.len() - cell.trim_ascii_start().len());
        let value = cell.trim_ascii();
        if (looks_generated(value) || looks_set(value) || has_marks(value) || looks_invented(value)) && !is_variable(value) {
            spans.push(found(start, boundary(bytes, start + value.len())));
        }
        line = end + 1;
    }
    spans
}

/// Whether a text ends with the whole JSON name of an id: `"session_id":`, `"spawned_agent": `. Of `secret_id` only the end is
/// there.
fn is_named_id(before: &[u8]) -> bool {
    const IDS: [&[u8]; 5] = [b"id", b"Id", b"uuid", b"agent", b"sha"];
    let name = before.trim_ascii_end().strip_suffix(b":").and_then(|name| name.trim_ascii_end().strip_suffix(b"\""));
    let start = |name: &[u8]| name.iter().rposition(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')));
    name.is_some_and(|name| start(name).is_some_and(|at| name[at] == b'"') && IDS.iter().any(|id| name.ends_with(id)))
}

/// Returns a strong value in quotes on the name's line: `setPassword("…")`, `if password == "…"`,
/// `ENV.fetch('PW', '…')`.
fn quoted_on_line(near: &[u8], from: usize) -> Option<Span> {
    let line = &near[..run(near, from, |b| b != b'\n')];
    let is_quote = |b: u8| matches!(b, b'"' | b'\'' | b'`');
    let mut at = run(line, from, |b| !is_quote(b));
    while at < line.len() {
        let start = at + 1;
        let close = run(line, start, |b| b != line[at]);
        let end = start + without_escape(&line[start..close]).len();
        if close < line.len()
            && !is_named_id(&line[from..at])
            && (is_strong_short(&line[start..end]) || line.len() - from < 96 && is_secret_string(&line[start..end]))
        {
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
    LENGTH.contains(&value.len()) && (mixed && !is_plain_words(value) && !is_reference(value) || is_random_letters(value))
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
    fn passwords_are_found_as_people_write_them() {
        for text in [
            "The password for the staging box is «zs8iAMaBAak3g6»",
            "I changed the root password to «wmQnG2nbNHW1So»",
            "use «Tiger@6140!ylz» as the password",
            "it asks for a password, type «Falcon&0673!mar»",
            "user bob, password «Turtle!liverpool1782», as ever",
            "Das Passwort für den Testserver lautet «Kf-0m8Vfq!gHj», bitte nicht weitergeben",
            "数据库密码是 «Pizza.oslo06»，请写进配置文件。",
            "Пароль от базы: «7GlgkvqTtdva7F», логин прежний",
            "credentials: bob:«qPFVXXJmKiNyoH»",
            "The passphrase is «basil-yonder-saddle-nectar-meadow», keep it safe",
            "Enter password: \n«Cobalt?2194#rap»\nWelcome",
            "$ aws ecr get-login-password\n«eyJwYXlsb2FkIjoi4oCxAMlvgds0U56ebfiTRTpUuua3ohII»",
            "secret_id             «5dc8c331-02fd-1ca8-9e6f-94a7eda8bc8f»",
            "| user | password |\n|------|----------|\n| bob  | «Tiger+8573#ldl» |",
            "user\tpassword\nbob\t«Kiwi&7298*yhu»",
            "HOST        USER    PASSWORD\nweb01       root    «Winter!berlin5173»",
            "password = «&(}i?^IpZNH6MMaP%7»",
            "spring.datasource.password=«?eoJk&o]#rI3+925}]c5»",
            "admin_passwd = «Pluto%2690#foj»",
            "senha: «b4awYLuLBsW8tf»",
            "secret = (\"«44LXidETrxbfJguRbL5N\"\n          \"GtCMQQtpshrjjgDoVYFX»\")",
        ] {
            let (before, secret) = text.split_once('«').unwrap();
            let (secret, behind) = secret.split_once('»').unwrap();
            let spans = scan(&format!("{before}{secret}{behind}"));
            assert!(spans.iter().any(|s| (s.start, s.end) == (before.len(), before.len() + secret.len())), "{text}: {spans:?}");
        }
    }

    #[test]
    fn prose_and_code_about_passwords_stay() {
        for text in [
            "The password must have at least 12 characters, 1 digit and 1 mark",
            "password: Optional[str] = None",
            "let password = std::env::var(\"DB_PASSWORD\")?;",
            "password=get_secret2(name)[\"value\"]",
            "| name | password policy |\n|------|-----|\n| a1 | 12 characters |",
            "const PIN_KEY: KeyType2 = 4;",
            "SSH_PRIVATE_KEY\t2026-02-19T20:13:44Z\nDB_PASSWORD\t2026-02-19T20:13:44Z",
            "password: ${{ secrets.DB_PASSWORD_2 }}",
            "heroku config:set NODE_ENV=production PORT=8080",
        ] {
            assert_eq!(scan(text), [], "{text}");
        }
    }

    #[test]
    fn lists_of_packages_names_and_files_stay() {
        for text in [
            "apt\tadduser\t3.152\napt\tpasswd\t1:4.17.4-2\napt\tgcc-14-base:amd64\t14.2.0-19\napt\te2fsprogs\t1.47.2-3+b12",
            "login 1:4.16.0-2+really2.41.5-0+deb13u1",
            "from x import (\n    sign_key,\n    tls13_enabled,\n    vlan_tag_802_1q,\n)",
            "GoogleAppKey = _messages.MessageField('GoogleCloudApigeeV1AppGroupAppKey', 1)",
            "MLKEM768X25519PublicKey = openssl.hpke.MLKEM768X25519PublicKey",
            "cred.token = TEST_ANOTHER_DATA_BASE64",
            "const PRIVATE_KEY: &[u8] = include_bytes!(\"ed25519_test_private_key.bin\");",
            "URI_KEY = 'fs.s3.cse.encryptionMaterialsProvider.uri'",
            "aws cognito-idp confirm-forgot-password --client-id 3n4b5urk1ft4fl3mg5e62d9ado",
            "kind: Secret\nmetadata:\n  name: local-development-credential\ntype: Opaque",
            "def sign(text, client_secret):\n  \"\"\"**HMAC-SHA1**\n",
            "'openssl_x509_check_private_key',\n'openssl_x509_checkpurpose',",
            "cert, key, passphrase = _mtls_helper._run_cert_provider_command(1)",
            concat!("MARKERS = ('-----BEGIN ", "PRIVATE KEY-----', '-----END PRIVATE KEY-----')"),
            "Set-Cookie: CUSTOMER=WILE_E_COYOTE; path=/; expires=Wednesday, 09-Nov-99 23:12:40 GMT",
            "https://user:pass@host:8080/path",
        ] {
            assert_eq!(scan(text), [], "{text}");
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
