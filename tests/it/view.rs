//! A person looks at what is remembered: one page, in a file of its own.

use crate::world::World;
use crate::world::browser::Browser;
use crate::world::session::{MINUTE, Session};
use serde_json::json;

/// Two sessions: a decision, a failure that is fixed, and a second session that receives both.
pub fn two_days(world: &World) -> i64 {
    let mut first = Session::new(world, "first-session-of-two");
    first.starts("startup");
    first.ask("Use SQLite for the login tokens, not Redis: there is one machine only. Then fix the expiry test");
    first.fails("cargo test expiry", "test token::expiry ... FAILED\nerror: expected 3600, found 36000");
    first.edit("src/token.rs");
    first.bash("cargo test expiry", "test result: ok. 1 passed");
    first.close("Fixed the expiry: the constant had a zero too many. Tokens are stored in SQLite.").end();
    let mut second = Session::new(world, "second-session-of-two");
    second.at += 1500 * MINUTE;
    second.starts("startup");
    second.ask("Now rotate the tokens every hour");
    second.edit("src/token.rs");
    second.close("Tokens rotate every hour.").end();
    second.at
}

#[test]
fn the_page_is_one_private_file_that_loads_nothing() {
    let mut world = World::new();
    assert_eq!(
        world.nmem(&["view", "-o", "page.html"]).text(),
        "--- stderr\nnmem: nothing is recorded for project yet\n  `nmem project list` lists what is recorded; --all shows every project\n[exit 1]"
    );
    world.now = two_days(&world) + MINUTE;
    assert_eq!(world.nmem(&["view", "-o", "page.html"]).text(), "Wrote page.html\n[exit 0]");
    let page = world.read("project/page.html");
    assert!(page.len() < 100_000, "{}", page.len());
    for loads in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(loads), "{loads}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(world.project().join("page.html")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(world.nmem(&["view", "-o", "-"]).stdout.trim_end(), page.trim_end());
    #[cfg(unix)]
    {
        let device = world.nmem(&["view", "-o", "/dev/null"]);
        assert!(device.stderr.contains("/dev/null is not a regular file") && device.code == Some(1), "{}", device.text());
    }
    let nowhere = world.nmem(&["view", "-o", "missing/page.html"]);
    assert!(nowhere.stderr.contains("cannot write missing/page.html") && nowhere.code == Some(1), "{}", nowhere.text());
}

#[test]
fn the_page_that_was_opened_goes_when_something_is_forgotten() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    // No browser is on this path.
    let shown = world.nmem(&["view"]);
    assert!(shown.stdout.contains("nmem.db-page.html") && shown.code == Some(0), "{}", shown.text());
    assert!(world.data().join("nmem.db-page.html").exists());
    world.nmem(&["forget", "--match", "SQLite", "--yes"]);
    assert!(!world.data().join("nmem.db-page.html").exists());
}

#[test]
fn a_reader_searches_filters_and_follows_a_memory_to_its_tool_call() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    let Some(browser) = Browser::open(&world.folder) else { return };
    world.nmem(&["view", "-o", "page.html"]);
    browser.go(&format!("file://{}/page.html", world.project().display()));
    browser.until("document.querySelector('#list .row')");
    assert_eq!(browser.value("document.title"), json!("nmem: project"));
    // From the search to the decision, and to the words that it comes from.
    browser.press("/");
    browser.fill("#search", "redis sqlite");
    browser.until("document.querySelector('#count')?.innerText.includes('result')");
    browser.until("document.querySelector('#list .row mark')");
    browser.click("#list .row[data-id^='m']");
    browser.until("document.querySelector('#detail [data-source]')");
    browser.click("#detail [data-source] summary");
    browser.until("document.querySelector('#detail [data-source] pre')");
    assert!(
        browser.text("#detail [data-source] pre").contains("not Redis: there is one machine only"),
        "{}",
        browser.text("#detail")
    );
    // A filter, and what it leaves.
    browser.press("\u{e00c}");
    browser.click("#tab-memories");
    let all = browser.value("document.querySelectorAll('#list .row').length");
    browser.value("(() => { const s = document.querySelector('#filter-kind'); s.value = 'decision'; s.dispatchEvent(new Event('change')); })()");
    browser.until("document.querySelector('#count').innerText.startsWith('1 of')");
    assert_ne!(browser.value("document.querySelectorAll('#list .row').length"), all);
    // A memory of a fix, down to the command that failed.
    browser.click("#tab-failures");
    browser.until("document.querySelector('#list .row[data-id^=t]')");
    browser.click("#list .row[data-id^='t']");
    browser.until("document.querySelector('#detail pre')");
    assert!(browser.text("#detail").contains("expected 3600, found 36000"), "{}", browser.text("#detail"));
    // What the second session received, and what it used.
    browser.click("#tab-received");
    browser.click("#list .row[data-id^='i']");
    browser.until("document.querySelector('#detail pre')");
    assert!(browser.text("#detail pre").contains("not Redis"), "{}", browser.text("#detail"));
    for tab in ["timeline", "files", "cost"] {
        browser.click(&format!("#tab-{tab}"));
        assert!(browser.text("#list").len() > 20, "{tab}: {}", browser.text("#list"));
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// A store that somebody filled with what could run, reorder or fill the page.
#[test]
fn a_hostile_store_stays_text() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    let Some(browser) = Browser::open(&world.folder) else { return };
    let attacks = [
        "<script>window.hit = 1</script>",
        "</script><script>window.hit = 1</script>",
        "<img src=x onerror=\"window.hit = 1\">",
        "javascript:window.hit=1",
        "<svg onload=window.hit=1>",
        "\u{202e}desrever\u{202c}",
        "<style>body{display:none}</style>",
        "{{script}}",
        "\u{0}\u{1b}]0;x\u{7}",
        "<base href=//evil.example>",
    ];
    let conn = world.connect();
    conn.execute("UPDATE memories SET title = ?1 WHERE id = 1", ["A".repeat(1 << 20)]).unwrap();
    for attack in attacks {
        conn.execute(
            "INSERT INTO memories(uuid, kind, type, title, subtitle, body, content, project_id, session_id, sources, platform, provenance, made_by, created_at)
             SELECT hex(randomblob(16)), kind, ?1, ?1, ?1, ?1, json_object('facts', json_array(?1), ?1, ?1), project_id, session_id, sources, ?1, provenance, 'rules', created_at
             FROM memories WHERE id = 1",
            [attack],
        )
        .unwrap();
        let number = conn.last_insert_rowid();
        conn.execute("INSERT INTO memory_files(memory_id, path, modified) VALUES (?1, ?2, 1)", rusqlite::params![number, attack])
            .unwrap();
        conn.execute("UPDATE memories SET concepts = json_array(?2) WHERE id = ?1", rusqlite::params![number, attack]).unwrap();
    }
    conn.execute("UPDATE work_units SET title = ?1, intent = ?1", [attacks[1]]).unwrap();
    conn.execute("UPDATE prompts SET text = ?1", [attacks[2]]).unwrap();
    conn.execute("UPDATE tool_uses SET content = ?1, outcome = ?1", [attacks[1]]).unwrap();
    conn.execute("UPDATE projects SET name = ?1", [attacks[0]]).unwrap();
    let begun = world.nmem(&["view", "-o", "page.html"]);
    assert_eq!(begun.code, Some(0), "{}", begun.text());
    browser.go(&format!("file://{}/page.html", world.project().display()));
    browser.until("document.querySelector('#list .row')");
    for tab in ["timeline", "memories", "received", "files", "failures", "cost"] {
        browser.click(&format!("#tab-{tab}"));
        let rows = browser.value("[...document.querySelectorAll('#list [data-id]')].map(row => row.dataset.id)");
        for id in rows.as_array().unwrap().iter().filter_map(|id| id.as_str()) {
            browser.value(&format!("open_({})", json!(id)));
            browser.until("!document.querySelector('#detail').hidden");
        }
    }
    assert_eq!(
        browser.value("[window.hit ?? null, document.querySelectorAll('img, base, #list script, #detail script').length]"),
        json!([null, 0])
    );
    assert!(browser.text("#project").contains("<script>"), "{}", browser.text("#project"));
    browser.click("#tab-memories");
    assert_eq!(browser.value("document.querySelector('#list').innerText.includes('\\u202e')"), json!(false));
    assert!(
        browser.value("document.documentElement.scrollWidth <= innerWidth").as_bool().unwrap(),
        "the page is as wide as the window"
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_first_view_says_what_holds_now() {
    let mut world = World::new();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        world.program("git", &[&identity[..], args].concat()).output().is_ok_and(|done| done.status.success())
    };
    std::fs::remove_dir_all(world.project().join(".git")).unwrap();
    if !git(&["init", "-q", "-b", "main"]) {
        eprintln!("PASSED OVER: there is no git here");
        return;
    }
    git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
    two_days(&world);
    let mut third = Session::new(&world, "third-session-of-two");
    third.at += 1600 * MINUTE;
    third.ask("Let `rotate` take hours").edit("src/token.rs");
    third.fails("cargo test --quiet", "error: 1 test failed").fails("cargo test", "error: 1 test failed");
    third.close("All tests pass.\n\nNot done yet: the docs still say seconds.").end();
    world.now = third.at + MINUTE;
    let Some(browser) = Browser::open(&world.folder) else { return };
    world.nmem(&["view", "-o", "page.html"]);
    browser.go(&format!("file://{}/page.html", world.project().display()));
    browser.until("document.querySelector('#list .row')");
    let shown = browser.text("#list");
    let parts = [
        "Claims that a check contradicts",
        "claim contradicted",
        "Checks",
        "failed",
        "Last work",
        "Open ends",
        "Your latest decisions",
        "What the next session gets",
    ];
    let mut rest = shown.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} in order in:\n{shown}")).1;
    }
    assert!(shown.contains("The docs still say seconds") && shown.contains("not Redis"), "{shown}");
    let codes = "[...document.querySelectorAll('#list .row code')].map(code => code.innerText).includes('cargo test')";
    assert_eq!(browser.value(codes), json!(true));
    assert_eq!(browser.console(), Vec::<String>::new());
}
