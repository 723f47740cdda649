//! Tasks with their decisions and lessons, as the RAD memory specification has them: told by a program, and asked for.

use super::here::Here;
use super::request::{Problem, Request};
use crate::distil::embedding;
use crate::domains;
use crate::knowledge::{self, Told};
use crate::model::{MemoryRow, ProjectRow, Provenance};
use crate::recall::patterns::Confidence;
use crate::recall::related::{self, Question, Task};
use crate::render::memories;
use crate::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};

/// Decisions, and lessons, of one task.
const PARTS: usize = 100;
/// Fields that a task, a decision or a lesson has, and those of the request around it.
const KNOWN: [&str; 26] = [
    "task",
    "decisions",
    "lessons",
    "id",
    "task_id",
    "verb",
    "cwd",
    "project",
    "repo_id",
    "repo",
    "metadata",
    "task_description",
    "description",
    "success",
    "task_kind",
    "agent_tier",
    "error_message",
    "chosen_option",
    "chosen",
    "decision_type",
    "reasoning",
    "alternatives",
    "confidence",
    "lesson_type",
    "title",
    "tags",
];
const TIERS: [&str; 2] = ["free", "paid"];

/// `knowledge/record` (`recordEvent`): a task that was done or failed, with what was decided and learnt.
pub fn record(here: &Here, request: Request) -> Result<Value, Problem> {
    let task = request.value(&["task"]).map(Request::of).transpose()?.unwrap_or(request);
    if task.value(&["task_id"]).or(request.value(&["task_id"])).is_some() {
        return Err(Problem::bad("`taskId` is nmem's to give: tell the task with its decisions and lessons at once"));
    }
    let drafts = [vec![of_task(task)?], parts(request, "decisions", of_decision)?, parts(request, "lessons", of_lesson)?];
    let named = here.identity(task)?;
    here.may_record(None, named.as_ref())?;
    let domain = domains::built_in(domains::DEFAULT).unwrap_or_default();
    let drafted = |told: &Told| -> Result<_, Problem> {
        let draft = knowledge::draft(told, &domain, here.now).map_err(|error| Problem::bad(format!("{error:#}")))?;
        Ok(crate::model::Draft { provenance: Provenance::Agent, ..draft })
    };
    let drafts = drafts.iter().flatten().map(drafted).collect::<Result<Vec<_>, _>>()?;
    let identity = named.or_else(|| here.own_identity());
    let identity = identity.ok_or_else(|| Problem::bad("the home folder is no project: name one in `repoId`"))?;
    let redactor = &here.settings.redactor;
    let mut store = Store::open(&here.settings.config.files.value, PERSON_WAIT)?;
    let project = store.ensure_project(&redactor.clean(identity), here.now)?;
    let (id, uuid) = knowledge::record(&mut store, redactor, drafts, project)?;
    Ok(json!({"taskId": uuid, "id": format!("m{id}")}))
}

/// `knowledge/related` (`getRelatedKnowledge`): by a description, the nearest first; of the own project, and lessons of others.
pub fn related(here: &Here, request: Request) -> Result<Value, Problem> {
    let description = request.needed(&["task_description", "description", "query"])?;
    let limit = request.count(&["limit"], 5, 100)?;
    let kind = request.name(&["task_kind", "kind"])?;
    let nothing = json!({"similarTasks": [], "relevantDecisions": [], "applicableLessons": [], "repo": null});
    let Some(store) = here.store()? else { return Ok(nothing) };
    let place = here.project(&store, request)?;
    let (project, repo) = place.map_or((None, None), |(project, name)| (Some(project), Some(name)));
    let row = project.map(|project| store.project_by_row(project)).transpose()?.flatten();
    let meaning = embedding::of_text(&here.settings.config, &here.settings.redactor, description, embedding::FOR_A_PERSON);
    let meaning = meaning.as_ref().map(|(model, vector)| (model.as_str(), vector));
    let known = related::related(&store, &Question { project, description, kind, meaning, limit })?;
    let decision = |(memory, near, sure): &(MemoryRow, f64, Confidence)| decision_json(memory, *near, sure);
    let lesson = |(memory, near): &(MemoryRow, f64)| lesson_json(memory, *near, memory.project_id != project);
    Ok(json!({
        "similarTasks": known.tasks.iter().map(|task| task_json(task, repo.as_deref())).collect::<Vec<_>>(),
        "relevantDecisions": known.decisions.iter().map(decision).collect::<Vec<_>>(),
        "applicableLessons": known.lessons.iter().map(lesson).collect::<Vec<_>>(),
        "repo": row.as_ref().map(repo_json),
    }))
}

/// `repo_metadata` of the specification: what the repository says of itself.
fn repo_json(project: &ProjectRow) -> Value {
    let about = project.about.as_ref();
    json!({
        "repoId": project.name, "repoName": project.name, "repoUrl": project.repo_url, "projectType": about.map(|(about, _)| &about.project_type),
        "mainLanguages": about.map_or(&Vec::new(), |(about, _)| &about.languages),
        "frameworks": about.map_or(&Vec::new(), |(about, _)| &about.frameworks), "lastIndexed": about.map(|(_, at)| at),
    })
}

fn task_json(task: &Task, repo: Option<&str>) -> Value {
    let memory = task.memory.as_ref();
    let unit = task.unit.map(|unit| format!("u{unit}"));
    json!({
        "id": memory.map(|memory| memory.uuid.clone()).or(unit.clone()), "memory": memory.map(memories::id), "unit": unit,
        "description": task.description, "taskKind": memory.and_then(|memory| memory.kind_type.as_deref()), "success": task.success,
        "similarity": task.similarity, "repo": repo, "createdAt": task.at,
    })
}

fn decision_json(memory: &MemoryRow, similarity: f64, sure: &Confidence) -> Value {
    json!({
        "id": memory.uuid, "memory": memories::id(memory), "decisionType": memory.kind_type,
        "chosenOption": memory.text("chosen").unwrap_or(&memory.title),
        "alternatives": if memory.list("alternatives").is_empty() { memory.list("options") } else { memory.list("alternatives") },
        "reasoning": memory.text("reasoning").or(memory.text("rationale")).or(memory.text("reason")).unwrap_or_default(),
        "confidence": sure.now, "confidenceSaid": sure.said, "evidence": sure.evidence_json(),
        "similarity": similarity, "repo": memory.project, "provenance": memory.provenance,
    })
}

fn lesson_json(memory: &MemoryRow, similarity: f64, of_another: bool) -> Value {
    json!({
        "id": memory.uuid, "memory": memories::id(memory), "title": memory.title,
        "description": memory.text("description").unwrap_or(&memory.title), "lessonType": memory.kind_type, "tags": memory.list("tags"),
        "similarity": similarity, "repo": memory.project, "crossRepo": of_another, "provenance": memory.provenance,
    })
}

fn of_task(task: Request) -> Result<Told, Problem> {
    let description = task.needed(&["task_description", "description"])?;
    let success = task.value(&["success"]).and_then(Value::as_bool);
    let success = success.ok_or_else(|| Problem::bad("`success` must be true or false"))?;
    let tier = task.name(&["agent_tier"])?.filter(|tier| !tier.is_empty());
    if tier.is_some_and(|tier| !TIERS.contains(&tier)) {
        return Err(Problem::bad("`agentTier` must be free or paid"));
    }
    let mut told = told("task", task.name(&["task_kind"])?, description);
    told.insert("task_description".into(), json!(description));
    told.insert("success".into(), json!(success));
    told.extend(tier.map(|tier| ("agent_tier".to_string(), json!(tier))));
    told.extend(task.text(&["error_message"])?.map(|text| ("error_message".to_string(), json!(text))));
    metadata(task, &mut told)?;
    Ok(told)
}

fn of_decision(decision: Request) -> Result<Told, Problem> {
    let chosen = decision.needed(&["chosen_option", "chosen"])?;
    let mut told = told("decision", decision.name(&["decision_type"])?, chosen);
    told.insert("chosen".into(), json!(chosen));
    told.extend(decision.text(&["reasoning"])?.map(|text| ("reasoning".to_string(), json!(text))));
    for name in ["alternatives", "confidence"] {
        told.extend(decision.value(&[name]).map(|value| (name.to_string(), value.clone())));
    }
    metadata(decision, &mut told)?;
    Ok(told)
}

fn of_lesson(lesson: Request) -> Result<Told, Problem> {
    let mut told = told("lesson", lesson.name(&["lesson_type"])?, lesson.needed(&["title"])?);
    told.insert("description".into(), json!(lesson.needed(&["description"])?));
    told.extend(lesson.value(&["tags"]).map(|tags| ("tags".to_string(), tags.clone())));
    metadata(lesson, &mut told)?;
    Ok(told)
}

fn told(kind: &str, of: Option<&str>, title: &str) -> Told {
    let mut told: Told = Map::new();
    told.insert("kind".into(), json!(kind));
    told.insert("title".into(), json!(title));
    told.extend(of.map(|of| ("type".to_string(), json!(of))));
    told
}

/// The specification's `metadata`, and in it the fields that it doesn't know.
fn metadata(of: Request, told: &mut Told) -> Result<(), Problem> {
    let mut metadata = match of.value(&["metadata"]) {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(_) => return Err(Problem::bad("`metadata` must be an object")),
    };
    for (name, value) in of.others(&[&KNOWN]) {
        metadata.entry(name.clone()).or_insert_with(|| value.clone());
    }
    if !metadata.is_empty() {
        told.insert("metadata".into(), Value::Object(metadata));
    }
    Ok(())
}

fn parts(request: Request, name: &str, read: impl Fn(Request) -> Result<Told, Problem>) -> Result<Vec<Told>, Problem> {
    let Some(value) = request.value(&[name]) else { return Ok(Vec::new()) };
    let wrong = || Problem::bad(format!("`{name}` must be a list of at most {PARTS}"));
    let items = value.as_array().filter(|items| items.len() <= PARTS).ok_or_else(wrong)?;
    let one = |(at, item)| {
        let named = |problem: Problem| Problem { message: format!("{name}[{at}]: {}", problem.message), ..problem };
        Request::of(item).and_then(&read).map_err(named)
    };
    items.iter().enumerate().map(one).collect()
}
