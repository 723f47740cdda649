//! Scripts (JavaScript) that Codex wrote to run commands and patches: their calls, as far as their arguments are literals.

use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;

/// A call in a script of the agent.
#[derive(Debug, PartialEq)]
pub enum ScriptCall {
    /// The arguments of a command.
    Command(Value),
    Patch(String),
}

/// Maximum calls to find in a script.
const SCRIPT_CALLS: usize = 64;

/// Finds the commands and patches in a script (JavaScript) whose arguments are literals, or variables that hold some.
pub fn script_calls(script: &str) -> Vec<ScriptCall> {
    let tokens = tokens(script);
    let script = Script::new(&tokens);
    let mut calls = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let (name, argument) = match (token, &tokens[at + 1..]) {
            (Token::Word(name), [Token::Mark('('), ..]) => (name, at + 2),
            (Token::Text(name), [Token::Mark(']'), Token::Mark('('), ..]) => (name, at + 3),
            _ => continue,
        };
        let argument = || script.value(argument, 0).unwrap_or_default();
        let call = match name.as_str() {
            "exec_command" => Some(argument()).filter(Value::is_object).map(ScriptCall::Command),
            "apply_patch" => script.patch(&argument()).map(ScriptCall::Patch),
            _ => None,
        };
        calls.extend(call);
        if calls.len() >= SCRIPT_CALLS {
            break;
        }
    }
    calls
}

#[derive(Debug)]
enum Token {
    /// The value of a string literal.
    Text(String),
    /// The text of a template, with its `${…}`.
    Template(String),
    /// A name or a number.
    Word(String),
    Mark(char),
}

/// Splits a script into tokens, without comments and regular expressions.
fn tokens(script: &str) -> Vec<Token> {
    let (mut tokens, mut rest) = (Vec::new(), script);
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let begins_term =
            matches!(tokens.last(), None | Some(Token::Mark('=' | '(' | ',' | ':' | '[' | '{' | '!' | '&' | '|' | ';')));
        rest = if first.is_whitespace() {
            rest.trim_start()
        } else if let Some((text, behind)) = string_literal(rest) {
            tokens.push(if first == '`' { Token::Template(text) } else { Token::Text(text) });
            behind
        } else if let Some(comment) = rest.strip_prefix("//") {
            &comment[comment.find('\n').unwrap_or(comment.len())..]
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, behind)| behind)
        } else if first == '/' && begins_term {
            behind_expression(rest)
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_string()));
            &rest[end..]
        } else {
            tokens.push(Token::Mark(first));
            &rest[first.len_utf8()..]
        };
    }
    tokens
}

/// Returns what follows a regular expression, or its first character if it does not end in its line.
fn behind_expression(text: &str) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => break,
            '/' if !escaped => return &text[at + 1..],
            _ => escaped = c == '\\' && !escaped,
        }
    }
    &text[1..]
}

/// Maximum nesting of values in a script, and tokens to visit.
const DEPTH: usize = 8;
const VISITS: usize = 1 << 20;

/// A script, and its variables as far as they are literals.
struct Script<'a> {
    tokens: &'a [Token],
    variables: HashMap<&'a str, Value>,
    left: Cell<usize>,
}

impl<'a> Script<'a> {
    fn new(tokens: &'a [Token]) -> Script<'a> {
        let mut script = Script { tokens, variables: HashMap::new(), left: Cell::new(VISITS) };
        for (at, pair) in tokens.windows(2).enumerate() {
            if let [Token::Word(name), Token::Mark('=')] = pair
                && let Some(value) = script.value(at + 2, 0)
            {
                script.variables.insert(name, value);
            }
        }
        script
    }

    /// Returns a token, as long as there are visits left.
    fn token(&self, at: usize) -> Option<&'a Token> {
        self.left.set(self.left.get().checked_sub(1)?);
        self.tokens.get(at)
    }

    fn is_mark(&self, at: usize, mark: char) -> bool {
        matches!(self.token(at), Some(Token::Mark(own)) if *own == mark)
    }

    /// Evaluates a value; `None` if it is not known.
    fn value(&self, at: usize, depth: usize) -> Option<Value> {
        match self.token(at)? {
            _ if depth > DEPTH => None,
            Token::Mark('{') => Some(self.object(at + 1, depth + 1)),
            Token::Mark('[') => Some(self.list(at + 1, depth + 1)),
            Token::Word(name) if self.is_whole(at) => self.variables.get(name.as_str()).cloned(),
            _ => self.text(at),
        }
    }

    /// Evaluates texts and variables joined by `+`. A part that is not known is named.
    fn text(&self, mut at: usize) -> Option<Value> {
        let (mut text, mut is_known) = (String::new(), false);
        loop {
            let part = match self.token(at)? {
                Token::Text(part) => Some(part.clone()),
                Token::Template(part) => Some(self.filled(part)),
                Token::Word(name) => self.variables.get(name.as_str()).and_then(Value::as_str).map(String::from),
                Token::Mark(_) => return None,
            };
            is_known |= part.is_some();
            text += &part.unwrap_or_else(|| match self.token(at) {
                Some(Token::Word(name)) => format!("${{{name}}}"),
                _ => String::new(),
            });
            at = self.end(at, &['+', ',', ';']);
            if !self.is_mark(at, '+') {
                return is_known.then(|| text.into());
            }
            at += 1;
        }
    }

    /// Puts the known variables into a template.
    fn filled(&self, template: &str) -> String {
        let (mut filled, mut rest) = (String::new(), template);
        while let Some((before, (name, behind))) =
            rest.split_once("${").and_then(|(b, inside)| Some((b, inside.split_once('}')?)))
        {
            filled += before;
            match self.variables.get(name.trim()).and_then(Value::as_str) {
                Some(value) => filled += value,
                None => filled += &format!("${{{name}}}"),
            }
            rest = behind;
        }
        filled + rest
    }

    /// Evaluates the fields of an object: `{cmd: "x", "workdir": '/y', timeout}`.
    fn object(&self, mut at: usize, depth: usize) -> Value {
        let mut fields = serde_json::Map::new();
        while let Some(token) = self.token(at).filter(|token| !matches!(token, Token::Mark('}'))) {
            let (Token::Word(key) | Token::Text(key)) = token else {
                at = self.end(at, &[',']).max(at) + 1;
                continue;
            };
            let value = match self.is_mark(at + 1, ':') {
                true => self.value(at + 2, depth),
                false => self.variables.get(key.as_str()).cloned(),
            };
            fields.extend(value.map(|value| (key.clone(), value)));
            at = self.end(at + 1, &[',']);
            if !self.is_mark(at, ',') {
                break;
            }
            at += 1;
        }
        Value::Object(fields)
    }

    /// Evaluates a list, or the text that it is joined to.
    fn list(&self, mut at: usize, depth: usize) -> Value {
        let mut items = Vec::new();
        while self.token(at).is_some_and(|token| !matches!(token, Token::Mark(']'))) {
            items.extend(self.value(at, depth));
            at = self.end(at, &[',']);
            if !self.is_mark(at, ',') {
                break;
            }
            at += 1;
        }
        match self.tokens.get(at + 1..at + 5) {
            Some([Token::Mark('.'), Token::Word(join), Token::Mark('('), Token::Text(between)]) if join == "join" => {
                items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between).into()
            }
            _ => items.into(),
        }
    }

    /// Whether a value ends after its first token.
    fn is_whole(&self, at: usize) -> bool {
        !matches!(self.token(at + 1), Some(Token::Mark('.' | '(' | '[' | '+')))
    }

    /// Finds the end of a value: one of some marks, or the end of what surrounds it.
    fn end(&self, mut at: usize, marks: &[char]) -> usize {
        let mut depth = 0_usize;
        while let Some(token) = self.token(at) {
            match token {
                Token::Mark('(' | '[' | '{') => depth += 1,
                Token::Mark(')' | ']' | '}') if depth == 0 => return at,
                Token::Mark(')' | ']' | '}') => depth -= 1,
                Token::Mark(mark) if depth == 0 && marks.contains(mark) => return at,
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// Returns the patch that is an argument, or the first one of the script.
    fn patch(&self, argument: &Value) -> Option<String> {
        let own = [argument, &argument["input"], &argument["patch"]].into_iter().find_map(Value::as_str).map(String::from);
        let texts = || {
            self.tokens.iter().filter_map(|token| match token {
                Token::Text(text) | Token::Template(text) => Some(text),
                _ => None,
            })
        };
        own.or_else(|| texts().find(|text| text.trim_start().starts_with("*** Begin Patch")).cloned())
    }
}

/// Reads a string literal at the start of a text, in any of the three quotes. Returns what follows it, too.
fn string_literal(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                // The literal goes on in the next line.
                '\n' => {}
                'u' => value.push(unicode(&mut chars)),
                'x' => value.push(code(chars.by_ref().take(2)).and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)),
                other => value.push(other),
            },
            c if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            c => value.push(c),
        }
    }
    None
}

/// Reads the digits of a code.
fn code(digits: impl Iterator<Item = (usize, char)>) -> Option<u32> {
    u32::from_str_radix(&digits.map(|(_, c)| c).collect::<String>(), 16).ok()
}

/// Reads the character after `\\u`: four digits, twice for a pair, or digits in braces.
fn unicode(chars: &mut (impl Iterator<Item = (usize, char)> + Clone)) -> char {
    let mut ahead = chars.clone();
    if ahead.next().is_some_and(|(_, c)| c == '{') {
        chars.next();
        let found = code(chars.by_ref().take_while(|(_, c)| *c != '}')).and_then(char::from_u32);
        return found.unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let first = code(chars.by_ref().take(4)).unwrap_or_default();
    let mut ahead = chars.clone();
    let is_escape = ahead.next().is_some_and(|(_, c)| c == '\\') && ahead.next().is_some_and(|(_, c)| c == 'u');
    let second = code(ahead.by_ref().take(4)).filter(|code| is_escape && (0xDC00..0xE000).contains(code));
    match second {
        Some(second) if (0xD800..0xDC00).contains(&first) => {
            *chars = ahead;
            char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_commands_and_patches_of_a_script_are_in_its_text() {
        let script = "const r = await tools.exec_command({\"cmd\":\"sed -n '1,20p' a\\n\",\"workdir\":\"/repo\", yield_time_ms: 10});\n\
                      const [a] = await Promise.all([tools.exec_command({ login: false, cmd: `git commit -m \"it's\"` }), tools.exec_command(x)]);\n\
                      const patch = '*** Begin Patch\\n*** Update File: a.rs\\n*** End Patch'; await tools.apply_patch(patch); text(r.output)";
        let command = |input: Value| ScriptCall::Command(input);
        let expected = [
            command(json!({"cmd": "sed -n '1,20p' a\n", "workdir": "/repo"})),
            command(json!({"cmd": "git commit -m \"it's\""})),
            ScriptCall::Patch("*** Begin Patch\n*** Update File: a.rs\n*** End Patch".into()),
        ];
        assert_eq!(script_calls(script), expected);
    }

    #[test]
    fn values_may_be_in_variables_lists_and_parts() {
        let script = r#"// tools.exec_command({cmd: "rm -rf /"})
            const re = /"/, folder = "/r", cmd = "make a";
            await tools.exec_command({cmd, env: {A: "1", cmd: "no"}, workdir: folder});
            const patch = ["*** Begin Patch", "*** Add File: b.rs", "+b", "*** End Patch"].join("\n");
            tools["apply_patch"](patch); /* tools.apply_patch("x") */
            const { exec_command } = tools; exec_command({cmd: "cargo test " + "--all " + flags, n: f(1, 2)});
            tools . exec_command ( { cmd : `rustfmt ${folder}/${name}` } ); tools.exec_command({cmd: ["bash", "-lc", "ls x"]});
            const all = {cmd: 'echo \ud83d\ude00 \x41 \u{1F600}'}; tools.exec_command(all)"#;
        let command = |input: Value| ScriptCall::Command(input);
        let expected = [
            command(json!({"cmd": "make a", "env": {"A": "1", "cmd": "no"}, "workdir": "/r"})),
            ScriptCall::Patch("*** Begin Patch\n*** Add File: b.rs\n+b\n*** End Patch".into()),
            command(json!({"cmd": "cargo test --all ${flags}"})),
            command(json!({"cmd": "rustfmt /r/${name}"})),
            command(json!({"cmd": ["bash", "-lc", "ls x"]})),
            command(json!({"cmd": "echo 😀 A 😀"})),
        ];
        assert_eq!(script_calls(script), expected);
    }

    #[test]
    fn a_script_that_nests_is_read_in_a_moment() {
        let began = std::time::Instant::now();
        for part in ["x={y:f(", "x=[", "a=b+", "exec_command({", "x={a:{"] {
            script_calls(&part.repeat(100_000));
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn any_script_is_read(script in "(tools\\.exec_command\\(|tools\\.apply_patch\\(|[{}:,\"'`\\\\ua1é]){0,40}") {
            script_calls(&script);
        }
    }
}
