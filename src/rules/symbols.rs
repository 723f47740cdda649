//! Which functions, classes and modules a change touched, as far as the stored piece of its hunk shows it.

use crate::model::ToolUseRow;
use std::collections::BTreeSet;

/// Names of one sort that are told.
const MOST: usize = 12;

/// What a change touched.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    pub functions: Vec<String>,
    pub classes: Vec<String>,
    pub modules: Vec<String>,
}

/// Reads the hunks of changes, in order.
pub fn symbols(changes: &[&ToolUseRow]) -> Symbols {
    let (mut functions, mut classes, mut modules) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for change in changes {
        if let Some((folder, _)) =
            change.path.as_deref().and_then(|path| path.rsplit_once('/')).filter(|(folder, _)| !folder.is_empty())
        {
            modules.insert(folder.to_string());
        }
        // What a document calls a class is none.
        let is_code = change.path.as_deref().is_some_and(|path| !path.ends_with(".md") && !path.ends_with(".txt"));
        for line in change.input.as_deref().unwrap_or_default().lines().filter(|_| is_code) {
            match defined(line) {
                Some((true, name)) => classes.insert(name.to_string()),
                Some((false, name)) => functions.insert(name.to_string()),
                None => false,
            };
        }
    }
    let told = |names: BTreeSet<String>| names.into_iter().take(MOST).collect();
    Symbols { functions: told(functions), classes: told(classes), modules: told(modules) }
}

/// What a line of a hunk defines: whether it is a class (a struct, an interface, …), and its name.
fn defined(line: &str) -> Option<(bool, &str)> {
    let mut words = line.strip_prefix(['+', '-', ' ']).unwrap_or(line).trim_start();
    for modifier in [
        "export ",
        "default ",
        "pub ",
        "public ",
        "private ",
        "protected ",
        "static ",
        "async ",
        "abstract ",
        "final ",
        "unsafe ",
        "const ",
    ] {
        words = words.strip_prefix(modifier).unwrap_or(words);
    }
    if let Some(rest) = words.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
        words = rest.1;
    }
    // Go: `func (s *Server) Start(` has its receiver first.
    if let Some(rest) = words.strip_prefix("func (").and_then(|rest| rest.split_once(") ")) {
        return name(rest.1).map(|name| (false, name));
    }
    for (keyword, is_class) in [
        ("func ", false),
        ("fn ", false),
        ("def ", false),
        ("function ", false),
        ("fun ", false),
        ("class ", true),
        ("struct ", true),
        ("interface ", true),
        ("trait ", true),
        ("enum ", true),
    ] {
        if let Some(rest) = words.strip_prefix(keyword) {
            return name(rest).map(|name| (is_class, name));
        }
    }
    let rest = words.strip_prefix("type ")?;
    let name = name(rest)?;
    let behind = rest[name.len()..].trim_start();
    (behind.starts_with("struct") || behind.starts_with("interface")).then_some((true, name))
}

/// An identifier at the beginning of a text, of two characters or more.
fn name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(text.len());
    let behind = text[end..].trim_start();
    let opens = behind.is_empty()
        || behind.starts_with(['(', '<', '{', ':', '[', ';', '='])
        || behind.starts_with("struct")
        || behind.starts_with("interface")
        || behind.starts_with("extends")
        || behind.starts_with("implements")
        || behind.starts_with("for");
    (end >= 2 && opens && !text.starts_with(|c: char| c.is_ascii_digit())).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::super::failures::testing::tool;
    use super::*;

    #[test]
    fn definitions_in_a_hunk_are_found_in_the_languages_that_people_write() {
        let mut change = tool(1, "edit", "src/units/mod.rs", true);
        change.input = Some(
            "@@ -1 +1 @@\n pub(crate) fn parse_it(a: u8) {\n-class Old:\n+export async function loadUser(id) {\n func (s *Server) Start(ctx) error {\n+type Session struct {\n # def is a word\n+the class of problems\n+let x = function(a) {}\n".into(),
        );
        let found = symbols(&[&change]);
        assert_eq!(found.functions, ["Start", "loadUser", "parse_it"]);
        assert_eq!(found.classes, ["Old", "Session"]);
        assert_eq!(found.modules, ["src/units"]);
    }
}
