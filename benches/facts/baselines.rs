//! Simple ways to choose what is kept of a session: each kept text is one memory.

use super::score::{Kept, sentences};
use serde_json::Value;

pub type Rule = fn(&[Value]) -> Vec<String>;

pub const RULES: [(&str, Rule); 4] = [
    ("last closing message", |events| closings(events, usize::MAX).pop().into_iter().collect()),
    ("closing messages, first 300", |events| closings(events, 300)),
    ("closing messages, first 600", |events| closings(events, 600)),
    ("closing messages whole", |events| closings(events, usize::MAX)),
];

fn closings(events: &[Value], most: usize) -> Vec<String> {
    let stops = events.iter().filter(|event| event["event"] == "Stop");
    let texts = stops.filter_map(|event| event["last_assistant_message"].as_str()).filter(|text| !text.is_empty());
    texts.map(|text| text.chars().take(most).collect()).collect()
}

/// Text that a rule keeps of a session, each sentence on a line.
pub fn kept(rule: Rule, events: &[Value]) -> Vec<Kept> {
    let memory = |text: String| Kept { text: sentences(&text).collect::<Vec<_>>().join("\n"), ..Kept::default() };
    rule(events).into_iter().map(memory).collect()
}
