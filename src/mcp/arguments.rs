//! The arguments of a call. An error names the wrong argument, so that a model can correct itself.

use crate::error::UserError;
use anyhow::Result;
use serde_json::{Map, Value};

/// Maximum bytes of one text, and maximum items of a list.
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_ITEMS: usize = 100;

/// The arguments of one call.
#[derive(Debug)]
pub struct ToolArguments(Map<String, Value>);

impl ToolArguments {
    pub fn new(arguments: Map<String, Value>) -> ToolArguments {
        ToolArguments(arguments)
    }

    /// # Errors
    ///
    /// An argument that the tool does not have.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(wrong(format!("unknown argument {unknown:?}"), format!("use {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// A text; `None` if it is absent, null or blank.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() > MAX_TEXT_BYTES => {
                Err(wrong(format!("{name} is too long"), format!("{MAX_TEXT_BYTES} bytes at most")))
            }
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(_) => Err(wrong(format!("{name} must be a string"), "correct the call")),
        }
    }

    /// A required text.
    pub fn needed(&self, name: &str) -> Result<&str> {
        self.text(name)?.ok_or_else(|| wrong(format!("{name} is missing"), "correct the call"))
    }

    /// A list of texts; one text is a list of one.
    pub fn list(&self, name: &str) -> Result<Vec<String>> {
        let text = |value: &Value| value.as_str().filter(|text| text.len() <= MAX_TEXT_BYTES).map(String::from);
        let list = match self.0.get(name) {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(items)) if items.len() <= MAX_ITEMS => items.iter().map(text).collect(),
            Some(one) => text(one).map(|one| vec![one]),
        };
        list.ok_or_else(|| wrong(format!("{name} must be a list of at most {MAX_ITEMS} strings"), "correct the call"))
    }

    pub fn is_set(&self, name: &str) -> Result<bool> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_set)) => Ok(*is_set),
            Some(_) => Err(wrong(format!("{name} must be true or false"), "correct the call")),
        }
    }

    /// Any value, as passed.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

fn wrong(what: String, hint: impl Into<String>) -> anyhow::Error {
    UserError::usage(what, hint).into()
}
