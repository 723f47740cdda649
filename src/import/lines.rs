//! Reader for the lines of a session file, starting at an offset.

use super::find::{is_compressed, open};
use crate::files;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Instant;

/// Maximum bytes of a line. A longer line is cut, so it is not valid JSON.
const LINE: u64 = 64 << 20;

/// The lines of a part of a file.
pub struct Lines {
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Number of lines read so far, counted from the start of the part.
    pub number: u64,
    /// Offset after the last complete line, in bytes of the (decompressed) text.
    pub end: u64,
    at: u64,
    /// True if the last line ended with a newline. If not, it may still be growing.
    pub is_complete: bool,
    /// Time at which to stop reading.
    pub deadline: Option<Instant>,
    /// True if reading stopped at the deadline.
    pub is_late: bool,
}

impl Lines {
    /// Opens a file and skips to an offset, in bytes of the (decompressed) text.
    pub fn open(path: &Path, from: u64) -> io::Result<Lines> {
        let reader: Box<dyn BufRead> = if is_compressed(path) {
            let mut reader = open(path)?;
            io::copy(&mut reader.by_ref().take(from), &mut io::sink())?;
            reader
        } else {
            let mut file = files::regular(path)?;
            file.seek(SeekFrom::Start(from))?;
            Box::new(BufReader::with_capacity(1 << 18, file))
        };
        Ok(Lines { reader, line: Vec::new(), number: 0, end: from, at: from, is_complete: true, deadline: None, is_late: false })
    }

    /// Returns the next line that is not blank, with its offset.
    pub fn next(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        loop {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.is_late = true;
                return Ok(None);
            }
            self.line.clear();
            let at = self.at;
            self.at += self.reader.by_ref().take(LINE).read_until(b'\n', &mut self.line)? as u64;
            if self.at == at {
                return Ok(None);
            }
            self.is_complete = self.line.ends_with(b"\n");
            if !self.is_complete && self.line.len() as u64 == LINE {
                self.at += skip_line(&mut self.reader)?;
                self.is_complete = true;
            }
            self.number += 1;
            if self.is_complete {
                self.end = self.at;
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some((at, self.line.trim_ascii())));
            }
        }
    }
}

/// Skips the rest of a line and returns the number of bytes skipped.
fn skip_line(reader: &mut dyn BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let part = reader.fill_buf()?;
        let (length, ends) = match part.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (part.len(), part.is_empty()),
        };
        reader.consume(length);
        skipped += length as u64;
        if ends {
            return Ok(skipped);
        }
    }
}

/// Number of lines before an offset.
pub fn lines_before(path: &Path, offset: u64) -> u64 {
    let mut lines = 0;
    let Ok(reader) = open(path) else { return 0 };
    let mut reader = reader.take(offset);
    while let Ok(read @ 1..) = skip_line(&mut reader) {
        lines += u64::from(read > 0);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_line_is_skipped_and_the_next_one_is_read() {
        let mut text: &[u8] = b"rest of a long line\nnext\nlast";
        assert_eq!(skip_line(&mut text).unwrap(), 20);
        assert_eq!(text, b"next\nlast");
        assert_eq!((skip_line(&mut text).unwrap(), skip_line(&mut text).unwrap(), skip_line(&mut text).unwrap()), (5, 4, 0));
    }
}
