//! Once a week a person goes through what was decided and learned.

use crate::world::World;
use crate::world::session::Session;

fn a_week(world: &mut World) {
    let mut session = Session::new(world, "week");
    session.starts("startup");
    session.ask("From now on, always use tabs in the importer").edit("src/importer.rs").close("Tabs it is.");
    session.ask("Never use Redis here; use SQLite for the cache").edit("src/cache.rs").close("The cache is in SQLite.");
    session.ask("We decided to keep the old export format").edit("src/export.rs").close("The format stays.");
    session.end();
    world.now = session.at + 60_000;
}

fn due(world: &World) -> Vec<String> {
    world.nmem(&["review", "--json"]).lines().iter().map(|memory| memory["title"].as_str().unwrap().to_string()).collect()
}

#[test]
#[cfg(unix)]
fn each_new_decision_is_kept_pinned_or_forgotten() {
    let mut world = World::new();
    a_week(&mut world);
    let all = due(&world);
    assert_eq!(all.len(), 3, "{all:?}");
    let review = world.typed_with(&["review"], "x\nk\np\nf\n");
    assert_eq!(review.code, Some(0), "{}", review.text());
    assert!(review.stdout.contains("1 of 3") && review.stdout.contains("e  edit it in"), "{}", review.text());
    assert!(review.stdout.ends_with("1 memory is forgotten.\n"), "{}", review.text());
    assert!(due(&world).is_empty());
    assert_eq!(world.sql("SELECT by_hand, pinned FROM memories WHERE kind = 'decision' ORDER BY id DESC"), "1|0\n0|1");
    let left = world.nmem(&["search", "format", "tabs", "redis", "--kind", "decision", "--json"]).stdout;
    assert!(left.contains(&all[0]) && left.contains(&all[1]) && !left.contains(&all[2]), "{left}");
    assert!(world.typed(&["review"]).text().contains("Nothing to review"));
}

#[test]
#[cfg(unix)]
fn what_is_not_answered_comes_again() {
    let mut world = World::new();
    a_week(&mut world);
    world.set("EDITOR", "true");
    let review = world.typed_with(&["review"], "n\ne\nq\n");
    assert!(review.stdout.contains("Nothing was changed."), "{}", review.text());
    assert_eq!(due(&world).len(), 3);
    world.now += 8 * 24 * 3_600_000;
    assert!(due(&world).is_empty() && world.nmem(&["review", "--since", "30d", "--json"]).lines().len() == 3);
}

#[test]
fn a_review_needs_a_person() {
    let mut world = World::new();
    a_week(&mut world);
    insta::assert_snapshot!(world.nmem(&["review"]).text(), @"
    --- stderr
    nmem: a review needs a person at a terminal
      `nmem review --json` lists the memories
    [exit 1]
    ");
    world.set("CLAUDECODE", "1");
    assert!(world.typed(&["review"]).text().contains("needs a person"));
}
