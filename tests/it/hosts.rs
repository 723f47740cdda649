//! Agents that are only described. Their real programs sent these events to hooks and kept these files, all on one script:
//! the agent reads a file, runs a command that fails, edits a file, edits it in vain, commits, and runs it.

use crate::world::World;
use std::fs;
use std::path::Path;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hosts");
/// The calls of the first session.
const WORK: &str = "read|1|-\ncommand|0|2\nedit|1|-\nedit|0|-\ncommand|1|-\ncommand|1|-";
const CALLS: &str = "SELECT t.kind, t.succeeded, t.metadata ->> 'exit_code' FROM tool_uses t JOIN sessions s ON s.id = t.session_id WHERE s.platform = 'PLATFORM' ORDER BY t.seq";
const SAID: &str = "SELECT source || ' ' || substr(text, 1, 26) FROM prompts p JOIN sessions s ON s.id = p.session_id WHERE s.platform = 'PLATFORM' ORDER BY p.id LIMIT 2";
const PROMPT: &str = "user Make the greeting friendli";
const CLOSING: &str = "agent The greeting is friendlier";

/// Agents, and where each keeps its session, below the home folder.
const AGENTS: [(&str, &str); 7] = [
    ("qwen-code", ".qwen/projects/-home-dev-project/chats/4b25e8d9-d40b-4480-afc0-d936e7a68382.jsonl"),
    ("grok-build", ".grok/sessions/%2Fhome%2Fdev%2Fproject/01a21309-5e9e-7210-ab94-1894d6ff90b6/updates.jsonl"),
    ("kimi-code", ".kimi-code/sessions/wd_project/session_c5918bb7-0ab9-4eb8-809a-8bc9a51b33df/agents/main/wire.jsonl"),
    ("droid", ".factory/sessions/-home-dev-project/aaca3e80-f1ac-40f6-86d6-42b1c6e59e9a.jsonl"),
    ("pi", ".pi/agent/sessions/--home-dev-project--/2026-11-25T14-11-57-531Z_01a2130c-85db-74d9-9410-c7e4f99d861c.jsonl"),
    ("cline", ".cline/data/sessions/1795616035196_webzl/1795616035196_webzl.messages.json"),
    ("mistral-vibe", ".vibe/logs/session/unified/dcabf3a0-2990-ba45-984f-795bb775b8d1/meta.json"),
];

/// The files of a session of Mistral Vibe: the history after the turn, and the journal as it was when the turn's end was
/// reported.
const VIBE: [(&str, &str); 5] = [
    ("meta.json", "meta.json"),
    ("current.json", "CURRENT"),
    ("manifest.json", "generations/0000000000000153/manifest.json"),
    ("chunk.json", "chunks/1a55f8dd69b66117914057db02a728eb613364b39d18b2e76162180c9c71d6de.json"),
    ("journal.jsonl", "journal/0000000000000001.jsonl"),
];

/// A world a day after the captures.
fn world_after_captures() -> World {
    let mut world = World::new();
    world.now = 1_795_702_400_000;
    world
}

/// A captured file, with the world's home in place of the one that it was captured in.
fn captured(world: &World, agent: &str, file: &str) -> String {
    let text = fs::read_to_string(Path::new(FIXTURES).join(agent).join(file)).unwrap();
    text.replace("/home/dev/project", &world.project().display().to_string())
        .replace("/home/dev/", &format!("{}/", world.home().display()))
}

fn keep_session(world: &World, agent: &str, place: &str) {
    if let Some(folder) = place.strip_suffix("meta.json") {
        VIBE.iter().for_each(|(own, file)| world.write(&format!("home/{folder}{file}"), &captured(world, agent, own)));
        return;
    }
    let own = if place.ends_with(".jsonl") { "session.jsonl" } else { "session.json" };
    world.write(&format!("home/{place}"), &captured(world, agent, own));
    if let Some(about) = place.strip_suffix(".messages.json") {
        world.write(&format!("home/{about}.json"), &captured(world, agent, "about.json"));
    }
}

fn of(world: &World, query: &str, agent: &str) -> String {
    world.sql(&query.replace("PLATFORM", agent))
}

/// Sends the captured events to the hooks; the session's file is there after the first. Returns what the agent was given.
fn run_hooks(world: &World, agent: &str, place: &str) -> Vec<String> {
    let text = captured(world, agent, "hooks.jsonl");
    let mut answers = Vec::new();
    for line in text.lines() {
        let is_start = ["SessionStart", "session_start", "agent_start"].iter().any(|name| line.contains(&format!("\"{name}\"")));
        let out = world.feed(&[if is_start { "context" } else { "record" }], line.as_bytes());
        assert_eq!(out.code, Some(0), "{}", out.text());
        if answers.is_empty() && !place.is_empty() {
            keep_session(world, agent, place);
        }
        answers.push(out.stdout);
    }
    answers
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_session_file_of_each_agent_has_the_same_work() {
    let world = world_after_captures();
    for (agent, place) in AGENTS.iter().filter(|(_, place)| !place.is_empty()) {
        keep_session(&world, agent, place);
    }
    let done = world.nmem(&["import", "--json"]).json();
    for (agent, _) in AGENTS.iter().filter(|(_, place)| !place.is_empty()) {
        assert_eq!(of(&world, CALLS, agent), WORK, "{agent}: {done}");
        assert_eq!(of(&world, SAID, agent), format!("{PROMPT}\n{CLOSING}"), "{agent}");
    }
    // Input without what the cache had, output, what the cache had.
    for agent in ["qwen-code", "grok-build", "kimi-code", "pi", "cline"] {
        let tokens = "SELECT input_tokens, output_tokens, cache_read_tokens FROM sessions WHERE platform = 'PLATFORM'";
        assert_eq!(of(&world, tokens, agent), "700|70|350", "{agent}");
    }
    assert_eq!(world.nmem(&["import", "--json"]).json()["bytes"], 0, "twice is once");
}

/// Hooks of Mistral Vibe name the folder of the session; its journal has the prompt, the closing message and the tokens.
#[test]
fn the_journal_of_a_turn_has_what_hooks_leave_out_and_an_import_adds_nothing() {
    let world = world_after_captures();
    let (agent, place) = AGENTS[6];
    run_hooks(&world, agent, place);
    let tokens = "SELECT input_tokens, output_tokens, cache_read_tokens FROM sessions WHERE platform = 'PLATFORM'";
    assert_eq!(of(&world, tokens, agent), "700|70|350");
    let all = |world: &World| (of(world, CALLS, agent), world.sql("SELECT source, text FROM prompts ORDER BY id"));
    let by_hooks = all(&world);
    // The same session once more, as a whole, with the ids that hooks had.
    assert_eq!(world.nmem(&["import"]).code, Some(0));
    assert_eq!(all(&world), by_hooks);
    assert!(by_hooks.1.contains("user|Make the greeting friendlier"), "{}", by_hooks.1);
    // A name that leads out of the folder is no file of the session.
    let folder = place.strip_suffix("meta.json").unwrap();
    world.write(&format!("home/{folder}CURRENT"), r#"{"generation": "../../../.."}"#);
    let done = world.nmem(&["import", "--json"]);
    assert_eq!((done.code, all(&world)), (Some(0), by_hooks));
}

#[test]
fn hooks_of_each_agent_record_the_same_work() {
    for (agent, place) in AGENTS {
        let world = world_after_captures();
        run_hooks(&world, agent, place);
        let (calls, said) = (of(&world, CALLS, agent), of(&world, SAID, agent));
        match agent {
            // Its last event of a call was lost when it was captured: it does not wait for such hooks.
            "kimi-code" => assert_eq!(calls, WORK.rsplit_once('\n').unwrap().0),
            // What failed is read from the file when the turn ends.
            "droid" => assert_eq!(sorted(&calls), sorted(WORK)),
            _ => assert_eq!(calls, WORK, "{agent}"),
        }
        assert_eq!(said, format!("{PROMPT}\n{CLOSING}"), "{agent}");
    }
}

#[test]
fn the_next_session_is_given_what_the_first_one_decided_where_its_agent_takes_it() {
    // Kimi Code takes the text itself.
    let agents = [
        ("qwen-code", "hookSpecificOutput"),
        ("grok-build", "hookSpecificOutput"),
        ("pi", "hookSpecificOutput"),
        ("kimi-code", "nmem: record"),
    ];
    for (agent, mark) in agents {
        let world = world_after_captures();
        let answers = run_hooks(&world, agent, "");
        let is_given = answers.iter().any(|answer| answer.contains("f-strings") && answer.contains(mark));
        assert!(is_given, "{agent}: {answers:?}");
    }
}

#[test]
fn a_file_of_no_known_format_is_read_as_the_agent_that_a_person_names() {
    let world = world_after_captures();
    let lines = [
        r#"{"role":"user","content":"Make the greeting friendlier","created_at":1795615711,"id":"m1","cwd":"PROJECT"}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{"command":"ls /nonexistent"}}],"created_at":1795615712}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"no\n\nCommand exited with code 2"}],"created_at":1795615713}"#,
        r#"{"role":"assistant","content":"The greeting is friendlier now.","created_at":1795615714}"#,
    ];
    let path = world.folder.join("sessions/mine.jsonl");
    world.write("sessions/mine.jsonl", &lines.join("\n").replace("PROJECT", &world.project().display().to_string()));
    let path = path.display().to_string();
    let refused = world.nmem(&["import", &path]).text();
    assert!(refused.contains("of no known format") && refused.contains("--as NAME"), "{refused}");
    let done = world.nmem(&["import", &path, "--as", "other"]);
    assert_eq!(done.code, Some(0), "{}", done.text());
    assert_eq!(of(&world, CALLS, "other"), "command|0|2");
    assert_eq!(of(&world, SAID, "other"), format!("{PROMPT}e\n{CLOSING}").replace("friendlie\n", "friendli\n"));
}

/// Continue's hooks did not fire when it was captured: only its sessions are read, which have no times of their own.
#[test]
fn a_session_of_continue_is_read() {
    let world = world_after_captures();
    let folder = "home/.continue/sessions";
    world.write(&format!("{folder}/6803e2a2-9fea-4d7a-9b29-229dcb0200d6.json"), &captured(&world, "continue", "session.json"));
    world.write(&format!("{folder}/sessions.json"), &captured(&world, "continue", "about.json"));
    let done = world.nmem(&["import", "--json"]).json();
    assert_eq!(done["agents"][0]["agent"], "continue", "{done}");
    assert_eq!(of(&world, SAID, "continue"), format!("{PROMPT}\n{CLOSING}"));
    assert_eq!(of(&world, CALLS, "continue"), WORK);
}

#[test]
fn doctor_names_a_session_file_that_is_newer_than_nmem() {
    let world = world_after_captures();
    for (agent, place) in AGENTS.iter().filter(|(_, place)| place.ends_with(".jsonl")) {
        keep_session(&world, agent, place);
    }
    let said = world.nmem(&["doctor"]).text();
    assert!(!said.contains("formats"), "what was captured is known: {said}");
    let (_, place) = AGENTS[4];
    let text = world.read(&format!("home/{place}"));
    let newer = text.replacen("\"version\":3", "\"version\":4", 1).replacen("\"version\": 3", "\"version\": 4", 1);
    assert_ne!(newer, text);
    world.write(&format!("home/{place}"), &newer.replace("\"thinking_level_change\"", "\"mood\""));
    let said = world.nmem(&["doctor"]).text();
    let expected = "note: formats: the newest session of Pi has version 4 of its format, which nmem has not seen, and";
    assert!(said.contains(expected) && said.contains("(mood)"), "{said}");
}

/// `tests/agents/run.py` compares what newer programs send with what is known.
#[test]
fn a_field_that_a_newer_agent_leaves_out_or_changes_is_named() {
    let script = r#"
import shapes
events = {event: dict(fields) for event, fields in shapes.known()["codex"]["events"].items()}
assert shapes.changes("codex", events) == ([], [])
del events["Stop"]["last_assistant_message"]
del events["SessionEnd"]
events["PostToolUse"]["tool_name"] = "number"
events["PostToolUse"]["mood"] = "string"
print(shapes.changes("codex", events))
"#;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents");
    let run = std::process::Command::new("python3").args(["-B", "-c", script]).current_dir(folder).output();
    let Ok(run) = run else {
        eprintln!("PASSED OVER: there is no python3 here, so the comparison of hooks' fields was not tried");
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    let expected =
        "(['PostToolUse.tool_name as string', 'Stop.last_assistant_message', 'event SessionEnd'], ['PostToolUse.mood'])\n";
    assert_eq!(said, expected);
}
