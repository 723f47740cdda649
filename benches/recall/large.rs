//! Time and memory of `context` and `search` in a large database: the bench's own sessions, again and again,
//! as sessions of one project before them.

use super::world::World;
use nmem::model::{Files, Vector};
use nmem::store::{PERSON_WAIT, Store};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tool uses and memories, about.
const SIZES: [(i64, i64); 5] = [(1_000, 0), (20_000, 2_000), (100_000, 10_000), (300_000, 30_000), (1_000_000, 100_000)];
/// Sessions that begin, for the time of hooks.
const STARTS: usize = 40;
const ROUNDS: usize = 9;
/// Numbers in a vector.
const LENGTH: usize = 384;
const REQUEST: &str = "can you look at the exporter of session metadata and fix the failing integration test for shadow branches";
const WITHOUT_STOP_WORDS: &str = "look exporter session metadata fix failing integration test shadow branches";
const CASES: [(&str, &[&str]); 7] = [
    ("context", &["context", "--json"]),
    ("context --query, four words", &["context", "--json", "--query", "mise run lint fails"]),
    ("context --query, a sentence", &["context", "--json", "--query", REQUEST]),
    ("context --file", &["context", "--json", "--file", "cmd/entire/cli/setup.go"]),
    ("search, four words", &["search", "--json", "mise run lint fails"]),
    ("search, a sentence", &["search", "--json", REQUEST]),
    ("search, a slip", &["search", "--json", "sesion metadta"]),
];

/// Columns of a table with ids of other tables; its own id first.
const TABLES: [(&str, &[(&str, &str)]); 8] = [
    ("sessions", &[("id", "sessions"), ("last_prompt_id", "prompts")]),
    ("prompts", &[("id", "prompts"), ("session_id", "sessions")]),
    ("tool_uses", &[("id", "tool_uses"), ("session_id", "sessions"), ("prompt_id", "prompts"), ("step_id", "steps")]),
    ("work_units", &[("id", "work_units"), ("session_id", "sessions")]),
    ("steps", &[("id", "steps"), ("session_id", "sessions"), ("work_unit_id", "work_units"), ("prompt_id", "prompts")]),
    ("step_files", &[("step_id", "steps")]),
    (
        "memories",
        &[("id", "memories"), ("session_id", "sessions"), ("work_unit_id", "work_units"), ("superseded_by", "memories")],
    ),
    ("memory_files", &[("memory_id", "memories")]),
];

/// Prints the table; returns it as JSON. `small` is a database of about a thousand tool uses, `whole` the one to multiply.
pub fn run(world: &World, small: &Path, whole: &Path) -> Value {
    println!("\nTime (median, longest of {ROUNDS}, ms) and memory (peak, MB), whole processes");
    let mut figures = serde_json::Map::new();
    for (tool_uses, memories) in SIZES {
        let db = world.db();
        let _ = std::fs::remove_file(db.with_extension("db-wal"));
        let _ = std::fs::remove_file(db.with_extension("db-shm"));
        std::fs::copy(if memories == 0 { small } else { whole }, &db).unwrap();
        let (uses, known) = multiply(&db, tool_uses, memories);
        let size = std::fs::metadata(&db).unwrap().len() / 1_000_000;
        println!("{uses} tool uses, {known} memories, {size} MB");
        for (name, args) in CASES {
            let mut runs: Vec<(Duration, u64)> = (0..ROUNDS).map(|_| timed(world, args)).collect();
            runs.sort();
            let millis = |at: usize| (runs[at].0.as_secs_f64() * 10_000.0).round() / 10.0;
            let peak = runs.iter().map(|run| run.1).max().unwrap() as f64 / 1000.0;
            println!("  {name:30} {:6.1} {:6.1}   {peak:5.1}", millis(ROUNDS / 2), millis(ROUNDS - 1));
            figures.insert(format!("{uses}, {name}"), json!([millis(ROUNDS / 2), millis(ROUNDS - 1), peak]));
        }
        for (name, [middle, relative]) in hooks(world) {
            println!("  {name:30} {middle:6.1}          {relative:.1} empty processes");
            figures.insert(format!("{uses}, {name}"), json!([middle, relative]));
        }
        println!(
            "  of the file, full-text indexes of passages {:.1} MB, of tool uses {:.1}",
            index_size(&db, "passage"),
            index_size(&db, "tool")
        );
        let bare = BareIndex::of(&db);
        for (name, question) in [("bare FTS5, four words", "mise run lint fails"), ("bare FTS5, a sentence", WITHOUT_STOP_WORDS)]
        {
            let mut runs: Vec<Duration> = (0..ROUNDS).map(|_| bare.search(question)).collect();
            runs.sort();
            let millis = |at: usize| (runs[at].as_secs_f64() * 10_000.0).round() / 10.0;
            println!("  {name:30} {:6.1} {:6.1}   (in a process that is there)", millis(ROUNDS / 2), millis(ROUNDS - 1));
            figures.insert(format!("{uses}, {name}"), json!([millis(ROUNDS / 2), millis(ROUNDS - 1)]));
        }
        drop(bare);
        let (count, mut scans) = scans(&db);
        scans.sort();
        let millis = |at: usize| (scans[at].as_secs_f64() * 10_000.0).round() / 10.0;
        println!(
            "  {:30} {:6.1} {:6.1}   (in a process that is there)",
            format!("{count} vectors of {LENGTH}"),
            millis(ROUNDS / 2),
            millis(ROUNDS - 1)
        );
        figures.insert(format!("{count} vectors"), json!([millis(ROUNDS / 2), millis(ROUNDS - 1)]));
    }
    Value::Object(figures)
}

/// Median times of the hooks at a session's start and first prompt, in ms and in empty processes of the same run.
fn hooks(world: &World) -> [(&'static str, [f64; 2]); 2] {
    let mut times: [Vec<Duration>; 3] = Default::default();
    for n in 0..STARTS {
        let begun = Instant::now();
        Command::new("/bin/true").env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).output().unwrap();
        times[0].push(begun.elapsed());
        let session = format!("begins-{n}");
        for (at, payload) in [
            json!({"hook_event_name": "SessionStart", "source": "startup"}),
            json!({"hook_event_name": "UserPromptSubmit", "prompt": REQUEST}),
        ]
        .into_iter()
        .enumerate()
        {
            let begun = Instant::now();
            world.hook(&session, payload, 1_900_000_000_000 + n as i64 * 60_000);
            times[at + 1].push(begun.elapsed());
        }
    }
    let [empty, start, prompt] = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1000.0
    });
    let rounded = |figure: f64| (figure * 10.0).round() / 10.0;
    let row = |time: f64| [rounded(time), rounded(time / empty)];
    [("hook at a start", row(start)), ("hook at a first prompt", row(prompt))]
}

/// Size in MB of the full-text index of a kind.
fn index_size(db: &Path, kind: &str) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "a bench that looks at the file")]
    let conn = Connection::open(db).unwrap();
    let sql = "SELECT sum(pgsize) FROM dbstat WHERE name GLOB ?1 || '_index*'";
    conn.query_row(sql, [kind], |row| row.get::<_, f64>(0)).unwrap() / 1e6
}

/// An FTS5 table of all texts that a search reads, and nothing else.
struct BareIndex(PathBuf);

impl BareIndex {
    fn of(db: &Path) -> BareIndex {
        let path = db.with_file_name("bare.db");
        let _ = std::fs::remove_file(&path);
        #[expect(clippy::disallowed_methods, reason = "a bench that makes a database of its own")]
        let conn = Connection::open(&path).unwrap();
        conn.execute("ATTACH ?1 AS nmem", [db.to_str().unwrap()]).unwrap();
        conn.execute_batch(
            "PRAGMA synchronous = OFF;
             CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61 remove_diacritics 2');
             INSERT INTO texts SELECT text FROM nmem.prompts WHERE kind <> 'thinking';
             INSERT INTO texts SELECT concat_ws(char(10), title, subtitle, body, content) FROM nmem.memories;
             INSERT INTO texts SELECT title FROM nmem.work_units WHERE title IS NOT NULL;
             INSERT INTO texts SELECT concat_ws(' ', content, path, outcome) FROM nmem.tool_uses;
             INSERT INTO texts(texts) VALUES ('optimize')",
        )
        .unwrap();
        BareIndex(path)
    }

    /// The ten best texts with any of the words, through a connection of its own.
    fn search(&self, question: &str) -> Duration {
        let begun = Instant::now();
        #[expect(clippy::disallowed_methods, reason = "as a program without nmem would")]
        let conn = Connection::open(&self.0).unwrap();
        let any: Vec<String> = question.split(' ').map(|word| format!("\"{word}\"")).collect();
        let mut statement = conn.prepare("SELECT text FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT 10").unwrap();
        let rows = statement.query_map([any.join(" OR ")], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(rows.map(Result::unwrap).count(), 10);
        begun.elapsed()
    }
}

impl Drop for BareIndex {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Gives each memory a vector, and finds the nearest ones, each time through a connection of its own, as a hook does.
fn scans(db: &Path) -> (usize, Vec<Duration>) {
    let files = Files::of(db.to_path_buf(), false);
    let mut store = Store::open(&files, PERSON_WAIT).unwrap();
    let mut state = 1_u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let mut vector = || Vector::of(&(0..LENGTH).map(|_| number()).collect::<Vec<f32>>()).unwrap();
    let waiting = store.unembedded((Some(1), None), "bench", usize::MAX >> 1).unwrap();
    for batch in waiting.chunks(4096) {
        let all: Vec<_> = batch.iter().map(|waiting| (waiting.clone(), vector())).collect();
        store.keep_vectors("bench", &all).unwrap();
    }
    store.checkpoint();
    let query = vector();
    let scan = |_| {
        let store = Store::open(&files, PERSON_WAIT).unwrap();
        let begun = Instant::now();
        let near = store.nearest_memories(Some(1), "bench", &query, 40).unwrap();
        assert_eq!(near.count, waiting.len());
        begun.elapsed()
    };
    (waiting.len(), (0..ROUNDS).map(scan).collect())
}

/// Repeats all that stands in a database as earlier sessions of the same project, then its memories up to a number.
fn multiply(db: &Path, tool_uses: i64, memories: i64) -> (i64, i64) {
    #[expect(clippy::disallowed_methods, reason = "a bench that makes a database as large as years would")]
    let conn = Connection::open(db).unwrap();
    conn.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; BEGIN").unwrap();
    let one = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let last = |table: &str| one(&format!("SELECT max(id) FROM {table}"));
    let first: Vec<(&str, i64)> =
        TABLES.iter().filter(|(_, ids)| ids[0].0 == "id").map(|(table, _)| (*table, last(table))).collect();
    let first = |table: &str| first.iter().find(|(name, _)| *name == table).unwrap().1;
    let copies = (tool_uses / one("SELECT count(*) FROM tool_uses")).max(1);
    for copy in 1..copies {
        for (table, ids) in TABLES {
            let columns = columns(&conn, table);
            let value = |column: &String| match ids.iter().find(|(name, _)| name == column) {
                Some((_, of)) => format!("{column} + {}", copy * first(of)),
                None => match column.as_str() {
                    "started_at" | "ended_at" | "active_at" | "received_at" | "created_at" => {
                        format!("{column} - {}", copy * 21_600_000)
                    }
                    "agent_session_id" | "platform_prompt_id" | "tool_use_id" | "uuid" => format!("{column} || '-{copy}'"),
                    _ => column.clone(),
                },
            };
            let values: Vec<String> = columns.iter().map(value).collect();
            let (into, values) = (columns.join(", "), values.join(", "));
            let (own, of) = ids[0];
            conn.execute(&format!("INSERT INTO {table}({into}) SELECT {values} FROM {table} WHERE {own} <= {}", first(of)), [])
                .unwrap();
        }
    }
    loop {
        let known = one("SELECT count(*) FROM memories");
        if known >= memories {
            break;
        }
        let from = last("memories");
        let columns = columns(&conn, "memories");
        let value = |column: &String| match column.as_str() {
            "id" => format!("id + {from}"),
            "uuid" => "lower(hex(randomblob(16)))".into(),
            "rule_key" => "NULL".into(),
            other => other.into(),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        let (into, values) = (columns.join(", "), values.join(", "));
        let most = memories - known;
        conn.execute(&format!("INSERT INTO memories({into}) SELECT {values} FROM memories ORDER BY id LIMIT {most}"), [])
            .unwrap();
    }
    conn.execute_batch("COMMIT").unwrap();
    let counts = (one("SELECT count(*) FROM tool_uses"), one("SELECT count(*) FROM memories"));
    drop(conn);
    let mut store = Store::open(&Files::of(db.to_path_buf(), false), PERSON_WAIT).unwrap();
    store.rebuild_index(&mut |_, _| {}).unwrap();
    store.checkpoint();
    counts
}

fn columns(conn: &Connection, table: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

/// A run of the binary: how long it took, and the most memory that it held, in kB (0 where that can't be asked for).
fn timed(world: &World, args: &[&str]) -> (Duration, u64) {
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_nmem"));
    child
        .args(args)
        .current_dir(world.project())
        .env_clear()
        .envs([("HOME", world.home.to_str().unwrap()), ("PATH", "/usr/bin:/bin")]);
    let child = child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let peak = wait(child);
    (begun.elapsed(), peak)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "nothing in std tells a child's peak of memory")]
fn wait(child: std::process::Child) -> u64 {
    // struct rusage of Linux begins with two times of two words each; the fifth word is the peak, in kB.
    unsafe extern "C" {
        fn wait4(pid: i32, status: *mut i32, options: i32, usage: *mut [i64; 18]) -> i32;
    }
    let (mut status, mut usage) = (0, [0_i64; 18]);
    // SAFETY: the two pointers are to values of the right size that live through the call.
    unsafe { wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    assert_eq!(status, 0, "nmem failed");
    usage[4] as u64
}

#[cfg(not(target_os = "linux"))]
fn wait(mut child: std::process::Child) -> u64 {
    assert!(child.wait().unwrap().success());
    0
}
