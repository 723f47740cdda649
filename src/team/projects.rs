//! The shared projects, and the keys by which other machines know them.

use crate::config::Config;
use crate::model::{Share, SharedProject};
use crate::store::Store;
use crate::store::team::ProjectShare;
use anyhow::Result;
use std::path::Path;

/// Kinds of keys that are valid on every machine. Folders are excluded: they exist on one machine only.
const EVERYWHERE: [&str; 3] = ["repo:", "root:", "name:"];

/// Returns with whom a project is shared, and the source of the setting: `nmem project share`, or a folder rule.
pub fn share_of(config: &Config, said: &ProjectShare) -> (Share, &'static str) {
    match (said.share, config.shared_with(Path::new(&said.project.root))) {
        (Some(share), _) => (share, "nmem project share"),
        (None, Some(share)) => (share, "a [[folder]] rule"),
        (None, None) => (Share::None, "default"),
    }
}

/// Returns the shared projects.
pub fn shared(store: &Store, config: &Config) -> Result<Vec<SharedProject>> {
    let all = store.project_shares()?.into_iter().map(|said| {
        let (share, _) = share_of(config, &said);
        SharedProject { id: said.project.id, name: said.project.name.clone(), share, keys: keys(&said) }
    });
    Ok(all.filter(|project| project.share != Share::None).collect())
}

/// Returns the keys of a project for other machines. A project without a remote is known by its first commit, or else
/// by its name.
fn keys(said: &ProjectShare) -> Vec<String> {
    let holds = |key: &&String| EVERYWHERE.iter().any(|kind| key.starts_with(kind)) && !is_local(key);
    let keys: Vec<String> = said.keys.iter().filter(holds).cloned().collect();
    if keys.is_empty() { vec![format!("name:{}", said.project.name)] } else { keys }
}

/// Whether a key is a remote that is a folder on this machine.
fn is_local(key: &str) -> bool {
    key.strip_prefix("repo:").is_some_and(|url| url.starts_with(['/', '.', '~']) || url.starts_with("file:"))
}

/// Returns the local project that a change from another machine belongs to. A repository's URL is more specific than
/// its first commit, which forks share, and that is more specific than a name.
pub fn find<'a>(projects: &'a [SharedProject], keys: &[String]) -> Option<&'a SharedProject> {
    EVERYWHERE.iter().find_map(|kind| {
        let of_kind = |key: &&String| key.starts_with(kind);
        let theirs: Vec<&String> = keys.iter().filter(of_kind).collect();
        projects.iter().find(|project| project.keys.iter().any(|key| theirs.contains(&key)))
    })
}
