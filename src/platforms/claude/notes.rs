//! The notes that Claude Code keeps about a project: `projects/<folder>/memory/MEMORY.md`, and the files that it lists.
//!
//! Early versions wrote notes into `MEMORY.md` itself, under headings. Later ones keep one file per note, with a name
//! and a description in its front matter, and `MEMORY.md` only lists these files.

use crate::model::{Entity, Millis, TITLE};
use crate::platforms::other_memory::{cut_bytes, stable_uuid};
use serde_json::{Map, json};
use std::path::Path;

/// Minimum bytes of a note.
const LEAST: usize = 20;
/// Maximum bytes of a note's text.
const NOTE: usize = 8000;

/// Returns true if a file holds notes, judged by its path.
pub fn is_notes(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md") && path.components().any(|part| part.as_os_str() == "memory")
}

/// Parses the notes in a file.
pub fn notes(path: &Path, text: &str, at: Millis) -> Vec<Entity> {
    let (head, text) = front_matter(text);
    let named =
        |key: &str| head.lines().find_map(|line| line.trim().strip_prefix(key)).map(|value| value.trim().trim_matches('"'));
    let description = named("description:").or_else(|| named("name:"));
    let note = |title: &str, body: &str, key: &str| Entity {
        uuid: Some(stable_uuid(&format!("note {} {key}", path.display()))),
        entity_type: "observation".into(),
        title: Some(cut_bytes(title, TITLE.0)),
        subtitle: None,
        content: Map::from_iter([
            ("narrative".into(), json!(cut_bytes(body, NOTE))),
            ("notes_file".into(), json!(path.display().to_string())),
        ]),
        concepts: Vec::new(),
        files_read: Vec::new(),
        files_modified: Vec::new(),
        tokens: None,
        at,
    };
    if let Some(description) = description.filter(|_| text.trim().len() >= LEAST) {
        return vec![note(description, text.trim(), "")];
    }
    let sections = sections(text).into_iter().map(|(heading, body)| (heading, without_links(&body)));
    let sections = sections.filter(|(_, body)| body.len() >= LEAST);
    sections.map(|(heading, body)| note(&title(&heading, &body), &body, &heading)).collect()
}

/// Returns the heading with the first line of its text: a heading alone tells little.
fn title(heading: &str, body: &str) -> String {
    let first = body.lines().map(|line| line.trim_start_matches(['-', '*', ' '])).find(|line| !line.is_empty());
    let parts: Vec<&str> = [heading, first.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// Splits a file into its front matter (between `---` lines) and the rest.
fn front_matter(text: &str) -> (&str, &str) {
    let inside = text.trim_start_matches('\u{feff}').strip_prefix("---\n");
    inside.and_then(|inside| inside.split_once("\n---")).unwrap_or(("", text))
}

/// Splits a text into headings, each with the text below it.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections = vec![(String::new(), String::new())];
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        match line.strip_prefix('#').filter(|_| !is_code) {
            Some(heading) => sections.push((heading.trim_start_matches('#').trim().to_string(), String::new())),
            None => {
                let body = &mut sections.last_mut().expect("there is a first one").1;
                *body += line;
                *body += "\n";
            }
        }
    }
    sections
}

/// Removes the lines that only link to another notes file.
fn without_links(body: &str) -> String {
    let is_link = |line: &str| line.trim_start().starts_with("- [") && line.contains(".md)");
    body.lines().filter(|line| !is_link(line)).collect::<Vec<_>>().join("\n").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_files_is_no_note_and_each_section_is_one() {
        let path = Path::new("/h/.claude/projects/-p/memory/MEMORY.md");
        let text = "# Memory\n- [Testing](testing.md) — how to run tests\n\n## Build\n- `make all` needs GNU make, not BSD make\n- slow\n";
        let found = notes(path, text, 7);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title.as_deref(), Some("Build: `make all` needs GNU make, not BSD make"));
        let file = "---\nname: testing\ndescription: Tests need a running database\ntype: project\n---\n\nStart it with `make db` first.\n";
        let found = notes(Path::new("/h/memory/testing.md"), file, 7);
        assert_eq!(found[0].title.as_deref(), Some("Tests need a running database"));
        assert_eq!(found[0].content["narrative"], "Start it with `make db` first.");
        assert!(is_notes(path) && !is_notes(Path::new("/h/README.md")));
    }
}
