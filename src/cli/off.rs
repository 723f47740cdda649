//! `nmem off`, `nmem on`: pauses recording everywhere, in a project or for a session, for a time or until resumed.

use super::output;
use super::project_argument::{ProjectArgument, open};
use crate::config::pauses::{RecordingPause, Switches, What};
use crate::config::{Config, environment};
use crate::error::{NO_PROJECT, UserError};
use crate::model::{Millis, Platform, SessionRow, StoredItem};
use crate::render::clean::line;
use crate::render::time;
use crate::runtime::FolderProject;
use crate::store::Store;
use anyhow::Result;
use std::path::PathBuf;

/// Pause recording: everywhere, in a project or for a session
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Example: nmem off 1h\n         nmem off --project\n         nmem off --session\n\nMeanwhile hooks do nothing: nothing is recorded or injected. `nmem on` resumes it. To exclude a single turn, begin the prompt with #nomem."
)]
pub struct OffArguments {
    /// For how long: 30min, 1h, 2d [default: until `nmem on`]
    #[arg(value_name = "TIME")]
    time: Option<String>,
    #[command(flatten)]
    which: Which,
}

/// Resume recording
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: nmem on\n\nEnds every pause that applies here: the general one, this project's and its sessions'. With --project or --session, only that one."
)]
pub struct OnArguments {
    #[command(flatten)]
    which: Which,
}

impl OffArguments {
    /// Moves a duration that was parsed as the value of `--session` or `--project`, as in `--session 1h`, to the time.
    fn untangled(mut self, now: Millis) -> OffArguments {
        let is_time = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && time::parse(word, now).is_ok();
        if self.time.is_some() {
            return self;
        }
        if let Some(word) = self.which.session.take_if(|word| is_time(word)) {
            self.time = Some(word);
            self.which.session = Some(String::new());
        }
        if let Some(word) = self.which.project.take_if(|p| p.to_str().is_some_and(is_time) && !p.exists()) {
            self.time = Some(word.display().to_string());
            self.which.project = Some(PathBuf::from("."));
        }
        self
    }
}

#[derive(Clone, Debug, clap::Args)]
struct Which {
    /// Only this project, or that of a folder
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", conflicts_with = "session")]
    project: Option<PathBuf>,
    /// Only this session: by id, or the one active here
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    session: Option<String>,
}

/// Pauses recording.
pub fn off(args: &OffArguments) -> Result<()> {
    let now = environment::now();
    let args = &args.clone().untangled(now);
    let until = args.time.as_deref().map(|text| until(text, now)).transpose()?;
    let here = ProjectArgument { project: args.which.project.clone() };
    let (folder, config) = here.config()?;
    let store = open(&config).ok().flatten();
    let what = match (&args.which.session, &args.which.project) {
        (Some(id), _) => session(&here, &folder, &config, id)?,
        (None, Some(_)) => project(&here.find(&folder, &config, store.as_ref()))?,
        (None, None) => What::Everything,
    };
    let off = RecordingPause { what, since: now, until };
    let mut longer = None;
    Switches::change(&config.switches_file, now, |switches| {
        let later = |a: Option<Millis>, b: Option<Millis>| b.is_some_and(|b| a.is_none_or(|a| a > b));
        let same = |o: &RecordingPause| o.what == off.what && o.holds(now);
        longer = switches.off.iter().find(|o| same(o) && later(o.until, off.until)).cloned();
        if longer.is_none() {
            switches.off.iter_mut().filter(|o| same(o)).for_each(|o| o.until = Some(now));
            switches.off.push(off.clone());
        }
    })?;
    if let Some(longer) = longer {
        return output::say(&format!(
            "Recording is already paused {}, which is longer. `nmem on` resumes it.",
            longer.describe(now)
        ));
    }
    output::say(&format!("Recording is paused {}. `nmem on` resumes it.", off.describe(now)))
}

/// Returns the end of a duration that starts now, or the given day.
fn until(text: &str, now: Millis) -> Result<Millis> {
    let wrong = || {
        UserError::usage(
            format!("`{}` is not a duration or a future time", line(text, 40)),
            "use a duration (30min, 1h, 2d) or a date (2027-01-31)",
        )
    };
    let text = match text.strip_suffix('m').filter(|n| n.chars().all(|c| c.is_ascii_digit())) {
        Some(minutes) => format!("{minutes}min"),
        None => text.to_string(),
    };
    let long = text.ends_with(|c: char| c.is_ascii_alphabetic()) && text.starts_with(|c: char| c.is_ascii_digit());
    let then = time::parse(&text, now).map_err(|_| wrong())?;
    let until = if long { now.saturating_add(now - then) } else { then };
    if until <= now { Err(wrong().into()) } else { Ok(until) }
}

/// Ends the pauses that apply here.
pub fn on(args: &OnArguments) -> Result<()> {
    let now = environment::now();
    let here = ProjectArgument { project: args.which.project.clone() };
    let (folder, config) = here.config()?;
    let store = open(&config).ok().flatten();
    let place = here.find(&folder, &config, store.as_ref());
    let id = args.which.session.as_deref().filter(|id| !id.is_empty());
    // Pauses of another project's session end only if the session is named.
    let elsewhere = |platform: &str, id: &str| {
        let session =
            Platform::from_name(platform).zip(store.as_ref()).and_then(|(p, s)| s.session_by_agent_id(p, id).ok().flatten());
        session.is_some_and(|s| s.project.as_deref() != place.row.as_ref().map(|row| row.name.as_str()))
    };
    let ends = |off: &RecordingPause| match &off.what {
        What::Everything => args.which.project.is_none() && args.which.session.is_none(),
        What::Project { .. } => args.which.session.is_none() && off.is_about(None, std::slice::from_ref(&place.known)),
        What::Session { platform, id: theirs } => {
            args.which.project.is_none() && id.map_or_else(|| !elsewhere(platform, theirs), |id| theirs.starts_with(id))
        }
    };
    let mut ended = Vec::new();
    let left = Switches::change(&config.switches_file, now, |switches| {
        for off in switches.off.iter_mut().filter(|off| off.holds(now)) {
            if ends(off) {
                ended.push(off.describe(now));
                off.until = Some(now);
            }
        }
    })?;
    match ended.is_empty() {
        true => output::say("Nothing was paused here.")?,
        false => output::say(&format!("Recording is on again; it was paused {}.", ended.join(", and ")))?,
    }
    for off in left.off.iter().filter(|off| off.holds(now)) {
        output::say(&format!("Still off {}.", off.describe(now)))?;
    }
    if !config.enabled.value {
        output::warn(&format!("enabled = false ({}): nothing is recorded here anyway", config.enabled.source));
    }
    if let Some(name) = environment::switched_off() {
        output::warn(&format!("{name} is set here: hooks that inherit it do nothing anyway"));
    }
    Ok(())
}

fn project(place: &FolderProject) -> Result<What> {
    let id = place.id.as_ref().ok_or_else(|| UserError::new(NO_PROJECT, "change into a project folder, or omit --project"))?;
    let part = id.places.iter().find(|p| place.known.keys.contains(p)).and_then(|p| p.strip_prefix("under:"));
    let root = PathBuf::from(part.unwrap_or(&id.root));
    Ok(What::Project { keys: place.known.keys.clone(), name: place.name().unwrap_or(&id.name).to_string(), root })
}

fn session(here: &ProjectArgument, folder: &std::path::Path, config: &Config, id: &str) -> Result<What> {
    let what = |platform: &str, id: &str| What::Session { platform: platform.into(), id: id.into() };
    // The agent passes the id of its session to its commands.
    if let Some(own) = environment::agent_session().filter(|_| id.is_empty()) {
        return Ok(what("claude-code", &own));
    }
    let store = open(config)?.ok_or_else(|| UserError::new("no session is recorded yet", "`nmem off 1h` stops all recording"))?;
    let found: Vec<SessionRow> = match id {
        "" => match here.find(folder, config, Some(&store)).row {
            Some(row) => store.last_sessions(row.id, 20)?.into_iter().filter(|s| s.ended_at.is_none()).collect(),
            None => Vec::new(),
        },
        id => by_id(&store, id)?,
    };
    match found.as_slice() {
        [] if id.is_empty() => Err(UserError::new("no session is active here", "use `nmem off --session ID`").into()),
        [] => {
            Err(UserError::new(format!("no session has the id {}", line(id, 80)), "`nmem context` and `nmem search` print ids")
                .into())
        }
        [one] => Ok(what(one.platform.name(), &one.agent_session_id)),
        many => {
            let ids: Vec<String> = many.iter().map(|s| format!("s{}", s.id)).collect();
            Err(UserError::new(
                format!("several sessions are active here: {}", ids.join(", ")),
                "choose one: nmem off --session s1",
            )
            .into())
        }
    }
}

fn by_id(store: &Store, id: &str) -> Result<Vec<SessionRow>> {
    match store.find(id)? {
        Some(StoredItem::Session(session)) => Ok(vec![*session]),
        _ => store.sessions_by_prefix(id),
    }
}
