//! Every command in README.md and docs/ does what the page says, in an empty home.

use crate::world::World;
use crate::world::serving::Serving;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const README: &str = include_str!("../../README.md");
const CONFIGURATION: &str = include_str!("../../docs/configuration.md");

/// README and the pages of docs/, with their paths.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = docs.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.extend(["README.md", "CONTRIBUTING.md", "ADR/README.md"].map(|name| root.join(name)));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// The lines of the fenced blocks of one kind.
fn blocks<'a>(page: &'a str, kind: &str) -> Vec<&'a str> {
    let fence = format!("```{kind}\n");
    let parts: Vec<&str> = page.split(fence.as_str()).skip(1).collect();
    let without_comment = |line: &'a str| line.split("  # ").next().unwrap_or(line).trim_end();
    parts.into_iter().flat_map(|part| part.split("\n```").next().unwrap().lines()).map(without_comment).collect()
}

/// Words as a shell splits them; the pages use single quotes only.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (i, part) in line.split('\'').enumerate() {
        match i % 2 {
            0 => words.extend(part.split_whitespace().map(String::from)),
            _ => words.push(part.to_string()),
        }
    }
    words
}

#[test]
fn every_command_runs() {
    // What CI runs: on a clone, and in a home of their own.
    let on_a_clone = ["cargo install --locked --path .", "cargo test", "cargo build", "cargo bench --bench hook -- --quick"];
    for (path, page) in pages() {
        let world = World::new();
        // An agent is on the machine.
        world.write("home/.claude/history.jsonl", "");
        for event in ["SessionStart-startup", "UserPromptSubmit", "PostToolUse-Edit", "Stop"] {
            assert_eq!(world.hook(event).code, Some(0));
        }
        for name in ["the first", "the second"] {
            world.nmem(&["remember", name]);
        }
        for line in blocks(&page, "sh").into_iter().flat_map(|line| line.split(" && ")) {
            if !line.starts_with("nmem ") {
                assert!(on_a_clone.contains(&line), "{}: {line}", path.display());
                continue;
            }
            let args = words(line);
            let args: Vec<&str> = args[1..].iter().map(String::as_str).collect();
            // The home is empty: there is no such file.
            if args[0] == "restore" {
                world.nmem(&["export", args[1], "--force"]);
            }
            // It runs until Ctrl-C: it does what the page says if it answers.
            if args == ["serve"] {
                assert_eq!(Serving::start(&world, &[]).get("/health").status, 200);
                continue;
            }
            // They ask git; in an empty repository there is little to find.
            if ["why", "verify", "check", "pr"].contains(&args[0]) {
                if let Some(code) = in_a_repository(&world, &args) {
                    assert!(code < 2, "{}: {line}", path.display());
                }
                continue;
            }
            // Only a person can pin.
            let output = if args.contains(&"--pin") || args[0] == "pin" { world.typed(&args) } else { world.nmem(&args) };
            assert_eq!(output.code, Some(0), "{}: {line}\n{}", path.display(), output.text());
        }
    }
}

/// Runs a command in a real repository with one commit; `None`, said loudly, without git. Its answers have stories of their own.
fn in_a_repository(world: &World, args: &[&str]) -> Option<i32> {
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=Dev", "-c", "user.email=dev@example.org"];
        Command::new("git").arg("-C").arg(world.project()).args(own).args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").output()
    };
    if git(&["--version"]).is_err() {
        eprintln!("PASSED OVER: nmem {} needs git", args[0]);
        return None;
    }
    let _ = fs::remove_dir_all(world.project().join(".git"));
    world.write("project/README.md", "# Project\n");
    for args in [
        &["init", "-q"][..],
        &["remote", "add", "origin", "https://example.org/dev/project.git"],
        &["add", "-A"],
        &["commit", "-qm", "Begin"],
    ] {
        assert!(git(args).unwrap().status.success(), "{args:?}");
    }
    world.nmem(args).code
}

#[test]
fn the_output_at_the_top_is_real() {
    let shown = README.split("<!-- output: demo -->\n```text\n").nth(1).unwrap().split("\n```").next().unwrap();
    let demo = World::new().nmem(&["demo"]).stdout;
    let (_, block) = demo.split_once("The next session receives this").unwrap();
    // The demo plays today.
    let is_date = |word: &str| word.len() == 10 && word.matches('-').count() == 2 && word.starts_with("20");
    let undated = |line: &str| {
        let words = line.trim().split(' ');
        words
            .map(|word| if is_date(word.trim_end_matches([':', ','])) { &word[10..] } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut lines = block.lines().map(undated);
    // Lines are left out where the page has a mark.
    for line in shown.lines().filter(|line| *line != "…") {
        assert!(lines.any(|known| known == undated(line)), "{line:?} is not there, in this order:\n{block}");
    }
}

#[test]
fn the_terminal_recording_can_be_made() {
    let Ok(python) = Command::new("python3").arg("--version").output() else {
        eprintln!("PASSED OVER: docs/record-terminal needs python3");
        return;
    };
    assert!(python.status.success());
    let world = World::new();
    let svg = world.folder.join("demo.svg");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/record-terminal");
    let made = Command::new("python3").arg(script).arg(env!("CARGO_BIN_EXE_nmem")).arg(&svg).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let svg = fs::read_to_string(svg).unwrap();
    assert!(svg.contains("The next session receives this") && svg.ends_with("</svg>\n"));
}

#[test]
fn the_readme_is_short_and_every_link_leads_somewhere() {
    let words = README.split_whitespace().count();
    assert!(words <= 1500, "{words} words");
    let mut links = 0;
    for (path, page) in pages() {
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            links += 1;
            assert!(path.parent().unwrap().join(file).exists(), "{}: {target}", path.display());
        }
    }
    assert!(links > 20);
}

/// The table of the documentation is that of the code: names, defaults, and who may set them.
#[test]
fn the_documentation_has_the_table_of_settings() {
    let defaults = World::new().nmem(&["status", "--json"]).json();
    let row = |row: &nmem::config::table::SettingRow| {
        let default = &defaults["settings"][row.name]["value"];
        format!("| `{}` | `{default}` | {} | {} |", row.name, row.set_by(), row.doc)
    };
    let rows = nmem::config::table::SETTINGS.iter().filter(|row| !row.set_by().is_empty()).map(row);
    let table =
        format!("| setting | default | set by | meaning |\n| --- | --- | --- | --- |\n{}\n", rows.collect::<Vec<_>>().join("\n"));
    assert!(CONFIGURATION.contains(&table), "docs/configuration.md must contain:\n{table}");
}

#[test]
fn the_config_shown_is_the_default_and_has_every_key() {
    let world = World::new();
    let before = world.nmem(&["status", "--json"]).json();
    world.write("home/.config/nmem/config.toml", &blocks(CONFIGURATION, "toml").join("\n"));
    let after = world.nmem(&["status", "--json"]).json();
    assert_eq!(after["unknown_settings"], serde_json::json!([]));
    let settings = after["settings"].as_object().unwrap();
    for (name, setting) in settings.iter().filter(|(name, _)| !["database", "project", "domain"].contains(&name.as_str())) {
        assert_eq!(setting["source"], "config file", "docs/configuration.md does not show `{name}`");
        assert_eq!(setting["value"], before["settings"][name]["value"], "{name}");
    }
}
