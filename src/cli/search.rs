//! `nmem search`: full-text search over memories, prompts, units and tool uses; with `-i`, while the user types.

use super::output;
use super::project_argument::{BranchArgument, ProjectArgument, open};
use crate::config::{self, Config, environment};
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
use std::collections::HashSet;
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
    /// Search while you type, on a terminal: open, copy, resume
    #[cfg(feature = "tui")]
    #[arg(short, long, conflicts_with_all = ["json", "format", "kind", "limit"])]
    interactive: bool,
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

/// All kinds of hits.
pub const ALL_KINDS: [HitKind; 4] = [HitKind::Memory, HitKind::Unit, HitKind::Prompt, HitKind::Tool];

/// A store to search, with the filter that the arguments make.
pub struct PreparedSearch {
    pub store: Store,
    pub config: Config,
    /// The project, for people.
    #[cfg(feature = "tui")]
    pub place: String,
    pub filter: Filter,
    on_branch: Option<HashSet<(Platform, String)>>,
}

impl PreparedSearch {
    /// Opens the store and checks the arguments; `None`, said as a note, if nothing is recorded.
    fn new(args: &SearchArguments) -> Result<Option<PreparedSearch>> {
        let (folder, config) = args.project.config()?;
        let store = open(&config)?;
        let place = args.project.find(&folder, &config, store.as_ref());
        let (Some(store), false) = (store, place.scope().is_none() && place.id.is_some() && !args.all) else {
            if !args.is_json() {
                let name = place.name().unwrap_or("this machine");
                output::warn(&format!("nothing is recorded for {name} yet; --all searches all projects"));
            }
            return Ok(None);
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
        let on_branch = args.branch.sessions(&store, &folder, &config)?;
        Ok(Some(PreparedSearch {
            store,
            config,
            #[cfg(feature = "tui")]
            place: place.name().unwrap_or("all projects").to_string(),
            filter,
            on_branch,
        }))
    }

    /// Searches; returns at most `limit` hits.
    pub fn find(&self, text: &str, kinds: &[HitKind], filter: &Filter, limit: usize) -> Result<Searched> {
        let embedding = |text: &str| {
            let redactor = redactor(&self.config).ok().filter(|_| self.config.embeddings.is_on())?;
            embed::of_query(&self.config, &redactor, text)
        };
        let most = if self.on_branch.is_some() { ALL } else { limit };
        let mut found = recall::search(&self.store, text, kinds, filter, most, &embedding)?;
        if let Some(on_branch) = &self.on_branch {
            let is_on = |platform: &str, session: &str| {
                Platform::from_name(platform).is_some_and(|platform| on_branch.contains(&(platform, session.to_string())))
            };
            // The grade is that of the best answer of all branches.
            let is_best_on = found.hits.first().is_some_and(|hit| is_on(&hit.platform, &hit.session));
            found.hits.retain(|hit| is_on(&hit.platform, &hit.session));
            found.total = found.hits.len();
            found.hits.truncate(limit);
            found.grade = found.grade.filter(|_| !found.hits.is_empty());
            if found.grade == Some(Grade::Strong) && !is_best_on {
                found.grade = Some(Grade::Weak);
            }
        }
        Ok(found)
    }
}

impl SearchArguments {
    /// The filters that are set, by name.
    fn filters(&self) -> Vec<&'static str> {
        let set = [
            ("--kind", !self.kind.is_empty()),
            ("--type", self.kind_type.is_some()),
            ("--concept", self.concept.is_some()),
            ("--file", self.file.is_some()),
            ("--platform", self.platform.is_some()),
            ("--since", self.since.is_some()),
            ("--until", self.until.is_some()),
            ("--branch", self.branch.is_set()),
        ];
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    fn is_json(&self) -> bool {
        self.json || self.format == SearchFormat::Json
    }
}

/// Runs the command.
pub fn run(args: &SearchArguments) -> Result<()> {
    let Some(search) = PreparedSearch::new(args)? else { return Ok(()) };
    let (text, json) = (query(args), args.is_json());
    #[cfg(feature = "tui")]
    if args.interactive {
        return screen::run(&search, text);
    }
    if args.query.is_empty() && !args.unwanted.is_empty() {
        return Err(UserError::usage("a search needs at least one word that is not excluded", "see `nmem search --help`").into());
    }
    let limit = if args.limit == 0 { ALL } else { args.limit };
    let found = search.find(&text, &kinds(args), &search.filter, limit)?;
    if let Some(corrected) = found.corrected.as_ref().filter(|_| !json) {
        output::warn(&format!("no results for {}; showing words that begin with {corrected}", Query::parse(&text).sought()));
    }
    if let Some(unknown) = results::unknown_words(&found.unknown).filter(|_| !json && !found.hits.is_empty()) {
        output::say(output::style().faint(&unknown).as_str())?;
    }
    if found.grade == Some(Grade::Weak) && !json {
        output::say(output::style().faint(results::WEAK).as_str())?;
    }
    let filter = &search.filter;
    let all_projects = filter.scope.projects.len() != 1;
    print(args, &found, &query_terms(&args.query.join(" ")), json, all_projects)?;
    if json && found.hits.is_empty() && !args.query.is_empty() {
        output::print(&results::nothing_json().to_string())?;
    } else if !json && found.total == 0 {
        let is_about_calls = filter.file.is_some() || args.kind.iter().any(|kind| kind.hit() == HitKind::Tool);
        let gone = if is_about_calls { search.store.tool_uses_gone_until(&filter.scope)? } else { None };
        let sought = if query_terms(&text).is_empty() { String::new() } else { format!(" for {}", Query::parse(&text).sought()) };
        let help = match (args.filters().as_slice(), all_projects) {
            ([], true) => String::new(),
            ([], false) => "; --all searches all projects".to_string(),
            (filters, _) => format!("; leave out {} to search more", filters.join(", ")),
        };
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
    let chosen = |kind: &HitKind| args.kind.is_empty() || args.kind.iter().any(|argument| argument.hit() == *kind);
    ALL_KINDS.into_iter().filter(chosen).collect()
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

/// The screen of `nmem search -i`: types a search, shows ranked passages, opens, copies, and resumes a session.
#[cfg(feature = "tui")]
mod screen {
    use crate::cli::output;
    use crate::cli::search::{ALL_KINDS, PreparedSearch};
    use crate::error::UserError;
    use crate::model::{Grade, Hit, HitKind, SearchScope};
    use crate::recall::Searched;
    use crate::render::clean::line;
    use crate::render::{results, time};
    use crate::{index_text, lookup};
    use anyhow::{Context, Result};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
    use ratatui::layout::{Constraint, Layout, Rect};
    use ratatui::style::{Color, Modifier, Style};
    use ratatui::text::{Line, Span, Text};
    use ratatui::widgets::{Paragraph, Wrap};
    use ratatui::{DefaultTerminal, Frame};
    use std::io::{self, IsTerminal, Write};
    use std::process::Command;
    use std::time::Duration;

    /// Hits to rank for each search.
    const HITS: usize = 50;
    /// Pause in typing after which a search begins.
    const PAUSE: Duration = Duration::from_millis(120);
    /// Columns from which the passage of the selected hit is shown beside the list.
    const WIDE: u16 = 100;
    const HELP: &str = "enter open · tab kind · ^A all projects · ^Y copy · ^R resume · esc quit";
    const OPEN_HELP: &str = "↑↓ scroll · ^Y copy · ^R resume · esc back";

    /// The kinds to choose from, by name; the first one is all.
    const KINDS: [(&str, &[HitKind]); 5] = [
        ("everything", &ALL_KINDS),
        ("memories", &[HitKind::Memory]),
        ("work units", &[HitKind::Unit]),
        ("prompts", &[HitKind::Prompt]),
        ("tool uses", &[HitKind::Tool]),
    ];

    /// The state of the screen.
    struct SearchScreen<'a> {
        search: &'a PreparedSearch,
        query: String,
        kind: usize,
        all_projects: bool,
        found: Searched,
        selected: usize,
        /// The opened hit as text, and the first line to show.
        open: Option<(String, u16)>,
        note: String,
        colour: bool,
        is_stale: bool,
    }

    /// Ways to leave the screen.
    enum Exit {
        Quit,
        /// Resumes the session of an item.
        Resume(String),
    }

    /// Runs the screen until the user leaves it.
    ///
    /// # Errors
    ///
    /// Input and output are not a terminal.
    pub fn run(search: &PreparedSearch, query: String) -> Result<()> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(UserError::usage("-i needs a terminal", "leave out -i, or add --json for programs").into());
        }
        let mut screen = SearchScreen {
            search,
            query,
            kind: 0,
            all_projects: search.filter.scope.is_all(),
            found: Searched::default(),
            selected: 0,
            open: None,
            note: String::new(),
            colour: output::style().colour,
            is_stale: true,
        };
        let mut terminal = ratatui::init();
        let exit = screen.run(&mut terminal);
        ratatui::restore();
        match exit? {
            Exit::Quit => Ok(()),
            Exit::Resume(id) => resume(&id),
        }
    }

    /// A query whose last word may go on: `grad` is searched as `grad*`.
    fn unfinished(query: &str) -> String {
        let last = query.rsplit(' ').next().unwrap_or_default();
        let may_go_on = last.chars().count() > 1 && last.chars().all(char::is_alphanumeric) && !query.contains('"');
        if may_go_on { format!("{query}*") } else { query.to_string() }
    }

    /// Opens the session of an item again, in this terminal.
    fn resume(id: &str) -> Result<()> {
        let this = std::env::current_exe().context("cannot determine the path of this binary")?;
        Command::new(this).args(["resume", id, "--run"]).status().context("cannot start nmem resume")?;
        Ok(())
    }

    impl SearchScreen<'_> {
        fn run(&mut self, terminal: &mut DefaultTerminal) -> Result<Exit> {
            loop {
                // What is typed meanwhile is searched for once.
                if self.is_stale && !event::poll(PAUSE)? {
                    self.find()?;
                }
                terminal.draw(|frame| self.draw(frame))?;
                if self.is_stale && !event::poll(Duration::ZERO)? {
                    continue;
                }
                if let Event::Key(key) = event::read()?
                    && key.kind != KeyEventKind::Release
                    && let Some(exit) = self.press(key)?
                {
                    return Ok(exit);
                }
            }
        }

        fn find(&mut self) -> Result<()> {
            let mut filter = self.search.filter.clone();
            if self.all_projects {
                filter.scope = SearchScope::default();
            }
            self.found = self.search.find(&unfinished(&self.query), KINDS[self.kind].1, &filter, HITS)?;
            (self.selected, self.is_stale) = (0, false);
            Ok(())
        }

        fn press(&mut self, key: KeyEvent) -> Result<Option<Exit>> {
            self.note.clear();
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('c' | 'd') if control => return Ok(Some(Exit::Quit)),
                KeyCode::Char('r') if control => return Ok(self.hit().map(|hit| Exit::Resume(results::id(hit)))),
                KeyCode::Char('y') if control => self.copy()?,
                KeyCode::Char('a') if control && self.open.is_none() => {
                    (self.all_projects, self.is_stale) = (!self.all_projects, true)
                }
                KeyCode::Char('u') if control && self.open.is_none() => self.change(String::clear),
                KeyCode::Up => self.move_by(-1),
                KeyCode::Down => self.move_by(1),
                KeyCode::Char('p') if control => self.move_by(-1),
                KeyCode::Char('n') if control => self.move_by(1),
                KeyCode::PageUp => self.move_by(-10),
                KeyCode::PageDown => self.move_by(10),
                KeyCode::Esc if self.open.is_some() => self.open = None,
                KeyCode::Esc => return Ok(Some(Exit::Quit)),
                KeyCode::Enter if self.open.is_none() => self.open = self.whole()?.map(|text| (text, 0)),
                KeyCode::Tab if self.open.is_none() => (self.kind, self.is_stale) = ((self.kind + 1) % KINDS.len(), true),
                KeyCode::BackTab if self.open.is_none() => {
                    (self.kind, self.is_stale) = ((self.kind + KINDS.len() - 1) % KINDS.len(), true);
                }
                KeyCode::Backspace if self.open.is_none() => {
                    self.change(|query| query.truncate(query.char_indices().next_back().map_or(0, |(at, _)| at)))
                }
                KeyCode::Char(letter) if self.open.is_none() && !control => self.change(|query| query.push(letter)),
                _ => {}
            }
            Ok(None)
        }

        fn change(&mut self, how: impl FnOnce(&mut String)) {
            how(&mut self.query);
            self.is_stale = true;
        }

        fn move_by(&mut self, by: i16) {
            match &mut self.open {
                Some((_, first)) => *first = first.saturating_add_signed(by),
                None => {
                    let last = self.found.hits.len().saturating_sub(1);
                    self.selected = self.selected.saturating_add_signed(isize::from(by)).min(last);
                }
            }
        }

        fn hit(&self) -> Option<&Hit> {
            self.found.hits.get(self.selected)
        }

        /// The selected hit with everything that is stored of it.
        fn whole(&self) -> Result<Option<String>> {
            let Some(hit) = self.hit() else { return Ok(None) };
            let store = &self.search.store;
            let found = lookup::find(store, &results::id(hit))?;
            found.map(|found| lookup::text(store, found, false, Default::default())).transpose()
        }

        /// Copies the passage by the terminal (OSC 52), which also works over SSH.
        fn copy(&mut self) -> Result<()> {
            let Some(hit) = self.hit() else { return Ok(()) };
            let text = self.passage(hit);
            self.note = format!("{} was copied, if the terminal allows it", results::id(hit));
            let mut out = io::stdout().lock();
            write!(out, "\u{1b}]52;c;{}\u{7}", STANDARD.encode(text))?;
            Ok(out.flush()?)
        }

        fn passage(&self, hit: &Hit) -> String {
            results::snippet(hit, &index_text::query_terms(&self.query), usize::MAX)
        }

        fn style(&self, colour: Color) -> Style {
            if self.colour { Style::new().fg(colour) } else { Style::new() }
        }

        fn draw(&self, frame: &mut Frame) {
            let [top, middle, bottom] =
                Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
            let place = if self.all_projects { "all projects" } else { self.search.place.as_str() };
            let kind = KINDS[self.kind].0;
            let head = Line::from(vec![
                Span::styled("search  ", Modifier::DIM),
                Span::styled(self.query.as_str(), Modifier::BOLD),
                Span::styled("▏", Modifier::DIM),
            ]);
            let count = match (&self.found.grade, self.found.hits.len()) {
                _ if self.is_stale => "…".to_string(),
                (_, 0) => "nothing".to_string(),
                (Some(Grade::Weak), n) => format!("no strong match; the nearest {n}"),
                (_, n) if n == HITS => format!("the best {n}"),
                (_, n) => n.to_string(),
            };
            let under = Line::styled(format!("{kind}, {place}: {count}"), Modifier::DIM);
            frame.render_widget(Text::from(vec![head, under]), top);
            let help = if self.open.is_some() { OPEN_HELP } else { HELP };
            let foot = if self.note.is_empty() { help } else { self.note.as_str() };
            frame.render_widget(Line::styled(foot, Modifier::DIM), bottom);
            match &self.open {
                Some((text, first)) => {
                    let lines: Vec<Line> = text.lines().map(|text| Line::raw(line(text, usize::MAX).to_string())).collect();
                    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((*first, 0)), middle);
                }
                None if middle.width >= WIDE => {
                    let [left, right] =
                        Layout::horizontal([Constraint::Percentage(55), Constraint::Percentage(45)]).spacing(2).areas(middle);
                    self.draw_list(frame, left);
                    let passage = self.hit().map(|hit| self.passage(hit)).unwrap_or_default();
                    frame.render_widget(Paragraph::new(passage).wrap(Wrap { trim: false }), right);
                }
                None => self.draw_list(frame, middle),
            }
        }

        /// Two lines for each hit; the selected one is always in sight.
        fn draw_list(&self, frame: &mut Frame, area: Rect) {
            let each = usize::from(area.height / 2).max(1);
            let first = (self.selected + 1).saturating_sub(each);
            let width = usize::from(area.width).saturating_sub(5);
            let mut lines = Vec::new();
            for (at, hit) in self.found.hits.iter().enumerate().skip(first).take(each) {
                let is_selected = at == self.selected;
                let mark = if is_selected { "> " } else { "  " };
                let project = hit.project.as_deref().filter(|_| self.all_projects).map(|name| format!("  {}", line(name, 30)));
                lines.push(Line::from(vec![
                    Span::styled(mark, self.style(Color::Yellow)),
                    Span::styled(results::id(hit), Modifier::BOLD),
                    Span::styled(format!("  {}  ", time::day(hit.at)), Modifier::DIM),
                    Span::raw(results::kind(hit)),
                    Span::styled(project.unwrap_or_default(), self.style(Color::Cyan)),
                ]));
                let text = Line::raw(format!("    {}", line(&self.passage(hit), width)));
                lines.push(if is_selected { text.patch_style(Modifier::REVERSED) } else { text });
            }
            frame.render_widget(Text::from(lines), area);
        }
    }
}
