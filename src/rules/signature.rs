//! By what an error is the same as another: its words without what differs from case to case.

use super::failures::{error_lines, program, response};
use crate::model::ToolUseRow;
use crate::text::words;
use std::collections::BTreeSet;

/// Maximum words of a signature; minimum words and names of an error, and words of one that is compared by them alone.
const WORDS: usize = 10;
const LEAST: usize = 2;
const LEAST_WORDS: usize = 3;
/// Maximum errors of a failed command.
const LINES: usize = 8;
/// Weight of the names that two errors share: paths, numbers and quoted names.
const NAMES: f64 = 0.3;

/// An error without paths, numbers and quoted names, and those apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    words: Vec<String>,
    names: BTreeSet<String>,
}

impl Signature {
    /// The signature of one line; `None` if the line says too little.
    pub fn of(line: &str) -> Option<Signature> {
        let mut quoted = None;
        let (mut bare, mut named) = (String::with_capacity(line.len()), String::new());
        for c in line.chars() {
            match quoted {
                Some(mark) if c == mark => {
                    quoted = None;
                    named.push(' ');
                }
                Some(_) => named.push(c),
                None if matches!(c, '`' | '"') => quoted = Some(c),
                None => bare.push(c),
            }
        }
        let differs = |word: &&str| word.contains(['/', '\\']) || word.chars().any(|c| c.is_ascii_digit());
        let (other, same): (Vec<&str>, Vec<&str>) = bare.split_whitespace().partition(differs);
        let trimmed = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let same: Vec<String> = same.into_iter().map(trimmed).filter(|word| !word.is_empty()).take(WORDS).collect();
        let names = other.into_iter().chain(named.split_whitespace()).flat_map(words).map(str::to_lowercase);
        let signature = Signature { words: same, names: names.collect() };
        (!signature.words.is_empty() && signature.words.len() + signature.names.len() >= LEAST).then_some(signature)
    }

    /// The words in order, as one text.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }

    /// The words to search for.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// How alike two errors are, from 0 to 1: the share of their words that both have, and of the shorter one's, since what
    /// was pasted may be a part. A little more for the names that both have.
    pub fn likeness(&self, other: &Signature) -> f64 {
        let (a, b): (BTreeSet<&String>, BTreeSet<&String>) = (self.words.iter().collect(), other.words.iter().collect());
        let shared = a.intersection(&b).count() as f64;
        let words = (shared / a.union(&b).count() as f64 + shared / a.len().min(b.len()) as f64) / 2.0;
        let names = match self.names.union(&other.names).count() {
            0 => 0.0,
            all => self.names.intersection(&other.names).count() as f64 / all as f64,
        };
        words + NAMES * names
    }
}

/// The signatures of an output's lines that name errors, each with its line, at most `most`.
pub fn signatures(output: &str, most: usize) -> Vec<(String, Signature)> {
    let known = |line: String| Signature::of(&line).map(|signature| (line, signature));
    error_lines(output).into_iter().filter_map(known).take(most).collect()
}

/// The line of an output that is most like an error, with its likeness and its signature.
pub fn most_alike(output: &str, asked: &Signature) -> Option<(f64, String, Signature)> {
    let known = |line: &str| {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let signature = Signature::of(&line)?;
        Some((asked.likeness(&signature), line, signature))
    };
    // Of equals the first.
    output.lines().filter_map(known).reduce(|best, other| if other.0 > best.0 { other } else { best })
}

/// What a failed command has in common with others: its program, and each of its errors with its signature.
pub fn failure_signatures(tool: &ToolUseRow) -> Option<(String, Vec<(String, String)>)> {
    let program = program(tool.content.as_deref()?);
    let mut all: Vec<(String, String)> = Vec::new();
    for (line, signature) in signatures(response(tool), LINES).into_iter().filter(|(_, one)| one.words.len() >= LEAST_WORDS) {
        if !all.iter().any(|(_, known)| *known == signature.text()) {
            all.push((line, signature.text()));
        }
    }
    (!program.is_empty()).then_some((program, all))
}

#[cfg(test)]
mod tests {
    use super::super::failures::testing::tool;
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_the_same_but_for_paths_numbers_and_names() {
        let failed = |error: &str| {
            let tool = ToolUseRow {
                metadata: json!({"response": format!("Exit code 1\n{error}")}),
                ..tool(1, "command", "mise run lint 2>&1", false)
            };
            failure_signatures(&tool).and_then(|(program, all)| Some(format!("{program}: {}", all.first()?.1)))
        };
        let one = failed("cmd/a.go:95:24: string `user` has 5 occurrences, error: but such constant `typeUser` exists (goconst)");
        let two = failed("cmd/b.go:1:2: string `x` has 3 occurrences, error: but such constant `typeX` exists (goconst)");
        assert_eq!(one, two);
        insta::assert_snapshot!(one.unwrap(), @"mise run lint: string has occurrences error but such constant exists goconst");
        assert_eq!(failed("error: 12"), None);
    }

    #[test]
    fn of_equal_errors_the_one_with_the_same_names_is_more_alike() {
        let signature = |line: &str| Signature::of(line).unwrap();
        let asked = signature("error: cannot find type `Words` in this scope");
        let [same, other] =
            ["Words", "Session"].map(|name| signature(&format!("error: cannot find type `{name}` in this scope")));
        let unlike = signature("error: expected one of `;` or `}`, found the end");
        assert!(asked.likeness(&same) > asked.likeness(&other) && asked.likeness(&other) >= 1.0);
        assert!(asked.likeness(&unlike) < 0.4);
    }
}
