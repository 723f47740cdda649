//! Parses search queries, and corrects typos.

use super::Store;
use crate::index_text::query_terms;
use crate::languages::{self, Language};
use crate::text::is_cjk;
use anyhow::Result;
use strsim::osa_distance;

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
    /// Words, phrases and prefixes, each as an FTS5 expression.
    pub(super) wanted: Vec<String>,
    pub(super) unwanted: Vec<String>,
}

impl Query {
    /// Parses `words "a phrase" -not prefix*`. Stop words are dropped unless there is nothing else.
    pub fn parse(text: &str) -> Query {
        let mut query = Query::default();
        let mut stopped = Vec::new();
        let language = Language::of(text);
        let tokens = tokens(text).into_iter().flat_map(|(negated, is_phrase, token)| {
            let whole = negated || is_phrase || token.ends_with('*');
            let parts = if whole { vec![token.to_string()] } else { parts(token) };
            parts.into_iter().map(move |part| (negated, part))
        });
        for (negated, token) in tokens.take(WORDS) {
            let mut terms = query_terms(&token);
            terms.truncate(TERMS);
            // A single character in a script without spaces occurs in bigrams only.
            let single = terms.len() == 1 && !terms[0].is_ascii() && terms[0].chars().count() == 1;
            let prefix = single || token.len() > 1 && token.ends_with('*');
            if terms.is_empty() {
                continue;
            }
            // Terms consist of letters and digits, so quoting them is always valid.
            let mut expression = format!("\"{}\"{}", terms.join(" "), if prefix { " *" } else { "" });
            let is_stop_word = |term: &str| STOP_WORDS.contains(&term) || language.is_stop_word(term);
            // Other spellings and the stem of a word; the index contains them in addition to the word.
            let others: Vec<String> = if prefix || terms.len() > 1 {
                Vec::new()
            } else {
                languages::spelling(&token).into_iter().chain(languages::stem_terms(&token)).collect()
            };
            let is_stopped = terms.len() == 1 && !prefix && is_stop_word(&terms[0]);
            if !others.is_empty() && !is_stopped && !negated {
                expression = format!("({expression} OR \"{}\")", others.join("\" OR \""));
            }
            if negated {
                query.unwanted.push(expression);
            } else if is_stopped {
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

    /// The searched words, as text for the user.
    pub fn sought(&self) -> String {
        self.wanted.iter().map(|wanted| word_of(wanted)).collect::<Vec<_>>().join(", ")
    }

    /// The terms of the searched words.
    pub fn terms(&self) -> Vec<String> {
        self.wanted.iter().flat_map(|wanted| word_of(wanted).split(' ')).map(String::from).collect()
    }

    /// The words of a searched word or phrase.
    pub fn word(&self, at: usize) -> &str {
        word_of(&self.wanted[at])
    }

    /// Whether a word is a pair of characters out of a run without spaces, which may span two words.
    pub fn is_pair(&self, word: usize) -> bool {
        let term = word_of(&self.wanted[word]);
        term.chars().count() == 2 && term.chars().all(is_cjk)
    }

    /// Number of searched words.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Whether the query has no words; a search then returns the newest rows.
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

/// The word or phrase of an expression: the text between its first quotation marks.
pub(super) fn word_of(expression: &str) -> &str {
    expression.split('"').nth(1).unwrap_or_default()
}

/// Longest run of characters of a script without spaces that is searched as one phrase.
const PHRASE: usize = 4;

/// Splits a token into words. A question in a script without spaces is one token: it is split at stop words, and parts
/// that are still long are searched by their bigrams.
fn parts(token: &str) -> Vec<String> {
    let length = token.chars().filter(|c| is_cjk(*c)).count();
    if length <= PHRASE {
        return vec![token.to_string()];
    }
    let language = Language::of(token);
    let chars: Vec<char> = token.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut at = 0;
    while at < chars.len() {
        let stops = (1..=2)
            .rev()
            .find(|n| chars.get(at..at + n).is_some_and(|part| language.is_stop_word(&part.iter().collect::<String>())));
        let ends_run = word.chars().next_back().is_some_and(|last| is_cjk(last) != is_cjk(chars[at]));
        if stops.is_some() || ends_run {
            words.push(std::mem::take(&mut word));
        }
        match stops {
            Some(n) => at += n,
            None => {
                word.push(chars[at]);
                at += 1;
            }
        }
    }
    words.push(word);
    let bigrams = |word: &String| -> Vec<String> {
        let chars: Vec<char> = word.chars().collect();
        match chars.len() > PHRASE && is_cjk(chars[0]) {
            true => chars.windows(2).map(|pair| pair.iter().collect()).collect(),
            false => vec![word.clone()],
        }
    };
    words.iter().filter(|word| word.chars().any(char::is_alphanumeric)).flat_map(bigrams).collect()
}

/// Splits at white space but keeps `"a phrase"` together; the flags mark tokens after a minus, and phrases.
fn tokens(text: &str) -> Vec<(bool, bool, &str)> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let bare = rest.strip_prefix('-').filter(|word| word.starts_with(|c: char| !c.is_whitespace() && c != '-'));
        rest = bare.unwrap_or(rest);
        let phrase = rest.strip_prefix('"');
        let (token, behind) = match phrase {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => rest.split_at(rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '|')).unwrap_or(rest.len())),
        };
        out.push((bare.is_some(), phrase.is_some(), token));
        // `a|b` are two words.
        rest = behind.trim_start_matches(|c: char| c.is_whitespace() || c == '|');
    }
    out
}

/// Minimum letters of a word to correct, and of its correction; shorter words resemble everything.
const SHORTEST: usize = 5;
const SHORTEST_TERM: usize = 4;
/// Minimum letters of a word for which two differing letters are allowed.
const LONG: usize = 8;
/// Suffixes that stemming removes: "exporter" is indexed as "export".
const ENDINGS: [&str; 15] = ["s", "e", "es", "ed", "er", "ers", "or", "ors", "ing", "ings", "ion", "ions", "ly", "ment", "ation"];

impl Store {
    /// The query with each unknown word replaced by the nearest indexed one; `None` if there is none. Use only for
    /// queries without hits, since it scans all words with the same first letter.
    pub fn corrected(&self, query: &Query) -> Result<Option<Query>> {
        self.conn.execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, 'passage_index', 'row')")?;
        let mut corrected = Query { unwanted: query.unwanted.clone(), ..Query::default() };
        let mut replaced = false;
        for wanted in &query.wanted {
            let word = word_of(wanted);
            if self.stands_somewhere(wanted)? {
                corrected.wanted.push(wanted.clone());
            } else if !word.contains(' ')
                && !wanted.ends_with('*')
                && word.len() >= SHORTEST
                && word.is_ascii()
                && let Some(nearest) = self.nearest(word)?
            {
                corrected.wanted.push(format!("\"{nearest}\""));
                replaced = true;
            }
        }
        Ok(replaced.then_some(corrected))
    }

    fn stands_somewhere(&self, wanted: &str) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM passage_index WHERE passage_index MATCH ?1) OR EXISTS (SELECT 1 FROM tool_index WHERE tool_index MATCH ?1)";
        let expression = format!("- scope : {wanted}");
        Ok(self.conn.prepare_cached(sql)?.query_row([expression], |row| row.get(0))?)
    }

    /// The query with each run of a script without spaces that stands nowhere as a whole replaced by its pairs of
    /// characters: `修复验证` also finds `修复已验证`, and a word with a particle the word without.
    pub fn loosened(&self, query: &Query) -> Result<Query> {
        let mut loosened = Query { unwanted: query.unwanted.clone(), ..Query::default() };
        for wanted in &query.wanted {
            let mut pairs = word_of(wanted).split(' ').filter(|term| term.chars().all(is_cjk));
            let is_run = word_of(wanted).contains(' ') && pairs.clone().count() == word_of(wanted).split(' ').count();
            match is_run && !self.stands_somewhere(wanted)? {
                true => loosened.wanted.extend(pairs.by_ref().map(|pair| format!("\"{pair}\""))),
                false => loosened.wanted.push(wanted.clone()),
            }
        }
        Ok(loosened)
    }

    /// Whether a tool use or a text names any of the files.
    pub fn knows_any_file(&self, names: &[&str]) -> Result<bool> {
        for name in names {
            let terms = query_terms(name.rsplit('/').next().unwrap_or(name));
            if terms.is_empty() || self.stands_somewhere(&format!("\"{}\"", terms.join(" ")))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Finds the nearest indexed word. Most typos occur after the first two letters, and few words share both.
    /// Otherwise, the second letter may be wrong, or the first two may be swapped.
    fn nearest(&self, word: &str) -> Result<Option<String>> {
        let stems = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending)).filter(|stem| stem.len() >= SHORTEST_TERM);
        let forms: Vec<&str> = std::iter::once(word).chain(stems).collect();
        // Where the first letter is wrong, nothing else is: `stripe` is no way to write `trip`.
        for (beginning, forms) in [(&word[..2], &forms[..]), (&word[..1], &forms[..]), (&word[1..2], &forms[..1])] {
            if let Some(found) = self.nearest_among(beginning, forms)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn nearest_among(&self, beginning: &str, forms: &[&str]) -> Result<Option<String>> {
        let word = forms[0];
        let sql = "SELECT term, doc FROM temp.words WHERE term >= ?1 AND term < ?2 AND term NOT GLOB 'qstem*'";
        let after = format!("{beginning}{}", char::MAX);
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([beginning, &after])?;
        let within = if word.len() >= LONG { 2 } else { 1 };
        let mut best: Option<(usize, i64, String)> = None;
        while let Some(row) = rows.next()? {
            let (term, held): (String, i64) = (row.get(0)?, row.get(1)?);
            if term.len() < SHORTEST_TERM || !term.is_ascii() || term.len() > word.len() + within {
                continue;
            }
            let forms = forms.iter().filter(|form| form.len().abs_diff(term.len()) <= within);
            let far = forms.map(|form| osa_distance(&term, form)).min().unwrap_or(usize::MAX);
            let nearer = best.as_ref().is_none_or(|(least, most, _)| far < *least || far == *least && held > *most);
            if far <= within && nearer {
                best = Some((far, held, term));
            }
        }
        Ok(best.map(|(_, _, term)| term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_query_is_words_phrases_negations_and_prefixes() {
        let query = Query::parse("the login \"query string\" -logout -\"a b\" parseHook*");
        assert_eq!(query.sought(), "login, query string, parse hook");
        assert_eq!(query.wanted, ["(\"login\" OR \"qstemdlogi\" OR \"qstemrlogin\")", "\"query string\"", "\"parse hook\" *"]);
        assert_eq!(query.unwanted, ["\"logout\"", "\"a b\""]);
        assert_eq!(Query::parse("what is it").wanted.len(), 3, "stop words alone are better than nothing");
        assert_eq!(Query::parse("Zürich").wanted, ["(\"zürich\" OR \"zuerich\" OR \"qstemdzuerich\" OR \"qstemrzuerich\")"]);
        assert_eq!(Query::parse("为什么没有直接把api去掉").sought(), "为什, 什么, 么没, 没有, 有直, 直接, api, 去掉");
        let whole = Query::parse("\"没有直接去掉\" -没有直接去掉");
        assert_eq!((whole.wanted.len(), whole.unwanted.len()), (1, 1), "a phrase and a negation stay whole");
        assert_eq!(Query::parse("login|logout").sought(), "login, logout");
        assert_eq!(Query::parse("--no-verify").sought(), "no verify");
        assert!(Query::parse(" - \" ").is_empty());
        assert_eq!(Query::parse(&"../etc/passwd".repeat(1000)).wanted[0].split(' ').count(), TERMS, "one token, a short phrase");
    }

    proptest! {
        #[test]
        fn no_query_is_an_error(text in "[\\PC\"*():^+-]{0,60}|(AND|OR|NOT|NEAR| |\"|\\(|\\*|a|:|-){0,20}") {
            let conn = rusqlite::Connection::open_in_memory().unwrap();
            conn.execute_batch("CREATE VIRTUAL TABLE i USING fts5(a, b)").unwrap();
            let query = Query::parse(&text);
            if !query.is_empty() {
                let expression = query.expression(&query.wanted.iter().collect::<Vec<_>>(), " OR ");
                conn.query_row("SELECT count(*) FROM i WHERE i MATCH ?1", [&expression], |r| r.get::<_, i64>(0)).unwrap();
            }
        }
    }
}
