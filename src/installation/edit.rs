//! What nmem adds to a file, and how that is taken away again.

use crate::platforms::settings::{self, Hook, NotEditable};
use crate::platforms::setup::Shape;
use std::path::Path;

/// Begin and end of the block in a file with general instructions.
const BLOCK: [&str; 2] = ["<!-- begin nmem -->\n", "<!-- end nmem -->\n"];

/// One addition to a file.
#[derive(Clone, Debug)]
pub enum Edit {
    Hooks {
        shape: Shape,
        hooks: Vec<Hook>,
    },
    /// Texts in a list below two keys of a JSON file.
    Listed {
        list: [&'static str; 2],
        entries: &'static [&'static str],
    },
    /// The whole file.
    Whole(String),
    /// A marked block in a Markdown file.
    Block(String),
}

impl Edit {
    /// The text with the addition; twice is once.
    pub fn add(&self, text: &str) -> Result<String, NotEditable> {
        match self {
            Edit::Hooks { shape, hooks } => {
                // Hooks of a moved binary are also ours: they are replaced, not duplicated.
                let stale = |command: &str| is_ours(command) && !hooks.iter().any(|hook| hook.command == command);
                let cleared = if text.trim().is_empty() { text.to_string() } else { settings::remove(text, *shape, &stale)? };
                settings::add(&cleared, *shape, hooks)
            }
            Edit::Listed { list, entries } => settings::add_to_list(text, *list, entries),
            Edit::Whole(whole) => Ok(whole.clone()),
            Edit::Block(block) => {
                if let Some([before, _, behind]) = parts(text) {
                    return Ok(format!("{before}{}{block}\n{}{behind}", BLOCK[0], BLOCK[1]));
                }
                let before = text;
                let gap = match before {
                    "" => "",
                    before if before.ends_with("\n\n") => "",
                    before if before.ends_with('\n') => "\n",
                    _ => "\n\n",
                };
                Ok(format!("{before}{gap}{}{block}\n{}", BLOCK[0], BLOCK[1]))
            }
        }
    }

    /// The text without the addition.
    pub fn remove(&self, text: &str) -> Result<String, NotEditable> {
        match self {
            _ if text.trim().is_empty() => Ok(text.to_string()),
            Edit::Hooks { shape, .. } => settings::remove(text, *shape, &is_ours),
            Edit::Listed { list, entries } => settings::remove_from_list(text, *list, entries),
            Edit::Whole(_) => Ok(String::new()),
            Edit::Block(_) => Ok(without_block(text)),
        }
    }

    /// The same addition as it is in a text, which an older nmem or another binary may have written.
    pub fn as_in(&self, text: &str) -> Option<Edit> {
        match self {
            Edit::Hooks { shape, hooks } => {
                let value = settings::checked(text, *shape).ok()?;
                let ours = |event: &str| settings::commands(&value, *shape, event).into_iter().find(|c| is_ours(c));
                let hooks = hooks.iter().filter_map(|hook| Some(Hook { on: hook.on, command: ours(hook.on.event)? }));
                Some(Edit::Hooks { shape: *shape, hooks: hooks.collect() })
            }
            Edit::Block(_) => {
                let [_, inside, _] = parts(text)?;
                Some(Edit::Block(inside.trim_end().to_string()))
            }
            // Every file of ours names nmem.
            Edit::Whole(_) => Some(self.clone()).filter(|_| text.contains("nmem")),
            Edit::Listed { .. } => Some(self.clone()),
        }
        .filter(|_| self.remove(text).is_ok_and(|without| without != text))
    }
}

/// The text before the block, in it, and behind it.
fn parts(text: &str) -> Option<[&str; 3]> {
    let (head, behind) = text.rsplit_once(BLOCK[1])?;
    let (before, inside) = head.rsplit_once(BLOCK[0])?;
    Some([before, inside, behind])
}

fn without_block(text: &str) -> String {
    let Some([before, _, behind]) = parts(text) else { return text.to_string() };
    // An empty line parted the block from what is before it.
    let before = before.strip_suffix('\n').filter(|before| before.ends_with('\n')).unwrap_or(before);
    format!("{before}{behind}")
}

/// Whether a command line is one of our hooks, from any folder: this program and a verb, with nothing before it, followed
/// at most by a platform or shell redirections.
pub fn is_ours(command: &str) -> bool {
    let command = command.trim();
    let (program, rest) = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').unwrap_or_default(),
        None => command.split_once(char::is_whitespace).unwrap_or_default(),
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let this = std::env::current_exe().is_ok_and(|exe| exe == Path::new(program));
    let mut words = rest.split_whitespace();
    let verb = words.next().is_some_and(|verb| matches!(verb, "record" | "context"));
    let behind = words.next().is_none_or(|w| w.starts_with("--platform") || w.starts_with("||") || w.contains('>'));
    (matches!(name, "nmem" | "nmem.exe") || this) && verb && behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_of_ours_are_known_from_whichever_folder() {
        for command in [
            "/usr/bin/nmem record",
            "nmem context",
            "'/my tools/nmem' record",
            "nmem record --platform claude-code",
            "nmem record --platform gemini 2>/dev/null || true",
            "nmem record || true",
            "nmem record 2>/dev/null",
        ] {
            assert!(is_ours(command), "{command}");
        }
        for command in [
            "/usr/bin/nmemo record",
            "nmem",
            "echo nmem record x",
            "nmem status",
            "rsync -a /data/nmem context",
            "backup --to /srv/nmem record",
            "timeout 5 /usr/bin/nmem record",
            "echo start; /opt/x/nmem record",
        ] {
            assert!(!is_ours(command), "{command}");
        }
    }

    proptest! {
        #[test]
        fn a_block_comes_and_goes(text in "([a-z# ]{0,10}\n){0,4}") {
            let edit = Edit::Block("Use `nmem search`.".into());
            let with = edit.add(&text).unwrap();
            prop_assert_eq!(edit.add(&with).unwrap(), with.clone());
            prop_assert!(with.contains("nmem search"));
            let without = edit.remove(&with).unwrap();
            prop_assert_eq!(without.trim_end(), text.trim_end());
        }
    }
}
