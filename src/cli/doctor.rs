//! `nmem doctor`: checks everything that recording depends on; each finding comes with a remedy.

use super::output;
use super::project_argument::ProjectArgument;
use crate::config::{Config, environment};
use crate::diagnosis;
use crate::error::UserError;
use crate::import;
use crate::ingest::persist;
use crate::ingest::run::{Caller, Run};
use crate::installation;
use crate::model::{DoctorFinding, FindingLevel};
use crate::redact::Redactor;
use crate::redact_stored::OldSecrets;
use crate::render::clean::line;
use crate::render::count;
use crate::runtime::{self, redactor};
use crate::store::{PERSON_WAIT, Store};
use anyhow::Result;
use serde_json::json;

/// Maximum age of a reported hook error, in milliseconds.
const DAY: i64 = 86_400_000;

/// Check hooks, database, settings and model; suggest fixes
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: nmem doctor --fix\n\nExits with 1 while a problem remains.")]
pub struct DoctorArguments {
    /// Repair what can be repaired safely: permissions, indexes, journal, leftover files
    #[arg(long)]
    fix: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    project: ProjectArgument,
}

/// Runs the command.
pub fn run(args: &DoctorArguments) -> Result<()> {
    let folder = args.project.folder()?;
    let (config, problem) = args.project.config_and_problem(&folder)?;
    let progress = output::Progress::begin();
    let mut findings = settings(&config, problem.as_ref());
    findings.extend(installation::examine(&folder, &config.switches.installed)?);
    findings.extend(model(&config));
    let redactor = redactor(&config).unwrap_or_default();
    let run = Run::new(Caller::Program, &config, &redactor);
    let drain = |store: &mut Store| persist::drain(&run, store);
    findings.extend(diagnosis::examine(&config, &redactor, &drain, args.fix, &mut |step| progress.say(step)));
    findings.extend(old_secrets(&config, &redactor, args.fix, &mut |step| progress.say(step)));
    findings.extend(hook_errors(&config));
    findings.extend(formats(&config));
    drop(progress);
    if args.json {
        let json: Vec<_> = findings
            .iter()
            .map(|f| json!({"about": f.about, "level": f.level.name(), "what": f.what, "remedy": f.remedy, "fixed": f.fixed}))
            .collect();
        output::print(&json!({"findings": json}).to_string())?;
    } else {
        let style = output::style();
        for finding in &findings {
            output::say(&finding_line(finding, style))?;
        }
    }
    let open = findings.iter().filter(|f| f.level == FindingLevel::Problem && !f.fixed).count();
    match open {
        0 => Ok(()),
        1 => Err(UserError::new("1 problem", "see the remedy above").into()),
        n => Err(UserError::new(format!("{n} problems"), "see the remedies above").into()),
    }
}

/// Finds secrets that older redaction rules missed; with `fix`, removes them.
fn old_secrets(config: &Config, redactor: &Redactor, fix: bool, step: &mut dyn FnMut(&str)) -> Vec<DoctorFinding> {
    let files = &config.files.value;
    let searched = Store::open_to_read(files, PERSON_WAIT).and_then(|store| {
        let Some(store) = store else { return Ok(None) };
        let secrets = OldSecrets::find(&store, redactor, step)?;
        drop(store);
        if fix {
            secrets.remove(&mut Store::open(files, PERSON_WAIT)?, redactor, step)?;
        }
        Ok(Some(secrets))
    });
    let secrets = match searched {
        Ok(Some(secrets)) => secrets,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let what = format!("stored texts could not be checked: {error:#}");
            return vec![DoctorFinding::problem("secrets", what, "fix the database first")];
        }
    };
    let mut findings = Vec::new();
    if secrets.count() == 0 {
        findings.push(DoctorFinding::good("secrets", "none in stored texts"));
    } else {
        let held = format!("{} what today's rules take for a secret", count(secrets.count() as i64, "text holds", "texts hold"));
        let finding = DoctorFinding::problem("secrets", held, "--fix replaces it by a mark, in every byte");
        findings.push(if fix { finding.fixed() } else { finding });
    }
    for path in &secrets.set_aside {
        let what = format!("{} holds what today's rules take for a secret", path.display());
        findings.push(DoctorFinding::problem("secrets", what, "delete it: a broken database cannot be cleaned"));
    }
    findings
}

fn finding_line(finding: &DoctorFinding, style: crate::render::style::Style) -> String {
    let state = match (finding.level, finding.fixed) {
        (_, true) => "fixed".to_string(),
        (FindingLevel::Problem, false) => style.bad("problem"),
        (level, false) => level.name().to_string(),
    };
    let mut out = format!("{state}: {}: {}", finding.about, line(&finding.what, 400));
    if let Some(remedy) = finding.remedy.as_ref().filter(|_| !finding.fixed) {
        out += &format!("\n  {}", style.faint(&line(remedy, 300)));
    }
    out
}

fn settings(config: &Config, problem: Option<&anyhow::Error>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if let Some(problem) = problem {
        findings.push(DoctorFinding::problem("settings", format!("{problem:#}"), "fix it; until then hooks record nothing"));
    }
    for key in &config.unknown {
        let what = format!("{}: `{key}` is not a known setting", config.file.display());
        findings.push(DoctorFinding::note("settings", what, "`nmem status --settings` lists all settings"));
    }
    let now = environment::now();
    for switch in config.switches.off.iter().filter(|off| off.holds(now)) {
        findings.push(DoctorFinding::note(
            "settings",
            format!("recording is paused {}", switch.describe(now)),
            "`nmem on` resumes it",
        ));
    }
    for (path, error) in config.wishes.iter().filter_map(|w| Some((&w.path, w.table.as_ref().err()?))) {
        let what = format!("{} can't be read: {error}", path.display());
        findings.push(DoctorFinding::problem("settings", what, "fix it; until then nothing is recorded there"));
    }
    if !config.enabled.value {
        let what = format!("enabled = false ({}): nothing is recorded here", config.enabled.source);
        findings.push(DoctorFinding::note("settings", what, "set enabled = true, or add a [[folder]] rule"));
    }
    if let Some(name) = environment::switched_off() {
        findings.push(DoctorFinding::note(
            "settings",
            format!("{name} is set: hooks that inherit it do nothing. In Codex's terminal interface, a background process runs the hooks; it keeps the environment of its first start"),
            format!("unset {name}; to stop recording in Codex, use `nmem off`"),
        ));
    }
    for wishes in config.wishes.iter().filter(|w| !w.waiting().is_empty()) {
        let what = format!("{} asks for {}", wishes.path.display(), wishes.waiting().join(", "));
        findings.push(DoctorFinding::note("settings", what, "`nmem trust` shows and approves them"));
    }
    if findings.is_empty() {
        let file = if config.file.exists() { config.file.display().to_string() } else { "the defaults".to_string() };
        findings.push(DoctorFinding::good("settings", file));
    }
    findings
}

/// Checks that the configured model can be called, without a call, since a call costs money.
fn model(config: &Config) -> Option<DoctorFinding> {
    let destination = config.llm.destination()?;
    Some(match config.llm.endpoints(&config.files.value) {
        Ok(all) => {
            let models = all.iter().map(|to| to.model.as_str()).filter(|model| !model.is_empty()).collect::<Vec<_>>().join(", ");
            let what = if models.is_empty() { destination } else { format!("{models} by {destination}") };
            DoctorFinding::good("model", what)
        }
        Err(error) => {
            let failure = crate::error::explain(&error);
            DoctorFinding::problem("model", failure.what, failure.hint.unwrap_or_else(|| "fix [llm] in the config file".into()))
        }
    })
}

/// Names session files with content that nmem was not written for: the agent is newer than this nmem.
fn formats(config: &Config) -> Vec<DoctorFinding> {
    let finding = |drift: import::Drift| {
        let (agent, path) = (drift.platform.title(), drift.path.display());
        let version = drift.version.map(|version| format!("version {version} of its format, which nmem has not seen"));
        let share = 100 * drift.unknown / drift.lines.max(1);
        let kinds = drift.kinds.iter().take(5).map(|kind| line(kind, 40)).collect::<Vec<_>>().join(", ");
        let unknown = (drift.unknown > 0).then(|| format!("{share} % of lines of a kind that nmem does not know ({kinds})"));
        let has = version.into_iter().chain(unknown).collect::<Vec<_>>().join(", and ");
        let what = format!("the newest session of {agent} has {has}: {path}");
        DoctorFinding::note("formats", what, "a newer nmem may know it; until then an import may miss something")
    };
    import::drift(config.home.as_deref()).into_iter().map(finding).collect()
}

fn hook_errors(config: &Config) -> Vec<DoctorFinding> {
    let now = environment::now();
    let recent: Vec<_> = runtime::last_errors(&config.files.value, 100).into_iter().filter(|e| now - e.at < DAY).collect();
    let Some(last) = recent.first() else { return vec![DoctorFinding::good("hooks", "no errors in the last day")] };
    let what = format!("{} errors in the last day; the latest: {}", recent.len(), last.message);
    vec![DoctorFinding::note("hooks", what, "`nmem status` shows more")]
}
