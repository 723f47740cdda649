//! Knowledge related to a task, over sessions and projects.

use crate::world::World;
use crate::world::session::{MINUTE, Session};
use serde_json::{Value, json};

const DAY: i64 = 24 * 60 * MINUTE;

/// A session on a day of its own.
fn on_day<'a>(world: &'a World, id: &'a str, day: i64) -> Session<'a> {
    let mut session = Session::new(world, id);
    session.at += day * DAY;
    session.starts("startup");
    session
}

/// A linter finds another thing in each of three work units, and a file is fixed in each.
fn thrice(world: &World) {
    for (n, id, error) in [
        (1, "one", "src/a.rs:3:7: error: value `total` is never read (unused)"),
        (2, "two", "src/b.rs:40:1: error: value `sum` is never read (unused)"),
        (3, "three", "src/c.rs:9:12: error: value `left` is never read (unused)"),
    ] {
        let mut session = on_day(world, id, n);
        session
            .ask("Fix the crash of the importer: it stops at empty lines")
            .fails("just lint", &format!("Exit code 1\n{error}"));
        session.edit("src/import.rs").bash("just lint", "ok");
        session.bash(
            "git commit -am 'fix: the importer passes over empty lines'",
            &format!("[main 3fa106{n}] fix: the importer passes over empty lines"),
        );
        session.close("Fixed: the importer passes over empty lines now.").end();
    }
}

fn related(world: &World, description: &str) -> Value {
    let request = json!({"taskDescription": description, "cwd": world.project()});
    serde_json::from_str(&world.feed(&["rad", "knowledge/related"], request.to_string().as_bytes()).stdout).unwrap()
}

/// Pieces of work, and what a program recorded, stand in one order; the nearer the more similar.
#[test]
fn work_and_recorded_tasks_are_related_in_one_order() {
    let world = World::new();
    thrice(&world);
    for (task, lesson) in [
        ("The importer stops at empty lines of spreadsheets", "Spreadsheets end lines with both signs"),
        ("Translate the newsletter", "Names stay"),
    ] {
        let request = json!({"taskDescription": task, "success": false, "cwd": world.project(),
            "lessons": [{"title": lesson, "description": lesson}]});
        assert_eq!(world.feed(&["rad", "knowledge/record"], request.to_string().as_bytes()).code, Some(0));
    }
    let received = related(&world, "fix the crash of the importer, it stops at empty lines");
    let tasks = received["similarTasks"].as_array().unwrap();
    let similar: Vec<f64> = tasks.iter().map(|task| task["similarity"].as_f64().unwrap()).collect();
    assert!(similar.windows(2).all(|pair| pair[0] >= pair[1]) && similar.iter().all(|s| *s > 0.0 && *s < 1.0), "{received}");
    assert!(tasks.iter().any(|task| task["unit"].is_string() && task["success"] == true), "{received}");
    assert_eq!(tasks.iter().filter(|task| task["unit"].is_null()).count(), 1, "{received}");
    assert_eq!(received["applicableLessons"][0]["title"], "Spreadsheets end lines with both signs");
    assert!(!received.to_string().contains("newsletter"), "{received}");
    let nothing = related(&world, "quantum entanglement of penguins");
    assert_eq!(nothing["similarTasks"], json!([]));
}
