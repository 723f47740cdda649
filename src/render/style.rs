//! Colour, where it is wanted, and the width of a line.

/// Writes ANSI colours, or none.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub colour: bool,
    /// Columns of the terminal; generous where there is none.
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

    /// What a line is about.
    pub fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What is there for who looks for it: times, ids.
    pub fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// What went wrong.
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// What went well.
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// What was searched for.
    pub fn found(self, text: &str) -> String {
        self.with("1;33", text)
    }

    /// A file.
    pub fn path(self, text: &str) -> String {
        self.with("36", text)
    }
}
