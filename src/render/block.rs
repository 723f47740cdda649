//! Lines of an injected block within a byte budget, each recorded as injected.

use super::clean::{line, prose, quoted};
use crate::model::{MemoryRow, TokenStats, UnitRow};
use crate::text::{alike, cut, headline, is_cjk, is_stop_word, words};
use std::collections::HashSet;

/// Collects lines up to a byte budget.
pub(super) struct Block {
    pub(super) text: String,
    /// Maximum bytes of the text.
    pub(super) budget: usize,
    /// Ids of the memories, and of the units, in the text.
    pub(super) shown: Vec<i64>,
    pub(super) units: Vec<i64>,
    pub(super) tokens: TokenStats,
}

impl Block {
    /// An empty block.
    pub(super) fn within(budget: usize) -> Block {
        Block { text: String::new(), budget, shown: Vec::new(), units: Vec::new(), tokens: TokenStats::default() }
    }

    /// A block without a budget, for content that was already selected.
    pub(super) fn new(text: String) -> Block {
        Block { text, ..Block::within(usize::MAX) }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.push(line);
    }

    /// The text, and the tokens to read it.
    pub(super) fn done(mut self) -> (String, TokenStats) {
        self.tokens.read = (self.text.len() / 4) as i64;
        (self.text, self.tokens)
    }

    /// Adds a line if it fits.
    pub(super) fn push(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.budget;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    pub(super) fn tells(&mut self, memory: &MemoryRow) {
        self.shown.push(memory.id);
        self.tokens.work += memory.tokens.unwrap_or(0);
        self.tokens.estimated |= memory.tokens_estimated && memory.tokens.is_some();
    }

    /// A titled section with as many memories as fit up to `until` bytes.
    pub(super) fn section(&mut self, title: &str, memories: &[&MemoryRow], until: usize, entry: impl Fn(&MemoryRow) -> String) {
        let whole = std::mem::replace(&mut self.budget, until);
        for (i, memory) in memories.iter().enumerate() {
            let begin = if i == 0 { format!("{title}\n") } else { String::new() };
            if !self.push(&format!("{begin}- {}", entry(memory))) {
                break;
            }
            self.tells(memory);
        }
        self.budget = whole;
    }
}

/// A candidate line of a unit.
#[derive(Clone, Debug)]
pub struct BudgetLine {
    /// Index of its unit in the ranking.
    pub group: usize,
    /// The line that names its unit; other lines require it.
    pub head: bool,
    pub text: String,
    /// Its value: the score of its unit, weighted by its content.
    pub worth: f64,
}

/// Selects lines that take at most `budget` bytes with their line ends; returns their indexes in order.
pub fn select_within(lines: &[BudgetLine], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // A short line also costs its frame and the reader's attention.
    let density = |line: &BudgetLine| line.worth / (line.text.len() as f64 + 60.0);
    order.sort_by(|a, b| density(&lines[*b]).total_cmp(&density(&lines[*a])).then(a.cmp(b)));
    let mut chosen: Vec<usize> = Vec::new();
    let mut size = 0;
    for at in order {
        let line = &lines[at];
        if chosen.contains(&at) || chosen.iter().any(|other| !line.head && alike(&lines[*other].text, &line.text)) {
            continue;
        }
        // Other lines of a unit need its name.
        let head = (!line.head).then(|| lines.iter().position(|other| other.head && other.group == line.group)).flatten();
        let head = head.filter(|head| !chosen.contains(head));
        let cost = line.text.len() + 1 + head.map_or(0, |head| lines[head].text.len() + 1);
        if size + cost <= budget {
            size += cost;
            chosen.extend(head);
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Minimum content words of a meaningful request.
const SAYS: usize = 2;
/// Maximum characters of a request next to a title.
const ASKED: usize = 60;

/// Returns the name for an agent, in quotation marks, with about `most` characters; the request follows the title.
pub fn for_agent(unit: &UnitRow, most: usize) -> String {
    match (title(unit), asked(unit)) {
        (Some(title), Some(asked)) if !repeats(&title, &asked) => {
            format!("{}, asked: {}", quoted(&title, most), quoted(&asked, ASKED))
        }
        (Some(name), _) | (None, Some(name)) => quoted(&name, most),
        (None, None) => "no prompt was recorded".to_string(),
    }
}

/// Share of a request's words in the title, in percent, from which the request adds nothing.
const REPEATED: usize = 80;

/// Whether a title says what was asked, as far as the request would be shown.
fn repeats(title: &str, asked: &str) -> bool {
    let of_title: HashSet<String> = words(title).map(str::to_lowercase).collect();
    let lower = cut(asked, ASKED).to_lowercase();
    let of_asked: Vec<&str> = words(&lower).filter(|word| !is_stop_word(word)).collect();
    let repeated = of_asked.iter().filter(|word| of_title.contains(**word)).count();
    alike(title, asked) || repeated > 0 && repeated * 100 >= of_asked.len() * REPEATED
}

/// Returns the title alone for an agent, with about `most` characters.
pub fn title_for_agent(unit: &UnitRow, most: usize) -> String {
    title(unit).or_else(|| asked(unit)).map(|name| quoted(&name, most)).unwrap_or_default()
}

/// Returns the name for a person, with at most `most` characters.
pub fn for_person(unit: &UnitRow, most: usize) -> String {
    match title(unit).or_else(|| asked(unit)) {
        Some(name) => line(&name, most),
        None => "(no prompt was recorded)".to_string(),
    }
}

fn title(unit: &UnitRow) -> Option<String> {
    let subject = || unit.commits.last().map(|commit| commit.subject.clone());
    unit.title.as_deref().map(prose).or_else(subject).filter(|text| !text.is_empty())
}

/// Returns the request if it is meaningful.
fn asked(unit: &UnitRow) -> Option<String> {
    let asked = unit.intent.as_deref().map(|text| prose(&headline(text)))?;
    (meaning(&asked) >= SAYS && !asked.contains("[redacted:")).then_some(asked)
}

/// Number of content words; in scripts without spaces, two characters count as one.
fn meaning(text: &str) -> usize {
    let lower = text.to_lowercase();
    let says = |word: &&str| word.len() > 2 && !is_stop_word(word) && !word.chars().any(is_cjk);
    let words = words(&lower).filter(says).count();
    words + lower.chars().filter(|c| is_cjk(*c)).count() / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(group: usize, head: bool, text: &str, worth: f64) -> BudgetLine {
        BudgetLine { group, head, text: text.into(), worth }
    }

    #[test]
    fn names_come_before_details_and_nothing_appears_twice() {
        let lines = [
            line(0, true, "first work unit", 2.0),
            line(0, false, "the cause was a lock", 1.0),
            line(1, true, "second work unit", 1.5),
            line(1, false, "The cause was a lock.", 0.7),
            line(2, true, "third", 0.1),
        ];
        assert_eq!(select_within(&lines, 34), [0, 2]);
        assert_eq!(select_within(&lines, 1000), [0, 1, 2, 4]);
    }

    proptest! {
        #[test]
        fn what_is_chosen_fits_and_has_its_head(
            all in prop::collection::vec((0_usize..6, "[a-z ]{1,40}", 0.0_f64..2.0), 0..30), budget in 0_usize..600
        ) {
            let mut lines: Vec<BudgetLine> = (0..6).map(|group| line(group, true, "head", 0.5)).collect();
            lines.extend(all.iter().map(|(group, text, worth)| line(*group, false, text, *worth)));
            let chosen = select_within(&lines, budget);
            prop_assert!(chosen.iter().map(|at| lines[*at].text.len() + 1).sum::<usize>() <= budget);
            for at in &chosen {
                prop_assert!(chosen.contains(&lines[*at].group), "its head");
            }
        }
    }

    #[test]
    fn a_request_whose_words_are_in_the_title_adds_nothing() {
        for (title, asked, says) in [
            ("Add impact evaluation with a comparison of scores", "Impact Evaluation", true),
            ("Messed up branches, check the last change", "I messed up branches, can you check the last change", true),
            ("Fields with commas are quoted now", "The exporter breaks rows that hold commas", false),
            ("Add a badge", "", false),
        ] {
            assert_eq!(repeats(title, asked), says, "{title}");
        }
    }

    #[test]
    fn a_request_that_says_nothing_is_no_name() {
        for (text, says) in [
            ("can you take a look at this?", false),
            ("mise run lint fails", true),
            ("ログイン画面を直して", true),
            ("ok", false),
        ] {
            assert_eq!(meaning(text) >= SAYS, says, "{text}");
        }
    }
}
