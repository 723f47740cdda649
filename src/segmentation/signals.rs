//! Signals of a boundary before a step: cheap numbers, roughly from 0 to 1, weighted in `boundary_weights.rs`.

use super::window::{Terms, Window, merged, sum};

/// A signal, and its meaning for and against a boundary.
#[derive(Debug)]
pub struct Signal {
    pub name: &'static str,
    pub high: &'static str,
    pub low: &'static str,
}

macro_rules! signals {
    ($($index:ident $name:literal $high:literal $low:literal)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Index { $($index),* }
        /// All signals, in the order of [`Values`].
        pub const SIGNALS: &[Signal] = &[$(Signal { name: $name, high: $high, low: $low }),*];
    };
}

signals! {
    Length "prompt_length" "a long prompt" "a short prompt"
    Shift "shift_words" "words of a change (now, next, another)" "no words of a change"
    Pause "pause" "a long pause before it" "no pause before it"
    Committed "committed_before" "a commit right before it" "no commit right before it"
    Pushed "pushed_before" "a push right before it" "no push right before it"
    Passed "tests_passed_before" "tests passed right before it" "no tests passed right before it"
    UnitSize "unit_size" "much work in the unit so far" "little work in the unit so far"
    NewWords "new_words" "words that are new in this session" "words known in this session"
    WordsOfAnswer "words_of_last_answer" "words of the agent's last answer" "words that the agent's last answer had not"
    NamesOfUnit "names_of_unit" "names known in the unit" "names unknown to the unit"
    Continues "continues" "it begins like a continuation (yes, ok, go on)" "it does not begin like a continuation"
    WorkWords "work_words_known" "its work is about what the unit is about" "its work is about other things"
    Valley "valley" "the subject changes right here" "the subject does not change here"
    Files "files_known" "files of the unit" "other files"
    AgainstUsual "work_against_usual" "as much like the work before as is usual here" "less like the work before than is usual here"
    WorkSize "work_size" "much work on it" "little work on it"
    Looks "investigates" "its work investigates" "its work does not investigate"
    FollowingNames "following_names_known" "what follows names what the unit names" "what follows names other things"
    SidesAgainstUsual "sides_against_usual" "both sides more alike than usual here" "both sides less alike than usual here"
    FollowingWithIt "following_with_it" "what follows belongs to it, not to the unit" "what follows belongs to the unit"
}

/// Returns the meanings of a signal by its name: for a boundary, and against.
pub fn signal_meaning(name: &str) -> Option<(&'static str, &'static str)> {
    SIGNALS.iter().find(|signal| signal.name == name).map(|signal| (signal.high, signal.low))
}

/// Values of all signals at one candidate.
pub type Values = [f32; SIGNALS.len()];

/// Index of the first work signal; the ones before are known when the prompt arrives.
pub const WORK: usize = Index::WorkWords as usize;

/// Number of a unit's last steps that are compared with what follows.
const UNIT_STEPS: usize = 8;
/// Weights of the following steps.
const FOLLOWING: [f32; 3] = [1.0, 0.8, 0.6];
/// Typical similarity of consecutive work, until the session shows its own.
const USUAL: f32 = 0.25;

/// Signals of a boundary before step `at`, in a unit that begins with step `from`; work signals only if the work is
/// known.
pub(super) fn signals(window: &Window, from: usize, at: usize, work_known: bool) -> Values {
    let mut values = [0.0; SIGNALS.len()];
    before(window, from, at, &mut values);
    prompt(window, from, at, &mut values);
    if work_known {
        work(window, from, at, &mut values);
    }
    values
}

fn flag(value: bool) -> f32 {
    f32::from(u8::from(value))
}

/// Signals known before the prompt: the state of the unit.
fn before(window: &Window, from: usize, at: usize, values: &mut Values) {
    let mut set = |index: Index, value: f32| values[index as usize] = value;
    let last = &window.steps[at - 1];
    let pause = (window.steps[at].at - last.until).max(0) as f32 / 1000.0;
    set(Index::Pause, pause.max(1.0).ln() / 10.0);
    set(Index::Committed, flag(last.commits > 0));
    set(Index::Pushed, flag(last.pushes > 0));
    set(Index::Passed, flag(last.passes > 0 && !last.failed_last));
    let tool_uses = window.steps[from..at].iter().map(|step| f64::from(step.tool_uses)).sum::<f64>() as f32;
    set(Index::UnitSize, tool_uses.ln_1p() / 4.0);
}

/// Signals of the prompt.
fn prompt(window: &Window, from: usize, at: usize, values: &mut Values) {
    let mut set = |index: Index, value: f32| values[index as usize] = value;
    let Some(prompt_features) = &window.steps[at].prompt_features else { return };
    set(Index::Length, f32::from(prompt_features.words.min(120)).ln_1p() / 4.0);
    set(Index::Shift, f32::from(prompt_features.shift_words.min(2)) / 2.0);
    set(Index::Continues, flag(prompt_features.continues));
    let (words, names) = (&window.prompt_words[at], &window.prompt_names[at]);
    let (unit, session) = (window.seen(from..at), window.seen(0..at));
    set(Index::NewWords, window.known(words, |id| session[id as usize]).map_or(0.0, |known| 1.0 - known));
    let stands = |terms: &Terms, id: u32| terms.binary_search_by_key(&id, |t| t.0).is_ok();
    set(Index::WordsOfAnswer, window.known(words, |id| stands(&window.answer_words[at - 1], id)).unwrap_or(0.3));
    set(Index::NamesOfUnit, window.known(names, |id| unit[id as usize]).unwrap_or(0.5));
}

/// Signals of the work on the step and after it.
fn work(window: &Window, from: usize, at: usize, values: &mut Values) {
    let mut set = |index: Index, value: f32| values[index as usize] = value;
    let (step, end) = (&window.steps[at], window.steps.len());
    let alike = |a: &Terms, b: &Terms| window.alike(a, b).unwrap_or(-1.0);
    let unit_from = from.max(at.saturating_sub(UNIT_STEPS));
    let (unit, recent) = (sum(&window.words, unit_from..at), sum(&window.words, from.max(at.saturating_sub(3))..at));
    let to_recent = alike(&window.words[at], &recent);
    let usual: Vec<f32> = (from + 1..at).rev().take(4).map(|step| window.to_recent(step)).collect();
    set(Index::AgainstUsual, to_recent - (usual.iter().sum::<f32>() + USUAL) / (usual.len() as f32 + 1.0));
    let seen = window.seen(from..at);
    set(Index::WorkWords, window.known(&window.words[at], |id| seen[id as usize]).unwrap_or(0.5));
    let following = window.names[at..end.min(at + FOLLOWING.len())].iter().zip(FOLLOWING);
    let following = following.fold(Terms::new(), |sum, (terms, weight)| merged(&sum, terms, weight));
    let names = sum(&window.names, unit_from..at);
    set(Index::FollowingNames, alike(&following, &names).max(0.0));
    set(Index::SidesAgainstUsual, window.sides(at) - window.usual_sides());
    set(Index::Valley, window.valley(at));
    if at + 1 < end {
        let after = sum(&window.words, at + 1..end.min(at + 3));
        set(Index::FollowingWithIt, alike(&after, &window.words[at]) - alike(&after, &unit));
    }
    let of_unit: Vec<u32> = window.steps[from..at].iter().flat_map(|step| step.files.iter().copied()).collect();
    let shared = match (step.files.is_empty(), of_unit.is_empty()) {
        (false, false) => step.files.iter().filter(|file| of_unit.contains(file)).count() as f32 / step.files.len() as f32,
        _ => 0.4,
    };
    set(Index::Files, shared);
    set(Index::WorkSize, (step.tool_uses as f32).ln_1p() / 4.0);
    set(Index::Looks, step.looks as f32 / step.tool_uses.max(1) as f32);
}
