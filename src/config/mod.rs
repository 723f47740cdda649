//! Settings. Files: `setting` (a value with its source), `settings` (all of them) and `table` (a row for each: who may set it; the config file), `folders` (folder
//! rules and `.nmem.toml`), `llm` (providers and their limits), `pauses` (switches and pauses of recording), `environment` (variables, clock, folders of agents).

pub mod environment;
pub mod folders;
pub mod llm;
pub mod pauses;
mod setting;
mod settings;
pub mod table;

pub use setting::{CONTEXT_BYTES_MAX, Inject, Setting, SettingSource};
pub use settings::Config;
pub use table::ListedSetting;

use crate::error::UserError;
use crate::files;
use crate::model::{Files, Provider, Share};
use anyhow::Result;
use folders::{Rule, Wishes, expanded};
use pauses::Switches;
use sha2::{Digest, Sha256};
use std::io;
use std::path::Path;

/// Maximum bytes of a config file.
const CONFIG_BYTES: u64 = 256 * 1024;
/// Returns the files of the default database, used unless a folder rule names another one. Needs no config file.
pub fn files() -> Result<Setting<Files>> {
    let (db, own, source) = match environment::path("NMEM_DB")? {
        Some(db) => (db, false, SettingSource::Environment("NMEM_DB")),
        None => (environment::data_folder()?.join("nmem.db"), true, SettingSource::Default),
    };
    Ok(Setting { value: with_spare_places(Files::of(db, own)), source })
}

/// Adds the fallback spools. Outside the data folder, a spool's name contains a hash of the database's path, so that
/// events of different databases never mix.
fn with_spare_places(mut files: Files) -> Files {
    let hash = Sha256::digest(files.db.as_os_str().as_encoded_bytes());
    let name: String = hash[..8].iter().map(|b| format!("{b:02x}")).collect();
    files.spools.extend(environment::spare_folders().into_iter().map(|folder| folder.join(format!("{name}-spool"))));
    files
}

/// Reads all settings for the given folders: the one in which a session started, and the one in which it works now.
/// Without folders, reads the general settings.
pub fn load(folders: &[&Path]) -> Result<Config> {
    let (config, problem) = load_what_can_be(folders)?;
    problem.map_or(Ok(config), Err)
}

/// Reads all settings. If a file is unreadable, returns defaults and the error; commands that only read continue with
/// the defaults.
pub fn load_what_can_be(folders: &[&Path]) -> Result<(Config, Option<anyhow::Error>)> {
    let named = environment::path("NMEM_CONFIG")?;
    let file = match &named {
        Some(path) => path.clone(),
        None => environment::config_folder()?.join("config.toml"),
    };
    let mut config = Config::defaults(file, files()?, &environment::data_folder()?, environment::home());
    let read = match files::whole_text(&config.file, CONFIG_BYTES) {
        Ok(text) => table::apply(&mut config, &text),
        Err(e) if named.is_none() && matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        Err(e) => Err(e.to_string()),
    };
    if let Some(url) = environment::team_database() {
        config.team.url = Setting { value: Some(url), source: SettingSource::Environment(environment::TEAM_DATABASE) };
    }
    let mut problem = read.err().map(|e| unreadable(&config.file, &e));
    match Switches::load(&config.switches_file) {
        Ok(switches) => config.switches = switches,
        Err(error) => problem = problem.or(Some(error)),
    }
    // Recording is off if it is off for any of the folders.
    let (everywhere, mut off) = (config.enabled.clone(), None);
    for folder in folders {
        config.enabled = everywhere.clone();
        problem = problem.or(config.narrow(folder).err());
        off = off.or(Some(config.enabled.clone()).filter(|enabled| !enabled.value));
    }
    config.enabled = off.unwrap_or(config.enabled);
    crate::languages::switch_on(&config.rule_languages.value);
    Ok((config, problem))
}

fn unreadable(path: &Path, why: &str) -> anyhow::Error {
    let what = format!("{}: {}", path.display(), why.split_whitespace().collect::<Vec<_>>().join(" "));
    UserError::new(what, "fix it; until then hooks record nothing").into()
}

/// Sets a value in the user's config file, `TABLE.KEY`; other lines and comments stay.
///
/// # Errors
///
/// A [`UserError`] if the file cannot be written, or if its form does not take the line.
pub fn set_in_file(file: &Path, name: &str, value: &str) -> Result<()> {
    let text = match files::whole_text(file, CONFIG_BYTES) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(unreadable(file, &e.to_string())),
    };
    let (table, key) = name.split_once('.').unwrap_or(("", name));
    let by_hand = || {
        let what = format!("{} was left alone: its form does not take `{key}` in [{table}]", file.display());
        UserError::new(what, format!("write `{key} = {value}` into [{table}] yourself"))
    };
    let with = with_line(&text, table, key, &format!("{key} = {value}"));
    let parsed = table::parsed(&with).map_err(|_| by_hand())?;
    let is_set = parsed.get(table).and_then(|table| table.get(key)).is_some_and(|now| now.to_string() == value);
    if !is_set {
        return Err(by_hand().into());
    }
    if let Some(folder) = file.parent() {
        files::make_folder(folder)?;
    }
    // A link to a file elsewhere stays a link.
    files::replace_private(&files::resolved(file), &with).map_err(|e| unreadable(file, &e.to_string()))
}

/// A TOML text in which a line of a table is replaced or added.
fn with_line(text: &str, table: &str, key: &str, line: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let header = format!("[{table}]");
    let is_header = |line: &String| line.split('#').next().unwrap_or_default().trim() == header;
    let Some(start) = lines.iter().position(is_header) else {
        let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{end}{gap}{header}\n{line}\n");
    };
    let end =
        lines[start + 1..].iter().position(|line| line.trim_start().starts_with('[')).map_or(lines.len(), |at| start + 1 + at);
    let is_key = |line: &String| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
    match lines[start + 1..end].iter().position(is_key) {
        Some(at) => {
            let old = &mut lines[start + 1 + at];
            // A comment behind the value stays, unless the value itself may hold the mark.
            let comment = old.split_once(" #").filter(|(value, _)| value.matches(['"', '\'']).count() % 2 == 0);
            *old = comment.map_or(line.to_string(), |(_, comment)| format!("{line} #{comment}"));
        }
        None => lines.insert(start + 1, line.to_string()),
    }
    lines.join("\n") + "\n"
}

impl Config {
    /// Applies the settings of one folder on top of the general ones. The user's folder rule has the last word, except
    /// that a repository may still reduce what nmem does. The database of an earlier folder is kept unless this folder
    /// has its own.
    fn narrow(&mut self, folder: &Path) -> Result<()> {
        let wishes = folders::find(folder, &self.switches);
        // The innermost file wins.
        for wishes in wishes.iter().rev() {
            if let (true, Ok(table)) = (wishes.trusted, &wishes.table) {
                self.apply_trusted(wishes, table).map_err(|e| unreadable(&wishes.path, &e))?;
            }
        }
        if let Some(rule) = self.rule(folder).cloned() {
            self.apply_rule(&rule).map_err(|e| unreadable(&self.file, &e))?;
            if let Some(name) = &rule.project {
                self.project = Setting { value: Some(name.clone()), source: rule.source() };
            }
            if let Some(provider) = rule.provider {
                self.llm.provider = Setting { value: provider, source: rule.source() };
            }
            if rule.provider == Some(Provider::None) {
                self.embeddings.switch_off(rule.source());
            }
            if let Some(db) = rule.database.clone().filter(|_| !matches!(self.files.source, SettingSource::Environment(_))) {
                self.files = Setting { value: with_spare_places(Files::of(db, false)), source: rule.source() };
            }
        }
        if let Some((wishes, tag)) = wishes.iter().find_map(|w| Some((w, w.language()?))) {
            self.language = Setting { value: tag.to_string(), source: SettingSource::Repository(wishes.path.clone()) };
        }
        if let Some((wishes, name)) = wishes.iter().find_map(|w| Some((w, w.domain()?))) {
            self.domain = Setting { value: Some(name.to_string()), source: SettingSource::Repository(wishes.path.clone()) };
        }
        if let Some(wishes) = wishes.iter().find(|w| w.off()) {
            self.enabled = Setting { value: false, source: SettingSource::Repository(wishes.path.clone()) };
        }
        self.wishes
            .extend(wishes.into_iter().filter(|new| self.wishes.iter().all(|old| old.path != new.path)).collect::<Vec<_>>());
        Ok(())
    }

    /// Returns the default database and every database that a rule names.
    pub fn databases(&self) -> Result<Vec<Files>> {
        let mut all = vec![files()?.value];
        for db in self.folders.iter().filter_map(|rule| rule.database.clone()) {
            if all.iter().all(|files| files.db != db) {
                all.push(with_spare_places(Files::of(db, false)));
            }
        }
        Ok(all)
    }

    /// Finds the rule for a folder, by its given path or its real path.
    fn rule(&self, folder: &Path) -> Option<&Rule> {
        if self.folders.is_empty() {
            return None;
        }
        let real = files::canonical(folder).ok();
        self.folders.iter().find(|rule| rule.matches(folder) || real.as_deref().is_some_and(|real| rule.matches(real)))
    }

    /// Returns the project name set by hand for a folder. It may be any folder, not only one that this run was loaded
    /// for, because spooled events may come from any.
    pub fn project_named(&self, folder: &Path) -> Option<String> {
        if let Some(name) = self.rule(folder).and_then(|rule| rule.project.clone()) {
            return Some(name);
        }
        if self.switches.trusted.is_empty() {
            return None;
        }
        let wishes = folders::find(folder, &self.switches);
        let name = |w: &Wishes| w.table.as_ref().ok()?.get("project")?.as_str().map(String::from);
        wishes.iter().filter(|w| w.trusted).find_map(name)
    }

    /// Returns with whom a project is shared, by the user's choice for it, or else by a folder rule.
    pub fn share_of(&self, chosen: Option<Share>, folder: &Path) -> Share {
        chosen.or_else(|| self.rule(folder)?.share).unwrap_or(Share::None)
    }

    /// Returns the patterns of `ignore`. A pattern that starts with `~/` is included in each form that a command may
    /// use.
    pub fn ignored(&self) -> Vec<String> {
        let forms = |pattern: &String| match pattern.strip_prefix("~/") {
            Some(rest) => vec![expanded(pattern, self.home.as_deref()), pattern.clone(), format!("$HOME/{rest}")],
            None => vec![pattern.clone()],
        };
        self.ignore.value.iter().flat_map(forms).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_value_is_set_in_the_file_and_everything_else_stays() {
        let with = |text: &str| with_line(text, "llm", "provider", "provider = \"agent\"");
        assert_eq!(with(""), "[llm]\nprovider = \"agent\"\n");
        assert_eq!(with("inject = \"all\""), "inject = \"all\"\n\n[llm]\nprovider = \"agent\"\n");
        assert_eq!(
            with("[llm] # mine\nmodel = \"m\"\nprovider = \"none\" # not now\n[team]\nprovider = 1\n"),
            "[llm] # mine\nmodel = \"m\"\nprovider = \"agent\" # not now\n[team]\nprovider = 1\n"
        );
        assert_eq!(with("[llm]\n[team]\nname = \"a\"\n"), "[llm]\nprovider = \"agent\"\n[team]\nname = \"a\"\n");
        let folder = std::env::temp_dir().join(format!("nmem-set-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("config.toml");
        std::fs::write(&file, "llm = { provider = \"none\" }\n").unwrap();
        let error = set_in_file(&file, "llm.provider", "\"agent\"").unwrap_err().to_string();
        assert!(error.contains("was left alone"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "llm = { provider = \"none\" }\n");
        std::fs::remove_file(&file).unwrap();
        set_in_file(&file, "agent_notes.ask", "true").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[agent_notes]\nask = true\n");
        #[cfg(unix)]
        {
            let link = folder.join("link.toml");
            std::os::unix::fs::symlink(&file, &link).unwrap();
            set_in_file(&link, "agent_notes.ask", "false").unwrap();
            assert!(link.is_symlink(), "a link to a file elsewhere stays one");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "[agent_notes]\nask = false\n");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn applied(text: &str) -> std::result::Result<Config, String> {
        let files = Setting::default(Files::of(PathBuf::from("/x/nmem.db"), false));
        let mut config = Config::defaults(PathBuf::new(), files, Path::new("/x"), Some(PathBuf::from("/home/me")));
        table::apply(&mut config, text).map(|()| config)
    }

    #[test]
    fn what_the_file_says_counts_and_is_known_to_come_from_it() {
        let config = applied("inject = \"start\"\nskip_tools = [\"A\"]\n[llm]\nprovider = \"none\"\ntemperature = 1\n").unwrap();
        assert_eq!((config.inject.value, config.inject.source), (Inject::Start, SettingSource::File));
        assert_eq!(config.enabled.source, SettingSource::Default);
        assert_eq!(config.unknown, ["llm.temperature"]);
    }

    #[test]
    fn errors_name_the_line_or_the_key_and_what_it_must_be() {
        let error = |text: &str| applied(text).map(|_| ()).unwrap_err();
        assert!(error("enabled = true\ninject =").starts_with("line 2: "));
        assert_eq!(error("enabled = 1"), "`enabled` must be true or false, not 1");
        assert!(error("[retention]\ntool_uses_days = -1").contains("`retention.tool_uses_days` must be a number of days"));
        assert!(error("context_bytes = 90000").contains("from 500 to 9000"));
        assert!(error("folder = 1").contains("[[folder]]"));
    }

    #[cfg(unix)]
    #[test]
    fn the_first_rule_that_matches_counts() {
        let text =
            "[[folder]]\nmatch = \"~/a/b/**\"\nenabled = false\n[[folder]]\nmatch = \"~/a/**\"\nproject = \"acme\"\nevil = 1\n";
        let mut config = applied(text).unwrap();
        assert_eq!(config.unknown, ["folder.evil"]);
        assert_eq!(config.rule(Path::new("/home/me/a/b/c")).unwrap().settings, [("enabled", toml::Value::Boolean(false))]);
        let folder = Path::new("/home/me/a/c");
        config.narrow(folder).unwrap();
        assert_eq!(config.project.value.as_deref(), Some("acme"));
        assert_eq!(config.project.source, SettingSource::Folder("/home/me/a/**".into()));
    }
}
