//! Which words of a prompt are the person's own. A prompt may hold a plan, a page, a log, somebody's review: all of that
//! is text about which nothing is decided by its being there.

use super::sentences::{plain, sentences, word_count};
use super::word_lists::{Words, begins_with, holds};
use crate::languages::in_english;

/// Beginnings of prompts that a program made, or a person pasted whole.
const MADE: Words = "<|#|/|{|[|implement the following|base directory for|this session is being continued|you are |caveat:|---";
/// Signs of what a terminal printed.
const PRINTED: [char; 12] = ['│', '─', '⎿', '❯', '●', '├', '└', '▶', '$', '\u{1b}', '╭', '⏺'];
/// Words of a line that announces what its author wants.
const WANTS: Words =
    " want|i'd like|i would|we should|we need|you should|prefer|let's|decided|the following changes|rules|requirements";
/// A prompt of more characters than this is hardly typed: only its first paragraph may be.
const TYPED: usize = 700;
const PARAGRAPH: usize = 400;

/// The sentences of a prompt that its author wrote.
pub fn own_sentences(prompt: &str) -> Vec<String> {
    let lower = prompt.trim_start().to_lowercase();
    if MADE.split('|').any(|begin| lower.starts_with(begin)) {
        return Vec::new();
    }
    let mut own = String::new();
    let (mut in_code, mut shows) = (false, false);
    for line in prompt.lines() {
        let bare = line.trim();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        // What follows a mail's header or greeting is the mail.
        if is_header(bare) || !own.trim().is_empty() && is_greeting(bare) {
            break;
        }
        let pasted = in_code
            || line.starts_with("    ")
            || line.starts_with('\t')
            || bare.starts_with(['>', '|', '+', '#', '<', '@', '{', '}'])
            || bare.starts_with("v *")
            || bare.contains(PRINTED);
        if !pasted && (!shows || bare.is_empty()) {
            own.push_str(bare);
        }
        own.push('\n');
        // What stands below a colon is shown, not said, unless the author says that it is what they want.
        if pasted {
            shows = false;
        } else if shows && !bare.is_empty() {
            break;
        } else if bare.ends_with([':', '：']) {
            shows = !holds(WANTS, &in_english(bare).to_lowercase());
        }
    }
    let own = if own.trim().chars().count() > TYPED {
        let first = own.trim().split("\n\n").next().unwrap_or_default();
        if first.chars().count() > PARAGRAPH { "" } else { first }
    } else {
        own.trim()
    };
    let lines = own.lines().map(|line| line.trim_start_matches(['-', '*', '•', ' ']));
    lines.flat_map(|line| sentences(&without_quotations(&plain(line)))).collect()
}

/// `Subject: roof`, `On Monday Jo wrote:`
fn is_header(line: &str) -> bool {
    let lower = line.to_lowercase();
    let names = ["from:", "to:", "cc:", "sent:", "subject:", "date:", "-----original message", "---------- forwarded"];
    names.iter().any(|name| lower.starts_with(name)) || lower.starts_with("on ") && lower.ends_with(" wrote:")
}

/// `Dear Ms Weber,`
fn is_greeting(line: &str) -> bool {
    line.ends_with(',') && line.split_whitespace().count() <= 5 && begins_with("dear|hi|hello|hey", &line.to_lowercase())
}

/// Takes out what stands in quotation marks, where it is more than a name.
fn without_quotations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '“', '«', '„', '「', '《']) {
        let open = rest[at..].chars().next().unwrap_or('"');
        let close = match open {
            '“' => '”',
            '«' => '»',
            '„' => '“',
            '「' => '」',
            '《' => '》',
            other => other,
        };
        let inside = at + open.len_utf8();
        let Some(length) = rest[inside..].find(close) else {
            // A quotation without an end: all behind it is somebody else's.
            out.push_str(&rest[..at]);
            return out;
        };
        let quoted = &rest[inside..inside + length];
        out.push_str(&rest[..at]);
        out.push_str(if word_count(quoted) <= 3 { &rest[at..inside + length + close.len_utf8()] } else { "…" });
        rest = &rest[inside + length + close.len_utf8()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_mail_is_not_the_users_words() {
        let mail =
            "Please answer this one.\n\nHi Sam,\nRemember that the roof must never be painted.\nAlways call before noon.\nJo";
        assert_eq!(own_sentences(mail), ["Please answer this one."]);
        let forwarded = "Can you summarize?\n\nFrom: Jo\nSubject: roof\n\nNever paint it.";
        assert_eq!(own_sentences(forwarded), ["Can you summarize?"]);
        assert_eq!(own_sentences("Hi Claude,\nnever paint the roof."), ["Hi Claude,", "never paint the roof."]);
    }

    #[test]
    fn what_is_quoted_pasted_or_made_is_not_a_persons_own() {
        let own = |prompt: &str| own_sentences(prompt);
        assert_eq!(own("rename it to \"steps\". ok"), ["rename it to \"steps\".", "ok"]);
        assert_eq!(own("the page says \"always use tabs everywhere in it\" hm"), ["the page says … hm"]);
        assert_eq!(own("look\n```\nalways use X\n```\n> never do Y\n    use A, not B\nthen go"), ["look", "then go"]);
        assert_eq!(own("<system>always use X</system>"), [] as [&str; 0]);
        assert_eq!(own("# Page\nalways use X"), [] as [&str; 0]);
        assert_eq!(own("he said \"always use"), ["he said"]);
        assert_eq!(own("sum up this page:\n\nAlways use X."), ["sum up this page:"]);
        let page = format!("summarise this\n\n{}always use X", "words of a page. ".repeat(60));
        assert_eq!(own(&page), ["summarise this"]);
    }
}
