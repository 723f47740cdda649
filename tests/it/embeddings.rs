//! A second opinion on what is near, from a model that the user names: when it is asked, what it finds, and what does not go
//! wrong when it does not answer.

use crate::world::World;
use crate::world::models::CONFIG;
use crate::world::server::{Reply, Server};
use crate::world::session::{MINUTE, Session};
use crate::world::thesaurus::vector;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Memories, and a question for each in other words.
const PAIRS: [(&str, &str); 12] = [
    ("The login keeps credentials for an hour", "how do we handle authentication"),
    ("A passphrase is hashed twice", "where is the password kept"),
    ("The sqlite tables are vacuumed at night", "what cleans the storage"),
    ("An invoice has a number without gaps", "billing rules"),
    ("Erase goes through the outbox", "how to remove things"),
    ("A buyer may hold two carts", "what can a customer have"),
    ("Everything is in utc until it is shown", "which timezone is used"),
    ("A thumbnail is made on demand", "when are images scaled"),
    ("The suite runs in four shards", "how are tests split"),
    ("Backoff doubles up to a minute", "how often is it tried again"),
    ("Rights come from the directory", "who decides on access"),
    ("The rollout is by country", "how do we ship"),
];

fn world() -> (World, Server) {
    let (world, server) = (World::new(), Server::new(Reply::Embeds(vector)));
    Session::new(&world, "first").ask("hello there").close("Hello.").end();
    for (memory, _) in PAIRS {
        assert_eq!(world.typed(&["remember", memory, "--kind", "lesson"]).code, Some(0));
    }
    (world, server)
}

/// Number of questions that find their memory among the first three.
fn found(world: &World) -> usize {
    let finds = |(memory, question): &&(&str, &str)| {
        let out = world.nmem(&["search", question, "--kind", "memory", "--limit", "3", "--json"]);
        out.lines().iter().any(|hit| hit["title"].as_str().is_some_and(|title| title.contains(memory)))
    };
    PAIRS.iter().filter(finds).count()
}

#[test]
fn what_is_asked_for_in_other_words_is_found() {
    let (world, server) = world();
    let by_words = found(&world);
    assert_eq!(server.count(), 0, "nothing is asked of a model that nobody named");
    world.write(CONFIG, &server.embeddings());
    let out = world.nmem(&["distil"]);
    assert!(out.text().contains("12 memories were embedded."), "{}", out.text());
    let with_meaning = found(&world);
    assert!(by_words <= 2 && with_meaning >= 11, "by words {by_words}, with meaning {with_meaning} of {}", PAIRS.len());
    // None of its words stands anywhere, so words alone would say that nothing is known.
    let graded = &world.nmem(&["search", "where is the password kept", "--json"]).lines()[0]["match"];
    assert!(graded == "weak" || graded == "strong", "{graded}");
    let status: Value = world.nmem(&["status", "--json"]).json();
    assert_eq!(status["embedded"], serde_json::json!({"memories": 12, "of": 12}));
    // Twice is once.
    let asked = server.count();
    assert!(world.nmem(&["distil"]).text().contains("0 memories were embedded."));
    assert_eq!(server.count(), asked);
}

#[test]
fn memories_of_all_projects_are_embedded_on_request_where_the_model_may_see_them() {
    let (world, server) = world();
    let [other, shut] = ["other", "shut"].map(|name| world.git_project(name, &format!("https://example.org/dev/{name}.git")));
    for (folder, text) in [(&other, "Invoices are rounded at the end"), (&shut, "The secret recipe has ginger")] {
        world.nmem(&["remember", text, "--kind", "lesson", "--project", folder.to_str().unwrap()]);
    }
    let rule = format!("[[folder]]\nmatch = \"{}\"\nprovider = \"none\"\nenabled = false\n", shut.display());
    world.write(CONFIG, &format!("{}\n{rule}", server.embeddings()));
    assert!(world.nmem(&["distil"]).text().contains("12 memories were embedded."));
    let all = world.nmem(&["distil", "--all"]).text();
    assert!(all.contains("1 memory was embedded."), "{all}");
    let without = world.sql("SELECT title FROM memories WHERE vector_block IS NULL");
    assert_eq!(without, "The secret recipe has ginger", "the model may not see that folder");
}

/// Vectors cost money, so repairing the indexes keeps them.
#[test]
fn a_rebuilt_index_keeps_the_vectors() {
    let (world, server) = world();
    world.write(CONFIG, &server.embeddings());
    world.nmem(&["distil"]);
    world.sql("INSERT INTO passage_index(passage_index) VALUES ('delete-all')");
    let out = world.nmem(&["doctor", "--fix"]);
    assert_eq!(
        world.count("SELECT count(*) FROM passage_index_docsize WHERE id / 64 % 4 = 1 AND id % 64 = 0"),
        12,
        "{}",
        out.text()
    );
    assert_eq!(world.sql("SELECT sum(length(memories) / 8) FROM vectors").trim(), "12");
}

/// The output says where texts are sent. If one folder of a project is kept from models, the rest is embedded without it.
#[test]
fn where_it_goes_is_said_and_a_folder_that_is_kept_from_models_stays_here() {
    let (world, server) = (World::new(), Server::new(Reply::Embeds(vector)));
    let kept = world.project().join("kept");
    std::fs::create_dir_all(&kept).unwrap();
    let rule = format!("[[folder]]\nmatch = \"{}\"\nprovider = \"none\"\n", kept.display());
    world.write(CONFIG, &format!("{}{rule}", server.embeddings()));
    let said = world.hook_with("SessionStart-startup", &[]).stdout;
    assert!(!said.contains("nothing leaves") && said.contains("are sent to 127.0.0.1"), "{said}");
    for (folder, id) in [(&kept, "kept"), (&world.project(), "open")] {
        let request = serde_json::json!({"agent_session_id": id, "cwd": folder,
            "user_prompt": format!("Remember that the {id} invoice has a number")});
        world.feed(&["rad", "sessions/init"], request.to_string().as_bytes());
        world.feed(&["rad", "sessions/summarize"], format!("{{\"agent_session_id\": \"{id}\"}}").as_bytes());
    }
    let out = world.nmem(&["distil"]);
    let asked: Vec<String> = server.asked.lock().unwrap().iter().map(|asked| asked.body.to_string()).collect();
    assert!(asked.iter().any(|body| body.contains("the open invoice")), "{}", out.text());
    assert!(!asked.iter().any(|body| body.contains("the kept invoice")), "{asked:?}");
}

#[test]
fn what_is_changed_is_embedded_again_and_what_is_forgotten_is_gone() {
    let (world, server) = world();
    world.write(CONFIG, &server.embeddings());
    world.nmem(&["distil"]);
    let id = world.sql("SELECT 'm' || id FROM memories WHERE title LIKE '%sqlite%'");
    let id = id.trim();
    assert_eq!(world.typed(&["edit", id, "--title", "Invoices are printed at night"]).code, Some(0));
    assert_eq!(world.sql("SELECT sum(length(memories) / 8) FROM vectors").trim(), "11");
    assert!(world.nmem(&["distil"]).text().contains("1 memory was embedded."));
    assert_eq!(world.nmem(&["forget", id, "--yes"]).code, Some(0));
    assert_eq!(world.sql("SELECT sum(length(memories) / 8), count(*) FROM vectors").trim(), "11|1");
}

#[test]
fn a_turn_embeds_what_it_remembered_and_a_folder_that_is_shown_to_no_model_is_not() {
    for asked in [true, false] {
        let (world, server) = (World::new(), Server::new(Reply::Embeds(vector)));
        let here = format!("[[folder]]\nmatch = \"{}\"\nprovider = \"none\"\n", world.project().display());
        let rule = if asked { "" } else { &here };
        world.write(CONFIG, &format!("{}{rule}", server.embeddings()));
        let mut session = Session::new(&world, "first");
        session.ask("Remember that prices are integers in cents, never floats. My key is AKIAQ7RZ2JX4MT5NVW3P");
        session.edit("src/price.rs").close("Added the price.");
        assert_eq!(server.count() > 0, asked);
        for asked in server.asked.lock().unwrap().iter() {
            assert!(!asked.body.to_string().contains("AKIAQ7RZ2JX4MT5NVW3P"), "{}", asked.body);
        }
    }
}

#[test]
fn a_server_that_is_unwell_costs_no_memory_and_hardly_any_time() {
    let (world, server) = world();
    world.write(CONFIG, &server.embeddings());
    world.nmem(&["distil"]);
    let long =
        "The login of the customer takes long, and the invoice mail is not translated; look at src/login.rs and src/mail.rs";
    for (n, reply) in [
        Reply::Hangs,
        Reply::Trickles,
        Reply::Floods,
        Reply::ClosesEarly,
        Reply::Raw(500, "", "{}".into()),
        Reply::Raw(200, "", "{\"data\": []}".into()),
        Reply::Raw(200, "", "{\"data\": [{\"embedding\": [1, \"x\", null]}]}".into()),
        Reply::Raw(200, "", "{\"data\": [{\"index\": 7, \"embedding\": [1, 2]}]}".into()),
        Reply::Embeds(|_| vec![0.0; 3]),
        Reply::Embeds(|_| vec![1.0; 5]),
    ]
    .into_iter()
    .enumerate()
    {
        server.now(reply);
        let mut session = Session::new(&world, Box::leak(format!("session-{n}").into_boxed_str()));
        // Each an hour after the one before: it is asked again.
        session.at += n as i64 * 60 * MINUTE;
        let asked = server.count();
        let begun = Instant::now();
        session.ask(long);
        // A debug build on a busy machine takes some of it; the measured figure is in ADR/0033.
        assert!(begun.elapsed() < Duration::from_millis(600), "{n}: {:?}", begun.elapsed());
        assert!(server.count() > asked, "{n}: it was not asked");
        assert!(world.nmem(&["search", "invoice"]).text().contains("An invoice has a number"), "{n}");
    }
    assert_eq!(world.sql("SELECT count(*) FROM memories WHERE vector_block IS NOT NULL").trim(), "12");
    server.now(Reply::Raw(500, "", "{}".into()));
    world.typed(&["remember", "Widgets are round", "--kind", "lesson"]);
    let out = world.nmem(&["distil"]);
    assert!(
        out.code == Some(1) && out.stderr.contains("the embedding request failed: the server answered 500"),
        "{}",
        out.text()
    );
}

/// A server that does not answer costs one hook its time, and not the ones of the next ten minutes.
#[test]
fn a_server_that_does_not_answer_is_left_alone_for_a_while() {
    let (world, server) = world();
    world.write(CONFIG, &server.embeddings());
    world.nmem(&["distil"]);
    let asked = |at: i64, id: &'static str| {
        let mut session = Session::new(&world, id);
        session.at += at * MINUTE;
        let before = server.count();
        session.ask("The login of the customer takes long, and the invoice mail is not translated");
        server.count() - before
    };
    server.now(Reply::Raw(500, "", "{}".into()));
    assert_eq!((asked(0, "one"), asked(3, "two"), asked(9, "three")), (1, 0, 0));
    assert_eq!((asked(12, "four"), asked(20, "five")), (1, 0), "after ten minutes it is asked again, and left alone again");
    server.now(Reply::Embeds(vector));
    assert_eq!((asked(40, "six"), asked(41, "seven")), (1, 1), "one that answers is asked each time");
    // A person does not have to wait.
    server.now(Reply::Raw(500, "", "{}".into()));
    asked(50, "eight");
    let before = server.count();
    world.nmem(&["search", "billing rules", "--kind", "memory"]);
    assert_eq!(server.count(), before + 1);
}

/// A build without the feature has the command and says what is missing; the config file's setting does no harm.
#[cfg(not(feature = "local-model"))]
#[test]
fn a_build_that_cannot_run_a_local_model_says_so_and_searches_by_words() {
    let (world, _server) = world();
    world.write(CONFIG, "[embeddings]\nprovider = \"local\"\n");
    let out = world.nmem(&["models", "list"]);
    assert_eq!(out.stdout, "all-MiniLM-L6-v2  23 MB, not installed; English, Apache-2.0\n");
    assert!(out.stderr.contains("this build of nmem cannot run a local model"), "{}", out.stderr);
    let add = world.typed(&["models", "add", "all-MiniLM-L6-v2"]);
    assert_eq!(add.code, Some(1));
    assert!(add.stderr.contains("build with `--features local-model`"), "{}", add.stderr);
    let status = world.nmem(&["status"]).text();
    assert!(status.contains("embeddings: all-MiniLM-L6-v2 in this process\n"), "{status}");
    assert!(status.contains("problem: this build of nmem cannot run a local model"), "{status}");
    assert!(world.nmem(&["search", "credentials"]).text().contains("The login keeps credentials for an hour"));
    assert!(world.nmem(&["models", "list", "--json"]).json()["used"] == true);
}

/// Needs a model: `NMEM_TEST_MODEL=DIR cargo test --features local-model`.
#[cfg(feature = "local-model")]
#[test]
fn a_model_in_this_process_finds_what_is_asked_for_in_other_words() {
    let Some(model) = std::env::var_os("NMEM_TEST_MODEL") else {
        println!("PASSED OVER: NMEM_TEST_MODEL names no folder with model.onnx and tokenizer.json");
        return;
    };
    let (world, server) = world();
    let by_words = found(&world);
    let folder = world.home().join("all-MiniLM-L6-v2");
    std::fs::create_dir(&folder).unwrap();
    for name in ["model.onnx", "tokenizer.json"] {
        std::fs::copy(std::path::Path::new(&model).join(name), folder.join(name)).unwrap();
    }
    let add = world.typed(&["models", "add", folder.to_str().unwrap()]);
    assert_eq!(add.code, Some(0), "{}", add.stderr);
    world.write(CONFIG, "[embeddings]\nprovider = \"local\"\n");
    assert!(world.nmem(&["models", "list"]).text().contains("23 MB, installed, in use"));
    // Nothing was embedded before the first search.
    let with_meaning = found(&world);
    assert!(with_meaning >= by_words + 5, "by words {by_words}, with meaning {with_meaning} of {}", PAIRS.len());
    assert_eq!(world.nmem(&["status", "--json"]).json()["embedded"], serde_json::json!({"memories": 12, "of": 12}));
    assert_eq!(server.count(), 0);
    assert_eq!(world.typed(&["models", "remove", "all-MiniLM-L6-v2"]).code, Some(0));
    assert_eq!(found(&world), by_words, "without its files, words decide");
}
