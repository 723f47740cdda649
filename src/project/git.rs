//! Reads `.git`: worktrees, HEAD, remotes and root commit, without starting git.

use super::worktree::{lexical, worktree_root};
use crate::files;
use crate::model::GitState;
use std::path::{Path, PathBuf};

/// A worktree of a repository.
#[derive(Debug)]
pub struct Repository {
    /// The folder that contains `.git`.
    pub worktree: PathBuf,
    /// The git folder of this worktree, with `HEAD`.
    folder: PathBuf,
    /// The git folder that all worktrees share, with refs and `config`.
    pub common: PathBuf,
}

impl Repository {
    /// Opens the repository whose worktree has the root `root`; `None` if `.git` is not what git would create.
    ///
    /// A folder may claim to be a worktree of any repository, because its `.git` names the git folder. So the git
    /// folder must point back to it, as git requires: in `gitdir` for a linked worktree, in `core.worktree` for a
    /// submodule. A `.git` that is a symbolic link is rejected, because nothing points back to it.
    pub fn open(root: &Path) -> Option<Repository> {
        let dot_git = root.join(".git");
        let worktree = root.to_path_buf();
        if dot_git.symlink_metadata().ok()?.is_dir() {
            files::small_text(&dot_git.join("HEAD"))?;
            return Some(Repository { worktree, common: dot_git.clone(), folder: dot_git });
        }
        if dot_git.is_symlink() {
            return None;
        }
        let folder = resolve(root, files::small_text(&dot_git)?.strip_prefix("gitdir:")?.trim());
        files::small_text(&folder.join("HEAD"))?;
        let same =
            |path: PathBuf, other: &Path| files::canonical(&path).is_ok_and(|p| files::canonical(other).is_ok_and(|o| o == p));
        let linked = files::small_text(&folder.join("gitdir")).is_some_and(|back| same(folder.join(back.trim()), &dot_git));
        if linked {
            let common =
                files::small_text(&folder.join("commondir")).map_or(folder.clone(), |path| resolve(&folder, path.trim()));
            return Some(Repository { worktree, folder, common });
        }
        let repository = Repository { worktree, common: folder.clone(), folder };
        let config = repository.config(None);
        let named = config.get("core", "worktree").is_some_and(|back| same(repository.folder.join(back), root));
        named.then_some(repository)
    }

    /// Returns the first commit if the reflog still contains it. In a repository created locally, the reflog starts
    /// with `0000… <commit> <who> <when>\tcommit (initial): …`.
    pub fn first_commit(&self) -> Option<String> {
        let log = files::small_text(&self.common.join("logs/HEAD"))?;
        let (ids, message) = log.lines().next()?.split_once('\t')?;
        let mut ids = ids.split(' ');
        let nothing = ids.next()?.bytes().all(|b| b == b'0');
        ids.next().and_then(commit_id).filter(|_| nothing && message.starts_with("commit (initial)"))
    }

    /// Reads branch and commit.
    pub fn state(&self) -> GitState {
        let Some(head) = files::small_text(&self.folder.join("HEAD")) else { return GitState::default() };
        match head.trim().strip_prefix("ref: ") {
            // With reftable, HEAD contains a placeholder (gitformat-reftable), so nothing is known.
            Some(".invalid" | "refs/heads/.invalid") => GitState::default(),
            Some(name) => GitState {
                branch: Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_string()),
                head: self.commit_of(name),
            },
            None => GitState { branch: None, head: commit_id(&head) },
        }
    }

    /// Returns the remote URL that git would fetch from: that of `origin`, otherwise that of the first remote; `None`
    /// if it cannot be determined.
    pub fn remote(&self, home: Option<&Path>) -> Option<String> {
        let mut user = GitConfig::default();
        for (home, file) in
            home.into_iter().flat_map(|home| [(home, home.join(".config/git/config")), (home, home.join(".gitconfig"))])
        {
            user.extend(GitConfig::read(&file, Some(home)));
        }
        self.config(home).remote_url(&user)
    }

    fn config(&self, home: Option<&Path>) -> GitConfig {
        GitConfig::read(&self.common.join("config"), home)
    }

    /// Returns the main worktree, the folder that people call the repository.
    pub fn main_worktree(&self) -> &Path {
        match self.common.file_name() {
            Some(name) if name == ".git" => self.common.parent().unwrap_or(&self.worktree),
            _ => &self.worktree,
        }
    }

    fn commit_of(&self, name: &str) -> Option<String> {
        if name.split('/').any(|part| part == "..") {
            return None;
        }
        let loose = [&self.folder, &self.common].iter().find_map(|f| files::small_text(&f.join(name)));
        if let Some(id) = loose.as_deref().and_then(commit_id) {
            return Some(id);
        }
        let packed = files::small_text(&self.common.join("packed-refs"))?;
        packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').and_then(commit_id))
    }
}

/// Reads the git state of the worktree that contains `cwd`.
pub fn state_at(cwd: &Path, home: Option<&Path>) -> Option<GitState> {
    Repository::open(worktree_root(cwd, home)?).map(|r| r.state())
}

fn commit_id(text: &str) -> Option<String> {
    let id = text.trim();
    ((id.len() == 40 || id.len() == 64) && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_string())
}

fn resolve(base: &Path, path: &str) -> PathBuf {
    let joined = base.join(path);
    files::canonical(&joined).unwrap_or(joined)
}

/// Whether `folder` is outside the repository of `own` and all its worktrees. False if `own` is not in a repository.
pub fn is_other_repository(folder: &Path, own: &Path, home: Option<&Path>) -> bool {
    let (Some(root), folder) = (worktree_root(own, home), lexical(folder)) else { return false };
    let main = |root: &Path| Repository::open(root).map(|repository| repository.main_worktree().to_path_buf());
    match worktree_root(&folder, home) {
        Some(other) => other != root && main(other) != main(root),
        None => true,
    }
}

/// Default port of each scheme.
const DEFAULT_PORTS: [(&str, &str); 4] = [("ssh", "22"), ("https", "443"), ("http", "80"), ("git", "9418")];

/// Returns the folder of a remote URL that is on this machine: `/srv/x.git`, `../x`, `file:///srv/x`.
pub fn local(url: &str, worktree: &Path) -> Option<PathBuf> {
    let path = match url.split_once("://") {
        Some(("file", path)) => path,
        Some(_) => return None,
        // git-clone(1): with a colon before the first slash it is `host:path`.
        None if url.split_once(':').is_some_and(|(host, _)| !host.contains('/') && host.len() > 1) => return None,
        None => url,
    };
    Some(resolve(worktree, path))
}

/// Normalises a remote URL: `git@Host:Team/app.git`, `ssh://git@host:22/Team/app` and `https://user:pw@host/Team/app/`
/// all become `host/Team/app`.
pub fn normalised(url: &str) -> String {
    let trimmed = |path: &str| {
        let path = path.trim_matches('/');
        path.strip_suffix(".git").unwrap_or(path).to_string()
    };
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme, rest.split_once('/').unwrap_or((rest, ""))),
        None => ("", url.split_once(':').unwrap_or((url, ""))),
    };
    let (authority, path) = rest;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let default = host.rsplit_once(':').filter(|(_, port)| DEFAULT_PORTS.contains(&(scheme, *port)));
    format!("{}/{}", default.map_or(host.as_str(), |(host, _)| host), trimmed(path))
}

/// Removes user and password from a URL with a scheme; `git@host:…` has no password.
pub fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host_end = rest.find('/').unwrap_or(rest.len());
            let host_start = rest[..host_end].rfind('@').map_or(0, |i| i + 1);
            format!("{scheme}://{}", &rest[host_start..])
        }
        None => url.to_string(),
    }
}

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

    #[test]
    fn one_repository_has_one_name_however_it_is_cloned() {
        for url in [
            "git@Example.org:Team/app.git",
            "ssh://git@example.org:22/Team/app",
            "https://u:p@example.org/Team/app/",
            "https://example.org/Team/app.git",
        ] {
            assert_eq!(normalised(url), "example.org/Team/app", "{url}");
        }
    }

    #[test]
    fn different_repositories_keep_different_names() {
        for (url, name) in [
            ("https://a.example/x/lib@2", "a.example/x/lib@2"),
            ("https://a.example/@al/app", "a.example/@al/app"),
            ("git@h.example:1234/app.git", "h.example/1234/app"),
            ("https://h.example/5678/app", "h.example/5678/app"),
            ("https://h.example:8443/x/app", "h.example:8443/x/app"),
        ] {
            assert_eq!(normalised(url), name, "{url}");
        }
    }

    #[test]
    fn a_remote_on_this_machine_is_a_folder() {
        let local = |url| local(url, Path::new("/work/fork"));
        assert_eq!(local("/srv/git/app.git"), Some(PathBuf::from("/srv/git/app.git")));
        assert_eq!(local("file:///srv/app"), Some(PathBuf::from("/srv/app")));
        assert_eq!(local("../up"), Some(PathBuf::from("/work/fork/../up")));
        assert_eq!((local("git@h:x"), local("https://h/x")), (None, None));
    }

    #[test]
    fn credentials_do_not_stay_in_a_url() {
        assert_eq!(without_credentials("https://u:p@h/x"), "https://h/x");
        assert_eq!(without_credentials("https://h/x@y"), "https://h/x@y");
        assert_eq!(without_credentials("git@h:x"), "git@h:x");
    }

    #[test]
    fn a_packed_branch_is_found_and_a_path_out_of_the_folder_is_not() {
        let root = std::env::temp_dir().join(format!("nmem-git-{}", std::process::id()));
        let id = "3f786850e387550fdab836ed7e6dc881de23001b";
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join(".git/packed-refs"), format!("# pack\n{id} refs/heads/main\n")).unwrap();
        std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let state = Repository::open(&root).unwrap().state();
        assert_eq!(state, GitState { branch: Some("main".into()), head: Some(id.into()) });
        std::fs::write(root.join(".git/HEAD"), "ref: refs/heads/.invalid\n").unwrap();
        assert_eq!(Repository::open(&root).unwrap().state(), GitState::default(), "refs in tables are not read");
        std::fs::write(root.join(".git/HEAD"), "ref: ../../etc/passwd\n").unwrap();
        assert_eq!(Repository::open(&root).unwrap().state().head, None);
        std::fs::remove_dir_all(root).unwrap();
    }

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
