//! Tasks with their decisions and lessons (RAD memory specification): recorded by programs, and queried.

use super::request::{ProtocolError, Request, RequestContext};
use crate::distil::embed;
use crate::domains;
use crate::knowledge::{self, MemoryFields};
use crate::model::{MemoryRow, ProjectRow, Provenance};
use crate::recall::related_knowledge::{self, RelatedQuery, RelatedTask};
use crate::render::memory_text;
use crate::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};

/// Maximum decisions and lessons of a task.
const PARTS: usize = 100;
/// Parameters of a request, and fields of a task, decision or lesson.
const PARAMETERS: [&str; 26] = [
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

/// `knowledge/record` (`recordEvent`): a task that succeeded or failed, with its decisions and lessons.
pub fn record(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let task = request.value(&["task"]).map(Request::of).transpose()?.unwrap_or(request);
    if task.value(&["task_id"]).or(request.value(&["task_id"])).is_some() {
        return Err(ProtocolError::bad("`taskId` cannot be set: record a task together with its decisions and lessons"));
    }
    let drafts = [vec![of_task(task)?], parts(request, "decisions", of_decision)?, parts(request, "lessons", of_lesson)?];
    let named = context.identity(task)?;
    context.may_record(None, named.as_ref())?;
    let domain = domains::built_in(domains::DEFAULT).unwrap_or_default();
    let drafted = |fields: &MemoryFields| -> Result<_, ProtocolError> {
        let draft = knowledge::draft(fields, &domain, context.now).map_err(|error| ProtocolError::bad(format!("{error:#}")))?;
        Ok(crate::model::Draft { provenance: Provenance::Agent, ..draft })
    };
    let drafts = drafts.iter().flatten().map(drafted).collect::<Result<Vec<_>, _>>()?;
    let identity = named.or_else(|| context.own_identity());
    let identity = identity.ok_or_else(|| ProtocolError::bad("the home folder is not a project: name one in `repoId`"))?;
    let redactor = &context.settings.redactor;
    let mut store = Store::open(&context.settings.config.files.value, PERSON_WAIT)?;
    let project = store.ensure_project(&redactor.clean(identity), context.now)?;
    let (id, uuid) = knowledge::record(&mut store, redactor, drafts, project)?;
    Ok(json!({"taskId": uuid, "id": format!("m{id}")}))
}

/// `knowledge/related` (`getRelatedKnowledge`): knowledge related to a description, most similar first; from this
/// project, and lessons of others.
pub fn related(context: &RequestContext, request: Request) -> Result<Value, ProtocolError> {
    let description = request.needed(&["task_description", "description", "query"])?;
    let limit = request.count(&["limit"], 5, 100)?;
    let kind = request.name(&["task_kind", "kind"])?;
    let nothing = json!({"similarTasks": [], "relevantDecisions": [], "applicableLessons": [], "repo": null});
    let Some(store) = context.store()? else { return Ok(nothing) };
    let place = context.project(&store, request)?;
    let (project, repo) = place.map_or((None, None), |(project, name)| (Some(project), Some(name)));
    let row = project.map(|project| store.project_by_row(project)).transpose()?.flatten();
    let embedding_vector = embed::of_query(&context.settings.config, &context.settings.redactor, description);
    let embedding_vector = embedding_vector.as_ref().map(|(model, vector)| (model.as_str(), vector));
    let known =
        related_knowledge::related(&store, &RelatedQuery { project, description, kind, embedding: embedding_vector, limit })?;
    let decision = |(memory, near): &(MemoryRow, f64)| decision_json(memory, *near);
    let lesson = |(memory, near): &(MemoryRow, f64)| lesson_json(memory, *near, memory.project_id != project);
    Ok(json!({
        "similarTasks": known.tasks.iter().map(|task| task_json(task, repo.as_deref())).collect::<Vec<_>>(),
        "relevantDecisions": known.decisions.iter().map(decision).collect::<Vec<_>>(),
        "applicableLessons": known.lessons.iter().map(lesson).collect::<Vec<_>>(),
        "repo": row.as_ref().map(repo_json),
    }))
}

/// `repo_metadata` of the specification: facts about the repository.
fn repo_json(project: &ProjectRow) -> Value {
    let about = project.about.as_ref();
    json!({
        "repoId": project.name, "repoName": project.name, "repoUrl": project.repo_url, "projectType": about.map(|(about, _)| &about.project_type),
        "mainLanguages": about.map_or(&Vec::new(), |(about, _)| &about.languages),
        "frameworks": about.map_or(&Vec::new(), |(about, _)| &about.frameworks), "lastIndexed": about.map(|(_, at)| at),
    })
}

fn task_json(task: &RelatedTask, repo: Option<&str>) -> Value {
    let memory = task.memory.as_ref();
    let unit = task.unit.map(|unit| format!("u{unit}"));
    json!({
        "id": memory.map(|memory| memory.uuid.clone()).or(unit.clone()), "memory": memory.map(memory_text::id), "unit": unit,
        "description": task.description, "taskKind": memory.and_then(|memory| memory.kind_type.as_deref()), "success": task.success,
        "similarity": task.similarity, "repo": repo, "createdAt": task.at,
    })
}

fn decision_json(memory: &MemoryRow, similarity: f64) -> Value {
    json!({
        "id": memory.uuid, "memory": memory_text::id(memory), "decisionType": memory.kind_type,
        "chosenOption": memory.text("chosen").unwrap_or(&memory.title),
        "alternatives": if memory.list("alternatives").is_empty() { memory.list("options") } else { memory.list("alternatives") },
        "reasoning": memory.text("reasoning").or(memory.text("rationale")).or(memory.text("reason")).unwrap_or_default(),
        "confidence": memory.content.get("confidence"),
        "similarity": similarity, "repo": memory.project, "provenance": memory.provenance,
    })
}

fn lesson_json(memory: &MemoryRow, similarity: f64, of_another: bool) -> Value {
    json!({
        "id": memory.uuid, "memory": memory_text::id(memory), "title": memory.title,
        "description": memory.text("description").unwrap_or(&memory.title), "lessonType": memory.kind_type, "tags": memory.list("tags"),
        "similarity": similarity, "repo": memory.project, "crossRepo": of_another, "provenance": memory.provenance,
    })
}

fn of_task(task: Request) -> Result<MemoryFields, ProtocolError> {
    let description = task.needed(&["task_description", "description"])?;
    let success = task.value(&["success"]).and_then(Value::as_bool);
    let success = success.ok_or_else(|| ProtocolError::bad("`success` must be true or false"))?;
    let tier = task.name(&["agent_tier"])?.filter(|tier| !tier.is_empty());
    if tier.is_some_and(|tier| !TIERS.contains(&tier)) {
        return Err(ProtocolError::bad("`agentTier` must be free or paid"));
    }
    let mut fields = fields("task", task.name(&["task_kind"])?, description);
    fields.insert("task_description".into(), json!(description));
    fields.insert("success".into(), json!(success));
    fields.extend(tier.map(|tier| ("agent_tier".to_string(), json!(tier))));
    fields.extend(task.text(&["error_message"])?.map(|text| ("error_message".to_string(), json!(text))));
    metadata(task, &mut fields)?;
    Ok(fields)
}

fn of_decision(decision: Request) -> Result<MemoryFields, ProtocolError> {
    let chosen = decision.needed(&["chosen_option", "chosen"])?;
    let mut fields = fields("decision", decision.name(&["decision_type"])?, chosen);
    fields.insert("chosen".into(), json!(chosen));
    fields.extend(decision.text(&["reasoning"])?.map(|text| ("reasoning".to_string(), json!(text))));
    for name in ["alternatives", "confidence"] {
        fields.extend(decision.value(&[name]).map(|value| (name.to_string(), value.clone())));
    }
    metadata(decision, &mut fields)?;
    Ok(fields)
}

fn of_lesson(lesson: Request) -> Result<MemoryFields, ProtocolError> {
    let mut fields = fields("lesson", lesson.name(&["lesson_type"])?, lesson.needed(&["title"])?);
    fields.insert("description".into(), json!(lesson.needed(&["description"])?));
    fields.extend(lesson.value(&["tags"]).map(|tags| ("tags".to_string(), tags.clone())));
    metadata(lesson, &mut fields)?;
    Ok(fields)
}

fn fields(kind: &str, of: Option<&str>, title: &str) -> MemoryFields {
    let mut fields: MemoryFields = Map::new();
    fields.insert("kind".into(), json!(kind));
    fields.insert("title".into(), json!(title));
    fields.extend(of.map(|of| ("type".to_string(), json!(of))));
    fields
}

/// The specification's `metadata`, with fields that the specification does not know.
fn metadata(of: Request, fields: &mut MemoryFields) -> Result<(), ProtocolError> {
    let mut metadata = match of.value(&["metadata"]) {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(_) => return Err(ProtocolError::bad("`metadata` must be an object")),
    };
    for (name, value) in of.others(&[&PARAMETERS]) {
        metadata.entry(name.clone()).or_insert_with(|| value.clone());
    }
    if !metadata.is_empty() {
        fields.insert("metadata".into(), Value::Object(metadata));
    }
    Ok(())
}

fn parts(
    request: Request,
    name: &str,
    read: impl Fn(Request) -> Result<MemoryFields, ProtocolError>,
) -> Result<Vec<MemoryFields>, ProtocolError> {
    let Some(value) = request.value(&[name]) else { return Ok(Vec::new()) };
    let wrong = || ProtocolError::bad(format!("`{name}` must be a list of at most {PARTS}"));
    let items = value.as_array().filter(|items| items.len() <= PARTS).ok_or_else(wrong)?;
    let one = |(at, item)| {
        let named = |problem: ProtocolError| ProtocolError { message: format!("{name}[{at}]: {}", problem.message), ..problem };
        Request::of(item).and_then(&read).map_err(named)
    };
    items.iter().enumerate().map(one).collect()
}
