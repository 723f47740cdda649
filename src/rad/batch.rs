//! Batches of requests, one per line. Consecutive entities are stored in one transaction.

use super::request::ProtocolError;
use super::{Answered, Rad, entities};
use anyhow::Result;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

/// Maximum bytes of a line.
const LINE: usize = 16 << 20;
/// Bytes to read at once, and entities per transaction, small enough that hooks hardly wait.
const BUFFER: usize = 256 << 10;
const GROUP: usize = 100;
/// Time for which settings stay valid in a batch that does not pause.
const FRESH: Duration = Duration::from_millis(500);

/// Answers one request per line until the input ends; `say` receives each answer. Returns true if every request was
/// answered.
pub fn batch(verb: Option<&str>, input: impl Read, say: &mut dyn FnMut(Answered) -> Result<()>) -> Result<bool> {
    let rad = &mut Rad::begin();
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut all = true;
    let mut line = Vec::new();
    // Entities waiting to be stored together.
    let mut group = entities::Group::default();
    loop {
        // The program waits for an answer before it sends the next request.
        let waits = !input.buffer().contains(&b'\n');
        if group.len() == GROUP || waits {
            all &= flush(rad, &mut group, say)?;
        }
        line.clear();
        if (&mut input).take(LINE as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(all);
        }
        // While the batch waited, the user may have run `nmem off`.
        if group.is_empty() && (waits || rad.read_at.elapsed() > FRESH) {
            rad.refresh();
        }
        if line.len() > LINE && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            line.clear();
        }
        if line.trim_ascii().is_empty() && !line.is_empty() {
            continue;
        }
        let answer = match serde_json::from_slice::<Value>(&line) {
            Err(_) => Err(ProtocolError::bad("the line is not JSON of at most 16 MB")),
            Ok(value) => match value["verb"].as_str().or(verb) {
                None => Err(ProtocolError::bad("no verb given, neither on the command line nor in `verb`")),
                Some("entities") if entities::is_record(&value) => {
                    rad.take(&value, &mut group);
                    continue;
                }
                Some(verb) => {
                    all &= flush(rad, &mut group, say)?;
                    rad.answer(verb, &value)
                }
            },
        };
        all &= flush(rad, &mut group, say)?;
        all &= answer.is_ok();
        say(answer)?;
    }
}

fn flush(rad: &Rad, group: &mut entities::Group, say: &mut dyn FnMut(Answered) -> Result<()>) -> Result<bool> {
    let mut all = true;
    for answer in rad.store(std::mem::take(group)) {
        all &= answer.is_ok();
        say(answer)?;
    }
    Ok(all)
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let read = input.fill_buf()?;
        let (length, ends) = match read.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (read.len(), read.is_empty()),
        };
        input.consume(length);
        if ends {
            return Ok(());
        }
    }
}
