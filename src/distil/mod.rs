//! Use case: turns work units into memories. Rules always run when a turn, a session or a conversation ends; a model
//! runs if one is configured and a call is due.
//!
//! Read in this order: `rules`; `llm` (one call of a language model) and `llm_at_stop` (when a hook calls the model);
//! `embed_memories` and `embedding`;.

mod embed_memories;
pub mod embedding;
mod llm;
mod llm_at_stop;
mod rules;

pub use embed_memories::{BATCH, EmbeddingClient, shown};
pub use embedding::embed_at_stop;
pub use llm::{DistilOutcome, Observer};
pub use llm_at_stop::{llm_at_stop, llm_may_see, llm_note};
pub use rules::Distiller;

#[cfg(test)]
mod tests {
    use super::Distiller;
    use crate::model::testing::{event, tool};
    use crate::model::{EventKind, Kind, Platform};
    use crate::redact::Redactor;
    use crate::store::Store;
    use crate::store::memories::Gone;
    use crate::store::testing::{Scratch, store_event};

    const SESSION: &str = "a-session-to-distil";
    const MINUTE: i64 = 60_000;

    fn distil(store: &mut Store, now: i64) -> usize {
        let redactor = Redactor::default();
        let distiller = Distiller { redactor: &redactor, home: None, ignored: &[], now, gone: Gone::Deleted };
        let due = store.due_in_session(Platform::ClaudeCode, SESSION).unwrap();
        distiller.distil(store, &due).unwrap()
    }

    /// Stores a turn: a prompt, optionally a failure and its fix, and the answer.
    fn turn(store: &mut Store, minute: i64, asked: &str, is_work: bool, answer: &str) {
        let mut all = vec![EventKind::UserPrompt { text: asked.into() }];
        if is_work {
            for (kind, what, succeeded) in
                [(Kind::Command, "cargo test", false), (Kind::Edit, "src/login.rs", true), (Kind::Command, "cargo test", true)]
            {
                all.push(EventKind::ToolUsed(Box::new(tool(kind, what, succeeded))));
            }
        }
        all.push(EventKind::TurnEnded { closing: Some(answer.into()), error: None });
        let redactor = Redactor::default();
        let at = |n: usize| minute * MINUTE + n as i64 * 1000;
        let events: Vec<_> = all.into_iter().enumerate().map(|(n, what)| redactor.clean(event(SESSION, at(n), what))).collect();
        store.write(|tx| events.iter().try_for_each(|event| store_event(tx, event))).unwrap();
    }

    fn titles(store: &Store) -> Vec<String> {
        let [session] = store.sessions_of(None, None).unwrap()[..] else { panic!("one session") };
        let units: Vec<i64> = store.last_units(&[session], 9).unwrap().iter().map(|unit| unit.id).collect();
        let all = units.into_iter().flat_map(|unit| store.memories_of_unit(session, unit).unwrap());
        all.map(|memory| memory.title).collect()
    }

    const FIXED: &str = "Fixed. The root cause was that the expiry was rounded down to the minute, so tokens expired early.";

    #[test]
    fn a_turn_is_distilled_once_and_again_when_something_is_added() {
        let scratch = Scratch::new("distil-once");
        let mut store = scratch.open();
        turn(&mut store, 1, "Fix the login: tokens expire too early", true, FIXED);
        assert_eq!(distil(&mut store, 2 * MINUTE), 1);
        let drawn = titles(&store);
        assert!(!drawn.is_empty());
        assert_eq!(distil(&mut store, 3 * MINUTE), 0, "nothing has happened since");
        turn(&mut store, 4, "Never round tokens down again, please", false, "Understood: I will never round expiry down.");
        assert_eq!(distil(&mut store, 5 * MINUTE), 1);
        assert!(drawn.iter().all(|title| titles(&store).contains(title)), "what was drawn before holds still");
    }

    #[test]
    fn a_greeting_draws_nothing() {
        let scratch = Scratch::new("distil-greeting");
        let mut store = scratch.open();
        turn(&mut store, 1, "hi", false, "Hello! What can I do for you?");
        assert_eq!(distil(&mut store, 2 * MINUTE), 0);
        assert_eq!(titles(&store), [""; 0]);
    }

    #[test]
    fn a_unit_leased_by_another_process_is_left_alone_until_the_lease_expires() {
        let scratch = Scratch::new("distil-leased");
        let mut store = scratch.open();
        turn(&mut store, 1, "Fix the login: tokens expire too early", true, FIXED);
        let [session] = store.sessions_of(None, None).unwrap()[..] else { panic!("one session") };
        let unit = store.last_units(&[session], 1).unwrap()[0].id;
        let lease = store.lease(&[unit], 2 * MINUTE).unwrap();
        assert_eq!(lease.len(), 1);
        assert_eq!(distil(&mut store, 2 * MINUTE + 1000), 0);
        assert_eq!(titles(&store), [""; 0]);
        // That process was killed; its lease expires.
        assert_eq!(distil(&mut store, 2 * MINUTE + 11_000), 1);
        assert!(!titles(&store).is_empty());
    }
}
