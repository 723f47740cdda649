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
    /// `0-9 a-f`
    Hex,
    /// `A-Z a-z 0-9 _ -`
    Url,
    /// `A-Z a-z 0-9 _ - . =`: several parts with dots
    Dotted,
}

impl Body {
    /// Tells whether `b` may stand in the body.
    pub fn has(self, b: u8) -> bool {
        match self {
            Body::Alnum => b.is_ascii_alphanumeric(),
            Body::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Body::Hex => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
            Body::Url => b.is_ascii_alphanumeric() || b == b'_' || b == b'-',
            Body::Dotted => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'='),
        }
    }
}

/// A family that is a prefix and a body of at least `min` characters, one of them a digit.
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

/// Keys by prefix. Longer prefixes stand before those that they begin with.
/// Sources: the vendors' documentation of their token formats, and GitHub's list of supported secret scanning patterns.
pub const KEYS: &[Key] = &[
    key("aws-access-key", "AKIA", Body::Upper, 16),
    key("aws-access-key", "ASIA", Body::Upper, 16),
    key("github-token", "ghp_", Body::Alnum, 36),
    key("github-token", "gho_", Body::Alnum, 36),
    key("github-token", "ghu_", Body::Alnum, 36),
    key("github-token", "ghs_", Body::Alnum, 36),
    key("github-token", "ghr_", Body::Alnum, 36),
    key("github-token", "github_pat_", Body::Url, 22),
    key("gitlab-token", "glpat-", Body::Url, 20),
    key("gitlab-token", "gldt-", Body::Url, 20),
    key("slack-token", "xoxb-", Body::Url, 10),
    key("slack-token", "xoxp-", Body::Url, 10),
    key("slack-token", "xoxa-", Body::Url, 10),
    key("slack-token", "xoxs-", Body::Url, 10),
    key("slack-token", "xapp-", Body::Url, 10),
    key("stripe-key", "sk_live_", Body::Alnum, 16),
    key("stripe-key", "rk_live_", Body::Alnum, 16),
    key("stripe-key", "sk_test_", Body::Alnum, 16),
    key("stripe-key", "whsec_", Body::Alnum, 16),
    key("anthropic-key", "sk-ant-", Body::Url, 20),
    key("openrouter-key", "sk-or-", Body::Url, 20),
    key("openai-key", "sk-proj-", Body::Url, 20),
    key("openai-key", "sk-", Body::Url, 32),
    key("google-api-key", "AIza", Body::Url, 35),
    key("google-oauth", "GOCSPX-", Body::Url, 20),
    key("google-oauth", "ya29.", Body::Dotted, 20),
    key("npm-token", "npm_", Body::Alnum, 36),
    key("pypi-token", "pypi-", Body::Url, 50),
    key("crates-token", "cio", Body::Alnum, 32),
    key("huggingface-token", "hf_", Body::Alnum, 30),
    key("sendgrid-key", "SG.", Body::Dotted, 40),
    key("digitalocean-token", "dop_v1_", Body::Hex, 64),
    key("shopify-token", "shpat_", Body::Hex, 32),
    key("databricks-token", "dapi", Body::Hex, 32),
    key("linear-key", "lin_api_", Body::Alnum, 32),
    key("vault-token", "hvs.", Body::Url, 24),
    key("docker-token", "dckr_pat_", Body::Url, 20),
];

/// Names whose assigned value is taken for a secret whenever it isn't plainly a word, a variable or a placeholder.
pub const PASSWORD_NAMES: &[&str] = &["password", "passwd", "passphrase", "pwd"];

/// Names whose assigned value is taken for a secret when it looks random.
pub const SECRET_NAMES: &[&str] =
    &["secret", "token", "api_key", "apikey", "api-key", "access_key", "accesskey", "private_key", "credential"];

/// Headers whose whole value goes.
pub const HEADERS: &[&str] = &["authorization", "cookie", "x-api-key", "private-token"];
