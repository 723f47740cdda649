//! Vectors that mean something, for a scripted embedding server: an axis for each group of words that say the same, written by
//! hand, and eight axes more on which every other word has a weak place of its own by its letters.

const GROUPS: [&[&str]; 24] = [
    &["login", "sign", "signing", "authentication", "authenticate", "credentials"],
    &["password", "passphrase", "secret"],
    &["slow", "sluggish", "latency", "performance", "takes", "long"],
    &["database", "sqlite", "storage", "persistence", "tables"],
    &["invoice", "bill", "billing", "receipt"],
    &["delete", "remove", "erase", "purge", "deletion"],
    &["customer", "client", "buyer", "shopper"],
    &["timezone", "clock", "utc", "hours", "dates"],
    &["mail", "email", "newsletter", "message"],
    &["picture", "image", "photo", "thumbnail"],
    &["money", "price", "cents", "currency", "amount", "rounding"],
    &["crash", "panic", "abort", "dies"],
    &["deploy", "release", "rollout", "ship", "shipping"],
    &["test", "tests", "suite", "flaky", "ci"],
    &["cache", "memoize", "stored", "stale"],
    &["retry", "again", "backoff", "attempt"],
    &["translate", "translation", "language", "german", "localised"],
    &["button", "widget", "control", "form"],
    &["network", "connection", "socket", "offline", "proxy"],
    &["memory", "leak", "ram", "allocation"],
    &["search", "find", "lookup", "query"],
    &["upload", "attachment", "files", "import"],
    &["permission", "role", "access", "rights", "allowed"],
    &["log", "trace", "logging", "diagnostics"],
];

/// The vector of a text.
pub fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; GROUPS.len() + 8];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1) {
        match GROUPS.iter().position(|group| group.contains(&word)) {
            Some(axis) => vector[axis] += 1.0,
            None => {
                let hash = word.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
                vector[GROUPS.len() + (hash % 8) as usize] += 0.15;
            }
        }
    }
    vector
}
