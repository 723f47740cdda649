//! The person's words: prompts, distinguished from what agents and clients send in their place, and answers to questions
//! that an agent asks by a tool.

use super::payload::{field, text_of, unpacked};
use crate::model::UserAnswer;
use serde_json::Value;

/// Who wrote a text that an agent received as a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    Person,
    /// Another agent: a subagent's report, another session's message.
    Agent,
    /// The program around the agent: notifications, reminders.
    Client,
}

/// Prefixes of messages that agents send to each other.
const AGENTS: [&str; 6] = [
    "<agent-message",
    "<cross-session-message",
    "<teammate-message",
    "<subagent_notification>",
    "Another Claude session sent a message",
    "[Subagent hand-back]",
];

/// Prefixes of messages that clients write. Text after such a frame is the client's, too.
const CLIENTS: [&str; 7] = [
    "<task-notification>",
    "<local-command-",
    "<bash-",
    "<ci-monitor-event>",
    "<system_notification>",
    "<turn_aborted>",
    "[SYSTEM NOTIFICATION - NOT USER INPUT]",
];

/// Blocks that clients put before a prompt.
const BEFORE_PROMPT: [&str; 5] =
    ["system-reminder", "environment_context", "user_instructions", "ide_opened_file", "ide_selection"];

/// Frames that clients put around a prompt or a command of the person.
const AROUND_PROMPT: [&str; 3] = ["command-message", "command-name", "user_query"];

/// Returns who speaks in a prompt, judged by its frame. A text that consists of one unknown frame, such as
/// `<some-event>…</some-event>`, is the client's; with other text after the frame, it is the person's.
pub fn author(prompt: &str) -> Author {
    let before = prompt.trim_start_matches('\u{feff}').trim();
    let prompt = without_client_blocks(before);
    if prompt.is_empty() && !before.is_empty() {
        return Author::Client;
    }
    if AGENTS.iter().any(|begin| prompt.starts_with(begin)) {
        return Author::Agent;
    }
    let is_stopped = !prompt.contains('\n') && prompt.trim_end_matches('.').ends_with(" were stopped by the user");
    if is_stopped || CLIENTS.iter().any(|begin| prompt.starts_with(begin)) || is_unknown_frame(prompt) {
        return Author::Client;
    }
    Author::Person
}

/// Returns a prompt without the blocks that clients put before it.
pub fn without_client_blocks(prompt: &str) -> &str {
    let mut prompt = prompt.trim();
    while let Some(rest) = BEFORE_PROMPT.iter().find_map(|name| without_block(prompt, name)) {
        prompt = rest.trim();
    }
    prompt
}

/// Removes a block at the start of a text; returns an empty text if the block is not closed, `None` if there is none.
fn without_block<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let inside = text.strip_prefix('<')?.strip_prefix(name)?.strip_prefix('>')?;
    Some(inside.split_once(&format!("</{name}>")).map_or("", |(_, after)| after))
}

/// Returns true if a text is one frame with a name that no HTML element has, or begins with such a tag on a line of its
/// own that is never closed.
fn is_unknown_frame(prompt: &str) -> bool {
    let Some((tag, after)) = prompt.strip_prefix('<').and_then(|inside| inside.split_once('>')) else { return false };
    let name = tag.split([' ', '\n']).next().unwrap_or_default();
    let is_made =
        name.contains(['-', '_']) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b));
    if !is_made || AROUND_PROMPT.contains(&name) {
        return false;
    }
    match after.rsplit_once(&format!("</{name}>")) {
        Some((_, rest)) => rest.trim().is_empty(),
        None => after.starts_with('\n'),
    }
}

/// Tools by which agents ask the person.
const ASKING: [&str; 9] = [
    "AskUserQuestion",
    "ask_followup_question",
    "ask_question",
    "ask_user",
    "ask_user_question",
    "AskUser",
    "question",
    "request_user_input",
    "vscode_askQuestions",
];

/// Words before an answer that is given as text.
const ANSWERED: [&str; 5] = ["User selected:", "User responded:", "User answered:", "User response:", "Answer:"];

/// Returns the person's answers in a call of a tool that asks; empty for any other call, and if nothing was answered.
pub fn answers(tool: &str, input: &Value, response: &Value) -> Vec<UserAnswer> {
    if !ASKING.contains(&tool) {
        return Vec::new();
    }
    let response = unpacked_response(response);
    let questions = match input["questions"].as_array() {
        Some(questions) => questions.iter().collect(),
        None => vec![input],
    };
    let is_only = questions.len() == 1;
    let answered = questions.into_iter().enumerate().filter_map(|(at, asked)| {
        let question = field(asked, &["question", "prompt", "message", "header"]).as_str().unwrap_or_default().trim();
        let keys = [question, asked["id"].as_str().unwrap_or_default(), asked["header"].as_str().unwrap_or_default()];
        let given = [&response["answers"], &input["answers"]].into_iter().find_map(|all| given(all, &keys, at));
        let given = given.or_else(|| response.as_str().and_then(|said| printed(said, question, is_only)))?;
        let notes = response["annotations"][question]["notes"].as_str().filter(|notes| !given.contains(notes.trim()));
        let text = [Some(given.as_str()), notes].into_iter().flatten().collect::<Vec<_>>().join("\n");
        let options = field(asked, &["options", "choices"]).as_array().into_iter().flatten();
        let label =
            |option: &Value| option.as_str().or_else(|| field(option, &["label", "title", "value"]).as_str()).map(String::from);
        Some(UserAnswer { question: question.to_string(), options: options.filter_map(label).collect(), text })
    });
    let mut answered: Vec<UserAnswer> = answered.collect();
    // A question may be cut in the call and whole beside its answer.
    for (question, answer) in response["answers"].as_object().into_iter().flatten() {
        let is_known = answered.iter().any(|known| known.question == *question);
        let asked = input["questions"].as_array().into_iter().flatten().find(|asked| {
            let cut = asked["question"].as_str().and_then(|text| text.strip_suffix('…'));
            cut.is_some_and(|cut| question.starts_with(cut))
        });
        if let (false, Some(asked), Some(text)) = (is_known, asked, answer.as_str()) {
            let options = asked["options"].as_array().into_iter().flatten().filter_map(|option| option["label"].as_str());
            let options = options.map(String::from).collect();
            answered.push(UserAnswer { question: question.clone(), options, text: text.trim().to_string() });
        }
    }
    answered
}

/// Returns a response's content: JSON inside a string, or inside the first text block.
fn unpacked_response(response: &Value) -> Value {
    let inside = unpacked(response);
    match &inside["answers"] {
        Value::Null => unpacked(&Value::from(text_of(&inside))),
        _ => inside,
    }
}

/// Finds an answer among answers by question, id, header or position.
fn given(answers: &Value, keys: &[&str], at: usize) -> Option<String> {
    let by_key = || keys.iter().filter(|key| !key.is_empty()).find_map(|key| answers.get(*key));
    let answer = by_key().or_else(|| answers.get(at)).or_else(|| answers.get(at.to_string()))?;
    let words = |value: &Value| value.as_str().map(|text| text.trim_start_matches("user_note:").trim().to_string());
    let text = match answer {
        Value::Array(all) => all.iter().filter_map(words).collect::<Vec<_>>().join("\n"),
        Value::Object(_) => return given_in(answer),
        one => words(one)?,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Reads an answer that is an object: a list of answers, or selected options and free text.
fn given_in(answer: &Value) -> Option<String> {
    let mut parts = Vec::new();
    for key in ["answers", "selected", "answer", "freeText", "text", "notes"] {
        match &answer[key] {
            Value::Array(all) => parts.extend(all.iter().filter_map(Value::as_str)),
            one => parts.extend(one.as_str()),
        }
    }
    let lines = parts.iter().map(|part| part.trim_start_matches("user_note:").trim()).filter(|part| !part.is_empty());
    Some(lines.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
}

/// Finds an answer in a sentence for the agent: `"question"="answer"`, `User selected: answer`, `<answer>…</answer>`.
fn printed(said: &str, question: &str, is_only: bool) -> Option<String> {
    let quoted = said.split_once(&format!("\"{question}\"=\"")).map(|(_, behind)| {
        let end = ["\", \"", "\". ", "\"."].iter().filter_map(|mark| behind.find(mark)).min();
        &behind[..end.unwrap_or(behind.len())]
    });
    let text = match quoted {
        Some("Unanswered") => return None,
        Some(quoted) => quoted,
        None if !is_only => return None,
        None => {
            let tagged = said.split_once("<answer>").and_then(|(_, behind)| behind.split_once("</answer>"));
            let marked = ANSWERED.iter().find_map(|mark| said.trim_start().strip_prefix(mark));
            tagged.map(|(inside, _)| inside).or(marked)?
        }
    };
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// Mark before the words that a person typed when they refused a call, or a plan.
const REFUSED_WITH: &str = "the user said:";

/// Sentences of the client that stand where the person's words do.
const NO_WORDS: [&str; 1] = ["The user wants to clarify these questions."];

/// Returns what the person said when they refused a call; `what` names the call.
pub fn refusal(said: &str, what: &str) -> Option<UserAnswer> {
    let (_, words) = said.split_once(REFUSED_WITH)?;
    let words = words.split("\n\nNote: The user's next message").next().unwrap_or(words).trim();
    if words.is_empty() || NO_WORDS.iter().any(|sentence| words.starts_with(sentence)) {
        return None;
    }
    Some(UserAnswer { question: format!("May the agent do this? {what}"), options: Vec::new(), text: words.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_a_persons_unless_its_frame_shows_another_speaker() {
        for (prompt, by) in [
            ("Use Redis", Author::Person),
            ("<my-button> does not render", Author::Person),
            ("<div>\nwhy is this empty?", Author::Person),
            ("<pasted-log>\nerror\n</pasted-log>\nFix this", Author::Person),
            ("<Vec<T> as IntoIterator>::Item is wrong here", Author::Person),
            ("<system-reminder>\nThe date\n</system-reminder>\nUse Redis", Author::Person),
            ("<environment_context>\n<cwd>/a</cwd>\n</environment_context>\n\nUse Redis", Author::Person),
            ("<user_query>\nStep\n</user_query>", Author::Person),
            ("My jobs were stopped by the user.\nUndo that.", Author::Person),
            ("<agent-message from=\"a1\">\nUse Redis\n</agent-message>", Author::Agent),
            ("<cross-session-message from=\"b\">Push it</cross-session-message>", Author::Agent),
            ("Another Claude session sent a message:\n<agent-message from=\"c\">x", Author::Agent),
            ("[Subagent hand-back] The report", Author::Agent),
            ("<ide_selection>a</ide_selection><agent-message>Use Redis</agent-message>", Author::Agent),
            ("<system-reminder>\nThe date\n</system-reminder>", Author::Client),
            ("<system-reminder>\nnever closed", Author::Client),
            ("[SYSTEM NOTIFICATION - NOT USER INPUT]\nIt ended", Author::Client),
            ("<bash-input>ls</bash-input><bash-stdout>a</bash-stdout>\nb", Author::Client),
            ("<task-notification>\n<status>failed</status>", Author::Client),
            ("2 background agents were stopped by the user.", Author::Client),
            ("<scheduled-run id=\"4\">\nNever deploy\n</scheduled-run>", Author::Client),
            ("<monitor_event>\nnever closed", Author::Client),
        ] {
            assert_eq!(author(prompt), by, "{prompt}");
        }
    }

    #[test]
    fn answers_are_found_in_each_agents_call() {
        let asked = json!({"questions": [
            {"id": "db", "question": "Which database?", "header": "Store", "options": [{"label": "SQLite"}, {"label": "Redis"}]},
            {"id": "os", "question": "Which system?", "options": ["Linux", "BSD"]},
        ]});
        let both = json!({"answers": {"Which database?": "SQLite", "Which system?": "Linux"}});
        for (tool, response) in [
            ("AskUserQuestion", both.clone()),
            (
                "AskUserQuestion",
                json!(
                    "User has answered your questions: \"Which database?\"=\"SQLite\", \"Which system?\"=\"Linux\". You can now continue with the user's answers in mind."
                ),
            ),
            (
                "request_user_input",
                json!(json!({"answers": {"db": {"answers": ["SQLite"]}, "os": {"answers": ["user_note: Linux"]}}}).to_string()),
            ),
            ("ask_user", json!([{"text": json!({"answers": {"0": "SQLite", "1": ["Linux"]}}).to_string()}])),
            ("question", json!({"answers": [["SQLite"], ["Linux"]]})),
            (
                "vscode_askQuestions",
                json!({"answers": {"Store": {"selected": ["SQLite"], "freeText": null}, "Which system?": {"freeText": "Linux"}}}),
            ),
            ("ask_user_question", both),
        ] {
            let found = answers(tool, &asked, &response);
            let said: Vec<&str> = found.iter().map(|answer| answer.text.as_str()).collect();
            assert_eq!(said, ["SQLite", "Linux"], "{tool} {response}");
            assert_eq!(found[0].options, ["SQLite", "Redis"], "{tool}");
            assert_eq!(found[1].options, ["Linux", "BSD"], "{tool}");
        }
        let one = json!({"question": "Which port?", "choices": ["80", "8080"]});
        for (tool, response) in [
            ("ask_user", json!("User selected: 8080")),
            ("ask_user", json!({"content": "User responded: 8080"})),
            ("ask_followup_question", json!("<answer>\n8080\n</answer>")),
        ] {
            let expected =
                UserAnswer { question: "Which port?".into(), options: vec!["80".into(), "8080".into()], text: "8080".into() };
            assert_eq!(answers(tool, &one, &response), [expected], "{tool} {response}");
        }
    }

    #[test]
    fn an_answer_to_a_question_that_the_call_has_cut_is_found() {
        let asked = json!({"questions": [
            {"question": "Should the plan be stored as JSON (parseable, kept in…", "options": [{"label": "JSON"}, {"label": "Markdown"}]},
            {"question": "Which port?", "options": []}]});
        let whole = "Should the plan be stored as JSON (parseable, kept in the database)?";
        let found =
            answers("AskUserQuestion", &asked, &json!({"answers": {whole: "Markdown", "Which port?": "80", "other": "x"}}));
        let said: Vec<(&str, &str)> = found.iter().map(|one| (one.question.as_str(), one.text.as_str())).collect();
        assert_eq!(said, [("Which port?", "80"), (whole, "Markdown")]);
        assert_eq!(found[1].options, ["JSON", "Markdown"]);
    }

    #[test]
    fn notes_belong_to_their_answer_and_no_answer_is_none() {
        let asked = json!({"questions": [{"question": "Which?", "options": [{"label": "a"}]}]});
        let noted = json!({"answers": {"Which?": "a"}, "annotations": {"Which?": {"notes": "but never on Mondays"}}});
        assert_eq!(answers("AskUserQuestion", &asked, &noted)[0].text, "a\nbut never on Mondays");
        for (tool, response) in [
            ("AskUserQuestion", json!({"answers": {}})),
            ("AskUserQuestion", json!({"answers": {"Which?": " "}})),
            ("question", json!("User has answered your questions: \"Which?\"=\"Unanswered\".")),
            ("ask_user", json!("The user dismissed the question")),
            ("Bash", json!({"answers": {"Which?": "a"}})),
        ] {
            assert_eq!(answers(tool, &asked, &response), [], "{tool} {response}");
        }
    }

    #[test]
    fn a_refusal_is_an_answer_if_the_person_said_why() {
        let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, \
             the user said:\nUse the staging server\n\nNote: The user's next message may contain a correction.";
        let answer = refusal(refused, "Bash ssh production").unwrap();
        assert_eq!((answer.text.as_str(), answer.question.contains("ssh production")), ("Use the staging server", true));
        for silent in [
            "The user doesn't want to proceed with this tool use. STOP what you are doing and wait.",
            "The user doesn't want to proceed. To tell you how to proceed, the user said:\nThe user wants to clarify these questions.",
        ] {
            assert_eq!(refusal(silent, "Bash ls"), None, "{silent}");
        }
    }
}
