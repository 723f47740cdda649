//! What `.git` says, read from its files: no process is started (DESIGN §3).
//!
//! Formats: gitrepository-layout(5), git-config(5). Every file is read through `files`, since a repository may hold
//! anything.

use crate::files;
use crate::model::GitState;
use std::path::{Path, PathBuf};

/// A worktree of a repository.
#[derive(Debug)]
pub struct Repository {
    /// The folder that holds `.git`.
    pub worktree: PathBuf,
    /// The worktree's own git folder, which holds `HEAD`.
    folder: PathBuf,
    /// The git folder that all worktrees share, which holds refs and `config`.
    pub common: PathBuf,
}

impl Repository {
    /// Opens the repository whose worktree begins at `root`; `None` where `.git` isn't what git would make.
    pub fn open(root: &Path) -> Option<Repository> {
        let dot_git = root.join(".git");
        let folder = if dot_git.is_dir() {
            dot_git
        } else {
            let link = files::small_text(&dot_git)?;
            resolve(root, link.strip_prefix("gitdir:")?.trim())
        };
        files::small_text(&folder.join("HEAD"))?;
        let common = match files::small_text(&folder.join("commondir")) {
            Some(path) => resolve(&folder, path.trim()),
            None => folder.clone(),
        };
        Some(Repository { worktree: root.to_path_buf(), folder, common })
    }

    /// Reads branch and commit.
    pub fn state(&self) -> GitState {
        let Some(head) = files::small_text(&self.folder.join("HEAD")) else { return GitState::default() };
        match head.trim().strip_prefix("ref: ") {
            Some(name) => GitState {
                branch: Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_string()),
                head: self.commit_of(name),
            },
            None => GitState { branch: None, head: commit_id(&head) },
        }
    }

    /// Reads the remote's URL: `origin`, else the first that is named.
    pub fn remote(&self) -> Option<String> {
        let config = files::small_text(&self.common.join("config"))?;
        let (mut section, mut first, mut origin) = (String::new(), None, None);
        for line in config.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_string();
            } else if let Some((key, value)) = line.split_once('=')
                && section.starts_with("remote ")
                && key.trim() == "url"
            {
                let slot = if section == "remote \"origin\"" { &mut origin } else { &mut first };
                slot.get_or_insert_with(|| value.trim().trim_matches('"').to_string());
            }
        }
        origin.or(first).filter(|url| !url.is_empty())
    }

    /// The folder people call the repository: that of the main worktree.
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

/// Reads the git state of the worktree that holds `cwd`.
pub fn state_at(cwd: &Path, home: Option<&Path>) -> Option<GitState> {
    Repository::open(super::worktree_root(cwd, home)?).map(|r| r.state())
}

fn commit_id(text: &str) -> Option<String> {
    let id = text.trim();
    ((id.len() == 40 || id.len() == 64) && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_string())
}

fn resolve(base: &Path, path: &str) -> PathBuf {
    let joined = base.join(path);
    joined.canonicalize().unwrap_or(joined)
}

/// Writes a remote's URL in one way: `git@Host:Team/app.git`, `ssh://git@host:22/Team/app` and
/// `https://user:pw@host/Team/app/` all give `host/Team/app`.
pub fn normalised(url: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let at = rest.find(['/', ':']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    let mut path = path.trim_start_matches([':', '/']);
    // A port is digits up to the next slash.
    if let Some((port, after)) = path.split_once('/')
        && !port.is_empty()
        && port.bytes().all(|b| b.is_ascii_digit())
    {
        path = after;
    }
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    match host.is_empty() {
        true => path.to_string(),
        false => format!("{}/{path}", host.to_ascii_lowercase()),
    }
}

/// Takes user and password out of a URL. A user alone stays where it names the service (`git@host:…`).
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
        assert_eq!(normalised("/srv/git/app.git"), "srv/git/app");
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
        std::fs::write(root.join(".git/HEAD"), "ref: ../../etc/passwd\n").unwrap();
        assert_eq!(Repository::open(&root).unwrap().state().head, None);
        std::fs::remove_dir_all(root).unwrap();
    }
}
