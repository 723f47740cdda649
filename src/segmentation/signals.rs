//! Signals of a boundary before a step: cheap numbers, roughly from 0 to 1, weighted in `weights.rs`.

use super::step::Step;
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
    PauseHere "pause_relative" "a longer pause than usual here" "a shorter pause than usual here"
    Committed "committed_before" "a commit right before it" "no commit right before it"
    Pushed "pushed_before" "a push right before it" "no push right before it"
    Passed "tests_passed_before" "tests passed right before it" "no tests passed right before it"
    Done "said_done_before" "the agent had said that it is done" "the agent had not said that it is done"
    Failures "failures_before" "failures in the unit so far" "hardly a failure in the unit so far"
    UnitSize "unit_size" "much work in the unit so far" "little work in the unit so far"
    NewWords "new_words" "words that are new in this session" "words known in this session"
    WordsOfUnit "words_of_unit" "words of the unit" "words foreign to the unit"
    WordsOfLast "words_of_last_step" "words of the step before" "words foreign to the step before"
    WordsOfAnswer "words_of_last_answer" "words of the agent's last answer" "words that the agent's last answer had not"
    NamesOfUnit "names_of_unit" "names known in the unit" "names unknown to the unit"
    NewNames "new_names" "several names unknown to the unit" "hardly a name unknown to the unit"
    NewName "any_new_name" "a name unknown to the unit" "no name unknown to the unit"
    AgentAsked "agent_asked" "the agent had asked something" "the agent had not asked anything"
    AskedAndLong "agent_asked_long_reply" "a long reply to the agent's question" "no long reply to a question"
    Talk "talk_before" "no tools in the step before" "tools in the step before"
    Orders "orders" "it orders something" "it orders nothing"
    Question "question" "a question" "no question"
    Chore "chore" "a chore (commit, tests, docs)" "no chore"
    Continues "continues" "it begins like a continuation (yes, ok, go on)" "it does not begin like a continuation"
    WordsOfRecent "words_of_recent_steps" "words of one of the last steps" "words foreign to the last steps"
    Opens "opening_words" "it begins with now, next, question, another" "no such opening"
    Answers "short_answer" "a short answer" "more than a short answer"
    Wishes "wish" "it says what is wanted (I'd like, let's)" "no wish is said"
    WorkLikeRecent "work_like_recent" "its work is like the work before" "its work is unlike the work before"
    WorkWords "work_words_known" "its work is about what the unit is about" "its work is about other things"
    WorkNames "work_names_known" "its work names what the unit names" "its work names other things"
    FollowingLikeUnit "following_like_unit" "what follows is like the unit" "what follows is unlike the unit"
    SidesAlike "sides_alike" "both sides are alike" "both sides are unlike"
    Valley "valley" "the subject changes right here" "the subject does not change here"
    Files "files_known" "files of the unit" "other files"
    AgainstUsual "work_against_usual" "as much like the work before as is usual here" "less like the work before than is usual here"
    Return "like_earlier_unit" "more like an earlier unit than like this one" "not like an earlier unit"
    WorkSize "work_size" "much work on it" "little work on it"
    Looks "investigates" "its work investigates" "its work does not investigate"
    FollowingNames "following_names_known" "what follows names what the unit names" "what follows names other things"
    FollowingFiles "following_files_known" "what follows touches files of the unit" "what follows touches other files"
    SidesAgainstUsual "sides_against_usual" "both sides more alike than usual here" "both sides less alike than usual here"
    FollowingWithIt "following_with_it" "what follows belongs to it, not to the unit" "what follows belongs to the unit"
    Lowest "lowest_here" "the lowest place around" "not the lowest place around"
}

/// Returns the meanings of a signal by its name: for a boundary, and against.
pub fn signal_meaning(name: &str) -> Option<(&'static str, &'static str)> {
    SIGNALS.iter().find(|signal| signal.name == name).map(|signal| (signal.high, signal.low))
}

/// Values of all signals at one candidate.
pub type Values = [f32; SIGNALS.len()];

/// Index of the first work signal; the ones before are known when the prompt arrives.
pub const WORK: usize = Index::WorkLikeRecent as usize;

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
    let (steps, unit) = (window.steps, &window.steps[from..at]);
    let last = &steps[at - 1];
    let pause = |at: usize| (steps[at].at - steps[at - 1].until).max(0) as f32 / 1000.0;
    set(Index::Pause, pause(at).max(1.0).ln() / 10.0);
    let mut pauses: Vec<f32> = (1..at).map(pause).collect();
    pauses.sort_by(f32::total_cmp);
    let usual = pauses.get(pauses.len() / 2).copied().unwrap_or(60.0);
    set(Index::PauseHere, ((pause(at) + 10.0) / (usual + 10.0)).ln().clamp(-4.0, 4.0) / 4.0);
    set(Index::Committed, flag(last.commits > 0));
    set(Index::Pushed, flag(last.pushes > 0));
    set(Index::Passed, flag(last.passes > 0 && !last.failed_last));
    set(Index::Done, flag(last.says_done));
    set(Index::Failures, total(unit, |step| step.failures).ln_1p() / 3.0);
    set(Index::UnitSize, total(unit, |step| step.tool_uses).ln_1p() / 4.0);
    set(Index::Talk, flag(last.tool_uses == 0));
    set(Index::AgentAsked, flag(last.asks));
}

fn total(steps: &[Step], count: impl Fn(&Step) -> u32) -> f32 {
    steps.iter().map(|step| f64::from(count(step))).sum::<f64>() as f32
}

/// Signals of the prompt.
fn prompt(window: &Window, from: usize, at: usize, values: &mut Values) {
    let mut set = |index: Index, value: f32| values[index as usize] = value;
    let Some(prompt_features) = &window.steps[at].prompt_features else { return };
    let last = &window.steps[at - 1];
    set(Index::Length, f32::from(prompt_features.words.min(120)).ln_1p() / 4.0);
    set(Index::Shift, f32::from(prompt_features.shift_words.min(2)) / 2.0);
    set(Index::AskedAndLong, flag(last.asks && prompt_features.words > 12));
    set(Index::Orders, flag(prompt_features.orders));
    set(Index::Question, flag(prompt_features.question));
    set(Index::Chore, flag(prompt_features.chore));
    set(Index::Continues, flag(prompt_features.continues));
    set(Index::Opens, flag(prompt_features.opens));
    set(Index::Answers, flag(prompt_features.answers));
    set(Index::Wishes, flag(prompt_features.wishes));
    let (words, names) = (&window.prompt_words[at], &window.prompt_names[at]);
    let known = |seen: &[bool]| window.known(words, |id| seen[id as usize]);
    let (unit, session) = (window.seen(from..at), window.seen(0..at));
    set(Index::NewWords, known(&session).map_or(0.0, |known| 1.0 - known));
    set(Index::WordsOfUnit, known(&unit).unwrap_or(0.6));
    set(Index::WordsOfLast, known(&window.seen(at - 1..at)).unwrap_or(0.4));
    let stands = |terms: &Terms, id: u32| terms.binary_search_by_key(&id, |t| t.0).is_ok();
    set(Index::WordsOfAnswer, window.known(words, |id| stands(&window.answer_words[at - 1], id)).unwrap_or(0.3));
    let recent = (from.max(at.saturating_sub(3))..at).filter_map(|step| known(&window.seen(step..step + 1)));
    set(Index::WordsOfRecent, recent.reduce(f32::max).unwrap_or(0.5));
    set(Index::NamesOfUnit, window.known(names, |id| unit[id as usize]).unwrap_or(0.5));
    let new = names.iter().filter(|(id, _)| !unit[*id as usize]).count();
    set(Index::NewNames, (new.min(5) as f32).ln_1p());
    set(Index::NewName, flag(new > 0));
}

/// Signals of the work on the step and after it.
fn work(window: &Window, from: usize, at: usize, values: &mut Values) {
    let mut set = |index: Index, value: f32| values[index as usize] = value;
    let (step, end) = (&window.steps[at], window.steps.len());
    let alike = |a: &Terms, b: &Terms| window.alike(a, b).unwrap_or(-1.0);
    let unit_from = from.max(at.saturating_sub(UNIT_STEPS));
    let (unit, recent) = (sum(&window.words, unit_from..at), sum(&window.words, from.max(at.saturating_sub(3))..at));
    let to_recent = alike(&window.words[at], &recent);
    set(Index::WorkLikeRecent, to_recent);
    let usual: Vec<f32> = (from + 1..at).rev().take(4).map(|step| window.to_recent(step)).collect();
    set(Index::AgainstUsual, to_recent - (usual.iter().sum::<f32>() + USUAL) / (usual.len() as f32 + 1.0));
    let seen = window.seen(from..at);
    let known = |terms: &Terms| window.known(terms, |id| seen[id as usize]);
    set(Index::WorkWords, known(&window.words[at]).unwrap_or(0.5));
    set(Index::WorkNames, known(&window.names[at]).unwrap_or(0.5));
    let following = |of: &[Terms]| {
        let steps = of[at..end.min(at + FOLLOWING.len())].iter().zip(FOLLOWING);
        steps.fold(Terms::new(), |sum, (terms, weight)| merged(&sum, terms, weight))
    };
    set(Index::FollowingLikeUnit, alike(&following(&window.words), &unit));
    let names = sum(&window.names, unit_from..at);
    set(Index::FollowingNames, alike(&following(&window.names), &names).max(0.0));
    set(Index::SidesAlike, window.sides(at));
    set(Index::SidesAgainstUsual, window.sides(at) - window.usual_sides());
    set(Index::Valley, window.valley(at));
    let around = at.saturating_sub(2).max(1)..end.min(at + 3);
    set(Index::Lowest, flag(around.into_iter().all(|place| window.sides(place) >= window.sides(at))));
    let best = |range: std::ops::Range<usize>| {
        range.map(|other| alike(&window.words[at], &window.words[other]).max(0.0)).fold(0.0, f32::max)
    };
    set(Index::Return, if from == 0 { 0.0 } else { best(0..from) - best(unit_from..at) });
    if at + 1 < end {
        let after = sum(&window.words, at + 1..end.min(at + 3));
        set(Index::FollowingWithIt, alike(&after, &window.words[at]) - alike(&after, &unit));
    }
    let of_unit: Vec<u32> = window.steps[from..at].iter().flat_map(|step| step.files.iter().copied()).collect();
    let shared = |files: &[u32]| match (files.is_empty(), of_unit.is_empty()) {
        (false, false) => files.iter().filter(|file| of_unit.contains(file)).count() as f32 / files.len() as f32,
        _ => 0.4,
    };
    set(Index::Files, shared(&step.files));
    let files: Vec<u32> = window.steps[at..end.min(at + 3)].iter().flat_map(|step| step.files.iter().copied()).collect();
    set(Index::FollowingFiles, shared(&files));
    set(Index::WorkSize, (step.tool_uses as f32).ln_1p() / 4.0);
    set(Index::Looks, step.looks as f32 / step.tool_uses.max(1) as f32);
}
