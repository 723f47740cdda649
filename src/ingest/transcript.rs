//! Reads what a session's transcript added since the last turn: tokens, model, thinking. An unreadable transcript is
//! ignored.

use super::filter;
use super::run::Run;
use crate::config::pauses::RecordingPause;
use crate::files;
use crate::model::{Event, EventKind, Millis, Platform, TurnUsage};
use crate::platforms::transcript::{self, ReadOptions};
use crate::redact::Clean;
use crate::runtime;
use crate::store::Store;
use crate::store::sessions::TranscriptRead;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Maximum bytes of a transcript to read per turn.
const BYTES: u64 = 4 << 20;

/// Continues reading where the last turn ended; `None` for events that end no turn.
pub fn read(run: &Run, store: &Store, event: &Clean<Event>) -> Result<Option<TranscriptRead>> {
    if !matches!(event.what, EventKind::TurnEnded { .. } | EventKind::SessionEnded { .. }) {
        return Ok(None);
    }
    let Some(path) = path(run, event) else { return Ok(None) };
    let mark = store.transcript_mark(event.platform, &event.session)?.unwrap_or_default();
    let Ok(stretch) = files::tail(&path, mark.offset, BYTES) else { return Ok(None) };
    if event.platform != Platform::ClaudeCode {
        return Ok(None);
    }
    let switches: Vec<&RecordingPause> = run.config.switches.off.iter().collect();
    let at = filter::whereabouts(run, event);
    let places = runtime::places(&run.projects(), &at, &switches);
    let off = |time: Option<Millis>| {
        // A record without a time may be from any time.
        switches.iter().any(|off| off.is_about(at.session, &places) && time.is_none_or(|time| off.held(time)))
    };
    // Thinking from a turn that was not recorded does not belong to the next one.
    let turn = mark.turn.filter(|_| run.config.thinking.value);
    let wanted = ReadOptions {
        from_start: stretch.from == mark.offset,
        last_message: mark.last_message.as_deref(),
        thinking_from: turn.map(|turn| turn.saturating_sub(stretch.from) as usize),
        passed_over: &off,
    };
    let reading = transcript::read(&stretch.bytes, &wanted);
    if reading.consumed == 0 {
        return Ok(None);
    }
    let usage: Clean<TurnUsage> = run.redactor.clean(reading.usage);
    Ok(Some(TranscriptRead { usage, from: mark.offset, to: stretch.from + reading.consumed as u64 }))
}

/// The transcript's path, if it really is in the platform's own folder; links out of it are not followed.
pub fn path(run: &Run, event: &Event) -> Option<PathBuf> {
    let path = Path::new(event.transcript.as_deref()?);
    let own = run.transcripts.as_ref()?;
    if !path.starts_with(own) || path.extension().is_none_or(|e| e != "jsonl") {
        return None;
    }
    path.canonicalize().ok().filter(|real| own.canonicalize().is_ok_and(|own| real.starts_with(own)))
}
