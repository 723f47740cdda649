//! Names of the kinds of findings. Presets refer to findings by these names.

/// What a rule found, as a domain's types ask for it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Fix,
    Feature,
    Refactor,
    Change,
    Discovery,
}

impl Finding {
    /// The word that presets use.
    pub fn name(self) -> &'static str {
        match self {
            Finding::Fix => "fix",
            Finding::Feature => "feature",
            Finding::Refactor => "refactor",
            Finding::Change => "change",
            Finding::Discovery => "discovery",
        }
    }

    /// All words that a preset's types may ask for.
    pub const NAMES: [&str; 5] = ["fix", "feature", "refactor", "change", "discovery"];
}

/// What a memory is about, as a domain's concepts ask for it by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cue {
    Mechanism,
    Reason,
    Change,
    Solution,
    Trap,
    Pattern,
    TradeOff,
}

impl Cue {
    /// The word that presets use.
    pub fn name(self) -> &'static str {
        match self {
            Cue::Mechanism => "mechanism",
            Cue::Reason => "reason",
            Cue::Change => "change",
            Cue::Solution => "solution",
            Cue::Trap => "trap",
            Cue::Pattern => "pattern",
            Cue::TradeOff => "trade-off",
        }
    }

    /// All words that a preset's concepts may ask for.
    pub const NAMES: [&str; 7] = ["mechanism", "reason", "change", "solution", "trap", "pattern", "trade-off"];
}
