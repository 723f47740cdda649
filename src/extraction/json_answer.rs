//! Parses an answer in JSON, the form of tool calls and structured output, even if it was cut off.

use super::answer::{AnswerFields, ParsedAnswer, ParsedObservation, SECTIONS, numbers, tidy, usual_name};
use serde_json::{Map, Value};

/// Returns the answer in a text that is JSON, possibly in a code fence; `None` for any other text.
pub fn read(text: &str) -> Option<ParsedAnswer> {
    let start = text.find('{')?;
    let before = text[..start].trim().trim_start_matches('`').trim_start_matches("json");
    if !before.trim().is_empty() {
        return None;
    }
    let text = text[start..].trim_end().trim_end_matches('`').trim_end();
    let (json, cut) = match serde_json::from_str::<Value>(text) {
        Ok(json) => (json, false),
        Err(_) => (serde_json::from_str(&closed(text)?).ok()?, true),
    };
    let members = json.as_object()?;
    let is_answer = ["observations", "summary", "keep", "withdraw"].iter().any(|name| members.contains_key(*name));
    is_answer.then(|| answer(members, cut))
}

fn answer(members: &Map<String, Value>, cut: bool) -> ParsedAnswer {
    let mut answer = ParsedAnswer { cut, ..ParsedAnswer::default() };
    let all_numbers = |name: &str| members.get(name).map(texts).unwrap_or_default().iter().flat_map(|t| numbers(t)).collect();
    answer.keeps = all_numbers("keep");
    answer.withdraws = all_numbers("withdraw");
    for observation in members.get("observations").and_then(Value::as_array).into_iter().flatten() {
        let Some(observation) = observation.as_object() else { continue };
        let mut fields = AnswerFields::new();
        for (name, value) in observation {
            let name = name.to_lowercase().replace('-', "_");
            let values = texts(value);
            if !values.is_empty() {
                fields.entry(usual_name(&name).to_string()).or_default().extend(values);
            }
        }
        answer.add(ParsedObservation::of(fields));
    }
    for section in SECTIONS {
        let text = members.get("summary").map(|summary| texts(&summary[section]).join(" ")).unwrap_or_default();
        if !text.trim().is_empty() {
            answer.summary.insert(section.to_string(), tidy(&text));
        }
    }
    answer.nothing = answer.is_unusable() && !cut;
    answer
}

/// Returns a text, a number, or each item of a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Closes the brackets of JSON that ends in the middle, after its last whole value.
fn closed(text: &str) -> Option<String> {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    let mut whole = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                open.pop()?;
                whole = Some((at + 1, open.clone()));
            }
            b',' => whole = Some((at, open.clone())),
            _ => {}
        }
    }
    let (end, open) = whole?;
    Some(text[..end].chars().chain(open.into_iter().rev()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"keep": [1, "r4"], "withdraw": [2], "observations": [
        {"sources": [3, 5], "corrects": [3], "type": "bugfix", "title": "The port is 80", "subtitle": null,
         "facts": ["a [b] {c}, \"d\""], "concepts": ["gotcha"], "narrative": "It was 8080."},
        {"sources": [6], "type": "change", "title": "Logs go to stderr", "facts": [], "concepts": []}],
        "summary": {"request": "Find the port", "completed": "Done", "notes": null}}"#;

    #[test]
    fn an_answer_in_json_is_read_like_one_in_xml() {
        for text in [WHOLE.to_string(), format!("```json\n{WHOLE}\n```")] {
            let answer = read(&text).unwrap();
            assert_eq!((answer.keeps.as_slice(), answer.withdraws.as_slice(), answer.cut), (&[1, 4][..], &[2][..], false));
            let first = &answer.observations[0];
            assert_eq!((first.title.as_str(), first.sources.as_slice()), ("The port is 80", &[3, 5][..]));
            assert_eq!((first.corrects.as_slice(), first.facts.as_slice()), (&[3][..], &["a [b] {c}, \"d\"".to_string()][..]));
            assert_eq!(answer.summary.keys().collect::<Vec<_>>(), ["completed", "request"]);
        }
    }

    #[test]
    fn a_cut_answer_keeps_its_whole_values() {
        let text = &WHOLE[..WHOLE.find("Logs go").unwrap()];
        let answer = read(text).unwrap();
        assert!(answer.cut && answer.summary.is_empty());
        assert_eq!(answer.observations.len(), 1, "the second one has no title");
        // Wherever it is cut: it is read or refused, without a panic.
        for end in (0..WHOLE.len()).filter(|end| WHOLE.is_char_boundary(*end)) {
            if let Some(answer) = read(&WHOLE[..end]) {
                assert!(answer.cut && answer.observations.len() <= 2);
            }
        }
    }

    #[test]
    fn other_texts_are_not_json_answers() {
        for text in ["", "{", "{}", "[1]", "no {braces}", "<observation>{\"keep\": []}</observation>", "{\"x\": 1}"] {
            assert!(read(text).is_none(), "{text}");
        }
        assert!(read("{\"keep\": [], \"withdraw\": [], \"observations\": [], \"summary\": null}").unwrap().nothing);
    }
}
