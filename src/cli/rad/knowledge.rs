//! Tasks with their decisions and lessons, as the RAD memory specification has them: told by a program, and asked for.

use super::Here;
use super::request::{Problem, Request};
use crate::domains;
use crate::knowledge::{self, Told};
use crate::model::{Filter, HitKind, MemoryKind, MemoryRow, Provenance};
use crate::render::memories;
use crate::store::search::Query;
use crate::store::{PERSON_WAIT, Store};
use serde_json::{Map, Value, json};

/// Decisions, and lessons, of one task.
const PARTS: usize = 100;
/// A score of search at which a similarity is a half.
const HALF: f64 = 4.0;
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
    let nothing = json!({"similarTasks": [], "relevantDecisions": [], "applicableLessons": []});
    let Some(store) = here.store()? else { return Ok(nothing) };
    let project = here.project(&store, request)?.map(|(project, _)| project);
    let query = Query::parse(description);
    let find = |memories: MemoryKind, project: Option<i64>, kind: Option<&str>| -> Result<Vec<(MemoryRow, f64)>, Problem> {
        let filter = Filter { project, kind_type: kind.map(String::from), memories: vec![memories], ..Filter::default() };
        let found = store.search(&query, &[HitKind::Memory], &filter, limit)?;
        let row = |(id, score)| Ok(store.memory_by_row(id)?.map(|memory| (memory, score)));
        found.into_iter().filter_map(|hit| row((hit.id, hit.score)).transpose()).collect()
    };
    let own = |kinds, of| project.map_or(Ok(Vec::new()), |project| find(kinds, Some(project), of));
    let tasks: Vec<Value> = own(MemoryKind::Task, kind)?.iter().map(|(memory, score)| task_json(memory, *score)).collect();
    let decisions: Vec<Value> =
        own(MemoryKind::Decision, None)?.iter().map(|(memory, score)| decision_json(memory, *score)).collect();
    let mut lessons = own(MemoryKind::Lesson, None)?;
    for other in find(MemoryKind::Lesson, None, None)? {
        if lessons.len() < limit && other.0.project_id != project {
            lessons.push(other);
        }
    }
    let lessons: Vec<Value> =
        lessons.iter().map(|(memory, score)| lesson_json(memory, *score, memory.project_id != project)).collect();
    Ok(json!({"similarTasks": tasks, "relevantDecisions": decisions, "applicableLessons": lessons}))
}

/// From 0 to 1, and the higher the higher the score of the search: a half where a rare word is shared in a title.
fn similarity(score: f64) -> f64 {
    let score = score.max(0.0);
    (score / (score + HALF) * 1000.0).round() / 1000.0
}

fn task_json(memory: &MemoryRow, score: f64) -> Value {
    json!({
        "id": memory.uuid, "memory": memories::id(memory), "description": memory.text("task_description").unwrap_or(&memory.title),
        "taskKind": memory.kind_type, "success": memory.content.get("success"), "similarity": similarity(score), "repo": memory.project,
        "createdAt": memory.created_at,
    })
}

fn decision_json(memory: &MemoryRow, score: f64) -> Value {
    json!({
        "id": memory.uuid, "memory": memories::id(memory), "decisionType": memory.kind_type,
        "chosenOption": memory.text("chosen").unwrap_or(&memory.title), "alternatives": memory.list("alternatives"),
        "reasoning": memory.text("reasoning").unwrap_or_default(), "confidence": memory.content.get("confidence"),
        "similarity": similarity(score), "repo": memory.project, "provenance": memory.provenance,
    })
}

fn lesson_json(memory: &MemoryRow, score: f64, of_another: bool) -> Value {
    json!({
        "id": memory.uuid, "memory": memories::id(memory), "title": memory.title,
        "description": memory.text("description").unwrap_or(&memory.title), "lessonType": memory.kind_type, "tags": memory.list("tags"),
        "similarity": similarity(score), "repo": memory.project, "crossRepo": of_another, "provenance": memory.provenance,
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
