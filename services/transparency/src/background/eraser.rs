//! The task that deletes erased bytes from the store.
//!
//! An erasure takes effect once it is an entry. The leading process walks the erasures by number and deletes the bytes; of
//! a frozen log, which has no leader, each process does. Deleting is idempotent: work that a crash left undone is done by
//! the next start, which begins with the newest. An entry on hold keeps its bytes, and its erasure stays open until the
//! hold ends. An erasure that cannot be carried out does not block the others, and one that the database refuses is tried
//! again in each round.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use merkle::{LeafIndex, TreeSize};
use registration::erasure::Erasure;
use sequencer::{Halt, Role};
use store::{ErasureStore, StoreError};

use super::permanent::permanent;
use crate::limits::{ERASURE_POLL, ERASURE_RETRY};
use crate::log::erasures::{at, count, erased_leaves, leaves};
use crate::log::state::Log;

/// Erasures looked up at one time.
const AT_ONCE: u64 = 16;

/// Executes the log's erasures for as long as this process runs.
pub async fn keep_erasing(log: Arc<Log>) {
    let mut eraser = Eraser::default();
    loop {
        let wait = match eraser.round(&log).await {
            Ok(()) => ERASURE_POLL,
            Err(error) => {
                tracing::error!(%error, "not all bytes of an erasure could be erased yet");
                ERASURE_RETRY
            }
        };
        // Look again without a wake-up too: an erasure may arrive through the inbox, and another process may end a
        // hold.
        let _ = tokio::time::timeout(wait, log.erasing.0.notified()).await;
    }
}

/// The progress of the walk.
#[derive(Default)]
struct Eraser {
    /// Numbers of the erasures looked at. The range grows upwards with new ones, and down to 0.
    seen: Option<Range<u64>>,
    /// Size of the log at the last look for newer erasures.
    looked_at: TreeSize,
    /// Entries kept by a hold, by the number of their erasure.
    held: BTreeMap<u64, Vec<LeafIndex>>,
    /// Numbers of erasures that the database refused, for a reason that may end.
    refused: BTreeSet<u64>,
    /// Numbers of erasures whose data is damaged; only a new start tries them again.
    failed: BTreeSet<u64>,
}

impl Eraser {
    async fn round(&mut self, log: &Log) -> Result<(), StoreError> {
        let store = &*log.store;
        loop {
            let role = log.sequencer.status().borrow().role.clone();
            if !matches!(role, Role::Leading { .. } | Role::Halted(Halt::Frozen)) {
                log.carried_out.set(None);
                return Ok(());
            }
            self.again(store).await?;
            let size = log.committed_size();
            if size != self.looked_at || self.seen.is_none() {
                self.newer(store).await?;
                self.looked_at = size;
            }
            if !self.older(store).await? {
                log.carried_out.set(self.carried_out());
                return self.retry_refused(store).await;
            }
        }
    }

    /// The number of erasures, if all of them are carried out.
    fn carried_out(&self) -> Option<u64> {
        let seen = self.seen.as_ref().filter(|seen| seen.start == 0);
        let is_open = !(self.held.is_empty() && self.refused.is_empty() && self.failed.is_empty());
        seen.filter(|_| !is_open).map(|seen| seen.end)
    }

    /// Tries again the erasures that the database refused. An error if it still refuses one.
    async fn retry_refused(&mut self, store: &dyn ErasureStore) -> Result<(), StoreError> {
        for number in self.refused.clone() {
            self.look(store, number..number + 1).await?;
        }
        match self.refused.len() {
            0 => Ok(()),
            number => Err(StoreError::Refused(format!("the database refuses {number} erasures"))),
        }
    }

    /// Tries again the erasures with entries on hold. They are removed once done, and not before.
    async fn again(&mut self, store: &dyn ErasureStore) -> Result<(), StoreError> {
        for (number, leaves) in self.held.clone() {
            if store.held(&leaves).await?.len() < leaves.len() {
                let outcome = self.erase(store, number, &leaves).await;
                self.pass_over(number, outcome)?;
            }
        }
        Ok(())
    }

    /// Notes an erasure that failed by itself, so that it does not block the others. Other errors are returned.
    fn pass_over(&mut self, number: u64, outcome: Result<(), StoreError>) -> Result<(), StoreError> {
        match outcome {
            Err(error @ (StoreError::Damaged(_) | StoreError::Refused(_))) => {
                tracing::error!(erasure = number, %error, "the bytes that it erases may still be stored");
                self.held.remove(&number);
                match error {
                    StoreError::Refused(_) => self.refused.insert(number),
                    _ => self.failed.insert(number),
                };
                Ok(())
            }
            Ok(()) => {
                self.refused.remove(&number);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Executes the erasures registered since the last call; the first call only notes their number.
    async fn newer(&mut self, store: &dyn ErasureStore) -> Result<(), StoreError> {
        let Some(Range { start, mut end }) = self.seen.clone() else {
            let count = count(store).await?;
            self.seen = Some(count..count);
            return Ok(());
        };
        loop {
            let found = self.look(store, end..end + AT_ONCE).await?;
            end += found;
            self.seen = Some(start..end);
            if found < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// Executes up to [`AT_ONCE`] erasures from before the start, the newest first. Returns `false` once there are
    /// none.
    async fn older(&mut self, store: &dyn ErasureStore) -> Result<bool, StoreError> {
        let Some(Range { start, end }) = self.seen.clone().filter(|seen| seen.start > 0) else {
            return Ok(false);
        };
        let from = start.saturating_sub(AT_ONCE);
        self.look(store, from..start).await?;
        self.seen = Some(from..end);
        Ok(true)
    }

    /// Executes the erasures of these numbers that are in the log, and returns how many there are.
    async fn look(&mut self, store: &dyn ErasureStore, numbers: Range<u64>) -> Result<u64, StoreError> {
        let found = leaves(store, numbers.clone()).await?;
        for (number, index) in numbers.zip(&found) {
            let outcome = match at(store, *index).await {
                Ok(registered) => self.execute(store, number, &registered.erasure).await,
                Err(error) => Err(error),
            };
            self.pass_over(number, outcome)?;
        }
        Ok(found.len() as u64)
    }

    async fn execute(
        &mut self,
        store: &dyn ErasureStore,
        number: u64,
        erasure: &Erasure,
    ) -> Result<(), StoreError> {
        let mut there = store.statuses(&erased_leaves(store, erasure).await?).await?;
        there.retain(|status| status.has_statement);
        let stay = permanent(store, &there).await?;
        for entry in &stay {
            tracing::error!(erasure = number, %entry, "a policy or an erasure is never erased");
        }
        let go: Vec<LeafIndex> =
            there.into_iter().map(|status| status.entry).filter(|entry| !stay.contains(entry)).collect();
        match go.is_empty() {
            true => Ok(()),
            false => self.erase(store, number, &go).await,
        }
    }

    async fn erase(
        &mut self,
        store: &dyn ErasureStore,
        number: u64,
        leaves: &[LeafIndex],
    ) -> Result<(), StoreError> {
        let done = store.erase(leaves).await?;
        tracing::info!(erasure = number, erased = done.erased.len(), held = done.held.len(), "erased");
        match done.held.is_empty() {
            true => self.held.remove(&number),
            false => self.held.insert(number, done.held),
        };
        Ok(())
    }
}

#[cfg(test)]
#[path = "eraser_tests.rs"]
mod tests;
