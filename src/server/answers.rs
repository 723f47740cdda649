//! Handles one request: checks it, reads its body, waits for its turn, runs the work on its own thread, and answers.

use super::access::{Refusal, Requester};
use super::changes;
use super::events::Events;
use super::routes::HttpRoute;
use super::state::ServerState;
use crate::config::environment;
use crate::lookup;
use crate::model::StoredItem;
use crate::rad::{self, ProtocolError};
use crate::store::{PERSON_WAIT, Store};
use crate::view::snapshot::Detail;
use crate::view::{Snapshot, page};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum bytes of a request's body, the same as `nmem rad` reads from stdin.
const BODY: usize = 16 << 20;
/// Time limit for reading a body, and for a request to wait for its turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum pause after a write.
const PAUSE: Duration = Duration::from_millis(100);

/// The body of an answer: a whole one, or a stream.
type AnswerBody = Either<Full<Bytes>, Events>;
type HttpAnswer = Response<AnswerBody>;

const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Answers one request.
pub async fn answer(state: &Arc<ServerState>, request: Request<Incoming>) -> HttpAnswer {
    let mut answer = answered(state, request).await.unwrap_or_else(|problem| failed(&problem));
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::from_str(&page::LIVE_POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// Status and error of a failed request.
struct Problem(StatusCode, ProtocolError);

impl From<ProtocolError> for Problem {
    fn from(error: ProtocolError) -> Problem {
        let status = match error.code {
            "bad_request" => StatusCode::BAD_REQUEST,
            "not_found" => StatusCode::NOT_FOUND,
            "off" => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem(status, error)
    }
}

fn problem(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
    Problem(status, ProtocolError { code, message: message.into() })
}

async fn answered(state: &Arc<ServerState>, request: Request<Incoming>) -> Result<HttpAnswer, Problem> {
    let route = HttpRoute::of(request.method(), request.uri());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    match state.access.refusal(request.headers(), authority, matches!(route, HttpRoute::Page(_))) {
        Some(Refusal::Host) => return Err(problem(StatusCode::MISDIRECTED_REQUEST, "host", "this host name is not served")),
        Some(Refusal::Origin) => return Err(problem(StatusCode::FORBIDDEN, "origin", "requests of other origins are refused")),
        None => {}
    }
    let caller = state.access.caller(request.headers());
    if let HttpRoute::Page(token) = &route {
        return Ok(the_page(state, caller, token.as_deref()));
    }
    if caller == Requester::Unknown {
        let what = "send the token that `nmem serve --print-token` prints as `Authorization: Bearer TOKEN`";
        return Err(problem(StatusCode::UNAUTHORIZED, "unauthorized", what));
    }
    let only_page = || match caller {
        Requester::Page => Ok(()),
        _ => Err(problem(StatusCode::FORBIDDEN, "forbidden", "memories are changed on the page, by a person")),
    };
    let own = Arc::clone(state);
    match route {
        HttpRoute::Events => {
            let events = state.listeners.add().ok_or_else(|| {
                problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "too many pages listen already; close some")
            })?;
            let mut answer = Response::new(Either::Right(events));
            answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            Ok(answer)
        }
        HttpRoute::View(sessions) => {
            let packs = accepts_gzip(&request);
            read(&state.viewer, move || view(&own, sessions.as_deref(), packs)).await
        }
        HttpRoute::Item(id) => read(&state.readers, move || Ok(json_answer(&item(&own, &id)?))).await,
        HttpRoute::Change(id, action) => {
            only_page()?;
            let fields = body(state, request).await?;
            write(state, move || Ok(json_answer(&changes::change(&own.served, &id, &action, fields)?))).await
        }
        HttpRoute::Forget => {
            only_page()?;
            let fields = body(state, request).await?;
            write(state, move || Ok(json_answer(&changes::forget(&own.served, &fields)?))).await
        }
        HttpRoute::Rad(verb, own_fields) => {
            let mut fields = if request.method() == Method::POST { body(state, request).await? } else { Map::new() };
            fields.extend(own_fields);
            let run = move || Ok(json_answer(&rad::answer_in(&own.served.folder, own.since, verb.name, &Value::Object(fields))?));
            if verb.writes { write(state, run).await } else { read(&state.readers, run).await }
        }
        HttpRoute::OtherMethod(allowed) => {
            let mut answer = failed(&problem(StatusCode::METHOD_NOT_ALLOWED, "bad_request", format!("use {allowed}")));
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            Ok(answer)
        }
        HttpRoute::Page(_) | HttpRoute::Unknown => {
            Err(problem(StatusCode::NOT_FOUND, "not_found", "no such path; docs/serve.md lists them"))
        }
    }
}

/// Runs work that writes when its turn comes. The next turn begins after a pause as long as the work took: a hook that
/// waits for the database asks again and again, and would otherwise find it locked each time.
async fn write(
    state: &ServerState,
    run: impl FnOnce() -> Result<HttpAnswer, Problem> + Send + 'static,
) -> Result<HttpAnswer, Problem> {
    let turn = Arc::clone(&state.writer);
    let place = timeout(PATIENCE, turn.acquire_owned()).await.map_err(|_| busy())?.map_err(|_| busy())?;
    let begun = Instant::now();
    let done = tokio::task::spawn_blocking(run).await;
    let pause = begun.elapsed().min(PAUSE);
    tokio::spawn(async move {
        tokio::time::sleep(pause).await;
        drop(place);
    });
    done.map_err(panicked)?
}

fn busy() -> Problem {
    problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "too many requests at once; try again")
}

fn panicked(_: tokio::task::JoinError) -> Problem {
    problem(StatusCode::INTERNAL_SERVER_ERROR, "unavailable", "the request failed; `nmem doctor` may say why")
}

/// Runs work that reads when its turn comes.
async fn read(
    turn: &Arc<Semaphore>,
    run: impl FnOnce() -> Result<HttpAnswer, Problem> + Send + 'static,
) -> Result<HttpAnswer, Problem> {
    let place = timeout(PATIENCE, Arc::clone(turn).acquire_owned()).await.map_err(|_| busy())?.map_err(|_| busy())?;
    let run = move || {
        let _place = place;
        run()
    };
    tokio::task::spawn_blocking(run).await.map_err(panicked)?
}

/// The JSON object in a request's body; an empty body is an empty object.
async fn body(state: &ServerState, request: Request<Incoming>) -> Result<Map<String, Value>, Problem> {
    let too_large = || problem(StatusCode::PAYLOAD_TOO_LARGE, "bad_request", "a body has at most 16 MB");
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY as u64) {
        return Err(too_large());
    }
    // A form on another page cannot send this type without a preflight request, which is refused.
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !is_json && length != Some(0) {
        return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_request", "send JSON, as Content-Type: application/json"));
    }
    let late = || problem(StatusCode::REQUEST_TIMEOUT, "bad_request", "the body took too long");
    let _place = timeout(PATIENCE, state.bodies.acquire()).await.map_err(|_| late())?;
    let read = timeout(PATIENCE, Limited::new(request.into_body(), BODY).collect()).await.map_err(|_| late())?;
    let bytes = read.map_err(|_| too_large())?.to_bytes();
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(ProtocolError::bad("the body is not a JSON object").into()),
    }
}

/// Returns the page for a browser with the cookie or a launch token; for others, a note on how to get one.
fn the_page(state: &ServerState, caller: Requester, token: Option<&str>) -> HttpAnswer {
    let cookie = token.and_then(|token| state.access.launch(token));
    let known = cookie.is_some() || caller == Requester::Page;
    let html = if known { page::live() } else { CLOSED.to_string() };
    let mut answer = Response::new(full(html));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    if !known {
        *answer.status_mut() = StatusCode::UNAUTHORIZED;
    }
    answer
}

const CLOSED: &str = "<!doctype html><meta charset=\"utf-8\"><title>nmem</title><p>This address opens nothing by itself. Open the \
    one that <code>nmem serve</code> printed. It works once: press Enter in that terminal for a new one.</p>";

fn view(state: &ServerState, sessions: Option<&[i64]>, packs: bool) -> Result<HttpAnswer, Problem> {
    let store = Store::open_to_read(&state.served.config.files.value, PERSON_WAIT).map_err(ProtocolError::from)?;
    let (scope, now) = (state.served.scope(store.as_ref()), environment::now());
    let read = match (&store, sessions) {
        (Some(store), Some(sessions)) => Snapshot::of_sessions(store, &scope, sessions),
        (Some(store), None) => Snapshot::whole(store, &scope, now),
        (None, _) => Ok(Snapshot::empty(&scope, now)),
    };
    let snapshot = read.map_err(ProtocolError::from)?.json(Detail::BRIEF);
    if !packs {
        return Ok(json_answer(&snapshot));
    }
    let mut answer = Response::new(full(page::compressed(&snapshot).map_err(ProtocolError::from)?));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(answer)
}

fn item(state: &ServerState, id: &str) -> Result<Value, ProtocolError> {
    let missing = || ProtocolError::not_found(format!("{id:?} is no prompt or tool use"));
    let store = reader(state)?;
    match lookup::find(&store, id)?.ok_or_else(missing)? {
        StoredItem::Prompt(prompt) => Ok(lookup::prompt(&store, prompt)?.json()),
        StoredItem::ToolUse(tool) => Ok(lookup::tool_use(&store, *tool)?.json()),
        _ => Err(missing()),
    }
}

fn reader(state: &ServerState) -> Result<Store, ProtocolError> {
    let store = Store::open_to_read(&state.served.config.files.value, PERSON_WAIT)?;
    store.ok_or_else(|| ProtocolError::not_found("nothing is recorded"))
}

fn accepts_gzip(request: &Request<Incoming>) -> bool {
    request
        .headers()
        .get(header::ACCEPT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.contains("gzip"))
}

fn full(text: impl Into<Bytes>) -> AnswerBody {
    Either::Left(Full::new(text.into()))
}

fn json_answer(value: &Value) -> HttpAnswer {
    let mut answer = Response::new(full(value.to_string()));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn failed(problem: &Problem) -> HttpAnswer {
    let mut answer = json_answer(&json!({"error": {"code": problem.1.code, "message": problem.1.message}}));
    *answer.status_mut() = problem.0;
    answer
}
