//! Search words of a request and of a branch name.

use crate::index_text::query_terms;
use crate::text::{is_stop_word, words};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Maximum words of a request; a long plan is cut.
const TERMS: usize = 120;

/// A word as the index stores it before stemming.
pub type QueryTerm = String;

/// Stems of words that occur in many turns of three unrelated projects. They reveal little about a subject, even if few
/// units are known and rarity is not meaningful yet.
const COMMON: &str = "accept acros action activ actual actually add added after again already alway analys analysi analyz api appear \
    approach around auto automatically availabl back base based becaus befor behavior better between block both branch bug \
    build call case catch caus chang check clean cleanup clear code com command comment commit committ complet config \
    conflict contain content context continu copy correct correctly count creat creation current currently data default \
    delet description design detail dev diff different directly directory display docs documentation doesn done during \
    each either else empty ensur entry error etc even exact exampl exist extra fail fallback fals far featur fetch field \
    file final find first fix fixed flag flow format found fresh full fully function futur gap generat git go group handl \
    head helper history home id implement implementation import includ input insid instead investigat issu item json keep \
    kept key last left line link lint list ll load local location log logic logs made main manual map mark match md mean \
    merg messag miss mode multi name need never new next non none note oh old once one only open option original output \
    own packag parent pass path pattern plan point prefer problem proces project propos pull ran re read real referenc \
    relat remain remov replac repo repository requir result return review right root run runn runs same says set shar show \
    sinc singl skip small solution solv sourc specific standard start stat statu stay step still stor styl successfully \
    summary task tell test text thre through time too tool top track tree true try two type under understand updat usag user \
    uses valid validat valu ve verifi verification verify via view vs warn way what whether whil without work writ yes";

/// Returns the stems of the words that express the subject of a text.
pub fn subject(text: &str) -> HashSet<String> {
    terms(text).iter().map(|term| stem(term)).filter(|stem| says(stem)).collect()
}

/// Returns the subject of several texts, without a word limit. Most words are plain, and cost no allocation unless they
/// are new.
pub fn subject_of<'a>(texts: impl Iterator<Item = &'a str>) -> HashSet<String> {
    let mut all: HashSet<String> = HashSet::new();
    let mut add = |term: &str| {
        let stem = stem_of(term);
        if term.len() > 1 && !all.contains(stem) && !is_stop_word(term) && says(stem) {
            all.insert(stem.to_string());
        }
    };
    for word in texts.flat_map(str::split_whitespace).map(last_of_url).flat_map(words) {
        match word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            true => add(word),
            false => query_terms(word).iter().for_each(|term| add(term)),
        }
    }
    all
}

/// Whether a stem expresses the subject of a text.
fn says(stem: &str) -> bool {
    static IS_COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| COMMON.split(' ').collect());
    !IS_COMMON.contains(stem) && stem.chars().any(char::is_alphabetic)
}

/// Returns a word without its plural or verb suffix: "sessions" becomes "session", "renamed" and "renaming" become
/// "renam".
pub fn stem(word: &str) -> String {
    stem_of(word).to_string()
}

/// The same without a copy.
pub fn stem_of(word: &str) -> &str {
    const LEAST: usize = 4;
    let stem = ["ing", "ed", "es", "s", "e"].iter().find_map(|end| word.strip_suffix(end).filter(|stem| stem.len() >= LEAST));
    stem.unwrap_or(word)
}

/// Returns the words of a request in order, without duplicates. Only the last part of a URL counts: its host carries no
/// information.
pub fn terms(text: &str) -> Vec<QueryTerm> {
    let mut terms: Vec<QueryTerm> = Vec::new();
    for word in text.split_whitespace() {
        for term in query_terms(last_of_url(word)) {
            let says = term.len() > 1 && !is_stop_word(&term);
            if says && !terms.contains(&term) {
                terms.push(term);
            }
            if terms.len() == TERMS {
                return terms;
            }
        }
    }
    terms
}

/// Returns the last part of a URL: `https://example.org/team/repository/issues/12` becomes `12`. Other words are
/// unchanged.
fn last_of_url(word: &str) -> &str {
    let Some((_, path)) = word.split_once("://") else { return word };
    let path = path.split(['?', '#', ')', '>', '"']).next().unwrap_or_default().trim_end_matches(['/', '.', ',', ':']);
    path.rsplit_once('/').map_or("", |(_, last)| last)
}

/// Common trunk branches; their names carry no information.
const TRUNKS: [&str; 14] = [
    "main",
    "master",
    "trunk",
    "mainline",
    "default",
    "develop",
    "development",
    "devel",
    "dev",
    "next",
    "canary",
    "staging",
    "stable",
    "production",
];

/// Whether a branch has the name of a trunk.
pub fn is_trunk(branch: &str) -> bool {
    TRUNKS.contains(&branch)
}

/// The words of a branch name without its owner: `dev1/improve-commit-link` yields improve, commit, link.
pub fn branch_terms(branch: &str) -> Vec<QueryTerm> {
    if is_trunk(branch) {
        return Vec::new();
    }
    terms(branch.rsplit('/').next().unwrap_or(branch))
}

/// Whether a branch is dedicated to one topic. `recent` are the branches of the project's sessions, newest first: a
/// branch on which at least half of them began is a trunk, whatever its name.
pub fn is_topic<'a>(branch: &str, recent: impl Iterator<Item = Option<&'a str>>) -> bool {
    const SESSIONS: usize = 24;
    const LEAST: usize = 5;
    let (mut all, mut here) = (0, 0);
    for other in recent.take(SESSIONS) {
        all += 1;
        here += usize::from(other == Some(branch));
    }
    !is_trunk(branch) && (here < LEAST || here * 2 < all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_words_without_those_that_say_nothing() {
        assert_eq!(terms("Can you please fix parseHookInput in the login?"), ["fix", "parse", "hook", "input", "login"]);
        assert_eq!(terms("Analyse https://example.org/team/cli/issues/7427/."), ["analyse", "7427"]);
        assert_eq!(branch_terms("dev1/improve-commit-link-prompt"), ["improve", "commit", "link", "prompt"]);
        assert!(branch_terms("main").is_empty());
    }

    #[test]
    fn the_subject_of_a_text_is_what_few_texts_are_about() {
        let subject = |text: &str| {
            let mut words: Vec<String> = subject(text).into_iter().collect();
            words.sort();
            words
        };
        assert_eq!(subject("Investigate this issue and fix the failing tests of the exporter"), ["exporter"]);
        assert_eq!(subject("Gradients for the status segment, see #7718"), ["gradient", "segment"]);
    }

    #[test]
    fn a_trunk_is_known_by_its_name_or_by_how_many_sessions_begin_on_it() {
        let recent = |n: usize| [Some("fix/login"), None].into_iter().chain(std::iter::repeat_n(Some("work"), n));
        assert!(is_topic("fix/login", recent(9)) && is_topic("work", recent(4)));
        assert!(!is_topic("work", recent(5)) && !is_topic("main", recent(0)));
    }
}
