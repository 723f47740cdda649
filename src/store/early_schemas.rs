//! Early forms of schemas 1, 2, 3 and 9. They existed on main for some hours, before their migrations were completed in
//! place. (Since then, a migration never changes.)

use anyhow::Result;
use rusqlite::Connection;

/// A column that an early form lacks.
type Missing = (&'static str, &'static str, &'static str);

const SCHEMA_1: [Missing; 1] = [("sessions", "muted_prompt", "TEXT")];
const SCHEMA_2: [Missing; 3] = [
    ("work_units", "rules_due", "INTEGER NOT NULL DEFAULT 1"),
    ("work_units", "rules_seq", "INTEGER"),
    ("work_units", "leased_until", "INTEGER"),
];
const SCHEMA_3: [Missing; 1] = [("work_units", "rules_mark", "TEXT")];
/// Columns that an early schema 2 had; nothing was ever written to them.
const UNUSED: [(&str, &str); 3] = [("work_units", "learned"), ("work_units", "notes"), ("work_units", "summary")];

/// Completes an early form of a schema, before the next migration.
pub fn complete(conn: &Connection, schema: i64) -> Result<()> {
    let add = |missing: &[Missing]| -> Result<()> {
        for (table, column, kind) in missing {
            if !has(conn, table, column)? {
                conn.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {kind}"))?;
            }
        }
        Ok(())
    };
    match schema {
        1 => add(&SCHEMA_1),
        2 => {
            for (table, column) in UNUSED {
                if has(conn, table, column)? {
                    conn.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN {column}"))?;
                }
            }
            add(&SCHEMA_2)?;
            add(&SCHEMA_3)
        }
        3 => {
            conn.execute_batch("DROP INDEX IF EXISTS work_units_due")?;
            add(&SCHEMA_3)
        }
        9 => {
            let index =
                "CREATE INDEX IF NOT EXISTS memories_superseded ON memories(superseded_by) WHERE superseded_by IS NOT NULL";
            Ok(conn.execute_batch(index)?)
        }
        _ => Ok(()),
    }
}

fn has(conn: &Connection, table: &str, column: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
    Ok(conn.prepare(sql)?.exists([table, column])?)
}
