//! Use case: replays recorded streams of hook events through the pipeline into a scratch database, to see where units
//! begin.
//!
//! A stream is JSON Lines, one hook event per line; `event` may replace `hook_event_name`, and `ts` the time. Missing
//! fields (session, folder, time) are filled in.

use crate::files;
use crate::ingest::persist;
use crate::model::{Event, Files, Millis, Platform};
use crate::platforms::{DecodeContext, adapter, payload};
use crate::redact::Clean;
use crate::store::{PERSON_WAIT, Store};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

/// Maximum bytes of a stream. Its events stay in memory.
const BYTES: u64 = 256 << 20;
/// Maximum bytes of a line; a longer one is skipped.
const LINE: usize = 16 << 20;

/// An event of a stream, ready to be stored.
#[derive(Debug)]
pub struct Replayed {
    /// Its line number, starting at 0.
    pub line: usize,
    /// Number of prompts in the stream before it, stored or not.
    pub prompt: usize,
    pub event: Clean<Event>,
}

/// The starts of units in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts {
    /// Indexes of prompts, starting at 0: with late evidence, and as first decided.
    pub starts: Vec<i64>,
    pub inline: Vec<i64>,
    /// Boundaries inside the work on a prompt: line of the first tool use, and reason.
    pub inner: Vec<(usize, String)>,
    /// Number of lines that were not events.
    pub skipped: usize,
}

/// A database in a temporary folder, deleted on drop.
#[derive(Debug)]
pub struct ScratchStore(PathBuf);

impl ScratchStore {
    /// Creates an empty folder.
    pub fn new() -> Result<ScratchStore> {
        let folder = std::env::temp_dir().join(format!("nmem-replay-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        crate::files::make_folder(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(ScratchStore(folder))
    }

    /// Opens its database.
    pub fn store(&self) -> Result<Store> {
        Store::open(&Files::of(self.0.join("nmem.db"), true), PERSON_WAIT)
    }
}

impl Drop for ScratchStore {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Completes and redacts an event, as a hook does.
pub type Complete<'a> = &'a dyn Fn(Event) -> Clean<Event>;

/// Reads a stream; `session` replaces missing session ids and is the prefix of all of them. Returns the events and the
/// number of invalid lines.
pub fn read(path: &Path, session: &str, skip_tools: &[String], complete: Complete) -> Result<(Vec<Replayed>, usize)> {
    let unreadable = || format!("cannot read {}", path.display());
    let mut folder = CommonFolder::default();
    for line in lines(path).with_context(unreadable)? {
        if let (_, Some(value)) = line.with_context(unreadable)? {
            folder.add(&value);
        }
    }
    let folder = folder.path();
    let (mut events, mut skipped, mut now, mut prompts) = (Vec::new(), 0, 0, 0);
    for line in lines(path).with_context(unreadable)? {
        let (line, value) = line.with_context(unreadable)?;
        let Some(mut value) = value else {
            skipped += 1;
            continue;
        };
        now = time(&value).unwrap_or(now + 1);
        for (key, other) in [("hook_event_name", value["event"].clone()), ("session_id", json!(session)), ("cwd", json!(folder))]
        {
            if value[key].is_null() {
                value[key] = other;
            }
        }
        // Sessions of different files must not share an id.
        value["session_id"] = json!(format!("{session}-{}", value["session_id"].as_str().unwrap_or_default()));
        let prompt = prompts;
        prompts += usize::from(value["hook_event_name"] == "UserPromptSubmit");
        let around = DecodeContext { now, skip_tools };
        match adapter(Platform::ClaudeCode).decode(&value, &around) {
            Ok(decoded) => events.extend(decoded.into_iter().map(|event| Replayed { line, prompt, event: complete(event) })),
            Err(_) => skipped += 1,
        }
    }
    Ok((events, skipped))
}

/// Returns the number and the object of each line of a stream; `None` for a line that is not an object. Blank lines are
/// skipped.
fn lines(path: &Path) -> io::Result<impl Iterator<Item = io::Result<(usize, Option<Value>)>>> {
    let lines = files::reader(path, BYTES)?.split(b'\n').enumerate();
    Ok(lines.filter_map(|(at, line)| match line {
        Ok(line) if line.trim_ascii().is_empty() => None,
        Ok(line) => Some(Ok((at, Some(line).filter(|line| line.len() <= LINE).and_then(|line| payload::line(&line))))),
        Err(error) => Some(Err(error)),
    }))
}

/// Positions of a session's prompts and tool uses in the stream.
#[derive(Default)]
struct ReplayedEvent {
    row: i64,
    prompts: Vec<usize>,
    tool_uses: Vec<usize>,
}

/// Replays a stream into a store and returns the starts of its units.
pub fn play(store: &mut Store, events: &[Replayed]) -> Result<Starts> {
    let mut sessions: BTreeMap<&str, ReplayedEvent> = BTreeMap::new();
    for replayed in events {
        let event = &replayed.event;
        store.write(|tx| persist::store_event(tx, event, None, &|_| None))?;
        let row = store.session_by_agent_id(event.platform, &event.session)?.context("nothing was stored")?;
        let stored = sessions.entry(&event.session).or_default();
        stored.row = row.id;
        // Duplicate and muted prompts have no number.
        if row.prompts as usize > stored.prompts.len() {
            stored.prompts.push(replayed.prompt);
        }
        if row.tool_uses as usize > stored.tool_uses.len() {
            stored.tool_uses.push(replayed.line);
        }
    }
    let mut out = Starts::default();
    for stored in sessions.values() {
        store.write(|tx| persist::end_of_stream(tx, stored.row, events.last().map_or(0, |last| last.event.at)))?;
        let prompt = |number: i64| stored.prompts.get(usize::try_from(number).ok()?.checked_sub(1)?).map(|at| *at as i64);
        out.inline.extend(store.inline_starts(stored.row)?.into_iter().filter_map(prompt));
        for boundary in store.units_of_session(stored.row)?.into_iter().filter_map(|unit| unit.boundary) {
            match (boundary.prompt, boundary.first_seq) {
                (Some(number), _) => out.starts.extend(prompt(number)),
                // If nmem first saw the session after its start, no signal was weighed.
                (None, Some(seq)) if boundary.score.is_some() => {
                    out.inner.extend(stored.tool_uses.get(seq as usize - 1).map(|line| (*line, boundary.reason)));
                }
                _ => {}
            }
        }
    }
    for places in [&mut out.starts, &mut out.inline] {
        // The first prompt always starts a unit.
        places.retain(|place| *place > 0);
        places.sort_unstable();
    }
    out.inner.sort_unstable();
    Ok(out)
}

fn time(value: &Value) -> Option<Millis> {
    [&value["ts"], &value["timestamp"]].into_iter().find_map(|time| {
        let text = time.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).map(|at| at.as_millisecond());
        text.or_else(|| time.as_i64())
    })
}

/// The common folder of all files in a stream. With it, paths become relative as in a real session.
#[derive(Default)]
struct CommonFolder(Option<Vec<String>>);

impl CommonFolder {
    fn add(&mut self, event: &Value) {
        let Some(path) = event["tool_input"]["file_path"].as_str().filter(|path| path.starts_with('/')) else { return };
        let folders = path.rsplit_once('/').map_or("", |(folder, _)| folder).split('/');
        match &mut self.0 {
            None => self.0 = Some(folders.map(String::from).collect()),
            Some(so_far) => {
                let shared = so_far.iter().zip(folders).take_while(|(a, b)| a == b).count();
                // A file elsewhere (/tmp, another repository) must not make the root the common folder.
                if shared > 1 {
                    so_far.truncate(shared);
                }
            }
        }
    }

    fn path(self) -> Option<String> {
        self.0.map(|folders| folders.join("/")).filter(|folder| !folder.is_empty())
    }
}
