//! Inbox items that could not be placed yet, each with its own back-off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use merkle::EntryDigest;
use store::PendingKey;
use tokio::time::Instant;

/// State of an inbox item between two attempts to place it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Number of failed attempts.
    pub attempts: u32,
    /// Time until the next attempt; zero if that is overdue.
    pub next: Duration,
    /// Error text of the last attempt.
    pub why: String,
}

#[derive(Debug)]
struct DelayedItem {
    key: PendingKey,
    attempts: u32,
    due: Instant,
    why: String,
}

/// Delayed items of the leading process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delayed {
    items: Arc<Mutex<HashMap<EntryDigest, DelayedItem>>>,
}

impl Delayed {
    pub(super) fn put(&self, key: PendingKey, attempts: u32, pause: Duration, why: String) {
        let (digest, due) = (key.digest, Instant::now() + pause);
        self.items().insert(digest, DelayedItem { key, attempts, due, why });
    }

    /// Takes an item out and returns its number of failed attempts; zero if it is not delayed.
    pub(super) fn take(&self, digest: &EntryDigest) -> u32 {
        self.items().remove(digest).map_or(0, |item| item.attempts)
    }

    pub(super) fn contains(&self, digest: &EntryDigest) -> bool {
        self.items().contains_key(digest)
    }

    /// Removes an item that is due.
    pub(super) fn drop_if_due(&self, digest: &EntryDigest) {
        let mut items = self.items();
        if items.get(digest).is_some_and(|item| item.due <= Instant::now()) {
            items.remove(digest);
        }
    }

    /// Returns up to `limit` items that are due, those first that are due for longest.
    pub(super) fn due(&self, limit: usize) -> Vec<PendingKey> {
        let now = Instant::now();
        let mut due: Vec<(Instant, PendingKey)> = self
            .items()
            .values()
            .filter(|item| item.due <= now)
            .map(|item| (item.due, item.key.clone()))
            .collect();
        due.sort_unstable_by_key(|(due, key)| (*due, key.number));
        due.truncate(limit);
        due.into_iter().map(|(_, key)| key).collect()
    }

    pub(super) fn clear(&self) {
        self.items().clear();
    }

    /// Returns the state of an item; `None` if it is not delayed.
    pub(crate) fn of(&self, digest: &EntryDigest) -> Option<Delay> {
        let items = self.items();
        let item = items.get(digest)?;
        let next = item.due.saturating_duration_since(Instant::now());
        Some(Delay { attempts: item.attempts, next, why: item.why.clone() })
    }

    fn items(&self) -> MutexGuard<'_, HashMap<EntryDigest, DelayedItem>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
