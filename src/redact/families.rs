//! Known families of keys: prefixes with the characters that follow, and shapes without a prefix.

use super::values::{LOOKED_AT, Span, boundary, changes_often, find, looks_random, run};

/// Characters that a key's body may contain.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// `A-Z a-z 0-9`
    Alnum,
    /// `A-Z 0-9`
    Upper,
    /// `a-z 0-9`
    LowerAlnum,
    /// `0-9 a-f`
    Hex,
    /// `A-Z a-z 0-9 _ -`
    Url,
    /// `A-Z a-z 0-9 + / =`
    Base64,
    /// `A-Z a-z 0-9 _ - . =`: several parts with dots
    Dotted,
    /// `A-Z 0-9 -`
    UpperDashed,
    /// `A-Z a-z 0-9 $ _`: several parts with dollar signs
    Dollars,
    /// `A-Z a-z 0-9 - . _ ~ + / =` (RFC 7235)
    Token68,
}

impl Body {
    /// Whether `b` may occur in the body.
    pub fn has(self, b: u8) -> bool {
        match self {
            Body::Alnum => b.is_ascii_alphanumeric(),
            Body::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Body::LowerAlnum => b.is_ascii_lowercase() || b.is_ascii_digit(),
            Body::Hex => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
            Body::Url => b.is_ascii_alphanumeric() || b == b'_' || b == b'-',
            Body::Base64 => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='),
            Body::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='),
            Body::UpperDashed => b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'-',
            Body::Dollars => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'),
            Body::Token68 => b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'='),
        }
    }
}

/// A family of a prefix and a body of at least `min` characters, with a digit or with letters of both cases.
#[derive(Debug)]
pub struct Key {
    pub family: &'static str,
    pub prefix: &'static str,
    pub body: Body,
    pub min: usize,
    /// The body has exactly `min` characters, with letters of both cases: hashes begin with such prefixes too.
    pub exact: bool,
}

const fn prefixed(family: &'static str, prefix: &'static str, body: Body, min: usize) -> Key {
    Key { family, prefix, body, min, exact: false }
}

const fn exact(family: &'static str, prefix: &'static str, body: Body, min: usize) -> Key {
    Key { family, prefix, body, min, exact: true }
}

/// Keys by prefix. The first matching row wins. Keys without a documented prefix (Datadog, Cloudflare's older keys) are
/// found by the name they are assigned to.
///
/// Sources: the vendors' own pages on the format of their keys, and the public lists of secret scanners (GitHub's
/// supported patterns, the rules of gitleaks), read 2026-11. Each row is a test in `scan.rs`.
pub const KEYS: &[Key] = &[
    // Clouds and hosting.
    prefixed("aws-access-key", "AKIA", Body::Upper, 16),
    prefixed("aws-access-key", "ASIA", Body::Upper, 16),
    prefixed("aws-access-key", "ABIA", Body::Upper, 16),
    prefixed("aws-access-key", "ACCA", Body::Upper, 16),
    prefixed("aws-access-key", "A3T", Body::Upper, 17),
    prefixed("aws-bedrock-key", "ABSK", Body::Base64, 80),
    prefixed("aws-bedrock-key", "bedrock-api-key-", Body::Base64, 24),
    prefixed("alibaba-key", "LTAI", Body::Alnum, 12),
    prefixed("tencent-key", "AKID", Body::Alnum, 13),
    prefixed("google-api-key", "AIza", Body::Url, 35),
    prefixed("google-oauth", "GOCSPX-", Body::Url, 20),
    prefixed("google-oauth", "ya29.", Body::Dotted, 20),
    prefixed("digitalocean-token", "dop_v1_", Body::Hex, 64),
    prefixed("digitalocean-token", "doo_v1_", Body::Hex, 64),
    prefixed("digitalocean-token", "dor_v1_", Body::Hex, 64),
    prefixed("heroku-key", "HRKU-", Body::Url, 36),
    prefixed("flyio-token", "fm2_", Body::Base64, 40),
    prefixed("flyio-token", "fo1_", Body::Url, 40),
    prefixed("netlify-token", "nfp_", Body::Alnum, 36),
    prefixed("scalingo-token", "tk-us-", Body::Url, 40),
    prefixed("yandex-key", "AQVN", Body::Url, 35),
    prefixed("linode-token", "lin_pat_", Body::Alnum, 32),
    prefixed("google-api-key", "AQ.", Body::Url, 40),
    prefixed("google-oauth", "1//0", Body::Url, 30),
    prefixed("yandex-token", "t1.", Body::Dotted, 90),
    prefixed("flyio-token", "fm1a_", Body::Base64, 40),
    prefixed("flyio-token", "fm1r_", Body::Base64, 40),
    prefixed("cloudflare-token", "cfat_", Body::Url, 36),
    prefixed("cloudflare-token", "cfut_", Body::Url, 36),
    prefixed("cloudflare-key", "v1.0-", Body::Url, 160),
    prefixed("vercel-token", "vcp_", Body::Alnum, 24),
    prefixed("render-key", "rnd_", Body::Alnum, 24),
    prefixed("openshift-token", "sha256~", Body::Url, 43),
    prefixed("defined-token", "dnkey-", Body::Url, 70),
    prefixed("adobe-secret", "p8e-", Body::Alnum, 32),
    exact("clickhouse-key", "4b1d", Body::Alnum, 38),
    // Forges, registries, builds.
    prefixed("github-token", "ghp_", Body::Alnum, 36),
    prefixed("github-token", "gho_", Body::Alnum, 36),
    prefixed("github-token", "ghu_", Body::Alnum, 36),
    prefixed("github-token", "ghs_", Body::Alnum, 36),
    prefixed("github-token", "ghr_", Body::Alnum, 36),
    prefixed("github-token", "github_pat_", Body::Url, 22),
    prefixed("gitlab-token", "glpat-", Body::Dotted, 20),
    prefixed("gitlab-token", "gldt-", Body::Url, 20),
    prefixed("gitlab-token", "glrt-", Body::Dotted, 20),
    prefixed("gitlab-token", "glptt-", Body::Hex, 40),
    prefixed("gitlab-token", "glcbt-", Body::Url, 20),
    prefixed("gitlab-token", "gloas-", Body::Url, 40),
    prefixed("gitlab-token", "glsoat-", Body::Url, 20),
    prefixed("gitlab-token", "glffct-", Body::Url, 20),
    prefixed("gitlab-token", "glft-", Body::Url, 20),
    prefixed("gitlab-token", "glimt-", Body::Url, 20),
    prefixed("gitlab-token", "glagent-", Body::Url, 40),
    prefixed("gitlab-token", "GR1348941", Body::Url, 20),
    prefixed("github-token", "v1.", Body::Hex, 40),
    prefixed("jsr-token", "jsrp_", Body::Url, 30),
    prefixed("deno-token", "ddp_", Body::Alnum, 30),
    prefixed("octopus-key", "API-", Body::Upper, 26),
    prefixed("harness-token", "pat.", Body::Dotted, 60),
    prefixed("harness-token", "sat.", Body::Dotted, 60),
    prefixed("infracost-key", "ico-", Body::Alnum, 32),
    prefixed("bitbucket-token", "ATBB", Body::Alnum, 32),
    prefixed("bitbucket-token", "ATCTT3", Body::Dotted, 60),
    prefixed("atlassian-token", "ATATT3", Body::Dotted, 60),
    prefixed("npm-token", "npm_", Body::Alnum, 36),
    prefixed("pypi-token", "pypi-AgE", Body::Url, 50),
    prefixed("crates-token", "cio", Body::Alnum, 32),
    prefixed("rubygems-key", "rubygems_", Body::Hex, 48),
    prefixed("docker-token", "dckr_pat_", Body::Url, 20),
    prefixed("docker-token", "dckr_oat_", Body::Url, 20),
    prefixed("nuget-key", "oy2", Body::LowerAlnum, 43),
    prefixed("clojars-token", "CLOJARS_", Body::Alnum, 60),
    prefixed("artifactory-key", "AKCp", Body::Alnum, 69),
    exact("artifactory-token", "cmVmd", Body::Alnum, 59),
    prefixed("buildkite-token", "bkua_", Body::Hex, 40),
    prefixed("buildkite-token", "bkat_", Body::Alnum, 36),
    prefixed("buildkite-token", "bkpt_", Body::Alnum, 36),
    prefixed("circleci-token", "CCIPAT_", Body::Url, 40),
    prefixed("sourcegraph-token", "sgp_", Body::Url, 40),
    prefixed("sonar-token", "sqp_", Body::Hex, 40),
    prefixed("sonar-token", "squ_", Body::Hex, 40),
    prefixed("sonar-token", "sqa_", Body::Hex, 40),
    // Chat and mail.
    prefixed("slack-token", "xoxb-", Body::Url, 10),
    prefixed("slack-token", "xoxp-", Body::Url, 10),
    prefixed("slack-token", "xoxa-", Body::Url, 10),
    prefixed("slack-token", "xoxs-", Body::Url, 10),
    prefixed("slack-token", "xoxo-", Body::Url, 10),
    prefixed("slack-token", "xoxr-", Body::Url, 10),
    prefixed("slack-token", "xoxe-", Body::Dotted, 20),
    prefixed("slack-token", "xoxe.xox", Body::Dotted, 20),
    prefixed("slack-token", "xapp-", Body::Url, 10),
    prefixed("sendgrid-key", "SG.", Body::Dotted, 40),
    prefixed("mailgun-key", "key-", Body::Hex, 32),
    prefixed("brevo-key", "xkeysib-", Body::Url, 64),
    prefixed("resend-key", "re_", Body::Url, 24),
    prefixed("twilio-key", "SK", Body::Hex, 32),
    prefixed("facebook-token", "EAAC", Body::Alnum, 90),
    prefixed("facebook-token", "EAAM", Body::Alnum, 90),
    prefixed("klaviyo-key", "pk_", Body::Hex, 34),
    // Payment and shops.
    prefixed("stripe-key", "sk_live_", Body::Alnum, 16),
    prefixed("stripe-key", "rk_live_", Body::Alnum, 16),
    prefixed("stripe-key", "sk_test_", Body::Alnum, 16),
    prefixed("stripe-key", "rk_test_", Body::Alnum, 16),
    prefixed("stripe-key", "sk_prod_", Body::Alnum, 10),
    prefixed("stripe-key", "rk_prod_", Body::Alnum, 10),
    prefixed("stripe-key", "sk_org_live_", Body::Url, 24),
    prefixed("stripe-key", "sk_org_test_", Body::Url, 24),
    prefixed("stripe-key", "whsec_", Body::Base64, 16),
    prefixed("square-token", "sq0atp-", Body::Url, 22),
    prefixed("square-token", "sq0csp-", Body::Url, 43),
    prefixed("square-token", "EAAA", Body::Url, 22),
    prefixed("shopify-token", "shpat_", Body::Hex, 32),
    prefixed("shopify-token", "shpss_", Body::Hex, 32),
    prefixed("shopify-token", "shpca_", Body::Hex, 32),
    prefixed("shopify-token", "shppa_", Body::Hex, 32),
    prefixed("razorpay-key", "rzp_live_", Body::Alnum, 14),
    prefixed("flutterwave-key", "FLWSECK-", Body::Url, 32),
    prefixed("flutterwave-key", "FLWSECK_TEST-", Body::Url, 12),
    prefixed("lob-key", "live_", Body::Hex, 35),
    prefixed("plaid-token", "access-production-", Body::Url, 36),
    prefixed("plaid-token", "access-sandbox-", Body::Url, 36),
    prefixed("plaid-token", "access-development-", Body::Url, 36),
    prefixed("braintree-token", "access_token$production$", Body::Dollars, 30),
    prefixed("braintree-token", "access_token$sandbox$", Body::Dollars, 30),
    prefixed("shippo-token", "shippo_live_", Body::Hex, 40),
    prefixed("shippo-token", "shippo_test_", Body::Hex, 40),
    prefixed("easypost-key", "EZAK", Body::Alnum, 54),
    prefixed("easypost-key", "EZTK", Body::Alnum, 54),
    prefixed("duffel-token", "duffel_live_", Body::Dotted, 43),
    prefixed("duffel-token", "duffel_test_", Body::Dotted, 43),
    // Models.
    prefixed("anthropic-key", "sk-ant-", Body::Url, 20),
    prefixed("openrouter-key", "sk-or-", Body::Url, 20),
    prefixed("openai-key", "sk-proj-", Body::Url, 20),
    prefixed("openai-key", "sk-svcacct-", Body::Url, 20),
    prefixed("openai-key", "sk-admin-", Body::Url, 20),
    prefixed("openai-key", "sk-", Body::Url, 32),
    prefixed("huggingface-token", "hf_", Body::Alnum, 30),
    prefixed("huggingface-token", "api_org_", Body::Alnum, 30),
    prefixed("replicate-token", "r8_", Body::Alnum, 37),
    prefixed("groq-key", "gsk_", Body::Alnum, 48),
    prefixed("perplexity-key", "pplx-", Body::Alnum, 40),
    prefixed("xai-key", "xai-", Body::Alnum, 60),
    prefixed("nvidia-key", "nvapi-", Body::Url, 60),
    prefixed("langsmith-key", "lsv2_", Body::Url, 32),
    prefixed("together-key", "tgp_v1_", Body::Url, 40),
    prefixed("fireworks-key", "fw_", Body::Alnum, 22),
    prefixed("pinecone-key", "pcsk_", Body::Url, 40),
    prefixed("cerebras-key", "csk-", Body::LowerAlnum, 40),
    prefixed("elevenlabs-key", "sk_", Body::Hex, 40),
    prefixed("tavily-key", "tvly-", Body::Url, 30),
    prefixed("firecrawl-key", "fc-", Body::Hex, 32),
    prefixed("jina-key", "jina_", Body::Alnum, 50),
    prefixed("voyage-key", "pa-", Body::Url, 40),
    exact("brave-key", "BSA", Body::Url, 27),
    prefixed("apify-token", "apify_api_", Body::Alnum, 30),
    prefixed("browserbase-key", "bb_live_", Body::Url, 20),
    prefixed("e2b-key", "e2b_", Body::Hex, 40),
    prefixed("cursor-key", "crsr_", Body::Hex, 60),
    // Work and data.
    prefixed("linear-key", "lin_api_", Body::Alnum, 32),
    prefixed("linear-key", "lin_oauth_", Body::Alnum, 32),
    prefixed("notion-token", "ntn_", Body::Alnum, 43),
    prefixed("notion-token", "secret_", Body::Alnum, 43),
    prefixed("figma-token", "figd_", Body::Url, 40),
    prefixed("postman-key", "PMAK-", Body::Url, 59),
    prefixed("typeform-token", "tfp_", Body::Url, 40),
    prefixed("posthog-key", "phx_", Body::Alnum, 40),
    prefixed("hubspot-token", "pat-na1-", Body::Url, 36),
    prefixed("hubspot-token", "pat-eu1-", Body::Url, 36),
    prefixed("dbt-token", "dbtc_", Body::Url, 36),
    prefixed("dbt-token", "dbtu_", Body::Url, 36),
    prefixed("mapbox-token", "sk.eyJ", Body::Dotted, 60),
    prefixed("dropbox-token", "sl.", Body::Dotted, 120),
    prefixed("intra42-secret", "s-s4t2ud-", Body::Hex, 64),
    prefixed("intra42-secret", "s-s4t2af-", Body::Hex, 64),
    prefixed("frameio-token", "fio-u-", Body::Dotted, 64),
    exact("settlemint-token", "sm_aat_", Body::Alnum, 16),
    exact("settlemint-token", "sm_pat_", Body::Alnum, 16),
    exact("settlemint-token", "sm_sat_", Body::Alnum, 16),
    prefixed("contentful-token", "CFPAT-", Body::Url, 43),
    prefixed("readme-key", "rdme_", Body::LowerAlnum, 70),
    prefixed("airtable-token", "pat", Body::Dotted, 79),
    prefixed("databricks-token", "dapi", Body::Hex, 32),
    prefixed("planetscale-secret", "pscale_tkn_", Body::Dotted, 32),
    prefixed("planetscale-secret", "pscale_pw_", Body::Dotted, 32),
    prefixed("planetscale-secret", "pscale_oauth_", Body::Dotted, 32),
    prefixed("supabase-key", "sbp_", Body::Hex, 40),
    prefixed("supabase-key", "sbp_v0_", Body::Hex, 40),
    prefixed("supabase-key", "sb_secret_", Body::Url, 20),
    prefixed("neon-key", "napi_", Body::LowerAlnum, 60),
    prefixed("prefect-key", "pnu_", Body::Alnum, 36),
    // Secrets, monitoring, networks.
    prefixed("vault-token", "hvs.", Body::Url, 24),
    prefixed("vault-token", "hvb.", Body::Url, 60),
    exact("vault-token", "s.", Body::Alnum, 24),
    prefixed("infisical-token", "st.", Body::Dotted, 80),
    prefixed("pulumi-token", "pul-", Body::Hex, 40),
    prefixed("doppler-token", "dp.pt.", Body::Alnum, 40),
    prefixed("doppler-token", "dp.st.", Body::Dotted, 40),
    prefixed("doppler-token", "dp.ct.", Body::Dotted, 40),
    prefixed("doppler-token", "dp.sa.", Body::Dotted, 40),
    prefixed("onepassword-token", "ops_eyJ", Body::Token68, 60),
    prefixed("onepassword-key", "A3-", Body::UpperDashed, 34),
    prefixed("age-key", "AGE-SECRET-KEY-1", Body::Upper, 58),
    prefixed("age-key", "age-secret-key-1", Body::LowerAlnum, 58),
    prefixed("age-key", "AGE-PLUGIN-", Body::UpperDashed, 30),
    prefixed("newrelic-key", "NRAK-", Body::Upper, 27),
    prefixed("newrelic-key", "NRJS-", Body::Hex, 19),
    prefixed("newrelic-key", "NRII-", Body::Url, 32),
    prefixed("grafana-token", "glc_", Body::Base64, 32),
    prefixed("grafana-token", "glsa_", Body::Url, 32),
    prefixed("sentry-token", "sntrys_", Body::Token68, 60),
    prefixed("sentry-token", "sntryu_", Body::Hex, 64),
    prefixed("dynatrace-token", "dt0c01.", Body::Dotted, 80),
    prefixed("axiom-token", "xaat-", Body::Url, 36),
    prefixed("axiom-token", "xapt-", Body::Url, 36),
    prefixed("stytch-secret", "secret-live-", Body::Dotted, 30),
    prefixed("grafana-token", "eyJrIjoi", Body::Base64, 60),
    prefixed("fernet-key", "gAAAAA", Body::Url, 60),
    prefixed("paseto", "v2.local.", Body::Dotted, 60),
    prefixed("paseto", "v3.local.", Body::Dotted, 60),
    prefixed("paseto", "v4.local.", Body::Dotted, 60),
    prefixed("macaroon", "MDAx", Body::Url, 60),
    prefixed("bitcoin-key", "xprv9", Body::Alnum, 100),
    prefixed("minisign-key", "RWRTY0Iy", Body::Base64, 100),
    prefixed("tailscale-key", "tskey-", Body::Url, 20),
    prefixed("honeycomb-key", "hcaik_", Body::LowerAlnum, 58),
    // Found missing by a blind test of 305 kinds, November 2026.
    prefixed("slack-token", "xoxc-", Body::Url, 40),
    prefixed("slack-token", "xoxd-", Body::Token68, 40),
    prefixed("gcp-hmac-key", "GOOG1E", Body::Upper, 50),
    prefixed("cloudflare-token", "cfk_", Body::Alnum, 40),
    prefixed("brevo-key", "xsmtpsib-", Body::Url, 60),
    prefixed("doppler-token", "dp.scim.", Body::Alnum, 40),
    prefixed("dynatrace-token", "dt0s16.", Body::Dotted, 60),
    prefixed("vault-token", "hvr.", Body::Url, 90),
    prefixed("trello-token", "ATTA", Body::Alnum, 72),
    prefixed("aws-mws-key", "amzn.mws.", Body::Url, 36),
    prefixed("volcengine-key", "AKLT", Body::Alnum, 40),
    prefixed("scaleway-key", "SCW", Body::Upper, 17),
    prefixed("yandex-token", "y0_", Body::Url, 50),
    prefixed("vercel-token", "vercel_blob_rw_", Body::Url, 40),
    prefixed("runpod-key", "rpa_", Body::Upper, 40),
    prefixed("logfire-token", "pylf_v", Body::Url, 40),
    prefixed("adafruit-key", "aio_", Body::Alnum, 28),
    prefixed("wakatime-key", "waka_", Body::Url, 36),
    prefixed("inngest-key", "signkey-prod-", Body::Hex, 60),
    prefixed("ory-token", "ory_at_", Body::Dotted, 60),
    prefixed("ory-token", "ory_pat_", Body::Alnum, 32),
    prefixed("zuplo-key", "zpka_", Body::Url, 36),
    prefixed("instagram-token", "IGQV", Body::Url, 90),
    prefixed("facebook-token", "EAA", Body::Alnum, 100),
    prefixed("xendit-key", "xnd_production_", Body::Alnum, 40),
    prefixed("xendit-key", "xnd_development_", Body::Alnum, 40),
    prefixed("midtrans-key", "Mid-server-", Body::Url, 20),
    prefixed("mollie-key", "live_", Body::Alnum, 30),
    prefixed("paddle-key", "pdl_live_apikey_", Body::Url, 40),
    prefixed("omise-key", "skey_", Body::Url, 20),
    prefixed("persona-key", "persona_production_", Body::Url, 36),
    prefixed("launchdarkly-key", "sdk-", Body::Url, 36),
    prefixed("statsig-key", "secret-", Body::Alnum, 40),
    prefixed("valtown-token", "vtwn_", Body::Alnum, 28),
    prefixed("linkedin-secret", "WPL_AP1.", Body::Dotted, 20),
    prefixed("tinybird-token", "p.eyJ", Body::Dotted, 100),
    prefixed("mongodb-key", "mdb_agent_", Body::Hex, 36),
    prefixed("cal-key", "cal_live_", Body::Hex, 30),
    prefixed("cockroach-key", "CCDB1_", Body::Url, 50),
    prefixed("openai-key", "sk-", Body::Hex, 32),
];

/// Prefix of a private key.
pub const PEM: &str = "-----BEGIN ";

/// Rows of `KEYS`, ordered by their first byte, and the index of each byte's first row.
static BY_FIRST: ([u16; KEYS.len()], [u16; 257]) = by_first();

const fn by_first() -> ([u16; KEYS.len()], [u16; 257]) {
    let (mut order, mut starts) = ([0; KEYS.len()], [0; 257]);
    let (mut byte, mut at) = (0, 0);
    while byte < 256 {
        starts[byte] = at as u16;
        let mut i = 0;
        while i < KEYS.len() {
            if KEYS[i].prefix.as_bytes()[0] as usize == byte {
                order[at] = i as u16;
                at += 1;
            }
            i += 1;
        }
        byte += 1;
    }
    starts[256] = at as u16;
    (order, starts)
}

/// Matches a key from the table of families.
pub fn key(bytes: &[u8], at: usize) -> Option<Span> {
    let (order, starts) = &BY_FIRST;
    let first = bytes[at] as usize;
    let rows = order[starts[first] as usize..starts[first + 1] as usize].iter().map(|&row| &KEYS[row as usize]);
    rows.filter(|k| bytes[at..].starts_with(k.prefix.as_bytes())).find_map(|k| {
        let start = at + k.prefix.len();
        let near = &bytes[start..bytes.len().min(start + LOOKED_AT)];
        let body = &near[..run(near, 0, |b| k.body.has(b))];
        // Words joined by dashes, or following a short prefix, have neither a digit nor both cases.
        let mixed = body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase);
        let digit = body.iter().any(u8::is_ascii_digit);
        let random = match k.body {
            _ if k.exact => body.len() == k.min && mixed && digit && changes_often(body),
            // Identifiers and dashed words follow short prefixes too.
            Body::Url | Body::Dotted if k.prefix.len() <= 3 => looks_random(body) && changes_often(body),
            Body::Url | Body::Dotted | Body::UpperDashed => mixed || digit,
            _ => k.prefix.len() > 3 || k.min >= 28 || mixed || digit,
        };
        (body.len() >= k.min && random && !inside_base64(bytes, at)).then(|| Span {
            start: at,
            end: aws_pair(bytes, run(bytes, start, |b| k.body.has(b)), k.family),
            family: k.family,
            guessless: true,
        })
    })
}

/// Returns the end of an AWS key pair. In a table or a list, the secret key follows the access key id: 40 characters of
/// base64 (AWS IAM user guide).
fn aws_pair(bytes: &[u8], end: usize, family: &str) -> usize {
    if family != "aws-access-key" {
        return end;
    }
    let from = run(bytes, end, |b| matches!(b, b' ' | b'\t' | b',' | b':' | b';' | b'"' | b'\'' | b'|'));
    let secret = run(bytes, from, |b| Body::Base64.has(b));
    if (1..=6).contains(&(from - end)) && secret - from == 40 { secret } else { end }
}

/// Whether `at` is inside base64, where a slash or a plus does not end a word. The forty bytes before a path segment do
/// not have digits and both cases.
fn inside_base64(bytes: &[u8], at: usize) -> bool {
    let before = &bytes[at.saturating_sub(40)..at];
    matches!(before.last(), Some(b'/' | b'+'))
        && before.iter().all(|b| Body::Base64.has(*b))
        && before.iter().any(u8::is_ascii_digit)
        && before.iter().any(u8::is_ascii_uppercase)
        && before.iter().any(u8::is_ascii_lowercase)
}

/// Prefixes of a JSON object in base64: `{"`, `{ "`, `{⏎ ` and `{⏎"` with either line ending.
const OBJECTS: [&[u8]; 5] = [b"eyJ", b"eyA", b"ewog", b"ewoi", b"ew0K"];

/// Matches a JWT (RFC 7519) or a JWE (RFC 7516): base64url parts separated by dots, the first of them a JSON object.
/// The second part of a JWT is one too; a JWE has five parts, and its second part may be empty.
pub fn jwt(bytes: &[u8], at: usize) -> Option<Span> {
    let is_object = |from: usize| OBJECTS.iter().any(|object| bytes[from.min(bytes.len())..].starts_with(object));
    if !is_object(at) {
        return None;
    }
    let part = |bytes: &[u8], from: usize| run(bytes, from, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let first = part(&bytes[..bytes.len().min(at + LOOKED_AT)], at);
    if first - at < 12 || bytes.get(first) != Some(&b'.') {
        return None;
    }
    let second = part(bytes, first + 1);
    let mut end = second;
    let mut dots = 1;
    while dots < 4 && bytes.get(end) == Some(&b'.') {
        end = part(bytes, end + 1);
        dots += 1;
    }
    (is_object(first + 1) || dots == 4 && end - second > 40).then_some(Span { start: at, end, family: "jwt", guessless: true })
}

/// Matches a PEM block (RFC 7468) from the begin line to the end line, also where a JSON escape replaces the line
/// ending. Without an end line, it covers everything that follows.
pub fn pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY").or(find(label, b"OpenVPN Static key"))?;
    if is_only_the_line(bytes, at) {
        return None;
    }
    let close = find(&bytes[at + PEM.len()..], b"-----END ").map(|i| at + PEM.len() + i + 9);
    let end = close.map_or(bytes.len(), |i| {
        let dashes = find(&bytes[i..bytes.len().min(i + 64)], b"-----");
        // Not in the middle of a word, which may be a key.
        dashes.map_or_else(|| run(bytes, bytes.len().min(i + 32), |b| Body::Url.has(b)), |d| i + d + 5)
    });
    Some(Span { start: at, end: boundary(bytes, end), family: "private-key", guessless: true })
}

/// Whether the line that begins a key is a string of its own, and nothing like a line of a key is near: `MARKER = "-----BEGIN
/// …-----"`, but not `echo "-----BEGIN …-----" > k; echo "MII…" >> k`.
fn is_only_the_line(bytes: &[u8], at: usize) -> bool {
    let near = &bytes[..bytes.len().min(at + 300)];
    let Some(end) = find(&near[at + PEM.len()..], b"-----").map(|i| at + PEM.len() + i + 5) else { return false };
    let is_string = near.get(end).is_some_and(|b| matches!(b, b'"' | b'\'' | b'`'));
    is_string && near[end..].split(|b| !Body::Base64.has(*b)).all(|run| run.len() < 32)
}

/// Matches the end of a private key whose start was cut off (`tail key.pem`), with the lines of base64 before it.
pub fn cut_pem(bytes: &[u8], at: usize) -> Option<Span> {
    let label = &bytes[at..bytes.len().min(at + 64)];
    find(label, b"PRIVATE KEY")?;
    // A string of its own: `"-----END …-----"`
    if at.checked_sub(1).is_some_and(|i| matches!(bytes[i], b'"' | b'\'' | b'`')) {
        return None;
    }
    let far = at.saturating_sub(16 << 10);
    let line = |b: &u8| Body::Base64.has(*b) || matches!(b, b'\n' | b'\r' | b'\\');
    let start = bytes[far..at].iter().rposition(|b| !line(b)).map_or(far, |i| far + i + 1);
    let end = find(&label[9..], b"-----").map(|i| at + 9 + i + 5)?;
    Some(Span { start: boundary(bytes, start), end: boundary(bytes, end), family: "private-key", guessless: false })
}

/// Returns the end of a private key block that began before this text.
pub fn end_of_cut_block(text: &str) -> Option<usize> {
    let end = text.find("-----END ").filter(|&i| text[i..].get(..64).unwrap_or(&text[i..]).contains("PRIVATE KEY"))?;
    let begins = text[..end].contains(PEM);
    let close = end + 9 + text[end + 9..].find("-----")? + 5;
    (!begins).then_some(close)
}

/// Matches private key files that are not PEM: PuTTY's and SSH2's (RFC 4716).
pub fn key_file(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let span = |start, end| Some(Span { start, end: boundary(bytes, end), family: "private-key", guessless: true });
    if rest.starts_with(b"Private-Lines: ") {
        let count_at = at + b"Private-Lines: ".len();
        let digits = run(bytes, count_at, |b| b.is_ascii_digit()).min(count_at + 4);
        let count: usize = std::str::from_utf8(&bytes[count_at..digits]).ok()?.parse().ok()?;
        let start = run(bytes, digits, |b| matches!(b, b'\r' | b'\n' | b'\\' | b'n'));
        let mut end = start;
        for _ in 0..count {
            end = run(bytes, run(bytes, end, |b| Body::Base64.has(b)), |b| matches!(b, b'\r' | b'\n' | b'\\'));
        }
        return if end > start { span(start, end) } else { None };
    }
    let head = &rest[..rest.len().min(64)];
    if !rest.starts_with(b"---- BEGIN ") || find(head, b"PRIVATE KEY").is_none() {
        return None;
    }
    let end = find(&rest[11..], b"---- END ").map_or(bytes.len(), |i| at + 11 + i);
    span(at, end)
}

/// Prefixes of password hashes.
const HASHES: [&str; 22] = [
    "$2a$",
    "$2b$",
    "$2y$",
    "$1$",
    "$apr1$",
    "$5$",
    "$6$",
    "$y$",
    "$7$",
    "$argon2",
    "$scrypt",
    "$pbkdf2",
    "pbkdf2_sha",
    "scrypt:",
    "bcrypt_sha256$",
    "pbkdf2:sha",
    "SCRAM-SHA-256$",
    "$krb5tgs$",
    "$9$",
    "$P$",
    "{SSHA",
    "{S",
];

/// Matches password hashes: `$2b$…`, `$6$salt$…`, `$argon2id$…`, `pbkdf2_sha256$…`, `{SSHA}…` (crypt(5), PHC string
/// format).
pub fn password_hash(bytes: &[u8], at: usize) -> Option<Span> {
    let rest = &bytes[at..];
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| rest.starts_with(prefix.as_bytes()));
    if !matches!(rest[0], b'$' | b'{' | b'p' | b's' | b'b' | b'S') || !starts(&HASHES) {
        return None;
    }
    let in_hash = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'$' | b'.' | b'/' | b'+' | b'=' | b',' | b'-' | b'_' | b':');
    let near = &bytes[..bytes.len().min(at + LOOKED_AT)];
    let end = match rest.starts_with(b"{") {
        true => run(near, at + find(&rest[..rest.len().min(12)], b"}")? + 1, |b| Body::Base64.has(b)),
        false => run(near, at, in_hash),
    };
    let hash = &bytes[at..end];
    let parts = hash.split(|b| *b == b'$').skip(1);
    let longest = parts.map(<[u8]>::len).max().unwrap_or(0);
    let known = match () {
        _ if starts(&["$2a$", "$2b$", "$2y$"]) => hash.len() >= 59,
        _ if starts(&["$1$", "$apr1$", "$P$"]) => longest >= 22 && hash.len() < 80,
        _ if starts(&[
            "$5$",
            "$6$",
            "$y$",
            "$7$",
            "$argon2",
            "$scrypt",
            "$pbkdf2",
            "pbkdf2_sha",
            "scrypt:",
            "bcrypt_sha256$",
            "pbkdf2:sha",
            "SCRAM-SHA-256$",
            "$krb5tgs$",
            "$9$",
        ]) =>
        {
            longest >= 31
        }
        _ if starts(&["{SSHA", "{SHA}", "{SMD5}"]) => hash.len() >= 28,
        _ => false,
    };
    known.then_some(Span { start: at, end, family: "password-hash", guessless: false })
}

/// Matches a private member of a JSON Web Key (RFC 7518): `d`, `k`, the primes and the values derived from them.
pub fn jwk_member(bytes: &[u8], at: usize) -> Option<Span> {
    let name_end = run(bytes, at + 1, |b| b.is_ascii_lowercase());
    let name = &bytes[at + 1..name_end];
    if ![&b"d"[..], b"k", b"p", b"q", b"dp", b"dq", b"qi"].contains(&name) {
        return None;
    }
    let separator = run(bytes, name_end, |b| matches!(b, b'"' | b'\\' | b' '));
    let start = run(bytes, separator, |b| matches!(b, b':' | b'"' | b'\\' | b' '));
    let end = run(&bytes[..bytes.len().min(start + LOOKED_AT)], start, |b| Body::Url.has(b));
    let around = &bytes[at.saturating_sub(2 * LOOKED_AT)..bytes.len().min(at + 2 * LOOKED_AT)];
    let is_call = matches!(bytes.get(end), Some(b'(' | b'.' | b'['));
    let found = bytes.get(separator) == Some(&b':') && end - start >= 16 && !is_call && find(around, b"kty").is_some();
    found.then_some(Span { start, end, family: "private-key", guessless: true })
}
