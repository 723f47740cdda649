//! Finds statements of the agent that a later turn of the same unit changed, rejected, refuted or restated.
//!
//! Over units, rules supersede nothing: a person does (`knowledge::corrections`), or a model within a unit
//! (`extraction::to_drafts`). Memories that contradict each other are shown as such (`rank::contradicted`).

use super::statements::{Words, has_word_of, names_cause};
use super::turns::{Speaker, TurnFacts, UnitStatement, WordSet, names_in, overlap, quotes};
use crate::languages::in_english;
use crate::text::{files_named, is_stop_word};

/// Number of later turns in which a statement may be superseded. A unit may have thousands, and each has to be compared.
const TURNS: usize = 64;

/// Returns the turn that superseded a statement of a unit.
/// `retracting` are the statements with which the agent takes something back.
pub fn superseded_at(at: usize, said: &[UnitStatement], contexts: &[TurnFacts], retracting: &[usize]) -> Option<usize> {
    let one = &said[at];
    let contexts = &contexts[..contexts.len().min(one.turn + 1 + TURNS)];
    match one.speaker {
        // Statements of the user are not superseded by reports.
        Speaker::User => None,
        _ => {
            let by_user = by_refusal(one, contexts)
                .or_else(|| by_refutation(one, contexts))
                .or_else(|| by_retraction(at, said, retracting));
            let by_user = by_user.or_else(|| by_proposal(one, contexts));
            let by_work = by_user.or_else(|| by_work(&one.text, one.turn, contexts)).or_else(|| by_change(one, contexts));
            // A report that says what the plan says confirms it.
            by_work.or_else(|| if one.speaker == Speaker::Plan { None } else { by_words(at, said, contexts) })
        }
    }
}

/// The next prompt refused the work, or its answer says that the work was undone.
fn by_refusal(one: &UnitStatement, contexts: &[TurnFacts]) -> Option<usize> {
    let (own, next) = (&contexts[one.turn], one.turn + 1);
    let context = contexts.get(next).filter(|_| own.edits > 0)?;
    let same_files = context.files.iter().any(|file| own.files.contains(file));
    let refused = context.refuses && same_files && overlap(&one.words, &context.own) > 0.15;
    (refused || context.undoes).then_some(next)
}

/// Words of a report that work is done, or of its cause: what the next prompt refutes.
const CLAIMS: Words = "fixed|fix|fixes|resolve|resolved|should now|should work|works|working|now |root cause|the problem was|the issue was|success|solved|done|updated|added|changed|complete";

/// Whether a statement claims what a refutation denies.
pub fn claims(one: &UnitStatement) -> bool {
    one.speaker == Speaker::Agent && has_word_of(CLAIMS, &one.lower)
}

/// The next prompt says that the work did not help.
fn by_refutation(one: &UnitStatement, contexts: &[TurnFacts]) -> Option<usize> {
    (contexts[one.turn].refuted && claims(one)).then_some(one.turn + 1)
}

/// Words of a defect or of work to be done.
const OPEN: Words = "not yet|hasn't|haven't|isn't|aren't|doesn't|don't|cannot|can't|missing|lacks|still |leaves |never |falls through|fails|fail |broken|bug|wrong|instead of|no longer|unconditionally|should be|needs to|must be|would ";

/// The agent proposed to change what it found, and did so in the next turn. The cause stays: it is the reason of the change.
fn by_proposal(one: &UnitStatement, contexts: &[TurnFacts]) -> Option<usize> {
    let is_cause = || names_cause(&one.lower) || one.under.to_lowercase().contains("cause");
    let is_open = || has_word_of(OPEN, &one.lower) && !is_cause();
    let own = &contexts[one.turn];
    (one.speaker == Speaker::Agent && own.is_carried_out && own.edits == 0 && is_open()).then_some(one.turn + 1)
}

/// Share of a finding's words in later edits, in percent, from which they change what it describes.
const CHANGED: usize = 30;

/// A finding of a turn that changed nothing describes what a later turn changed.
fn by_change(one: &UnitStatement, contexts: &[TurnFacts]) -> Option<usize> {
    if one.speaker != Speaker::Agent || contexts[one.turn].edits > 0 || one.words.len() < 4 {
        return None;
    }
    let named: Vec<String> =
        files_named(&one.text).iter().map(|path| path.rsplit('/').next().unwrap_or(path).to_lowercase()).collect();
    let changes = |context: &TurnFacts| {
        if named.iter().any(|file| context.files.contains(file)) {
            return true;
        }
        let known = one.words.iter().filter(|word| context.edited.contains(*word)).count();
        context.edits > 0 && known * 100 >= one.words.len() * CHANGED
    };
    contexts[one.turn + 1..].iter().position(changes).map(|at| one.turn + 1 + at)
}

/// Words with which an agent takes back what it said.
const RETRACTS: Words = " are wrong| is wrong| was wrong| were wrong|isn't available|is not available|outdated or|never right|were outdated|was outdated|i was mistaken|my mistake|i misread|not the cause|wasn't the cause|nothing to do with|won't fix|won't help|does not fix|doesn't fix|correct myself|i was wrong|scrap the|actually not";
/// Whether the agent takes back something in a statement.
pub fn retracts(one: &UnitStatement) -> bool {
    one.speaker == Speaker::Agent && has_word_of(RETRACTS, &one.lower)
}

/// The statements of a unit with which the agent takes something back.
pub fn retracting(said: &[UnitStatement]) -> Vec<usize> {
    (0..said.len()).filter(|at| retracts(&said[*at])).collect()
}

/// Words and names that a retraction shares with what it takes back.
const SHARED: usize = 3;

/// A later message of the agent takes it back.
fn by_retraction(at: usize, said: &[UnitStatement], retracting: &[usize]) -> Option<usize> {
    let one = &said[at];
    let takes_back = |other: &&usize| {
        let other = &said[**other];
        other.turn > one.turn && one.words.intersection(&other.words).filter(|word| !is_stop_word(word)).count() >= SHARED
    };
    retracting.iter().find(takes_back).map(|other| said[*other].turn)
}

/// Later edits took out what it names, or the user quoted it and had it changed.
pub fn by_work(text: &str, turn: usize, contexts: &[TurnFacts]) -> Option<usize> {
    let later = turn + 1;
    let deleted = |context: &TurnFacts| {
        !context.deleted.is_empty() && contexts[turn].files.iter().any(|file| context.deleted.contains(file)) && {
            let lower = text.to_lowercase();
            !contexts[turn].files.iter().any(|file| !context.deleted.contains(file) && lower.contains(file.as_str()))
                && !["deleted", "removed"].iter().any(|word| in_english(text).to_lowercase().contains(word))
        }
    };
    let named = taken_out(text, &contexts[later..]).map(|at| later + at);
    named
        .or_else(|| contexts[later..].iter().position(deleted).map(|at| later + at))
        .or_else(|| quoted_and_changed(text, contexts, later))
}

/// The last edit of a name in the statement removed the name.
fn taken_out(text: &str, contexts: &[TurnFacts]) -> Option<usize> {
    names_in(text).iter().find_map(|name| {
        let gone = contexts.iter().rposition(|context| context.removed.contains(name))?;
        (!contexts[gone..].iter().any(|context| context.added.contains(name))).then_some(gone)
    })
}

fn quoted_and_changed(text: &str, contexts: &[TurnFacts], from: usize) -> Option<usize> {
    let lower = text.to_lowercase();
    let quoted = (from..contexts.len()).find(|at| quotes(&contexts[*at].prompt, &lower))?;
    (quoted..contexts.len()).take(2).find(|at| contexts[*at].edits > 0)
}

fn by_words(at: usize, said: &[UnitStatement], contexts: &[TurnFacts]) -> Option<usize> {
    let later = said[at + 1..].iter().position(|other| other.turn > said[at].turn).map(|n| at + 1 + n)?;
    let end = said.partition_point(|other| other.turn < contexts.len());
    restated(&said[at].words, &said[later.min(end)..end], contexts)
}

/// The turn of a later report of work that has most of the statement's words.
fn restated(words: &WordSet, later: &[UnitStatement], contexts: &[TurnFacts]) -> Option<usize> {
    const LEAST: usize = 3;
    let words: Vec<&String> = words.iter().filter(|word| !is_stop_word(word)).collect();
    if words.len() < LEAST {
        return None;
    }
    let restates = |other: &&UnitStatement| {
        other.speaker == Speaker::Agent
            && contexts[other.turn].edits > 0
            && words.iter().filter(|word| other.words.contains(**word)).count() * 10 >= words.len() * 6
    };
    later.iter().find(restates).map(|other| other.turn)
}

#[cfg(test)]
mod tests {
    use super::super::testing::unit;
    use super::super::turns::{turn_facts, turns, unit_statements};
    use super::*;

    /// The turns that superseded each statement that contains a text.
    fn superseded(turns_of_unit: &[super::super::testing::TestTurn], text: &str) -> Vec<Option<usize>> {
        let (story, domain) = (unit(turns_of_unit), crate::domains::of(None, None));
        let turns = turns(&story, &domain);
        let (statements, facts) = (unit_statements(&turns), turn_facts(&turns));
        let those = (0..statements.len()).filter(|at| statements[*at].text.contains(text));
        those.map(|at| superseded_at(at, &statements, &facts, &retracting(&statements))).collect()
    }

    #[test]
    fn a_later_report_of_work_supersedes_what_it_restates() {
        let edit: &[(&str, &str, bool)] = &[("edit", "src/retry.rs", true)];
        let turns = [
            ("Retry the upload", edit, "The upload of large files is retried three times with a pause of one second."),
            ("Five times, please", edit, "The upload of large files is retried five times with a pause of one second."),
        ];
        assert_eq!(superseded(&turns, "retried three times"), [Some(1)]);
        assert_eq!(superseded(&turns, "retried five times"), [None]);
    }

    #[test]
    fn a_defect_that_the_agent_proposed_to_fix_and_fixed_is_no_longer_so() {
        let edit: &[(&str, &str, bool)] = &[("edit", "src/names.rs", true)];
        let found =
            "The parser leaves `get_host` open to untrusted names. The root cause was a map that both levels of trust share.";
        let read: &[(&str, &str, bool)] = &[("read", "src/parse.rs", true)];
        let turns = |prompt: &'static str, offer: &str, work: &'static [(&'static str, &'static str, bool)]| {
            let closing = format!("{found} {offer}");
            let turns = [("Look at the advisory", read, closing.as_str()), (prompt, work, "Both are done.")];
            (superseded(&turns, "leaves `get_host`"), superseded(&turns, "root cause"))
        };
        let offer = "Want me to fix it now?";
        assert_eq!(turns("go ahead, fix it", offer, edit), (vec![Some(1)], vec![None]), "the cause stays");
        assert_eq!(turns("why is that so?", offer, edit).0, [None]);
        assert_eq!(turns("go ahead, fix it", offer, &[]).0, [None]);
        assert_eq!(turns("go ahead, fix it", "That is all.", edit).0, [None]);
    }

    #[test]
    fn statements_of_the_user_are_not_superseded_by_reports() {
        let edit: &[(&str, &str, bool)] = &[("edit", "src/retry.rs", true)];
        let turns = [
            ("Always retry the upload of large files three times", edit, "Done."),
            ("Go on", edit, "The upload of large files is always retried three times now."),
        ];
        assert_eq!(superseded(&turns, "Always retry"), [None]);
    }
}
