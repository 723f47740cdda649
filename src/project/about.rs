//! Facts about a repository, from its files: languages by file extensions, frameworks and project type by manifests.
//! The scan is bounded and runs nothing.

use crate::files::small_text;
use crate::model::About;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Maximum entries and depth to read.
const ENTRIES: usize = 3000;
const DEPTH: usize = 6;
/// Maximum number of languages, and the minimum share of files in percent for each.
const LANGUAGES: usize = 4;
const PART: usize = 8;
/// Folders with third-party or generated files.
const FOREIGN: [&str; 9] = ["node_modules", "target", "vendor", "dist", "build", "out", "venv", "third_party", "__pycache__"];

/// File extensions by language.
const ENDINGS: [(&str, &[&str]); 20] = [
    ("Rust", &["rs"]),
    ("Go", &["go"]),
    ("Python", &["py"]),
    ("TypeScript", &["ts", "tsx", "mts"]),
    ("JavaScript", &["js", "jsx", "mjs", "cjs"]),
    ("Java", &["java"]),
    ("Kotlin", &["kt", "kts"]),
    ("Swift", &["swift"]),
    ("C", &["c", "h"]),
    ("C++", &["cc", "cpp", "cxx", "hpp"]),
    ("C#", &["cs"]),
    ("Ruby", &["rb"]),
    ("PHP", &["php"]),
    ("Elixir", &["ex", "exs"]),
    ("Scala", &["scala"]),
    ("Dart", &["dart"]),
    ("Shell", &["sh", "bash"]),
    ("SQL", &["sql"]),
    ("HTML", &["html", "css", "scss"]),
    ("Markdown", &["md", "rst", "tex"]),
];

/// Manifests that list dependencies, and the dependency that identifies each framework.
const MANIFESTS: [(&str, &[(&str, &str)]); 9] = [
    (
        "package.json",
        &[
            ("\"react\"", "React"),
            ("\"next\"", "Next.js"),
            ("\"vue\"", "Vue"),
            ("\"svelte\"", "Svelte"),
            ("\"@angular/core\"", "Angular"),
            ("\"express\"", "Express"),
            ("\"@nestjs/core\"", "NestJS"),
            ("\"electron\"", "Electron"),
            ("\"astro\"", "Astro"),
        ],
    ),
    (
        "Cargo.toml",
        &[
            ("axum", "Axum"),
            ("actix-web", "Actix"),
            ("tokio", "Tokio"),
            ("bevy", "Bevy"),
            ("tauri", "Tauri"),
            ("leptos", "Leptos"),
        ],
    ),
    ("pyproject.toml", PYTHON),
    ("requirements.txt", PYTHON),
    (
        "go.mod",
        &[
            ("github.com/gin-gonic/gin", "Gin"),
            ("github.com/labstack/echo", "Echo"),
            ("github.com/spf13/cobra", "Cobra"),
            ("github.com/gofiber/fiber", "Fiber"),
            ("github.com/charmbracelet/bubbletea", "Bubble Tea"),
        ],
    ),
    ("Gemfile", &[("rails", "Rails"), ("sinatra", "Sinatra")]),
    ("composer.json", &[("laravel/framework", "Laravel"), ("symfony/", "Symfony")]),
    ("pom.xml", &[("spring-boot", "Spring Boot"), ("quarkus", "Quarkus")]),
    ("build.gradle", &[("spring-boot", "Spring Boot"), ("com.android", "Android")]),
];
const PYTHON: &[(&str, &str)] = &[
    ("django", "Django"),
    ("flask", "Flask"),
    ("fastapi", "FastAPI"),
    ("torch", "PyTorch"),
    ("pandas", "pandas"),
    ("click", "Click"),
];
/// Frameworks that run in a browser or serve one.
const WEB: [&str; 19] = [
    "React",
    "Next.js",
    "Vue",
    "Svelte",
    "Angular",
    "Express",
    "NestJS",
    "Astro",
    "Axum",
    "Actix",
    "Leptos",
    "Django",
    "Flask",
    "FastAPI",
    "Gin",
    "Echo",
    "Rails",
    "Laravel",
    "Spring Boot",
];

/// Examines a repository.
pub fn about(root: &Path) -> About {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut left = ENTRIES;
    count(root, DEPTH, &mut left, &mut counts);
    // Documents accompany code everywhere; they define a project only if there is nothing else.
    if counts.len() > 1 {
        counts.remove("Markdown");
    }
    let all: usize = counts.values().sum();
    let mut ranked: Vec<(&str, usize)> = counts.into_iter().filter(|(_, files)| files * 100 >= all * PART).collect();
    ranked.sort_by_key(|(_, files)| std::cmp::Reverse(*files));
    let languages: Vec<String> = ranked.into_iter().take(LANGUAGES).map(|(name, _)| name.to_string()).collect();
    let mut frameworks: Vec<String> = Vec::new();
    for (manifest, names) in MANIFESTS {
        let Some(text) = small_text(&root.join(manifest)) else { continue };
        let named = names.iter().filter(|(sign, _)| text.contains(sign)).map(|(_, name)| name.to_string());
        frameworks.extend(named);
    }
    frameworks.sort();
    frameworks.dedup();
    let project_type = project_type(root, &languages, &frameworks).map(String::from);
    About { project_type, languages, frameworks }
}

fn count(folder: &Path, depth: usize, left: &mut usize, counts: &mut BTreeMap<&'static str, usize>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 && !name.starts_with('.') && !FOREIGN.contains(&&*name) {
            count(&entry.path(), depth - 1, left, counts);
        } else if let Some((_, ending)) = name.rsplit_once('.').filter(|_| kind.is_file())
            && let Some((language, _)) = ENDINGS.iter().find(|(_, endings)| endings.contains(&ending))
        {
            *counts.entry(language).or_default() += 1;
        }
    }
}

/// Project type: `workspace`, `web application`, `application`, `library`, `documents`.
fn project_type(root: &Path, languages: &[String], frameworks: &[String]) -> Option<&'static str> {
    let has = |path: &str| root.join(path).exists();
    let holds = |path: &str, sign: &str| small_text(&root.join(path)).is_some_and(|text| text.contains(sign));
    if holds("Cargo.toml", "[workspace]")
        || holds("package.json", "\"workspaces\"")
        || has("pnpm-workspace.yaml")
        || has("go.work")
    {
        return Some("workspace");
    }
    if frameworks.iter().any(|name| WEB.contains(&name.as_str())) {
        return Some("web application");
    }
    let starts = ["src/main.rs", "main.go", "cmd", "main.py", "src/main.py", "src/main.ts", "index.html", "manage.py"];
    if starts.iter().any(|path| has(path)) || holds("package.json", "\"bin\"") || holds("pyproject.toml", "[project.scripts]") {
        return Some("application");
    }
    let library = ["src/lib.rs", "setup.py", "pyproject.toml", "package.json", "go.mod", "Gemfile", "pom.xml"];
    if library.iter().any(|path| has(path)) {
        return Some("library");
    }
    (languages == ["Markdown"]).then_some("documents")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> (Option<String>, String, String) {
        let root = std::env::temp_dir().join(format!("nmem-about-{}", crate::files::unique()));
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let about = about(&root);
        fs::remove_dir_all(&root).unwrap();
        (about.project_type, about.languages.join(" "), about.frameworks.join(" "))
    }

    #[test]
    fn files_and_manifests_tell_what_it_is() {
        let expected = |kind: &str, languages: &str, frameworks: &str| {
            (Some(kind.to_string()), languages.to_string(), frameworks.to_string())
        };
        assert_eq!(
            found(&[
                ("Cargo.toml", "[dependencies]\naxum = \"1\""),
                ("src/main.rs", ""),
                ("src/a.rs", ""),
                ("README.md", ""),
                ("target/x.py", "")
            ]),
            expected("web application", "Rust", "Axum")
        );
        assert_eq!(
            found(&[
                ("package.json", "{\"dependencies\": {\"left-pad\": \"1\"}}"),
                ("a.ts", ""),
                ("b.ts", ""),
                ("c.js", ""),
                ("node_modules/x/y.js", "")
            ]),
            expected("library", "TypeScript JavaScript", "")
        );
        assert_eq!(
            found(&[("go.mod", "require github.com/spf13/cobra v1"), ("cmd/x/main.go", "")]),
            expected("application", "Go", "Cobra")
        );
        assert_eq!(found(&[("chapter1.md", ""), ("chapter2.md", "")]), expected("documents", "Markdown", ""));
        assert_eq!(found(&[("notes.xyz", "")]), (None, String::new(), String::new()));
    }
}
