//! `nmem models`: adds, lists and removes embedding models that run in this process.

use super::output;
use crate::config::environment;
use crate::config::{self, Config};
use crate::error::UserError;
use crate::llm::local::{self, IS_BUILT, KNOWN, KnownModel, NOT_BUILT};
use crate::model::LocalModel;
use crate::render::clean::line;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Add, list and remove models for semantic search on this machine
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: nmem models add all-MiniLM-L6-v2\n         nmem models add ~/Downloads/multilingual-e5-small\n         nmem models list\n\nA model runs in nmem's own process; nothing is sent anywhere. `provider = \"local\"` in [embeddings] uses it."
)]
pub struct ModelsArguments {
    #[command(subcommand)]
    command: Option<ModelsCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ModelsCommand {
    /// List models, installed or not
    #[command(after_help = "Example: nmem models list")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model and check it, or copy one from a folder with model.onnx and tokenizer.json
    #[command(after_help = "Example: nmem models add all-MiniLM-L6-v2")]
    Add {
        /// A name from the list, or a folder
        #[arg(value_name = "NAME or DIR")]
        model: String,
    },
    /// Delete an installed model
    #[command(after_help = "Example: nmem models remove all-MiniLM-L6-v2")]
    Remove {
        /// Its name in the list
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// Runs the command.
pub fn run(args: &ModelsArguments) -> Result<()> {
    let config = config::load(&[])?;
    let folder = environment::models_folder()?;
    match &args.command {
        None => list(&config, &folder, false),
        Some(ModelsCommand::List { json }) => list(&config, &folder, *json),
        Some(ModelsCommand::Add { model }) => add(&config, &folder, model),
        Some(ModelsCommand::Remove { name }) => remove(&folder, name),
    }
}

fn list(config: &Config, folder: &Path, json: bool) -> Result<()> {
    let installed = local::installed(folder);
    let known = KNOWN.iter().map(|known| known.name.to_string());
    let others = installed.iter().filter(|name| KnownModel::named(name).is_none()).cloned();
    for name in known.chain(others) {
        let known = KnownModel::named(&name);
        let is_installed = installed.contains(&name);
        let is_used = config.embeddings.is_local() && config.embeddings.name() == name;
        let bytes = if is_installed { bytes_in(&folder.join(&name)) } else { known.map_or(0, KnownModel::bytes) };
        if json {
            let (languages, licence) = (known.map(|known| known.languages), known.map(|known| known.licence));
            let model = json!({"name": name, "installed": is_installed, "used": is_used, "bytes": bytes, "languages": languages, "licence": licence});
            output::print(&model.to_string())?;
            continue;
        }
        let state = match (is_installed, is_used) {
            (true, true) => "installed, in use",
            (true, false) => "installed",
            (false, _) => "not installed",
        };
        let about = known.map(|known| format!("; {}, {}", known.languages, known.licence)).unwrap_or_default();
        output::say(&format!("{}  {} MB, {state}{about}", line(&name, 60), bytes / 1_000_000))?;
    }
    if !IS_BUILT && !json {
        output::warn(&format!("{NOT_BUILT}; {HINT}"));
    }
    Ok(())
}

const HINT: &str = "install the release archive whose name ends in -local-model, or build with `--features local-model`";

fn add(config: &Config, folder: &Path, given: &str) -> Result<()> {
    if !IS_BUILT {
        return Err(UserError::new(NOT_BUILT, HINT).into());
    }
    let model = match KnownModel::named(given) {
        Some(known) => {
            let to = LocalModel { name: known.name.to_string(), folder: folder.join(known.name) };
            let progress = output::Progress::begin();
            let all = known.bytes() / 1_000_000;
            let mut say = |bytes: u64| progress.say(&format!("{}, {} of about {all} MB", known.name, bytes / 1_000_000));
            let agent = local::downloads(environment::proxy().as_deref(), environment::download_certificates().as_deref())?;
            whole(&to.folder, known.fetch(&to.folder, &agent, &mut say))?;
            to
        }
        None => copied(folder, given)?,
    };
    // A model that cannot be run is worse than none: searches would lose a second each.
    if let Err(refusal) = local::embed(&["a sentence".to_string()], &model) {
        fs::remove_dir_all(&model.folder).with_context(|| format!("cannot remove {}", model.folder.display()))?;
        return Err(
            UserError::new(refusal.what, "the model was not added; nmem runs ONNX sentence models of the BERT family").into()
        );
    }
    output::say(&format!("The model {} was added.", line(&model.name, 60)))?;
    if config.embeddings.is_local() && config.embeddings.name() == model.name {
        return output::say("`nmem distil --all` embeds the memories that exist; searches embed new ones.");
    }
    let named = if model.name == KNOWN[0].name { String::new() } else { format!("model = {:?}\n", model.name) };
    output::say(&format!("To use it, write into {}:\n\n[embeddings]\nprovider = \"local\"\n{named}", config.file.display()))
}

/// Copies a model from a folder, under the folder's name.
fn copied(folder: &Path, given: &str) -> Result<LocalModel> {
    let path = PathBuf::from(given);
    let unknown = || {
        UserError::usage(
            format!("{} is neither a known model nor a folder", line(given, 200)),
            "`nmem models list` lists the known ones",
        )
    };
    let from = if path.is_file() { path.parent().unwrap_or(Path::new(".")).to_path_buf() } else { path };
    let from = crate::files::canonical(&from).map_err(|_| unknown())?;
    if !from.is_dir() {
        return Err(unknown().into());
    }
    let name = from.file_name().and_then(|name| name.to_str()).ok_or_else(unknown)?.to_string();
    let to = LocalModel { folder: folder.join(&name), name };
    whole(&to.folder, local::copy(&from, &to.folder))?;
    Ok(to)
}

/// Removes a model's folder if files are missing in it after an error.
fn whole(folder: &Path, added: Result<()>) -> Result<()> {
    if added.is_err() && !local::is_installed(folder) {
        let _ = fs::remove_dir_all(folder);
    }
    added
}

fn remove(folder: &Path, name: &str) -> Result<()> {
    if !local::installed(folder).iter().any(|installed| installed == name) {
        let what = format!("the model {} is not installed", line(name, 60));
        return Err(UserError::new(what, "`nmem models list` shows which are").into());
    }
    let path = folder.join(name);
    fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    output::say(&format!("The model {} was removed. Its embeddings stay until memories change.", line(name, 60)))
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}
