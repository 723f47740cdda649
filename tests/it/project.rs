//! Identity of projects: clones, worktrees, moves, first remotes, packages, links, and what the user says.

use crate::world::World;
use crate::world::session::{MINUTE, NINE, Session};
use crate::world::transcript::{FOLDER, Lines, SESSION, import};
use serde_json::json;
use std::fs;
use std::path::Path;

/// A session in a folder; returns the project's name.
fn work(world: &World, folder: &str, session: &str) -> String {
    let changes = [("/session_id", json!(session)), ("/cwd", json!(world.folder.join(folder))), ("/prompt_id", json!(session))];
    assert_eq!(world.hook_with("UserPromptSubmit", &changes).text(), "[exit 0]");
    world.sql(&format!("SELECT coalesce((SELECT name || ' ' || id FROM projects WHERE id = project_id), 'none') FROM sessions WHERE agent_session_id = '{session}'"))
}

/// A repository that was made here: its reflog tells its first commit.
fn made_here(world: &World, name: &str, commit: char) {
    let id = commit.to_string().repeat(40);
    world.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
    world.write(&format!("{name}/.git/objects/.keep"), "");
    let zero = "0".repeat(40);
    world
        .write(&format!("{name}/.git/logs/HEAD"), &format!("{zero} {id} Dev <d@example.org> 1 +0000\tcommit (initial): first\n"));
}

#[test]
fn a_repository_stays_one_project_when_it_moves_or_gets_its_first_remote() {
    let world = World::new();
    made_here(&world, "app", 'a');
    made_here(&world, "unlike", 'b');
    assert_eq!(work(&world, "app", "s-one"), "app 1");
    assert_eq!(work(&world, "unlike", "s-two"), "unlike 2");
    fs::rename(world.folder.join("app"), world.folder.join("moved")).unwrap();
    assert_eq!(work(&world, "moved", "s-three"), "app 1");
    world.write("moved/.git/config", "[remote \"origin\"]\n\turl = git@example.org:dev/app.git\n");
    assert_eq!(work(&world, "moved", "s-four"), "app 1");
    world.git_project("clone", "https://example.org/dev/app");
    assert_eq!(work(&world, "clone", "s-five"), "app 1", "the remote is known from now on");
}

#[test]
fn clones_worktrees_submodules_and_links_are_the_project_they_belong_to() {
    let world = World::new();
    made_here(&world, "origin", 'c');
    assert_eq!(work(&world, "origin", "s-one"), "origin 1");
    let absolute = |path: &str| world.folder.join(path).display().to_string();
    world.write("tree/.git", &format!("gitdir: {}\n", absolute("origin/.git/worktrees/tree")));
    world.write("origin/.git/worktrees/tree/HEAD", "ref: refs/heads/x\n");
    world.write("origin/.git/worktrees/tree/commondir", "../..\n");
    world.write("origin/.git/worktrees/tree/gitdir", &format!("{}\n", absolute("tree/.git")));
    assert_eq!(work(&world, "tree", "s-two"), "origin 1");
    world.write("origin/part/.git", "gitdir: ../.git/modules/part\n");
    world.write("origin/.git/modules/part/HEAD", "ref: refs/heads/x\n");
    world.write(
        "origin/.git/modules/part/config",
        "[core]\n\tworktree = ../../../part\n[remote \"origin\"]\n\turl = git@h.example:a/part\n",
    );
    assert_eq!(work(&world, "origin/part", "s-three"), "part 2");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(world.folder.join("origin"), world.folder.join("link")).unwrap();
        fs::create_dir_all(world.folder.join("origin/src")).unwrap();
        assert_eq!(work(&world, "link/src", "s-four"), "origin 1");
    }
    for clone in ["clone-a", "clone-b"] {
        world.git_project(clone, &absolute("origin"));
    }
    let name = work(&world, "clone-a", "s-five");
    assert_eq!(work(&world, "clone-b", "s-six"), name);
}

#[test]
fn a_folder_that_only_claims_to_be_a_project_receives_nothing_of_it() {
    let world = World::new();
    made_here(&world, "victim", 'd');
    let absolute = |path: &str| world.folder.join(path).display().to_string();
    world.git_project("known", "https://example.org/dev/known.git");
    world.write("known/.git/logs/HEAD", &world.read("victim/.git/logs/HEAD").replace('d', "e"));
    assert_eq!(work(&world, "victim", "s-one"), "victim 1");
    assert_eq!(work(&world, "known", "s-two"), "known 2");
    // Its git folder doesn't name it back.
    world.write("claim-a/.git", &format!("gitdir: {}\n", absolute("victim/.git")));
    // A folder of its own that names the victim's as the common one, or as its remote.
    world.write("claim-b/.git/HEAD", "ref: refs/heads/main\n");
    world.write("claim-b/.git/commondir", &format!("{}\n", absolute("victim/.git")));
    world.git_project("claim-c", "../victim");
    // Another URL, and the first commit of a project that has one.
    world.git_project("claim-d", "https://evil.example/x/y.git");
    world.write("claim-d/.git/logs/HEAD", &world.read("known/.git/logs/HEAD"));
    let mut claims = vec!["claim-a", "claim-b", "claim-c", "claim-d"];
    #[cfg(unix)]
    {
        fs::create_dir_all(world.folder.join("claim-e")).unwrap();
        std::os::unix::fs::symlink(absolute("victim/.git"), world.folder.join("claim-e/.git")).unwrap();
        claims.push("claim-e");
    }
    for claim in claims {
        let name = work(&world, claim, &format!("s-{claim}"));
        assert!(name != "victim 1" && name != "known 2", "{claim}: {name}");
    }
}

#[test]
fn home_is_never_a_project_also_under_git_and_a_folder_without_git_is_one() {
    let world = World::new();
    world.write("home/.git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(world.folder.join("home/notes")).unwrap();
    assert_eq!(work(&world, "home", "s-one"), "none");
    assert_eq!(work(&world, "home/notes", "s-two"), "notes 1");
}

#[test]
fn a_package_is_split_off_with_its_sessions_and_merged_back() {
    let world = World::new();
    for folder in ["project/packages/billing/src", "project/packages/web"] {
        fs::create_dir_all(world.folder.join(folder)).unwrap();
    }
    assert_eq!(work(&world, "project", "s-root"), "project 1");
    assert_eq!(work(&world, "project/packages/billing/src", "s-billing"), "project 1");
    insta::assert_snapshot!(world.nmem(&["project", "split", "packages/billing"]).text(), @"
    billing is now a project of its own, with everything below $WORLD/project/packages/billing: 1 session of project moved.
    [exit 0]
    ");
    assert_eq!(work(&world, "project/packages/billing", "s-later"), "billing 2");
    assert_eq!(work(&world, "project/packages/web", "s-web"), "project 1");
    assert_eq!(world.sql("SELECT group_concat(project_id, '') FROM (SELECT project_id FROM sessions ORDER BY id)"), "1221");
    // Search is narrowed inside the index: what moved is found in its new project, and there alone.
    let found = |folder: &str| {
        let folder = world.folder.join(folder).display().to_string();
        world.nmem(&["search", "SCENARIO", "--json", "--project", &folder]).stdout.lines().count()
    };
    let indexed = |project: i64| {
        world.count(&format!(
            "SELECT count(*) FROM passage_index WHERE passage_index MATCH 'scenario AND scope : project{project}'"
        ))
    };
    assert_eq!((found("project"), found("project/packages/billing/src")), (1, 1), "prompts of the same words are shown once");
    assert_eq!((indexed(1), indexed(2)), (2, 2));
    insta::assert_snapshot!(world.nmem(&["project", "list"]).text(), @"
      id  project  sessions, last activity, origin
       2  billing  2 sessions, last just now https://example.org/dev/project.git
       1  project  2 sessions, last just now https://example.org/dev/project.git
    [exit 0]
    ");
    insta::assert_snapshot!(world.nmem(&["project", "merge", "billing", "1"]).text(), @"
    billing is now part of project: 2 sessions moved. Its folders belong to project from now on.
    [exit 0]
    ");
    assert_eq!((found("project"), found("project/packages/billing")), (1, 1));
    assert_eq!((indexed(1), indexed(2)), (4, 0));
    assert_eq!(work(&world, "project/packages/billing", "s-last"), "project 1");
}

#[test]
fn names_are_given_by_hand_and_mistakes_are_reported() {
    let world = World::new();
    assert_eq!(world.nmem(&["project", "list"]).text(), "No project is recorded yet.\n[exit 0]");
    work(&world, "project", "s-one");
    insta::assert_snapshot!(world.nmem(&["project", "rename", "shop"]).text(), @"
    project is now called shop.
    [exit 0]
    ");
    assert_eq!(work(&world, "project", "s-two"), "shop 1");
    insta::assert_snapshot!(world.nmem(&["project", "rename", ""]).text(), @"
    --- stderr
    nmem: not a valid name: use 1 to 200 characters on one line, and not just a number
      choose another, such as shop
    [exit 2]
    ");
    insta::assert_snapshot!(world.nmem(&["project", "merge", "shop", "shop"]).text(), @"
    --- stderr
    nmem: both are the same project
      `nmem project list` prints numbers
    [exit 2]
    ");
    insta::assert_snapshot!(world.nmem(&["project", "merge", "nowhere", "shop"]).text(), @"
    --- stderr
    nmem: there is no project nowhere
      `nmem project list` lists all projects
    [exit 1]
    ");
    let elsewhere = Path::new("/").display().to_string();
    insta::assert_snapshot!(world.nmem(&["project", "rename", "x", "--project", &elsewhere]).text(), @"
    --- stderr
    nmem: nothing is recorded for this folder yet
      `nmem project list` lists all projects
    [exit 1]
    ");
    let list = world.nmem(&["project", "list", "--json"]).json();
    assert_eq!((list["name"].as_str(), list["sessions"].as_i64()), (Some("shop"), Some(2)));
    assert_eq!(list["keys"], json!(["repo:example.org/dev/project"]));
}

/// Found in the repository itself at a session's end, once a day.
#[test]
fn what_a_repository_is_is_found_in_itself() {
    let mut world = World::new();
    world.set("NMEM_NOW", "1795165200000");
    made_here(&world, "shop", 'd');
    world.write("shop/package.json", "{\"dependencies\": {\"next\": \"15\", \"react\": \"19\"}}");
    world.write("shop/src/a.tsx", "");
    let end = |world: &World, session: &str| {
        work(world, "shop", session);
        let request = json!({"agent_session_id": session, "cwd": world.folder.join("shop")});
        assert_eq!(world.feed(&["rad", "sessions/complete"], request.to_string().as_bytes()).json()["status"], "completed");
        world.nmem(&["project", "list", "--json"]).json()["about"].clone()
    };
    let found = json!({"type": "web application", "languages": ["TypeScript"], "frameworks": ["Next.js", "React"], "last_indexed": 1_795_165_200_000_i64});
    assert_eq!(end(&world, "s-one"), found);
    assert!(world.nmem(&["project", "list"]).stdout.contains("web application in TypeScript with Next.js, React"));
    world.write("shop/package.json", "{}");
    assert_eq!(end(&world, "s-two"), found, "it is looked at once a day");
    world.set("NMEM_NOW", "1795265200000");
    assert_eq!(end(&world, "s-three")["frameworks"], json!([]));
    let related = json!({"taskDescription": "x", "repoId": "shop"}).to_string();
    let received = world.feed(&["rad", "knowledge/related"], related.as_bytes()).json();
    assert_eq!(
        (received["repo"]["mainLanguages"][0].as_str(), received["repo"]["projectType"].as_str()),
        (Some("TypeScript"), Some("library"))
    );
}

/// A folder with three repositories, and a session that starts above them: two requests about the api, one about the web.
fn above_its_repositories(world: &World) -> std::path::PathBuf {
    let work = world.folder.join("work");
    for name in ["api", "web", "docs"] {
        world.git_project(&format!("work/{name}"), &format!("git@github.com:Team/{name}.git"));
    }
    let mut session = Session::new(world, "above-its-repositories").within(&work, NINE);
    session.starts("startup");
    session.ask("In the api: use Redis for the queue, not Postgres.").edit_at(&work.join("api/src/queue.rs"));
    session.bash("cd api && cargo test queue", "test result: ok. 9 passed").close("The queue of the api uses Redis now.");
    session.at += 200 * MINUTE;
    session.ask("Now the buttons of the web page: make them green.").edit_at(&work.join("web/buttons.css"));
    session.bash("npm --prefix web test", "ok").close("The buttons are green.").end();
    work
}

fn in_folder(world: &World, folder: &Path, args: &[&str]) -> String {
    let mut command = world.command(args);
    world.finish(command.current_dir(folder).spawn().unwrap()).text()
}

#[test]
fn work_belongs_to_the_repository_that_it_is_in() {
    let world = World::new();
    let work = above_its_repositories(&world);
    let units = world.sql("SELECT p.name, u.title FROM work_units u JOIN projects p ON p.id = u.project_id ORDER BY u.id");
    assert_eq!(units.lines().map(|line| line.split('|').next().unwrap()).collect::<Vec<_>>(), ["api", "web"], "{units}");
    assert_eq!(world.sql("SELECT path FROM tool_uses WHERE kind = 'edit' ORDER BY id"), "src/queue.rs\nbuttons.css");
    let mut seen = String::new();
    for (folder, knows) in [("api", [true, false]), ("web", [false, true]), ("docs", [false, false]), ("", [true, true])] {
        let folder = work.join(folder);
        let id = format!("start-in-{}", folder.display());
        let start = Session::new(&world, &id).within(&folder, world.now).starts("startup");
        let found = in_folder(&world, &folder, &["search", "queue buttons"]);
        let context = in_folder(&world, &folder, &["context"]);
        for text in [&start, &found, &context] {
            assert_eq!([text.contains("Redis"), text.contains("green")], knows, "{}: {text}", folder.display());
        }
        let ran = in_folder(&world, &folder, &["how", "cargo test"]);
        assert_eq!(ran.contains("cargo test queue"), knows[0], "{ran}");
        seen += &format!("{start}\n");
    }
    assert!(seen.contains("record of earlier work in the repository in `api`"), "{seen}");
    // A file of another repository, before it is edited.
    let mut session = Session::new(&world, "in-the-web").within(&work.join("web"), world.now);
    session.ask("Look at the queue, too");
    let before = session.is_about_to("Edit", &work.join("api/src/queue.rs").display().to_string());
    assert!(before.contains("Redis"), "{before}");
    // A resumed session works on in the third.
    let mut session = Session::again(&world, "above-its-repositories").within(&work, world.now);
    session.ask("Write the manual of the exporter").edit_at(&work.join("docs/manual.md")).close("The manual is written.");
    assert!(in_folder(&world, &work.join("docs"), &["search", "manual"]).contains("manual"));
}

#[test]
fn what_is_said_later_about_work_in_another_repository_belongs_there_too() {
    let world = World::new();
    let folder = |name: &str| world.git_project(name, &format!("git@github.com:Team/{name}.git"));
    let (api, web) = (folder("api"), folder("web"));
    let mut session = Session::new(&world, "in-the-api").within(&api, NINE);
    session.ask("Make the queue of the web page faster").edit_at(&web.join("queue.js")).close("It uses Falcon now.");
    session.ask("No, use Kestrel for that").edit_at(&web.join("queue.js")).close("It uses Kestrel now.").end();
    let places = world.sql("SELECT DISTINCT p.name FROM prompts s JOIN projects p ON p.id = s.project_id");
    assert_eq!(places, "web");
    assert_eq!(world.count("SELECT count(*) FROM prompts WHERE project_id IS NULL"), 0);
    let log = [&api, &web].map(|folder| in_folder(&world, folder, &["log"]));
    assert!(!log[0].contains("Kestrel") && !log[0].contains("queue"), "{}", log[0]);
    world.nmem(&["forget", "--project", &web.display().to_string(), "--yes"]);
    assert_eq!(world.count("SELECT count(*) FROM prompts"), 0);
}

#[test]
fn a_linked_worktree_does_not_become_the_place_of_its_repository() {
    let world = World::new();
    let app = world.git_project("work/app", "git@github.com:Team/app.git");
    work(&world, "work/app", "s-one");
    let git = app.join(".git/worktrees/fix");
    world.write("elsewhere/fix/.git", &format!("gitdir: {}\n", git.display()));
    world.write("work/app/.git/worktrees/fix/HEAD", "ref: refs/heads/fix\n");
    world.write("work/app/.git/worktrees/fix/commondir", "../..\n");
    let back = world.folder.join("elsewhere/fix/.git").display().to_string();
    world.write("work/app/.git/worktrees/fix/gitdir", &format!("{back}\n"));
    assert_eq!(work(&world, "elsewhere/fix", "s-two"), "app 1");
    assert_eq!(world.sql("SELECT root FROM projects"), "$WORLD/work/app");
}

#[test]
fn work_in_a_repository_where_recording_is_off_is_not_recorded_from_elsewhere_either() {
    let world = World::new();
    let work = world.folder.join("work");
    for name in ["open", "paused", "forbidden"] {
        world.git_project(&format!("work/{name}"), &format!("git@github.com:Team/{name}.git"));
    }
    world.write("work/forbidden/.nmem.toml", "enabled = false\n");
    let paused = in_folder(&world, &work.join("paused"), &["off", "--project"]);
    assert!(paused.contains("[exit 0]"), "{paused}");
    let mut session = Session::new(&world, "above").within(&work, world.now);
    session.ask("Change the greeting everywhere");
    for name in ["open", "paused", "forbidden"] {
        session.edit_at(&work.join(name).join("greet.py")).bash(&format!("cd {name} && make test"), "ok");
    }
    session.close("The greeting is changed.").end();
    let stored = world.sql("SELECT p.name, t.kind FROM tool_uses t JOIN projects p ON p.id = t.project_id ORDER BY t.id");
    assert_eq!(stored, "open|edit\nopen|command");
    assert_eq!(world.count("SELECT count(*) FROM tool_uses"), 2);
}

#[test]
fn what_was_misfiled_can_be_moved_and_what_has_no_project_is_listed() {
    let world = World::new();
    let work = above_its_repositories(&world);
    let mut session = Session::new(&world, "in-the-home-folder").within(&world.home(), NINE);
    session.ask("Rotate the gateway's certificate").bash("certbot renew", "ok").close("The certificate is renewed.").end();
    let listed = world.nmem(&["project", "list"]).text();
    assert!(listed.contains("1 session without a project; `nmem project move ID PROJECT` gives one"), "{listed}");
    let id = world.sql("SELECT 's' || id FROM sessions WHERE agent_session_id = 'in-the-home-folder'");
    assert!(listed.contains(&id), "{listed}");
    let api = work.join("api");
    let moved = world.nmem(&["project", "move", &id, "api"]).text();
    assert!(moved.contains("belongs to api now"), "{moved}");
    assert!(in_folder(&world, &api, &["search", "certificate"]).contains("certificate"));
    let unit = world.sql("SELECT 'u' || u.id FROM work_units u JOIN projects p ON p.id = u.project_id WHERE p.name = 'web'");
    assert_eq!(world.nmem(&["project", "move", &unit, "api"]).code, Some(0));
    for (folder, knows) in [("api", true), ("web", false)] {
        let found = in_folder(&world, &work.join(folder), &["search", "buttons green"]);
        assert_eq!(found.contains("make them green"), knows, "{folder}: {found}");
    }
    let doctor = world.nmem(&["doctor"]).text();
    assert!(!doctor.contains("problem: search") && !doctor.contains("problem: database"), "{doctor}");
    let wrong = world.nmem(&["project", "move", "u999", "api"]).text();
    assert!(wrong.contains("nothing has the id u999"), "{wrong}");
}

#[test]
fn a_worktree_that_is_gone_joins_its_repository_after_an_import() {
    let world = World::new();
    let app = world.git_project("app", "git@github.com:Team/app.git");
    work(&world, "app", "s-one");
    let known = world.folder.join("gone/fix").display().to_string();
    world.write("app/.git/worktrees/fix/gitdir", &format!("{known}/.git\n"));
    let by_layout = world.home().join(".cursor/worktrees/app/x1").display().to_string();
    let folders = [
        known,
        by_layout,
        app.join(".claude/worktrees/brave-fox").display().to_string(),
        world.folder.join("else").display().to_string(),
    ];
    for (n, cwd) in folders.iter().enumerate() {
        let id = SESSION.replace("5a4b", &n.to_string().repeat(4));
        let mut lines = Lines { cwd: cwd.clone(), number: 100 * n, ..Lines::new(&world) };
        lines.user("Fix the login").says("Fixed.");
        world.write(&format!("{FOLDER}/{id}.jsonl"), &lines.text.replace(SESSION, &id));
    }
    let report = import(&world, &[]);
    let mut joined: Vec<&str> = report["joined"].as_array().unwrap().iter().map(|one| one["folder"].as_str().unwrap()).collect();
    joined.sort_unstable();
    let mut expected: Vec<&str> = folders[..2].iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(joined, expected, "{report}");
    let names =
        world.sql("SELECT p.name, count(*) FROM sessions s JOIN projects p ON p.id = s.project_id GROUP BY p.name ORDER BY 1");
    assert_eq!(names, "app|4\nelse|1");
}
