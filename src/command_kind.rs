//! The purpose of a shell command (build, test, lint, git, commit, install or other), and whether it failed although
//! its exit status says otherwise.
//!
//! A command line is split at `&&`, `||`, `;`, `|` and line ends outside quotes. Each part is classified by its program
//! and first words, and the strongest class wins, so `cd x && cargo test | tail` is a test. Only names count; the
//! command is never run or expanded.

use crate::model::CommandKind;

/// Classifies a command line.
pub fn classify(line: &str) -> CommandKind {
    parts(line).iter().map(|part| judge(part)).max_by_key(|kind| strength(*kind)).unwrap_or(CommandKind::Other)
}

/// Returns the rank of a class. A line of several commands takes the class that reveals most about the work.
fn strength(kind: CommandKind) -> u8 {
    match kind {
        CommandKind::Other => 0,
        CommandKind::Git => 1,
        CommandKind::Install => 2,
        CommandKind::Lint => 3,
        CommandKind::Build => 4,
        CommandKind::Test => 5,
        CommandKind::Commit => 6,
    }
}

/// Programs that only start another program; their own words are skipped.
const WRAPPERS: &[&str] =
    &["sudo", "env", "time", "timeout", "nice", "npx", "bunx", "pnpx", "uvx", "exec", "command", "xargs", "nohup", "rtk"];

const TEST_PROGRAMS: &[&str] = &[
    "pytest",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "rspec",
    "phpunit",
    "ctest",
    "tox",
    "nox",
    "gotestsum",
    "playwright",
    "cypress",
    "bats",
    "prove",
];
const LINT_PROGRAMS: &[&str] = &[
    "eslint",
    "prettier",
    "ruff",
    "flake8",
    "pylint",
    "mypy",
    "pyright",
    "black",
    "isort",
    "biome",
    "clippy-driver",
    "rustfmt",
    "gofmt",
    "goimports",
    "golangci-lint",
    "staticcheck",
    "shellcheck",
    "shfmt",
    "clang-format",
    "clang-tidy",
    "stylelint",
    "rubocop",
    "ktlint",
    "swiftlint",
    "yamllint",
    "markdownlint",
    "hadolint",
];
const BUILD_PROGRAMS: &[&str] = &[
    "tsc",
    "ninja",
    "cmake",
    "webpack",
    "vite",
    "esbuild",
    "rollup",
    "gcc",
    "g++",
    "clang",
    "clang++",
    "cc",
    "c++",
    "rustc",
    "javac",
    "bazel",
    "buck2",
    "meson",
    "msbuild",
    "xcodebuild",
    "swiftc",
];
/// Programs whose subcommand decides the class.
const RUNNERS: &[&str] = &[
    "cargo", "go", "npm", "pnpm", "yarn", "bun", "deno", "make", "just", "task", "mise", "gradle", "gradlew", "mvn", "mvnw",
    "dotnet", "swift", "mix", "rake", "bundle", "composer", "uv", "poetry", "pdm", "hatch", "python", "python3", "pip", "pip3",
    "apt", "apt-get", "brew", "dnf", "pacman", "apk", "gem", "docker", "stack", "cabal", "zig", "sbt", "lein", "nx", "turbo",
];

fn judge(part: &[&str]) -> CommandKind {
    let mut words = part.iter().copied().skip_while(|w| is_prefix(w));
    let Some(program) = words.next() else { return CommandKind::Other };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe");
    let rest: Vec<&str> = words.collect();
    // `rtk test cargo test`, `rtk err make`: the words after the mode are the command; `rtk lint` is one by itself.
    if part.contains(&"rtk") && matches!(name, "test" | "lint" | "err" | "proxy") {
        return match (judge(&rest), name) {
            (CommandKind::Other, "test") => CommandKind::Test,
            (CommandKind::Other, "lint") => CommandKind::Lint,
            (kind, _) => kind,
        };
    }
    match name {
        "git" => git(&rest),
        _ if TEST_PROGRAMS.contains(&name) => CommandKind::Test,
        _ if LINT_PROGRAMS.contains(&name) => CommandKind::Lint,
        _ if BUILD_PROGRAMS.contains(&name) => CommandKind::Build,
        _ if RUNNERS.contains(&name) => runner(name, &rest),
        _ if name.contains("test") && program.contains('/') => CommandKind::Test,
        _ => CommandKind::Other,
    }
}

/// Whether a word precedes the program: an environment variable, a wrapper, or a flag or number that wrappers take.
fn is_prefix(word: &str) -> bool {
    let variable = word.split_once('=').is_some_and(|(n, _)| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    variable || WRAPPERS.contains(&word) || word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit())
}

fn git(rest: &[&str]) -> CommandKind {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-C" | "-c" | "--git-dir" | "--work-tree" => {
                words.next();
            }
            "commit" | "cherry-pick" | "revert" => return CommandKind::Commit,
            w if w.starts_with('-') => {}
            _ => break,
        }
    }
    CommandKind::Git
}

/// Whether a word before the verb of a runner is followed by a value.
pub fn takes_value(name: &str, word: &str) -> bool {
    const VALUED: [&str; 11] = [
        "--filter",
        "-F",
        "--prefix",
        "-C",
        "--dir",
        "--cwd",
        "--workspace",
        "--manifest-path",
        "--package",
        "--project",
        "--directory",
    ];
    match word {
        "-w" => name == "npm",
        "-f" | "--file" => matches!(name, "make" | "just" | "mvn" | "docker"),
        "workspace" => name == "yarn",
        _ => VALUED.contains(&word),
    }
}

fn runner(name: &str, rest: &[&str]) -> CommandKind {
    let is_verb =
        |w: &&str| !w.starts_with('-') && !w.starts_with('+') && !matches!(*w, "run" | "exec" | "x" | "tool" | "compose");
    // `pnpm --filter api test`, `make -C docs all`, `yarn workspace api test`: the value of an option is no verb.
    let mut is_value = false;
    let without_values = rest.iter().copied().filter(|w| {
        let skips = std::mem::replace(&mut is_value, takes_value(name, w));
        !skips && !is_value
    });
    let mut words = without_values.filter(is_verb);
    let Some(verb) = words.next() else {
        return match name {
            "make" | "just" | "gradle" | "gradlew" => CommandKind::Build,
            "yarn" => CommandKind::Install,
            _ if rest.contains(&"-m") => CommandKind::Other,
            _ => CommandKind::Other,
        };
    };
    let verb = verb.rsplit(['/', '\\']).next().unwrap_or(verb);
    if TEST_PROGRAMS.contains(&verb) || matches!(verb, "unittest" | "nextest" | "t") {
        return CommandKind::Test;
    }
    if LINT_PROGRAMS.contains(&verb) {
        return CommandKind::Lint;
    }
    // `npm run test:unit`, `make test-all`, `just lint_fix`: the first part of the name counts.
    match verb.split([':', '-', '_', '.']).next().unwrap_or(verb) {
        "test" | "tests" | "check" if name != "cargo" || verb != "check" => match verb {
            "check" if name == "make" || name == "just" => CommandKind::Test,
            "check" => CommandKind::Lint,
            _ => CommandKind::Test,
        },
        "lint" | "fmt" | "format" | "clippy" | "vet" | "typecheck" | "prettier" => CommandKind::Lint,
        "build" | "compile" | "package" | "assemble" | "check" | "bench" | "all" | "tsc" => CommandKind::Build,
        "install" | "add" | "i" | "ci" | "update" | "upgrade" | "sync" | "get" | "remove" | "uninstall" | "mod"
            if name != "make" && name != "cargo" || matches!(verb, "install" | "add" | "update" | "remove") =>
        {
            CommandKind::Install
        }
        "verify" if name.starts_with("mvn") => CommandKind::Test,
        "pip" | "pip3" if words.next().is_some_and(|w| w == "install") => CommandKind::Install,
        _ => CommandKind::Other,
    }
}

/// The subject of the commit that a line makes: the first line of `-m`, or of the heredoc that agents often use. `None`
/// if it is unclear whether a commit was made: a dry run, or a line whose status is that of another command.
pub fn commit_message(line: &str) -> Option<String> {
    let all = parts(line);
    let words = all.iter().find(|part| judge(part) == CommandKind::Commit && part.contains(&"commit"))?;
    if words.iter().any(|w| matches!(*w, "--dry-run" | "-n" | "--amend" | "--abort")) {
        return None;
    }
    let at = words.iter().position(|w| *w == "commit")?;
    let flag = |w: &&str| w.starts_with('-') && !w.starts_with("--") && w.ends_with('m');
    let message = words[at..].iter().enumerate().find_map(|(i, word)| match word {
        w if flag(w) => words.get(at + i + 1).copied(),
        w => w.strip_prefix("--message=").or_else(|| w.strip_prefix("-m").filter(|m| m.starts_with(['"', '\'']))),
    })?;
    let quote = message.chars().next().filter(|c| matches!(c, '"' | '\''));
    let body = quote.and_then(|q| message.strip_prefix(q)).unwrap_or(message);
    let (subject, rest) = if body.starts_with("$(cat") {
        let heredoc = line.split_once("<<")?.1;
        (heredoc.lines().nth(1)?, heredoc.rsplit_once(")\"").map_or("", |(_, rest)| rest))
    } else {
        let last = words.last()?;
        // Words are slices of the line, so the end of the last one is an offset in it.
        let end = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
        (quote.and_then(|q| body.strip_suffix(q)).unwrap_or(body).lines().next()?, &line[end..])
    };
    Some(subject.trim().to_string()).filter(|s| !s.is_empty() && !hides_status(rest))
}

/// The folder in which a line commits, if it names one: `cd ../site && git commit`, `git -C ../site commit`.
pub fn commit_folder(line: &str) -> Option<&str> {
    let all = parts(line);
    let at = all.iter().position(|part| judge(part) == CommandKind::Commit)?;
    let option = all[at].windows(2).find(|pair| pair[0] == "-C").map(|pair| pair[1]);
    let entered = all[..at].iter().rev().find(|part| part[0] == "cd").and_then(|part| part.get(1).copied());
    let folder = option.or(entered)?.trim_matches(['"', '\'']);
    // The value of a variable is not known.
    (!folder.contains(['$', '`', '*'])).then_some(folder)
}

/// The folder in which a line works, if it names one at its start: `cd ../site && make`, `git -C ../site log`.
pub fn entered_folder(line: &str) -> Option<&str> {
    let all = parts(line);
    let first = all.iter().find(|part| !matches!(part.first(), Some(&("set" | "export" | "unset"))))?;
    let folder = match *first.first()? {
        "cd" | "pushd" => first[1..].iter().copied().find(|word| *word != "--"),
        "git" => first.windows(2).find(|pair| pair[0] == "-C").map(|pair| pair[1]),
        _ => None,
    }?;
    let folder = folder.trim_matches(['"', '\'']);
    let rest = folder.strip_prefix("~/").or(folder.strip_prefix("$HOME/")).unwrap_or(folder);
    (!rest.contains(['$', '`', '*', '~'])).then_some(folder)
}

/// The sorts of checks that the hooks of a repository ran before a commit. They passed, or there would be no commit. Hooks print
/// the commands that they start (`$ bun test src/`, `> vitest run`), results (`ruff....Passed`), or, before git's own
/// line, words about checks (`lint ok`).
pub fn checks_by_hooks(line: &str, output: &str) -> Vec<CommandKind> {
    const WORDS: [(CommandKind, &[&str]); 3] = [
        (CommandKind::Test, &["test", "tests", "pytest", "vitest", "jest", "pass", "passed"]),
        (CommandKind::Build, &["build", "typecheck", "tsc", "mypy", "pyright", "check-types"]),
        (CommandKind::Lint, &["lint", "eslint", "ruff", "clippy", "biome", "prettier", "black", "flake8"]),
    ];
    let is_git = |part: &Vec<&str>| matches!(part.first().copied(), Some("git" | "cd"));
    let is_commit = classify(line) == CommandKind::Commit && !line.contains("--no-verify") && parts(line).iter().all(is_git);
    // Some hooks let a commit pass although a check fails.
    if !is_commit || output.lines().map(str::trim).any(says_failed) {
        return Vec::new();
    }
    let named = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let is_word = |words: &[&str]| lower.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| words.contains(&word));
        WORDS.into_iter().filter(move |(_, words)| is_word(words)).map(|(kind, _)| kind).collect::<Vec<_>>()
    };
    // `warning: in the working copy of 'tests/a.rs', LF will be replaced by CRLF` is git's own, and what was skipped did not pass.
    let is_about_checks = |line: &str| !["warning:", "hint:", "skip"].iter().any(|word| line.to_ascii_lowercase().contains(word));
    let mut found = Vec::new();
    let mut is_before = output.lines().any(is_made);
    for printed in output.lines().map(str::trim) {
        is_before &= !is_made(printed);
        let started = printed.strip_prefix("$ ").or_else(|| printed.strip_prefix("> "));
        let passed = printed.strip_suffix("Passed").filter(|name| name.ends_with("..."));
        found.extend(started.map(classify));
        found.extend(passed.or(Some(printed).filter(|line| is_before && is_about_checks(line))).map(named).unwrap_or_default());
    }
    found.retain(|kind| matches!(kind, CommandKind::Test | CommandKind::Build | CommandKind::Lint));
    found.sort();
    found.dedup();
    found
}

/// Whether git reports a commit in a line: `[main 1a2b3c4] Fix it`.
fn is_made(line: &str) -> bool {
    line.starts_with('[') && line.split_once("] ").is_some_and(|(made, _)| made.contains(' '))
}

/// Bytes at the end of an output that are searched for failures.
const OUTPUT: usize = 64 << 10;

/// Whether a build, test or lint failed although the line succeeded: `cargo test | tail` exits with the status of
/// `tail`. Only the summaries that runners print count. In real sessions, one in 25 test runs that looked green had
/// failed.
pub fn failed_unseen(line: &str, kind: CommandKind, output: &str) -> bool {
    let runs = matches!(kind, CommandKind::Build | CommandKind::Test | CommandKind::Lint);
    if !runs || !hides_status(line) {
        return false;
    }
    let from = output.len().saturating_sub(OUTPUT);
    let from = (from..=output.len()).find(|&i| output.is_char_boundary(i)).unwrap_or(0);
    output[from..].lines().map(str::trim).any(says_failed)
}

/// Maximum bytes of an error that only says that nothing ran.
const NEVER_RAN: usize = 600;

/// Whether the output of a command that failed says that it never ran: its program is not there, or refused its arguments.
/// Then nothing was checked.
pub fn never_ran(output: &str) -> bool {
    const STARTS: [&str; 13] = [
        "error: unrecognized subcommand",
        "error: unknown command",
        "error: unexpected argument",
        "error: no such command",
        "error: no such subcommand",
        "error: Script not found",
        "npm error Missing script",
        "npm ERR! Missing script",
        "unknown command",
        "Unknown command",
        "flag provided but not defined",
        "make: *** No rule to make target",
        "just: error: Justfile does not contain recipe",
    ];
    const ENDS: [&str; 3] = [": command not found", ": not found", "is not recognized as an internal or external command,"];
    const SHELLS: [&str; 6] = ["bash: ", "sh: ", "/bin/sh: ", "/bin/bash: ", "zsh: ", "(eval):"];
    let line_says = |line: &str| {
        let of_shell = SHELLS.iter().any(|shell| line.starts_with(shell));
        // A file that a target needs is a failure of the build.
        STARTS.iter().any(|start| line.starts_with(start)) && !line.contains(", needed by ")
            || ENDS.iter().any(|end| line.ends_with(end)) && (of_shell || line.ends_with(','))
            || of_shell && (line.ends_with("No such file or directory") || line.contains("command not found"))
    };
    output.len() <= NEVER_RAN && output.lines().map(str::trim).any(line_says)
}

/// Whether the exit status belongs to another command, because of a pipe, list or alternative.
fn hides_status(line: &str) -> bool {
    let mut quote = None;
    line.chars().any(|c| match (quote, c) {
        (None, '|' | ';') => true,
        (None, '"' | '\'') => {
            quote = Some(c);
            false
        }
        (Some(open), c) => {
            if c == open {
                quote = None;
            }
            false
        }
        _ => false,
    })
}

/// Whether a line reports a failure, as cargo, go test, pytest, jest, mocha, make and the C and TypeScript compilers
/// print it.
fn says_failed(line: &str) -> bool {
    const STARTS: [&str; 9] = [
        "--- FAIL",
        "FAIL\t",
        "FAIL ",
        "FAILED ",
        "test result: FAILED",
        "error: could not compile",
        "error: test failed",
        "error[E",
        "make: ***",
    ];
    let summary = line.contains("passed") || line.starts_with("Tests:") || line.contains("failed in ");
    let counted = summary
        && line.match_indices(" failed").any(|(at, _)| {
            let number = line[..at].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            !number.is_empty() && !number.trim_start_matches('0').is_empty()
        });
    line == "FAIL" || counted || STARTS.iter().any(|start| line.starts_with(start)) || line.contains(": error TS")
}

/// Splits a line into commands and words. Quotes keep their text together; heredoc bodies are dropped.
fn parts(line: &str) -> Vec<Vec<&str>> {
    let line = line.split("<<").next().unwrap_or(line);
    let (mut all, mut words, mut from, mut quote) = (Vec::new(), Vec::new(), None::<usize>, None::<char>);
    for (at, c) in line.char_indices() {
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
            continue;
        }
        let separates = matches!(c, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}');
        if separates || c.is_whitespace() {
            if let Some(start) = from.take() {
                words.push(&line[start..at]);
            }
            if separates && !words.is_empty() {
                all.push(std::mem::take(&mut words));
            }
            continue;
        }
        if matches!(c, '"' | '\'') {
            quote = Some(c);
        }
        from.get_or_insert(at);
    }
    if let Some(start) = from {
        words.push(&line[start..]);
    }
    if !words.is_empty() {
        all.push(words);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_folder_of_a_commit_is_the_one_that_its_line_enters() {
        for (line, folder) in [
            ("cd ../site && git add -A && git commit -m 'x'", Some("../site")),
            ("git -C '/srv/site' commit -m x", Some("/srv/site")),
            ("cd src; git commit -am x && cd ../other", Some("src")),
            ("cd \"$SITE\" && git commit -m x", None),
            ("git commit -m 'cd ../site'", None),
        ] {
            assert_eq!(commit_folder(line), folder, "{line}");
        }
    }

    #[test]
    fn commands_are_named_after_what_says_most() {
        use CommandKind::*;
        for (line, kind) in [
            ("echo hi", Other),
            ("cargo test -p core", Test),
            ("cd app && RUST_LOG=debug cargo +nightly test 2>&1 | tail -20", Test),
            ("cargo check", Build),
            ("cargo clippy --all", Lint),
            ("cargo nextest run", Test),
            ("cargo install --path .", Install),
            ("go test ./...", Test),
            ("go vet ./...", Lint),
            ("go mod tidy", Install),
            ("rtk test bun run unit", Test),
            (". \"$NVM_DIR/nvm.sh\" && nvm use && pnpm --filter @acme/api test", Test),
            ("pnpm -C packages/api run build", Build),
            ("npm --prefix web -w api run lint", Lint),
            ("yarn workspace @acme/api test", Test),
            ("make -C docs -f Makefile.dev test", Test),
            ("cargo --manifest-path fuzz/Cargo.toml build", Build),
            ("pnpm --filter test dev", Other),
            ("rtk lint bun run lint 2>&1", Lint),
            ("rtk err cargo build", Build),
            ("rtk git status", Git),
            ("mise run test:ci", Test),
            ("npm run lint", Lint),
            ("npm ci", Install),
            ("npx vitest run", Test),
            ("yarn", Install),
            ("make", Build),
            ("make check", Test),
            ("python3 -m pytest -x", Test),
            ("python -m pip install x", Install),
            ("uv run pytest", Test),
            ("timeout 60 pytest", Test),
            ("git status", Git),
            ("git -C /x commit -m 'test: add'", Commit),
            ("git add -A && git commit -m \"build: x; cargo test\"", Commit),
            ("git log --grep commit", Git),
            ("echo 'cargo test'", Other),
            ("./run-tests.sh", Test),
            ("ls test", Other),
            ("docker compose build", Build),
            ("git commit -m \"$(cat <<'EOF'\nlong\nEOF\n)\"", Commit),
            ("", Other),
        ] {
            assert_eq!(classify(line), kind, "{line}");
        }
    }

    #[test]
    fn a_failure_behind_a_pipe_is_seen_and_a_passing_run_is_left_alone() {
        for (line, output, failed) in [
            ("go test ./... 2>&1 | tail -20", "ok  a\n--- FAIL: TestX (0.01s)\nFAIL", true),
            ("cargo test | tail -3", "test result: FAILED. 3 passed; 1 failed; 0 ignored", true),
            ("cargo test | tail -3", "test result: ok. 12 passed; 0 failed; 0 ignored", false),
            ("npx jest | cat", "Tests:       2 failed, 10 passed, 12 total", true),
            ("pytest -q; true", "10 passed in 0.1s", false),
            ("cargo test | tail", "2 failed retries earlier\ntest result: ok. 3 passed; 0 failed", false),
            ("cargo test", "--- FAIL: but the status would have said so", false),
            ("cat log | grep FAIL", "FAIL", false),
            ("cargo test 'a|b'", "FAIL", false),
        ] {
            assert_eq!(failed_unseen(line, classify(line), output), failed, "{line}: {output}");
        }
    }

    #[test]
    fn a_command_that_never_ran_checked_nothing() {
        for (output, never) in [
            ("Exit code 2\nerror: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>", true),
            ("Exit code 127\n/bin/bash: line 1: go: command not found", true),
            ("zsh: command not found: uv", true),
            ("npm error Missing script: \"lint\"", true),
            ("make: *** No rule to make target 'chek'.  Stop.", true),
            ("make: *** No rule to make target 'lib.o', needed by 'all'.  Stop.", false),
            ("test result: FAILED. 3 passed; 1 failed", false),
            ("--- FAIL: TestLookup\n    key: not found", false),
            ("error: could not compile `nmem`", false),
        ] {
            assert_eq!(never_ran(output), never, "{output}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_judged(line in "\\PC{0,200}") {
            classify(&line);
        }
    }

    #[test]
    fn hooks_of_a_commit_are_checks_of_the_sorts_that_they_print() {
        use CommandKind::{Build, Lint, Test};
        let made = "[main 19780ba] Add badges\n 3 files changed\n";
        let bun = format!("{made}$ bun test src/\n 1226 pass\n 0 fail\n$ tsc --noEmit\n$ biome check --error-on-warnings\n");
        assert_eq!(checks_by_hooks("git add -A && git commit -m x", &bun), [Build, Test, Lint]);
        let pre_commit = format!("ruff.....................Passed\npytest...................Passed\n{made}");
        assert_eq!(checks_by_hooks("git commit -m x", &pre_commit), [Test, Lint]);
        assert_eq!(checks_by_hooks("git commit -m x", &format!("lint ok\n{made}")), [Lint]);
        for (line, output) in [
            ("git commit -m x", made.to_string()),
            ("git commit --no-verify -m x", bun.clone()),
            ("bun run test && git commit -m x", bun.clone()),
            ("git commit -m x", format!("warning: in the working copy of 'tests/a.rs', LF will be replaced by CRLF\n{made}")),
            ("git commit -m x", format!("lint: skipped, nothing changed\n{made}")),
            ("git commit -m x", format!("FAILED tests/test_a.py::test_b\n{made}$ pytest\n")),
            ("git commit -m 'test the lint'", format!("{made} create mode 100644 tests/lint.ts\n")),
        ] {
            assert_eq!(checks_by_hooks(line, &output), [], "{line}: {output}");
        }
    }
}
