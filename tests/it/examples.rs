//! The examples that programs begin from, run as they stand there in an empty home.

use crate::world::World;
use std::io::Write;
use std::process::{Command, Stdio};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");

fn run(world: &World, program: &str, args: &[&str], stdin: &str) -> (String, String, Option<i32>) {
    let mut child = world.program(program, args).env("NMEM", env!("CARGO_BIN_EXE_nmem")).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&out.stdout).into(), String::from_utf8_lossy(&out.stderr).into(), out.status.code())
}

/// Without Python, the test says so and passes.
#[expect(clippy::disallowed_macros, reason = "a test that is not run says so")]
fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok_and(|out| out.status.success());
    if !has {
        println!("python3 is not there: the examples in Python are not run");
    }
    has
}

#[test]
fn each_is_short() {
    for entry in std::fs::read_dir(EXAMPLES).unwrap() {
        let path = entry.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines < 60, "{}: {lines} lines", path.display());
    }
}

#[cfg(unix)]
#[test]
fn a_task_in_shell_is_remembered_and_known_the_next_time() {
    let world = World::new();
    let script = format!("{EXAMPLES}/client.sh");
    let task = "Build the \"docs\"\tof the importer\nand check them \\ twice";
    let (out, err, code) = run(&world, "sh", &[&script, task, "echo", "all \"built\""], "");
    assert!(
        code == Some(0) && err.is_empty() && out.contains("all \"built\"") && out.contains("\"similarTasks\":[]"),
        "{out}{err}"
    );
    let (out, err, code) = run(&world, "sh", &[&script, "Check the docs of the importer", "sh", "-c", "echo broken; exit 3"], "");
    assert!(code == Some(3) && err.is_empty() && out.contains("broken"), "{out}{err}");
    assert!(out.contains("Build the \\\"docs\\\"") && out.contains("\"success\":true"), "{out}");
    assert_eq!(
        world.sql("SELECT content, succeeded FROM tool_uses ORDER BY id"),
        "echo all \"built\"|1\nsh -c echo broken; exit 3|0"
    );
    assert_eq!(world.sql("SELECT content ->> 'success' FROM memories WHERE made_by = 'custom' ORDER BY id"), "1\n0");
}

#[test]
fn a_program_in_python_remembers_and_asks() {
    let world = World::new();
    if has_python() {
        let (out, err, code) = run(&world, "python3", &[&format!("{EXAMPLES}/client.py")], "");
        assert_eq!((err.as_str(), code), ("", Some(0)));
        insta::assert_snapshot!(out);
    }
}

#[test]
fn an_adapter_tells_the_log_of_an_agent() {
    let world = World::new();
    if !has_python() {
        return;
    }
    let folder = world.project().display().to_string();
    let log = [
        format!(r#"{{"type": "start", "session": "a-1", "dir": "{folder}"}}"#),
        r#"{"type": "user", "session": "a-1", "text": "Remember that prices are integers in cents. Round them in src/price.py"}"#
            .into(),
        r#"{"type": "thinking", "session": "a-1"}"#.into(),
        format!(
            r#"{{"type": "tool", "session": "a-1", "tool": "Edit", "args": {{"file_path": "{folder}/src/price.py"}}, "output": "ok", "ok": true}}"#
        ),
        r#"{"type": "tool", "session": "a-1", "tool": "Bash", "args": {"command": "pytest"}, "output": "1 failed", "ok": false}"#
            .into(),
        r#"{"type": "reply", "session": "a-1", "text": "Prices are rounded now."}"#.into(),
        r#"{"type": "exit", "session": "a-1"}"#.into(),
    ];
    let (out, err, code) = run(&world, "python3", &[&format!("{EXAMPLES}/adapter.py")], &format!("{}\n", log.join("\n")));
    assert_eq!((out.as_str(), err.as_str(), code), ("", "", Some(0)));
    assert_eq!(
        world.sql("SELECT path, content, succeeded FROM tool_uses ORDER BY id"),
        "src/price.py|src/price.py|1\n-|pytest|0"
    );
    assert!(world.nmem(&["search", "prices cents", "--kind", "lesson", "--json"]).stdout.contains("integers in cents"));
    assert_eq!(world.sql("SELECT end_reason, prompts FROM sessions"), "other|1");
}
