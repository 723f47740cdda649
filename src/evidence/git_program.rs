//! Questions to the `git` program, which only read, without textconv, external diffs and file monitors; and its notes.

use crate::config::environment;
use crate::error::UserError;
use crate::model::SearchScope;
use crate::redact::Redactor;
use crate::store::Store;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The project, its store and its repository.
pub struct ProjectRecords<'a> {
    pub store: &'a Store,
    pub scope: &'a SearchScope,
    pub redactor: &'a Redactor,
    pub git: &'a Git,
}

/// The notes of nmem, and the option that names them.
const NOTES_REF: &str = "refs/notes/nmem";
const NOTES: &str = "--ref=refs/notes/nmem";

/// A worktree that git answers for.
#[derive(Debug)]
pub struct Git {
    pub root: PathBuf,
}

/// A line of a file, and the commit that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlamedLine {
    pub text: String,
    /// `None`: not committed yet.
    pub commit: Option<String>,
    /// Path of the file in that commit.
    pub path: String,
    /// Unix seconds at which the change was made, and at which the commit was.
    pub authored_at: i64,
    pub committed_at: i64,
}

/// A commit, and the lines that it added.
#[derive(Clone, Debug, Default)]
pub struct CommitChange {
    pub sha: String,
    pub subject: String,
    pub authored_at: i64,
    pub committed_at: i64,
    /// Added lines by file.
    pub added: Vec<(String, Vec<String>)>,
}

fn missing() -> UserError {
    UserError::new("git is not on PATH", "install git, or put it on PATH")
}

impl Git {
    /// Opens the worktree of a folder.
    ///
    /// # Errors
    ///
    /// There is no git, or no repository.
    pub fn open(folder: &Path) -> Result<Git> {
        environment::program("git").ok_or_else(missing)?;
        let git = Git { root: folder.to_path_buf() };
        let none = || UserError::new(format!("{} is not in a git repository", folder.display()), "change into one");
        let root = git.ask(&["rev-parse", "--show-toplevel"]).map_err(|_| none())?;
        Ok(Git { root: PathBuf::from(root.trim_end_matches(['\n', '\r'])) })
    }

    /// Runs git and returns its output.
    ///
    /// # Errors
    ///
    /// It cannot run, or fails: the text is git's own.
    fn ask(&self, arguments: &[&str]) -> Result<String> {
        self.ask_with(arguments, None)
    }

    fn ask_with(&self, arguments: &[&str], stdin: Option<&str>) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes_with(arguments, stdin)?).into_owned())
    }

    fn bytes_with(&self, arguments: &[&str], stdin: Option<&str>) -> Result<Vec<u8>> {
        let mut git = environment::git(&self.root).ok_or_else(missing)?;
        git.args(arguments)
            .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = git.spawn().context("cannot start git")?;
        let pipe = child.stdin.take().zip(stdin.map(String::from));
        // A thread, because git may answer before it has read everything.
        let writer = pipe.map(|(mut pipe, text)| std::thread::spawn(move || drop(pipe.write_all(text.as_bytes()))));
        let output = child.wait_with_output().context("cannot read from git")?;
        writer.map(std::thread::JoinHandle::join);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            anyhow::bail!("git {}: {}", arguments.first().unwrap_or(&""), said.trim().trim_start_matches("fatal: "));
        }
        Ok(output.stdout)
    }

    /// Resolves a name to a commit's full id; `None` if there is no such commit.
    pub fn commit_id(&self, name: &str) -> Option<String> {
        let name = format!("{name}^{{commit}}");
        let id = self.ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).ok()?;
        Some(id.trim().to_string()).filter(|id| !id.is_empty())
    }

    /// Whether the last commit has a file.
    ///
    /// # Errors
    ///
    /// The repository cannot be read. One without commits has none.
    pub fn is_committed(&self, path: &str) -> Result<bool> {
        if self.ask(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_err() {
            return Ok(false);
        }
        Ok(!self.ask(&["ls-tree", "-z", "--name-only", "HEAD", "--", path])?.is_empty())
    }

    /// The lines of a file in the working tree, each with its commit. White space counts for nothing.
    pub fn blame(&self, path: &str) -> Result<Vec<BlamedLine>> {
        let said = self.ask(&["blame", "-w", "--line-porcelain", "--no-textconv", "--", path])?;
        Ok(blamed(&said))
    }

    /// A commit with the lines that it added.
    pub fn change(&self, sha: &str) -> Result<CommitChange> {
        let format = "--format=%H%x00%s%x00%at%x00%ct%x00";
        let said = self.ask(&[
            "show",
            "--no-textconv",
            "--no-ext-diff",
            "--no-color",
            "-w",
            "-U0",
            "--first-parent",
            "-m",
            format,
            sha,
        ])?;
        let mut parts = said.splitn(5, '\0');
        let mut next = || parts.next().unwrap_or_default().trim();
        let (sha, subject) = (next().to_string(), next().to_string());
        let (authored_at, committed_at) = (next().parse().unwrap_or_default(), next().parse().unwrap_or_default());
        let added = added_lines(parts.next().unwrap_or_default());
        Ok(CommitChange { sha, subject, authored_at, committed_at, added })
    }

    /// The subject of a commit; empty if it is not there.
    pub fn subject(&self, sha: &str) -> String {
        self.ask(&["show", "--no-patch", "--format=%s", sha]).map(|said| said.trim().to_string()).unwrap_or_default()
    }

    /// The full ids of those commits that the repository still has.
    pub fn existing(&self, shas: &[String]) -> Vec<String> {
        let asked: String = shas.iter().map(|sha| format!("{sha}^{{commit}}\n")).collect();
        let said = self.ask_with(&["cat-file", "--batch-check=%(objectname)"], Some(&asked)).unwrap_or_default();
        let is_id = |line: &&str| line.bytes().all(|b| b.is_ascii_hexdigit()) && line.len() >= 40;
        said.lines().map(str::trim).filter(is_id).map(String::from).collect()
    }

    /// The first parents of commits.
    pub fn parents(&self, shas: &[String]) -> HashMap<String, String> {
        let listed: String = shas.iter().map(|sha| format!("{sha}\n")).collect();
        let said = self.ask_with(&["rev-list", "--no-walk=unsorted", "--parents", "--stdin"], Some(&listed)).unwrap_or_default();
        let pair = |line: &str| {
            let mut ids = line.split(' ').map(String::from);
            Some((ids.next()?, ids.next()?))
        };
        said.lines().filter_map(pair).collect()
    }

    /// The ids of the changes that commits make, which stay the same when a commit is amended in its message or rebased.
    pub fn patch_ids(&self, shas: &[String]) -> Vec<(String, String)> {
        let listed: String = shas.iter().map(|sha| format!("{sha}\n")).collect();
        let patches =
            self.ask_with(&["diff-tree", "--stdin", "-p", "-r", "--root", "--no-textconv", "--no-ext-diff"], Some(&listed));
        self.ids_of(&patches.unwrap_or_default())
    }

    /// The id of the change from one commit to another.
    pub fn patch_id_between(&self, from: &str, to: &str) -> Option<String> {
        let patch = self.ask(&["diff-tree", "-p", "-r", "--no-textconv", "--no-ext-diff", from, to]).ok()?;
        self.ids_of(&patch).into_iter().next().map(|(_, id)| id)
    }

    fn ids_of(&self, patches: &str) -> Vec<(String, String)> {
        let said = self.ask_with(&["patch-id", "--stable"], Some(patches)).unwrap_or_default();
        let pair = |line: &str| line.split_once(' ').map(|(id, sha)| (sha.trim().to_string(), id.to_string()));
        said.lines().filter_map(pair).collect()
    }

    /// The commits of a branch that another one lacks, oldest first.
    pub fn commits_since(&self, base: &str, branch: &str) -> Result<Vec<String>> {
        let range = format!("{base}..{branch}");
        let said = self.ask(&["rev-list", "--reverse", "--no-merges", "--end-of-options", &range])?;
        Ok(said.lines().map(String::from).collect())
    }

    /// The commits of the current branch with their times in seconds, newest first.
    pub fn history(&self) -> Result<Vec<(String, i64)>> {
        let said = self.ask(&["log", "--first-parent", "--format=%H %ct", "HEAD"])?;
        Ok(said
            .lines()
            .filter_map(|line| line.split_once(' ').and_then(|(sha, at)| Some((sha.to_string(), at.parse().ok()?))))
            .collect())
    }

    /// The newest commit of the current branch by a time in seconds.
    pub fn commit_before(&self, at: i64) -> Option<String> {
        let said = self.ask(&["rev-list", "-1", "--first-parent", &format!("--before={at}"), "HEAD"]).ok()?;
        Some(said.trim().to_string()).filter(|sha| !sha.is_empty())
    }

    /// The contents of files at commits, by `commit:path`. Those that are not there, and those that are larger than `most`
    /// bytes, are left out; a folder is empty.
    pub fn contents(&self, names: Vec<String>, most: usize) -> Result<HashMap<String, String>> {
        let asked: String = names.iter().filter(|name| !name.contains('\n')).map(|name| format!("{name}\n")).collect();
        let checked = self.ask_with(&["cat-file", "--batch-check=%(objecttype) %(objectsize)"], Some(&asked))?;
        let is_wanted = |line: &str| match line.split_once(' ') {
            Some(("blob", size)) => size.parse::<usize>().is_ok_and(|size| size <= most),
            _ => false,
        };
        let mut found: HashMap<String, String> = HashMap::new();
        let mut wanted = Vec::new();
        for (name, line) in names.iter().filter(|name| !name.contains('\n')).zip(checked.lines()) {
            if line.starts_with("tree ") {
                found.insert(name.clone(), String::new());
            } else if is_wanted(line) {
                wanted.push(name.clone());
            }
        }
        let asked: String = wanted.iter().map(|name| format!("{name}\n")).collect();
        let said = self.bytes_with(&["cat-file", "--batch=%(objectsize)"], Some(&asked))?;
        let mut rest = &said[..];
        for name in wanted {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
            let size: usize = std::str::from_utf8(&rest[..end]).ok().and_then(|size| size.parse().ok()).unwrap_or_default();
            let Some(content) = rest.get(end + 1..end + 1 + size) else { break };
            found.insert(name, String::from_utf8_lossy(content).into_owned());
            rest = rest.get(end + 2 + size..).unwrap_or_default();
        }
        Ok(found)
    }

    /// The paths that git tracks.
    pub fn tracked(&self) -> Result<Vec<String>> {
        Ok(self.ask(&["ls-files", "-z"])?.split('\0').filter(|path| !path.is_empty()).map(String::from).collect())
    }

    /// The first tracked file that contains a word.
    pub fn file_with_word(&self, word: &str) -> Option<String> {
        let said = self.ask(&["grep", "-l", "-w", "-F", "-I", "-e", word, "--"]).ok()?;
        said.lines().next().map(String::from)
    }

    /// The commits that have a note of nmem.
    pub fn noted(&self) -> Vec<String> {
        let said = self.ask(&["notes", NOTES, "list"]).unwrap_or_default();
        said.lines().filter_map(|line| line.split_once(' ')).map(|(_, sha)| sha.to_string()).collect()
    }

    /// Writes a note of nmem to a commit.
    ///
    /// # Errors
    ///
    /// Git's own, such as that it does not know who writes.
    pub fn set_note(&self, sha: &str, text: &str) -> Result<()> {
        self.ask_with(&["notes", NOTES, "add", "-f", "-F", "-", sha], Some(text)).map(drop)
    }

    /// Shows notes of nmem in `git log`, or no longer.
    pub fn show_notes(&self, is_on: bool) -> Result<()> {
        let shown = self.ask(&["config", "--local", "--get-all", "notes.displayRef"]).unwrap_or_default();
        match (is_on, shown.lines().any(|name| name == NOTES_REF)) {
            (true, false) => self.ask(&["config", "--local", "--add", "notes.displayRef", NOTES_REF]).map(drop),
            (false, true) => {
                let ours = format!("^{NOTES_REF}$");
                self.ask(&["config", "--local", "--unset-all", "notes.displayRef", &ours]).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Whether notes of nmem are shown in `git log`.
    pub fn shows_notes(&self) -> bool {
        let shown = self.ask(&["config", "--local", "--get-all", "notes.displayRef"]).unwrap_or_default();
        shown.lines().any(|name| name == NOTES_REF)
    }

    /// Sends the notes of nmem to a remote.
    pub fn push_notes(&self, remote: &str) -> Result<()> {
        self.ask(&["push", "--quiet", "--end-of-options", remote, NOTES_REF]).map(drop)
    }

    /// The current branch; `None` on a detached head.
    pub fn branch(&self) -> Option<String> {
        self.ask(&["symbolic-ref", "--short", "--quiet", "HEAD"]).ok().map(|name| name.trim().to_string())
    }

    /// The branch that others start from: that of the remote, else the first common name that exists.
    pub fn base_branch(&self) -> Option<String> {
        let remote = self.ask(&["symbolic-ref", "--short", "--quiet", "refs/remotes/origin/HEAD"]).ok();
        let remote = remote.map(|name| name.trim().to_string()).filter(|name| !name.is_empty());
        remote.or_else(|| {
            ["origin/main", "origin/master", "main", "master", "trunk"]
                .into_iter()
                .find(|name| self.commit_id(name).is_some())
                .map(String::from)
        })
    }

    /// The paths of the working tree that differ from the last commit, with those that git does not track.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        let said = self.ask(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all"])?;
        let mut paths = Vec::new();
        let mut entries = said.split('\0');
        while let Some(entry) = entries.next() {
            let Some((state, path)) = entry.split_at_checked(3) else { continue };
            paths.push(path.to_string());
            // The name before a rename follows.
            if state.starts_with('R') {
                entries.next();
            }
        }
        Ok(paths)
    }
}

fn blamed(said: &str) -> Vec<BlamedLine> {
    let mut lines = Vec::new();
    let (mut commit, mut path, mut authored_at, mut committed_at) = (None, String::new(), 0, 0);
    for line in said.split('\n') {
        if let Some(text) = line.strip_prefix('\t') {
            let text = text.trim_end_matches('\r').to_string();
            lines.push(BlamedLine { text, commit: commit.take(), path: std::mem::take(&mut path), authored_at, committed_at });
            continue;
        }
        match line.split_once(' ') {
            Some(("author-time", at)) => authored_at = at.parse().unwrap_or_default(),
            Some(("committer-time", at)) => committed_at = at.parse().unwrap_or_default(),
            Some(("filename", name)) => path = name.to_string(),
            Some((id, _)) if id.len() >= 40 && id.bytes().all(|b| b.is_ascii_hexdigit()) => {
                commit = Some(id.to_string()).filter(|id| id.bytes().any(|b| b != b'0'));
            }
            _ => {}
        }
    }
    lines
}

fn added_lines(patch: &str) -> Vec<(String, Vec<String>)> {
    let mut added: Vec<(String, Vec<String>)> = Vec::new();
    // Lines of a hunk that are left: a line of a file may look like a header.
    let mut left = 0_usize;
    for line in patch.split('\n') {
        if left > 0 {
            if let Some(text) = line.strip_prefix('+') {
                left -= 1;
                if let Some((_, lines)) = added.last_mut() {
                    lines.push(text.trim_end_matches('\r').to_string());
                }
            }
            continue;
        }
        if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.trim_end_matches('\t').trim_matches('"');
            added.push((path.strip_prefix("b/").unwrap_or(path).to_string(), Vec::new()));
        } else if line.starts_with("@@ ") {
            // `@@ -1,2 +3,4 @@`
            let range = line.split(' ').nth(2).unwrap_or_default();
            left = range.split_once(',').map_or(1, |(_, count)| count.parse().unwrap_or(0));
        }
    }
    added.retain(|(path, _)| path != "/dev/null");
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_names_the_commit_of_each_line() {
        let id = "a".repeat(40);
        let none = "0".repeat(40);
        let said = format!(
            "{id} 1 1 1\nauthor Dev\nauthor-time 10\ncommitter-time 20\nsummary x\nfilename old.rs\n\tlet a = 1;\n{none} 2 2 1\nauthor-time 30\ncommitter-time 30\nfilename new.rs\n\t\n"
        );
        let lines = blamed(&said);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (lines[0].commit.as_deref(), lines[0].path.as_str(), lines[0].authored_at, lines[0].committed_at),
            (Some(id.as_str()), "old.rs", 10, 20)
        );
        assert_eq!((lines[1].commit.as_deref(), lines[1].text.as_str()), (None, ""));
    }

    #[test]
    fn a_line_that_looks_like_a_header_is_a_line() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-old\n-- b\n+++ c\n+new\n+@@ -1 +1 @@\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
        assert_eq!(added_lines(patch), [("x".to_string(), vec!["++ c".to_string(), "new".into(), "@@ -1 +1 @@".into()])]);
    }
}
