//! Phrases of the user that state a decision: "use X, not Y", "never", "always", "remember that".

use super::statements::{Words, begins_with, capitalized, has_word_of, is_one_of, own_sentences, word_count};
use crate::languages::{Language, in_english};

/// A decision of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The sentence, with its reason.
    pub said: String,
    pub alternatives: Vec<String>,
    pub reason: Option<String>,
    /// It holds by itself; any other is a decision only where the work follows it.
    pub is_rule: bool,
    /// It holds from now on: "never", "always", no choice between two.
    pub lasts: bool,
    /// It says enough to stand without a report of the work that followed.
    pub is_definite: bool,
}

/// Words after "no" of somebody who only disagrees.
const NO_NOUNS: Words = "i|i'm|im|it|it's|its|that|that's|this|these|those|they|we|you|he|she|there|not|add|use|keep|make|do|don't|let|let's|lets|remove|rename|change|put|move|show|is|are|was|were|should|can|could|would|what|why|how|when|if|so|now|then|please|the|a|an|my|your|our|go|leave|need|problem|idea|worries|wait|response|more|longer|other";
/// First words of a clause that change nothing.
const FILLERS: Words = "ok|okay|yes|yeah|yep|no|nope|so|well|and|then|also|please|actually|hmm|hm|right|sure|just|now|but|oh|cool|great|generally|again|maybe|all|good";
/// Words before a clause that say whose it is.
const REPORTING: Words = "says|said|say|states|stated|reads|according|writes|wrote|article|page|docs|documentation|error|message|comment|reviewer|review|readme|blog|suggests";
/// Words of an order for this moment.
const MOMENTARY: Words = "yet|for now|no code change|just the analysis|only the analysis|just an analysis|right now|this time|anything|just let me|until i|before you|wait|step by step|first look|stop here|let me know|continue|proceed";
/// Beginnings of a permission: given once, unless it says that it lasts.
const PERMITS: Words = "i allow|you may|you are allowed|you're allowed|you can|feel free|it's ok to|it is ok to|it's fine to";
/// Phrases of what holds from now on.
const LASTING: [&str; 8] = ["always", "never", "from now on", "don't ever", "do not", "no more", "next time", "have to approve"];
/// Verbs of work that leaves nothing decided.
const CHORES: Words = "commit|push|run|test|check|look|take|see|review|explain|show|tell|fix|continue|proceed|rebase|try|do|write|read|go|find|start|investigate|debug|verify|analyze|double|think|create|implement|help|give|open|close|merge|stage|unstage|undo|wait|get|list|describe|summarize|abandon|please|also|you|we|i|know|understand|confirm|update|print|come|handle|figure|address|set|setup|provide|work|discuss|start|support|reproduce|compare|ask|dig|talk|chat|elaborate|brainstorm|recap|clarify|walk|outline|draft|sketch|flesh|dive|remind";
/// Verbs behind "always", "never" and "don't" in the middle of a sentence, where other words are more common.
const ORDERS: Words = "accept|add|allow|answer|ask|assume|avoid|block|build|cache|call|change|check|commit|copy|create|delete|deploy|disable|document|drop|edit|enable|escape|expose|fail|follow|force|format|generate|guess|hard-code|hardcode|hide|ignore|import|include|install|keep|leave|log|make|merge|mock|modify|move|name|overwrite|pass|pin|prefer|print|push|read|rebase|release|rely|remove|rename|report|require|retry|return|reuse|round|run|send|serve|set|show|skip|sort|squash|store|swallow|test|throw|touch|trust|update|use|validate|wrap|write";
/// Beginnings of a choice among ways.
const SETTLES: [&str; 13] = [
    "use ",
    "go with ",
    "go for ",
    "stick with ",
    "stick to ",
    "stay with ",
    "keep ",
    "rename ",
    "call it ",
    "replace ",
    "switch to ",
    "default to ",
    "standardize on ",
];
/// Beginnings of what two people do.
const TOGETHER: [&str; 9] =
    ["let's ", "lets ", "let’s ", "let us ", "we'll ", "we will ", "we decided to ", "i decided to ", "i'd rather "];
/// Beginnings of a wish that the work may follow.
const WISHES: [&str; 36] = [
    "we should ",
    "it should ",
    "this should ",
    "they should ",
    "there should ",
    "can we ",
    "could we ",
    "couldn't we ",
    "why couldn't we ",
    "we need to ",
    "we need ",
    "it needs to ",
    "i want to ",
    "i want ",
    "i'd like to ",
    "i'd like ",
    "i would ",
    "instead of ",
    "make sure ",
    "ensure ",
    "let's ",
    "lets ",
    "remove ",
    "preserve ",
    "must ",
    "omit ",
    "only ",
    "don't ",
    "do not ",
    "idea to ",
    "the goal is ",
    "my goal is ",
    "we don't need ",
    "we do not need ",
    "you don't need ",
    "rather ",
];
/// Polite beginnings of an order, which is a wish if it says how something shall be.
const POLITE: [&str; 12] = [
    "can you please ",
    "could you please ",
    "can you ",
    "could you ",
    "would you ",
    "can we ",
    "could we ",
    "do you think you can also ",
    "do you think you can ",
    "is there a way to ",
    "would it be possible to ",
    "please ",
];
/// Verbs of an order that say how something shall be.
const DESIGNS: Words = "change|make|ensure|rename|replace|remove|use|keep|hide|hid|allow|limit|default|move|switch|combine|include|exclude|omit|drop|prefer|restrict|guide|always|only|never|explicitly|put|call|wrap|format|display";
/// Words in a wish's middle.
const WISHED: Words = " should | must | instead| needs to | need to have | shouldn't | doesn't work since | that's why we | only once| source of truth| couldn't we | i'd like | i want | let's | would be great if it | would be great to have | would be nice if it | would be nice to have | would be good to have | would be good if it | would be good to show | is now called | don't need to | be good to | good idea to ";
/// First words of a report that something does not work, and of a guess.
const REPORTS: Words = "still |can it be|could it be|i would have expected|i'd have expected|seems |it seems|that should have|it shows|i see|i don't see|it says|you |i noticed|not sure";
/// Words between the chosen option and the rejected ones.
const OVER: [&str; 5] = [" instead of ", " rather than ", ", not ", " and not ", " over "];
/// An object that can't be understood without what was said before.
const POINTING: Words =
    "this|that|it|it's|these|those|them|both|one|all|same|other|going|everything|option|options|your|its|their";

/// Decisions and wishes of a user in a prompt.
fn by_user(prompt: &str) -> Vec<Decided> {
    let language = Language::of(prompt);
    own_sentences(prompt).iter().filter_map(|sentence| decided(sentence, language)).collect()
}

/// Whether a prompt holds a decision that needs no work after it.
pub fn has_rule(prompt: &str) -> bool {
    by_user(prompt).iter().any(|decided| decided.is_rule)
        || own_sentences(prompt).iter().any(|sentence| forbids_what_was_said(sentence))
}

/// Returns the decision or wish in a sentence of a prompt in a language, in its words.
pub fn decided(sentence: &str, language: Language) -> Option<Decided> {
    let gloss = language.of_part(sentence).gloss(sentence);
    let decided = decided_in_english(gloss.text(), gloss.is_other_language())?;
    if !gloss.is_other_language() {
        return Some(decided);
    }
    let quoted = |part: &String| gloss.original(part).map(String::from);
    Some(Decided {
        said: quoted(&decided.said)?,
        alternatives: decided.alternatives.iter().filter_map(quoted).collect(),
        reason: decided.reason.as_ref().and_then(quoted),
        ..decided
    })
}

/// Whether a sentence forbids for good what the one before it speaks of: "Never do that again on your own".
pub fn forbids_what_was_said(sentence: &str) -> bool {
    const BEGINS: Words = "never do that|never do this|never do it|don't ever do|do not ever do|don't do that again|do not do that again|don't do this again|do not do this again|don't do it again";
    begins_with(BEGINS, without_fillers(&in_english(sentence).to_lowercase().replace('’', "'")))
}

/// `is_gloss`: the cue words are English, but their order may be another one: verbs may come late.
fn decided_in_english(sentence: &str, is_gloss: bool) -> Option<Decided> {
    const LONG: usize = 300;
    let sentence = sentence.trim();
    let lower = sentence.to_lowercase().replace('’', "'");
    let is_asked_for = POLITE.iter().any(|begin| lower.starts_with(begin));
    if sentence.chars().count() > LONG
        || !is_asked_for && begins_with("why|how|what|where|does|is|are|because|like|i just", &lower)
    {
        return None;
    }
    let asks = sentence.ends_with('?') && !sentence.ends_with(".?");
    let conditional = begins_with("if|when|whenever", &lower);
    let orders = !conditional
        && clauses(sentence).into_iter().any(|(before, clause)| {
            let before = before.to_lowercase();
            let reported = before.split(|c: char| !c.is_alphanumeric()).any(|word| is_one_of(REPORTING, word));
            !reported && !before.contains(" if ") && is_order(clause, before.trim().is_empty(), is_gloss)
        });
    let bare = without_fillers(&lower);
    // Where verbs come late, a question about a chore does not begin with it.
    let is_chore = is_gloss && asks && bare.split(|c: char| !c.is_alphanumeric()).any(|word| is_one_of(CHORES, word));
    // "Before you commit, show me" is for now; "always run the tests before you commit" is not.
    // "If it is set, do not ask" is about the product, and so is what is written now.
    let lasts = (LASTING.iter().any(|word| lower.contains(word) && !(*word == "do not" && lower.contains(" if ")))
        || ends_with_ever(&lower))
        && (lower.contains("from now on") || !lower.split(|c: char| !c.is_alphanumeric()).skip(1).any(|word| word == "now"));
    let momentary = MOMENTARY.split('|').any(|word| lower.contains(word) && !(lasts && word == "before you"));
    let is_rule = orders && !asks && !momentary;
    if !lasts && (begins_with(PERMITS, bare) || names_helper(bare)) {
        return None;
    }
    if !is_rule && (momentary && !is_held_back(bare) || is_chore || !is_wish(&lower, bare, conditional))
        || word_count(sentence) < 2
    {
        return None;
    }
    let said = sentence.trim_end_matches(['.', '!', ' ']);
    let said = if is_gloss { said.to_string() } else { capitalized(&requested(without_greeting(said))) };
    let reason = with_reason(&said).1;
    let lower = said.to_lowercase();
    let over = OVER.iter().filter_map(|over| Some((lower.find(over)?, over.len()))).min();
    let alternative = over.and_then(|(at, length)| said.get(at + length..));
    let alternative = alternative.map(|rest| with_reason(rest.split([',', ';', '(', ':']).next().unwrap_or(rest)).0);
    let alternatives: Vec<String> =
        alternative.map(|other| crate::text::cut(other.trim_matches([' ', '.', '?']), 60)).into_iter().collect();
    let lasts = lasts || lower.starts_with("next time") || is_written_down(&lower);
    let is_definite = !is_gloss
        && (over.is_some() || reason.is_some() || said.contains(['"', '`', '“']) || is_written_down(&lower))
        || begins_with("remove ", &lower);
    Some(Decided { said, alternatives, reason, is_rule, lasts, is_definite })
}

/// Whether a clause ends like "it should not be changed ever".
fn ends_with_ever(lower: &str) -> bool {
    let denies = |clause: &str| clause.contains(" not ") || clause.contains("n't ");
    lower.trim_end_matches(['.', '!']).split(", ").any(|clause| clause.ends_with(" ever") && denies(clause))
}

/// Words before what somebody else says.
const REPORTED: Words = " mentions that | mention that | says that | states that | claims that | suggests that | suggested that | argues that | reports that | according to ";
/// Words of one who weighs what was proposed.
const WEIGHED: Words = "something we should|we should do but|no idea|let's just see|let’s just see|let's see";
/// Words for what was said so far.
const DISCUSSED: Words = "discussion|conversation|all of this|this whole|what we |we've had|we've talked";

/// Whether a sentence says how something shall be; a decision only where the work follows.
fn is_wish(lower: &str, bare: &str, conditional: bool) -> bool {
    if conditional {
        // "If track data is shown, there should be a link".
        let main = lower.split_once(", ").map_or(lower, |(_, main)| main);
        return [" should ", "should ", " must ", " always ", " never ", "needs to "].iter().any(|word| main.contains(word));
    }
    let polite = POLITE.iter().find(|begin| bare.starts_with(**begin));
    let is_question = bare.ends_with('?') && !bare.ends_with(".?")
        || begins_with(
            "would this|would it|would that|is it|is this|is that|is there|are there|does |did |will it|will this",
            bare,
        );
    // "So maybe X, or do you have a better proposal?", "It should show both, right?"
    if is_question
        && (has_word_of("right?|should it?|does this make sense?|correct?|isn't it?|or do you|better proposal|better idea", bare)
            || !may_ask(bare) && polite.is_none())
    {
        return false;
    }
    if begins_with("ask |tell |let me|let us|come up|this brings up|the question", bare) || bare.contains("i want you to ") {
        return false;
    }
    // "You should update this, too" is an order for this task.
    if bare.contains("you should ") && ![" always ", " never ", "should not", "shouldn't"].iter().any(|word| bare.contains(word))
    {
        return false;
    }
    if begins_with(REPORTS, bare) || bare.contains(" seems ") {
        return bare.starts_with("not sure") && bare.contains(" should ");
    }
    // "The ticket mentions that it should be dropped" is what the ticket says.
    if has_word_of(REPORTED, bare) {
        return false;
    }
    // "It's something we should do" weighs, and a discussion that is to be written down settles nothing by that.
    if has_word_of(WEIGHED, bare) || has_word_of("document |capture |write down |write up ", bare) && has_word_of(DISCUSSED, bare)
    {
        return false;
    }
    let first_of = |rest: &str| rest.split([' ', ',']).next().unwrap_or_default().to_string();
    let begin = WISHES.iter().find(|begin| bare.starts_with(**begin));
    let is_test = ["add a test", "add tests", "a test for", "add at least one test", "add some tests"];
    if is_test.iter().any(|words| bare.contains(words)) {
        return false;
    }
    let begins = begin.is_some_and(|begin| !is_one_of(CHORES, &first_of(&bare[begin.len()..])) || is_held_back(bare));
    let asked_for = polite.is_some_and(|begin| is_one_of(DESIGNS, &first_of(&bare[begin.len()..])));
    let has_reason = || {
        let first = first_of(bare);
        !bare.ends_with('?') && is_one_of(ORDERS, &first) && [" because ", " since "].iter().any(|word| bare.contains(word))
    };
    let always = [" always ", " never "].iter().any(|word| bare.contains(word))
        && !begins_with("it |this|that|there|they|he |she |the |i |we |to be sure|these|those", bare);
    begins || asked_for || is_written_down(bare) || always || has_reason() || WISHED.split('|').any(|word| bare.contains(word))
}

/// Returns what a sentence asks for, without its polite words; `None` if it asks for nothing.
pub fn request_in(sentence: &str) -> Option<String> {
    const WANTS: [&str; 10] = [
        "i'd like to ",
        "i would like to ",
        "i want to ",
        "i'd like us to ",
        "let's ",
        "lets ",
        "we should ",
        "we need to ",
        "maybe we should ",
        "you should ",
    ];
    let bare = without_fillers(sentence.trim().trim_end_matches(['.', '!', ' ']));
    let lower = bare.to_lowercase().replace('’', "'");
    let first = lower.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
    if let Some(begin) = WANTS.iter().find(|begin| lower.starts_with(**begin)) {
        return Some(bare[begin.len()..].to_string());
    }
    let is_polite = POLITE.iter().any(|begin| lower.starts_with(begin));
    let orders = is_one_of(ORDERS, first)
        || is_one_of(CHORES, first) && !is_one_of("also|you|we|i|know|please|do|think|understand", first);
    (is_polite || orders && !bare.ends_with('?')).then(|| requested(bare))
}

/// Whether a sentence is a decision that holds from now on.
pub fn lasts(sentence: &str) -> bool {
    let is_decision = || decided(sentence, Language::of(sentence)).is_some_and(|decided| decided.lasts);
    let is_ban = || own_sentences(sentence).last().is_some_and(|last| forbids_what_was_said(last));
    may_last(sentence) && (is_decision() || is_ban())
}

/// Whether a text may say that it lasts. Most have none of the words, and need no reading.
pub fn may_last(text: &str) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    LASTING.iter().any(|word| lower.contains(word))
        || has_word_of(" ever| again", &lower)
        || has_word_of(RULES, &lower)
        || !Language::of(text).is_english()
}

/// Files and texts with rules for agents.
const RULES: Words = "claude.md|agents.md|gemini.md|copilot-instructions|.cursorrules|coding guidelines";

/// Whether something shall be written down where agents read it: "add this to CLAUDE.md".
fn is_written_down(lower: &str) -> bool {
    has_word_of(RULES, lower)
        && [" to ", " in ", " into "].iter().any(|word| lower.contains(word))
        && has_word_of("add |put |write |document", lower)
}

/// Whether a question may ask for something to be done.
fn may_ask(bare: &str) -> bool {
    begins_with("couldn't we|why couldn't we|why not|we should|should we|instead of", bare)
        || has_word_of(" can you | can we | could we | could you |couldn't we |always ", bare)
}

/// Whether a wish of the user can't be understood without what was said before it: "this should still be the old one".
pub fn needs_context(wish: &str) -> bool {
    const POINTS: Words = "it |it's |this |that |these |those |they ";
    const OBJECTS: Words = "change this|make this|do this|keep this|fix this|change it|fix it|change that|do that";
    let lower = in_english(wish).to_lowercase().replace('’', "'");
    begins_with(POINTS, without_fillers(&lower)) || has_word_of(OBJECTS, &lower)
}

/// Whether a sentence names the helper that does the work: "use the code-simplifier plugin".
fn names_helper(bare: &str) -> bool {
    const HELPERS: Words = "skill|skills|plugin|plugins|subagent|subagents|sub-agent|agent|agents|tool|command|mcp";
    let order = POLITE.iter().find_map(|begin| bare.strip_prefix(begin)).unwrap_or(bare);
    let Some(rest) = ["use the ", "use your ", "run the ", "launch the "].iter().find_map(|begin| order.strip_prefix(begin))
    else {
        return false;
    };
    rest.split(|c: char| !c.is_alphanumeric() && c != '-').take(NAME_OF_HELPER).any(|word| is_one_of(HELPERS, word))
}

/// Kinds of work that a user may keep for themselves.
const KEPT_WORK: [&str; 7] = ["commit", "push", "merge", "deploy", "release", "rebase", "publish"];

/// Returns the work that a wish keeps for the user: "let me commit", "do not push anything". "Never commit secrets" and
/// "don't push to main" keep none.
pub fn kept_work(wish: &str) -> Option<&'static str> {
    const BEGINS: [&str; 8] = ["let me ", "don't ", "do not ", "don't ever ", "never ", "i'll ", "i will ", "i want to "];
    const ALL: Words =
        "|it|them|anything|changes|the changes|my changes|your changes|by yourself|yourself|on your own|automatically";
    let lower = in_english(wish).to_lowercase().replace('’', "'");
    let behind =
        |words: &str| lower.split_once(words).map(|(_, rest)| rest.split(['.', ',', ';', '!', '(']).next().unwrap_or(rest));
    let keeps =
        |work: &str| BEGINS.iter().filter_map(|begin| behind(&format!("{begin}{work}"))).any(|rest| is_one_of(ALL, rest.trim()));
    KEPT_WORK.into_iter().find(|work| keeps(work))
}

/// Whether a prompt orders a kind of work, or asks for it as if ordered: "now please commit and push", "did you commit?".
pub fn orders_work(prompt: &str, work: &str) -> bool {
    own_sentences(prompt).iter().any(|sentence| {
        let lower = in_english(sentence).to_lowercase();
        let bare = without_fillers(&lower);
        let order = POLITE.iter().chain(&["did you "]).find_map(|begin| bare.strip_prefix(begin)).unwrap_or(bare);
        let words: Vec<&str> = order.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty()).collect();
        let begins = |at: usize| words.get(at) == Some(&work) && !matches!(words.get(at + 1), Some(&("message" | "messages")));
        begins(0) || (0..words.len()).any(|at| matches!(words[at], "and" | "then") && begins(at + 1))
    })
}

/// Maximum words of a helper's name with its kind.
const NAME_OF_HELPER: usize = 4;

/// Whether something is not to be done yet, other than a chore: "do not update the server yet".
fn is_held_back(bare: &str) -> bool {
    let rest = ["do not ", "don't "].iter().find_map(|begin| bare.strip_prefix(begin));
    rest.is_some_and(|rest| {
        let first = rest.split(' ').next().unwrap_or_default();
        rest.trim_end_matches(['.', '!']).ends_with(" yet")
            && is_one_of("update|deploy|delete|remove|migrate|release|publish|change|replace|switch|move|enable|disable", first)
    })
}

/// A wish without the polite words of its question: "Could we show the name instead?" is "Show the name instead".
fn requested(said: &str) -> String {
    let rest = without_fillers(said);
    let polite = POLITE.iter().find(|begin| rest.get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin)));
    let Some(rest) = polite.map(|begin| &rest[begin.len()..]) else { return said.to_string() };
    let rest = ["also ", "maybe ", "please "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    rest.trim_end_matches(['?', ' ', '.', ':']).to_string()
}

/// Questions about how the conversation goes on.
const PROCESS_QUESTIONS: Words = "what would you like to do|what do you want to do|what next|do next|how would you like to proceed|how should i proceed|next area|more questions|would you like me to|do you want me to|want to discuss|want me to|ready to|shall i |should i |proceed|continue|move on";

/// Whether a question of the agent asks how something shall be, not how the conversation goes on.
pub fn is_of_design(question: &str) -> bool {
    !has_word_of(PROCESS_QUESTIONS, &in_english(question).to_lowercase())
}

/// Returns true if an answer to the agent's question settles something: it is not "yes", no order for this moment, and does
/// not ask or weigh itself.
pub fn settles(answer: &str) -> bool {
    const WEIGHS: Words = "hmm|hmmm|hmmmm|it depends|depends|not sure|i'm not sure|i don't know|this would depend|from my understanding|what |why |how |can |could |which ";
    if answer.trim_end().ends_with(['?', '？']) || begins_with(WEIGHS, &in_english(answer).to_lowercase()) {
        return false;
    }
    let lower = in_english(answer).to_lowercase();
    let bare = without_fillers(&lower);
    let first = bare.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_momentary = is_one_of(CHORES, first) || is_one_of("skip|cancel|stop|later", first) || has_word_of(MOMENTARY, bare);
    !is_momentary && !is_one_of(FILLERS, bare.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// Returns true if an answer that the user typed holds from now on: "SQLite, never Redis".
pub fn answer_lasts(answer: &str) -> bool {
    let lower = in_english(answer).to_lowercase();
    !answer.ends_with('?') && LASTING.iter().any(|word| lower.contains(word))
}

/// The clauses of a sentence, each with what stands before it.
fn clauses(sentence: &str) -> Vec<(&str, &str)> {
    let mut starts = vec![0];
    for mark in [", ", "; ", ": ", " - ", " – ", " — ", " but ", " and "] {
        starts.extend(sentence.match_indices(mark).map(|(at, mark)| at + mark.len()));
    }
    starts.into_iter().map(|at| sentence.split_at(at)).collect()
}

/// A sentence without the words that only answer the one before it: "Yes and do not wrap lines" is "do not wrap lines".
fn without_greeting(sentence: &str) -> &str {
    const ANSWERS: Words = "ok|okay|yes|yeah|yep|yup|hmm|hm|oh|and|but|also|actually|please|then";
    const ANSWERS_ALONE: Words = "no|nope|so|well|right|sure|cool|great|good|perfect|exactly|correct";
    let mut rest = sentence.trim_start();
    while let Some((word, after)) = rest.split_once(' ') {
        let bare = word.trim_end_matches([',', '.', '!', ':', '-', '…']).to_lowercase();
        let stands_alone = bare.len() < word.len() && is_one_of(ANSWERS_ALONE, &bare);
        let disagrees = bare == "no" && without_fillers(rest).len() < rest.len();
        if !(is_one_of(ANSWERS, &bare) || stands_alone || disagrees) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

fn without_fillers(clause: &str) -> &str {
    let mut rest = clause.trim_start();
    while let Some((word, behind)) = rest.split_once(' ') {
        let bare = word.trim_end_matches([',', '.', '!', ':', '-', '…']).to_ascii_lowercase();
        // "No emojis in commit messages" is an order, "no, use tabs" and "no use tabs" begin with a filler;
        // "no just the name" turns down what was offered.
        let next = behind.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default().to_lowercase();
        let denies = bare == "no" && !word.ends_with([',', '.', '!']) && !is_one_of(NO_NOUNS, &next);
        if denies || !is_one_of(FILLERS, &bare) && !bare.is_empty() {
            break;
        }
        rest = behind.trim_start();
    }
    rest
}

/// Whether a clause settles something for good: "never …", "from now on …", "use X, not Y", "money is always Decimal".
fn is_order(clause: &str, begins: bool, is_gloss: bool) -> bool {
    let clause = without_fillers(clause).trim_end_matches(['.', '!', ' ']).replace('’', "'");
    let lower = clause.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let [first, second, ..] = words.as_slice() else { return false };
    let verb_at = |at: usize| words.get(at).is_some_and(|word| is_one_of(ORDERS, word.trim_matches(',')));
    if ["from now on", "in future", "in the future", "next time"].iter().any(|begin| lower.starts_with(begin)) {
        return words.len() >= 5;
    }
    // "By unit I mean a work unit"
    if begins && lower.starts_with("by ") && (lower.contains(" i mean ") || lower.contains(" we mean ")) {
        return true;
    }
    // "remember that …", "keep in mind: …"
    if begins
        && ["remember that ", "remember: ", "keep in mind", "note that ", "bear in mind", "for future "]
            .iter()
            .any(|b| lower.starts_with(b))
    {
        return words.len() >= 5;
    }
    // "Verwende nie float" is "use never float"; an adverb may stand between "don't" and its verb.
    if is_gloss && begins && words.len() >= 3 {
        let orders = match (*first, *second) {
            (_, "never" | "always") => verb_at(0) || verb_at(2),
            ("don't", _) => (1..=3).any(verb_at),
            _ => false,
        };
        if orders {
            return true;
        }
    }
    match (*first, *second) {
        ("never" | "always", "ever") => return verb_at(2),
        ("never" | "always", _) => return words.len() >= 3 && (verb_at(1) || begins && may_order(second)),
        ("don't", "ever") => return verb_at(2),
        ("do", "not") if begins => return verb_at(2) && words.len() >= 4,
        ("don't", _) if begins => return verb_at(1) && words.len() >= 3,
        ("stop", verb) if begins => return verb.ends_with("ing") && words.len() >= 3,
        ("no", noun) if begins => {
            return !is_one_of(NO_NOUNS, noun) && words.len() >= 4;
        }
        ("prefer" | "preferable" | "preferably" | "omit", _) if begins => return words.len() >= 3,
        _ => {}
    }
    // "we always return 404", "money is always Decimal, never float", "you must never …"
    let subject = words.iter().take(4).position(|word| matches!(*word, "always" | "never"));
    if let Some(at) = subject.filter(|at| begins && (1..4).contains(at)) {
        let is_rule =
            matches!(words[at - 1], "is" | "are" | "must" | "should" | "we" | "you" | "to" | "be") && words.len() > at + 1;
        return is_rule && !matches!(words[0], "it" | "this" | "that" | "there" | "i" | "he" | "they")
            || verb_at(at + 1) && words[0] == "we";
    }
    // "I want error messages in German"
    if begins
        && lower.starts_with("i want ")
        && !matches!(words.get(2), Some(&("to" | "you" | "it" | "this" | "that" | "them" | "us" | "in" | "on" | "at" | "for")))
    {
        return words.len() >= 5
            && words.iter().skip(3).any(|word| matches!(*word, "in" | "as" | "on" | "without" | "only" | "instead"));
    }
    picks(&lower, begins, is_gloss)
}

/// "let's go with X", "use X, not Y", "keep X, don't …".
fn picks(lower: &str, begins: bool, is_gloss: bool) -> bool {
    let together = TOGETHER.iter().find(|begin| lower.starts_with(**begin)).map_or(0, |begin| begin.len());
    let rest = &lower[together..];
    let Some(verb) = SETTLES.iter().find(|verb| rest.starts_with(**verb)) else {
        return is_gloss && together > 0 && OVER.iter().any(|over| rest.contains(over));
    };
    let object = rest[verb.len()..].trim();
    let first = object.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    if is_one_of(POINTING, first) && word_count(object) < 4
        || object.starts_with("the same")
        || *verb == "rename " && object.starts_with("to ")
    {
        return false;
    }
    let over = OVER.iter().any(|over| object.contains(over)) || object.contains(", don't ");
    over || together > 0 && (1..=25).contains(&word_count(object)) || begins && *verb == "keep " && word_count(object) >= 3
}

/// Whether a word behind "always" or "never" can be a verb that orders: nothing that describes, and no verb of the third
/// person, the past or the passive.
fn may_order(word: &str) -> bool {
    const DESCRIBES: Words = "the|a|an|this|that|these|those|my|your|our|his|her|its|their|it|he|she|they|in|on|at|by|for|from|with|to|of|as|again|more|mind|been|had|got|have|be|same|some|any|one|here|there|ever|quite|really|so|too|very|able|sure|true|false|empty|null|present|right|wrong|available|possible|open|closed|up|down|when|if|where|because|seen|shown|known|done|made|taken|given|written|gone|found|built|sent|kept|left|lost|told|slow|fast|good|bad|happy|fun|nice|seem|look|feel|get|thought|knew|saw|went|came|worked|not|just|only|also|about|like|under|over|into|after|before|would|could|should|will|can|may|might|must";
    let plain = word.len() >= 3 && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let inflected = ["ed", "ing", "ly", "s"].iter().any(|end| word.ends_with(end))
        && !["ss", "feed", "need", "bring", "process", "press"].iter().any(|end| word.ends_with(end));
    plain && !inflected && !is_one_of(DESCRIBES, word)
}

/// Splits "X because Y" and "X: Y" in two.
pub fn with_reason(text: &str) -> (String, Option<String>) {
    let lower = text.to_ascii_lowercase();
    let mut marks: Vec<(usize, usize)> = [" because of ", " because ", " since ", " as it ", " so that ", ", so "]
        .iter()
        .filter_map(|mark| Some((lower.find(mark)?, mark.len())))
        .collect();
    marks.extend(lower.find(": ").filter(|at| word_count(&text[..*at]) >= 4 && word_count(&text[*at..]) >= 2).map(|at| (at, 2)));
    let trimmed = |text: &str| text.trim_matches([' ', ',', ':']).to_string();
    // Of two marks at one place the longer one counts.
    match marks.into_iter().min_by_key(|(at, length)| (*at, std::cmp::Reverse(*length))).filter(|(at, _)| *at > 0) {
        Some((at, length)) => (trimmed(&text[..at]), Some(trimmed(&text[at + length..]))),
        None => (trimmed(text), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::gloss;

    fn decided(sentence: &str) -> Option<Decided> {
        super::decided(sentence, Language::of(sentence))
    }

    #[test]
    fn who_asks_to_talk_or_to_write_the_talk_down_decides_nothing() {
        for said in [
            "Can we talk a bit more about what an unconfirmed finding might be?",
            "I want to dig deeper into the sandbox experience.",
            "I think it's something we should do but you are overengineering.",
            "Can we document this whole discussion somewhere in the planning?",
            "We should capture all of this in the docs folder.",
            "Let's just see how it goes.",
            "The ticket mentions that this is a breaking change, and the same strategy should be followed.",
        ] {
            assert_eq!(decided(said), None, "{said}");
        }
        assert!(decided("We should document the limits of the parser in the README.").is_some());
        let schema = decided("Full schema should not be updated ever, it is a snapshot.").expect("a wish");
        assert!(schema.lasts);
        assert!(!decided("The schema should not be updated here.").expect("a wish").lasts);
        assert!(super::lasts("I push myself. Don't do that again") && !super::lasts("Try it again"));
        assert!(forbids_what_was_said("Never do that again on your own.") && !forbids_what_was_said("Never do the review."));
    }

    #[test]
    fn lasting_orders_are_decisions_however_they_are_put() {
        for order in [
            "Never use float for money.",
            "Always use Decimal for money.",
            "Money is always Decimal, never float.",
            "From now on run ruff before each commit.",
            "Please never touch the migrations folder.",
            "Do not add dependencies.",
            "We always return 404 for deleted users.",
            "Don't ever commit to main directly.",
            "Stop using mocks in integration tests.",
            "Let's go with Kafka rather than RabbitMQ.",
            "Let's stick with REST.",
            "Keep the old endpoint, don't remove it.",
            "I want error messages in German.",
            "Always run the tests before you commit.",
            "Prefer composition over inheritance in this repo.",
            "No emojis in commit messages.",
            "We decided to go with Kafka rather than RabbitMQ.",
            "Remember: the staging database is reset every night.",
        ] {
            assert!(decided(order).is_some_and(|decided| decided.is_rule), "{order}");
        }
    }

    #[test]
    fn what_only_this_moment_needs_is_no_decision() {
        for said in [
            "Don't commit yet.",
            "let's fix 3 too",
            "can you write a test for it?",
            "No, I mean the other file.",
            "No response needed from your side.",
            "I want to see the diff.",
            "It never works on my machine.",
            "The docs say: always use tabs.",
            "If it fails, never retry.",
            "is it always like that?",
            "then run the tests",
            "don't change anything, just let me know",
            "Stop.",
            "No im talking about the other page",
            "I want in the agent a list of what it did",
        ] {
            assert!(!decided(said).is_some_and(|decided| decided.is_rule), "{said}");
        }
    }

    #[test]
    fn the_helper_that_does_the_work_is_no_decision() {
        for said in ["use the code-simplifier plugin", "can you use the test repo skill with the manual commit strategy"] {
            assert_eq!(decided(said), None, "{said}");
        }
        assert!(decided("Always use the code-review skill before you commit.").is_some_and(|decided| decided.lasts));
        assert!(decided("use the system font instead of Inter").is_some());
    }

    #[test]
    fn requirements_of_the_product_do_not_last() {
        for said in [
            "if telemetry is in the config, do not ask anymore",
            "Keep reading the old key, but always write the new one now, and use 'steps' in messages",
        ] {
            assert!(!decided(said).is_some_and(|decided| decided.lasts), "{said}");
        }
        for said in ["Do not wrap long lines in Markdown", "From now on never push to main"] {
            assert!(decided(said).is_some_and(|decided| decided.lasts), "{said}");
        }
    }

    #[test]
    fn a_wish_that_points_needs_its_context() {
        for said in ["This should still be Checkpoints", "I'd like to change this so it's more interactive"] {
            assert!(needs_context(said), "{said}");
        }
        for said in ["Make it clear that this is no summary", "Use 'steps' in messages"] {
            assert!(!needs_context(said), "{said}");
        }
    }

    #[test]
    fn a_permission_for_once_and_a_question_without_its_mark_decide_nothing() {
        for said in [
            "I allow you to commit with \"--no-verify\"",
            "You may skip the hooks because somebody else edits that file",
            "would this work better as hooks instead of commands",
            "I want you to use the other branch instead",
        ] {
            assert_eq!(decided(said), None, "{said}");
        }
        assert!(decided("From now on you may push to next without asking").is_some());
    }

    #[test]
    fn words_that_only_answer_are_left_out() {
        let said = |text: &str| decided(text).map(|decided| decided.said);
        let wrap = "Yes and do not wrap long lines in the markdown as that ruins the rendering";
        assert_eq!(said(wrap).as_deref(), Some("Do not wrap long lines in the markdown as that ruins the rendering"));
        assert_eq!(said("No, use tabs instead of spaces").as_deref(), Some("Use tabs instead of spaces"));
        for whole in ["No emojis in commit messages", "No just add the whole name", "All amounts are always Decimal"] {
            assert_eq!(said(whole).as_deref(), Some(whole));
        }
    }

    #[test]
    fn decisions_in_other_languages_are_drawn_and_quoted() {
        for order in [
            "Verwende nie float für Geld.",
            "Immer Decimal für Geldbeträge verwenden.",
            "Ab jetzt vor jedem Commit ruff laufen lassen.",
            "Bitte nie den Ordner migrations anfassen.",
            "Keine neuen Dependencies ohne Absprache.",
            "Lass uns Kafka statt RabbitMQ nehmen.",
            "Wir bleiben bei REST.",
            "Merk dir: die Staging-Datenbank wird jede Nacht zurückgesetzt.",
            "Nimm Postgres statt MySQL, weil wir JSONB brauchen.",
            "Gelöschte Nutzer müssen immer 404 liefern.",
            "金额绝不要用 float",
            "以后每次提交前都要跑 ruff",
            "不要直接推送到 main 分支",
            "我们用 Kafka 而不是 RabbitMQ",
            "金额一律用 Decimal，因为 float 有误差",
            "记住：staging 数据库每晚都会重置",
        ] {
            assert!(decided(order).is_some_and(|decided| decided.is_rule), "{order}: {}", gloss(order).text());
        }
        for said in [
            "Noch nicht committen.",
            "kannst du dafür einen Test schreiben?",
            "Nein, ich meine die andere Datei.",
            "Das geht nie auf meinem Rechner.",
            "dann lass die Tests laufen",
            "ist das immer so?",
            "先别提交",
            "能不能给它写个测试？",
            "不，我是说另一个文件",
            "然后跑一下测试",
        ] {
            assert!(!decided(said).is_some_and(|decided| decided.is_rule), "{said}: {}", gloss(said).text());
        }
        let german = decided("Nimm Postgres statt MySQL, weil wir JSONB brauchen.").unwrap();
        assert_eq!(german.said, "Nimm Postgres statt MySQL, weil wir JSONB brauchen");
        assert_eq!((german.alternatives, german.reason.as_deref()), (vec!["MySQL".to_string()], Some("wir JSONB brauchen")));
        let chinese = decided("我们用 Kafka 而不是 RabbitMQ，因为要顺序").unwrap();
        assert_eq!(chinese.said, "我们用 Kafka 而不是 RabbitMQ，因为要顺序");
        assert_eq!((chinese.alternatives, chinese.reason.as_deref()), (vec!["RabbitMQ".to_string()], Some("要顺序")));
    }

    #[test]
    fn the_reason_and_the_alternative_are_distinguished() {
        let said = |text: &str| decided(text).map(|d| (d.said, d.alternatives.join("|"), d.reason.unwrap_or_default()));
        let parts = |said: &str, alternatives: &str, reason: &str| Some((said.into(), alternatives.into(), reason.into()));
        assert_eq!(
            said("Let's go with weasyprint, not reportlab: the designers write CSS."),
            parts("Let's go with weasyprint, not reportlab: the designers write CSS", "reportlab", "the designers write CSS")
        );
        assert_eq!(
            said("use Postgres rather than MySQL because of JSONB"),
            parts("Use Postgres rather than MySQL because of JSONB", "MySQL", "JSONB")
        );
        assert_eq!(said("we should show the name instead"), parts("We should show the name instead", "", ""));
    }

    #[test]
    fn rules_about_a_kind_of_work_do_not_keep_it() {
        for (wish, work) in [
            ("Next time you made changes to the code, let me commit", Some("commit")),
            ("Do not push anything", Some("push")),
            ("Never commit secrets", None),
            ("Don't push to main", None),
            ("Always run the tests before you commit", None),
        ] {
            assert_eq!(kept_work(wish), work, "{wish}");
        }
        for order in ["commit this", "OK, please commit and push", "could you commit it?", "Did you commit?"] {
            assert!(orders_work(order, "commit"), "{order}");
        }
        for other in ["why did you commit?", "what was the last commit", "commit message is wrong", "do not commit"] {
            assert!(!orders_work(other, "commit"), "{other}");
        }
    }
}
