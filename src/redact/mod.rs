//! Removes secrets and private text from everything before it is stored or sent.
//!
//! [`Clean`] is the proof: its field is private to this file, and the store, the spool and the log accept nothing else.
//! Known key formats are found by hand-written matchers after a three-byte prefilter, since compiling one regex costs
//! half as much as a whole hook (ADR/0008). Only the user's own patterns are regexes.
//!
//! Unscanned text is never stored. Only a head window and a tail window of a long text are scanned. Each window is
//! longer than the longest known secret, and the stored parts lie well inside the windows.
//!
//! Read in this order: windows and marks, in this file; `families` (the table of keys), `scan` (one pass over the text)
//! and its `prefilter`, `span`; the matchers `shapes`, `infix`, `addresses`, `assigned` (with `names`, `forms` and
//! `nearby`), `options` and `encoded`; `values` (random-looking and chosen values), `private` (`<private>`),
//! `path_only` (files recorded by path only). `tests` covers whole scenarios.

mod addresses;
mod assigned;
mod encoded;
mod families;
mod forms;
mod infix;
mod names;
mod nearby;
mod options;
mod path_only;
mod prefilter;
mod private;
mod scan;
mod shapes;
mod span;
#[cfg(test)]
mod tests;
mod values;

use crate::model::{ID, Limit, NAME, Texts};
use crate::text::ends;
use families::Body;
use hmac::{Hmac, Mac};
use path_only::Hidden;
use regex::Regex;
use sha2::{Digest, Sha256};
use span::Span;
use std::fmt;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
pub const REDACTION_VERSION: i64 = 2;

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
    key: OnceLock<Option<[u8; 32]>>,
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
        let key = self.mark_key.as_ref().and_then(|key| *self.key.get_or_init(key))?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(text.as_bytes());
        Some(mac.finalize().into_bytes().into())
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
            && catch_unwind(AssertUnwindSafe(|| self.hidden.withhold(tool, folder))).is_err()
        {
            tool.input = None;
            tool.outcome = None;
            tool.content = None;
            tool.metadata.response = None;
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
            let limit = if is_id { ID } else { Limit(usize::MAX / 4) };
            self.redact(text, limit)
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
        let public = private::without(plain.as_deref().unwrap_or(text)).or(plain);
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
        let value = span::run(tail.as_bytes(), 0, |b| Body::Token68.has(b) || matches!(b, b'%' | b'\\'));
        let value = Some(value).filter(|end| *end >= MARGIN && values::looks_random(&tail.as_bytes()[..64]));
        let block = shapes::end_of_cut_block(tail).map(|end| (end, "private-key"));
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

/// Keeps two thirds of the limit from the head and one third from the tail; `missing` bytes have already been cut
/// between them.
fn cut_middle(text: &str, limit: Limit, missing: usize) -> String {
    if text.len() <= limit.0 {
        return text.to_string();
    }
    let room = limit.0.saturating_sub(40);
    let (head, tail) = ends(text, room * 2 / 3, room / 3);
    format!("{head}\n[… {} bytes cut …]\n{tail}", text.len() - head.len() - tail.len() + missing)
}
