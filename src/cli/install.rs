//! `nmem install` and `nmem uninstall`: write and remove hooks in an agent's settings, with diff, backup and atomic
//! write.

use super::output;
use crate::config::pauses::Switches;
use crate::config::{self, SettingSource, environment};
use crate::error::UserError;
use crate::import;
use crate::installation::{self, Extras, InstallPlan, MCP_CLIENTS, McpClient, Scope, SettingsChange};
use crate::model::{Platform, Provider};
use crate::platforms::adapter::Adapter;
use crate::platforms::settings_file::{McpServers, Permission, Setup};
use crate::render::count;
use anyhow::Result;
use clap::ValueEnum;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Install nmem's hooks into the settings of agents
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem install --found --dry-run\n         nmem install codex gemini\n         nmem install --model agent\n\nPlatforms: claude-code, codex, cursor, vscode, copilot-cli, gemini, opencode, qwen-code, droid,\ngrok-build, kilo, pi, kimi-code, cline, mistral-vibe. Other hooks in the files are not changed. A\nbackup is kept next to each file; `nmem uninstall` restores it byte for byte."
)]
pub struct InstallArguments {
    /// Agents to install into
    #[arg(value_parser = installable, value_name = "PLATFORM")]
    platforms: Vec<Platform>,
    /// Install into every agent that is on this machine
    #[arg(long)]
    found: bool,
    #[command(flatten)]
    place: PlaceArguments,
    /// Also let the agent run `nmem search`, `nmem show` and `nmem context` without a permission prompt
    #[arg(long)]
    allow_search: bool,
    /// Also add nmem's tools as an MCP server; with a name, to a program without hooks, such as zed
    #[arg(long, value_name = "CLIENT", num_args = 0.., value_parser = target)]
    mcp: Option<Vec<McpTarget>>,
    /// Also show open ends, a failing check and received memories in the status line (claude-code, qwen-code)
    #[arg(long)]
    statusline: bool,
    /// Also add a block about nmem to the project's AGENTS.md, CLAUDE.md or GEMINI.md (with --scope project)
    #[arg(long)]
    guidance: bool,
    /// The model that writes memories: agent (each session's own program), none, or another provider
    #[arg(long, value_name = "NAME", value_parser = provider)]
    model: Option<Provider>,
}

/// Remove nmem's hooks from agents' settings; recorded data stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem uninstall\n\nThe database stays; the command prints its path.")]
pub struct UninstallArguments {
    /// Agents, or clients of --mcp, to remove from [default: all]
    #[arg(value_parser = target, value_name = "PLATFORM")]
    targets: Vec<McpTarget>,
    #[command(flatten)]
    place: PlaceArguments,
}

#[derive(Debug, clap::Args)]
struct PlaceArguments {
    /// The user's settings, or those of one project
    #[arg(long, value_enum, default_value_t = ScopeArgument::User)]
    scope: ScopeArgument,
    /// The project, with --scope project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScopeArgument {
    User,
    Project,
}

/// A program that takes an MCP server.
#[derive(Clone, Copy, Debug)]
enum McpTarget {
    Agent(Platform),
    Client(&'static McpClient),
}

impl McpTarget {
    fn agent(&self) -> Option<Platform> {
        if let McpTarget::Agent(platform) = self { Some(*platform) } else { None }
    }

    fn client(&self) -> Option<&'static McpClient> {
        if let McpTarget::Client(client) = self { Some(client) } else { None }
    }

    fn name(&self) -> &'static str {
        match self {
            McpTarget::Agent(platform) => platform.name(),
            McpTarget::Client(client) => client.name,
        }
    }
}

/// An agent's adapter, and the setup to install for it.
type Agent = (&'static dyn Adapter, &'static Setup);

impl PlaceArguments {
    fn scope(&self) -> Result<Scope> {
        match (self.scope, &self.project) {
            (ScopeArgument::Project, folder) => Ok(Scope::Project(folder.clone())),
            (ScopeArgument::User, None) => Ok(Scope::User),
            (ScopeArgument::User, Some(_)) => {
                Err(UserError::usage("--project needs --scope project", "add --scope project").into())
            }
        }
    }
}

fn installable(name: &str) -> Result<Platform, String> {
    let agents = installation::agents();
    let names: Vec<&str> = agents.iter().map(|(adapter, _)| adapter.platform().name()).collect();
    Platform::from_name(name).filter(|_| names.contains(&name)).ok_or_else(|| format!("one of: {}", names.join(", ")))
}

fn target(name: &str) -> Result<McpTarget, String> {
    let client = MCP_CLIENTS.iter().find(|client| client.name == name);
    let clients = || MCP_CLIENTS.iter().map(|client| client.name).collect::<Vec<_>>().join(", ");
    match client {
        Some(client) => Ok(McpTarget::Client(client)),
        None => installable(name).map(McpTarget::Agent).map_err(|agents| format!("{agents}, {}", clients())),
    }
}

fn provider(name: &str) -> Result<Provider, String> {
    let names = || Provider::all().map(|provider| provider.name()).collect::<Vec<_>>().join(", ");
    Provider::from_name(name).ok_or_else(|| format!("one of: {}", names()))
}

/// Installs the hooks.
pub fn install(args: &InstallArguments) -> Result<()> {
    if let Some(provider) = args.model {
        choose_model(provider, args.place.dry_run)?;
        if args.platforms.is_empty() && args.mcp.is_none() && !args.found {
            return Ok(());
        }
    }
    let scope = args.place.scope()?;
    let clients: Vec<&McpClient> = args.mcp.iter().flatten().filter_map(McpTarget::client).collect();
    if !clients.is_empty() {
        install_clients(&clients, &scope, args.place.dry_run)?;
        if args.agents().is_empty() && !args.found {
            return Ok(());
        }
    }
    let agents = chosen(args)?;
    if args.guidance && scope == Scope::User {
        return Err(UserError::usage("--guidance needs --scope project", "add --scope project").into());
    }
    let foreign = installation::foreign_first();
    if let (Scope::Project(_), Some(foreign)) = (&scope, &foreign) {
        let what =
            format!("a project's hooks start the first nmem on PATH, and {} is a program of somebody else", foreign.display());
        return Err(
            UserError::new(what, "put this nmem first on PATH, or install for the user: the hooks then have its path").into()
        );
    }
    let mut installed = 0;
    let mut failed = Failures::default();
    for agent in &agents {
        match install_one(*agent, args, &scope) {
            Ok(is_new) => installed += usize::from(is_new),
            Err(error) => failed.add(error),
        }
    }
    if installed > 0 {
        let undo = match scope {
            Scope::User | Scope::Account(_) => "nmem uninstall",
            Scope::Project(_) => "nmem uninstall --scope project",
        };
        // Some agents cannot show a note at the first session.
        let db = config::files()?.value.db;
        output::say(&format!(
            "From the next session on, prompts, tool calls and closing messages are recorded in {}, with secrets redacted. `nmem off` pauses it, `{undo}` removes the hooks.",
            db.display()
        ))?;
        if let Some(foreign) = foreign {
            output::warn(&format!(
                "{}, the first nmem on PATH, is a program of somebody else. The hooks have this one's path; where you and your agents type `nmem`, put this one first on PATH",
                foreign.display()
            ));
        }
        // The hooks are installed even if the settings are wrong; `nmem doctor` reports that.
        let past = config::load(&[]).and_then(|config| import::never_imported(&config)).unwrap_or_default();
        if past > 0 {
            let past = count(past as i64, "past session is", "past sessions are");
            output::say(&format!("{past} on this machine: `nmem import` reads them."))?;
        }
    }
    if installed > 0 && args.model.is_none() && scope == Scope::User {
        ask_once(&agents)?;
    }
    failed.last()
}

impl InstallArguments {
    /// The agents that are named.
    fn agents(&self) -> Vec<Platform> {
        self.platforms.iter().copied().chain(self.mcp.iter().flatten().filter_map(McpTarget::agent)).collect()
    }
}

/// Adds nmem's tools to clients that take MCP servers.
fn install_clients(clients: &[&McpClient], scope: &Scope, dry_run: bool) -> Result<()> {
    if *scope != Scope::User {
        return Err(UserError::usage("--mcp CLIENT is for the user's settings", "leave out --scope project").into());
    }
    for client in clients {
        let plan = installation::plan_client(client)?;
        let file = plan.changes[0].file.display();
        if dry_run {
            output::print(&diffs(&plan))?;
            continue;
        }
        if plan.changes_nothing() {
            output::say(&format!("{} already has nmem's tools ({file})", client.name))?;
            continue;
        }
        installation::install(&plan)?;
        let backup = plan.changes[0].backup.as_ref().map(|backup| format!("Backup: {}", backup.display()));
        let head = format!("{} has nmem's tools, by an MCP server in {file}. Restart it.", client.name);
        let lines = [Some(head), backup, client.by_hand().map(String::from)];
        output::say(&lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))?;
    }
    Ok(())
}

/// Name of the setting that the choice of a model is kept in, and of the one for the agent's notes.
const PROVIDER: &str = "llm.provider";
const NOTES: &str = "agent_notes.ask";

/// Writes the choice of a model into the config file.
fn choose_model(provider: Provider, dry_run: bool) -> Result<()> {
    let config = config::load_what_can_be(&[])?.0;
    let file = config.file.display();
    if dry_run {
        return output::print(&format!("{file} would get `provider = \"{provider}\"` in [llm]"));
    }
    config::set_in_file(&config.file, PROVIDER, &format!("\"{provider}\""))?;
    let what = match provider {
        Provider::None => "No model is asked: rules alone write memories".to_string(),
        Provider::Agent => "At the end of a work unit, the session's own agent writes its memories".to_string(),
        Provider::Program(program) if !program.at_stop => format!("`nmem distil` asks the {provider} program"),
        Provider::Program(_) => format!("At the end of a work unit, the {provider} program writes its memories"),
        Provider::Anthropic | Provider::OpenAi => format!("Memories are written by {provider}; [llm] needs a model and a key"),
    };
    output::say(&format!("{what} ({file})."))
}

/// Asks on a terminal whether a model and the agent may write memories. An answer is kept, also a no, so that nobody is
/// asked twice.
fn ask_once(agents: &[Agent]) -> Result<()> {
    // A config file that is wrong is reported by `nmem doctor`; no line is added to it.
    let (true, Ok(config)) = (std::io::stdin().is_terminal(), config::load(&[])) else { return Ok(()) };
    let answers =
        |(adapter, _): &Agent| Provider::Agent.of_session(adapter.platform()).program().is_some_and(|program| program.at_stop);
    if config.llm.provider.source == SettingSource::Default && agents.iter().any(answers) {
        let daily = config.llm.daily_tokens.value;
        let question = format!(
            "\nA model can write better memories than rules do: of the facts in labelled sessions, answers in its role kept {KEPT}, rules {BY_RULES}.\n\
             At the end of a work unit, the session's own agent program gets its messages, commands and changes, without secrets, and sends them to the provider that the session went to.\n\
             A unit costs about {UNIT_TOKENS} tokens of your plan, at most {daily} a day; `nmem status` shows them, `nmem install --model none` ends it.\n\
             Let each session's own agent write its memories?"
        );
        let Some(yes) = output::yes_or_no(&question)? else { return Ok(()) };
        choose_model(if yes { Provider::Agent } else { Provider::None }, false)?;
    }
    if config.agent_notes.source == SettingSource::Default {
        let question = "\nThe agent can also note things itself: a session then begins with one paragraph that asks for up to three `memo:` lines at the end of a message. You see them.\n\
             Ask agents for such notes?";
        let Some(yes) = output::yes_or_no(question)? else { return Ok(()) };
        config::set_in_file(&config.file, NOTES, if yes { "true" } else { "false" })?;
        output::say(&format!("`ask = {yes}` is in [agent_notes] of {}.", config.file.display()))?;
    }
    Ok(())
}

/// Shares of the facts in labelled sessions that are kept with answers of readers in a model's role and by rules, and
/// tokens of a unit: request, answer and the program's part (ADR/0060).
const KEPT: &str = "0.92";
const BY_RULES: &str = "0.61";
const UNIT_TOKENS: &str = "6,000";

/// The last failure. An agent that cannot be changed does not stop the others.
#[derive(Default)]
struct Failures(Option<anyhow::Error>);

impl Failures {
    /// Stores a failure; prints the previous one as a warning.
    fn add(&mut self, error: anyhow::Error) {
        if let Some(before) = self.0.replace(error) {
            output::warn(&format!("{before:#}"));
        }
    }

    fn last(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Installs the hooks of one agent; returns whether they are new.
fn install_one((adapter, setup): Agent, args: &InstallArguments, scope: &Scope) -> Result<bool> {
    // If the user's settings have the hooks, a project needs only the instructions.
    let without_hooks = args.guidance && installation::is_installed(adapter, setup, &Scope::User)?;
    let asks_for_notes = args.guidance && config::load(&[]).is_ok_and(|config| config.agent_notes.value);
    let extras = Extras {
        search: args.allow_search,
        guidance: args.guidance,
        mcp: args.mcp.is_some(),
        status_line: args.statusline,
        without_hooks,
        asks_for_notes,
    };
    // A status line of somebody else stays, and the hooks are installed all the same.
    let planned = installation::plan_install(adapter, setup, scope, extras);
    let (plan, is_taken) = match installation::plan_install(adapter, setup, scope, Extras { status_line: false, ..extras }) {
        Ok(plan) if planned.is_err() => (plan, true),
        _ => (planned?, false),
    };
    if is_taken {
        output::warn(&format!(
            "{} has a status line already, which stays: it can run `nmem statusline` with its input",
            adapter.platform().title()
        ));
    }
    if plan.changes_nothing() {
        let (name, file) = (adapter.platform().name(), plan.changes[0].file.display());
        output::say(&format!("nmem is already installed for {name} ({file})"))?;
        return by_hand(setup, args, scope).iter().try_for_each(|how| output::say(how)).map(|()| false);
    }
    if args.place.dry_run {
        output::print(&diffs(&plan))?;
        return Ok(false);
    }
    if let Some(other) = installation::other_scope(adapter, setup, scope)?.filter(|_| !without_hooks) {
        output::warn(&format!(
            "nmem is also installed in {}: every hook would run twice. What it reports is recorded once",
            other.display()
        ));
    }
    installation::install(&plan)?;
    if let Some(folder) = installation::unusual_folder(adapter).filter(|_| *scope == Scope::User) {
        note_folder(|known| known.contains(&folder).then_some(()).map_or_else(|| known.push(folder.clone()), drop))?;
    }
    if without_hooks {
        let files: Vec<String> = plan.changes.iter().map(|change| change.file.display().to_string()).collect();
        output::say(&format!("Changed for {}: {}", adapter.platform().name(), files.join(", ")))?;
        return Ok(false);
    }
    output::say(&report(adapter, setup, &plan, args, scope))?;
    Ok(true)
}

/// Changes the list of settings folders that an environment variable named at an installation.
fn note_folder(change: impl FnOnce(&mut Vec<PathBuf>)) -> Result<()> {
    Switches::change(&Switches::file(&environment::data_folder()?), environment::now(), |switches| {
        change(&mut switches.installed)
    })
    .map(drop)
}

/// Settings folders that an environment variable named at an installation.
fn noted_folders() -> Vec<PathBuf> {
    let switches = environment::data_folder().and_then(|data| Switches::load(&Switches::file(&data)));
    switches.map(|switches| switches.installed).unwrap_or_default()
}

/// Returns the steps that only a person can do, because nmem can write no setting for them.
fn by_hand(setup: &Setup, args: &InstallArguments, scope: &Scope) -> Vec<&'static str> {
    let mut left = Vec::new();
    if let (Permission::ByHand(how), true) = (setup.permission, args.allow_search) {
        left.push(how);
    }
    if args.mcp.is_some() && *scope == Scope::User && matches!(setup.mcp, McpServers::Json { user: "", .. }) {
        left.push(r#"Add the MCP server yourself: code --add-mcp '{"name":"nmem","command":"nmem","args":["mcp"]}'"#);
    }
    left
}

/// Returns the agents that the arguments name, or those found on this machine.
fn chosen(args: &InstallArguments) -> Result<Vec<Agent>> {
    let agents = installation::agents();
    let found: Vec<&Agent> = agents.iter().filter(|(adapter, setup)| installation::is_on_machine(*adapter, setup)).collect();
    let names = found.iter().map(|(adapter, _)| adapter.platform().name()).collect::<Vec<_>>().join(", ");
    if args.found {
        if names.is_empty() {
            return Err(UserError::new("no agent was found on this machine", "name one: nmem install claude-code").into());
        }
        output::say(&format!("On this machine: {names}"))?;
    } else if args.agents().is_empty() {
        let hint =
            if names.is_empty() { "for example: nmem install claude-code".into() } else { format!("on this machine: {names}") };
        return Err(UserError::usage("name the agents to install into, or give --found", hint).into());
    }
    let is_wanted = |(adapter, setup): &Agent| {
        args.agents().contains(&adapter.platform()) || args.found && installation::is_on_machine(*adapter, setup)
    };
    Ok(agents.iter().filter(|agent| is_wanted(agent)).copied().collect())
}

/// Returns a report of the installation and of the remaining steps.
fn report(adapter: &dyn Adapter, setup: &Setup, plan: &InstallPlan, args: &InstallArguments, scope: &Scope) -> String {
    let what = setup.hooks_text();
    let file = plan.changes[0].file.display();
    let mut lines = vec![format!("nmem is installed for {}: {what} in {file}", adapter.platform().name())];
    lines
        .extend(plan.changes[1..].iter().filter(|c| !c.changes_nothing()).map(|c| format!("Also changed: {}", c.file.display())));
    lines.extend(plan.changes.iter().filter_map(|c| Some(format!("Backup: {}", c.backup.as_ref()?.display()))));
    lines.extend(setup.afterwards.iter().map(|line| line.to_string()));
    lines.extend(by_hand(setup, args, scope).into_iter().map(String::from));
    if args.statusline && setup.status_line.is_empty() {
        lines.push(format!("{} has no status line that a program can fill.", adapter.platform().title()));
    }
    if args.allow_search {
        match &setup.permission {
            Permission::Listed { entries, .. } => lines.push(format!("Allowed without a prompt: {}", entries.join(", "))),
            Permission::Own(_) if *scope != Scope::User => {
                lines.push(
                    "The permission to search is given in the user's settings only: run this without --scope project.".into(),
                );
            }
            _ => {}
        }
    }
    lines.join("\n")
}

impl UninstallArguments {
    /// Returns true if the program is one of those to remove nmem from.
    fn has(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| target.name() == name)
    }
}

/// Removes the hooks.
pub fn uninstall(args: &UninstallArguments) -> Result<()> {
    let scope = args.place.scope()?;
    let agents = installation::agents().into_iter();
    let is_chosen = |(adapter, _): &Agent| args.has(adapter.platform().name());
    let (agents, rest): (Vec<Agent>, Vec<Agent>) = agents.partition(is_chosen);
    let is_left = |(adapter, setup): &Agent| installation::is_installed(*adapter, setup, &scope).unwrap_or(true);
    let others: Vec<Agent> = rest.into_iter().filter(is_left).collect();
    let mut removed = Vec::new();
    let mut failed = Failures::default();
    let noted = noted_folders();
    for (adapter, setup) in agents {
        let accounts = if scope == Scope::User { installation::accounts(adapter, &noted) } else { Vec::new() };
        for scope in [scope.clone()].into_iter().chain(accounts) {
            match uninstall_one((adapter, setup), &others, args, &scope) {
                Ok(Some(file)) => removed.push(format!("{} ({})", adapter.platform().name(), file.display())),
                Ok(None) => {}
                Err(error) => failed.add(error),
            }
        }
    }
    for client in MCP_CLIENTS.iter().filter(|client| scope == Scope::User && args.has(client.name)) {
        let plan = installation::plan_client_removal(client)?;
        let Some(change) = plan.changes.first() else { continue };
        match args.place.dry_run {
            true => output::print(&diffs(&plan))?,
            false => installation::uninstall(&plan)?,
        }
        removed.push(format!("{} ({})", client.name, change.file.display()));
    }
    if scope == Scope::User && failed.0.is_none() && args.targets.is_empty() && !args.place.dry_run && !noted.is_empty() {
        note_folder(Vec::clear)?;
    }
    if scope == Scope::User && !args.place.dry_run {
        for plugin in installation::plugins() {
            output::warn(&format!(
                "the plugin {plugin} is enabled in Claude Code: `claude plugin uninstall {plugin}` removes it"
            ));
        }
    }
    if removed.is_empty() && failed.0.is_none() {
        let names = args.targets.iter().map(McpTarget::name).collect::<Vec<_>>().join(", ");
        let whom = if names.is_empty() { "any agent" } else { &names };
        let other = match scope {
            Scope::User | Scope::Account(_) => "`nmem uninstall --scope project` checks the current project's settings",
            Scope::Project(_) => "`nmem uninstall` checks the user's settings",
        };
        return output::say(&format!("nmem is not installed for {whom} here\n{other}"));
    }
    if args.place.dry_run || removed.is_empty() {
        return failed.last();
    }
    let data = config::files()?.value.db;
    let data = if data.exists() { format!("\nThe recorded data is still in {}", data.display()) } else { String::new() };
    output::say(&format!("nmem was removed from {}{data}", removed.join(", ")))?;
    failed.last()
}

/// Removes the hooks of one agent; returns the first file that had any. `others` stay installed.
fn uninstall_one((adapter, setup): Agent, others: &[Agent], args: &UninstallArguments, scope: &Scope) -> Result<Option<PathBuf>> {
    let setups: Vec<&Setup> = others.iter().map(|(_, setup)| *setup).collect();
    let plan = installation::plan_uninstall(adapter, setup, scope, &setups)?;
    let Some(SettingsChange { file, .. }) = plan.changes.first() else { return Ok(None) };
    let shared = others.iter().find(|(_, other)| (other.user, other.project) == (setup.user, setup.project));
    if let Some((other, _)) = shared.filter(|_| !setup.user.is_empty()) {
        output::warn(&format!("{} has the hooks of {}, too: it records no longer", file.display(), other.platform().name()));
    }
    match args.place.dry_run {
        true => output::print(&diffs(&plan))?,
        false => installation::uninstall(&plan)?,
    }
    Ok(Some(file.clone()))
}

fn diffs(plan: &InstallPlan) -> String {
    let changes = plan.changes.iter().filter(|change| !change.changes_nothing());
    changes.map(diff).collect::<Vec<_>>().join("\n")
}

/// The changed lines. Edits are few, so a common head and tail are enough context.
fn diff(change: &SettingsChange) -> String {
    let (before, after) = (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let mut out = vec![format!("{} would change:", change.file.display())];
    out.extend(old[head.saturating_sub(2)..head].iter().map(|l| format!("  {l}")));
    out.extend(old[head..old.len() - tail].iter().map(|l| format!("- {l}")));
    out.extend(new[head..new.len() - tail].iter().map(|l| format!("+ {l}")));
    out.extend(old[old.len() - tail..].iter().take(2).map(|l| format!("  {l}")));
    out.join("\n")
}
