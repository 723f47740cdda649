//! Passages: the parts of a message or memory that search ranks and shows, cut at paragraphs and list items.

use crate::model::PassageId;
use std::ops::Range;

/// Characters up to which paragraphs and list items are joined. Passages of this size found more in the same number of
/// bytes than longer ones (ADR/0062).
const JOINED: usize = 300;
/// Maximum characters of a passage; longer paragraphs are cut between sentences.
const LONGEST: usize = 400;

/// Cuts a text into passages, as byte ranges in order. A heading or lead-in stays with what follows it.
pub fn passages(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for block in blocks(text) {
        let joined = all.last().is_some_and(|last| {
            let both = text[last.start..block.end].chars().take(LONGEST + 1).count();
            both <= JOINED || both <= LONGEST && announces(&text[last.clone()])
        });
        if joined && let Some(last) = all.last_mut() {
            last.end = block.end;
        } else if all.len() < PassageId::MAX {
            all.push(block);
        } else {
            break;
        }
    }
    all
}

/// Paragraphs, list items, headings and table rows, each at most [`LONGEST`] characters.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let mut goes_on = false;
    for line in text.split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        let end = at + line.trim_end().len();
        at += line.len();
        if start >= end {
            goes_on = false;
        } else if goes_on && !begins_block(line) {
            blocks.last_mut().expect("a block goes on").end = end;
        } else {
            blocks.push(start..end);
            goes_on = true;
        }
    }
    blocks.into_iter().flat_map(|block| pieces(text, block)).collect()
}

/// Whether a line begins a list item, a heading or a table row.
fn begins_block(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['#', '|'])
        || line.starts_with("- ")
        || line.starts_with("* ")
        || line.starts_with("• ")
        || number.len() < line.len() && (number.starts_with(". ") || number.starts_with(") "))
}

/// Cuts a block that is too long between sentences or lines, or else between words.
fn pieces(text: &str, block: Range<usize>) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut rest = block;
    while let Some((most, _)) = text[rest.clone()].char_indices().nth(LONGEST) {
        let head = &text[rest.start..rest.start + most];
        let sentence = [". ", ".\n", "\n", "! ", "? "].iter().filter_map(|end| Some(head.rfind(end)? + end.len()));
        let sentence = sentence.chain(["。", "！", "？"].iter().filter_map(|end| Some(head.rfind(end)? + end.len()))).max();
        let word = || head.rfind(char::is_whitespace).map(|at| head.ceil_char_boundary(at + 1));
        let cut = sentence.filter(|at| at * 3 > most).or_else(word).filter(|at| *at > 0).unwrap_or(most);
        all.push(rest.start..rest.start + head[..cut].trim_end().len());
        let left = &text[rest.start + cut..rest.end];
        rest.start = rest.end - left.trim_start().len();
    }
    if !rest.is_empty() {
        all.push(rest);
    }
    all.retain(|piece| !piece.is_empty());
    all
}

/// Whether the last line of a passage announces what follows: a heading, a bold line, or one that ends with a colon.
fn announces(passage: &str) -> bool {
    let last = passage.lines().next_back().unwrap_or_default().trim();
    let is_bold = last.starts_with("**") && last.trim_end_matches(':').ends_with("**");
    last.starts_with('#') || last.ends_with([':', '：']) || is_bold && last.matches("**").count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &str) -> Vec<&str> {
        passages(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn short_paragraphs_are_one_passage_and_a_long_list_is_cut_between_items() {
        assert_eq!(cut("Fixed.\n\nThe cache is gone."), ["Fixed.\n\nThe cache is gone."]);
        let item = |n: usize| format!("- item {n} {}", "says something ".repeat(12));
        let text = format!("Done:\n{}\n{}\n{}", item(1), item(2), item(3));
        let passages = cut(&text);
        assert_eq!(passages.len(), 3, "{passages:?}");
        assert!(passages[0].starts_with("Done:\n- item 1"), "{passages:?}");
        assert!(passages[1].starts_with("- item 2"), "{passages:?}");
    }

    #[test]
    fn a_heading_stays_with_its_paragraph_and_a_long_paragraph_is_cut_between_sentences() {
        let text = format!("{}\n\n## Cause\nThe key lacked its version.", "A first paragraph. ".repeat(15));
        assert!(cut(&text).last().unwrap().starts_with("## Cause\nThe key"), "{:?}", cut(&text));
        let long = "The parser reads a line and renames the session. ".repeat(20);
        let passages = cut(&long);
        assert!(passages.len() > 2 && passages.iter().all(|passage| passage.ends_with("session.")), "{passages:?}");
        let chinese = cut(&"修复了解析器的错误。".repeat(90)).len();
        assert!((2..=4).contains(&chinese), "{chinese}");
    }

    proptest! {
        #[test]
        fn passages_hold_every_word_in_order_and_are_short(text in "(\\PC{0,30}|[a-z ]{0,90}|\n|\n- |\n# |。|[.] ){0,40}") {
            let ranges = passages(&text);
            let mut end = 0;
            for range in &ranges {
                prop_assert!(range.start >= end && range.start < range.end);
                prop_assert!(text[end..range.start].trim().is_empty(), "left out: {:?}", &text[end..range.start]);
                prop_assert!(text[range.clone()].chars().count() <= LONGEST);
                end = range.end;
            }
            prop_assert!(ranges.len() == PassageId::MAX || text[end..].trim().is_empty());
        }
    }
}
