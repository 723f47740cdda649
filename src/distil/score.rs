//! Selects the statements worth remembering: scores each with a linear model over cheap features, then picks short,
//! non-redundant ones greedily (ADR/0046).

use super::statement_weights;
use super::statements::{StatementForm, Words, begins_with, has_word_of, names_cause, word_count};
use super::superseded::{retracting, superseded_at};
use super::turns::{self, Speaker, Turn, TurnFacts, UnitStatement, headings, likeness, lower_of, unit_statements};
use crate::model::{Domain, Source};
use crate::text::{is_stop_word, width};
use foldhash::fast::FixedState;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

/// A bias and a weight for each feature.
#[derive(Clone, Debug)]
pub struct ScoreWeights {
    pub bias: f32,
    pub of: [f32; FEATURES.len()],
}

impl ScoreWeights {
    /// The compiled weights.
    pub fn fitted() -> ScoreWeights {
        ScoreWeights { bias: statement_weights::BIAS, of: statement_weights::WEIGHTS }
    }

    fn log_odds(&self, features: &Features) -> f32 {
        self.bias + self.of.iter().zip(features).map(|(weight, value)| weight * value).sum::<f32>()
    }

    fn probability(&self, features: &Features) -> f32 {
        1.0 / (1.0 + (-self.log_odds(features)).exp())
    }
}

/// Minimum gain of a selected statement. `cargo bench --bench facts` shows the bytes that it makes.
const LEAST: f32 = 0.0296;
/// Minimum gain outside coding domains, where the score lacks identifiers, commits and checks.
const LEAST_ELSEWHERE: f32 = 0.022;
/// Characters added to a statement's length; the gain is the score divided by the square root of the sum.
const LENGTH: f32 = 80.0;
/// Penalty for repeating a selected statement, as a share of its gain.
const REPETITION: f32 = 0.6;

/// Minimum score of a statement that explicitly names a cause.
const NAMED_CAUSE: f32 = 0.6;

/// Whether a statement only announces what comes next: "Here's a summary of the changes", "Let me run the tests".
fn is_announcement(lower: &str) -> bool {
    const SUMMARIES: &str =
        "here's a|here is a|here's the|here is the|here's what|here is what|here are the|below is|the following";
    let of_rest = ["summary", "what was", "what i", "what changed", "changes", "breakdown", "overview"];
    begins_with(
        "let me|now let me|i'll now|i'll start|i will now|next, i'll|want me to|say the word|let me know|do you want|would you like|should i |shall i |i need |i don't have access|please |you can test |you can now test|try it now|you should see|you should now|open `|open http|the changes are in|the complete guide|go ahead and|add these lines|add the following|here are|here's what|feel free|if you want, |if you'd like",
        lower,
    ) || begins_with(SUMMARIES, lower) && of_rest.iter().any(|word| lower.contains(word)) && lower.len() < 120
}

/// Whether a statement only reports that checks passed, where commits are, what is not done yet, or a guess.
fn is_momentary(lower: &str) -> bool {
    const CHECKS: Words = "tests pass|tests passed|test pass|tests passing|lint clean|lint is clean|lint passes|linter passes|lint and|checks pass|build passes|build succeeds|type check passes|compiles cleanly|tests still pass|all green|no lint|all pass|all clean|are clean|are green|still green|verified independently";
    const GUESSES: Words = "my guess|i'd guess|i would guess|hard to say";
    const OPEN: Words = "hasn't been done|haven't been done|not been done yet|not done yet|still to be done|remains to be done";
    const COMMITS: Words = "committed as |committed:|in a single commit|in one commit|files committed|committed on `|committed and pushed|clean commits|squashed into `|and force-pushed|branch now sits|left uncommitted|working tree is clean|files committed|are committed|is committed|fix is complete|is complete!|are complete!|successfully deployed|deployment successful|deploy was successful|up to date|already merged|was merged|is merged|still unpushed|pushed with|pushed to |threads on pr|ready for |ready to |local changes|amended|should be clean|commits are there|commits are on";
    const REASONS: Words = "because|since |unless|only if|require|need|must|fixed|added";
    const LONG: usize = 200;
    let is_check = || has_word_of(CHECKS, lower) && !lower.contains("now ") && !has_word_of(REASONS, lower);
    has_word_of(OPEN, lower) || has_word_of(GUESSES, lower) || lower.len() < LONG && (is_check() || has_word_of(COMMITS, lower))
}

/// Scores passages by their statements alone, without the unit around them.
#[derive(Debug)]
pub struct PassageScorer {
    lexicon: Lexicon,
    weights: ScoreWeights,
    turn: [TurnFacts; 1],
}

impl PassageScorer {
    /// Log-odds of a passage without a statement.
    const NOTHING: f32 = -2.0;

    pub fn new(weights: ScoreWeights) -> PassageScorer {
        PassageScorer { lexicon: Lexicon::compiled(), weights, turn: [TurnFacts { edits: 1, ..TurnFacts::default() }] }
    }

    /// Log-odds that a later session needs the passage: those of its best statement.
    pub fn worth(&self, passage: &str) -> f32 {
        let statements = turns::statements_of_passage(passage);
        let all = features(&statements, &self.turn, &self.lexicon);
        let stated = statements.iter().zip(&all).filter(|(one, _)| one.form != StatementForm::Heading);
        stated.map(|(_, features)| self.weights.log_odds(features)).reduce(f32::max).unwrap_or(Self::NOTHING)
    }
}

/// The statements of a unit, scored.
#[derive(Debug)]
pub struct ScoredStatements {
    pub statements: Vec<UnitStatement>,
    /// Facts about each turn.
    pub facts: Vec<TurnFacts>,
    pub lexicon: Lexicon,
    /// Probability that a later session needs each statement.
    pub scores: Vec<f32>,
    /// The innermost heading above each statement, in lower case.
    pub headings: Vec<String>,
    /// Commits that a later one replaced.
    pub undone_commits: HashSet<i64>,
    /// Statements with which the agent takes something back.
    retracting: Vec<usize>,
}

/// First words of a heading within a plan, which is not the plan's title.
const SECTIONS: Words = "design decisions|key decisions|key behavior|key changes|files to|changes to make|step 1|phase 1|task 1";

impl ScoredStatements {
    pub fn new(turns: &[Turn], weights: &ScoreWeights) -> ScoredStatements {
        let (statements, facts) = (unit_statements(turns), turns::turn_facts(turns));
        let lexicon = Lexicon::compiled();
        let features = features(&statements, &facts, &lexicon);
        let score = |(statement, features): (&UnitStatement, &Features)| {
            let score = weights.probability(features);
            if names_cause(&statement.lower) { score.max(NAMED_CAUSE) } else { score }
        };
        let scores = statements.iter().zip(&features).map(score).collect();
        let innermost = |above: Rc<str>| above.rsplit(" > ").next().unwrap_or_default().to_lowercase();
        let headings = headings(&statements).into_iter().map(innermost).collect();
        let retracting = retracting(&statements);
        let undone_commits = turns::undone_commits(turns);
        ScoredStatements { statements, facts, lexicon, scores, headings, undone_commits, retracting }
    }

    /// Whether a statement still holds and may be remembered: not shown by a tool, not an announcement, not repeated from a
    /// page that the agent fetched.
    pub fn is_current(&self, at: usize) -> bool {
        let statement = &self.statements[at];
        let facts = &self.facts[statement.turn];
        if matches!(statement.source, Source::ToolUse(tool) if self.undone_commits.contains(&tool)) {
            return false;
        }
        let is_offered = facts.settles_offer && facts.offers(&statement.text);
        if statement.speaker == Speaker::Agent
            && (is_offered || facts.repeats_outside(&statement.text) || describes_test(&statement.text))
        {
            return false;
        }
        let is_stated = !matches!(statement.form, StatementForm::Shown | StatementForm::Heading);
        let is_question = statement.text.ends_with(['?', '？']);
        // A row that begins with a number is one of a listing.
        let number = statement.text.split(',').next().unwrap_or_default().trim_start_matches('#');
        let is_listed = statement.form == StatementForm::Row
            && self.facts[statement.turn].edits == 0
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit());
        let lasts =
            is_stated && !is_question && !is_listed && !is_announcement(&statement.lower) && !is_momentary(&statement.lower);
        lasts && superseded_at(at, &self.statements, &self.facts, &self.retracting).is_none()
    }

    /// The indexes of a turn's statements.
    pub fn of_turn(&self, turn: usize) -> Range<usize> {
        let before = |turn: usize| self.statements.partition_point(|one| one.turn < turn);
        before(turn)..before(turn + 1)
    }

    /// Returns the title of a plan that the user ordered in a turn.
    pub fn plan(&self, turn: usize) -> Option<usize> {
        let heading = self.of_turn(turn).find(|at| {
            let statement = &self.statements[*at];
            statement.speaker == Speaker::Plan && statement.form == StatementForm::Heading && word_count(&statement.text) >= 3
        });
        heading.filter(|at| !begins_with(SECTIONS, &self.statements[*at].text.to_lowercase()))
    }

    /// Selects statements greedily by gain, besides those already `used`; returns their indexes in order.
    pub fn select(&self, used: &[usize], domain: &Domain) -> Vec<usize> {
        let least = if domain.name == "coding" { LEAST } else { LEAST_ELSEWHERE };
        let base = |at: &usize| self.scores[*at] / (self.statements[*at].text.len() as f32 + LENGTH).sqrt();
        // The score is cheap, and most statements fall below the minimum.
        let open =
            (0..self.statements.len()).filter(|at| self.statements[*at].is_report() && base(at) >= least && !used.contains(at));
        let open = open.filter(|at| self.is_current(*at));
        let mut open: Vec<(usize, f32, f32)> = open.map(|at| (at, base(&at), 0.0)).collect();
        let repeats = |open: &mut Vec<(usize, f32, f32)>, selected: usize| {
            for (at, _, near) in open {
                *near = near.max(likeness(&self.statements[*at].words, &self.statements[selected].words));
            }
        };
        used.iter().for_each(|at| repeats(&mut open, *at));
        let mut selected = Vec::new();
        let gain = |(_, base, near): &(usize, f32, f32)| base * (1.0 - REPETITION * near);
        while let Some(best) = (0..open.len()).max_by(|a, b| gain(&open[*a]).total_cmp(&gain(&open[*b]))) {
            if gain(&open[best]) < least {
                break;
            }
            let (at, ..) = open.swap_remove(best);
            repeats(&mut open, at);
            selected.push(at);
        }
        selected.sort_unstable();
        selected
    }
}

/// Word classes that hint at a statement's topic. A word may belong to several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Cause,
    Change,
    /// Something that does not work, or only under a condition.
    Limit,
    /// A defect: what was wrong before it was fixed.
    Problem,
    Check,
}

const CLASSES: [(Class, &str); 5] = [
    (
        Class::Cause,
        "because|since|due|caused|causes|cause|reason|why|root cause|turns out|turned out|so that|resulted|leads to|led to|happens when|happened",
    ),
    (
        Class::Change,
        "added|adds|changed|now|renamed|removed|removes|fixed|fixes|updated|moved|replaced|created|introduced|implemented|extracted|unified|supports|returns|switched|reverted|converted|refactored|deleted|uses|writes|stores|shows|skips|handles|restored|simplified|merged|split|exported|disabled|enabled|defaults",
    ),
    (
        Class::Limit,
        "note|careful|however|doesn't|won't|can't|cannot|limitation|limited|requires|require|unless|even if|even when|even though|although|otherwise|except|silently|breaks|beware|gotcha|caveat|unlike|only works|does not",
    ),
    (
        Class::Problem,
        "missing|lacks|lacked|wrong|wrongly|bug|broken|incorrect|incorrectly|failed|fails|failing|never|issue|problem|was|were|wasn't|weren't|didn't|would|stale|lost|empty|hardcoded|duplicated",
    ),
    (
        Class::Check,
        "all tests|tests pass|lint|linting|passing|passes|passed|pass|committed|pushed|done|complete|completed|successfully|clean|green|summary|verified|builds|everything|ready",
    ),
];

/// Finds the classes of words and of pairs of words.
#[derive(Debug)]
pub struct Lexicon {
    classes: HashMap<&'static str, u16, FixedState>,
    /// First words of pairs. Few words are, so few pairs are looked up.
    first_words: HashSet<&'static str, FixedState>,
}

/// Number of words of a text in each class.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassCounts([u8; CLASSES.len()]);

impl ClassCounts {
    pub fn has(&self, class: Class) -> bool {
        self.0[class as usize] > 0
    }

    /// Three words or more of a class count as 1.
    pub fn share(&self, class: Class) -> f32 {
        f32::from(self.0[class as usize].min(3)) / 3.0
    }
}

impl Lexicon {
    /// Reads the lists of words.
    pub fn compiled() -> Lexicon {
        let mut classes: HashMap<&'static str, u16, FixedState> = HashMap::with_capacity_and_hasher(256, FixedState::default());
        for (class, words) in CLASSES {
            for word in words.split('|') {
                *classes.entry(word).or_default() |= 1 << class as u16;
            }
        }
        let first_words = classes.keys().filter_map(|words| Some(words.split_once(' ')?.0)).collect();
        Lexicon { classes, first_words }
    }

    /// Counts the words of a text in lower case.
    pub fn count(&self, lower: &str) -> ClassCounts {
        let mut counts = ClassCounts::default();
        let mut add = |mask: Option<&u16>| {
            for (class, _) in CLASSES.iter().filter(|(class, _)| mask.is_some_and(|mask| mask & (1 << *class as u16) != 0)) {
                let count = &mut counts.0[*class as usize];
                *count = count.saturating_add(1);
            }
        };
        let mut before: Option<&str> = None;
        for word in lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()) {
            add(self.classes.get(word));
            add(before.and_then(|before| self.classes.get(format!("{before} {word}").as_str())));
            before = self.first_words.contains(word).then_some(word);
        }
        counts
    }
}

/// Whether a statement describes a test: "`TestLogin` - verifies that …", "`login_test.go`: three cases".
fn describes_test(text: &str) -> bool {
    const FILES: Words = "_test.|.test.|.spec.|/test_|`test_";
    let mut first = text.split_whitespace().take(2);
    let is_test = |word: &str| word.starts_with("`Test") || has_word_of(FILES, word);
    first.next().is_some_and(|word| is_test(word) || word.eq_ignore_ascii_case("in") && first.next().is_some_and(is_test))
}

/// Names of the features, in the order of the weights.
pub const FEATURES: [&str; 10] =
    ["heading_above", "check_above", "length", "short", "names", "change", "central", "of_prompt", "of_prompts", "look_names"];

/// The features of a statement.
pub type Features = [f32; FEATURES.len()];

/// The features of each statement of a unit.
pub fn features(said: &[UnitStatement], contexts: &[TurnFacts], lexicon: &Lexicon) -> Vec<Features> {
    let words = WordCounts::new(said, contexts);
    // Statements of one list share their heading.
    let mut last: Option<(Rc<str>, bool)> = None;
    let mut is_check = |above: Rc<str>| match &last {
        Some((known, is_check)) if Rc::ptr_eq(known, &above) => *is_check,
        _ => last.insert((above.clone(), lexicon.count(&lower_of(&above)).has(Class::Check))).1,
    };
    said.iter().zip(headings(said)).map(|(one, above)| of(one, is_check(above), contexts, &words, lexicon)).collect()
}

fn of(one: &UnitStatement, is_below_check: bool, contexts: &[TurnFacts], words: &WordCounts, lexicon: &Lexicon) -> Features {
    let length = width(&one.text).min(400) as f32;
    let names = code_names(&one.text).min(4) as f32 / 4.0;
    let looked = one.speaker == Speaker::Agent && contexts[one.turn].edits == 0;
    [
        is(!one.under.is_empty()),
        is(is_below_check),
        length / 400.0,
        is(length < 40.0),
        names,
        lexicon.count(&one.lower).share(Class::Change),
        words.central(one),
        words.prompted(one, 1).min(5) as f32 / 5.0,
        words.prompted(one, 2).min(4) as f32 / 4.0,
        is(looked && names > 0.0),
    ]
}

fn is(fact: bool) -> f32 {
    f32::from(u8::from(fact))
}

/// Frequencies of words in a unit: in its statements, and in its prompts.
struct WordCounts<'a> {
    stated: HashMap<&'a str, usize, FixedState>,
    most: usize,
    prompts: HashMap<&'a str, usize, FixedState>,
}

impl<'a> WordCounts<'a> {
    fn new(said: &'a [UnitStatement], contexts: &'a [TurnFacts]) -> WordCounts<'a> {
        let count = |words: &mut dyn Iterator<Item = &'a String>| {
            let mut counts = HashMap::default();
            for word in words.filter(|word| !is_stop_word(word)) {
                *counts.entry(word.as_str()).or_insert(0) += 1;
            }
            counts
        };
        let stated = count(&mut said.iter().flat_map(|one| &one.words));
        let prompts = count(&mut contexts.iter().flat_map(|context| &context.asked));
        WordCounts { most: stated.values().copied().max().unwrap_or(1), stated, prompts }
    }

    /// Share of the unit's most frequent words in a statement, from 0 to 1.
    fn central(&self, one: &UnitStatement) -> f32 {
        const WORDS: usize = 3;
        let mut counts: Vec<usize> = one.words.iter().filter_map(|word| self.stated.get(word.as_str()).copied()).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.iter().take(WORDS).sum::<usize>() as f32 / (WORDS * self.most) as f32
    }

    /// Number of its words that occur in at least so many prompts.
    fn prompted(&self, one: &UnitStatement, prompts: usize) -> usize {
        one.words.iter().filter(|word| self.prompts.get(word.as_str()).is_some_and(|n| *n >= prompts)).count()
    }
}

/// Number of names from code in a text: `camelCase`, `snake_case`, `--flag`, a path, or anything in backticks.
fn code_names(text: &str) -> usize {
    let is_name = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/'));
        let humps = bare.chars().zip(bare.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
        humps
            || bare.contains('_')
            || bare.starts_with("--")
            || word.starts_with('`')
            || bare.contains('.') && !crate::text::files_named(bare).is_empty()
    };
    text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '"')).filter(is_name).count()
}

#[cfg(test)]
mod tests {
    use super::super::testing::unit;
    use super::super::turns::turns;
    use super::*;
    use crate::domains;

    fn selected(turns_of_unit: &[super::super::testing::TestTurn]) -> Vec<String> {
        let (story, domain) = (unit(turns_of_unit), domains::of(None, None));
        let scored = ScoredStatements::new(&turns(&story, &domain), &ScoreWeights::fitted());
        scored.select(&[], &domain).into_iter().map(|at| scored.statements[at].text.clone()).collect()
    }

    const WORK: &[(&str, &str, bool)] = &[("edit", "src/cache.rs", true), ("command", "cargo test", true)];

    #[test]
    fn causes_are_selected_and_announcements_and_check_results_are_not() {
        let kept = selected(&[(
            "The cache returns old rows",
            WORK,
            "Here's a summary of the changes. The root cause was that `Cache::get` compared the key without its version. All tests pass and lint is clean.",
        )]);
        assert!(
            kept.iter().any(|text| text.contains("`Cache::get` compared") || text.contains("Cache::get compared")),
            "{kept:?}"
        );
        assert!(kept.iter().all(|text| !text.contains("summary of the changes") && !text.contains("tests pass")), "{kept:?}");
    }

    #[test]
    fn a_statement_that_repeats_a_selected_one_is_not_selected() {
        let cause = "The root cause was that `Cache::get` compared the key without its version.";
        let kept = selected(&[("The cache returns old rows", WORK, &format!("{cause}\n\nAs said: {cause}"))]);
        assert_eq!(kept.iter().filter(|text| text.contains("without its version")).count(), 1, "{kept:?}");
    }

    #[test]
    fn every_statement_has_ten_features_of_about_zero_to_one() {
        let story =
            unit(&[("Why is `src/cache.rs` slow?", WORK, "- **Reads** are slow because `Cache::get` locks\n- Writes are not")]);
        let turns = turns(&story, &domains::of(None, None));
        let statements = unit_statements(&turns);
        let all = features(&statements, &super::super::turns::turn_facts(&turns), &Lexicon::compiled());
        assert_eq!(all.len(), statements.len());
        assert!(all.iter().flatten().all(|value| (0.0..=1.5).contains(value)), "{all:?}");
    }
}
