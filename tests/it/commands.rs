//! Questions about commands: what ended an error before, and how a program is called.

use crate::world::World;
use crate::world::session::{MINUTE, Session};

/// A session in which a linter's error ends after an edit, and a test that runs only with a build tag.
fn past(world: &World) {
    let mut session = Session::new(world, "first");
    session
        .ask("Let the importer skip empty lines")
        .fails("just lint", "Exit code 1\n$ clippy --all\nsrc/import.rs:12:9: error: value `total` is never read (unused)");
    session.edit("src/import.rs").bash("just lint 2>&1 | tail -3", "ok");
    session.bash("git commit -am 'fix: skip empty lines'", "[main 3fa1061] fix: skip empty lines");
    session.fails("go test ./e2e", "Exit code 1\npackage e2e: build constraints exclude all Go files in /app/e2e");
    session.bash("cd app && CGO_ENABLED=0 go test -tags e2e ./e2e 2>&1 | tail", "ok");
    session.fails("just deploy", "Exit code 1\nerror: no credentials for the registry were found");
    session.close("The importer skips empty lines now.").end();
}

#[test]
fn an_error_is_answered_by_what_ended_it_before() {
    let world = World::new();
    past(&world);
    let asked = "lib/parse.rs:3:4: error: value `sum` is never read (unused)";
    insta::assert_snapshot!(world.nmem(&["error", asked]).text());
    let lines = world.nmem(&["error", "--json", asked]).lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["signature"], "error value is never read unused");
    assert_eq!(lines[0]["session"], "first");
    assert_eq!(lines[0]["ended_by"]["files"][0], "src/import.rs");
    assert_eq!(lines[0]["ended_by"]["commit"], "3fa1061 fix: skip empty lines");
    let piped = world.feed(&["error", "-", "--json"], format!("building\n\u{1b}[31m{asked}\u{1b}[0m\n").as_bytes());
    assert_eq!(piped.lines().len(), 1, "an error with colours, from stdin");
    assert_eq!(world.nmem(&["error", "--json", "--limit", "0", asked]).lines().len(), 1, "all of them");
    let open = world.nmem(&["error", "--json", "error: no credentials for the registry were found"]).lines();
    assert_eq!(open[0]["ended_by"], serde_json::Value::Null);
}

#[test]
fn an_error_that_is_new_or_says_too_little_gets_no_answer() {
    let world = World::new();
    past(&world);
    let new = world.nmem(&["error", "fatal: the index is locked by another process"]);
    assert!(new.stdout.is_empty() && new.stderr.contains("no such error is recorded here"), "{}", new.text());
    let little = world.nmem(&["error", "12"]);
    assert!(little.code == Some(2) && little.stderr.contains("give the line that names the error"), "{}", little.text());
}

#[test]
fn a_program_is_shown_in_the_form_that_works_first() {
    let world = World::new();
    past(&world);
    insta::assert_snapshot!(world.nmem(&["how", "go", "test"]).text());
    let forms = world.nmem(&["how", "go", "test", "--json"]).lines();
    assert_eq!(forms[0]["command"], "cd app && CGO_ENABLED=0 go test -tags e2e ./e2e");
    assert_eq!((&forms[0]["succeeded"], &forms[1]["failed"]), (&1.into(), &1.into()));
    let none = world.nmem(&["how", "cargo", "test"]);
    assert!(none.stdout.is_empty() && none.stderr.contains("no call of cargo test"), "{}", none.text());
}

#[test]
fn what_people_paste_keeps_its_options_and_an_answer_has_a_grade() {
    let world = World::new();
    let mut session = Session::new(&world, "pasted");
    session.ask("Run the tests of the importer").bash("python3 -m unittest importer", "OK");
    session.fails("npm run build --if-present", "error TS2304: cannot find name 'rows'").close("They pass.").end();
    let pasted = world.nmem(&["how", "python3", "-m", "unittest", "--json"]).lines();
    assert_eq!((&pasted[0]["command"], &pasted[0]["match"]), (&"python3 -m unittest importer".into(), &"strong".into()));
    let failed = world.nmem(&["how", "npm", "run", "build"]).stdout;
    assert!(failed.starts_with("No call of it has succeeded here:"), "{failed}");
    let error = world.nmem(&["error", "npm", "--if-present:", "error TS2304: cannot find name 'lines'", "--json"]).lines();
    assert_eq!(error[0]["match"], "strong");
    assert_eq!(world.nmem(&["how", "cargo", "--json"]).stdout, "{\"match\":\"none\"}\n");
}

#[test]
fn a_command_that_works_is_one_lesson_in_all_sessions() {
    let world = World::new();
    for name in ["one", "two", "three"] {
        let mut session = Session::new(&world, name);
        session.ask("Run the tests, please").edit("src/import.rs");
        session.fails("rtk bun run test", "Exit code 1\nerror: unknown command 'run'").bash("bun run test", "3 pass");
        session.close("They pass.").end();
    }
    let lessons = world.sql("SELECT title FROM memories WHERE kind = 'lesson'");
    assert_eq!(lessons.lines().collect::<Vec<_>>(), ["`bun run test` works, not `rtk bun run test`"]);
}

#[test]
fn a_start_names_a_call_that_failed_in_two_sessions_and_what_works() {
    let world = World::new();
    let lesson = "`bun run test` works, not `rtk bun run test`";
    let started = |name: &str, at: i64, call: &str| {
        let mut session = Session::new(&world, name);
        session.at += at * MINUTE;
        let start = session.starts("startup");
        session.ask("Run the tests, please").edit("src/import.rs");
        session.fails(call, "Exit code 1\nerror: unknown command 'run'").bash("bun run test", "3 pass");
        session.close("They pass.").end();
        start
    };
    started("first", 0, "rtk bun run test 2>&1 | tail");
    let once = started("second", 100, "rtk bun run test:unit");
    assert!(!once.contains(lesson), "one slip is no habit: {once}");
    let other = started("third", 200, "rtk bun run test --watch");
    assert!(!other.contains(lesson), "`test:unit` is another call: {other}");
    let twice = started("fourth", 300, "rtk bun run test");
    assert!(twice.contains(&format!("Failed in several of the last sessions:\n- \"{lesson}\" (m1)")), "{twice}");
}

#[test]
fn other_projects_are_searched_on_request_only() {
    let world = World::new();
    past(&world);
    let other = world.git_project("other", "https://example.org/team/other.git");
    let mut session = Session::new(&world, "second");
    session.at += 60 * MINUTE;
    let elsewhere = ["--project", other.to_str().unwrap()];
    let how = |more: &[&str]| world.nmem(&[&["how", "just", "lint"], &elsewhere[..], more].concat()).stdout;
    assert!(how(&[]).is_empty());
    assert!(how(&["--all"]).contains("just lint"));
}

#[test]
fn the_status_line_says_what_is_open_what_fails_and_what_was_received() {
    let world = World::new();
    let line = |id: &str| {
        let input = serde_json::json!({"session_id": id, "workspace": {"current_dir": world.project()}, "model": {"id": "x"}});
        let said = world.feed(&["statusline"], input.to_string().as_bytes());
        assert!(said.code == Some(0) && said.stderr.is_empty(), "{}", said.text());
        said.stdout
    };
    assert_eq!(line("first"), "", "nothing is known yet");
    let mut session = Session::new(&world, "first");
    session.ask("Let the importer skip empty lines. Never use tabs in src/import.rs.").edit("src/import.rs");
    session.fails("cargo test -q", "Exit code 101\ntest result: FAILED. 1 failed");
    assert_eq!(line("first"), "nmem: cargo test fails\n");
    session.close("It skips empty lines. Not done yet: the exporter still writes tabs.").end();
    let mut next = Session::again(&world, "second");
    next.starts("startup");
    next.ask("Go on with the importer").fails("cargo test", "Exit code 101\nerror: test failed");
    next.bash("cargo test 2>&1 | tail -3", "ok. 3 passed");
    let open = line("second");
    assert!(open.starts_with("nmem: 1 open · ") && open.contains(" received") && !open.contains("fails"), "{open}");
    assert_eq!(world.feed(&["statusline"], b"not json").code, Some(0));
    assert_eq!(world.feed(&["statusline"], b"").stdout, "nmem: 1 open\n", "without a session, the project's");
    world.nmem(&["off"]);
    assert_eq!(line("second"), "nmem: off\n");
}

#[test]
#[cfg(unix)]
fn a_long_answer_is_shown_in_pages_on_a_terminal_only() {
    let mut world = World::new();
    past(&world);
    world.set("PAGER", "sed s/^/page:/");
    let piped = world.nmem(&["log"]);
    assert!(!piped.stdout.contains("page:"), "{}", piped.stdout);
    let paged = world.on_terminal(&["log"]);
    assert!(paged.lines().count() > 1 && paged.lines().all(|line| line.starts_with("page:")), "{paged}");
    world.set("CLAUDECODE", "1");
    assert_eq!(world.on_terminal(&["log"]), paged.replace("page:", ""), "an agent's terminal");
    world.set("CLAUDECODE", "");
    for none in ["", "cat", "no-such-pager"] {
        world.set("PAGER", none);
        assert_eq!(world.on_terminal(&["log"]), paged.replace("page:", ""), "{none}");
    }
}

#[test]
fn lists_can_be_narrowed_to_a_branch_and_notes_left_out() {
    let mut world = World::new();
    let project = world.project();
    for (name, text) in [("main", "Let the importer skip empty lines"), ("next", "Let the exporter quote commas")] {
        world.write("project/.git/HEAD", &format!("ref: refs/heads/{name}\n"));
        world.write("project/.git/config", "");
        let mut session = Session::new(&world, name);
        session.ask(text).edit("src/io.rs").close("Done.").end();
        drop(session);
        world.minutes_later(90);
    }
    assert!(project.join(".git/HEAD").exists());
    let titles = |args: &[&str]| world.nmem(args).stdout.lines().filter(|line| line.contains("Let the")).count();
    assert_eq!(titles(&["units"]), 2);
    for here in [["units", "--branch"], ["log", "--branch"]] {
        let said = world.nmem(&here).stdout;
        assert!(said.contains("exporter") && !said.contains("importer"), "{said}");
    }
    let said = world.nmem(&["units", "--branch=main"]).stdout;
    assert!(said.contains("importer") && !said.contains("exporter"), "{said}");
    let said = world.nmem(&["search", "--branch=main", "importer", "exporter", "lines", "commas"]).stdout;
    assert!(said.contains("importer") && !said.contains("exporter"), "{said}");
    assert_eq!(world.nmem(&["search", "--branch=none", "importer"]).stdout, "");
    let limited = world.nmem(&["log", "-1"]);
    assert!(limited.stderr.contains("1 of 2 sessions"), "{}", limited.stderr);
    assert_eq!(world.nmem(&["log", "-1", "-q"]).stderr, "");
    assert_eq!(world.nmem(&["how", "no-such-program", "-q"]).stderr, "", "as for pasted commands");
}

/// The better answer is on another branch, so what is left is weak.
#[test]
fn a_search_on_a_branch_is_graded_by_what_the_branch_has() {
    let mut world = World::new();
    world.project();
    world.write("project/.git/config", "");
    let parts =
        ["parser", "cache", "router", "logger", "theme", "queue", "mailer", "timer", "index", "tokens", "socket", "chart"];
    let others = parts.map(|part| ("next", format!("Rename the {part} after its new owner")));
    let importer = [("main", "Let the importer skip empty lines"), ("next", "Let the exporter quote empty commas")];
    for (branch, text) in importer.map(|(branch, text)| (branch, text.to_string())).into_iter().chain(others) {
        world.write("project/.git/HEAD", &format!("ref: refs/heads/{branch}\n"));
        let mut session = Session::new(&world, &text);
        session.ask(&text).edit("src/io.rs").close("Done.").end();
        drop(session);
        world.minutes_later(90);
    }
    let grade = |narrowed: &str| {
        let said = world.nmem(&["search", "--json", narrowed, "importer", "skip", "empty", "lines"]).stdout;
        serde_json::from_str::<serde_json::Value>(said.lines().next().unwrap()).unwrap()["match"].clone()
    };
    assert_eq!(grade("--limit=10"), "strong");
    assert_eq!(grade("--branch=main"), "strong");
    assert_eq!(grade("--branch=next"), "weak");
}

/// A terminal that shows its screen.
struct Tmux<'a>(&'a World);

impl Tmux<'_> {
    /// Starts a command of nmem; `None`, said loudly, without tmux.
    fn start<'a>(world: &'a World, command: &str) -> Option<Tmux<'a>> {
        if !std::process::Command::new("tmux").arg("-V").output().is_ok_and(|said| said.status.success()) {
            eprintln!("PASSED OVER: there is no tmux here (Debian: tmux), so the screen of search was not tried");
            return None;
        }
        let tmux = Tmux(world);
        tmux.run(&["new-session", "-d", "-x", "110", "-y", "24", &format!("{} {command}; sleep 60", env!("CARGO_BIN_EXE_nmem"))]);
        Some(tmux)
    }

    fn run(&self, args: &[&str]) -> String {
        let socket = self.0.folder.join("tmux");
        let mut command = self.0.program("tmux", &[&["-S", socket.to_str().unwrap(), "-f", "/dev/null"], args].concat());
        let done = command.env("TERM", "xterm").env("LANG", "C.UTF-8").output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Waits until the screen has a text.
    fn until(&self, text: &str) -> String {
        for _ in 0..200 {
            let screen = self.run(&["capture-pane", "-p"]);
            if screen.contains(text) {
                return screen;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no {text:?} on the screen:\n{}", self.run(&["capture-pane", "-p"]));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

#[test]
#[cfg(all(unix, feature = "tui"))]
fn a_search_is_typed_narrowed_opened_and_left() {
    let world = World::new();
    past(&world);
    let Some(tmux) = Tmux::start(&world, "search -i importer") else { return };
    let first = tmux.until("Skip empty lines");
    assert!(first.contains("everything, project: "), "{first}");
    tmux.press(&["Tab", "Tab", "Tab"]);
    tmux.until("prompts, project: ");
    tmux.press(&["C-u"]);
    tmux.press(&["-l", "zebra crossing"]);
    tmux.until("prompts, project: nothing");
    tmux.press(&["C-u"]);
    tmux.press(&["-l", "empty lines"]);
    tmux.until("> p2 ");
    tmux.press(&["Down", "Enter"]);
    let opened = tmux.until("esc back");
    assert!(opened.contains("prompt 1 of s1") && opened.contains("Let the importer skip empty lines"), "{opened}");
    tmux.press(&["C-y"]);
    tmux.until("p1 was copied");
    tmux.press(&["Escape"]);
    tmux.until("esc quit");
    tmux.press(&["Escape"]);
    for _ in 0..100 {
        if !tmux.run(&["capture-pane", "-p"]).contains("esc quit") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(!tmux.run(&["capture-pane", "-p"]).contains("empty lines"), "the screen is as it was before");
    let piped = world.nmem(&["search", "-i", "importer"]);
    assert!(piped.code == Some(2) && piped.stderr.contains("-i needs a terminal"), "{}", piped.text());
}
