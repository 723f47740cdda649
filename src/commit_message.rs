//! Commit messages in command lines.

/// Lines at a message's end that say nothing about the change.
const TRAILERS: [&str; 8] =
    ["co-authored-by:", "signed-off-by:", "🤖", "generated with", "reviewed-by:", "change-id:", "claude-session:", "entire-"];
/// Mark of a text that was cut for storage.
const CUT: &str = "[…";

/// The message of the first commit that a line makes, without its trailers; paragraphs are separated by an empty line.
pub fn commit_message(line: &str) -> Option<String> {
    let commands = commands(line);
    // The text of a heredoc begins on the next line, behind what the shell pipes the command into.
    let heredoc = commands.iter().flatten().find_map(|word| word.strip_prefix(HEREDOC));
    let message = commands.iter().find_map(|words| message_of(words, heredoc))?;
    let mut kept: Vec<&str> = Vec::new();
    for text in message.lines() {
        let lower = text.trim().to_lowercase();
        if TRAILERS.iter().any(|trailer| lower.starts_with(trailer)) || lower.starts_with(CUT) {
            break;
        }
        kept.push(text.trim_end());
    }
    Some(kept.join("\n").trim().to_string()).filter(|text| !text.is_empty())
}

/// The message in the words of one command: of `git commit`, `jj commit`, `jj describe`, `hg commit`.
fn message_of(words: &[String], heredoc: Option<&str>) -> Option<String> {
    let program = words.iter().position(|word| matches!(word.rsplit('/').next(), Some("git" | "jj" | "hg")))?;
    let verb = words[program..].iter().position(|word| matches!(word.as_str(), "commit" | "describe" | "desc"))?;
    let mut paragraphs: Vec<&str> = Vec::new();
    let mut rest = words[program + verb + 1..].iter();
    while let Some(word) = rest.next() {
        let short = word.starts_with('-') && !word.starts_with("--");
        if word == "--message" || short && word.ends_with('m') {
            paragraphs.extend(rest.next().map(String::as_str));
        } else if let Some(text) = word.strip_prefix("--message=") {
            paragraphs.push(text);
        } else if let Some(text) = word.strip_prefix("-m") {
            paragraphs.push(text.strip_prefix('=').unwrap_or(text));
        } else if word == "-F" || word == "--file" || word == "--file=-" {
            paragraphs.extend(heredoc);
        }
    }
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// Marks the word that holds a heredoc's text.
const HEREDOC: &str = "\u{0}<<";

/// A command line as the words of its commands: without quotes, redirections and the operators between commands.
fn commands(line: &str) -> Vec<Vec<String>> {
    let chars: Vec<char> = line.chars().collect();
    let mut lexer = Lexer { chars: &chars, at: 0, waiting: Vec::new() };
    lexer.commands(None)
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
    /// Ends of the heredocs whose text begins on the next line.
    waiting: Vec<String>,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += 1;
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Reads commands up to `end`, or to the end of the line.
    fn commands(&mut self, end: Option<char>) -> Vec<Vec<String>> {
        let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
        while let Some(c) = self.next() {
            if Some(c) == end {
                break;
            }
            match c {
                '\\' => {
                    let escaped = self.next().filter(|c| *c != '\n');
                    word.get_or_insert_default().extend(escaped);
                }
                '\'' => {
                    let text = self.until('\'');
                    word.get_or_insert_default().push_str(&text);
                }
                '"' => {
                    let text = self.double_quoted();
                    word.get_or_insert_default().push_str(&text);
                }
                '$' if self.peek() == Some('(') => {
                    self.at += 1;
                    let text = self.substitution();
                    word.get_or_insert_default().push_str(&text);
                }
                '<' if self.peek() == Some('<') => {
                    self.at += 1;
                    words.extend(word.take());
                    let end = self.heredoc_end();
                    self.waiting.push(end);
                }
                '>' | '<' => {
                    // `2>&1`: its number, its target and the `&` belong to the redirection.
                    word = word.filter(|word| !word.chars().all(|c| c.is_ascii_digit()));
                    words.extend(word.take());
                    while self.peek().is_some_and(|c| matches!(c, '>' | '&' | ' ')) {
                        self.at += 1;
                    }
                    while self.peek().is_some_and(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | ')')) {
                        self.at += 1;
                    }
                }
                c if matches!(c, '\n' | ';' | '|' | '&' | '(' | ')' | '{' | '}') => {
                    words.extend(word.take());
                    if c == '\n' {
                        for end in std::mem::take(&mut self.waiting) {
                            let text = self.heredoc(&end);
                            words.push(format!("{HEREDOC}{text}"));
                        }
                    }
                    let is_heredoc = c == '\n' && words.len() == 1 && words[0].starts_with(HEREDOC);
                    if !words.is_empty() && !is_heredoc {
                        all.push(std::mem::take(&mut words));
                    }
                }
                c if c.is_whitespace() => words.extend(word.take()),
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        if !words.is_empty() {
            all.push(words);
        }
        all
    }

    fn until(&mut self, end: char) -> String {
        let mut text = String::new();
        while let Some(c) = self.next().filter(|c| *c != end) {
            text.push(c);
        }
        text
    }

    fn double_quoted(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '"' => break,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c) if matches!(c, '"' | '\\' | '$' | '`') => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                },
                '$' if self.peek() == Some('(') => {
                    self.at += 1;
                    text.push_str(&self.substitution());
                }
                c => text.push(c),
            }
        }
        text
    }

    /// Expansion of `$(…)`, if it can be read: the text of `cat <<EOF`; nothing else is run.
    fn substitution(&mut self) -> String {
        let inner = Lexer { chars: self.chars, at: self.at, waiting: Vec::new() };
        let mut inner = inner;
        let commands = inner.commands(Some(')'));
        self.at = inner.at;
        let text = commands.iter().flatten().find_map(|word| word.strip_prefix(HEREDOC));
        text.unwrap_or_default().to_string()
    }

    fn heredoc_end(&mut self) -> String {
        let mut end = String::new();
        while let Some(c) =
            self.peek().filter(|c| !matches!(c, '\n' | ';' | '|' | '&' | ')') && (!c.is_whitespace() || end.is_empty()))
        {
            self.at += 1;
            if !matches!(c, '\'' | '"' | '-' | ' ' | '\\') {
                end.push(c);
            }
        }
        end
    }

    /// The lines up to the one that is `end`; a text that was cut for storage may not have it.
    fn heredoc(&mut self, end: &str) -> String {
        let mut lines: Vec<String> = Vec::new();
        while self.at < self.chars.len() {
            let line = self.until('\n');
            if line.trim() == end {
                break;
            }
            lines.push(line);
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_the_shell_would_pass() {
        for (line, message) in [
            ("git commit -m 'x' 2>&1 | tail -3", Some("x")),
            (
                "git commit -m 'Add VAT last\n\nIt was\nadded first.' && git log --oneline -1",
                Some("Add VAT last\n\nIt was\nadded first."),
            ),
            ("git add . && git commit -m \"say \\\"hi\\\" to $USER\" && git push", Some("say \"hi\" to $USER")),
            ("git commit -am a -m 'b c' ; git status", Some("a\n\nb c")),
            ("git -C sub commit --message='a; b'", Some("a; b")),
            ("git commit -m \"a\" 2>/dev/null; echo -m b", Some("a")),
            (
                "cd x && git commit -m \"$(cat <<'EOF'\nfix: a b\n\nThe lock (x) was \"taken\" twice.\n\n- one that goes on\n  here\n\n🤖 Generated with X\nCo-Authored-By: Y\nEOF\n)\" && git push",
                Some("fix: a b\n\nThe lock (x) was \"taken\" twice.\n\n- one that goes on\n  here"),
            ),
            ("git commit -F - <<EOF\na b\n\nc\nEOF\ngit push", Some("a b\n\nc")),
            ("git commit -F - <<-\"END\" 2>&1 | tail\na b\nEND", Some("a b")),
            ("jj describe -m 'a b'", Some("a b")),
            ("git commit -m \"$(cat <<'EOF'\nlong\n[…120 bytes…]", Some("long")),
            ("git commit", None),
            ("echo 'git commit -m x'", None),
            ("git log --grep commit", None),
        ] {
            assert_eq!(commit_message(line).as_deref(), message, "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read(line in "(git commit -m |\\PC|\n|'|\"|\\$\\(|\\)|<<|EOF|;|\\\\){0,60}") {
            commit_message(&line);
        }
    }
}
