//! Use case: redacts all stored data again, because newer rules find secrets that older ones missed. These secrets are
//! removed from every byte, as by `nmem forget`.

use crate::files;
use crate::forgetting::{line_files, set_aside};
use crate::redact::Redactor;
use crate::store::Store;
use crate::store::stored_texts::ChangedText;
use anyhow::{Context, Result};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Secrets that the current rules find in stored data.
#[derive(Debug, Default)]
pub struct OldSecrets {
    texts: Vec<ChangedText>,
    /// Line-based files (rejected events, the log), each with the number of lines that change.
    files: Vec<(PathBuf, usize)>,
    /// Broken databases that were set aside and contain a secret. They cannot be rewritten.
    pub set_aside: Vec<PathBuf>,
}

impl OldSecrets {
    /// Searches all texts; `step` receives progress.
    pub fn find(store: &Store, redactor: &Redactor, step: &mut dyn FnMut(&str)) -> Result<OldSecrets> {
        let change = |text: &str, is_id: bool| redactor.again(text, is_id);
        let mut progress = |done, all| step(&format!("checking stored texts for secrets: row {done} of {all}"));
        let mut found = OldSecrets { texts: store.texts_to_change(&change, &mut progress)?, ..OldSecrets::default() };
        for path in line_files(store.files()) {
            let changed = lines_again(&path, redactor)?.1;
            if changed > 0 {
                found.files.push((path, changed));
            }
        }
        for path in set_aside(store.files()) {
            if holds_secret(&text(&path)?, redactor) {
                found.set_aside.push(path);
            }
        }
        Ok(found)
    }

    /// Returns the number of texts and lines that change.
    pub fn count(&self) -> usize {
        self.texts.len() + self.files.iter().map(|(_, lines)| lines).sum::<usize>()
    }

    /// Replaces the secrets with marks, and rewrites the database without its free pages.
    pub fn remove(&self, store: &mut Store, redactor: &Redactor, step: &mut dyn FnMut(&str)) -> Result<()> {
        if self.count() > 0 {
            step("replacing secrets by marks");
            store.change_texts(&self.texts)?;
            // Read again inside a write transaction: rejected lines are appended inside one, so none is lost.
            store.write(|_| {
                let rewrite = |(path, _): &(PathBuf, usize)| Ok(files::replace_private(path, &lines_again(path, redactor)?.0)?);
                self.files.iter().try_for_each(rewrite)
            })?;
            store.rebuild_index(&mut |done, all| step(&format!("indexing row {done} of {all}")))?;
            step("rewriting the database");
            store.scrub()?;
        }
        store.set_redaction_version()
    }
}

/// Redacts a line-based file again; returns the new content and the number of lines that change.
fn lines_again(path: &Path, redactor: &Redactor) -> Result<(String, usize)> {
    let (mut new, mut changed) = (String::new(), 0);
    for line in text(path)?.lines() {
        let cleaned = redactor.again(line, false);
        changed += usize::from(cleaned.is_some());
        new.push_str(cleaned.as_ref().map_or(line, |cleaned| cleaned.as_str()));
        new.push('\n');
    }
    Ok((new, changed))
}

/// Whether the readable parts of a file, which may be binary, contain a secret.
fn holds_secret(text: &str, redactor: &Redactor) -> bool {
    text.split(|c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == char::REPLACEMENT_CHARACTER)
        .filter(|part| part.len() > 8)
        .any(|part| redactor.again(part, false).is_some())
}

fn text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    match files::open_private(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => {
            read.map(|_| String::from_utf8_lossy(&bytes).into_owned()).with_context(|| format!("cannot read {}", path.display()))
        }
    }
}
