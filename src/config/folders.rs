//! Folder rules: `[[folder]]` in the config file. The first one that matches applies.

use super::llm::provider;
use super::setting::{Inject, Setting, SettingSource};
use super::value::{Wrong, boolean, context_bytes, inject, injected_bytes, share, text};
use crate::model::{Provider, Share};
use crate::text::slashed;
use std::path::{Path, PathBuf};

/// One rule. Settings it does not mention keep their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// A glob over absolute folders; `~` is expanded.
    pub pattern: String,
    pub enabled: Option<bool>,
    pub inject: Option<Inject>,
    pub context_bytes: Option<usize>,
    pub prompt_bytes: Option<usize>,
    pub file_bytes: Option<usize>,
    /// Project name that the user chose.
    pub project: Option<String>,
    pub database: Option<PathBuf>,
    /// Provider of the model that may receive what is recorded there.
    pub provider: Option<Provider>,
    /// Audience with which its memories are shared.
    pub share: Option<Share>,
}

impl Rule {
    /// Reads a rule; unknown keys are added to `unknown`.
    pub fn read(value: &toml::Value, home: Option<&Path>, unknown: &mut Vec<String>) -> Result<Rule, Wrong> {
        let table = value.as_table().ok_or("`folder` must be written as [[folder]]")?;
        let mut rule = Rule::default();
        for (key, value) in table {
            match key.as_str() {
                "match" => rule.pattern = expanded(&text(key, value)?, home),
                "enabled" => rule.enabled = Some(boolean(key, value)?),
                "inject" => rule.inject = Some(inject(key, value)?),
                "context_bytes" => rule.context_bytes = Some(context_bytes(key, value)?),
                "prompt_bytes" => rule.prompt_bytes = Some(injected_bytes(key, value)?),
                "file_bytes" => rule.file_bytes = Some(injected_bytes(key, value)?),
                "project" => rule.project = Some(text(key, value)?).filter(|name| !name.trim().is_empty()),
                "database" => rule.database = Some(PathBuf::from(expanded(&text(key, value)?, home))),
                "share" => rule.share = Some(share(key, value)?),
                "provider" => rule.provider = Some(provider(key, value)?),
                _ => unknown.push(format!("folder.{key}")),
            }
        }
        if !rule.pattern.starts_with(['/', '*']) && !Path::new(&rule.pattern).is_absolute() {
            return Err(format!("`match` of a [[folder]] must be an absolute path or begin with ~/, not {:?}", rule.pattern));
        }
        match &rule.database {
            Some(path) if !path.is_absolute() => {
                Err(format!("`database` of a [[folder]] must be an absolute path or begin with ~/, not {:?}", path.display()))
            }
            _ => Ok(rule),
        }
    }

    /// Whether the rule applies to a folder. `x/**` also matches `x` itself, and a matched folder includes everything
    /// below it.
    pub fn matches(&self, folder: &Path) -> bool {
        let pattern = slashed(&self.pattern);
        let pattern = pattern.strip_suffix("/**").unwrap_or(&pattern).trim_end_matches('/');
        folder.ancestors().filter_map(Path::to_str).any(|folder| fast_glob::glob_match(pattern, &*slashed(folder)))
    }

    /// Returns the rule as the origin of a setting.
    pub fn source(&self) -> SettingSource {
        SettingSource::Folder(self.pattern.clone())
    }

    /// Copies a value of the rule, if set, into a setting.
    pub fn put<T: Clone>(&self, value: &Option<T>, setting: &mut Setting<T>) {
        if let Some(value) = value {
            *setting = Setting { value: value.clone(), source: self.source() };
        }
    }
}

/// Expands `~/x` to a path below the home folder.
pub fn expanded(path: &str, home: Option<&Path>) -> String {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ if path == "~" => home.map_or_else(|| path.to_string(), |h| h.display().to_string()),
        _ => path.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<Rule, Wrong> {
        let table: toml::Table = text.parse().unwrap();
        Rule::read(&toml::Value::Table(table), Some(Path::new("/home/me")), &mut Vec::new())
    }

    #[cfg(windows)]
    #[test]
    fn a_rule_takes_either_slash() {
        for pattern in ["C:/clients/acme/**", r"C:\\clients\\acme"] {
            let acme = rule(&format!("match = \"{pattern}\"")).unwrap();
            assert!(
                acme.matches(Path::new(r"C:\clients\acme\app")) && !acme.matches(Path::new(r"C:\clients\acme2")),
                "{pattern}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_rule_is_about_its_folder_and_all_below() {
        let acme = rule("match = \"~/clients/acme/**\"\ndatabase = \"~/x.db\"").unwrap();
        assert_eq!(acme.database.as_deref(), Some(Path::new("/home/me/x.db")));
        for (folder, expected) in [
            ("/home/me/clients/acme", true),
            ("/home/me/clients/acme/app/src", true),
            ("/home/me/clients/acme2", false),
            ("/home/me/clients", false),
        ] {
            assert_eq!(acme.matches(Path::new(folder)), expected, "{folder}");
        }
        assert!(rule("match = \"~/clients/*/secret\"").unwrap().matches(Path::new("/home/me/clients/b/secret/x")));
        assert!(rule("match = \"**/secret\"").unwrap().matches(Path::new("/any/where/secret")));
    }

    #[test]
    fn a_rule_that_could_mean_anything_is_wrong() {
        for text in ["enabled = true", "match = \"clients\"", "match = \"/x\"\ndatabase = \"y.db\"", "match = 1"] {
            assert!(rule(text).is_err(), "{text}");
        }
    }
}
