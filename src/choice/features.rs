//! What the score looks at in a statement. Each feature is about 0 to 1; what each is worth: ADR/0046.

use super::context::{Context, quotes};
use super::said::{Said, Speaker};
use super::words::{Class, Lexicon};
use crate::languages::in_english;
use crate::statements::StatementForm;
use crate::text::{is_stop_word, width};
use std::collections::HashMap;

/// Names of the features, in the order of the weights.
pub const FEATURES: [&str; 28] = [
    "item",
    "heading_above",
    "change_above",
    "decision_above",
    "check_above",
    "length",
    "short",
    "message_statements",
    "bold",
    "parentheses",
    "quotation_marks",
    "names",
    "any_name",
    "change",
    "negation",
    "central",
    "of_prompt",
    "of_prompts",
    "edits",
    "checked",
    "last_turn",
    "refused_next",
    "refused_later",
    "quoted_later",
    "agent_change",
    "edit_names",
    "look_names",
    "user_question",
];

/// The features of a statement.
pub type Features = [f32; FEATURES.len()];

/// The features of each statement of a unit.
pub fn features(said: &[Said], contexts: &[Context], lexicon: &Lexicon) -> Vec<Features> {
    let words = WordCounts::new(said, contexts);
    said.iter().map(|one| of(one, contexts, &words, lexicon)).collect()
}

fn of(one: &Said, contexts: &[Context], words: &WordCounts, lexicon: &Lexicon) -> Features {
    let (context, later) = (&contexts[one.turn], &contexts[one.turn + 1..]);
    let (own, above) = (lexicon.count(one.english()), lexicon.count(&in_english(&one.under)));
    let length = width(&one.text).min(400) as f32;
    let names = code_names(&one.text).min(4) as f32 / 4.0;
    let (is_agent, is_edit) = (is(one.speaker == Speaker::Agent), is(context.edits > 0));
    let has_name = is(names > 0.0);
    let change = own.share(Class::Change);
    let lower = one.text.to_lowercase();
    [
        is(one.form == StatementForm::Item),
        is(!one.under.is_empty()),
        is(above.has(Class::Change)),
        is(above.has(Class::Decision)),
        is(above.has(Class::Check)),
        length / 400.0,
        is(length < 40.0),
        one.place.1.min(40) as f32 / 40.0,
        is(one.is_bold),
        is(one.text.contains(['(', '（'])),
        is(one.text.contains(['"', '„', '“', '「', '«'])),
        names,
        has_name,
        change,
        own.share(Class::Negation),
        words.central(one),
        words.prompted(one, 1).min(5) as f32 / 5.0,
        words.prompted(one, 2).min(4) as f32 / 4.0,
        (context.edits as f32).ln_1p() / 3.0,
        is(context.checked),
        is(later.is_empty()),
        is(later.first().is_some_and(|next| next.refuses)),
        is(later.iter().any(|context| context.refuses)),
        is(later.iter().any(|context| quotes(&context.prompt, &lower))),
        is_agent * change,
        is_edit * has_name,
        is_agent * (1.0 - is_edit) * has_name,
        is(one.speaker == Speaker::User && one.text.ends_with(['?', '？'])),
    ]
}

fn is(fact: bool) -> f32 {
    f32::from(u8::from(fact))
}

/// How often words occur in a unit: in its statements, and in its prompts.
struct WordCounts<'a> {
    said: HashMap<&'a str, usize>,
    most: usize,
    prompts: HashMap<&'a str, usize>,
}

impl<'a> WordCounts<'a> {
    fn new(said: &'a [Said], contexts: &'a [Context]) -> WordCounts<'a> {
        let count = |words: &mut dyn Iterator<Item = &'a String>| {
            let mut counts = HashMap::new();
            for word in words.filter(|word| !is_stop_word(word)) {
                *counts.entry(word.as_str()).or_insert(0) += 1;
            }
            counts
        };
        let said = count(&mut said.iter().flat_map(|one| &one.words));
        let prompts = count(&mut contexts.iter().flat_map(|context| &context.asked));
        WordCounts { most: said.values().copied().max().unwrap_or(1), said, prompts }
    }

    /// How much a statement has of the words that the unit repeats most.
    fn central(&self, one: &Said) -> f32 {
        const WORDS: usize = 3;
        let mut counts: Vec<usize> = one.words.iter().filter_map(|word| self.said.get(word.as_str()).copied()).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.iter().take(WORDS).sum::<usize>() as f32 / (WORDS * self.most) as f32
    }

    /// How many of its words occur in so many prompts.
    fn prompted(&self, one: &Said, prompts: usize) -> usize {
        one.words.iter().filter(|word| self.prompts.get(word.as_str()).is_some_and(|n| *n >= prompts)).count()
    }
}

/// How many names from code a text has: `camelCase`, `snake_case`, `--flag`, a path, or anything in backticks.
fn code_names(text: &str) -> usize {
    let is_name = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/'));
        let humps = bare.chars().zip(bare.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
        humps
            || bare.contains('_')
            || bare.starts_with("--")
            || word.starts_with('`')
            || !crate::text::files_named(bare).is_empty()
    };
    text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '"')).filter(is_name).count()
}
