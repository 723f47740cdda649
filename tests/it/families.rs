//! Every family of keys × every place where one can stand: no byte of any file holds it.
//!
//! The samples are made here from what the vendors document (prefix, alphabet, length), not from the table in `src/redact`,
//! and from parts, so that no scanner of repositories takes this file for a leak.

use crate::world::World;
use serde_json::{Value, json};

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Family, prefix, alphabet and length of what follows.
const KEYS: &[(&str, &str, &str, usize)] = &[
    ("aws-access-key", "AKIA", UPPER, 16),
    ("aws-access-key", "ASIA", UPPER, 16),
    ("alibaba-key", "LTAI", ALNUM, 20),
    ("tencent-key", "AKID", ALNUM, 32),
    ("google-api-key", "AIza", URL, 35),
    ("google-oauth", "GOCSPX-", URL, 28),
    ("google-oauth", "ya29.", URL, 120),
    ("digitalocean-token", "dop_v1_", HEX, 64),
    ("heroku-key", "HRKU-", URL, 60),
    ("flyio-token", "fo1_", URL, 43),
    ("netlify-token", "nfp_", ALNUM, 36),
    ("linode-token", "lin_pat_", ALNUM, 40),
    ("yandex-key", "AQVN", URL, 36),
    ("github-token", "ghp_", ALNUM, 36),
    ("github-token", "gho_", ALNUM, 36),
    ("github-token", "ghs_", ALNUM, 36),
    ("github-token", "github_pat_", URL, 82),
    ("gitlab-token", "glpat-", URL, 20),
    ("gitlab-token", "glrt-", URL, 20),
    ("gitlab-token", "gloas-", HEX, 64),
    ("bitbucket-token", "ATBB", ALNUM, 32),
    ("atlassian-token", "ATATT3", URL, 186),
    ("npm-token", "npm_", ALNUM, 36),
    ("pypi-token", "pypi-AgE", URL, 150),
    ("crates-token", "cio", ALNUM, 32),
    ("rubygems-key", "rubygems_", HEX, 48),
    ("docker-token", "dckr_pat_", URL, 27),
    ("nuget-key", "oy2", LOWER, 43),
    ("clojars-token", "CLOJARS_", ALNUM, 60),
    ("artifactory-key", "AKCp", ALNUM, 69),
    ("buildkite-token", "bkua_", HEX, 40),
    ("sourcegraph-token", "sgp_", HEX, 56),
    ("sonar-token", "sqp_", HEX, 40),
    ("slack-token", "xoxb-", URL, 50),
    ("slack-token", "xoxp-", URL, 70),
    ("slack-token", "xapp-", URL, 90),
    ("sendgrid-key", "SG.", URL, 66),
    ("mailgun-key", "key-", HEX, 32),
    ("brevo-key", "xkeysib-", HEX, 81),
    ("resend-key", "re_", ALNUM, 32),
    ("twilio-key", "SK", HEX, 32),
    ("stripe-key", "sk_live_", ALNUM, 24),
    ("stripe-key", "rk_live_", ALNUM, 99),
    ("stripe-key", "whsec_", ALNUM, 32),
    ("square-token", "sq0csp-", URL, 43),
    ("shopify-token", "shpat_", HEX, 32),
    ("razorpay-key", "rzp_live_", ALNUM, 14),
    ("flutterwave-key", "FLWSECK-", HEX, 37),
    ("shippo-token", "shippo_live_", HEX, 40),
    ("easypost-key", "EZAK", ALNUM, 54),
    ("duffel-token", "duffel_live_", URL, 43),
    ("anthropic-key", "sk-ant-", URL, 100),
    ("openrouter-key", "sk-or-", URL, 67),
    ("openai-key", "sk-proj-", URL, 120),
    ("openai-key", "sk-", ALNUM, 48),
    ("huggingface-token", "hf_", ALNUM, 34),
    ("replicate-token", "r8_", ALNUM, 37),
    ("groq-key", "gsk_", ALNUM, 52),
    ("perplexity-key", "pplx-", ALNUM, 48),
    ("xai-key", "xai-", ALNUM, 80),
    ("nvidia-key", "nvapi-", URL, 64),
    ("langsmith-key", "lsv2_", URL, 46),
    ("together-key", "tgp_v1_", URL, 43),
    ("fireworks-key", "fw_", ALNUM, 24),
    ("pinecone-key", "pcsk_", URL, 70),
    ("linear-key", "lin_api_", ALNUM, 40),
    ("notion-token", "ntn_", ALNUM, 46),
    ("figma-token", "figd_", URL, 40),
    ("postman-key", "PMAK-", HEX, 59),
    ("typeform-token", "tfp_", URL, 44),
    ("contentful-token", "CFPAT-", URL, 43),
    ("readme-key", "rdme_", LOWER, 70),
    ("databricks-token", "dapi", HEX, 32),
    ("planetscale-secret", "pscale_tkn_", URL, 43),
    ("supabase-key", "sbp_", HEX, 40),
    ("neon-key", "napi_", LOWER, 64),
    ("prefect-key", "pnu_", ALNUM, 36),
    ("vault-token", "hvs.", URL, 95),
    ("pulumi-token", "pul-", HEX, 40),
    ("doppler-token", "dp.pt.", ALNUM, 43),
    ("onepassword-token", "ops_eyJ", URL, 250),
    ("age-key", "AGE-SECRET-KEY-1", UPPER, 58),
    ("newrelic-key", "NRAK-", UPPER, 27),
    ("grafana-token", "glsa_", URL, 41),
    ("sentry-token", "sntryu_", HEX, 64),
    ("tailscale-key", "tskey-", URL, 40),
    ("honeycomb-key", "hcaik_", LOWER, 58),
];

/// What is no key with a prefix: the text as it stands, and the part of it that must go.
fn shapes() -> Vec<(&'static str, String, String)> {
    let random = |n, salt| body(ALNUM, n, salt);
    let lines: String = (0..20).map(|n| body(ALNUM, 64, 900 + n) + "\n").collect();
    let pem = format!("{}{}\n{lines}{}{}", "-----BEGIN ", "RSA PRIVATE KEY-----", "-----END ", "RSA PRIVATE KEY-----");
    let jwt = format!("{}{}.{}{}.{}", "eyJ", random(30, 1), "eyJ", random(60, 2), random(43, 3));
    let whole = |family, text: String| (family, text.clone(), text);
    vec![
        whole("jwt", jwt),
        ("private-key", pem.clone(), lines[..64].to_string()),
        ("private-key", pem.replace('\n', "\\n"), lines[..64].to_string()),
        ("url-password", format!("postgres://app:{}@db.example/x", random(12, 4)), random(12, 4)),
        ("url-password", format!("https://u:{}@h.example/x.git", random(20, 5)), random(20, 5)),
        ("header", format!("Authorization: Bearer {}", random(40, 6)), random(40, 6)),
        ("header", format!("curl -H 'X-API-Key: {}' https://h", random(32, 7)), random(32, 7)),
        ("header", format!("PRIVATE-TOKEN: {}", random(24, 8)), random(24, 8)),
        ("header", format!("Cookie: session={}; a=b", random(32, 9)), random(32, 9)),
        ("assigned-secret", format!("AWS_SECRET_ACCESS_KEY={}", random(40, 10)), random(40, 10)),
        ("assigned-secret", format!("\"client_secret\": \"{}\"", random(32, 11)), random(32, 11)),
        ("assigned-secret", "DB_PASSWORD=hunter2!x".to_string(), "hunter2!x".to_string()),
        ("option-password", "curl -u admin:Tr0ub4dor https://h".to_string(), "Tr0ub4dor".to_string()),
        ("option-password", "mysqldump -uroot -pCorrectHorse9 shop".to_string(), "CorrectHorse9".to_string()),
        ("option-password", "sshpass -p Batt3ryStaple ssh h".to_string(), "Batt3ryStaple".to_string()),
    ]
}

/// Repeatable letters that look random; always with a digit, a lower and an upper letter where the alphabet has them.
fn body(alphabet: &str, n: usize, salt: u64) -> String {
    let letters = alphabet.as_bytes();
    let mut state = salt.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut out: Vec<u8> = (0..n).map(|_| letters[next() % letters.len()]).collect();
    for (at, sure) in [(1, b'7'), (n / 2, b'q'), (n - 1, b'Q')] {
        if letters.contains(&sure) {
            out[at] = sure;
        }
    }
    String::from_utf8(out).unwrap()
}

fn samples() -> Vec<(&'static str, String, String)> {
    let key = |(i, &(family, prefix, alphabet, length)): (usize, &(&'static str, &str, &str, usize))| {
        let text = format!("{prefix}{}", body(alphabet, length, 100 + i as u64));
        (family, text.clone(), text)
    };
    KEYS.iter().enumerate().map(key).chain(shapes()).collect()
}

/// A prompt, a command, an output, a failure, a written file, a closing message.
fn places(world: &World, text: &str, n: usize) -> Vec<Value> {
    let with = |name: &str, path: &str, place: usize| {
        let mut payload = world.payload(name);
        *payload.pointer_mut(path).unwrap() = json!(text);
        payload["prompt_id"] = json!(format!("prompt-{n}-{place}"));
        payload["tool_use_id"] = json!(format!("toolu_{n}_{place}"));
        payload
    };
    let mut write = with("PostToolUse-Write-create", "/tool_input/content", 4);
    write["tool_response"]["content"] = json!(text);
    vec![
        with("UserPromptSubmit", "/prompt", 0),
        with("PostToolUse-Bash", "/tool_input/command", 1),
        with("PostToolUse-Bash", "/tool_response/stdout", 2),
        with("PostToolUseFailure-Bash", "/error", 3),
        write,
        with("Stop", "/last_assistant_message", 5),
    ]
}

#[test]
fn no_file_holds_a_secret_of_any_family_from_any_place() {
    let world = World::new();
    let samples = samples();
    let families: std::collections::BTreeSet<&str> = samples.iter().map(|(family, ..)| *family).collect();
    assert!(families.len() >= 60, "{}", families.len());
    for (n, (_, text, _)) in samples.iter().enumerate() {
        // Some stand before a locked database, so that the spool is looked at too.
        let lock = (n % 30 == 29).then(|| world.lock());
        for payload in places(&world, &format!("before {text} after"), n) {
            assert_eq!(world.feed(&["record"], payload.to_string().as_bytes()).text(), "[exit 0]");
        }
        if lock.is_some() {
            for (path, bytes) in world.all_bytes().into_iter().filter(|(path, _)| path.ends_with("nmem.db-spool")) {
                let held = samples.iter().filter(|(.., secret)| holds(&bytes, secret)).count();
                assert_eq!(held, 0, "{}", path.display());
            }
        }
    }
    world.feed(&["record", "--platform", &samples[0].1], b"{\"hook_event_name\":\"Stop\"}");
    let files = world.all_bytes();
    assert!(files.iter().any(|(path, _)| path.ends_with("nmem.db-log")));
    let mut leaks = Vec::new();
    for (family, _, secret) in &samples {
        leaks.extend(
            files.iter().filter(|(_, bytes)| holds(bytes, secret)).map(|(path, _)| format!("{family} in {}", path.display())),
        );
    }
    assert_eq!(leaks, [] as [String; 0]);
    // What stood around them is kept, and every family has left its mark in every place.
    for (family, ..) in &samples {
        let mark = format!("'%before %[redacted:{family}%after%'");
        let prompts = world.count(&format!("SELECT count(DISTINCT kind) FROM prompts WHERE text LIKE {mark}"));
        let tools = world.count(&format!(
            "SELECT (count(*) FILTER (WHERE content LIKE {mark}) > 0) + (count(*) FILTER (WHERE outcome LIKE {mark}) > 0)
                  + (count(*) FILTER (WHERE metadata LIKE {mark}) > 0) + (count(*) FILTER (WHERE input LIKE {mark}) > 0) FROM tool_uses"
        ));
        assert_eq!((prompts, tools), (2, 4), "{family}");
    }
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    // The first sixteen characters are enough: half a key is a leak too.
    let needle = &secret.as_bytes()[..secret.len().min(16)];
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn equal_keys_have_equal_marks_and_the_key_of_marks_is_private() {
    let world = World::new();
    let (one, other) = (["ghp_", &body(ALNUM, 36, 1)].concat(), ["ghp_", &body(ALNUM, 36, 2)].concat());
    for (n, text) in [&one, &other, &one].iter().enumerate() {
        let mut payload = world.payload("UserPromptSubmit");
        payload["prompt"] = json!(text);
        payload["prompt_id"] = json!(format!("p{n}"));
        world.feed(&["record"], payload.to_string().as_bytes());
    }
    let marks = world.sql("SELECT text FROM prompts ORDER BY id");
    let marks: Vec<&str> = marks.lines().collect();
    assert!(marks[0].starts_with("[redacted:github-token#"), "{marks:?}");
    assert_eq!(marks[0], marks[2]);
    assert_ne!(marks[0], marks[1]);
    let elsewhere = World::new();
    let mut payload = elsewhere.payload("UserPromptSubmit");
    payload["prompt"] = json!(one);
    elsewhere.feed(&["record"], payload.to_string().as_bytes());
    assert_ne!(elsewhere.sql("SELECT text FROM prompts"), marks[0], "another user's key gives other marks");
    assert_eq!(world.read("home/.local/share/nmem/mark-key").trim().len(), 64);
}
