//! Glosses: texts with the cue words of their language in English.

use super::detect::{self, Cues};
use crate::text::is_cjk;
use std::borrow::Cow;
use std::ops::Range;

/// A text whose cue words are in English, with the origin of each part.
#[derive(Debug)]
pub struct Gloss<'a> {
    original: &'a str,
    text: Cow<'a, str>,
    pieces: Vec<Piece>,
}

/// A part of a gloss and of its original.
#[derive(Debug)]
struct Piece {
    gloss: Range<usize>,
    original: Range<usize>,
}

/// The language of a text: one of those that are on, or English.
#[derive(Clone, Copy, Debug)]
pub struct Language(Option<usize>);

impl Language {
    /// Detects the language of a text; English if there is too little evidence.
    pub fn of(text: &str) -> Language {
        Language(detect::of(text))
    }

    /// Detects the language of a part of a text, such as a sentence. A few words may not reveal it; then it is that of the whole
    /// text.
    pub fn of_part(self, part: &str) -> Language {
        Language(detect::of(part).or_else(|| self.0.filter(|_| !detect::has_english_mark(part))))
    }

    pub fn is_english(self) -> bool {
        self.0.is_none()
    }

    /// Whether a word is a stop word of the language; always false for English.
    pub fn is_stop_word(self, word: &str) -> bool {
        self.0.is_some_and(|language| Cues::of(language).stop.contains(word))
    }

    /// Returns the gloss of a text in this language. English text is its own gloss.
    pub fn gloss(self, text: &str) -> Gloss<'_> {
        match self.0.map(Cues::of) {
            None => Gloss { original: text, text: Cow::Borrowed(text), pieces: Vec::new() },
            Some(cues) if text.chars().any(is_cjk) => without_spaces(text, cues),
            Some(cues) => with_spaces(text, cues),
        }
    }

    /// Returns the text of a gloss.
    pub fn in_english(self, text: &str) -> Cow<'_, str> {
        self.gloss(text).text
    }
}

/// Returns the gloss of a text in its own language.
pub fn gloss(text: &str) -> Gloss<'_> {
    Language::of(text).gloss(text)
}

/// Returns the text of a gloss.
pub fn in_english(text: &str) -> Cow<'_, str> {
    gloss(text).text
}

impl<'a> Gloss<'a> {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text is in a language other than English.
    pub fn is_other_language(&self) -> bool {
        matches!(self.text, Cow::Owned(_))
    }

    /// Returns the part of the original that became a part of the gloss; `None` if the gloss does not contain it. A
    /// mark of truncation at its end is ignored.
    pub fn original(&self, part: &str) -> Option<&'a str> {
        let part = part.trim_end_matches(['…', '`']);
        let from = self.text.find(part)?;
        let range = from..from + part.len();
        let touched: Vec<&Piece> =
            self.pieces.iter().filter(|piece| piece.gloss.start < range.end && piece.gloss.end > range.start).collect();
        let (first, last) = (touched.first()?, touched.last()?);
        // A match may begin or end in the middle of a copied piece.
        let is_copy = |piece: &Piece| self.text[piece.gloss.clone()] == self.original[piece.original.clone()];
        let start = first.original.start + if is_copy(first) { range.start.saturating_sub(first.gloss.start) } else { 0 };
        let end = last.original.end - if is_copy(last) { last.gloss.end.saturating_sub(range.end) } else { 0 };
        self.original.get(start..end).map(str::trim)
    }
}

/// Builds a gloss piece by piece.
struct Glosser<'a> {
    original: &'a str,
    text: String,
    pieces: Vec<Piece>,
}

impl<'a> Glosser<'a> {
    fn new(original: &'a str) -> Glosser<'a> {
        Glosser { original, text: String::with_capacity(original.len() + 32), pieces: Vec::new() }
    }

    fn push(&mut self, text: &str, original: Range<usize>) {
        let from = self.text.len();
        self.text.push_str(text);
        self.pieces.push(Piece { gloss: from..self.text.len(), original });
    }

    fn copy(&mut self, range: Range<usize>) {
        let original = self.original;
        self.push(&original[range.clone()], range);
    }

    fn done(self) -> Gloss<'a> {
        Gloss { original: self.original, text: Cow::Owned(self.text), pieces: self.pieces }
    }
}

/// Glosses a text with spaces, word by word; cues of several words are matched first.
fn with_spaces<'a>(text: &'a str, cues: &Cues) -> Gloss<'a> {
    let words = words(text);
    let mut glosser = Glosser::new(text);
    let (mut at, mut copied) = (0, 0);
    while at < words.len() {
        let found = (1..=cues.longest.min(words.len() - at)).rev().find_map(|length| {
            let part = &words[at..at + length];
            let adjoin = part.windows(2).all(|pair| {
                let between = text[pair[0].end..pair[1].start].trim_matches([' ', ',']);
                between.is_empty() && pair[1].start > pair[0].end
            });
            let lower = || part.iter().map(|word| text[word.clone()].to_lowercase()).collect::<Vec<_>>().join(" ");
            if adjoin { cues.english.get(lower().as_str()).map(|english| (length, *english)) } else { None }
        });
        let Some((length, english)) = found else {
            at += 1;
            continue;
        };
        let range = words[at].start..words[at + length - 1].end;
        glosser.copy(copied..range.start);
        // A capital also begins a sentence in English.
        match text[range.clone()].chars().next().is_some_and(char::is_uppercase) {
            true => glosser.push(&capitalized(english), range.clone()),
            false => glosser.push(english, range.clone()),
        }
        copied = range.end;
        at += length;
    }
    glosser.copy(copied..text.len());
    glosser.done()
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut from = None;
    for (at, c) in text.char_indices() {
        let is_part = c.is_alphanumeric() || c == '\'' || c == '’';
        match (is_part, from) {
            (true, None) => from = Some(at),
            (false, Some(start)) => {
                words.push(start..at);
                from = None;
            }
            _ => {}
        }
    }
    words.extend(from.map(|from| from..text.len()));
    words
}

/// Glosses a text without spaces: takes the longest cue at each character. The rest is split every two characters, as
/// if those were words.
fn without_spaces<'a>(text: &'a str, cues: &Cues) -> Gloss<'a> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let end = |at: usize| chars.get(at).map_or(text.len(), |(at, _)| *at);
    let mut glosser = Glosser::new(text);
    // Length of the run of characters of the script, and whether a cue ends here.
    let (mut at, mut run, mut after_cue) = (0, 0, false);
    while at < chars.len() {
        let (from, c) = chars[at];
        let found = (1..=cues.longest.min(chars.len() - at)).rev().find_map(|length| {
            let cue = &text[from..end(at + length)];
            cues.english.get(cue).map(|english| (length, *english))
        });
        if let Some((length, english)) = found {
            let range = from..end(at + length);
            space(&mut glosser, from);
            glosser.push(english, range);
            (at, run, after_cue) = (at + length, 0, true);
            continue;
        }
        let range = from..end(at + 1);
        let ends_word = c.is_alphanumeric() && (after_cue || run == 2 || (run > 0) != is_cjk(c));
        if ends_word {
            space(&mut glosser, from);
            run = 0;
        }
        after_cue = false;
        match c {
            '，' | '、' => glosser.push(", ", range),
            '。' => glosser.push(". ", range),
            '：' => glosser.push(": ", range),
            '；' => glosser.push("; ", range),
            '？' => glosser.push("?", range),
            '！' => glosser.push("! ", range),
            '（' => glosser.push(" (", range),
            '）' => glosser.push(") ", range),
            c if c.is_whitespace() && glosser.text.ends_with(char::is_whitespace) => {}
            _ => glosser.copy(range),
        }
        (at, run) = (at + 1, if is_cjk(c) { run + 1 } else { 0 });
    }
    glosser.done()
}

fn space(glosser: &mut Glosser, at: usize) {
    if !glosser.text.is_empty() && !glosser.text.ends_with(char::is_whitespace) {
        glosser.push(" ", at..at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cue_words_become_english_and_the_rest_stays() {
        let german = gloss("Nimm `Postgres` statt MySQL, weil wir JSONB brauchen.");
        assert_eq!(german.text(), "Use `Postgres` instead of MySQL, because wir JSONB brauchen.");
        assert_eq!(german.original("wir JSONB brauchen."), Some("wir JSONB brauchen."));
        assert_eq!(german.original("MySQL, because wir"), Some("MySQL, weil wir"));
        assert_eq!(in_english("Ab sofort immer `cargo fmt` vor dem Commit."), "From now on always `cargo fmt` vor dem Commit.");
        let chinese = gloss("不要直接推送到 main，因为 CI 会挂");
        assert_eq!(chinese.text(), "don't 直接 push 到 main, because CI breaks");
        assert_eq!(chinese.original("CI breaks"), Some("CI 会挂"));
    }

    #[test]
    fn english_is_its_own_gloss() {
        for text in ["die when the mit license was also gone", "Let's go with Kafka, not RabbitMQ.", ""] {
            assert!(matches!(in_english(text), Cow::Borrowed(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_part_of_a_gloss_has_an_original(text in "(ich|nicht|weil|und|ß|ä|Ü| |,|\\.|不要|因为|推送|main|`x`|。){0,20}", from in 0usize..40, length in 1usize..20) {
            let gloss = gloss(&text);
            let part: String = gloss.text().chars().skip(from).take(length).collect();
            if let Some(original) = gloss.original(&part) {
                prop_assert!(text.contains(original));
            }
        }
    }
}
