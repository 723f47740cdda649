//! Setup of an agent: the data that `nmem install` writes for it.

/// A subscription to an event.
#[derive(Clone, Copy, Debug)]
pub struct Subscribed {
    pub event: &'static str,
    /// Tool names to match; `None` matches all, or does not apply.
    pub tools: Option<&'static str>,
    /// `record` or `context`.
    pub verb: &'static str,
    /// Seconds.
    pub timeout: u32,
}

/// Creates a subscription without a matcher; the timeout is in seconds.
pub const fn to(event: &'static str, verb: &'static str, timeout: u32) -> Subscribed {
    Subscribed { event, tools: None, verb, timeout }
}

/// The format of a hook in a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Groups with a matcher and a list of handlers. Timeouts in seconds.
    Nested,
    /// The same with timeouts in milliseconds, in a file that may have comments.
    NestedMillis,
    /// Handlers directly below the event, in a file with a version.
    Flat,
}

/// A file that only nmem writes.
#[derive(Clone, Copy, Debug)]
pub struct OwnFile {
    /// Below the agent's own folder.
    pub user: &'static str,
    /// Below the root of the worktree.
    pub project: &'static str,
    /// Its text. `{{nmem}}` is the program as a JSON string without its quotes.
    pub text: &'static str,
}

/// The way to let an agent search memories without a permission prompt.
#[derive(Clone, Copy, Debug)]
pub enum Permission {
    /// Entries of a list in a JSON file below the agent's own folder.
    Listed { file: &'static str, list: [&'static str; 2], entries: &'static [&'static str] },
    /// A separate file.
    Own(OwnFile),
    /// Instructions for a person, because nmem cannot set the permission.
    ByHand(&'static str),
}

/// Location of an agent's list of MCP servers. A path is empty if nmem cannot write the file.
#[derive(Clone, Copy, Debug)]
pub enum McpServers {
    /// In an object of a JSON file, which may have comments.
    Json {
        /// Below the agent's own folder.
        user: &'static str,
        /// Below the root of the worktree.
        project: &'static str,
        key: &'static str,
        form: McpForm,
    },
    /// In tables of a TOML file.
    Toml { user: &'static str, project: &'static str },
}

/// The format of a server in a JSON file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpForm {
    /// `command` and `args`.
    Plain,
    /// The same with `type: stdio`.
    Stdio,
    /// With `type: local`, and all tools.
    Local,
    /// `command` is a list, with `type: local`.
    List,
}

impl McpForm {
    pub const ALL: [McpForm; 4] = [McpForm::Plain, McpForm::Stdio, McpForm::Local, McpForm::List];
}

/// The shell in which an agent runs hooks on Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowsShell {
    /// Git Bash.
    Bash,
    PowerShell,
    Cmd,
}

/// Data for installing an agent's hooks.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Programs on `PATH` that show that the agent is installed.
    pub programs: &'static [&'static str],
    /// The settings file below the agent's own folder; empty if hooks are in a separate file.
    pub user: &'static str,
    /// The same below the root of the worktree.
    pub project: &'static str,
    pub shape: Shape,
    pub hooks: &'static [Subscribed],
    pub windows_shell: WindowsShell,
    /// Arguments after the program and the verb in a hook's command line.
    pub arguments: &'static str,
    /// Additional files.
    pub files: &'static [OwnFile],
    pub permission: Permission,
    /// Location of the agent's list of MCP servers.
    pub mcp: McpServers,
    /// The file with general instructions that the agent reads, below the root of the worktree.
    pub instructions: &'static str,
    /// Steps after the installation that only a person can do.
    pub afterwards: &'static [&'static str],
}
