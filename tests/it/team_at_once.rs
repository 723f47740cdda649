//! Many syncs at once, and syncs that are killed: nothing is lost, nothing is doubled.

use crate::world::World;
use crate::world::postgres::Postgres;
use std::fs;
use std::time::Duration;

const MACHINES: usize = 8;
const MEMORIES: usize = 40;

fn machine(name: &str, target: &Target) -> World {
    let mut world = World::new();
    world.set("USER", name);
    if let Target::Server(server) = target {
        world.set("RAD_DATABASE_URL", &server.url());
    }
    assert_eq!(world.nmem(&["project", "share"]).code, Some(0));
    world
}

enum Target {
    Server(Postgres),
    Folder(World),
}

impl Target {
    fn sync<'a>(&'a self, path: &'a mut String) -> Vec<&'a str> {
        match self {
            Target::Server(_) => vec!["sync"],
            Target::Folder(world) => {
                *path = world.folder.join("shared").display().to_string();
                vec!["sync", path.as_str()]
            }
        }
    }
}

fn targets() -> Vec<Target> {
    let folder = World::new();
    fs::create_dir_all(folder.folder.join("shared")).unwrap();
    Postgres::start().map(Target::Server).into_iter().chain([Target::Folder(folder)]).collect()
}

/// Adds lessons, as a program does.
fn remember(world: &World, from: usize, count: usize) {
    let one = |n: usize| {
        format!("{{\"entity_type\": \"lesson\", \"title\": \"lesson {n}\", \"content\": {{\"description\": \"d\"}}}}\n")
    };
    let lines: String = (from..from + count).map(one).collect();
    let out = world.feed(&["rad", "entities", "--batch"], lines.as_bytes());
    assert_eq!(out.code, Some(0), "{}", out.text());
}

fn titles(world: &World) -> String {
    world.sql("SELECT title FROM memories ORDER BY title, uuid")
}

#[test]
fn eight_machines_at_once_lose_and_double_nothing() {
    for target in targets() {
        let machines: Vec<World> = (0..MACHINES).map(|n| machine(&format!("person{n}"), &target)).collect();
        machines.iter().enumerate().for_each(|(n, world)| remember(world, n * MEMORIES, MEMORIES));
        let mut path = String::new();
        let sync = target.sync(&mut path);
        // All machines at once, and the first one eight times.
        for _ in 0..2 {
            let twice = machines.iter().chain(std::iter::repeat_n(&machines[0], 7));
            let running: Vec<_> = twice.map(|world| (world, world.start(&sync, b""))).collect();
            for (world, child) in running {
                let out = world.finish(child);
                assert_eq!(out.code, Some(0), "{}", out.text());
            }
        }
        for world in &machines {
            assert_eq!(world.nmem(&sync).code, Some(0));
            assert_eq!(world.count("SELECT count(*) FROM memories"), (MACHINES * MEMORIES) as i64);
            assert_eq!(world.count("SELECT count(DISTINCT uuid) FROM memories"), (MACHINES * MEMORIES) as i64);
        }
        if let Target::Server(server) = &target {
            assert_eq!(server.sql("SELECT count(*), count(DISTINCT uuid) FROM nmem.changes"), "320|320");
            assert_eq!(server.sql("SELECT count(*) FROM lessons"), "320");
        }
    }
}

#[test]
fn a_sync_that_is_killed_anywhere_is_made_up_for_by_the_next() {
    for target in targets() {
        let (anna, bob) = (machine("anna", &target), machine("bob", &target));
        let mut path = String::new();
        let sync = target.sync(&mut path);
        let mut random: u64 = 42;
        for round in 0..50 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            remember(&anna, round * 10, 10);
            if round % 5 == 4 {
                let id = anna.sql("SELECT 'm' || min(id) FROM memories");
                assert_eq!(anna.nmem(&["forget", &id, "--yes"]).code, Some(0));
            }
            // Both, at different moments.
            for (world, after) in [(&anna, random >> 40), (&bob, random >> 20)] {
                let mut child = world.start(&sync, b"");
                std::thread::sleep(Duration::from_micros(after % 60_000));
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        for world in [&anna, &bob, &anna, &bob] {
            let out = world.nmem(&sync);
            assert_eq!(out.code, Some(0), "{}", out.text());
        }
        assert_eq!(anna.count("SELECT count(*) FROM memories"), 490);
        assert_eq!(titles(&anna), titles(&bob));
        assert_eq!(bob.sql("PRAGMA integrity_check"), "ok");
        if let Target::Server(server) = &target {
            assert_eq!(server.sql("SELECT count(*) FROM nmem.changes WHERE body IS NOT NULL"), "490");
            assert_eq!(server.sql("SELECT count(*) FROM lessons"), "490");
        }
    }
}
