//! Whether the user switched recording off (`nmem off`): for everything, for a project, or for a session.

use super::Projects;
use crate::config::switches::{Known, Off};
use crate::model::{Millis, Platform, ProjectId};
use crate::store::{HOOK_WAIT, Store};

/// Where something happens: in a session, in folders (its own, and where it began), and in a project that is named.
#[derive(Clone, Copy, Debug, Default)]
pub struct Where<'a> {
    pub session: Option<(Platform, &'a str)>,
    pub folders: [Option<&'a str>; 2],
    pub project: Option<&'a ProjectId>,
}

/// Tells whether recording is off there now: one of them that is off is enough.
pub fn is_paused(projects: &Projects, at: &Where, now: Millis) -> bool {
    let off: Vec<&Off> = projects.config.switches.off.iter().filter(|off| off.holds(now)).collect();
    let places = places(projects, at, &off);
    off.iter().any(|off| off.is_about(at.session, &places))
}

/// The projects there, if one of the switches asks for them: to know a project takes a look at its repository and at the
/// store.
pub fn places(projects: &Projects, at: &Where, switches: &[&Off]) -> Vec<Known> {
    if !switches.iter().any(|off| off.asks_for_project()) {
        return Vec::new();
    }
    let store = Store::open_to_read(&projects.config.files.value, HOOK_WAIT).ok().flatten();
    let folders = at.folders.into_iter().flatten().map(|folder| projects.look_up(folder, store.as_ref()).known);
    let named = at.project.map(|id| projects.look_up_named(id, store.as_ref()));
    folders.chain(named).collect()
}
