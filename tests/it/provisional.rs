//! A report is provisional until the next prompt: short sessions in which a claim, a fix or a choice is confirmed, refuted or left
//! open, and what each view says then.

use crate::world::World;
use crate::world::session::{MINUTE, Session};
use insta::assert_snapshot;
use serde_json::json;

/// The memories, the line of the log, and what the next session is given.
fn views(world: &World) -> String {
    let memories = world.sql(
        "SELECT kind || iif(provenance = 'user', ' of the user', '') || ': ' || title || coalesce(' | ' || group_concat(f.value, ' | '), '')
         FROM memories m LEFT JOIN json_each(m.content, '$.facts') f WHERE m.superseded_by IS NULL GROUP BY m.id ORDER BY m.id",
    );
    let log = world.nmem(&["log"]).text();
    let log: Vec<&str> = log.lines().filter(|line| line.trim_start().starts_with('u')).map(str::trim).collect();
    let context = world.nmem(&["context", "--json"]).json();
    let text = context["text"].as_str().unwrap_or_default();
    let given: Vec<&str> =
        text.lines().skip(1).take_while(|line| !line.starts_with("More: ")).filter(|line| !line.is_empty()).collect();
    format!("{memories}\n--- log\n{}\n--- given\n{}", log.join("\n"), given.join("\n"))
}

fn session<'a>(world: &'a World, id: &'static str) -> Session<'a> {
    Session::new(world, id)
}

#[test]
fn a_claim_that_the_last_check_contradicts_is_failing_although_it_is_committed() {
    let world = World::new();
    session(&world, "claim-then-commit")
        .ask("Round the invoice sum to cents in src/invoice.rs, and commit it")
        .edit("src/invoice.rs")
        .fails("cargo test invoice", "Exit code 101\nassertion `left == right` failed: left: 12, right: 1200\n")
        .bash("git commit -am 'Round the invoice sum to cents'", "[main 1a2b3c4] Round the invoice sum to cents\n 1 file changed")
        .close("Verified it: everything passes, all tests pass. The invoice sum is rounded to cents in `Invoice::total`.")
        .end();
    assert_snapshot!(views(&world), @r#"
    observation: Round the invoice sum to cents | The invoice sum is rounded to cents in `Invoice::total`.
    summary: Round the invoice sum to cents
    --- log
    u1  failing  5 min  Round the invoice sum to cents; 1 commit, and the last check did not pass
    --- given
    Last session, 2026-11-20 09:01, 6 min:
    - "Round the invoice sum to cents" (failing, u1)
      changed: `src/invoice.rs`
      failures and notes: "committed with a failing check; the agent reported passing checks, but the last run failed; `cargo test invoice` failed last: assertion `left == right` failed: left: 12, right: 1200"
    "#);
    assert_eq!(world.nmem(&["units", "--json"]).lines()[0]["outcome"], "failing");
}

#[test]
fn a_claim_is_judged_in_its_own_turn() {
    let world = World::new();
    session(&world, "claim-then-thanks")
        .ask("Make the export skip empty rows in src/export.rs")
        .edit("src/export.rs")
        .fails("cargo test export", "Exit code 101\nassertion failed: rows.len() == 3\n")
        .close("The export skips empty rows now, and all tests pass.")
        .ask("thanks")
        .close("You're welcome!")
        .end();
    assert_snapshot!(views(&world), @r#"
    summary: Make the export skip empty rows in src/export.rs
    --- log
    u1  failing  5 min  Make the export skip empty rows in src/export.rs; changes, and the last check did not pass
    --- given
    Last session, 2026-11-20 09:01, 7 min:
    - "Make the export skip empty rows in src/export.rs" (failing, u1)
      changed and not committed: `src/export.rs`
      failures and notes: "the agent reported passing checks, but the last run failed; `cargo test export` failed last: assertion failed: rows.len() == 3"
    "#);
}

#[test]
fn a_check_that_never_ran_did_not_fail() {
    let world = World::new();
    session(&world, "wrong-wrapper")
        .ask("Make the export skip empty rows in src/export.rs")
        .edit("src/export.rs")
        .bash("cargo test export", "test result: ok. 4 passed")
        .fails("task lint", "Exit code 127\n/bin/bash: line 1: task: command not found")
        .close("The export skips rows without any value.")
        .end();
    assert_eq!(world.nmem(&["units", "--json"]).lines()[0]["outcome"], "done");
    let context = world.nmem(&["context"]).text();
    assert!(!context.contains("failed last") && !context.contains("Failed when it ran last"), "{context}");
}

#[test]
fn a_check_that_passes_in_the_end_is_done() {
    let world = World::new();
    session(&world, "fails-then-passes")
        .ask("Make the export skip empty rows in src/export.rs")
        .edit("src/export.rs")
        .fails("cargo test export", "Exit code 101\nassertion failed: rows.len() == 3\n")
        .edit("src/export.rs")
        .bash("cargo test export", "test result: ok. 4 passed")
        .bash("cargo clippy", "Finished")
        .close("The export skips rows without any value, because `Row::is_empty` looked at the first column only.")
        .end();
    assert_snapshot!(views(&world), @r#"
    observation: The export skips rows without any value, because `Row::is_empty` looked at the first column only | `cargo test export` failed (assertion failed: rows.len() == 3), passed after changes to `src/export.rs`
    --- log
    u1  done  8 min  The export skips rows without any value, because `Row::is_empty` looked at the first column only
    --- given
    Last session, 2026-11-20 09:01, 9 min:
    - "The export skips rows without any value, because `Row::is_empty` looked at the first column only", asked: "Make the export skip empty rows in src/export.rs" (done, u1)
      changed and not committed: `src/export.rs`
    "#);
}

#[test]
fn a_fix_that_the_next_prompt_refutes_was_tried_and_did_not_help() {
    let world = World::new();
    let mut chat = session(&world, "fix-refuted");
    chat.ask("The chat hangs in thinking behind the CDN. Please fix it in src/stream.rs")
        .edit("src/stream.rs")
        .close("Fixed: the server now buffers the whole answer of the chat when a request comes through the CDN, so it no longer hangs.")
        .ask("Still does not work. It hangs in thinking as before")
        .edit("deploy/subdomain.conf")
        .close("The CDN buffers every streamed answer of the chat, so I moved the chat to the subdomain `chat.example.org`, which bypasses the CDN.")
        .ask("Great, that works now. Add a favicon to the page too")
        .edit("web/index.html")
        .close("Added the favicon `web/favicon.png` to the page of the chat.")
        .end();
    assert_snapshot!(views(&world), @r#"
    observation: The CDN buffers every streamed answer of the chat, so I moved the chat to the subdomain `chat.example.org`, which bypasses the CDN
    tried: Fixed: the server now buffers the whole answer of the chat when a request comes through the CDN, so it no longer hangs | The user: "Still does not work."
    observation: Added the favicon `web/favicon.png` to the page of the chat
    --- log
    u2  unknown  3 min  Added the favicon `web/favicon.png` to the page of the chat
    u1  unknown  6 min  The CDN buffers every streamed answer of the chat
    --- given
    Last session, 2026-11-20 09:01, 12 min:
    - "Added the favicon `web/favicon.png` to the page of the chat", asked: "Great, that works now. Add a favicon to the page too" (u2)
      changed and not committed: `web/index.html`, `deploy/subdomain.conf`, `src/stream.rs`
    "#);
}

#[test]
fn a_complaint_of_the_next_session_refutes_the_last_one() {
    let world = World::new();
    session(&world, "fixed-on-monday")
        .ask("The login loses the query string, fix it in src/login.rs")
        .edit("src/login.rs")
        .close("Fixed: the redirect of the login now keeps the query string, because `redirect_to` encodes it.")
        .end();
    let mut next = Session::new(&world, "still-on-tuesday");
    next.at += 600 * MINUTE;
    next.ask("The login still loses the query string after the redirect").edit("src/session.rs").close(
        "The query string was dropped by `Session::restore`, which rebuilt the address without it. It keeps the whole address now.",
    );
    next.end();
    assert_snapshot!(views(&world), @r#"
    observation: The query string was dropped by `Session::restore`, which rebuilt the address without it
    open of the user: Reported last, not confirmed as solved: The login still loses the query string after the redirect
    tried: Fixed: the redirect of the login now keeps the query string, because `redirect_to` encodes it | The user: "The login still loses the query string after the redirect"
    --- log
    u2  unknown  3 min  The query string was dropped by `Session::restore`, which rebuilt the address without it
    u1  done  3 min  The login loses the query string, fix it in src/login.rs
    --- given
    Last session, 2026-11-20 19:01, 4 min:
    - "The query string was dropped by `Session::restore`, which rebuilt the address without it", asked: "The login still loses the query string after the redirect" (u2)
      changed and not committed: `src/session.rs`
    Open ends:
    - 2026-11-20: "Reported last, not confirmed as solved: The login still loses the query string after the redirect" (m3)
    "#);
}

#[test]
fn what_the_user_said_last_is_open_until_it_is_confirmed() {
    let world = World::new();
    session(&world, "complains-last")
        .ask("Show the new logo on the start page, in web/index.html")
        .edit("web/index.html")
        .close("The start page now shows the new logo, which is embedded as a PNG.")
        .ask("Still the old one. The favicon is missing, too")
        .edit("web/index.html")
        .close("I set a cache header for the start page, so that browsers fetch it again.")
        .end();
    assert_snapshot!(views(&world), @r#"
    observation: I set a cache header for the start page, so that browsers fetch it again
    tried: The start page now shows the new logo, which is embedded as a PNG | The user: "Still the old one."
    open of the user: Reported last, not confirmed as solved: Still the old one. The favicon is missing, too
    --- log
    u1  unknown  6 min  Show the new logo on the start page, in web/index.html
    --- given
    Last session, 2026-11-20 09:01, 8 min:
    - "Show the new logo on the start page, in web/index.html" (u1)
      changed and not committed: `web/index.html`
    Open ends:
    - 2026-11-20: "Reported last, not confirmed as solved: Still the old one. The favicon is missing, too" (m4)
    "#);
}

#[test]
fn what_says_nothing_by_itself_is_not_given() {
    let world = World::new();
    session(&world, "points-back")
        .ask("Show the new logo on the start page, in web/index.html")
        .edit("web/index.html")
        .close("The start page now shows the new logo, which is embedded as a PNG.")
        .ask("Again, this is not correct")
        .edit("web/index.html")
        .close("Now I have the whole picture of it. Let me think about what to do.")
        .end();
    let all = views(&world);
    let (stored, given) = all.split_once("--- given").unwrap();
    assert!(stored.contains("Reported last, not confirmed as solved: Again, this is not correct"), "{all}");
    assert!(given.contains("Show the new logo"), "{all}");
    assert!(!given.contains("Again, this is not") && !given.contains("whole picture"), "{all}");
}

#[test]
fn an_option_is_chosen_by_its_number_and_both_in_words() {
    let world = World::new();
    session(&world, "choices")
        .ask("How should the jobs be scheduled?")
        .close("Two approaches:\n\n1. **One orchestrator** that plans all jobs\n2. **A worker per queue** that takes jobs by itself\n\nWhich one do you prefer?")
        .ask("I want both")
        .edit("src/jobs.rs")
        .close("`src/jobs.rs` has an orchestrator for planned jobs, and a worker for each queue that takes the other jobs by itself.")
        .ask("Where should the results go?")
        .close("Options:\n\n1. **SQLite**: one file\n2. **Postgres**: a server\n\nWhich option?")
        .ask("option 1")
        .edit("src/results.rs")
        .close("The results of the jobs are stored in SQLite, in the table `results`.")
        .end();
    assert_snapshot!(views(&world), @r#"
    decision of the user: Chosen: One orchestrator that plans all jobs; A worker per queue that takes jobs by itself | `src/jobs.rs` has an orchestrator for planned jobs, and a worker for each queue that takes the other jobs by itself.
    decision of the user: Chosen: SQLite: one file | The results of the jobs are stored in SQLite, in the table `results`.
    --- log
    u2  unknown  4 min  The results of the jobs are stored in SQLite, in the table `results`
    u1  unknown  4 min  `src/jobs.rs` has an orchestrator for planned jobs
    --- given
    Last session, 2026-11-20 09:01, 12 min:
    - "The results of the jobs are stored in SQLite, in the table `results`" (u2)
      changed and not committed: `src/results.rs`, `src/jobs.rs`
    Decisions and lessons that hold here:
    - 2026-11-20, the user: "Chosen: SQLite: one file", not "Postgres: a server" (m2)
    - 2026-11-20, the user: "Chosen: One orchestrator that plans all jobs; A worker per queue that takes jobs by itself" (m1)
    "#);
}

#[test]
fn what_is_never_to_be_done_again_is_kept_with_what_it_was() {
    let world = World::new();
    session(&world, "again")
        .ask("Review the parser in src/parser.rs")
        .edit("src/parser.rs")
        .close("I ran the review and fixed its findings in `src/parser.rs`.")
        .ask("I said that I run the review tool myself. Never do that again on your own.")
        .close("Understood.")
        .end();
    let found = world.sql("SELECT kind || ': ' || title FROM memories WHERE kind = 'decision'");
    assert_eq!(found, "decision: I said that I run the review tool myself. Never do that again on your own");
    // Also where it is all that is said.
    let alone = World::new();
    session(&alone, "alone").ask("I push myself. Don't do that again.").close("Understood.").end();
    assert_eq!(alone.sql("SELECT title FROM memories"), "I push myself. Don't do that again");
    let given = session(&world, "next").starts("startup");
    assert!(given.contains("the user: \"I said that I run the review tool myself. Never do that"), "{given}");
}

#[test]
fn steps_findings_and_chores_are_no_choices() {
    let world = World::new();
    session(&world, "no-choices")
        .ask("Can this be merged?")
        .close("Not yet:\n\n1. **Merge conflicts**: 17 files\n2. **No checks**: none ran\n\nWould you like me to resolve the conflicts?")
        .ask("2")
        .edit("ci.yml")
        .close("Added a workflow that runs the checks on every push.")
        .end();
    assert_snapshot!(views(&world), @r#"
    observation: Added a workflow that runs the checks on every push
    --- log
    u1  unknown  4 min  Added a workflow that runs the checks on every push
    --- given
    Last session, 2026-11-20 09:01, 6 min:
    - "Added a workflow that runs the checks on every push" (u1)
      changed and not committed: `ci.yml`
    "#);
}

#[test]
fn a_standing_wish_is_given_on_a_trunk_and_an_order_for_the_task_is_not() {
    let world = World::new();
    session(&world, "a-wish-on-the-trunk")
        .ask("Next time you change the code, let me commit. Can we show the count of the rows in the header instead of the footer?")
        .edit("src/table.rs")
        .close("Understood, I won't commit. The header of the table shows the count of the rows now, and the footer is empty.")
        .end();
    assert_snapshot!(views(&world), @r#"
    decision of the user: Next time you change the code, let me commit | Understood, I won't commit.
    decision of the user: Show the count of the rows in the header instead of the footer | The header of the table shows the count of the rows now, and the footer is empty.
    --- log
    u1  unknown  3 min  The header of the table shows the count of the rows now, and the footer is empty
    --- given
    Last session, 2026-11-20 09:01, 4 min:
    - "The header of the table shows the count of the rows now, and the footer is empty", asked: "Next time you change the code, let me commit. Can we show…" (u1)
      changed and not committed: `src/table.rs`
    Decisions and lessons that hold here:
    - 2026-11-20, the user: "Next time you change the code, let me commit" (m1)
    "#);
}

#[test]
fn a_wish_to_commit_by_oneself_ends_when_the_user_orders_commits() {
    let world = World::new();
    session(&world, "wishes-to-commit")
        .ask("Next time you change the code, let me commit.")
        .edit("src/table.rs")
        .close("Understood, I won't commit.")
        .end();
    let is_given = || world.nmem(&["context"]).text().contains("let me commit");
    assert!(is_given());
    let orders = |name: &'static str, order: &str| {
        session(&world, name).ask("Sort the table by name").edit("src/table.rs").close("Sorted.").ask(order).close("Done.").end();
    };
    orders("one-exception", "Commit this.");
    assert!(is_given(), "one may be an exception");
    orders("the-practice", "ok now please commit and push");
    assert!(!is_given());
}

#[test]
fn each_closing_message_of_a_turn_is_read() {
    let world = World::new();
    session(&world, "closes-twice")
        .ask("Can you check the server for issues with Redis?")
        .bash("ssh host 'systemctl restart redis'", "ok")
        .close(
            "Fixed. The root cause was that the startup script of `redis-stack-server` hardcoded `--protected-mode no`, so anyone could read the data.\n\nNext steps:\n- Make the bind address of Redis configurable for each server",
        )
        .close("That was another task in the background; its result changes nothing.")
        .end();
    let found = world.nmem(&["search", "redis", "--kind", "memory"]).text();
    assert!(found.contains("hardcoded `--protected-mode no`"), "{found}");
    assert!(world.nmem(&["units", "--open"]).text().starts_with("Nothing is open."), "what was to be done in the turn is done");
}

#[test]
fn a_prompt_that_accepts_the_work_refutes_nothing() {
    let world = World::new();
    session(&world, "accepts-first")
        .ask("Show the tables with a border")
        .edit("src/table.rs")
        .close("Added a border to the tables in `src/table.rs`, which the style sheet colours.")
        .ask("Tables are good now. But the tables in the map still show nothing in Firefox.")
        .edit("src/table.rs")
        .close("The map draws its own tables now.")
        .end();
    let tried = world.nmem(&["search", "border tables", "--kind", "tried"]).text();
    assert!(!tried.contains("tried"), "{tried}");
}

#[test]
fn a_choice_fails_with_the_work_that_follows_it() {
    let world = World::new();
    session(&world, "choice-that-fails")
        .ask("The page shows an old script")
        .close("There are two ways:\n\n1. **Cache invalidation** - clear the cache of the network\n2. **Versioned names** - a new name for each build\n\nWhich do you prefer?")
        .ask("Option 1")
        .close("I need the name of the region to clear it.")
        .ask("eu-west-1")
        .bash("aws cloudfront create-invalidation --paths '/*'", "Invalidation created")
        .edit("deploy.sh")
        .close("The cache is cleared, and `deploy.sh` clears it with each release.")
        .ask("Still not working, the old script is still there.")
        .edit("build.js")
        .close("Each build has a name of its own now.")
        .end();
    let choice = world.nmem(&["search", "cache invalidation", "--kind", "decision"]).text();
    assert!(choice.contains("Still not working") && !choice.contains("Chosen"), "{choice}");
}

#[test]
fn a_commit_of_a_project_in_the_temporary_folder_is_its_own() {
    let world = World::new();
    let project = world.project().display().to_string();
    if !project.starts_with("/tmp/") {
        eprintln!("PASSED OVER: the folder for temporary files is not /tmp, so the test of a project there tries nothing");
        return;
    }
    session(&world, "commits-in-tmp")
        .ask("Cache the answers")
        .edit("src/answer.rs")
        .bash("git commit -am 'Give answers an age'", "[main 0a1b2c3] Give answers an age\n 1 file changed")
        .edit("src/cache.rs")
        .bash(&format!("cd {project} && git commit -am 'Cache the answers'"), "[main 1a2b3c4] Cache the answers\n 1 file changed")
        .close("The answers are cached for a minute.")
        .end();
    let open = world.nmem(&["units", "--open"]).text();
    assert!(!open.contains("not committed"), "{open}");
}

#[test]
fn a_next_step_is_given_until_later_work_takes_it_up() {
    let world = World::new();
    session(&world, "leaves-a-step")
        .ask("Retry the upload in src/upload.rs three times")
        .edit("src/upload.rs")
        .bash("git commit -am 'Retry the upload'", "[main 1a2b3c4] Retry the upload\n 1 file changed")
        .close("The upload is retried three times with a pause of one second.\n\nNext: make the pause between uploads configurable in the settings file")
        .ask("What is the pause now?")
        .close("One second, as the constant `PAUSE` says.")
        .end();
    assert_snapshot!(world.nmem(&["units", "--open"]).text(), @"
    m2  2026-11-20  Make the pause between uploads configurable in the settings file  (u1)

    `nmem done ID` ends one; with --drop it is not wanted any more
    [exit 0]
    ");
    assert_snapshot!(views(&world), @r#"
    observation: Retry the upload | The upload is retried three times with a pause of one second.
    open: Make the pause between uploads configurable in the settings file
    --- log
    u1  done  5 min  Retry the upload
    --- given
    Last session, 2026-11-20 09:01, 7 min:
    - "Retry the upload" (done, u1) in `src/upload.rs`
    Open ends:
    - 2026-11-20: "Make the pause between uploads configurable in the settings file" (m2)
    "#);
    let mut next = Session::new(&world, "takes-it-up");
    next.at += 600 * MINUTE;
    next.ask("Make the pause between uploads configurable in the settings")
        .edit("src/upload.rs")
        .edit("src/settings.rs")
        .close("The pause between uploads is configurable: the settings file has `upload.pause`, one second by default.");
    next.end();
    assert_snapshot!(world.nmem(&["units", "--open"]).text(), @"
    Nothing is open.
    [exit 0]
    ");
    assert!(world.sql("SELECT content ->> '$.ended' FROM memories WHERE kind = 'open'").starts_with('u'));
}

#[test]
fn next_steps_of_an_older_session_of_a_branch_are_not_given() {
    let world = World::new();
    world.write("project/.git/HEAD", "ref: refs/heads/fix/importer\n");
    session(&world, "leaves-a-step")
        .ask("Write the importer in src/import.rs")
        .edit("src/import.rs")
        .close(
            "The importer reads CSV files with a header.\n\n## Next steps\n\n- a report of the skipped rows for the accountant",
        )
        .end();
    let step = "report of the skipped rows";
    let given = || world.nmem(&["context"]).stdout;
    assert!(given().contains(step), "{}", given());
    let mut next = Session::new(&world, "does-something-else");
    next.at += 600 * MINUTE;
    next.starts("startup");
    next.ask("Describe the importer in README.md").edit("README.md").close("The README describes the importer.").end();
    assert!(given().contains("README.md") && !given().contains(step), "{}", given());
    assert!(world.nmem(&["units", "--open"]).stdout.contains(step), "it stays open");
}

#[test]
fn a_person_ends_an_open_end_and_opens_it_again() {
    let world = World::new();
    session(&world, "two-steps")
        .ask("Write the importer in src/import.rs")
        .edit("src/import.rs")
        .close("The importer reads CSV files with a header.\n\n## Next steps\n\n- a report of the skipped rows for the accountant\n- support for files with semicolons instead of commas")
        .end();
    let open = || world.nmem(&["units", "--open"]).text();
    assert_snapshot!(open(), @"
    m3  2026-11-20  A report of the skipped rows for the accountant  (u1)
    m2  2026-11-20  Support for files with semicolons instead of commas  (u1)

    `nmem done ID` ends one; with --drop it is not wanted any more
    [exit 0]
    ");
    let cut = world.nmem(&["units", "--open", "--limit", "1"]).text();
    assert!(cut.starts_with("m3 ") && cut.contains("\n1 of 2; --limit 0 for all\n"), "{cut}");
    let ids: Vec<String> =
        world.nmem(&["units", "--open", "--json"]).lines().iter().map(|end| end["id"].as_str().unwrap().into()).collect();
    assert_snapshot!(world.typed(&["done", &ids[0]]).text(), @"
    m3 is done: A report of the skipped rows for the accountant
    [exit 0]
    ");
    assert_snapshot!(world.typed(&["done", &ids[0]]).text(), @"
    m3 has ended already: A report of the skipped rows for the accountant
    [exit 0]
    ");
    assert_snapshot!(world.typed(&["done", "--drop", &ids[1]]).text(), @"
    m2 is dropped: Support for files with semicolons instead of commas
    [exit 0]
    ");
    assert_snapshot!(open(), @"
    Nothing is open.
    [exit 0]
    ");
    // What has ended is no answer to a question, and says so where it is shown or asked for by its kind.
    assert!(!world.nmem(&["search", "semicolons instead of commas", "--kind", "memory"]).text().contains(&ids[1]));
    let found = world.nmem(&["search", "--kind", "open", "semicolons"]).text();
    assert!(found.contains(&ids[1]) && found.contains("  ended"), "{found}");
    let shown = world.nmem(&["show", &ids[1]]).text();
    assert!(shown.contains(", ended, by rules"), "{shown}");
    // The session goes on, and its unit is distilled again.
    Session::again(&world, "two-steps").ask("thanks").close("You're welcome.").end();
    assert_snapshot!(open(), @"
    Nothing is open.
    [exit 0]
    ");
    assert_snapshot!(world.typed(&["done", "--reopen", &ids[1]]).text(), @"
    m2 is open again: Support for files with semicolons instead of commas
    [exit 0]
    ");
    assert!(open().contains(&ids[1]));
    let decision = world.typed(&["remember", "SQLite for the cache", "--kind", "decision"]).text();
    assert!(decision.contains("Remembered as"), "{decision}");
    assert_snapshot!(world.typed(&["done", "m99"]).text(), @"
    --- stderr
    nmem: nothing has the id m99
      `nmem search --kind memory` prints ids
    [exit 1]
    ");
}

#[test]
fn an_agent_that_takes_back_its_report_is_believed_the_second_time() {
    let world = World::new();
    session(&world, "takes-back")
        .ask("Document how the editor finds our plugin, in README.md")
        .edit("README.md")
        .close("The README says that the editor scans `~/.editor/plugins`, so a symlink to `~/.editor/plugins/ours` installs the plugin.")
        .ask("I see nothing in the editor. Is that so?")
        .uses("WebSearch", json!({"query": "editor plugins folder"}), json!({"results": []}))
        .close("My earlier summary was wrong: this editor does not scan `~/.editor/plugins`. The symlink to `~/.editor/plugins/ours` is wrong, and the plugin needs an entry in `marketplace.json`.")
        .end();
    assert_snapshot!(views(&world), @r#"
    observation: The symlink to `~/.editor/plugins/ours` is wrong, and the plugin needs an entry in `marketplace.json`
    --- log
    u1  done  5 min  Document how the editor finds our plugin, in README.md
    --- given
    Last session, 2026-11-20 09:01, 7 min:
    - "Document how the editor finds our plugin, in README.md" (done, u1)
      changed and not committed: `README.md`
    "#);
}

#[test]
fn what_a_plan_settles_is_not_given_as_the_users_own_words() {
    let world = World::new();
    session(&world, "ordered-plan")
        .ask(
            "Implement the following plan:\n\n# Plan: Cache the totals\n\n## Decisions\n\n- Never cache a total without the \
             currency it was computed in\n- Keep the old endpoint for backward compatibility\n",
        )
        .edit("src/totals.rs")
        .bash("git commit -am 'Cache the totals'", "[main 1a2b3c4] Cache the totals\n 1 file changed")
        .close("The totals are cached for each currency.")
        .end();
    let decided = world.nmem(&["search", "--kind", "decision", "currency", "--json"]).lines()[0].clone();
    let shown = world.nmem(&["show", decided["id"].as_str().unwrap()]).text();
    assert!(shown.contains("by rules, from a plan that the user ordered") && !shown.contains("stated in"), "{shown}");
    assert!(shown.contains("  Cache the totals: Never cache a total without the currency"), "{shown}");
    let start = world.nmem(&["context"]).text();
    assert!(!start.contains("Decisions and lessons that hold here"), "{start}");
}

#[test]
fn a_plan_about_tests_settles_what_it_decides_and_not_its_test_cases() {
    let world = World::new();
    session(&world, "plan-of-tests")
        .ask(
            "Implement the following plan:\n\n# Plan: Tests for the exporter's quotes\n\n## Decisions\n\n- Never start a \
             server without the fixture it was missing before, only the library is called\n\n## Tests\n\n- The quoted field is never cut, only escaped\n",
        )
        .uses("Edit", json!({"file_path": world.project().join("tests/export.rs"), "old_string": "", "new_string": "start_server(fixture); library is called"}), json!({}))
        .close("The exporter has tests for its quotes.")
        .end();
    let decided = world.nmem(&["search", "--kind", "decision", "server quoted field", "--json"]).text();
    assert!(decided.contains("Tests for the exporter's quotes: Never start a server"), "{decided}");
    assert!(!decided.contains("never cut"), "{decided}");
}

#[test]
fn a_plan_that_was_only_written_is_open() {
    let world = World::new();
    let plan = world.home().join(".claude/plans/happy-tree.md");
    session(&world, "only-planned")
        .ask("Plan how the report can be exported as PDF")
        .uses(
            "Write",
            json!({"file_path": plan, "content": "# Export the report as PDF\n\n1. Add a button\n2. Call weasyprint\n"}),
            json!({"type": "create", "filePath": plan}),
        )
        .close("I wrote the plan.")
        .end();
    assert_snapshot!(views(&world), @r#"
    open: Planned, not implemented yet: Export the report as PDF
    --- log
    u1  answered  2 min  Wrote the plan
    --- given
    Last session, 2026-11-20 09:01, 3 min:
    - "Wrote the plan", asked: "Plan how the report can be exported as PDF" (answered, u1)
    Open ends:
    - 2026-11-20: "Planned, not implemented yet: Export the report as PDF" (m1)
    "#);
}
