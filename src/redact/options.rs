//! Passwords passed to a program on its command line: `curl -u me:pw`, `mysql -ppw`, `sshpass -p pw`.

use super::span::{Span, run};
use super::values::is_mark;

/// How a program takes its password.
enum Takes {
    /// `user:password`, of which the second part goes.
    UserAndPassword,
    /// The value of the option, as the next word or behind the option's letter.
    Value,
    /// Only behind the option's letter: `mysql -p` alone asks for it, and the next word is a database.
    Attached,
}

/// Program, option, and how it takes its password (curl(1), mysql(1), sshpass(1), docker-login(1), redis-cli(1), smbclient(1)).
const OPTIONS: &[(&str, &str, Takes)] = &[
    ("curl", "-u", Takes::UserAndPassword),
    ("curl", "--user", Takes::UserAndPassword),
    ("curl", "-U", Takes::UserAndPassword),
    ("curl", "--proxy-user", Takes::UserAndPassword),
    ("http", "-a", Takes::UserAndPassword),
    ("mysql", "-p", Takes::Attached),
    ("mariadb", "-p", Takes::Attached),
    ("sshpass", "-p", Takes::Value),
    ("login", "-p", Takes::Value),
    ("login", "--password", Takes::Value),
    ("redis-cli", "-a", Takes::Value),
    ("mongo", "-p", Takes::Value),
    ("smbclient", "-U", Takes::UserAndPassword),
    ("sqlcmd", "-P", Takes::Value),
    ("zip", "-P", Takes::Value),
    ("7z", "-p", Takes::Attached),
    ("ldapsearch", "-w", Takes::Value),
    ("twine", "-p", Takes::Value),
];

/// Bytes before an option in which its program is looked for.
const BEFORE: usize = 400;

/// Finds a password at an option; `at` is the blank before it.
pub fn password(bytes: &[u8], at: usize) -> Option<Span> {
    let option_end = run(bytes, at + 1, |b| !b.is_ascii_whitespace() && b != b'=');
    // Letters may be put together: `curl -su me:pw`.
    let word = &bytes[at + 1..option_end];
    let joined = word.len() > 2 && word.len() < 8 && word.ends_with(b"u") && word[1..].iter().all(u8::is_ascii_alphabetic);
    let skipped = if joined && runs(command_before(bytes, at), "curl") { word.len() - 2 } else { 0 };
    let word = if skipped > 0 { &b"-u"[..] } else { word };
    let command = command_before(bytes, at);
    let (option, takes) = OPTIONS
        .iter()
        .filter(|(_, option, _)| match option.starts_with("--") {
            true => word == option.as_bytes(),
            false => word.starts_with(option.as_bytes()),
        })
        .find(|(program, ..)| runs(command, program))
        .map(|(_, option, takes)| (option, takes))?;
    let attached = word.len() > option.len();
    let mut from = at + 1 + option.len() + skipped;
    if !attached {
        if matches!(takes, Takes::Attached) {
            return None;
        }
        from = run(bytes, from, |b| matches!(b, b' ' | b'\t' | b'='));
    }
    let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\''));
    from += usize::from(quote.is_some());
    let end = run(bytes, from, |b| match quote {
        Some(quote) => b != quote && b != b'\n',
        None => !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b';' | b'|' | b'&' | b')'),
    });
    if is_mark(&bytes[from..end]) {
        return None;
    }
    if let Takes::UserAndPassword = takes {
        from += bytes[from..end].iter().position(|&b| matches!(b, b':' | b'%'))? + 1;
    }
    let value = &bytes[from..end];
    let variable = is_mark(value) || value.first().is_some_and(|b| matches!(b, b'$' | b'-' | b'<' | b'{'));
    (!value.is_empty() && !variable).then_some(Span { start: from, end, family: "option-password", guessless: false })
}

/// The command in which the option stands, up to it.
fn command_before(bytes: &[u8], at: usize) -> &[u8] {
    let before = &bytes[at.saturating_sub(BEFORE)..at];
    // A separator that a blank follows: `&` in a quoted address and `;` in a quoted header are none. A line may go on.
    let ends = |i: usize| match before[i] {
        b'\n' => i == 0 || before[i - 1] != b'\\',
        b'|' | b';' | b'&' => before.get(i + 1).is_none_or(|b| b.is_ascii_whitespace()),
        _ => false,
    };
    &before[(0..before.len()).rev().find(|&i| ends(i)).map_or(0, |i| i + 1)..]
}

/// Tells whether a program is named in a command.
fn runs(command: &[u8], program: &str) -> bool {
    command.windows(program.len()).any(|w| w == program.as_bytes())
}

#[cfg(test)]
mod tests {
    use crate::redact::scan::scan;

    fn without(text: &str) -> String {
        let spans = scan(text);
        spans.iter().rev().fold(text.to_string(), |out, span| format!("{}***{}", &out[..span.start], &out[span.end..]))
    }

    #[test]
    fn passwords_of_options_go_and_the_rest_of_the_line_stays() {
        for (text, expected) in [
            ("curl -u me:hunter2 https://h/x", "curl -u me:*** https://h/x"),
            ("curl -s --user 'me:two words' https://h", "curl -s --user 'me:***' https://h"),
            ("mysqldump -uroot -phunter2 shop > x", "mysqldump -uroot -p*** shop > x"),
            ("sshpass -p hunter2 ssh h", "sshpass -p *** ssh h"),
            ("docker login -u me -p hunter2 reg", "docker login -u me -p *** reg"),
            ("cd x && redis-cli -a hunter2 ping", "cd x && redis-cli -a *** ping"),
        ] {
            assert_eq!(without(text), expected);
        }
    }

    #[test]
    fn other_options_stay() {
        for text in [
            "mysql -p shop",
            "curl -u $USER:$PASS h",
            "mkdir -p a/b",
            "cargo test -p core",
            "sort -u x:y",
            "curl x | sort -u a:b",
            "docker run -p 80:80 x",
        ] {
            assert_eq!(without(text), text);
        }
    }
}
