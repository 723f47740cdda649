//! The answer of a tool: text and structured content with the same meaning, since clients show their model one or the
//! other.

use crate::error::explain;
use crate::render::clean::line;
use crate::render::wrap::wrap;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// Maximum bytes of an answer as JSON.
pub const MAX_ANSWER_BYTES: usize = 4096;
/// Columns at which long text is wrapped, so that a part of it can be left out.
const WIDTH: usize = 160;

/// The answer of a tool before it is cut to its maximum size.
#[derive(Debug)]
pub struct ToolAnswer {
    parts: Vec<AnswerPart>,
    /// The name of the parts in the structured content; if `None`, they are lines of one text.
    list: Option<&'static str>,
    /// Text that replaces omitted parts.
    more: String,
    /// Text after the parts, or without parts.
    note: Option<String>,
    is_error: bool,
}

/// A line, or an item of a list.
#[derive(Debug)]
struct AnswerPart {
    text: String,
    json: Value,
}

impl ToolAnswer {
    /// Creates an answer from the lines of a text that is already sanitised.
    pub fn text(text: &str, more: impl Into<String>) -> ToolAnswer {
        let lines = wrap(text.trim_end(), WIDTH);
        let parts = lines.lines().map(|line| AnswerPart { text: line.to_string(), json: Value::Null }).collect();
        ToolAnswer { parts, list: None, more: more.into(), note: None, is_error: false }
    }

    /// Creates an answer from items, best first, each as text and as JSON.
    pub fn list(name: &'static str, items: impl Iterator<Item = (String, Value)>, more: impl Into<String>) -> ToolAnswer {
        let parts = items.map(|(text, json)| AnswerPart { text: text.trim_end().to_string(), json: sanitised(json) }).collect();
        ToolAnswer { parts, list: Some(name), more: more.into(), note: None, is_error: false }
    }

    /// Creates an answer of one sentence.
    pub fn sentence(text: &str) -> ToolAnswer {
        ToolAnswer { parts: Vec::new(), list: None, more: String::new(), note: Some(text.to_string()), is_error: false }
    }

    /// Creates an error answer: the reason, and what to do next.
    pub fn failed(error: &anyhow::Error) -> ToolAnswer {
        let failure = explain(error);
        let hint = failure.hint.as_ref().map(|hint| format!(". {}", line(hint, 300))).unwrap_or_default();
        ToolAnswer { is_error: true, ..ToolAnswer::sentence(&format!("{}{hint}", line(&failure.what, 500))) }
    }

    pub fn with_note(mut self, note: Option<String>) -> ToolAnswer {
        self.note = note;
        self
    }

    /// The answer with as many parts as fit.
    pub fn into_result(self) -> CallToolResult {
        let fits = |shown| serde_json::to_vec(&self.result(shown)).is_ok_and(|json| json.len() <= MAX_ANSWER_BYTES);
        let (mut shown, mut most) = (0, self.parts.len());
        while shown < most {
            let middle = (shown + most).div_ceil(2);
            if fits(middle) {
                shown = middle;
            } else {
                most = middle - 1;
            }
        }
        self.result(shown)
    }

    fn result(&self, shown: usize) -> CallToolResult {
        let left_out = self.parts.len() - shown;
        let more = (left_out > 0).then(|| format!("{left_out} more {} left out: {}", self.unit(left_out), self.more));
        let texts = self.parts[..shown].iter().map(|part| part.text.as_str());
        let lines: Vec<&str> = texts.chain(more.as_deref()).chain(self.note.as_deref()).collect();
        let text = lines.join("\n");
        let mut result = CallToolResult::success(vec![ContentBlock::text(text.clone())]);
        result.is_error = Some(self.is_error);
        let mut structured = match self.list {
            Some(name) => json!({ name: self.parts[..shown].iter().map(|part| &part.json).collect::<Vec<_>>() }),
            None => json!({ "text": text }),
        };
        if self.list.is_some() {
            let notes: Vec<&str> = more.as_deref().into_iter().chain(self.note.as_deref()).collect();
            if !notes.is_empty() {
                structured["note"] = notes.join(" ").into();
            }
        }
        result.structured_content = Some(structured);
        result
    }

    fn unit(&self, n: usize) -> &'static str {
        match (self.list, n) {
            (Some(_), 1) => "item",
            (Some(_), _) => "items",
            (None, 1) => "line",
            (None, _) => "lines",
        }
    }
}

/// JSON whose texts are single harmless lines.
fn sanitised(json: Value) -> Value {
    match json {
        Value::String(text) => Value::String(line(&text, usize::MAX)),
        Value::Array(items) => items.into_iter().map(sanitised).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null() && value != &json!([]) && value != "");
            Value::Object(kept.map(|(name, value)| (name, sanitised(value))).collect())
        }
        other => other,
    }
}
