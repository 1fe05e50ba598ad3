//! Retention: erases the bytes of entries whose content type's retention time has passed.
//!
//! The policy in force sets the time per content type (`retention`). The leading process periodically searches the
//! lookup index for entries past their time, and registers an erasure of them like any other: numbered, and signed with
//! the operator's key, which must be configured (`operator_key`). Entries on hold are left out.
//!
//! Not here: deleting the bytes (`eraser`), and the index (an entry that is not indexed yet is found by a later
//! sweep).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use merkle::{EntryDigest, LeafIndex};
use registration::erasure::{self, NewErasure, RETENTION};
use registration::limits::MAX_ERASED;
use registration::operator::{SignError, is_operator_statement};
use registration::{LookupKind, Policy};
use scitt::SigningKey;
use scitt::header::ContentType;
use sequencer::Role;
use store::{ErasureStore, LogReader, Order, StoreError, Term};

use crate::index::Index;
use crate::keys::key_files::{KeyFileError, signing_key};
use crate::log::erasures::count;
use crate::log::registration_outcome::RegisterError;
use crate::log::state::Log;
use crate::time::now;

/// Content types read at one time.
const CONTENT_TYPES: usize = 1000;

/// Reason why a sweep failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No operator's key is configured.
    #[error("bytes are past their retention, and no operator_key is configured to erase them with")]
    NoOperatorKey,
    /// The operator's key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Signing the erasure failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The log did not register the erasure.
    #[error("the erasure was not registered: {0}")]
    NotRegistered(String),
}

/// Sweeps at this interval while the process leads, for as long as it runs.
pub async fn keep_sweeping(log: Arc<Log>, index: Arc<Index>, operator: Option<PathBuf>, every: Duration) {
    let mut turns = tokio::time::interval(every);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        if !matches!(log.sequencer.status().borrow().role, Role::Leading { .. }) {
            continue;
        }
        if let Err(error) = sweep(&log, &index, operator.as_ref()).await {
            tracing::error!(%error, "retention");
        }
    }
}

async fn sweep(log: &Log, index: &Index, operator: Option<&PathBuf>) -> Result<(), SweepError> {
    let Some(current) = log.policies.current() else { return Ok(()) };
    let policy = current.in_force.policy();
    if policy.contents().types.iter().all(|rule| rule.retention.is_none()) {
        return Ok(());
    }
    let (mut cutoffs, mut after) = (BTreeMap::new(), None);
    loop {
        let page = index.values(LookupKind::ContentType, "", after.as_deref(), CONTENT_TYPES).await?;
        for value in &page {
            let Some(seconds) = retention_of(policy, value) else { continue };
            let cutoff = match cutoffs.get(&seconds) {
                Some(known) => *known,
                None => {
                    let cutoff = size_at(&*log.store, now().saturating_sub(seconds)).await?;
                    *cutoffs.entry(seconds).or_insert(cutoff)
                }
            };
            erase_older(log, index, policy, value, seconds, cutoff, operator).await?;
        }
        match page.into_iter().nth(CONTENT_TYPES - 1) {
            Some(last) => after = Some(last),
            None => return Ok(()),
        }
    }
}

/// The policy's retention time of a content type, in seconds. `value` is the index's spelling.
fn retention_of(policy: &Policy, value: &str) -> Option<u64> {
    if is_operator_statement(value) {
        return None;
    }
    let by_name = policy.rule_for(&ContentType::Text(value.to_owned()));
    let rule = by_name.or_else(|| policy.rule_for(&ContentType::Id(value.parse().ok()?)));
    rule.and_then(|rule| rule.retention)
}

/// The size of the log at a time in Unix seconds. Takes logarithmically many reads.
async fn size_at(store: &dyn LogReader, at: u64) -> Result<u64, StoreError> {
    let (mut low, mut high, mut size) = (1, store.head().await?.batch, 0);
    while low <= high {
        let middle = low + (high - low) / 2;
        let Some(head) = store.heads(middle, 1).await?.into_iter().next() else { break };
        if head.at <= at {
            size = head.size.get();
            low = head.batch + 1;
        } else {
            high = middle.saturating_sub(1);
        }
    }
    Ok(size)
}

/// Registers erasures until only entries on hold are left of this content type below the cutoff.
async fn erase_older(
    log: &Log,
    index: &Index,
    policy: &Policy,
    content_type: &str,
    seconds: u64,
    cutoff: u64,
    operator: Option<&PathBuf>,
) -> Result<(), SweepError> {
    let mut from = 0;
    while from < cutoff {
        let terms = vec![Term::exactly(LookupKind::ContentType.number(), content_type)];
        let page = index.search(terms, from..cutoff, Order::OldestFirst, MAX_ERASED).await?;
        let entries = not_held(&*log.store, &page.entries).await?;
        if !entries.is_empty() {
            let reason = format!("{content_type} is kept for {seconds} seconds");
            register(log, policy, entries, reason, operator).await?;
        }
        match page.more_after {
            Some(last) => from = last.get() + 1,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// The IDs of the entries that still have their bytes and are not on hold.
async fn not_held(store: &dyn ErasureStore, leaves: &[LeafIndex]) -> Result<Vec<EntryDigest>, StoreError> {
    let held = store.held(leaves).await?;
    let mut entries = Vec::with_capacity(leaves.len());
    for leaf in leaves.iter().filter(|leaf| !held.contains(leaf)) {
        if let Some(entry) = store.entry(*leaf).await?.filter(|entry| entry.statement.is_some()) {
            entries.push(entry.digest);
        }
    }
    Ok(entries)
}

async fn register(
    log: &Log,
    policy: &Policy,
    entries: Vec<EntryDigest>,
    reason: String,
    operator: Option<&PathBuf>,
) -> Result<(), SweepError> {
    let key: SigningKey = signing_key(operator.ok_or(SweepError::NoOperatorKey)?)?;
    let erasure = NewErasure {
        sequence: count(&*log.store).await?,
        entries,
        reason,
        rule: RETENTION.to_owned(),
        at: crate::time::rfc3339(now()),
        authorized_by: None,
    };
    let contents = policy.contents();
    let statement = erasure::sign(&erasure, (&contents.iss, &contents.origin), &contents.operators, &key)?;
    let unregistered = |error: RegisterError| SweepError::NotRegistered(format!("{error:?}"));
    log.register(&statement, None).await.map_err(unregistered)?;
    tracing::info!(erasure = erasure.sequence, entries = erasure.entries.len(), "retention has passed");
    Ok(())
}
