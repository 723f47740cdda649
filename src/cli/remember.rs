//! `nmem remember`, `edit`, `pin`, `unpin`, `supersede`, `done`, `review`: write and change memories by hand, also in the
//! user's editor.

use super::hook::Stdin;
use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::{Config, environment};
use crate::error::{NO_PROJECT, UserError, explain};
use crate::forgetting::{self, ForgetPlan};
use crate::knowledge::{self, MemoryFields};
use crate::model::{Draft, Ending, Maker, MemoryKind, MemoryRow, Provenance, StoredItem};
use crate::render::clean::line;
use crate::render::{count, memory_text, time};
use crate::runtime::redactor;
use crate::store::Store;
use crate::{domains, files, lookup, project};
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;

/// Maximum wait for JSON on stdin.
const STDIN: Duration = Duration::from_secs(60);

/// Add a memory by hand
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem remember \"The staging database is rebuilt every Monday\" --concept gotcha --pin\n         nmem remember \"SQLite for the cache\" --kind decision --alternative Redis --reason \"one file, no server\" --confidence 0.8\n         nmem remember \"Run migrations before the tests\" --kind lesson --type warning --tag tests\n         echo '{\"title\": \"…\", \"facts\": [\"…\"]}' | nmem remember --stdin\n\nThe first line is the title, the rest is the text. Secrets are redacted. On a terminal the words are yours; run by an agent or a script they are the agent's, and an agent cannot pin them."
)]
pub struct RememberArguments {
    /// The text to remember
    #[arg(value_name = "TEXT", required_unless_present = "stdin")]
    text: Vec<String>,
    /// observation, decision, lesson, task or summary
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    #[command(flatten)]
    fields: FieldArguments,
    /// Include it in every session start
    #[arg(long)]
    pin: bool,
    /// Read one JSON object with these fields, and any of your own, from stdin
    #[arg(long)]
    stdin: bool,
    /// Print the memory as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Fields of a memory.
#[derive(Debug, Default, clap::Args)]
struct FieldArguments {
    /// Its type; valid types depend on the kind and the domain
    #[arg(long = "type", value_name = "TYPE")]
    kind_type: Option<String>,
    /// One sentence of at most 24 words
    #[arg(long, value_name = "TEXT")]
    subtitle: Option<String>,
    /// The full text
    #[arg(long, value_name = "TEXT")]
    narrative: Option<String>,
    /// A fact; may be repeated
    #[arg(long, value_name = "TEXT")]
    fact: Vec<String>,
    /// A concept of the domain; up to five
    #[arg(long, value_name = "CONCEPT")]
    concept: Vec<String>,
    /// A file that it is about; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// For a decision: what was chosen
    #[arg(long, value_name = "TEXT")]
    chosen: Option<String>,
    /// For a decision: a rejected alternative; may be repeated
    #[arg(long, value_name = "TEXT")]
    alternative: Vec<String>,
    /// For a decision: the reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// For a decision: confidence from 0 to 1
    #[arg(long, value_name = "NUMBER")]
    confidence: Option<f64>,
    /// For a lesson: a tag; may be repeated
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

impl FieldArguments {
    /// The given fields, named as in the observation protocol and the RAD memory specification.
    fn fields(&self, folder: Option<&str>, config: &Config) -> MemoryFields {
        let mut fields = Map::new();
        let mut text = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                fields.insert(name.into(), Value::from(value.clone()));
            }
        };
        text("type", &self.kind_type);
        text("subtitle", &self.subtitle);
        text("narrative", &self.narrative);
        text("chosen", &self.chosen);
        text("reasoning", &self.reason);
        let path = |path: &String| project::relative(path, folder, config.home.as_deref());
        let files: Vec<String> = self.file.iter().map(path).collect();
        for (name, list) in [
            ("facts", &self.fact),
            ("concepts", &self.concept),
            ("files_modified", &files),
            ("alternatives", &self.alternative),
            ("tags", &self.tag),
        ] {
            if !list.is_empty() {
                fields.insert(name.into(), Value::from(list.clone()));
            }
        }
        if let Some(confidence) = self.confidence {
            fields.insert("confidence".into(), Value::from(confidence));
        }
        fields
    }
}

/// Change a memory
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem edit m7 --subtitle \"since version 2 only\"\n         nmem edit m7\n\nWithout options it opens the memory as JSON in $VISUAL or $EDITOR. Rules and models never change it afterwards."
)]
pub struct EditArguments {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
    /// New title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    fields: FieldArguments,
    /// Read the fields to change from stdin, as one JSON object; null empties a field
    #[arg(long)]
    stdin: bool,
    /// Never share it with a team; take it back if it was shared
    #[arg(long, conflicts_with = "public")]
    private: bool,
    /// Share it with its project again
    #[arg(long)]
    public: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Include a memory in every session start
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem pin m7")]
pub struct PinArguments {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    project: ProjectArgument,
}

/// End an open end: it is done, or not wanted any more
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem done m12\n         nmem done --drop m13\n\n`nmem units --open` lists what is open.")]
pub struct DoneArguments {
    /// The open ends
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// It is not wanted any more
    #[arg(long)]
    drop: bool,
    /// It is open again
    #[arg(long, conflicts_with = "drop")]
    reopen: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Mark a memory as superseded by another
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem supersede m7 m31\n\nThe old one is no longer injected or found; `nmem show` still shows it."
)]
pub struct SupersedeArguments {
    /// The superseded memory
    #[arg(value_name = "OLD")]
    old: String,
    /// The memory that replaces it
    #[arg(value_name = "NEW")]
    new: String,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs `nmem remember`.
pub fn remember(args: &RememberArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let redactor = redactor(&config)?;
    let place = args.project.find(&folder, &config, Some(&store));
    let project = match (&place.row, &place.id) {
        (Some(row), _) => Some(row.id),
        (None, Some(id)) => Some(store.ensure_project(&redactor.clean(id.clone()), environment::now())?),
        (None, None) => {
            return Err(UserError::new(NO_PROJECT, "change into a project folder").into());
        }
    };
    let mut fields = if args.stdin { json_from_stdin()? } else { Map::new() };
    fields.extend(args.fields.fields(folder.to_str(), &config));
    if let Some(kind) = &args.kind {
        fields.insert("kind".into(), Value::from(kind.clone()));
    }
    if !args.text.is_empty() {
        fields.insert("title".into(), Value::from(args.text.join(" ")));
    }
    let own = project.map(|project| store.domain_of_project(project)).transpose()?.flatten();
    let (name, text) = own.unwrap_or((config.domain.value.clone().unwrap_or_default(), None));
    let domain = domains::of(Some(&name), text.as_deref());
    let draft = Draft { provenance: words_of(), ..knowledge::draft(&fields, &domain, environment::now())? };
    let pin = args.pin || fields.get("pin") == Some(&Value::from(true));
    if pin {
        only_by_person()?;
    }
    let id = knowledge::remember(&mut store, &redactor, draft, project, pin)?;
    let memory = store.memory_by_row(id)?.context("the memory is gone again")?;
    match args.json {
        true => output::print(&memory_text::json(&memory).to_string()),
        false => {
            let word = line(memory_text::word(&memory), 40);
            output::say(&format!(
                "Remembered as m{id} ({word}){}: {}",
                if pin { ", pinned" } else { "" },
                line(&memory.title, 100)
            ))
        }
    }
}

/// Runs `nmem edit`.
pub fn edit(args: &EditArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let memory = memory(&store, &args.id)?;
    if args.private || args.public {
        set_private(&mut store, &memory, args.private)?;
        if args.fields.fields(None, &config).is_empty() && args.title.is_none() && !args.stdin {
            return Ok(());
        }
    }
    let mut changes = if args.stdin { json_from_stdin()? } else { Map::new() };
    changes.extend(args.fields.fields(folder.to_str(), &config));
    if let Some(title) = &args.title {
        changes.insert("title".into(), Value::from(title.clone()));
    }
    if changes.is_empty() && !args.stdin {
        return edit_in_editor(&mut store, &config, &memory);
    }
    change(&mut store, &config, &memory, changes)
}

fn set_private(store: &mut Store, memory: &MemoryRow, private: bool) -> Result<()> {
    if memory.provenance == Provenance::Team {
        let what = format!("m{} is somebody else's memory", memory.id);
        return Err(UserError::new(what, "only the person who shared it can make it private").into());
    }
    if !private && environment::is_run_by_agent() {
        return Err(UserError::new("agents cannot share a private memory", "run the command in a terminal of your own").into());
    }
    store.set_private(&memory.uuid, private)?;
    output::say(&match private {
        true => format!(
            "m{} is private: a team never receives it. If it was sent before, the next `nmem sync` takes it back.",
            memory.id
        ),
        false => format!("m{} is no longer private.", memory.id),
    })
}

/// Runs `nmem pin` and `nmem unpin`.
pub fn pin(args: &PinArguments, pinned: bool) -> Result<()> {
    only_by_person()?;
    let (_, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let memory = memory(&store, &args.id)?;
    knowledge::pin(&mut store, &memory, pinned)?;
    let project = line(memory.project.as_deref().unwrap_or("its project"), 60);
    let fields = if pinned { format!("is pinned: every session in {project} receives it") } else { "is no longer pinned".into() };
    output::say(&format!("m{} {fields}.", memory.id))
}

/// Refuses an agent. A pinned memory is in every session start, so an agent that read a malicious page must not pin one.
fn only_by_person() -> Result<()> {
    output::only_by_person("pin memories", "nmem pin")
}

/// Runs `nmem supersede`.
pub fn supersede(args: &SupersedeArguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let (old, new) = (memory(&store, &args.old)?, memory(&store, &args.new)?);
    knowledge::supersede(&mut store, &old, &new)?;
    output::say(&format!("m{} is superseded by m{}.", old.id, new.id))
}

/// Runs `nmem done`.
pub fn done(args: &DoneArguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let ends = args.ids.iter().map(|id| open_end(&store, id)).collect::<Result<Vec<_>>>()?;
    let (ending, word) = match (args.reopen, args.drop) {
        (true, _) => (None, "is open again"),
        (_, true) => (Some(Ending::Dropped), "is dropped"),
        _ => (Some(Ending::Done), "is done"),
    };
    // What ended it by itself is worth keeping.
    let (known, open): (Vec<MemoryRow>, Vec<MemoryRow>) =
        ends.into_iter().partition(|end| end.has_ended() && ending == Some(Ending::Done));
    store.write(|tx| open.iter().try_for_each(|end| tx.set_ended(end.id, ending)))?;
    known.iter().try_for_each(|end| {
        let by = end.text("ended").filter(|by| by.starts_with('u')).map(|by| format!(" by {by}")).unwrap_or_default();
        output::say(&format!("m{} has ended{by} already: {}", end.id, line(&end.title, 100)))
    })?;
    open.iter().try_for_each(|end| output::say(&format!("m{} {word}: {}", end.id, line(&end.title, 100))))
}

fn open_end(store: &Store, id: &str) -> Result<MemoryRow> {
    let memory = memory(store, id)?;
    match memory.kind {
        MemoryKind::Open => Ok(memory),
        kind => Err(UserError::usage(
            format!("m{} is a memory of kind {kind}, and not an open end", memory.id),
            "`nmem units --open` lists what is open",
        )
        .into()),
    }
}

fn memory(store: &Store, id: &str) -> Result<MemoryRow> {
    match lookup::find(store, id)? {
        Some(StoredItem::Memory(memory)) => Ok(*memory),
        Some(_) => Err(UserError::usage(
            format!("{} is not a memory", line(id, 80)),
            "memories are m1, m2, …; `nmem search` prints them",
        )
        .into()),
        None => {
            Err(UserError::new(format!("nothing has the id {}", line(id, 80)), "`nmem search --kind memory` prints ids").into())
        }
    }
}

fn json_from_stdin() -> Result<MemoryFields> {
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(Stdin::within(STDIN)?, JSON_BYTES + 1), &mut text)?;
    if text.len() as u64 > JSON_BYTES {
        return Err(UserError::usage(format!("stdin has more than {JSON_BYTES} bytes"), "a memory should be a few lines").into());
    }
    object(&String::from_utf8_lossy(&text))
}

/// Maximum bytes of a memory as JSON.
pub const JSON_BYTES: u64 = 64 * 1024;

/// Opens a memory in the user's editor and stores the changes.
pub fn edit_in_editor(store: &mut Store, config: &Config, memory: &MemoryRow) -> Result<()> {
    let current = knowledge::editable(memory);
    let changes = in_editor(config, &current)?;
    if changes == current { output::say("Nothing was changed.") } else { change(store, config, memory, changes) }
}

/// Stores changed fields of a memory.
pub fn change(store: &mut Store, config: &Config, memory: &MemoryRow, changes: MemoryFields) -> Result<()> {
    knowledge::edit(store, &redactor(config)?, memory, changes, words_of())?;
    output::say(&format!("m{} was changed; rules and models will not change it again.", memory.id))
}

/// Returns the provenance of an argument of this command: the user on a terminal, unless an agent runs the command
/// there.
pub fn words_of() -> Provenance {
    if output::is_person() { Provenance::User } else { Provenance::Agent }
}

/// The fields of a memory in JSON.
pub fn object(text: &str) -> Result<MemoryFields> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(UserError::usage("not a JSON object", "give {\"title\": \"…\", …}").into()),
        Err(error) => Err(UserError::usage(format!("invalid JSON: {error}"), "give {\"title\": \"…\", …}").into()),
    }
}

/// Opens the fields in the user's editor, in a private temporary file next to the database.
fn in_editor(config: &Config, current: &MemoryFields) -> Result<MemoryFields> {
    let editor = environment::editor().filter(|_| std::io::stdin().is_terminal());
    let Some(editor) = editor else {
        return Err(UserError::usage(
            "no changes given",
            "give --title, --subtitle, …; in a terminal, $VISUAL or $EDITOR opens the memory",
        )
        .into());
    };
    let path = config.files.value.folder().join(format!("edit-{}.json", files::unique()));
    files::replace_private(&path, &format!("{}\n", serde_json::to_string_pretty(current)?))
        .with_context(|| format!("cannot write {}", path.display()))?;
    // The setting may contain options: `code --wait`.
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or("vi")).args(words).arg(&path).status();
    let text = files::whole_text(&path, JSON_BYTES);
    let _ = std::fs::remove_file(&path);
    let status = status.with_context(|| format!("cannot start {editor}"))?;
    if !status.success() {
        return Err(UserError::new(format!("{editor} ended with {status}"), "nothing was changed").into());
    }
    object(&text?)
}

/// Kinds of memories in a review.
const REVIEWED: [MemoryKind; 3] = [MemoryKind::Decision, MemoryKind::Lesson, MemoryKind::Open];
/// Maximum decisions, lessons and open ends in one review.
const MAX_REVIEWED: usize = 500;

/// The questions about an open end, and about any other memory.
const OF_OPEN: &str = "done, keep, edit, pin, forget, next, quit [d/k/e/p/f/n/q/?]";
const OF_OTHER: &str = "keep, edit, pin, forget, next, quit [k/e/p/f/n/q/?]";

/// Help text for the possible answers.
const CHOICES: &str = "k  keep it as it is: rules and models will not change it
e  edit it in $VISUAL or $EDITOR
p  pin it: every session start includes it
f  mark it: nmem forgets it for good when the review ends, also by q
d  done: only for an open end
n  next; it comes again in the next review
q  quit, and forget what you marked";

/// Review new decisions, lessons and open ends one by one
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem review\n         nmem review --since 30d --json\n\nShows each decision, lesson and open end of the last seven days that nobody has checked yet, and asks whether to keep, edit, pin or forget it; an open end can also be marked as done. A memory that you keep, edit or pin does not come again."
)]
pub struct ReviewArguments {
    /// Only memories made after this time: 2026-11-01, 7d, 12h, yesterday
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: String,
    /// Only list them, as one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn review(args: &ReviewArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let since = time::parse(&args.since, environment::now());
    let since = since.map_err(|error| UserError::usage(error, "see `nmem review --help`"))?;
    let store = open(&config)?;
    let place = args.project.find(&folder, &config, store.as_ref());
    if place.name().is_none() {
        return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --project DIR").into());
    }
    let found = match (&store, &place.row) {
        (Some(store), Some(row)) => store.newest_memories(row.id, &REVIEWED, MAX_REVIEWED)?,
        _ => Vec::new(),
    };
    let is_over = |memory: &MemoryRow| memory.kind == MemoryKind::Open && !memory.is_open();
    let is_new =
        |memory: &MemoryRow| memory.created_at >= since && !is_checked(memory) && !memory.is_of_team() && !is_over(memory);
    let due: Vec<MemoryRow> = found.into_iter().filter(is_new).collect();
    if args.json {
        return due.iter().try_for_each(|memory| output::print(&memory_text::json(memory).to_string()));
    }
    if due.is_empty() {
        let since = line(&args.since, 40);
        return output::say(&format!(
            "Nothing to review: no unchecked decision, lesson or open end is newer than {since} (--since)."
        ));
    }
    if environment::is_run_by_agent() || !std::io::stdin().is_terminal() {
        let what = "a review needs a person at a terminal";
        return Err(UserError::new(what, "`nmem review --json` lists the memories").into());
    }
    drop(store);
    let mut store = writable(&config)?;
    let forgotten = ask(&mut store, &config, &due)?;
    forget_all(&mut store, &config, &forgotten)
}

/// Whether a person wrote, kept, edited or pinned a memory. A memory that an agent wrote by hand is not checked yet.
fn is_checked(memory: &MemoryRow) -> bool {
    let is_agents = memory.made_by == Maker::Hand && memory.provenance == Provenance::Agent;
    memory.pinned || memory.by_hand && !is_agents
}

/// Asks about each memory; returns those to forget.
fn ask(store: &mut Store, config: &Config, due: &[MemoryRow]) -> Result<Vec<String>> {
    let mut forgotten = Vec::new();
    for (n, memory) in due.iter().enumerate() {
        output::say(&format!("{} of {}", n + 1, due.len()))?;
        output::say(memory_text::whole(memory, None, false, output::style()).trim_end())?;
        loop {
            // End of input means quit.
            let is_open = memory.kind == MemoryKind::Open;
            let question = if is_open { OF_OPEN } else { OF_OTHER };
            match output::ask(question)?.as_deref().unwrap_or("q") {
                "d" | "done" if is_open => store.write(|tx| tx.set_ended(memory.id, Some(Ending::Done)))?,
                "k" | "keep" => knowledge::keep(store, memory)?,
                "n" | "next" => {}
                "f" | "forget" => forgotten.push(memory_text::id(memory)),
                "q" | "quit" => return Ok(forgotten),
                "p" | "pin" => {
                    if let Err(error) = knowledge::pin(store, memory, true) {
                        output::complain(&explain(&error));
                        continue;
                    }
                }
                "e" | "edit" => {
                    if let Err(error) = edit_in_editor(store, config, memory) {
                        output::complain(&explain(&error));
                        continue;
                    }
                }
                _ => {
                    output::say(CHOICES)?;
                    continue;
                }
            }
            break;
        }
    }
    Ok(forgotten)
}

fn forget_all(store: &mut Store, config: &Config, ids: &[String]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let plan = ForgetPlan::of(store, forgetting::rows_of(store, ids)?)?;
    let progress = output::Progress::begin();
    let done = plan.carry_out(store, config, environment::now(), &mut |step| progress.say(step));
    drop(progress);
    done.map_err(|error| UserError::new(format!("{error:#}"), format!("fix the cause, then: nmem forget {}", ids.join(" "))))?;
    output::say(&format!("{} forgotten.", count(ids.len() as i64, "memory is", "memories are")))
}
