//! Sends real sessions through the hooks, one after the other; before each query's session a copy of the database is kept, so that
//! a ranking sees what was known then and nothing else.

use super::score::Query;
use super::world::{World, millis, send};
use nmem::model::Files;
use nmem::store::{PERSON_WAIT, Store};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Tells all sessions; returns the queries, each with the database as it was.
pub fn replayed(world: &World, folder: &Path) -> Vec<(Query, PathBuf)> {
    let data: Value = serde_json::from_str(&fs::read_to_string(folder.join("queries.json")).unwrap()).unwrap();
    let mut sessions: Vec<&Value> = data["sessions"].as_array().unwrap().iter().collect();
    sessions.sort_by_key(|session| millis(&session["end"]));
    let by_id: HashMap<&str, &Value> = sessions.iter().map(|session| (session["id"].as_str().unwrap(), *session)).collect();
    let mut asked: Vec<&Value> = data["queries"].as_array().unwrap().iter().collect();
    asked.sort_by_key(|query| millis(&by_id[query["session"].as_str().unwrap()]["start"]));
    let mut received = Vec::new();
    let mut waiting = sessions.iter().peekable();
    let mut past: Vec<String> = Vec::new();
    for query in asked {
        let own = by_id[query["session"].as_str().unwrap()];
        while let Some(session) = waiting.next_if(|session| millis(&session["end"]) < millis(&own["start"])) {
            send(world, folder, session);
            past.insert(0, session["id"].as_str().unwrap().to_string());
        }
        let id = query["id"].as_str().unwrap().to_string();
        let copy = world.keep(&id);
        let relevant = query["relevant"].as_object().unwrap().iter().map(|(id, weight)| (id.clone(), weight.as_f64().unwrap()));
        let text = |value: &Value| value.as_str().unwrap().to_string();
        let edited = own["edited"].as_array().unwrap().iter().map(text).collect();
        let query = Query {
            id,
            session: text(&query["session"]),
            text: text(&query["query"]),
            branch: text(&own["branch"]),
            specific: query["specific"].as_bool().unwrap(),
            relevant: relevant.collect(),
            past: past.clone(),
            edited,
        };
        received.push((query, copy));
    }
    received
}

impl World {
    /// A copy of what is known now, with its log written back.
    pub fn keep(&self, name: &str) -> PathBuf {
        Store::open(&Files::of(self.db(), false), PERSON_WAIT).unwrap().checkpoint();
        let copy = self.home.join(format!("{name}.db"));
        fs::copy(self.db(), &copy).unwrap();
        copy
    }
}
