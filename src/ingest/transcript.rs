//! What a session's transcript holds since the last turn: tokens, the model, thinking. A transcript that can't be read is
//! none.

use super::filter;
use super::run::Run;
use crate::config::switches::Off;
use crate::files;
use crate::model::{Event, Happening, Millis, Platform, TurnUsage};
use crate::platforms::transcript::{self, Wanted};
use crate::redact::Clean;
use crate::runtime;
use crate::store::Store;
use crate::store::sessions::TranscriptRead;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Bytes of a transcript that are read at the end of one turn.
const BYTES: u64 = 4 << 20;

/// Reads on from where the last turn ended; `None` for an event that ends no turn.
pub fn read(run: &Run, store: &Store, event: &Clean<Event>) -> Result<Option<TranscriptRead>> {
    if !matches!(event.what, Happening::TurnEnded { .. } | Happening::SessionEnded { .. }) {
        return Ok(None);
    }
    let Some(path) = path(run, event) else { return Ok(None) };
    let mark = store.transcript_mark(event.platform, &event.session)?.unwrap_or_default();
    let Ok(stretch) = files::tail(&path, mark.offset, BYTES) else { return Ok(None) };
    if event.platform != Platform::ClaudeCode {
        return Ok(None);
    }
    let switches: Vec<&Off> = run.config.switches.off.iter().collect();
    let at = filter::whereabouts(run, event);
    let places = runtime::places(&run.projects(), &at, &switches);
    let off = |time: Option<Millis>| {
        // What tells no time may be of any time.
        switches.iter().any(|off| off.is_about(at.session, &places) && time.is_none_or(|time| off.held(time)))
    };
    // Thinking of a turn that was not recorded is not the next turn's.
    let turn = mark.turn.filter(|_| run.config.thinking.value);
    let wanted = Wanted {
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

/// The transcript, if it really lies in the platform's own folder: a link out of it is not followed.
pub fn path(run: &Run, event: &Event) -> Option<PathBuf> {
    let path = Path::new(event.transcript.as_deref()?);
    let own = run.transcripts.as_ref()?;
    if !path.starts_with(own) || path.extension().is_none_or(|e| e != "jsonl") {
        return None;
    }
    path.canonicalize().ok().filter(|real| own.canonicalize().is_ok_and(|own| real.starts_with(own)))
}
