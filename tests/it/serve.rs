//! `nmem serve` for programs: the RAD protocol over HTTP, who may ask, and what happens to those who ask too much.

use crate::view::two_days;
use crate::world::World;
use crate::world::serving::Serving;
use crate::world::session::{MINUTE, NINE, Session};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Replaces what differs between two stores, or from second to second.
fn masked(mut value: Value) -> Value {
    fn mask(name: &str, value: &mut Value) {
        match value {
            Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => *text = "a uuid".into(),
            Value::String(text) if name == "database" || name == "cwd" => *text = "a path".into(),
            Value::Number(_) if name == "uptime" || name == "score" => *value = json!("a number"),
            Value::Array(items) => items.iter_mut().for_each(|item| mask(name, item)),
            Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| mask(name, field)),
            _ => {}
        }
    }
    mask("", &mut value);
    value
}

/// The examples of docs/protocol.md: verbs and requests, in order.
fn examples() -> Vec<(String, Value)> {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md")).unwrap();
    let mut found = Vec::new();
    for line in docs.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let (input, command) = line.split_once("nmem rad ").unwrap();
        let verb = command.split(' ').next().unwrap().to_string();
        let json = input.strip_prefix("echo '").and_then(|rest| rest.rsplit_once("' |"));
        found.push((verb, json.map_or(json!({}), |(json, _)| serde_json::from_str(json).unwrap())));
    }
    found
}

#[test]
fn every_verb_of_the_protocol_gives_the_answer_that_nmem_rad_gives() {
    let mut worlds = [World::new(), World::new()];
    worlds.iter_mut().for_each(|world| world.set("NMEM_NOW", &NINE.to_string()));
    let serving = Serving::start(&worlds[1], &[]);
    let mut verbs = BTreeSet::new();
    for (number, (verb, request)) in examples().into_iter().enumerate() {
        let by_command = worlds[0].feed(&["rad", &verb], request.to_string().as_bytes());
        // Both generations of paths in turn.
        let path = if number % 2 == 0 { format!("/api/{verb}") } else { format!("/{verb}") };
        let over_http = serving.post(&path, &request);
        assert_eq!(masked(over_http.json()), masked(by_command.json()), "{path} {request}");
        assert_eq!(over_http.status == 200, by_command.code == Some(0), "{path} {request}");
        verbs.insert(verb);
    }
    let documented: BTreeSet<String> = nmem::rad::VERBS.iter().map(|verb| verb.name.to_string()).collect();
    assert_eq!(verbs, documented, "every verb has an example");
    // The same by GET, with the fields in path and query.
    for (verb, request, path) in [
        ("context", json!({"project": "my-app", "limit": 1}), "/api/context/my-app?limit=1"),
        (
            "search",
            json!({"project": "my-app", "query": "tokens", "dateRange": {"start": "7d"}}),
            "/api/search?project=my-app&query=tokens&dateRange[start]=7d",
        ),
        ("observation", json!({"id": 1}), "/api/observation/1"),
        ("observation", json!({"id": "m99"}), "/observation/m99"),
        ("session", json!({"id": "s1"}), "/api/session/s1"),
        ("session", json!({"agent_session_id": "abc-123-def"}), "/api/session?agent_session_id=abc-123-def"),
        (
            "knowledge/related",
            json!({"taskDescription": "coupons", "repoId": "shop"}),
            "/api/knowledge/related?taskDescription=coupons&repoId=shop",
        ),
        ("health", json!({}), "/health"),
    ] {
        let by_command = worlds[0].feed(&["rad", verb], request.to_string().as_bytes());
        assert_eq!(masked(serving.get(path).json()), masked(by_command.json()), "{path}");
    }
}

#[test]
fn errors_have_the_status_that_http_has_for_them() {
    let world = World::new();
    let serving = Serving::start(&world, &[]);
    for (status, answer) in [
        (400, serving.post("/api/sessions/init", &json!({"agent_session_id": "a"}))),
        (404, serving.get("/api/observation/m99")),
        (401, serving.get("/")),
        (404, serving.get("/etc/passwd")),
        (405, serving.get("/observations")),
        (400, serving.send("POST", "/api/search", &bearer(&serving), "[1, 2]")),
    ] {
        assert_eq!(answer.status, status, "{}\n{}", answer.head, answer.body);
        assert!(answer.head.contains("content-security-policy: default-src 'none'"), "{}", answer.head);
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
    world.nmem(&["off"]);
    assert_eq!(serving.post("/api/sessions/ensure", &json!({"agent_session_id": "a"})).status, 409);
}

fn bearer(serving: &Serving) -> String {
    format!("Authorization: Bearer {}\r\n", serving.token)
}

#[test]
fn a_page_of_elsewhere_reads_nothing_and_changes_nothing() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    let serving = Serving::start(&world, &[]);
    let cookie = format!("Cookie: {}\r\n", serving.cookie());
    let own = format!("Origin: http://127.0.0.1:{}\r\n", serving.port);
    let status = |method: &str, path: &str, headers: &str, body: &str| serving.send(method, path, headers, body).status;
    assert_eq!(status("GET", "/api/view", &cookie, ""), 200);
    assert_eq!(status("POST", "/api/memory/m1/pin", &format!("{cookie}{own}"), "{\"pinned\": true}"), 200);
    // No token, a used token, a wrong one.
    assert_eq!(status("GET", "/api/view", "", ""), 401);
    assert_eq!(
        serving
            .raw(&format!(
                "GET /{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
                serving.url.split_once("/?").map(|(_, query)| format!("?{query}")).unwrap(),
                serving.port
            ))
            .status,
        401
    );
    assert_eq!(status("GET", "/api/view", "Authorization: Bearer 00\r\n", ""), 401);
    // A name that leads here (DNS rebinding), with the cookie.
    assert_eq!(status("GET", "/api/view", &format!("Host: evil.example:{}\r\n{cookie}", serving.port), ""), 421);
    // Another origin: another site, another port, a sandboxed frame.
    for origin in ["http://evil.example", "http://127.0.0.1:1", "null"] {
        let headers = format!("{cookie}Origin: {origin}\r\n");
        assert_eq!(status("POST", "/api/memory/m1/pin", &headers, "{\"pinned\": false}"), 403, "{origin}");
        assert_eq!(status("GET", "/api/view", &headers, ""), 403, "{origin}");
    }
    assert_eq!(status("GET", "/api/events", &format!("{cookie}Sec-Fetch-Site: same-site\r\n"), ""), 403);
    // A form: it cannot send JSON.
    let form = format!(
        "POST /api/forget HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{cookie}Content-Type: text/plain\r\nContent-Length: 13\r\n\r\n{{\"id\": \"m1\"}}\r\n",
        serving.port
    );
    assert_eq!(serving.raw(&form).status, 415);
    assert_eq!(status("OPTIONS", "/api/forget", &cookie, ""), 405);
    // A program changes no memory by hand.
    assert_eq!(status("POST", "/api/forget", &bearer(&serving), "{\"id\": \"m1\"}"), 403);
    assert_eq!(world.sql("SELECT pinned FROM memories WHERE id = 1"), "1");
}

#[test]
fn a_server_that_an_agent_started_pins_nothing() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    world.set("CLAUDECODE", "1");
    let serving = Serving::start(&world, &[]);
    let answer = serving.send("POST", "/api/memory/m1/pin", &format!("Cookie: {}\r\n", serving.cookie()), "{\"pinned\": true}");
    assert_eq!((answer.status, answer.json()["error"]["message"].as_str().unwrap().contains("agents cannot pin")), (400, true));
}

#[test]
fn the_page_shows_this_project_and_all_of_them_only_when_asked() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    world.git_project("other", "https://example.org/dev/other.git");
    let other = world.folder.join("other");
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": "the-other-session", "cwd": other, "prompt": "Feed the heron"});
    world.feed(&["record"], prompt.to_string().as_bytes());
    let row = world.sql("SELECT id FROM sessions WHERE agent_session_id = 'the-other-session'");
    for (args, sees) in [(&[][..], false), (&["--all"][..], true)] {
        let serving = Serving::start(&world, args);
        assert_eq!(serving.get("/api/view").body.contains("the-other-session"), sees);
        assert_eq!(serving.get(&format!("/api/view?sessions={row}")).body.contains("the-other-session"), sees);
    }
}

#[test]
fn an_event_reaches_the_page_within_a_second_of_the_hook() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    let serving = Serving::start(&world, &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n", serving.port, bearer(&serving)).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.by_ref().find(|line| line == "event: changed").expect("the first look");
    let mut session = Session::new(&world, "third-session-of-all");
    session.at += 3000 * MINUTE;
    let mut data = String::new();
    // Other tests may hold up one of three.
    let took = ["walrus", "narwhal", "dugong"].map(|animal| {
        session.bash(&format!("echo {animal}"), animal);
        let begun = Instant::now();
        data = lines.find(|line| line.starts_with("data: ") && line.contains(animal)).expect("the event");
        begun.elapsed()
    });
    assert!(took.iter().min() < Some(&Duration::from_secs(1)), "{took:?}");
    let row: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    let part = serving.get(&format!("/api/view?sessions={}", row["sessions"][0])).json();
    assert_eq!(part["sessions"][0]["session"], "third-session-of-all");
    assert_eq!(part["units"].as_array().unwrap().len(), 1);
}

#[test]
fn a_body_of_a_gigabyte_is_refused_before_it_is_read() {
    let world = World::new();
    let serving = Serving::start(&world, &[]);
    let head = |length: &str| {
        format!(
            "POST /api/search HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}Content-Type: application/json\r\n{length}\r\n\r\n",
            serving.port,
            bearer(&serving)
        )
    };
    let begun = Instant::now();
    assert_eq!(serving.raw(&head("Content-Length: 1073741824")).status, 413);
    assert!(begun.elapsed() < Duration::from_secs(1));
    // Without a length: 32 MB in chunks, of which 16 are read.
    let mut to = TcpStream::connect(("127.0.0.1", serving.port)).unwrap();
    to.write_all(head("Transfer-Encoding: chunked").as_bytes()).unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let sent = (0..32).take_while(|_| to.write_all(chunk.as_bytes()).is_ok()).count();
    let mut answer = String::new();
    let _ = to.read_to_string(&mut answer);
    assert!(sent < 32 || answer.contains("413"), "{sent} {answer}");
    assert_eq!(serving.get("/health").status, 200);
}

#[test]
fn slow_clients_are_dropped_and_others_are_served() {
    let world = World::new();
    let serving = Serving::start(&world, &[]);
    let slow: Vec<TcpStream> = (0..520)
        .map_while(|_| {
            let mut to = TcpStream::connect(("127.0.0.1", serving.port)).ok()?;
            to.write_all(b"GET / HTTP/1.1\r\nHost: ").ok().map(|()| to)
        })
        .collect();
    assert!(slow.len() > 500, "{}", slow.len());
    let begun = Instant::now();
    assert_eq!(serving.get("/health").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // Every one of them ends, answered with an error or with nothing.
    let mut first = &slow[0];
    first.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut rest = String::new();
    first.read_to_string(&mut rest).expect("the server closes it");
    assert!(rest.is_empty() || rest.contains(" 408 "), "{rest}");
}

#[test]
fn many_requests_beside_hooks_lose_nothing() {
    let mut world = World::new();
    world.set("NMEM_NOW", &NINE.to_string());
    let serving = Serving::start(&world, &[]);
    std::thread::scope(|scope| {
        for client in 0..8 {
            let serving = &serving;
            scope.spawn(move || {
                for number in 0..12 {
                    let used = json!({"agent_session_id": format!("program-{client}"), "tool_name": "Bash", "tool_use_id": format!("u{number}"), "tool_input": {"command": "make"}, "tool_response": {}});
                    assert_eq!(serving.post("/api/observations", &used).status, 200);
                    assert_eq!(serving.get("/api/search?query=make").status, 200);
                }
            });
        }
        let mut session = Session::new(&world, "the-agent-beside");
        (0..30).for_each(|number| {
            session.bash(&format!("echo {number}"), "ok");
        });
    });
    world.nmem(&["status"]);
    assert_eq!(world.sql("SELECT count(*), count(DISTINCT session_id) FROM tool_uses"), "126|9");
}

#[test]
fn a_taken_port_is_said_and_the_token_is_private() {
    let world = World::new();
    let serving = Serving::start(&world, &[]);
    let taken = world.nmem(&["serve", "--port", &serving.port.to_string(), "--no-open"]);
    assert!(
        taken.stderr.contains(&format!("port {} is taken", serving.port)) && taken.stderr.contains("--port 0"),
        "{}",
        taken.text()
    );
    assert_eq!((taken.code, serving.token.len()), (Some(1), 64));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(world.data().join("serve-token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(world.nmem(&["serve", "--project", "/", "--no-open"]).text().contains("not a project"));
}

#[test]
fn the_work_behind_a_line_is_told_to_those_who_may_read() {
    let world = World::new();
    let git = |args: &[&str]| world.program("git", args).output().is_ok_and(|done| done.status.success());
    std::fs::remove_dir_all(world.project().join(".git")).unwrap();
    if !git(&["init", "-q", "-b", "main"]) {
        eprintln!("PASSED OVER: there is no git here");
        return;
    }
    let text = "def greet():\n    return 'good morning, world'\n";
    let mut session = Session::new(&world, "first");
    session.ask("Greet in a friendlier way");
    let path = world.project().join("app.py");
    session.uses("Write", json!({"file_path": path, "content": text}), json!({"filePath": path, "type": "create"}));
    world.write("project/app.py", text);
    session.close("Done.").end();
    let serving = Serving::start(&world, &[]);
    let found = serving.get("/api/why?subject=app.py:2").json();
    assert_eq!((&found["certainty"], &found["unit"]["id"]), (&json!("edit"), &json!("u1")), "{found}");
    assert_eq!(serving.get("/api/why?subject=app.py").json()["units"][0]["unit"], "u1");
    for none in ["no-such-file", "../app.py", "/etc/hosts:1", ""] {
        assert_eq!(serving.get(&format!("/api/why?subject={none}")).status, 404, "{none}");
    }
}
