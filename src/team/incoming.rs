//! Checks and applies changes of other machines, and rows of other programs.

use super::people::is_authentic;
use crate::config::Config;
use crate::model::{
    DEPTH, Draft, Machine, MemoryKind, Millis, NumberRanges, Provenance, Received, SeriesContents, Share, SharedChange,
    SharedMemory, SharedProject, depth,
};
use crate::postgres::{ForeignRow, TeamServer};
use crate::project::git;
use crate::redact::{Clean, Redactor};
use crate::store::team_incoming::{Applied, Arrived};
use crate::store::team_outgoing::ProjectShare;
use crate::store::{Store, Tx};
use crate::text::{cut, is_unseen};
use anyhow::Result;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time in the future, in milliseconds; later times count as now.
const AHEAD: Millis = 86_400_000;
/// Maximum bytes of a body, and maximum files and concepts of a memory.
pub const BODY: usize = 2 << 20;
const PARTS: usize = 500;
/// Maximum logical counter: a machine that claims more would win every conflict forever.
const COUNTER: i64 = 1 << 40;
/// Maximum characters of a person's name, and maximum bytes of an id.
const NAME: usize = 40;
const ID: usize = 64;
/// Maximum keys of a change's project, and their bytes together.
const PROJECTS: usize = 50;
const PROJECT_BYTES: usize = 16 << 10;

/// One machine's share of a sync: what is over it waits for the next one, and holds up nobody else.
#[derive(Debug)]
pub struct SyncBudget {
    changes: usize,
    bytes: usize,
    invalid: usize,
    until: Instant,
}

/// Maximum changes, bytes and invalid changes of one machine in a sync.
const CHANGES: usize = 100_000;
const BYTES: usize = 256 << 20;
const INVALID: usize = 100;
/// Maximum time for one machine, for a person and in a hook.
const TIME: Duration = Duration::from_secs(120);
const IN_HOOK: Duration = Duration::from_millis(500);

impl SyncBudget {
    /// Counts what was read.
    pub fn spend(&mut self, changes: usize, bytes: usize) {
        self.changes += changes;
        self.bytes += bytes;
    }

    /// Counts a change or a file that cannot be used.
    pub fn count_invalid(&mut self) {
        self.invalid += 1;
    }

    /// Whether nothing more is read now.
    pub fn is_spent(&self) -> bool {
        self.changes >= CHANGES || self.bytes >= BYTES || self.is_abused() || Instant::now() > self.until
    }

    /// Whether too much was invalid.
    pub fn is_abused(&self) -> bool {
        self.invalid >= INVALID
    }
}

/// The progress of a machine's series without a gap. What the machine signed decides, not which rows a server
/// has: whoever may remove rows could hide a change behind later ones.
#[derive(Debug)]
pub struct SeriesProgress {
    /// The last number up to which everything has arrived.
    pub mark: i64,
    /// The last number that the machine signed for.
    signed: i64,
    /// Ranges of the numbers that must arrive, in order.
    ranges: NumberRanges,
    has_gap: bool,
}

impl SeriesProgress {
    /// Starts behind a number that was reached before. Without signed contents the mark stays where it is.
    pub fn new(mark: i64, contents: Option<&SeriesContents>, projects: &[SharedProject]) -> SeriesProgress {
        let is_due = |keys: &[String]| keys.is_empty() || find(projects, keys).is_some();
        let of_projects = contents.iter().flat_map(|contents| &contents.ranges).filter(|(keys, _)| is_due(keys));
        let mut ranges: NumberRanges = of_projects.flat_map(|(_, ranges)| ranges).copied().collect();
        ranges.sort_unstable();
        SeriesProgress { mark, signed: contents.map_or(0, |contents| contents.last), ranges, has_gap: false }
    }

    /// Counts a verified change. Changes arrive in order.
    fn arrive(&mut self, seq: i64) {
        self.has_gap |= self.next().is_some_and(|next| next < seq);
        if !self.has_gap {
            self.mark = self.mark.max(seq.min(self.signed));
        }
    }

    /// Counts that no more changes follow.
    pub fn end(&mut self) {
        if !self.has_gap && self.next().is_none() {
            self.mark = self.mark.max(self.signed);
        }
    }

    /// The first number behind the mark that must arrive.
    fn next(&self) -> Option<i64> {
        let at = self.ranges.partition_point(|(_, last)| *last <= self.mark);
        self.ranges.get(at).map(|(first, _)| (*first).max(self.mark + 1)).filter(|next| *next <= self.signed)
    }
}

/// Applies changes of other machines.
pub struct Inbox<'a> {
    pub redactor: &'a Redactor,
    pub projects: &'a [SharedProject],
    /// This machine's key, and the name under which it shares.
    pub own_key: &'a str,
    pub name: &'a str,
    pub now: Millis,
    pub is_in_hook: bool,
}

impl Inbox<'_> {
    /// Returns the budget of a machine.
    pub fn budget(&self) -> SyncBudget {
        let time = if self.is_in_hook { IN_HOOK } else { TIME };
        SyncBudget { changes: 0, bytes: 0, invalid: 0, until: Instant::now() + time }
    }

    /// Applies changes of one machine in one transaction, with the progress of its series if they come from one. An invalid change
    /// is counted and skipped.
    pub fn apply(
        &self,
        store: &mut Store,
        changes: &[SharedChange],
        progress: Option<&mut SeriesProgress>,
        budget: &mut SyncBudget,
        received: &mut Received,
    ) -> Result<()> {
        let mut verified = Vec::new();
        let mut checked = Vec::new();
        for change in changes.iter().filter(|change| change.machine != self.own_key) {
            if is_sound(change) && is_authentic(change) {
                verified.push(change);
                checked.extend(self.checked(change, received));
            } else {
                received.invalid += 1;
                budget.count_invalid();
                if budget.is_abused() {
                    break;
                }
            }
        }
        let Some(key) = verified.first().map(|change| &change.machine) else { return Ok(()) };
        let shared: Vec<i64> = self.projects.iter().map(|project| project.id).collect();
        store.write(|tx| {
            // The newest change names the machine; an older one that somebody sends again does not.
            if let Some(newest) = checked.iter().max_by_key(|checked| checked.change.seq) {
                let machine = tx.machine(key, &newest.name, newest.change.seq, self.now)?;
                for checked in &checked {
                    self.apply_one(tx, checked, &machine, &shared, received)?;
                }
            }
            if let Some(progress) = progress {
                for change in &verified {
                    // A text is missing because a later change removed it, or somebody else did.
                    if change.gone || change.body.is_some() || tx.is_overtaken(change)? {
                        progress.arrive(change.seq);
                    }
                }
                tx.set_applied(key, progress.mark)?;
            }
            tx.supersede_arrived()
        })
    }

    fn apply_one(&self, tx: &Tx, checked: &Checked, machine: &Machine, shared: &[i64], received: &mut Received) -> Result<()> {
        let is_mine = machine.is_trusted && machine.name == self.name;
        let arrived = Arrived {
            change: checked.change,
            memory: checked.memory.as_ref(),
            project: checked.project,
            machine,
            is_mine,
            shared,
            created_at: checked.created_at,
        };
        match tx.apply_change(&arrived)? {
            Applied::Overtaken => {}
            Applied::New => {
                received.new += 1;
                *received.people.entry(machine.name.clone()).or_default() += 1;
            }
            Applied::Changed => received.changed += 1,
            Applied::Forgotten => received.forgotten += 1,
            Applied::Kept => received.kept += 1,
            Applied::Refused => received.refused += 1,
        }
        Ok(())
    }

    /// Returns the parts of an authentic change to apply; `None` if it cannot be applied.
    fn checked<'c>(&self, change: &'c SharedChange, received: &mut Received) -> Option<Checked<'c>> {
        let name = name(&change.name);
        if change.gone {
            return Some(Checked { change, name, memory: None, project: None, created_at: 0 });
        }
        // A later change, which follows, removed its text.
        let body = change.body.as_deref()?;
        let Some(project) = find(self.projects, &change.projects) else {
            received.elsewhere += 1;
            return None;
        };
        let Some(memory) = memory(body) else {
            received.invalid += 1;
            return None;
        };
        let created_at = if memory.created_at > self.now + AHEAD { self.now } else { memory.created_at.max(0) };
        let memory = Some(self.redactor.clean(memory));
        Some(Checked { change, name, memory, project: Some(project.id), created_at })
    }
}

/// A change that may be applied.
struct Checked<'c> {
    change: &'c SharedChange,
    name: String,
    memory: Option<Clean<SharedMemory>>,
    project: Option<i64>,
    created_at: Millis,
}

fn is_sound(change: &SharedChange) -> bool {
    let is_id = !change.uuid.is_empty() && change.uuid.len() <= ID && change.uuid.chars().all(|c| c.is_ascii_graphic());
    let is_empty_if_gone = !change.gone || change.body.is_none();
    let is_small = change.projects.len() <= PROJECTS && change.projects.iter().map(String::len).sum::<usize>() <= PROJECT_BYTES;
    is_id && is_small && is_empty_if_gone && change.seq > 0 && (1..=COUNTER).contains(&change.counter)
}

/// Parses a memory and cuts it to the limits; `None` if it is invalid.
fn memory(body: &str) -> Option<SharedMemory> {
    let mut memory: SharedMemory =
        Some(body).filter(|body| body.len() <= BODY).and_then(|body| serde_json::from_str(body).ok())?;
    let is_deep = memory.content.values().any(|value| depth(value) > DEPTH);
    if memory.title.trim().is_empty() || is_deep {
        return None;
    }
    memory.title = one_line(&memory.title);
    memory.subtitle = memory.subtitle.map(|text| one_line(&text));
    memory.concepts.truncate(PARTS);
    memory.concepts.iter_mut().for_each(|concept| *concept = one_line(concept));
    memory.files.retain(|(path, ..)| is_inside(path));
    memory.files.truncate(PARTS);
    // This machine decides the provenance of the words.
    for reserved in ["provenance", "by_hand", "pinned", "made_by", "uuid"] {
        memory.content.remove(reserved);
    }
    if let Some(confidence) = memory.content.get("confidence") {
        let is_valid = confidence.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value));
        if !is_valid {
            memory.content.insert("confidence".into(), Value::Null);
        }
    }
    memory.made_by = name(&memory.made_by);
    Some(memory)
}

/// Whether a path is inside the project. Paths of another machine are looked up only there.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '\\', '~'])
        && !path.contains(':')
        && !path.split(['/', '\\']).any(|part| part == "..")
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !is_unseen(*c)).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns a name for display: one short line.
fn name(text: &str) -> String {
    let name: String = one_line(text).trim().chars().take(NAME).collect();
    if name.is_empty() { "somebody".to_string() } else { name }
}

/// Maximum characters of a title; the whole text is in the memory's fields.
const TITLE: usize = 160;
/// Memories per transaction.
const STEP: usize = 500;

/// Result of reading other programs' rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramRows {
    pub written: usize,
    pub removed: usize,
    /// Rows that name no project shared here.
    pub elsewhere: usize,
    /// True if there are more rows than were read.
    pub is_cut: bool,
}

/// Returns the name of a project for other programs: its key without the kind.
pub fn repo_id(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, id)| id)
}

/// Writes the facts about the shared repositories.
pub fn write_repositories(store: &Store, server: &mut TeamServer, projects: &[SharedProject]) -> Result<()> {
    for project in projects {
        let Some(row) = store.project_by_row(project.id)? else { continue };
        let repo = project.keys.first().map_or("", |key| repo_id(key));
        server.write_repository(repo, &row.name, row.repo_url.as_deref(), row.about.as_ref())?;
    }
    Ok(())
}

/// Reads the rows of other programs, if they have changed since the last time.
pub fn read(store: &mut Store, server: &mut TeamServer, redactor: &Redactor, projects: &[SharedProject]) -> Result<ProgramRows> {
    let mut keys: Vec<&str> = projects.iter().flat_map(|project| project.keys.iter().map(String::as_str)).collect();
    keys.sort_unstable();
    // Rows of a project that is shared only now were skipped before.
    let state = format!("{} {}", server.foreign_state()?, keys.join(" "));
    if store.rad_tables_read()?.as_deref() == Some(state.as_str()) {
        return Ok(ProgramRows::default());
    }
    let found = server.foreign_rows()?;
    let known = store.memories_of_programs()?;
    let urls: HashMap<&str, &str> = found.repositories.iter().map(|(id, url)| (id.as_str(), url.as_str())).collect();
    let mut done = ProgramRows { is_cut: found.is_cut, ..ProgramRows::default() };
    let mut due = Vec::new();
    let mut kept = Vec::new();
    for row in &found.rows {
        let project = row.repo.as_deref().and_then(|repo| find(projects, &keys_of(repo, urls.get(repo).copied())));
        let Some(project) = project else {
            done.elsewhere += 1;
            continue;
        };
        kept.push(row.uuid.as_str());
        if known.get(&row.uuid) != Some(&row.digest) {
            due.push((row, project.id, redactor.clean(draft(row))));
        }
    }
    for step in due.chunks(STEP) {
        done.written += store.write(|tx| {
            let mut written = 0;
            for (row, project, draft) in step {
                written += usize::from(tx.write_of_program(&row.uuid, &row.digest, *project, draft)?);
            }
            Ok(written)
        })?;
    }
    if !found.is_cut {
        let gone: Vec<&String> = known.keys().filter(|uuid| !kept.contains(&uuid.as_str())).collect();
        done.removed = gone.len();
        store.write(|tx| gone.iter().try_for_each(|uuid| tx.forget_of_program(uuid)))?;
    }
    store.write(|tx| tx.set_rad_tables_read(&state))?;
    Ok(done)
}

/// The keys that a program may mean: a URL, a path in a URL, or a name.
fn keys_of(repo: &str, url: Option<&str>) -> Vec<String> {
    let of_url = |url: &str| format!("repo:{}", git::normalised(url));
    let mut keys: Vec<String> = url.map(of_url).into_iter().collect();
    keys.extend([of_url(repo), format!("repo:{repo}"), format!("name:{repo}"), format!("root:{repo}")]);
    keys
}

fn draft(row: &ForeignRow) -> Draft {
    let mut content = row.content.clone();
    if row.kind == MemoryKind::Decision && content.get("alternatives").is_some_and(|list| !list.is_array()) {
        content.insert("alternatives".into(), Value::Array(Vec::new()));
    }
    Draft {
        key: None,
        kind: row.kind,
        kind_type: Some(row.kind_type.clone()),
        title: cut(&row.title.split_whitespace().collect::<Vec<_>>().join(" "), TITLE),
        subtitle: None,
        body: None,
        content,
        concepts: Vec::new(),
        files: Vec::new(),
        prompt: None,
        sources: Vec::new(),
        provenance: Provenance::Tool,
        at: row.created_at,
        tokens: None,
    }
}

/// Kinds of keys that are valid on every machine. Folders are excluded: they exist on one machine only.
const EVERYWHERE: [&str; 3] = ["repo:", "root:", "name:"];

/// Returns the shared projects.
pub fn shared(store: &Store, config: &Config) -> Result<Vec<SharedProject>> {
    let all = store.project_shares()?.into_iter().map(|said| {
        let share = config.share_of(said.share, Path::new(&said.project.root));
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
