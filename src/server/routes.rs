//! Maps paths to requests. Every verb of the RAD protocol is served at `/api/VERB` and, as older programs expect it, at
//! `/VERB`: by POST with a JSON object, and by GET with a query if it only reads.

use crate::rad::{VERBS, Verb};
use hyper::{Method, Uri};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

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
