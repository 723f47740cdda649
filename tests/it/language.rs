//! Keeps the code to the words of `docs/glossary.md`: words that are out of use, and one type per name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that are out of use, and what to write instead.
const OUT_OF_USE: [(&str, &str); 11] = [
    ("told", "received, injected, stored, stated"),
    ("mend", "fix, repair, edit"),
    ("mends", "fixes, repairs"),
    ("mended", "fixed, repaired, edited"),
    ("anew", "again"),
    ("standing", "current, existing, stored"),
    ("piece of work", "work unit"),
    ("pieces of work", "work units"),
    ("at hand", "leased, loaded"),
    ("hooked into", "installed"),
    ("of late", "recent"),
];

/// Lines in which a word on the list is not ours: phrases of others, and names that old databases and exports contain.
const QUOTED: [&str; 8] = [
    "--told",
    "gone|found|built|sent|kept|left|lost|told|slow",
    "long = \"told\"",
    "what you were told",
    "\"rules\", \"guideline\", \"told\"",
    "name == \"told\"",
    "(\"standing\", \"active\")",
    "FROM told",
];

fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    fn walk(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                walk(&path, endings, found);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), endings, &mut found);
    found.sort();
    assert!(!found.is_empty(), "{folder}");
    found
}

/// Lines with words that are out of use: file, line number, word and replacement.
fn out_of_use(paths: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        let text = fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !QUOTED.iter().any(|quoted| line.contains(quoted))) {
            let plain: String =
                line.to_lowercase().chars().map(|c| if c.is_alphanumeric() || c == '\'' { c } else { ' ' }).collect();
            let padded = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
            for (word, instead) in OUT_OF_USE {
                for _ in padded.matches(&format!(" {word} ")) {
                    found.push(format!("{}:{}: {word}: write {instead}", path.display(), number + 1));
                }
            }
        }
    }
    found
}

#[test]
fn words_out_of_use_stay_out_of_the_code() {
    let found = out_of_use(&files("src", &[".rs"]));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A doc comment begins with a noun phrase or a verb, not with an indirect question.
#[test]
fn no_doc_comment_begins_with_a_question_word() {
    const QUESTIONS: [&str; 7] = ["What ", "Which ", "How ", "Where ", "Why ", "By what ", "Of "];
    let mut found = Vec::new();
    for path in ["src", "benches", "tests", "fuzz/fuzz_targets"].iter().flat_map(|folder| files(folder, &[".rs"])) {
        let text = fs::read_to_string(&path).unwrap();
        let mut before = "";
        for (number, line) in text.lines().map(str::trim_start).enumerate() {
            let mark = ["///", "//!"].into_iter().find(|mark| line.starts_with(mark)).unwrap_or_default();
            let is_first = !mark.is_empty() && (!before.starts_with(mark) || before == mark);
            if is_first && QUESTIONS.iter().any(|word| line[3..].trim_start().starts_with(word)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
            before = line;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_out_of_use_stay_out_of_the_documentation() {
    let mut pages = files("docs", &[".md"]);
    pages.retain(|page| !page.ends_with("glossary.md"));
    pages.extend(
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
            .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name)),
    );
    let found = out_of_use(&pages);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Paths in backticks exist, and names of code (`tool_uses`, `Clean<T>`) occur in the code.
#[test]
fn decisions_name_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "tests", "benches", "migrations", "docs", "hooks"];
    let endings = [".rs", ".sql", ".md", ".json", ".toml"];
    let mut code: String =
        folders.iter().flat_map(|folder| files(folder, &endings)).map(|path| fs::read_to_string(path).unwrap()).collect();
    code += &["Cargo.toml", "build.rs", "clippy.toml"].map(|file| fs::read_to_string(root.join(file)).unwrap()).concat();
    // Names of other programs, and files outside this repository.
    let others = ["getaddrinfo", "nsswitch.conf", "nmem.db-rejected", "RegexSet", "default_max_tokens"];
    let mut checked = 0;
    let index = fs::read_to_string(root.join("ADR/README.md")).unwrap();
    for page in files("ADR", &[".md"]) {
        let text = fs::read_to_string(&page).unwrap();
        let file = page.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            file == "README.md" || index.contains(&format!("({file}) {}", &text.lines().next().unwrap()[8..])),
            "{file}: not in the index"
        );
        for name in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(|name| !others.contains(name)) {
            let is_path = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
                && (name.ends_with(".rs") || (name.ends_with('/') && !name.starts_with('/')));
            let is_name = name.contains(['_', ':']) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_:.".contains(c));
            if is_path {
                assert!(["", "src"].iter().any(|top| root.join(top).join(name).exists()), "{file}: no {name}");
                checked += 1;
            } else if is_name {
                let missing = name.split([':', '.']).find(|part| !part.is_empty() && !code.contains(part));
                assert!(missing.is_none(), "{file}: {name} is not in the code");
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "{checked}");
}

/// Each name in the glossary's columns of code and SQL is one: a module or item that is declared, a table or a column.
#[test]
fn the_glossary_names_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |folder: &str, ending: &str| -> String {
        files(folder, &[ending]).iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    let (code, schema) =
        (read("src", ".rs") + &read("benches", ".rs"), read("migrations", ".sql") + &read("src/postgres", ".rs"));
    let declared = |name: &str, of_module: bool| {
        let forms = ["fn", "struct", "enum", "trait", "mod", "type", "const", "static"];
        let is_item = forms.iter().any(|form| {
            code.match_indices(&format!("{form} {name}"))
                .any(|(at, found)| !code[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        // A variant of an enum, or a field.
        let is_part = || {
            code.lines().any(|line| {
                let line = line.trim_start().trim_start_matches("pub ");
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ',', '(', ' ']) && !rest.starts_with("::"))
            })
        };
        is_item || !of_module && is_part()
    };
    let text = fs::read_to_string(root.join("docs/glossary.md")).unwrap();
    let mut checked = 0;
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| word")) {
        let columns: Vec<&str> = row.split(" | ").collect();
        let [_, _, in_code, in_sql] = columns.as_slice() else { continue };
        let names = |column: &'_ str| -> Vec<String> { column.split('`').skip(1).step_by(2).map(String::from).collect() };
        for name in names(in_code) {
            let path = root.join(&name);
            let parts = name.split("::").flat_map(|part| part.split(['<', '>', ',', ' '])).filter(|part| part.len() > 1);
            // What a module holds is an item.
            let of_module = name.contains("::") && name.starts_with(char::is_lowercase);
            let missing: Vec<&str> = parts.filter(|part| !declared(part, of_module)).collect();
            assert!(
                missing.is_empty() || path.exists() || root.join("src").join(&name).exists(),
                "{name}: {missing:?} is not declared"
            );
            checked += 1;
        }
        for name in names(in_sql) {
            let missing = name.split('.').find(|part| !schema.contains(part) && !code.contains(part));
            assert!(missing.is_none(), "{name} is not in the schema");
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

/// Adapters may use a platform's own names, so they are left out.
#[test]
fn no_type_name_occurs_twice() {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files("src", &[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        if path.to_string_lossy().contains("/platforms/") || path.ends_with("tests.rs") {
            continue;
        }
        let own = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for line in own.lines() {
            let line = line.trim_start();
            let declared = line
                .strip_prefix("pub ")
                .or(line.strip_prefix("pub(super) "))
                .or(line.strip_prefix("pub(crate) "))
                .unwrap_or(line);
            let Some(rest) = ["struct ", "enum ", "trait ", "type "].iter().find_map(|keyword| declared.strip_prefix(keyword))
            else {
                continue;
            };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            if name.starts_with(|c: char| c.is_uppercase()) && !(name == "Target" && line.contains("type Target =")) {
                types.entry(name).or_default().push(path.display().to_string());
            }
        }
    }
    let twice: Vec<String> = types
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    assert!(types.len() > 100 && twice.is_empty(), "{}", twice.join("\n"));
}
