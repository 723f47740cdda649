//! `nmem search`: full-text search over memories, prompts, units and tool uses.

use super::output;
use super::project_argument::{BranchArgument, ProjectArgument, open};
use crate::config::{self, environment};
use crate::distil::embed;
use crate::domains;
use crate::error::UserError;
use crate::index_text::query_terms;
use crate::model::{DECISION_TYPES, Filter, Grade, HitKind, LESSON_TYPES, MemoryKind, Platform, TASK_KINDS};
use crate::project;
use crate::recall::{self, Searched};
use crate::render::clean::line;
use crate::render::{results, time};
use crate::runtime::redactor;
use crate::store::Store;
use crate::store::query::Query;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use strsim::osa_distance;

/// Search memories, prompts, work units and tool uses
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem search login \"query string\" -logout\n         nmem search --type bugfix --file login.rs --since 30d\n\nMatches any of the words, best match first; \"a phrase\", -not and prefix* are understood. Without words, lists the newest."
)]
pub struct SearchArguments {
    /// Words to search for; any of them may match
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Excluded word: `-word` on the command line
    #[arg(long = "not", value_name = "WORD", hide = true)]
    unwanted: Vec<String>,
    /// Kinds to search; memory includes observation, summary, decision, lesson, task and entity (records of other
    /// programs) [default: every kind that the other options allow]
    #[arg(long, value_delimiter = ',', value_name = "KIND")]
    kind: Vec<KindArgument>,
    /// Only memories and tool uses about this file
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Only memories of this type: bugfix, feature, discovery, …
    #[arg(long = "type", value_name = "TYPE")]
    kind_type: Option<String>,
    /// Only memories with this concept: gotcha, how-it-works, …
    #[arg(long, value_name = "CONCEPT")]
    concept: Option<String>,
    /// Only results from this agent
    #[arg(long, value_name = "NAME", value_parser = platform)]
    platform: Option<Platform>,
    /// Only results after this time: 2026-11-01, 7d, 12h, yesterday
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only results before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    branch: BranchArgument,
    /// Search all projects
    #[arg(long, visible_alias = "all-projects")]
    all: bool,
    /// Results to show; 0 for all
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = SearchFormat::Text)]
    format: SearchFormat,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindArgument {
    Memory,
    Observation,
    Summary,
    Decision,
    Lesson,
    Tried,
    Open,
    Task,
    Entity,
    Unit,
    Prompt,
    Tool,
}

impl KindArgument {
    /// The kind of memory of that name; `None` for other rows.
    fn memory(self) -> Option<MemoryKind> {
        MemoryKind::from_name(self.to_possible_value()?.get_name())
    }

    fn hit(self) -> HitKind {
        match self {
            KindArgument::Unit => HitKind::Unit,
            KindArgument::Prompt => HitKind::Prompt,
            KindArgument::Tool => HitKind::Tool,
            _ => HitKind::Memory,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SearchFormat {
    Text,
    Full,
    Json,
    Md,
}

/// Letters by which an unknown option may differ from the one that it is taken for.
const CLOSE: usize = 2;
/// Maximum results for `--limit 0`.
const ALL: usize = 100_000;

fn platform(name: &str) -> Result<Platform, String> {
    let known: Vec<&str> = Platform::ALL.iter().map(|p| p.name()).collect();
    Platform::from_name(name).ok_or_else(|| format!("known are: {}", known.join(", ")))
}

/// Turns `-word` into `--not=word` before clap mistakes it for an option, and an unknown `--word` into a search word,
/// with a note.
pub fn with_negations(args: Vec<OsString>) -> Vec<OsString> {
    let known: Vec<String> = SearchArguments::augment_args(clap::Command::new("search"))
        .get_arguments()
        .flat_map(|argument| argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten()))
        .map(String::from)
        .chain(["help".to_string()])
        .collect();
    let unknown = |arg: &OsString| {
        let word = arg.to_str()?.strip_prefix("--").filter(|word| word.starts_with(char::is_alphanumeric))?;
        let name = word.split('=').next().unwrap_or(word);
        if known.iter().any(|option| option == name) {
            return None;
        }
        let near = known.iter().filter(|option| *option != "not").min_by_key(|option| osa_distance(option, name))?;
        let near = Some(near).filter(|near| osa_distance(near, name) <= CLOSE);
        let near = near.map(|near| format!("; the nearest option is --{near}")).unwrap_or_default();
        output::warn(&format!("--{name} is no option of search and was searched as a word{near}"));
        Some(OsString::from(word))
    };
    let negated = |arg: &OsString| {
        let word = arg.to_str()?.strip_prefix('-')?;
        // A single letter is an option, with or without its value: `-n 5`, `-n5`.
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        let is_option = first.is_ascii() && rest.bytes().all(|b| b.is_ascii_digit());
        let is_word = !word.is_empty() && !word.starts_with('-') && !is_option;
        is_word.then(|| OsString::from(format!("--not={word}")))
    };
    let mut plain = false;
    let mut word = |arg: OsString| {
        plain |= arg == "--";
        if plain { arg } else { negated(&arg).or_else(|| unknown(&arg)).unwrap_or(arg) }
    };
    args.into_iter().map(&mut word).collect()
}

/// Returns the query as one text. An argument with white space was quoted on purpose, so it is a phrase.
fn query(args: &SearchArguments) -> String {
    let phrase = |word: &String| match args.query.len() > 1 && word.contains(char::is_whitespace) && !word.contains('"') {
        true => format!("\"{word}\""),
        false => word.clone(),
    };
    let wanted = args.query.iter().map(phrase);
    let unwanted = args.unwanted.iter().map(|word| format!("-\"{}\"", word.replace('"', "")));
    wanted.chain(unwanted).collect::<Vec<_>>().join(" ")
}

/// Runs the command.
pub fn run(args: &SearchArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let json = args.json || args.format == SearchFormat::Json;
    let place = args.project.find(&folder, &config, store.as_ref());
    let (Some(store), false) = (store, place.scope().is_none() && place.id.is_some() && !args.all) else {
        if !json {
            let name = place.name().unwrap_or("this machine");
            output::warn(&format!("nothing is recorded for {name} yet; --all searches all projects"));
        }
        return Ok(());
    };
    let now = environment::now();
    let time = |text: &Option<String>| {
        text.as_deref().map(|t| time::parse(t, now)).transpose().map_err(|e| UserError::usage(e, "see `nmem search --help`"))
    };
    if let Some(given) = &args.kind_type {
        check_type(&store, place.row.as_ref().map(|row| row.id), given)?;
    }
    let filter = Filter {
        // A folder without a project has no data of its own, so everything is searched.
        scope: place.scope().filter(|_| !args.all).unwrap_or_default(),
        platform: args.platform.map(|p| p.name().to_string()),
        since: time(&args.since)?,
        until: time(&args.until)?,
        file: args.file.as_deref().map(|f| path(f, args, &config)).transpose()?,
        kind_type: args.kind_type.clone(),
        concept: args.concept.clone(),
        memories: memories(args),
        without_session: None,
        asked_at: Some(now),
    };
    let text = query(args);
    if args.query.is_empty() && !args.unwanted.is_empty() {
        return Err(UserError::usage("a search needs at least one word that is not excluded", "see `nmem search --help`").into());
    }
    let limit = if args.limit == 0 { ALL } else { args.limit };
    let embedding = |text: &str| {
        let redactor = redactor(&config).ok().filter(|_| config.embeddings.is_on())?;
        embed::of_query(&config, &redactor, text)
    };
    let on_branch = args.branch.sessions(&store, &folder, &config)?;
    let most = if on_branch.is_some() { ALL } else { limit };
    let mut found = recall::search(&store, &text, &kinds(args), &filter, most, &embedding)?;
    if let Some(on_branch) = on_branch {
        let is_on = |platform: &str, session: &str| {
            Platform::from_name(platform).is_some_and(|platform| on_branch.contains(&(platform, session.to_string())))
        };
        found.hits.retain(|hit| is_on(&hit.platform, &hit.session));
        found.total = found.hits.len();
        found.hits.truncate(limit);
        found.grade = found.grade.filter(|_| !found.hits.is_empty());
    }
    if let Some(corrected) = found.corrected.as_ref().filter(|_| !json) {
        output::warn(&format!("no results for {}; showing results for {corrected}", Query::parse(&text).sought()));
    }
    if found.grade == Some(Grade::Weak) && !json {
        output::say(output::style().faint(results::WEAK).as_str())?;
    }
    let all_projects = filter.scope.projects.len() != 1;
    print(args, &found, &query_terms(&args.query.join(" ")), json, all_projects)?;
    if json && found.hits.is_empty() && !args.query.is_empty() {
        output::print(&results::nothing_json().to_string())?;
    } else if !json && found.total == 0 {
        let is_about_calls = filter.file.is_some() || args.kind.iter().any(|kind| kind.hit() == HitKind::Tool);
        let gone = if is_about_calls { store.tool_uses_gone_until(&filter.scope)? } else { None };
        let sought = if args.query.is_empty() { String::new() } else { format!(" for {}", Query::parse(&text).sought()) };
        let help = if all_projects { "" } else { "; --all searches all projects" };
        output::warn(&format!("nothing found{sought}{}{help}", results::not_kept(gone)));
    } else if !json && found.total > limit {
        let at_least = if found.is_open_ended { " or more" } else { "" };
        output::warn(&format!("{limit} of {}{at_least}; --limit 0 for all", found.total));
    }
    Ok(())
}

/// Accepts the types of the project's domain, of decisions, lessons and tasks, and any type that a stored memory has.
fn check_type(store: &Store, project: Option<i64>, given: &str) -> Result<()> {
    let (name, config) = project.map(|id| store.domain_of_project(id)).transpose()?.flatten().unzip();
    let domain = domains::of(name.as_deref(), config.flatten().as_deref());
    let own = domain.types.iter().map(|term| term.name.as_str());
    let valid: Vec<&str> = own.chain(DECISION_TYPES).chain(LESSON_TYPES).chain(TASK_KINDS).collect();
    if valid.contains(&given) || store.has_memory_type(given)? {
        return Ok(());
    }
    let what = format!("no memory has the type {}", line(given, 60));
    Err(UserError::usage(what, format!("valid types: {}", valid.join(", "))).into())
}

fn kinds(args: &SearchArguments) -> Vec<HitKind> {
    let all = [HitKind::Memory, HitKind::Unit, HitKind::Prompt, HitKind::Tool];
    let chosen = |kind: &HitKind| args.kind.is_empty() || args.kind.iter().any(|argument| argument.hit() == *kind);
    all.into_iter().filter(chosen).collect()
}

/// Returns the requested kinds of memories; an empty list means all.
fn memories(args: &SearchArguments) -> Vec<MemoryKind> {
    match args.kind.contains(&KindArgument::Memory) {
        true => Vec::new(),
        false => args.kind.iter().filter_map(|kind| kind.memory()).collect(),
    }
}

/// A path as stored: relative to the root of the worktree.
fn path(file: &str, args: &SearchArguments, config: &config::Config) -> Result<String> {
    let folder = args.project.folder()?;
    // A bare name may be in any folder. Anything that looks like a path is relative to this one, even if the file no
    // longer exists.
    let is_path = file.starts_with(['.', '/']) || folder.join(file).exists();
    Ok(if is_path { project::relative(file, folder.to_str(), config.home.as_deref()) } else { file.to_string() })
}

fn print(args: &SearchArguments, found: &Searched, words: &[String], json: bool, all: bool) -> Result<()> {
    let style = output::style();
    for hit in &found.hits {
        let text = match args.format {
            _ if json => results::graded_json(hit, words, found.grade).to_string(),
            SearchFormat::Full => results::full(hit, words, style, all),
            SearchFormat::Md => results::markdown(hit, words),
            SearchFormat::Text | SearchFormat::Json => results::text(hit, words, style, all),
        };
        output::entry(&text, json || args.format == SearchFormat::Md)?;
    }
    Ok(())
}
