//! Builds a context block: adds lines completely or not at all, and records the memories in them.

use crate::model::{MemoryRow, TokenStats};

/// Collects lines up to a byte budget.
pub(super) struct Block {
    pub(super) text: String,
    /// Maximum bytes of the text.
    pub(super) budget: usize,
    /// Ids of the memories, and of the units, in the text.
    pub(super) shown: Vec<i64>,
    pub(super) units: Vec<i64>,
    pub(super) tokens: TokenStats,
}

impl Block {
    /// An empty block.
    pub(super) fn within(budget: usize) -> Block {
        Block { text: String::new(), budget, shown: Vec::new(), units: Vec::new(), tokens: TokenStats::default() }
    }

    /// A block without a budget, for content that was already selected.
    pub(super) fn new(text: String) -> Block {
        Block { text, ..Block::within(usize::MAX) }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.push(line);
    }

    /// The text, and the tokens to read it.
    pub(super) fn done(mut self) -> (String, TokenStats) {
        self.tokens.read = (self.text.len() / 4) as i64;
        (self.text, self.tokens)
    }

    /// Adds a line if it fits.
    pub(super) fn push(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.budget;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    pub(super) fn tells(&mut self, memory: &MemoryRow) {
        self.shown.push(memory.id);
        self.tokens.work += memory.tokens.unwrap_or(0);
        self.tokens.estimated |= memory.tokens_estimated && memory.tokens.is_some();
    }

    /// A titled section with as many memories as fit up to `until` bytes.
    pub(super) fn section(&mut self, title: &str, memories: &[&MemoryRow], until: usize, entry: impl Fn(&MemoryRow) -> String) {
        let whole = std::mem::replace(&mut self.budget, until);
        for (i, memory) in memories.iter().enumerate() {
            let begin = if i == 0 { format!("{title}\n") } else { String::new() };
            if !self.push(&format!("{begin}- {}", entry(memory))) {
                break;
            }
            self.tells(memory);
        }
        self.budget = whole;
    }
}
