//! Every command in README.md does what README.md says, in an empty home.

use crate::world::World;

const README: &str = include_str!("../../README.md");

/// The lines of the fenced blocks of one kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let fence = format!("```{kind}\n");
    let parts: Vec<&'static str> = README.split(fence.as_str()).skip(1).collect();
    parts.into_iter().flat_map(|part| part.split("\n```").next().unwrap().lines()).collect()
}

/// Words as a shell cuts them; README uses single quotes alone.
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
    let world = World::new();
    let commands: Vec<&str> = blocks("sh").into_iter().flat_map(|line| line.split(" && ")).collect();
    let (ours, others): (Vec<&str>, Vec<&str>) = commands.into_iter().partition(|c| c.starts_with("nmem "));
    assert!(ours.len() >= 8, "{ours:?}");
    // These two are what CI runs: on a clone, and in a home of their own.
    assert_eq!(others, ["cargo install --path .", "cargo test"]);
    for line in ours {
        let args = words(line);
        let args: Vec<&str> = args[1..].iter().map(String::as_str).collect();
        let output = world.nmem(&args);
        assert_eq!(output.code, Some(0), "{line}\n{}", output.text());
    }
}

#[test]
fn the_output_at_the_top_is_that_of_the_demo() {
    let shown = README.split("<!-- demo -->\n```text\n").nth(1).unwrap().split("\n```").next().unwrap();
    let demo = World::new().nmem(&["demo"]).stdout;
    let given = demo.split("before its first prompt:\n").nth(1).unwrap().split("\n\n$ ").next().unwrap();
    let given: Vec<&str> = given.lines().map(|l| l.strip_prefix("  ").unwrap_or(l)).collect();
    assert_eq!(timeless(shown), timeless(&given.join("\n")));
}

/// The demo runs now: what says when it was is written as zeros.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    for word in text.trim().split_inclusive([' ', '\n']) {
        let is_time = word.trim_end_matches([',', ' ', '\n']).chars().all(|c| c.is_ascii_digit() || c == '-' || c == ':');
        let has_mark = word.contains(['-', ':']) && word.starts_with(|c: char| c.is_ascii_digit());
        out += &if is_time && has_mark { word.replace(|c: char| c.is_ascii_digit(), "0") } else { word.to_string() };
    }
    out
}

#[test]
fn the_config_shown_is_the_default_and_has_every_key() {
    let world = World::new();
    let before = world.nmem(&["status", "--json"]).json();
    world.write("home/.config/nmem/config.toml", &blocks("toml").join("\n"));
    let after = world.nmem(&["status", "--json"]).json();
    assert_eq!(after["unknown_settings"], serde_json::json!([]));
    for (name, setting) in after["settings"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| !["database", "project", "domain"].contains(&name.as_str()))
    {
        assert_eq!(setting["source"], "config file", "README does not show `{name}`");
        assert_eq!(setting["value"], before["settings"][name]["value"], "{name}");
    }
}
