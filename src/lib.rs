//! nmem: memory for coding agents, without a daemon.
//!
//! A hook of the agent starts the binary. It stores the event in SQLite and exits within milliseconds; the next
//! session receives what matters. These are the levels, lowest first. A file imports only from lower levels or from
//! its own folder; `tests/it/layers.rs` checks this (ADR/0009, ADR/0039).
//!
//! Parts that a build can leave out are behind the features `mcp`, `serve`, `team` and `embeddings`.
//!
//! * plain types and text functions: [`model`], [`mod@error`], [`mod@text`]; other languages: [`languages`]; text for the
//!   indexes: [`mod@index_text`]; orders in texts: `prompt_injection`
//! * logic without I/O: [`redact`], [`command_kind`], [`segmentation`], [`extraction`], [`rank`], [`render`]
//! * safe access to files: [`files`]
//! * adapters to one outside thing each: [`config`], [`project`], [`platforms`], [`store`], [`domains`], [`llm`],
//!   [`postgres`]
//! * shared by every run: [`runtime`]
//! * use cases: [`mod@distil`] (a unit becomes memories), [`knowledge`], [`recall`], [`archive`], [`team`], `lookup`,
//!   `installation`, [`evidence`] (why a line is so, what was checked)
//! * the pipeline of an event: [`mod@ingest`] (`hook_event` for hooks); around it [`forgetting`], [`replay`], [`mod@import`], [`diagnosis`],
//!   `redact_stored`
//! * the page for browsers: [`view`]
//! * surface: [`rad`], `server`, `mcp`, [`cli`]

pub mod archive;
pub mod cli;
pub mod command_kind;
pub mod commit_message;
pub mod config;
pub mod diagnosis;
pub mod distil;
pub mod domains;
pub mod error;
pub mod evidence;
pub mod extraction;
pub mod files;
pub mod forgetting;
mod hook_event;
pub mod import;
pub mod index_text;
pub mod ingest;
mod installation;
pub mod knowledge;
pub mod languages;
pub mod llm;
mod lookup;
#[cfg(feature = "mcp")]
mod mcp;
pub mod model;
pub mod passages;
pub mod platforms;
#[cfg(feature = "team")]
pub mod postgres;
pub mod project;
mod prompt_injection;
pub mod rad;
pub mod rank;
pub mod recall;
pub mod redact;
mod redact_stored;
pub mod render;
pub mod replay;
pub mod runtime;
pub mod segmentation;
#[cfg(feature = "serve")]
mod server;
pub mod store;
#[cfg(feature = "team")]
pub mod team;
pub mod text;
pub mod view;
