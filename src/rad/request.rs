//! Parses requests: names in snake or camel case, unknown fields kept or ignored, errors that name the field.

use serde_json::{Map, Value, json};

/// Maximum bytes of an id or name.
const ID: usize = 200;

/// Error of a failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// `bad_request`, `not_found`, `unavailable`.
    pub code: &'static str,
    pub message: String,
}

impl ProtocolError {
    pub fn bad(message: impl Into<String>) -> ProtocolError {
        ProtocolError { code: "bad_request", message: message.into() }
    }

    pub fn not_found(message: impl Into<String>) -> ProtocolError {
        ProtocolError { code: "not_found", message: message.into() }
    }

    /// The error as an answer.
    pub fn json(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message}})
    }
}

impl From<anyhow::Error> for ProtocolError {
    fn from(error: anyhow::Error) -> ProtocolError {
        ProtocolError { code: "unavailable", message: format!("{error:#}") }
    }
}

/// The fields of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a>(&'a Map<String, Value>);

impl<'a> Request<'a> {
    pub fn of(value: &'a Value) -> Result<Request<'a>, ProtocolError> {
        value.as_object().map(Request).ok_or_else(|| ProtocolError::bad("a request is a JSON object"))
    }

    /// The value of the first of some names (in snake case) that the request has in either case; `null` counts as
    /// missing.
    pub fn value(self, names: &[&str]) -> Option<&'a Value> {
        let wanted: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let found = wanted.iter().find_map(|wanted| self.0.iter().find(|(name, _)| plain(name) == *wanted));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(self, names: &[&str]) -> Result<Option<&'a str>, ProtocolError> {
        let wrong = || ProtocolError::bad(format!("`{}` must be a text", names[0]));
        self.value(names).map(|value| value.as_str().ok_or_else(wrong)).transpose()
    }

    /// A required, non-empty text.
    pub fn needed(self, names: &[&str]) -> Result<&'a str, ProtocolError> {
        let text = self.text(names)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| ProtocolError::bad(format!("`{}` is missing", names[0])))
    }

    /// An id or a name: one line of at most 200 bytes.
    pub fn name(self, names: &[&str]) -> Result<Option<&'a str>, ProtocolError> {
        let Some(text) = self.text(names)?.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
        match text.len() <= ID && !text.chars().any(char::is_control) {
            true => Ok(Some(text)),
            false => Err(ProtocolError::bad(format!("`{}` must be one line of at most {ID} bytes", names[0]))),
        }
    }

    /// A list of texts; empty if missing.
    pub fn list(self, names: &[&str]) -> Result<Vec<String>, ProtocolError> {
        let Some(value) = self.value(names) else { return Ok(Vec::new()) };
        let items = value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(String::from)).collect());
        items.ok_or_else(|| ProtocolError::bad(format!("`{}` must be a list of texts", names[0])))
    }

    /// Fields other than the given ones, in either case.
    pub fn others(self, known: &'a [&'a [&'a str]]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let known: Vec<String> = known.iter().flat_map(|names| names.iter()).map(|name| plain(name)).collect();
        self.0.iter().filter(move |(name, _)| !known.contains(&plain(name)))
    }

    /// A number from 1 to `most`.
    pub fn count(self, names: &[&str], usual: usize, most: usize) -> Result<usize, ProtocolError> {
        let Some(value) = self.value(names) else { return Ok(usual) };
        // Query strings put numbers in quotes.
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.and_then(|number| usize::try_from(number).ok()).filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| ProtocolError::bad(format!("`{}` must be a number from 1 to {most}", names[0])))
    }
}

/// Normalises a name, so that snake case and camel case are equal.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_either_case_and_what_is_wrong_is_named() {
        let value = json!({"claudeSessionId": " a-1 ", "limit": "7", "tool_name": 3, "none": null, "two": "a\nb"});
        let request = Request::of(&value).unwrap();
        assert_eq!(request.name(&["agent_session_id", "claude_session_id"]), Ok(Some("a-1")));
        assert_eq!(request.count(&["limit"], 5, 100), Ok(7));
        assert_eq!(request.value(&["none"]), None);
        assert_eq!(request.text(&["tool_name"]).unwrap_err().message, "`tool_name` must be a text");
        assert_eq!(request.needed(&["user_prompt"]).unwrap_err().message, "`user_prompt` is missing");
        assert!(request.name(&["two"]).is_err() && request.count(&["tool_name"], 1, 2).is_err());
        assert_eq!(Request::of(&json!([])).unwrap_err().code, "bad_request");
    }
}
