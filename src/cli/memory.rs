//! `nmem remember`, `edit`, `pin`, `unpin`, `supersede`: what a person tells and mends.

use super::output;
use super::project_argument::{ProjectArgument, writable};
use super::stdin::Stdin;
use crate::config::{Config, environment};
use crate::domains;
use crate::error::Failure;
use crate::files;
use crate::knowledge::{self, Told};
use crate::lookup;
use crate::model::{Found, MemoryRow};
use crate::project;
use crate::render::clean::line;
use crate::render::memories;
use crate::runtime::redactor;
use crate::store::Store;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;

/// How long JSON on stdin is waited for.
const STDIN: Duration = Duration::from_secs(60);
/// Bytes of a memory as JSON.
const JSON_BYTES: u64 = 64 * 1024;

/// Remember something by hand
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem remember \"The staging database is rebuilt every Monday\" --concept gotcha --pin\n         nmem remember \"SQLite for the cache\" --kind decision --alternative Redis --reason \"one file, no server\" --confidence 0.8\n         nmem remember \"Run migrations before the tests\" --kind lesson --type warning --tag tests\n         echo '{\"title\": \"…\", \"facts\": [\"…\"]}' | nmem remember --stdin\n\nThe first line is the title, the rest its text. Secrets are redacted as everywhere."
)]
pub struct RememberArguments {
    /// What to remember
    #[arg(value_name = "TEXT", required_unless_present = "stdin")]
    text: Vec<String>,
    /// observation, decision, lesson, task or summary
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// Tell every session of it
    #[arg(long)]
    pin: bool,
    /// Read one JSON object from stdin, with these names and any of your own
    #[arg(long)]
    stdin: bool,
    /// Print the memory as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Fields that a memory can have.
#[derive(Debug, Default, clap::Args)]
struct Fields {
    /// Type: of the domain for an observation; approach, technology, architecture; success, failure, optimization, warning
    #[arg(long = "type", value_name = "TYPE")]
    kind_type: Option<String>,
    /// One sentence of 24 words at most
    #[arg(long, value_name = "TEXT")]
    subtitle: Option<String>,
    /// The whole story
    #[arg(long, value_name = "TEXT")]
    narrative: Option<String>,
    /// One thing that is so; may be given again
    #[arg(long, value_name = "TEXT")]
    fact: Vec<String>,
    /// A concept of the domain; up to five
    #[arg(long, value_name = "CONCEPT")]
    concept: Vec<String>,
    /// A file that it is about
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Of a decision: what was chosen
    #[arg(long, value_name = "TEXT")]
    chosen: Option<String>,
    /// Of a decision: what it was chosen over
    #[arg(long, value_name = "TEXT")]
    alternative: Vec<String>,
    /// Of a decision: why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Of a decision: how sure, from 0 to 1
    #[arg(long, value_name = "NUMBER")]
    confidence: Option<f64>,
    /// Of a lesson: a tag
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
}

impl Fields {
    /// By the names of the observation protocol and of the RAD memory specification; only what was given.
    fn told(&self, folder: Option<&str>, config: &Config) -> Told {
        let mut told = Map::new();
        let mut text = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                told.insert(name.into(), Value::from(value.clone()));
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
                told.insert(name.into(), Value::from(list.clone()));
            }
        }
        if let Some(confidence) = self.confidence {
            told.insert("confidence".into(), Value::from(confidence));
        }
        told
    }
}

/// Mend a memory: change what it says
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem edit m7 --subtitle \"since version 2 only\"\n         nmem edit m7\n\nWithout fields it opens the memory as JSON in $VISUAL or $EDITOR. No rule and no model changes it afterwards."
)]
pub struct EditArguments {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
    /// Another title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// Read the fields to change from stdin, as one JSON object; null empties one
    #[arg(long)]
    stdin: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Tell every session of a memory
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem pin m7")]
pub struct PinArguments {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Say that one memory no longer holds, and which one does instead
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem supersede m7 m31\n\nThe old one is no longer recalled or found; `nmem show` still shows it."
)]
pub struct SupersedeArguments {
    /// The memory that no longer holds
    #[arg(value_name = "OLD")]
    old: String,
    /// The memory that holds instead
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
            return Err(Failure::new("this folder is no project (the home folder and / never are one)", "change into one").into());
        }
    };
    let mut told = if args.stdin { json_from_stdin()? } else { Map::new() };
    told.extend(args.fields.told(folder.to_str(), &config));
    if let Some(kind) = &args.kind {
        told.insert("kind".into(), Value::from(kind.clone()));
    }
    if !args.text.is_empty() {
        told.insert("title".into(), Value::from(args.text.join(" ")));
    }
    let own = project.map(|project| store.domain_of_project(project)).transpose()?.flatten();
    let (name, text) = own.unwrap_or((config.domain.value.clone().unwrap_or_default(), None));
    let domain = domains::of(Some(&name), text.as_deref());
    let draft = knowledge::draft(&told, &domain, environment::now())?;
    let pin = args.pin || told.get("pin") == Some(&Value::from(true));
    let id = knowledge::remember(&mut store, &redactor, draft, project, pin)?;
    let memory = store.memory_by_row(id)?.context("the memory is gone again")?;
    match args.json {
        true => output::say(&memories::json(&memory).to_string()),
        false => {
            let word = line(memories::word(&memory), 40);
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
    let mut changes = if args.stdin { json_from_stdin()? } else { Map::new() };
    changes.extend(args.fields.told(folder.to_str(), &config));
    if let Some(title) = &args.title {
        changes.insert("title".into(), Value::from(title.clone()));
    }
    if changes.is_empty() && !args.stdin {
        let standing = knowledge::editable(&memory);
        changes = in_editor(&config, &standing)?;
        if changes == standing {
            return output::say("Nothing was changed.");
        }
    }
    knowledge::edit(&mut store, &redactor(&config)?, &memory, changes)?;
    output::say(&format!("m{} is changed; no rule changes it again.", memory.id))
}

/// Runs `nmem pin` and `nmem unpin`.
pub fn pin(args: &PinArguments, pinned: bool) -> Result<()> {
    let (_, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let memory = memory(&store, &args.id)?;
    knowledge::pin(&mut store, &memory, pinned)?;
    let project = line(memory.project.as_deref().unwrap_or("its project"), 60);
    let told = if pinned { format!("is pinned: every session in {project} is told of it") } else { "is no longer pinned".into() };
    output::say(&format!("m{} {told}.", memory.id))
}

/// Runs `nmem supersede`.
pub fn supersede(args: &SupersedeArguments) -> Result<()> {
    let (_, config) = args.project.config()?;
    let mut store = writable(&config)?;
    let (old, new) = (memory(&store, &args.old)?, memory(&store, &args.new)?);
    knowledge::supersede(&mut store, &old, &new)?;
    output::say(&format!("m{} no longer holds; m{} does instead.", old.id, new.id))
}

fn memory(store: &Store, id: &str) -> Result<MemoryRow> {
    match lookup::find(store, id)? {
        Some(Found::Memory(memory)) => Ok(*memory),
        Some(_) => {
            Err(Failure::usage(format!("{} is no memory", line(id, 80)), "memories are m1, m2, …; `nmem search` prints them")
                .into())
        }
        None => {
            Err(Failure::new(format!("nothing has the id {}", line(id, 80)), "`nmem search --kind memory` prints ids").into())
        }
    }
}

fn json_from_stdin() -> Result<Told> {
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(Stdin::within(STDIN)?, JSON_BYTES + 1), &mut text)?;
    if text.len() as u64 > JSON_BYTES {
        return Err(Failure::usage(format!("stdin holds more than {JSON_BYTES} bytes"), "a memory is a few lines").into());
    }
    object(&String::from_utf8_lossy(&text))
}

fn object(text: &str) -> Result<Told> {
    match serde_json::from_str(text) {
        Ok(Value::Object(told)) => Ok(told),
        Ok(_) => Err(Failure::usage("the JSON is no object", "give {\"title\": \"…\", …}").into()),
        Err(error) => Err(Failure::usage(format!("that is no JSON: {error}"), "give {\"title\": \"…\", …}").into()),
    }
}

/// Opens the fields in the person's editor. The file lies beside the database, private, and is gone afterwards.
fn in_editor(config: &Config, standing: &Told) -> Result<Told> {
    let editor = environment::editor().filter(|_| std::io::stdin().is_terminal());
    let Some(editor) = editor else {
        return Err(Failure::usage(
            "nothing is said to be changed",
            "give --title, --subtitle, …; in a terminal $VISUAL or $EDITOR opens it",
        )
        .into());
    };
    let path = config.files.value.folder().join(format!("edit-{}.json", files::unique()));
    files::replace_private(&path, &format!("{}\n", serde_json::to_string_pretty(standing)?))
        .with_context(|| format!("cannot write {}", path.display()))?;
    // The setting may hold options: `code --wait`.
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or("vi")).args(words).arg(&path).status();
    let text = files::whole_text(&path, JSON_BYTES);
    let _ = std::fs::remove_file(&path);
    let status = status.with_context(|| format!("cannot start {editor}"))?;
    if !status.success() {
        return Err(Failure::new(format!("{editor} ended with {status}"), "nothing was changed").into());
    }
    object(&text?)
}
