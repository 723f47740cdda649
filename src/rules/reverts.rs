//! What a command takes back: `git revert`, and a commit whose message says that it reverts another.

/// A commit that is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverted {
    /// The beginning of its id, in hex.
    Sha(String),
    /// The subject of its message.
    Subject(String),
    /// The last one that was made.
    Last,
}

/// Commits that a command line takes back.
pub fn reverted(line: &str) -> Vec<Reverted> {
    let mut found = Vec::new();
    for part in line.split(['\n', ';']).flat_map(|part| part.split("&&")) {
        let mut words = part.split_whitespace().skip_while(|word| *word != "git");
        if words.next().is_some() && words.next() == Some("revert") {
            for word in words.take_while(|word| !word.starts_with(['|', '>', '2', '#'])).filter(|word| !word.starts_with('-')) {
                match word {
                    "HEAD" | "@" => found.push(Reverted::Last),
                    sha if is_sha(sha) => found.push(Reverted::Sha(sha.to_lowercase())),
                    _ => {}
                }
            }
        }
    }
    for (said, end) in [("Revert \"", '"'), ("Revert \\\"", '\\')] {
        let subject = line.split_once(said).and_then(|(_, rest)| rest.split_once(end)).map(|(subject, _)| subject.trim());
        found.extend(subject.filter(|subject| !subject.is_empty()).map(|subject| Reverted::Subject(subject.to_string())));
    }
    let named = line.split("reverts commit ").skip(1).filter_map(|rest| rest.split(|c: char| !c.is_ascii_hexdigit()).next());
    found.extend(named.filter(|sha| is_sha(sha)).map(|sha| Reverted::Sha(sha.to_lowercase())));
    found
}

fn is_sha(word: &str) -> bool {
    (7..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::Reverted::*;
    use super::*;

    #[test]
    fn commands_and_messages_say_what_is_taken_back() {
        for (line, wanted) in [
            ("git revert --no-edit 3fa106e", vec![Sha("3fa106e".into())]),
            ("cd x && git revert HEAD 2>&1 | tail", vec![Last]),
            ("git revert -n abcdef1234 1234567", vec![Sha("abcdef1234".into()), Sha("1234567".into())]),
            ("git commit -m 'Revert \"Round early\"'", vec![Subject("Round early".into())]),
            ("git commit -m \"This reverts commit 3FA106E12.\"", vec![Sha("3fa106e12".into())]),
            ("git log --grep revert", vec![]),
            ("git revert --abort", vec![]),
            ("echo git", vec![]),
        ] {
            assert_eq!(reverted(line), wanted, "{line}");
        }
    }
}
