//! Colour and line width.

/// Writes ANSI colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub colour: bool,
    /// Columns of the terminal; large if there is none.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { colour: false, width: 170 }
    }
}

impl Style {
    fn with(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    /// Headings and ids.
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Secondary information: times, ids.
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Failures.
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// Successes.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Search matches.
    pub fn found(self, text: &str) -> String {
        self.with("1;33", text)
    }

    /// Files.
    pub fn path(self, text: &str) -> String {
        self.with("36", text)
    }
}
