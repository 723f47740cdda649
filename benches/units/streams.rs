//! Reads the labelled streams as a hook would receive them.

use super::score::Truth;
use nmem::config::Config;
use nmem::ingest;
use nmem::ingest::run::{Caller, Run};
use nmem::model::EventKind;
use nmem::redact::Redactor;
use nmem::replay::{self, Replayed};
use nmem::segmentation::{Step, TermCounts};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A stream of hook events, with its labels.
pub struct Stream {
    pub name: String,
    pub truth: Truth,
    /// The sessions it is made of: streams that share one are never in training and test at once.
    pub sources: BTreeSet<String>,
    pub events: Vec<Replayed>,
    /// Whole turns: what a session's steps are before any is cut.
    pub steps: Vec<Step>,
}

impl Stream {
    /// The same work as if one prompt had set it off: what is said inside it is gone, its boundaries stay.
    pub fn without_prompts(&self) -> Stream {
        let mute = |(at, step): (usize, &Step)| {
            if at == 0 {
                return step.clone();
            }
            let answered = Step { closed: false, asks: false, says_done: false, answer: TermCounts::default(), ..step.clone() };
            Step { prompt_features: None, prompt: TermCounts::default(), ..answered }
        };
        let steps = self.steps.iter().enumerate().map(mute).collect();
        let (truth, sources) = (self.truth.clone(), self.sources.clone());
        Stream { name: self.name.clone(), truth, sources, events: Vec::new(), steps }
    }
}

/// Reads all streams of a folder.
pub fn load(folder: &Path, config: &Config) -> Vec<Stream> {
    let redactor = Redactor::default();
    let run = Run::new(Caller::History, config, &redactor);
    let labels: Value = serde_json::from_str(&fs::read_to_string(folder.join("labels.json")).unwrap()).unwrap();
    let streams = labels.as_object().unwrap().iter().map(|(name, label)| {
        let list = |key: &str| label[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        let sources =
            label["source"].as_array().unwrap().iter().map(|s| s.as_str().unwrap().split(':').next().unwrap().to_string());
        let truth = Truth {
            hand: label["kind"] == "hand",
            prompts: label["prompts"].as_u64().unwrap() as usize,
            boundaries: list("boundaries"),
            optional: list("optional"),
        };
        let path = folder.join(format!("{name}.jsonl"));
        let complete = |event| ingest::completed(&run, event);
        let (events, skipped) = replay::read(&path, name, &config.skip_tools.value, &complete).unwrap();
        let steps = steps(&events);
        assert_eq!((steps.len(), skipped), (truth.prompts, 0), "{name}");
        Stream { name: name.clone(), truth, sources: sources.collect(), events, steps }
    });
    streams.collect()
}

fn steps(events: &[Replayed]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for Replayed { event, .. } in events {
        match (&event.what, steps.last_mut()) {
            (EventKind::UserPrompt { text }, _) => steps.push(Step::from_prompt(text, event.at)),
            (EventKind::ToolUsed(tool), Some(step)) => step.used(tool, None, event.at),
            (EventKind::TurnEnded { closing: Some(closing), .. }, Some(step)) => step.closes(closing, event.at),
            _ => {}
        }
    }
    steps
}
