//! Identity of projects. Files: `git` (reads a repository without starting git), `git_config` (its configuration and
//! ssh's), `worktree` (roots and relative paths), `about` (languages and frameworks).

pub mod about;
pub mod git;
mod git_config;
mod worktree;

pub use git::{is_other_repository, is_submodule};
pub use worktree::{named_by_layout, relative, repository_of, worktree_root};

use crate::files;
use crate::model::ProjectId;
use std::path::{Path, PathBuf};
use worktree::{is_no_project, lexical, main_by_layout, on_this_system};

/// Identifies the project of a folder. `by_hand` is the name that the user gave it. Returns `None` for relative paths
/// and for folders that are never a project.
pub fn identify(cwd: &Path, home: Option<&Path>, by_hand: Option<String>) -> Option<ProjectId> {
    let cwd = &on_this_system(cwd)?;
    // A folder is the same project regardless of how its path is written, and also through a link.
    let (cwd, home) = (canonical(cwd), home.map(canonical));
    let (cwd, home) = (cwd.as_path(), home.as_deref());
    let never = |folder: &Path| is_no_project(folder, home);
    let root = worktree_root(cwd, home);
    let repository = root.and_then(git::Repository::open);
    // A folder whose repository cannot be read or trusted is still one project, with all that is below it.
    let root = root.or_else(|| main_by_layout(cwd).filter(|main| !never(main))).unwrap_or(cwd);
    let above = cwd.ancestors().take_while(|f| f.starts_with(root) && !never(f));
    let places: Vec<String> = above.map(|f| format!("under:{}", f.display())).collect();
    let (mut keys, mut name, mut repo_url) = match &repository {
        Some(repository) => of_repository(repository, home),
        None if never(cwd) => return None,
        None => (vec![format!("dir:{}", root.display())], last_part(&root.display().to_string()), None),
    };
    if let Some(by_hand) = by_hand {
        (keys, name) = (vec![format!("name:{by_hand}")], by_hand);
        repo_url = None;
    }
    let is_secondary = repository.as_ref().is_some_and(git::Repository::is_linked) || !root.is_dir();
    Some(ProjectId { places, keys, name, repo_url, root: root.display().to_string(), domain: None, is_secondary })
}

/// Identifies the project of a folder that is gone by its remote URL; `None` if the URL names no host.
pub fn of_url(url: &str, folder: &str, home: Option<&Path>) -> Option<ProjectId> {
    let name = git::name_of_url(url, home)?;
    let folder = on_this_system(Path::new(folder)).map_or_else(|| folder.to_string(), |folder| folder.display().to_string());
    Some(ProjectId {
        places: vec![format!("under:{folder}")],
        // Other sessions of this folder may not name the URL.
        keys: vec![format!("repo:{name}"), format!("dir:{folder}")],
        name: name_in_url(url).unwrap_or_else(|| last_part(&name)),
        repo_url: Some(git::without_credentials(url)),
        root: String::new(),
        domain: None,
        is_secondary: true,
    })
}

/// The repository's name as a URL spells it.
fn name_in_url(url: &str) -> Option<String> {
    let name = last_part(url.trim_end_matches('/').rsplit(':').next()?);
    Some(name.strip_suffix(".git").map(String::from).unwrap_or(name)).filter(|name| !name.is_empty())
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
    let name = by_url.as_ref().and(remote.as_deref()).and_then(name_in_url);
    let name = name.unwrap_or_else(|| last_part(&repository.main_worktree().display().to_string()));
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

    /// The keys of a folder and of one below it, which must be of one project.
    fn keys_of_both(root: &Path) -> Vec<String> {
        std::fs::create_dir_all(root.join("src")).unwrap();
        let (above, below) = (identify(root, None, None).unwrap(), identify(&root.join("src"), None, None).unwrap());
        assert_eq!((&above.keys, &above.name, &above.root), (&below.keys, &below.name, &below.root));
        assert_eq!(above.root, root.display().to_string());
        above.keys
    }

    #[test]
    fn a_repository_that_cannot_be_trusted_is_one_project_without_keys_from_elsewhere() {
        let folder = ScratchFolder::new("untrusted");
        let remote = "[remote \"origin\"]\n\turl = git@github.com:Team/App.git\n";
        folder.file("real/.git/HEAD", "ref: refs/heads/main\n").file("real/.git/config", remote);
        let real = folder.0.join("real/.git").display().to_string();
        folder.file("container/.git", "gitdir: /Users/dev/app/.git/worktrees/wt\n");
        folder.file("claims/.git", &format!("gitdir: {real}\n"));
        folder.file("empty/.git/x", "");
        // Its parts are in one archive, but for the common folder.
        folder.file("archive/app/.git", "gitdir: ../g\n").file("archive/g/HEAD", "ref: refs/heads/main\n");
        folder.file("archive/g/gitdir", "../app/.git\n").file("archive/g/commondir", "../../real/.git\n");
        folder.file("jjspace/.jj/repo", "../../jj/.jj/repo");
        let mut names = vec!["container", "claims", "empty", "jjspace", "archive/app"];
        if cfg!(unix) {
            std::fs::create_dir_all(folder.0.join("link")).unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(&real, folder.0.join("link/.git")).unwrap();
            names.push("link");
        }
        for name in names {
            let root = folder.0.join(name);
            assert_eq!(keys_of_both(&root), [format!("dir:{}", root.display())], "{name}");
        }
    }

    #[test]
    fn a_git_folder_inside_the_root_needs_no_pointer_back() {
        let folder = ScratchFolder::new("inside");
        let remote = "[remote \"origin\"]\n\turl = git@github.com:Team/App.git\n";
        for (name, git) in [("bare", ".bare"), ("jj", ".jj/repo/store/git")] {
            folder.file(&format!("{name}/{git}/HEAD"), "ref: refs/heads/main\n").file(&format!("{name}/{git}/config"), remote);
        }
        folder.file("bare/.git", "gitdir: ./.bare\n").file("jj/.jj/repo/store/git_target", "git");
        for name in ["bare", "jj"] {
            assert_eq!(keys_of_both(&folder.0.join(name)), ["repo:github.com/team/app"], "{name}");
        }
    }

    #[test]
    fn a_worktree_that_is_gone_belongs_to_the_repository_of_its_url_or_path() {
        let folder = ScratchFolder::new("gone");
        folder.file("app/.git/HEAD", "ref: refs/heads/main\n");
        let app = identify(&folder.0.join("app"), None, None).unwrap();
        let gone = |path: &str| identify(&folder.0.join(path), None, None).unwrap().keys;
        assert_eq!(gone("app/.claude/worktrees/brave-fox/src"), app.keys);
        assert_eq!(gone("old/.claude/worktrees/brave-fox/src"), [format!("dir:{}", folder.0.join("old").display())]);
        let by_url = of_url("git@github.com:Team/App.git", "/gone/app", None).unwrap();
        let keys = vec!["repo:github.com/team/app".into(), "dir:/gone/app".into()];
        assert_eq!((by_url.keys, by_url.name, by_url.root), (keys, "App".into(), "".into()));
        assert_eq!(of_url("/srv/git/app.git", "/gone/app", None), None, "a folder of another machine");
        for (path, name) in [
            ("/home/me/.codex/worktrees/ab12/app/src", Some("app")),
            ("/home/me/.cursor/worktrees/app/x1", Some("app")),
            ("/home/me/conductor/workspaces/app/paris", Some("app")),
            ("/home/me/code/app", None),
        ] {
            assert_eq!(named_by_layout(Path::new(path)), name, "{path}");
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn a_folder_of_windows_in_a_file_that_is_read_elsewhere_is_a_project() {
        let id = identify(Path::new(r"C:\Users\me\app"), None, None).unwrap();
        assert_eq!((id.keys, id.name), (vec!["dir:C:/Users/me/app".to_string()], "app".to_string()));
        let worktree = identify(Path::new(r"c:\Users\me\app\.claude\worktrees\brave-fox"), None, None).unwrap();
        assert_eq!(worktree.keys, ["dir:C:/Users/me/app"]);
        let at = |path: &str| relative(path, Some(r"C:\Users\me\app"), None);
        assert_eq!(at(r"c:\Users\me\app\src\a.rs"), "src/a.rs");
        assert_eq!(at(r"C:\Users\me\app2\a.rs"), r"C:\Users\me\app2\a.rs");
        assert_eq!(relative(r"C:\Users\me\.app.toml", Some("/home/me/app"), None), "C:/Users/me/.app.toml");
        assert_eq!(identify(Path::new("app"), None, None), None);
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
