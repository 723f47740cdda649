//! Everything that was said in a unit, statement by statement, in order: prompts, plans, commit messages, closing messages.

use super::turns::{Turn, commit};
use crate::languages;
use crate::model::Source;
use crate::statements::{self, Statement, StatementForm, own_sentences, plain};
use crate::text::{is_cjk, width, words};
use std::borrow::Cow;
use std::collections::HashSet;

/// Bytes of a prompt that are read; a longer one is pasted.
const PROMPT: usize = 6000;
/// Characters of a statement below which it says nothing.
const SHORT: usize = 12;
/// Characters of a statement at most.
const LONG: usize = 400;

/// Whose statement it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user, in words of their own.
    User,
    /// Something that the user pasted.
    Pasted,
    /// A plan that the user ordered.
    Plan,
    Commit,
    Agent,
}

/// A statement and where it was made.
#[derive(Clone, Debug)]
pub struct Said {
    pub text: String,
    pub under: String,
    pub form: StatementForm,
    pub is_bold: bool,
    pub speaker: Speaker,
    /// Index of its turn in the unit.
    pub turn: usize,
    pub source: Source,
    /// Index in its message, and the number of statements there.
    pub place: (usize, usize),
    /// Bytes of the message.
    pub message: usize,
    /// The text with its cue words in English, if it is in another language.
    english: Option<String>,
    /// Its words of three letters or more in lower case.
    pub words: HashSet<String>,
}

impl Said {
    /// The text with its cue words in English.
    pub fn english(&self) -> &str {
        self.english.as_deref().unwrap_or(&self.text)
    }

    /// Whether it may be chosen by its score: what the user says is a decision or a matter of the moment, what the user
    /// pasted is somebody else's, and a plan describes what is to be changed; what came of it the agent reports.
    pub fn is_report(&self) -> bool {
        matches!(self.speaker, Speaker::Agent | Speaker::Commit)
            && !matches!(self.form, StatementForm::Heading | StatementForm::Shown)
    }
}

/// All statements of a unit, in order.
pub fn said(turns: &[Turn]) -> Vec<Said> {
    let mut all = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        if let Some(asked) = turn.asked {
            let source = Source::Prompt(asked.id);
            let text = &asked.text[..asked.text.floor_char_boundary(PROMPT)];
            let own = own_sentences(text);
            let own_statement = |text: &String| Statement {
                text: text.clone(),
                under: String::new(),
                form: StatementForm::Sentence,
                is_bold: false,
                block: 0,
            };
            add(&mut all, own.iter().map(own_statement).collect(), Speaker::User, at, source, text);
            let is_plan = text.trim_start().to_lowercase().starts_with("implement the following");
            let speaker = if is_plan { Speaker::Plan } else { Speaker::Pasted };
            let is_own =
                |statement: &Statement| own.iter().any(|own| own.contains(&statement.text) || statement.text.contains(own));
            let mut rest = statements::statements(text);
            rest.retain(|statement| !is_own(statement));
            add(&mut all, rest, speaker, at, source, text);
        }
        for tool in &turn.tools {
            if commit(tool).is_none() {
                continue;
            }
            if let Some(message) = tool.content.as_deref().and_then(statements::commit_message) {
                add(&mut all, statements::statements(&message), Speaker::Commit, at, Source::ToolUse(tool.id), &message);
            }
        }
        if let Some(closing) = turn.closing {
            let statements = statements::statements(&closing.text);
            add(&mut all, statements, Speaker::Agent, at, Source::Prompt(closing.id), &closing.text);
        }
    }
    all
}

fn add(all: &mut Vec<Said>, statements: Vec<Statement>, speaker: Speaker, turn: usize, source: Source, message: &str) {
    let of = statements.len();
    for (at, statement) in statements.into_iter().enumerate() {
        let Statement { text, under, form, is_bold, .. } = statement;
        let count = width(&text);
        if count < SHORT && speaker != Speaker::User {
            continue;
        }
        let text = if count > LONG { crate::text::cut(&text, LONG) } else { text };
        let words = content_words(&text);
        let english = match languages::part_in_english(&text, message) {
            Cow::Borrowed(_) => None,
            Cow::Owned(english) => Some(english),
        };
        all.push(Said {
            text,
            under,
            form,
            is_bold,
            speaker,
            turn,
            source,
            place: (at, of),
            message: message.len(),
            english,
            words,
        });
    }
}

/// The words of a text by which it is compared with others: of three letters or more, in lower case.
pub fn content_words(text: &str) -> HashSet<String> {
    let is_stop_word = languages::stop_words_of(text);
    let mut words = words_of_code(&plain(text));
    words.retain(|word| !is_stop_word(word));
    words
}

/// The same of a line of code or a path, which is in no language.
pub fn words_of_code(line: &str) -> HashSet<String> {
    let words = words(line).flat_map(|word| match word.chars().any(is_cjk) {
        // Two characters of a script without spaces are a word.
        true => word.chars().zip(word.chars().skip(1)).map(|(a, b)| String::from_iter([a, b])).collect(),
        false if word.chars().count() >= 3 => vec![word.to_lowercase()],
        false => Vec::new(),
    });
    words.collect()
}
