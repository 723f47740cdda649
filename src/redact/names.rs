//! Names that announce a secret: `DB_PASSWORD`, `encryptionKey`, `_authToken`.

use super::values::{run, starts_with_folded};

/// Kind of value that a name announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A password, which a person may have chosen.
    Password,
    /// `pass` and `pw`, which have other meanings too.
    ShortPassword,
    /// A secret, a token or credentials.
    Secret,
    /// A key, an authentication or a signature: often not a secret, so the value must look random.
    Key,
}

/// A name in a text: its byte range and its kind.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub start: usize,
    pub end: usize,
    pub kind: NameKind,
}

/// Position in a name where a sensitive word may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Anywhere: `password_hash`, `dbpassword`.
    Anywhere,
    /// At the end, also joined to another word: `dbPass`, `userpass`.
    End,
    /// At the end, as a word of its own: `CI_PAT`, `npm-auth`, but not `format`.
    LastWord,
}

/// Sensitive words; a longer word comes before its own prefixes.
const WORDS: [(&str, NameKind, Place); 100] = [
    ("password", NameKind::Password, Place::Anywhere),
    ("passwd", NameKind::Password, Place::Anywhere),
    ("passphrase", NameKind::Password, Place::Anywhere),
    ("passcode", NameKind::Password, Place::End),
    ("passwort", NameKind::Password, Place::LastWord),
    ("passord", NameKind::Password, Place::LastWord),
    ("pass", NameKind::ShortPassword, Place::End),
    ("pwd", NameKind::Password, Place::Anywhere),
    ("pswd", NameKind::Password, Place::End),
    ("pw", NameKind::ShortPassword, Place::End),
    ("psw", NameKind::ShortPassword, Place::LastWord),
    ("sshpass", NameKind::Password, Place::Anywhere),
    ("identified by", NameKind::Password, Place::Anywhere),
    ("requirepass", NameKind::Password, Place::Anywhere),
    ("masterauth", NameKind::Password, Place::Anywhere),
    ("secret", NameKind::Secret, Place::Anywhere),
    ("token", NameKind::Secret, Place::Anywhere),
    ("api_key", NameKind::Secret, Place::Anywhere),
    ("apikey", NameKind::Secret, Place::Anywhere),
    ("api-key", NameKind::Secret, Place::Anywhere),
    ("access_key", NameKind::Secret, Place::Anywhere),
    ("accesskey", NameKind::Secret, Place::Anywhere),
    ("private_key", NameKind::Secret, Place::Anywhere),
    ("privatekey", NameKind::Secret, Place::Anywhere),
    ("private-key", NameKind::Secret, Place::Anywhere),
    ("encryption_key", NameKind::Secret, Place::Anywhere),
    ("signing_key", NameKind::Secret, Place::Anywhere),
    ("credentials", NameKind::Secret, Place::Anywhere),
    ("credential", NameKind::Secret, Place::Anywhere),
    ("creds", NameKind::Secret, Place::End),
    ("x-amz-signature", NameKind::Secret, Place::Anywhere),
    ("contribsys__com", NameKind::Secret, Place::Anywhere),
    ("_gitlab_session", NameKind::Secret, Place::Anywhere),
    ("api key", NameKind::Secret, Place::Anywhere),
    ("access key", NameKind::Secret, Place::Anywhere),
    ("private key", NameKind::Secret, Place::Anywhere),
    ("x-goog-signature", NameKind::Secret, Place::Anywhere),
    ("bw_session", NameKind::Secret, Place::End),
    ("psk", NameKind::Password, Place::LastWord),
    ("mnemonic", NameKind::Password, Place::LastWord),
    ("seed phrase", NameKind::Password, Place::LastWord),
    ("recovery phrase", NameKind::Password, Place::LastWord),
    ("unseal key", NameKind::Secret, Place::LastWord),
    // The same in other languages. Those that are everyday words too have the kind of `pass`.
    ("kennwort", NameKind::Password, Place::LastWord),
    ("contraseña", NameKind::Password, Place::LastWord),
    ("contrasena", NameKind::Password, Place::LastWord),
    ("mot de passe", NameKind::Password, Place::LastWord),
    ("mot_de_passe", NameKind::Password, Place::LastWord),
    ("motdepasse", NameKind::Password, Place::LastWord),
    ("palavra-passe", NameKind::Password, Place::LastWord),
    ("wachtwoord", NameKind::Password, Place::LastWord),
    ("hasło", NameKind::Password, Place::LastWord),
    ("haslo", NameKind::Password, Place::LastWord),
    ("heslo", NameKind::Password, Place::LastWord),
    ("jelszó", NameKind::Password, Place::LastWord),
    ("jelszo", NameKind::Password, Place::LastWord),
    ("lösenord", NameKind::Password, Place::LastWord),
    ("losenord", NameKind::Password, Place::LastWord),
    ("adgangskode", NameKind::Password, Place::LastWord),
    ("salasana", NameKind::Password, Place::LastWord),
    ("şifresi", NameKind::Password, Place::LastWord),
    ("şifre", NameKind::Password, Place::LastWord),
    ("sifre", NameKind::Password, Place::LastWord),
    ("парол", NameKind::Password, Place::LastWord),
    ("Парол", NameKind::Password, Place::LastWord),
    ("κωδικός", NameKind::Password, Place::LastWord),
    ("συνθηματικό", NameKind::Password, Place::LastWord),
    ("密码", NameKind::Password, Place::LastWord),
    ("密碼", NameKind::Password, Place::LastWord),
    ("口令", NameKind::Password, Place::LastWord),
    ("パスワード", NameKind::Password, Place::LastWord),
    ("暗証番号", NameKind::Password, Place::LastWord),
    ("비밀번호", NameKind::Password, Place::LastWord),
    ("비번", NameKind::Password, Place::LastWord),
    ("암호", NameKind::Password, Place::LastWord),
    ("كلمة المرور", NameKind::Password, Place::LastWord),
    ("كلمة السر", NameKind::Password, Place::LastWord),
    ("رمز عبور", NameKind::Password, Place::LastWord),
    ("סיסמה", NameKind::Password, Place::LastWord),
    ("סיסמא", NameKind::Password, Place::LastWord),
    ("पासवर्ड", NameKind::Password, Place::LastWord),
    ("รหัสผ่าน", NameKind::Password, Place::LastWord),
    ("mật khẩu", NameKind::Password, Place::LastWord),
    ("kata sandi", NameKind::Password, Place::LastWord),
    ("geheimnis", NameKind::Secret, Place::LastWord),
    ("schluessel", NameKind::Secret, Place::LastWord),
    ("schlüssel", NameKind::Secret, Place::LastWord),
    ("zugangsdaten", NameKind::Secret, Place::LastWord),
    ("密钥", NameKind::Secret, Place::LastWord),
    ("credenciales", NameKind::Secret, Place::LastWord),
    ("clave", NameKind::ShortPassword, Place::LastWord),
    ("senha", NameKind::ShortPassword, Place::LastWord),
    ("parola", NameKind::ShortPassword, Place::LastWord),
    ("sandi", NameKind::ShortPassword, Place::LastWord),
    ("mdp", NameKind::ShortPassword, Place::LastWord),
    ("login", NameKind::Key, Place::LastWord),
    ("key", NameKind::Key, Place::End),
    ("auth", NameKind::Key, Place::End),
    ("pat", NameKind::Key, Place::End),
    ("sig", NameKind::Key, Place::LastWord),
];

/// The words, for the table of prefixes.
pub const BEGINNINGS: [&str; WORDS.len()] = {
    let mut names = [""; WORDS.len()];
    let mut i = 0;
    while i < WORDS.len() {
        names[i] = WORDS[i].0;
        i += 1;
    }
    names
};

/// Rows of `WORDS` that begin with each byte, as bits.
static BY_FIRST: [u128; 256] = {
    let mut rows = [0; 256];
    let mut i = 0;
    while i < WORDS.len() {
        rows[WORDS[i].0.as_bytes()[0] as usize] |= 1 << i;
        i += 1;
    }
    rows
};

/// Last words before `key` and `pass` in names that are not secrets, measured on source code.
const NOT_SECRET: [&str; 73] = [
    "public",
    "primary",
    "foreign",
    "sort",
    "partition",
    "cache",
    "row",
    "map",
    "dict",
    "object",
    "index",
    "group",
    "lookup",
    "translation",
    "message",
    "idempotency",
    "idempotent",
    "dedup",
    "hash",
    "range",
    "order",
    "tree",
    "node",
    "react",
    "i18n",
    "locale",
    "unique",
    "composite",
    "registry",
    "property",
    "header",
    "column",
    "field",
    "attribute",
    "attr",
    "param",
    "query",
    "data",
    "json",
    "meta",
    "hot",
    "short",
    "arrow",
    "ctrl",
    "alt",
    "shift",
    "mon",
    "tur",
    "hoc",
    "don",
    "joc",
    "whis",
    "com",
    "by",
    "one",
    "two",
    "multi",
    "single",
    "first",
    "second",
    "tres",
    "encom",
    "sur",
    "over",
    "under",
    "parent",
    "s",
    "ex",
    "s3",
    "enum",
    "result",
    "device",
    "subkey",
];

/// Last words before `token` in names of pages, locks and repeated requests, measured on source code.
const NOT_TOKEN: [&str; 9] =
    ["next", "page", "continuation", "pagination", "change", "lock", "idempotency", "cancellation", "term"];

/// Words after a sensitive word in names that only relate to a secret: `password_regex`, `secretArn`.
const AROUND_SECRET: [&str; 37] = [
    "regex",
    "pattern",
    "prompt",
    "label",
    "hint",
    "message",
    "error",
    "policy",
    "placeholder",
    "field",
    "help",
    "title",
    "param",
    "parameter",
    "arn",
    "type",
    "length",
    "mgr",
    "manager",
    "selector",
    "algorithm",
    "endpoint",
    "url",
    "uri",
    "file",
    "path",
    "name",
    "at",
    "date",
    "expiry",
    "ttl",
    "count",
    "enabled",
    "required",
    "dir",
    "folder",
    "ref",
];

/// Words that may follow `key` at the end of a name.
const SUFFIXES: [&str; 9] = ["base64", "b64", "hex", "prod", "dev", "test", "staging", "value", "base"];

/// Whether a byte may occur in a name.
pub fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-'
}

/// Returns the name whose sensitive word begins at `at`.
pub fn name_at(bytes: &[u8], at: usize) -> Option<Name> {
    let rest = &bytes[at..];
    let mut candidates = BY_FIRST[rest[0].to_ascii_lowercase() as usize];
    let (word, kind, place) = loop {
        if candidates == 0 {
            return None;
        }
        let row = WORDS[candidates.trailing_zeros() as usize];
        let second = row.0.as_bytes()[1];
        if rest.get(1).is_some_and(|b| b.to_ascii_lowercase() == second) && starts_with_folded(rest, row.0) {
            break row;
        }
        candidates &= candidates - 1;
    };
    let after = at + word.len();
    // `tokenize` is another word; `tokenSecret` and `TOKEN_2` are not.
    let goes_on = |b: &u8| b.is_ascii_alphabetic() && b.is_ascii_uppercase() == bytes[after - 1].is_ascii_uppercase();
    if bytes.get(after).is_some_and(goes_on) {
        return None;
    }
    let far = at.saturating_sub(64);
    let start = bytes[far..at].iter().rposition(|&b| !is_name_byte(b)).map_or(far, |i| far + i + 1);
    let end = run(&bytes[..bytes.len().min(after + 64)], after, is_name_byte);
    if place != Place::Anywhere && !is_end(&bytes[after..end]) || is_around(&bytes[after..end]) {
        return None;
    }
    let before = &bytes[start..at];
    let is_word = before.last().is_none_or(|b| !b.is_ascii_alphanumeric())
        || bytes[at].is_ascii_uppercase() && before.last().is_some_and(u8::is_ascii_lowercase);
    if place == Place::LastWord && !is_word {
        return None;
    }
    // `?key=…`, but not `key = …`.
    let query = start > 0 && matches!(bytes[start - 1], b'?' | b'&') && bytes.get(end) == Some(&b'=');
    let other = word != "auth" && is_of_other_things(before);
    if place == Place::End && (before.is_empty() && word == "key" && !query || other) {
        return None;
    }
    if word == "token" && is_of_requests(before) || in_path(bytes, start, end) {
        return None;
    }
    Some(Name { start, end, kind })
}

/// Whether the name is part of another name: `arn:aws:secretsmanager:…:secret:name`, `"AWS::ApiGateway::ApiKey": …`.
fn in_path(bytes: &[u8], start: usize, end: usize) -> bool {
    let before = &bytes[..start];
    before.ends_with(b":")
        && bytes.get(end) == Some(&b':')
        && before.iter().rev().nth(1).is_some_and(|b| !b.is_ascii_whitespace())
        || before.ends_with(b"::") && matches!(bytes.get(end), Some(b'"' | b'\''))
}

/// Words that end the name of a secret.
pub const TELLING: [&str; 22] = [
    "secret",
    "token",
    "key",
    "credential",
    "credentials",
    "creds",
    "password",
    "passwd",
    "pwd",
    "pass",
    "passphrase",
    "auth",
    "pat",
    "pw",
    "psk",
    "secret_id",
    "bw_session",
    "passwort",
    "geheimnis",
    "schluessel",
    "zugangsdaten",
    "credenciales",
];

/// Whether a name ends with its sensitive word: `client_secret`, but not `secret_name`.
pub fn is_last(own: &[u8]) -> bool {
    let own = &own[..own.len() - own.iter().rev().take_while(|b| b.is_ascii_digit() || **b == b'_').count()];
    let ends = |word: &str| own.len() >= word.len() && own[own.len() - word.len()..].eq_ignore_ascii_case(word.as_bytes());
    TELLING.iter().any(|word| ends(word)) || ends("base") || !own.is_ascii()
}

/// Whether the rest of a name is empty, a number or one of `SUFFIXES`.
fn is_end(rest: &[u8]) -> bool {
    let rest = rest.strip_prefix(b"_").or(rest.strip_prefix(b"-")).unwrap_or(rest);
    rest.iter().all(u8::is_ascii_digit) || SUFFIXES.iter().any(|suffix| rest.eq_ignore_ascii_case(suffix.as_bytes()))
}

fn is_of_other_things(before: &[u8]) -> bool {
    let last = last_word(before);
    NOT_SECRET.iter().any(|word| last.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether the rest of the name after the sensitive word names something else: `password_regex`, `secretArn`.
fn is_around(behind: &[u8]) -> bool {
    let last = last_word(behind);
    AROUND_SECRET.iter().any(|word| last.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether the part before `token` marks a page, lock or request token: `nextToken`, `clientRequestToken`.
fn is_of_requests(before: &[u8]) -> bool {
    let last = last_word(before);
    let named = NOT_TOKEN.iter().any(|word| last.eq_ignore_ascii_case(word.as_bytes()));
    named || ends_with_any(before, &["clientrequest", "client_request", "client-request"])
}

/// The last word of a name, in snake, kebab or camel case.
fn last_word(name: &[u8]) -> &[u8] {
    let name = name.strip_suffix(b"_").or(name.strip_suffix(b"-")).unwrap_or(name);
    let begins =
        |i: &usize| matches!(name[*i - 1], b'_' | b'-') || name[*i - 1].is_ascii_lowercase() && name[*i].is_ascii_uppercase();
    let start = (1..name.len()).rev().find(begins).unwrap_or(0);
    &name[start..]
}

/// Whether a part of a name ends with one of some words, in any case, ignoring a trailing separator.
fn ends_with_any(part: &[u8], words: &[&str]) -> bool {
    let part = part.strip_suffix(b"_").or(part.strip_suffix(b"-")).unwrap_or(part);
    words.iter().any(|word| part.len() >= word.len() && part[part.len() - word.len()..].eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Option<NameKind> {
        (0..name.len()).filter(|&at| name.is_char_boundary(at)).find_map(|at| name_at(name.as_bytes(), at)).map(|name| name.kind)
    }

    #[test]
    fn names_of_secrets_are_known_in_any_case_and_glued() {
        for (name, expected) in [
            ("dbPass", NameKind::ShortPassword),
            ("userpass", NameKind::ShortPassword),
            ("encryptionKey", NameKind::Key),
            ("RAILS_MASTER_KEY", NameKind::Key),
            ("SSH_KEY_BASE64", NameKind::Key),
            ("algoliaKey", NameKind::Key),
            ("bitbucketKey", NameKind::Key),
            ("openshiftKey", NameKind::Key),
            ("intercomKey", NameKind::Key),
            ("CI_PAT", NameKind::Key),
            ("azurePat", NameKind::Key),
            ("deploy-creds", NameKind::Secret),
            ("SECRET_KEY_BASE", NameKind::Secret),
            ("rootPassphrase", NameKind::Password),
        ] {
            assert_eq!(kind(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn words_that_end_so_are_known() {
        for name in [
            "monkey",
            "primary_key",
            "sortKey",
            "PUBLIC_KEY",
            "compass",
            "bypass",
            "trespass",
            "format",
            "author",
            "key",
            "spat",
            "passwordUrl",
            "nextToken",
            "S3Key",
        ] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
