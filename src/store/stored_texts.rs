//! All stored texts, for redacting them again; and the versions of rules that last read them.

use super::Store;
use super::migrate::{ANNOUNCED, REDACTION, mark};
use crate::model::RULES_VERSION;
use crate::redact::{Clean, REDACTION_VERSION};
use anyhow::Result;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

/// Tables without the user's texts, apart from the full-text indexes, which are rebuilt.
const NO_TEXTS: [&str; 2] = ["meta", "vectors"];
/// Columns that identify rows: different values must remain different.
const IDS: [&str; 8] =
    ["agent_session_id", "tool_use_id", "platform_prompt_id", "last_prompt_id", "agent_id", "muted_prompt", "uuid", "rule_key"];
/// Rows to change per transaction.
const BATCH: usize = 200;

/// Returns a text's replacement; `None` to keep the text. The flag is true for an id.
pub type Change<'a> = &'a dyn Fn(&str, bool) -> Option<Clean<String>>;

/// A text that changes.
#[derive(Debug)]
pub struct ChangedText {
    table: String,
    column: String,
    /// Columns that identify the row, and their values.
    key: Vec<(String, Value)>,
    old: String,
    new: Clean<String>,
}

/// A table, the columns that identify a row, and its text columns.
struct TextTable {
    name: String,
    key: Vec<String>,
    texts: Vec<String>,
}

impl Store {
    /// Texts that `change` would replace, all read in one snapshot. `progress` receives the rows read and the total.
    pub fn texts_to_change(&self, change: Change, progress: &mut dyn FnMut(i64, i64)) -> Result<Vec<ChangedText>> {
        self.read(|store| {
            let tables = tables(&store.conn)?;
            let count = |table: &TextTable| -> Result<i64> {
                Ok(store.conn.query_row(&format!("SELECT count(*) FROM {}", table.name), [], |row| row.get(0))?)
            };
            let all = tables.iter().map(count).sum::<Result<i64>>()?;
            let (mut changed, mut done) = (Vec::new(), 0);
            for table in &tables {
                let columns = [table.key.as_slice(), table.texts.as_slice()].concat().join(", ");
                let mut statement = store.conn.prepare(&format!("SELECT {columns} FROM {}", table.name))?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    done += 1;
                    if done % 500 == 0 {
                        progress(done, all);
                    }
                    for (i, column) in table.texts.iter().enumerate() {
                        let ValueRef::Text(old) = row.get_ref(table.key.len() + i)? else { continue };
                        let old = String::from_utf8_lossy(old);
                        let Some(new) = change(&old, IDS.contains(&column.as_str())) else { continue };
                        let key = table.key.iter().enumerate().map(|(i, name)| Ok((name.clone(), row.get(i)?)));
                        changed.push(ChangedText {
                            table: table.name.clone(),
                            column: column.clone(),
                            key: key.collect::<Result<_>>()?,
                            old: old.into_owned(),
                            new,
                        });
                    }
                }
            }
            Ok(changed)
        })
    }

    /// Writes changed texts, except where a row has changed in the meantime.
    pub fn change_texts(&mut self, texts: &[ChangedText]) -> Result<()> {
        for batch in texts.chunks(BATCH) {
            self.write(|tx| {
                for text in batch {
                    let same = text.key.iter().map(|(name, _)| format!(" AND {name} IS ?")).collect::<String>();
                    // The row's key may be the text: two rows that become equal become one.
                    let sql = format!("UPDATE OR REPLACE {} SET {} = ? WHERE {} = ?{same}", text.table, text.column, text.column);
                    let new: &String = &text.new;
                    let values = [new as &dyn ToSql, &text.old].into_iter().chain(text.key.iter().map(|(_, value)| value as _));
                    tx.tx.prepare_cached(&sql)?.execute(params_from_iter(values))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Lists the tables with texts of users and agents. Reads the schema, so that a new column is never left out.
fn tables(conn: &Connection) -> Result<Vec<TextTable>> {
    let mut found = Vec::new();
    let mut list =
        conn.prepare("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name")?;
    let names =
        list.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))?.collect::<Result<Vec<_>, _>>()?;
    for (name, without_rowid) in names {
        if name.starts_with("sqlite_") || NO_TEXTS.contains(&name.as_str()) {
            continue;
        }
        // Generated columns (`hidden`) follow from the others.
        let mut info = conn.prepare("SELECT name, type, pk FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
        let columns = info
            .query_map([&name], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        let texts: Vec<String> = columns.iter().filter(|(_, kind, _)| kind == "TEXT").map(|(name, ..)| name.clone()).collect();
        let key = columns.iter().filter(|(.., pk)| *pk > 0).map(|(name, ..)| name.clone());
        let key = if without_rowid { key.collect() } else { vec!["rowid".to_string()] };
        if !texts.is_empty() {
            found.push(TextTable { name, key, texts });
        }
    }
    Ok(found)
}

impl Store {
    /// The version of the redaction rules that last checked all texts; 0 for none.
    pub fn redaction_version(&self) -> Result<i64> {
        version(&self.conn, REDACTION)
    }

    /// Records that all texts were checked by the current rules.
    pub fn set_redaction_version(&mut self) -> Result<()> {
        self.write(|tx| mark(&tx.tx, REDACTION, REDACTION_VERSION))
    }

    /// Whether the user has not been offered yet to distil again with the current rules.
    pub fn has_unannounced_rules(&self) -> Result<bool> {
        Ok(version(&self.conn, ANNOUNCED)? < RULES_VERSION)
    }

    /// Records that the user has been offered to distil again.
    pub fn announce_rules(&mut self) -> Result<()> {
        self.write(|tx| mark(&tx.tx, ANNOUNCED, RULES_VERSION))
    }

    /// Number of units that older rules distilled, and of the projects that these units belong to.
    pub fn units_of_older_rules(&self) -> Result<(i64, i64)> {
        let sql = "SELECT count(*), count(DISTINCT s.project_id) FROM work_units u JOIN sessions s ON s.id = u.session_id
                   WHERE u.rules_mark IS NOT NULL AND coalesce(u.rules_version, 0) < ?1";
        Ok(self.conn.query_row(sql, [RULES_VERSION], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }
}

fn version(conn: &Connection, key: &str) -> Result<i64> {
    let sql = "SELECT coalesce((SELECT value FROM meta WHERE key = ?1), 0)";
    Ok(conn.query_row(sql, [key], |row| row.get(0))?)
}
