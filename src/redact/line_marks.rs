//! Marks of the lines that an edit wrote. Of an edit's text only an excerpt is stored; the marks tell later which edit
//! wrote a line that is in a file today.

use super::Redactor;
use crate::model::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use hmac::Mac;
use std::collections::HashMap;

/// The first 24 bits of the HMAC-SHA-256 of a line without the white space around it, under the key for redaction marks:
/// whoever has the database alone cannot guess a line from it.
pub type LineMark = [u8; 3];

/// Maximum lines of one edit, and bytes of its text, to mark.
const LINES: usize = 1000;
const BYTES: usize = 64 << 10;

impl Redactor {
    /// The mark of a line; `None` without a key, and for a line without text.
    pub fn line_mark(&self, line: &str) -> Option<LineMark> {
        let line = line.trim();
        let mac = self.mac.get_or_init(|| self.new_mac()).as_ref().filter(|_| !line.is_empty())?;
        let mut mac = mac.clone();
        mac.update(line.as_bytes());
        let bytes = mac.finalize().into_bytes();
        Some([bytes[0], bytes[1], bytes[2]])
    }

    /// The marks of the lines that an edit wrote, in base64.
    pub(super) fn written(&self, kind: Kind, input: &str) -> Option<String> {
        let marks = self.marks_of_edit(kind, input);
        (!marks.is_empty()).then(|| BASE64.encode(marks.as_flattened()))
    }

    /// The marks of the lines that an edit wrote, in order. Lines with a secret or with private text have none, and
    /// neither has a line that the edit also removed.
    pub fn marks_of_edit(&self, kind: Kind, input: &str) -> Vec<LineMark> {
        if !matches!(kind, Kind::Edit | Kind::Write) {
            return Vec::new();
        }
        let text = super::without(&input[..input.floor_char_boundary(BYTES)]);
        let text = text.as_deref().unwrap_or(&input[..input.floor_char_boundary(BYTES)]);
        let is_patch = kind == Kind::Edit || text.starts_with("@@ -");
        let spans = self.spans(text);
        // How often each line was removed.
        let mut removed: HashMap<&str, usize> = HashMap::new();
        for line in text.lines().filter(|_| is_patch).filter_map(|line| line.strip_prefix('-')) {
            *removed.entry(line.trim()).or_default() += 1;
        }
        let mut spans = spans.into_iter().peekable();
        let (mut marks, mut at) = (Vec::new(), 0);
        for line in text.split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            while spans.next_if(|span| span.end <= range.start).is_some() {}
            let written = if is_patch { line.strip_prefix('+') } else { Some(line) };
            let Some(written) = written.map(str::trim).filter(|line| !line.is_empty()) else { continue };
            if let Some(times) = removed.get_mut(written).filter(|times| **times > 0) {
                *times -= 1;
                continue;
            }
            if spans.peek().is_some_and(|span| span.start < range.end) {
                continue;
            }
            let Some(mark) = self.line_mark(written) else { return Vec::new() };
            marks.push(mark);
            if marks.len() >= LINES {
                break;
            }
        }
        marks
    }
}

/// The marks in a tool use's metadata.
pub fn marks_of(written: &str) -> Vec<LineMark> {
    let bytes = BASE64.decode(written).unwrap_or_default();
    bytes.chunks_exact(3).map(|mark| [mark[0], mark[1], mark[2]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        Redactor::new(&[], &[], Some(Box::new(|| Some([7; 32])))).unwrap()
    }

    fn lines(kind: Kind, input: &str, known: &[&str]) -> Vec<String> {
        let redactor = redactor();
        let marks = marks_of(&redactor.written(kind, input).unwrap_or_default());
        let name = |mark: &LineMark| {
            let line = known.iter().find(|line| redactor.line_mark(line).as_ref() == Some(mark));
            line.map_or("?".to_string(), |line| line.to_string())
        };
        marks.iter().map(name).collect()
    }

    #[test]
    fn only_what_an_edit_wrote_is_marked() {
        let known = ["a", "b", "c", "}"];
        assert_eq!(lines(Kind::Edit, "@@ -1 +1 @@\n a\n-b\n+  c\n+}\n", &known), ["c", "}"]);
        assert_eq!(lines(Kind::Edit, "-a\n-b\n+a\n+c\n", &known), ["c"], "what was there before is not written");
        assert_eq!(lines(Kind::Write, "a\n\n  b\n", &known), ["a", "b"]);
        assert_eq!(lines(Kind::Write, "@@ -0 +1 @@\n+a\n", &known), ["a"]);
        assert_eq!(lines(Kind::Command, "a\n", &known), [""; 0]);
        assert_eq!(Redactor::default().written(Kind::Write, "a\n"), None, "without a key there are no marks");
    }

    #[test]
    fn a_line_with_a_secret_has_no_mark() {
        let key = concat!("ghp_", "a8Kd93mZqP01xYtR5vWn27LsBc46EfGhJk0Q");
        let text = format!("a\ntoken = \"{key}\"\n<private>b</private>\nc\n");
        assert_eq!(lines(Kind::Write, &text, &["a", "b", "c", "[redacted:private]"]), ["a", "[redacted:private]", "c"]);
    }
}
