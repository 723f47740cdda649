//! How a program is called: the part of a command line that runs it, and which calls have the same form.

use crate::statements::word_lists::{Words, begins_with, is_one_of};

/// Maximum words before a program that another one runs.
const BY_OTHERS: usize = 3;
/// Options whose value differs from call to call.
const VALUED: Words =
    "-run|-k|-t|--grep|--filter|--test|-m|--message|-n|--count|--timeout|-timeout|--body|--title|-F|-f|--json|-q|--jq";

/// The part of a line that runs a program, with the settings and the folder before it: of `cd app && A=1 go test ./... |
/// tail` it is `cd app && A=1 go test ./...`. `None` if the line does not run it.
pub fn call(line: &str, program: &str) -> Option<String> {
    let mut folder = None;
    for part in parts(line) {
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
    (0..words.len().min(by_others + 1)).any(begins)
}

/// What calls of the same form share: their words without files, quoted texts and values that differ.
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
    for word in bare.split_whitespace() {
        let is_place = word.contains('/') && !word.ends_with("...") || word.contains('.') && !word.starts_with('.');
        let is_number = word.chars().all(|c| c.is_ascii_digit() || c == '#');
        if !(after_valued || is_place && !word.contains('=') || is_number) {
            words.push(word);
        }
        after_valued = is_one_of(VALUED, word);
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
    }

    #[test]
    fn calls_that_differ_in_files_and_names_have_the_same_form() {
        let same = ["go test ./cmd/a -run TestA -v", "go test ./cmd/b.go -run TestB -v"].map(form);
        assert_eq!(same[0], same[1]);
        assert_ne!(form("go test ./..."), form("go test -race ./..."));
        assert_eq!(form("git commit -m 'one thing'"), form("git commit -m \"another\""));
    }
}
