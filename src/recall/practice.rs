//! Wishes that practice overtook: the user wanted to commit by themselves, and has asked the agent for commits since.

use crate::distil::user_decisions::{kept_work, orders_work};
use crate::model::{MemoryRow, Provenance};
use crate::store::Store;
use anyhow::Result;

/// Orders after which a wish no longer holds. One may be an exception.
const ORDERS: usize = 2;

/// Removes the wishes that keep a kind of work for the user, if the user has ordered that work since.
pub(super) fn remove_overtaken(store: &Store, project: i64, wishes: &mut Vec<MemoryRow>) -> Result<()> {
    let is_users = |wish: &MemoryRow| wish.provenance == Provenance::User && !wish.by_hand && !wish.pinned;
    let kept = |wish: &MemoryRow| Some(wish).filter(|wish| is_users(wish)).and_then(|wish| kept_work(&wish.title));
    let Some(since) = wishes.iter().filter(|wish| kept(wish).is_some()).map(|wish| wish.created_at).min() else { return Ok(()) };
    let prompts = store.short_prompts_since(project, since)?;
    wishes.retain(|wish| {
        let Some(work) = kept(wish) else { return true };
        let orders = prompts.iter().filter(|(at, text)| *at > wish.created_at && orders_work(text, work));
        orders.take(ORDERS).count() < ORDERS
    });
    Ok(())
}
