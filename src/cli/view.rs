//! The page for a browser: `nmem view` writes it to a self-contained file, `nmem serve` shows it live.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::config::environment;
use crate::error::{NO_PROJECT, UserError};
use crate::files;
use crate::model::LogLevel;
use crate::render::clean::line;
use crate::runtime::log_at;
use crate::view::{self, PageScope, Snapshot};
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
    let now = environment::now();
    let mut snapshot = Snapshot::whole(&store, &scope, now)?;
    if !args.all {
        snapshot = snapshot.with_current_state(&store, &config, &folder, now);
    }
    let html = view::file(&snapshot)?;
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
                log_at(LogLevel::Info, &format!("no browser could be started: {error}"));
                output::warn("no browser could be started: open the file yourself");
            }
        }
    }
    Ok(())
}

/// `nmem serve`: the page live, and the RAD protocol over HTTP.
#[cfg(feature = "serve")]
pub mod live {
    use crate::cli::output;
    use crate::cli::project_argument::{ProjectArgument, open};
    use crate::config::environment;
    use crate::error::{NO_PROJECT, UserError};
    use crate::model::Provenance;
    use crate::server::{self, Served, Server};
    use crate::view::PageScope;
    use anyhow::Result;
    use std::io::{BufRead, IsTerminal};

    /// Serve the page live, and the RAD protocol over HTTP, until Ctrl-C
    #[derive(Debug, clap::Args)]
    #[command(
        after_help = "Example: nmem serve\n         curl -H \"Authorization: Bearer $(nmem serve --print-token)\" http://127.0.0.1:38888/api/search?query=tokens\n\nIt listens on this machine only (127.0.0.1). The first line is a URL that opens the page once; press Enter for another one. On the page you can edit, pin, supersede and forget memories. Nothing depends on it: hooks record the same without it."
    )]
    pub struct ServeArguments {
        /// The port; 0 for a free one
        #[arg(long, value_name = "PORT", default_value_t = 38888)]
        port: u16,
        /// Do not open a browser
        #[arg(long)]
        no_open: bool,
        /// Print the token for programs, and exit
        #[arg(long)]
        print_token: bool,
        /// Show all projects
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        project: ProjectArgument,
    }

    /// Runs the command.
    pub fn run(args: &ServeArguments) -> Result<()> {
        let (folder, config) = args.project.config()?;
        if args.print_token {
            return output::print(&server::bearer_token(&config)?);
        }
        // Migrates and drains before the first request has to wait for it.
        let store = open(&config)?;
        if PageScope::of(&config, &folder, args.all, store.as_ref()).is_none() {
            return Err(UserError::new(NO_PROJECT, "change into a project folder, or use --all").into());
        }
        let editor = if environment::is_run_by_agent() { Provenance::Agent } else { Provenance::User };
        let server = Server::bind(args.port, Served { folder, config, all: args.all, editor })?;
        let url = server.launch_url();
        output::print(&url)?;
        if !args.no_open
            && std::io::stdout().is_terminal()
            && let Err(error) = ::open::that_detached(&url)
        {
            output::warn(&format!("no browser could be started ({error}); open the address yourself"));
        }
        if std::io::stdin().is_terminal() {
            let launch = server.launcher();
            let offer = move || std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|_| output::print(&launch()));
            std::thread::Builder::new().name("launch".into()).spawn(offer)?;
        }
        server.run()
    }
}
