//! Finds session files in the agents' own folders, or in given paths.

use crate::config::environment::{self, session_folders};
use crate::error::UserError;
use crate::files;
use crate::model::{Millis, Platform};
use crate::platforms::claude::past;
use crate::platforms::past::{PastFormat, PastPart, PastSource};
use crate::platforms::{self, claude_mem, payload};
use crate::project;
use crate::store::imports::ImportedFile;
use anyhow::Result;
use ruzstd::decoding::StreamingDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Maximum folder depth.
const DEPTH: usize = 12;
/// Lines and bytes at the start of a file to look at, if one of the lines shows the format.
const FIRST_LINES: usize = 20;
const ENOUGH_BYTES: usize = 1 << 20;
/// Maximum lines and bytes at the start of a file in which one line must match the format.
const MOST_LINES: usize = 1000;
const FIRST_BYTES: u64 = 64 << 20;

/// Milliseconds without an event after which a session is over.
pub const OVER: Millis = 12 * 3_600_000;

/// Length of a UUID as text.
const UUID: usize = 36;

/// Imported files by path.
pub type Imported = HashMap<String, ImportedFile>;

/// A session file, or a session in a database.
#[derive(Clone, Debug)]
pub struct FoundFile {
    pub format: PastFormat,
    pub path: PathBuf,
    /// The session, if the file is a database.
    pub part: Option<PastPart>,
    /// Bytes.
    pub length: u64,
    pub modified_at: Millis,
}

impl FoundFile {
    /// Looks at a file; `None` if it is gone.
    pub fn new(format: PastFormat, path: PathBuf) -> Option<FoundFile> {
        let meta = path.metadata().ok()?;
        let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified_at = modified.map_or(0, |at| at.as_millis() as Millis);
        Some(FoundFile { format, path, part: None, length: meta.len(), modified_at })
    }

    /// Returns the path as text; a database session adds a hash of its id, because an id may be a secret.
    pub fn name(&self) -> String {
        match &self.part {
            Some(part) => format!("{}#{}", self.path.display(), short_hash(&part.id)),
            None => self.path.display().to_string(),
        }
    }

    /// Candidate names, one of which is the agent's session id.
    pub fn session_names(&self) -> Vec<String> {
        match &self.part {
            Some(part) => vec![part.id.clone()],
            None => FoundFile::names_of(&self.path),
        }
    }

    /// Like [`FoundFile::session_names`], for a path: its folder, its file stem, and the UUID at the end of the stem.
    pub fn names_of(path: &Path) -> Vec<String> {
        let text = |part: &OsStr| part.to_string_lossy().into_owned();
        let folder = path.parent().and_then(Path::file_name).map(text);
        let name = path.file_name().map(text).unwrap_or_default();
        let stem = name.split(".jsonl").next().unwrap_or_default().to_string();
        let last = stem.len().checked_sub(UUID).and_then(|at| stem.get(at..)).map(String::from);
        folder.into_iter().chain(last).chain([stem]).collect()
    }

    /// Returns true if the file has not changed since its import.
    pub fn is_unchanged(&self, known: &ImportedFile) -> bool {
        let is_same = (known.version, known.size, known.modified_at) == (self.format.version, self.length, self.modified_at);
        is_same && !self.has_open_turn(known)
    }

    /// Returns true if the last turn had not ended when the file was read, and is over by now.
    fn has_open_turn(&self, known: &ImportedFile) -> bool {
        let is_open = is_of_lines(&self.format) && !is_compressed(&self.path) && known.offset < known.size;
        is_open && environment::now() - self.modified_at > OVER
    }
}

fn short_hash(id: &str) -> String {
    Sha256::digest(id)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file with memories.
#[derive(Clone, Debug)]
pub struct FoundMemories {
    pub path: PathBuf,
    /// Bytes.
    pub length: u64,
    pub modified_at: Millis,
    pub is_notes: bool,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Stores {
    pub files: Vec<FoundFile>,
    /// Documents and databases; `containers` finds the sessions in them.
    pub containers: Vec<FoundFile>,
    /// Databases that were opened, as they were then, with their sessions.
    pub databases: Vec<(FoundFile, DatabaseState, Vec<FoundFile>)>,
    /// Numbers of sessions in databases that have not changed since their import.
    pub unchanged: Vec<(Platform, u64)>,
    /// Files of a known agent that cannot be read, each with the reason.
    pub unreadable: Vec<(Platform, String)>,
    /// The existing folders in which agents keep their sessions.
    pub places: Vec<(Platform, PathBuf)>,
    /// Files with memories of other programs, or notes of agents.
    pub memories: Vec<FoundMemories>,
    /// JSON Lines files in an unknown format, and databases that were given but say nothing by their path.
    pub unknown: Vec<PathBuf>,
    pub unknown_databases: Vec<PathBuf>,
}

impl Stores {
    /// Takes the JSON Lines files of unknown formats for sessions of an agent.
    pub fn read_unknown_as(&mut self, agent: Platform) {
        let Some(format) = platforms::formats().find(|format| format.platform == agent && is_of_lines(format)) else { return };
        self.files.extend(self.unknown.drain(..).filter_map(|path| FoundFile::new(format, path)));
    }
}

/// Finds session files in `paths`, or in the agents' own folders if `paths` is empty. `known` holds the imported files.
/// Documents and databases are not opened.
///
/// # Errors
///
/// A path that does not exist.
pub fn find(paths: &[PathBuf], agent: Option<Platform>, home: Option<&Path>, known: &Imported) -> Result<Stores> {
    let mut found = Stores::default();
    let wanted = Wanted { agent, known };
    for format in platforms::formats().filter(|format| agent.is_none_or(|agent| agent == format.platform)) {
        for folder in all_folders(&format, home).into_iter().filter(|folder| paths.is_empty() && folder.is_dir()) {
            walk(&folder, format.depth, &mut |path| add(path, Some(&format), false, &wanted, &mut found));
            found.places.push((format.platform, folder));
        }
    }
    let root = std::env::current_dir().ok().filter(|_| paths.is_empty());
    let root = root.map(|folder| project::worktree_root(&folder, home).map_or(folder.clone(), Path::to_path_buf));
    for format in platforms::formats().filter(|format| agent.is_none_or(|agent| agent == format.platform)) {
        let file = root.as_ref().zip(format.in_project).map(|(root, file)| root.join(file));
        found.containers.extend(file.filter(|file| file.is_file()).and_then(|file| FoundFile::new(format, file)));
    }
    let named = environment::opencode_database(home).filter(|path| paths.is_empty() && path.is_file());
    if let Some(path) = named.filter(|_| agent.is_none_or(|agent| agent == Platform::OpenCode)) {
        let is_database = |format: &PastFormat| matches!(format.source, PastSource::Database(_));
        let format = platforms::formats().find(|format| format.platform == Platform::OpenCode && is_database(format));
        found.containers.extend(format.and_then(|format| FoundFile::new(format, path)));
    }
    if let Some(path) =
        environment::claude_mem_folder(home).filter(|_| paths.is_empty()).map(|folder| folder.join(claude_mem::FILE))
        && path.is_file()
    {
        add(&path, None, false, &wanted, &mut found);
    }
    for path in paths {
        if !path.exists() {
            let agent = path.to_str().and_then(Platform::from_name);
            let hint = match agent {
                Some(agent) => format!("for an agent: nmem import --agent {}", agent.name()),
                None => "give a session file or a folder of them".to_string(),
            };
            return Err(UserError::new(format!("{} does not exist", path.display()), hint).into());
        }
        let path = files::canonical(path).unwrap_or_else(|_| path.clone());
        let is_given = path.is_file();
        walk(&path, DEPTH, &mut |path| add(path, None, is_given, &wanted, &mut found));
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found.files.dedup_by(|a, b| a.path == b.path);
    without_twins(&mut found.files);
    found.containers.sort_by(|a, b| a.path.cmp(&b.path));
    found.containers.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}

/// The folders in which an agent keeps its sessions, those of other accounts too.
fn all_folders(format: &PastFormat, home: Option<&Path>) -> Vec<PathBuf> {
    let usual = platforms::adapter(format.platform).setup().and_then(|setup| setup.folder);
    let accounts = usual.zip(home).map(|(usual, home)| environment::account_folders(usual, home)).unwrap_or_default();
    let below = accounts.iter().flat_map(|own| format.folders.iter().map(|folder| own.join(folder)));
    let mut all = folders(format, home);
    // VS Code's hooks are in the folder of another agent.
    let others: Vec<PathBuf> = below.filter(|folder| format.platform != Platform::VsCode && !all.contains(folder)).collect();
    all.extend(others);
    all
}

/// The folders in which an agent keeps its sessions.
pub fn folders(format: &PastFormat, home: Option<&Path>) -> Vec<PathBuf> {
    let own = session_folders(format.platform, home);
    let own = match format.platform {
        Platform::VsCode if is_of_lines(format) => own.iter().flat_map(|user| copilot_chat_folders(user)).collect(),
        _ => own,
    };
    own.iter().flat_map(|own| format.folders.iter().map(|folder| own.join(folder).components().collect())).collect()
}

/// The folders of Copilot's chat in VS Code, one per workspace.
fn copilot_chat_folders(user: &Path) -> Vec<PathBuf> {
    let workspaces = fs::read_dir(user.join("workspaceStorage")).into_iter().flatten().flatten();
    workspaces.map(|workspace| workspace.path().join("GitHub.copilot-chat")).filter(|folder| folder.is_dir()).collect()
}

/// Removes duplicates: a compressed file that also exists as plain text, an archived one that is also active.
fn without_twins(files: &mut Vec<FoundFile>) {
    let place = |file: &FoundFile| {
        let folder = |name: &str| file.path.components().any(|part| part.as_os_str() == name);
        let place = file.format.folders.iter().position(|name| folder(name)).unwrap_or_default();
        (place, is_compressed(&file.path))
    };
    let name = |file: &FoundFile| {
        let name = file.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.trim_end_matches(".zst").to_string()
    };
    let mut best: HashMap<String, (usize, bool)> = HashMap::new();
    let compressible = |file: &FoundFile| file.format.folders.len() > 1;
    for file in files.iter().filter(|file| compressible(file)) {
        let best = best.entry(name(file)).or_insert_with(|| place(file));
        *best = (*best).min(place(file));
    }
    files.retain(|file| !compressible(file) || best.get(&name(file)) == Some(&place(file)));
}

/// Returns true if a file is compressed with zstd.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "zst")
}

/// Returns true if a file may hold a session, judged by its name.
pub fn has_lines(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
}

/// Lists files in the agents' own folders that may hold a session, without opening them.
pub fn candidates(home: Option<&Path>) -> Vec<(Platform, PathBuf)> {
    let mut found = Vec::new();
    for format in platforms::formats() {
        for folder in folders(&format, home) {
            walk(&folder, format.depth, &mut |path| {
                let is_session = match format.source {
                    PastSource::Lines => has_lines(path) && container(path).is_none(),
                    PastSource::Document(document) => (document.is_file)(path),
                    PastSource::Database(database) => (database.is_file)(path),
                };
                if is_session && (format.session_file)(path).is_none() {
                    found.push((format.platform, path.to_path_buf()));
                }
            });
        }
    }
    found
}

/// A session file with lines that its reader was not written for.
#[derive(Debug)]
pub struct Drift {
    pub platform: Platform,
    pub path: PathBuf,
    pub lines: usize,
    /// Lines of unknown kinds, and these kinds.
    pub unknown: usize,
    pub kinds: Vec<String>,
    /// The version of the format, if it was not seen before.
    pub version: Option<String>,
}

/// Bytes at the start of a session file in which its lines are compared with those that are known.
const COMPARED: u64 = 4 << 20;
/// Unknown lines that count: one in this many. A new kind of note to itself is no loss.
const MANY_UNKNOWN: usize = 20;

/// Compares the newest session file of each agent with what its reader was written for.
pub fn drift(home: Option<&Path>) -> Vec<Drift> {
    let mut found = Vec::new();
    for format in platforms::formats().filter(|format| is_of_lines(format) && !format.kinds.is_empty()) {
        let mut newest: Option<(Millis, PathBuf)> = None;
        for folder in folders(&format, home) {
            walk(&folder, format.depth, &mut |path| {
                let is_session = has_lines(path) && container(path).is_none() && (format.session_file)(path).is_none();
                let at = files::changed_at(path).filter(|at| is_session && newest.as_ref().is_none_or(|(newest, _)| at > newest));
                newest = at.map(|at| (at, path.to_path_buf())).or(newest.take());
            });
        }
        found.extend(newest.and_then(|(_, path)| drift_of(&format, path)));
    }
    found
}

fn drift_of(format: &PastFormat, path: PathBuf) -> Option<Drift> {
    let mut drift = Drift { platform: format.platform, lines: 0, unknown: 0, kinds: Vec::new(), version: None, path };
    for bytes in open(&drift.path).ok()?.take(COMPARED).split(b'\n').map_while(Result::ok) {
        let Some(line) = payload::line(&bytes) else { continue };
        drift.lines += 1;
        let version = (format.states_version)(&line).map(Value::to_string);
        drift.version = drift.version.or(version.filter(|version| !format.versions.contains(&version.as_str())));
        if !format.knows(&line) {
            drift.unknown += 1;
            let kind = line["type"].as_str().unwrap_or("no kind").to_string();
            if !drift.kinds.contains(&kind) {
                drift.kinds.push(kind);
            }
        }
    }
    (drift.version.is_some() || drift.unknown * MANY_UNKNOWN > drift.lines).then_some(drift)
}

/// Calls `each` for every file. Below `path`, which may itself be a link, links to folders are not followed.
pub fn walk(path: &Path, depth: usize, each: &mut dyn FnMut(&Path)) {
    if path.is_file() {
        return each(path);
    }
    if depth == 0 {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let inside = entry.path();
        if inside.is_file() || !inside.is_symlink() {
            walk(&inside, depth - 1, each);
        }
    }
}

/// Size and time of a database with its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatabaseState {
    /// Bytes of both files.
    pub length: u64,
    pub modified_at: Millis,
}

impl DatabaseState {
    /// Looks at a database and its log.
    pub fn of(path: &Path) -> DatabaseState {
        let log = PathBuf::from([path.as_os_str(), OsStr::new("-wal")].into_iter().collect::<OsString>());
        let mut state = DatabaseState::default();
        for file in [path, &log] {
            state.length += files::length(file).unwrap_or_default();
            state.modified_at = state.modified_at.max(files::changed_at(file).unwrap_or_default());
        }
        state
    }

    /// Returns true if the database has not changed since it was imported as a whole.
    pub fn is_of(&self, known: &ImportedFile, format: &PastFormat) -> bool {
        (known.version, known.size, known.modified_at) == (format.version, self.length, self.modified_at)
    }
}

/// Returns true if a file is a database of SQLite.
fn begins_as_database(path: &Path) -> bool {
    files::part(path, 0..16).is_ok_and(|bytes| bytes == b"SQLite format 3\0")
}

/// Adds a file if it holds a session. `place`: the format whose folder it is in; `is_given`: a person gave the path.
fn add(path: &Path, place: Option<&PastFormat>, is_given: bool, wanted: &Wanted, found: &mut Stores) {
    let Wanted { agent, known } = *wanted;
    let is_notes = past::is_notes(path) && !path.is_symlink() && agent.is_none_or(|agent| agent == Platform::ClaudeCode);
    let is_claude_mem = agent.is_none() && path.file_name().is_some_and(|name| name == claude_mem::FILE);
    let container = container(path);
    if !has_lines(path) && !is_notes && !is_claude_mem && container.is_none() {
        if is_given && begins_as_database(path) {
            found.unknown_databases.push(path.to_path_buf());
        }
        return;
    }
    let Ok(meta) = path.metadata() else { return };
    let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    if let Some(format) = container {
        if agent.is_none_or(|agent| agent == format.platform) {
            found.containers.extend(FoundFile::new(format, path.to_path_buf()));
        }
        return;
    }
    if !has_lines(path) {
        let modified_at = modified.map_or(0, |at| at.as_millis() as Millis);
        return found.memories.push(FoundMemories { path: path.to_path_buf(), length: meta.len(), modified_at, is_notes });
    }
    // An imported file's format is known, so the file need not be opened.
    let known = known.get(&path.display().to_string()).map(|known| known.platform);
    let of = |platform| platforms::formats().filter(move |format| format.platform == platform && is_of_lines(format));
    let known = known.filter(|platform| of(*platform).count() == 1).and_then(|platform| of(platform).next());
    let place =
        place.filter(|place| is_of_lines(place) && platforms::formats().filter(|other| shares_folder(other, place)).count() == 1);
    let Some(format) = known.or_else(|| format(path)).or(place.copied()) else { return found.unknown.push(path.to_path_buf()) };
    if agent.is_none_or(|agent| agent == format.platform) {
        found.files.extend(FoundFile::new(format, path.to_path_buf()));
    }
}

/// Finds the session in a file of lines; `None` if it is of another agent or no known format.
pub fn session_file(path: &Path, agent: Platform) -> Option<FoundFile> {
    let mut found = Stores::default();
    add(path, None, false, &Wanted { agent: Some(agent), known: &Imported::default() }, &mut found);
    found.files.pop()
}

/// The files that are wanted: those of an agent, except the imported ones.
struct Wanted<'a> {
    agent: Option<Platform>,
    known: &'a Imported,
}

/// Returns true if two formats of lines may be in the same folder.
fn shares_folder(format: &PastFormat, other: &PastFormat) -> bool {
    is_of_lines(format) && format.platform == other.platform && format.folders.iter().any(|folder| other.folders.contains(folder))
}

fn is_of_lines(format: &PastFormat) -> bool {
    matches!(format.source, PastSource::Lines)
}

/// Detects the format of a database from its tables.
pub fn by_tables(tables: &HashSet<String>, agent: Option<Platform>) -> Option<PastFormat> {
    platforms::formats().filter(|format| agent.is_none_or(|agent| agent == format.platform)).find(|format| match format.source {
        PastSource::Database(database) => {
            !database.tables.is_empty()
                && database.tables.iter().all(|table| tables.contains(*table))
                && !tables.contains(database.foreign_table)
        }
        _ => false,
    })
}

/// Detects the format of a document or database from its path.
fn container(path: &Path) -> Option<PastFormat> {
    platforms::formats().find(|format| match format.source {
        PastSource::Lines => false,
        PastSource::Document(document) => (document.is_file)(path),
        PastSource::Database(database) => (database.is_file)(path),
    })
}

/// Detects the format of a file from its first lines.
fn format(path: &Path) -> Option<PastFormat> {
    let lines = first_lines(path);
    platforms::formats().filter(is_of_lines).find(|format| lines.iter().any(|line| (format.is_line)(line)))
}

/// Returns those of a file's first lines that are JSON, up to one that shows the format, and usually `FIRST_LINES`: a
/// file may begin with many summaries, or with a pasted picture.
pub fn first_lines(path: &Path) -> Vec<Value> {
    let Ok(reader) = open(path) else { return Vec::new() };
    let is_known = |line: &Value| platforms::formats().filter(is_of_lines).any(|format| (format.is_line)(line));
    let (mut lines, mut shows_format, mut read) = (Vec::new(), false, 0);
    for (n, bytes) in reader.take(FIRST_BYTES).split(b'\n').take(MOST_LINES).map_while(Result::ok).enumerate() {
        if shows_format && (n >= FIRST_LINES || read >= ENOUGH_BYTES) {
            break;
        }
        read += bytes.len();
        let Some(line) = payload::line(&bytes) else { continue };
        shows_format |= is_known(&line);
        lines.push(line);
    }
    lines
}

/// Opens a session file, which may be compressed.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = files::reader(path, u64::MAX)?;
    if !is_compressed(path) {
        return Ok(Box::new(file));
    }
    let decoder = StreamingDecoder::new(file).map_err(io::Error::other)?;
    Ok(Box::new(BufReader::with_capacity(1 << 18, decoder)))
}
