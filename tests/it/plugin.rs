//! The Claude Code plugin: its wrapper finds the program, says once where it is missing, and never gets in the way.
#![cfg(unix)]

use crate::world::{Output, World};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

const PLUGIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/plugin");

/// Runs the command line of a hook of the plugin, as Claude Code does.
fn hook(world: &World, event: &str, payload: &Value) -> Output {
    run_hook(world, event, payload, |text| text, |_| {})
}

/// The same, where the agent changes the text or the environment.
fn run_hook(
    world: &World,
    event: &str,
    payload: &Value,
    written: fn(String) -> String,
    environment: impl Fn(&mut Command),
) -> Output {
    let hooks: Value = serde_json::from_str(&fs::read_to_string(format!("{PLUGIN}/hooks/hooks.json")).unwrap()).unwrap();
    let command = hooks["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap_or_else(|| panic!("no hook for {event}"));
    let mut shell = world.program("sh", &["-c", &written(command.to_string())]);
    shell.env("CLAUDE_PLUGIN_ROOT", PLUGIN).env("CLAUDE_PROJECT_DIR", world.project());
    environment(&mut shell);
    let mut child = shell.stdin(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(payload.to_string().as_bytes());
    world.finish(child)
}

fn start(world: &World) -> Output {
    let payload = json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": "s", "cwd": world.project()});
    hook(world, "SessionStart", &payload)
}

fn prompt(world: &World) -> Output {
    let payload = json!({"hook_event_name": "UserPromptSubmit", "prompt": "Fix it", "session_id": "s", "cwd": world.project(), "prompt_id": "p"});
    hook(world, "UserPromptSubmit", &payload)
}

/// Puts a program named nmem in a place where it is looked for.
fn install(world: &World, path: &str, text: Option<&str>) {
    use std::os::unix::fs::PermissionsExt;
    let target = world.folder.join(path);
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    match text {
        Some(text) => {
            fs::write(&target, text).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        }
        None => std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nmem"), &target).unwrap(),
    }
}

#[test]
fn without_the_program_one_line_says_how_to_get_it_once() {
    let world = World::new();
    assert_eq!(prompt(&world).text(), "[exit 0]");
    let said = start(&world);
    assert!(
        said.code == Some(0) && said.json()["systemMessage"].as_str().unwrap().contains("npm install -g nmem"),
        "{}",
        said.text()
    );
    assert_eq!(start(&world).text(), "[exit 0]");
}

#[test]
fn the_program_is_found_on_path_and_in_the_usual_places() {
    for path in ["bin/nmem", "home/.local/bin/nmem", "home/.cargo/bin/nmem"] {
        let mut world = World::new();
        install(&world, path, None);
        if path.starts_with("bin") {
            world.set("PATH", &format!("{}:/usr/bin:/bin", world.folder.join("bin").display()));
        }
        start(&world);
        assert_eq!(prompt(&world).text(), "[exit 0]");
        assert_eq!(world.sql("SELECT text FROM prompts"), "Fix it", "{path}");
    }
}

/// A program of somebody else that is also called nmem.
const FOREIGN: &str =
    "#!/bin/sh\n[ \"$1\" = --version ] && echo 'nmem 3.1.0' && exit 0\n: >>\"$0.was-started\"\ncat >/dev/null\n";

#[test]
fn a_foreign_program_of_that_name_gets_no_event() {
    let mut world = World::new();
    install(&world, "foreign/nmem", Some(FOREIGN));
    install(&world, "bin/nmem", None);
    let root = world.folder.clone();
    let folder = |name: &str| root.join(name).display().to_string();
    let path = format!("{}:{}:/usr/bin:/bin", folder("foreign"), folder("bin"));
    world.set("PATH", &path);
    prompt(&world);
    assert_eq!(world.sql("SELECT text FROM prompts"), "Fix it");
    assert!(!world.folder.join("foreign/nmem.was-started").exists());
    // It is remembered: its version is not asked for again.
    assert_eq!(world.read("home/.cache/nmem/plugin-program").trim(), folder("bin/nmem"));
    fs::remove_file(world.folder.join("bin/nmem")).unwrap();
    install(&world, "home/.local/bin/nmem", None);
    start(&world);
    assert_eq!(world.read("home/.cache/nmem/plugin-program").trim(), folder("home/.local/bin/nmem"), "it moved");

    let refused = world.nmem(&["install", "claude-code", "--scope", "project"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("is a program of somebody else"), "{}", refused.text());
    let installed = world.nmem(&["install", "claude-code"]);
    assert!(installed.code == Some(0) && installed.stderr.contains("the first nmem on PATH"), "{}", installed.text());
    let doctor = world.nmem(&["doctor"]).stdout.replace('\n', " ");
    assert!(doctor.contains("foreign/nmem, the first on PATH, is a program of somebody else"), "{doctor}");
}

#[test]
fn npms_launcher_is_passed_by() {
    for inside in ["nmem/node_modules/@nmem", "@nmem"] {
        let mut world = World::new();
        let launcher = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'nmem 0.1.0 (nmem-dev)' && exit 0\nexit 7\n";
        install(&world, "lib/node_modules/nmem/bin/nmem.js", Some(launcher));
        install(&world, &format!("lib/node_modules/{inside}/linux-x64/bin/nmem"), None);
        fs::create_dir_all(world.folder.join("bin")).unwrap();
        std::os::unix::fs::symlink("../lib/node_modules/nmem/bin/nmem.js", world.folder.join("bin/nmem")).unwrap();
        world.set("PATH", &format!("{}:/usr/bin:/bin", world.folder.join("bin").display()));
        prompt(&world);
        assert_eq!(world.sql("SELECT text FROM prompts"), "Fix it", "{inside}");
    }
}

#[test]
fn where_the_settings_have_the_hooks_the_plugin_is_silent() {
    for (scope, file) in [("user", "home/.claude/settings.json"), ("project", "project/.claude/settings.json")] {
        let world = World::new();
        install(&world, "home/.local/bin/nmem", None);
        world.nmem(&["install", "claude-code", "--scope", scope]);
        assert!(world.read(file).contains("record"));
        assert_eq!((start(&world).text(), prompt(&world).text()), ("[exit 0]".into(), "[exit 0]".into()));
        assert!(!world.db().exists(), "{scope}: the hooks of the settings record");
        world.nmem(&["uninstall", "claude-code", "--scope", scope]);
        prompt(&world);
        assert_eq!(world.sql("SELECT text FROM prompts"), "Fix it", "{scope}");
    }
}

#[test]
fn a_host_that_reads_no_settings_of_claude_code_records_by_the_plugin() {
    for variable in ["QWEN_PROJECT_DIR", "DROID_PROJECT_DIR", "PLUGIN_ROOT"] {
        let mut world = World::new();
        install(&world, "home/.local/bin/nmem", None);
        world.nmem(&["install", "claude-code"]);
        world.set(variable, "/home/dev/project");
        prompt(&world);
        assert_eq!(world.sql("SELECT text FROM prompts"), "Fix it", "{variable}");
    }
}

#[test]
fn settings_that_only_look_like_hooks_of_ours_silence_nothing() {
    for settings in [
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/usr/bin/nmemo record"}]}]}}"#,
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/opt/unmem record"}]}]}}"#,
        r#"{"statusLine": {"command": "echo nothing"}, "permissions": {"allow": ["Bash(nmem context:*)"]}}"#,
    ] {
        let world = World::new();
        install(&world, "home/.local/bin/nmem", None);
        world.write("home/.claude/settings.json", settings);
        prompt(&world);
        assert_eq!(world.sql("SELECT text FROM prompts"), "Fix it", "{settings}");
    }
    for command in [
        "nmem record",
        r"/a#b/nmem record",
        r#"\"C:/Program Files/nmem.exe\" record"#,
        "'/my tools/nmem' record",
        "timeout 5 nmem record",
    ] {
        let world = World::new();
        install(&world, "home/.local/bin/nmem", None);
        world.write(
            "home/.claude/settings.json",
            &format!(r#"{{"hooks": {{"Stop": [{{"hooks": [{{"command" : "{command}"}}]}}]}}}}"#),
        );
        prompt(&world);
        assert!(!world.db().exists(), "{command}");
    }
}

#[test]
fn a_program_that_fails_or_cannot_run_stops_nothing() {
    for text in ["#!/bin/sh\nexit 2\n", "\u{7f}ELF broken", "#!/nowhere\n"] {
        let world = World::new();
        install(&world, "home/.local/bin/nmem", Some(text));
        let output = prompt(&world);
        assert!(output.code == Some(0) && output.stdout.is_empty(), "{}", output.text());
    }
}

/// `UPDATE_HOOKS=1` writes it.
#[test]
fn the_plugin_has_the_hooks_that_an_installation_writes() {
    let read = |path: &str| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let mut hooks = read(concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/claude-code/settings.json"))["hooks"].clone();
    for group in hooks.as_object_mut().unwrap().values_mut() {
        let command = &mut group[0]["hooks"][0]["command"];
        let verb = if command.as_str().unwrap().contains("context") { "context" } else { "record" };
        *command = json!(format!("p=\"${{CLAUDE_PLUGIN_ROOT}}\"; sh \"${{p:-$PLUGIN_ROOT}}/nmem-hook\" {verb} || true"));
    }
    let file = format!("{PLUGIN}/hooks/hooks.json");
    if std::env::var_os("UPDATE_HOOKS").is_some() {
        let whole = json!({"description": read(&file)["description"], "hooks": hooks});
        fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&whole).unwrap())).unwrap();
    }
    assert_eq!(read(&file)["hooks"], hooks);
    let plugin = read(&format!("{PLUGIN}/.claude-plugin/plugin.json"));
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    // Open Plugins and Goose look for it elsewhere. With the `$schema` of Agent Plugins, which has no hooks, Codex 0.169 and
    // Copilot CLI 1.0.102 ran none.
    for place in ["plugin.json", ".plugin/plugin.json"] {
        assert_eq!(read(&format!("{PLUGIN}/{place}")), plugin, "{place}");
    }
    let marketplace = read(concat!(env!("CARGO_MANIFEST_DIR"), "/.claude-plugin/marketplace.json"));
    assert_eq!((&marketplace["plugins"][0]["name"], &marketplace["plugins"][0]["source"]), (&plugin["name"], &json!("./plugin")));
}

/// Claude Code's variable is empty in Goose, and some agents write its value into the text instead.
#[test]
fn an_agent_of_open_plugins_finds_the_wrapper_by_its_own_variable() {
    let world = World::new();
    install(&world, "home/.local/bin/nmem", None);
    let goose = json!({"event": "UserPromptSubmit", "session_id": "g1", "message": "Always use tabs"});
    let own = |shell: &mut Command| {
        shell.env_remove("CLAUDE_PLUGIN_ROOT").env("PLUGIN_ROOT", PLUGIN);
    };
    assert_eq!(run_hook(&world, "UserPromptSubmit", &goose, |text| text, own).text(), "[exit 0]");
    let qwen = json!({"hook_event_name": "UserPromptSubmit", "prompt": "Never use spaces", "session_id": "q1", "prompt_id": "p",
        "cwd": world.project(), "transcript_path": "/home/dev/.qwen/projects/p/chats/1.jsonl"});
    let none = |shell: &mut Command| {
        shell.env_remove("CLAUDE_PLUGIN_ROOT");
    };
    run_hook(&world, "UserPromptSubmit", &qwen, |text| text.replace("${CLAUDE_PLUGIN_ROOT}", PLUGIN), none);
    let stored = "SELECT platform, text FROM prompts p JOIN sessions s ON s.id = p.session_id ORDER BY p.id";
    assert_eq!(world.sql(stored), "goose|Always use tabs\nqwen-code|Never use spaces");
}

#[test]
fn doctor_knows_the_plugin() {
    let world = World::new();
    world.write("home/.claude/settings.json", r#"{"enabledPlugins": {"nmem@nmem": true, "other@x": true}}"#);
    let doctor = world.nmem(&["doctor"]);
    assert!(doctor.stdout.contains("the plugin nmem@nmem of Claude Code"), "{}", doctor.text());
    assert!(!doctor.stdout.contains("not installed for any agent"), "{}", doctor.text());
    world.write("home/.claude/settings.json", r#"{"enabledPlugins": {"nmem@nmem": false}}"#);
    assert!(world.nmem(&["doctor"]).stdout.contains("not installed for any agent"));
}
