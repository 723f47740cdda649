//! Files of which only the path is recorded: `.env`, key stores, and what the user's `ignore` patterns name.
//!
//! What a tool read from or wrote to such a file goes, also where a command prints it. A command that only names the file
//! stays; one that may hold the contents (it writes to the file, or feeds it) is cut to its program and the paths. In
//! output of many files (`grep -r`, `git diff`, `head`) the lines of such a file go and the others stay.

use crate::model::{Kind, ToolUse};
use std::path::Path;

/// Bytes of a command that are looked at for names of files.
const COMMAND: usize = 16 << 10;
/// Bytes at each end of a long output that are looked at: more than redaction keeps.
const END: usize = 64 << 10;
/// Bytes of a path at the beginning of a line.
const PATH: usize = 512;
/// Stands where contents would stand.
pub const MARK: &str = "[contents not recorded]";

/// Endings of the names of key stores and of files that hold nothing but credentials.
const ENDINGS: [&str; 11] =
    [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate", ".tfvars", ".mobileprovision"];
/// Their whole names (ssh-keygen(1), netrc(5), libpq's pgpass, npm, twine, git-credential-store(1), htpasswd(1), vault).
const NAMES: [&str; 16] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    "application_default_credentials.json",
];
/// Names that are credentials in one folder alone: AWS, Docker, Kubernetes, GitHub's and GitLab's clients, Cargo.
const PLACES: [&str; 9] = [
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    "gh/hosts.yml",
    "glab-cli/config.yml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".azure/accessTokens.json",
];

/// Knows which files are recorded by path only.
#[derive(Debug, Default)]
pub struct Hidden {
    patterns: Vec<String>,
}

impl Hidden {
    /// Takes the user's patterns; one without a slash is about names, wherever they stand.
    pub fn new(patterns: &[String]) -> Hidden {
        let anywhere = |p: &String| if p.contains('/') { p.clone() } else { format!("**/{p}") };
        Hidden { patterns: patterns.iter().map(anywhere).collect() }
    }

    /// Whether only the path of a file is recorded; `folder` is where a relative path begins.
    fn hides(&self, path: &str, folder: Option<&str>) -> bool {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        if name.is_empty() {
            return false;
        }
        let ending = name.rfind('.').map(|dot| &name[dot..]).filter(|ending| ending.len() < name.len());
        let is = |known: &&str, word: &str| known.len() == word.len() && known.eq_ignore_ascii_case(word);
        if NAMES.iter().any(|n| is(n, name)) || ending.is_some_and(|word| ENDINGS.iter().any(|e| is(e, word))) {
            return true;
        }
        if PLACES.iter().any(|p| path.strip_suffix(p).is_some_and(|before| before.is_empty() || before.ends_with(['/', '\\']))) {
            return true;
        }
        let matches = |path: &str| self.patterns.iter().any(|p| fast_glob::glob_match(p, path));
        if matches(path) {
            return true;
        }
        let inside = path.strip_prefix("./").unwrap_or(path);
        folder
            .filter(|_| !Path::new(path).is_absolute())
            .is_some_and(|f| matches(&format!("{}/{inside}", f.trim_end_matches('/'))))
    }

    /// Takes out of a tool use what it read from or wrote to such a file.
    pub fn withhold(&self, tool: &mut ToolUse, folder: Option<&str>) {
        let named = tool.path.as_deref().is_some_and(|path| self.hides(path, folder));
        match tool.kind {
            Kind::Fetch | Kind::Delegate => {}
            Kind::Command | Kind::Mcp | Kind::Other => {
                let content = tool.content.as_deref().unwrap_or_default();
                let content = &content[..super::floor(content, COMMAND)];
                let mentioned = self.mentioned(content, folder);
                if !mentioned.is_empty() || tool.kind == Kind::Command && prints_environment(content) {
                    if !mentioned.is_empty() && (tool.kind != Kind::Command || may_hold_contents(content)) {
                        let program = content.split_whitespace().next().filter(|_| tool.kind == Kind::Command);
                        let words: Vec<&str> = program.into_iter().chain(["…"]).chain(mentioned).collect();
                        tool.content = Some(words.join(" "));
                    }
                    return without_contents(tool);
                }
            }
            Kind::Read | Kind::Edit | Kind::Write | Kind::Search => {}
        }
        if named {
            return without_contents(tool);
        }
        for text in [&mut tool.outcome, &mut tool.metadata.response] {
            if let Some(kept) = text.as_deref().and_then(|t| self.without_lines(t, folder)) {
                *text = Some(kept);
            }
        }
    }

    /// The words of a command that name such a file.
    fn mentioned<'a>(&self, command: &'a str, folder: Option<&str>) -> Vec<&'a str> {
        let cut = |c: char| c.is_whitespace() || "\"'`;|&<>(){}=,\\@:".contains(c);
        let mut found: Vec<&str> = command.split(cut).filter(|word| word.len() > 2 && self.hides(word, folder)).collect();
        found.dedup();
        found.truncate(8);
        found
    }

    /// Output without the lines that come from such a file; `None` where there are none. Of a long one the two ends are
    /// looked at, which is more than is kept of it.
    fn without_lines(&self, text: &str, folder: Option<&str>) -> Option<String> {
        if text.len() <= 2 * END {
            return self.without_lines_in(text, None, folder);
        }
        let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |i| at + i + 1);
        let head_end = line_end(super::floor(text, END));
        let tail_start = line_end(super::floor(text, text.len() - END)).max(head_end);
        let before = &text[..tail_start];
        let part = ["\ndiff --git ", "\n==> "].iter().filter_map(|begin| before.rfind(begin)).max();
        let part = part.and_then(|at| part_of(before[at + 1..].lines().next()?));
        let (head, tail) = (&text[..head_end], &text[tail_start..]);
        let (kept_head, kept_tail) = (self.without_lines_in(head, None, folder), self.without_lines_in(tail, part, folder));
        if kept_head.is_none() && kept_tail.is_none() {
            return None;
        }
        Some(
            kept_head.as_deref().unwrap_or(head).to_string() + &text[head_end..tail_start] + kept_tail.as_deref().unwrap_or(tail),
        )
    }

    /// The same for a stretch that begins inside what `part` names.
    fn without_lines_in(&self, text: &str, part: Option<&str>, folder: Option<&str>) -> Option<String> {
        let mut kept: Option<String> = None;
        let mut in_hidden_part = part.is_some_and(|path| self.hides(path, folder));
        let (mut at, mut marked) = (0, false);
        for line in text.split_inclusive('\n') {
            if let Some(path) = part_of(line) {
                in_hidden_part = self.hides(path, folder);
                marked = false;
            } else if in_hidden_part || self.is_of_hidden_file(line, folder) {
                let kept = kept.get_or_insert_with(|| text[..at].to_string());
                if !marked {
                    kept.push_str(MARK);
                    kept.push('\n');
                }
                marked = true;
                at += line.len();
                continue;
            } else {
                marked = false;
            }
            at += line.len();
            if let Some(kept) = &mut kept {
                kept.push_str(line);
            }
        }
        kept
    }

    /// `path:12:text`, as grep and ripgrep print it.
    fn is_of_hidden_file(&self, line: &str, folder: Option<&str>) -> bool {
        let path = line.as_bytes().iter().take(PATH).position(|b| matches!(b, b':' | b' ' | b'\n'));
        path.is_some_and(|at| line.as_bytes()[at] == b':' && self.hides(&line[..at], folder))
    }
}

/// The file of which the following lines are: `diff --git a/x b/x`, `==> x <==`.
fn part_of(line: &str) -> Option<&str> {
    let line = line.trim_end();
    if let Some(rest) = line.strip_prefix("diff --git ") {
        return rest.rsplit_once(" b/").map(|(_, path)| path);
    }
    line.strip_prefix("==> ")?.strip_suffix(" <==")
}

fn without_contents(tool: &mut ToolUse) {
    for text in [&mut tool.input, &mut tool.outcome, &mut tool.metadata.response].into_iter().flatten() {
        *text = MARK.to_string();
    }
}

/// Whether a command that names a file may hold what the file holds.
fn may_hold_contents(command: &str) -> bool {
    let writes = ["echo", "printf", "tee", "sed", "awk", "perl", "python", "python3", "node", "ruby", "grep", "rg", "export"];
    command.contains('>')
        || command.contains("<<")
        || command.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| writes.contains(&word))
}

/// `env`, `printenv`, `set`, `export -p`: the environment holds what `.env` holds.
fn prints_environment(command: &str) -> bool {
    let dumps = ["env", "set", "export", "export -p", "declare -x", "declare -px"];
    command
        .split(['|', ';', '&', '\n', '(', ')', '`'])
        .map(str::trim)
        .any(|part| dumps.contains(&part) || part == "printenv" || part.starts_with("printenv ") || part.starts_with("env >"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Metadata;

    fn hidden() -> Hidden {
        Hidden::new(&["**/.env*".into(), "**/secrets/**".into(), "*.private".into(), "/srv/own/**".into()])
    }

    fn tool(kind: Kind, path: Option<&str>, content: Option<&str>, outcome: &str) -> ToolUse {
        ToolUse {
            id: None,
            name: "T".into(),
            kind,
            command: None,
            path: path.map(String::from),
            content: content.map(String::from),
            input: None,
            outcome: Some(outcome.into()),
            succeeded: Some(true),
            source_event: "PostToolUse".into(),
            metadata: Metadata::default(),
            tasks: None,
        }
    }

    #[test]
    fn key_stores_and_the_users_patterns_are_hidden_wherever_they_lie() {
        for path in [
            ".env",
            "/a/b/.env.local",
            "secrets/x.txt",
            "a/secrets/b/c",
            "x.private",
            "a/x.private",
            "server.pem",
            "/home/me/.ssh/id_rsa",
            ".aws/credentials",
            "~/.aws/credentials",
            "Wallet.KDBX",
        ] {
            assert!(hidden().hides(path, Some("/w")), "{path}");
        }
        assert!(hidden().hides("own/x", Some("/srv")));
        for path in ["src/env.rs", "environment", "src/secrets.rs", "key.rs", "id_rsa.pub", "monkey", "", "credentials", "a.pemx"]
        {
            assert!(!hidden().hides(path, Some("/w")), "{path}");
        }
    }

    #[test]
    fn what_a_command_prints_of_a_hidden_file_goes_and_the_command_stays() {
        for command in ["cat .env", "head -3 ./.env.local", "cat < config/secrets/db", "type id_rsa", "printenv", "env | sort"] {
            let mut t = tool(Kind::Command, None, Some(command), "A=hunter2");
            hidden().withhold(&mut t, Some("/w"));
            assert_eq!((t.content.as_deref(), t.outcome.as_deref()), (Some(command), Some(MARK)), "{command}");
        }
        for command in ["env FOO=1 cargo test", "cargo test environment", "cat src/env.rs", "set -e; cargo build"] {
            let mut t = tool(Kind::Command, None, Some(command), "fine");
            hidden().withhold(&mut t, Some("/w"));
            assert_eq!(t.outcome.as_deref(), Some("fine"), "{command}");
        }
    }

    #[test]
    fn a_command_that_writes_a_hidden_file_is_cut_to_program_and_path() {
        for command in ["echo A=hunter2 >> .env", "cat > .env <<EOF\nA=hunter2\nEOF", "sed -i s/x/hunter2/ .env"] {
            let mut t = tool(Kind::Command, None, Some(command), "");
            hidden().withhold(&mut t, None);
            let content = t.content.unwrap();
            assert!(content.ends_with("… .env") && !content.contains("hunter2"), "{content}");
        }
    }

    #[test]
    fn lines_of_a_hidden_file_go_from_the_output_of_many() {
        let out = "src/a.rs:1:use x\n.env:1:A=hunter2\n./.env:2:B=hunter2\nsrc/b.rs:2:y\n";
        let mut t = tool(Kind::Search, None, Some("x"), out);
        hidden().withhold(&mut t, None);
        assert_eq!(t.outcome.unwrap(), format!("src/a.rs:1:use x\n{MARK}\nsrc/b.rs:2:y\n"));
        let out = "diff --git a/x.rs b/x.rs\n+fine\ndiff --git a/.env b/.env\n+A=hunter2\n+B\ndiff --git a/y b/y\n+ok\n";
        let mut t = tool(Kind::Command, None, Some("git diff"), out);
        hidden().withhold(&mut t, None);
        let kept = t.outcome.unwrap();
        assert!(!kept.contains("hunter2") && kept.contains("+fine") && kept.contains("+ok"), "{kept}");
    }

    #[test]
    fn what_was_edited_in_a_hidden_file_is_not_kept_nor_what_a_failure_says_of_it() {
        let mut t = tool(Kind::Edit, Some(".env"), Some(".env"), "update");
        t.input = Some("+A=hunter2".into());
        t.metadata.response = Some("no such string: A=hunter2".into());
        hidden().withhold(&mut t, None);
        assert_eq!((t.input.as_deref(), t.metadata.response.as_deref()), (Some(MARK), Some(MARK)));
        let mut t = tool(Kind::Mcp, None, Some("{\"path\":\"/w/.env\",\"text\":\"A=hunter2\"}"), "A=hunter2");
        hidden().withhold(&mut t, None);
        assert_eq!((t.content.as_deref(), t.outcome.as_deref()), (Some("… /w/.env"), Some(MARK)));
    }
}
