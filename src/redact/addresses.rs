//! Passwords in URLs, and URLs that are secrets themselves: webhooks.

use super::span::{LOOKED_AT, Span, find, run};
use super::values::{is_variable, looks_random};

/// Text before the secret part of a webhook's URL.
const WEBHOOKS: [&str; 22] = [
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "discord.com/api/v10/webhooks/",
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
    let found = !password.is_empty() && !is_variable(password) && !password.contains(&b'%');
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
    if password.is_empty() || is_variable(password) { None } else { span(start) }
}
