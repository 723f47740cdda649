//! The worktree that contains a folder, and paths relative to it.

use std::path::{Component, Path, PathBuf};

/// Shared folders for temporary files. Folders inside them may be projects.
const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/private/tmp", "/dev/shm"];

/// Whether a folder is never a project: `/`, the home folder, where a `.git` holds personal settings, and the temporary
/// folder.
pub(super) fn is_no_project(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || Some(folder) == home || TEMPORARY.iter().any(|temporary| folder == Path::new(temporary))
}

/// The nearest folder at or above `cwd` that contains `.git` or `.jj` and may be a project.
pub fn worktree_root<'a>(cwd: &'a Path, home: Option<&Path>) -> Option<&'a Path> {
    cwd.ancestors()
        .take_while(|folder| !is_no_project(folder, home))
        .find(|folder| [".git", ".jj"].iter().any(|name| folder.join(name).symlink_metadata().is_ok()))
}

/// Folders in which agents create worktrees inside a repository: `<repository>/.claude/worktrees/<name>`.
const INSIDE: [&str; 4] = [".claude/worktrees", ".cursor/worktrees", ".worktrees", ".conductor"];

/// Folders in which agents create worktrees of all repositories, and the position of the repository's name below them.
const ELSEWHERE: [(&str, usize); 6] = [
    (".codex/worktrees", 1),
    (".cursor/worktrees", 0),
    ("conductor/workspaces", 0),
    (".superset/worktrees", 0),
    (".t3/worktrees", 0),
    ("vibe-kanban/worktrees", 1),
];

/// The repository whose worktree a folder that is gone was, if it was inside.
pub(super) fn main_by_layout(folder: &Path) -> Option<&Path> {
    let (holder, inside) = folder.ancestors().find_map(|holder| {
        let inside = INSIDE.iter().find(|inside| holder.ends_with(inside))?;
        (holder != folder).then_some((holder, inside))
    })?;
    // A home folder has `.claude/worktrees`, too, but is no repository; its folders are named elsewhere.
    let main = holder.ancestors().nth(Path::new(inside).components().count())?;
    (!folder.exists()).then_some(main)
}

/// The name of the repository whose worktree a folder was, by the place where agents create worktrees.
pub fn named_by_layout(folder: &Path) -> Option<&str> {
    ELSEWHERE.iter().find_map(|(place, position)| {
        let holder = folder.ancestors().find(|holder| holder.ends_with(place))?;
        folder.strip_prefix(holder).ok()?.components().nth(*position)?.as_os_str().to_str()
    })
}

/// A folder as this system writes it: one of Windows (`C:\app`) in a session file that is read elsewhere is looked for
/// below `/mnt`, else it becomes `C:/app`. `None` if it is relative.
pub(super) fn on_this_system(folder: &Path) -> Option<PathBuf> {
    if folder.is_absolute() {
        return Some(folder.to_path_buf());
    }
    let (drive, rest) = of_windows(folder.to_str()?)?;
    let rest = rest.replace('\\', "/");
    let mounted = Path::new("/mnt").join(drive.to_ascii_lowercase().to_string()).join(&rest);
    Some(if mounted.is_dir() { mounted } else { PathBuf::from(format!("{}:/{rest}", drive.to_ascii_uppercase())) })
}

/// Drive and rest of an absolute path of Windows.
fn of_windows(path: &str) -> Option<(char, &str)> {
    let (drive, rest) = path.split_once(':')?;
    let rest = rest.strip_prefix(['\\', '/'])?;
    let mut letters = drive.chars();
    letters.next().filter(|drive| drive.is_ascii_alphabetic() && letters.next().is_none()).map(|drive| (drive, rest))
}

/// Root of the repository in which a file or folder is. A relative path starts at `cwd`.
pub fn repository_of(path: &str, cwd: Option<&str>, home: Option<&Path>) -> Option<PathBuf> {
    let cwd = Path::new(cwd?);
    let full = lexical(&cwd.join(path));
    worktree_root(&full, home).filter(|_| cwd.is_absolute()).map(Path::to_path_buf)
}

/// Makes a path relative to the worktree's root, with `/`, if it is inside. `.` and `..` are resolved lexically.
pub fn relative(path: &str, cwd: Option<&str>, home: Option<&Path>) -> String {
    let Some(cwd) = cwd else { return path.to_string() };
    if !Path::new(cwd).is_absolute() {
        return relative_on_windows(path, cwd).unwrap_or_else(|| path.to_string());
    }
    // A path of another machine would seem to be inside.
    if cfg!(unix) && of_windows(path).is_some() {
        return path.replace('\\', "/");
    }
    let cwd = Path::new(cwd);
    let full = lexical(&cwd.join(path));
    let root = worktree_root(cwd, home).unwrap_or(cwd);
    match full.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_string(),
        Ok(inside) => inside.display().to_string().replace('\\', "/"),
        Err(_) => full.display().to_string(),
    }
}

/// Makes a path of Windows relative to a folder, on another system; `None` if it is not inside.
fn relative_on_windows(path: &str, cwd: &str) -> Option<String> {
    let ((drive, inside), (own, folder)) = (of_windows(path)?, of_windows(cwd)?);
    let (inside, folder) = (inside.replace('\\', "/"), folder.replace('\\', "/"));
    let rest = inside.get(folder.len()..).filter(|_| drive.eq_ignore_ascii_case(&own))?;
    let rest = rest.strip_prefix('/').filter(|_| inside[..folder.len()].eq_ignore_ascii_case(&folder))?;
    Some(rest.to_string())
}

pub(super) fn lexical(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
        out
    })
}
