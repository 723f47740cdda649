//! Hooks in somebody's own settings file: added once, other people's untouched, undone byte for byte.

use crate::world::World;
use std::fs;

const FULL: &str = r#"{
    "model":"opus",
  "hooks": {
        "PostToolUse": [ {"matcher": "Edit|Write", "hooks": [ {"type": "command", "command": "prettier --write"} ]} ],
	"Notification":[{"hooks":[{"type":"command","command":"say \"done\""}]}]
  },

  "permissions": {"allow": ["Bash(git *)"], "deny": []}}"#;

fn settings(world: &World) -> Option<String> {
    fs::read_to_string(world.home().join(".claude/settings.json")).ok()
}

#[test]
fn hooks_in_another_folder_are_found_and_removed_without_its_variable() {
    let mut world = World::new();
    let (likely, unlikely) = (world.home().join(".claude-work"), world.folder.join("elsewhere"));
    for folder in [&likely, &unlikely] {
        fs::create_dir_all(folder).unwrap();
        world.set("CLAUDE_CONFIG_DIR", &folder.display().to_string());
        assert_eq!(world.nmem(&["install", "claude-code"]).code, Some(0));
    }
    // Of another installation: no variable is known.
    fs::create_dir_all(world.home().join(".claude-old")).unwrap();
    fs::copy(likely.join("settings.json"), world.home().join(".claude-old/settings.json")).unwrap();
    world.set("CLAUDE_CONFIG_DIR", "");
    let status = world.nmem(&["status"]).text();
    assert!(!status.contains("not installed") && status.contains(".claude-work") && status.contains("elsewhere"), "{status}");
    let removed = world.nmem(&["uninstall"]).text();
    for folder in [likely, unlikely, world.home().join(".claude-old")] {
        assert!(
            !folder.join("settings.json").exists() && removed.contains(&folder.file_name().unwrap().to_string_lossy()[..]),
            "{removed}"
        );
    }
    assert!(world.nmem(&["uninstall"]).text().contains("not installed for any agent"));
}

#[cfg(unix)]
#[test]
fn hooks_of_a_program_that_is_gone_do_nothing() {
    let world = World::new();
    let program = world.folder.join("my tools/nmem");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    // A copy may still be open for writing in a process that another test has just forked.
    let built = env!("CARGO_BIN_EXE_nmem");
    fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(|_| ())).unwrap();
    for platform in ["claude-code", "codex", "gemini", "cursor", "copilot-cli"] {
        let install =
            std::process::Command::new(&program).args(["install", platform]).env_clear().env("HOME", world.home()).output();
        assert!(install.unwrap().status.success(), "{platform}");
    }
    let files = [
        ".claude/settings.json",
        ".codex/hooks.json",
        ".gemini/extensions/nmem/hooks/hooks.json",
        ".cursor/hooks.json",
        ".copilot/hooks/nmem.json",
    ];
    let run = |file: &str| {
        let text = fs::read_to_string(world.home().join(file)).unwrap();
        let commands =
            text.lines().filter_map(|line| line.trim().strip_prefix("\"command\": ").or(line.trim().strip_prefix("\"bash\": ")));
        let commands: Vec<String> = commands.map(|c| serde_json::from_str(c.trim_end_matches(',')).unwrap()).collect();
        assert!(commands.len() > 4, "{file}: {text}");
        for command in commands {
            let out =
                std::process::Command::new("sh").args(["-c", &command]).env_clear().env("HOME", world.home()).output().unwrap();
            assert!(out.status.success() && out.stderr.is_empty(), "{file}: {command}: {out:?}");
        }
    };
    files.iter().for_each(|file| run(file));
    fs::remove_file(&program).unwrap();
    files.iter().for_each(|file| run(file));
}

#[test]
fn an_empty_home_gets_a_file_and_loses_it_again() {
    let world = World::new();
    insta::assert_snapshot!(world.nmem(&["install", "claude-code"]).text().replace(env!("CARGO_BIN_EXE_nmem"), "$NMEM"), @"
    nmem is installed for claude-code: 10 events in $WORLD/home/.claude/settings.json
    From the next session on, prompts, tool calls and closing messages are recorded in $WORLD/home/.local/share/nmem/nmem.db, with secrets redacted. `nmem off` pauses it, `nmem uninstall` removes the hooks.
    [exit 0]
    ");
    let guard = if cfg!(windows) { "" } else { "[ ! -x nmem ] || exec " };
    let written = settings(&world).unwrap().replace(env!("CARGO_BIN_EXE_nmem"), "nmem").replace(guard, "");
    let ready = include_str!("../../hooks/claude-code/settings.json").replace(" || true", "");
    assert_eq!(written, ready, "the ready configuration, with the whole path");
    assert!(world.nmem(&["install", "claude-code"]).stdout.contains("already"));
    world.nmem(&["uninstall"]);
    assert_eq!(settings(&world), None);
}

#[test]
fn a_file_full_of_other_peoples_hooks_comes_back_byte_for_byte() {
    let world = World::new();
    world.write("home/.claude/settings.json", FULL);
    world.nmem(&["install", "claude-code"]);
    let with = settings(&world).unwrap();
    assert!(with.contains("prettier --write") && with.contains("nmem context"));
    world.nmem(&["install", "claude-code"]);
    assert_eq!(settings(&world).unwrap(), with, "twice is once");
    assert_eq!(world.read("home/.claude/settings.json.before-nmem"), FULL);
    world.nmem(&["uninstall"]);
    assert_eq!(settings(&world).unwrap(), FULL);
}

#[test]
fn what_the_user_changed_meanwhile_stays() {
    let world = World::new();
    world.write("home/.claude/settings.json", FULL);
    world.nmem(&["install", "claude-code"]);
    let changed = settings(&world).unwrap().replace("\"opus\"", "\"sonnet\"");
    world.write("home/.claude/settings.json", &changed);
    world.nmem(&["uninstall"]);
    assert_eq!(settings(&world).unwrap(), FULL.replace("\"opus\"", "\"sonnet\""));
}

#[test]
fn a_dry_run_shows_the_change_and_makes_none() {
    let world = World::new();
    world.write("home/.claude/settings.json", FULL);
    let shown = world.nmem(&["install", "claude-code", "--dry-run"]).stdout;
    assert!(shown.contains("+ ") && shown.contains("nmem record"), "{shown}");
    assert_eq!(settings(&world).unwrap(), FULL);
}

#[test]
fn a_broken_settings_file_is_left_alone_with_the_reason() {
    let world = World::new();
    world.write("home/.claude/settings.json", "{\"hooks\": [}");
    insta::assert_snapshot!(world.nmem(&["install", "claude-code"]).text(), @"
    --- stderr
    nmem: $WORLD/home/.claude/settings.json was left alone: it is not JSON: expected value at line 1 column 12
      fix the file, then run the command again
    [exit 1]
    ");
    assert_eq!(settings(&world).unwrap(), "{\"hooks\": [}");
}

#[test]
fn a_project_gets_the_bare_name_and_the_user_the_whole_path() {
    let world = World::new();
    world.nmem(&["install", "claude-code", "--scope", "project"]);
    let text = world.read("project/.claude/settings.json");
    assert_eq!(text, include_str!("../../hooks/claude-code/settings.json"), "the ready configuration is what install writes");
    assert!(text.contains("\"nmem context\"") && !text.contains("/nmem"), "{text}");
    world.nmem(&["uninstall", "--scope", "project"]);
    assert!(!world.project().join(".claude/settings.json").exists());
}

#[cfg(unix)]
#[test]
fn private_settings_stay_private_and_a_link_stays_a_link() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.write("dotfiles/claude.json", FULL);
    let real = world.folder.join("dotfiles/claude.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, world.home().join(".claude/settings.json")).unwrap();
    world.nmem(&["install", "claude-code"]);
    assert!(fs::read_to_string(&real).unwrap().contains("nmem context"));
    for path in ["dotfiles/claude.json", "home/.claude/settings.json.before-nmem"] {
        assert_eq!(fs::metadata(world.folder.join(path)).unwrap().permissions().mode() & 0o777, 0o600, "{path}");
    }
    world.nmem(&["uninstall"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), FULL);
    assert!(fs::symlink_metadata(world.home().join(".claude/settings.json")).unwrap().is_symlink());
}

#[test]
fn a_file_that_can_no_longer_be_read_is_said_to_be() {
    let world = World::new();
    world.nmem(&["install", "claude-code"]);
    let text = settings(&world).unwrap();
    world.write("home/.claude/settings.json", &text.replace("{\n  \"hooks\"", "{\n  // mine\n  \"hooks\""));
    let output = world.nmem(&["uninstall"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("was left alone: it is not JSON"), "{}", output.text());
}

#[test]
fn a_folder_that_does_not_exist_is_no_project() {
    let world = World::new();
    let output = world.nmem(&["install", "claude-code", "--scope", "project", "--project", "nowhere"]);
    assert_eq!(output.code, Some(1));
    assert!(!world.project().join("nowhere").exists());
    assert_eq!(world.nmem(&["install", "claude-code", "--project", "."]).code, Some(2));
    assert_eq!(settings(&world), None);
}

#[test]
fn hooks_in_both_scopes_are_said_to_tell_everything_twice() {
    let world = World::new();
    assert_eq!(world.nmem(&["install", "claude-code"]).stderr, "");
    let output = world.nmem(&["install", "claude-code", "--scope", "project"]);
    assert!(output.stderr.contains("every hook would run twice"), "{}", output.text());
}

const CONFIG: &str = "home/.config/nmem/config.toml";

#[cfg(unix)]
#[test]
fn a_person_is_asked_once_whether_a_model_and_the_agent_may_write() {
    let world = World::new();
    let first = world.typed_with(&["install", "claude-code"], "perhaps\ny\nn\n");
    assert_eq!(first.code, Some(0), "{}", first.text());
    assert_eq!(first.stderr.matches("Let each session's own agent write its memories? [y/N]").count(), 2, "perhaps is no answer");
    assert!(first.stderr.contains("sends them to the provider that the session went to"), "{}", first.stderr);
    assert_eq!(world.read(CONFIG), "[llm]\nprovider = \"agent\"\n\n[agent_notes]\nask = false\n");
    let status = world.nmem(&["status"]).text();
    assert!(status.contains("llm.provider = \"agent\"  config file"), "{status}");
    // Neither a yes nor a no is asked again.
    let second = world.typed_with(&["install", "codex"], "y\ny\n");
    assert!(!second.stderr.contains("[y/N]"), "{}", second.text());
    insta::assert_snapshot!(world.nmem(&["install", "--model", "none"]).text(), @"
    No model is asked: rules alone write memories ($WORLD/home/.config/nmem/config.toml).
    [exit 0]
    ");
    assert_eq!(world.read(CONFIG), "[llm]\nprovider = \"none\"\n\n[agent_notes]\nask = false\n");
}

#[cfg(unix)]
#[test]
fn enter_is_a_no_the_end_of_the_input_is_no_answer_and_a_script_is_not_asked() {
    let world = World::new();
    let none = world.nmem(&["install", "claude-code"]);
    assert!(!none.stderr.contains("[y/N]") && !world.folder.join(CONFIG).exists(), "{}", none.text());
    let world = World::new();
    let enter = world.typed_with(&["install", "claude-code"], "\n\n");
    assert_eq!(world.read(CONFIG), "[llm]\nprovider = \"none\"\n\n[agent_notes]\nask = false\n", "{}", enter.text());
    // An agent whose program cannot answer at a Stop: only its notes are asked about.
    let world = World::new();
    let cursor = world.typed_with(&["install", "cursor"], "y\n");
    assert!(!cursor.stderr.contains("write its memories?"), "{}", cursor.text());
    assert_eq!(world.read(CONFIG), "[agent_notes]\nask = true\n");
}

#[test]
fn a_model_can_be_named_without_a_terminal() {
    let world = World::new();
    insta::assert_snapshot!(world.nmem(&["install", "--model", "agent", "--dry-run"]).text(), @r#"
    $WORLD/home/.config/nmem/config.toml would get `provider = "agent"` in [llm]
    [exit 0]
    "#);
    insta::assert_snapshot!(world.nmem(&["install", "--model", "gemini"]).text(), @"
    `nmem distil` asks the gemini program ($WORLD/home/.config/nmem/config.toml).
    [exit 0]
    ");
    let wrong = world.nmem(&["install", "--model", "gpt"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.text());
    assert!(wrong.stderr.contains("one of: none, agent, anthropic"), "{}", wrong.stderr);
    world.write(CONFIG, "llm = { provider = \"none\" }\n");
    assert!(world.nmem(&["install", "--model", "agent"]).stderr.contains("was left alone"));
    assert_eq!(world.read(CONFIG), "llm = { provider = \"none\" }\n");
}
