//! Commands that print secrets: the environment, an entry of a secret store, or a file that they also write.

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
