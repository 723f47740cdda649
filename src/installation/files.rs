//! Reading and writing settings files: whole, atomically, with a backup.

use crate::files;
use anyhow::{Context, Result};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Maximum bytes of a settings file.
const SETTINGS_BYTES: u64 = 4 << 20;

/// Reads a file's text; `None` if there is no file.
pub fn read(file: &Path) -> Result<Option<String>> {
    // A settings file may be a link to a file elsewhere.
    let real = match files::canonical(file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        real => real.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let mut text = String::new();
    let read = files::reader(&real, SETTINGS_BYTES).and_then(|mut reader| reader.read_to_string(&mut text));
    read.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Some(text))
}

/// Returns the path of a file's backup.
pub fn backup(file: &Path) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.with_file_name(format!("{name}.before-nmem"))
}

/// Writes a temporary file and renames it. Links are kept, even dangling ones. Settings may contain keys, so a new file
/// is private; an existing file keeps its mode.
pub fn write_whole(file: &Path, text: &str) -> Result<()> {
    let target = match fs::read_link(file) {
        Ok(link) => file.parent().unwrap_or(Path::new("/")).join(link),
        Err(_) => file.to_path_buf(),
    };
    let target = files::canonical(&target).unwrap_or(target);
    let folder = target.parent().context("a settings file without a folder")?;
    let temporary = target.with_extension(format!("nmem-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let _ = fs::remove_file(&temporary);
        let mut out = files::append_private(&temporary)?;
        out.write_all(text.as_bytes())?;
        if let Ok(meta) = fs::metadata(&target) {
            out.set_permissions(meta.permissions())?;
        }
        out.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write().with_context(|| format!("cannot write {}", file.display())).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Removes a file, and the folders below `base` that become empty. `base` is kept: the agent's folder indicates that
/// the agent is installed.
pub fn remove_file(file: &Path, base: &Path) -> Result<()> {
    fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(base) && *folder != base);
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}
