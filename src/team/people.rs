//! The people who share memories, and those whom the user trusts. Memories of trusted people may be shown before an
//! edit, and their changes reach memories that were created here.

use crate::error::UserError;
use crate::model::Machine;
use crate::store::Store;
use anyhow::Result;

/// The machines of a person, by name, or by the first digits of one machine's key.
///
/// # Errors
///
/// Nobody is known by that name or key.
pub fn find(store: &Store, word: &str) -> Result<Vec<Machine>> {
    let others: Vec<Machine> = store.machines()?.into_iter().filter(|machine| !machine.is_own).collect();
    let named: Vec<Machine> = others.iter().filter(|machine| machine.name == word).cloned().collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let is_key = word.len() >= 6 && word.chars().all(|c| c.is_ascii_hexdigit());
    let by_key: Vec<Machine> = others.into_iter().filter(|machine| is_key && machine.key.starts_with(word)).collect();
    if by_key.is_empty() {
        return Err(
            UserError::new(format!("nobody is known as {word}"), "`nmem team list` lists who has shared something").into()
        );
    }
    Ok(by_key)
}

/// Trusts the machines of a person; returns them.
///
/// # Errors
///
/// Several machines have the name: they may be several people.
pub fn trust(store: &mut Store, word: &str) -> Result<Vec<Machine>> {
    let machines = find(store, word)?;
    let waiting: Vec<&Machine> = machines.iter().filter(|machine| !machine.is_trusted).collect();
    if waiting.len() > 1 {
        let keys: Vec<&str> = waiting.iter().map(|machine| machine.short()).collect();
        let what = format!("{} machines call themselves {word}: {}", waiting.len(), keys.join(", "));
        return Err(UserError::new(what, format!("ask which are theirs, then trust each: nmem team trust {}", keys[0])).into());
    }
    machines.iter().try_for_each(|machine| store.set_trusted(machine.id, true))?;
    Ok(machines)
}

/// Withdraws trust from the machines of a person; returns them.
pub fn distrust(store: &mut Store, word: &str) -> Result<Vec<Machine>> {
    let machines = find(store, word)?;
    machines.iter().try_for_each(|machine| store.set_trusted(machine.id, false))?;
    Ok(machines)
}
