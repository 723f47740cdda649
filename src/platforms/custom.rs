//! Adapter for any other program, which reports through the RAD protocol in Claude Code's format.

use super::adapter::{Adapter, HookAnswer, Moment, Support};
use super::answers::{envelope, event_of};
use super::claude;
use super::decode_context::DecodeContext;
use super::setup::Setup;
use super::translated::{self, Translated};
use crate::model::{Event, Platform};
use serde_json::Value;

pub struct Custom;

impl Adapter for Custom {
    fn platform(&self) -> Platform {
        Platform::Custom
    }

    fn recognises(&self, _payload: &Value) -> bool {
        false
    }

    fn translate(&self, payload: &Value) -> Vec<Translated> {
        translated::event(payload.clone())
    }

    fn decode(&self, payload: &Value, around: &DecodeContext) -> Result<Vec<Event>, String> {
        Ok(claude::decode(payload, around)?.map(|event| Event { platform: Platform::Custom, ..event }).into_iter().collect())
    }

    fn encode(&self, _payload: &Value, answer: &HookAnswer) -> Option<String> {
        envelope(event_of(answer.point), answer)
    }

    fn support(&self) -> Support {
        let request = Moment::Possible;
        Support {
            outcome: "`error` in `observations`",
            failures: "`error` in `observations`",
            tokens: "not possible: the protocol has no field for them",
            start: request,
            prompt: request,
            edit: request,
            subagent: request,
            compaction: request,
            context_bytes: None,
            keeps_start_context: true,
        }
    }

    fn setup(&self) -> Option<&'static Setup> {
        None
    }
}
