//! The key of this machine, and the people that it knows.

use crate::config::environment;
use crate::error::UserError;
use crate::files;
use crate::model::{KEY_DIGITS, Machine, Millis, SeriesContents, SharedChange};
use crate::store::Store;
use crate::store::team_incoming::OwnMachine;
use anyhow::{Result, anyhow};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::Path;

/// Signs changes of this machine.
pub struct Signer {
    pair: Ed25519KeyPair,
    seed: String,
}

impl Signer {
    /// Creates a signer from a seed.
    pub fn new(seed: &str) -> Result<Signer> {
        let bytes = unhex(seed).ok_or_else(|| anyhow!("the machine's key is damaged"))?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&bytes).map_err(|_| anyhow!("the machine's key is damaged"))?;
        Ok(Signer { pair, seed: seed.to_string() })
    }

    /// Its public key in hex.
    pub fn key(&self) -> String {
        hex(self.pair.public_key().as_ref())
    }

    /// Signs a change.
    pub fn sign(&self, change: &mut SharedChange) {
        change.signature = hex(self.pair.sign(&signed_bytes(change)).as_ref());
    }

    /// Signs the contents of this machine's series.
    pub fn sign_contents(&self, contents: &mut SeriesContents) {
        contents.signature = hex(self.pair.sign(&contents_bytes(&self.key(), contents)).as_ref());
    }

    /// Returns the salt that makes the digest of a change unguessable: only this machine knows it, and it is the same
    /// each time.
    pub fn salt(&self, uuid: &str, seq: i64) -> String {
        hex(&Sha256::digest(format!("{} {uuid} {seq}", self.seed))[..12])
    }
}

/// The digest of a body.
pub fn digest(body: &str) -> String {
    hex(&Sha256::digest(body))
}

/// Whether a change was made by the machine that it names, and its body is the one that was signed.
pub fn is_authentic(change: &SharedChange) -> bool {
    // The digest last: a stranger may send great texts.
    let is_whole = || change.body.as_ref().is_none_or(|body| digest(body) == change.digest);
    is_signed(&change.machine, &change.signature, || signed_bytes(change)) && is_whole()
}

/// Whether contents were signed by a machine.
pub fn are_authentic(contents: &SeriesContents, machine: &str) -> bool {
    is_signed(machine, &contents.signature, || contents_bytes(machine, contents))
}

fn is_signed(machine: &str, signature: &str, bytes: impl FnOnce() -> Vec<u8>) -> bool {
    let (Some(key), Some(signature)) = (unhex(machine), unhex(signature)) else { return false };
    key_length_is_right(machine) && UnparsedPublicKey::new(&ED25519, key).verify(&bytes(), &signature).is_ok()
}

fn key_length_is_right(key: &str) -> bool {
    key.len() == 64 && key.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

/// Returns the bytes to sign: an unambiguous form of everything but the body, which its digest represents.
fn signed_bytes(change: &SharedChange) -> Vec<u8> {
    let SharedChange { machine, seq, uuid, counter, gone, withdrawn, projects, name, digest, .. } = change;
    serde_json::to_vec(&("nmem change 1", machine, seq, uuid, counter, (gone, withdrawn), projects, name, digest))
        .unwrap_or_default()
}

fn contents_bytes(machine: &str, contents: &SeriesContents) -> Vec<u8> {
    serde_json::to_vec(&("nmem contents 1", machine, contents.last, &contents.ranges)).unwrap_or_default()
}

/// Returns the identity under which this machine shares; creates one if it has none for this host and database.
pub fn own_machine(store: &mut Store, name: &str, now: Millis) -> Result<(OwnMachine, Signer)> {
    let place = place(&store.files().db);
    match store.own_machine(&place)? {
        Some(mut own) => {
            store.set_own_name(name)?;
            own.machine.name = name.to_string();
            let signer = Signer::new(&own.seed)?;
            Ok((own, signer))
        }
        None => new_machine(store, name, now),
    }
}

/// Gives this machine a new identity.
pub fn new_machine(store: &mut Store, name: &str, now: Millis) -> Result<(OwnMachine, Signer)> {
    let seed = files::random_token();
    let signer = Signer::new(&seed)?;
    let place = place(&store.files().db);
    Ok((store.become_machine(&signer.key(), &seed, &place, name, now)?, signer))
}

/// Host and file of a database. A copy elsewhere is another machine: two must not continue one series.
fn place(db: &Path) -> String {
    let host = files::small_text(Path::new("/etc/machine-id")).unwrap_or_default();
    hex(&Sha256::digest(format!("{} {}", host.trim(), files::resolved(db).display()))[..16])
}

/// The name under which this person shares.
///
/// # Errors
///
/// No name is set, and the system names nobody.
pub fn person(chosen: Option<&str>) -> Result<String> {
    let name = chosen.map(String::from).or_else(environment::login_name);
    name.ok_or_else(|| UserError::new("nobody knows your name", "set `name` under [team] in the config file").into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
    (0..text.len() / 2).map(digit).collect::<Option<Vec<u8>>>().filter(|bytes| 2 * bytes.len() == text.len())
}

/// Machines of others whose key begins with `word`; `None` if the word is no such beginning.
fn by_key(others: &[Machine], word: &str) -> Option<Vec<Machine>> {
    let is_key = word.len() >= KEY_DIGITS && word.chars().all(|c| c.is_ascii_hexdigit());
    let word = word.to_ascii_lowercase();
    is_key.then(|| others.iter().filter(|machine| machine.key.starts_with(&word)).cloned().collect())
}

fn others(store: &Store) -> Result<Vec<Machine>> {
    Ok(store.machines()?.into_iter().filter(|machine| !machine.is_own).collect())
}

/// Trusts the machine with a key, given by its first digits; returns it.
///
/// # Errors
///
/// A name, which anybody can choose; too few digits; or a key that no machine has.
pub fn trust(store: &mut Store, key: &str) -> Result<Machine> {
    let others = others(store)?;
    let Some(found) = by_key(&others, key) else {
        let named: Vec<&str> = others.iter().filter(|machine| machine.name == key).map(Machine::short).collect();
        let what = match named.is_empty() {
            true => format!("{key} is no key: trust takes the {KEY_DIGITS} digits that `nmem team list` prints"),
            false => format!("{key} is a name, and anybody can take a name: trust takes a key"),
        };
        let example = named.first().map_or("nmem team list".to_string(), |key| format!("nmem team trust {key}"));
        return Err(UserError::usage(what, format!("compare the digits with those on their screen, then: {example}")).into());
    };
    let [machine] = &found[..] else {
        let what = format!("{} machines have a key that begins with {key}", found.len());
        return Err(UserError::new(what, "`nmem team list` lists who has shared something").into());
    };
    store.set_trusted(machine.id, true)?;
    Ok(machine.clone())
}

/// Withdraws trust from the machines with a name, or from one with a key; returns them.
///
/// # Errors
///
/// Nobody is known by that name or key.
pub fn distrust(store: &mut Store, word: &str) -> Result<Vec<Machine>> {
    let others = others(store)?;
    let named = || others.iter().filter(|machine| machine.name == word).cloned().collect();
    let found: Vec<Machine> = by_key(&others, word).unwrap_or_else(named);
    if found.is_empty() {
        let hint = "`nmem team list` lists who has shared something";
        return Err(UserError::new(format!("nobody is known as {word}"), hint).into());
    }
    found.iter().try_for_each(|machine| store.set_trusted(machine.id, false))?;
    Ok(found)
}
