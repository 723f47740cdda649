//! Pauses of recording (`nmem off`): everywhere, for a project or for a session.

use super::Projects;
use crate::config::environment;
use crate::config::pauses::{ProjectIdentity, RecordingPause};
use crate::model::{Millis, Platform, ProjectId};
use crate::store::{HOOK_WAIT, Store};

/// The scope to check for pauses: a session, its folders (current and first), and a project given by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Where<'a> {
    pub session: Option<(Platform, &'a str)>,
    pub folders: [Option<&'a str>; 2],
    pub project: Option<&'a ProjectId>,
}

/// Whether recording is paused there now. One applicable pause is enough.
pub fn is_paused(projects: &Projects, at: &Where, now: Millis) -> bool {
    pause(projects, at, now).is_some()
}

/// Returns the reason why nothing may be recorded there now; `None` if recording is on.
pub fn why_off(projects: &Projects, at: &Where, now: Millis) -> Option<String> {
    let config = projects.config;
    if let Some(name) = environment::switched_off() {
        return Some(format!("{name} disables nmem"));
    }
    if !config.enabled.value {
        return Some(format!("enabled = false ({}): nothing is recorded here", config.enabled.source));
    }
    is_paused(projects, at, now).then(|| "recording is paused here: `nmem on` resumes it".into())
}

/// Returns the pause that applies there now. If several apply, one without an end is preferred.
pub fn pause<'a>(projects: &Projects<'a>, at: &Where, now: Millis) -> Option<&'a RecordingPause> {
    let config = projects.config;
    let off: Vec<&RecordingPause> = config.switches.off.iter().filter(|off| off.holds(now)).collect();
    let places = places(projects, at, &off);
    let applicable = off.into_iter().filter(|off| off.is_about(at.session, &places));
    applicable.min_by_key(|off| off.until.is_some())
}

/// Returns the projects there if a pause needs them: identifying a project reads its repository and the store.
pub fn places(projects: &Projects, at: &Where, switches: &[&RecordingPause]) -> Vec<ProjectIdentity> {
    if !switches.iter().any(|off| off.asks_for_project()) {
        return Vec::new();
    }
    let store = Store::open_to_read(&projects.config.files.value, HOOK_WAIT).ok().flatten();
    let folders = at.folders.into_iter().flatten().map(|folder| projects.look_up(folder, store.as_ref()).known);
    let named = at.project.map(|id| projects.look_up_named(id, store.as_ref()));
    folders.chain(named).collect()
}
