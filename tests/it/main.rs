//! The integration tests, one program with a module for each user story. Most of them drive the built binary in a world of
//! their own (`world/`); what needs no process is tested beside its code.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "tests look at everything")]

mod world;

mod agents_page;
mod archive;
mod attacked;
mod bad_input;
#[cfg(unix)]
mod claude_model;
mod codex;
mod commands;
mod copilot;
mod damaged;
mod database;
mod decides;
mod doctor;
mod embeddings;
mod entities;
mod examples;
mod extraction;
mod families;
mod forget;
mod help;
mod hosts;
mod import;
mod import_attacked;
mod import_formats;
mod import_leaves_out;
mod import_memories;
mod import_places;
mod import_secrets;
mod install;
mod install_agents;
mod knowledge;
mod language;
mod layers;
mod log;
mod mcp;
mod memories;
mod migration;
mod models;
mod models_attacked;
mod moments;
mod one_memory;
mod opencode_plugin;
mod payloads;
mod platforms;
mod plugin;
mod project;
mod providers;
mod provisional;
mod rad;
mod readme;
mod recall;
mod redacted_again;
mod resume;
mod review;
mod secrets;
mod serve;
mod serve_page;
mod session;
#[cfg(unix)]
mod storage;
mod team;
mod team_at_once;
mod team_attacked;
mod units;
mod view;
mod why;

/// A file that is not declared above would never run.
#[test]
fn every_test_file_is_part_of_this_program() {
    let own = include_str!("main.rs");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap();
    let names = files.filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".rs").map(String::from));
    let forgotten: Vec<String> = names.filter(|name| name != "main" && !own.contains(&format!("mod {name};"))).collect();
    assert!(forgotten.is_empty(), "not declared in tests/it/main.rs: {forgotten:?}");
    let beside = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap();
    let stray: Vec<_> =
        beside.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "rs")).collect();
    assert!(stray.is_empty(), "a program of its own costs a link of seconds: move it to tests/it/: {stray:?}");
}
