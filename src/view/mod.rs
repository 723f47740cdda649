//! The page that people look at: `nmem view` writes it to a file, `nmem serve` keeps it up to date (ADR/0050).
//!
//! Read in this order: `snapshot` (what the page shows, as JSON), `page` (the HTML around it). The folder `page/` holds
//! the page's own HTML, CSS and JavaScript.

pub mod page;
pub mod snapshot;

pub use snapshot::{PageScope, Snapshot};
