//! Search hits for terminals, programs and documents.

use super::clean::line;
use super::style::Style;
use super::time;
use crate::model::{Hit, HitKind};
use serde_json::{Value, json};

/// Maximum characters of a title and of a snippet, in JSON and in a document.
const TITLE: usize = 80;
const SNIPPET: usize = 240;
/// Maximum lines of a snippet on a terminal.
const LINES: usize = 2;
/// Maximum characters of a full text.
const FULL: usize = 4000;

/// The short id that `nmem show` accepts.
pub fn id(hit: &Hit) -> String {
    match hit.kind {
        HitKind::Memory => format!("m{}", hit.id),
        HitKind::Unit => format!("u{}", hit.id),
        HitKind::Prompt => format!("p{}", hit.id),
        HitKind::Tool => format!("t{}", hit.id),
    }
}

/// One hit as JSON.
pub fn json(hit: &Hit, words: &[String]) -> Value {
    let made_by = match hit.kind {
        HitKind::Memory => hit.made_by.as_deref().unwrap_or_default(),
        HitKind::Unit => "nmem",
        HitKind::Prompt => hit.what.as_str(),
        HitKind::Tool => "tool",
    };
    json!({
        "id": id(hit), "kind": hit.name, "type": hit.what, "title": line(&hit.text, TITLE), "snippet": snippet(hit, words, SNIPPET),
        "project": hit.project, "session": hit.session, "unit": hit.unit.map(|unit| format!("u{unit}")), "files": hit.files,
        "concepts": hit.concepts, "created_at": hit.at, "made_by": made_by, "score": (hit.score * 1e9).round() / 1e9,
    })
}

/// One hit in a line or two.
pub fn text(hit: &Hit, words: &[String], style: Style, all_projects: bool) -> String {
    let what = match hit.kind {
        HitKind::Unit => "work",
        HitKind::Prompt if hit.what == "agent" => "answer",
        HitKind::Prompt => "prompt",
        HitKind::Tool => hit.what.as_str(),
        // Observations show their type, other memories their kind.
        HitKind::Memory if hit.name == "observation" && !hit.what.is_empty() => hit.what.as_str(),
        HitKind::Memory => hit.name.as_str(),
    };
    let failed = if hit.succeeded == Some(false) { format!(" {}", style.bad("failed")) } else { String::new() };
    let project =
        hit.project.as_deref().filter(|_| all_projects).map(|p| format!(" {}", style.path(&line(p, 40)))).unwrap_or_default();
    let person = hit
        .made_by
        .as_deref()
        .filter(|by| by.starts_with("teammate "))
        .map(|by| format!(" {}", line(by, 60)))
        .unwrap_or_default();
    let when = style.faint(&format!("{} {}", time::day(hit.at), time::clock(hit.at)));
    format!(
        "{}  {when}  {what}{failed}{project}{person}\n    {}",
        style.strong(&id(hit)),
        marked(&snippet(hit, words, SNIPPET.min(LINES * style.width.saturating_sub(6))), words, style)
    )
}

/// One hit with all its searched text.
pub fn full(hit: &Hit, words: &[String], style: Style, all_projects: bool) -> String {
    let head = text(hit, &[], style, all_projects);
    let head = head.lines().next().unwrap_or_default();
    let lines = hit.text.lines().chain(hit.more.lines()).map(|l| marked(&line(l, FULL), words, style));
    let body: Vec<String> = lines.filter(|l| !l.is_empty()).map(|l| format!("    {l}")).collect();
    format!("{head}\n{}", body.join("\n"))
}

/// One hit as a Markdown list item.
pub fn markdown(hit: &Hit, words: &[String]) -> String {
    format!("- **{}** {} {} ({}): {}", id(hit), time::day(hit.at), time::clock(hit.at), hit.name, snippet(hit, words, SNIPPET))
}

/// Returns the passage that answers the request, or else the part of the text with the first word, on one line.
fn snippet(hit: &Hit, words: &[String], length: usize) -> String {
    if let Some(passage) = &hit.passage {
        return line(passage, length);
    }
    let whole = line(&if hit.more.is_empty() { hit.text.clone() } else { format!("{} — {}", hit.text, hit.more) }, usize::MAX);
    let lower = whole.to_lowercase();
    let first = words.iter().filter_map(|w| lower.find(w.as_str())).min().unwrap_or(0);
    // Lower-casing may change the length, so the offset is approximate and moved to a boundary.
    let from = first.min(whole.len()).saturating_sub(60);
    let from = if from < 40 { 0 } else { (from..whole.len()).find(|&i| whole.is_char_boundary(i)).unwrap_or(0) };
    let cut = line(&whole[from..], length);
    if from > 0 { format!("…{cut}") } else { cut }
}

fn marked(text: &str, words: &[String], style: Style) -> String {
    if !style.colour {
        return text.to_string();
    }
    let mut out = String::new();
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        let found = !word.is_empty() && words.iter().any(|w| word.to_lowercase().contains(w.as_str()));
        out.push_str(&if found { style.found(word) } else { std::mem::take(word) });
        word.clear();
    };
    for c in text.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            out.push(c);
        }
    }
    flush(&mut word, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(text: &str) -> Hit {
        Hit {
            kind: HitKind::Prompt,
            id: 7,
            what: "user".into(),
            text: text.into(),
            more: String::new(),
            path: None,
            succeeded: None,
            project: None,
            session: "s".into(),
            platform: "claude-code".into(),
            at: 0,
            unit: None,
            concepts: Vec::new(),
            files: Vec::new(),
            made_by: None,
            name: "prompt".into(),
            passage: None,
            score: 1.23456,
        }
    }

    #[test]
    fn the_snippet_stands_where_the_words_are() {
        let long = format!("{} the needle is here {}", "hay ".repeat(100), "hay ".repeat(100));
        let words = ["needle".to_string()];
        assert!(snippet(&hit(&long), &words, 160).contains("needle"));
        assert!(snippet(&hit("İİİİ needle"), &words, 160).contains("needle"));
        assert_eq!(json(&hit("a\nb"), &words)["title"], "a b");
    }

    #[test]
    fn found_words_are_marked_in_colour_only() {
        let words = ["hook".to_string()];
        assert_eq!(marked("the hook, hooks", &words, Style::default()), "the hook, hooks");
        assert_eq!(marked("the hook", &words, Style { colour: true, ..Style::default() }), "the \u{1b}[1;33mhook\u{1b}[0m");
    }
}
