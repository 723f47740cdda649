//! Sentences, plain text and word counts.

use crate::text::is_cjk;

/// Abbreviations after whose dot a sentence goes on.
const ABBREVIATIONS: [&str; 28] = [
    "e.g", "i.e", "vs", "etc", "cf", "approx", "resp", "no", "p", "pp", "ch", "fig", "sec", "vol", "al", "mr", "ms", "mrs", "dr",
    "prof", "bzw", "ggf", "usw", "inkl", "ca", "vgl", "evtl", "sog",
];
/// Abbreviations of two words.
const OF_TWO_WORDS: [(&str, &str); 4] = [("z", "B"), ("d", "h"), ("u", "a"), ("o", "ä")];

/// Without emphasis, links' targets, and signs that are pictures.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim();
    let mut in_code = false;
    while let Some(c) = rest.chars().next() {
        in_code ^= c == '`';
        if in_code {
            // `**/*.rs` is no emphasis.
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else if let Some(behind) =
            rest.strip_prefix("**").or_else(|| rest.strip_prefix("__").filter(|_| !out.ends_with(char::is_alphanumeric)))
        {
            rest = behind;
        } else if let Some((label, behind)) = link(rest) {
            out.push_str(label);
            rest = behind;
        } else {
            if !is_picture(c) {
                out.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    let mut joined = String::with_capacity(out.len());
    for word in out.split_whitespace() {
        // A line of a script without spaces was broken between two words.
        let (before, after) = (joined.chars().next_back(), word.chars().next());
        let is_broken =
            before.is_some_and(|c| is_cjk(c) || matches!(c, '，' | '。' | '、' | '；' | '：')) && after.is_some_and(is_cjk);
        if !joined.is_empty() && !is_broken {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

fn link(text: &str) -> Option<(&str, &str)> {
    let (label, behind) = text.strip_prefix('[')?.split_once("](")?;
    let (_, behind) = behind.split_once(')')?;
    (!label.contains(['[', ']', '\n'])).then_some((label, behind))
}

fn is_picture(c: char) -> bool {
    matches!(c as u32, 0x2190..=0x21FF | 0x2600..=0x27BF | 0x2B00..=0x2BFF | 0x1F000..=0x1FAFF | 0xFE0F) && c != '→' && c != '←'
}

/// Cuts a text at its sentences' ends, not inside code.
pub fn sentences(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut from, mut in_code) = (0, false);
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    for (i, &(at, c)) in chars.iter().enumerate() {
        in_code ^= c == '`';
        let end = at + c.len_utf8();
        let next = chars.get(i + 1).map(|(_, c)| *c);
        let stands_alone = next.is_none_or(char::is_whitespace);
        let ends = match c {
            '。' | '！' | '？' => true,
            '!' | '?' => stands_alone,
            '.' => {
                let word = text[from..at].rsplit([' ', '(']).next().unwrap_or_default();
                let before = &text[from..at];
                let is_of_two = |(first, second): &(&str, &str)| {
                    before
                        .strip_suffix(second)
                        .is_some_and(|rest| rest.strip_suffix(". ").is_some_and(|rest| rest.ends_with(first)))
                        || before.ends_with(first)
                            && text[at..]
                                .strip_prefix(". ")
                                .is_some_and(|rest| rest.strip_prefix(second).is_some_and(|rest| rest.starts_with('.')))
                };
                stands_alone
                    && !OF_TWO_WORDS.iter().any(is_of_two)
                    && !(word.len() < 8 && ABBREVIATIONS.contains(&word.to_lowercase().as_str()))
            }
            _ => false,
        };
        if ends && !in_code {
            out.push(text[from..end].trim().to_string());
            from = end;
        }
    }
    out.push(text[from..].trim().to_string());
    out.retain(|sentence| !sentence.is_empty());
    out
}

/// Words of a text; two characters of a script without spaces count as one.
pub fn word_count(text: &str) -> usize {
    let spaced = text.split_whitespace().filter(|word| word.chars().any(|c| c.is_alphanumeric() && !is_cjk(c))).count();
    spaced + text.chars().filter(|c| is_cjk(*c)).count() / 2
}

/// Of a prompt the part that names the work: of a plan its heading, else its first line; what announces a list goes with
/// the line below it.
pub fn plain_headline(text: &str) -> String {
    let named = plain(crate::text::headline(text).trim_start_matches(['#', '>', ' ']));
    named.trim_start_matches(|c: char| matches!(c, '-' | '*' | '•' | ':' | ',') || c.is_whitespace()).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_they_end() {
        assert_eq!(sentences("Use e.g. `a. b` here. And 1.2 there! Ok"), ["Use e.g. `a. b` here.", "And 1.2 there!", "Ok"]);
        assert_eq!(sentences("Banks lend more (p. 42). Dr. Weber agrees."), ["Banks lend more (p. 42).", "Dr. Weber agrees."]);
        assert_eq!(
            sentences("Das gilt z. B. hier, d. h. bzw. dort. Und nun"),
            ["Das gilt z. B. hier, d. h. bzw. dort.", "Und nun"]
        );
        assert_eq!(plain("经 App.tsx 传入，\n不再 推导"), "经 App.tsx 传入，不再推导");
        assert_eq!(word_count("記憶喪失の bug"), 3);
    }
}
