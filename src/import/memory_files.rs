//! Memories of other programs: memory files of agents, and claude-mem.

use super::find::{FoundMemories, first_lines, has_lines};
use super::target::{AgentReport, Folder, ImportReport, OFF, Target, UNREADABLE};
use crate::config::environment;
use crate::config::pauses::{ProjectIdentity, RecordingPause};
use crate::domains;
use crate::files;
use crate::ingest::keep;
use crate::knowledge::entity::{self, Entry as Record};
use crate::model::{Entity, Millis, Platform, ProjectRow};
use crate::platforms::claude::past;
use crate::platforms::claude_mem;
use crate::redact::Redactor;
use crate::runtime::{self, Projects, Where};
use crate::store::imports::{ForeignDatabase, ImportedFile};
use crate::store::memory_rows::MemoryScope;
use crate::store::{PERSON_WAIT, Store};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Version of the readers. Raise it when a reader learns to find more than before.
const VERSION: i64 = 1;
/// Maximum bytes of a notes file.
const NOTES: u64 = 1 << 20;
/// The other program's name in the report.
const CLAUDE_MEM: &str = "claude-mem";
const NO_PROJECT: &str = "memory of a project that is not known here: import its sessions first";
const UNFIT: &str = "memory that is too large";

/// Imports the memories of all files.
pub fn import_memory_files(
    folder: &Folder,
    found: &[FoundMemories],
    target: &mut Target,
    report: &mut ImportReport,
) -> Result<()> {
    for file in found {
        let agent = report.agent(if file.is_notes { Platform::ClaudeCode.name() } else { CLAUDE_MEM });
        let name = file.path.display().to_string();
        let imported = ImportedFile {
            platform: if file.is_notes { Platform::ClaudeCode } else { Platform::Custom },
            version: VERSION,
            size: file.length,
            modified_at: file.modified_at,
            offset: 0,
            first_line: None,
        };
        // A database's size and modification time do not show changes: new rows may be only in its write-ahead log.
        if file.is_notes && target.files.get(&name) == Some(&imported) {
            agent.unchanged += 1;
            continue;
        }
        agent.files += 1;
        let done = if file.is_notes { of_notes(file, agent) } else { of_claude_mem(folder, file, &target.forgotten, agent) };
        match done {
            // The next import tries again: by then the project may be known, or recording may be on again.
            Ok(false) => {}
            Ok(true) => {
                Store::open(&folder.config.files.value, PERSON_WAIT)?.set_imported(&name, &imported, None)?;
                target.files.insert(name, imported);
            }
            Err(error) => {
                agent.counts.skip(UNREADABLE);
                agent.unreadable.push(format!("{error:#}"));
            }
        }
    }
    Ok(())
}

/// The user's recording settings for a project.
struct Allowed {
    folder: Folder,
    is_off: bool,
    places: Vec<ProjectIdentity>,
}

impl Allowed {
    fn new(cwd: &str) -> Result<Allowed> {
        let folder = Folder::new(Some(Path::new(cwd)))?;
        let projects = Projects { config: &folder.config, redactor: &folder.redactor };
        let at = Where { folders: [Some(cwd), None], ..Where::default() };
        let is_off = !folder.config.enabled.value || runtime::is_paused(&projects, &at, environment::now());
        let all: Vec<&RecordingPause> = folder.config.switches.off.iter().chain(&folder.past_pauses).collect();
        let places = runtime::places(&projects, &at, &all);
        Ok(Allowed { is_off, places, folder })
    }

    /// Returns true if recording was off for the project or the session at a time.
    fn was_paused(&self, session: Option<&str>, at: Millis) -> bool {
        let session = session.map(|id| (Platform::ClaudeCode, id));
        let mut all = self.folder.config.switches.off.iter().chain(&self.folder.past_pauses);
        all.any(|pause| pause.held(at) && pause.is_about(session, &self.places))
    }
}

/// Imports an agent's notes; returns true if they were read. The sessions next to them identify the project.
fn of_notes(file: &FoundMemories, agent: &mut AgentReport) -> Result<bool> {
    let text = files::whole_text(&file.path, NOTES).with_context(|| format!("cannot read {}", file.path.display()))?;
    let Some(cwd) = folder_of(&file.path) else {
        agent.counts.skip(NO_PROJECT);
        return Ok(false);
    };
    let allowed = Allowed::new(&cwd)?;
    let folder = &allowed.folder;
    if allowed.is_off {
        agent.counts.skip(OFF);
        return Ok(false);
    }
    if allowed.was_paused(None, file.modified_at) {
        agent.counts.skip(keep::PAUSED);
        return Ok(false);
    }
    let id = Projects { config: &folder.config, redactor: &folder.redactor }.identify(&cwd);
    let mut store = Store::open(&folder.config.files.value, PERSON_WAIT)?;
    let project = id.map(|id| store.ensure_project(&folder.redactor.clean(id), file.modified_at)).transpose()?;
    let home = MemoryScope { project, platform: Some(Platform::ClaudeCode.name()), ..MemoryScope::default() };
    let before = folder.redactor.replaced();
    let found = past::notes(&file.path, &redacted(&folder.redactor, text), file.modified_at);
    agent.secrets += folder.redactor.replaced() - before;
    let known = store.notes_of_file(&file.path.display().to_string())?;
    let forgotten = store.forgotten()?;
    let gone = known.iter().filter(|uuid| found.iter().all(|note| note.uuid.as_ref() != Some(*uuid)));
    store.delete_notes(&gone.collect::<Vec<_>>())?;
    let notes = found.into_iter().map(|entity| (entity, home)).collect();
    record(folder, &mut store, notes, &forgotten, agent)?;
    Ok(true)
}

/// The project's folder, taken from the sessions next to its notes.
fn folder_of(notes: &Path) -> Option<String> {
    let project = notes.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "memory"))?.parent()?;
    let sessions = fs::read_dir(project).ok()?.flatten().map(|entry| entry.path()).filter(|path| has_lines(path));
    sessions.take(5).find_map(|path| first_lines(&path).iter().find_map(|line| line["cwd"].as_str().map(String::from)))
}

/// Imports the memories in claude-mem's database; returns true if it was read. Its memories never change, so known ones
/// are skipped.
fn of_claude_mem(folder: &Folder, file: &FoundMemories, forgotten: &HashSet<Vec<u8>>, agent: &mut AgentReport) -> Result<bool> {
    let config = &folder.config;
    let database = ForeignDatabase::open(&file.path, config.files.value.folder())?;
    let sessions = claude_mem::sessions(&database.rows(claude_mem::SESSIONS)?);
    let mut store = Store::open(&config.files.value, PERSON_WAIT)?;
    let mut projects: HashMap<i64, ProjectRow> = HashMap::new();
    let mut by_name: HashMap<String, Vec<i64>> = HashMap::new();
    for (project, ..) in store.projects()? {
        by_name.entry(project.name.clone()).or_default().push(project.id);
        projects.insert(project.id, project);
    }
    let mut allowed: HashMap<i64, Allowed> = HashMap::new();
    let mut new = Vec::new();
    for table in claude_mem::TABLES {
        for mut row in database.rows(table)? {
            let (session, project) = claude_mem::place(&row, &sessions);
            let of_session = session.as_ref().map(|id| store.project_of(Platform::ClaudeCode, id)).transpose()?.flatten();
            let of_name = || by_name.get(project.as_ref()?).filter(|ids| ids.len() == 1).map(|ids| ids[0]);
            let Some(project) = of_session.map(|project| project.id).or_else(of_name) else {
                agent.counts.skip(NO_PROJECT);
                continue;
            };
            let allowed = match allowed.entry(project) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Allowed::new(&projects[&project].root)?),
            };
            // The project's own redaction patterns apply, too.
            let redactor = &allowed.folder.redactor;
            let before = redactor.replaced();
            for value in row.values_mut() {
                if let Value::String(text) = value {
                    *text = redacted(redactor, std::mem::take(text));
                }
            }
            let Some(entity) = claude_mem::memory(table, &row) else { continue };
            agent.saw(entity.at);
            if allowed.is_off {
                agent.counts.skip(OFF);
            } else if allowed.was_paused(session.as_deref(), entity.at) {
                agent.counts.skip(keep::PAUSED);
            } else {
                agent.secrets += redactor.replaced() - before;
                let home = MemoryScope { project: Some(project), platform: Some(CLAUDE_MEM), ..MemoryScope::default() };
                new.push((entity, home));
            }
        }
    }
    let known = store.known_uuids(new.iter().filter_map(|(entity, _)| entity.uuid.as_deref()))?;
    new.retain(|(entity, _)| entity.uuid.as_ref().is_none_or(|uuid| !known.contains(uuid)));
    record(folder, &mut store, new, forgotten, agent)?;
    Ok(true)
}

/// Returns a text without secrets. Titles are cut later, because a cut secret could not be found.
fn redacted(redactor: &Redactor, text: String) -> String {
    redactor.again(&text, false).map_or(text, |clean| clean.to_string())
}

/// Stores memories, except forgotten ones.
fn record(
    folder: &Folder,
    store: &mut Store,
    memories: Vec<(Entity, MemoryScope)>,
    forgotten: &HashSet<Vec<u8>>,
    agent: &mut AgentReport,
) -> Result<()> {
    let domain = domains::of(None, None);
    let mut drafts = Vec::new();
    for (entity, home) in memories {
        let uuid = entity.uuid.clone().unwrap_or_default();
        if forgotten.contains(folder.redactor.identity_hash(["", "", &uuid]).as_slice()) {
            agent.counts.skip(keep::FORGOTTEN);
        } else {
            match entity::draft(entity, &domain) {
                Ok(draft) => drafts.push((uuid, folder.redactor.clean(draft), home)),
                Err(_) => agent.counts.skip(UNFIT),
            }
        }
    }
    let entries = drafts.iter().map(|(uuid, draft, home)| Record { uuid: Some(uuid), draft, home: *home });
    // Memories that a person has changed since are not touched.
    agent.memories += entity::record(store, entries)?.iter().filter(|recorded| recorded.is_ok()).count() as u64;
    Ok(())
}
