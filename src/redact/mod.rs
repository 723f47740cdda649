//! Redaction: removes secrets and private text before anything is stored or sent. Only this module creates `Clean`
//! values, and the store, the spool, the log and model requests accept nothing else.
//!
//! Read in this order: `scan` (one pass over a text), `families` (known keys and their shapes), `names` (names of
//! secrets) and `forms` (ways to write a value with its name), `values` (spans and plausible values), `assigned`,
//! `nearby` (values in prose and tables), `options` (passwords in command lines and addresses), `path_only` (files whose
//! content is never stored). No regex: compiling the families would cost half as much as a whole hook (ADR/0008). Only the user's own
//! patterns are regexes. `line_marks`: marks by which the lines that an edit wrote are found again.

mod assigned;
mod families;
mod forms;
mod line_marks;
mod names;
mod nearby;
mod options;
mod path_only;
mod scan;
mod values;

use crate::model::{ID, Limit, NAME, Texts};
use crate::text::ends;
pub use line_marks::{LineMark, marks_of};

use families::Body;
use hmac::{Hmac, Mac};
use path_only::Hidden;
use regex::Regex;
use sha2::{Digest, Sha256};
use std::fmt;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use values::Span;

/// A value whose texts have all been redacted.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(transparent)]
pub struct Clean<T>(T);

impl<T> Deref for Clean<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Version of the redaction rules. Raised whenever redaction can find more, so that older texts are checked again.
pub const REDACTION_VERSION: i64 = 4;

/// Bytes at a window's inner edge that are scanned but never stored, so that a secret cut by the edge is not stored
/// either. A 4096-bit RSA key in PEM has 3,300 bytes; for longer blocks the end line is enough
/// ([`Redactor::spans_of_tail`]).
const MARGIN: usize = 4096;

/// Returns the key for marks, read or created when the first mark needs it.
pub type MarkKey = Box<dyn Fn() -> Option<[u8; 32]>>;

/// The built-in families, the user's own patterns, and the rules for path-only files.
#[derive(Default)]
pub struct Redactor {
    patterns: Vec<Regex>,
    hidden: Hidden,
    mark_key: Option<MarkKey>,
    mac: OnceLock<Option<Hmac<Sha256>>>,
    replaced: AtomicU64,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("patterns", &self.patterns.len()).finish_non_exhaustive()
    }
}

impl Redactor {
    /// Compiles the user's patterns; `ignored` are file globs. Without a key, marks do not show which secrets are
    /// equal. The error names the pattern that does not compile.
    pub fn new(patterns: &[String], ignored: &[String], mark_key: Option<MarkKey>) -> Result<Redactor, String> {
        #[expect(clippy::disallowed_methods, reason = "the one place where regexes are made")]
        let compile = |p: &String| Regex::new(p).map_err(|e| format!("redact pattern {p:?}: {e}"));
        let patterns = patterns.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Redactor { patterns, hidden: Hidden::new(ignored), mark_key, ..Redactor::default() })
    }

    /// HMAC-SHA-256 (RFC 2104) of an identity, under the key for marks; without a key, SHA-256.
    pub fn identity_hash(&self, parts: [&str; 3]) -> [u8; 32] {
        let text = parts.join("\n");
        match self.hmac(&text) {
            Some(hash) => hash,
            None => Sha256::digest(text.trim_end()).into(),
        }
    }

    /// Like [`Redactor::identity_hash`] without a key. Schema 14 recorded whole sessions this way.
    pub fn unkeyed_identity_hash(platform: &str, session: &str) -> [u8; 32] {
        Sha256::digest(format!("{platform}\n{session}")).into()
    }

    fn hmac(&self, text: &str) -> Option<[u8; 32]> {
        let mut mac = self.mac.get_or_init(|| self.new_mac()).clone()?;
        mac.update(text.as_bytes());
        Some(mac.finalize().into_bytes().into())
    }

    fn new_mac(&self) -> Option<Hmac<Sha256>> {
        Hmac::new_from_slice(&self.mark_key.as_ref().and_then(|key| key())?).ok()
    }

    /// Number of secrets and private parts replaced so far.
    pub fn replaced(&self) -> u64 {
        self.replaced.load(Ordering::Relaxed)
    }

    /// The mark for a secret: its family and, if the secret cannot be guessed, 24 bits of HMAC-SHA-256 (RFC 2104), so
    /// that equal secrets have equal marks (ADR/0011).
    fn mark(&self, secret: &str, span: &Span) -> String {
        self.replaced.fetch_add(1, Ordering::Relaxed);
        match Some(secret).filter(|_| span.guessless).and_then(|secret| self.hmac(secret)) {
            Some(h) => format!("[redacted:{}#{:02x}{:02x}{:02x}]", span.family, h[0], h[1], h[2]),
            None => format!("[redacted:{}]", span.family),
        }
    }

    /// Redacts every text of `value` and cuts it to its limit.
    ///
    /// If redaction fails on a text, the text is dropped. An id or name is kept if it consists of letters, digits and
    /// `-_.:/`.
    pub fn clean<T: Texts>(&self, mut value: T) -> Clean<T> {
        if let Some((tool, folder)) = value.tool_use()
            && catch_unwind(AssertUnwindSafe(|| self.hidden.withhold(tool, folder.as_deref()))).is_err()
        {
            tool.input = None;
            tool.outcome = None;
            tool.content = None;
            tool.metadata.response = None;
        }
        if let Some((tool, _)) = value.tool_use()
            && let Some(input) = tool.input.as_deref().filter(|_| tool.succeeded != Some(false))
        {
            let marks = || self.written(tool.kind, input);
            tool.metadata.written = catch_unwind(AssertUnwindSafe(marks)).ok().flatten();
        }
        value.texts(&mut |text, limit| {
            let Ok(kept) = catch_unwind(AssertUnwindSafe(|| self.redact(text, limit))) else {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
                if (limit != NAME && limit != ID) || text.len() > 200 || !text.chars().all(plain) {
                    *text = String::from("[dropped: redaction failed]");
                }
                return;
            };
            if let Some(kept) = kept {
                *text = kept;
            }
        });
        Clean(value)
    }

    /// Redacts a stored text again, under rules that may have changed; `None` if nothing changes. Nothing is cut. Text
    /// that is JSON stays JSON.
    pub fn again(&self, text: &str, is_id: bool) -> Option<Clean<String>> {
        let cleaned = catch_unwind(AssertUnwindSafe(|| {
            if is_id {
                return self.redact(text, ID);
            }
            // What stands on the two sides of a cut was not next to each other.
            let parts = text.split_inclusive(CUT).map(|part| (part, self.redact(part, Limit(usize::MAX / 4))));
            let parts: Vec<(&str, Option<String>)> = parts.collect();
            let is_changed = parts.iter().any(|(_, cleaned)| cleaned.is_some());
            is_changed.then(|| parts.iter().map(|(part, cleaned)| cleaned.as_deref().unwrap_or(part)).collect::<String>())
        }));
        let Ok(cleaned) = cleaned else { return Some(Clean(String::from("[dropped: redaction failed]"))) };
        let cleaned = cleaned.filter(|cleaned| cleaned != text)?;
        let json = serde_json::from_str::<serde_json::Value>(text).ok().filter(|json| json.is_array() || json.is_object());
        match json {
            Some(mut json) if serde_json::from_str::<serde::de::IgnoredAny>(&cleaned).is_err() => {
                self.strings_again(&mut json);
                Some(Clean(json.to_string()))
            }
            _ => Some(Clean(cleaned)),
        }
    }

    fn strings_again(&self, json: &mut serde_json::Value) {
        match json {
            serde_json::Value::String(text) => {
                if let Some(cleaned) = self.again(text, false) {
                    *text = cleaned.0;
                }
            }
            serde_json::Value::Array(list) => list.iter_mut().for_each(|value| self.strings_again(value)),
            serde_json::Value::Object(members) => members.values_mut().for_each(|value| self.strings_again(value)),
            _ => {}
        }
    }

    /// Returns the text to store, or `None` if it can stay unchanged.
    fn redact(&self, text: &str, limit: Limit) -> Option<String> {
        // Colour codes may separate a key from its context, and mean nothing in a memory.
        let plain = text.contains('\u{1b}').then(|| without_escapes(text));
        let public = without(plain.as_deref().unwrap_or(text)).or(plain);
        let text = public.as_deref().unwrap_or(text);
        if limit == ID {
            // Marks could make two different ids equal.
            return (public.is_some() || !self.spans(text).is_empty() || text.len() > limit.0).then(|| stand_in(text));
        }
        self.redact_public(text, limit).or(public)
    }

    fn redact_public(&self, text: &str, limit: Limit) -> Option<String> {
        let window = limit.0 + 2 * MARGIN;
        if text.len() <= 2 * window {
            let spans = self.spans(text);
            if spans.is_empty() && text.len() <= limit.0 {
                return None;
            }
            return Some(cut_middle(&self.without(text, &spans, 0..text.len()), limit, 0));
        }
        let head = &text[..text.floor_char_boundary(window)];
        let tail = &text[text.floor_char_boundary(text.len() - window)..];
        let kept_head = self.without(head, &self.spans(head), 0..head.floor_char_boundary(head.len() - MARGIN));
        let kept_tail = self.without(tail, &self.spans_of_tail(tail), tail.floor_char_boundary(MARGIN)..tail.len());
        let between = text.len() - kept_head.len().min(text.len()) - kept_tail.len().min(text.len() / 2);
        Some(cut_middle(&(kept_head + &kept_tail), limit, between))
    }

    /// Returns the secrets in the tail window. A key block or a long value that began before the window is removed from
    /// its start.
    fn spans_of_tail(&self, tail: &str) -> Vec<Span> {
        let mut spans = self.spans(tail);
        // A value that fills the margin may have begun, and been recognized, before the window.
        let value = values::run(tail.as_bytes(), 0, |b| Body::Token68.has(b) || matches!(b, b'%' | b'\\'));
        let value = Some(value).filter(|end| *end >= MARGIN && values::looks_random(&tail.as_bytes()[..64]));
        let block = families::end_of_cut_block(tail).map(|end| (end, "private-key"));
        if let Some((end, family)) = block.or(value.map(|end| (end, "cut-value"))) {
            spans.retain(|s| s.start >= end);
            spans.insert(0, Span { start: 0, end, family, guessless: false });
        }
        spans
    }

    fn spans(&self, text: &str) -> Vec<Span> {
        let mut spans = scan::scan(text);
        for pattern in &self.patterns {
            spans.extend(pattern.find_iter(text).filter(|m| !m.is_empty()).map(|m| Span {
                start: m.start(),
                end: m.end(),
                family: "own-pattern",
                guessless: false,
            }));
        }
        if !self.patterns.is_empty() {
            spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
        }
        spans
    }

    /// Copies the range `keep` of `text` and replaces each span in it with a mark.
    fn without(&self, text: &str, spans: &[Span], keep: Range<usize>) -> String {
        let mut out = String::with_capacity(keep.len());
        let mut at = keep.start;
        for span in spans {
            if span.end <= at || span.start >= keep.end {
                continue;
            }
            if span.start > at {
                out.push_str(&text[at..span.start]);
            }
            if span.start >= at || at == keep.start {
                out.push_str(&self.mark(&text[span.start..span.end], span));
            }
            at = span.end;
        }
        if at < keep.end {
            out.push_str(&text[at..keep.end]);
        }
        out
    }
}

/// Removes the escapes of ECMA-48: control sequences (`ESC [ … final`), strings (`ESC ] … BEL` or `ESC \\`), and single
/// characters after ESC.
fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = match rest.as_bytes().first() {
            Some(b'[') => Some(control(rest.as_bytes())),
            Some(b']' | b'P' | b'_' | b'^' | b'X') => rest.find(['\u{7}', '\u{1b}']).map(|i| i + 1).or(Some(1)),
            Some(b'(' | b')') => Some(2),
            Some(0x30..=0x7E) => Some(1),
            Some(_) => Some(0),
            None => None,
        };
        rest = end.and_then(|end| rest.get(end..)).unwrap_or_default();
        // Keep words apart: matchers rely on word boundaries.
        if out.ends_with(char::is_alphanumeric) && rest.starts_with(char::is_alphanumeric) {
            out.push(' ');
        }
    }
    out + rest
}

/// Length of a control sequence from its `[`. An unusual one may be crafted to swallow the first letter of a key, so
/// only its bracket is removed.
fn control(bytes: &[u8]) -> usize {
    let parameters = bytes[1..].iter().take_while(|b| b.is_ascii_digit() || matches!(b, b';' | b':' | b'?')).count();
    let mode = bytes.get(1) == Some(&b'?');
    let usual = |b: &u8| matches!(b, b'm' | b'K' | b'J') || mode && matches!(b, b'h' | b'l');
    if bytes.get(1 + parameters).is_some_and(usual) { parameters + 2 } else { 1 }
}

/// A stable replacement for an id that contains a secret.
fn stand_in(id: &str) -> String {
    let hash = Sha256::digest(id.as_bytes());
    format!("redacted-{}", hash[..12].iter().map(|b| format!("{b:02x}")).collect::<String>())
}

/// End of the mark that stands where a text was cut.
const CUT: &str = " bytes cut …]";

/// Keeps two thirds of the limit from the head and one third from the tail; `missing` bytes have already been cut
/// between them.
fn cut_middle(text: &str, limit: Limit, missing: usize) -> String {
    if text.len() <= limit.0 {
        return text.to_string();
    }
    let room = limit.0.saturating_sub(40);
    let (head, tail) = ends(text, room * 2 / 3, room / 3);
    format!("{head}\n[… {}{CUT}\n{tail}", text.len() - head.len() - tail.len() + missing)
}
/// Returns the text without its private parts; `None` if it has none.
pub fn without(text: &str) -> Option<String> {
    let mut out: Option<String> = None;
    let (mut depth, mut from, mut at) = (0usize, 0, 0);
    while let Some(found) = text[at..].find('<').map(|i| at + i) {
        at = found + 1;
        let Some((closes, end)) = tag(&text[found..]).map(|(closes, length)| (closes, found + length)) else { continue };
        if depth == 0 && !closes {
            let out = out.get_or_insert_default();
            out.push_str(&text[from..found]);
            out.push_str("[redacted:private]");
        }
        depth = if closes { depth.saturating_sub(1) } else { depth + 1 };
        at = end;
        if depth == 0 && out.is_some() {
            from = end;
        }
    }
    let mut out = out?;
    if depth == 0 {
        out.push_str(&text[from..]);
    }
    Some(out)
}

/// Parses the tag at the start of a text. Returns whether it is a closing tag, and its length.
fn tag(text: &str) -> Option<(bool, usize)> {
    let bytes = text.as_bytes();
    let closes = bytes.get(1) == Some(&b'/');
    let name = 1 + usize::from(closes);
    let after = name + "private".len();
    if !bytes.get(name..after)?.eq_ignore_ascii_case(b"private") {
        return None;
    }
    let blanks = bytes[after..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    (bytes.get(after + blanks) == Some(&b'>')).then_some((closes, after + blanks + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EXCERPT;
    use proptest::prelude::*;

    fn kept(text: &str) -> String {
        Redactor::default().clean(text.to_string()).0
    }

    /// Built from parts, so that no scanner of repositories takes the tests for a leak.
    fn key() -> String {
        ["ghp", "_", "x7Kq2mPz9LrT4vWb8NsD1fGh6JcY3aE5uQ0o"].concat()
    }

    #[test]
    fn marks_say_the_family_and_keep_the_rest() {
        assert_eq!(kept(&format!("push with {} now", key())), "push with [redacted:github-token] now");
    }

    #[test]
    fn equal_secrets_have_equal_marks_under_one_key_and_guessable_ones_have_none() {
        let under = |key: u8| Redactor::new(&[], &[], Some(Box::new(move || Some([key; 32])))).unwrap();
        let mark = |key, text: &str| under(key).clean(text.to_string()).0;
        let once = mark(1, &key());
        assert!(once.starts_with("[redacted:github-token#") && once.len() == "[redacted:github-token#123456]".len(), "{once}");
        assert_eq!(once, mark(1, &key()));
        assert_ne!(once, mark(2, &key()));
        assert_ne!(once, mark(1, &key().replace('x', "y")));
        assert_eq!(mark(1, "DB_PASSWORD=hunter2!"), "DB_PASSWORD=[redacted:assigned-secret]");
    }

    #[test]
    fn colours_hide_no_secret_and_are_not_kept() {
        let text = format!(
            "- Token: \u{1b}[33m{k}\u{1b}[0m \u{1b}[34mDB_PASSWORD\u{1b}[0m=hunter2! \u{1b}]8;;x\u{7}link\u{1b}(B \\033[1;31m{k}",
            k = key()
        );
        let out = kept(&text);
        assert!(!out.contains("x7Kq2") && !out.contains("hunter2") && !out.contains('\u{1b}'), "{out}");
        assert!(out.starts_with("- Token: [redacted:assigned-secret] DB_PASSWORD=[redacted:") && out.contains("link"), "{out}");
        assert_eq!(kept(&format!("x\u{1b}[33m{}", key())), "x [redacted:github-token]");
        assert_eq!(kept(&format!("x\u{1b} {}", key())), "x [redacted:github-token]");
        assert_eq!(kept("\u{1b}"), "");
        assert_eq!(kept("a\u{1b}[31"), "a 31");
        assert!(!kept(&format!("\u{1b}[ {k} \u{1b}[{k}", k = key())).contains("x7Kq2"));
    }

    #[test]
    fn marks_stay_when_text_that_waited_is_cleaned_again() {
        let keyed = Redactor::new(&[], &[], Some(Box::new(|| Some([1; 32])))).unwrap();
        let text = format!(
            "Authorization: Bearer {k}\ntoken={k}\nDB_PASSWORD='{k}'\ncurl -u me:{k} https://me:{k}@h\n\"password\": \"hunter2!\" {k} sshpass -p pw1 x",
            k = key()
        );
        let once = keyed.clean(text).0;
        assert!(!once.contains("x7Kq2") && once.matches("[redacted:").count() == 8, "{once}");
        assert_eq!(keyed.clean(once.clone()).0, once);
    }

    #[test]
    fn an_id_in_json_after_a_word_like_key_and_a_pattern_of_results_are_no_secrets() {
        for text in [
            r#"{"description":"Look at the Enter-key lag","spawned_agent":"ac7241a48457c3655","agent_tokens":201529}"#,
            r#"{"title":"Refresh the token","session_id": "0b7Kq2mZx81LpTq9"}"#,
            r#"go test ./... 2>&1 | grep -E "FAIL|PASS|ok" | head -3"#,
            r#"go test ./... 2>&1 | grep -vE "PASS|ok" | tail -20 && echo done"#,
            r#"cargo test 2>&1 | grep -E "^PASS|ok" | head -5"#,
        ] {
            assert_eq!(kept(text), text);
        }
        for text in [
            r#"{"name":"API_KEY","value":"0b7Kq2mZx81LpTq9"}"#,
            r#"{"role":"ci","secret_id":"0b7Kq2mZx81LpTq9"}"#,
            r#"{"auth_key":"","session":"0b7Kq2mZx81LpTq9"}"#,
        ] {
            assert!(kept(text).contains("[redacted:"), "{text}");
        }
    }

    #[test]
    fn types_beside_words_for_keys_are_no_secrets() {
        for text in ["  privateKey: Uint8Array", "let private_key = [0u8; 32];"] {
            assert_eq!(Redactor::default().redact(text, EXCERPT), None, "{text}");
        }
    }

    #[test]
    fn what_stands_on_the_two_sides_of_a_cut_is_not_read_as_one() {
        let cut = "+  // Zero the private key\n+  ipnsKey\n[… 121 bytes cut …]\npnsKeypair.ipnsName,\n+      recordBase64,\n+      metadataCid,\n";
        assert!(Redactor::default().again(cut, false).is_none());
        let secret = format!("a\n[… 121 bytes cut …]\n{}", key());
        assert!(Redactor::default().again(&secret, false).is_some_and(|clean| !clean.as_str().contains("x7Kq2")));
    }

    #[test]
    fn a_secret_in_the_middle_of_a_long_text_is_not_kept_even_unmarked() {
        let text = format!("{}{}{}", "a ".repeat(40_000), key(), " b".repeat(40_000));
        let out = Redactor::default().redact(&text, EXCERPT).unwrap();
        assert!(out.len() <= EXCERPT.0 && out.contains("bytes cut"), "{out}");
        assert!(!out.contains("x7Kq2"), "{out}");
    }

    #[test]
    fn a_secret_cut_by_the_windows_edge_is_not_kept_in_part() {
        for shift in 0..80 {
            let edge = EXCERPT.0 + 2 * MARGIN - 40 + shift;
            let text = format!("{}{}{}", ".".repeat(edge), key(), ".".repeat(60_000));
            let out = Redactor::default().redact(&text, EXCERPT).unwrap();
            assert!(!out.contains("ghp") && !out.contains("JcY3aE5"), "shift {shift}: {out}");
        }
    }

    #[test]
    fn a_long_value_is_not_kept_in_part_wherever_it_lies() {
        let part = |i: usize| format!("Qx{i:06}Zk7vB2mN9pL");
        let long = |parts: usize| (0..parts).map(part).collect::<String>();
        let left = |out: &str| (0..6000).filter(|i| out.contains(&part(*i)[..12])).count();
        for (parts, before, after) in [(30, 0, 0), (80, 0, 0), (400, 10_000, 0), (400, 30_000, 100_000), (6000, 100, 100)] {
            for (head, tail) in [
                ("SESSION_TOKEN=", " end"),
                ("\"sessionToken\": \"", "\", \"x\": 1"),
                ("Authorization: Bearer ", "\n"),
                ("curl -H 'Authorization: Bearer ", "' https://h"),
                ("aws_session_token = ", "\n"),
            ] {
                let text = format!("{}{head}{}{tail}{}", "word ".repeat(before / 5), long(parts), " word".repeat(after / 5));
                let out = Redactor::default().redact(&text, EXCERPT).unwrap();
                assert_eq!(left(&out), 0, "{parts} parts behind {head}, {before} bytes before");
            }
        }
    }

    #[test]
    fn a_long_bearer_token_goes_with_its_signature() {
        let part = |n: usize| "aZ3kQ9".repeat(n);
        let token = format!("eyJ{}.eyJ{}.{}-sig_nature", part(20), part(200), part(60));
        assert_eq!(kept(&format!("Authorization: Bearer {token}\nnext")), "Authorization: [redacted:header]\nnext");
        assert_eq!(kept(&format!("got {token} back")), "got [redacted:jwt] back");
    }

    #[test]
    fn many_marks_before_the_edge_do_not_pull_the_edge_into_what_is_kept() {
        // 250 keys shrink to marks of half their length: what follows moves towards the front.
        let text = format!("{}{}", format!("{} ", key()).repeat(900), "z".repeat(9));
        let out = Redactor::default().redact(&text, EXCERPT).unwrap();
        assert!(!out.contains("x7Kq2") && !out.contains("JcY3aE5"), "{out}");
    }

    #[test]
    fn private_text_of_any_length_is_gone_before_anything_is_cut() {
        let long = "filler ".repeat(20_000);
        let text = format!("hi <private>{long} innersecret</private> x {long} y <Private >a<private>b</private>c</PRIVATE> z");
        let out = Redactor::default().redact(&text, EXCERPT).unwrap();
        assert!(out.starts_with("hi [redacted:private] x") && out.ends_with("y [redacted:private] z"), "{out}");
        assert_eq!(kept("a <private>never closed"), "a [redacted:private]");
        assert_eq!(kept("the <privateer> sails"), "the <privateer> sails");
    }

    #[test]
    fn a_key_block_longer_than_a_window_is_not_kept_in_part() {
        let lines = "bGluZSBvZiBhIGtleSBibG9jayBvZiBQR1A\n".repeat(3000);
        let text = format!(
            "{}{}\n{lines}{}{}\nafter",
            "-----BEGIN ", "PGP PRIVATE KEY BLOCK-----", "-----END ", "PGP PRIVATE KEY BLOCK-----"
        );
        let out = Redactor::default().redact(&text, EXCERPT).unwrap();
        assert!(!out.contains("bGluZSBv") && out.ends_with("after"), "{out}");
    }

    #[test]
    fn ids_stay_apart_whatever_is_found_in_them() {
        let own = Redactor::new(&["[a-z0-9_]{20,}".into()], &[], None).unwrap();
        let id = |text: &str| own.redact(text, ID);
        assert_eq!(id("short"), None);
        let (a, b) = (id("toolu_01abcdefghijklmnop0").unwrap(), id("toolu_01abcdefghijklmnop1").unwrap());
        assert!(a != b && a == id("toolu_01abcdefghijklmnop0").unwrap() && a.starts_with("redacted-"), "{a} {b}");
    }

    #[test]
    fn the_users_own_patterns_count_too() {
        let own = Redactor::new(&[r"ACME-\d{4}".into()], &[], None).unwrap();
        assert_eq!(own.clean("ticket ACME-1234 x".to_string()).0, "ticket [redacted:own-pattern] x");
        assert!(Redactor::new(&["(".into()], &[], None).unwrap_err().contains("redact pattern \"(\""));
    }

    proptest! {
        #[test]
        fn a_planted_key_never_survives(before in "\\PC{0,300}", after in "\\PC{0,300}") {
            let out = kept(&format!("{before} {} {after}", key()));
            prop_assert!(!out.contains("x7Kq2mPz9LrT4vWb8N"));
        }

        #[test]
        fn any_text_is_cut_to_its_limit_without_a_panic(text in "\\PC{0,4000}") {
            prop_assert!(kept(&text).len() <= crate::model::FAILURE.0.max(text.len()));
        }
    }
}
