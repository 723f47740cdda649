//! What an error of SQLite means for nmem.

use rusqlite::ErrorCode;

/// SQLite's code of an error, where it is one of SQLite's.
pub(super) fn code(error: &anyhow::Error) -> Option<ErrorCode> {
    error.chain().find_map(|e| e.downcast_ref::<rusqlite::Error>()).and_then(rusqlite::Error::sqlite_error_code)
}

/// Whether an error says that the disk has no room.
pub fn is_full(error: &anyhow::Error) -> bool {
    code(error) == Some(ErrorCode::DiskFull)
}

/// Why the database could not be had, in words for a person.
pub fn reason(error: &anyhow::Error) -> String {
    match code(error) {
        Some(ErrorCode::DiskFull) => "the disk is full".into(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program holds the database".into(),
        Some(ErrorCode::ReadOnly) => "the database can't be written: it, or its disk, is read-only".into(),
        Some(ErrorCode::SystemIoFailure) => "the disk does not take or give the data: full, or failing".into(),
        _ => format!("{error:#}"),
    }
}

/// Tells whether an error says that the file is no sound database.
pub fn is_broken(error: &anyhow::Error) -> bool {
    matches!(code(error), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}
