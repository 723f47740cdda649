//! Memories as text and JSON, and the members of a team.

use super::clean::{line, quoted};
use super::style::Style;
use super::time;
use crate::model::{LastSync, Maker, MemoryKind, MemoryRow, Millis, Provenance, STATED_IN, Spend, TeamOrigin};
use serde_json::{Value, json};

/// Fields of decisions and discoveries in reading order; others follow by name.
const IN_ORDER: [&str; 11] = [
    "problem",
    "question",
    "options",
    "alternatives",
    "chosen",
    "finding",
    "rationale",
    "reasoning",
    "reason",
    "implications",
    "confidence",
];
/// Maximum bytes of the items of a list that is shown in one line.
const SHORT: usize = 30;

/// The short id that `nmem show` accepts.
pub fn id(memory: &MemoryRow) -> String {
    format!("m{}", memory.id)
}

/// Returns the type of an observation, or the kind of another memory.
pub fn word(memory: &MemoryRow) -> &str {
    match memory.kind_type.as_deref() {
        Some(kind_type) if memory.kind.properties().is_named_by_type => kind_type,
        _ => kind(memory),
    }
}

/// The kind of a memory in a word.
fn kind(memory: &MemoryRow) -> &str {
    if memory.has_ended() { "ended" } else { memory.kind.name() }
}

/// Returns the source of a memory's words, and who created the memory.
pub fn origin(memory: &MemoryRow) -> String {
    if memory.is_of_team() {
        return format!("by {}", memory.team.as_ref().map_or("a teammate".to_string(), member));
    }
    let of = match memory.provenance {
        Provenance::User if memory.is_from_plan() => "a plan that the user ordered",
        Provenance::User => "the user's own words",
        Provenance::Agent => "the agent's words",
        Provenance::Tool => "tool output",
        Provenance::Team => "the team",
    };
    match &memory.made_by {
        Maker::Rules if memory.by_hand => "by rules, checked by hand".to_string(),
        Maker::Rules => format!("by rules, from {of}"),
        Maker::Hand => "by hand".to_string(),
        other => format!("by {}, from {of}", line(other.name(), 60)),
    }
}

/// Returns the teammate who wrote a memory. The name is quoted, since people choose it themselves, and followed by the key
/// if it could be taken for another one.
pub fn teammate(team: &TeamOrigin) -> String {
    let name = quoted(&team.name, 40);
    if team.has_clear_name && team.is_trusted {
        format!("teammate {name}")
    } else {
        format!("teammate {name} (key {})", team.key)
    }
}

/// The same, with whether the user trusts them.
pub fn member(team: &TeamOrigin) -> String {
    format!("{}, {}", teammate(team), if team.is_trusted { "trusted" } else { "not trusted" })
}

/// Returns a text of a memory on one line, in quotation marks if it is somebody else's.
fn said(memory: &MemoryRow, text: &str, max: usize) -> String {
    if memory.is_of_team() { quoted(text, max) } else { line(text, max) }
}

/// Returns a memory in one line.
pub fn entry(memory: &MemoryRow, style: Style) -> String {
    let pinned = if memory.pinned { " pinned" } else { "" };
    let width = style.width.saturating_sub(24).clamp(40, 140);
    let title = said(memory, &memory.title, width);
    let replaced = memory.superseded_by.map(|by| style.faint(&format!(" (superseded by m{by})"))).unwrap_or_default();
    format!("{} {}{pinned} {title}{replaced}", style.strong(&id(memory)), style.faint(&line(word(memory), 20)))
}

/// Returns the call that a memory comes from, as JSON.
pub fn call_json(call: &Spend) -> Value {
    json!({"provider": call.provider, "model": call.model, "at": call.at, "purpose": call.purpose,
        "input_tokens": call.input_tokens, "output_tokens": call.output_tokens, "estimated": call.estimated, "ms": call.took})
}

/// Returns a memory completely, with its sources and, if asked for, what it cost and the call that it comes from.
pub fn whole(memory: &MemoryRow, call: Option<&Spend>, with_origin: bool, style: Style) -> String {
    let mut head = vec![format!("{} {}", time::day(memory.created_at), time::clock(memory.created_at)), kind(memory).to_string()];
    head.extend(memory.kind_type.as_ref().map(|kind_type| line(kind_type, 40)));
    head.push(origin(memory));
    head.extend(memory.pinned.then(|| "pinned".to_string()));
    head.extend(memory.superseded_by.map(|by| format!("superseded by m{by}")));
    let whole = |text: &str| said(memory, text, usize::MAX);
    let mut out = format!("{}  {}\n  {}\n", style.strong(&id(memory)), style.faint(&head.join(", ")), whole(&memory.title));
    if let Some(subtitle) = &memory.subtitle {
        out += &format!("  {}\n", whole(subtitle));
    }
    for fact in memory.list("facts") {
        out += &format!("    - {}\n", whole(fact));
    }
    // The first line says where it is stated.
    let is_field = |(name, _): &(&String, &Value)| *name != "facts" && *name != STATED_IN;
    let mut fields: Vec<(&String, &Value)> = memory.content.iter().filter(is_field).collect();
    fields.sort_by_key(|(name, _)| IN_ORDER.iter().position(|known| known == name).unwrap_or(IN_ORDER.len()));
    for (name, value) in fields.into_iter().filter(|(_, value)| !in_words(value).trim().is_empty()) {
        let name = line(&name.replace('_', " "), 40);
        match value.as_array().filter(|items| items.len() > 1 && items.iter().any(|item| in_words(item).len() > SHORT)) {
            Some(items) => {
                let items = items.iter().map(|item| format!("    - {}\n", whole(&in_words(item))));
                out += &format!("  {name}:\n{}", items.collect::<String>());
            }
            None => out += &format!("  {name}: {}\n", whole(&in_words(value))),
        }
    }
    if let Some(body) = &memory.body {
        out += &format!("  {}\n", whole(body));
    }
    let file = |modified: bool| {
        let named: Vec<String> =
            memory.files.iter().filter(|f| f.modified == modified).map(|f| style.path(&line(&f.path, 120))).collect();
        (!named.is_empty()).then(|| named.join(", "))
    };
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            out += &format!("  {}: {value}\n", style.faint(name));
        }
    };
    fact("changed", file(true));
    // What is decided may be about a file that nobody opened.
    let other = if memory.kind.is_lasting() { "about" } else { "read" };
    fact(other, file(false).filter(|_| !memory.kind.is_summary()));
    fact("concepts", Some(memory.concepts.join(", ")).filter(|list| !list.is_empty()).map(|list| line(&list, 200)));
    let unit = memory.unit.map(|unit| format!("u{unit}"));
    let session = memory.session.map(|session| format!("s{session}"));
    let place: Vec<String> = [unit, session].into_iter().flatten().collect();
    fact("project", memory.project.as_ref().map(|project| line(project, 60)));
    fact("in", Some(place.join(" of ")).filter(|place| !place.is_empty()));
    fact(
        "from",
        Some(memory.sources.iter().map(|source| source.id()).collect::<Vec<_>>().join(" ")).filter(|list| !list.is_empty()),
    );
    let estimated = if memory.tokens_estimated { ", estimated" } else { "" };
    if !with_origin {
        return out;
    }
    fact("discovery cost", memory.tokens.map(|tokens| format!("{tokens} tokens{estimated}")));
    let call = call.map(|call| {
        let about = if call.estimated { "about " } else { "" };
        let (read, written) = (call.input_tokens, call.output_tokens);
        format!(
            "{} of {}; the call took {about}{read} tokens to read and {written} to write",
            line(&call.model, 60),
            line(&call.provider, 40)
        )
    });
    fact("written by", call);
    fact("uuid", Some(memory.uuid.clone()));
    out
}

/// Returns a value of a memory's content as text.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(in_words).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name} {}", in_words(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Returns a memory as an entity of the RAD protocol: nmem's kinds are types, and the content includes narrative and
/// type.
pub fn entity(memory: &MemoryRow) -> Value {
    let files = |modified: bool| -> Vec<&str> {
        memory.files.iter().filter(|f| f.modified == modified).map(|f| f.path.as_str()).collect()
    };
    let is_own = memory.kind == MemoryKind::Entity;
    let mut content = memory.content.clone();
    if !is_own {
        for (name, value) in [("narrative", &memory.body), ("type", &memory.kind_type)] {
            content.extend(value.clone().map(|value| (name.to_string(), Value::from(value))));
        }
    }
    let entity_type = memory.kind_type.as_deref().filter(|_| is_own).unwrap_or(memory.kind.name());
    json!({
        "id": memory.uuid, "entity_type": entity_type, "source_client": memory.platform, "agent_session_id": memory.agent_session_id,
        "created_at": time::iso(memory.created_at), "created_at_epoch": memory.created_at, "title": memory.title,
        "subtitle": memory.subtitle, "content": content, "concepts": memory.concepts, "files_read": files(false),
        "files_modified": files(true), "discovery_tokens": memory.tokens,
    })
}

/// Returns a memory as JSON with the fields of the observation protocol and of its kind.
pub fn json(memory: &MemoryRow) -> Value {
    let files = |modified: bool| -> Vec<&str> {
        memory.files.iter().filter(|f| f.modified == modified).map(|f| f.path.as_str()).collect()
    };
    let hashes: serde_json::Map<String, Value> =
        memory.files.iter().filter_map(|f| Some((f.path.clone(), Value::from(f.hash.clone()?)))).collect();
    let mut out = json!({
        "id": id(memory), "uuid": memory.uuid, "kind": memory.kind, "type": memory.kind_type, "title": memory.title,
        "subtitle": memory.subtitle, "facts": memory.list("facts"), "narrative": memory.body, "concepts": memory.concepts,
        "files_read": files(false), "files_modified": files(true), "hashes": hashes, "project": memory.project,
        "session": memory.agent_session_id, "unit": memory.unit.map(|unit| format!("u{unit}")), "prompt_number": memory.prompt,
        "sources": memory.sources, "platform": memory.platform, "provenance": memory.provenance, "made_by": memory.made_by,
        "discovery_tokens": memory.tokens, "tokens_estimated": memory.tokens_estimated, "created_at": memory.created_at,
        "pinned": memory.pinned, "by_hand": memory.by_hand, "superseded_by": memory.superseded_by.map(|by| format!("m{by}")),
    });
    if let Some(team) = &memory.team {
        out["person"] = team.name.clone().into();
        out["person_key"] = team.key.clone().into();
        out["person_trusted"] = team.is_trusted.into();
    }
    for (name, value) in memory.content.iter().filter(|(name, _)| *name != "facts") {
        // The memory's own values take precedence.
        if out.get(name).is_none_or(|own| own.as_array().is_some_and(Vec::is_empty)) {
            out[name] = value.clone();
        }
    }
    out
}

/// Time for which sessions pause syncing after a failure, in milliseconds.
const PAUSE: Millis = 30 * 60_000;

/// Returns the lines of `nmem status` about the team: the sync target, the shared projects, and the result of the last
/// sync.
pub fn status(with: Option<&str>, in_sessions: bool, projects: &[String], last: &LastSync, now: Millis) -> Vec<String> {
    let mut lines = Vec::new();
    let when = if in_sessions { "at session starts and ends of turns, once an hour" } else { "only by `nmem sync`" };
    lines.extend(with.map(|with| format!("with {}, {when}", line(with, 200))));
    let names: Vec<String> = projects.iter().map(|name| line(name, 40)).collect();
    lines.push(if names.is_empty() { "no project is shared".to_string() } else { format!("shared: {}", names.join(", ")) });
    lines.extend(last.done_at.map(|at| format!("last sync: {}", time::ago(at, now))));
    if let (Some(at), Some(error)) = (last.failed_at, &last.error) {
        let until = at + PAUSE;
        let pause = if in_sessions && until > now {
            format!("; sessions try again at {}, `nmem sync` at once", time::clock(until))
        } else {
            String::new()
        };
        lines.push(format!("problem: the sync of {} failed: {}{pause}", time::ago(at, now), line(error, 300)));
    }
    lines
}
