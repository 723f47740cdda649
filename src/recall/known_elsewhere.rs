//! Memory files of the project that the agent reads at a start anyway. Their content need not be repeated.

use crate::files::small_text;
use crate::rank::{stem, terms};
use std::collections::HashSet;
use std::path::Path;

/// Files in the root of the worktree.
const IN_ROOT: [&str; 4] = ["CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md"];
/// Minimum words of a statement to compare, and the share of them, in percent, that one line must contain.
const WORDS: usize = 3;
const SHARE: usize = 80;

/// The lines of memory files, as sets of words.
#[derive(Debug, Default)]
pub struct KnownElsewhere {
    lines: Vec<HashSet<String>>,
}

impl KnownElsewhere {
    /// Reads the first 64 kB of each file.
    pub fn read(root: Option<&Path>, home: Option<&Path>) -> KnownElsewhere {
        let Some(root) = root else { return KnownElsewhere::default() };
        let own = home.map(|home| home.join(".claude/projects").join(folder_name(root)).join("memory/MEMORY.md"));
        let files = IN_ROOT.iter().map(|name| root.join(name)).chain(own);
        let texts: Vec<String> = files.filter_map(|file| small_text(&file)).collect();
        KnownElsewhere {
            lines: texts.iter().flat_map(|text| text.lines()).map(words).filter(|line| line.len() >= WORDS).collect(),
        }
    }

    /// Whether one line contains most words of a statement.
    pub fn says(&self, statement: &str) -> bool {
        let said = if self.lines.is_empty() { HashSet::new() } else { words(statement) };
        said.len() >= WORDS && self.lines.iter().any(|line| said.intersection(line).count() * 100 >= said.len() * SHARE)
    }
}

/// Returns Claude Code's name for the folder of a project.
fn folder_name(root: &Path) -> String {
    root.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn words(text: &str) -> HashSet<String> {
    terms(text).iter().map(|term| stem(term)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_known_if_a_line_has_most_of_its_words() {
        let lines = ["- Always run `mise run lint` before committing anything", "- tabs"].map(words).to_vec();
        let known = KnownElsewhere { lines };
        assert!(known.says("Always run mise run lint before you commit"));
        assert!(!known.says("Always run the integration tests before you commit"));
        assert!(!known.says("tabs"));
        assert_eq!(folder_name(Path::new("/srv/my.app")), "-srv-my-app");
    }
}
