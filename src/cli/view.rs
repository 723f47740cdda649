//! `nmem view`: writes one page for a browser to a self-contained file.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::config::environment;
use crate::error::{NO_PROJECT, UserError};
use crate::files;
use crate::render::clean::line;
use crate::view::{PageScope, Snapshot, page};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Write what is remembered to one HTML page, and open it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem view\n         nmem view -o memory.html\n\nThe page holds everything it shows and loads nothing: timeline, memories with their sources, what agents received, files, failures, cost. It is as private as your work: only you can read the file. `nmem serve` shows the same page live, and can change memories."
)]
pub struct ViewArguments {
    /// Write the page to FILE (- for stdout) and do not open it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show all projects
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &ViewArguments) -> Result<()> {
    let (folder, config) = args.project.config()?;
    let store = open(&config)?;
    let scope = PageScope::of(&config, &folder, args.all, store.as_ref());
    let scope = scope.ok_or_else(|| UserError::new(NO_PROJECT, "change into a project folder, or use --all"))?;
    let Some(store) = store.filter(|_| scope.is_recorded()) else {
        let what = format!("nothing is recorded for {} yet", line(&scope.name, 60));
        return Err(UserError::new(what, "`nmem project list` lists what is recorded; --all shows every project").into());
    };
    let progress = output::Progress::begin();
    progress.say("writing the page");
    let html = page::file(&Snapshot::whole(&store, &scope, environment::now())?)?;
    drop(progress);
    match &args.output {
        Some(to) if to == Path::new("-") => return output::print(&html),
        Some(to) => {
            // The page is written under another name and renamed, so a pipe or a device would be replaced by a file.
            if to.exists() && !to.is_file() {
                let what = format!("{} is not a regular file", to.display());
                return Err(UserError::new(what, "`nmem view -o -` prints the page").into());
            }
            files::replace_private(to, &html).with_context(|| format!("cannot write {}", to.display()))?;
            output::say(&format!("Wrote {}", to.display()))?;
        }
        None => {
            let to = store.files().page();
            files::replace_private(&to, &html).with_context(|| format!("cannot write {}", to.display()))?;
            output::say(&format!("Wrote {}", to.display()))?;
            if let Err(error) = ::open::that_detached(&to) {
                output::warn(&format!("no browser could be started ({error}); open the file yourself"));
            }
        }
    }
    Ok(())
}
