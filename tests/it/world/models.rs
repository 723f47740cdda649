//! A session that is worth asking a model about, and a world with a model in it.

use super::World;
use super::server::{Reply, Server};
use super::session::Session;
use std::time::{Duration, Instant};

pub const CONFIG: &str = "home/.config/nmem/config.toml";

pub const ANSWER: &str = "<observation sources=\"1, 2, 3, 4, 5\"><type>bugfix</type><title>The exporter quotes commas</title>\
<subtitle>Rows with commas arrive whole</subtitle><facts><fact>src/export.rs quotes a field that holds a comma</fact></facts>\
<narrative>Fields were joined without quotes. They are quoted now.</narrative>\
<concepts><concept>problem-solution</concept><concept>gotcha</concept></concepts></observation>\
<summary><request>Rows with commas are broken</request><learned>A field with a comma must be quoted.</learned><completed>Quotes were added.</completed></summary>";

pub fn says(text: &str) -> Reply {
    Reply::Says(text.to_string())
}

/// A session that fixes something, commits it, and ends: one closed unit.
pub fn work(world: &World, id: &'static str) {
    let mut session = Session::new(world, id);
    session.ask("the exporter breaks rows with commas, fix it").fails("cargo test export", "error: expected 2 fields, found 3");
    session.edit("src/export.rs").bash("cargo test export", "test result: ok. 4 passed");
    session
        .bash("git commit -am 'fix: quote fields with commas'", "[main 1a2b3c4] fix: quote fields with commas\n 1 file changed");
    session.close("Fields with commas are quoted now: the exporter joined them bare. Tests pass.").end();
}

/// Another session's turn, whose Stop finds what waits; how long the Stop took.
pub fn turn(world: &World, id: &'static str) -> Duration {
    let mut session = Session::again(world, id);
    session.ask("what is the version?");
    let begun = Instant::now();
    session.close("It is 1.2.");
    begun.elapsed()
}

pub fn memories(world: &World) -> String {
    world.sql("SELECT kind, coalesce(type, '-'), title, made_by, superseded_by IS NOT NULL FROM memories ORDER BY id")
}

pub fn with_model(reply: Reply, provider: &str) -> (World, Server) {
    let (mut world, server) = (World::new(), Server::new(reply));
    world.set("TEST_KEY", "key-of-the-user");
    world.write(CONFIG, &server.config(provider));
    (world, server)
}
