//! Classifies SQLite errors.

use rusqlite::ErrorCode;

/// The SQLite code of an error, if it has one.
pub(super) fn code(error: &anyhow::Error) -> Option<ErrorCode> {
    error.chain().find_map(|e| e.downcast_ref::<rusqlite::Error>()).and_then(rusqlite::Error::sqlite_error_code)
}

/// Whether the disk is full.
pub fn is_full(error: &anyhow::Error) -> bool {
    code(error) == Some(ErrorCode::DiskFull)
}

/// Returns the reason why the database is unavailable, as text for the user.
pub fn reason(error: &anyhow::Error) -> String {
    match code(error) {
        Some(ErrorCode::DiskFull) => "the disk is full".into(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program has locked the database".into(),
        Some(ErrorCode::ReadOnly) => "the database or its disk is read-only".into(),
        Some(ErrorCode::SystemIoFailure) => "disk I/O error: the disk may be full or failing".into(),
        _ => format!("{error:#}"),
    }
}

/// Whether the file is damaged or not a database.
pub fn is_broken(error: &anyhow::Error) -> bool {
    matches!(code(error), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}
