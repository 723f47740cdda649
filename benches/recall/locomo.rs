//! LoCoMo (Maharana et al. 2024): which turns of a long conversation hold the answer. Each conversation is a project, each of
//! its dated sessions a session, each turn a prompt; the questions go through `nmem search`'s own way.

use nmem::model::{Event, EventKind, Filter, HitKind, Platform, ProjectId};
use nmem::recall::search;
use nmem::redact::Redactor;
use nmem::replay::ScratchStore;
use nmem::store::Store;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Figures of SQLite FTS5 alone on these five conversations, by the study: recall@5 and @10.
const BASELINES: [(&str, f64, f64); 3] = [
    ("turns, plain stemmed BM25", 56.0, 62.2),
    ("turns, neighbours × session", 65.5, 76.3),
    ("sessions, plain stemmed BM25", 86.2, 92.5),
];

/// Prints the table; returns it as JSON, or nothing where the data is not there.
pub fn run(folder: &Path) -> Value {
    let path = folder.join("locomo/dev.json");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("there is no {}: LoCoMo was not measured", path.display());
        return Value::Null;
    };
    let data: Value = serde_json::from_str(&text).unwrap();
    let scratch = ScratchStore::new().unwrap();
    let mut store = scratch.store().unwrap();
    let (mut turns, mut sessions) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (at, conversation) in data.as_array().unwrap().iter().enumerate() {
        let ids = send(&mut store, at, &conversation["conversation"]);
        store.index_waiting(usize::MAX, &mut |_| ()).unwrap();
        let filter = Filter { scope: nmem::model::SearchScope::of(at as i64 + 1), ..Filter::default() };
        for question in conversation["qa"].as_array().unwrap() {
            let evidence: Vec<&str> = question["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let question = question["question"].as_str().unwrap();
            let hits = search(&store, question, &[HitKind::Prompt], &filter, 400, &|_| None).unwrap().hits;
            let found: Vec<&str> = hits.iter().map(|hit| ids[hit.id as usize - 1].as_str()).collect();
            let mut of: Vec<&str> = found.iter().map(|id| session(id)).collect();
            let mut seen = std::collections::HashSet::new();
            of.retain(|id| seen.insert(*id));
            let mut wanted: Vec<&str> = evidence.iter().filter(|id| id.contains(':')).map(|id| session(id)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            for (at, k) in [5, 10].into_iter().enumerate() {
                turns[at].push(recall(&found, &evidence, k));
                sessions[at].push(recall(&of, &wanted, k));
            }
        }
    }
    let mean = |rows: &[f64]| 100.0 * rows.iter().sum::<f64>() / rows.len() as f64;
    println!("\nLoCoMo, {} questions: recall@5 / @10", turns[0].len());
    for (name, at5, at10) in BASELINES {
        println!("{name:36} {at5:.1} / {at10:.1}   (SQLite alone)");
    }
    println!("{:36} {:.1} / {:.1}", "turns, nmem search --kind prompt", mean(&turns[0]), mean(&turns[1]));
    println!("{:36} {:.1} / {:.1}", "sessions, by their first turn found", mean(&sessions[0]), mean(&sessions[1]));
    json!({"turns": [mean(&turns[0]), mean(&turns[1])], "sessions": [mean(&sessions[0]), mean(&sessions[1])]})
}

fn session(turn: &str) -> &str {
    turn.split(':').next().unwrap()
}

/// Evidence found among the first `k`; a question without evidence counts as answered.
fn recall(found: &[&str], evidence: &[&str], k: usize) -> f64 {
    if evidence.is_empty() {
        return 1.0;
    }
    let first = &found[..found.len().min(k)];
    evidence.iter().filter(|id| first.contains(id)).count() as f64 / evidence.len() as f64
}

/// Stores a conversation; the id of a turn is that of its prompt in the order of all that were stored.
fn send(store: &mut Store, number: usize, conversation: &Value) -> Vec<String> {
    let redactor = Redactor::default();
    let identify = |event: &Event| {
        let cwd = event.cwd.clone()?;
        let id = ProjectId { keys: vec![format!("dir:{cwd}")], name: cwd.clone(), root: cwd.clone(), ..ProjectId::default() };
        Some(Redactor::default().clean(id))
    };
    let mut ids = all_ids(store);
    let mut at = number as i64 * 1_000_000;
    store
        .write(|tx| {
            for n in 1.. {
                let Some(turns) = conversation[format!("session_{n}")].as_array() else { break };
                for turn in turns {
                    at += 1000;
                    let id = turn["dia_id"].as_str().unwrap();
                    let caption = turn["blip_caption"].as_str().unwrap_or_default();
                    let text =
                        format!("{}: {} {caption}", turn["speaker"].as_str().unwrap(), turn["text"].as_str().unwrap_or_default());
                    let event = Event {
                        platform: Platform::ClaudeCode,
                        session: format!("conversation-{number}-session-{n}"),
                        at,
                        time: None,
                        cwd: Some(format!("/conversation{number}")),
                        project: None,
                        transcript: None,
                        repository_url: None,
                        transcript_length: None,
                        usage: None,
                        prompt: Some(format!("{number}-{id}")),
                        agent: None,
                        what: EventKind::UserPrompt { text },
                    };
                    nmem::ingest::store_event(tx, &redactor.clean(event.clone()), None, &|_| identify(&event))?;
                    ids.push(id.to_string());
                }
            }
            Ok(())
        })
        .unwrap();
    ids
}

/// Places for what was stored of other conversations.
fn all_ids(store: &Store) -> Vec<String> {
    vec![String::new(); store.counts().unwrap().prompts as usize]
}
