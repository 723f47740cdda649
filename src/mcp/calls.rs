//! The tools: arguments, calls and answers.

use crate::config::{self, Config, environment};
use crate::distil::embed;
use crate::domains;
use crate::error::{NO_PROJECT, UserError, explain};
use crate::evidence::{Git, ProjectRecords, evidence_of};
use crate::index_text::query_terms;
use crate::ingest::persist;
use crate::ingest::run::{Caller, Run};
use crate::knowledge::{self, MemoryFields};
use crate::lookup;
use crate::model::{
    CommandForm, Draft, Filter, Grade, HitKind, MemoryKind, PastError, Provenance, SearchScope, StoredItem, Vector,
};
use crate::recall::{self, CurrentTask};
use crate::redact::Redactor;
use crate::render::clean::line;
use crate::render::ranked_units::for_request;
use crate::render::results::{self, error_text, form_text, not_kept};
use crate::render::session_start::{ContextBlock, for_agent, with_below};
use crate::render::style::{Style, wrap};
use crate::render::{evidence_text, time};
use crate::runtime::{self, FolderProject, Projects, Where};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Maximum results of a search, before they are cut to the size of an answer.
const MAX_HITS: usize = 16;
const MAX_ERRORS: usize = 5;
const MAX_FORMS: usize = 8;
/// Maximum bytes of a context block; in JSON it takes a tenth more.
const CONTEXT_BYTES: usize = 3600;
/// Prefix of the tools' names, since some clients show them without the server's name.
const PREFIX: &str = "memory_";

/// The folder's settings and project, for one call.
pub struct CallContext {
    folder: PathBuf,
    config: Config,
    redactor: Redactor,
    store: Option<Store>,
    place: FolderProject,
}

impl CallContext {
    pub fn new(folder: PathBuf) -> Result<CallContext> {
        let config = config::load(&[&folder])?;
        let redactor = runtime::redactor(&config)?;
        let store = persist::reader(&Run::new(Caller::Program, &config, &redactor))?;
        let place = Projects { config: &config, redactor: &redactor }.look_up(&folder.to_string_lossy(), store.as_ref());
        Ok(CallContext { folder, config, redactor, store, place })
    }

    /// Answers a call.
    pub fn call(&self, tool: &str, arguments: &ToolArguments) -> Result<ToolAnswer> {
        match tool.strip_prefix(PREFIX).unwrap_or_default() {
            "search" => self.search(arguments),
            "context" => self.context(arguments),
            "show" => self.show(arguments),
            "remember" => self.remember(arguments),
            "error" => self.error(arguments),
            "how" => self.how(arguments),
            _ => Err(UserError::usage(format!("there is no tool {tool:?}"), "`tools/list` names them").into()),
        }
    }

    fn search(&self, arguments: &ToolArguments) -> Result<ToolAnswer> {
        arguments.only(&["query", "kind", "file", "since", "all"])?;
        let text = arguments.needed("query")?;
        let all = arguments.is_set("all")?;
        let kind = arguments.text("kind")?;
        let (kinds, memories) = kinds(kind)?;
        let since = arguments.text("since")?.map(|text| time::parse(text, environment::now())).transpose();
        let since = since.map_err(|error| UserError::usage(error, "write 7d or 2026-11-01"))?;
        let Some((store, scope)) = self.scope(all)? else { return Ok(self.nothing()) };
        let filter = Filter {
            scope,
            since,
            file: arguments.text("file")?.map(String::from),
            memories,
            asked_at: Some(environment::now()),
            ..Filter::default()
        };
        let embedding = |text: &str| -> Option<(String, Vector)> { embed::of_query(&self.config, &self.redactor, text) };
        let found = recall::search(store, text, &kinds, &filter, MAX_HITS, &embedding)?;
        let words = query_terms(text);
        let item = |hit| {
            let json = results::json(hit, &words);
            (results::text(hit, &words, Style::default(), all), json!({"id": json["id"], "kind": json["kind"]}))
        };
        let note = match (&found.corrected, found.hits.is_empty()) {
            (Some(corrected), _) => Some(format!("no results for these words; these are for {corrected}")),
            (None, true) if all => Some("nothing found".into()),
            (None, true) => Some("nothing found here; other words, or all: true for all projects".into()),
            (None, false) => (found.total > MAX_HITS).then(|| format!("{MAX_HITS} of {} results", found.total)),
        };
        let grade = found.grade.unwrap_or_default();
        let answer = ToolAnswer::list(found.hits.iter().map(item), "search for fewer words").with_note(note);
        Ok(answer.graded(grade))
    }

    fn context(&self, arguments: &ToolArguments) -> Result<ToolAnswer> {
        arguments.only(&["request", "files"])?;
        let (request, files) = (arguments.text("request")?, arguments.list("files")?);
        let Some((store, _)) = self.scope(false)? else { return Ok(self.nothing()) };
        let Some(project) = self.place.row.as_ref().or(self.place.below.first()).map(|row| row.id) else {
            return Ok(self.nothing());
        };
        let embedding = request.and_then(|text| embed::of_query(&self.config, &self.redactor, text));
        let task = CurrentTask {
            project,
            folder: &self.folder,
            home: self.config.home.as_deref(),
            request,
            files: &files,
            embedding: embedding.as_ref().map(|(model, vector)| (model.as_str(), vector)),
            now: environment::now(),
        };
        let text = match request.is_none() && files.is_empty() {
            true => {
                let now = environment::now();
                let below = recall::for_session_above(store, &task, now)?;
                let share = CONTEXT_BYTES / (below.len() + 1);
                let own = match &self.place.row {
                    Some(_) => for_agent(&recall::for_new_session(store, &task, now)?, share),
                    None => ContextBlock::default(),
                };
                with_below(own, &below, CONTEXT_BYTES).text
            }
            false => for_request(&recall::for_task(store, &task)?, CONTEXT_BYTES).text,
        };
        Ok(match text.trim().is_empty() {
            true => ToolAnswer::sentence(
                "Nothing here is related to it; `memory_search` takes other words, and all: true for all projects.",
            ),
            false => ToolAnswer::text(&text, "name fewer files, or a shorter request"),
        })
    }

    fn show(&self, arguments: &ToolArguments) -> Result<ToolAnswer> {
        arguments.only(&["id", "all"])?;
        let id = arguments.needed("id")?;
        let all = arguments.is_set("all")?;
        let unknown = || UserError::new(format!("nothing here has the id {}", line(id, 80)), "`memory_search` prints ids");
        let (store, scope) = self.scope(all)?.ok_or_else(unknown)?;
        let Some(found) = lookup::find(store, id)? else {
            let git = Git::open(&self.folder).ok();
            let recorded = git.as_ref().map(|git| ProjectRecords { store, scope: &scope, redactor: &self.redactor, git });
            let found = recorded.map(|recorded| evidence_of(&recorded, &self.folder, id)).transpose()?.flatten();
            let text = evidence_text::text(&found.ok_or_else(unknown)?, Style::default());
            return Ok(ToolAnswer::text(&text, format!("`nmem why {}` prints all", line(id, 80))));
        };
        if !scope.is_all() && !project_of(store, &found)?.is_some_and(|project| scope.projects.contains(&project)) {
            return Err(UserError::new(format!("{} belongs to another project", line(id, 80)), "all: true shows it").into());
        }
        let text = lookup::text(store, found, false, Style::default())?;
        Ok(ToolAnswer::text(&text, format!("`nmem show {}` prints all", line(id, 80))))
    }

    fn remember(&self, arguments: &ToolArguments) -> Result<ToolAnswer> {
        arguments.only(&["text", "kind", "type", "reason", "confidence", "alternatives", "tags", "files"])?;
        let folders = [self.folder.to_str(), None];
        let projects = Projects { config: &self.config, redactor: &self.redactor };
        let now = environment::now();
        if let Some(reason) = runtime::why_off(&projects, &Where { folders, ..Where::default() }, now) {
            return Err(UserError::new(reason, "nothing was stored").into());
        }
        let identity =
            self.place.id.clone().ok_or_else(|| UserError::new(NO_PROJECT, "start `nmem mcp` in a project's folder"))?;
        let mut store = Store::open(&self.config.files.value, PERSON_WAIT)?;
        let project = store.ensure_project(&self.redactor.clean(identity), now)?;
        let (name, own) = store.domain_of_project(project)?.unwrap_or_default();
        let fields = self.fields(arguments)?;
        let draft = knowledge::draft(&fields, &domains::of(Some(&name), own.as_deref()), now)?;
        let draft = Draft { provenance: Provenance::Agent, ..draft };
        let kind = draft.kind.name();
        let id = knowledge::remember(&mut store, &self.redactor, draft, Some(project), false)?;
        Ok(ToolAnswer::sentence(&format!("Remembered as m{id} ({kind}), as the agent's words.")))
    }

    fn error(&self, arguments: &ToolArguments) -> Result<ToolAnswer> {
        arguments.only(&["text", "all"])?;
        let text = arguments.needed("text")?;
        let Some((store, scope)) = self.scope(arguments.is_set("all")?)? else { return Ok(self.nothing()) };
        let found = recall::past_errors(store, &scope, text, MAX_ERRORS)?;
        let found =
            found.ok_or_else(|| UserError::usage("this says too little to search for", "pass the line that names the error"))?;
        let note = match found.is_empty() {
            true => Some(format!("no such error is recorded here{}", not_kept(store.tool_uses_gone_until(&scope)?))),
            false => None,
        };
        let item = |error| (error_text(error, Style::default()), Value::Null);
        let grade = found.first().map(PastError::grade).unwrap_or_default();
        Ok(ToolAnswer::list(found.iter().map(item), "pass the line that names the error").with_note(note).graded(grade))
    }

    fn how(&self, arguments: &ToolArguments) -> Result<ToolAnswer> {
        arguments.only(&["program", "all"])?;
        let program = arguments.needed("program")?;
        let Some((store, scope)) = self.scope(arguments.is_set("all")?)? else { return Ok(self.nothing()) };
        let mut forms = recall::command_forms(store, &scope, program)?;
        forms.truncate(MAX_FORMS);
        let note = match forms.is_empty() {
            true => {
                let gone = not_kept(store.tool_uses_gone_until(&scope)?);
                Some(format!("no call of {} is recorded here{gone}", line(program, 80)))
            }
            false => None,
        };
        let item = |form| (form_text(form, Style::default()), Value::Null);
        let grade = forms.first().map(CommandForm::grade).unwrap_or_default();
        Ok(ToolAnswer::list(forms.iter().map(item), "name a subcommand").with_note(note).graded(grade))
    }

    /// The store, and the project to which a call is limited; `None` if nothing is recorded there.
    ///
    /// # Errors
    ///
    /// The folder is not a project, and the call does not ask for all.
    fn scope(&self, all: bool) -> Result<Option<(&Store, SearchScope)>> {
        if self.place.name().is_none() && !all {
            let hint = "start `nmem mcp` with --project DIR; search, show, error and how also take all: true";
            return Err(UserError::new(NO_PROJECT, hint).into());
        }
        let Some(store) = &self.store else { return Ok(None) };
        let scope = if all { Some(SearchScope::default()) } else { self.place.scope() };
        Ok(scope.map(|scope| (store, scope)))
    }

    fn nothing(&self) -> ToolAnswer {
        let why = match environment::is_ignored("NMEM_DB") {
            true => " NMEM_DB is ignored: it leads into the project, or the project's settings set it.",
            false => "",
        };
        ToolAnswer::sentence(&format!("Nothing is remembered for this project yet.{why}"))
    }

    /// The fields of a memory, named as in the observation protocol and the RAD memory specification.
    fn fields(&self, arguments: &ToolArguments) -> Result<MemoryFields> {
        let text = arguments.needed("text")?;
        let kind = arguments.text("kind")?.unwrap_or("observation");
        let path = |path: &String| crate::project::relative(path, self.folder.to_str(), self.config.home.as_deref());
        let files: Vec<String> = arguments.list("files")?.iter().map(path).collect();
        let mut fields = MemoryFields::new();
        fields.insert("kind".into(), kind.into());
        fields.insert("title".into(), text.into());
        for (name, value) in [("type", arguments.text("type")?), ("reasoning", arguments.text("reason")?)] {
            fields.extend(value.map(|value| (name.to_string(), Value::from(value))));
        }
        fields.extend(arguments.value("confidence").map(|value| ("confidence".to_string(), value.clone())));
        for (name, list) in
            [("alternatives", arguments.list("alternatives")?), ("tags", arguments.list("tags")?), ("files_modified", files)]
        {
            if !list.is_empty() {
                fields.insert(name.into(), list.into());
            }
        }
        Ok(fields)
    }
}

/// Returns the kinds that a search covers. Tool uses are included only if the call names them, since they would crowd
/// out their results.
fn kinds(name: Option<&str>) -> Result<(Vec<HitKind>, Vec<MemoryKind>)> {
    Ok(match name {
        None => (HitKind::ALL.to_vec(), Vec::new()),
        Some("memory") => (vec![HitKind::Memory], Vec::new()),
        Some("unit") => (vec![HitKind::Unit], Vec::new()),
        Some("prompt") => (vec![HitKind::Prompt], Vec::new()),
        Some("tool") => (vec![HitKind::Tool], Vec::new()),
        Some(name) => {
            let kind = MemoryKind::from_name(name);
            let valid = "use memory, decision, lesson, observation, summary, task, unit, prompt or tool";
            (
                vec![HitKind::Memory],
                vec![kind.ok_or_else(|| UserError::usage(format!("unknown kind {}", line(name, 40)), valid))?],
            )
        }
    })
}

/// The project that an item belongs to.
fn project_of(store: &Store, item: &StoredItem) -> Result<Option<i64>> {
    match item {
        StoredItem::Session(session) => store.project_of_session(session.id),
        StoredItem::Unit(unit) => store.project_of_unit(unit.id),
        StoredItem::Prompt(prompt) => store.project_of_prompt(prompt.id),
        StoredItem::ToolUse(tool) => store.project_of_tool_use(tool.id),
        StoredItem::Memory(memory) => Ok(memory.project_id),
    }
}

/// Maximum bytes of one text, and maximum items of a list.
const MAX_TEXT_BYTES: usize = 64 * 1024;
const MAX_ITEMS: usize = 100;

/// The arguments of one call.
#[derive(Debug)]
pub struct ToolArguments(Map<String, Value>);

impl ToolArguments {
    pub fn new(arguments: Map<String, Value>) -> ToolArguments {
        ToolArguments(arguments)
    }

    /// # Errors
    ///
    /// An argument that the tool does not have.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(wrong(format!("unknown argument {unknown:?}"), format!("use {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// A text; `None` if it is absent, null or blank.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() > MAX_TEXT_BYTES => {
                Err(wrong(format!("{name} is too long"), format!("{MAX_TEXT_BYTES} bytes at most")))
            }
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(_) => Err(wrong(format!("{name} must be a string"), "correct the call")),
        }
    }

    /// A required text.
    pub fn needed(&self, name: &str) -> Result<&str> {
        self.text(name)?.ok_or_else(|| wrong(format!("{name} is missing"), "correct the call"))
    }

    /// A list of texts; one text is a list of one.
    pub fn list(&self, name: &str) -> Result<Vec<String>> {
        let text = |value: &Value| value.as_str().filter(|text| text.len() <= MAX_TEXT_BYTES).map(String::from);
        let list = match self.0.get(name) {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::Array(items)) if items.len() <= MAX_ITEMS => items.iter().map(text).collect(),
            Some(one) => text(one).map(|one| vec![one]),
        };
        list.ok_or_else(|| wrong(format!("{name} must be a list of at most {MAX_ITEMS} strings"), "correct the call"))
    }

    pub fn is_set(&self, name: &str) -> Result<bool> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_set)) => Ok(*is_set),
            Some(_) => Err(wrong(format!("{name} must be true or false"), "correct the call")),
        }
    }

    /// Any value, as passed.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

fn wrong(what: String, hint: impl Into<String>) -> anyhow::Error {
    UserError::usage(what, hint).into()
}

/// Maximum bytes of an answer as JSON.
pub const MAX_ANSWER_BYTES: usize = 4096;
/// Columns at which long text is wrapped, so that a part of it can be left out.
const WIDTH: usize = 160;

/// The answer of a tool before it is cut to its maximum size.
#[derive(Debug)]
pub struct ToolAnswer {
    parts: Vec<AnswerPart>,
    /// True if the parts are items of a list; otherwise they are lines of one text.
    is_list: bool,
    /// The grade of an answer to a question. Such an answer also has its items as structured content.
    grade: Option<Grade>,
    /// Text that replaces omitted parts.
    more: String,
    /// Text after the parts, or without parts.
    note: Option<String>,
    is_error: bool,
}

/// A line, or an item of a list; `json` says what it is and does not repeat its text.
#[derive(Debug)]
struct AnswerPart {
    text: String,
    json: Value,
}

impl ToolAnswer {
    /// Creates an answer from the lines of a text that is already sanitised.
    pub fn text(text: &str, more: impl Into<String>) -> ToolAnswer {
        let lines = wrap(text.trim_end(), WIDTH);
        let parts = lines.lines().map(|line| AnswerPart { text: line.to_string(), json: Value::Null }).collect();
        ToolAnswer { parts, is_list: false, grade: None, more: more.into(), note: None, is_error: false }
    }

    /// Creates an answer from items, best first, each as text and as JSON.
    pub fn list(items: impl Iterator<Item = (String, Value)>, more: impl Into<String>) -> ToolAnswer {
        let parts = items.map(|(text, json)| AnswerPart { text: text.trim_end().to_string(), json: sanitised(json) }).collect();
        ToolAnswer { parts, is_list: true, grade: None, more: more.into(), note: None, is_error: false }
    }

    /// Creates an answer of one sentence.
    pub fn sentence(text: &str) -> ToolAnswer {
        ToolAnswer {
            parts: Vec::new(),
            is_list: false,
            grade: None,
            more: String::new(),
            note: Some(text.to_string()),
            is_error: false,
        }
    }

    /// Creates an error answer: the reason, and what to do next.
    pub fn failed(error: &anyhow::Error) -> ToolAnswer {
        let failure = explain(error);
        let hint = failure.hint.as_ref().map(|hint| format!(". {}", line(hint, 300))).unwrap_or_default();
        ToolAnswer { is_error: true, ..ToolAnswer::sentence(&format!("{}{hint}", line(&failure.what, 500))) }
    }

    pub fn with_note(mut self, note: Option<String>) -> ToolAnswer {
        self.note = note;
        self
    }

    /// Adds how well the answer fits its question.
    pub fn graded(mut self, grade: Grade) -> ToolAnswer {
        self.grade = Some(grade);
        self
    }

    /// The answer with as many parts as fit.
    pub fn into_result(self) -> CallToolResult {
        let fits = |shown| serde_json::to_vec(&self.result(shown)).is_ok_and(|json| json.len() <= MAX_ANSWER_BYTES);
        let (mut shown, mut most) = (0, self.parts.len());
        while shown < most {
            let middle = (shown + most).div_ceil(2);
            if fits(middle) {
                shown = middle;
            } else {
                most = middle - 1;
            }
        }
        self.result(shown)
    }

    fn result(&self, shown: usize) -> CallToolResult {
        let left_out = self.parts.len() - shown;
        let more = (left_out > 0).then(|| format!("{left_out} more {} left out: {}", self.unit(left_out), self.more));
        let weak = (self.grade == Some(Grade::Weak)).then_some(results::WEAK);
        let texts = self.parts[..shown].iter().map(|part| part.text.as_str());
        let lines: Vec<&str> = weak.into_iter().chain(texts).chain(more.as_deref()).chain(self.note.as_deref()).collect();
        let mut result = CallToolResult::success(vec![ContentBlock::text(lines.join("\n"))]);
        result.is_error = Some(self.is_error);
        result.structured_content = self.grade.map(|grade| {
            let items: Vec<&Value> = self.parts[..shown].iter().map(|part| &part.json).filter(|json| !json.is_null()).collect();
            match items.is_empty() {
                true => json!({"match": grade.name()}),
                false => json!({"match": grade.name(), "results": items}),
            }
        });
        result
    }

    fn unit(&self, n: usize) -> &'static str {
        match (self.is_list, n) {
            (true, 1) => "item",
            (true, _) => "items",
            (false, 1) => "line",
            (false, _) => "lines",
        }
    }
}

/// JSON whose texts are single harmless lines.
fn sanitised(json: Value) -> Value {
    match json {
        Value::String(text) => Value::String(line(&text, usize::MAX)),
        Value::Array(items) => items.into_iter().map(sanitised).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null() && value != &json!([]) && value != "");
            Value::Object(kept.map(|(name, value)| (name, sanitised(value))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: Value) -> ToolArguments {
        ToolArguments::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn an_unknown_argument_and_a_wrong_type_are_refused_by_name() {
        let refused = arguments(json!({"query": "a", "limt": 3})).only(&["query", "limit"]).unwrap_err().to_string();
        assert!(refused.contains("\"limt\""), "{refused}");
        let given = arguments(json!({"query": 7, "all": "yes", "tags": [1]}));
        assert_eq!(given.text("query").unwrap_err().to_string(), "query must be a string");
        assert_eq!(given.is_set("all").unwrap_err().to_string(), "all must be true or false");
        assert!(given.list("tags").is_err());
        assert_eq!(given.needed("text").unwrap_err().to_string(), "text is missing");
    }

    #[test]
    fn null_and_blank_are_absent_and_one_text_is_a_list_of_one() {
        let given = arguments(json!({"query": "  ", "kind": null, "tags": "tests"}));
        assert_eq!((given.text("query").unwrap(), given.text("kind").unwrap()), (None, None));
        assert_eq!((given.list("tags").unwrap(), given.list("files").unwrap()), (vec!["tests".to_string()], Vec::new()));
        assert!(!given.is_set("all").unwrap() && given.value("kind").is_none());
    }

    #[test]
    fn a_text_beyond_the_limit_is_refused() {
        let long = arguments(json!({"query": "a".repeat(MAX_TEXT_BYTES + 1)}));
        assert_eq!(long.text("query").unwrap_err().to_string(), "query is too long");
    }
}
