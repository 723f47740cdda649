//! Reader of git's configuration files (git-config(1)), limited to what affects a remote URL: quoted values, comments,
//! continuation lines, `include`, and `insteadOf` of repository and user. If it is unclear what git would do, there is
//! no URL: a wrong one would merge two projects.

use crate::files;
use std::path::{Path, PathBuf};

/// Maximum depth of includes, as in git.
const DEPTH: usize = 10;

/// One setting. Section and key names are in lower case; subsections keep their case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GitSetting {
    section: String,
    subsection: Option<String>,
    key: String,
    value: String,
}

/// The settings of a file and its includes, in order.
#[derive(Clone, Debug, Default)]
pub struct GitConfig {
    entries: Vec<GitSetting>,
    /// True if a conditional include affects URLs.
    is_conditional: bool,
}

impl GitConfig {
    /// Reads a file; empty if it is missing.
    pub fn read(file: &Path, home: Option<&Path>) -> GitConfig {
        let mut config = GitConfig::default();
        config.add(file, home, DEPTH);
        config
    }

    fn add(&mut self, file: &Path, home: Option<&Path>, depth: usize) {
        for entry in parsed(&files::small_text(file).unwrap_or_default()) {
            let included = (entry.section.starts_with("include") && entry.key == "path" && depth > 0)
                .then(|| included(&entry.value, file, home))
                .flatten();
            match (included, entry.section.as_str()) {
                (Some(path), "include") => self.add(&path, home, depth - 1),
                (Some(path), _) => {
                    let mut other = GitConfig::default();
                    other.add(&path, home, depth - 1);
                    let is_about_urls = |entry: &GitSetting| matches!(entry.section.as_str(), "remote" | "url");
                    self.is_conditional |= other.is_conditional || other.entries.iter().any(is_about_urls);
                }
                (None, _) => self.entries.push(entry),
            }
        }
    }

    /// Appends the settings of another file.
    pub fn extend(&mut self, other: GitConfig) {
        self.entries.extend(other.entries);
        self.is_conditional |= other.is_conditional;
    }

    /// Returns the last value of a setting without a subsection.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        let is_it = |entry: &&GitSetting| entry.section == section && entry.subsection.is_none() && entry.key == key;
        self.entries.iter().rfind(is_it).map(|entry| entry.value.as_str())
    }

    /// Returns the fetch URL of `origin`, otherwise that of the first remote; `user` is the user's configuration.
    pub fn remote_url(&self, user: &GitConfig) -> Option<String> {
        if self.is_conditional || user.is_conditional {
            return None;
        }
        let urls = || self.entries.iter().filter(|entry| entry.section == "remote" && entry.key == "url");
        let origin = urls().find(|entry| entry.subsection.as_deref() == Some("origin"));
        let url = origin.or_else(|| urls().next()).map(|entry| entry.value.as_str()).filter(|url| !url.is_empty())?;
        // The longest matching prefix wins.
        let rules = user.entries.iter().chain(&self.entries).filter(|e| e.section == "url" && e.key == "insteadof");
        let rule = rules.filter(|rule| url.starts_with(&rule.value)).max_by_key(|rule| rule.value.len());
        Some(match rule {
            Some(rule) => format!("{}{}", rule.subsection.as_deref().unwrap_or_default(), &url[rule.value.len()..]),
            None => url.to_string(),
        })
    }
}

/// Resolves an included path: `~/x`, a path relative to the including file, or an absolute path.
fn included(path: &str, from: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(from.parent()?.join(path)),
    }
}

/// Parses a file; anything that is not a setting is skipped.
fn parsed(text: &str) -> Vec<GitSetting> {
    let mut entries = Vec::new();
    let (mut section, mut subsection) = (String::new(), None);
    let mut rest = text;
    while !rest.is_empty() {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = line.trim_start();
        if let Some(head) = trimmed.strip_prefix('[') {
            let end = end_of_head(head);
            let inside = &head[..end.unwrap_or(head.len())];
            let (name, quoted) = inside.split_once('"').unwrap_or((inside, ""));
            (section, subsection) = (name.trim().to_lowercase(), (!quoted.is_empty()).then(|| unquoted(quoted)));
            // A setting may follow on the same line.
            let open = line.len() - trimmed.len() + 1;
            rest = match end {
                Some(end) => &rest[open + end + 1..],
                None => behind,
            };
        } else if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            rest = behind;
        } else {
            match trimmed.split_once('=') {
                Some((key, _)) => {
                    let at = rest.len() - rest.trim_start().len() + key.len() + 1;
                    let (value, took) = value(&rest[at..]);
                    entries.push(GitSetting {
                        section: section.clone(),
                        subsection: subsection.clone(),
                        key: key.trim().to_lowercase(),
                        value,
                    });
                    rest = &rest[at + took..];
                }
                // A key without a value is true and does not affect URLs.
                None => rest = behind,
            }
        }
    }
    entries
}

/// Returns the index of the bracket that closes a section header, ignoring quoted brackets.
fn end_of_head(head: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    head.char_indices().find_map(|(at, c)| {
        let ends = c == ']' && !is_quoted;
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// Reads a subsection's name up to its closing quote.
fn unquoted(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\n' => break,
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

/// Reads a value; returns it and its length in bytes, including the line break.
fn value(text: &str) -> (String, usize) {
    let (mut out, mut kept, mut is_quoted) = (String::new(), 0, false);
    let mut chars = text.char_indices();
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' => {
                end = at + 1;
                break;
            }
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => {
                end = text[at..].find('\n').map_or(text.len(), |length| at + length + 1);
                break;
            }
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                // The value continues on the next line.
                Some((_, '\n')) | None => {}
                Some((_, c)) => out.push(c),
            },
            c => out.push(c),
        }
        // Trailing white space is kept only inside quotes.
        if is_quoted || !c.is_whitespace() {
            kept = out.len();
        }
    }
    out.truncate(kept);
    (out.trim_start().to_string(), end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn values(text: &str) -> Vec<(String, String)> {
        parsed(text).into_iter().map(|entry| (entry.key, entry.value)).collect()
    }

    #[test]
    fn a_setting_may_stand_on_the_line_of_its_section() {
        let expected = [("url", "https://h/a"), ("bare", "false")];
        let expected = expected.map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(values("[remote \"ori]gin\"] url = https://h/a\n [core]bare = false ; no\n"), expected);
    }

    #[test]
    fn values_are_read_as_git_reads_them() {
        let text = "[core]\n\tbare = false ; no\n\tignorecase\n[remote \"or]igin\"]\n  URL = \"https://h/a b\" # here\n\tfetch = +refs/heads/*:\\\nrefs/remotes/*\n";
        let expected = [("bare", "false"), ("url", "https://h/a b"), ("fetch", "+refs/heads/*:refs/remotes/*")];
        assert_eq!(values(text), expected.map(|(key, value)| (key.to_string(), value.to_string())));
        assert_eq!(parsed(text)[1].subsection.as_deref(), Some("or]igin"));
    }

    struct ScratchFolder(PathBuf);

    impl ScratchFolder {
        fn new(name: &str) -> ScratchFolder {
            let path = std::env::temp_dir().join(format!("nmem-gitconfig-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            ScratchFolder(path)
        }

        fn url(&self, files: &[(&str, &str)]) -> Option<String> {
            files.iter().for_each(|(name, text)| fs::write(self.0.join(name), text).unwrap());
            let user = GitConfig::read(&self.0.join("user"), Some(&self.0));
            GitConfig::read(&self.0.join("config"), Some(&self.0)).remote_url(&user)
        }
    }

    impl Drop for ScratchFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const ORIGIN: &str = "[remote \"origin\"]\n\turl = gh:team/app\n";

    #[test]
    fn a_short_url_becomes_what_git_fetches_from() {
        let user = "[url \"https://github.com/\"]\n\tinsteadOf = gh:\n[url \"git@work.example:\"]\n\tinsteadOf = gh:team/\n";
        let folder = ScratchFolder::new("instead");
        assert_eq!(folder.url(&[("config", ORIGIN)]).as_deref(), Some("gh:team/app"));
        assert_eq!(folder.url(&[("user", user)]).as_deref(), Some("git@work.example:app"), "the longest beginning counts");
    }

    #[test]
    fn an_included_file_counts_and_one_that_may_count_leaves_no_url() {
        let folder = ScratchFolder::new("include");
        let include = "[include]\n\tpath = more\n";
        assert_eq!(folder.url(&[("config", include), ("more", ORIGIN)]).as_deref(), Some("gh:team/app"));
        assert_eq!(folder.url(&[("more", include)]), None, "a file that includes itself ends");
        let maybe = format!("{ORIGIN}[includeIf \"onbranch:x\"]\n\tpath = ~/more\n");
        assert_eq!(folder.url(&[("config", &maybe), ("more", "[remote \"origin\"]\n\turl = other\n")]), None);
        assert_eq!(folder.url(&[("more", "[user]\n\tname = me\n")]).as_deref(), Some("gh:team/app"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "[\\[\\]\"\\\\#;=a \n\té]{0,60}") {
            parsed(&text);
        }
    }
}
