//! nmem: memory for coding agents, without a daemon.
//!
//! An agent's hook starts the binary, which stores what happened in SQLite and is gone in milliseconds; the next session
//! is given what matters. Levels, from the ground up; a file imports only from lower ones, or from its own folder
//! (`tests/it/layers.rs` holds it, ADR/0009, ADR/0039):
//!
//! * words: [`model`], [`mod@error`], [`mod@words`]; how a text is cut for the indexes: [`mod@index_text`]; which
//!   texts give orders: `hostile`
//! * rules, values in, values out: [`redact`], [`command_kind`], [`segmentation`], [`rules`],
//!   [`observer`], [`rank`], [`render`]
//! * the gate to files: [`files`]
//! * edges, one outside thing each: [`config`], [`project`], [`platforms`], [`store`], [`domains`], [`llm`], [`log`]
//! * what every run has at hand: `runtime`
//! * use cases: [`mod@distil`], [`knowledge`], [`recall`], [`archive`], [`doctor`], `lookup`,
//!   `installation`
//! * the way of an event through all of them: [`mod@ingest`]; what sends events of its own that way: [`mod@forget`], [`replay`]
//! * surface: [`rad`], [`cli`]

pub mod archive;
pub mod cli;
pub mod command_kind;
pub mod config;
pub mod distil;
pub mod doctor;
pub mod domains;
pub mod error;
pub mod files;
pub mod forget;
mod hostile;
pub mod index_text;
pub mod ingest;
mod installation;
pub mod knowledge;
pub mod llm;
pub mod log;
mod lookup;
pub mod model;
pub mod observer;
pub mod platforms;
pub mod project;
pub mod rad;
pub mod rank;
pub mod recall;
pub mod redact;
pub mod render;
pub mod replay;
pub mod rules;
mod runtime;
pub mod segmentation;
pub mod store;
pub mod words;
