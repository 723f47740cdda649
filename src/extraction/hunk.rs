//! A change as lines with `-` and `+`, without the text that both sides share.

use std::collections::HashSet;

/// Length in bytes above which the shared prefix of two lines is left out.
const SHARED: usize = 48;
/// Maximum bytes of removed lines that are kept; added lines matter more.
const REMOVED: usize = 150;
/// Bytes of a shared prefix that are kept, to show where in the line the change is.
const STAYS: usize = 20;

/// Returns the lines that differ. If a line replaces another one, a long shared prefix is left out.
pub fn changed_lines(hunk: &str) -> String {
    let side = |sign: char| hunk.lines().filter_map(move |line| line.strip_prefix(sign));
    let texts = |sign: char| side(sign).map(str::trim).collect::<HashSet<_>>();
    let (old, new) = (texts('-'), texts('+'));
    let differs = |line: &&str| match (line.strip_prefix('-').map(str::trim), line.strip_prefix('+').map(str::trim)) {
        (Some(text), _) => !text.is_empty() && !new.contains(text),
        (_, Some(text)) => !text.is_empty() && !old.contains(text),
        // Context lines and hunk headers.
        _ => false,
    };
    let lines: Vec<&str> = hunk.lines().filter(differs).collect();
    let removed: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix('-')).collect();
    let added: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix('+')).collect();
    if removed.is_empty() && added.is_empty() {
        // Only blanks differ, or the record cut the difference away: only the location can be shown.
        let place = side('+').find(|line| !line.trim().is_empty()).map(|line| format!("+{line}"));
        return place.unwrap_or_else(|| hunk.to_string());
    }
    let mut pairs = added.iter().zip(&removed).filter(|_| added.len() == removed.len()).map(|(new, old)| shared(new, old));
    let mut left = REMOVED;
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix('+'), line.starts_with('-')) {
            (Some(text), _) => out.push(match pairs.next() {
                Some(shared) if shared > SHARED => format!("+…{}", &text[text.ceil_char_boundary(shared - STAYS)..]),
                _ => line.to_string(),
            }),
            (None, true) if line.len() > left => {
                // The first line that does not fit is cut, the others are dropped.
                out.extend((left > 0).then(|| format!("{}…", &line[..line.floor_char_boundary(left)])));
                left = 0;
            }
            (None, removed) => {
                left -= if removed { line.len() } else { 0 };
                out.push(line.to_string());
            }
        }
    }
    out.join("\n")
}

/// Returns the length in bytes of the shared prefix of two lines.
fn shared(a: &str, b: &str) -> usize {
    a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map_or(a.len().min(b.len()), |((at, _), _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_left() {
        assert_eq!(changed_lines("-a\n-b\n-\n+a\n+c\n+"), "-b\n+c");
        let long = "**Skill** — A folder with a file that is loaded on demand when a task asks for it.";
        let hunk = format!("-{long}\n+{long} It may hold more.");
        assert_eq!(changed_lines(&hunk), format!("-{long}\n+… a task asks for it. It may hold more."));
        let removed = format!("-{}\n-gone\n+x", "r".repeat(200));
        assert_eq!(changed_lines(&removed), format!("-{}…\n+x", "r".repeat(149)));
        assert_eq!(changed_lines("-x\n-y\n+x\n+ y"), "+x", "only blanks differ");
        assert_eq!(changed_lines("new file"), "new file");
    }
}
