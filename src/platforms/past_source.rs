//! Sessions that are not lines of a file, but one JSON document or rows of a database. They are converted to records,
//! which the format's reader handles like lines. Nothing here opens a database: `import` passes the rows.

use crate::model::Millis;
use anyhow::Result;
use serde_json::{Map, Value};
use std::path::Path;

/// A row of a database, by column.
pub type Columns = Map<String, Value>;

/// Storage of a format's sessions.
#[derive(Clone, Copy, Debug)]
pub enum PastSource {
    /// One file per session, with a JSON object on each line.
    Lines,
    /// One file per session, as one document, possibly with related files.
    Document(PastDocument),
    /// A database with many sessions.
    Database(PastDatabase),
}

/// Sessions that are documents.
#[derive(Clone, Copy, Debug)]
pub struct PastDocument {
    /// Whether a file is one, by its path.
    pub is_file: fn(&Path) -> bool,
    /// Reads a session's records, in order.
    pub records: fn(&Path) -> Result<Vec<Value>>,
}

/// Sessions in a database.
#[derive(Clone, Copy, Debug)]
pub struct PastDatabase {
    /// Whether a file is one, by its path.
    pub is_file: fn(&Path) -> bool,
    /// Lists the sessions of the database at a path.
    pub sessions: fn(&dyn Rows, &Path) -> Result<Vec<PastPart>>,
    /// Reads a session's records, in order.
    pub records: fn(&dyn Rows, &PastPart) -> Result<Vec<Value>>,
}

/// A session in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastPart {
    /// The agent's id of the session.
    pub id: String,
    /// Bytes, or another number that grows with the session; 0 if only the time shows that it has grown.
    pub size: u64,
    pub modified_at: Millis,
    /// The folder in which it began.
    pub cwd: Option<String>,
}

/// Formats a time as in records (RFC 3339); `None` if it is not valid.
pub fn timestamp(at: Millis) -> Option<String> {
    Some(jiff::Timestamp::from_millisecond(at).ok().filter(|_| at > 0)?.to_string())
}

/// Rows of another program's database. A table that does not exist has none.
pub trait Rows {
    fn all(&self, table: &str) -> Result<Vec<Columns>>;

    /// Returns the rows in which a column has a value, sorted by other columns.
    fn with(&self, table: &str, column: &str, value: &str, order: &[&str]) -> Result<Vec<Columns>>;

    /// Returns the rows whose key begins with a text, by a key range query. No other row is read.
    fn keyed(&self, table: &str, key: &str, begin: &str) -> Result<Vec<Columns>>;
}

/// Returns the path of a `file://` URL.
pub fn path_of_url(url: &str) -> Option<String> {
    url.strip_prefix("file://").map(without_escapes)
}

/// Decodes the percent escapes in a URL's path.
fn without_escapes(url: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), url.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *byte == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(escaped) => (bytes.push(escaped), rest = &behind[2..]),
            None => (bytes.push(*byte), rest = behind),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_path_with_escapes() {
        assert_eq!(path_of_url("file:///home/a%20b/%C3%A9%").as_deref(), Some("/home/a b/é%"));
        assert_eq!(path_of_url("vscode-remote://ssh/home"), None);
    }
}
