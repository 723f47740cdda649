//! A person goes back into a session: nmem knows the agent's own command for it.

use crate::world::World;
use crate::world::session::Session;
use serde_json::json;

/// A program of that name that says where it runs and with which arguments.
#[cfg(unix)]
fn agent(world: &mut World, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    world.write(&format!("bin/{name}"), "#!/bin/sh\necho \"in $(pwd): $0 $*\"\nexit 3\n");
    let path = world.folder.join("bin").join(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("PATH", &format!("{}:/usr/bin:/bin", path.parent().unwrap().display()));
}

#[test]
fn a_session_is_opened_again_by_the_agents_own_command() {
    let world = World::new();
    let mut session = Session::new(&world, "first-session");
    session.starts("startup");
    session.ask("From now on, always use tabs in the importer").edit("src/importer.rs").close("Tabs it is.").end();
    insta::assert_snapshot!(world.nmem(&["resume", "s1"]).text(), @"
    cd $WORLD/project && claude --resume first-session
    [exit 0]
    ");
    for id in ["first", "u1", "p1", "t1", "m1"] {
        assert_eq!(world.nmem(&["resume", id]).text(), world.nmem(&["resume", "s1"]).text(), "{id}");
    }
    let json = world.nmem(&["resume", "s1", "--json"]).json();
    assert_eq!(json["command"], json!(["claude", "--resume", "first-session"]));
    insta::assert_snapshot!(world.nmem(&["resume", "s9"]).text(), @"
    --- stderr
    nmem: nothing has the id s9
      `nmem log` prints the ids of sessions
    [exit 1]
    ");
}

#[test]
#[cfg(unix)]
fn the_command_runs_in_the_sessions_folder_for_a_person_only() {
    let mut world = World::new();
    Session::new(&world, "first-session").starts("startup");
    assert!(world.nmem(&["resume", "s1", "--run"]).text().contains("claude is not on PATH"));
    agent(&mut world, "claude");
    let run = world.nmem(&["resume", "s1", "--run"]);
    assert_eq!(run.text(), "in $WORLD/project: $WORLD/bin/claude --resume first-session\n[exit 1]");
    world.set("CLAUDECODE", "1");
    assert!(world.nmem(&["resume", "s1", "--run"]).text().contains("an agent cannot open a session"));
}

/// The payload of a hook may hold anything.
#[test]
fn an_id_that_no_agent_makes_never_becomes_an_argument() {
    let world = World::new();
    for id in ["--dangerously-skip-permissions", "$(touch x)", "a;b", "a b", ".hidden"] {
        Session::new(&world, id).starts("startup");
        let said = world.nmem(&["resume", &format!("s{}", world.count("SELECT max(id) FROM sessions"))]);
        assert!(said.stdout.is_empty() && said.stderr.contains("not one that an agent makes"), "{}", said.text());
    }
}

#[test]
fn an_agent_without_such_a_command_is_named() {
    let world = World::new();
    let start = json!({"hook_event_name": "SessionStart", "session_id": "v1", "timestamp": "2026-11-21T09:00:00.000Z", "source": "new", "cwd": world.project()});
    world.feed(&["record", "--platform", "vscode"], start.to_string().as_bytes());
    insta::assert_snapshot!(world.nmem(&["resume", "s1"]).text(), @"
    --- stderr
    nmem: vscode has no command that opens a session
      `nmem show s1` shows what was recorded of it
    [exit 1]
    ");
}
