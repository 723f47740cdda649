//! A world of its own for each test: empty home, a project, a clock that stands, and the built binary.
//!
//! The output of a command, with its exit code, becomes one text, so that "nothing on stdout" is seen and not assumed.

#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "tests look at everything")]

pub mod browser;
pub mod mcp;
pub mod models;
pub mod postgres;
pub mod server;
pub mod serving;
pub mod session;
pub mod thesaurus;
pub mod transcript;

use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/claude-code");
/// 2026-11-21 09:00 UTC: the clock of every world until it is moved.
pub const NOW: i64 = 1_795_251_600_000;

pub struct World {
    pub folder: PathBuf,
    pub now: i64,
    variables: Vec<(String, String)>,
}

/// The result of a command.
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
    folder: String,
}

impl Output {
    /// All of it as one text; the world's folder is written as `$WORLD`.
    pub fn text(&self) -> String {
        let mut out = self.stdout.clone();
        if !self.stderr.is_empty() {
            out += &format!("--- stderr\n{}", self.stderr);
        }
        out += &format!("[exit {}]", self.code.map_or("by a signal".into(), |c| c.to_string()));
        out.replace(&self.folder, "$WORLD")
    }

    /// One value a line.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}): {}", self.text())))
            .collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {}", self.text()))
    }
}

impl World {
    pub fn new() -> World {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("nmem-world-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for inside in ["home/.claude", "run", "tmp"] {
            fs::create_dir_all(folder.join(inside)).unwrap();
        }
        let folder = folder.canonicalize().unwrap();
        let world = World { folder, now: NOW, variables: Vec::new() };
        world.git_project("project", "https://example.org/dev/project.git");
        world
    }

    pub fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub fn data(&self) -> PathBuf {
        self.home().join(".local/share/nmem")
    }

    pub fn db(&self) -> PathBuf {
        self.data().join("nmem.db")
    }

    /// Lays a folder with what git would have left in it.
    pub fn git_project(&self, name: &str, remote: &str) -> PathBuf {
        let folder = self.folder.join(name);
        self.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
        self.write(&format!("{name}/.git/refs/heads/main"), "3f786850e387550fdab836ed7e6dc881de23001b\n");
        self.write(&format!("{name}/.git/config"), &format!("[remote \"origin\"]\n\turl = {remote}\n"));
        folder
    }

    /// A world whose project is a real repository. `None`, said loudly, without git.
    pub fn with_git() -> Option<World> {
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("PASSED OVER: git is not on PATH");
            return None;
        }
        let world = World::new();
        fs::remove_dir_all(world.project().join(".git")).unwrap();
        world.git(NOW / 1000, &["init", "-q", "-b", "main"]);
        world.git(NOW / 1000, &["remote", "add", "origin", "https://example.org/dev/project.git"]);
        Some(world)
    }

    /// Runs git in the project as a person at a time, in Unix seconds.
    pub fn git(&self, at: i64, args: &[&str]) -> String {
        let date = format!("{at} +0000");
        let mut git = Command::new("git");
        git.arg("-C").arg(self.project()).args(["-c", "user.name=Dev", "-c", "user.email=dev@example.org"]).args(args);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        let done = git.output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_string()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.folder.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    /// Moves the clock on.
    pub fn minutes_later(&mut self, minutes: i64) {
        self.now += minutes * 60_000;
    }

    pub fn command(&self, args: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_nmem"), args)
    }

    /// Another program in this world.
    pub fn program(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(args).current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("TZ", "UTC").env("NMEM_NOW", self.now.to_string()).env("PATH", "/usr/bin:/bin");
        // Spare places of its own, so that worlds don't meet in `/tmp`.
        command.env("XDG_RUNTIME_DIR", self.folder.join("run")).env("TMPDIR", self.folder.join("tmp"));
        command.envs(self.variables.iter().map(|(a, b)| (a, b)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a command, and does not wait for it.
    pub fn start(&self, args: &[&str], stdin: &[u8]) -> Child {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        // A command that has seen enough may exit before it read all its input.
        let _ = child.stdin.take().unwrap().write_all(stdin);
        child
    }

    pub fn finish(&self, child: Child) -> Output {
        let out = child.wait_with_output().unwrap();
        Output {
            stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
            code: out.status.code(),
            folder: self.folder.display().to_string(),
        }
    }

    pub fn nmem(&self, args: &[&str]) -> Output {
        self.finish(self.command(args).spawn().unwrap())
    }

    /// A command that a person types: its stdin is a terminal.
    pub fn typed(&self, args: &[&str]) -> Output {
        self.typed_with(args, "")
    }

    /// The same, with the lines that the person types afterwards.
    #[cfg(unix)]
    pub fn typed_with(&self, args: &[&str], lines: &str) -> Output {
        let (mut own, terminal) = pseudo_terminal();
        own.write_all(lines.as_bytes()).unwrap();
        self.finish(self.command(args).stdin(terminal).spawn().unwrap())
    }

    /// Without pseudo-terminals, a command of nobody in particular.
    #[cfg(not(unix))]
    pub fn typed_with(&self, args: &[&str], _: &str) -> Output {
        self.nmem(args)
    }

    /// The screen after a command whose input and output are a terminal.
    #[cfg(unix)]
    pub fn on_terminal(&self, args: &[&str]) -> String {
        use std::io::Read;
        let (mut own, terminal) = pseudo_terminal();
        let mut command = self.command(args);
        let again = || terminal.try_clone().unwrap();
        let mut child = command.stdin(again()).stdout(again()).stderr(again()).spawn().unwrap();
        drop((command, terminal));
        let (mut screen, mut bytes) = (Vec::new(), [0; 4096]);
        // On Linux, the end of a terminal is an error.
        while let Ok(read @ 1..) = own.read(&mut bytes) {
            screen.extend_from_slice(&bytes[..read]);
        }
        child.wait().unwrap();
        String::from_utf8_lossy(&screen).replace('\r', "")
    }

    pub fn feed(&self, args: &[&str], stdin: &[u8]) -> Output {
        self.finish(self.start(args, stdin))
    }

    /// A captured payload of an agent that works in this world's project.
    pub fn payload(&self, name: &str) -> Value {
        let text = fs::read_to_string(format!("{FIXTURES}/{name}.json")).unwrap_or_else(|e| panic!("{name}: {e}"));
        let text = text.replace("/home/dev/project", &self.project().display().to_string());
        let text = text.replace("/home/dev", &self.home().display().to_string());
        serde_json::from_str(&text).unwrap()
    }

    /// Sends a captured payload, with some of its fields changed, as a hook would.
    pub fn hook_with(&self, name: &str, changes: &[(&str, Value)]) -> Output {
        let mut payload = self.payload(name);
        for (path, value) in changes {
            *payload.pointer_mut(path).unwrap_or_else(|| panic!("{name} has no {path}")) = value.clone();
        }
        let verb = if name.starts_with("SessionStart") { "context" } else { "record" };
        self.feed(&[verb], payload.to_string().as_bytes())
    }

    pub fn hook(&self, name: &str) -> Output {
        self.hook_with(name, &[])
    }

    /// Sends payloads that must all be taken in silence.
    pub fn silently(&self, names: &[&str]) {
        for name in names {
            let output = self.hook(name);
            assert_eq!(output.text(), "[exit 0]", "{name}");
        }
    }

    /// A connection of somebody else's.
    pub fn connect(&self) -> Connection {
        self.connect_to(&self.db())
    }

    pub fn connect_to(&self, db: &Path) -> Connection {
        Connection::open(db).unwrap()
    }

    /// Holds the write lock until it is dropped.
    pub fn lock(&self) -> Connection {
        let conn = self.connect();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        conn
    }

    /// Reads the database as any program with SQL would: a line a row, columns by `|`.
    pub fn sql(&self, query: &str) -> String {
        let conn = self.connect();
        let mut statement = conn.prepare(query).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let cell = |i| {
                Ok(match row.get_ref(i)? {
                    rusqlite::types::ValueRef::Null => "-".to_string(),
                    rusqlite::types::ValueRef::Integer(n) => n.to_string(),
                    rusqlite::types::ValueRef::Real(x) => x.to_string(),
                    rusqlite::types::ValueRef::Text(t) => String::from_utf8_lossy(t).replace('\n', "⏎"),
                    rusqlite::types::ValueRef::Blob(b) => format!("{} bytes", b.len()),
                })
            };
            Ok((0..columns).map(cell).collect::<Result<Vec<_>, rusqlite::Error>>()?.join("|"))
        });
        rows.unwrap().map(|r| r.unwrap()).collect::<Vec<_>>().join("\n").replace(&self.folder.display().to_string(), "$WORLD")
    }

    pub fn count(&self, query: &str) -> i64 {
        self.sql(query).parse().unwrap()
    }

    /// Every byte of every file below the data folder.
    pub fn all_bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, out: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, out),
                    false => out.push((path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.data(), &mut out);
        out
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Both ends of a new pseudo-terminal: the one that types, and the one that a program reads.
#[cfg(unix)]
#[expect(unsafe_code, reason = "std has no pseudo-terminals")]
fn pseudo_terminal() -> (fs::File, fs::File) {
    use std::os::fd::FromRawFd;
    use std::ptr::null_mut;
    let (mut own, mut terminal) = (0, 0);
    // SAFETY: both pointers are valid for the call; on success each number is a new descriptor that nobody else owns.
    unsafe {
        assert_eq!(libc::openpty(&raw mut own, &raw mut terminal, null_mut(), null_mut(), null_mut()), 0);
        (fs::File::from_raw_fd(own), fs::File::from_raw_fd(terminal))
    }
}
