//! The worktree that contains a folder, and paths relative to it.

use std::path::{Component, Path, PathBuf};

/// Shared folders for temporary files. Folders inside them may be projects.
const TEMPORARY: [&str; 4] = ["/tmp", "/var/tmp", "/private/tmp", "/dev/shm"];

/// Whether a folder is never a project: `/`, the home folder, where a `.git` holds personal settings, and the temporary
/// folder.
pub(super) fn is_no_project(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || Some(folder) == home || TEMPORARY.iter().any(|temporary| folder == Path::new(temporary))
}

/// The nearest folder at or above `cwd` that contains `.git` and may be a project.
pub fn worktree_root<'a>(cwd: &'a Path, home: Option<&Path>) -> Option<&'a Path> {
    cwd.ancestors()
        .take_while(|folder| !is_no_project(folder, home))
        .find(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// Makes a path relative to the worktree's root, with `/`, if it is inside. `.` and `..` are resolved lexically.
pub fn relative(path: &str, cwd: Option<&str>, home: Option<&Path>) -> String {
    let Some(cwd) = cwd.map(Path::new).filter(|c| c.is_absolute()) else { return path.to_string() };
    let full = lexical(&cwd.join(path));
    let root = worktree_root(cwd, home).unwrap_or(cwd);
    match full.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_string(),
        Ok(inside) => inside.display().to_string().replace('\\', "/"),
        Err(_) => full.display().to_string(),
    }
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
