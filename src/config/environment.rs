//! Environment variables, the clock, and the folders of nmem and of the agents.

use crate::error::UserError;
use crate::files;
use crate::model::{LogLevel, Millis, Platform};
use anyhow::Result;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Changes that a project may have made to this process's environment.
#[derive(Debug)]
struct Doubt {
    /// The folder in which the session works now, and the one in which it started.
    projects: Vec<PathBuf>,
    /// Variables that the project sets; `None` if its settings cannot be read, so that it may set any variable.
    set: Option<Vec<String>>,
}

static DOUBT: OnceLock<Doubt> = OnceLock::new();

/// A project's settings files from which a client reads environment variables for its hooks.
const PROJECT_SETTINGS: [&str; 2] = ["settings.json", "settings.local.json"];
/// Longest path, in bytes, on any system.
pub const PATH_BYTES: usize = 4096;
/// Maximum bytes of a settings file. Permission lists make such files long.
const SETTINGS_BYTES: u64 = 1 << 20;
/// Maximum number of folders to check, from a hook's folder upwards.
const LEVELS: usize = 24;

/// Declares that this process is a hook of a session in `folder`, in `project`. Only the first call has an effect.
pub fn enter_hook(folder: &Path, project: &Path) {
    // Settings in the home folder belong to the user. A project cannot decide which folder that is.
    let own = |folder: &Path| variable("HOME").is_none_or(|home| folder != Path::new(&home) || !is_home_of_user(folder));
    // The client's settings belong to the folder where it was started: a parent, an enclosing repository, or somewhere
    // else.
    let mut folders: Vec<PathBuf> = folder.ancestors().take(LEVELS).map(PathBuf::from).collect();
    let begun = session_folder();
    folders.extend(begun.clone().filter(|begun| !folders.contains(begun)));
    let settings = folders.iter().filter(|f| own(f)).map(|f| f.join(".claude")).filter(|f| f.is_dir());
    let files = settings.flat_map(|f| PROJECT_SETTINGS.map(|name| f.join(name)));
    let set = files.filter_map(|file| variables_of(&file)).collect::<Option<Vec<_>>>();
    let projects = [project.to_path_buf()].into_iter().chain(begun).collect();
    let _ = DOUBT.set(Doubt { projects, set: set.map(|sets| sets.concat()) });
}

/// Whether a folder is the user's home according to passwd(5).
#[cfg(unix)]
fn is_home_of_user(folder: &Path) -> bool {
    let Ok(users) = files::whole_text(Path::new("/etc/passwd"), 4 << 20) else { return false };
    let user = files::user().to_string();
    let field = |line: &str, n: usize| line.split(':').nth(n).map(String::from);
    users
        .lines()
        .any(|line| field(line, 2).as_ref() == Some(&user) && field(line, 5).is_some_and(|home| Path::new(&home) == folder))
}

#[cfg(not(unix))]
fn is_home_of_user(_: &Path) -> bool {
    true
}

/// Returns the variables that a settings file sets: `None` if there is no such regular file, `Some(None)` if its
/// content is unknown.
fn variables_of(file: &Path) -> Option<Option<Vec<String>>> {
    match files::whole_text(file, SETTINGS_BYTES) {
        Ok(text) => Some(variables_in(&text)),
        // Too large or not UTF-8: unknown content.
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Some(None),
        Err(_) => None,
    }
}

/// The names under `env` in a settings file; `None` if it is not valid JSON within the size limit.
fn variables_in(settings: &str) -> Option<Vec<String>> {
    let value: Value = serde_json::from_str(settings).ok()?;
    Some(value["env"].as_object().map(|env| env.keys().cloned().collect()).unwrap_or_default())
}

fn is_doubted(name: &str) -> bool {
    DOUBT.get().is_some_and(|doubt| doubt.set.as_ref().is_none_or(|set| set.iter().any(|n| n == name)))
}

/// Whether a path leads into a hook's project, including through a link or `..`.
fn is_in_project(path: &Path) -> bool {
    let is_in = |project: &PathBuf| path.starts_with(project) || files::resolved(path).starts_with(files::resolved(project));
    DOUBT.get().is_some_and(|doubt| doubt.projects.iter().any(is_in))
}

#[expect(clippy::disallowed_methods, reason = "the one reader of the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

fn env(name: &str) -> Option<String> {
    variable(name).filter(|_| !is_doubted(name))
}

/// Returns the path in a variable. It must be absolute, or it would depend on the current folder. A path inside a
/// hook's project is ignored.
pub fn path(name: &'static str) -> Result<Option<PathBuf>> {
    let Some(path) = env(name).map(PathBuf::from) else { return Ok(None) };
    if !path.is_absolute() {
        let what = format!("{name}={} is not an absolute path", path.display());
        return Err(UserError::new(what, format!("set {name} to an absolute path, or unset it")).into());
    }
    Ok(Some(path).filter(|path| !is_in_project(path)))
}

/// Whether a variable with a path is set and ignored: the project may have set it, or it leads into the project.
pub fn is_ignored(name: &'static str) -> bool {
    variable(name).is_some() && path(name).is_ok_and(|path| path.is_none())
}

/// The current time, or the one in `NMEM_NOW`.
#[expect(clippy::disallowed_methods, reason = "the one reader of the clock")]
pub fn now() -> Millis {
    if let Some(fixed) = env("NMEM_NOW").and_then(|v| v.parse().ok()) {
        return fixed;
    }
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_millis() as Millis)
}

/// Returns the variable that disables hooks, if one is set. A project may set it too: it may always reduce what nmem
/// does.
pub fn switched_off() -> Option<&'static str> {
    let says = |name: &'static str, off: fn(&str) -> bool| variable(name).filter(|v| off(v)).map(|_| name);
    says("NMEM_DISABLE", |v| v != "0").or_else(|| says("RAD_ENABLED", |v| v == "false" || v == "0"))
}

/// Returns the agent's process id, if the agent passes it to its hooks.
pub fn client_pid() -> Option<u32> {
    env("CLAUDE_PID")?.parse().ok()
}

/// Returns the folder in which the agent was started, if the agent passes it to its hooks. A later `cd` of the agent
/// does not change it.
pub fn session_folder() -> Option<PathBuf> {
    variable("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|f| f.is_absolute() && f.as_os_str().len() <= PATH_BYTES)
}

/// Variables that agents set for the commands that they run.
const OF_AGENTS: [&str; 8] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
];

/// Whether an agent runs this command, as indicated by one of the variables that agents set.
pub fn is_run_by_agent() -> bool {
    OF_AGENTS.iter().any(|name| variable(name).is_some())
}

/// The session of the agent that runs this command, if the agent passes it.
pub fn agent_session() -> Option<String> {
    env("CLAUDE_CODE_SESSION_ID")
}

/// A key from one of the user's variables; `None` if a hook's project has set it.
pub fn secret(name: &str) -> Option<String> {
    let name = name.trim();
    let sound = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // A key becomes part of a header, so it must not contain a line break.
    env(name).filter(|key| sound && key.chars().all(|c| c.is_ascii_graphic()))
}

/// Name of the variable with the URL of the team's PostgreSQL.
pub const TEAM_DATABASE: &str = "RAD_DATABASE_URL";

/// The URL of the team's PostgreSQL; `None` if a hook's project has set it.
pub fn team_database() -> Option<String> {
    env(TEAM_DATABASE)
}

/// Returns the file with the root certificates for PostgreSQL, from the variable that libpq uses.
pub fn root_certificates() -> Option<PathBuf> {
    env("PGSSLROOTCERT").map(PathBuf::from).filter(|path| path.is_absolute() && !is_in_project(path))
}

/// Returns the file with root certificates for downloads, from the variable that curl and OpenSSL use.
pub fn download_certificates() -> Option<PathBuf> {
    env("SSL_CERT_FILE").map(PathBuf::from).filter(|path| path.is_absolute() && !is_in_project(path))
}

/// The login name.
pub fn login_name() -> Option<String> {
    ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(env)
}

/// The user's proxy; `None` if a hook's project has set it.
pub fn proxy() -> Option<String> {
    ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].into_iter().find_map(env)
}

/// Finds a program by name on PATH and returns its absolute path. Programs inside the current folder's project or a
/// hook's project are ignored, and so is a PATH that a hook's project has set.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env("PATH")?;
    let current = current_project();
    let is_in_current = |path: &Path| current.as_ref().is_some_and(|project| files::resolved(path).starts_with(project));
    let is_foreign = |path: &PathBuf| is_in_project(path) || is_in_current(path);
    let is_there = |path: &PathBuf| path.is_absolute() && !is_foreign(path) && files::is_program(path);
    std::env::split_paths(&path).flat_map(|folder| PROGRAM_ENDINGS.map(|end| folder.join(format!("{name}{end}")))).find(is_there)
}

/// The git program in a folder, for questions that only read: no pager, no file monitor, no lock, English.
pub fn git(folder: &Path) -> Option<Command> {
    let mut git = Command::new(program("git")?);
    git.arg("--no-pager").args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]).arg("-C").arg(folder);
    git.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    Some(git)
}

/// The folder with `.git` at or above the current one, else the current one; `None` for the home folder and `/`.
fn current_project() -> Option<PathBuf> {
    let folder = files::resolved(&std::env::current_dir().ok()?);
    let root = folder.ancestors().take(LEVELS).find(|folder| folder.join(".git").symlink_metadata().is_ok());
    let root = root.unwrap_or(&folder);
    let is_home = home().is_some_and(|home| files::resolved(&home) == root);
    (root.parent().is_some() && !is_home).then(|| root.to_path_buf())
}

#[cfg(not(windows))]
const PROGRAM_ENDINGS: [&str; 1] = [""];
#[cfg(windows)]
const PROGRAM_ENDINGS: [&str; 2] = [".exe", ".cmd"];

/// Returns the variables that a hook's project has set; `None` if its settings cannot be read, so that it may have set
/// any.
pub fn set_by_project() -> Option<Vec<String>> {
    DOUBT.get().map_or(Some(Vec::new()), |doubt| doubt.set.clone())
}

/// Returns the approximate start time of this process.
pub fn started() -> std::time::Instant {
    static STARTED: OnceLock<std::time::Instant> = OnceLock::new();
    *STARTED.get_or_init(std::time::Instant::now)
}

/// The user's editor.
pub fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(env).filter(|editor| !editor.trim().is_empty())
}

/// Whether the user requests output without colour.
pub fn no_color() -> bool {
    env("NO_COLOR").is_some()
}

/// The pager that the user names; an empty name means none.
pub fn pager() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "here an empty variable says something")]
    ["NMEM_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok())
}

/// The user's own settings of `less`.
pub fn has_less_settings() -> bool {
    env("LESS").is_some()
}

/// Codex's folder.
pub fn codex_folder(home: Option<&Path>) -> Option<PathBuf> {
    env("CODEX_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".codex")))
}

/// The data folder of claude-mem.
pub fn claude_mem_folder(home: Option<&Path>) -> Option<PathBuf> {
    env("CLAUDE_MEM_DATA_DIR").map(PathBuf::from).or_else(|| Some(home?.join(".claude-mem")))
}

/// Copilot CLI's folder.
pub fn copilot_folder(home: Option<&Path>) -> Option<PathBuf> {
    env("COPILOT_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".copilot")))
}

/// The `User` folders of VS Code and its variants, whether they exist or not.
pub fn vs_code_folders(home: Option<&Path>) -> Vec<PathBuf> {
    let (Some(home), Some(settings)) = (home, desktop_settings(home)) else { return Vec::new() };
    let local = ["Code", "Code - Insiders", "VSCodium"].map(|name| settings.join(name).join("User"));
    let remote = [".vscode-server", ".vscode-server-insiders"].map(|name| home.join(name).join("data/User"));
    local.into_iter().chain(remote).collect()
}

/// The folder in which graphical programs keep their settings.
pub fn desktop_settings(home: Option<&Path>) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        Some(home?.join("Library/Application Support"))
    } else if cfg!(windows) {
        env("APPDATA").map(PathBuf::from).or_else(|| Some(home?.join("AppData/Roaming")))
    } else {
        terminal_settings(home)
    }
}

/// The folder in which Zed keeps its data.
fn zed_data_folder(home: Option<&Path>) -> Option<PathBuf> {
    if cfg!(target_os = "macos") {
        Some(home?.join("Library/Application Support/Zed"))
    } else if cfg!(windows) {
        env("LOCALAPPDATA").map(PathBuf::from).or_else(|| Some(home?.join("AppData/Local"))).map(|data| data.join("Zed"))
    } else {
        opencode_data_folder(home).map(|folder| folder.with_file_name("zed"))
    }
}

/// Cursor's folders: `.cursor`, and the `User` folder of the IDE.
pub fn cursor_folders(home: Option<&Path>) -> Vec<PathBuf> {
    let own = home.map(|home| home.join(".cursor"));
    own.into_iter().chain(desktop_settings(home).map(|settings| settings.join("Cursor/User"))).collect()
}

/// Gemini CLI's folder.
pub fn gemini_folder(home: Option<&Path>) -> Option<PathBuf> {
    let home = env("GEMINI_CLI_HOME").map(PathBuf::from).or_else(|| home.map(Path::to_path_buf));
    home.map(|home| home.join(".gemini"))
}

/// OpenCode's folder for sessions.
pub fn opencode_data_folder(home: Option<&Path>) -> Option<PathBuf> {
    let data = env("XDG_DATA_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".local/share")));
    data.map(|data| data.join("opencode"))
}

/// The database that `OPENCODE_DB` names: an absolute path, or one in OpenCode's folder.
pub fn opencode_database(home: Option<&Path>) -> Option<PathBuf> {
    let named = env("OPENCODE_DB").filter(|named| named != ":memory:")?;
    Some(opencode_data_folder(home).unwrap_or_default().join(named)).filter(|path| path.is_absolute())
}

/// The folder in which programs of a terminal keep settings: `~/.config`.
fn terminal_settings(home: Option<&Path>) -> Option<PathBuf> {
    env("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".config")))
}

/// OpenCode's folder for settings.
pub fn opencode_folder(home: Option<&Path>) -> Option<PathBuf> {
    terminal_settings(home).map(|settings| settings.join("opencode"))
}

/// The folder in which most programs keep settings: `~/.config`, also on a Mac; on Windows `%APPDATA%`.
pub fn user_settings(home: Option<&Path>) -> Option<PathBuf> {
    if cfg!(windows) { desktop_settings(home) } else { terminal_settings(home) }
}

/// Claude Code's settings folder.
pub fn claude_folder(home: Option<&Path>) -> Option<PathBuf> {
    env("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(|| Some(home?.join(".claude")))
}

/// Claude Code's state file, which lists the user's MCP servers.
pub fn claude_state(home: Option<&Path>) -> Option<PathBuf> {
    let folder = env("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    Some(folder.or_else(|| home.map(Path::to_path_buf))?.join(".claude.json"))
}

/// Folders on `PATH`, in order.
pub fn path_folders() -> Vec<PathBuf> {
    env("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default()
}

/// Log level, from `NMEM_LOG`.
pub fn log_level() -> LogLevel {
    match env("NMEM_LOG").as_deref() {
        Some("off") => LogLevel::Off,
        Some("info") => LogLevel::Info,
        Some("debug") => LogLevel::Debug,
        _ => LogLevel::Error,
    }
}

/// The home folder; `None` if a hook's project has set another one.
pub fn home() -> Option<PathBuf> {
    if is_doubted("HOME") {
        return None;
    }
    env("HOME").map(PathBuf::from).filter(|h| h.is_absolute()).or_else(home_of_account).filter(|home| home.is_absolute())
}

/// The home folder of the user's account, read from `/etc/passwd`. The C library's own lookup crashes in a static build.
#[cfg(target_os = "linux")]
fn home_of_account() -> Option<PathBuf> {
    let user = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").ok()?).to_string();
    home_of(&user, &std::fs::read_to_string("/etc/passwd").ok()?)
}

/// Returns the home folder of a user id in the lines of `/etc/passwd`.
#[cfg(target_os = "linux")]
fn home_of(user: &str, accounts: &str) -> Option<PathBuf> {
    let mut accounts = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home = accounts.find(|fields| fields.get(2) == Some(&user))?.get(5).copied()?;
    Some(home).filter(|home| !home.is_empty()).map(PathBuf::from)
}

#[cfg(not(target_os = "linux"))]
fn home_of_account() -> Option<PathBuf> {
    Some(directories::BaseDirs::new()?.home_dir().to_path_buf())
}

/// nmem's default data folder.
pub fn data_folder() -> Result<PathBuf> {
    standard_folder("XDG_DATA_HOME", ".local/share", |dirs| dirs.data_dir().to_path_buf())
}

/// The folder with local models, a folder each.
pub fn models_folder() -> Result<PathBuf> {
    Ok(data_folder()?.join("models"))
}

/// nmem's default config folder.
pub fn config_folder() -> Result<PathBuf> {
    standard_folder("XDG_CONFIG_HOME", ".config", |dirs| dirs.config_dir().to_path_buf())
}

fn standard_folder(name: &str, usual: &str, from: fn(&directories::ProjectDirs) -> PathBuf) -> Result<PathBuf> {
    if is_doubted("HOME") {
        let what = "this project's settings set HOME or cannot be read, so the location of your data is unknown";
        return Err(UserError::new(what, "fix the project's .claude/settings.json; until then nothing is recorded here").into());
    }
    // On other platforms the variable has no effect.
    let moved = cfg!(target_os = "linux") && variable(name).is_some_and(|v| is_doubted(name) || is_in_project(Path::new(&v)));
    if let Some(home) = variable("HOME").filter(|home| cfg!(unix) && !Path::new(home).is_absolute()) {
        return Err(UserError::new(format!("HOME={home} is not an absolute path"), "set HOME to an absolute path").into());
    }
    match home() {
        Some(home) if moved => Ok(home.join(usual).join("nmem")),
        // Without HOME, the crate asks the C library for the account.
        Some(home) if cfg!(target_os = "linux") && variable("HOME").is_none() => {
            let named = variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
            Ok(named.unwrap_or_else(|| home.join(usual)).join("nmem"))
        }
        Some(_) => directories::ProjectDirs::from("", "", "nmem").map(|dirs| from(&dirs)).ok_or_else(no_home),
        // Without an account, config and data are in the database's folder.
        None => path("NMEM_DB")?.as_deref().and_then(Path::parent).map(Path::to_path_buf).ok_or_else(no_home),
    }
}

fn no_home() -> anyhow::Error {
    UserError::new("the home folder is unknown", "set HOME, or NMEM_DB to an absolute path").into()
}

/// Private folders in which events may wait if the data folder is not writable: one in the runtime folder, then one in
/// the temporary folder. They may not exist.
pub fn spare_folders() -> Vec<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|f| f.is_absolute() && !is_in_project(f));
    #[cfg(unix)]
    {
        let user = files::user();
        let runtime = absolute("XDG_RUNTIME_DIR").unwrap_or_else(|| PathBuf::from(format!("/run/user/{user}")));
        let temporary = absolute("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
        vec![runtime.join("nmem"), temporary.join(format!("nmem-{user}"))]
    }
    #[cfg(not(unix))]
    absolute("TEMP").map(|t| t.join("nmem")).into_iter().collect()
}

/// Folders in the home folder with a name like an agent's usual one: `.claude-work` for another account of Claude Code.
pub fn account_folders(usual: &str, home: &Path) -> Vec<PathBuf> {
    let is_like = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(usual).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)) && folder.is_dir()
    };
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(home).into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_like).collect();
    found.sort();
    found
}

/// Folders in the home folder in which agents keep both settings and sessions.
const IN_HOME: [(Platform, &str); 8] = [
    (Platform::QwenCode, ".qwen"),
    (Platform::Droid, ".factory"),
    (Platform::GrokBuild, ".grok"),
    (Platform::Pi, ".pi"),
    (Platform::KimiCode, ".kimi-code"),
    (Platform::Cline, ".cline"),
    (Platform::MistralVibe, ".vibe"),
    (Platform::Continue, ".continue"),
];

fn in_home(platform: Platform, home: Option<&Path>) -> Option<PathBuf> {
    let (_, folder) = IN_HOME.iter().find(|(known, _)| *known == platform)?;
    home.map(|home| home.join(folder))
}

/// The folders below which an agent keeps its sessions, whether they exist or not.
pub fn session_folders(platform: Platform, home: Option<&Path>) -> Vec<PathBuf> {
    match platform {
        Platform::ClaudeCode => claude_folder(home).into_iter().collect(),
        Platform::Codex => codex_folder(home).into_iter().collect(),
        Platform::Cursor => cursor_folders(home),
        Platform::VsCode => vs_code_folders(home),
        Platform::CopilotCli => copilot_folder(home).into_iter().collect(),
        Platform::Gemini => gemini_folder(home).into_iter().collect(),
        Platform::OpenCode => opencode_data_folder(home).into_iter().collect(),
        Platform::Kilo | Platform::Goose | Platform::Amp => {
            let own = opencode_data_folder(home).map(|folder| folder.with_file_name(platform.name()));
            // Kilo is an extension of VS Code, too.
            let users = if platform == Platform::Kilo { vs_code_folders(home) } else { Vec::new() };
            own.into_iter().chain(users).collect()
        }
        Platform::Cline => in_home(platform, home).into_iter().chain(vs_code_folders(home)).collect(),
        Platform::Roo => vs_code_folders(home),
        Platform::Zed => zed_data_folder(home).into_iter().collect(),
        _ => in_home(platform, home).into_iter().collect(),
    }
}

/// Returns the folder in which an agent looks for the user's hooks; `None` if the agent has no hooks or the home folder
/// is unknown.
pub fn settings_folder(platform: Platform, home: Option<&Path>) -> Option<PathBuf> {
    match platform {
        Platform::ClaudeCode => claude_folder(home),
        Platform::Codex => codex_folder(home),
        Platform::Cursor => cursor_folders(home).into_iter().next(),
        // VS Code reads the hooks of Copilot CLI.
        Platform::VsCode | Platform::CopilotCli => copilot_folder(home),
        Platform::Gemini => gemini_folder(home),
        Platform::OpenCode => opencode_folder(home),
        Platform::Kilo => opencode_folder(home).map(|folder| folder.with_file_name("kilo")),
        _ => in_home(platform, home),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_home_of_an_account_is_in_its_line() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\ndev:x:1000:1000:,,,:/home/dev:/bin/zsh\nodd:x:7\nnone:x:8:8::\n";
        assert_eq!(home_of("1000", accounts), Some("/home/dev".into()));
        assert_eq!(["12345", "7", "8", "100"].map(|user| home_of(user, accounts)), [const { None }; 4]);
    }

    #[test]
    fn variables_are_read_from_settings_however_they_are_written() {
        assert_eq!(variables_in(r#"{"env": {"\u004eMEM_DB": "/x", "A": "1"}}"#).unwrap(), ["A", "NMEM_DB"]);
        assert_eq!(variables_in(r#"{"hooks": {}}"#).unwrap(), [] as [&str; 0]);
        assert_eq!(variables_in("{\"env\": {\"HOME\""), None);
    }
}
