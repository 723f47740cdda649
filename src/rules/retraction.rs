//! What a later message takes back of what an earlier one reported.

use super::cues::{first_word, is_one_of};
use super::prose::Prose;

/// Whether a later message takes back what an earlier one reported: it removes or reverts something of the same words.
pub fn overtaken<'a>(said: &str, retracted: impl Iterator<Item = &'a Vec<String>>) -> bool {
    let own = names(said);
    let shared = |taken: &Vec<String>| taken.iter().filter(|name| own.contains(name)).count();
    retracted.into_iter().any(|taken| shared(taken) >= 2)
}

/// The words of each part of a message that takes something back.
pub fn retracted(prose: &Prose) -> Vec<Vec<String>> {
    let takes_back = |text: &str| {
        is_one_of("removed|reverted|dropped|replaced|undid|deleted|switched|renamed", &first_word(text))
            || text.contains("no longer")
    };
    prose.parts.iter().filter(|part| takes_back(&part.text)).map(|part| names(&part.text)).collect()
}

/// The longer words of a text, by which two texts are seen to be about the same.
fn names(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= 5).map(str::to_lowercase).collect()
}
