//! The cost of a hook: whole processes against an empty one, built and run in the same minute on the same machine.
//!
//! `cargo bench --bench hook` measures 0, 100,000 and 1,000,000 tool uses; `-- --quick` 0 and 20,000 with fewer runs, for
//! CI. Starts are interleaved in a random order, wall time is from spawn to reaped, figures are medians. Prints a table
//! for people and one JSON object as its last line. `-- --binary PATH` measures another build, `-- --sizes 0,5000` others.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a bench prints and reads its own environment")]

use nmem::model::{Event, Files, Platform};
use nmem::platforms::{DecodeContext, adapter};
use nmem::redact::{Clean, Redactor};
use nmem::store::{PERSON_WAIT, Store};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/claude-code");
/// The project in which everything is measured; it need not exist.
const CWD: &str = "/home/dev/project";

/// Starts its arguments, waits, and prints their peak resident memory in kB. `wait4` is in every C library.
const PEAK: &str = r#"
extern "C" { fn wait4(pid: i32, status: *mut i32, options: i32, usage: *mut [i64; 18]) -> i32; }
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let child = std::process::Command::new(&args[0]).args(&args[1..]).stderr(std::process::Stdio::null()).spawn().unwrap();
    // struct rusage: two timevals, then ru_maxrss.
    let (mut status, mut usage) = (0, [0i64; 18]);
    assert!(unsafe { wait4(child.id() as i32, &mut status, 0, &mut usage) } > 0 && status == 0);
    eprintln!("{}", usage[4]);
}
"#;

/// A process to start: a name, arguments, and the payload on stdin.
const CASES: [(&str, &[&str], Option<&str>); 16] = [
    ("empty", &[], None),
    ("prompt", &["record"], Some("UserPromptSubmit")),
    ("bash", &["record"], Some("PostToolUse-Bash")),
    ("read", &["record"], Some("PostToolUse-Read")),
    ("before edit", &["record"], Some("PreToolUse-Edit")),
    ("edit", &["record"], Some("PostToolUse-Edit")),
    ("failure", &["record"], Some("PostToolUseFailure-Bash")),
    ("stop", &["record"], Some("Stop")),
    ("codex", &["record", "--platform", "codex"], Some("codex/PostToolUse-Bash-failing")),
    ("cursor", &["record", "--platform", "cursor"], Some("cursor/postToolUse-Shell")),
    ("vscode", &["record"], Some("vscode/PostToolUse-run_in_terminal")),
    ("copilot-cli", &["record"], Some("copilot-cli/PostToolUse-Bash")),
    ("gemini", &["record", "--platform", "gemini"], Some("gemini/AfterTool-run_shell_command")),
    ("opencode", &["record", "--platform", "opencode"], Some("opencode/PostToolUse-bash")),
    ("context", &["context"], Some("SessionStart-startup")),
    ("search", &["search", "--all", "deadlock", "cargo", "test"], None),
];

struct Options {
    quick: bool,
    sizes: Vec<usize>,
    binary: PathBuf,
}

fn options() -> Options {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1)).cloned();
    let quick = args.iter().any(|a| a == "--quick");
    let sizes = value("--sizes").map(|s| s.split(',').filter_map(|n| n.parse().ok()).collect());
    Options {
        quick,
        sizes: sizes.unwrap_or_else(|| if quick { vec![0, 20_000] } else { vec![0, 100_000, 1_000_000] }),
        binary: value("--binary")
            .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_nmem")), |path| fs::canonicalize(path).expect("a binary")),
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): repeatable numbers for data and for the order of starts.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// A made-up word; small numbers come far more often, as words do.
    fn word(&mut self) -> String {
        let rank = (1.0 / ((self.next() >> 11) as f64 / (1u64 << 53) as f64 + 1e-4)) as usize;
        const COMMON: [&str; 12] =
            ["cargo", "test", "src", "error", "the", "fix", "login", "build", "run", "git", "main", "check"];
        COMMON.get(rank.wrapping_sub(1)).map_or_else(|| format!("w{}", rank * 7 + self.below(7)), |w| w.to_string())
    }
    fn words(&mut self, n: usize) -> String {
        (0..n).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn fixture(name: &str) -> Value {
    let path = format!("{FIXTURES}/{name}.json");
    serde_json::from_str(&fs::read_to_string(&path).expect(&path)).expect(&path)
}

/// A payload of another agent, `codex/PostToolUse-Bash`, with an id or a time of its own.
fn of_agent(platform: &str, name: &str, serial: u64) -> Value {
    let path = format!("{FIXTURES}/../hooks/{platform}.jsonl");
    let text = fs::read_to_string(&path).expect(&path);
    let line = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(&path)).find(|line| line["name"] == name);
    let mut payload = line.unwrap_or_else(|| panic!("{path} has no {name}"))["payload"].take();
    for key in ["session_id", "conversation_id"] {
        if payload[key].is_string() {
            payload[key] = json!("measured");
        }
    }
    if payload["tool_use_id"].is_string() {
        payload["tool_use_id"] = json!(format!("toolu_{serial}"));
    }
    if payload["timestamp"].is_string() {
        // A thousand milliseconds of a second, a thousand seconds of an hour: no two alike.
        let (seconds, millis) = (serial / 1000 % 3600, serial % 1000);
        payload["timestamp"] = json!(format!("2026-11-21T09:{:02}:{:02}.{millis:03}Z", seconds / 60, seconds % 60));
    }
    payload
}

/// A session file of Codex of half a megabyte, which ends with the call.
fn write_rollout(home: &Path, payload: &mut Value) {
    let path = home.join(".codex/sessions/rollout-1.jsonl");
    let item = json!({"type": "CommandExecution", "id": payload["tool_use_id"], "exit_code": 3});
    let end = json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}});
    let line = json!({"type": "response_item", "payload": {"type": "message", "text": "word ".repeat(200)}}).to_string() + "\n";
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, format!("{}{end}\n", line.repeat(480))).expect("a session file");
    payload["transcript_path"] = json!(path);
}

/// A payload of which the ids and words are its own.
fn payload(name: &str, serial: u64, session: &str, random: &mut Random) -> Value {
    if let Some((platform, name)) = name.split_once('/') {
        return of_agent(platform, name, serial);
    }
    let mut payload = fixture(name);
    payload["session_id"] = json!(session);
    if payload["tool_use_id"].is_string() {
        payload["tool_use_id"] = json!(format!("toolu_{serial}"));
    }
    match name {
        "UserPromptSubmit" => {
            payload["prompt_id"] = json!(format!("prompt-{serial}"));
            payload["prompt"] = json!(random.words(20));
        }
        "PostToolUse-Bash" => payload["tool_input"]["command"] = json!(format!("cargo test {}", random.words(5))),
        "PostToolUseFailure-Bash" => payload["error"] = json!(format!("Exit code 101\n{}", random.words(40))),
        "PostToolUse-Read" | "PostToolUse-Edit" | "PreToolUse-Edit" => {
            payload["tool_input"]["file_path"] = json!(format!("{CWD}/src/{}/{}.rs", random.word(), random.word()));
        }
        "Stop" => payload["last_assistant_message"] = json!(random.words(40)),
        _ => {}
    }
    payload
}

/// The mix of a working session: one prompt and one closing message for every twenty tool uses.
fn mixed(serial: usize) -> &'static str {
    match serial % 22 {
        0 => "UserPromptSubmit",
        21 => "Stop",
        n if n % 7 == 3 => "PostToolUseFailure-Bash",
        n if n % 3 == 0 => "PostToolUse-Edit",
        n if n % 3 == 1 => "PostToolUse-Read",
        _ => "PostToolUse-Bash",
    }
}

/// Fills a database through the store's own code, a thousand events in a transaction.
fn fill(files: &Files, tool_uses: usize) {
    let mut store = Store::open(files, PERSON_WAIT).expect("a database");
    let mut random = Random(42);
    let redactor = Redactor::default();
    let mut serial = 0;
    while serial < tool_uses * 11 / 10 {
        let batch: Vec<Clean<Event>> = (0..1000)
            .filter_map(|_| {
                serial += 1;
                // 200 tool uses a session; a tenth of the sessions in the project that is measured.
                let session = serial / 220;
                let mut payload = payload(mixed(serial), serial as u64, &format!("filled-{session}"), &mut random);
                if session % 10 != 0 {
                    payload["cwd"] = json!(format!("/home/dev/other-{}", session % 30));
                }
                let around = DecodeContext { now: 1_790_000_000_000 + serial as i64 * 5000, skip_tools: &[] };
                adapter(Platform::ClaudeCode).decode(&payload, &around).expect("a fixture").pop().map(|e| redactor.clean(e))
            })
            .collect();
        let identify = |event: &Event| {
            Some(Redactor::default().clean(nmem::project::identify(Path::new(event.cwd.as_deref()?), None, None)?))
        };
        store
            .write(|tx| batch.iter().try_for_each(|event| nmem::ingest::store_event(tx, event, None, &|_| identify(event))))
            .expect("stored");
    }
    store.checkpoint();
}

struct World {
    folder: PathBuf,
    empty: PathBuf,
    binary: PathBuf,
    serial: u64,
    random: Random,
}

impl World {
    fn new(binary: PathBuf) -> World {
        let folder = std::env::temp_dir().join(format!("nmem-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (name, source) in [("empty", "fn main() {}\n"), ("peak", PEAK)] {
            fs::write(folder.join(format!("{name}.rs")), source).expect("a source file");
            let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
            let built = Command::new(rustc).args(["-O", "-o", name, &format!("{name}.rs")]).current_dir(&folder).status();
            assert!(built.is_ok_and(|s| s.success()), "rustc could not build {name}.rs");
        }
        // Copies, as an installer makes them: what a linker has just written lies in memory in smaller pieces.
        for (from, to) in [(&folder.join("empty"), "installed-empty"), (&binary, "installed-nmem")] {
            fs::copy(from, folder.join(to)).expect("a copy");
        }
        let (empty, binary) = (folder.join("installed-empty"), folder.join("installed-nmem"));
        World { empty, folder, binary, serial: 1_000_000_000, random: Random(7) }
    }

    /// A case as a command; what goes to stdin is written to a file, before any clock runs.
    fn command(&mut self, launcher: Option<&Path>, db: &Path, (name, args, stdin): (&str, &[&str], Option<&str>)) -> Command {
        self.serial += 1;
        let program = if name == "empty" { self.empty.clone() } else { self.binary.clone() };
        let mut command = match launcher {
            Some(launcher) => Command::new(launcher),
            None => Command::new(&program),
        };
        if launcher.is_some() {
            command.arg(&program);
        }
        let input = match stdin {
            Some(fixture) => {
                let mut value = payload(fixture, self.serial, "measured", &mut self.random);
                if fixture.starts_with("codex/") {
                    write_rollout(&self.folder, &mut value);
                }
                let path = self.folder.join("payload.json");
                fs::write(&path, value.to_string()).expect("a payload");
                Stdio::from(File::open(&path).expect("a payload"))
            }
            None => Stdio::null(),
        };
        command.args(args).env_clear().env("HOME", &self.folder).env("NMEM_DB", db).current_dir(&self.folder);
        command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Wall time from spawn to reaped.
    fn start(&mut self, db: &Path, case: (&str, &[&str], Option<&str>)) -> Duration {
        let mut command = self.command(None, db, case);
        let begun = Instant::now();
        let status = command.spawn().and_then(|mut child| child.wait()).expect("a process");
        let wall = begun.elapsed();
        assert!(status.success(), "{} ended with {status}", case.0);
        wall
    }

    /// Peak resident memory in kB. Measured by a small program that starts it: a child's figure begins with that of the
    /// process it was started from, and this one has filled databases.
    fn peak(&mut self, db: &Path, case: (&str, &[&str], Option<&str>)) -> u64 {
        let launcher = self.folder.join("peak");
        let out = self.command(Some(&launcher), db, case).stderr(Stdio::piped()).output().expect("a process");
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        text.trim().parse().unwrap_or_else(|_| panic!("{}: {text}", case.0))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn percentile(runs: &[Duration], p: f64) -> f64 {
    let mut us: Vec<f64> = runs.iter().map(|r| r.as_secs_f64() * 1e6).collect();
    us.sort_by(f64::total_cmp);
    us[((us.len() - 1) as f64 * p).round() as usize]
}

fn mean(runs: &[Duration]) -> f64 {
    runs.iter().map(|r| r.as_secs_f64() * 1e6).sum::<f64>() / runs.len() as f64
}

/// Every case at one size, interleaved.
fn compare(world: &mut World, db: &Path, size: usize, rounds: usize) -> Value {
    let mut runs: Vec<Vec<Duration>> = vec![Vec::new(); CASES.len()];
    for round in 0..rounds + 3 {
        let mut order: Vec<usize> = (0..CASES.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, world.random.below(i + 1));
        }
        for case in order {
            let run = world.start(db, CASES[case]);
            // The first rounds fill caches.
            if round >= 3 {
                runs[case].push(run);
            }
        }
    }
    let floor = percentile(&runs[0], 0.5);
    println!(
        "\n{size} tool uses, {rounds} starts each\n{:<12}{:>10}{:>8}{:>10}{:>10}{:>12}",
        "case", "median us", "ratio", "p95", "max", "peak kB"
    );
    let mut cases = serde_json::Map::new();
    for (i, (name, ..)) in CASES.iter().enumerate() {
        let (median, p95, max) = (percentile(&runs[i], 0.5), percentile(&runs[i], 0.95), percentile(&runs[i], 1.0));
        let peak = (0..3).map(|_| world.peak(db, CASES[i])).max().unwrap_or(0);
        println!("{name:<12}{median:>10.0}{:>8.2}{p95:>10.0}{max:>10.0}{peak:>12}", median / floor);
        cases.insert(name.to_string(), json!({"median_us": median.round(), "ratio": round2(median / floor), "p95_us": p95.round(), "max_us": max.round(), "peak_kb": peak}));
    }
    json!({"tool_uses": size, "rounds": rounds, "cases": cases})
}

/// Mixed events in a row without a Stop: the last hundred must be as fast as the first.
fn in_a_row(world: &mut World, db: &Path, events: usize) -> Value {
    let mut floor = Vec::new();
    let mut runs = Vec::new();
    let record: &[&str] = &["record"];
    let kinds = (0..).map(mixed).filter(|m| *m != "Stop");
    for (i, kind) in kinds.take(events).enumerate() {
        if i % 10 == 0 {
            floor.push(world.start(db, CASES[0]));
        }
        runs.push(world.start(db, (kind, record, Some(kind))));
    }
    let floor = percentile(&floor, 0.5);
    let hundred = 100.min(runs.len() / 2);
    let (first, last) = (percentile(&runs[..hundred], 0.5), percentile(&runs[runs.len() - hundred..], 0.5));
    let (mean, p99, max) = (mean(&runs), percentile(&runs, 0.99), percentile(&runs, 1.0));
    println!("\n{events} mixed events in a row without a Stop (ratio to empty, {floor:.0} us)");
    for (name, us) in [("first hundred", first), ("last hundred", last), ("mean", mean), ("p99", p99), ("maximum", max)] {
        println!("{name:<16}{us:>8.0} us{:>8.2}", us / floor);
    }
    let ratio = |us: f64| round2(us / floor);
    json!({"events": events, "empty_us": floor.round(), "first_hundred": ratio(first), "last_hundred": ratio(last), "mean": ratio(mean), "p99": ratio(p99), "max": ratio(max), "max_us": max.round()})
}

fn round2(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn main() {
    let options = options();
    let mut world = World::new(options.binary);
    let rounds = if options.quick { 200 } else { 300 };
    let mut sizes = Vec::new();
    for &size in &options.sizes {
        let db = world.folder.join(format!("{size}.db"));
        let begun = Instant::now();
        fill(&Files::of(db.clone(), false), size);
        println!(
            "\nfilled with {size} tool uses in {:.1} s: {:.1} MB",
            begun.elapsed().as_secs_f64(),
            fs::metadata(&db).map_or(0.0, |m| m.len() as f64 / 1e6)
        );
        sizes.push(compare(&mut world, &db, size, rounds));
    }
    let db = world.folder.join("row.db");
    fill(&Files::of(db.clone(), false), 0);
    let row = in_a_row(&mut world, &db, if options.quick { 400 } else { 2000 });
    // A case that stored nothing would be fast for the wrong reason.
    let store = Store::open(&Files::of(db, false), PERSON_WAIT).expect("a database");
    let stored = store.counts().expect("counts");
    assert!(stored.tool_uses + stored.prompts >= if options.quick { 400 } else { 2000 }, "events are missing: {stored:?}");
    println!("{}", json!({"bench": "hook", "sizes": sizes, "in_a_row": row}));
}
