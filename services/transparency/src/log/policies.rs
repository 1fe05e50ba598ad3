//! The policy in force, cached from the log, and the history of the log's policies, read from its own entries.
//!
//! Each policy entry names the policy that admitted it, so the history is followed from the policy in force back to
//! entry 0. It never changes, so what was read once is cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use merkle::{EntryDigest, LeafIndex, TreeSize};
use registration::{Policy, PolicyDigest, PolicyInForce};
use scitt::SignedStatement;
use store::{LogReader, StoreError};

/// The policy in force, cached from the log.
pub struct Policies {
    store: Arc<dyn LogReader>,
    current: ArcSwapOption<PolicyEntry>,
    history: PolicyHistory,
    /// The size of the largest statement that the policy in force admits, in bytes. Shared with the middleware.
    largest: Arc<AtomicUsize>,
}

/// A policy entry of the log, parsed.
#[derive(Clone, Debug)]
pub struct PolicyEntry {
    /// The policy and its leaf.
    pub in_force: PolicyInForce,
    /// Digest of the entry that contains the policy.
    pub entry: EntryDigest,
    /// The signed policy statement.
    pub statement: SignedStatement,
    /// The leaf of the policy that admitted this one; the first policy names its own leaf.
    pub admitted_under: LeafIndex,
}

/// Reason why a policy could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PolicyUnreadable {
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The entry is not a policy that this version understands.
    #[error("leaf {leaf} should hold the registration policy in force: {why}")]
    NotAPolicy {
        /// The leaf of the entry.
        leaf: LeafIndex,
        /// The parser's error, or the missing part.
        why: String,
    },
}

impl Policies {
    /// Creates the cache without a policy; [`follow`](Self::follow) fills it.
    pub fn new(store: Arc<dyn LogReader>, largest: Arc<AtomicUsize>) -> Self {
        Self { store, current: ArcSwapOption::empty(), largest, history: PolicyHistory::default() }
    }

    /// The policy in force; `None` until the first one is read.
    pub fn current(&self) -> Option<Arc<PolicyEntry>> {
        self.current.load_full()
    }

    /// Makes the policy at this leaf the one in force, unless a newer one is known, and returns the newest.
    pub async fn follow(&self, leaf: LeafIndex) -> Result<Arc<PolicyEntry>, PolicyUnreadable> {
        if let Some(known) = self.current().filter(|known| known.in_force.leaf() >= leaf) {
            return Ok(known);
        }
        let read = Arc::new(self.read(leaf).await?);
        let newer = self.current.rcu(|known| match known {
            Some(known) if known.in_force.leaf() >= leaf => Some(known.clone()),
            _ => Some(read.clone()),
        });
        if newer.is_none_or(|before| before.in_force.leaf() < leaf) {
            let newest = self.current().unwrap_or_else(|| read.clone());
            let largest = newest.in_force.policy().largest_statement();
            self.largest.store(usize::try_from(largest).unwrap_or(usize::MAX), Ordering::Relaxed);
            tracing::info!(leaf = leaf.get(), digest = %read.in_force.policy().digest(), "policy in force");
        }
        Ok(self.current().unwrap_or(read))
    }

    /// The policy at this leaf, in force or not.
    pub async fn at(&self, leaf: LeafIndex) -> Result<Arc<PolicyEntry>, PolicyUnreadable> {
        match self.current().filter(|known| known.in_force.leaf() == leaf) {
            Some(known) => Ok(known),
            None => Ok(Arc::new(self.read(leaf).await?)),
        }
    }

    async fn read(&self, leaf: LeafIndex) -> Result<PolicyEntry, PolicyUnreadable> {
        let unreadable = |why: String| PolicyUnreadable::NotAPolicy { leaf, why };
        let entry =
            self.store.entry(leaf).await?.ok_or_else(|| unreadable("there is no such leaf".into()))?;
        // Verify the digest: a policy that was changed in the database must not count.
        let entry = entry.verified()?;
        let bytes = entry.statement.ok_or_else(|| unreadable("it is erased".into()))?;
        let statement = SignedStatement::parse(bytes).map_err(|why| unreadable(why.to_string()))?;
        let payload = statement.payload().ok_or_else(|| unreadable("its payload is detached".into()))?;
        let policy = Policy::from_payload(payload).map_err(|why| unreadable(why.to_string()))?;
        let in_force = PolicyInForce::new(policy, leaf);
        Ok(PolicyEntry { in_force, entry: entry.digest, statement, admitted_under: entry.policy })
    }
}

/// A policy that is or was in force.
#[derive(Clone, Debug)]
pub struct PolicyRevision {
    /// The leaf of the policy.
    pub leaf: LeafIndex,
    /// Digest of the policy's entry.
    pub entry: EntryDigest,
    /// Digest of the policy's canonical JSON.
    pub digest: PolicyDigest,
    /// The policy's revision: the number of policies before it.
    pub revision: u64,
    /// Commit time, in Unix seconds; `None` if no head with the leaf is found.
    pub at: Option<u64>,
}

impl PolicyRevision {
    /// The tree size from which the policy was in force: it may have admitted the leaf after its own, and later ones.
    pub fn in_force_from(&self) -> TreeSize {
        TreeSize::new(self.leaf.get() + 1)
    }
}

/// The cached policies of a log, oldest first.
#[derive(Debug, Default)]
pub struct PolicyHistory(ArcSwap<Vec<PolicyRevision>>);

impl Policies {
    /// All policies up to the one in force, oldest first.
    pub async fn history(&self) -> Result<Arc<Vec<PolicyRevision>>, PolicyUnreadable> {
        let known = self.history.0.load_full();
        let Some(current) = self.current() else { return Ok(known) };
        let reached = known.last().map(|past| past.leaf);
        let mut leaf = current.in_force.leaf();
        if reached.is_some_and(|reached| reached >= leaf) {
            return Ok(known);
        }
        let mut newer = Vec::new();
        while reached != Some(leaf) {
            let (past, before) = self.past(leaf).await?;
            newer.push(past);
            match before {
                Some(before) => leaf = before,
                None => break,
            }
        }
        let all: Arc<Vec<PolicyRevision>> =
            Arc::new(known.iter().cloned().chain(newer.into_iter().rev()).collect());
        self.history.0.store(all.clone());
        Ok(all)
    }

    /// Reads the policy at a leaf, and returns the leaf of the one before it.
    async fn past(&self, leaf: LeafIndex) -> Result<(PolicyRevision, Option<LeafIndex>), PolicyUnreadable> {
        let policy = self.at(leaf).await?;
        let head = self.store.head_covering(leaf).await?;
        let before = match policy.admitted_under {
            _ if leaf.get() == 0 => None,
            before if before < leaf => Some(before),
            before => {
                let why = format!("it says that leaf {before} admitted it");
                return Err(PolicyUnreadable::NotAPolicy { leaf, why });
            }
        };
        let contents = policy.in_force.policy();
        let past = PolicyRevision {
            leaf,
            entry: policy.entry,
            digest: contents.digest(),
            revision: contents.contents().revision,
            at: head.map(|head| head.at),
        };
        Ok((past, before))
    }
}
