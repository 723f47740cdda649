//! Identity of projects. Files: `git` (reads a repository without starting git), `worktree` (roots and relative
//! paths), `about` (languages and frameworks), `client` (the agent's process).

pub mod about;
pub mod client;
pub mod git;
mod worktree;

pub use git::is_other_repository;
pub use worktree::{relative, worktree_root};

use crate::files;
use crate::model::ProjectId;
use std::path::{Path, PathBuf};
use worktree::{is_no_project, lexical};

/// Identifies the project of a folder. `by_hand` is the name that the user gave it. Returns `None` for relative paths
/// and for folders that are never a project.
pub fn identify(cwd: &Path, home: Option<&Path>, by_hand: Option<String>) -> Option<ProjectId> {
    if !cwd.is_absolute() {
        return None;
    }
    // A folder is the same project regardless of how its path is written, and also through a link.
    let (cwd, home) = (canonical(cwd), home.map(canonical));
    let (cwd, home) = (cwd.as_path(), home.as_deref());
    let never = |folder: &Path| is_no_project(folder, home);
    let repository = worktree_root(cwd, home).and_then(git::Repository::open);
    let root = repository.as_ref().map_or(cwd, |r| r.worktree.as_path());
    let above = cwd.ancestors().take_while(|f| f.starts_with(root) && !never(f));
    let places: Vec<String> = above.map(|f| format!("under:{}", f.display())).collect();
    let (mut keys, mut name, mut repo_url) = match &repository {
        Some(repository) => of_repository(repository, home),
        None if never(cwd) => return None,
        None => (vec![format!("dir:{}", cwd.display())], last_part(&cwd.display().to_string()), None),
    };
    if let Some(by_hand) = by_hand {
        (keys, name) = (vec![format!("name:{by_hand}")], by_hand);
        repo_url = None;
    }
    Some(ProjectId { places, keys, name, repo_url, root: root.display().to_string(), domain: None })
}

/// Returns keys, name, and remote URL without credentials.
fn of_repository(repository: &git::Repository, home: Option<&Path>) -> (Vec<String>, String, Option<String>) {
    let remote = repository.remote(home);
    let by_url = remote.as_deref().map(|url| match git::local(url, &repository.worktree) {
        Some(folder) => folder.display().to_string(),
        None => git::normalised(url),
    });
    let mut keys: Vec<String> = by_url.iter().map(|url| format!("repo:{url}")).collect();
    keys.extend(repository.first_commit().map(|commit| format!("root:{commit}")));
    if by_url.is_none() {
        keys.push(format!("git:{}", repository.common.display()));
    }
    let name = by_url.as_deref().map(last_part).unwrap_or_else(|| last_part(&repository.main_worktree().display().to_string()));
    let repo_url = remote.map(|url| git::without_credentials(&url));
    (keys, name.strip_suffix(".git").map(String::from).unwrap_or(name), repo_url)
}

fn canonical(path: &Path) -> PathBuf {
    files::canonical(path).unwrap_or_else(|_| lexical(path))
}

fn last_part(path: &str) -> String {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(path).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    struct ScratchFolder(PathBuf);

    impl ScratchFolder {
        fn new(name: &str) -> ScratchFolder {
            let path = std::env::temp_dir().join(format!("nmem-project-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            ScratchFolder(files::canonical(&path).unwrap())
        }
        fn file(&self, path: &str, text: &str) -> &ScratchFolder {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            self
        }
    }

    impl Drop for ScratchFolder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn clones_of_one_repository_are_one_project_however_the_url_is_written() {
        let folder = ScratchFolder::new("clones");
        for (clone, url) in [("a", "git@Example.org:Team/app.git"), ("b", "https://me:pw@example.org/Team/app/")] {
            folder.file(&format!("{clone}/.git/HEAD"), "ref: refs/heads/main\n");
            folder.file(&format!("{clone}/.git/config"), &format!("[remote \"origin\"]\n\turl = {url}\n"));
        }
        let ids: Vec<ProjectId> = ["a", "b"].iter().map(|c| identify(&folder.0.join(c), None, None).unwrap()).collect();
        assert_eq!(ids[0].keys[0], "repo:example.org/Team/app");
        assert_eq!(ids[0].keys[0], ids[1].keys[0]);
        assert_eq!(ids[1].repo_url.as_deref(), Some("https://example.org/Team/app/"));
        assert_eq!(ids[0].name, "app");
    }

    #[test]
    fn a_worktree_is_the_project_of_its_repository_and_keeps_a_root_of_its_own() {
        let folder = ScratchFolder::new("worktree");
        folder
            .file("app/.git/HEAD", "ref: refs/heads/main\n")
            .file("app/.git/worktrees/fix/gitdir", &format!("{}\n", folder.0.join("fix/.git").display()))
            .file("app/.git/worktrees/fix/commondir", "../..\n");
        folder.file("app/.git/worktrees/fix/HEAD", "ref: refs/heads/fix\n").file("fix/src/x", "");
        folder.file("fix/.git", &format!("gitdir: {}\n", folder.0.join("app/.git/worktrees/fix").display()));
        let (app, fix) = (folder.0.join("app"), folder.0.join("fix/src"));
        assert_eq!(identify(&app, None, None).unwrap().keys[0], identify(&fix, None, None).unwrap().keys[0]);
        assert_eq!(identify(&fix, None, None).unwrap().root, folder.0.join("fix").display().to_string());
        assert_eq!(identify(&fix, None, None).unwrap().name, "app");
    }

    #[test]
    fn home_and_the_root_folder_are_no_project_even_under_git() {
        let folder = ScratchFolder::new("home");
        folder.file(".git/HEAD", "ref: refs/heads/main\n").file("notes/x", "");
        assert_eq!(identify(&folder.0, Some(&folder.0), None), None);
        for none in ["/", "/tmp", "/tmp/."] {
            assert_eq!(identify(Path::new(none), None, None), None, "{none}");
        }
        let notes = folder.0.join("notes");
        assert_eq!(identify(&notes, Some(&folder.0), None).unwrap().keys[0], format!("dir:{}", notes.display()));
    }

    #[test]
    fn paths_are_relative_to_the_worktree_and_others_stay_whole() {
        let folder = ScratchFolder::new("paths");
        folder.file("app/.git/HEAD", "x").file("app/src/a.rs", "");
        let cwd = folder.0.join("app/src").display().to_string();
        let at = |p: &str| relative(p, Some(&cwd), None);
        assert_eq!(at(&folder.0.join("app/src/a.rs").display().to_string()), "src/a.rs");
        assert_eq!(at("a.rs"), "src/a.rs");
        assert_eq!(at("../Cargo.toml"), "Cargo.toml");
        assert_eq!(at(".."), ".");
        let elsewhere = if cfg!(windows) { r"D:\hosts" } else { "/etc/hosts" };
        assert_eq!(at(elsewhere), elsewhere);
        assert_eq!(relative("a.rs", None, None), "a.rs");
    }
}
