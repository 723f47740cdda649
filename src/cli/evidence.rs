//! `nmem why`: the edit, the unit and the request behind a line, a file or a commit. `nmem verify`: the checks of the
//! working tree. `nmem handoff` and `nmem pr`: a unit, or a branch, for somebody else.
//! `nmem check`: claims of memories. `nmem git-notes`: notes for
//! commits.

use super::output;
use super::project_argument::{ProjectArgument, ProjectEvidence, open};
use crate::error::UserError;
use crate::evidence::{branch_story, check_memories, evidence_of, handoff, recorded_under, verify, write_notes};
use crate::lookup;
use crate::model::{Platform, StoredItem, UnitRow};
use crate::render::clean::line;
use crate::render::{count, evidence_text, unit_text};
use crate::store::Store;
use anyhow::Result;
use clap::ValueEnum;

/// Show the edit and the request behind a line, file or commit
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem why src/main.rs:42\n         nmem why src/main.rs\n         nmem why HEAD~2\n\nA line is traced by git's blame and by the text that each recorded edit wrote; a commit by the id that git printed when\nit was made, or by its change. Time alone never counts. Exits with 1 if nothing recorded is behind it."
)]
pub struct WhyArguments {
    /// A file, a line of it (FILE:LINE), or a commit
    #[arg(value_name = "FILE[:LINE]|SHA")]
    subject: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command; returns true if something recorded is behind the subject.
pub fn run(args: &WhyArguments) -> Result<bool> {
    let evidence = ProjectEvidence::open(&args.project)?;
    let found = evidence_of(&evidence.recorded(), &args.project.folder()?, &args.subject)?;
    let Some(found) = found else {
        let what = format!("{} is neither a file nor a commit here", line(&args.subject, 200));
        let hint = match recorded_under(&evidence.recorded(), &args.subject)? {
            Some(unit) => format!("work on it was recorded: `nmem show u{unit}`"),
            None => "give FILE, FILE:LINE or a commit, such as HEAD".to_string(),
        };
        return Err(UserError::new(what, hint).into());
    };
    let text = if args.json { evidence_text::json(&found).to_string() } else { evidence_text::text(&found, output::style()) };
    output::entry(&text, args.json)?;
    Ok(found.is_known())
}

/// Show which checks passed, failed, or ran before the last change
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem verify\n         nmem verify --format md >> pull-request.md\n\nChecks are the tests, builds and linters that agents ran here: at least twice, or since the last change. Nothing is run.\nExits with 1 if the last run of one failed, or is older than the last change of a file."
)]
pub struct VerifyArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Print Markdown, for a pull request
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<VerifyFormat>,
    #[command(flatten)]
    project: ProjectArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyFormat {
    Md,
}

/// Runs the command; returns true if no known check fails or is out of date.
pub fn run_verify(args: &VerifyArguments) -> Result<bool> {
    let evidence = ProjectEvidence::open(&args.project)?;
    let verification = verify(&evidence.recorded())?;
    let text = match args.format {
        _ if args.json => evidence_text::verification_json(&verification).to_string(),
        Some(VerifyFormat::Md) => evidence_text::verification_markdown(&verification),
        None => evidence_text::verification(&verification, output::style()),
    };
    output::entry(&text, args.json)?;
    Ok(verification.is_sound())
}

/// Print the state of a unit for another agent or person
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem handoff\n         nmem handoff u12 --to codex\n\nGoal, decisions, what was tried, files, checks and open ends, in at most 3,000 bytes."
)]
pub struct HandoffArguments {
    /// A work unit, or something in one: u12, m7, p3, s14 [default: the last unit here]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Also print how to start this agent with it
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    to: Option<Platform>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

fn agent(name: &str) -> Result<Platform, String> {
    let names = || Platform::ALL.iter().map(|platform| platform.name()).collect::<Vec<_>>().join(", ");
    Platform::from_name(name).ok_or_else(|| format!("one of: {}", names()))
}

/// Number of the newest units among which the one that was worked on last is searched.
const NEWEST: usize = 20;

/// Runs the command.
pub fn run_handoff(args: &HandoffArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let nothing = || UserError::new("nothing is recorded here yet", "`nmem import` reads past sessions");
    let store = open(&config)?.ok_or_else(nothing)?;
    let unit = match &args.id {
        Some(id) => unit_of(&store, id)?,
        None => {
            let place = args.project.find(&folder, &config, Some(&store));
            let scope = place.scope().ok_or_else(nothing)?;
            let newest = store.units_of_projects(&scope, None, NEWEST)?.0;
            // One that began earlier may have been worked on since.
            newest.into_iter().max_by_key(|unit| unit.ended_at).ok_or_else(nothing)?
        }
    };
    let id = unit_text::id(&unit);
    let handoff = handoff(&store, unit)?;
    if args.json {
        return output::entry(&evidence_text::handoff_json(&handoff).to_string(), true);
    }
    output::print(&evidence_text::handoff(&handoff))?;
    if let Some(platform) = args.to {
        // Others take a prompt in another way, or were not tried.
        output::warn(&match platform {
            Platform::ClaudeCode => format!("start it: claude \"$(nmem handoff {id})\""),
            Platform::Codex => format!("start it: codex \"$(nmem handoff {id})\""),
            platform => format!("paste it into {}", platform.title()),
        });
    }
    Ok(())
}

/// The unit with an id, or of what has the id.
fn unit_of(store: &Store, id: &str) -> Result<UnitRow> {
    let unknown = || UserError::new(format!("nothing has the id {}", line(id, 80)), "`nmem units` prints ids");
    let unit = match lookup::find(store, id)?.ok_or_else(unknown)? {
        StoredItem::Unit(unit) => return Ok(*unit),
        StoredItem::Session(session) => {
            store.units_of_session(session.id)?.into_iter().max_by_key(|unit| unit.id).map(|unit| unit.id)
        }
        StoredItem::Prompt(prompt) => store.unit_of_prompt(prompt.session_id, prompt.id)?,
        StoredItem::ToolUse(tool) => store.unit_of_tool_use(tool.id)?,
        StoredItem::Memory(memory) => memory.unit,
    };
    let unit = unit.map(|unit| store.unit_by_row(unit)).transpose()?.flatten();
    Ok(unit.ok_or_else(|| UserError::new(format!("{} belongs to no work unit", line(id, 80)), "`nmem units` prints ids"))?)
}

/// Print a pull request's text from the recorded work on this branch
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem pr | gh pr create --title \"…\" --body-file -\n         nmem pr --base develop")]
pub struct PrArguments {
    /// The branch to merge into [default: the remote's main branch]
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command; returns true if something recorded is on the branch.
pub fn run_pr(args: &PrArguments) -> Result<bool> {
    let evidence = ProjectEvidence::open(&args.project)?;
    let recorded = evidence.recorded();
    let unknown = || UserError::new("the branch to merge into is unknown", "name it: nmem pr --base main");
    let base = args.base.clone().or_else(|| recorded.git.base_branch()).ok_or_else(unknown)?;
    let base = recorded
        .git
        .commit_id(&base)
        .ok_or_else(|| UserError::new(format!("there is no branch {}", line(&base, 80)), "give --base BRANCH"))?;
    let progress = output::Progress::begin();
    progress.say("reading the commits of this branch");
    let story = branch_story(&recorded, &base)?;
    drop(progress);
    if story.commits.is_empty() {
        return Err(UserError::new("this branch has no commit that its base lacks", "commit first, or give --base BRANCH").into());
    }
    output::print(&evidence_text::pull_request(&story))?;
    Ok(!story.units.is_empty())
}

/// Check whether memories still say what is true of the code
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem check\n         nmem check --json | jq -r '.rotten[].id'\n\nClaims are paths, names in a file, settings with a value, versions of packages, and commands that pass or fail. Each\ncounts only if it held when the memory was made, as git and the recorded runs know that time. Nothing is run. Exits with 1 if one no longer holds."
)]
pub struct CheckArguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command; returns true if all claims hold.
pub fn run_check(args: &CheckArguments) -> Result<bool> {
    let evidence = ProjectEvidence::open(&args.project)?;
    let progress = output::Progress::begin();
    progress.say("comparing memories with the files");
    let claims = check_memories(&evidence.recorded())?;
    drop(progress);
    let text =
        if args.json { evidence_text::claims_json(&claims).to_string() } else { evidence_text::claims(&claims, output::style()) };
    output::entry(&text, args.json)?;
    Ok(claims.rotten.is_empty())
}

/// Keep the evidence for commits as git notes
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem git-notes on\n         nmem git-notes push\n\nA note has the unit, the request, the decisions and the checks behind a commit, redacted, without private memories. Notes\nare in refs/notes/nmem of this clone, and `git log` shows them; only `push` sends them anywhere. Without an argument, notes\nfor newer commits are added."
)]
pub struct NotesArguments {
    /// on: write notes for the commits of this branch; off: write and show none; push: send them to a remote
    #[arg(value_enum, value_name = "on|off|push")]
    action: Option<NotesAction>,
    /// The remote, with push
    #[arg(value_name = "REMOTE", default_value = "origin")]
    remote: String,
    #[command(flatten)]
    project: ProjectArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NotesAction {
    On,
    Off,
    Push,
}

/// Runs the command.
pub fn run_notes(args: &NotesArguments) -> Result<()> {
    let evidence = ProjectEvidence::open(&args.project)?;
    let recorded = evidence.recorded();
    match args.action {
        Some(NotesAction::Off) => {
            recorded.git.show_notes(false)?;
            return output::say("Notes are off. Those that are there stay: `git update-ref -d refs/notes/nmem` deletes them.");
        }
        Some(NotesAction::Push) => {
            output::only_by_person("send notes to others", &format!("nmem git-notes push {}", args.remote))?;
            recorded.git.push_notes(&args.remote)?;
            return output::say(&format!("The notes were sent to {}.", line(&args.remote, 80)));
        }
        Some(NotesAction::On) => recorded.git.show_notes(true)?,
        None if recorded.git.shows_notes() => {}
        None => return Err(UserError::usage("notes are off in this repository", "nmem git-notes on").into()),
    }
    let progress = output::Progress::begin();
    progress.say("writing notes");
    let written = write_notes(&recorded, evidence_text::note)?;
    drop(progress);
    output::say(&format!(
        "{} in refs/notes/nmem; `git log` shows them.",
        count(written as i64, "note was written", "notes were written")
    ))
}
