//! Parses a typed query: words, phrases, negations, prefixes. Nothing reaches FTS5 as syntax.

use crate::index_text::query_terms;

/// Maximum words of a query.
const WORDS: usize = 24;
/// Maximum terms of a phrase, path or identifier; FTS5 opens a list for each.
const TERMS: usize = 32;

/// English words without meaning for a search.
const STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "may", "me", "might", "my", "no", "not", "of", "on", "or", "our", "she", "should", "so", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Each is one word, phrase or prefix as an FTS5 expression.
    pub(super) wanted: Vec<String>,
    pub(super) unwanted: Vec<String>,
}

impl Query {
    /// Parses `words "a phrase" -not prefix*`. Stop words are dropped unless there is nothing else.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut stopped = Vec::new();
        for (negated, token) in tokens(text).into_iter().take(WORDS) {
            let mut terms = query_terms(token);
            terms.truncate(TERMS);
            // A single character in a script without spaces occurs in bigrams only.
            let single = terms.len() == 1 && !terms[0].is_ascii() && terms[0].chars().count() == 1;
            let prefix = single || token.len() > 1 && token.ends_with('*');
            if terms.is_empty() {
                continue;
            }
            // Terms consist of letters and digits, so quoting them is always valid.
            let expression = format!("\"{}\"{}", terms.join(" "), if prefix { " *" } else { "" });
            if negated {
                query.unwanted.push(expression);
            } else if terms.len() == 1 && !prefix && STOP_WORDS.contains(&terms[0].as_str()) {
                stopped.push(expression);
            } else {
                query.wanted.push(expression);
            }
        }
        if query.wanted.is_empty() {
            query.wanted = stopped;
        }
        query
    }

    /// The searched words, for a person.
    pub fn sought(&self) -> String {
        self.wanted.iter().map(|word| word.trim_matches('"')).collect::<Vec<_>>().join(", ")
    }

    /// Whether it is empty: the newest rows are wanted.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    pub(super) fn expression(&self, wanted: &[&String], join: &str) -> String {
        let wanted = wanted.iter().map(|w| w.as_str()).collect::<Vec<_>>().join(join);
        match self.unwanted.is_empty() {
            true => wanted,
            false => format!("({wanted}) NOT ({})", self.unwanted.join(" OR ")),
        }
    }
}

/// Splits at white space but keeps `"a phrase"` together; the flag marks tokens after a minus.
fn tokens(text: &str) -> Vec<(bool, &str)> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let bare = rest.strip_prefix('-').filter(|word| word.starts_with(|c: char| !c.is_whitespace()));
        rest = bare.unwrap_or(rest);
        let (token, behind) = match rest.strip_prefix('"') {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len())),
        };
        out.push((bare.is_some(), token));
        rest = behind.trim_start();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_phrases_negations_and_prefixes() {
        let query = Query::parse("the login \"query string\" -logout -\"a b\" parseHook*");
        assert_eq!(query.wanted, ["\"login\"", "\"query string\"", "\"parse hook\" *"]);
        assert_eq!(query.unwanted, ["\"logout\"", "\"a b\""]);
        assert_eq!(Query::parse("what is it").wanted.len(), 3, "stop words alone are better than nothing");
        assert!(Query::parse(" - \" ").is_empty());
        assert_eq!(Query::parse(&"../etc/passwd".repeat(1000)).wanted[0].split(' ').count(), TERMS, "one token, a short phrase");
    }
}
