//! Next steps: what an agent's last message says is left to do.

/// Words with which agents head what they leave undone.
const LEFT: [&str; 11] = [
    "next",
    "next step",
    "next steps",
    "remaining",
    "still to do",
    "still open",
    "todo",
    "to do",
    "not done",
    "left to do",
    "follow-up",
];
/// Cuts a closing message in two: what was done, and what the agent says is left to do. That is a line `Next: …`, or a
/// heading and the list below it; finished boxes are no work left.
pub fn split_left(closing: &str) -> Option<(String, String)> {
    let lines: Vec<&str> = closing.lines().filter(|line| !line.trim().is_empty()).collect();
    let at = lines.iter().rposition(|line| label(line.trim()).is_some()).filter(|at| *at > 0)?;
    let behind = label(lines[at].trim())?;
    let items = lines[at + 1..].iter().map_while(|line| item(line.trim())).filter(|item| !item.is_empty());
    let left = if behind.is_empty() { items.collect::<Vec<_>>().join("; ") } else { behind };
    // A line is a part of the text, so its beginning is a place in it.
    let before = &closing[..lines[at].as_ptr() as usize - closing.as_ptr() as usize];
    (!left.is_empty()).then(|| (before.trim_end().to_string(), left))
}

/// What stands behind a label (`**Next:** a` → `a`); empty for a heading (`## Next steps`).
fn label(line: &str) -> Option<String> {
    let plain = line.trim_start_matches(['#', '*', '-', '>', ' ']);
    let (name, behind) = match plain.split_once(':') {
        Some((name, behind)) => (name, behind.trim_matches(['*', ' '])),
        None => (plain, ""),
    };
    let name = name.trim_matches(['*', ' ']).to_lowercase();
    LEFT.contains(&name.as_str()).then(|| behind.to_string())
}

/// The text of a list item, empty for a finished box; `None` for a line that is none.
fn item(line: &str) -> Option<&str> {
    let numbered =
        line.split_once(['.', ')']).filter(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())).map(|(_, rest)| rest);
    let text = line.strip_prefix(['-', '*', '•']).or(numbered)?.trim();
    match text.get(..3) {
        Some("[x]" | "[X]") => Some(""),
        Some("[ ]") => Some(text[3..].trim()),
        _ => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_taken_from_its_line_or_from_below_its_heading() {
        let left = |text: &str| split_left(text).map(|(_, left)| left);
        assert_eq!(split_left("All done.\n\nNext: bump it"), Some(("All done.".into(), "bump it".into())));
        assert_eq!(left("Done.\n## Next steps\n- a\n- b").as_deref(), Some("a; b"));
        assert_eq!(left("Done.\n**Remaining:**\n1. docs\n2. tests\n\nLet me know!").as_deref(), Some("docs; tests"));
        assert_eq!(left("Done.\n## Next steps\n- [x] notes\n- [ ] publish\n| a | b |").as_deref(), Some("publish"));
        assert_eq!(left("Done.\nNext to the parser there is a helper."), None);
        assert_eq!(left("Everything passes."), None);
        assert_eq!(left("Next: all of it"), None, "a message that is nothing else is what was answered");
    }
}
