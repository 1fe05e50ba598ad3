//! Replacing a key that signs heads, while processes run.
//!
//! A new key is announced first. The leader takes it up between two batches: from then on the key table states
//! which key signs heads of which size, and every signing process follows it.
//!
//! Not here: private keys, and when an announcement is taken up (the service that signs).

use async_trait::async_trait;
use bytes::Bytes;
use merkle::TreeSize;

use crate::{LogKey, StoreError};

/// New key that is to replace another one and signs nothing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAnnouncement {
    /// Kid of the new key.
    pub kid: Vec<u8>,
    /// New public key, in the encoding of [`LogKey::public`].
    pub public: Bytes,
    /// Kid of the key to be replaced.
    pub replaces: Vec<u8>,
    /// Time of the announcement in Unix seconds.
    pub at: u64,
}

/// Storage of the keys that sign heads.
#[async_trait]
pub trait LogKeys: Send + Sync + 'static {
    /// Publishes a key that signs heads. A known kid is left unchanged.
    async fn keep_key(&self, key: &LogKey) -> Result<(), StoreError>;

    /// Reads every key that ever signed heads of this log, oldest first.
    async fn keys(&self) -> Result<Vec<LogKey>, StoreError>;
}

/// Announcing keys, taking them up, and marking compromised ones.
#[async_trait]
pub trait KeyRotation: LogKeys {
    /// Announces a key durably. An announcement of another key for the same predecessor is replaced.
    ///
    /// [`StoreError::Refused`] if the predecessor is not on record or is retired, or if the new kid is on record
    /// already; [`StoreError::Frozen`] if the log takes no more heads.
    async fn announce_key(&self, announcement: &KeyAnnouncement) -> Result<(), StoreError>;

    /// Reads the announcements that were not taken up yet, oldest first.
    async fn announced_keys(&self) -> Result<Vec<KeyAnnouncement>, StoreError>;

    /// Takes up an announced key, in one transaction: lists it from the size after the committed head, retires its
    /// predecessor at that size, and removes the announcement. `None`: the key is not announced.
    ///
    /// Excludes commits while it runs and is refused unless `epoch` is the one in force, so the caller signs no
    /// head between the committed one and the new key's first.
    async fn take_up_key(&self, kid: &[u8], epoch: u64, at: u64) -> Result<Option<LogKey>, StoreError>;

    /// Marks a key as compromised: its signatures over heads of size `since` or larger prove nothing. A
    /// later mark can lower the size and not raise it. [`StoreError::Refused`] if the key is not on record.
    async fn mark_compromised(&self, kid: &[u8], since: TreeSize) -> Result<(), StoreError>;
}

/// Refusal of a take-up under an epoch that is not in force.
pub fn fenced(ours: u64, theirs: u64) -> StoreError {
    StoreError::Refused(format!("epoch {ours} is over, and {theirs} is in force: another process leads"))
}

/// Refusal of an announcement whose predecessor is not on record or is retired.
pub fn not_in_force() -> StoreError {
    StoreError::Refused("the key to be replaced is not one that signs for this log".into())
}

/// Refusal of a new key that is on record already.
pub fn already_listed() -> StoreError {
    StoreError::Refused("the new key is on record already: a key is used once".into())
}

/// Refusal of a kid that is not on record.
pub fn no_such_key() -> StoreError {
    StoreError::Refused("no such key".into())
}
