//! Effects of the operator's statements on the database, outside the log's entries.
//!
//! An effect is written in the transaction that commits the entry (`store::Effect`). This module compares the effect with
//! the log (for `fsck`), and restores it in a database that got the log's entries in another way, for example from an
//! archive.

use merkle::{EntryDigest, LeafIndex};
use registration::operator::{Action, Held, hold_guard, is_operator_rule};
use registration::{Guard, OPERATOR_ACTION_CONTENT_TYPE};
use scitt::SignedStatement;
use store::{
    Entry, ErasureStore, FsckStore, GuardKey, Hold, LogReader, SequencerStore, State as LogState, StoreError,
};

use crate::limits::HOLDS_PAGE;
use crate::log::content_type::is_type;
use crate::log::freezing::frozen_by;

/// The action in the statement's payload; `None` for a statement of another type. No signature is checked.
pub fn action_of(statement: &SignedStatement) -> Option<Action> {
    let named = statement.header().content_type()?.as_text()?;
    is_type(named, OPERATOR_ACTION_CONTENT_TYPE).then(|| Action::from_payload(statement.payload()?).ok())?
}

/// The number of the next hold or release of an entry for a case: odd while the case holds it.
pub async fn next_number(store: &dyn LogReader, entry: &EntryDigest, case: &str) -> Result<u64, StoreError> {
    let mut from = 0;
    loop {
        let guards: Vec<Guard> =
            (from..from + NUMBERS).map(|number| hold_guard(entry, case, number)).collect();
        let taken = holders(store, &guards).await?.into_iter().take_while(Option::is_some).count() as u64;
        from += taken;
        if taken < NUMBERS {
            return Ok(from);
        }
    }
}

async fn holders(store: &dyn LogReader, guards: &[Guard]) -> Result<Vec<Option<LeafIndex>>, StoreError> {
    let keys: Vec<GuardKey> = guards.iter().map(|guard| GuardKey(guard.as_bytes().to_vec())).collect();
    store.guards(&keys).await
}

/// Freezes a database whose log ends with a freeze statement, if it is not frozen: an archive restores the entries
/// without the flag.
///
/// # Errors
/// If the store cannot be read or written.
pub async fn keep_frozen(store: &dyn SequencerStore) -> Result<(), StoreError> {
    if store.state().await? != LogState::Open {
        return Ok(());
    }
    let Some(leaf) = frozen_by(store).await? else { return Ok(()) };
    let head = store.head().await?;
    store.freeze(HOLDER, head.at).await?;
    tracing::warn!(%leaf, "the log is frozen, as the operator's statement says");
    Ok(())
}

/// Brings the holds of a database in line with the log's statements: the archive of the database was written while the
/// log grew.
///
/// # Errors
/// If the store cannot be read or written.
pub async fn restore_holds(store: &dyn ErasureStore) -> Result<(), StoreError> {
    let (at, mut after) = (store.head().await?.at, None);
    loop {
        let page = store.holds(after, HOLDS_PAGE).await?;
        let Some(last) = page.last().map(|hold| hold.entry) else { return Ok(()) };
        for hold in &page {
            restore_hold(store, hold, &page, at).await?;
        }
        after = Some(last);
    }
}

async fn restore_hold(
    store: &dyn ErasureStore,
    hold: &Hold,
    all: &[Hold],
    at: u64,
) -> Result<(), StoreError> {
    let Some(entry) = store.entry(hold.entry).await? else { return Ok(()) };
    let number = next_number(store, &entry.digest, &hold.case).await?;
    let is_held =
        all.iter().any(|it| it.entry == hold.entry && it.case == hold.case && it.released.is_none());
    match number % 2 == 1 {
        true if !is_held && entry.statement.is_some() => store.hold(hold.entry, &hold.case, at).await,
        false if is_held => store.release(hold.entry, &hold.case, at).await.map(drop),
        _ => Ok(()),
    }
}

/// Describes the effect of an operator's entry that the database lacks; `None` if it lacks none.
///
/// # Errors
/// If the store cannot be read.
pub async fn effect_missing(store: &dyn FsckStore, entry: &Entry) -> Result<Option<String>, StoreError> {
    if !is_operator_rule(&entry.rule) {
        return Ok(None);
    }
    let statement = entry.statement.clone().and_then(|bytes| SignedStatement::parse(bytes).ok());
    match statement.as_ref().and_then(action_of) {
        Some(Action::Freeze { .. }) => freeze_missing(store, entry.index).await,
        Some(Action::Hold(held) | Action::Release(held)) => hold_missing(store, &held).await,
        None => Ok(None),
    }
}

async fn freeze_missing(store: &dyn FsckStore, leaf: LeafIndex) -> Result<Option<String>, StoreError> {
    let after = store.head().await?.size().get() - (leaf.get() + 1);
    Ok(match store.state().await? {
        _ if after > 0 => Some(format!("entries after the one that ended the log: {after}")),
        LogState::Open => Some("the operator ended the log, and it is not frozen".to_owned()),
        LogState::Frozen { .. } | LogState::Filling { .. } => None,
    })
}

/// Checks the newest hold or release of an entry and case; older ones are superseded.
async fn hold_missing(store: &dyn ErasureStore, held: &Held) -> Result<Option<String>, StoreError> {
    let Held { entry: digest, case, number } = held;
    let Some(found) = store.find(&[*digest]).await?.pop().flatten() else { return Ok(None) };
    let before = found.index.get().checked_sub(1).map(LeafIndex::new);
    // Read the holds before the check for the newest statement: a hold of a later statement must not count for this
    // one.
    let holds = store.holds(before, 1).await?;
    let mut of_case = holds.iter().filter(|hold| hold.entry == found.index && hold.case == *case);
    let is_held = of_case.any(|hold| hold.released.is_none());
    if next_number(store, digest, case).await? != number + 1 {
        return Ok(None);
    }
    let has_bytes = store.statuses(&[found.index]).await?.iter().any(|status| status.has_statement);
    Ok(match (number % 2 == 0, is_held) {
        (true, false) if has_bytes => Some(format!("it holds entry {}, which is not held", found.index)),
        (false, true) => Some(format!("it releases entry {}, which is still held", found.index)),
        _ => None,
    })
}

/// Numbers of a hold that are looked up at one time.
const NUMBERS: u64 = 16;

/// The recorded author of the freeze of a database that has the statement but not the flag.
const HOLDER: &str = "the operator's freeze";

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
