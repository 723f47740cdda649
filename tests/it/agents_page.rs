//! `docs/agents.md` says what the adapters say: its tables are made from them.

use nmem::platforms::ADAPTERS;
use nmem::platforms::adapter::{Adapter, Moment};
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agents.md");

/// The agents with hooks, as people know them.
fn agents() -> impl Iterator<Item = &'static dyn Adapter> {
    let mut agents: Vec<&dyn Adapter> = ADAPTERS.iter().copied().filter(|adapter| adapter.setup().is_some()).collect();
    agents.sort_by_key(|adapter| adapter.platform());
    agents.into_iter()
}

fn cell(moment: Moment) -> String {
    match moment {
        Moment::Possible => "yes".to_string(),
        Moment::Unreliable(what) => format!("yes; {what}"),
        Moment::NotPossible(why) => format!("no: {why}"),
    }
}

fn moments() -> String {
    let row = |adapter: &dyn Adapter| {
        let (support, setup) = (adapter.support(), adapter.setup().unwrap());
        let hooks = setup.hooks_text();
        let cells = [support.start, support.prompt, support.edit, support.subagent, support.compaction].map(cell);
        format!("| {} | {hooks} | {} |\n", adapter.platform().title(), cells.join(" | "))
    };
    agents().map(row).collect()
}

fn calls() -> String {
    let row = |adapter: &dyn Adapter| {
        let support = adapter.support();
        format!("| {} | {} | {} | {} |\n", adapter.platform().title(), support.outcome, support.failures, support.tokens)
    };
    agents().map(row).collect()
}

/// The page with a table's rows in front of its mark.
fn with_rows(page: &str, name: &str, rows: &str) -> String {
    let mark = format!("<!-- generated: {name} -->\n");
    let (before, behind) = page.split_once(&mark).unwrap_or_else(|| panic!("{PAGE} has no {mark}"));
    let head = before.rfind("| --- |").and_then(|at| Some(at + before[at..].find('\n')? + 1)).unwrap();
    format!("{}{rows}{mark}{behind}", &before[..head])
}

#[test]
fn the_tables_are_made_from_the_adapters() {
    let page = fs::read_to_string(PAGE).unwrap();
    let made = with_rows(&with_rows(&page, "moments", &moments()), "calls", &calls());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PAGE, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(PAGE).unwrap(), made, "UPDATE_DOCS=1 writes it");
}

#[test]
fn each_agent_names_itself_and_recognises_no_other_agents_payloads() {
    for adapter in agents() {
        let file = format!("{}/tests/fixtures/hooks/{}.jsonl", env!("CARGO_MANIFEST_DIR"), adapter.platform());
        let Ok(text) = fs::read_to_string(file) else { continue };
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let recognised = nmem::platforms::recognised(None, &line["payload"]).platform();
            assert_eq!(recognised, adapter.platform(), "{}", line["name"]);
        }
    }
}
