//! Colours and wrapping for terminals.

use crate::text::is_cjk;

/// Writes ANSI colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub colour: bool,
    /// Columns of the terminal; large if there is none.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { colour: false, width: 170 }
    }
}

impl Style {
    fn with(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    /// Headings and ids.
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Secondary information: times, ids.
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Failures.
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// Successes.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Search matches.
    pub fn found(self, text: &str) -> String {
        self.with("1;33", text)
    }

    /// Files.
    pub fn path(self, text: &str) -> String {
        self.with("36", text)
    }
}

/// Columns by which the second and later lines of a wrapped line are indented, in addition to its own indent.
const HANGING: usize = 2;

/// Wraps every line of a text to `width` columns. Longer words are not broken; colours take no columns.
pub fn wrap(text: &str, width: usize) -> String {
    text.split('\n').map(|line| wrap_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn wrap_line(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_string();
    }
    let own = line.len() - line.trim_start_matches(' ').len();
    let hanging = (own + HANGING).min(width / 2);
    let (mut out, mut at) = (" ".repeat(own), own);
    let mut is_first = true;
    for word in line[own..].split(' ') {
        let wide = columns(word);
        if !is_first && at + 1 + wide > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(hanging));
            at = hanging;
        } else if !is_first {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += wide;
        is_first = false;
    }
    out
}

/// Columns of a text in a terminal: none for colours, two for a character of a wide script.
fn columns(text: &str) -> usize {
    let mut columns = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // A colour ends at its first letter.
            '\u{1b}' => drop(chars.by_ref().find(char::is_ascii_alphabetic)),
            c if is_cjk(c) => columns += 2,
            _ => columns += 1,
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_lines_break_at_words_and_hang() {
        let text = "short\n  - a line that is much too long for it\nend";
        assert_eq!(wrap(text, 20), "short\n  - a line that is\n    much too long\n    for it\nend");
    }

    #[test]
    fn colours_take_no_columns_and_wide_characters_two() {
        assert_eq!(wrap("\u{1b}[1mbold\u{1b}[0m and so on", 11), "\u{1b}[1mbold\u{1b}[0m and so\n  on");
        assert_eq!(columns("漢字"), 4);
    }

    proptest! {
        #[test]
        fn every_word_stays_and_lines_fit(words in prop::collection::vec("[a-z]{1,8}", 1..40), width in 20usize..60) {
            let wrapped = wrap(&words.join(" "), width);
            prop_assert_eq!(wrapped.split_whitespace().collect::<Vec<_>>(), words);
            prop_assert!(wrapped.lines().all(|line| columns(line) <= width));
        }
    }
}
