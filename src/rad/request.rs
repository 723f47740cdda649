//! A request as programs write it: names in snake or camel case, what is unknown kept or left alone, what is wrong named.

use serde_json::{Map, Value, json};

/// Bytes of an id, and of a name.
const ID: usize = 200;

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `bad_request`, `not_found`, `unavailable`.
    pub code: &'static str,
    pub message: String,
}

impl Problem {
    pub fn bad(message: impl Into<String>) -> Problem {
        Problem { code: "bad_request", message: message.into() }
    }

    pub fn not_found(message: impl Into<String>) -> Problem {
        Problem { code: "not_found", message: message.into() }
    }

    /// The answer that says so.
    pub fn json(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message}})
    }
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Problem {
        Problem { code: "unavailable", message: format!("{error:#}") }
    }
}

/// A request's fields.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a>(&'a Map<String, Value>);

impl<'a> Request<'a> {
    pub fn of(value: &'a Value) -> Result<Request<'a>, Problem> {
        value.as_object().map(Request).ok_or_else(|| Problem::bad("a request is a JSON object"))
    }

    /// The value of the first of some names, written in snake case, that the request has in either case; `null` is none.
    pub fn value(self, names: &[&str]) -> Option<&'a Value> {
        let wanted: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let found = wanted.iter().find_map(|wanted| self.0.iter().find(|(name, _)| plain(name) == *wanted));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(self, names: &[&str]) -> Result<Option<&'a str>, Problem> {
        let wrong = || Problem::bad(format!("`{}` must be a text", names[0]));
        self.value(names).map(|value| value.as_str().ok_or_else(wrong)).transpose()
    }

    /// A text that says something.
    pub fn needed(self, names: &[&str]) -> Result<&'a str, Problem> {
        let text = self.text(names)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| Problem::bad(format!("`{}` is missing", names[0])))
    }

    /// An id or a name: one line of at most 200 bytes.
    pub fn name(self, names: &[&str]) -> Result<Option<&'a str>, Problem> {
        let Some(text) = self.text(names)?.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
        match text.len() <= ID && !text.chars().any(char::is_control) {
            true => Ok(Some(text)),
            false => Err(Problem::bad(format!("`{}` must be one line of at most {ID} bytes", names[0]))),
        }
    }

    /// A list of texts; nothing is an empty one.
    pub fn list(self, names: &[&str]) -> Result<Vec<String>, Problem> {
        let Some(value) = self.value(names) else { return Ok(Vec::new()) };
        let items = value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(String::from)).collect());
        items.ok_or_else(|| Problem::bad(format!("`{}` must be a list of texts", names[0])))
    }

    /// Fields that go by none of some names, in either case.
    pub fn others(self, known: &'a [&'a [&'a str]]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let known: Vec<String> = known.iter().flat_map(|names| names.iter()).map(|name| plain(name)).collect();
        self.0.iter().filter(move |(name, _)| !known.contains(&plain(name)))
    }

    /// A number from 1 to `most`.
    pub fn count(self, names: &[&str], usual: usize, most: usize) -> Result<usize, Problem> {
        let Some(value) = self.value(names) else { return Ok(usual) };
        // A number in quotes is how a query string has it.
        let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        let number = number.and_then(|number| usize::try_from(number).ok()).filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| Problem::bad(format!("`{}` must be a number from 1 to {most}", names[0])))
    }
}

/// A name without what tells snake from camel case.
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
