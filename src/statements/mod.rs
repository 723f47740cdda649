//! What prompts, closing messages and commit messages say, one statement at a time.
//!
//! Read in this order: `markdown` (a message into statements), `sentences`, `own_words` (which words of a prompt its
//! author wrote), `commit_message` (as the shell passes it), `word_lists`.

mod commit_message;
mod markdown;
mod own_words;
mod sentences;
pub mod word_lists;

pub use commit_message::commit_message;
pub use markdown::{Statement, StatementForm, statements};
pub use own_words::own_sentences;
pub use sentences::{plain, plain_headline, sentences, word_count};
