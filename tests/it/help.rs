//! The help of every command is one snapshot: no flag changes unseen.

use crate::world::World;

/// One snapshot a command, so that a change of one text is a change of one file.
#[test]
fn the_help_of_every_command() {
    let world = World::new();
    insta::assert_snapshot!("nmem", world.nmem(&["--help"]).text());
    for command in nmem::cli::definition().get_subcommands() {
        let name = command.get_name();
        insta::assert_snapshot!(format!("nmem-{name}"), world.nmem(&[name, "--help"]).text());
    }
}

#[test]
fn wrong_usage_exits_with_2_and_says_what_to_do() {
    let world = World::new();
    insta::assert_snapshot!(world.nmem(&["serch", "x"]).text(), @"
    --- stderr
    error: unrecognized subcommand 'serch'

      tip: some similar subcommands exist: 'serve', 'search'

    Usage: nmem [OPTIONS] <COMMAND>

    For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(world.nmem(&["search", "x", "--since", "soon"]).text(), @"
    --- stderr
    nmem: nothing is recorded for project yet; --all searches all projects
    [exit 0]
    ");
    assert_eq!(world.nmem(&["search", "--limit", "many"]).code, Some(2));
    assert_eq!(world.nmem(&["record", "--no-such-flag"]).text(), "[exit 0]", "a hook never fails");
}

/// Habits from git: `nmem` alone, `help`, `-n`, `-5`, `--oneline`.
#[test]
fn what_people_type_without_reading_works() {
    let world = World::new();
    insta::assert_snapshot!(world.nmem(&[]).text(), @"
    nmem  no agent has nmem's hooks
    project: nothing is recorded yet
    next: `nmem install --found` adds the hooks, `nmem demo` shows what they do; `nmem help` lists all commands
    [exit 0]
    ");
    world.nmem(&["install", "claude-code"]);
    world.silently(&["UserPromptSubmit", "PostToolUse-Edit", "Stop"]);
    insta::assert_snapshot!(world.nmem(&[]).text(), @"
    nmem  recording claude-code
    project: 1 session, 1 memory
    next: `nmem context` shows what the next session gets, `nmem search WORDS` finds more; `nmem help` lists all commands
    [exit 0]
    ");
    assert_eq!(world.nmem(&["help", "search"]).text(), world.nmem(&["search", "--help"]).text());
    assert_eq!(world.nmem(&["help"]).text(), world.nmem(&["--help"]).text());
    assert_eq!(world.nmem(&["log", "-1"]).text(), world.nmem(&["log", "--limit", "1"]).text());
    assert_eq!(world.nmem(&["units", "-n", "1"]).text(), world.nmem(&["units", "--limit", "1"]).text());
    let lines = world.nmem(&["units", "--oneline"]).stdout;
    assert!(lines.lines().count() == 1 && lines.starts_with("u1  "), "{lines}");
    assert!(
        world.nmem(&["how", "cargo", "-n", "1"]).code == Some(0)
            && world.nmem(&["error", "-n", "1", "no such file here"]).code == Some(0)
    );
}

/// A shell loads the script and completes a command's name.
#[test]
#[cfg(unix)]
fn bash_completes_commands() {
    let world = World::new();
    let script =
        "source <(\"$1\" completions bash); COMP_WORDS=(nmem sea); COMP_CWORD=1; _nmem nmem sea nmem; echo \"${COMPREPLY[*]}\"";
    let bash = world.finish(world.program("bash", &["-c", script, "bash", env!("CARGO_BIN_EXE_nmem")]).spawn().unwrap());
    assert_eq!(bash.text(), "search\n[exit 0]");
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        assert!(world.nmem(&["completions", shell]).stdout.contains("nmem"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let world = World::new();
    let page = world.nmem(&["man", "search"]);
    assert!(page.stdout.contains(".TH nmem-search 1") && page.stdout.contains("nmem search"), "{}", page.text());
    assert!(world.nmem(&["man"]).stdout.contains("nmem\\-search(1)"));
    let pages = world.folder.join("man1");
    assert_eq!(world.nmem(&["man", "--dir", &pages.display().to_string()]).code, Some(0));
    for command in nmem::cli::definition().get_subcommands().filter(|command| !command.is_hide_set()) {
        let page = pages.join(format!("nmem-{}.1", command.get_name()));
        assert!(page.is_file(), "{}", page.display());
    }
    assert!(!pages.join("nmem-record.1").exists(), "hidden commands have no page");
    assert!(world.nmem(&["man", "serch"]).text().contains("nmem has no command serch"));
}
