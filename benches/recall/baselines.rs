//! The simple rankings of the study, over whole sessions.

use super::score::Query;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// Texts of each session: prompts, closing messages, commands, paths.
pub struct Texts(Connection);

pub type Rule = fn(&Query, &Texts) -> Vec<String>;

pub const RULES: [(&str, Rule); 5] = [
    ("newest first", |query, _| query.past.clone()),
    ("same branch, then newest", same_branch),
    ("BM25 over whole sessions", |query, texts| texts.ranked(query)),
    ("BM25 and newest, by rank", |query, texts| by_rank(&[texts.ranked(query), query.past.clone()])),
    ("knowing the files (oracle)", |query, texts| texts.by_files(query)),
];

/// Reads all sessions.
pub fn texts(folder: &Path) -> Texts {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(
        "CREATE VIRTUAL TABLE t USING fts5(id UNINDEXED, body, tokenize='porter unicode61'); CREATE TABLE s(id, branch, edited);",
    )
    .unwrap();
    let data: Value = serde_json::from_str(&fs::read_to_string(folder.join("queries.json")).unwrap()).unwrap();
    for session in data["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let mut body = String::new();
        for event in fs::read_to_string(folder.join(format!("sessions/{id}.jsonl"))).unwrap().lines() {
            let event: Value = serde_json::from_str(event).unwrap();
            let input = &event["tool_input"];
            let parts = [
                &event["prompt"],
                &event["last_assistant_message"],
                &input["file_path"],
                &input["command"],
                &input["description"],
                &input["pattern"],
            ];
            parts.into_iter().filter_map(Value::as_str).for_each(|part| body += &format!("{part}\n"));
        }
        conn.execute("INSERT INTO t VALUES (?1, ?2)", [id, &body]).unwrap();
        let row = [id, session["branch"].as_str().unwrap(), &session["edited"].to_string()];
        conn.execute("INSERT INTO s VALUES (?1, ?2, ?3)", row).unwrap();
    }
    Texts(conn)
}

impl Texts {
    fn ranked(&self, query: &Query) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for word in query.text.to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 2) {
            if !words.contains(&word.to_string()) && words.len() < 80 {
                words.push(word.to_string());
            }
        }
        let expression = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        let mut statement = self.0.prepare("SELECT id FROM t WHERE t MATCH ?1 ORDER BY bm25(t)").unwrap();
        let rows = statement.query_map([expression], |row| row.get::<_, String>(0)).unwrap();
        rows.map(|row| row.unwrap()).filter(|id| query.past.contains(id)).collect()
    }

    fn column(&self, column: &str) -> HashMap<String, String> {
        let mut statement = self.0.prepare(&format!("SELECT id, {column} FROM s")).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(|row| row.unwrap()).collect()
    }

    fn by_files(&self, query: &Query) -> Vec<String> {
        let edited = self.column("edited");
        let shared = |id: &String| {
            let files: Vec<String> = serde_json::from_str(&edited[id]).unwrap();
            files.iter().filter(|file| query.edited.contains(file)).count()
        };
        let mut ranked = query.past.clone();
        ranked.sort_by_key(|id| std::cmp::Reverse(shared(id)));
        ranked
    }
}

fn same_branch(query: &Query, texts: &Texts) -> Vec<String> {
    let branches = texts.column("branch");
    let same = |id: &&String| query.branch != "main" && branches[*id] == query.branch;
    let first: Vec<String> = query.past.iter().filter(same).cloned().collect();
    first.iter().chain(query.past.iter().filter(|id| !first.contains(id))).cloned().collect()
}

/// Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009), k = 60.
fn by_rank(lists: &[Vec<String>]) -> Vec<String> {
    let mut scores: Vec<(String, f64)> = Vec::new();
    for list in lists {
        for (at, id) in list.iter().enumerate() {
            let adds = 1.0 / (61 + at) as f64;
            match scores.iter_mut().find(|(known, _)| known == id) {
                Some((_, score)) => *score += adds,
                None => scores.push((id.clone(), adds)),
            }
        }
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1));
    scores.into_iter().map(|(id, _)| id).collect()
}
