//! Use case: forgets memories, sessions and projects, and proves that the text is gone from all files.

use crate::config::Config;
use crate::config::pauses::{self, RecordingPause, Switches, What};
use crate::distil::distiller::Distiller;
use crate::error::UserError;
use crate::files;
use crate::ingest::persist::recount;
use crate::lookup;
use crate::model::{Deletion, Files, Millis, StoredItem, beside};
use crate::render;
use crate::render::clean::line;
use crate::runtime;
use crate::store::deletion::DeleteFilter;
use crate::store::rule_memories::Gone;
use crate::store::{Store, imports};
use anyhow::{Context, Result};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The data that would be forgotten.
#[derive(Debug)]
pub struct ForgetPlan {
    pub wanted: DeleteFilter,
    pub going: Deletion,
    /// Broken databases that were set aside, with their companions. Their content cannot be examined, so they are
    /// deleted.
    pub set_aside: Vec<PathBuf>,
    /// Line-based files (rejected events, the log), each with the number of lines to delete.
    pub lines: Vec<(PathBuf, usize)>,
    /// The first memories, prompts and tool uses to delete: ids and titles.
    pub examples: Vec<(String, String)>,
    needles: Vec<String>,
}

/// Maximum examples of each kind.
const EXAMPLES: usize = 10;

impl ForgetPlan {
    /// Determines everything that would be deleted.
    pub fn of(store: &Store, wanted: DeleteFilter) -> Result<ForgetPlan> {
        let going = store.what_would_go(&wanted)?;
        let escaped = |text: &String| serde_json::to_string(text).map(|json| json[1..json.len() - 1].to_lowercase());
        let mut needles: Vec<String> = wanted.text.iter().map(|t| t.to_lowercase()).collect();
        needles.extend(wanted.text.iter().filter_map(|text| escaped(text).ok()));
        needles.dedup();
        needles.extend(going.session_ids.iter().map(|id| id.to_lowercase()));
        let files = store.files();
        let mut lines = Vec::new();
        for path in line_files(files) {
            let count = kept_lines(&path, &needles)?.1;
            if count > 0 {
                lines.push((path, count));
            }
        }
        let examples = examples(store, &going)?;
        let mut plan = ForgetPlan { going, set_aside: Vec::new(), lines, examples, needles, wanted };
        // Single rows cannot be found in a broken database, so all broken databases are deleted.
        let all = plan.needles.is_empty() && !plan.is_empty();
        for path in set_aside(files) {
            let any = |needle: &String| holds(&path, needle.as_bytes()).unwrap_or(true);
            if all || plan.needles.iter().any(any) {
                plan.set_aside.push(path);
            }
        }
        Ok(plan)
    }

    /// Whether nothing would be deleted.
    pub fn is_empty(&self) -> bool {
        self.going.is_empty() && self.set_aside.is_empty() && self.lines.is_empty()
    }

    /// Deletes the data for good; `step` receives progress.
    pub fn carry_out(&self, store: &mut Store, config: &Config, now: Millis, step: &mut dyn FnMut(&str)) -> Result<()> {
        let files = store.files().clone();
        imports::remove_copies(files.folder());
        step("deleting rows");
        let redactor = runtime::redactor(config)?;
        let hash = |platform: &str, session: &str, id: &str| redactor.identity_hash([platform, session, id]).to_vec();
        store.forget(&self.going, self.wanted.text.as_deref(), &hash, &recount)?;
        for path in &self.set_aside {
            fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        // Rejected lines are appended inside write transactions. During this one, no other process writes to the file
        // that is replaced.
        store.write(|_| line_files(&files).iter().try_for_each(|path| self.clean(path)))?;
        // The page contains forgotten data; the next `nmem view` writes it again.
        files::remove(&files.page()).with_context(|| format!("cannot remove {}", files.page().display()))?;
        self.clean_switches(config, now)?;
        step("rewriting the database");
        store.scrub()?;
        self.redistil(store, config, now)
    }

    /// Distils again the units that the deleted rows were part of.
    fn redistil(&self, store: &mut Store, config: &Config, now: Millis) -> Result<()> {
        let redactor = runtime::redactor(config)?;
        let (home, ignored) = (config.home.as_deref(), config.ignored());
        let distiller = Distiller {
            redactor: &redactor,
            home,
            ignored: &ignored,
            now,
            gone: Gone::Deleted,
            agent_notes: config.agent_notes.value,
        };
        let due = store.due_in_sessions(&self.going.touched)?;
        distiller.distil(store, &due).map(drop)
    }

    fn clean(&self, path: &Path) -> Result<()> {
        let (kept, gone) = kept_lines(path, &self.needles)?;
        if gone > 0 {
            files::replace_private(path, &kept).with_context(|| format!("cannot rewrite {}", path.display()))?;
        }
        Ok(())
    }

    /// Removes ended pauses that name forgotten data. An import does not need them, because it knows the hashes.
    fn clean_switches(&self, config: &Config, now: Millis) -> Result<()> {
        let named = |what: &What| {
            let text = serde_json::to_string(what).unwrap_or_default().to_lowercase();
            self.needles.iter().any(|needle| text.contains(needle))
        };
        if config.switches.off.iter().any(|off| named(&off.what) && !off.holds(now)) {
            Switches::change(&config.switches_file, now, |s| s.off.retain(|off| off.holds(now) || !named(&off.what)))?;
        }
        let past = pauses::load_past(&config.switches_file)?;
        if past.iter().any(|off| named(&off.what)) {
            let kept: Vec<RecordingPause> = past.into_iter().filter(|off| !named(&off.what)).collect();
            pauses::store_past(&config.switches_file, &kept)?;
        }
        Ok(())
    }
}

/// Returns ids and titles of the first rows of each kind, memories first. Whole sessions and projects need no examples.
fn examples(store: &Store, going: &Deletion) -> Result<Vec<(String, String)>> {
    let mut examples = Vec::new();
    if !going.sessions.is_empty() || !going.projects.is_empty() {
        return Ok(examples);
    }
    for (letter, ids) in [("m", &going.memories), ("p", &going.prompts), ("t", &going.tool_uses)] {
        for id in ids.iter().take(EXAMPLES) {
            let id = format!("{letter}{id}");
            let text = match store.find(&id)? {
                Some(StoredItem::Memory(memory)) => memory.title,
                Some(StoredItem::Prompt(prompt)) => prompt.text,
                Some(StoredItem::ToolUse(tool)) => tool.content.or(tool.path).unwrap_or(tool.tool_name),
                _ => continue,
            };
            examples.push((id, text));
        }
        if ids.len() > EXAMPLES {
            examples.push((String::new(), format!("and {} more", ids.len() - EXAMPLES)));
        }
    }
    Ok(examples)
}

/// Returns the files that still contain a text afterwards, ignoring ASCII case.
pub fn still_held(files: &Files, config: &Config, text: &str) -> Result<Vec<PathBuf>> {
    let mut paths = ours(files)?;
    paths.extend([config.switches_file.clone(), pauses::past_file(&config.switches_file)]);
    paths.extend(files.spools.iter().flat_map(|spool| [spool.clone(), beside(spool, "-draining")]));
    paths.sort();
    paths.dedup();
    let needle = text.to_ascii_lowercase().into_bytes();
    let mut found = Vec::new();
    for path in paths {
        match holds(&path, &needle) {
            Ok(true) => found.push(path),
            Ok(false) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
        }
    }
    Ok(found)
}

fn holds(path: &Path, needle: &[u8]) -> io::Result<bool> {
    let mut file = files::open_private(path)?;
    let mut buffer = Vec::new();
    let overlap = needle.len().saturating_sub(1);
    loop {
        let kept = buffer.len().min(overlap);
        buffer.drain(..buffer.len() - kept);
        let read = file.by_ref().take(1 << 20).read_to_end(&mut buffer)?;
        buffer[kept..].make_ascii_lowercase();
        if buffer.windows(needle.len().max(1)).any(|window| window == needle) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

/// Returns the files next to the database whose names start with its name.
fn ours(files: &Files) -> Result<Vec<PathBuf>> {
    let name = files.db.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let entries = fs::read_dir(files.folder()).with_context(|| format!("cannot read {}", files.folder().display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&name))).collect())
}

/// Broken databases that were set aside, with their companions.
pub fn set_aside(files: &Files) -> Vec<PathBuf> {
    let is_broken = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().contains("-broken-"));
    let mut found: Vec<PathBuf> = ours(files).unwrap_or_default().into_iter().filter(is_broken).collect();
    found.sort();
    found
}

/// Returns the files that contain events or messages line by line.
pub fn line_files(files: &Files) -> [PathBuf; 3] {
    [files.rejected.clone(), files.log.clone(), beside(&files.log, "-old")]
}

/// Returns the lines of a file that contain none of the needles, and the number of lines removed.
fn kept_lines(path: &Path, needles: &[String]) -> Result<(String, usize)> {
    let mut bytes = Vec::new();
    match files::open_private(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((String::new(), 0)),
        opened => {
            opened.and_then(|mut file| file.read_to_end(&mut bytes)).with_context(|| format!("cannot read {}", path.display()))?
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let (mut kept, mut gone) = (String::new(), 0);
    for line in text.split_inclusive('\n') {
        let lower = line.to_lowercase();
        if needles.iter().any(|needle| lower.contains(needle)) {
            gone += 1;
        } else {
            kept.push_str(line);
        }
    }
    Ok((kept, gone))
}

/// Returns the rows that the given ids select. A unit's id selects its prompts and tool uses.
///
/// # Errors
///
/// A [`UserError`] if an id is unknown, or if one of several ids names a session.
pub fn rows_of(store: &Store, ids: &[String]) -> Result<DeleteFilter> {
    let mut wanted = DeleteFilter::default();
    for id in ids {
        match found(store, id)? {
            StoredItem::Prompt(prompt) => wanted.prompts.push(prompt.id),
            StoredItem::ToolUse(tool) => wanted.tool_uses.push(tool.id),
            StoredItem::Memory(memory) => wanted.memories.push(memory.id),
            StoredItem::Unit(unit) => {
                let (prompts, tool_uses) = store.rows_of_unit(&unit)?;
                wanted.prompts.extend(prompts);
                wanted.tool_uses.extend(tool_uses);
            }
            StoredItem::Session(_) if ids.len() > 1 => {
                return Err(UserError::usage("a whole session is forgotten alone", "give one id: nmem forget s12").into());
            }
            StoredItem::Session(session) => wanted.session = Some(session.id),
        }
    }
    Ok(wanted)
}

fn found(store: &Store, id: &str) -> Result<StoredItem> {
    lookup::find(store, id)?
        .ok_or_else(|| UserError::new(format!("nothing has the id {}", line(id, 80)), "`nmem search` prints ids").into())
}

/// Maximum projects and sessions to name.
const NAMED: usize = 10;

impl ForgetPlan {
    /// Returns a few lines about what would be deleted, or will be; `from` names the database if there are several.
    pub fn summary(&self, dry_run: bool, from: &str) -> String {
        let count = |n: usize, one: &str, many: &str| render::count(n as i64, one, many);
        let going = &self.going;
        let mut out = format!("{}{from}:\n", if dry_run { "This would be deleted" } else { "This will be deleted" });
        if !going.projects.is_empty() {
            let names: Vec<String> = going.project_names.iter().take(NAMED).map(|name| line(name, 60)).collect();
            out += &format!("  {}: {}\n", count(going.projects.len(), "whole project", "whole projects"), names.join(", "));
        }
        if !going.sessions.is_empty() {
            let names: Vec<String> = going.sessions.iter().take(NAMED).map(|id| format!("s{id}")).collect();
            let more = if going.sessions.len() > NAMED { ", …" } else { "" };
            out += &format!("  {}: {}{more}\n", count(going.sessions.len(), "whole session", "whole sessions"), names.join(", "));
        }
        for (id, text) in &self.examples {
            out += &format!("  {id:<5} {}\n", line(text, 100));
        }
        let parts = [
            (going.prompts.len(), "prompt or answer", "prompts and answers"),
            (going.tool_uses.len(), "tool use", "tool uses"),
            (going.memories.len(), "memory", "memories"),
            (going.task_lists.len(), "entry of a task list", "entries of task lists"),
        ];
        for (n, one, many) in parts.into_iter().filter(|(n, ..)| *n > 0) {
            out += &format!("  {}\n", count(n, one, many));
        }
        if going.drawn > 0 {
            let drawn = count(going.drawn, "memory", "memories");
            out += &format!("  {drawn} derived from them, unless the remaining data still supports them\n");
        }
        for (path, n) in &self.lines {
            out += &format!("  {} of {}\n", count(*n, "line", "lines"), path.display());
        }
        let companion = |path: &&PathBuf| ["-wal", "-shm", "-journal"].iter().any(|end| path.to_string_lossy().ends_with(end));
        for path in self.set_aside.iter().filter(|path| !companion(path)) {
            out += &format!("  {} (a broken database that was set aside; its content cannot be examined)\n", path.display());
        }
        out.trim_end().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::Scratch;
    use std::fs;

    #[test]
    fn lines_with_a_forgotten_text_go_in_any_case_and_others_stay() {
        let scratch = Scratch::new("forget-lines");
        fs::create_dir_all(&scratch.0).unwrap();
        let path = scratch.0.join("lines");
        files::replace_private(&path, "one Falcon\ntwo\nthree FALCON again\n").unwrap();
        assert_eq!(kept_lines(&path, &["falcon".into()]).unwrap(), ("two\n".to_string(), 2));
        assert_eq!(kept_lines(&path, &[]).unwrap().1, 0);
        assert_eq!(kept_lines(&scratch.0.join("missing"), &["falcon".into()]).unwrap(), (String::new(), 0));
    }

    #[test]
    fn a_text_is_found_across_the_borders_of_what_is_read_at_once() {
        let scratch = Scratch::new("forget-holds");
        fs::create_dir_all(&scratch.0).unwrap();
        let path = scratch.0.join("large");
        for before in [0, 65_530, 65_536, 1 << 20] {
            fs::write(&path, [vec![b'x'; before], b"falcon".to_vec()].concat()).unwrap();
            assert!(holds(&path, b"falcon").unwrap() && !holds(&path, b"osprey").unwrap(), "{before}");
        }
    }
}
