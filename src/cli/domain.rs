//! `nmem domain`: shows or sets the kind of work that a project is, which decides what nmem remembers about it.

use super::output;
use super::project_argument::{ProjectArgument, open, writable};
use crate::config::environment;
use crate::domains;
use crate::error::{NO_PROJECT, UserError};
use crate::files;
use crate::model::{Domain, DomainText, Term};
use crate::render::clean::line;
use crate::runtime::{FolderProject, redactor};
use crate::store::Store;
use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Show or set what kind of work a project is: coding, research, …
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example: nmem domain set emails\n         nmem domain show coding --toml > cooking.toml\n         nmem domain check cooking.toml && nmem domain set cooking.toml\n\nA domain defines the types, concepts and fields of observations, and the sections of summaries. The domain set for the project applies, else the built-in one named in its .nmem.toml, else coding."
)]
pub struct DomainArguments {
    #[command(subcommand)]
    command: DomainCommand,
}

#[derive(Debug, Subcommand)]
enum DomainCommand {
    /// List the built-in domains and this project's
    #[command(after_help = "Example: nmem domain list")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Show a domain: its types, concepts, fields and summary sections
    #[command(after_help = "Example: nmem domain show\n         nmem domain show emails --toml > mine.toml")]
    Show {
        /// A built-in domain [default: this project's]
        name: Option<String>,
        /// Print one JSON object
        #[arg(long, conflicts_with = "toml")]
        json: bool,
        /// Print the TOML file, as a start for your own
        #[arg(long)]
        toml: bool,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Set this project's domain: a built-in one by name, or your own file
    #[command(
        after_help = "Example: nmem domain set books\n         nmem domain set cooking.toml\n\nExisting sessions keep their domain. The file is read once: set it again after changing it."
    )]
    Set {
        /// Name or file
        #[arg(value_name = "NAME|FILE")]
        domain: String,
        #[command(flatten)]
        project: ProjectArgument,
    },
    /// Check a domain file and print each problem with its line
    #[command(after_help = "Example: nmem domain check cooking.toml")]
    Check {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Runs the command.
pub fn run(args: &DomainArguments) -> Result<()> {
    match &args.command {
        DomainCommand::List { json, project } => list(*json, project),
        DomainCommand::Show { name, json, toml, project } => show(name.as_deref(), *json, *toml, project),
        DomainCommand::Set { domain, project } => set(domain, project),
        DomainCommand::Check { file } => check(file),
    }
}

/// A project's domain: name, TOML text and origin.
struct DomainContext {
    name: String,
    text: Option<String>,
    from: String,
}

fn here(project: &ProjectArgument) -> Result<DomainContext> {
    let (folder, config) = project.config()?;
    let store = open(&config)?;
    let place = project.find(&folder, &config, store.as_ref());
    let own = match (&store, &place.row) {
        (Some(store), Some(row)) => store.domain_of_project(row.id)?,
        _ => None,
    };
    Ok(match (own, config.domain.value) {
        (Some((name, text)), _) => DomainContext { name, text, from: "set for this project".into() },
        (None, Some(name)) if domains::text(&name).is_some() => {
            DomainContext { name, text: None, from: config.domain.source.to_string() }
        }
        (None, Some(name)) => DomainContext {
            name: domains::DEFAULT.into(),
            text: None,
            from: format!("default; {} names {}, which is not built in", config.domain.source, line(&name, 40)),
        },
        (None, None) => DomainContext { name: domains::DEFAULT.into(), text: None, from: "default".into() },
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
        output::entry(&text, json)?;
    }
    Ok(())
}

fn show(name: Option<&str>, json: bool, toml: bool, project: &ProjectArgument) -> Result<()> {
    let (text, from) = match name {
        Some(name) => {
            let text = domains::text(name).ok_or_else(|| {
                let known = domains::names().collect::<Vec<_>>().join(", ");
                UserError::usage(format!("{} is not a built-in domain", line(name, 60)), format!("built-in domains: {known}"))
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
        return output::print(text.trim_end());
    }
    let domain = domains::read(&text).map_err(|wrong| wrong_file("this domain", &wrong))?;
    if json {
        return output::print(&serde_json::to_string(&domain)?);
    }
    output::say(description(&domain, &from).trim_end())
}

fn description(domain: &Domain, from: &str) -> String {
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
    out += "\nsummary sections\n";
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
        "The domain of {project} is now {}: {}. Existing sessions keep their domain.",
        domain.name,
        line(&domain.about, 100)
    ))
}

/// The project's row, created if needed.
fn row(
    store: &mut Store,
    place: &FolderProject,
    clean: impl Fn(crate::model::ProjectId) -> crate::redact::Clean<crate::model::ProjectId>,
) -> Result<i64> {
    match (&place.row, &place.id) {
        (Some(row), _) => Ok(row.id),
        (None, Some(id)) => store.ensure_project(&clean(id.clone()), environment::now()),
        (None, None) => Err(UserError::new(NO_PROJECT, "change into a project folder").into()),
    }
}

fn check(file: &Path) -> Result<()> {
    let name = file.display().to_string();
    let text = read(file, &name)?;
    let domain = domains::read(&text).map_err(|wrong| wrong_file(&name, &wrong))?;
    refuse_built_in(&domain, &name)?;
    let (types, concepts, fields) = (domain.types.len(), domain.concepts.len(), domain.fields.len());
    output::say(&format!("{} is valid: {types} types, {concepts} concepts, {fields} custom fields.", line(&name, 200)))
}

fn refuse_built_in(domain: &Domain, file: &str) -> Result<()> {
    if domains::text(&domain.name).is_some() {
        let what = format!("{}: a custom domain cannot be called {}", line(file, 80), domain.name);
        return Err(UserError::usage(what, "give it a `name` that no built-in domain has").into());
    }
    Ok(())
}

fn read(file: &Path, name: &str) -> Result<String> {
    files::whole_text(file, domains::MOST_BYTES).map_err(|error| {
        let known = domains::names().collect::<Vec<_>>().join(", ");
        let what = format!("{} cannot be read as a domain file: {error}", line(name, 120));
        UserError::new(what, format!("built-in domains: {known}; `nmem domain show coding --toml` prints a file to start from"))
            .into()
    })
}

/// Lists all problems, one per line.
fn wrong_file(name: &str, wrong: &[String]) -> UserError {
    wrong.iter().for_each(|wrong| output::warn(&line(wrong, 400)));
    UserError::new(format!("{} is not valid", line(name, 200)), "fix it, then run `nmem domain check`")
}
