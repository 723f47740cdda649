//! Token counts of a session: Codex reports totals, nmem counts per turn.

use crate::model::{Tokens, TurnUsage};
use serde_json::Value;

/// The totals so far, and those at the last turn's end.
pub struct TokenTotals {
    now: Tokens,
    counted: Tokens,
    /// True while the totals before the part that is read are unknown.
    is_behind: bool,
}

impl TokenTotals {
    /// Starts counting from the start of a file, or (`is_behind`) after an unknown total.
    pub fn new(is_behind: bool) -> TokenTotals {
        TokenTotals { now: Tokens::default(), counted: Tokens::default(), is_behind }
    }

    /// Adds the `info` of a `token_count`.
    pub fn count(&mut self, info: &Value) {
        if !info["total_token_usage"].is_object() {
            return;
        }
        self.now = read(&info["total_token_usage"]);
        if std::mem::take(&mut self.is_behind) {
            self.counted = difference(self.now, read(&info["last_token_usage"]));
        }
    }

    /// Returns the tokens since the last call of this function; `None` if there are none.
    pub fn take(&mut self, model: Option<String>) -> Option<TurnUsage> {
        let tokens = difference(self.now, self.counted);
        if self.now == self.counted {
            return None;
        }
        self.counted = self.now;
        // The totals serve as the last message's id: the same file produces the same id when it is read again.
        let last_message = Some(format!("tokens-{}-{}", self.now.input, self.now.output));
        Some(TurnUsage { tokens: Some(tokens), model, last_message, ..TurnUsage::default() })
    }
}

/// Parses token counts. Codex's input tokens include those read from the cache.
fn read(usage: &Value) -> Tokens {
    let of = |key: &str| usage[key].as_i64().unwrap_or(0).max(0);
    let cache_read = of("cached_input_tokens");
    Tokens { input: (of("input_tokens") - cache_read).max(0), output: of("output_tokens"), cache_read, cache_write: 0 }
}

fn difference(later: Tokens, earlier: Tokens) -> Tokens {
    Tokens {
        input: (later.input - earlier.input).max(0),
        output: (later.output - earlier.output).max(0),
        cache_read: (later.cache_read - earlier.cache_read).max(0),
        cache_write: 0,
    }
}
