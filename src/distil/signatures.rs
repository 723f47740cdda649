//! Signatures of errors, and forms of commands: without paths, numbers and quoted names.

use super::commands::{error_lines, program, response};
use super::statements::{Words, begins_with, is_one_of};
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

/// Likeness of two errors with one code.
const SAME_CODE: f64 = 0.95;

/// Whether a word in lower case is the code of an error: `err_pnpm_unsupported_engine`, `ts2741`, `e0502`.
fn is_code(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = word.len() - digits.len();
    let is_numbered = (1..=5).contains(&letters) && (3..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let is_other = is_one_of("sha|iso|rfc|aes|http|port|line", &word[..letters]);
    is_numbered && !is_other || word.len() >= 8 && word.matches('_').count() >= 2
}

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
        let says = !signature.words.is_empty() && signature.words.len() + signature.names.len() >= LEAST;
        (says || signature.words.iter().any(|word| is_code(word))).then_some(signature)
    }

    /// The words in order, as one text.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }

    /// The words to search for.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Similarity of two errors, from 0 to 1: the mean share of their words that both have, and of the shorter one's, since what
    /// was pasted may be a part. A little more for the names that both have.
    pub fn likeness(&self, other: &Signature) -> f64 {
        let (a, b): (BTreeSet<&String>, BTreeSet<&String>) = (self.words.iter().collect(), other.words.iter().collect());
        let shared = a.intersection(&b).count() as f64;
        let words = (shared / a.union(&b).count() as f64 + shared / a.len().min(b.len()) as f64) / 2.0;
        // The code of an error says which one it is.
        let mut shared_all = a.intersection(&b).copied().chain(self.names.intersection(&other.names));
        let words = if shared_all.any(|word| is_code(word)) { words.max(SAME_CODE) } else { words };
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

/// Returns the signatures of a failed command: its program, and each of its errors with its signature.
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

/// Maximum words before a program that another one runs.
const BY_OTHERS: usize = 3;
/// Options whose value differs from call to call.
const VALUED: Words =
    "-run|-k|-t|--grep|--filter|--test|-m|--message|-n|--count|--timeout|-timeout|--body|--title|-F|-f|--json|-q|--jq";

/// The part of a line that runs a program, with the settings and the folder before it: of `cd app && A=1 go test ./... |
/// tail` it is `cd app && A=1 go test ./...`. `None` if the line does not run it.
pub fn call(line: &str, program: &str) -> Option<String> {
    let mut folder = None;
    let whole = line.split("\\\n").map(str::trim).collect::<Vec<_>>().join(" ");
    for part in parts(&whole) {
        let part = KEYWORDS.iter().find_map(|keyword| part.strip_prefix(keyword)).unwrap_or(part);
        if begins_with("cd ", part) {
            folder = Some(part).filter(|part| !part.contains('/') || !part[3..].trim_start().starts_with(['/', '~', '"']));
            continue;
        }
        if runs(part, program) {
            let call = without_output(part);
            return Some(folder.map_or(call.to_string(), |folder| format!("{folder} && {call}")));
        }
    }
    None
}

/// Words of the shell before a command.
const KEYWORDS: [&str; 6] = ["do ", "then ", "else ", "if ", "while ", "! "];
/// Programs that only look for a program, or install, print or end it.
const NAMES_ONLY: Words = "which|type|whereis|man|echo|printf|grep|rg|pgrep|pkill|killall|brew|apt|apt-get|ls|cat|for|in";

/// Whether a command runs a program, itself or by another one (`npx`, `timeout 60`). Options may stand between the
/// program and its subcommand: `git -C app push` runs `git push`.
fn runs(part: &str, program: &str) -> bool {
    let words: Vec<&str> = part.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-')).collect();
    let wanted: Vec<&str> = program.split_whitespace().collect();
    let begins = |from: usize| {
        let mut words = words[from..].iter().copied();
        wanted.iter().enumerate().all(|(at, wanted)| {
            let mut next = words.next();
            while let Some(option) = next.filter(|word| at > 0 && word.starts_with('-') && word != wanted) {
                next = if is_one_of("-C|-c|-R|--repo|--cwd|--prefix", option) { words.nth(1) } else { words.next() };
            }
            next.is_some_and(|word| word == *wanted || at == 0 && word.rsplit('/').next() == Some(*wanted))
        })
    };
    let by_others = words.iter().take(BY_OTHERS).take_while(|word| !word.starts_with(['-', '"', '\'', '$', '('])).count();
    let by_others = words.iter().take(by_others).take_while(|word| !is_one_of(NAMES_ONLY, word)).count();
    (0..words.len().min(by_others + 1)).any(begins)
}

/// Form of a call: their words without files, quoted texts and values that differ.
pub fn form(call: &str) -> String {
    let mut quoted = false;
    let mut bare = String::new();
    for c in call.chars() {
        match c {
            '"' | '\'' => quoted = !quoted,
            _ if quoted => {}
            c => bare.push(c),
        }
    }
    let mut words: Vec<&str> = Vec::new();
    let mut after_valued = false;
    // The filter of these names a package, that of others a test.
    let by_package = bare.split_whitespace().any(|word| matches!(word, "pnpm" | "turbo" | "yarn"));
    for word in bare.split_whitespace() {
        let is_place = word.contains('/') && !word.ends_with("...") || word.contains('.') && !word.starts_with('.');
        let is_number = word.chars().all(|c| c.is_ascii_digit() || c == '#');
        let is_package = by_package && word.starts_with('@');
        if !(after_valued || is_place && !is_package && !word.contains('=') || is_number) {
            words.push(word);
        }
        after_valued = is_one_of(VALUED, word) && !(by_package && matches!(word, "--filter" | "-F"));
    }
    words.join(" ")
}

/// The commands of a line, in order; what is quoted belongs to its command.
fn parts(line: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, None);
    let bytes = line.as_bytes();
    for at in 0..bytes.len() {
        match (quoted, bytes[at]) {
            (Some(mark), c) if c == mark => quoted = None,
            (Some(_), _) => {}
            (None, c @ (b'"' | b'\'')) => quoted = Some(c),
            (None, b';' | b'\n') => {
                parts.push(&line[from..at]);
                from = at + 1;
            }
            (None, b'&' | b'|') if bytes.get(at + 1) == Some(&bytes[at]) && at >= from => {
                parts.push(&line[from..at]);
                from = at + 2;
            }
            _ => {}
        }
    }
    parts.push(line.get(from..).unwrap_or_default());
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// A command without its redirections and without what reads its output.
fn without_output(part: &str) -> &str {
    let mut quoted = None;
    for (at, c) in part.char_indices() {
        match quoted {
            Some(mark) if c == mark => quoted = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quoted = Some(c),
            None if matches!(c, '|' | '>') => return part[..at].trim_end().trim_end_matches([' ', '2', '&']).trim_end(),
            None => {}
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distil::commands::testing::tool;
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

    #[test]
    fn the_code_of_an_error_says_which_one_it_is() {
        let signature = |line: &str| Signature::of(line).unwrap();
        let line = "ERR_PNPM_UNSUPPORTED_ENGINE  Unsupported environment (bad pnpm and/or Node.js version)";
        assert!(signature("ERR_PNPM_UNSUPPORTED_ENGINE").likeness(&signature(line)) >= SAME_CODE);
        let [asked, printed] =
            ["error TS2741: Property 'props' is missing", "src/a.ts(1,7): error TS2741: Property 'x' is missing in type"];
        assert!(signature(asked).likeness(&signature(printed)) >= SAME_CODE);
        assert_eq!(Signature::of("failed"), None);
        assert!(!is_code("sha256") && !is_code("port8080") && is_code("e0502"));
    }

    #[test]
    fn a_call_is_the_part_that_runs_the_program() {
        let line = "cd app && CGO_ENABLED=0 go test ./... -run 'A|B' 2>&1 | tail -5; echo done";
        assert_eq!(call(line, "go test").unwrap(), "cd app && CGO_ENABLED=0 go test ./... -run 'A|B'");
        assert_eq!(call("cd /srv/app && go vet ./...", "go").unwrap(), "go vet ./...");
        assert_eq!(call("gofmt -l . && make test", "go"), None);
        assert_eq!(call("git -C app push --force", "git push").unwrap(), "git -C app push --force");
        assert_eq!(call("timeout 60 npx biome check src", "biome check").unwrap(), "timeout 60 npx biome check src");
        assert_eq!(call("echo hello; grep -r go test", "go test"), None);
        assert_eq!(call("git commit -m \"go test && more\"", "go test"), None);
        assert_eq!(call("for d in a b; do go vet ./$d; done", "go").unwrap(), "go vet ./$d");
        assert_eq!(call("which docker || brew install docker", "docker"), None);
        assert_eq!(call("go test \\\n  ./...", "go").unwrap(), "go test ./...");
    }

    #[test]
    fn calls_that_differ_in_files_and_names_have_the_same_form() {
        let same = ["go test ./cmd/a -run TestA -v", "go test ./cmd/b.go -run TestB -v"].map(form);
        assert_eq!(same[0], same[1]);
        assert_ne!(form("go test ./..."), form("go test -race ./..."));
        assert_eq!(form("git commit -m 'one thing'"), form("git commit -m \"another\""));
    }
}
