//! The observer: a language model that is shown what an agent did and says what of it is worth remembering (DESIGN §6).
//! Here is all that can be decided without asking: what it is shown ([`question`]), how its answer is read ([`read`]), and
//! which memories come of it ([`tell()`]). Values in, values out; the call itself is `llm`'s.
//!
//! What it is shown was written by tools, pages and programs, some of it perhaps to deceive. ADR/0025 says how it is kept
//! from steering the observer.
//!
//! Read in this order: `prompt`, `blocks`, `worth` and `terms` (the question); `answer` with `markup` (the answer as it
//! was written); `tell` (memories).

mod answer;
mod blocks;
mod markup;
mod prompt;
mod tell;
mod terms;
mod worth;

pub use answer::{Heard, Observed, read};
pub use blocks::Block;
pub use prompt::{Asked, Request, question};
pub use tell::{Known, Told, tell};
