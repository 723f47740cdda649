//! The table of known secrets: what each family looks like and where that is documented.
//!
//! A family is a literal that begins it and the shape of what follows. The literal is matched without regard to case
//! only where the row says so; what stands before it must not be a letter or digit.

/// The characters that a key's body may have.
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
}

impl Body {
    /// Tells whether `b` may stand in the body.
    pub fn has(self, b: u8) -> bool {
        match self {
            Body::Alnum => b.is_ascii_alphanumeric(),
            Body::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Body::LowerAlnum => b.is_ascii_lowercase() || b.is_ascii_digit(),
            Body::Hex => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
            Body::Url => b.is_ascii_alphanumeric() || b == b'_' || b == b'-',
            Body::Base64 => b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='),
            Body::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='),
        }
    }
}

/// A family that is a prefix and a body of at least `min` characters, with a digit or with letters of both cases.
#[derive(Debug)]
pub struct Key {
    pub family: &'static str,
    pub prefix: &'static str,
    pub body: Body,
    pub min: usize,
}

const fn key(family: &'static str, prefix: &'static str, body: Body, min: usize) -> Key {
    Key { family, prefix, body, min }
}

/// Keys by prefix. Longer prefixes stand before those that they begin with. A family of which nobody documents a prefix
/// (Azure, Datadog, Cloudflare's older keys) is found by the name that it is assigned to, or not at all.
///
/// Sources: the vendors' own pages on the format of their keys, and the public lists that scanners of repositories keep
/// (GitHub's supported secret scanning patterns, the rules of gitleaks), read 2026-11. Each row is a test in `scan.rs`.
pub const KEYS: &[Key] = &[
    // Clouds and hosting.
    key("aws-access-key", "AKIA", Body::Upper, 16),
    key("aws-access-key", "ASIA", Body::Upper, 16),
    key("aws-access-key", "ABIA", Body::Upper, 16),
    key("aws-bedrock-key", "ABSK", Body::Base64, 80),
    key("alibaba-key", "LTAI", Body::Alnum, 12),
    key("tencent-key", "AKID", Body::Alnum, 13),
    key("google-api-key", "AIza", Body::Url, 35),
    key("google-oauth", "GOCSPX-", Body::Url, 20),
    key("google-oauth", "ya29.", Body::Dotted, 20),
    key("digitalocean-token", "dop_v1_", Body::Hex, 64),
    key("digitalocean-token", "doo_v1_", Body::Hex, 64),
    key("digitalocean-token", "dor_v1_", Body::Hex, 64),
    key("heroku-key", "HRKU-", Body::Url, 36),
    key("flyio-token", "fm2_", Body::Base64, 40),
    key("flyio-token", "fo1_", Body::Url, 40),
    key("netlify-token", "nfp_", Body::Alnum, 36),
    key("scalingo-token", "tk-us-", Body::Url, 40),
    key("yandex-key", "AQVN", Body::Url, 35),
    key("linode-token", "lin_pat_", Body::Alnum, 32),
    // Forges, registries, builds.
    key("github-token", "ghp_", Body::Alnum, 36),
    key("github-token", "gho_", Body::Alnum, 36),
    key("github-token", "ghu_", Body::Alnum, 36),
    key("github-token", "ghs_", Body::Alnum, 36),
    key("github-token", "ghr_", Body::Alnum, 36),
    key("github-token", "github_pat_", Body::Url, 22),
    key("gitlab-token", "glpat-", Body::Dotted, 20),
    key("gitlab-token", "gldt-", Body::Url, 20),
    key("gitlab-token", "glrt-", Body::Dotted, 20),
    key("gitlab-token", "glptt-", Body::Hex, 40),
    key("gitlab-token", "glcbt-", Body::Url, 20),
    key("gitlab-token", "gloas-", Body::Hex, 40),
    key("gitlab-token", "glsoat-", Body::Url, 20),
    key("bitbucket-token", "ATBB", Body::Alnum, 32),
    key("bitbucket-token", "ATCTT3", Body::Dotted, 60),
    key("atlassian-token", "ATATT3", Body::Dotted, 60),
    key("npm-token", "npm_", Body::Alnum, 36),
    key("pypi-token", "pypi-AgE", Body::Url, 50),
    key("crates-token", "cio", Body::Alnum, 32),
    key("rubygems-key", "rubygems_", Body::Hex, 48),
    key("docker-token", "dckr_pat_", Body::Url, 20),
    key("docker-token", "dckr_oat_", Body::Url, 20),
    key("nuget-key", "oy2", Body::LowerAlnum, 43),
    key("clojars-token", "CLOJARS_", Body::Alnum, 60),
    key("artifactory-key", "AKCp", Body::Alnum, 69),
    key("buildkite-token", "bkua_", Body::Hex, 40),
    key("circleci-token", "CCIPAT_", Body::Url, 40),
    key("sourcegraph-token", "sgp_", Body::Url, 40),
    key("sonar-token", "sqp_", Body::Hex, 40),
    key("sonar-token", "squ_", Body::Hex, 40),
    // Chat and mail.
    key("slack-token", "xoxb-", Body::Url, 10),
    key("slack-token", "xoxp-", Body::Url, 10),
    key("slack-token", "xoxa-", Body::Url, 10),
    key("slack-token", "xoxs-", Body::Url, 10),
    key("slack-token", "xoxe-", Body::Dotted, 20),
    key("slack-token", "xoxe.xox", Body::Dotted, 20),
    key("slack-token", "xapp-", Body::Url, 10),
    key("sendgrid-key", "SG.", Body::Dotted, 40),
    key("mailgun-key", "key-", Body::Hex, 32),
    key("brevo-key", "xkeysib-", Body::Url, 64),
    key("resend-key", "re_", Body::Url, 24),
    key("twilio-key", "SK", Body::Hex, 32),
    // Payment and shops.
    key("stripe-key", "sk_live_", Body::Alnum, 16),
    key("stripe-key", "rk_live_", Body::Alnum, 16),
    key("stripe-key", "sk_test_", Body::Alnum, 16),
    key("stripe-key", "rk_test_", Body::Alnum, 16),
    key("stripe-key", "whsec_", Body::Base64, 16),
    key("square-token", "sq0atp-", Body::Url, 22),
    key("square-token", "sq0csp-", Body::Url, 43),
    key("square-token", "EAAA", Body::Url, 60),
    key("shopify-token", "shpat_", Body::Hex, 32),
    key("shopify-token", "shpss_", Body::Hex, 32),
    key("shopify-token", "shpca_", Body::Hex, 32),
    key("shopify-token", "shppa_", Body::Hex, 32),
    key("razorpay-key", "rzp_live_", Body::Alnum, 14),
    key("flutterwave-key", "FLWSECK-", Body::Url, 32),
    key("shippo-token", "shippo_live_", Body::Hex, 40),
    key("easypost-key", "EZAK", Body::Alnum, 54),
    key("duffel-token", "duffel_live_", Body::Url, 43),
    // Models.
    key("anthropic-key", "sk-ant-", Body::Url, 20),
    key("openrouter-key", "sk-or-", Body::Url, 20),
    key("openai-key", "sk-proj-", Body::Url, 20),
    key("openai-key", "sk-svcacct-", Body::Url, 20),
    key("openai-key", "sk-admin-", Body::Url, 20),
    key("openai-key", "sk-", Body::Url, 32),
    key("huggingface-token", "hf_", Body::Alnum, 30),
    key("replicate-token", "r8_", Body::Alnum, 37),
    key("groq-key", "gsk_", Body::Alnum, 48),
    key("perplexity-key", "pplx-", Body::Alnum, 40),
    key("xai-key", "xai-", Body::Alnum, 60),
    key("nvidia-key", "nvapi-", Body::Url, 60),
    key("langsmith-key", "lsv2_", Body::Url, 32),
    key("together-key", "tgp_v1_", Body::Url, 40),
    key("fireworks-key", "fw_", Body::Alnum, 22),
    key("pinecone-key", "pcsk_", Body::Url, 40),
    // Work and data.
    key("linear-key", "lin_api_", Body::Alnum, 32),
    key("linear-key", "lin_oauth_", Body::Alnum, 32),
    key("notion-token", "ntn_", Body::Alnum, 43),
    key("notion-token", "secret_", Body::Alnum, 43),
    key("figma-token", "figd_", Body::Url, 40),
    key("postman-key", "PMAK-", Body::Url, 59),
    key("typeform-token", "tfp_", Body::Url, 40),
    key("contentful-token", "CFPAT-", Body::Url, 43),
    key("readme-key", "rdme_", Body::LowerAlnum, 70),
    key("airtable-token", "pat", Body::Dotted, 79),
    key("databricks-token", "dapi", Body::Hex, 32),
    key("planetscale-secret", "pscale_tkn_", Body::Dotted, 32),
    key("planetscale-secret", "pscale_pw_", Body::Dotted, 32),
    key("supabase-key", "sbp_", Body::Hex, 40),
    key("supabase-key", "sb_secret_", Body::Url, 20),
    key("neon-key", "napi_", Body::LowerAlnum, 60),
    key("prefect-key", "pnu_", Body::Alnum, 36),
    // Secrets, monitoring, networks.
    key("vault-token", "hvs.", Body::Url, 24),
    key("vault-token", "hvb.", Body::Url, 60),
    key("pulumi-token", "pul-", Body::Hex, 40),
    key("doppler-token", "dp.pt.", Body::Alnum, 40),
    key("doppler-token", "dp.st.", Body::Dotted, 40),
    key("onepassword-token", "ops_eyJ", Body::Url, 60),
    key("age-key", "AGE-SECRET-KEY-1", Body::Upper, 58),
    key("newrelic-key", "NRAK-", Body::Upper, 27),
    key("newrelic-key", "NRJS-", Body::Hex, 19),
    key("grafana-token", "glc_", Body::Base64, 32),
    key("grafana-token", "glsa_", Body::Url, 32),
    key("sentry-token", "sntrys_", Body::Base64, 60),
    key("sentry-token", "sntryu_", Body::Hex, 64),
    key("dynatrace-token", "dt0c01.", Body::Dotted, 80),
    key("tailscale-key", "tskey-", Body::Url, 20),
    key("honeycomb-key", "hcaik_", Body::LowerAlnum, 58),
];

/// Names whose assigned value is taken for a secret whenever it isn't plainly a word, a variable or a placeholder.
pub const PASSWORD_NAMES: &[&str] = &["password", "passwd", "passphrase", "pwd", "sshpass", "identified by"];

/// The same, and `auth` and `sig` where it looks random; but only as words of their own, and where it is plainly assigned.
pub const SHORT_NAMES: &[&str] = &["pass", "pw", "passwort", "kennwort", "auth", "sig"];

/// Names whose assigned value is taken for a secret when it looks random.
pub const SECRET_NAMES: &[&str] = &[
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "private_key",
    "privatekey",
    "credential",
    "encryption_key",
    "signing_key",
    "app_key",
    "accountkey",
    "account-key",
    "account_key",
    "redis_auth",
    "x-amz-signature",
];

/// Headers whose whole value goes.
pub const HEADERS: &[&str] = &["authorization", "cookie", "x-api-key", "private-token"];
