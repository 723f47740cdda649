//! Names of files that are recorded by path only: key stores, credentials, and the user's `ignore` patterns.

use crate::text::slashed;
use std::path::Path;

/// Name suffixes of key stores and of files that hold nothing but credentials.
const ENDINGS: [&str; 12] =
    [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".tfstate", ".tfvars", ".mobileprovision", ".env"];
/// Whole names of such files (ssh-keygen(1), netrc(5), libpq's pgpass, npm, twine, git-credential-store(1),
/// htpasswd(1), vault, Google, Codex, Composer, rclone, s3cmd, boto).
const NAMES: [&str; 25] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".vault-token",
    "application_default_credentials.json",
    "credentials.json",
    ".credentials.json",
    "auth.json",
    "rclone.conf",
    ".s3cfg",
    ".boto",
    "kubeconfig",
    "kubeconfig.yaml",
    "terraform.tfstate.backup",
];
/// Names that hold credentials only in one folder: AWS, Docker, Kubernetes, GitHub's and GitLab's clients, Cargo,
/// Maven.
const PLACES: [&str; 11] = [
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    "gh/hosts.yml",
    "glab-cli/config.yml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".azure/accessTokens.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
];
/// Folders in which everything is a credential, except for a few names.
const FOLDERS: [&str; 3] = [".ssh", ".gnupg", ".aws"];
const PUBLIC: [&str; 6] = ["config", "known_hosts", "authorized_keys", "allowed_signers", "cli", "sso"];
/// Rules that decide which files are recorded by path only.
#[derive(Debug, Default)]
pub struct Hidden {
    patterns: Vec<String>,
}

impl Hidden {
    /// Creates the rules from the user's patterns; one without a slash matches names in any folder.
    pub fn new(patterns: &[String]) -> Hidden {
        let anywhere = |p: &String| if p.contains('/') { p.clone() } else { format!("**/{p}") };
        Hidden { patterns: patterns.iter().map(anywhere).collect() }
    }

    /// Whether only the path of a file is recorded; a relative path starts at `folder`.
    pub(super) fn hides(&self, path: &str, folder: Option<&str>) -> bool {
        let path = &*slashed(path);
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        // JavaScript's names for the environment look like files.
        if name.is_empty() || matches!(name, "process.env" | "import.meta.env") {
            return false;
        }
        let ending = name.rfind('.').map(|dot| &name[dot..]).filter(|ending| ending.len() < name.len());
        let is = |known: &&str, word: &str| known.len() == word.len() && known.eq_ignore_ascii_case(word);
        if NAMES.iter().any(|n| is(n, name)) || ending.is_some_and(|word| ENDINGS.iter().any(|e| is(e, word))) {
            return true;
        }
        if path.contains(FOLDERS[0]) || path.contains(FOLDERS[1]) || path.contains(FOLDERS[2]) {
            let inside = FOLDERS.iter().any(|f| path.rsplit(['/', '\\']).skip(1).any(|part| part == *f));
            if inside && !PUBLIC.contains(&name) && !name.ends_with(".pub") {
                return true;
            }
        }
        // A glob may match such a name.
        if name.contains(['*', '?', '['])
            && name.len() < 64
            && [".env", "id_rsa"].iter().any(|n| fast_glob::glob_match(name, n))
            && name.contains(|c: char| c.is_alphanumeric())
        {
            return true;
        }
        if PLACES.iter().any(|p| path.strip_suffix(p).is_some_and(|before| before.is_empty() || before.ends_with(['/', '\\']))) {
            return true;
        }
        let matches = |path: &str| self.patterns.iter().any(|p| fast_glob::glob_match(p, path));
        if matches(path) {
            return true;
        }
        let inside = path.strip_prefix("./").unwrap_or(path);
        folder
            .filter(|_| !Path::new(path).is_absolute())
            .is_some_and(|f| matches(&format!("{}/{inside}", slashed(f).trim_end_matches('/'))))
    }
}
