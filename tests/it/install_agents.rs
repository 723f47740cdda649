//! Installing for every agent: beside whatever is there, once, and undone byte for byte.

use crate::world::World;
use std::fs;
use std::path::PathBuf;

const AGENTS: [&str; 7] = ["claude-code", "codex", "cursor", "vscode", "copilot-cli", "gemini", "opencode"];

/// Kinds of settings files that people have: the same few contents, written in many ways. `OTHERS` is replaced by hooks of
/// somebody else in the agent's own form.
const JSON: [&str; 30] = [
    "{}",
    "{}\n",
    "{ }\n",
    "{\n}\n",
    "{\n\n\n}",
    "{\"theme\":\"dark\"}",
    "{\"theme\":\"dark\"}\n",
    "{\"theme\": \"dark\", \"hooks\": OTHERS}\n",
    "{\"hooks\":OTHERS,\"theme\":\"dark\"}",
    "{\n  \"theme\": \"dark\"\n}\n",
    "{\n    \"theme\": \"dark\",\n    \"nested\": {\n        \"a\": [1, 2, 3]\n    }\n}\n",
    "{\n\t\"theme\": \"dark\",\n\t\"hooks\": OTHERS\n}\n",
    "{\r\n  \"theme\": \"dark\"\r\n}\r\n",
    "{\r\n  \"hooks\": OTHERS\r\n}",
    "{\n  \"hooks\": {}\n}\n",
    "{\"hooks\":{}}",
    "{\"hooks\": { } , \"a\": null}",
    "{\n  \"hooks\": {\n    \"Other\": []\n  }\n}\n",
    "{\n  \"hooks\": {\n    \"Stop\": [],\n    \"stop\": []\n  }\n}\n",
    "\u{feff}{\n  \"theme\": \"dark\"\n}\n",
    "\u{feff}{\"theme\":\"dark\"}",
    "{\"big\":12345678901234567890.5e2,\"text\":\"\\u00e9 \\\" \\\\ é 記 😀\"}",
    "{ \"a\" : [ { } , [ ] , \"}\" ] , \"b\" : { \"c\" : { \"d\" : { } } } }",
    "{\n  \"a\": 1,\n\n  \"b\": 2\n\n}\n\n\n",
    "  \n{\"a\":1}\n  ",
    "{\"permissions\":{\"allow\":[\"Bash(git *)\"],\"deny\":[]},\"hooks\":OTHERS}",
    "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(git *)\"\n    ]\n  }\n}\n",
    "{\"permissions\":{\"allow\":[]}}",
    "{\n  \"version\": 1,\n  \"hooks\": OTHERS\n}\n",
    "{\"version\":1,\"hooks\":OTHERS}",
];

/// Kinds that only files with comments allow.
const COMMENTED: [&str; 6] = [
    "{\n  // mine\n  \"theme\": \"dark\"\n}\n",
    "{\n  \"theme\": \"dark\", // why\n}\n",
    "/* head */\n{\n  \"hooks\": OTHERS, /* tail */\n}\n",
    "{\n  \"a\": [\n    1, // one\n    2,\n  ],\n}\n",
    "// first line\n{}\n",
    "{\n  /* only a comment */\n}\n",
];

/// Kinds of Markdown files.
const MARKDOWN: [&str; 30] = [
    "# Agents\n",
    "# Agents",
    "# Agents\n\n",
    "\n",
    "\n\n\n",
    "text\r\nmore\r\n",
    "text\r\nmore",
    "- a\n- b\n",
    "- a\n- b",
    "```sh\nnmem search x\n```\n",
    "<!-- other -->\nx\n<!-- /other -->\n",
    "<!-- begin nmem",
    "<!-- begin nmem -->",
    "# é 記 😀\n",
    "\u{feff}# Agents\n",
    "\u{feff}",
    "a\n\n\n\nb\n",
    "   \n",
    "\t\n\t",
    "a  \nb  \n",
    "| a | b |\n|---|---|\n",
    "---\ntitle: x\n---\n",
    "---\ntitle: x\n---",
    "# A\n\n## B\n\n### C\n",
    "[link](AGENTS.md)\n",
    "a\\\nb\n",
    "1. x\n\n   y\n",
    "<br>\n",
    "a\n\u{a0}\n",
    "x\n<!-- end nmem -->\n",
];

/// Path of an agent's settings in a world's home or project, and whether they are nested.
fn settings(agent: &str, scope: &str) -> &'static str {
    match (agent, scope) {
        ("claude-code", "user") => "home/.claude/settings.json",
        ("claude-code", _) => "project/.claude/settings.json",
        ("codex", "user") => "home/.codex/hooks.json",
        ("codex", _) => "project/.codex/hooks.json",
        ("cursor", "user") => "home/.cursor/hooks.json",
        ("cursor", _) => "project/.cursor/hooks.json",
        ("vscode" | "copilot-cli", "user") => "home/.copilot/hooks/nmem.json",
        ("vscode" | "copilot-cli", _) => "project/.github/hooks/nmem.json",
        ("gemini", "user") => "home/.gemini/extensions/nmem/hooks/hooks.json",
        ("gemini", _) => "project/.gemini/settings.json",
        ("opencode", "user") => "home/.config/opencode/plugins/nmem.js",
        _ => "project/.opencode/plugins/nmem.js",
    }
}

/// Hooks of somebody else in an agent's form.
fn others(agent: &str) -> &'static str {
    match agent {
        "cursor" | "vscode" | "copilot-cli" => {
            r#"{"stop":[{"command":"say \"}\""}],"PostToolUse":[{"type":"command","command":"other"}]}"#
        }
        _ => {
            r#"{"Stop":[{"hooks":[{"type":"command","command":"say \"}\""}]}],"PostToolUse":[{"matcher":"Edit","hooks":[{"command":"other"}]}]}"#
        }
    }
}

/// All files below a world's home and project.
fn files(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    fn walk(folder: PathBuf, found: &mut Vec<(PathBuf, Vec<u8>)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => walk(path, found),
                path => found.push((path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    let mut found = Vec::new();
    walk(world.home(), &mut found);
    walk(world.project(), &mut found);
    found.sort();
    found
}

/// Installs over a file and removes it again; every byte must come back.
fn there_and_back(agent: &str, scope: &str, path: &str, text: &str, flags: &[&str]) {
    let world = World::new();
    world.write(path, text);
    let before = files(&world);
    let place = ["--scope", scope];
    let installed = world.nmem(&[&["install", agent], &place[..], flags].concat());
    assert_eq!(installed.code, Some(0), "{agent} {scope} {text:?}: {}", installed.text());
    let with = fs::read_to_string(world.folder.join(path)).unwrap();
    assert!(with.contains("nmem") && with != text, "{agent} {scope} {text:?}: {with}");
    world.nmem(&[&["install", agent], &place[..], flags].concat());
    assert_eq!(fs::read_to_string(world.folder.join(path)).unwrap(), with, "{agent} {scope} {text:?}: twice is once");
    let removed = world.nmem(&[&["uninstall", agent], &place[..]].concat());
    assert_eq!(removed.code, Some(0), "{agent} {scope} {text:?}: {}", removed.text());
    let after = files(&world);
    let shown = |files: &[(PathBuf, Vec<u8>)]| -> Vec<String> {
        files.iter().map(|(path, bytes)| format!("{}: {:?}", path.display(), String::from_utf8_lossy(bytes))).collect()
    };
    assert!(before == after, "{agent} {scope}: before {:#?}\nafter {:#?}", shown(&before), shown(&after));
}

#[test]
fn thirty_kinds_of_settings_come_back_byte_for_byte() {
    std::thread::scope(|scope| {
        for (agent, place) in
            [("claude-code", "user"), ("codex", "user"), ("cursor", "user"), ("copilot-cli", "user"), ("gemini", "project")]
        {
            scope.spawn(move || {
                let commented = if agent == "gemini" { &COMMENTED[..] } else { &[] };
                for text in JSON.iter().chain(commented) {
                    let text = text.replace("OTHERS", others(agent));
                    let flags: &[&str] = if agent == "claude-code" { &["--allow-search"] } else { &[] };
                    there_and_back(agent, place, settings(agent, place), &text, flags);
                    if agent == "claude-code" {
                        there_and_back(agent, place, settings(agent, place), &text, &["--statusline"]);
                        there_and_back("qwen-code", place, "home/.qwen/settings.json", &text, &["--statusline"]);
                    }
                }
            });
        }
    });
}

/// Kinds of lists of MCP servers that people have.
#[test]
fn lists_of_mcp_servers_come_back_byte_for_byte() {
    let servers = r#"{"other": {"command": "x", "args": ["a b"]}}"#;
    let json = |key: &str| {
        JSON.iter().chain(&COMMENTED).map(|text| text.replace("hooks", key).replace("OTHERS", servers)).collect::<Vec<_>>()
    };
    for (agent, scope, path, key) in [
        ("claude-code", "user", "home/.claude.json", "mcpServers"),
        ("claude-code", "project", "project/.mcp.json", "mcpServers"),
        ("cursor", "user", "home/.cursor/mcp.json", "mcpServers"),
        ("copilot-cli", "user", "home/.copilot/mcp-config.json", "mcpServers"),
        ("vscode", "project", "project/.vscode/mcp.json", "servers"),
        ("gemini", "user", "home/.gemini/settings.json", "mcpServers"),
        ("opencode", "user", "home/.config/opencode/opencode.json", "mcp"),
    ] {
        for text in json(key) {
            there_and_back(agent, scope, path, &text, &["--mcp"]);
        }
    }
    for text in [
        "",
        "\n",
        "model = \"x\"\n",
        "model = \"x\"",
        "# mine\n[mcp_servers.other]\ncommand = \"x\"\n\n",
        "a = 1\r\n[b]\r\nc = 2\r\n",
    ] {
        there_and_back("codex", "user", "home/.codex/config.toml", text, &["--mcp"]);
    }
}

/// Codex reads its servers in several ways; a table is added to some of them only.
#[test]
fn a_toml_file_that_takes_no_table_stays_as_it_is() {
    for text in [
        "mcp_servers = { other = { command = \"x\" } }\n",
        "mcp_servers = \"x\"\n",
        "[[mcp_servers]]\nname = \"x\"\n",
        "# begin nmem notes\nmodel=\"x\"\n# end nmem notes\ny=1\n",
        "a=\"\"\"\n# begin nmem\nnotes\n# end nmem\n\"\"\"\n",
    ] {
        let world = World::new();
        world.write("home/.codex/config.toml", text);
        let said = world.nmem(&["install", "codex", "--mcp"]);
        let is_added = world.read("home/.codex/config.toml").contains("[mcp_servers.nmem]");
        assert!(is_added == (said.code == Some(0)), "{text}: {}", said.text());
        world.nmem(&["uninstall", "codex"]);
        assert_eq!(world.read("home/.codex/config.toml"), text);
        world.nmem(&["uninstall", "codex"]);
        assert_eq!(world.read("home/.codex/config.toml"), text);
    }
}

#[test]
fn a_server_with_settings_of_the_users_own_stays() {
    let world = World::new();
    let own = r#"{"mcpServers": {"nmem": {"command": "/x/nmem", "args": ["mcp"], "env": {"NMEM_DB": "/d/mine.db"}}}}"#;
    world.write("home/.cursor/mcp.json", own);
    assert_eq!(world.nmem(&["install", "cursor", "--mcp"]).code, Some(1));
    world.nmem(&["uninstall", "cursor"]);
    assert_eq!(world.read("home/.cursor/mcp.json"), own);
}

#[test]
fn an_mcp_server_of_that_name_that_is_not_ours_stays() {
    let world = World::new();
    let own = "[mcp_servers.nmem]\ncommand = \"/opt/other\"\n";
    world.write("home/.codex/config.toml", own);
    let refused = world.nmem(&["install", "codex", "--mcp"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("it has an MCP server named nmem"), "{}", refused.text());
    assert_eq!(world.read("home/.codex/config.toml"), own);
    let own = r#"{"mcpServers": {"nmem": {"command": "/opt/other", "args": []}}}"#;
    world.write("home/.cursor/mcp.json", own);
    let refused = world.nmem(&["install", "cursor", "--mcp"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("it has an MCP server named nmem"), "{}", refused.text());
    world.nmem(&["install", "cursor"]);
    world.nmem(&["uninstall", "cursor"]);
    assert_eq!(world.read("home/.cursor/mcp.json"), own);
}

#[test]
fn a_status_line_is_added_on_wish_and_that_of_somebody_else_stays() {
    let world = World::new();
    world.nmem(&["install", "claude-code"]);
    assert!(!world.read("home/.claude/settings.json").contains("statusline"), "only if it is asked for");
    world.nmem(&["install", "claude-code", "--statusline"]);
    let settings: serde_json::Value = serde_json::from_str(&world.read("home/.claude/settings.json")).unwrap();
    let line = &settings["statusLine"];
    assert!(line["type"] == "command" && line["command"].as_str().unwrap().ends_with("nmem statusline"), "{line}");
    let own = r#"{"statusLine": {"type": "command", "command": "~/.claude/line.sh"}}"#;
    world.write("home/.claude/settings.json", own);
    let kept = world.nmem(&["install", "claude-code", "--statusline"]);
    assert!(kept.code == Some(0) && kept.stderr.contains("has a status line already, which stays"), "{}", kept.text());
    assert!(world.read("home/.claude/settings.json").contains("line.sh") && kept.stdout.contains("nmem is installed"));
    world.nmem(&["uninstall", "claude-code"]);
    assert_eq!(world.read("home/.claude/settings.json"), own);
}

#[test]
fn thirty_kinds_of_instructions_come_back_byte_for_byte() {
    std::thread::scope(|scope| {
        for (agent, file) in
            [("codex", "project/AGENTS.md"), ("claude-code", "project/CLAUDE.md"), ("gemini", "project/GEMINI.md")]
        {
            scope.spawn(move || {
                for text in MARKDOWN {
                    there_and_back(agent, "project", file, text, &["--guidance"]);
                }
            });
        }
    });
}

#[test]
fn every_agent_gets_its_files_in_both_scopes_and_nothing_stays() {
    for scope in ["user", "project"] {
        let world = World::new();
        let before = files(&world);
        for agent in AGENTS {
            let flags: &[&str] =
                if scope == "user" { &["--allow-search", "--mcp"] } else { &["--allow-search", "--mcp", "--guidance"] };
            let output = world.nmem(&[&["install", agent, "--scope", scope], flags].concat());
            assert_eq!(output.code, Some(0), "{}", output.text());
            let text = world.read(settings(agent, scope));
            assert!(text.contains("nmem"), "{agent}: {text}");
            // Other machines share a project's settings: there it is the bare name.
            let names_path = text.contains(env!("CARGO_BIN_EXE_nmem"));
            assert_eq!(names_path, scope == "user", "{agent}: {text}");
        }
        let output = world.nmem(&["uninstall", "--scope", scope]);
        assert_eq!(output.code, Some(0), "{}", output.text());
        let left: Vec<_> = files(&world).into_iter().filter(|file| !before.contains(file)).map(|(path, _)| path).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn those_found_on_this_machine_are_listed_and_installed() {
    let world = World::new();
    for file in ["home/.claude/history.jsonl", "home/.codex/auth.json", "home/.gemini/settings.json"] {
        world.write(file, "{}");
    }
    // An uninstallation leaves an empty folder.
    fs::create_dir_all(world.home().join(".cursor")).unwrap();
    insta::assert_snapshot!(world.nmem(&["install"]).text(), @"
    --- stderr
    nmem: name the agents to install into, or give --found
      on this machine: claude-code, codex, gemini
    [exit 2]
    ");
    let output = world.nmem(&["install", "--found"]).text();
    assert!(output.starts_with("On this machine: claude-code, codex, gemini\n"), "{output}");
    assert!(output.contains("review them with /hooks"), "what only a person can do: {output}");
    assert!(!world.home().join(".cursor/hooks.json").exists());
    let doctor = world.nmem(&["doctor"]).text();
    for agent in ["claude-code", "gemini", "codex"] {
        assert!(doctor.contains(&format!("ok: hooks: installed for {agent} in ")), "{doctor}");
    }
}

#[test]
fn what_a_person_changed_after_the_installation_stays() {
    let world = World::new();
    world.write("home/.cursor/hooks.json", "{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"mine\"}]}}");
    world.nmem(&["install", "cursor"]);
    let changed = world.read("home/.cursor/hooks.json").replace("\"mine\"", "\"mine, changed\"");
    world.write("home/.cursor/hooks.json", &changed);
    world.nmem(&["uninstall", "cursor"]);
    assert_eq!(world.read("home/.cursor/hooks.json"), "{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"mine, changed\"}]}}");
}

#[test]
fn a_dry_run_shows_every_file_and_changes_none() {
    let world = World::new();
    let before = files(&world);
    let shows = |args: &[&str], expected: &[&str]| {
        let output = world.nmem(&[&["install", "gemini", "codex", "--dry-run"], args].concat()).text();
        for file in expected {
            assert!(output.contains(&format!("{file} would change:")), "{file}: {output}");
        }
    };
    let own =
        ["extensions/nmem/hooks/hooks.json", "extensions/nmem/gemini-extension.json", "policies/nmem.toml", "rules/nmem.rules"];
    shows(&["--allow-search"], &own);
    shows(&["--scope", "project", "--guidance"], &[".gemini/settings.json", "GEMINI.md", "AGENTS.md"]);
    assert_eq!(files(&world), before);
}

#[test]
fn one_file_that_cannot_be_edited_does_not_keep_the_others() {
    let world = World::new();
    world.nmem(&["install", "claude-code", "codex", "cursor"]);
    let with_comment = world.read("home/.codex/hooks.json").replacen('{', "{ // a comment\n", 1);
    world.write("home/.codex/hooks.json", &with_comment);
    let removed = world.nmem(&["uninstall"]);
    assert_eq!(removed.code, Some(1), "{}", removed.text());
    assert!(removed.stderr.contains(".codex/hooks.json was left alone: it is not JSON"), "{}", removed.text());
    assert!(removed.stdout.contains("removed from claude-code") && removed.stdout.contains("cursor"), "{}", removed.text());
    assert!(!world.home().join(".cursor/hooks.json").exists());
}

#[test]
fn what_only_looks_like_nmems_is_left_alone() {
    let world = World::new();
    let mine = [
        ("home/.claude/settings.json", r#"{"permissions":{"allow":["Bash(nmem show:*)"]}}"#),
        ("home/.config/opencode/plugins/nmem.js", "// my own wrapper around nmem\n"),
        ("home/.codex/hooks.json", r#"{"hooks":{"Stop":[{"hooks":[{"command":"nmem record || /home/me/fallback"}]}]}}"#),
        ("home/.codex/rules/nmem.rules", "# my rules for nmem\n"),
    ];
    mine.iter().for_each(|(path, text)| world.write(path, text));
    let before = files(&world);
    assert!(world.nmem(&["uninstall"]).stdout.contains("nmem is not installed"));
    assert_eq!(files(&world), before);
    world.nmem(&["install", "claude-code", "opencode", "codex", "--allow-search"]);
    world.nmem(&["uninstall"]);
    assert_eq!(files(&world), before);
    world.write("home/.gemini/settings.json", "{ broken, and none of ours");
    assert_eq!(world.nmem(&["uninstall"]).code, Some(0));
    world.write("home/.cursor/hooks.json", "{\"hooks\":{},\"hooks\":{\"stop\":[]}}");
    let refused = world.nmem(&["install", "cursor"]);
    assert!(refused.stderr.contains("`hooks` is in it twice"), "{}", refused.text());
}

#[test]
fn a_project_gets_only_the_instructions_if_the_hooks_are_the_users() {
    let world = World::new();
    assert_eq!(world.nmem(&["install", "codex", "--guidance"]).code, Some(2), "in which project, nobody said");
    world.nmem(&["install", "codex"]);
    let before = files(&world);
    let output = world.nmem(&["install", "codex", "--scope", "project", "--guidance"]).text();
    assert!(output.contains("Changed for codex: $WORLD/project/AGENTS.md"), "{output}");
    assert!(!world.project().join(".codex").exists());
    world.nmem(&["uninstall", "--scope", "project"]);
    assert_eq!(files(&world), before);
}

#[test]
fn instructions_that_several_agents_read_stay_until_the_last_one_goes() {
    let world = World::new();
    let place = ["--scope", "project"];
    world.nmem(&[&["install", "codex", "cursor", "--guidance"], &place[..]].concat());
    world.nmem(&[&["uninstall", "codex"], &place[..]].concat());
    assert!(world.read("project/AGENTS.md").contains("nmem search"));
    world.nmem(&[&["uninstall", "cursor"], &place[..]].concat());
    assert!(!world.project().join("AGENTS.md").exists());
}

#[test]
fn the_files_in_hooks_are_what_a_project_installation_writes() {
    let world = World::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks");
    for agent in AGENTS {
        world.nmem(&["install", agent, "--scope", "project"]);
        let written = world.read(settings(agent, "project"));
        let name = settings(agent, "project").rsplit('/').next().unwrap();
        let ready = format!("{folder}/{agent}/{name}");
        if std::env::var_os("UPDATE_HOOKS").is_some() {
            fs::create_dir_all(format!("{folder}/{agent}")).unwrap();
            fs::write(&ready, &written).unwrap();
        }
        let ready = fs::read_to_string(&ready).unwrap_or_else(|e| panic!("{ready}: {e}; UPDATE_HOOKS=1 writes it"));
        assert_eq!(ready, written, "{agent}: UPDATE_HOOKS=1 writes it");
        world.nmem(&["uninstall", agent, "--scope", "project"]);
    }
}

/// Programs that take an MCP server, and the file with it on Linux.
const CLIENTS: [(&str, &str); 17] = [
    ("amp", ".config/amp/settings.json"),
    ("antigravity", ".gemini/config/mcp_config.json"),
    ("auggie", ".augment/settings.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("cline-vscode", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ("crush", ".config/crush/crush.json"),
    ("forge", ".forge/.mcp.json"),
    ("goose", ".config/goose/config.yaml"),
    ("iflow", ".iflow/settings.json"),
    ("junie", ".junie/mcp/mcp.json"),
    ("kilo-vscode", ".config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json"),
    ("kiro", ".kiro/settings/mcp.json"),
    ("lm-studio", ".lmstudio/mcp.json"),
    ("roo", ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
    ("tabnine", ".tabnine/agent/settings.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
];

#[test]
#[cfg(target_os = "linux")]
fn a_client_without_hooks_gets_the_tools_and_gives_its_file_back() {
    let world = World::new();
    let docs = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/mcp.md")).unwrap();
    for (client, file) in CLIENTS {
        let path = format!("home/{file}");
        let is_yaml = file.ends_with("yaml");
        let text = if is_yaml { "# mine\nGOOSE_MODEL: m\n" } else { "{\n  // mine\n  \"theme\": \"dark\"\n}\n" };
        for before in [None, Some(text)] {
            before.iter().for_each(|text| world.write(&path, text));
            let said = world.nmem(&["install", "--mcp", client]);
            assert_eq!(said.code, Some(0), "{client}: {}", said.text());
            let with = world.read(&path);
            assert!(with.contains("nmem") && with.contains("mcp"), "{client}: {with}");
            assert!(world.nmem(&["install", "--mcp", client]).text().contains("already"), "{client}");
            assert_eq!(world.read(&path), with, "{client}: twice is once");
            assert!(world.nmem(&["uninstall", client]).text().contains(client));
            assert_eq!(fs::read_to_string(world.folder.join(&path)).ok().as_deref(), before, "{client}");
        }
        assert!(docs.contains(&format!("`{client}`")) && docs.contains(&format!("~/{file}")), "docs/mcp.md lacks {client}");
    }
    let unknown = world.nmem(&["install", "--mcp", "zedd"]);
    assert!(unknown.code == Some(2) && unknown.text().contains("zed"), "{}", unknown.text());
    // A name of an agent after --mcp means the agent.
    assert!(world.nmem(&["install", "--mcp", "cursor"]).text().contains("installed for cursor"));
    assert!(world.read("home/.cursor/mcp.json").contains("nmem"));
    assert_eq!(world.nmem(&["install", "--mcp", "zed", "--scope", "project"]).code, Some(2));
    // Without a name, all programs lose nmem.
    world.nmem(&["install", "--mcp", "zed", "goose"]);
    assert!(world.nmem(&["uninstall"]).text().contains("goose"));
    assert!(
        !world.folder.join("home/.config/zed/settings.json").exists()
            || !world.read("home/.config/zed/settings.json").contains("nmem")
    );
}
