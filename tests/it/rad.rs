//! `nmem rad`: memory for any program. The examples of docs/protocol.md are run as they stand there.

use crate::world::World;
use crate::world::session::NINE;
use serde_json::{Value, json};
use std::fs;

fn world() -> World {
    let mut world = World::new();
    world.set("NMEM_NOW", &NINE.to_string());
    world
}

fn rad(world: &World, verb: &str, request: &Value) -> (Value, Option<i32>) {
    let out = world.feed(&["rad", verb], request.to_string().as_bytes());
    (serde_json::from_str(&out.stdout).unwrap_or_else(|_| panic!("{}", out.text())), out.code)
}

fn answered(world: &World, verb: &str, request: Value) -> Value {
    let (answer, code) = rad(world, verb, &request);
    assert_eq!(code, Some(0), "{verb} {request} {answer}");
    answer
}

#[test]
fn a_prompt_that_begins_with_nomem_is_not_stored_nor_its_turn() {
    let world = world();
    let prompt = |text: &str| answered(&world, "sessions/init", json!({"agent_session_id": "a", "user_prompt": text}));
    let runs = |command: &str| {
        let input = json!({"command": command});
        answered(&world, "observations", json!({"agent_session_id": "a", "tool_name": "Bash", "tool_input": input}))
    };
    prompt("#nomem look at the pelican");
    runs("cat pelican.txt");
    assert_eq!(world.sql("SELECT (SELECT count(*) FROM prompts) + (SELECT count(*) FROM tool_uses)"), "0");
    assert!(world.all_bytes().iter().all(|(_, bytes)| !bytes.windows(7).any(|part| part == b"pelican")));
    prompt("Now look at the heron");
    runs("cat heron.txt");
    assert_eq!(world.sql("SELECT (SELECT count(*) FROM prompts) + (SELECT count(*) FROM tool_uses)"), "2");
}

/// Replaces what differs from run to run: uuids, and the folders of the store and the project.
fn masked(answer: &str) -> Value {
    fn mask(name: &str, value: &mut Value) {
        match value {
            Value::String(text) if text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) => {
                *text = "a uuid".into()
            }
            Value::String(text) if name == "database" || name == "cwd" => *text = "a path".into(),
            Value::Array(items) => items.iter_mut().for_each(|item| mask(name, item)),
            Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| mask(name, field)),
            Value::Number(number) if name == "score" && number.as_f64() > Some(0.0) => *value = json!("a score"),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(answer).unwrap_or_else(|_| panic!("{answer}"));
    mask("", &mut value);
    value
}

#[test]
fn every_example_of_the_documentation_answers_as_it_says() {
    let world = world();
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md")).unwrap();
    let mut lines = docs.lines().peekable();
    let mut run = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let binary = env!("CARGO_BIN_EXE_nmem");
        let out = world.program("sh", &["-c", &command.replace("nmem rad", &format!("{binary} rad"))]).output().unwrap();
        let expected = lines.next().unwrap();
        assert_eq!(masked(String::from_utf8_lossy(&out.stdout).trim()), masked(expected), "{command}");
        run += 1;
    }
    assert!(run >= 17, "{run} examples");
}

#[test]
fn what_is_wrong_is_named_and_nothing_of_it_is_stored() {
    let world = world();
    for (verb, request) in [
        ("sessions/ensure", json!({})),
        ("sessions/ensure", json!({"agent_session_id": 7})),
        ("sessions/ensure", json!({"agent_session_id": "a".repeat(201)})),
        ("sessions/ensure", json!({"agent_session_id": "a\u{0}b"})),
        ("sessions/ensure", json!({"agent_session_id": "a", "project": {"name": "x"}})),
        ("sessions/ensure", json!({"agent_session_id": "a", "project": "x\ny"})),
        ("sessions/ensure", json!({"agent_session_id": "a", "cwd": "../../etc"})),
        ("sessions/ensure", json!({"agent_session_id": "a", "cwd": 3})),
        ("sessions/ensure", json!({"agent_session_id": "a", "user_prompt": ["x"]})),
        ("sessions/init", json!({"agent_session_id": "a"})),
        ("sessions/init", json!({"agent_session_id": "a", "user_prompt": "  "})),
        ("observations", json!({"agent_session_id": "a"})),
        ("observations", json!({"tool_name": "Read"})),
        ("observations", json!({"agent_session_id": "a", "tool_name": ["Read"]})),
        ("sessions/summarize", json!({"agent_session_id": "unknown"})),
        ("sessions/complete", json!({})),
        ("context", json!({"limit": 0})),
        ("context", json!({"limit": "many"})),
        ("context", json!({"summary_limit": -1})),
        ("search", json!({"query": 7})),
        ("search", json!({"type": "everything"})),
        ("search", json!({"dateRange": "yesterday"})),
        ("search", json!({"dateRange": {"start": "never"}})),
        ("search", json!({"format": "xml", "query": "x"})),
        ("search", json!({"obs_type": 7})),
        ("search", json!({"file": ["a"]})),
        ("observation", json!({})),
        ("observation", json!({"id": {}})),
        ("observation", json!({"id": "m1"})),
        ("session", json!({})),
        ("session", json!({"id": "../x"})),
        ("nonsense", json!({})),
        ("", json!({})),
        ("health", json!([1, 2])),
        ("health", json!("text")),
    ] {
        let (answer, code) = rad(&world, verb, &request);
        assert!(answer["error"]["message"].is_string() && code == Some(1), "{verb} {request} {answer}");
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        assert!(matches!(code, "bad_request" | "not_found"), "{answer}");
    }
    for garbage in [&b"{\"agent_session_id\": \"a\""[..], b"\x00\xff", b"not json", b"{\"a\": 1} {\"b\": 2}"] {
        let out = world.feed(&["rad", "sessions/ensure"], garbage);
        assert_eq!((out.code, out.stdout.contains("bad_request")), (Some(1), true), "{}", out.text());
    }
    assert!(!world.db().exists() || world.count("SELECT count(*) FROM sessions") == 0);
}

#[test]
fn secrets_and_switches_count_here_as_in_hooks() {
    let world = world();
    let key = "AKIAQ7RZ2JX4MT5NVW3P";
    answered(
        &world,
        "sessions/init",
        json!({"agent_session_id": "a-1", "project": "shop", "user_prompt": format!("the key is {key}")}),
    );
    answered(
        &world,
        "observations",
        json!({"agent_session_id": "a-1", "project": "shop", "tool_name": "Bash", "tool_input": {"command": format!("deploy --key {key}")}, "tool_response": {"stdout": key}}),
    );
    for (path, bytes) in world.all_bytes() {
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()), "{}", path.display());
    }
    world.write("home/.config/nmem/config.toml", "enabled = false\n");
    let (answer, code) = rad(&world, "sessions/init", &json!({"agent_session_id": "a-2", "user_prompt": "hello there"}));
    assert_eq!((answer["error"]["code"].as_str(), code), (Some("off"), Some(1)));
    assert_eq!(world.count("SELECT count(*) FROM sessions"), 1);
}

#[test]
fn a_session_is_found_by_its_id_and_a_project_by_its_name_whoever_recorded_it() {
    let world = world();
    world.hook("UserPromptSubmit");
    let session = world.sql("SELECT agent_session_id FROM sessions");
    let name = world.sql("SELECT name FROM projects");
    let received = answered(
        &world,
        "sessions/ensure",
        json!({"session_id": session.trim(), "project": name.trim(), "user_prompt": "and another"}),
    );
    assert_eq!(received, json!({"created": false, "id": 1, "prompt_number": 2}));
    answered(
        &world,
        "sessions/ensure",
        json!({"agent_session_id": "other", "project": name.trim(), "cwd": "/srv", "source_client": "my-agent"}),
    );
    assert_eq!(world.sql("SELECT platform, project_id FROM sessions ORDER BY id").trim(), "claude-code|1\ncustom|1");
    // Who names a project does not say where it lies.
    assert_eq!(world.sql("SELECT root FROM projects").trim(), "$WORLD/project");
}

#[test]
fn what_waits_goes_to_its_own_project_and_what_was_named_stays_named() {
    let world = world();
    world.hook("UserPromptSubmit");
    let own = world.sql("SELECT name FROM projects");
    let lock = world.lock();
    world.hook_with("UserPromptSubmit", &[("/session_id", json!("of a hook"))]);
    let request = json!({"agent_session_id": "named", "project": "shop", "user_prompt": "how are sales?"});
    let (answer, code) = rad(&world, "sessions/init", &request);
    assert_eq!((answer["error"]["code"].as_str(), code), (Some("unavailable"), Some(1)), "{answer}");
    drop(lock);
    answered(&world, "sessions/ensure", json!({"agent_session_id": "later", "project": "another"}));
    let sql =
        "SELECT agent_session_id, name FROM sessions s JOIN projects p ON p.id = s.project_id ORDER BY s.id LIMIT 3 OFFSET 1";
    assert_eq!(world.sql(sql).trim(), format!("of a hook|{}\nnamed|shop\nlater|another", own.trim()));
}

#[test]
fn a_project_that_is_off_is_off_from_every_folder() {
    let world = world();
    answered(&world, "sessions/ensure", json!({"agent_session_id": "a"}));
    let name = world.sql("SELECT name FROM projects");
    assert_eq!(world.nmem(&["off", "--project", "."]).code, Some(0));
    fs::create_dir_all(world.home().join("elsewhere")).unwrap();
    let elsewhere = world.home().join("elsewhere").display().to_string();
    let task = json!({"taskDescription": "t", "taskKind": "bugfix", "success": true, "project": name.trim(), "cwd": elsewhere});
    let prompt = json!({"agent_session_id": "b", "user_prompt": "hello", "project": name.trim(), "cwd": elsewhere});
    for (verb, request) in [("sessions/init", prompt), ("knowledge/record", task)] {
        let (answer, code) = rad(&world, verb, &request);
        assert_eq!((answer["error"]["code"].as_str(), code), (Some("off"), Some(1)), "{verb} {answer}");
    }
    answered(&world, "sessions/ensure", json!({"agent_session_id": "c", "project": "another", "cwd": elsewhere}));
    assert_eq!(world.count("SELECT count(*) FROM sessions"), 2);
}

/// A batch may be held open for as long as an agent runs: each request has its own time, and what is switched meanwhile holds.
#[test]
fn a_batch_that_is_held_open_knows_the_time_and_the_switches() {
    use std::io::{BufRead, BufReader, Write};
    let world = World::new();
    let mut command = world.command(&["rad", "--batch"]);
    let mut child = command.env_remove("NMEM_NOW").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut ask = |request: &Value| -> Value {
        writeln!(to, "{request}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let prompt =
        |n: i64| json!({"verb": "sessions/init", "agent_session_id": "held", "user_prompt": format!("prompt number {n}")});
    assert_eq!(ask(&prompt(1))["promptNumber"], 1);
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert_eq!(ask(&prompt(2))["promptNumber"], 2);
    assert!(world.count("SELECT max(received_at) - min(received_at) FROM prompts") >= 30);
    world.nmem(&["off"]);
    let entity = json!({"verb": "entities", "entity_type": "note", "title": "while it is off"});
    for request in [&prompt(3), &entity] {
        assert_eq!(ask(request)["error"]["code"], "off");
    }
    world.nmem(&["on"]);
    world.write(crate::world::models::CONFIG, "redact = [\"falcon\"]\n");
    let falcon = json!({"verb": "entities", "entity_type": "note", "title": "project falcon"});
    assert_eq!(ask(&falcon)["status"], "recorded");
    assert_eq!(world.count("SELECT count(*) FROM memories WHERE title LIKE '%falcon%'"), 0);
    std::fs::remove_dir_all(world.db().parent().unwrap()).unwrap();
    assert_eq!(ask(&entity)["memory"], "m1", "a database that was taken away is made anew");
    drop(to);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(world.count("SELECT count(*) FROM memories"), 1);
}

/// One that begins like another is not the other, and one that looks like a secret is found again.
#[test]
fn a_session_goes_by_its_whole_id() {
    let world = world();
    let secret = "sk-run-0123456789abcdefghijABCDEFGHIJ";
    for id in ["task-10", "task-1", "a", "m1", secret] {
        let said = format!("prompt of {} letters", id.len());
        let begun = answered(&world, "sessions/init", json!({"agent_session_id": id, "user_prompt": said}));
        assert_eq!((begun["promptNumber"].as_i64(), begun["status"].as_str()), (Some(1), Some("initialized")), "{id}");
        answered(&world, "entities", json!({"entity_type": "note", "agent_session_id": id}));
        let received = answered(&world, "session", json!({"agent_session_id": id})).to_string();
        assert!(received.contains(&said), "{id}: {received}");
    }
    assert_eq!(world.count("SELECT count(*) FROM sessions"), 5);
    assert_eq!(answered(&world, "sessions/complete", json!({"agent_session_id": secret}))["status"], "completed");
    assert_eq!(world.nmem(&["forget", "--session", "task-1", "--yes"]).code, Some(0));
    assert_eq!(world.sql("SELECT agent_session_id FROM sessions WHERE agent_session_id LIKE 'task%' AND prompts > 0"), "task-10");
}

/// Unknown fields are kept where they can be found again, without secrets.
#[test]
fn fields_of_a_programs_own_are_kept() {
    let world = world();
    let use_of = json!({"agentSessionId": "a", "toolName": "Bash", "toolInput": {"command": "ls"}, "toolResponse": "x", "ticket": {"id": 7},
        "password": "Tr0ub4dor&3xyz"});
    answered(&world, "observations", use_of);
    let kept: Value = serde_json::from_str(&world.sql("SELECT metadata -> 'extra' FROM tool_uses")).unwrap();
    assert_eq!(kept["ticket"], json!({"id": 7}));
    assert!(kept["password"].as_str().unwrap().starts_with("[redacted:"), "{kept}");
    let task = json!({"taskDescription": "Ship it", "success": true, "metadata": {"pr": 7}, "ticket": "T-8"});
    answered(&world, "knowledge/record", task);
    let kept: Value = serde_json::from_str(&world.sql("SELECT content -> 'metadata' FROM memories WHERE kind = 'task'")).unwrap();
    assert_eq!(kept, json!({"pr": 7, "ticket": "T-8"}));
}

#[test]
fn a_batch_answers_each_line_and_a_bad_one_stops_nothing() {
    let world = world();
    let mut requests = String::from(
        "{\"verb\": \"sessions/init\", \"agent_session_id\": \"b-1\", \"project\": \"p\", \"user_prompt\": \"many things\"}\nnot json\n\n",
    );
    for n in 0..50 {
        requests += &json!({"agent_session_id": "b-1", "project": "p", "tool_use_id": format!("t{n}"), "tool_name": "Bash", "tool_input": {"command": format!("echo {n}")}, "tool_response": {"stdout": n}}).to_string();
        requests.push('\n');
    }
    let out = world.feed(&["rad", "observations", "--batch"], requests.as_bytes());
    let answers = out.lines();
    assert_eq!((answers.len(), out.code), (52, Some(1)), "{}", out.stderr);
    assert_eq!(answers[1]["error"]["code"], "bad_request");
    assert!(answers[2..].iter().all(|answer| answer["status"] == "queued"));
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 50);
}

/// The example of the specification: a task with a decision and a lesson.
fn spent(world: &World) -> Value {
    answered(
        world,
        "knowledge/record",
        json!({
            "task": {"repoId": "shop", "taskDescription": "Round the discount of coupons", "taskKind": "bugfix", "agentTier": "paid", "success": true, "metadata": {"pr": 7}},
            "decisions": [{"decisionType": "approach", "chosenOption": "Round once, at the end", "alternatives": ["Round each line"], "reasoning": "the sum of rounded lines is a cent off", "confidence": 0.8}],
            "lessons": [{"lessonType": "warning", "title": "Never use floats for prices", "description": "A discount of 15 % on 0.1 is not what it seems", "tags": ["money"]}]
        }),
    )
}

#[test]
fn knowledge_is_recorded_and_related_and_goes_with_its_task() {
    let world = world();
    let task = spent(&world)["taskId"].as_str().unwrap().to_string();
    answered(
        &world,
        "knowledge/record",
        json!({"repo_id": "blog", "task_description": "Show prices in the newsletter", "task_kind": "feature", "success": false,
        "lessons": [{"lesson_type": "failure", "title": "Prices in mails go stale", "description": "A discount in a mail is wrong tomorrow"}]}),
    );
    let received = answered(
        &world,
        "knowledge/related",
        json!({"taskDescription": "the discount of a price is rounded wrongly", "repoId": "shop", "limit": 5}),
    );
    assert_eq!(
        (received["similarTasks"][0]["id"].as_str(), received["similarTasks"][0]["success"].as_bool()),
        (Some(task.as_str()), Some(true))
    );
    assert_eq!(received["relevantDecisions"][0]["chosenOption"], "Round once, at the end");
    let decision = &received["relevantDecisions"][0];
    assert_eq!((decision["confidence"].as_f64(), decision["alternatives"][0].as_str()), (Some(0.8), Some("Round each line")));
    let lessons: Vec<(&str, bool)> = received["applicableLessons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l["title"].as_str().unwrap(), l["crossRepo"].as_bool().unwrap()))
        .collect();
    assert_eq!(lessons, [("Never use floats for prices", false), ("Prices in mails go stale", true)]);
    for list in ["similarTasks", "relevantDecisions", "applicableLessons"] {
        for entry in received[list].as_array().unwrap() {
            assert!((0.0..=1.0).contains(&entry["similarity"].as_f64().unwrap()), "{entry}");
        }
    }
    assert_eq!(world.nmem(&["forget", "m1", "--yes"]).code, Some(0));
    assert_eq!(
        world.sql("SELECT kind, title FROM memories ORDER BY id").trim(),
        "task|Show prices in the newsletter\nlesson|Prices in mails go stale"
    );
}

#[test]
fn knowledge_that_is_wrong_is_refused_whole() {
    let world = world();
    let task = |field: &str, value: Value| {
        let mut task = json!({"repoId": "shop", "taskDescription": "x y", "success": true});
        task[field] = value;
        json!({"task": task})
    };
    let with = |list: &str, item: Value| json!({"task": {"taskDescription": "x y", "success": true}, list: item});
    for (request, named) in [
        (json!({}), "`task_description` is missing"),
        (task("success", json!("yes")), "`success`"),
        (task("success", Value::Null), "`success`"),
        (task("taskKind", json!("dance")), "dance"),
        (task("agentTier", json!("gold")), "`agentTier`"),
        (task("metadata", json!([])), "`metadata`"),
        (task("taskId", json!("unknown")), "`taskId` cannot be set"),
        (task("errorMessage", json!(7)), "`error_message`"),
        (task("repoId", json!(["a"])), "`project`"),
        (with("decisions", json!({})), "`decisions` must be a list"),
        (with("decisions", json!([7])), "decisions[0]"),
        (with("decisions", json!([{"chosenOption": ""}])), "decisions[0]: `chosen_option` is missing"),
        (with("decisions", json!([{"chosenOption": "a", "confidence": 7}])), "confidence is 7"),
        (with("decisions", json!([{"chosenOption": "a", "confidence": "high"}])), "confidence"),
        (with("decisions", json!([{"chosenOption": "a", "decisionType": "mood"}])), "mood"),
        (with("decisions", json!([{"chosenOption": "a", "alternatives": {"b": 1}}])), "alternatives"),
        (with("lessons", json!([{"title": "a"}])), "lessons[0]: `description` is missing"),
        (with("lessons", json!([{"title": "a", "description": "b", "lessonType": "rumour"}])), "rumour"),
        (with("lessons", json!([{"title": "a", "description": "b", "tags": 3}])), "tags"),
        (with("lessons", Value::from(vec![json!({}); 101])), "at most 100"),
    ] {
        let (answer, code) = rad(&world, "knowledge/record", &request);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(code == Some(1) && message.contains(named), "{request} {answer}");
    }
    assert!(!world.db().exists() || world.count("SELECT count(*) FROM memories") == 0);
    for (request, named) in
        [(json!({}), "`task_description` is missing"), (json!({"taskDescription": "x", "limit": 0}), "`limit`")]
    {
        assert!(rad(&world, "knowledge/related", &request).0.to_string().contains(named));
    }
}
