//! Completes an event with what only the disk knows: git state, the client's process, the transcript.

use super::run::{self, Caller, Run};
use crate::command_kind::{commit_folder, entered_folder, never_ran};
use crate::config::environment::session_folders;
use crate::config::pauses::RecordingPause;
use crate::files;
use crate::model::{BackgroundEnd, CommandKind, Event, EventKind, Kind, Millis, Platform, TakenBack, ToolUse, TurnUsage};
use crate::platforms::claude::past::{begins_again, prompt_after};
use crate::platforms::past::{Found, PastOptions, PastReader, PastSource};
use crate::platforms::transcript_tail::{self, ReadOptions};
use crate::platforms::{self, payload};
use crate::project::{self, git};
use crate::redact::Clean;
use crate::runtime;
use crate::store::Store;
use crate::store::events::{TranscriptMark, TranscriptRead};
use anyhow::Result;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Completes and redacts an event, as the store requires.
pub fn completed(run: &Run, event: Event) -> Clean<Event> {
    run.redactor.clean(complete(run, run::without_muted_text(event)))
}

/// Completes an event.
pub fn complete(run: &Run, mut event: Event) -> Event {
    let cwd = event.cwd.clone();
    let is_past = run.caller == Caller::History;
    let state = || git::state_at(Path::new(cwd.as_deref()?), run.home()).filter(|_| !is_past);
    // nmem may first see a session midway, and a fork's transcript begins with a copy of its parent's.
    if !is_past && matches!(event.what, EventKind::SessionStarted(_) | EventKind::UserPrompt { .. }) {
        event.transcript_length = transcript_length(run, &event);
    }
    if run.caller == Caller::Hook {
        let is_file = |path: &str| path.ends_with(".jsonl");
        if !event.transcript.as_deref().is_some_and(is_file) && matches!(event.what, EventKind::TurnEnded { .. }) {
            let adapter = platforms::adapter(event.platform);
            let folders = session_folders(event.platform, run.home());
            let file = folders.iter().find_map(|folder| adapter.session_file(&event.session, folder));
            event.transcript = file.map(|file| file.display().to_string()).or(event.transcript);
        }
        complete_from_transcript(run, &mut event);
    }
    match &mut event.what {
        EventKind::SessionStarted(start) if !is_past => {
            start.git = state();
            // Only Claude Code names its process. For other agents only the hook call is known, not whether they
            // are still alive.
            start.client = match event.platform {
                Platform::ClaudeCode => run.client_pid.map(files::process),
                _ => (run.caller == Caller::Hook).then(files::calling_process),
            };
        }
        EventKind::SessionEnded { git, .. } if !is_past => *git = state(),
        EventKind::PreEdit { path, repository } => {
            let own = own_root(run, cwd.as_deref());
            *repository = root_of(run, path, cwd.as_deref(), own.as_deref()).filter(|root| own.as_ref() != Some(root));
            let from = repository.as_deref().or(cwd.as_deref());
            *path = project::relative(&absolute(path, cwd.as_deref()), from, run.home());
        }
        // A relative name may be relative to any folder; recall completes it.
        EventKind::Delegating { files } => {
            let absolute = files.iter_mut().filter(|path| Path::new(path).is_absolute());
            absolute.for_each(|path| *path = project::relative(path, cwd.as_deref(), run.home()));
        }
        EventKind::ToolUsed(tool) => {
            tool.repository = repository(run, tool, cwd.as_deref());
            let from = tool.repository.as_deref().or(cwd.as_deref());
            if let Some(path) = &mut tool.path {
                let relative = project::relative(&absolute(path, cwd.as_deref()), from, run.home());
                // If a tool's content is only its path, the content uses the stored form of the path.
                if tool.content.as_ref() == Some(path) {
                    tool.content = Some(relative.clone());
                }
                *path = relative;
            }
            if !is_past && commits_elsewhere(run, tool, cwd.as_deref()) {
                tool.metadata.commit = None;
                tool.command = Some(CommandKind::Git);
            }
            let error = tool.metadata.response.as_deref().or(tool.outcome.as_deref()).unwrap_or_default();
            if tool.succeeded == Some(false) && never_ran(error) {
                tool.command = tool.command.map(|_| CommandKind::Other);
            }
            if run.caller == Caller::Hook && tool.succeeded == Some(true) {
                name_quiet_commit(run, tool, cwd.as_deref());
            }
        }
        _ => {}
    }
    event
}

/// A path as an absolute one, if the working directory is known.
fn absolute(path: &str, cwd: Option<&str>) -> String {
    let known = cwd.map(Path::new).filter(|cwd| cwd.is_absolute());
    known.map_or_else(|| path.to_string(), |cwd| cwd.join(path).display().to_string())
}

/// Root of the repository of the working directory.
fn own_root(run: &Run, cwd: Option<&str>) -> Option<String> {
    project::repository_of("", cwd, run.home()).map(|root| root.display().to_string())
}

/// Root of the repository of a file or folder. A submodule belongs to its repository, whose root is `own`.
fn root_of(run: &Run, path: &str, cwd: Option<&str>, own: Option<&str>) -> Option<String> {
    let found = project::repository_of(path, cwd, run.home())?;
    match own.filter(|own| *own != found.as_os_str() && project::is_submodule(&found, Path::new(own))) {
        Some(own) => Some(own.to_string()),
        None => Some(found.display().to_string()),
    }
}

/// Root of the repository in which a tool edited a file or ran a command. Reading a file of another repository is work in
/// the own one, unless there is none: the agent was started above its repositories.
pub fn repository(run: &Run, tool: &ToolUse, cwd: Option<&str>) -> Option<String> {
    let own = own_root(run, cwd);
    let entered = || tool.content.as_deref().and_then(entered_folder).unwrap_or_default();
    let place = match (tool.kind, &tool.path) {
        (Kind::Edit | Kind::Write, Some(path)) => path.as_str(),
        (Kind::Command, _) => entered(),
        (_, Some(path)) if own.is_none() => path.as_str(),
        _ => return own,
    };
    let of_home = place.strip_prefix("~/").or(place.strip_prefix("$HOME/")).zip(run.home());
    let place = of_home.map_or_else(|| place.to_string(), |(rest, home)| home.join(rest).display().to_string());
    let found = root_of(run, &place, cwd, own.as_deref());
    // A file outside all repositories, such as a setting of the user, is edited for the same work.
    found.or(own)
}

/// Returns true if a command committed in a repository other than the one in which the agent was started.
fn commits_elsewhere(run: &Run, tool: &ToolUse, cwd: Option<&str>) -> bool {
    let (Some(_), Some(cwd)) = (&tool.metadata.commit, cwd.map(Path::new).filter(|cwd| cwd.is_absolute())) else { return false };
    let own = run.session_folder.as_deref().unwrap_or(cwd);
    let folder = tool.content.as_deref().and_then(commit_folder).map_or(cwd.to_path_buf(), |folder| cwd.join(folder));
    folder != own && project::is_other_repository(&folder, own, run.home())
}

/// Adds the id of a commit of which git printed nothing, if the reflog ends with a commit of that subject.
fn name_quiet_commit(run: &Run, tool: &mut ToolUse, cwd: Option<&str>) {
    let Some(commit) = tool.metadata.commit.as_mut().filter(|commit| commit.sha.is_none()) else { return };
    let Some(cwd) = cwd.map(Path::new).filter(|cwd| cwd.is_absolute()) else { return };
    let folder = tool.content.as_deref().and_then(commit_folder).map_or(cwd.to_path_buf(), |folder| cwd.join(folder));
    let last = git::last_commit_at(&folder, run.home());
    commit.sha = last.filter(|(_, subject)| commit.subject.as_ref() == Some(subject)).map(|(sha, _)| sha);
}

/// Maximum bytes of a transcript to read per turn.
const BYTES: u64 = 4 << 20;
/// Bytes from the end of the file to search for a call's result. It is usually in the last lines, but a line holds a
/// call's whole output.
const OF_CALL: [u64; 2] = [32 << 10, 1 << 20];
/// Maximum bytes from the end of the file to search for the closing message.
const OF_CLOSING: u64 = 256 << 10;
/// Bytes before a prompt in which the line that it follows usually lies.
const NEAR_PROMPT: u64 = 64 << 10;
/// Interval between checks whether an agent has written its last message.
const WRITING: Duration = Duration::from_millis(10);
/// Maximum bytes of a transcript's first line.
const FIRST_BYTES: u64 = 1 << 20;

/// Reads on from the end of the last turn: tokens, and what no hook reported. `None` for events that do not end a turn.
pub fn read_transcript(run: &Run, store: &Store, event: &Clean<Event>) -> Result<Option<TranscriptRead>> {
    match event.what {
        EventKind::TurnEnded { .. } | EventKind::SessionEnded { .. } => {}
        EventKind::SubagentEnded { .. } => return read_subagent(run, store, event),
        _ => return Ok(None),
    }
    let Some(path) = transcript_path(run, event) else { return Ok(None) };
    let adapter = platforms::adapter(event.platform);
    let known = store.transcript_mark(event.platform, &event.session)?.unwrap_or_default();
    let (known_to, mark) = (known.offset, if adapter.has_file_per_turn() { TranscriptMark::default() } else { known });
    let off = pauses(run, event);
    let misses_prompts = mark.turn.is_none() && !adapter.reports_prompts();
    let from = mark.turn.or(misses_prompts.then_some(mark.offset));
    let (mut turn, usage, to);
    if event.platform == Platform::ClaudeCode {
        let Ok(stretch) = files::tail(&path, mark.offset, BYTES) else { return Ok(None) };
        // Its files are identified by name.
        turn = TurnReader::new(run, event.platform, &path, from, Some(Value::Null));
        // Thinking from a turn that was not recorded does not belong to the next one.
        let thinking_from = mark.turn.filter(|_| run.config.thinking.value);
        let wanted = ReadOptions {
            from_start: stretch.from == mark.offset,
            last_message: mark.last_message.as_deref(),
            thinking_from: thinking_from.map(|turn| turn.saturating_sub(stretch.from) as usize),
            passed_over: &off,
        };
        let each = &mut |record: Value, at: usize| turn.line(record, stretch.from + at as u64);
        let reading = transcript_tail::read(&stretch.bytes, &wanted, each);
        if reading.consumed == 0 {
            return Ok(None);
        }
        (usage, to) = (reading.usage, stretch.from + reading.consumed as u64);
    } else {
        let Some(part) = session_part(event.platform, &path, mark.offset) else { return Ok(None) };
        let first = part.first.clone().filter(|_| from.is_some_and(|from| from > 0));
        turn = TurnReader::new(run, event.platform, &path, from, first);
        // Without tokens, this turn is read again: they may follow later. Earlier ones are not, nor what they took back.
        let again = mark.turn.map_or(mark.offset, |turn| turn.max(mark.offset));
        (usage, to) = read_part(run, event.platform, &path, part, &mut turn).unwrap_or((TurnUsage::default(), again));
    }
    let taken = turn.taken_back(&path).map(EventKind::TakenBack);
    let taken = taken.map(|what| Event { what, usage: None, ..Event::clone(event) });
    let mut events: Vec<Event> = taken.into_iter().chain(turn.events()).collect();
    events.retain(|event| !off(Some(event.at).filter(|at| *at > 0)));
    events.retain(|event| misses_prompts || !matches!(event.what, EventKind::UserPrompt { .. }));
    let missed = missed(run, store, event, events)?;
    Ok(Some(TranscriptRead { usage: run.redactor.clean(usage), from: known_to, to, missed }))
}

/// Returns a function that says whether recording was paused when a record was written. A record without a timestamp may
/// be from any time.
fn pauses<'a>(run: &'a Run, event: &'a Event) -> impl Fn(Option<Millis>) -> bool + 'a {
    let switches: Vec<&RecordingPause> = run.config.switches.off.iter().collect();
    let at = run::whereabouts(run, event);
    let places = runtime::places(&run.projects(), &at, &switches);
    move |time| switches.iter().any(|off| off.is_about(at.session, &places) && time.is_none_or(|time| off.held(time)))
}

/// Reads the file of a subagent of Claude Code that has ended: calls that no hook reported.
fn read_subagent(run: &Run, store: &Store, event: &Clean<Event>) -> Result<Option<TranscriptRead>> {
    let Some(agent) = event.agent.as_deref().filter(|_| event.platform == Platform::ClaudeCode) else { return Ok(None) };
    let Some(mark) = store.transcript_mark(event.platform, &event.session)?.filter(|mark| mark.turn.is_some()) else {
        return Ok(None);
    };
    let own = |transcript: &str| Path::new(transcript).with_extension("").join("subagents").join(format!("agent-{agent}.jsonl"));
    let file = event.transcript.as_deref().map(|transcript| own(transcript).display().to_string());
    let Some(path) = transcript_path(run, &Event { transcript: file, ..Event::clone(event) }) else { return Ok(None) };
    let Ok(stretch) = files::tail(&path, 0, BYTES) else { return Ok(None) };
    let off = pauses(run, event);
    let mut reader = TurnReader::new(run, event.platform, &path, Some(0), Some(Value::Null));
    let records = stretch.bytes.split(|byte| *byte == b'\n').filter_map(payload::line);
    records.filter(|record| !off(transcript_tail::time(record))).for_each(|record| reader.line(record, 0));
    let missed = missed(run, store, event, reader.events())?;
    let usage = run.redactor.clean(TurnUsage::default());
    Ok(Some(TranscriptRead { usage, from: mark.offset, to: mark.offset, missed }))
}

/// Reads the current turn of a session's own file, with the reader that `nmem import` uses.
struct TurnReader {
    /// `None` if the turn's prompt was not recorded: nothing of it is.
    reader: Option<(Box<dyn PastReader>, u64)>,
    found: Found,
    /// The line that the turn's prompt follows, in Claude Code's files.
    parent: Option<String>,
    /// The conversation may begin again with the turn's prompt.
    begins_again: bool,
    /// Prompts that the person took back before this turn, in files that state it.
    taken: Option<TakenBack>,
}

impl TurnReader {
    fn new(run: &Run, platform: Platform, path: &Path, turn: Option<u64>, first: Option<Value>) -> TurnReader {
        let format = platforms::adapter(platform).past().first();
        let reader = format.zip(turn).map(|(format, from)| ((format.reader)(&past_options(run, path, first)), from));
        TurnReader { reader, found: Found::default(), parent: None, begins_again: false, taken: None }
    }

    fn line(&mut self, record: Value, at: u64) {
        if let Some((reader, _)) = self.reader.as_mut().filter(|(_, from)| at >= *from) {
            self.begins_again |= begins_again(&record);
            if self.parent.is_none() && record["promptId"].is_string() {
                self.parent = record["parentUuid"].as_str().map(String::from);
            }
            reader.line(record, at, &mut self.found);
        }
    }

    /// Returns the prompts that the person took back before this turn. In Claude Code's files, the turn's prompt then
    /// follows the same line as an earlier prompt.
    fn taken_back(&mut self, path: &Path) -> Option<TakenBack> {
        let (_, turn) = self.reader.as_ref()?;
        let before = |bytes: u64| files::part(path, turn.saturating_sub(bytes)..*turn).ok();
        let by_parent = self.parent.as_deref().and_then(|parent| {
            let near = before(NEAR_PROMPT)?;
            // Usually it follows the last lines.
            let uuid = format!("\"uuid\":\"{parent}\"");
            let is_near = near.windows(uuid.len()).any(|part| part == uuid.as_bytes());
            prompt_after(&if is_near { near } else { before(BYTES)? }, parent)
        });
        let all = Some(TakenBack::Last(u64::MAX)).filter(|_| self.begins_again);
        by_parent.map(TakenBack::Since).or(all).or(self.taken.take())
    }

    /// Returns the events of the turn so far.
    fn events(mut self) -> Vec<Event> {
        if let Some((reader, from)) = &mut self.reader {
            reader.end(*from, false, &mut self.found);
        }
        self.found.events
    }
}

fn past_options(run: &Run, path: &Path, first: Option<Value>) -> PastOptions {
    PastOptions {
        path: path.to_path_buf(),
        cwd: None,
        length: 0,
        skip_tools: run.config.skip_tools.value.clone(),
        thinking: false,
        copied: HashSet::new(),
        first,
    }
}

/// Maximum difference between the time at which a call is written and the time at which its hook is called.
const APART: Millis = 2000;

/// Returns the calls and answers of a turn that are not stored yet. A stored call whose outcome is only now known becomes
/// the end of that call.
fn missed(run: &Run, store: &Store, ended: &Event, turn: Vec<Event>) -> Result<Vec<Clean<Event>>> {
    let (platform, session) = (ended.platform, ended.session.as_str());
    let id = |event: &Event| if let EventKind::ToolUsed(tool) = &event.what { tool.id.clone() } else { None };
    let ids: Vec<String> = turn.iter().filter_map(id).collect();
    let stored = match ids.is_empty() {
        true => HashMap::new(),
        false => store.stored_calls(platform, session, &ids.iter().map(String::as_str).collect::<Vec<_>>())?,
    };
    let mut new = Vec::new();
    for mut event in turn {
        match &event.what {
            EventKind::ToolUsed(tool) => match tool.id.as_ref().and_then(|id| stored.get(id)) {
                Some(true) => continue,
                Some(false) if tool.succeeded.is_none() => continue,
                Some(false) => event.what = EventKind::BackgroundEnded(end_of(tool)),
                None => {}
            },
            EventKind::UserPrompt { .. }
            | EventKind::Answered { .. }
            | EventKind::BackgroundEnded(_)
            | EventKind::TakenBack(_) => {}
            _ => continue,
        }
        (event.session, event.transcript_length) = (session.to_string(), None);
        // The line that states the folder may be before this turn.
        event.cwd = event.cwd.or_else(|| ended.cwd.clone());
        new.push(run.redactor.clean(complete(run, event)));
    }
    let is_call = |event: &Clean<Event>| matches!(event.what, EventKind::ToolUsed(_));
    if let Some(since) = new.iter().filter(|event| is_call(event)).map(|event| event.at).min() {
        // Some platforms send no ids. Each of their calls matches one in the file.
        let mut unnamed = store.unnamed_calls(platform, session, since - APART)?;
        new.retain(|event| {
            let EventKind::ToolUsed(tool) = &event.what else { return true };
            let done = tool.content.as_ref().or(tool.path.as_ref());
            let same = unnamed.iter().position(|(kind, known)| kind == tool.kind.name() && known.as_ref() == done);
            same.map(|at| unnamed.swap_remove(at)).is_none()
        });
    }
    Ok(new)
}

fn end_of(tool: &ToolUse) -> BackgroundEnd {
    BackgroundEnd {
        id: tool.id.clone().unwrap_or_default(),
        succeeded: tool.succeeded,
        exit_code: tool.metadata.exit_code,
        output: tool.metadata.response.clone().or_else(|| tool.outcome.clone()),
    }
}

/// A part of a session's file: its records with their offsets. In a document, the offset of a record is its number.
struct SessionPart {
    /// The first record of the file.
    first: Option<Value>,
    records: Vec<(u64, Value)>,
    from: u64,
    /// Offset after the last complete record.
    to: u64,
}

fn session_part(platform: Platform, path: &Path, from: u64) -> Option<SessionPart> {
    if let PastSource::Document(document) = platforms::adapter(platform).past().first()?.source {
        files::length(path).filter(|bytes| *bytes <= BYTES)?;
        let all = (document.records)(path).ok()?;
        let (first, to) = (all.first().cloned(), all.len() as u64);
        let records = (0..).zip(all).skip_while(|(at, _)| *at < from).collect();
        return Some(SessionPart { first, records, from, to });
    }
    let stretch = files::tail(path, from, BYTES).ok()?;
    let whole = stretch.bytes.iter().rposition(|byte| *byte == b'\n')? + 1;
    let mut at = stretch.from;
    let record = |line: &[u8]| {
        let begin = at;
        at += line.len() as u64 + 1;
        Some((begin, payload::line(line)?))
    };
    let records = stretch.bytes[..whole].split(|byte| *byte == b'\n').filter_map(record).collect();
    Some(SessionPart { first: first_line(path), records, from: stretch.from, to: stretch.from + whole as u64 })
}

/// Returns the tokens of a part, and its end. Uses the same reader as `nmem import`, and passes each record on to the
/// turn's.
fn read_part(run: &Run, platform: Platform, path: &Path, part: SessionPart, turn: &mut TurnReader) -> Option<(TurnUsage, u64)> {
    let format = platforms::adapter(platform).past().first()?;
    let options = past_options(run, path, part.first.filter(|_| part.from > 0));
    let (mut reader, mut found) = ((format.reader)(&options), Found::default());
    let mut rewound_to = None;
    for (at, record) in part.records {
        rewound_to = platforms::adapter(platform).rewound_to(&record).map(String::from).or(rewound_to);
        turn.line(record.clone(), at);
        reader.line(record, at, &mut found);
    }
    reader.end(part.from, true, &mut found);
    turn.taken = found.events.iter().rev().find_map(|event| match &event.what {
        EventKind::TakenBack(taken) => Some(taken.clone()),
        _ => None,
    });
    turn.taken = rewound_to.and_then(|id| time_of_message(path, &id)).map(TakenBack::At).or(turn.taken.take());
    let usages = found.events.into_iter().filter(|event| event.agent.is_none()).filter_map(|event| event.usage);
    let mut sum: Option<TurnUsage> = None;
    for usage in usages {
        let before = sum.take().and_then(|sum| sum.tokens).unwrap_or_default();
        let tokens = usage.tokens.map(|tokens| tokens.plus(before)).or(Some(before));
        sum = Some(TurnUsage { tokens, ..*usage });
    }
    Some((sum?, part.to))
}

/// Returns the time of a message, by its id; hooks of some agents do not name messages.
fn time_of_message(path: &Path, id: &str) -> Option<Millis> {
    let bytes = files::tail(path, 0, BYTES).ok()?.bytes;
    let mark = format!("\"id\":\"{id}\"");
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.filter(|line| line.contains(&mark)).find_map(|line| transcript_tail::time(&serde_json::from_str(line).ok()?))
}

fn first_line(path: &Path) -> Option<Value> {
    let mut line = Vec::new();
    files::reader(path, FIRST_BYTES).ok()?.read_until(b'\n', &mut line).ok()?;
    payload::line(&line)
}

/// Adds data that the platform's hooks do not report: a command's exit code, and the closing message.
pub fn complete_from_transcript(run: &Run, event: &mut Event) {
    let adapter = platforms::adapter(event.platform);
    let end = |bytes| Some(files::tail(&transcript_path(run, event)?, 0, bytes).ok()?.bytes);
    let is_open =
        |tool: &ToolUse| tool.kind == Kind::Command && tool.succeeded == Some(true) && tool.metadata.exit_code.is_none();
    match &event.what {
        EventKind::ToolUsed(tool) if is_open(tool) && adapter.reports_exit_codes_in_transcript() => {
            let found = |id| OF_CALL.into_iter().find_map(|bytes| adapter.exit_code(&end(bytes)?, id));
            let code = tool.id.as_deref().and_then(found);
            if let (Some(code), EventKind::ToolUsed(tool)) = (code, &mut event.what) {
                tool.ended_with(code);
            }
        }
        EventKind::TurnEnded { error: None, .. } if adapter.keeps_closing_in_transcript() => {
            let wait = event.transcript.as_ref().map_or(Duration::ZERO, |_| adapter.closing_wait());
            let until = Instant::now() + wait;
            let mut said = end(OF_CLOSING).and_then(|bytes| adapter.closing(&bytes));
            while said.is_none() && Instant::now() < until {
                thread::sleep(WRITING);
                said = end(OF_CLOSING).and_then(|bytes| adapter.closing(&bytes));
            }
            if let EventKind::TurnEnded { closing, .. } = &mut event.what {
                *closing = said.or(closing.take());
            }
        }
        _ => {}
    }
}

/// Returns the transcript's length in bytes. A file that does not exist yet has none: agents write it with the answer.
fn transcript_length(run: &Run, event: &Event) -> Option<u64> {
    match transcript_path(run, event) {
        Some(path) => files::length(&path),
        None => {
            let path = Path::new(event.transcript.as_deref()?);
            let is_own = session_folders(event.platform, run.home()).iter().any(|own| path.starts_with(own));
            (is_own && !path.exists()).then_some(0)
        }
    }
}

/// Returns the transcript's path if it really is in the platform's own folder; links that leave it are not followed.
pub fn transcript_path(run: &Run, event: &Event) -> Option<PathBuf> {
    let path = Path::new(event.transcript.as_deref()?);
    let is_document = || match platforms::adapter(event.platform).past().first()?.source {
        PastSource::Document(document) => Some((document.is_file)(path)),
        _ => None,
    };
    if path.extension().is_none_or(|e| e != "jsonl") && is_document() != Some(true) {
        return None;
    }
    let real = files::canonical(path).ok()?;
    let mut folders = session_folders(event.platform, run.home()).into_iter();
    folders.find(|own| path.starts_with(own) && files::canonical(own).is_ok_and(|own| real.starts_with(own))).map(|_| real)
}
