//! The page for people: `nmem view` writes it to a file, `nmem serve` keeps it up to date (ADR/0050).
//!
//! Read in this order: `snapshot` (the data of the page, as JSON), `page` (the HTML around it). The folder `page/`
//! contains the page's own HTML, CSS and JavaScript.

pub mod page;
pub mod snapshot;

pub use snapshot::{PageScope, Snapshot};
