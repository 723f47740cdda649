//! The live page: what an agent does appears, and a person changes what is remembered with a click.

use crate::view::two_days;
use crate::world::World;
use crate::world::browser::Browser;
use crate::world::serving::Serving;
use crate::world::session::{MINUTE, Session};
use serde_json::json;
use std::time::Duration;

#[test]
fn what_an_agent_does_appears_and_a_person_takes_things_back() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    let Some(browser) = Browser::open(&world.folder) else { return };
    let serving = Serving::start(&world, &[]);
    browser.go(&serving.url);
    browser.until("document.querySelector('#status.live')");
    assert_eq!(browser.value("location.search"), json!(""), "the launch token leaves the address");
    // News, within a second of the hook.
    let mut session = Session::new(&world, "third-session-of-all");
    session.at += 3000 * MINUTE;
    session.ask("Draw the walrus in the margin");
    let took = browser.until("document.querySelector('#list').innerText.includes('walrus')");
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Pinned, edited, superseded.
    browser.click("#tab-memories");
    let decision = world.sql("SELECT 'm' || id FROM memories WHERE kind = 'decision' AND superseded_by IS NULL LIMIT 1");
    browser.click(&format!("#list .row[data-id='{decision}']"));
    browser.click("#detail [data-action='Pin']");
    browser.until("document.querySelector('#detail [data-action=Unpin]')");
    assert_eq!(world.sql("SELECT 'm' || id FROM memories WHERE pinned"), decision);
    browser.click("#detail [data-action='Edit']");
    browser.fill("#edit-title", "Tokens live in SQLite");
    browser.click("#save");
    browser.until("document.querySelector('#detail h2').innerText === 'Tokens live in SQLite'");
    assert_eq!(world.sql("SELECT title, by_hand FROM memories WHERE pinned"), "Tokens live in SQLite|1");
    let newer = world.nmem(&["remember", "Tokens live in memory only", "--kind", "decision", "--json"]).json();
    let newer = newer["id"].as_str().unwrap();
    browser.until(&format!("document.querySelector('#list .row[data-id=\"{newer}\"]')"));
    browser.click("#detail [data-action='Supersede']");
    browser.fill("#supersede-by", newer);
    browser.click("#save");
    browser.until("document.querySelector('#detail').innerText.includes('What holds instead')");
    browser.until(&format!("document.querySelector('#list .row[data-id=\"{decision}\"] del')"));
    // Forgotten, after a question.
    browser.click(&format!("#list .row[data-id='{newer}']"));
    browser.until("document.querySelector('#detail h2').innerText === 'Tokens live in memory only'");
    browser.click("#detail [data-action='Forget']");
    browser.until("document.querySelector('#dialog[open]')?.innerText.includes('would be deleted')");
    assert_eq!(world.count("SELECT count(*) FROM memories WHERE title = 'Tokens live in memory only'"), 1);
    browser.click("#forget-yes");
    browser.until("!document.querySelector('#dialog').open");
    assert_eq!(world.count("SELECT count(*) FROM memories WHERE title = 'Tokens live in memory only'"), 0);
    browser.until(&format!("!document.querySelector('#list .row[data-id=\"{newer}\"]')"));
    // A second browser with the same address stays outside.
    let Some(other) = Browser::open(&world.folder.join("other")) else { return };
    other.go(&serving.url);
    assert!(other.text("body").contains("This address opens nothing by itself"), "{}", other.text("body"));
    assert_eq!(browser.console(), Vec::<String>::new());
}
