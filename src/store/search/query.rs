//! A query as people type it: words, phrases, negations, prefixes. Never handed to FTS5 as syntax.

use crate::index_text::query_terms;

/// Words of a query that are looked at.
const WORDS: usize = 24;
/// Terms of one phrase, path or identifier that are looked at: FTS5 opens a list for each.
const TERMS: usize = 32;

/// English words that say nothing about what is searched for.
const STOP_WORDS: &[&str] = &[
    "a", "about", "am", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "may", "me", "might", "my", "no", "not", "of", "on", "or", "our", "she", "should", "so", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// What is searched for, freed of syntax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Each is one word, phrase or prefix as an FTS5 expression.
    pub(super) wanted: Vec<String>,
    pub(super) unwanted: Vec<String>,
}

impl Query {
    /// Reads `words "a phrase" -not prefix*`. Stop words are left out unless nothing else is there.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut stopped = Vec::new();
        for (negated, token) in tokens(text).into_iter().take(WORDS) {
            let mut terms = query_terms(token);
            terms.truncate(TERMS);
            // One character of a script without spaces stands in bigrams alone.
            let single = terms.len() == 1 && !terms[0].is_ascii() && terms[0].chars().count() == 1;
            let prefix = single || token.len() > 1 && token.ends_with('*');
            if terms.is_empty() {
                continue;
            }
            // Terms are letters and digits alone, so a quoted string of them is always valid.
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

    /// The words that are looked for, for a person.
    pub fn sought(&self) -> String {
        self.wanted.iter().map(|word| word.trim_matches('"')).collect::<Vec<_>>().join(", ")
    }

    /// Whether it asks for nothing: the newest rows are wanted.
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

/// Cuts at white space, but holds `"a phrase"` together; tells which tokens have a minus before them.
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
