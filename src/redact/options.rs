//! Passwords in options of command lines, and in addresses.

use super::values::{
    LOOKED_AT, Span, begins, find, has_marks, is_mark, is_secret_string, is_variable, looks_random, looks_set, run,
};

/// Form in which a program takes its password.
#[derive(Clone, Copy)]
enum Takes {
    /// `user:password`; the second part is removed.
    UserAndPassword,
    /// The value of the option, as the next word or attached to the option's letter.
    Value,
    /// Only attached to the option's letter: `mysql -p` alone prompts for it, and the next word is a database.
    Attached,
    /// `name=value`; the second part is removed: cookies, Kubernetes literals.
    Assigned,
    /// `pass:password` (openssl).
    Prefixed,
    /// The word after the option and its value.
    Next,
    /// Nothing: the password comes from a pipe or a here-string.
    Stdin,
}

/// Program, option, and the form in which it takes its password. Long options such as `--password` are recognized by
/// name, for every program. Sources: the manual pages of the programs.
const OPTIONS: &[(&str, &str, Takes)] = &[
    ("curl", "-u", Takes::UserAndPassword),
    ("curl", "--user", Takes::UserAndPassword),
    ("curl", "-U", Takes::UserAndPassword),
    ("curl", "--proxy-user", Takes::UserAndPassword),
    ("curl", "-b", Takes::Assigned),
    ("curl", "--cookie", Takes::Assigned),
    ("http", "-a", Takes::UserAndPassword),
    ("http", "--auth", Takes::UserAndPassword),
    ("mysql", "-p", Takes::Attached),
    ("mariadb", "-p", Takes::Attached),
    ("sshpass", "-p", Takes::Value),
    ("login", "-p", Takes::Value),
    ("login", "--password", Takes::Value),
    ("redis-cli", "-a", Takes::Value),
    ("mongo", "-p", Takes::Value),
    ("cqlsh", "-p", Takes::Value),
    ("smbclient", "-U", Takes::UserAndPassword),
    ("sqlcmd", "-P", Takes::Value),
    ("bcp", "-P", Takes::Value),
    ("zip", "-P", Takes::Value),
    ("7z", "-p", Takes::Attached),
    ("rar", "-p", Takes::Attached),
    ("ldap", "-w", Takes::Value),
    ("twine", "-p", Takes::Value),
    ("skopeo", "--dest-creds", Takes::UserAndPassword),
    ("skopeo", "--src-creds", Takes::UserAndPassword),
    ("rpcclient", "-U", Takes::UserAndPassword),
    ("etcdctl", "--user", Takes::UserAndPassword),
    ("xfreerdp", "/p:", Takes::Attached),
    ("evil-winrm", "-p", Takes::Value),
    ("isql", "-P", Takes::Value),
    ("beeline", "-p", Takes::Value),
    ("pscp", "-pw", Takes::Value),
    ("putty", "-pw", Takes::Value),
    ("plink", "-pw", Takes::Value),
    ("altool", "-p", Takes::Value),
    ("snmp", "-c", Takes::Value),
    ("pdftk", "input_pw", Takes::Value),
    ("ssh-keygen", "-N", Takes::Value),
    ("doctl", "-t", Takes::Value),
    ("codecov", "-t", Takes::Value),
    ("openssl", "-passin", Takes::Prefixed),
    ("openssl", "-passout", Takes::Prefixed),
    ("openssl", "-pass", Takes::Prefixed),
    ("keytool", "-storepass", Takes::Value),
    ("keytool", "-keypass", Takes::Value),
    ("jarsigner", "-storepass", Takes::Value),
    ("jarsigner", "-keypass", Takes::Value),
    ("gpg", "--passphrase", Takes::Value),
    ("kinit", "--password", Takes::Value),
    ("ipmitool", "-P", Takes::Value),
    ("mosquitto", "-P", Takes::Value),
    ("rabbitmqadmin", "-p", Takes::Value),
    ("clickhouse-client", "--password", Takes::Value),
    ("influx", "-password", Takes::Value),
    ("vault", "-password", Takes::Value),
    ("unzip", "-P", Takes::Value),
    ("secret", "--from-literal", Takes::Assigned),
    ("secret set", "--body", Takes::Value),
    ("secret set", "-b", Takes::Value),
    ("docker", "--password-stdin", Takes::Stdin),
    ("login", "--password-stdin", Takes::Stdin),
    ("login", "--with-token", Takes::Stdin),
    ("sudo", "-S", Takes::Stdin),
    ("passwd", "--stdin", Takes::Stdin),
    ("", "-passphrase-fd", Takes::Stdin),
    ("xh", "-a", Takes::Value),
    ("htpasswd", "-bB", Takes::Value),
    ("htpasswd", "-b", Takes::Value),
    ("htpasswd", "-bc", Takes::Value),
    ("cypher-shell ", "-p", Takes::Value),
    ("az ", "-p", Takes::Value),
    ("hydra", "-p", Takes::Value),
    ("medusa", "-p", Takes::Value),
    ("nuget", "-k", Takes::Value),
    ("nuget", "-ApiKey", Takes::Value),
    ("fly", "-t", Takes::Value),
    ("openssl enc", "-k", Takes::Value),
    ("openssl enc", "-K", Takes::Value),
    ("ssm ", "--value", Takes::Value),
    ("secretsmanager ", "--secret-string", Takes::Value),
    ("keyvault ", "--value", Takes::Value),
    ("eas ", "--value", Takes::Value),
    ("security ", "-w", Takes::Value),
    ("net use ", "/user:", Takes::Next),
    ("runas ", "/user:", Takes::Next),
    ("cmdkey ", "/pass:", Takes::Attached),
    ("mosquitto_pub", "-P", Takes::Value),
    ("kafka", "-X", Takes::Assigned),
    ("mongodump", "-p", Takes::Value),
    ("snowsql", "-p", Takes::Value),
    ("lftp", "-u", Takes::UserAndPassword),
    ("wget", "-u", Takes::UserAndPassword),
    ("nxc ", "-p", Takes::Value),
    ("crackmapexec ", "-p", Takes::Value),
];

/// Commands whose argument is a secret, and how many words precede it. The scan stops at the second part of a command, which is
/// rarer than the first.
const ARGUMENTS: [((&str, &str), usize); 18] = [
    (("", "mc alias set "), 3),
    (("", "rabbitmqctl add_user "), 1),
    (("", "rabbitmqctl change_password "), 1),
    (("", "wpa_passphrase "), 1),
    (("", "mosquitto_passwd -b "), 2),
    (("", "htpasswd -nb "), 1),
    (("", "htpasswd -bn "), 1),
    (("ca", "rgo login "), 0),
    (("", "nuget setapikey "), 0),
    (("dotnet ", "user-secrets set "), 1),
    (("netlify ", "env:set "), 1),
    (("", "pulumi config set --secret "), 1),
    (("", "ansible-vault encrypt_string "), 0),
    (("", "snyk auth "), 0),
    (("", "vault login "), 0),
    (("", "vault operator unseal "), 0),
    (("", "poetry config http-basic."), 2),
    (("", "doppler configure set token "), 0),
];
/// Commands that store each `NAME=value` of their arguments as a secret.
const SETTERS: [(&str, &str); 13] = [
    ("he", "roku config:set "),
    ("he", "roku config:add "),
    ("", "fly secrets set "),
    ("", "flyctl secrets set "),
    ("", "doppler secrets set "),
    ("ra", "ilway variables "),
    ("s", "upabase secrets set "),
    ("", "vault kv put "),
    ("", "vault write "),
    ("", "eb setenv "),
    ("", "nomad var put "),
    ("", "op item create "),
    ("", "travis encrypt "),
];
/// Commands that read a secret from a pipe or a here-string.
const READERS: [&str; 10] = [
    "secrets create ",
    "passwd ",
    "secret set ",
    "secret put ",
    "secrets set ",
    "env add ",
    "secret create ",
    "secrets versions add ",
    "pass insert ",
    "secret-tool store ",
];
/// Words of commands that read a secret from a here-string.
const OF_READERS: [&str; 10] = ["seal", "kinit", "secret", "passwd", "login", "auth", "token", "credential", "env add", "vault"];

/// The beginnings of all these, for the table of prefixes.
pub const COMMANDS: [&str; ARGUMENTS.len() + SETTERS.len() + READERS.len() + 1] = {
    let mut all = ["<<< "; ARGUMENTS.len() + SETTERS.len() + READERS.len() + 1];
    let mut i = 0;
    while i < all.len() - 1 {
        all[i] = if i < ARGUMENTS.len() {
            ARGUMENTS[i].0.1
        } else if i < ARGUMENTS.len() + SETTERS.len() {
            SETTERS[i - ARGUMENTS.len()].1
        } else {
            READERS[i - ARGUMENTS.len() - SETTERS.len()]
        };
        i += 1;
    }
    all
};

/// Returns the secrets in the arguments of a command, or in what it reads; `at` is the start of the command's second part.
pub fn arguments(bytes: &[u8], at: usize) -> Vec<Span> {
    let rest = &bytes[at..];
    let begins = |literal: &str| begins(rest, literal).then_some(at + literal.len());
    let is_here = |(first, second): (&str, &str)| begins(second).filter(|_| bytes[..at].ends_with(first.as_bytes()));
    let mut found = Vec::new();
    if let Some((from, skipped)) = ARGUMENTS.iter().find_map(|(command, skipped)| Some((is_here(*command)?, *skipped))) {
        found.extend(argument(bytes, from, skipped));
    }
    if let Some(from) = SETTERS.iter().find_map(|command| is_here(*command)) {
        let end = run(&bytes[..bytes.len().min(from + LOOKED_AT)], from, |b| !matches!(b, b'\n' | b';' | b'|'));
        let mut next = from;
        while let Some(equals) = bytes[next..end].iter().position(|b| *b == b'=').map(|i| next + i) {
            let span = word(bytes, equals + 1);
            next = span.as_ref().map_or(equals + 1, |span| span.end.min(end));
            found.extend(span.filter(|span| is_secret(&bytes[span.start..span.end])));
        }
    }
    if let Some(from) = begins("<<< ") {
        let reads = || OF_READERS.iter().any(|name| runs(command_before(bytes, at), name));
        found.extend(word(bytes, from).filter(|span| is_secret(&bytes[span.start..span.end]) && reads()));
    }
    if let Some(from) = READERS.iter().find_map(|command| begins(command)) {
        found.extend(from_stdin(bytes, from - 1).filter(|span| is_secret(&bytes[span.start..span.end])));
    }
    found
}

/// Whether a value that a command stores can be a secret, unlike `true`, `production` or `8080`.
fn is_secret(value: &[u8]) -> bool {
    looks_set(value) || has_marks(value) || is_secret_string(value)
}

/// Returns the word after `skipped` words; options are not counted.
fn argument(bytes: &[u8], from: usize, mut skipped: usize) -> Option<Span> {
    let mut at = from;
    loop {
        at = run(bytes, at, |b| b == b' ');
        let is_option = bytes.get(at) == Some(&b'-');
        if !is_option && skipped == 0 {
            return word(bytes, at).filter(|span| is_secret(&bytes[span.start..span.end]));
        }
        skipped -= usize::from(!is_option);
        let next = run(bytes, at, |b| !b.is_ascii_whitespace());
        if next == at || bytes.get(next) == Some(&b'\n') {
            return None;
        }
        at = next;
    }
}

/// Bytes before an option that are searched for its program.
const BEFORE: usize = 400;

/// Finds a password at an option; `at` is the blank before it.
pub fn password(bytes: &[u8], at: usize) -> Option<Span> {
    let option_end = run(bytes, at + 1, |b| !b.is_ascii_whitespace() && b != b'=');
    let word = &bytes[at + 1..option_end];
    if word.len() < 2 || !(word[1].is_ascii_alphabetic() || word[1] == b'-') {
        return None;
    }
    // Letters may be combined: `curl -su me:pw`.
    let joined = word.len() > 2 && word.len() < 8 && word.ends_with(b"u") && word[1..].iter().all(u8::is_ascii_alphabetic);
    let fits = |option: &str| match option.starts_with("--") {
        true => word == option.as_bytes(),
        false => word.starts_with(option.as_bytes()),
    };
    if !joined && !OPTIONS.iter().any(|(_, option, _)| option.as_bytes()[1] == word[1] && fits(option)) {
        return None;
    }
    let command = command_before(bytes, at);
    let skipped = if joined && runs(command, "curl") { word.len() - 2 } else { 0 };
    let word = if skipped > 0 { &b"-u"[..] } else { word };
    let fits = |option: &str| match option.starts_with("--") {
        true => word == option.as_bytes(),
        false => word.starts_with(option.as_bytes()),
    };
    let (option, takes) = OPTIONS
        .iter()
        .filter(|(_, option, _)| fits(option))
        .find(|(program, ..)| runs(command, program))
        .map(|(_, option, takes)| (option, takes))?;
    if let Takes::Stdin = takes {
        return from_stdin(bytes, at);
    }
    if let Takes::Next = takes {
        return argument(bytes, option_end, 0);
    }
    let attached = word.len() > option.len();
    let mut from = at + 1 + option.len() + skipped;
    if !attached {
        if matches!(takes, Takes::Attached) {
            return None;
        }
        from = run(bytes, from, |b| matches!(b, b' ' | b'\t' | b'='));
    }
    // `htpasswd -b file user password`
    if runs(command, "htpasswd") {
        for _ in 0..2 {
            from = run(bytes, run(bytes, from, |b| !b.is_ascii_whitespace()), |b| b == b' ');
        }
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
    let value = &bytes[from..end];
    from += match takes {
        Takes::UserAndPassword => value.iter().position(|&b| matches!(b, b':' | b'%'))? + 1,
        Takes::Assigned => value.iter().position(|&b| b == b'=')? + 1,
        Takes::Prefixed => value.strip_prefix(b"pass:").map(|_| 5)?,
        _ => 0,
    };
    let value = &bytes[from..end];
    let variable = is_mark(value) || value.first().is_some_and(|b| matches!(b, b'$' | b'-' | b'<' | b'{'));
    (!value.is_empty() && !variable).then_some(Span { start: from, end, family: "option-password", guessless: false })
}

/// Finds a password that a program reads from a pipe or a here-string: `echo SECRET | docker login --password-stdin`,
/// `… <<< SECRET`.
fn from_stdin(bytes: &[u8], at: usize) -> Option<Span> {
    let line_end = run(&bytes[..bytes.len().min(at + BEFORE)], at, |b| b != b'\n' && b != b'|' && b != b';');
    if let Some(behind) = find(&bytes[at..line_end], b"<<<") {
        let from = run(bytes, at + behind + 3, |b| b == b' ');
        return word(bytes, from);
    }
    let before = &bytes[at.saturating_sub(BEFORE)..at];
    let pipe = before.iter().rposition(|&b| b == b'|')?;
    let line = before[..pipe].iter().rposition(|&b| matches!(b, b'\n' | b';' | b'&')).map_or(0, |i| i + 1);
    let echo = ["echo ", "printf "]
        .iter()
        .find_map(|program| find(&before[line..pipe], program.as_bytes()).map(|i| line + i + program.len()))?;
    let mut from = at - before.len() + echo;
    // Options, and the format of `printf`.
    loop {
        let next = run(bytes, from, |b| b == b' ');
        let is_format = matches!(bytes.get(next..next + 3), Some(b"'%s" | b"\"%s")) || bytes.get(next..next + 2) == Some(b"%s");
        if bytes.get(next) != Some(&b'-') && !is_format {
            from = next;
            break;
        }
        from = run(bytes, next, |b| !b.is_ascii_whitespace());
    }
    word(bytes, from)
}

/// Finds the password in `echo user:password | chpasswd`, or in a here-string; `at` is the start of the program's name.
pub fn chpasswd(bytes: &[u8], at: usize) -> Option<Span> {
    let span = from_stdin(bytes, at)?;
    let colon = bytes[span.start..span.end].iter().position(|&b| b == b':')?;
    Some(Span { start: span.start + colon + 1, ..span })
}

/// Returns a shell word without its quotes, unless it is a variable.
fn word(bytes: &[u8], from: usize) -> Option<Span> {
    let quote = bytes.get(from).copied().filter(|b| matches!(b, b'"' | b'\''));
    let start = from + usize::from(quote.is_some());
    let end = run(bytes, start, |b| match quote {
        Some(quote) => b != quote && b != b'\n',
        None => !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b';' | b'|' | b'&' | b')'),
    });
    let value = &bytes[start..end];
    let variable = is_mark(value) || value.first().is_some_and(|b| matches!(b, b'$' | b'<'));
    (end > start && !variable).then_some(Span { start, end, family: "option-password", guessless: false })
}

/// Returns the command that contains the option, up to the option.
fn command_before(bytes: &[u8], at: usize) -> &[u8] {
    let before = &bytes[at.saturating_sub(BEFORE)..at];
    // A blank must follow a separator: `&` in a quoted address and `;` in a quoted header do not count. A line may
    // continue.
    let ends = |i: usize| match before[i] {
        b'\n' => i == 0 || before[i - 1] != b'\\',
        b'|' | b';' | b'&' => before.get(i + 1).is_none_or(|b| b.is_ascii_whitespace()),
        _ => false,
    };
    &before[(0..before.len()).rev().find(|&i| ends(i)).map_or(0, |i| i + 1)..]
}

/// Whether a command names a program.
fn runs(command: &[u8], program: &str) -> bool {
    program.is_empty() || command.windows(program.len()).any(|w| w == program.as_bytes())
}

/// Text before the secret part of a webhook's URL.
const WEBHOOKS: [&str; 25] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "discord.com/api/v10/webhooks/",
    "discord.com/api/v9/webhooks/",
    "discordapp.com/api/v10/webhooks/",
    "discordapp.com/api/v9/webhooks/",
    "api.telegram.org/bot",
    "hooks.zapier.com/hooks/catch/",
    "maker.ifttt.com/trigger/",
    "events.pagerduty.com/integration/",
    "outlook.office.com/webhook/",
    "chat.googleapis.com/v1/spaces/",
    "hooks.chime.aws/incomingwebhooks/",
    "open.feishu.cn/open-apis/bot/v2/hook/",
    "oapi.dingtalk.com/robot/send?access_token=",
    "api.opsgenie.com/v1/json/",
    "hc-ping.com/",
    "qyapi.weixin.qq.com/cgi-bin/webhook/send?key=",
    "http-intake.logs.datadoghq.com/v1/input/",
    "api.vercel.com/v1/integrations/deploy/",
    "api.netlify.com/build_hooks/",
    "api.render.com/deploy/",
];

/// The same, on any host.
const WEBHOOK_PATHS: [&str; 7] = [
    ".webhook.office.com/webhookb2/",
    ".make.com/",
    "/hooks/",
    "/webhook/",
    ".infura.io/v3/",
    ".alchemy.com/v2/",
    ".quiknode.pro/",
];

/// Finds a password after the `://` at `at`.
pub fn url_password(bytes: &[u8], at: usize) -> Option<Span> {
    let from = at + 3;
    let near = &bytes[..bytes.len().min(from + LOOKED_AT)];
    if let Some(span) = webhook(near, from) {
        return Some(span);
    }
    let stop = run(near, from, |b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'"' | b'\'' | b'`' | b'<' | b'>'));
    credentials(bytes, from, stop, bytes[from..stop].iter().rposition(|&b| b == b'@')?)
}

fn webhook(near: &[u8], from: usize) -> Option<Span> {
    let rest = near.get(from..)?;
    let host_end = run(near, from, |b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':'));
    let known = WEBHOOKS.iter().find(|hook| rest.starts_with(hook.as_bytes())).map(|hook| from + hook.len());
    let any_host = || {
        WEBHOOK_PATHS.iter().find_map(|path| {
            let behind = host_end + path.len() - path.find('/').unwrap_or(0);
            near[..behind.min(near.len())].ends_with(path.as_bytes()).then_some(behind)
        })
    };
    let start = known.or_else(any_host)?;
    let end = run(near, start, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b':' | b'@' | b'?' | b'=' | b'&' | b'.')
    });
    let path = &near[start..end];
    // Documentation about webhooks has words there.
    let random = path.split(|b| !b.is_ascii_alphanumeric()).any(|part| part.len() >= 12 && part.iter().any(u8::is_ascii_digit));
    (end - start >= 20 && (random || looks_random(path))).then_some(Span { start, end, family: "webhook", guessless: false })
}

/// Finds the password in `user:password@tcp(host:3306)/db` (Go), `scott/tiger@//host` (Oracle); `at` is the position of
/// the `@`.
pub fn source_name(bytes: &[u8], at: usize) -> Option<Span> {
    let far = at.saturating_sub(128);
    let start = bytes[far..at]
        .iter()
        .rposition(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'='))
        .map_or(far, |i| far + i + 1);
    let user_end = bytes[start..at].iter().position(|&b| b == b':')?;
    let password = &bytes[start + user_end + 1..at];
    let is_source = user_end > 0 && !password.is_empty() && !password.starts_with(b"//");
    let found = is_source && !is_variable(password) && !password.contains(&b'%');
    found.then_some(Span { start: start + user_end + 1, end: at, family: "url-password", guessless: false })
}

/// Finds the password in `thin:scott/tiger@…`, `sqlplus scott/tiger@…`; `at` is the start of the literal.
pub fn oracle(bytes: &[u8], at: usize) -> Option<Span> {
    let from = at
        + find(&bytes[at..bytes.len().min(at + 8)], b"/")
            .or(find(&bytes[at..bytes.len().min(at + 8)], b"thin:").map(|i| i + 4))
            .or(Some(7))?;
    let from = run(bytes, from, |b| matches!(b, b':' | b' '));
    let near = &bytes[..bytes.len().min(from + 128)];
    let user_end = run(near, from, |b| b.is_ascii_alphanumeric() || b == b'_');
    let end = run(near, user_end + 1, |b| !b.is_ascii_whitespace() && !matches!(b, b'@' | b'"' | b'\''));
    let found = near.get(user_end) == Some(&b'/') && near.get(end) == Some(&b'@') && end > user_end + 1;
    (found && !is_variable(&near[user_end + 1..end])).then_some(Span {
        start: user_end + 1,
        end,
        family: "url-password",
        guessless: false,
    })
}

/// Words that documents have in the place of a password: `https://user:pass@host`.
const PASSWORD_WORDS: [&str; 4] = ["pass", "passwd", "password", "pwd"];

/// Finds the password of `user:password`, or a lone token, before the `@` at `sign`.
fn credentials(bytes: &[u8], from: usize, stop: usize, sign: usize) -> Option<Span> {
    let authority = &bytes[from..stop];
    let span = |start| Some(Span { start, end: from + sign, family: "url-password", guessless: false });
    let Some(colon) = authority[..sign].iter().position(|&b| b == b':') else {
        return if looks_random(&authority[..sign]) { span(from) } else { None };
    };
    let password = &authority[colon + 1..sign];
    // GitHub accepts a token as the user name.
    let start = if password == b"x-oauth-basic" { from } else { from + colon + 1 };
    let is_placeholder = PASSWORD_WORDS.iter().any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    if password.is_empty() || is_variable(password) || is_placeholder { None } else { span(start) }
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
            ("heroku config:set PORT=8080 JWT=Zq8sKd02mQpLr7vN11 -a app", "heroku config:set PORT=8080 JWT=*** -a app"),
            ("fly secrets set SALT=Zq8sKd02mQpLr7vN11", "fly secrets set SALT=***"),
            ("htpasswd -nb deploy Zq8sKd02mQpLr7vN11", "htpasswd -nb deploy ***"),
            ("echo -n 'Zq8sKd02mQpLr7vN11' | gh secret set DEPLOY", "echo -n '***' | gh secret set DEPLOY"),
            ("rabbitmqctl add_user bob Zq8sKd02mQpLr7vN11", "rabbitmqctl add_user bob ***"),
            ("wrangler secret put SALT <<< db582070ccb283d9f5bd2870517df15f", "wrangler secret put SALT <<< ***"),
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
