//! Distils units by rules: takes milliseconds, after the event is stored. Whatever is not done now is done next time.

use super::score::ScoreWeights;
use super::{summary, turns};
use crate::distil;
use crate::domains;
use crate::files;
use crate::model::{Draft, Millis, UnitDrafts, UnitStory};
use crate::project;
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::memory_rows::Lease;
use crate::store::rule_memories::DueUnit;
use crate::store::rule_memories::Gone;
use anyhow::Result;
use std::path::Path;

/// Maximum number of edited files to hash per unit, and maximum bytes of one.
const HASHED: usize = 40;
const HASHED_BYTES: u64 = 1 << 20;

/// Settings of this run for distillation.
#[derive(Debug)]
pub struct Distiller<'a> {
    pub redactor: &'a Redactor,
    pub home: Option<&'a Path>,
    /// Globs of files that are recorded by path only; they are not hashed either.
    pub ignored: &'a [String],
    pub now: Millis,
    /// Treatment of memories that rules no longer create.
    pub gone: Gone,
    /// Read the agent's notes.
    pub agent_notes: bool,
}

impl Distiller<'_> {
    /// Distils units that have changed since the last time, each in one transaction. Units leased by another process
    /// are skipped. Returns how many were distilled.
    pub fn distil(&self, store: &mut Store, due: &[DueUnit]) -> Result<usize> {
        let mut wanted = Vec::new();
        for due in due {
            // A trivial conversation is recognised before anything is written.
            if store.talk(*due)?.is_none_or(|said| !distil::is_trivial(&said)) {
                wanted.push(due.unit);
            }
        }
        if wanted.is_empty() {
            return Ok(0);
        }
        let mut done = 0;
        let mut refuted: Vec<i64> = Vec::new();
        for lease in store.lease(&wanted, self.now)? {
            let Some(mut story) = store.unit_story(lease.unit)? else { continue };
            done += usize::from(self.distil_story(store, lease, &mut story)?);
            // The first prompt of a unit may say that the work before it did not help.
            if story.seen.is_none() && story.prompts.first().is_some_and(|first| turns::refutation(&first.text).is_some()) {
                refuted.extend(store.unit_before(&story)?.filter(|unit| !wanted.contains(unit)));
            }
        }
        if refuted.is_empty() {
            return Ok(done);
        }
        for lease in store.lease(&refuted, self.now)? {
            let Some(mut story) = store.unit_story(lease.unit)? else { continue };
            done += usize::from(self.distil_story(store, lease, &mut story)?);
        }
        Ok(done)
    }

    fn distil_story(&self, store: &mut Store, lease: Lease, story: &mut UnitStory) -> Result<bool> {
        let (name, config) = story.domain.clone().unwrap_or_default();
        let domain = domains::of(Some(&name), config.as_deref());
        let injected = if self.agent_notes { Some(store.injected_texts(story.session)?) } else { None };
        story.open_before = store.open_ends_before(story, OPEN_ENDS)?;
        let mut drawn = distil::distil_unit(story, &domain, &ScoreWeights::fitted(), injected.as_deref());
        update_notes(store, story, &mut drawn)?;
        self.hash_files(store, story, &mut drawn.drafts)?;
        self.hash_files(store, story, &mut drawn.by_agent)?;
        let drawn = self.redactor.clean(drawn);
        store.write(|tx| tx.replace_by_rules(lease, story, &drawn, self.gone))
    }

    /// Adds content hashes to edited files: the current one for files edited since the last time, the stored one for
    /// others, which somebody else may have changed meanwhile.
    pub(super) fn hash_files(&self, store: &Store, story: &UnitStory, drafts: &mut [Draft]) -> Result<()> {
        if !drafts.iter().flat_map(|draft| &draft.files).any(|file| file.modified) {
            return Ok(());
        }
        let mut hashes = store.hashes_of_unit(story.session, story.unit)?;
        let root =
            story.folder.as_deref().map(Path::new).map(|folder| project::worktree_root(folder, self.home).unwrap_or(folder));
        let seen = story.seen.unwrap_or(0);
        let edited = story.tools.iter().filter(|tool| tool.seq > seen && tool.is_edit());
        if let Some(root) = root {
            let mut paths: Vec<&str> =
                edited.filter_map(|tool| tool.path.as_deref()).filter(|path| self.is_hashed(path)).collect();
            paths.sort_unstable();
            paths.dedup();
            for path in paths.into_iter().take(HASHED) {
                match files::content_hash(&root.join(path), HASHED_BYTES) {
                    Some(hash) => hashes.insert(path.to_string(), hash),
                    None => hashes.remove(path),
                };
            }
        }
        for file in drafts.iter_mut().flat_map(|draft| &mut draft.files).filter(|file| file.modified) {
            file.hash = hashes.get(&file.path).cloned();
        }
        Ok(())
    }

    fn is_hashed(&self, path: &str) -> bool {
        let outside = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
        !outside && !self.ignored.iter().any(|glob| fast_glob::glob_match(glob, path))
    }
}

/// Maximum open ends of earlier units to compare.
const OPEN_ENDS: usize = 40;

/// Adds which notes of earlier summaries no longer hold.
fn update_notes(store: &Store, story: &UnitStory, drafts: &mut UnitDrafts) -> Result<()> {
    for summary in store.notes_before(story)? {
        let notes = summary.text("notes").and_then(|notes| summary::notes_now(notes, story));
        drafts.notes.extend(notes.map(|notes| (summary.id, notes)));
    }
    Ok(())
}
