//! Made-up secrets of every rule and form (`benches/redact/samples.rs`), written into every kind of text: how many no file
//! holds afterwards.

#[path = "../../benches/redact/samples.rs"]
pub mod samples;

use crate::world::World;
use nmem::ingest::store_event;
use nmem::model::{Files, Platform};
use nmem::platforms::{DecodeContext, adapter};
use nmem::redact::Redactor;
use nmem::store::Store;
use samples::{Sample, leaks, samples};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The least share that must be kept off the disk, by group.
const GOALS: [(&str, f64); 4] = [("fixed form", 0.95), ("names", 0.95), ("password names", 0.95), ("other forms", 0.85)];

/// Samples of a rule. Each stands in two of the six kinds of text, so that every rule meets each kind.
const SAMPLES: usize = 3;

/// A prompt, a command, an output, a failure, a written file, a closing message.
fn payload(world: &World, kind: usize, text: &str, n: usize) -> Value {
    let (name, path) = [
        ("UserPromptSubmit", "/prompt"),
        ("PostToolUse-Bash", "/tool_input/command"),
        ("PostToolUse-Bash", "/tool_response/stdout"),
        ("PostToolUseFailure-Bash", "/error"),
        ("PostToolUse-Write-create", "/tool_input/content"),
        ("Stop", "/last_assistant_message"),
    ][kind];
    let mut payload = world.payload(name);
    *payload.pointer_mut(path).unwrap() = json!(text);
    payload["prompt_id"] = json!(format!("prompt-{n}-{kind}"));
    payload["tool_use_id"] = json!(format!("toolu_{n}_{kind}"));
    payload
}

/// Decodes, redacts and stores a payload as a hook does, in this process.
fn record(world: &World, payload: &Value) {
    let context = DecodeContext { now: world.now, skip_tools: &[] };
    let events = adapter(Platform::ClaudeCode).decode(payload, &context).unwrap();
    let redactor = Redactor::default();
    let mut store = Store::open(&Files::of(world.db(), true), Duration::from_secs(5)).unwrap();
    for event in events {
        let event = redactor.clean(event);
        store.write(|tx| store_event(tx, &event, None, &|_| None)).unwrap();
    }
}

/// The samples that some file holds after they were recorded.
fn leaked(samples: &[Sample], first: usize) -> Vec<&Sample> {
    let world = World::new();
    let mut files: Vec<String> = Vec::new();
    for (n, sample) in samples.iter().enumerate() {
        // Some are written while the database is locked, so that they wait in the spool.
        let lock = (n % 30 == 29).then(|| world.lock());
        for kind in [(first + n) % SAMPLES * 2, (first + n) % SAMPLES * 2 + 1] {
            let text = format!("one line before\n{}\n\none line after", sample.text);
            let payload = payload(&world, kind, &text, n);
            // Starting a process takes longer than all else, so one sample in ten goes through the program.
            if n % 10 == 9 || n == 0 {
                assert_eq!(world.feed(&["record"], payload.to_string().as_bytes()).text(), "[exit 0]");
            } else {
                record(&world, &payload);
            }
        }
        if lock.is_some() {
            let spool = world.all_bytes().into_iter().find(|(path, _)| path.ends_with("nmem.db-spool")).unwrap();
            files.push(String::from_utf8_lossy(&spool.1).into_owned());
        }
    }
    let kept =
        world.count("SELECT count(*) FROM tool_uses WHERE concat(input, content, outcome, metadata) LIKE '%one line after%'");
    assert!(kept as usize >= samples.len() / 2, "{kept} of {}: the surroundings of secrets are kept", samples.len());
    files.extend(world.all_bytes().iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned()));
    samples.iter().filter(|sample| files.iter().any(|text| leaks(text, &sample.secret))).collect()
}

#[test]
fn no_file_holds_a_secret_of_any_rule_or_form_in_any_kind_of_text() {
    let all = samples(7, SAMPLES);
    let mut groups: BTreeMap<&str, (usize, Vec<&Sample>)> = BTreeMap::new();
    for sample in &all {
        groups.entry(sample.group).or_default().0 += 1;
    }
    // Small databases, because every sample is looked for in every byte.
    for (i, some) in all.chunks(90).enumerate() {
        for sample in leaked(some, i * 90) {
            groups.entry(sample.group).or_default().1.push(sample);
        }
    }
    for (group, goal) in GOALS {
        let (count, leaked) = &groups[group];
        let share = 1.0 - leaked.len() as f64 / *count as f64;
        let which: Vec<&str> = leaked.iter().map(|sample| sample.rule.as_str()).collect();
        println!("{group}: {share:.3} of {count} kept off the disk; leaked: {which:?}");
        assert!(share >= goal, "{group}: {share:.3} of {count}; leaked: {which:?}");
    }
}
