//! Results of `nmem search`, `nmem error` and `nmem how`, as text and JSON.

use super::clean::line;
use super::style::Style;
use super::{count, memory_text, time};
use crate::model::{CommandForm, ErrorEnding, Grade, Hit, HitKind, Millis, PastError};
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
        HitKind::Memory => match &hit.team {
            Some(team) => memory_text::member(team),
            None => hit.made_by.clone().unwrap_or_default(),
        },
        HitKind::Unit => "nmem".to_string(),
        HitKind::Prompt => hit.what.clone(),
        HitKind::Tool => "tool".to_string(),
    };
    json!({
        "id": id(hit), "kind": hit.name, "type": hit.what, "title": line(&hit.text, TITLE), "snippet": snippet(hit, words, SNIPPET),
        "project": hit.project, "session": hit.session, "unit": hit.unit.map(|unit| format!("u{unit}")), "files": hit.files,
        "concepts": hit.concepts, "created_at": hit.at, "made_by": made_by, "score": (hit.score * 1e9).round() / 1e9,
    })
}

/// The kind of a hit in a word.
pub fn kind(hit: &Hit) -> &str {
    match hit.kind {
        HitKind::Unit => "work",
        HitKind::Prompt if hit.what == "agent" => "answer",
        HitKind::Prompt => "prompt",
        HitKind::Tool if hit.passage.is_some() => "commit",
        HitKind::Tool => &hit.what,
        // Observations and ended open ends show their type, other memories their kind.
        HitKind::Memory if matches!(hit.name.as_str(), "observation" | "open") && !hit.what.is_empty() => &hit.what,
        HitKind::Memory => &hit.name,
    }
}

/// Says that an answer may not fit its question.
pub const WEAK: &str = "No strong match; the nearest are:";
/// Says which words of a question nothing has; `None` if there are none.
pub fn unknown_words(words: &[String]) -> Option<String> {
    let named: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    (!words.is_empty()).then(|| format!("No message or memory here has {}.", named.join(" or ")))
}
/// Says that no form of a program has worked.
pub const NEVER_WORKED: &str = "No call of it has succeeded here:";

/// One hit of an answer as JSON, with the grade of the answer; `None` for a list without a question.
pub fn graded_json(hit: &Hit, words: &[String], grade: Option<Grade>) -> Value {
    let mut json = json(hit, words);
    if let Some(grade) = grade {
        json["match"] = grade.name().into();
    }
    json
}

/// An answer without hits.
pub fn nothing_json() -> Value {
    json!({"match": Grade::None.name()})
}

/// Maximum characters of the title in the line above a passage.
const HEADLINE: usize = 60;

/// One hit: a line with its id, day and kind, then its passage. A memory whose passage is from its middle shows its title,
/// too.
pub fn text(hit: &Hit, words: &[String], style: Style, all_projects: bool) -> String {
    let what = kind(hit);
    let failed = if hit.succeeded == Some(false) { format!(" {}", style.bad("failed")) } else { String::new() };
    let project =
        hit.project.as_deref().filter(|_| all_projects).map(|p| format!(" {}", style.path(&line(p, 40)))).unwrap_or_default();
    let person = hit.team.as_ref().map(|team| format!(" {}", memory_text::member(team))).unwrap_or_default();
    let when = style.faint(&time::day(hit.at));
    let has_title = |passage: &String| passage.starts_with(&hit.text);
    let from_middle = hit.kind == HitKind::Memory && hit.passage.as_ref().is_some_and(|passage| !has_title(passage));
    let title = if from_middle { format!("  {}", in_quotes(hit, line(&hit.text, HEADLINE))) } else { String::new() };
    format!(
        "{}  {when}  {what}{failed}{project}{person}{title}\n    {}",
        style.strong(&id(hit)),
        marked(&in_quotes(hit, snippet(hit, words, SNIPPET.min(LINES * style.width.saturating_sub(6)))), words, style)
    )
}

/// One hit with all its searched text.
pub fn full(hit: &Hit, words: &[String], style: Style, all_projects: bool) -> String {
    let head = text(hit, &[], style, all_projects);
    let head = head.lines().next().unwrap_or_default();
    let lines = hit.text.lines().chain(hit.more.lines()).map(|l| marked(&in_quotes(hit, line(l, FULL)), words, style));
    let body: Vec<String> = lines.filter(|l| !l.is_empty()).map(|l| format!("    {l}")).collect();
    format!("{head}\n{}", body.join("\n"))
}

/// One hit as a Markdown list item.
pub fn markdown(hit: &Hit, words: &[String]) -> String {
    let text = in_quotes(hit, snippet(hit, words, SNIPPET));
    format!("- **{}** {} {} ({}): {text}", id(hit), time::day(hit.at), time::clock(hit.at), hit.name)
}

/// Returns a line of a hit, in quotation marks if another person shared it.
fn in_quotes(hit: &Hit, text: String) -> String {
    if hit.team.is_some() && !text.is_empty() { format!("\"{}\"", text.replace('"', "'")) } else { text }
}

/// Returns the whole passage that matches, or else `length` characters around the first word, on one line.
pub fn snippet(hit: &Hit, words: &[String], length: usize) -> String {
    if let Some(passage) = &hit.passage {
        return if hit.kind == HitKind::Memory { memory_line(&hit.text, passage) } else { line(passage, usize::MAX) };
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

/// A passage of a memory on one line: a dash after the title, and each other line once, as a sentence or up to a semicolon.
fn memory_line(title: &str, passage: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for text in passage.lines().map(|text| line(text, usize::MAX)).filter(|text| !text.is_empty()) {
        if !lines.contains(&text) {
            lines.push(text);
        }
    }
    let title = line(title, usize::MAX);
    let mut out = String::new();
    for (at, text) in lines.iter().enumerate() {
        out += match (at, out.chars().last()) {
            (0, _) => "",
            (1, _) if lines[0] == title => " — ",
            (_, Some('.' | '!' | '?' | ':' | ';' | ',' | '…' | '。' | '"')) => " ",
            _ => "; ",
        };
        out += text;
    }
    out
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

/// Maximum files to name.
const FILES: usize = 5;
/// Maximum characters of a command, and of a memory's text.
const COMMAND: usize = 160;
const TEXT: usize = 240;

/// Says up to when tool calls are gone, as an addition to an answer that found none. `gone_until` is in milliseconds.
pub fn not_kept(gone_until: Option<Millis>) -> String {
    gone_until.map_or_else(String::new, |at| format!("; tool calls up to {} were not kept", time::day(at)))
}

/// Returns an earlier error with its resolution, for a person.
pub fn error_text(error: &PastError, style: Style) -> String {
    let unit = error.unit.map(|unit| format!(" u{unit}")).unwrap_or_default();
    let place = style.faint(&format!("{}{unit}", time::day(error.at)));
    let mut out = format!("{}\n  {place} {}\n", style.bad(&line(&error.error, TEXT)), line(&error.command, COMMAND));
    match &error.ended_by {
        Some(ending) => out += &ending_text(ending, style),
        None => out += &format!("  {}\n", style.faint("not ended in that session")),
    }
    out
}

fn ending_text(ending: &ErrorEnding, style: Style) -> String {
    let mut parts = Vec::new();
    if !ending.files.is_empty() {
        let names: Vec<String> = ending.files.iter().take(FILES).map(|path| style.path(&line(path, 100))).collect();
        let more = ending.files.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("changed {}{more}", names.join(", ")));
    }
    parts.push(format!("{} succeeded", style.good(&line(&ending.command, COMMAND))));
    let mut out = format!("  ended by: {}\n", parts.join(", then "));
    if let Some(commit) = &ending.commit {
        out += &format!("  committed: {}\n", line(commit, COMMAND));
    }
    if let Some((text, memory)) = &ending.text {
        out += &format!("  {} {}\n", style.faint(&format!("m{memory}")), line(text, TEXT));
    }
    out
}

/// An earlier error as JSON.
pub fn error_json(error: &PastError) -> Value {
    let ending = |ending: &ErrorEnding| json!({"command": ending.command, "files": ending.files, "commit": ending.commit, "text": ending.text.as_ref().map(|(text, _)| text)});
    json!({
        "signature": error.signature, "at": error.at, "session": error.session, "unit": error.unit.map(|unit| format!("u{unit}")),
        "command": error.command, "error": error.error, "ended_by": error.ended_by.as_ref().map(ending), "match": error.grade().name(),
    })
}

/// Returns a form of a command with its outcomes, for a person.
pub fn form_text(form: &CommandForm, style: Style) -> String {
    let command = line(&form.command, COMMAND);
    let command = if form.succeeded > 0 { style.good(&command) } else { style.bad(&command) };
    let mut outcome = Vec::new();
    outcome.extend((form.succeeded > 0).then(|| format!("succeeded {}", count(form.succeeded as i64, "time", "times"))));
    outcome.extend((form.failed > 0).then(|| format!("failed {}", count(form.failed as i64, "time", "times"))));
    outcome.extend(form.worked_instead.then(|| "worked where another form failed".to_string()));
    outcome.push(format!("last {}", time::day(form.last_at)));
    outcome.extend(form.unit.map(|unit| format!("u{unit}")));
    format!("{command}\n  {}\n", style.faint(&outcome.join(", ")))
}

/// A form of a command as JSON.
pub fn form_json(form: &CommandForm) -> Value {
    json!({
        "command": form.command, "succeeded": form.succeeded, "failed": form.failed, "last_at": form.last_at,
        "unit": form.unit.map(|unit| format!("u{unit}")), "match": form.grade().name(),
    })
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
            team: None,
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

    #[test]
    fn a_memory_shows_its_title_once_and_its_facts_apart() {
        let memory = |passage: &str| {
            let passage = Some(passage.to_string());
            let hit = Hit {
                kind: HitKind::Memory,
                name: "observation".into(),
                what: "change".into(),
                passage,
                ..hit("Cache the header")
            };
            text(&hit, &[], Style::default(), false)
        };
        let begin = memory("Cache the header\nParsing took 40 ms.\n`cache.rs` keeps it\n`parse` asks it");
        assert_eq!(
            begin,
            "m7  1970-01-01  change\n    Cache the header — Parsing took 40 ms. `cache.rs` keeps it; `parse` asks it"
        );
        assert_eq!(memory("`parse` asks it"), "m7  1970-01-01  change  Cache the header\n    `parse` asks it");
    }
}
