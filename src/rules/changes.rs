//! What was changed: a memory for each commit, and one for changes that none has taken in yet.

use super::finding::{Cue, Finding};
use super::prose::{Prose, plain_headline, sentences, word_count};
use super::retraction::overtaken;
use super::said::reports;
use super::subject::{by_first_word, conventional};
use super::symbols::symbols;
use super::told::{FACTS, PASSED_BEFORE, Told, alike, asked_for};
use super::turns::{Turn, commit, is_inside, is_project_change, later};
use crate::model::{Domain, MemoryFile, Source, ToolUseRow};
use serde_json::{Value, json};

/// A change of a file, and the turn in which it was made.
type Edit<'a> = (usize, &'a ToolUseRow);

/// Lines at a commit message's end that say nothing about it.
const TRAILERS: [&str; 8] =
    ["co-authored-by:", "signed-off-by:", "🤖", "generated with", "reviewed-by:", "change-id:", "claude-session:", "entire-"];

/// Memories of changes, in order.
pub fn changes(turns: &[Turn], domain: &Domain) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    let mut pending: Vec<Edit> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        for tool in &turn.tools {
            if is_project_change(tool) {
                pending.push((at, tool));
            }
            let Some((sha, subject)) = commit(tool) else { continue };
            let edits = std::mem::take(&mut pending);
            let line = tool.content.as_deref().unwrap_or_default();
            match told.last_mut().filter(|_| line.contains("--amend")) {
                Some(last) => amended(last, turns, at, tool, (sha, subject), &edits),
                None => told.extend(committed(turns, at, tool, (sha, subject), &edits, domain)),
            }
            if let Some(last) = told.last_mut() {
                touched(last, domain, &edits);
            }
        }
    }
    if let Some(mut last) = uncommitted(turns, &pending, domain) {
        touched(&mut last, domain, &pending);
        told.push(last);
    }
    told
}

fn committed(
    turns: &[Turn],
    at: usize,
    tool: &ToolUseRow,
    made: (Option<&str>, Option<&str>),
    edits: &[Edit],
    domain: &Domain,
) -> Option<Told> {
    let turn = &turns[at];
    let lead = turn.prose.done();
    let subject = made.1.map(str::trim).filter(|subject| !subject.is_empty()).or(lead)?;
    let (named, subject) = conventional(subject);
    let finding = kind_of(named, subject, edits, domain);
    let mut over: Vec<usize> = edits.iter().map(|(turn, _)| *turn).chain([at]).collect();
    over.dedup();
    let mut told = Told::observation(format!("commit:t{}", tool.id), finding, subject, over.clone());
    let message = message_body(tool.content.as_deref().unwrap_or_default(), made.1.unwrap_or_default());
    let prose = Prose::of(&message);
    prose.points().for_each(|point| told.fact(point));
    let mut body: Vec<&str> =
        prose.parts.iter().filter(|part| !part.is_point && word_count(&part.text) >= 3).map(|part| part.text.as_str()).collect();
    told.subtitle = body.first().map(|first| first.to_string());
    for said in over.iter().filter_map(|at| turns[*at].prose.done()).filter(|said| !alike(said, subject)) {
        match told.subtitle {
            None => told.subtitle = Some(said.to_string()),
            Some(_) if reports(said) => told.fact(said),
            Some(_) => {}
        }
    }
    if let Some(asked) = over.first().and_then(|at| turns[*at].asked).filter(|_| told.subtitle.is_none()) {
        told.subtitle = Some(asked_for(&asked.text)).filter(|asked| !asked.is_empty());
    }
    if body.len() > 1 || body.first().is_some_and(|first| word_count(first) > 24) {
        told.body = Some(std::mem::take(&mut body).join(" "));
    }
    if let Some(check) = passed_check(turns, edits, at, tool) {
        told.fact(&check);
    }
    let mut note = json!({"subject": made.1.unwrap_or(subject)});
    if let Some(sha) = made.0 {
        note["sha"] = Value::from(sha.chars().take(12).collect::<String>());
    }
    told.content.insert("commit".into(), note);
    told.cues = cues(finding);
    told.sources.push(Source::ToolUse(tool.id));
    drawn_from(&mut told, turns, &over, edits);
    Some(told)
}

/// A commit that was made anew: it stays the same memory, of the later state.
fn amended(last: &mut Told, turns: &[Turn], at: usize, tool: &ToolUseRow, made: (Option<&str>, Option<&str>), edits: &[Edit]) {
    if let Some(subject) = made.1.map(|subject| conventional(subject).1).filter(|subject| !subject.is_empty()) {
        last.title = subject.to_string();
    }
    if let (Some(sha), Some(note)) = (made.0, last.content.get_mut("commit")) {
        note["sha"] = Value::from(sha.chars().take(12).collect::<String>());
    }
    if last.turns.last() != Some(&at) {
        last.turns.push(at);
    }
    last.sources.push(Source::ToolUse(tool.id));
    drawn_from(last, turns, &[at], edits);
}

fn uncommitted(turns: &[Turn], edits: &[Edit], domain: &Domain) -> Option<Told> {
    let mut over: Vec<usize> = edits.iter().map(|(turn, _)| *turn).collect();
    over.dedup();
    let own = |said: &&str| is_about(said, edits);
    let refused = |at: usize| turns.get(at + 1).is_some_and(|next| next.refuses);
    let says_done = |at: usize| turns[at].prose.done().filter(own).filter(|_| !refused(at));
    // What was reported last holds; where nobody said what was done, only the summary names the files.
    let last =
        |reported: bool| over.iter().rev().copied().find(|at| says_done(*at).is_some_and(|said| !reported || reports(said)));
    let main = last(true).or_else(|| last(false))?;
    let title = says_done(main)?;
    let request = turns[main].asked.map(|asked| plain_headline(&asked.text)).unwrap_or_default();
    let finding = kind_of(None, title, edits, domain);
    let mut told = Told::observation(format!("edits:t{}", edits[0].1.id), finding, title, over.clone());
    told.subtitle = Some(asked_for(&request)).filter(|asked| !asked.is_empty());
    turns[main].prose.points().take(FACTS - 2).for_each(|point| told.fact(point));
    let before = over.iter().copied().filter(|at| *at < main);
    let reported =
        before.filter_map(|at| says_done(at).filter(|said| reports(said) && !overtaken(said, later(&turns[at + 1..]))));
    reported.for_each(|said| told.fact(said));
    told.content.insert("committed".into(), Value::from(false));
    told.cues = cues(finding);
    drawn_from(&mut told, turns, &over, edits);
    Some(told)
}

/// Whether a report may be about these changes: one that names files must name one of them. A recap tells of earlier work too.
fn is_about(said: &str, edits: &[Edit]) -> bool {
    let is_file = |word: &&str| {
        word.rsplit_once('.').is_some_and(|(stem, end)| {
            stem.len() > 1 && (1..=5).contains(&end.len()) && end.chars().all(|c| c.is_ascii_lowercase())
        })
    };
    let words = said.split(|c: char| c.is_whitespace() || matches!(c, '`' | '(' | ')' | ',' | ':' | '*' | '"'));
    let named: Vec<&str> = words.filter(is_file).map(|path| path.rsplit('/').next().unwrap_or(path)).collect();
    let edited = |name: &&str| edits.iter().filter_map(|(_, tool)| tool.path.as_deref()).any(|path| path.ends_with(*name));
    named.is_empty() || named.iter().any(edited)
}

/// What kind of change it was: as its commit says, else as the first word of a report does. Where code is the work,
/// documents are neither mended nor given abilities.
fn kind_of(named: Option<Finding>, text: &str, edits: &[Edit], domain: &Domain) -> Finding {
    let is_code = domain.name == "coding";
    let is_document = |path: &str| path.ends_with(".md") || path.ends_with(".txt") || path.starts_with("docs/");
    let mut paths = edits.iter().filter_map(|(_, tool)| tool.path.as_deref()).peekable();
    match named {
        Some(named) => named,
        None if is_code && paths.peek().is_some() && paths.all(is_document) => Finding::Change,
        None => by_first_word(text),
    }
}

fn drawn_from(told: &mut Told, turns: &[Turn], over: &[usize], edits: &[Edit]) {
    told.files.extend(edits.iter().filter_map(|(_, tool)| {
        let path = tool.path.clone().filter(|path| is_inside(path))?;
        Some(MemoryFile { path, modified: true, hash: None })
    }));
    told.sources.extend(edits.iter().map(|(_, tool)| Source::ToolUse(tool.id)));
    told.sources.extend(over.iter().flat_map(|at| turns[*at].said()));
}

fn touched(told: &mut Told, domain: &Domain, edits: &[Edit]) {
    let found = symbols(&edits.iter().map(|(_, tool)| *tool).collect::<Vec<_>>());
    for (field, names) in
        [("functions_touched", found.functions), ("classes_touched", found.classes), ("modules_affected", found.modules)]
    {
        if domain.has_field(field) && !names.is_empty() {
            told.content.insert(field.into(), Value::from(names));
        }
    }
}

/// The check that went through last, between the last change and the commit.
fn passed_check(turns: &[Turn], edits: &[Edit], at: usize, commit: &ToolUseRow) -> Option<String> {
    let since = edits.last().map_or(0, |(_, tool)| tool.seq);
    let before = turns[..=at].iter().flat_map(|turn| &turn.tools).filter(|tool| tool.seq > since && tool.seq < commit.seq);
    let mut checks = before.filter(|tool| tool.is_check());
    let last = checks.next_back().filter(|tool| tool.succeeded == Some(true) && since > 0)?;
    let program = super::failures::program(last.content.as_deref()?);
    (!program.is_empty() && !program.contains("fmt") && !program.contains("format"))
        .then(|| format!("`{program}` {PASSED_BEFORE}"))
}

fn cues(finding: Finding) -> Vec<Cue> {
    match finding {
        Finding::Fix => vec![Cue::Solution, Cue::Change],
        Finding::Feature => vec![Cue::Change, Cue::Mechanism],
        Finding::Refactor => vec![Cue::Change, Cue::Pattern],
        _ => vec![Cue::Change, Cue::Reason],
    }
}

/// What a commit's message says below its subject, without its trailers.
fn message_body(line: &str, subject: &str) -> String {
    let Some((_, rest)) = line.split_once(subject).filter(|_| !subject.is_empty()) else { return String::new() };
    let heredoc = line.split_once("<<").map(|(_, rest)| rest.trim_start_matches(['-', '\'', '"', ' ']));
    let marker = heredoc.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default());
    let mut body = String::new();
    // A second `-m` is a paragraph of its own.
    let rest = rest.trim_start_matches(['"', '\'']).trim_start();
    let rest = rest.strip_prefix("-m").map_or(rest, |rest| rest.trim_start().trim_start_matches(['"', '\'']));
    for text in rest.lines() {
        let bare = text.trim();
        let lower = bare.to_lowercase();
        if marker.is_some_and(|marker| !marker.is_empty() && bare == marker) {
            break;
        }
        if TRAILERS.iter().any(|trailer| lower.starts_with(trailer)) || bare.starts_with("[…") {
            break;
        }
        let ends =
            marker.is_none() && (bare.contains("\" ") || bare.ends_with('"') || bare.ends_with('\'') || bare.contains("\";"));
        // A point's further lines are known by their indent.
        let kept = if ends { bare.split('"').next().unwrap_or_default().trim_end_matches('\'') } else { text.trim_end() };
        // What follows the message on its line is the shell's.
        if marker.is_none() && (bare.starts_with("&&") || bare.starts_with('|') || bare.starts_with(';')) {
            break;
        }
        body.push_str(kept);
        body.push('\n');
        if ends {
            break;
        }
    }
    let told = sentences(body.trim());
    if told.is_empty() { String::new() } else { body.trim().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_message_is_found_without_its_trailers() {
        let wrapped = "git commit -m \"$(cat <<'EOF'\na b\n\n- one that goes on\n  here (x)\nEOF\n)\"";
        assert_eq!(message_body(wrapped, "a b"), "- one that goes on\n  here (x)");
        let heredoc = "git add -A && git commit -m \"$(cat <<'EOF'\nfix: a b\n\nThe lock was taken twice.\n\n- ordered the locks\n\n🤖 Generated with X\nCo-Authored-By: Y\nEOF\n)\" && git push";
        assert_eq!(message_body(heredoc, "fix: a b"), "The lock was taken twice.\n\n- ordered the locks");
        assert_eq!(message_body("git commit -m \"a b\n\nbecause of c\" && git push", "a b"), "because of c");
        assert_eq!(message_body("git commit -m \"a b\" -m \"because of c\"", "a b"), "because of c");
        assert_eq!(message_body("git commit -m \"a b\" && git push origin main", "a b"), "");
        assert_eq!(message_body("git commit", ""), "");
    }
}
