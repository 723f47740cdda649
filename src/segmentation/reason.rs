//! The reason of a boundary in a word or two: the strongest group of signals.

use super::decide::{Judgment, Weights};
use super::signals::{SIGNALS, WORK};

/// Signals grouped by meaning.
const REASONS: &[(&str, &[&str])] = &[
    (
        "a new request",
        &[
            "prompt_length",
            "orders",
            "question",
            "chore",
            "continues",
            "short_answer",
            "wish",
            "agent_asked",
            "agent_asked_long_reply",
        ],
    ),
    ("announced", &["shift_words", "opening_words"]),
    ("after a pause", &["pause", "pause_relative"]),
    ("after something was completed", &["committed_before", "pushed_before", "tests_passed_before", "said_done_before"]),
    ("after much work", &["unit_size", "failures_before", "talk_before"]),
    ("back to earlier work", &["like_earlier_unit"]),
];

/// Names the reason of a boundary.
pub fn reason(judgment: &Judgment, weights: &Weights) -> &'static str {
    let contributions = judgment.contributions(weights);
    let sum = |of: &dyn Fn(&str) -> bool| contributions.iter().filter(|one| of(one.signal)).map(|one| one.adds).sum::<f32>();
    let in_work = |name: &str| SIGNALS[WORK..].iter().any(|signal| signal.name == name);
    let grouped = |name: &str| REASONS.iter().any(|(_, names)| names.contains(&name));
    let mut reasons: Vec<(&str, f32)> =
        REASONS.iter().map(|(reason, names)| (*reason, sum(&|name| names.contains(&name)))).collect();
    reasons.push(("other work", sum(&|name| in_work(name) && !grouped(name))));
    reasons.push(("another subject", sum(&|name| !in_work(name) && !grouped(name))));
    reasons.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("another subject", |(reason, _)| reason)
}
