//! Use case: selects memories for a moment. Files: `start` (session start), `first_prompt`, `during_session` (files,
//! subagents), `passage_search` (passages for a question, and their grade), `ranked` (units for a request or task), `errors` (past
//! errors and forms of commands), `related_knowledge`, `stale` (files changed since, wishes that practice overtook), `used` (whether an
//! agent used what it received).

mod during_session;
mod errors;
mod first_prompt;
pub mod passage_search;
mod ranked;
pub mod related_knowledge;
mod stale;
mod start;
mod used;

pub use during_session::{at_file, at_subagent};
pub use errors::{command_forms, past_errors};
pub use first_prompt::{Prompt, at_prompt};
pub use passage_search::{Searched, search};
pub use ranked::{CurrentTask, RecallQuery, for_new_session, for_session_above, for_task, ranked, ranked_by};
pub use stale::stale;
pub use start::{SessionContext, at_start, below, cleared, overviews, session_state};
pub use used::judge_use;

#[cfg(test)]
mod tests {
    use crate::distil::distiller::Distiller;
    use crate::model::testing::{event, tool};
    use crate::model::{
        Event, EventKind, GitState, InjectionPoint, Kind, Platform, ProjectId, SessionStart, SessionStatus, Vector,
    };
    use crate::recall::{Prompt, SessionContext, at_file, at_prompt, at_start};
    use crate::redact::Redactor;
    use crate::store::Store;
    use crate::store::candidates::SessionScope;
    use crate::store::injections::Injection;
    use crate::store::rule_memories::Gone;
    use crate::store::testing::Scratch;

    const MINUTE: i64 = 60_000;

    fn store(store: &mut Store, events: Vec<Event>) {
        let redactor = Redactor::default();
        let identify = |place: crate::ingest::persist::WorkPlace| {
            let crate::ingest::persist::WorkPlace::Event(event) = place else { return None };
            let cwd = event.cwd.clone()?;
            Some(redactor.clean(ProjectId {
                keys: vec![format!("dir:{cwd}")],
                name: cwd.clone(),
                root: cwd,
                ..ProjectId::default()
            }))
        };
        let one = |tx: &crate::store::Tx, event: Event| {
            crate::ingest::persist::store_event(tx, &redactor.clean(event.clone()), None, &identify)
        };
        store.write(|tx| events.into_iter().try_for_each(|event| one(tx, event))).unwrap();
    }

    /// A finished session with one request and one edited file, on a branch of the same name.
    fn worked(to: &mut Store, session: &str, day: i64, query: &str, file: &str, answer: &str) {
        let at = |minute: i64| (day * 24 * 60 + minute) * MINUTE;
        let here = |minute, what| Event { cwd: Some("/app".into()), ..event(session, at(minute), what) };
        let used = |minute, kind, what, succeeded| here(minute, EventKind::ToolUsed(Box::new(tool(kind, what, succeeded))));
        let branch = Some(file.trim_start_matches("src/").to_string());
        let git = GitState { branch, head: None };
        store(
            to,
            vec![
                here(0, EventKind::SessionStarted(SessionStart { git: Some(git), ..SessionStart::default() })),
                here(0, EventKind::UserPrompt { text: query.into() }),
                used(1, Kind::Command, "cargo test", false),
                used(2, Kind::Edit, file, true),
                used(3, Kind::Command, "cargo test", true),
                here(4, EventKind::TurnEnded { closing: Some(answer.into()), error: None }),
                here(5, EventKind::SessionEnded { reason: "other".into(), git: None }),
            ],
        );
        let redactor = Redactor::default();
        let distiller =
            Distiller { redactor: &redactor, home: None, ignored: &[], now: at(6), gone: Gone::Deleted, agent_notes: false };
        let due = to.due_in_session(Platform::ClaudeCode, session).unwrap();
        distiller.distil(to, &due).unwrap();
        to.index_waiting(usize::MAX, &mut |_| ()).unwrap();
    }

    /// Unrelated work, so that words occurring in every unit carry no weight.
    const OTHERS: [&str; 10] = [
        "exporter",
        "scheduler",
        "thumbnails",
        "newsletter",
        "warehouse",
        "calendar",
        "dashboard",
        "glossary",
        "importer",
        "parser",
    ];

    /// Sessions of one project: the first two matter, and a new one begins.
    fn sessions(name: &str) -> (Scratch, Store, SessionScope) {
        let scratch = Scratch::new(name);
        let mut to = scratch.open();
        for (n, what) in OTHERS.iter().enumerate() {
            let (query, file) = (format!("Rework the {what} so that it starts faster"), format!("src/{what}.rs"));
            worked(&mut to, &format!("session-about-{what}"), -(n as i64), &query, &file, "Reworked.");
        }
        let tokens = "Fixed. The root cause was that the expiry was rounded down to the minute, so tokens expired early.";
        worked(&mut to, "the-first-session", 1, "Fix the login: refresh tokens expire too early", "src/login.rs", tokens);
        let invoice = "Added. The tax number is now a column of its own, and the totals are computed in integers.";
        worked(&mut to, "the-second-session", 2, "Add the customer's tax number to each invoice", "src/invoice.rs", invoice);
        let begins = EventKind::UserPrompt { text: "hello".into() };
        store(&mut to, vec![Event { cwd: Some("/app".into()), ..event("the-third-session", 3 * 24 * 60 * MINUTE, begins) }]);
        let place = to.session_scope(Platform::ClaudeCode, "the-third-session").unwrap().unwrap();
        (scratch, to, place)
    }

    /// A request that repeats earlier work.
    const SAME: &str =
        "Tokens of the login expire early again: fix how src/login.rs has the refresh expiry rounded to the minute";

    /// A prompt on the branch of the first session.
    fn asks<'a>(text: &'a str) -> Prompt<'a> {
        Prompt { text, embedding: &|| None, branch: &|| Some("login.rs".into()), root: None }
    }

    #[test]
    fn a_start_receives_the_last_session_and_not_itself() {
        let (_scratch, store, place) = sessions("recall-start");
        let here = SessionContext { own: Some(place.session), ..SessionContext::default() };
        let recalled = at_start(&store, place.project, here, 3 * 24 * 60 * MINUTE).unwrap();
        let last = recalled.last.unwrap();
        assert_eq!(last.session.agent_session_id, "the-second-session");
        assert_eq!(last.state, SessionStatus::Ended);
        assert_eq!(last.turns[0].prompt, "Add the customer's tax number to each invoice");
        assert!(last.turns[0].answer.as_deref().unwrap().starts_with("Added."));
    }

    #[test]
    fn a_first_prompt_receives_the_work_that_it_is_about_and_otherwise_nothing() {
        let (_scratch, store, place) = sessions("recall-prompt");
        let found = at_prompt(&store, &place, &asks(SAME)).unwrap();
        assert_eq!(found.unit.as_ref().unwrap().unit.agent_session_id, "the-first-session");
        for text in ["thanks", "push", "yes please", "write a poem about the autumn sea"] {
            let found = at_prompt(&store, &place, &asks(text)).unwrap();
            assert!(found.unit.is_none(), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_first_prompt_in_other_words_receives_what_its_embedding_finds() {
        let (_scratch, mut store, place) = sessions("recall-meaning");
        let near = |text: &str| Vector::of(&if text.contains("token") { [1.0, 0.1] } else { [0.1, 1.0] }).unwrap();
        let all = store.unembedded((Some(place.project), None), "model", 100).unwrap();
        let all: Vec<_> =
            all.into_iter().map(|memory| (near(&memory.text), memory)).map(|(vector, memory)| (memory, vector)).collect();
        store.keep_vectors("model", &all).unwrap();
        let embedding = || Some(("model".to_string(), Vector::of(&[1.0, 0.0]).unwrap()));
        let text = "People get thrown out of their account although they came back a moment ago";
        let asked = Prompt { text, embedding: &embedding, branch: &|| None, root: None };
        let found = at_prompt(&store, &place, &asked).unwrap();
        assert_eq!(found.unit.as_ref().unwrap().unit.agent_session_id, "the-first-session");
        assert!(!found.unit.unwrap().passages.is_empty());
        assert!(at_prompt(&store, &place, &Prompt { embedding: &|| None, ..asked }).unwrap().unit.is_none());
    }

    #[test]
    fn a_unit_that_the_session_has_received_is_not_described_again() {
        for point in [InjectionPoint::Start, InjectionPoint::Prompt] {
            let (_scratch, mut store, place) = sessions(&format!("recall-again-{}", point.name()));
            let unit = at_prompt(&store, &place, &asks(SAME)).unwrap().unit.unwrap().unit.id;
            let items = [format!("u{unit}")];
            store.record_injection(Injection { session: place.session, point, at: 0, text: "text", items: &items }).unwrap();
            let found = at_prompt(&store, &place, &asks(SAME)).unwrap();
            assert!(found.unit.is_none_or(|known| known.unit.id != unit), "{point:?}");
        }
    }

    #[test]
    fn of_a_file_nobody_remembers_nothing_is_said() {
        let (_scratch, store, place) = sessions("recall-file");
        assert!(at_file(&store, &place, "src/unknown.rs", None).unwrap().0.is_empty());
        let (known, _) = at_file(&store, &place, "src/login.rs", None).unwrap();
        assert!(!known.is_empty());
        assert!(known.iter().all(|memory| memory.files.iter().any(|file| file.path == "src/login.rs")));
    }
}
