//! Team memory: two people, two databases, one PostgreSQL or one folder.

use crate::world::postgres::Postgres;
use crate::world::{Output, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A person with a database of their own, who works on the project and shares it.
fn person(name: &str) -> World {
    let mut world = World::new();
    world.set("USER", name);
    done(world.nmem(&["project", "share"]));
    world
}

fn done(output: Output) -> Output {
    assert_eq!(output.code, Some(0), "{}", output.text());
    output
}

fn with(server: &Postgres, mut world: World) -> World {
    world.set("RAD_DATABASE_URL", &server.url());
    world
}

fn sync(world: &World) -> Value {
    done(world.nmem(&["sync", "--json"])).json()
}

fn sync_with(world: &World, folder: &Path) -> Value {
    done(world.nmem(&["sync", "--json", &folder.display().to_string()])).json()
}

/// Somebody trusts the machine that calls itself by a name.
fn trust(world: &World, name: &str) {
    let machines = done(world.nmem(&["team", "list", "--json"])).lines();
    let of = |machine: &&Value| machine["name"] == name && machine["own"] == false;
    let key = machines.iter().find(of).unwrap()["key"].as_str().unwrap()[..16].to_string();
    done(world.typed(&["team", "trust", &key]));
}

/// Context that an agent receives at a start.
fn told(world: &World) -> String {
    static SESSION: AtomicU32 = AtomicU32::new(0);
    let session = format!("told-{}", SESSION.fetch_add(1, Ordering::Relaxed));
    let answer = done(world.hook_with("SessionStart-startup", &[("/session_id", json!(session))]));
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_string()
}

fn decide(world: &World, what: &str, over: &str) -> Output {
    done(world.nmem(&[
        "remember",
        what,
        "--kind",
        "decision",
        "--alternative",
        over,
        "--reason",
        "measured",
        "--confidence",
        "0.8",
    ]))
}

/// Ids of shown memories differ between machines; titles do not.
fn found(world: &World, word: &str) -> Vec<String> {
    let hits = done(world.nmem(&["search", word, "--kind", "decision", "--json"])).lines();
    let mut titles: Vec<String> = hits.iter().filter_map(|hit| hit["title"].as_str().map(String::from)).collect();
    titles.sort();
    titles
}

fn id(world: &World, title: &str) -> String {
    format!("m{}", world.sql(&format!("SELECT id FROM memories WHERE title = '{title}'")))
}

#[test]
fn two_people_with_one_server_are_told_each_others_decisions() {
    let Some(server) = Postgres::start() else { return };
    let (anna, bob) = (with(&server, person("anna")), with(&server, person("bob")));
    anna.silently(&["UserPromptSubmit"]);
    decide(&anna, "SQLite for the cache", "Redis");
    decide(&bob, "Postgres for the queue", "Kafka");
    done(anna.nmem(&["remember", "The salary table is wrong"]));
    done(anna.nmem(&["edit", &id(&anna, "The salary table is wrong"), "--private"]));
    assert_eq!(sync(&anna)["sent"], 1);
    assert_eq!(sync(&bob)["received"]["people"], json!({"anna": 1}));
    assert_eq!(sync(&anna)["received"]["people"], json!({"bob": 1}));

    // Until they trust each other, agents only know that there is something.
    let unknown = "Not shown: 1 memory of people whom the user doesn't trust yet (`nmem team list`).";
    assert!(told(&bob).contains(unknown) && !told(&bob).contains("SQLite"), "{}", told(&bob));
    let marked = done(bob.nmem(&["search", "SQLite cache"])).stdout;
    assert!(marked.contains("teammate \"anna\" (key ") && marked.contains(", not trusted\n    \"SQLite"), "{marked}");
    trust(&bob, "anna");
    trust(&anna, "bob");
    assert!(told(&bob).contains("teammate \"anna\" wrote: \"SQLite for the cache\""), "{}", told(&bob));
    assert!(told(&anna).contains("teammate \"bob\" wrote: \"Postgres for the queue\""));
    let dump = server.dump();
    let prompt = anna.sql("SELECT text FROM prompts LIMIT 1");
    assert!(dump.contains("SQLite for the cache") && !dump.contains("salary"));
    assert!(!prompt.is_empty() && !dump.contains(&prompt), "a prompt left the machine");

    // What is forgotten is gone from the server and from the other database.
    done(anna.nmem(&["forget", &id(&anna, "SQLite for the cache"), "--yes"]));
    sync(&anna);
    assert_eq!(sync(&bob)["received"]["forgotten"], 1);
    assert!(!server.dump().contains("SQLite for the cache"));
    assert_eq!(found(&bob, "SQLite"), [] as [&str; 0]);
    assert!(!told(&bob).contains("SQLite"));
    for (path, bytes) in bob.all_bytes() {
        assert!(!bytes.windows(20).any(|bytes| bytes == b"SQLite for the cache"), "{} holds it", path.display());
    }
    // Also where somebody else made it.
    done(anna.nmem(&["forget", &id(&anna, "Postgres for the queue"), "--yes"]));
    sync(&anna);
    sync(&bob);
    sync(&bob);
    assert!(!server.dump().contains("Postgres for the queue"));
    assert_eq!(found(&bob, "queue"), [] as [&str; 0]);
    let again = sync(&bob);
    assert_eq!((&again["sent"], &again["received"]["new"]), (&json!(0), &json!(0)), "{again}");
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(folder);
    let out = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "git {args:?}: {text}");
    text
}

fn commit(folder: &Path) {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "memories", "--allow-empty"]);
}

/// The text of every chunk in a folder.
fn chunks(folder: &Path) -> String {
    let list =
        Command::new("sh").args(["-c", "find . -name '*.gz' -not -path './.git/*' | xargs -r zcat"]).current_dir(folder).output();
    String::from_utf8_lossy(&list.unwrap().stdout).into_owned()
}

#[test]
fn the_same_goes_through_a_git_repository_with_merged_branches() {
    let (anna, bob) = (person("anna"), person("bob"));
    let shared = anna.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    git(&shared, &["init", "-q", "-b", "main", "."]);
    commit(&shared);
    decide(&anna, "SQLite for the cache", "Redis");
    sync_with(&anna, &shared);
    commit(&shared);
    // Each on a branch of their own.
    git(&shared, &["checkout", "-qb", "bob"]);
    decide(&bob, "Postgres for the queue", "Kafka");
    sync_with(&bob, &shared);
    commit(&shared);
    git(&shared, &["checkout", "-q", "main"]);
    decide(&anna, "Tabs for indentation", "spaces");
    sync_with(&anna, &shared);
    commit(&shared);
    // On Bob's branch Anna's second chunk is missing; a sync there writes it again.
    git(&shared, &["checkout", "-q", "bob"]);
    decide(&anna, "One crate for everything", "many");
    sync_with(&anna, &shared);
    commit(&shared);
    git(&shared, &["checkout", "-q", "main"]);
    git(&shared, &["merge", "-q", "--no-edit", "bob"]);
    assert_eq!(git(&shared, &["status", "--porcelain"]), "");

    sync_with(&bob, &shared);
    sync_with(&anna, &shared);
    trust(&bob, "anna");
    trust(&anna, "bob");
    for title in ["SQLite for the cache", "Tabs for indentation", "One crate for everything"] {
        assert!(told(&bob).contains(&format!("teammate \"anna\" wrote: \"{title}\"")), "{title}: {}", told(&bob));
    }
    assert!(told(&anna).contains("teammate \"bob\" wrote: \"Postgres for the queue\""));

    done(anna.nmem(&["forget", &id(&anna, "SQLite for the cache"), "--yes"]));
    assert!(chunks(&shared).contains("SQLite for the cache"));
    sync_with(&anna, &shared);
    assert!(!chunks(&shared).contains("SQLite for the cache"));
    sync_with(&bob, &shared);
    assert_eq!(found(&bob, "SQLite"), [] as [&str; 0]);
    commit(&shared);

    // Nothing is left to do, and no file changes.
    for person in [&anna, &bob] {
        let again = sync_with(person, &shared);
        assert_eq!((&again["chunks"]["written"], &again["received"]["new"]), (&json!(0), &json!(0)), "{again}");
    }
    assert_eq!(git(&shared, &["status", "--porcelain"]), "");
}

#[test]
fn files_that_are_not_whole_or_not_ours_are_left_alone_and_said() {
    let (anna, bob) = (person("anna"), person("bob"));
    let shared = anna.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    decide(&anna, "SQLite for the cache", "Redis");
    sync_with(&anna, &shared);
    let own: PathBuf = fs::read_dir(&shared).unwrap().next().unwrap().unwrap().path();
    let chunk: PathBuf = fs::read_dir(&own).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&chunk).unwrap();
    fs::write(&chunk, &whole[..whole.len() / 2]).unwrap();
    fs::write(own.join("notes.txt"), "mine").unwrap();
    fs::write(own.join("00000002-00000002-1-0000000000000000.jsonl.gz"), "no gzip").unwrap();
    fs::write(shared.join("README.md"), "about this folder").unwrap();
    fs::create_dir_all(shared.join(".stfolder")).unwrap();
    let out = done(bob.nmem(&["sync", &shared.display().to_string()]));
    for (file, why) in
        [("notes.txt", "not a chunk of nmem"), ("README.md", "not a machine's folder"), ("-1-", "not complete yet, or damaged")]
    {
        assert!(out.stderr.lines().any(|line| line.contains(file) && line.contains(why)), "{file}: {}", out.text());
    }
    assert!(!out.stderr.contains(".stfolder"));
    assert_eq!(found(&bob, "SQLite"), [] as [&str; 0]);
    assert_eq!(fs::read(own.join("notes.txt")).unwrap(), b"mine");
    // The rest arrives.
    fs::write(&chunk, &whole).unwrap();
    sync_with(&bob, &shared);
    assert_eq!(found(&bob, "SQLite"), ["SQLite for the cache"]);
}

#[test]
fn what_would_be_sent_is_listed_with_the_reason() {
    let mut anna = World::new();
    anna.set("USER", "anna");
    insta::assert_snapshot!(anna.nmem(&["sync"]).text(), @"
    --- stderr
    nmem: there is nothing to sync with
      set RAD_DATABASE_URL to a PostgreSQL, or name a shared folder: nmem sync DIR
    [exit 2]
    ");
    decide(&anna, "SQLite for the cache", "Redis");
    insta::assert_snapshot!(anna.nmem(&["sync", "--dry-run"]).text(), @"
    No project is shared. `nmem project share` shares the project of this folder.
    Nothing would be sent.
    [exit 0]
    ");
    done(anna.nmem(&["project", "share"]));
    done(anna.nmem(&["remember", "The token is ghp_abcdefghijklmnopqrstuvwxyz0123456789 now"]));
    insta::assert_snapshot!(anna.nmem(&["sync", "--dry-run"]).text(), @"
    new       m1 decision of project: SQLite for the cache
    new       m2 observation of project: The token is [redacted:assigned-secret] now
    2 changes would be sent. Shared: project (team).
    [exit 0]
    ");
    let shared = anna.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    sync_with(&anna, &shared);
    done(anna.nmem(&["edit", "m1", "--title", "SQLite for the cache, with WAL"]));
    done(anna.nmem(&["edit", "m2", "--private"]));
    let listed = anna.nmem(&["sync", "--dry-run"]).text();
    assert!(listed.contains("changed   m1 decision of project: SQLite for the cache, with WAL"), "{listed}");
    assert!(listed.contains("withdrawn m2 (no text is sent)"), "{listed}");
    // Another sync reports what a dry run did not do.
    assert_eq!(sync_with(&anna, &shared)["sent"], 2);
    assert!(!chunks(&shared).contains("The token is"));
    assert_eq!(anna.count("SELECT count(*) FROM memories"), 2, "the private memory stays here");
    anna.set("RAD_ENABLED", "false");
    let refused = anna.nmem(&["sync", &shared.display().to_string()]);
    assert!(refused.code == Some(1) && refused.stderr.contains("RAD_ENABLED=false"), "{}", refused.text());
}

#[test]
fn ones_own_machines_share_private_memories_and_whose_words_they_are() {
    let (mut laptop, mut desktop) = (World::new(), World::new());
    for world in [&mut laptop, &mut desktop] {
        world.set("USER", "anna");
        done(world.nmem(&["project", "share", "--mine"]));
    }
    let shared = laptop.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    done(laptop.typed(&["remember", "Deploy on Mondays only", "--kind", "decision", "--pin"]));
    done(laptop.nmem(&["edit", "m1", "--private"]));
    sync_with(&laptop, &shared);
    sync_with(&desktop, &shared);
    // Somebody who only uses the name is not trusted.
    assert!(told(&desktop).contains("Not shown: 1 memory"), "{}", told(&desktop));
    assert!(desktop.nmem(&["team", "list"]).text().contains("has your name; if it is yours"));
    trust(&desktop, "anna");
    done(laptop.nmem(&["edit", "m1", "--subtitle", "since the outage"]));
    sync_with(&laptop, &shared);
    sync_with(&desktop, &shared);
    assert!(told(&desktop).contains("Pinned:\n- 2026-11-21, the user: \"Deploy on Mondays only\""), "{}", told(&desktop));
}

#[test]
fn a_program_that_writes_by_the_specification_is_read_back() {
    let Some(server) = Postgres::start() else { return };
    let anna = with(&server, person("anna"));
    let event = json!({"task": {"taskDescription": "Add a cache", "taskKind": "feature", "agentTier": "paid", "success": true},
        "decisions": [{"decisionType": "technology", "chosenOption": "SQLite", "alternatives": ["Redis"], "reasoning": "one file", "confidence": 0.9}],
        "lessons": [{"lessonType": "warning", "title": "Close the cache", "description": "or the test hangs", "tags": ["tests"]}]});
    done(anna.feed(&["rad", "knowledge/record"], event.to_string().as_bytes()));
    sync(&anna);
    // The specification's queries: tasks of a repository, decisions of a task, lessons by tag, what is known of it.
    assert_eq!(server.sql("SELECT task_description, task_kind, agent_tier, success FROM tasks WHERE repo_id = 'example.org/dev/project' ORDER BY created_at DESC"), "Add a cache|feature|paid|t");
    assert_eq!(server.sql("SELECT d.chosen_option, d.alternatives, d.reasoning, d.confidence FROM decisions d JOIN tasks t ON t.id = d.task_id WHERE d.decision_type = 'technology'"), "SQLite|{Redis}|one file|0.9");
    assert_eq!(
        server.sql("SELECT title, description FROM lessons WHERE tags @> '{tests}' AND lesson_type = 'warning'"),
        "Close the cache|or the test hangs"
    );
    assert_eq!(server.sql("SELECT repo_name, repo_url FROM repo_metadata"), "project|https://example.org/dev/project.git");

    server.sql("INSERT INTO tasks(repo_id, task_description, task_kind, agent_tier, success) VALUES ('git@example.org:dev/project.git', 'Add login', 'feature', 'free', false), ('elsewhere', 'Not ours', 'bugfix', 'free', true)");
    server.sql("INSERT INTO decisions(task_id, decision_type, chosen_option, alternatives, reasoning, confidence) SELECT id, 'technology', 'JSON web tokens', '{sessions}', 'stateless', 0.7 FROM tasks WHERE task_description = 'Add login'");
    server.sql("INSERT INTO lessons(task_id, lesson_type, title, description) SELECT id, 'failure', 'Clock skew', 'tokens expired early' FROM tasks WHERE task_description = 'Add login'");
    let read = sync(&anna);
    assert_eq!(read["programs"], json!({"written": 3, "removed": 0, "elsewhere": 1}), "{read}");
    assert_eq!(found(&anna, "tokens"), ["JSON web tokens"]);
    assert_eq!(
        anna.sql(
            "SELECT group_concat(DISTINCT provenance) FROM memories WHERE title IN ('Add login', 'JSON web tokens', 'Clock skew')"
        ),
        "tool"
    );
    assert!(!told(&anna).contains("JSON web tokens"), "another program's row is shown at a start");
    server.sql("UPDATE decisions SET chosen_option = 'Sessions' WHERE chosen_option = 'JSON web tokens'");
    server.sql("DELETE FROM lessons WHERE title = 'Clock skew'");
    let read = sync(&anna);
    assert_eq!((&read["programs"]["written"], &read["programs"]["removed"]), (&json!(1), &json!(1)));
    assert_eq!(found(&anna, "Sessions"), ["Sessions"]);
    // They are theirs: nothing of them is sent as ours.
    assert_eq!(sync(&anna)["sent"], 0);
}

#[test]
fn a_server_that_is_down_costs_two_seconds_once_and_status_says_so() {
    let mut anna = person("anna");
    // It accepts and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    anna.set("RAD_DATABASE_URL", &format!("postgresql://me:hunter2@127.0.0.1:{}/rad", silent.local_addr().unwrap().port()));
    anna.write("home/.config/nmem/config.toml", "[team]\nsync = \"session\"\n");
    let timed = |world: &World, hook: &str| {
        let begun = Instant::now();
        done(world.hook(hook));
        begun.elapsed()
    };
    let first = timed(&anna, "SessionStart-startup");
    assert!((Duration::from_millis(1500)..Duration::from_millis(4000)).contains(&first), "{first:?}");
    anna.minutes_later(29);
    let paused = timed(&anna, "Stop");
    assert!(paused < Duration::from_millis(1500), "{paused:?}");
    let status = anna.nmem(&["status"]).text();
    assert!(
        status.contains(
            "problem: the sync of 29 min ago failed: PostgreSQL at 127.0.0.1 did not answer within 1.8 s; sessions try again at"
        ),
        "{status}"
    );
    assert!(!status.contains("hunter2"));
    drop(silent);
    anna.minutes_later(2);
    done(anna.hook("SessionStart-startup"));
    let status = anna.nmem(&["status"]).text();
    assert!(status.contains("failed: cannot connect to PostgreSQL at 127.0.0.1"), "{status}");
}

#[test]
fn a_session_start_syncs_first_and_then_tells() {
    let Some(server) = Postgres::start() else { return };
    let (anna, mut bob) = (with(&server, person("anna")), with(&server, person("bob")));
    bob.write("home/.config/nmem/config.toml", "[team]\nsync = \"session\"\nname = \"Bob B.\"\n");
    decide(&anna, "SQLite for the cache", "Redis");
    sync(&anna);
    assert!(told(&bob).contains("Not shown: 1 memory"));
    decide(&anna, "Tabs for indentation", "spaces");
    sync(&anna);
    // Not again within the hour, and not at SessionEnd.
    bob.minutes_later(59);
    assert!(!told(&bob).contains("Tabs"));
    bob.minutes_later(2);
    done(bob.hook("SessionEnd-other"));
    assert_eq!(bob.count("SELECT count(*) FROM memories WHERE title LIKE 'Tabs%'"), 0);
    done(bob.hook("Stop"));
    assert_eq!(bob.count("SELECT count(*) FROM memories WHERE title LIKE 'Tabs%'"), 1);
    decide(&bob, "Postgres for the queue", "Kafka");
    sync(&bob);
    assert_eq!(sync(&anna)["received"]["people"], json!({"Bob B.": 1}));
}

#[test]
fn renamed_and_merged_projects_stay_joined() {
    let (anna, bob) = (person("anna"), person("bob"));
    let shared = anna.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    // Anna worked in a fork before, which Bob never had.
    let fork = anna.git_project("fork", "https://example.org/anna/fork.git").display().to_string();
    done(anna.nmem(&["remember", "Found in the fork", "--kind", "decision", "--project", &fork]));
    done(anna.nmem(&["project", "share", "--project", &fork]));
    done(anna.nmem(&["project", "rename", "our-app"]));
    decide(&anna, "SQLite for the cache", "Redis");
    sync_with(&anna, &shared);
    assert_eq!(sync_with(&bob, &shared)["received"]["people"], json!({"anna": 1}));
    done(anna.nmem(&["project", "merge", "fork", "our-app"]));
    sync_with(&anna, &shared);
    sync_with(&bob, &shared);
    assert_eq!(found(&bob, "fork"), ["Found in the fork"]);
    assert_eq!(bob.sql("SELECT DISTINCT p.name FROM memories m JOIN projects p ON p.id = m.project_id"), "project");
    // And at Bob's: what he merges takes the memories of others along.
    let other = bob.git_project("other", "https://example.org/dev/other.git").display().to_string();
    done(bob.nmem(&["project", "share", "--project", &other]));
    done(bob.nmem(&["project", "merge", "project", "other"]));
    assert_eq!(bob.sql("SELECT DISTINCT p.name FROM memories m JOIN projects p ON p.id = m.project_id"), "other");
    decide(&anna, "Tabs for indentation", "spaces");
    sync_with(&anna, &shared);
    sync_with(&bob, &shared);
    assert_eq!(found(&bob, "Tabs"), ["Tabs for indentation"]);
}

#[test]
fn a_secret_that_older_rules_left_is_redacted_at_the_border() {
    let anna = person("anna");
    let shared = anna.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    decide(&anna, "SQLite for the cache", "Redis");
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    anna.connect().execute("UPDATE memories SET body = 'export GITHUB_TOKEN=' || ?1", [secret]).unwrap();
    sync_with(&anna, &shared);
    assert!(chunks(&shared).contains("[redacted:") && !chunks(&shared).contains(secret));
}

#[test]
fn a_copied_or_restored_database_continues_under_a_key_of_its_own() {
    let (anna, bob) = (person("anna"), person("bob"));
    let shared = anna.folder.join("shared");
    fs::create_dir_all(&shared).unwrap();
    decide(&anna, "SQLite for the cache", "Redis");
    sync_with(&anna, &shared);
    let backup = anna.folder.join("backup.db");
    anna.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    fs::copy(anna.db(), &backup).unwrap();
    decide(&anna, "Tabs for indentation", "spaces");
    sync_with(&anna, &shared);
    sync_with(&bob, &shared);
    // The backup comes back, and the work goes on from there.
    for path in anna.all_bytes().into_iter().map(|(path, _)| path).filter(|path| path.to_string_lossy().contains("nmem.db-")) {
        let _ = fs::remove_file(path);
    }
    fs::copy(&backup, anna.db()).unwrap();
    decide(&anna, "One crate for everything", "many");
    let again = sync_with(&anna, &shared);
    assert_eq!(again["new_machine"], true, "{again}");
    sync_with(&bob, &shared);
    for title in ["SQLite for the cache", "Tabs for indentation", "One crate for everything"] {
        assert_eq!(found(&bob, title.split(' ').next().unwrap()), [title]);
    }
    sync_with(&anna, &shared);
    assert_eq!(found(&anna, "cache"), ["SQLite for the cache"], "nothing is doubled");
    assert_eq!(sync_with(&anna, &shared)["new_machine"], false);
}
