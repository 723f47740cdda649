//! Routes, and the answer to a request: checks, body, queue, worker thread.

use super::access::{Refusal, Requester};
use super::state::{Events, ServerState};
use crate::config::environment;
use crate::evidence::evidence_of;
use crate::lookup;
use crate::model::StoredItem;
use crate::rad::{self, ProtocolError, VERBS, Verb};
use crate::render::evidence_text;
use crate::store::{PERSON_WAIT, Store};
use crate::view::snapshot::Detail;
use crate::view::{self, Snapshot};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Maximum sessions in one request for a part of the page.
const SESSIONS: usize = 50;

/// The target of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpRoute {
    /// The page, with the launch token of its URL.
    Page(Option<String>),
    /// The stream of changes.
    Events,
    /// The data of the page: everything, or that of some sessions.
    View(Option<Vec<i64>>),
    /// One prompt or tool use.
    Item(String),
    /// The work behind a line (`FILE:LINE`), a file or a commit.
    Why(String),
    /// A change of a memory: its id, and `pin`, `edit` or `supersede`.
    Change(String, String),
    Forget,
    /// A request of the RAD protocol, with the fields that its path and query give.
    Rad(Verb, Map<String, Value>),
    /// The path is known, but not with this method.
    OtherMethod(&'static str),
    Unknown,
}

impl HttpRoute {
    pub fn of(method: &Method, uri: &Uri) -> HttpRoute {
        let reads = method == Method::GET || method == Method::HEAD;
        let query = || form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let first = |wanted: &str| query().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
        let decoded = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|part| part.into_owned());
        let Some(parts) = uri.path().split('/').skip(1).map(decoded).collect::<Option<Vec<String>>>() else {
            return HttpRoute::Unknown;
        };
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (page, found) = match parts.as_slice() {
            [""] => ("GET", HttpRoute::Page(first("token"))),
            ["api", "events"] => ("GET", HttpRoute::Events),
            ["api", "view"] => {
                let rows = |list: String| {
                    list.split(',').filter_map(|id| id.trim_start_matches('s').parse().ok()).take(SESSIONS).collect()
                };
                ("GET", HttpRoute::View(first("sessions").map(rows)))
            }
            ["api", "item", id] => ("GET", HttpRoute::Item(id.to_string())),
            ["api", "why"] => ("GET", HttpRoute::Why(first("subject").unwrap_or_default())),
            ["api", "memory", id, action @ ("pin" | "edit" | "supersede")] => {
                ("POST", HttpRoute::Change(id.to_string(), action.to_string()))
            }
            ["api", "forget"] => ("POST", HttpRoute::Forget),
            ["api", rest @ ..] | rest => return rad(rest, method, query()),
        };
        match (page, reads, method == Method::POST) {
            ("GET", true, _) | ("POST", _, true) => found,
            (allowed, ..) => HttpRoute::OtherMethod(allowed),
        }
    }
}

/// `VERB`, `context/PROJECT`, `observation/ID`, `session/ID`.
fn rad<'q>(
    parts: &[&str],
    method: &Method,
    query: impl Iterator<Item = (std::borrow::Cow<'q, str>, std::borrow::Cow<'q, str>)>,
) -> HttpRoute {
    let verb = |name: &str| VERBS.into_iter().find(|verb| verb.name == name);
    let (verb, own) = match parts {
        ["context", project] => (verb("context"), Some(("project", *project))),
        [name @ ("observation" | "session"), id] => (verb(name), Some(("id", *id))),
        _ => (verb(&parts.join("/")), None),
    };
    let Some(verb) = verb else { return HttpRoute::Unknown };
    let is_post = method == Method::POST;
    if !is_post && (verb.writes || !matches!(*method, Method::GET | Method::HEAD)) {
        return HttpRoute::OtherMethod(if verb.writes { "POST" } else { "GET, POST" });
    }
    let mut fields = Map::new();
    for (name, value) in query.filter(|_| !is_post) {
        // `dateRange[start]=…`, as some programs write nested fields.
        match name.split_once('[').and_then(|(outer, inner)| Some((outer, inner.strip_suffix(']')?))) {
            Some((outer, inner)) => {
                let nested = fields.entry(outer).or_insert_with(|| Value::Object(Map::new()));
                if let Some(nested) = nested.as_object_mut() {
                    nested.insert(inner.to_string(), Value::from(value.into_owned()));
                }
            }
            None => {
                let object = serde_json::from_str(&value).ok().filter(Value::is_object);
                fields.insert(name.into_owned(), object.unwrap_or_else(|| Value::from(value.into_owned())));
            }
        }
    }
    fields.extend(own.map(|(name, value)| (name.to_string(), Value::from(value))));
    HttpRoute::Rad(verb, fields)
}

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
    if let Ok(policy) = HeaderValue::from_str(&view::LIVE_POLICY) {
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
        HttpRoute::Why(subject) => read(&state.readers, move || Ok(json_answer(&why(&own, &subject)?))).await,
        HttpRoute::Change(id, action) => {
            only_page()?;
            let fields = body(state, request).await?;
            write(state, move || Ok(json_answer(&super::state::change(&own.served, &id, &action, fields)?))).await
        }
        HttpRoute::Forget => {
            only_page()?;
            let fields = body(state, request).await?;
            write(state, move || Ok(json_answer(&super::state::forget(&own.served, &fields)?))).await
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
    let html = if known { view::live() } else { CLOSED.to_string() };
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
        (Some(store), None) if state.served.all => Snapshot::whole(store, &scope, now),
        (Some(store), None) => {
            let (config, folder) = (&state.served.config, &state.served.folder);
            Snapshot::whole(store, &scope, now).map(|snapshot| snapshot.with_current_state(store, config, folder, now))
        }
        (None, _) => Ok(Snapshot::empty(&scope, now)),
    };
    let snapshot = read.map_err(ProtocolError::from)?.json(Detail::BRIEF);
    if !packs {
        return Ok(json_answer(&snapshot));
    }
    let mut answer = Response::new(full(view::compressed(&snapshot).map_err(ProtocolError::from)?));
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

fn why(state: &ServerState, subject: &str) -> Result<Value, ProtocolError> {
    let (store, served) = (reader(state)?, &state.served);
    let found = view::with_records(&store, &served.config, &served.folder, |recorded| {
        // Only files of the worktree.
        match Path::new(subject).components().all(|part| matches!(part, Component::Normal(_))) {
            true => evidence_of(recorded, &recorded.git.root, subject),
            false => Ok(None),
        }
    })?;
    let missing = || ProtocolError::not_found(format!("{subject:?} is neither a file nor a commit here"));
    Ok(evidence_text::json(&found.flatten().ok_or_else(missing)?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        /// Any path and query: no panic, and GET reaches nothing that writes.
        #[test]
        fn any_path_leads_somewhere(path in "(/|api|memory|context|observation|%[0-9a-f]{2}|[ -~]){0,12}", query in "([a-z]{0,3}|\\[|\\]|=|&|%[0-9a-f]{2}|\\{|\\}){0,12}") {
            if let Ok(uri) = format!("/{path}?{query}").parse::<Uri>() {
                match HttpRoute::of(&Method::GET, &uri) {
                    HttpRoute::Rad(verb, _) => prop_assert!(!verb.writes),
                    HttpRoute::Change(..) | HttpRoute::Forget => prop_assert!(false),
                    _ => {}
                }
                let _ = HttpRoute::of(&Method::POST, &uri);
            }
        }
    }

    fn route(method: Method, path: &str) -> HttpRoute {
        HttpRoute::of(&method, &path.parse().unwrap())
    }

    fn fields(route: HttpRoute) -> (&'static str, Value) {
        let HttpRoute::Rad(verb, fields) = route else { panic!("{route:?}") };
        (verb.name, Value::Object(fields))
    }

    #[test]
    fn both_generations_of_paths_lead_to_the_same_verb() {
        for verb in VERBS {
            let (new, old) = (format!("/api/{}", verb.name), format!("/{}", verb.name));
            assert_eq!(route(Method::POST, &new), route(Method::POST, &old));
            assert_eq!(fields(route(Method::POST, &new)).0, verb.name);
        }
        assert_eq!(
            fields(route(Method::GET, "/api/context/my%20app?limit=5")),
            ("context", json!({"project": "my app", "limit": "5"}))
        );
        assert_eq!(fields(route(Method::GET, "/api/observation/m12")), ("observation", json!({"id": "m12"})));
        assert_eq!(
            fields(route(Method::GET, "/api/search?query=a+b&dateRange[start]=7d")),
            ("search", json!({"query": "a b", "dateRange": {"start": "7d"}}))
        );
    }

    #[test]
    fn nothing_is_written_by_get_and_no_path_leads_to_a_file() {
        assert_eq!(route(Method::GET, "/observations"), HttpRoute::OtherMethod("POST"));
        assert_eq!(route(Method::GET, "/api/forget"), HttpRoute::OtherMethod("POST"));
        assert_eq!(route(Method::OPTIONS, "/api/search"), HttpRoute::OtherMethod("GET, POST"));
        for path in ["/../etc/passwd", "/api/", "/index.html", "/%2e%2e/%2e%2e", "/api/memory/m1/rename", "//", "/%ff"] {
            assert_eq!(route(Method::GET, path), HttpRoute::Unknown, "{path}");
        }
        assert_eq!(route(Method::GET, "/?token=x"), HttpRoute::Page(Some("x".into())));
        assert_eq!(route(Method::GET, "/api/view?sessions=1,s2,x"), HttpRoute::View(Some(vec![1, 2])));
    }
}
