//! The supported languages, and which of them are on.

use std::sync::atomic::{AtomicU8, Ordering};

/// All supported languages except English, in the order of their bits.
pub const LANGUAGES: [&str; 6] = ["de", "zh", "es", "fr", "pt", "ja"];
/// Languages that have been measured; the others are off unless the configuration names them.
pub const MEASURED: [&str; 3] = ["en", "de", "zh"];

/// One bit per language that is on. A process has one configuration.
static ON: AtomicU8 = AtomicU8::new(0b11);

/// Switches languages on by their tags, and all others off.
pub fn switch_on(tags: &[String]) {
    let bits = (0..LANGUAGES.len()).filter(|at| tags.iter().any(|tag| tag == LANGUAGES[*at])).fold(0, |bits, at| bits | 1 << at);
    ON.store(bits, Ordering::Relaxed);
}

/// Whether a language is on.
pub(super) fn is_on(language: usize) -> bool {
    ON.load(Ordering::Relaxed) & (1 << language) != 0
}
