//! A person looks back: what was done on which day, and what agents received from nmem.

use crate::world::World;
use crate::world::session::{MINUTE, Session};
use serde_json::json;

/// A finished session in which the agent claims success although its last test run failed.
pub fn a_false_claim(world: &World) {
    let mut session = Session::new(world, "coupon-session");
    session.starts("startup");
    session.ask("Make the coupon tests pass when the cart is empty");
    session.fails("cargo test coupon", "test coupon::empty_cart ... FAILED");
    session.edit("src/coupon.rs");
    session.fails("cargo test coupon", "test coupon::empty_cart ... FAILED");
    session.edit("src/coupon.rs");
    session.fails("cargo test coupon", "test coupon::empty_cart ... FAILED");
    session.close("All tests pass now. An empty cart gets no discount.").end();
}

#[test]
fn the_hooks_of_a_commit_are_a_check_too() {
    for (output, is_false) in [
        ("lint ok\ntypecheck ok\n1274 pass\n0 fail\n[main da5defc] Fix the clone\n 2 files changed", false),
        ("[main da5defc] Fix the clone\n 2 files changed, 3 insertions(+)\n create mode 100644 a.ts", true),
    ] {
        let world = World::new();
        let mut session = Session::new(&world, "clone-session");
        session.ask("Fix the silent checkout failure in the clone").edit("src/clone.ts");
        session.fails("bun run test", "Exit code 1\ntest clone ... FAILED\nerror: expected 1, found 2").edit("src/clone.ts");
        session.bash("git add -A && git commit -m 'Fix the clone'", output);
        session.close("Committed. All tests pass.").end();
        let notes = world.sql("SELECT content FROM memories WHERE kind = 'summary'");
        assert_eq!(notes.contains("the last run failed"), is_false, "{output}: {notes}");
        let outcome = if is_false { "failing" } else { "done" };
        assert_eq!(world.sql("SELECT outcome FROM work_units"), outcome, "{output}");
    }
}

#[test]
fn the_log_shows_sessions_by_day_and_a_claim_that_the_last_test_run_contradicts() {
    let mut world = World::new();
    a_false_claim(&world);
    world.now = world.count("SELECT max(active_at) FROM sessions") + 60 * MINUTE;
    insta::assert_snapshot!(world.nmem(&["log"]).text(), @"
    2026-11-20  Friday
      09:01, 10 min, branch `main`, 7 tool uses (s1)
        u1  struggling  8 min  An empty cart gets no discount; 3 failures, and the last check did not pass
    [exit 0]
    ");
    let json = world.nmem(&["log", "--json"]).json();
    assert_eq!(json["units"][0]["evidence"], "3 failures, and the last check did not pass");
    assert_eq!(
        world.nmem(&["log", "--since", "30min"]).text(),
        "No sessions are recorded here for that time or branch.\n[exit 0]"
    );
    assert!(world.nmem(&["log", "--session", "u1"]).text().contains("u1 is not a session"));
}

#[test]
fn the_log_shows_what_agents_received_until_something_is_forgotten() {
    let mut world = World::new();
    a_false_claim(&world);
    let mut next = Session::new(&world, "next-session");
    next.at += 600 * MINUTE;
    let received = next.starts("startup");
    next.ask("Look at the empty cart again");
    next.edit("src/coupon.rs");
    let told = world.nmem(&["log", "--told", "--session", "next-session", "--json"]).json();
    assert!(told["items"].as_array().unwrap().iter().all(|item| item["used"] == false), "a file was touched, no more: {told}");
    next.close(
        "It gets no discount: the last run of cargo failed, although the agent reported passing checks, and it was struggling.",
    );
    world.now = next.at + MINUTE;
    let told = world.nmem(&["log", "--told", "--session", "next-session", "--json"]).json();
    assert_eq!((&told["text"], &told["point"]), (&json!(received), &json!("start")));
    let used = told["items"].as_array().unwrap().iter().find(|item| item["used"] == true).unwrap_or_else(|| panic!("{told}"));
    assert!(used["words"].as_array().unwrap().len() >= 3 && used["in"].as_str().unwrap().starts_with('p'), "{used}");
    assert!(world.nmem(&["log", "--told"]).text().contains("session start  s2, "));
    world.nmem(&["forget", "t1", "--yes"]);
    let told = world.nmem(&["log", "--told", "--json"]).json();
    assert_eq!(told["text"], serde_json::Value::Null);
}
