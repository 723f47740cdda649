//! The words by which it is guessed what a statement speaks of.

use std::collections::{HashMap, HashSet};

/// What words speak of; a word may belong to several classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Cause,
    Decision,
    Wish,
    Change,
    /// Something that does not work, or only under a condition.
    Limit,
    /// A defect: what was wrong before it was fixed.
    Problem,
    Check,
    Negation,
}

const CLASSES: [(Class, &str); 8] = [
    (
        Class::Cause,
        "because|since|due|caused|causes|cause|reason|why|root cause|turns out|turned out|so that|resulted|leads to|led to|happens when|happened",
    ),
    (
        Class::Decision,
        "decided|decision|decide|chose|chosen|choose|instead|prefer|preferred|rather|stick|go with|going with|went with|let's|lets|opted|picked|keep|replace|rename|drop|option|approach|recommended|i'd like|i want|i'd rather|i would",
    ),
    (
        Class::Wish,
        "always|never|must|should|shouldn't|only|every|from now|make sure|ensure|we need|has to|have to|prefer|avoid|stop using|keep|preserve|instead|rather",
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
    (Class::Negation, "not|no|never|none|without|isn't|aren't|wasn't|doesn't|don't|didn't|won't|can't|no longer|nothing"),
];

/// Finds the classes of words and of pairs of words.
#[derive(Debug)]
pub struct Lexicon {
    classes: HashMap<&'static str, u16>,
    /// First words of pairs. Few words are, so few pairs are looked up.
    first_words: HashSet<&'static str>,
}

/// How many words of a text belong to each class.
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
        let mut classes: HashMap<&'static str, u16> = HashMap::with_capacity(256);
        for (class, words) in CLASSES {
            for word in words.split('|') {
                *classes.entry(word).or_default() |= 1 << class as u16;
            }
        }
        let first_words = classes.keys().filter_map(|words| Some(words.split_once(' ')?.0)).collect();
        Lexicon { classes, first_words }
    }

    pub fn count(&self, text: &str) -> ClassCounts {
        let mut counts = ClassCounts::default();
        let mut add = |mask: Option<&u16>| {
            for (class, _) in CLASSES.iter().filter(|(class, _)| mask.is_some_and(|mask| mask & (1 << *class as u16) != 0)) {
                let count = &mut counts.0[*class as usize];
                *count = count.saturating_add(1);
            }
        };
        let lower = text.to_lowercase().replace('’', "'");
        let mut before: Option<&str> = None;
        for word in lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()) {
            add(self.classes.get(word));
            add(before.and_then(|before| self.classes.get(format!("{before} {word}").as_str())));
            before = self.first_words.contains(word).then_some(word);
        }
        counts
    }
}
