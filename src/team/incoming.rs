//! Changes from other machines: checked, cut to the limits of nmem's own memories, redacted, and applied.

use super::identity::is_authentic;
use super::projects::find;
use crate::model::{DEPTH, Machine, Millis, Received, SharedChange, SharedMemory, SharedProject, depth};
use crate::redact::{Clean, Redactor};
use crate::store::team::{Applied, Arrived};
use crate::store::{Store, Tx};
use crate::text::is_unseen;
use anyhow::Result;
use serde_json::Value;

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

/// Applies changes of other machines.
pub struct Inbox<'a> {
    pub redactor: &'a Redactor,
    pub projects: &'a [SharedProject],
    /// This machine's key, and the name under which it shares.
    pub own_key: &'a str,
    pub name: &'a str,
    pub now: Millis,
}

impl Inbox<'_> {
    /// Applies changes of one machine in one transaction. With `is_next` nothing is missing before them, so everything
    /// up to the last change that the machine signed is recorded as applied; a forged number has no effect. An invalid
    /// change is counted and skipped.
    pub fn apply(&self, store: &mut Store, changes: &[SharedChange], is_next: bool, received: &mut Received) -> Result<()> {
        let mut last = 0;
        let mut checked = Vec::new();
        for change in changes.iter().filter(|change| change.machine != self.own_key) {
            if is_sound(change) && is_authentic(change) {
                last = last.max(change.seq);
                checked.extend(self.checked(change, received));
            } else {
                received.invalid += 1;
            }
        }
        let Some(key) = changes.first().map(|change| change.machine.clone()).filter(|_| last > 0) else { return Ok(()) };
        let shared: Vec<i64> = self.projects.iter().map(|project| project.id).collect();
        store.write(|tx| {
            let mut machine: Option<Machine> = None;
            for checked in &checked {
                let known = match machine.take().filter(|known| known.key == checked.change.machine) {
                    Some(known) => known,
                    None => tx.machine(&checked.change.machine, &checked.name, self.now)?,
                };
                self.apply_one(tx, checked, &known, &shared, received)?;
                machine = Some(known);
            }
            if is_next {
                tx.set_applied(&key, last)?;
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
    is_id && is_empty_if_gone && change.seq > 0 && (1..=COUNTER).contains(&change.counter)
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
