//! `nmem domain`: which kind of work a project is, and so what is remembered of it.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::environment;
use crate::domains;
use crate::error::Failure;
use crate::files;
use crate::model::{Domain, DomainText, Term};
use crate::render::clean::line;
use crate::runtime::{FolderProject, redactor};
use crate::store::Store;
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What kind of work a project is: list, show, set, check
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: nmem domain set emails\n         nmem domain show coding --toml > cooking.toml\n         nmem domain check cooking.toml && nmem domain set cooking.toml\n\nA domain says which types and concepts observations have, which fields of their own, and what a summary tells. The\nproject's own domain counts, else the built-in one that its .nmem.toml names, else coding."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the built-in domains, and which one this project has
    #[command(after_help = "Example: nmem domain list")]
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Show a domain: its types, concepts, fields and sections
    #[command(after_help = "Example: nmem domain show\n         nmem domain show emails --toml > mine.toml")]
    Show {
        /// A built-in domain [default: this project's]
        name: Option<String>,
        /// Print one JSON object
        #[arg(long, conflicts_with = "toml")]
        json: bool,
        /// Print the file, to begin one of your own from
        #[arg(long)]
        toml: bool,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Give this project a domain: a built-in one by its name, or a file of your own
    #[command(
        after_help = "Example: nmem domain set books\n         nmem domain set cooking.toml\n\nSessions that have begun keep theirs. The file is read once: set it again after changing it."
    )]
    Set {
        /// Name or file
        #[arg(value_name = "NAME|FILE")]
        domain: String,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Say what is wrong with a domain's file, with the lines
    #[command(after_help = "Example: nmem domain check cooking.toml")]
    Check {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: &Arguments) -> Result<()> {
    match &args.command {
        Command::List { json, project } => list(*json, project),
        Command::Show { name, json, toml, project } => show(name.as_deref(), *json, *toml, project),
        Command::Set { domain, project } => set(domain, project),
        Command::Check { file } => check(file),
    }
}

/// A project's domain: its name, its own text, and where it comes from.
struct Here {
    name: String,
    text: Option<String>,
    from: String,
}

fn here(project: &ProjectArgument) -> Result<Here> {
    let (folder, config) = project.config()?;
    let store = open(&config)?;
    let place = project.find(&folder, &config, store.as_ref());
    let own = match (&store, &place.row) {
        (Some(store), Some(row)) => store.domain_of_project(row.id)?,
        _ => None,
    };
    Ok(match (own, config.domain.value) {
        (Some((name, text)), _) => Here { name, text, from: "set for this project".into() },
        (None, Some(name)) if domains::text(&name).is_some() => Here { name, text: None, from: config.domain.source.to_string() },
        (None, Some(name)) => Here {
            name: domains::DEFAULT.into(),
            text: None,
            from: format!("default; {} names {}, which is not built in", config.domain.source, line(&name, 40)),
        },
        (None, None) => Here { name: domains::DEFAULT.into(), text: None, from: "default".into() },
    })
}

fn list(json: bool, project: &ProjectArgument) -> Result<()> {
    let here = here(project)?;
    let style = output::style();
    let own = here.text.as_deref().map(|text| domains::of(None, Some(text)));
    let built_in = domains::names().filter_map(domains::built_in);
    for (domain, is_own) in built_in.map(|domain| (domain, false)).chain(own.map(|domain| (domain, true))) {
        let is_here = domain.name == here.name && is_own == here.text.is_some();
        let text = if json {
            json!({"name": domain.name, "about": domain.about, "built_in": !is_own, "here": is_here}).to_string()
        } else {
            let mark = if is_here { "*" } else { " " };
            let from = if is_here { style.faint(&format!(" ({})", here.from)) } else { String::new() };
            format!("{mark} {}  {}{from}", style.strong(&format!("{:<10}", domain.name)), line(&domain.about, 100))
        };
        output::say(&text)?;
    }
    Ok(())
}

fn show(name: Option<&str>, json: bool, toml: bool, project: &ProjectArgument) -> Result<()> {
    let (text, from) = match name {
        Some(name) => {
            let text = domains::text(name).ok_or_else(|| {
                let known = domains::names().collect::<Vec<_>>().join(", ");
                Failure::usage(format!("{} is no built-in domain", line(name, 60)), format!("there are {known}"))
            })?;
            (text.to_string(), "built in".to_string())
        }
        None => {
            let here = here(project)?;
            let text = here.text.or_else(|| domains::text(&here.name).map(String::from)).unwrap_or_default();
            (text, here.from)
        }
    };
    if toml {
        return output::say(text.trim_end());
    }
    let domain = domains::read(&text).map_err(|wrong| wrong_file("this domain", &wrong))?;
    if json {
        return output::say(&serde_json::to_string(&domain)?);
    }
    output::say(told(&domain, &from).trim_end())
}

fn told(domain: &Domain, from: &str) -> String {
    let style = output::style();
    let mut out = format!(
        "{}  {} {}\n",
        style.strong(&line(&domain.name, 40)),
        line(&domain.about, 120),
        style.faint(&format!("({from})"))
    );
    let width = style.width.saturating_sub(26).max(40);
    let mut terms = |title: &str, terms: &[Term]| {
        out += &format!("\n{title}\n");
        for term in terms {
            out += &format!("  {}  {}\n", style.strong(&format!("{:<22}", line(&term.name, 40))), line(&term.meaning, width));
        }
    };
    terms("types", &domain.types);
    terms("concepts", &domain.concepts);
    if !domain.fields.is_empty() {
        out += "\nfields\n";
        for field in &domain.fields {
            let name = format!("{:<22}", format!("{} ({})", line(&field.name, 40), field.kind));
            out += &format!("  {}  {}\n", style.strong(&name), line(&field.meaning, width));
        }
    }
    let sections = &domain.summary;
    out += "\na summary tells\n";
    for (name, text) in [
        ("request", &sections.request),
        ("investigated", &sections.investigated),
        ("learned", &sections.learned),
        ("completed", &sections.completed),
        ("next_steps", &sections.next_steps),
        ("notes", &sections.notes),
    ] {
        out += &format!("  {}  {}\n", style.strong(&format!("{name:<22}")), line(text, width));
    }
    if !domain.skip_tools.is_empty() {
        out += &format!("\npassed over: {}\n", line(&domain.skip_tools.join(", "), 200));
    }
    if !domain.ignore.is_empty() {
        out += &format!("not remembered: {}\n", line(&domain.ignore.join(", "), 200));
    }
    out
}

fn set(named: &str, project: &ProjectArgument) -> Result<()> {
    let text = match domains::text(named) {
        Some(_) => None,
        None => Some(read(Path::new(named), named)?),
    };
    let domain = match &text {
        Some(text) => domains::read(text).map_err(|wrong| wrong_file(named, &wrong))?,
        None => domains::built_in(named).unwrap_or_default(),
    };
    if text.is_some() {
        refuse_built_in(&domain, named)?;
    }
    let (folder, config) = project.config()?;
    let mut store = writable(&config)?;
    let redactor = redactor(&config)?;
    let place = project.find(&folder, &config, Some(&store));
    let row = row(&mut store, &place, |id| redactor.clean(id))?;
    let text = text.map(|text| redactor.clean(DomainText(text)));
    store.set_domain(row, Some((&domain.name, text.as_ref())), environment::now())?;
    let project = line(place.name().unwrap_or_default(), 60);
    output::say(&format!(
        "{project} is {} now: {}. Sessions that have begun keep what they had.",
        domain.name,
        line(&domain.about, 100)
    ))
}

/// The project's row, made where nothing is recorded of it yet.
fn row(
    store: &mut Store,
    place: &FolderProject,
    clean: impl Fn(crate::model::ProjectId) -> crate::redact::Clean<crate::model::ProjectId>,
) -> Result<i64> {
    match (&place.row, &place.id) {
        (Some(row), _) => Ok(row.id),
        (None, Some(id)) => store.ensure_project(&clean(id.clone()), environment::now()),
        (None, None) => {
            Err(Failure::new("this folder is no project (the home folder and / never are one)", "change into one").into())
        }
    }
}

fn check(file: &Path) -> Result<()> {
    let name = file.display().to_string();
    let text = read(file, &name)?;
    let domain = domains::read(&text).map_err(|wrong| wrong_file(&name, &wrong))?;
    refuse_built_in(&domain, &name)?;
    let (types, concepts, fields) = (domain.types.len(), domain.concepts.len(), domain.fields.len());
    output::say(&format!("{} is sound: {types} types, {concepts} concepts, {fields} fields of its own.", line(&name, 200)))
}

fn refuse_built_in(domain: &Domain, file: &str) -> Result<()> {
    if domains::text(&domain.name).is_some() {
        let what = format!("{}: a domain of your own can't be called {}", line(file, 80), domain.name);
        return Err(Failure::usage(what, "give it a `name` that no built-in one has").into());
    }
    Ok(())
}

fn read(file: &Path, name: &str) -> Result<String> {
    files::whole_text(file, domains::MOST_BYTES).map_err(|error| {
        let known = domains::names().collect::<Vec<_>>().join(", ");
        let what = format!("{} can't be read as a domain's file: {error}", line(name, 120));
        Failure::new(what, format!("built in are {known}; `nmem domain show coding --toml` prints a file to begin from")).into()
    })
}

/// Says all that is wrong, a line each.
fn wrong_file(name: &str, wrong: &[String]) -> Failure {
    wrong.iter().for_each(|wrong| output::warn(&line(wrong, 400)));
    Failure::new(format!("{} can't be used", line(name, 200)), "mend it, then `nmem domain check` it")
}
