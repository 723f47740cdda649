//! Converts stored words to enums. An unknown word in a database is read as the variant that claims the least.

use crate::model::{
    ClosedBy, CommandKind, Kind, Maker, MemoryKind, Platform, PromptKind, PromptSource, Provenance, UnitOutcome, UnitState,
};
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};

macro_rules! read_as_word {
    ($($word:ty),*) => {$(
        impl FromSql for $word {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<$word> {
                value.as_str().map(<$word>::from)
            }
        }
    )*};
}

read_as_word!(ClosedBy, CommandKind, Kind, MemoryKind, Platform, PromptKind, PromptSource, Provenance, UnitOutcome, UnitState);

impl FromSql for Maker {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Maker> {
        value.as_str().map(|name| Maker::from(name.to_string()))
    }
}
