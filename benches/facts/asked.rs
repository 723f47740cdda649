//! Does a search hand over the fact that a question asks for? All sessions of a project are recorded; each labelled fact's
//! question is asked, in words of others, and what fits into so many bytes is scored, beside BM25 over passages.

use super::Project;
use super::deja;
use super::fit::Fitted;
use super::recorded::recorded;
use super::score::{Fact, holds};
use super::world::{World, binary, send};
use nmem::distil::EmbeddingClient;
use nmem::distil::score::ScoreWeights;
use nmem::model::{EmbeddingModel, Files, Filter, Hit, HitKind, LocalModel, SearchScope, Vector};
use nmem::recall::passage_search::{Searched, search_by};
use nmem::redact::Redactor;
use nmem::render::{results, style::Style};
use nmem::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Bytes of an answer.
const BUDGETS: [usize; 3] = [1600, 2400, 3600];
/// Hits to read for the largest budget.
const HITS: usize = 40;
const KINDS: [HitKind; 4] = [HitKind::Memory, HitKind::Unit, HitKind::Prompt, HitKind::Tool];

/// A project with all its sessions recorded.
struct Recorded<'a> {
    project: &'a Project,
    world: World,
    db: PathBuf,
    store: Store,
    weights: ScoreWeights,
    baseline: Baseline,
    /// Embeddings of all questions, and the name of their model.
    questions: &'a Questions,
}

type Questions = Option<(String, BTreeMap<String, Vector>)>;

/// Options of the bench.
#[derive(Debug, Default)]
pub struct AskedOptions<'a> {
    /// A folder in which databases are kept for the next run.
    pub keep: Option<&'a Path>,
    /// The file for the rows that grades are fitted on.
    pub grades: Option<&'a Path>,
    /// The folder of a local model, for searches by embedding too; needs the feature `local-model`.
    pub model: Option<&'a Path>,
}

/// Prints the tables; returns them as JSON.
pub fn run(projects: &[Project], weights: &Fitted, options: &AskedOptions) -> Value {
    let model =
        options.model.map(|folder| EmbeddingModel::Local(LocalModel { name: "local".into(), folder: folder.to_path_buf() }));
    let questions = model.as_ref().map(|model| (model.name().to_string(), embedded_questions(projects, model)));
    let of = |project| Recorded::new(project, weights, options.keep, model.as_ref(), &questions);
    let all_recorded: Vec<Recorded> = projects.iter().map(of).collect();
    let mut out = Map::new();
    let by = |found: &dyn Fn(&Recorded, &Fact) -> Vec<String>| -> Vec<Answers> {
        all_recorded.iter().map(|of| of.project.facts().map(|fact| (fact.id.clone(), found(of, fact))).collect()).collect()
    };
    let asked = |model: bool| by(&|of, fact| of.asked(&fact.question, None, model).hits.iter().map(text).collect());
    let mut answers =
        vec![("BM25 over passages of 600", by(&|of, fact| of.baseline.found(&fact.question))), ("nmem search", asked(false))];
    let mcp = |of: &Recorded| {
        let mut server = McpServer::new(of);
        of.project.facts().map(|fact| (fact.id.clone(), vec![server.search(&fact.question)])).collect()
    };
    answers.push(("MCP memory_search", all_recorded.iter().map(mcp).collect()));
    let deja = |of: &Recorded| -> Option<BTreeMap<String, Vec<String>>> {
        let sessions = recorded(&of.project.sessions).unwrap();
        let questions = of.project.facts().map(|fact| fact.question.as_str());
        let found = deja::answers(&of.world, &sessions, questions)?;
        Some(of.project.facts().zip(found).map(|(fact, text)| (fact.id.clone(), vec![text])).collect())
    };
    match all_recorded.iter().map(deja).collect::<Option<Vec<_>>>() {
        Some(found) => answers.push(("deja-vu, MCP recall", found)),
        None => println!("deja-vu was passed over: NMEM_BENCH_DEJA names no program"),
    }
    if options.model.is_some() {
        answers.push(("nmem search, local model", asked(true)));
    }
    for bytes in BUDGETS {
        for (name, answers) in &answers {
            let shares: Vec<f64> =
                projects.iter().zip(answers).map(|(project, answers)| share(project, answers, bytes)).collect();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let worst = shares.iter().copied().fold(1.0, f64::min);
            let each: Vec<String> =
                projects.iter().zip(&shares).map(|(project, share)| format!("{} {share:.3}", project.name)).collect();
            println!("asked, {bytes} bytes: {name:26} mean {mean:.3}, worst {worst:.3}   {}", each.join(", "));
            out.insert(format!("{name}, {bytes} bytes"), json!({"mean": mean, "worst": worst, "by_project": shares}));
        }
    }
    let rows = graded(&all_recorded);
    if let Some(to) = options.grades {
        fs::write(to, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    }
    out.insert("grades".into(), summary_of_grades(&rows));
    Value::Object(out)
}

/// The texts found for each fact's question.
type Answers = BTreeMap<String, Vec<String>>;

/// The weight of the facts that the first `bytes` of their answers hold, as a share.
fn share(project: &Project, answers: &Answers, bytes: usize) -> f64 {
    let held = project.facts().filter(|fact| is_shown(&answers[&fact.id], fact, bytes));
    held.map(|fact| fact.weight).sum::<f64>() / project.facts().map(|fact| fact.weight).sum::<f64>()
}

/// Whether one of the texts, of which `bytes` are shown, holds a fact.
fn is_shown(texts: &[String], fact: &Fact, bytes: usize) -> bool {
    let mut left = bytes;
    texts.iter().any(|text| {
        let shown = &text[..text.floor_char_boundary(left)];
        left = left.saturating_sub(text.len() + 1);
        holds(shown, &fact.must)
    })
}

/// A hit as the program prints it.
fn text(hit: &Hit) -> String {
    results::text(hit, &[], Style::default(), false)
}

impl<'a> Recorded<'a> {
    fn new(
        project: &'a Project,
        weights: &Fitted,
        keep: Option<&Path>,
        model: Option<&EmbeddingModel>,
        questions: &'a Questions,
    ) -> Recorded<'a> {
        let world = World::new(&format!("asked-{}", project.name));
        let kept = keep.map(|folder| folder.join(format!("asked-{}.db", project.name)));
        if kept.as_ref().is_none_or(|db| !db.exists()) {
            for session in project.by_id().values() {
                send(&world, &project.sessions, session);
            }
            Store::open(&Files::of(world.db(), false), PERSON_WAIT).unwrap().checkpoint();
            if let Some(kept) = &kept {
                fs::copy(world.db(), kept).unwrap();
            }
        }
        let db = kept.unwrap_or_else(|| world.db());
        let mut store = Store::open(&Files::of(db.clone(), false), PERSON_WAIT).unwrap();
        store.index_waiting(usize::MAX, &mut |_| ()).unwrap();
        let weights = project.labels.keys().find_map(|id| weights.get(id)).unwrap().clone();
        let baseline = Baseline::new(project);
        if let Some(model) = model {
            let waiting = store.unembedded((None, None), model.name(), usize::MAX >> 1).unwrap();
            let client = EmbeddingClient { to: model, redactor: &Redactor::default() };
            client.of_memories(&mut store, &waiting, &mut |_| Some(Duration::MAX)).unwrap().unwrap();
        }
        Recorded { project, world, db, store, weights, baseline, questions }
    }

    fn embedded(&self, question: &str) -> Option<(String, Vector)> {
        self.questions.as_ref().map(|(model, vectors)| (model.clone(), vectors[question].clone()))
    }

    fn asked(&self, question: &str, without: Option<&str>, model: bool) -> Searched {
        let filter = Filter { scope: SearchScope::of(1), ..Filter::default() };
        let filter = Filter { without_session: without.map(String::from), ..filter };
        let embed = |text: &str| self.embedded(text).filter(|_| model);
        search_by(&self.store, question, &KINDS, &filter, HITS, &embed, self.weights.clone()).unwrap()
    }
}

/// The embedding of each question, as it is and without names.
fn embedded_questions(projects: &[Project], model: &EmbeddingModel) -> BTreeMap<String, Vector> {
    let client = EmbeddingClient { to: model, redactor: &Redactor::default() };
    let own = projects.iter().flat_map(Project::facts).map(|fact| fact.question.clone());
    let all: BTreeSet<String> = own.flat_map(|question| [without_names(&question), question]).collect();
    all.into_iter().map(|question| (question.clone(), client.of(&question, Duration::MAX).unwrap())).collect()
}

/// `nmem mcp` of the bench's build, over a recorded project.
struct McpServer {
    child: Child,
    answers: BufReader<ChildStdout>,
    calls: u32,
}

impl McpServer {
    fn new(of: &Recorded) -> McpServer {
        let mut child = Command::new(binary())
            .arg("mcp")
            .current_dir(&of.world.home)
            .env_clear()
            .envs([("HOME", of.world.home.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref()), ("NMEM_DB", of.db.as_os_str())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut server = McpServer { child, answers, calls: 0 };
        let client =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        server.call("initialize", client);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}));
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["result"].take()
    }

    /// The text that an agent is given.
    fn search(&mut self, question: &str) -> String {
        let arguments = json!({"query": question, "all": true});
        let answer = self.call("tools/call", json!({"name": "memory_search", "arguments": arguments}));
        answer["content"][0]["text"].as_str().unwrap().to_string()
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// BM25 over passages of at most 600 characters, without anything else.
struct Baseline {
    index: rusqlite::Connection,
}

/// Words of a question that are not searched.
const STOP_WORDS: &str = "a an the and or of to in on for with without is are was were be been do does did what which who how why when where it its this that these those from by at as we our you your i my me after before into than then there have has had can could should would will not no";

impl Baseline {
    fn new(project: &Project) -> Baseline {
        let index = rusqlite::Connection::open_in_memory().unwrap();
        index.execute_batch("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize='porter unicode61')").unwrap();
        for id in project.by_id().keys() {
            for event in super::events(&project.sessions, id) {
                let said = match event["event"].as_str() {
                    Some("UserPromptSubmit") => event["prompt"].as_str(),
                    Some("Stop") => event["last_assistant_message"].as_str(),
                    _ => None,
                };
                for passage in passages_of_600(said.unwrap_or_default()) {
                    index.execute("INSERT INTO passages VALUES (?1)", [passage]).unwrap();
                }
            }
        }
        Baseline { index }
    }

    fn found(&self, question: &str) -> Vec<String> {
        let words: Vec<String> = question
            .to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty() && !STOP_WORDS.split(' ').any(|stop| stop == *word))
            .map(|word| format!("\"{word}\""))
            .collect();
        let sql = "SELECT text FROM passages WHERE passages MATCH ?1 ORDER BY bm25(passages) LIMIT 40";
        let mut statement = self.index.prepare(sql).unwrap();
        statement.query_map([words.join(" OR ")], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

/// Paragraphs joined up to 600 characters.
fn passages_of_600(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let mut rest: Vec<char> = paragraph.chars().collect();
        while !rest.is_empty() {
            let piece: String = rest.drain(..rest.len().min(600)).collect();
            match all.last_mut() {
                Some(last) if last.chars().count() + piece.chars().count() < 600 => *last += &format!("\n{piece}"),
                _ => all.push(piece),
            }
        }
    }
    all
}

/// Prints how answers are graded, and the share of the most confident ones that hold their fact in 2,400 bytes; returns both.
fn summary_of_grades(rows: &[Value]) -> Value {
    let of = |kind: &str, shown: Option<bool>| -> Vec<&Value> {
        rows.iter().filter(|row| row["kind"] == kind && shown.is_none_or(|shown| row["shown"][1] == shown)).collect()
    };
    let share = |rows: &[&Value], is: &dyn Fn(&Value) -> bool| {
        rows.iter().filter(|row| is(row)).count() as f64 / rows.len().max(1) as f64
    };
    let is_weak = |row: &Value| row["grade"] != "strong";
    let own = of("own", None);
    let strong: Vec<&Value> = own.iter().copied().filter(|row| !is_weak(row)).collect();
    let mut out = Map::new();
    let mut print = |name: &str, share: f64| {
        println!("grades: {name:56} {share:.3}");
        out.insert(name.to_string(), json!(share));
    };
    print("weak or none, own, the fact is shown", share(&of("own", Some(true)), &is_weak));
    print("weak or none, own, it is not", share(&of("own", Some(false)), &is_weak));
    print("weak or none, own, answering session left out", share(&of("left out", None), &is_weak));
    print("weak or none, of other projects", share(&of("foreign", None), &is_weak));
    print("own graded strong that hold the fact", share(&strong, &|row| row["shown"][1] == true));
    let mut sorted = own;
    sorted.sort_by(|a, b| b["log_odds"].as_f64().unwrap().total_cmp(&a["log_odds"].as_f64().unwrap()));
    for percent in [10, 25, 50, 75, 90, 100] {
        let most = &sorted[..(sorted.len() * percent).div_ceil(100)];
        print(&format!("own, the most confident {percent} % that hold it"), share(most, &|row| row["shown"][1] == true));
    }
    Value::Object(out)
}

/// The rows that grades are fitted on: of each question of a project, of each with its answering session left out,
/// and of questions of other projects.
fn graded(recorded: &[Recorded]) -> Vec<Value> {
    let mut out = Vec::new();
    let mut row = |of: &Recorded, kind: &str, fact: &Fact, question: &str, without: Option<&str>| {
        let searched = of.asked(question, without, true);
        let texts: Vec<String> = searched.hits.iter().map(text).collect();
        let shown: Vec<bool> = BUDGETS.iter().map(|bytes| kind != "foreign" && is_shown(&texts, fact, *bytes)).collect();
        let asked = searched.asked;
        out.push(json!({"project": of.project.name, "kind": kind, "fact": fact.id, "question": question, "weight": fact.weight, "shown": shown,
                "coverage": asked.coverage, "covered": asked.covered, "score": asked.score, "lead": asked.lead, "words": asked.words,
                "unknown": asked.unknown, "near": asked.near, "log_odds": asked.log_odds(), "grade": searched.grade.map(|grade| grade.name())}));
    };
    for of in recorded {
        for (session, labels) in &of.project.labels {
            for fact in &labels.facts {
                row(of, "own", fact, &fact.question, None);
                row(of, "left out", fact, &fact.question, Some(session));
            }
        }
        let others = recorded.iter().filter(|other| other.project.name != of.project.name);
        let by_name: BTreeMap<&str, &Recorded> = others.map(|other| (other.project.name, other)).collect();
        for other in by_name.values() {
            for fact in other.project.labels.values().flat_map(|labels| &labels.facts) {
                row(of, "foreign", fact, &without_names(&fact.question), None);
            }
        }
    }
    out
}

/// Names of the projects and their products.
const NAMES: [&str; 8] = ["entire", "safecast", "context-evaluator", "skills", "cursor", "codex", "claude", "cloudfront"];

/// A question without names of files and projects, by which another project's would be too easy to tell.
fn without_names(question: &str) -> String {
    let is_name = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        word.contains(['/', '\\']) || word.trim_end_matches(['.', '?', ',']).contains('.') || NAMES.contains(&bare.as_str())
    };
    question.split(' ').filter(|word| !is_name(word)).collect::<Vec<_>>().join(" ")
}
