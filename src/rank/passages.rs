//! Scores how well statements answer a request, by shared words.

use super::terms::{stem, terms};
use std::collections::{HashMap, HashSet};

/// Returns for each text its share of the request's words, relative to the best text, between 0 and 1. A word weighs
/// more if fewer of the texts have it. Words that no text has do not count.
pub fn fit(request: &str, texts: &[&str]) -> Vec<f64> {
    let asked: HashSet<String> = terms(request).iter().map(|term| stem(term)).collect();
    let shared = |text: &&str| terms(text).iter().map(|term| stem(term)).filter(|stem| asked.contains(stem)).collect();
    let shared: Vec<HashSet<String>> = texts.iter().map(shared).collect();
    let mut known: HashMap<&str, f64> = HashMap::new();
    for stem in shared.iter().flatten() {
        *known.entry(stem).or_default() += 1.0;
    }
    let weight = |stem: &String| (1.0 + texts.len() as f64 / known[stem.as_str()]).ln();
    let sums: Vec<f64> = shared.iter().map(|stems| stems.iter().map(weight).sum()).collect();
    let most = sums.iter().copied().fold(0.0, f64::max);
    sums.into_iter().map(|sum| if most > 0.0 { sum / most } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_fits_by_the_rare_words_that_it_shares_with_the_request() {
        let texts = ["The parser skips tabs", "The parser renames sessions", "Nothing else"];
        let [tabs, sessions, nothing] = fit("why are sessions renamed by the parser?", &texts)[..] else { panic!() };
        assert!(sessions == 1.0 && tabs > 0.0 && tabs < 0.5 && nothing == 0.0, "{tabs} {sessions} {nothing}");
        assert_eq!(fit("", &texts), [0.0; 3]);
    }
}
