//! Git's configuration files and `~/.ssh/config`, as far as they name a repository.

use crate::files;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Maximum depth of includes, as in git.
const DEPTH: usize = 10;

/// Maximum files and bytes of configuration that are read for one repository: a hook waits for them.
const FILES: usize = 32;
const BYTES: usize = 256 << 10;

/// The configuration files that were read for one repository. Each is read once, so that files which include each other
/// come to an end.
#[derive(Debug, Default)]
pub struct ConfigFiles {
    read: HashSet<PathBuf>,
    bytes: usize,
    /// The git folder for which conditions are decided.
    git_folder: Option<PathBuf>,
}

impl ConfigFiles {
    /// The files for a git folder.
    pub fn of(git_folder: &Path) -> ConfigFiles {
        let git_folder = files::canonical(git_folder).unwrap_or_else(|_| git_folder.to_path_buf());
        ConfigFiles { git_folder: Some(git_folder), ..ConfigFiles::default() }
    }

    /// Whether a conditional include applies; `None` if that cannot be known from paths.
    fn condition(&self, condition: &str, file: &Path, home: Option<&Path>) -> Option<bool> {
        let (pattern, is_lower) = match condition.split_once(':')? {
            ("gitdir", pattern) => (pattern, false),
            ("gitdir/i", pattern) => (pattern, true),
            _ => return None,
        };
        let Some(folder) = self.git_folder.as_deref().and_then(Path::to_str) else { return Some(false) };
        let mut pattern = match (pattern.strip_prefix("~/"), pattern.strip_prefix("./")) {
            (Some(rest), _) => home?.join(rest).to_str()?.to_string(),
            (_, Some(rest)) => file.parent()?.join(rest).to_str()?.to_string(),
            _ if Path::new(pattern).is_absolute() => pattern.to_string(),
            _ => format!("**/{pattern}"),
        };
        if pattern.ends_with('/') {
            pattern += "**";
        }
        let cased = |text: &str| if is_lower { text.to_lowercase() } else { text.to_string() };
        Some(fast_glob::glob_match(cased(&pattern), cased(folder)))
    }

    /// Reads a file; empty if it is missing, was read before, or is too much.
    fn text(&mut self, file: &Path) -> String {
        if self.read.len() >= FILES || self.bytes >= BYTES {
            return String::new();
        }
        let real = files::canonical(file).unwrap_or_else(|_| file.to_path_buf());
        if !self.read.insert(real) {
            return String::new();
        }
        let text = files::small_text(file).unwrap_or_default();
        self.bytes += text.len();
        text
    }
}

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
    pub fn read(file: &Path, home: Option<&Path>, files: &mut ConfigFiles) -> GitConfig {
        let mut config = GitConfig::default();
        config.add(file, home, DEPTH, files);
        config
    }

    /// Reads the user's configuration.
    pub fn of_user(home: Option<&Path>, files: &mut ConfigFiles) -> GitConfig {
        let mut config = GitConfig::default();
        let Some(home) = home else { return config };
        [".config/git/config", ".gitconfig"].iter().for_each(|file| config.add(&home.join(file), Some(home), DEPTH, files));
        config
    }

    fn add(&mut self, file: &Path, home: Option<&Path>, depth: usize, files: &mut ConfigFiles) {
        for entry in parsed(&files.text(file)) {
            let included = (entry.section.starts_with("include") && entry.key == "path" && depth > 0)
                .then(|| included(&entry.value, file, home))
                .flatten();
            match (included, entry.section.as_str()) {
                (Some(path), "include") => self.add(&path, home, depth - 1, files),
                (Some(path), _) => {
                    let condition = entry.subsection.as_deref().unwrap_or_default();
                    match files.condition(condition, file, home) {
                        Some(true) => self.add(&path, home, depth - 1, files),
                        Some(false) => {}
                        None => self.add_unknown(&path, home, depth - 1, files),
                    }
                }
                (None, _) => self.entries.push(entry),
            }
        }
    }

    /// Reads a file of which it is not known whether it applies.
    fn add_unknown(&mut self, path: &Path, home: Option<&Path>, depth: usize, files: &mut ConfigFiles) {
        let mut other = GitConfig::default();
        other.add(path, home, depth, files);
        let is_about_urls = |entry: &GitSetting| matches!(entry.section.as_str(), "remote" | "url");
        self.is_conditional |= other.is_conditional || other.entries.iter().any(is_about_urls);
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
        Some(self.instead_of(url, user))
    }

    /// Applies the `insteadOf` rules to a URL; the longest matching prefix wins.
    pub fn instead_of(&self, url: &str, user: &GitConfig) -> String {
        let rules = user.entries.iter().chain(&self.entries).filter(|e| e.section == "url" && e.key == "insteadof");
        let rule = rules.filter(|rule| url.starts_with(&rule.value)).max_by_key(|rule| rule.value.len());
        match rule {
            Some(rule) => format!("{}{}", rule.subsection.as_deref().unwrap_or_default(), &url[rule.value.len()..]),
            None => url.to_string(),
        }
    }
}

/// Returns the host that `~/.ssh/config` names for an alias. As in ssh, the first value counts.
pub fn ssh_host(alias: &str, home: &Path, files: &mut ConfigFiles) -> Option<String> {
    let mut applies = true;
    host_in(&home.join(".ssh/config"), alias, home, &mut applies, DEPTH, files)
}

fn host_in(file: &Path, alias: &str, home: &Path, applies: &mut bool, depth: usize, files: &mut ConfigFiles) -> Option<String> {
    for line in files.text(file).lines() {
        let line = line.trim();
        let end = line.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(line.len());
        let values = line[end..].trim_start_matches(|c: char| c.is_whitespace() || c == '=').trim_matches('"');
        match line[..end].to_ascii_lowercase().as_str() {
            "host" => *applies = matches_host(values, alias),
            "match" => *applies = is_match_of_hosts(values, alias),
            "hostname" if *applies => {
                // A comment may follow the value.
                let value = values.split_whitespace().next()?;
                return Some(value.replace("%h", alias).to_ascii_lowercase());
            }
            "include" if *applies && depth > 0 => {
                for file in values.split_whitespace().flat_map(|path| ssh_files(path, home)) {
                    if let Some(host) = host_in(&file, alias, home, &mut applies.clone(), depth - 1, files) {
                        return Some(host);
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a `Match` line applies that asks for hosts only; others may run commands.
fn is_match_of_hosts(criteria: &str, host: &str) -> bool {
    let words: Vec<&str> = criteria.split_whitespace().collect();
    match words.as_slice() {
        [all] => all.eq_ignore_ascii_case("all"),
        pairs => pairs.chunks(2).all(|pair| match pair {
            [kind, hosts] if kind.eq_ignore_ascii_case("host") || kind.eq_ignore_ascii_case("originalhost") => {
                matches_host(&hosts.replace(',', " "), host)
            }
            _ => false,
        }),
    }
}

/// Whether a `Host` line applies: one of its patterns matches, and none that begins with `!`.
fn matches_host(patterns: &str, host: &str) -> bool {
    let is_match = |pattern: &str| wildcard(pattern.as_bytes(), host.as_bytes());
    let mut patterns = patterns.split_whitespace().map(|pattern| pattern.trim_matches('"'));
    let mut is_any = false;
    patterns.all(|pattern| match pattern.strip_prefix('!') {
        Some(not) => !is_match(not),
        None => {
            is_any |= is_match(pattern);
            true
        }
    }) && is_any
}

/// Matches `*` and `?`, without going back further than the last `*`.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || c.eq_ignore_ascii_case(&text[t]) => (p, t) = (p + 1, t + 1),
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, t) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Files that an `Include` of `~/.ssh/config` names: one, or with `*` in its name those of a folder.
fn ssh_files(path: &str, home: &Path) -> Vec<PathBuf> {
    let path = match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => home.join(".ssh").join(path),
    };
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else { return Vec::new() };
    if !name.contains(['*', '?']) {
        return vec![path];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(FILES).filter_map(|entry| Some(entry.ok()?.path()));
    let fits = |file: &PathBuf| file.file_name().is_some_and(|f| wildcard(name.as_bytes(), f.as_encoded_bytes()));
    let mut found: Vec<PathBuf> = entries.filter(fits).collect();
    found.sort();
    found
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
            let mut files = ConfigFiles::default();
            let user = GitConfig::read(&self.0.join("user"), Some(&self.0), &mut files);
            GitConfig::read(&self.0.join("config"), Some(&self.0), &mut files).remote_url(&user)
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

    #[test]
    fn a_file_for_some_folders_counts_in_these() {
        let folder = ScratchFolder::new("gitdir");
        fs::write(folder.0.join("work"), "[url \"git@work.example:\"]\n\tinsteadOf = gh:\n").unwrap();
        let own = || GitConfig { entries: parsed(ORIGIN), ..GitConfig::default() };
        for (condition, within) in
            [("gitdir:~/work/", true), ("gitdir/i:~/WORK/", true), ("gitdir:app/.git", true), ("gitdir:~/private/", false)]
        {
            fs::write(folder.0.join("user"), format!("[includeIf \"{condition}\"]\n\tpath = work\n")).unwrap();
            let mut files = ConfigFiles::of(&folder.0.join("work/app/.git"));
            let user = GitConfig::read(&folder.0.join("user"), Some(&folder.0), &mut files);
            let expected = if within { "git@work.example:team/app" } else { "gh:team/app" };
            assert_eq!(own().remote_url(&user).as_deref(), Some(expected), "{condition}");
        }
    }

    #[test]
    fn files_that_include_each_other_are_read_once() {
        let folder = ScratchFolder::new("storm");
        let include = format!("{ORIGIN}{}", "[include]\n\tpath = config\n\tpath = more\n".repeat(50));
        let began = std::time::Instant::now();
        assert_eq!(folder.url(&[("config", &include), ("more", &include)]).as_deref(), Some("gh:team/app"));
        let many: String = (0..500).map(|i| format!("[include]\n\tpath = f{i}\n")).collect();
        (0..500).for_each(|i| fs::write(folder.0.join(format!("f{i}")), "x = 1\n".repeat(10_000)).unwrap());
        assert_eq!(folder.url(&[("config", &format!("{ORIGIN}{many}"))]).as_deref(), Some("gh:team/app"));
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[test]
    fn an_alias_of_ssh_is_the_host_that_it_names() {
        let folder = ScratchFolder::new("ssh");
        fs::create_dir_all(folder.0.join(".ssh/config.d")).unwrap();
        let config = "Include config.d/*\nHost work !workshop\n\tHostName=GitHub.com\nHost *.lan\n  HostName %h.example\nMatch exec x\n HostName evil\nMatch host old,older\n HostName new.org # it moved\nHost *\n  Port 22\n";
        fs::write(folder.0.join(".ssh/config"), config).unwrap();
        fs::write(folder.0.join(".ssh/config.d/a.conf"), "Host gh-*\n  HostName ssh.github.com\n").unwrap();
        let host = |alias| ssh_host(alias, &folder.0, &mut ConfigFiles::default());
        assert_eq!(host("work").as_deref(), Some("github.com"));
        assert_eq!(host("gh-me").as_deref(), Some("ssh.github.com"));
        assert_eq!(host("git.lan").as_deref(), Some("git.lan.example"));
        assert_eq!(host("older").as_deref(), Some("new.org"));
        assert_eq!((host("workshop"), host("other.org")), (None, None));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_reader(text in "[\\[\\]\"\\\\#;=a \n\té]{0,60}") {
            parsed(&text);
        }
    }
}
