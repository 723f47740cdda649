//! Text functions: identifiers split into words, CJK detection, cutting to a length.

use std::borrow::Cow;

/// Splits `parseHTTPResponse2` into parse, HTTP, Response2: before a capital that follows a lower-case letter or digit,
/// and before the last capital of a run if a lower-case letter follows.
pub fn split_identifier(word: &str) -> Vec<&str> {
    // Most words are in lower case.
    if word.is_ascii() && !word.bytes().skip(1).any(|b| b.is_ascii_uppercase()) {
        return vec![word];
    }
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for i in 1..chars.len() {
        let (at, c) = chars[i];
        let before = chars[i - 1].1;
        let next_small = chars.get(i + 1).is_some_and(|(_, n)| n.is_lowercase());
        if c.is_uppercase() && (!before.is_uppercase() || next_small) {
            parts.push(&word[from..at]);
            from = at;
        }
    }
    parts.push(&word[from..]);
    parts
}

/// Whether a character is Han, kana or Hangul: scripts without spaces, or with attached suffixes.
pub fn is_cjk(c: char) -> bool {
    matches!(c as u32, 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Whether a character is Hangul, which has spaces between words.
pub fn is_hangul(c: char) -> bool {
    matches!(c as u32, 0xAC00..=0xD7AF)
}

/// Returns the width of a text in letters; a character of a script without spaces counts as two.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| 1 + usize::from(is_cjk(c))).sum()
}

/// Whether a character is invisible or changes what is visible: controls, joiners, direction marks, variation
/// selectors, tags. Line ends and tabs count as visible.
pub fn is_unseen(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        c => matches!(c as u32,
            0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E
            | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF),
    }
}

/// Returns a text without its invisible characters.
pub fn seen(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c)).collect()
}

/// Returns a path in the form that patterns use: on Windows with `/` instead of `\`.
pub fn slashed(path: &str) -> Cow<'_, str> {
    if cfg!(windows) { path.replace('\\', "/").into() } else { path.into() }
}

/// A prompt without the slash command that it is given to: "/quick move the bar down".
pub fn without_slash_command(prompt: &str) -> &str {
    let prompt = prompt.trim_start();
    match prompt.split_once(char::is_whitespace) {
        Some((command, rest)) if command.starts_with('/') && command.matches('/').count() == 1 && !rest.trim().is_empty() => rest,
        _ => prompt,
    }
}

/// Cuts a text between words to at most `most` characters, with `…` if something is missing.
pub fn cut(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= most {
        return text.to_string();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    let at = head.rfind(char::is_whitespace).filter(|at| *at > head.len() / 2).unwrap_or(head.len());
    // Close a code span that the cut left open.
    let head = head[..at].trim_end_matches([',', ';', ':', '-', ' ', '(']);
    let tick = if head.matches('`').count() % 2 == 1 { "`" } else { "" };
    format!("{head}…{tick}")
}

/// Cuts a text to at most `most` words.
pub fn cut_words(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() <= most { words.join(" ") } else { cut(&format!("{}…", words[..most].join(" ")), usize::MAX) }
}

/// Whether two texts are equal except for case, punctuation and a truncated end.
pub fn alike(a: &str, b: &str) -> bool {
    let bare = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let (a, b) = (bare(a), bare(b));
    let (short, long) = if a.len() < b.len() { (&a, &b) } else { (&b, &a) };
    !short.is_empty() && long.starts_with(short.as_str()) && short.len() * 4 >= long.len()
}

/// Whether a stored path is of a file of the project: other paths are absolute, or start at the home folder.
pub fn is_in_project(path: &str) -> bool {
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    !path.starts_with(['/', '~', '\\']) && !path.starts_with("..") && !has_drive
}

/// Whether a stored path is of a plan that an agent keeps outside the project: `~/.claude/plans/quiet-river.md`.
pub fn is_plan_of_agent(path: &str) -> bool {
    !is_in_project(path) && path.replace('\\', "/").contains("/plans/") && path.ends_with(".md")
}

/// Strips the type from a commit's subject: `feat(cli): add colours` without `feat(cli): `.
pub fn without_type(subject: &str) -> &str {
    subject.split_once(": ").filter(|(kind, _)| !kind.contains(' ')).map_or(subject, |(_, subject)| subject)
}

/// Returns the runs of letters and digits in a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The first and last bytes of a longer text, at character boundaries.
pub fn ends(text: &str, head: usize, tail: usize) -> (&str, &str) {
    let head = text.floor_char_boundary(head);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(tail)).max(head);
    (&text[..head], &text[tail..])
}

/// Words without meaning for the subject of a text, sorted.
const FILLERS: [&str; 105] = [
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could",
    "did", "do", "does", "don", "for", "from", "get", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "know", "let", "like", "look", "make", "may", "me", "might", "more", "my", "need",
    "no", "not", "now", "of", "on", "or", "other", "our", "out", "please", "s", "see", "she", "should", "so", "some", "sure",
    "t", "take", "than", "that", "the", "their", "them", "then", "there", "these", "they", "think", "this", "those", "to", "up",
    "us", "use", "used", "using", "want", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "why", "will",
    "with", "would", "you", "your",
];

/// Whether a lower-case word has no meaning for the subject of a text.
pub fn is_stop_word(word: &str) -> bool {
    FILLERS.binary_search(&word).is_ok()
}

/// The part of a prompt that names the work: the heading of a plan, otherwise the first line, with the second if the
/// first is not a sentence.
pub fn headline(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let is_plan = first.to_lowercase().starts_with("implement the following") && first.ends_with(':');
    let heading =
        text.lines().skip(1).find_map(|line| line.trim().strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    let next = lines.next().unwrap_or_default();
    let lower = next.to_lowercase();
    let tells_error = ["error", "failed", "panic", "fatal"].iter().any(|word| lower.contains(word));
    // A line that stops in mid-sentence does not end the request.
    let goes_on = !first.ends_with(['.', '?', '!', ';']) && next.starts_with(char::is_lowercase);
    match heading.filter(|_| is_plan) {
        Some(heading) => heading.strip_prefix("Plan:").unwrap_or(heading).trim().to_string(),
        None if first.ends_with(':') || first.split_whitespace().count() < 3 || tells_error || goes_on => {
            format!("{first} {next}").trim().to_string()
        }
        None => first.to_string(),
    }
}

/// Paths and file names in a text: `src/login.rs`, `login.rs:12`, `CLAUDE.md`.
pub fn files_named(text: &str) -> Vec<&str> {
    let mut files: Vec<&str> = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '(' | ')' | ',' | '<' | '>')) {
        let word = word.split(':').next().unwrap_or(word).trim_end_matches(['.', ';', '!', '?', '*']);
        let word = word.trim_start_matches("./").trim_start_matches(['@', '*']);
        let name = word.rsplit('/').next().unwrap_or(word);
        let is_file = name.rsplit_once('.').is_some_and(|(stem, end)| {
            !stem.is_empty()
                && (1..=6).contains(&end.len())
                && end.chars().all(|c| c.is_ascii_alphanumeric())
                && end.chars().any(|c| c.is_ascii_alphabetic())
        });
        // Abbreviations, not file names.
        let is_file = is_file && !matches!(word, "e.g" | "i.e");
        if is_file && word.len() < 300 && !word.contains("//") && !files.contains(&word) {
            files.push(word);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_called_by_its_heading_and_a_prompt_by_its_first_line() {
        for (prompt, called) in [
            ("Implement the following plan:\n\n# Plan: Move the cache\n\n## Why", "Move the cache"),
            ("Fix the login: it loops.\nIt began yesterday.", "Fix the login: it loops."),
            ("Look at this:\n\nthe cache is stale", "Look at this: the cache is stale"),
            ("Tests don't pass here\nerror: 12 != 13", "Tests don't pass here error: 12 != 13"),
            ("", ""),
        ] {
            assert_eq!(headline(prompt), called);
        }
    }

    #[test]
    fn words_without_meaning_are_sorted() {
        assert!(FILLERS.is_sorted());
        assert!(is_stop_word("the") && !is_stop_word("cache"));
    }

    #[test]
    fn identifiers_are_cut_at_their_humps() {
        assert_eq!(split_identifier("parseHTTPResponse2"), ["parse", "HTTP", "Response2"]);
        assert_eq!(split_identifier("word"), ["word"]);
    }

    #[test]
    fn files_are_found_in_what_people_write() {
        let text = "look at `src/login.rs:281`, ./a/b.go and CLAUDE.md. Not e.g. this, 1.5 or https://x.example/y.html";
        assert_eq!(files_named(text), ["src/login.rs", "a/b.go", "CLAUDE.md"]);
    }
}
