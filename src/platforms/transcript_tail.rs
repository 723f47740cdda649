//! Reads tokens, model and thinking from a part of a Claude Code transcript.
//!
//! The format is internal to the client and unstable: unknown lines are skipped, and nothing in nmem depends on the
//! data read here. Each content block is a line that repeats the usage of its message, so each `message.id` is counted
//! once.

use crate::model::{Millis, Tokens, TurnUsage};
use serde_json::Value;
use std::collections::HashSet;

/// The result of reading a part.
#[derive(Debug, Default, PartialEq)]
pub struct Reading {
    pub usage: TurnUsage,
    /// Bytes of complete lines; the last line may still be growing.
    pub consumed: usize,
}

/// Options for reading a part.
pub struct ReadOptions<'a> {
    /// False if the part may begin inside a line.
    pub from_start: bool,
    /// The last message that was already counted.
    pub last_message: Option<&'a str>,
    /// Offset from which thinking belongs to the current turn.
    pub thinking_from: Option<usize>,
    /// Returns true if a record from the given time must be skipped.
    pub passed_over: &'a dyn Fn(Option<Millis>) -> bool,
}

/// Reads a part of a transcript, and passes on each record that was read, with its offset in the part.
pub fn read(bytes: &[u8], wanted: &ReadOptions, each: &mut dyn FnMut(Value, usize)) -> Reading {
    let Some(end) = bytes.iter().rposition(|&b| b == b'\n').map(|i| i + 1) else { return Reading::default() };
    let begin = if wanted.from_start { 0 } else { bytes.iter().position(|&b| b == b'\n').map_or(end, |i| i + 1) };
    let mut turn = UsageCounter { last: wanted.last_message.map(String::from), ..UsageCounter::default() };
    turn.counted.extend(wanted.last_message.map(String::from));
    let mut at = begin;
    for line in bytes[begin..end].split(|&b| b == b'\n') {
        let thinking = wanted.thinking_from.is_some_and(|from| at >= from);
        if let Ok(record) = serde_json::from_slice::<Value>(line)
            && !(wanted.passed_over)(time(&record))
        {
            turn.record(&record, thinking);
            each(record, at);
        }
        at += line.len() + 1;
    }
    Reading { usage: turn.take(), consumed: end }
}

/// Returns the time at which a line was written.
pub fn time(record: &Value) -> Option<Millis> {
    Some(record["timestamp"].as_str()?.parse::<jiff::Timestamp>().ok()?.as_millisecond())
}

/// Counts tokens message by message.
#[derive(Debug, Default)]
pub struct UsageCounter {
    usage: TurnUsage,
    /// The current message: id and usage, which later lines may still increase.
    current: Option<(String, Tokens)>,
    counted: HashSet<String>,
    last: Option<String>,
    thoughts: Vec<String>,
}

impl UsageCounter {
    /// Adds a line. With `thinking`, its thinking belongs to the current turn.
    pub fn record(&mut self, record: &Value, thinking: bool) {
        match record["type"].as_str() {
            Some("assistant") => self.message(record, thinking),
            Some("cost-state") => self.usage.cost_usd = record["totalCostUSD"].as_f64().or(self.usage.cost_usd),
            _ => {}
        }
    }

    fn message(&mut self, record: &Value, thinking: bool) {
        let message = &record["message"];
        let Some(id) = message["id"].as_str() else { return };
        // The client's own notes ("API Error …") appear as messages of a model that does not exist.
        if message["model"] == "<synthetic>" {
            return;
        }
        if thinking {
            let blocks = message["content"].as_array().into_iter().flatten();
            self.thoughts
                .extend(blocks.filter_map(|b| b["thinking"].as_str()).filter(|t| !t.trim().is_empty()).map(String::from));
        }
        if self.counted.contains(id) {
            return;
        }
        let tokens = tokens(&message["usage"]);
        match &mut self.current {
            Some((current, counted)) if current == id => *counted = tokens,
            _ => {
                self.count();
                self.current = Some((id.to_string(), tokens));
            }
        }
        let text = |value: &Value| value.as_str().map(String::from);
        self.usage.model = text(&message["model"]).or(self.usage.model.take());
        self.usage.stop_reason = text(&message["stop_reason"]).or(self.usage.stop_reason.take());
        if record["isSidechain"] != true {
            self.usage.context_tokens = Some(tokens.input + tokens.output + tokens.cache_read + tokens.cache_write);
        }
    }

    fn count(&mut self) {
        if let Some((id, t)) = self.current.take() {
            let sum = self.usage.tokens.get_or_insert_default();
            sum.input = sum.input.saturating_add(t.input);
            sum.output = sum.output.saturating_add(t.output);
            sum.cache_read = sum.cache_read.saturating_add(t.cache_read);
            sum.cache_write = sum.cache_write.saturating_add(t.cache_write);
            self.counted.insert(id.clone());
            self.last = Some(id);
        }
    }

    /// Returns the usage since the last call of this function.
    pub fn take(&mut self) -> TurnUsage {
        self.count();
        let mut usage = std::mem::take(&mut self.usage);
        if !self.thoughts.is_empty() {
            usage.thinking = Some(std::mem::take(&mut self.thoughts).join("\n\n"));
        }
        usage.last_message.clone_from(&self.last);
        usage
    }
}

/// Maximum tokens to accept for one message, so that sums fit a database column.
const MOST: i64 = 1_000_000_000;

fn tokens(usage: &Value) -> Tokens {
    let count = |name: &str| usage[name].as_i64().unwrap_or(0).clamp(0, MOST);
    Tokens {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &[u8] = include_bytes!("../../tests/fixtures/claude-code/transcript-compacted-slim.jsonl");

    fn read(bytes: &[u8], from_start: bool, last_message: Option<&str>, thinking: bool) -> Reading {
        let thinking_from = thinking.then_some(0);
        super::read(bytes, &ReadOptions { from_start, last_message, thinking_from, passed_over: &|_| false }, &mut |_, _| {})
    }

    fn line(id: &str, output: i64, extra: &str) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"m","stop_reason":"end_turn","usage":{{"input_tokens":10,"output_tokens":{output},"cache_read_input_tokens":5,"cache_creation_input_tokens":1}},"content":[{extra}]}}}}{}"#,
            "\n"
        )
    }

    #[test]
    fn a_message_is_counted_once_with_its_last_usage() {
        let text = line("a", 1, "") + &line("a", 7, "") + &line("b", 2, "");
        let reading = read(text.as_bytes(), true, None, true);
        assert_eq!(reading.usage.tokens, Some(Tokens { input: 20, output: 9, cache_read: 10, cache_write: 2 }));
        assert_eq!(reading.usage.context_tokens, Some(18));
        assert_eq!(reading.usage.last_message.as_deref(), Some("b"));
    }

    #[test]
    fn a_message_of_the_stretch_before_is_not_counted_again_and_half_a_line_waits() {
        let text = line("a", 1, "") + &line("b", 2, "");
        let reading = read(&text.as_bytes()[..text.len() - 5], true, Some("a"), true);
        assert_eq!(reading.usage.tokens, None);
        assert_eq!(reading.consumed, line("a", 1, "").len());
        assert_eq!(reading.usage.last_message.as_deref(), Some("a"));
    }

    #[test]
    fn thinking_is_read_only_where_it_is_wanted() {
        let text = line("a", 1, r#"{"type":"thinking","thinking":"hm"}"#);
        assert_eq!(read(text.as_bytes(), true, None, true).usage.thinking.as_deref(), Some("hm"));
        assert_eq!(read(text.as_bytes(), true, None, false).usage.thinking, None);
    }

    #[test]
    fn what_was_written_while_recording_was_off_is_passed_over() {
        let at = |time: &str, id: &str| {
            line(id, 5, r#"{"type":"thinking","thinking":"hm"}"#).replacen('{', &format!(r#"{{"timestamp":"{time}","#), 1)
        };
        let text = at("2026-11-21T09:00:00Z", "a") + &at("2026-11-21T10:00:00.500Z", "b");
        let wanted = |off: Millis| move |time: Option<Millis>| time == Some(off);
        let reading = |off: &dyn Fn(Option<Millis>) -> bool| {
            super::read(
                text.as_bytes(),
                &ReadOptions { from_start: true, last_message: None, thinking_from: Some(0), passed_over: off },
                &mut |_, _| {},
            )
        };
        let read = reading(&wanted(1_795_251_600_000));
        assert_eq!(read.usage.tokens.unwrap().output, 5);
        assert_eq!(read.usage.thinking.as_deref(), Some("hm"));
        assert_eq!(read.consumed, text.len());
        assert_eq!(reading(&|_| true).usage, TurnUsage::default());
    }

    #[test]
    fn thinking_of_an_earlier_turn_is_not_this_ones() {
        let text =
            line("a", 1, r#"{"type":"thinking","thinking":"before"}"#) + &line("b", 1, r#"{"type":"thinking","thinking":"now"}"#);
        let from = line("a", 1, r#"{"type":"thinking","thinking":"before"}"#).len();
        let wanted = ReadOptions { from_start: true, last_message: None, thinking_from: Some(from), passed_over: &|_| false };
        assert_eq!(super::read(text.as_bytes(), &wanted, &mut |_, _| {}).usage.thinking.as_deref(), Some("now"));
    }

    #[test]
    fn a_real_transcript_gives_tokens_model_and_context() {
        let reading = read(REAL, true, None, true);
        let tokens = reading.usage.tokens.unwrap();
        assert!(tokens.input > 0 && tokens.output > 0 && tokens.cache_read > 0, "{tokens:?}");
        assert_eq!(reading.consumed, REAL.len());
        assert!(reading.usage.model.is_some() && reading.usage.context_tokens.is_some());
        // After the first message, and inside a line.
        let first = read(&REAL[..12_000], true, None, false);
        let second = read(&REAL[first.consumed..], true, first.usage.last_message.as_deref(), false);
        let sum = |t: Option<Tokens>| t.map_or(0, |t| t.input + t.output);
        assert_eq!(sum(first.usage.tokens) + sum(second.usage.tokens), tokens.input + tokens.output);
    }
}
