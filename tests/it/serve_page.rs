//! The live page: what an agent does appears, and a person changes what is remembered with a click.

use crate::view::two_days;
use crate::world::World;
use crate::world::browser::Browser;
use crate::world::serving::Serving;
use crate::world::session::{MINUTE, Session};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
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
    // News, within a second of the hook; other tests may hold up one of three.
    let took = ["walrus", "narwhal", "dugong"].map(|animal| {
        let mut session = Session::new(&world, animal);
        session.at += 3000 * MINUTE;
        session.ask(&format!("Draw the {animal} in the margin"));
        browser.until(&format!("document.querySelector('#list').innerText.includes('Draw the {animal}')"))
    });
    assert!(took.iter().min() < Some(&Duration::from_secs(1)), "{took:?}");
    // The search is the server's, with its grade.
    browser.press("/");
    browser.fill("#search", "redis sqlite");
    browser.until("document.querySelector('#list .row[data-id^=m] mark')");
    browser.fill("#search", "zzqqy");
    browser.until("document.querySelector('#list .empty')?.innerText === 'Nothing is known about this.'");
    browser.press("\u{e00c}");
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

/// A web page of somebody else's, served from a port of its own.
fn served_elsewhere(html: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // A browser also opens connections for later.
            stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let mut head = [0; 4096];
            if stream.read(&mut head).is_err() {
                continue;
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{html}",
                html.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_hostile_web_page_in_the_same_browser_learns_nothing_and_changes_nothing() {
    let mut world = World::new();
    world.now = two_days(&world) + MINUTE;
    let Some(browser) = Browser::open(&world.folder) else { return };
    let serving = Serving::start(&world, &[]);
    browser.go(&serving.url);
    browser.until("document.querySelector('#status.live')");
    let before = world.sql("SELECT group_concat(title || pinned) FROM memories");
    let own = format!("http://127.0.0.1:{}", serving.port);
    let html = format!(
        "<title>elsewhere</title><iframe name=frame src={own}/></iframe><iframe name=sink></iframe>\
         <form id=form method=post action={own}/api/forget enctype=text/plain target=sink><input name='{{\"id\":\"m1\",\"x\":\"' value='\"}}'></form>\
         <script src={own}/api/view onload='window.ran = 1' onerror='window.refused = 1'></script>"
    );
    let port = served_elsewhere(html);
    // The same host on another port is the same site, so the cookie is sent; another name is not.
    for origin in [format!("http://127.0.0.1:{port}"), format!("http://localhost:{port}"), format!("http://evil.example:{port}")]
    {
        browser.go(&origin);
        browser.until("window.refused");
        let tries = format!(
            "(async () => {{ const outcome = async (path, options) => {{ try {{ return (await fetch('{own}' + path, options)).type; }} catch (error) {{ return error.name; }} }};
               return [
                 await outcome('/api/view', {{ credentials: 'include' }}),
                 await outcome('/api/view', {{ credentials: 'include', mode: 'no-cors' }}),
                 await outcome('/api/memory/m1/pin', {{ method: 'POST', credentials: 'include', headers: {{ 'Content-Type': 'application/json' }}, body: '{{\"pinned\": true}}' }}),
                 await outcome('/api/memory/m1/pin', {{ method: 'POST', credentials: 'include', mode: 'no-cors', body: '{{\"pinned\": true}}' }}),
                 await new Promise(done => {{ const events = new EventSource('{own}/api/events', {{ withCredentials: true }}); events.onopen = () => done('open'); events.onerror = () => done('refused'); }}),
                 window.ran ?? null,
               ]; }})()"
        );
        let nothing = json!(["TypeError", "TypeError", "TypeError", "TypeError", "refused", null]);
        assert_eq!(browser.value(&tries), nothing, "{origin}");
        browser.value("document.getElementById('form').submit()");
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(
            browser.value("(() => { try { return frames.frame.document.body.innerText } catch { return 'closed' } })()"),
            json!("closed"),
            "{origin}"
        );
    }
    assert_eq!(world.sql("SELECT group_concat(title || pinned) FROM memories"), before);
    // A name that leads to this machine is not this server.
    browser.go(&format!("http://evil.example:{}/", serving.port));
    assert!(browser.text("body").contains("this host name is not served"), "{}", browser.text("body"));
    // No address of the page, with a token or without, leaves it as a referrer.
    browser.go(&own);
    browser.until("document.querySelector('#status.live')");
    browser.value(&format!("(() => {{ const a = document.createElement('a'); a.href = 'http://127.0.0.1:{port}/'; document.body.append(a); a.click(); }})()"));
    browser.until("document.title === 'elsewhere'");
    assert_eq!(browser.value("document.referrer"), json!(""));
}
