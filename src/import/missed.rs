//! Sessions that hooks missed before nmem kept a record of ended pauses: recording may have been off at the time.

use super::find::{FoundFile, Imported, first_lines};
use crate::config::Config;
use crate::platforms::transcript::time;
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;

/// Removes such sessions from `files` and returns them.
pub fn take_missed(config: &Config, files: &mut Vec<FoundFile>, known: &Imported) -> Result<Vec<FoundFile>> {
    let store = Store::open_to_read(&config.files.value, PERSON_WAIT)?;
    let Some(hooked) = store.as_ref().map(Store::hooks_before_pauses).transpose()?.flatten() else { return Ok(Vec::new()) };
    let is_missed = |file: &mut FoundFile| {
        let Some(since) = hooked.first.get(file.format.platform.name()) else { return false };
        let session = (file.format.session_file)(&file.path);
        let names = session.as_deref().map_or_else(|| file.session_names(), FoundFile::names_of);
        let at = || first_lines(&file.path).iter().find_map(time).unwrap_or(file.modified_at);
        !known.contains_key(&file.name())
            && file.modified_at >= *since
            && !names.iter().any(|name| hooked.recorded.contains(name))
            && (*since..hooked.pauses_kept_since).contains(&at())
    };
    Ok(files.extract_if(.., is_missed).collect())
}
