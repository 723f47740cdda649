//! Reads `.git` and `.jj`: worktrees, HEAD, remotes and root commit, without starting git.

use super::git_config::{ConfigFiles, GitConfig, ssh_host};
use super::worktree::{lexical, worktree_root};
use crate::files;
use crate::model::{GitState, Millis};
use std::path::{Path, PathBuf};

/// A worktree of a repository.
#[derive(Debug)]
pub struct Repository {
    /// The folder that contains `.git` or `.jj`.
    pub worktree: PathBuf,
    /// The git folder of this worktree, with `HEAD`.
    folder: PathBuf,
    /// The git folder that all worktrees share, with refs and `config`.
    pub common: PathBuf,
}

impl Repository {
    /// Opens the repository whose worktree has the root `root`; `None` if its git folder is missing, or if it is outside
    /// the root and does not point back.
    ///
    /// A folder may claim to be a worktree of any repository, because its `.git` names the git folder. So a git folder
    /// outside the root must point back to it, as git requires: in `gitdir` for a linked worktree, in `core.worktree` for
    /// a submodule. A git folder inside the root (`.git`, a link to `.bare`, that of jj) belongs to whoever owns the root.
    pub fn open(root: &Path) -> Option<Repository> {
        let dot_git = root.join(".git");
        let worktree = root.to_path_buf();
        let Ok(meta) = dot_git.symlink_metadata() else {
            let folder = jj_git_folder(root)?;
            return Some(Repository { worktree, common: folder.clone(), folder });
        };
        if meta.is_dir() {
            files::small_text(&dot_git.join("HEAD"))?;
            return Some(Repository { worktree, common: dot_git.clone(), folder: dot_git });
        }
        let folder = match meta.is_symlink() {
            true => resolve(root, ".git"),
            false => resolve(root, files::small_text(&dot_git)?.strip_prefix("gitdir:")?.trim()),
        };
        files::small_text(&folder.join("HEAD"))?;
        let same =
            |path: PathBuf, other: &Path| files::canonical(&path).is_ok_and(|p| files::canonical(other).is_ok_and(|o| o == p));
        if files::canonical(root).is_ok_and(|root| folder.starts_with(root)) {
            return Some(Repository { worktree, common: folder.clone(), folder });
        }
        if meta.is_symlink() {
            return None;
        }
        let linked = files::small_text(&folder.join("gitdir")).is_some_and(|back| same(folder.join(back.trim()), &dot_git));
        if linked {
            let Some(path) = files::small_text(&folder.join("commondir")) else {
                return Some(Repository { worktree, common: folder.clone(), folder });
            };
            // Git keeps the folders of linked worktrees in `worktrees` of the common one. Otherwise an unpacked archive
            // could name any repository.
            let common = resolve(&folder, path.trim());
            let is_inside = files::canonical(&folder).is_ok_and(|folder| folder.starts_with(common.join("worktrees")));
            return is_inside.then_some(Repository { worktree, folder, common });
        }
        let repository = Repository { worktree, common: folder.clone(), folder };
        // With a sparse checkout, git moves the setting to a file of the worktree.
        let names_root = |file: &str| {
            let config = GitConfig::read(&repository.common.join(file), None, &mut ConfigFiles::default());
            config.get("core", "worktree").is_some_and(|back| same(repository.folder.join(back), root))
        };
        let is_named = ["config", "config.worktree"].into_iter().any(names_root);
        is_named.then_some(repository)
    }

    /// Whether it is a linked worktree, not the main one.
    pub fn is_linked(&self) -> bool {
        self.folder != self.common
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

    /// Time at which HEAD last moved: a commit, a checkout, a reset, a stash. `None` without a reflog.
    pub fn head_moved_at(&self) -> Option<Millis> {
        files::changed_at(&self.folder.join("logs/HEAD"))
    }

    /// Returns the commit that HEAD's reflog names last, with its subject, if it is one that `git commit` made.
    pub fn last_commit(&self) -> Option<(String, String)> {
        let log = self.folder.join("logs/HEAD");
        let length = files::length(&log)?;
        let end = files::part(&log, length.saturating_sub(REFLOG_BYTES)..length).ok()?;
        let end = String::from_utf8_lossy(&end).into_owned();
        let (ids, message) = end.trim_end().lines().next_back()?.split_once('\t')?;
        let subject = message.strip_prefix("commit")?.split_once(": ")?.1;
        Some((commit_id(ids.split(' ').nth(1)?)?, subject.to_string()))
    }

    /// Returns the remote URL that git would fetch from: that of `origin`, otherwise that of the first remote; `None`
    /// if it cannot be determined. Aliases of `~/.ssh/config` are replaced by their hosts.
    pub fn remote(&self, home: Option<&Path>) -> Option<String> {
        let mut files = ConfigFiles::of(&self.folder);
        // The repository's own file comes first: many includes of the user's must not leave it unread.
        let own = GitConfig::read(&self.common.join("config"), home, &mut files);
        let url = own.remote_url(&GitConfig::of_user(home, &mut files))?;
        Some(without_alias(url, home))
    }

    /// Returns the main worktree, the folder that people call the repository.
    pub fn main_worktree(&self) -> &Path {
        match self.common.file_name() {
            Some(name) if name == ".git" || name == ".bare" => self.common.parent().unwrap_or(&self.worktree),
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

/// The git folder of a jj repository whose `.jj` is in `root`; `None` for further workspaces, which name the folder of
/// the first one, and for git folders outside the root.
fn jj_git_folder(root: &Path) -> Option<PathBuf> {
    let store = root.join(".jj/repo/store");
    let folder = resolve(&store, files::small_text(&store.join("git_target"))?.trim());
    files::small_text(&folder.join("HEAD"))?;
    files::canonical(root).is_ok_and(|root| folder.starts_with(root)).then_some(folder)
}

/// Bytes at the end of a reflog that hold its last entry.
const REFLOG_BYTES: u64 = 4096;

/// Maximum linked worktrees of a repository to look at.
const WORKTREES: usize = 1000;

/// Roots of the linked worktrees that the repository at `root` knows, whether they still exist or not.
pub fn linked_worktrees(root: &Path) -> Vec<PathBuf> {
    let Some(repository) = Repository::open(root) else { return Vec::new() };
    let entries = std::fs::read_dir(repository.common.join("worktrees")).into_iter().flatten().flatten().take(WORKTREES);
    let root_of = |entry: std::fs::DirEntry| {
        let dot_git = files::small_text(&entry.path().join("gitdir"))?;
        Some(resolve(&entry.path(), dot_git.trim()).parent()?.to_path_buf())
    };
    entries.filter_map(root_of).collect()
}

/// Reads the git state of the worktree that contains `cwd`.
pub fn state_at(cwd: &Path, home: Option<&Path>) -> Option<GitState> {
    Repository::open(worktree_root(cwd, home)?).map(|r| r.state())
}

/// The commit that was just made in the repository of a folder, with its subject (see [`Repository::last_commit`]).
pub fn last_commit_at(cwd: &Path, home: Option<&Path>) -> Option<(String, String)> {
    Repository::open(worktree_root(cwd, home)?)?.last_commit()
}

fn commit_id(text: &str) -> Option<String> {
    let id = text.trim();
    ((id.len() == 40 || id.len() == 64) && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_string())
}

fn resolve(base: &Path, path: &str) -> PathBuf {
    let joined = base.join(path);
    files::canonical(&joined).unwrap_or(joined)
}

/// Whether the worktree at `root` is a submodule of the repository of the one at `own`.
pub fn is_submodule(root: &Path, own: &Path) -> bool {
    let (Some(root), Some(own)) = (Repository::open(root), Repository::open(own)) else { return false };
    let real = |path: &Path| files::canonical(path).unwrap_or_else(|_| path.to_path_buf());
    let (inside, own) = (real(&root.common), real(&own.common));
    inside != own && inside.starts_with(own)
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
const DEFAULT_PORTS: [(&str, &str); 6] =
    [("ssh", "22"), ("git+ssh", "22"), ("ssh+git", "22"), ("https", "443"), ("http", "80"), ("git", "9418")];

/// Names under which a host serves SSH on the port of HTTPS, or its pages.
const FRONTS: [(&str, &str); 5] = [
    ("ssh.dev.azure.com", "dev.azure.com"),
    ("ssh.github.com", "github.com"),
    ("www.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("altssh.bitbucket.org", "bitbucket.org"),
];

/// Hosts, and first labels of hosts that run the same software, whose paths ignore case.
const IGNORES_CASE: [&str; 8] =
    ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com", "github.", "gitlab.", "gitea."];

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
/// all become `host/Team/app`, in lower case where the host ignores case.
pub fn normalised(url: &str) -> String {
    let trimmed = |path: &str| {
        let path = path.trim_matches('/');
        path.strip_suffix(".git").unwrap_or(path).to_string()
    };
    let (scheme, authority, path) = parts(url);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let default = host.rsplit_once(':').filter(|(_, port)| DEFAULT_PORTS.contains(&(scheme, *port)));
    let host = default.map_or(host.as_str(), |(host, _)| host);
    let bare = host.strip_suffix(":443").unwrap_or(host);
    let host = FRONTS.iter().find(|(front, _)| *front == bare).map_or(host, |(_, host)| host);
    let is_known = |known: &str| host == known || known.ends_with('.') && host.starts_with(known);
    let ignores_case = IGNORES_CASE.into_iter().any(is_known) || host.ends_with(".ghe.com");
    let mut path = trimmed(path);
    if host == "dev.azure.com" {
        path = path.strip_prefix("v3/").unwrap_or(&path).replace("/_git/", "/");
    }
    format!("{host}/{}", if ignores_case { path.to_lowercase() } else { path })
}

/// Splits a URL into scheme (empty for `host:path`), authority and path.
fn parts(url: &str) -> (&str, &str, &str) {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            (scheme, authority, path)
        }
        None => {
            let (authority, path) = url.split_once(':').unwrap_or((url, ""));
            ("", authority, path)
        }
    }
}

/// Returns the normalised name of a remote, after the user's `insteadOf` rules and SSH aliases; `None` for a folder of
/// this machine.
pub fn name_of_url(url: &str, home: Option<&Path>) -> Option<String> {
    let mut files = ConfigFiles::default();
    let url = GitConfig::of_user(home, &mut files).instead_of(url, &GitConfig::default());
    let is_local = local(&url, Path::new("/")).is_some();
    let names_something = parts(&url).2.contains(char::is_alphanumeric);
    (!is_local && names_something).then(|| normalised(&without_alias(url, home)))
}

/// Replaces an SSH alias by the host that `~/.ssh/config` names.
fn without_alias(url: String, home: Option<&Path>) -> String {
    let (scheme, authority, _) = parts(&url);
    let is_ssh = matches!(scheme, "" | "ssh" | "git+ssh" | "ssh+git");
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    // Hosts with a dot that are known need no file.
    if !is_ssh || host.contains('/') || IGNORES_CASE.contains(&host) {
        return url;
    }
    let Some(real) = home.and_then(|home| ssh_host(host, home, &mut ConfigFiles::default())) else { return url };
    let user = authority.rsplit_once('@').map_or(0, |(user, _)| user.len() + 1);
    let at = if scheme.is_empty() { 0 } else { scheme.len() + "://".len() } + user;
    format!("{}{real}{}", &url[..at], &url[at + host.len()..])
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn hosts_that_ignore_case_and_their_other_names_are_one_host() {
        for url in [
            "git@github.com:Team/App.git",
            "https://github.com/team/app",
            "ssh://git@ssh.github.com:443/Team/App.git",
            "https://www.github.com/Team/app/",
            "git+ssh://git@GitHub.com:22/team/App",
        ] {
            assert_eq!(normalised(url), "github.com/team/app", "{url}");
        }
        assert_eq!(normalised("git@gitlab.example.org:Team/App.git"), "gitlab.example.org/team/app");
        assert_eq!(normalised("ssh://git@altssh.gitlab.com:443/Team/App"), "gitlab.com/team/app");
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
}
