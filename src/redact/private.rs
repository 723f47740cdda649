//! Text between `<private>` and `</private>`: removed from the whole text before it is cut or scanned.
//!
//! Matches upper or lower case, blanks inside the brackets, and nested tags. Without a closing tag, it removes
//! everything that follows.

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
