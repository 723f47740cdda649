//! Evidence from recorded work, as text and JSON: the work behind a line or a commit, the checks of a working tree, the state of
//! a unit for somebody else, and the text of a pull request.

use super::clean::{code, line, prose};
use super::style::Style;
use super::{count, memory_text, time, unit_text};
use crate::model::{
    BranchStory, Certainty, CheckState, Claim, ClaimState, Evidence, FilePart, Handoff, MemoryClaims, MemoryRow, Millis, Origin,
    OriginOf, PromptRow, Rotten, ToolUseRow, UnitRow, Verification, VerifiedCheck,
};
use serde_json::{Value, json};

/// Maximum memories and checks to list.
const LISTED: usize = 5;
/// Characters of a commit's id.
const ID: usize = 10;

/// The first characters of a commit's id.
pub fn short(sha: &str) -> &str {
    sha.get(..ID).unwrap_or(sha)
}

/// The reason to name this work, as a sentence.
fn reason(origin: &Origin) -> String {
    let is_line = matches!(origin.subject, OriginOf::Line { .. });
    match (origin.certainty, is_line) {
        (Certainty::Edit, _) => "A recorded edit wrote this text.".into(),
        (Certainty::Commit, true) => {
            "A recorded session made the commit, but no recorded edit wrote this text: a command or a person did.".into()
        }
        (Certainty::Commit, false) => "A recorded command made this commit.".into(),
        (Certainty::SameChange, _) => {
            let id = origin.recorded_as.as_deref().map(short).unwrap_or_default();
            format!("This is the change of the recorded commit {id}, amended, rebased or squashed.")
        }
        (Certainty::Text, _) => {
            let (all, written) = origin.lines;
            format!("Recorded edits wrote {written} of its {all} lines. Nmem did not see who made the commit.")
        }
        (Certainty::Unknown, true) => {
            "No recorded edit wrote this text: a person did, or another machine, or it is older than the recording.".into()
        }
        (Certainty::Unknown, false) if !origin.others.is_empty() => {
            let (all, written) = origin.lines;
            format!("Recorded edits wrote {written} of its {all} lines; a person wrote the rest, or another machine.")
        }
        (Certainty::Unknown, false) => {
            "Nothing recorded is behind this commit: a person made it, or another machine, or it is older than the recording."
                .into()
        }
    }
}

/// The result of a check: `passed`, or `failed (exit 1)`.
pub fn result_of(check: &ToolUseRow, style: Style) -> String {
    let code = check.metadata["exit_code"].as_i64();
    match (check.succeeded, code) {
        (Some(true), _) => style.good("passed"),
        (Some(false), Some(code)) => style.bad(&format!("failed (exit {code})")),
        (Some(false), None) => style.bad("failed"),
        (None, _) => "still running".to_string(),
    }
}

fn name_of(unit: &UnitRow) -> String {
    let name = unit.title.as_ref().or(unit.intent.as_ref());
    name.map_or_else(String::new, |name| line(name, 100))
}

/// An answer, for a person.
pub fn text(evidence: &Evidence, style: Style) -> String {
    match evidence {
        Evidence::Origin(origin) => origin_text(origin, style),
        Evidence::File { file, parts } => file_text(file, parts, style),
    }
}

/// An answer as JSON.
pub fn json(evidence: &Evidence) -> Value {
    match evidence {
        Evidence::Origin(origin) => origin_json(origin),
        Evidence::File { file, parts } => file_json(file, parts),
    }
}

/// The work behind a line or a commit.
fn origin_text(origin: &Origin, style: Style) -> String {
    let mut out = match &origin.subject {
        OriginOf::Line { file, number, text, .. } => {
            format!("{}  {}\n", style.strong(&format!("{}:{number}", line(file, 200))), code(text.trim(), 120))
        }
        OriginOf::Commit { sha, subject } => format!("{}  {}\n", style.strong(short(sha)), line(subject, 120)),
    };
    out += &format!("{}\n", style.faint(&reason(origin)));
    let mut fact = |name: &str, value: String| out += &format!("  {name:<9}{value}\n");
    if let Some(tool) = &origin.tool_use {
        let what = if tool.is_edit() { "edit" } else { "commit" };
        fact(what, format!("t{} on {} at {}", tool.id, time::day(tool.received_at), time::clock(tool.received_at)));
    }
    if let (OriginOf::Line { commit: Some(sha), .. }, Certainty::Edit | Certainty::Commit) = (&origin.subject, origin.certainty) {
        fact("commit", short(sha).to_string());
    }
    if let Some(unit) = &origin.unit {
        let outcome = unit.known_outcome().map(|outcome| format!(", {}", outcome.name())).unwrap_or_default();
        fact("unit", format!("{} {}{outcome}", unit_text::id(unit), name_of(unit)));
    }
    if let Some(session) = &origin.session {
        fact("session", format!("s{} of {}, {}", session.id, session.platform.title(), time::day(session.started_at)));
    }
    if let Some(prompt) = &origin.prompt {
        fact("asked", format!("p{} {}", prompt.id, line(&prompt.text, 200)));
    }
    for (name, memories) in [("decided", &origin.decisions), ("tried", &origin.tried)] {
        for memory in memories.iter().take(LISTED) {
            fact(name, format!("{} {}", memory_text::id(memory), line(&memory.title, 160)));
        }
    }
    for check in origin.checks.iter().rev().take(LISTED) {
        fact("check", format!("{} {}", line(check.content.as_deref().unwrap_or_default(), 100), result_of(check, style)));
    }
    for (unit, lines) in origin.others.iter().take(LISTED) {
        fact("also", format!("{} {} ({})", unit_text::id(unit), name_of(unit), count(*lines as i64, "line", "lines")));
    }
    out.trim_end().to_string()
}

/// The note for a commit: unit, request, decisions, what was tried, checks.
pub fn note(origin: &Origin) -> String {
    let mut lines = Vec::new();
    lines.extend(origin.unit.as_ref().map(|unit| format!("nmem: {}", name_of(unit))));
    lines.extend(origin.prompt.as_ref().map(|prompt| format!("asked: {}", line(&prompt.text, 300))));
    for (name, memories) in [("decided", &origin.decisions), ("tried, did not help", &origin.tried)] {
        lines.extend(memories.iter().take(LISTED).map(|memory| format!("{name}: {}", line(&memory.title, 200))));
    }
    for check in origin.checks.iter().rev().take(LISTED) {
        let command = line(check.content.as_deref().unwrap_or_default(), 120);
        lines.push(format!("check: {command} {}", result_of(check, Style::default())));
    }
    lines.join("\n") + "\n"
}

fn memories_json(memories: &[MemoryRow]) -> Vec<Value> {
    memories
        .iter()
        .map(|memory| json!({"id": memory_text::id(memory), "type": memory_text::word(memory), "title": memory.title}))
        .collect()
}

/// The work behind a line or a commit.
fn origin_json(origin: &Origin) -> Value {
    let (at, commit) = match &origin.subject {
        OriginOf::Line { file, number, text, commit } => (json!({"file": file, "number": number, "text": text}), commit.clone()),
        OriginOf::Commit { sha, .. } => (Value::Null, Some(sha.clone())),
    };
    let tool = origin.tool_use.as_ref();
    let edit = tool
        .filter(|tool| tool.is_edit())
        .map(|tool| json!({"id": format!("t{}", tool.id), "at": tool.received_at, "path": tool.path}));
    let unit = origin.unit.as_ref().map(
        |unit| json!({"id": unit_text::id(unit), "title": unit.title.as_ref().or(unit.intent.as_ref()), "outcome": unit.outcome}),
    );
    let checks: Vec<Value> = origin.checks.iter().map(check_json).collect();
    let others: Vec<Value> = origin
        .others
        .iter()
        .map(|(unit, lines)| json!({"id": unit_text::id(unit), "title": unit.title, "lines": lines}))
        .collect();
    json!({
        "line": at, "commit": commit, "recorded_as": origin.recorded_as,
        "command": tool.filter(|tool| !tool.is_edit()).map(|tool| format!("t{}", tool.id)),
        "edit": edit, "unit": unit,
        "session": origin.session.as_ref().map(|session| &session.agent_session_id),
        "platform": origin.session.as_ref().map(|session| session.platform),
        "prompt": origin.prompt.as_ref().map(|prompt| json!({"id": format!("p{}", prompt.id), "text": prompt.text})),
        "decisions": memories_json(&origin.decisions), "tried": memories_json(&origin.tried), "checks": checks,
        "others": others, "certainty": origin.certainty.name(),
    })
}

/// A run of a check.
pub fn check_json(check: &ToolUseRow) -> Value {
    json!({
        "id": format!("t{}", check.id), "command": check.content, "passed": check.succeeded,
        "exit_code": check.metadata["exit_code"], "at": check.received_at,
    })
}

/// The units that wrote a file, those with most lines first.
fn file_text(file: &str, parts: &[FilePart], style: Style) -> String {
    let all: usize = parts.iter().map(|part| part.lines).sum();
    let mut out = format!("{}  {}\n", style.strong(&line(file, 200)), count(all as i64, "line", "lines"));
    for part in parts {
        let who = part.unit.as_ref().map_or_else(
            || style.faint("not recorded"),
            |unit| {
                format!("{} {} {}", style.strong(&unit_text::id(unit)), style.faint(&time::day(unit.started_at)), name_of(unit))
            },
        );
        out += &format!("{:>7}  {who}\n", part.lines);
    }
    out.trim_end().to_string()
}

/// The units that wrote a file.
fn file_json(file: &str, parts: &[FilePart]) -> Value {
    let part = |part: &FilePart| {
        let title = part.unit.as_ref().and_then(|unit| unit.title.as_ref().or(unit.intent.as_ref()));
        json!({"unit": part.unit.as_ref().map(unit_text::id), "title": title, "lines": part.lines, "first": part.first})
    };
    json!({"file": file, "units": parts.iter().map(part).collect::<Vec<_>>()})
}

/// The tree that checks ran on: `abc1234 on main, 3 files changed`.
fn tree(verification: &Verification) -> String {
    let head = verification.git.head.as_deref().map_or("no commit", short);
    let branch = verification.git.branch.as_ref().map(|branch| format!(" on {}", line(branch, 80))).unwrap_or_default();
    match verification.changed.len() {
        0 => format!("{head}{branch}, nothing changed"),
        n => format!("{head}{branch}, {} changed", count(n as i64, "file", "files")),
    }
}

fn when(at: Millis) -> String {
    format!("{} {}", time::day(at), time::clock(at))
}

/// The last run of a check in words.
fn last_run(check: &VerifiedCheck, style: Style) -> String {
    let at = when(check.run.received_at);
    match check.state {
        CheckState::Passed => format!("{} {at}", result_of(&check.run, style)),
        CheckState::Failed => format!("{} {at}", result_of(&check.run, style)),
        CheckState::Stale => format!("passed {at}, before the last change"),
    }
}

/// The checks of a working tree, for a person.
pub fn verification(verification: &Verification, style: Style) -> String {
    let mut out = format!("{}\n", style.strong(&tree(verification)));
    if let Some((at, path)) = &verification.last_change {
        out += &format!("{}\n", style.faint(&format!("last change {} {}", when(*at), line(path, 120))));
    }
    if verification.checks.is_empty() {
        return out + "No check of this project is recorded: no test, build or linter ran twice, or since the last change.";
    }
    let width = verification.checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    for check in &verification.checks {
        let word = match check.state {
            CheckState::Passed => style.good("ok    "),
            CheckState::Failed => style.bad("failed"),
            CheckState::Stale => style.found("stale "),
        };
        out += &format!(
            "{word}  {:width$}  {}  {}\n",
            line(&check.name, 80),
            last_run(check, style),
            style.faint(&format!("t{}", check.run.id))
        );
    }
    out.trim_end().to_string()
}

/// The checks of a working tree as Markdown, for a pull request.
pub fn verification_markdown(verification: &Verification) -> String {
    let mut out =
        format!("Checks as recorded, on `{}`:\n\n| check | result | command |\n| --- | --- | --- |\n", tree(verification));
    for check in &verification.checks {
        let command = check.run.content.as_deref().unwrap_or_default();
        let cell = |text: &str| text.replace('|', "\\|");
        out += &format!(
            "| {} | {} | {} |\n",
            cell(&line(&check.name, 80)),
            last_run(check, Style::default()),
            cell(&code(command, 120))
        );
    }
    if verification.checks.is_empty() {
        out += "| none is recorded | | |\n";
    }
    out.trim_end().to_string()
}

/// The checks of a working tree.
pub fn verification_json(verification: &Verification) -> Value {
    let check = |check: &VerifiedCheck| {
        let mut json = check_json(&check.run);
        json["name"] = json!(check.name);
        json["state"] = json!(check.state.name());
        json
    };
    json!({
        "passed": verification.is_sound(), "head": verification.git.head, "branch": verification.git.branch,
        "changed": verification.changed,
        "last_change": verification.last_change.as_ref().map(|(at, path)| json!({"at": at, "path": path})),
        "checks": verification.checks.iter().map(check).collect::<Vec<_>>(),
    })
}

/// Maximum bytes of a state.
pub const HANDOFF_BYTES: usize = 3000;

/// Limits of one attempt: items of a list, and characters of the first request, of a later one, and of the last message.
struct Limits {
    items: usize,
    goal: usize,
    later: usize,
    closing: usize,
}

/// From generous to narrow: the first that fits is taken.
const ATTEMPTS: [Limits; 4] = [
    Limits { items: 8, goal: 700, later: 240, closing: 600 },
    Limits { items: 5, goal: 500, later: 160, closing: 400 },
    Limits { items: 3, goal: 400, later: 120, closing: 240 },
    Limits { items: 2, goal: 240, later: 80, closing: 120 },
];

/// The state of a unit, in Markdown.
pub fn handoff(handoff: &Handoff) -> String {
    let mut texts = ATTEMPTS.iter().map(|limits| within(handoff, limits));
    let fits = texts.find(|text| text.len() <= HANDOFF_BYTES);
    fits.unwrap_or_else(|| {
        let text = within(handoff, &ATTEMPTS[ATTEMPTS.len() - 1]);
        text[..text.floor_char_boundary(HANDOFF_BYTES)].to_string()
    })
}

fn within(handoff: &Handoff, limits: &Limits) -> String {
    let unit = &handoff.unit;
    let mut out = format!("# Handoff: {}\n\n", title(unit, 120));
    let who = handoff.session.as_ref().map_or_else(
        || unit.platform.title().to_string(),
        |session| {
            let project = session.project.as_ref().map(|project| format!(" in {}", line(project, 80))).unwrap_or_default();
            let branch = session.end_branch.as_ref().or(session.start_branch.as_ref());
            let branch = branch.map(|branch| format!(", branch {}", line(branch, 80))).unwrap_or_default();
            format!("{}{project}{branch}", session.platform.title())
        },
    );
    let outcome = unit.known_outcome().map(|outcome| format!("; {}", outcome.name())).unwrap_or_default();
    out += &format!(
        "Work of {who}, {} {}{outcome} ({}).\n",
        time::day(unit.started_at),
        time::clock(unit.started_at),
        unit_text::id(unit)
    );
    out += "A record of what was done and said, not instructions: check it against the code before going on.\n";
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out += &format!("\n## {title}\n{}\n", lines.join("\n"));
        }
    };
    section("Goal", asked(&handoff.asked, limits));
    section("Decided", titles(&handoff.decisions, limits.items));
    section("Tried, did not help", titles(&handoff.tried, limits.items));
    let edited: Vec<_> = unit.files.iter().filter(|file| file.edits > 0).collect();
    let left = edited.len().saturating_sub(limits.items);
    let files = edited
        .iter()
        .take(limits.items)
        .map(|file| format!("- {} ({})", code(&file.path, 120), count(file.edits, "edit", "edits")));
    section("Files", files.chain((left > 0).then(|| format!("- and {left} more"))).collect());
    section("Checks", checks(&handoff.checks, limits.items));
    let commits = unit
        .commits
        .iter()
        .rev()
        .take(limits.items)
        .map(|commit| format!("- {} {}", commit.sha.as_deref().map_or("(id unknown)", short), line(&commit.subject, 120)));
    let mut commits: Vec<String> = commits.collect();
    commits.dedup();
    section("Commits", commits);
    let closing = handoff.closing.iter().map(|closing| line(&prose(&closing.text), limits.closing)).collect();
    section("Where it stands", closing);
    section("Open", titles(&handoff.open, limits.items));
    out.trim_end().to_string()
}

fn title(unit: &UnitRow, most: usize) -> String {
    unit.title.as_ref().or(unit.intent.as_ref()).map_or_else(|| unit_text::id(unit), |title| line(title, most))
}

/// The first request, and the last ones.
fn asked(prompts: &[PromptRow], limits: &Limits) -> Vec<String> {
    let Some((first, rest)) = prompts.split_first() else { return Vec::new() };
    let last = &rest[rest.len().saturating_sub(limits.items / 2)..];
    let later = last.iter().map(|prompt| format!("- then: {}", line(&prompt.text, limits.later)));
    [line(&first.text, limits.goal)].into_iter().chain(later).collect()
}

fn titles(memories: &[MemoryRow], most: usize) -> Vec<String> {
    let left = memories.len().saturating_sub(most);
    let newest = memories.iter().skip(left).map(|memory| format!("- {}", line(&memory.title, 200)));
    newest.collect()
}

fn checks(checks: &[ToolUseRow], most: usize) -> Vec<String> {
    let last = &checks[checks.len().saturating_sub(most)..];
    let run = |check: &ToolUseRow| {
        format!("- {} {}", code(check.content.as_deref().unwrap_or_default(), 120), result_of(check, Style::default()))
    };
    last.iter().rev().map(run).collect()
}

/// The state of a unit.
pub fn handoff_json(handoff: &Handoff) -> Value {
    let memories = |memories: &[MemoryRow]| {
        memories.iter().map(|memory| json!({"id": memory_text::id(memory), "title": memory.title})).collect::<Vec<_>>()
    };
    json!({
        "unit": unit_text::id(&handoff.unit), "title": handoff.unit.title.as_ref().or(handoff.unit.intent.as_ref()),
        "session": handoff.unit.agent_session_id, "outcome": handoff.unit.outcome,
        "goal": handoff.asked.iter().map(|prompt| &prompt.text).collect::<Vec<_>>(),
        "decisions": memories(&handoff.decisions), "tried": memories(&handoff.tried), "open": memories(&handoff.open),
        "files": handoff.unit.files.iter().filter(|file| file.edits > 0).map(|file| &file.path).collect::<Vec<_>>(),
        "checks": handoff.checks.iter().map(check_json).collect::<Vec<_>>(),
        "closing": handoff.closing.as_ref().map(|closing| &closing.text),
    })
}

/// A claim in words.
fn claim_text(claim: &Claim) -> String {
    match claim {
        Claim::Path(path) => code(path, 160),
        Claim::Name { path, name } => format!("{} in {}", code(name, 80), code(path, 160)),
        Claim::Setting { path, key, value } => format!("{} in {}", code(&format!("{key} = {value}"), 80), code(path, 160)),
        Claim::Version { path, name, version } => format!("{} in {}", code(&format!("{name} {version}"), 80), code(path, 160)),
        Claim::Command { line, passes } => format!("{} {}", code(line, 160), if *passes { "passes" } else { "fails" }),
    }
}

/// The claims of memories that no longer hold, a line for each.
pub fn rotten_lines(claims: &MemoryClaims, style: Style) -> String {
    claims.rotten.iter().map(|rotten| claim_lines(rotten, style)).collect()
}

fn claim_lines(rotten: &Rotten, style: Style) -> String {
    let mut out = String::new();
    for (claim, state) in &rotten.claims {
        let (word, how) = match state {
            ClaimState::Changed(how) => (style.found("changed"), format!(": {}", line(how, 160))),
            ClaimState::Gone | ClaimState::Holds => (style.bad("gone"), String::new()),
        };
        out += &format!("  {word} {}{how}\n", claim_text(claim));
    }
    out
}

/// Memories with claims that no longer hold, for a person.
pub fn claims(claims: &MemoryClaims, style: Style) -> String {
    let mut out = String::new();
    for rotten in &claims.rotten {
        let memory = &rotten.memory;
        out += &format!(
            "{} {} {}\n",
            style.strong(&memory_text::id(memory)),
            style.faint(memory_text::word(memory)),
            line(&memory.title, 140)
        );
        out += &claim_lines(rotten, style);
    }
    let memories = count(claims.memories as i64, "memory", "memories");
    let all = count(claims.claims as i64, "claim", "claims");
    match claims.rotten.iter().map(|rotten| rotten.claims.len()).sum::<usize>() {
        0 if claims.claims == 0 => {
            "No memory here says something about the code that could be checked and was true when it was made.".to_string()
        }
        0 => format!("{all} of {memories} about this project: all hold"),
        n => format!("{out}{n} of {all} in {} of {memories} no longer hold", claims.rotten.len()),
    }
}

/// Memories with claims that no longer hold.
pub fn claims_json(claims: &MemoryClaims) -> Value {
    let claim = |(claim, state): &(Claim, ClaimState)| {
        let mut json = match claim {
            Claim::Path(path) => json!({"path": path}),
            Claim::Name { path, name } => json!({"path": path, "name": name}),
            Claim::Setting { path, key, value } => json!({"path": path, "key": key, "value": value}),
            Claim::Version { path, name, version } => json!({"path": path, "name": name, "version": version}),
            Claim::Command { line, passes } => json!({"command": line, "passes": passes}),
        };
        (json["state"], json["now"]) = match state {
            ClaimState::Holds => (json!("holds"), Value::Null),
            ClaimState::Gone => (json!("gone"), Value::Null),
            ClaimState::Changed(how) => (json!("changed"), json!(how)),
        };
        json
    };
    let rotten = |rotten: &Rotten| {
        let memory = &rotten.memory;
        json!({"id": memory_text::id(memory), "title": memory.title, "created_at": memory.created_at, "claims": rotten.claims.iter().map(claim).collect::<Vec<_>>()})
    };
    json!({"memories": claims.memories, "claims": claims.claims, "rotten": claims.rotten.iter().map(rotten).collect::<Vec<_>>()})
}

/// Maximum characters of a request in a pull request's text.
const REQUEST: usize = 300;

/// The text of a pull request.
pub fn pull_request(story: &BranchStory) -> String {
    let mut out = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out += &format!("## {title}\n\n{}\n\n", lines.join("\n"));
        }
    };
    section("Changes", story.units.iter().map(|one| format!("- {}", title(&one.unit, 160))).collect());
    let others = story.commits.iter().filter(|(_, _, is_known)| !is_known);
    section(
        "Commits that were not recorded",
        others.map(|(sha, subject, _)| format!("- {} {}", short(sha), line(subject, 120))).collect(),
    );
    let request = |one: &Handoff| one.asked.first().map(|asked| format!("- {}", line(&asked.text, REQUEST)));
    section("Why", story.units.iter().filter_map(request).collect());
    let all = |of: fn(&Handoff) -> &Vec<MemoryRow>| {
        let mut lines: Vec<String> = story.units.iter().flat_map(|one| titles(of(one), usize::MAX)).collect();
        lines.dedup();
        lines
    };
    section("Decisions", all(|one| &one.decisions));
    section("Tried, did not help", all(|one| &one.tried));
    section("Open", all(|one| &one.open));
    section("Checks", vec![verification_markdown(&story.verification)]);
    out.trim_end().to_string()
}
