//! Files recorded by path only: `.env`, key stores, and the user's `ignore` patterns, also when a command prints them.

use crate::model::{Kind, ToolUse};
use crate::text::slashed;
use std::path::Path;

/// Bytes of a command that are searched for file names.
const COMMAND: usize = 16 << 10;
/// Bytes at each end of a long output that are searched: more than redaction keeps.
const END: usize = 64 << 10;
/// Maximum bytes of a path at the start of a line.
const PATH: usize = 512;
/// Mark that replaces contents.
pub const MARK: &str = "[contents not recorded]";

impl Hidden {
    /// Removes from a tool use everything it read from or wrote to a hidden file.
    pub fn withhold(&self, tool: &mut ToolUse, folder: Option<&str>) {
        let named = tool.path.as_deref().is_some_and(|path| self.hides(path, folder));
        match tool.kind {
            Kind::Fetch | Kind::Delegate => {}
            Kind::Command | Kind::Mcp | Kind::Other => {
                let content = tool.content.as_deref().unwrap_or_default();
                let content = &content[..content.floor_char_boundary(COMMAND)];
                let mentioned = self.mentioned(content, folder);
                if !mentioned.is_empty() || tool.kind == Kind::Command && prints_secrets(content) {
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

    /// Returns the words of a command that name a hidden file, also where a preceding `cd` leads there.
    fn mentioned<'a>(&self, command: &'a str, folder: Option<&str>) -> Vec<&'a str> {
        let cut = |c: char| c.is_whitespace() || "\"'`;|&<>(){}=,\\@:".contains(c);
        let mut moved: Option<&str> = None;
        let mut words = command.split(cut).filter(|word| !word.is_empty()).peekable();
        let mut found = Vec::new();
        while let Some(word) = words.next() {
            if word == "cd" || word == "pushd" {
                moved = words.peek().map(|to| to.trim_end_matches('/'));
                continue;
            }
            let from_there =
                || moved.is_some_and(|to| !word.starts_with(['/', '-', '~']) && self.hides(&format!("{to}/{word}"), folder));
            if word.len() > 2 && (self.hides(word, folder) || from_there()) {
                found.push(word);
            }
        }
        found.dedup();
        found.truncate(8);
        found
    }

    /// Returns output without the lines that come from a hidden file; `None` if there are none. Only the two ends of a
    /// long output are searched, which is more than is kept of it.
    fn without_lines(&self, text: &str, folder: Option<&str>) -> Option<String> {
        if text.len() <= 2 * END {
            return self.without_lines_in(text, false, folder);
        }
        let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |i| at + i + 1);
        let head_end = line_end(text.floor_char_boundary(END));
        let tail_start = line_end(text.floor_char_boundary(text.len() - END)).max(head_end);
        let before = &text[..tail_start];
        let part = ["\ndiff ", "\n==> "].iter().filter_map(|begin| before.rfind(begin)).max();
        let part = part.and_then(|at| self.begins_hidden_part(before[at + 1..].lines().next()?, folder)).unwrap_or(false);
        let (head, tail) = (&text[..head_end], &text[tail_start..]);
        let (kept_head, kept_tail) = (self.without_lines_in(head, false, folder), self.without_lines_in(tail, part, folder));
        if kept_head.is_none() && kept_tail.is_none() {
            return None;
        }
        Some(
            kept_head.as_deref().unwrap_or(head).to_string() + &text[head_end..tail_start] + kept_tail.as_deref().unwrap_or(tail),
        )
    }

    /// Does the same for a stretch of output, which may begin inside the part of a hidden file.
    fn without_lines_in(&self, text: &str, mut in_hidden_part: bool, folder: Option<&str>) -> Option<String> {
        let mut kept: Option<String> = None;
        // `rg --heading`: a path on a line of its own, and numbered lines below it.
        let mut below_heading = false;
        let is_numbered = |line: &str| {
            line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with([':', '-'])
                && line.starts_with(|c: char| c.is_ascii_digit())
        };
        let (mut at, mut marked) = (0, false);
        for line in text.split_inclusive('\n') {
            let begins = self.begins_hidden_part(line, folder);
            if let Some(hidden) = begins {
                in_hidden_part = hidden;
            }
            let heads = line.len() < PATH && !line.contains([' ', ':']) && self.hides(line.trim_end(), folder);
            below_heading = heads || below_heading && is_numbered(line);
            if begins.is_some() {
                marked = false;
            } else if in_hidden_part || below_heading && !heads || self.is_of_hidden_file(line, folder) {
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

    /// Whether a line comes from a hidden file: `path:12:text`, and `path-12-text` for context lines, as grep and
    /// ripgrep print them.
    fn is_of_hidden_file(&self, line: &str, folder: Option<&str>) -> bool {
        let bytes = line.as_bytes();
        let end = bytes.iter().take(PATH).position(|b| matches!(b, b':' | b' ' | b'\n' | b'\t')).unwrap_or(bytes.len().min(PATH));
        if bytes.get(end) == Some(&b':') && self.hides(&line[..end], folder) {
            return true;
        }
        let numbered = |at: usize| {
            let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
            digits > 0 && bytes.get(at + 1 + digits) == Some(&b'-')
        };
        let dashes = (0..end.min(bytes.len())).filter(|&at| bytes[at] == b'-' && numbered(at));
        dashes.take(4).any(|at| line.is_char_boundary(at) && self.hides(&line[..at], folder))
    }

    /// Returns true if a line begins the part of a hidden file, false if that of another file; `None` if it begins no
    /// part.
    fn begins_hidden_part(&self, line: &str, folder: Option<&str>) -> Option<bool> {
        let line = line.trim_end();
        if let Some(path) = line.strip_prefix("==> ").and_then(|rest| rest.strip_suffix(" <==")) {
            return Some(self.hides(path, folder));
        }
        // `diff --git a/x b/x`, `i/x w/x`, without prefixes, `--cc x`, quoted, and `diff -r old/x new/x`.
        let paths = line.strip_prefix("diff ")?;
        let plain = |word: &str| {
            word.trim_matches('"')
                .split_once('/')
                .filter(|(p, _)| p.len() == 1)
                .map_or(word.trim_matches('"').to_string(), |(_, rest)| rest.to_string())
        };
        Some(paths.split(' ').filter(|word| !word.starts_with('-')).any(|word| self.hides(&plain(word), folder)))
    }
}

fn without_contents(tool: &mut ToolUse) {
    for text in [&mut tool.input, &mut tool.outcome, &mut tool.metadata.response].into_iter().flatten() {
        *text = MARK.to_string();
    }
}
/// Programs, and the arguments with which they print secrets.
const PRINTERS: [&str; 18] = [
    "gh auth token",
    "glab auth status -t",
    "get-secret-value",
    "--with-decryption",
    "vault kv get",
    "vault read",
    "op read",
    "op item get",
    "pass show",
    "sops -d",
    "sops --decrypt",
    "ansible-vault view",
    "secrets versions access",
    "get secret",
    "/proc/self/environ",
    "heroku config",
    "docker inspect",
    "compose config",
];
/// Names with which a script reads the whole environment. In a search or in prose they print nothing.
const IN_SCRIPTS: [&str; 2] = ["process.env", "os.environ"];
const INTERPRETERS: [&str; 6] = ["node", "deno", "bun", "python", "python3", "ruby"];

/// Whether a command that names a file may contain the file's contents.
pub fn may_hold_contents(command: &str) -> bool {
    let writes = ["echo", "printf", "tee", "sed", "awk", "perl", "python", "python3", "node", "ruby", "grep", "rg", "export"];
    command.contains('>')
        || command.contains("<<")
        || command.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| writes.contains(&word))
}

/// Whether a command prints the environment, which has the contents of `.env`, or reads from a secret store.
pub fn prints_secrets(command: &str) -> bool {
    if PRINTERS.iter().any(|printer| says(command, printer)) {
        return true;
    }
    let interpreted = || command.split_whitespace().any(|word| INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or(word)));
    if IN_SCRIPTS.iter().any(|name| says(command, name)) && interpreted() {
        return true;
    }
    let dumps = ["set", "export", "export -p", "declare -x", "declare -px", "declare -p"];
    let parts = command.split(['|', ';', '&', '\n', '(', ')', '`', '{', '}']).map(str::trim);
    parts.clone().any(|part| dumps.contains(&part))
        || command.split_whitespace().any(is_printenv)
        || parts.into_iter().any(ends_in_env)
}

/// Whether a command contains `words` as whole words: `stop reading` does not contain `op read`.
fn says(command: &str, words: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    command
        .match_indices(words)
        .any(|(at, _)| !command[..at].ends_with(part) && !command[at + words.len()..].starts_with(|c| part(c) && c != 's'))
}

fn is_printenv(word: &str) -> bool {
    word.trim_matches(['"', '\'']).rsplit('/').next() == Some("printenv")
}

/// Whether the last word, options and redirections aside, is `env`, which prints the environment if no program follows.
/// A word before it makes it a name (`cd env`, `git add env`), unless that word runs programs.
fn ends_in_env(part: &str) -> bool {
    let redirects = |w: &&str| !w.contains('>') && !w.starts_with('-') && !w.contains("/dev/null");
    let words: Vec<&str> = part.split_whitespace().map(|w| w.trim_matches(['"', '\''])).filter(redirects).collect();
    let Some((last, before)) = words.split_last() else { return false };
    let runs = [
        "docker", "podman", "kubectl", "ssh", "sudo", "bash", "sh", "zsh", "time", "then", "do", "exec", "su", "nice", "heroku",
        "railway", "fly",
    ];
    last.rsplit('/').next() == Some("env")
        && (before.is_empty() || before.iter().any(|w| runs.contains(&w.rsplit('/').next().unwrap_or(w))))
}

/// Name suffixes of key stores and of files that hold nothing but credentials.
const ENDINGS: [&str; 12] =
    [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate", ".tfvars", ".mobileprovision", ".env"];
/// Whole names of such files (ssh-keygen(1), netrc(5), libpq's pgpass, npm, twine, git-credential-store(1),
/// htpasswd(1), vault, Google, Codex, Composer, rclone, s3cmd, boto).
const NAMES: [&str; 25] = [
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
    "credentials.json",
    ".credentials.json",
    "auth.json",
    "rclone.conf",
    ".s3cfg",
    ".boto",
    "kubeconfig",
    "kubeconfig.yaml",
    "terraform.tfstate.backup",
];
/// Names that hold credentials only in one folder: AWS, Docker, Kubernetes, GitHub's and GitLab's clients, Cargo,
/// Maven.
const PLACES: [&str; 11] = [
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    "gh/hosts.yml",
    "glab-cli/config.yml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".azure/accessTokens.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
];
/// Folders in which everything is a credential, except for a few names.
const FOLDERS: [&str; 3] = [".ssh", ".gnupg", ".aws"];
const PUBLIC: [&str; 6] = ["config", "known_hosts", "authorized_keys", "allowed_signers", "cli", "sso"];
/// Rules that decide which files are recorded by path only.
#[derive(Debug, Default)]
pub struct Hidden {
    patterns: Vec<String>,
}

impl Hidden {
    /// Creates the rules from the user's patterns; one without a slash matches names in any folder.
    pub fn new(patterns: &[String]) -> Hidden {
        let anywhere = |p: &String| if p.contains('/') { p.clone() } else { format!("**/{p}") };
        Hidden { patterns: patterns.iter().map(anywhere).collect() }
    }

    /// Whether only the path of a file is recorded; a relative path starts at `folder`.
    pub(super) fn hides(&self, path: &str, folder: Option<&str>) -> bool {
        let path = &*slashed(path);
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        // JavaScript's names for the environment look like files.
        if name.is_empty() || matches!(name, "process.env" | "import.meta.env") {
            return false;
        }
        let ending = name.rfind('.').map(|dot| &name[dot..]).filter(|ending| ending.len() < name.len());
        let is = |known: &&str, word: &str| known.len() == word.len() && known.eq_ignore_ascii_case(word);
        if NAMES.iter().any(|n| is(n, name)) || ending.is_some_and(|word| ENDINGS.iter().any(|e| is(e, word))) {
            return true;
        }
        if path.contains(FOLDERS[0]) || path.contains(FOLDERS[1]) || path.contains(FOLDERS[2]) {
            let inside = FOLDERS.iter().any(|f| path.rsplit(['/', '\\']).skip(1).any(|part| part == *f));
            if inside && !PUBLIC.contains(&name) && !name.ends_with(".pub") {
                return true;
            }
        }
        // A glob may match such a name.
        if name.contains(['*', '?', '['])
            && name.len() < 64
            && [".env", "id_rsa"].iter().any(|n| fast_glob::glob_match(name, n))
            && name.contains(|c: char| c.is_alphanumeric())
        {
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
            .is_some_and(|f| matches(&format!("{}/{inside}", slashed(f).trim_end_matches('/'))))
    }
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
            repository: None,
            content: content.map(String::from),
            input: None,
            outcome: Some(outcome.into()),
            succeeded: Some(true),
            source_event: "PostToolUse".into(),
            metadata: Metadata::default(),
            tasks: None,
            ended: None,
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
        for command in [
            "docker exec app env",
            "docker compose exec web env | sort",
            "kubectl exec p -- printenv",
            "bash -lc \"env | sort\"",
            "env 2>/dev/null | grep DB",
            "/usr/bin/env -0",
            "{ env; }",
            "python3 -c 'import os; print(os.environ)'",
            "gh auth token",
            "kubectl get secret db -o yaml",
            "cd ~/.aws && cat credentials",
            "cd secrets && cat db.txt",
            "cat ~/.ssh/*",
            "cat ./.e*",
            "cat prod.env",
            "cat ~/.ssh/deploy",
        ] {
            let mut t = tool(Kind::Command, None, Some(command), "A=hunter2");
            hidden().withhold(&mut t, Some("/w"));
            assert_eq!(t.outcome.as_deref(), Some(MARK), "{command}");
        }
        for command in [
            "git commit -m 'stop reading twice, bypass showing it'",
            "grep -rn process.env src",
            "widget secretary --list",
            "cat ~/.ssh/config",
            "ls *",
            "python -m venv env",
            "cat ~/.ssh/id_rsa.pub",
            "cd src && cat main.rs",
            "env FOO=1 cargo test",
            "cargo test environment",
            "cat src/env.rs",
            "set -e; cargo build",
        ] {
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
    fn lines_around_other_headers_and_headings_are_known_too() {
        let secret = "hunter2";
        for out in [
            format!("src/a.rs-1-x\nconfig/.env-3-A={secret}\nconfig/.env:4:B={secret}\n"),
            format!("diff --git i/.env w/.env\n+A={secret}\n"),
            format!("diff --git .env .env\n+A={secret}\n"),
            format!("diff --cc .env\n++A={secret}\n"),
            format!("diff --git \"a/secrets/\\303\" \"b/secrets/\\303\"\n+A={secret}\n"),
            format!("diff -r old/.env new/.env\n< A={secret}\n"),
            format!(".env\n1:A={secret}\n2-B={secret}\n\nsrc/a.rs\n1:fine\n"),
        ] {
            let mut t = tool(Kind::Command, None, Some("look"), &out);
            hidden().withhold(&mut t, None);
            let kept = t.outcome.unwrap();
            assert!(!kept.contains(secret) && kept.contains(MARK), "{out}: {kept}");
        }
        let listing = ".env\nCargo.toml\nsrc\n";
        let mut t = tool(Kind::Command, None, Some("ls -a"), listing);
        hidden().withhold(&mut t, None);
        assert_eq!(t.outcome.as_deref(), Some(listing));
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
