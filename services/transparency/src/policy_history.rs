//! The history of the log's policies, read from its own entries.
//!
//! Each policy entry names the policy that admitted it, so the history is followed from the policy in force back to
//! entry 0. It never changes, so what was read once is cached.

use std::sync::Arc;

use arc_swap::ArcSwap;
use merkle::{EntryDigest, LeafIndex, TreeSize};
use registration::PolicyDigest;

use crate::admission::{Policies, PolicyUnreadable};
use crate::routes::listing::first_head_with;

/// A policy that is or was in force.
#[derive(Clone, Debug)]
pub struct Past {
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

impl Past {
    /// The tree size from which the policy was in force: it may have admitted the leaf after its own, and later ones.
    pub fn in_force_from(&self) -> TreeSize {
        TreeSize::new(self.leaf.get() + 1)
    }
}

/// The cached policies of a log, oldest first.
#[derive(Debug, Default)]
pub struct History(ArcSwap<Vec<Past>>);

impl Policies {
    /// All policies up to the one in force, oldest first.
    pub async fn history(&self) -> Result<Arc<Vec<Past>>, PolicyUnreadable> {
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
        let all: Arc<Vec<Past>> = Arc::new(known.iter().cloned().chain(newer.into_iter().rev()).collect());
        self.history.0.store(all.clone());
        Ok(all)
    }

    /// Reads the policy at a leaf, and returns the leaf of the one before it.
    async fn past(&self, leaf: LeafIndex) -> Result<(Past, Option<LeafIndex>), PolicyUnreadable> {
        let policy = self.at(leaf).await?;
        let head = first_head_with(self.store(), leaf).await?;
        let before = match policy.admitted_under {
            _ if leaf.get() == 0 => None,
            before if before < leaf => Some(before),
            before => {
                let why = format!("it says that leaf {before} admitted it");
                return Err(PolicyUnreadable::NotAPolicy { leaf, why });
            }
        };
        let contents = policy.in_force.policy();
        let past = Past {
            leaf,
            entry: policy.entry,
            digest: contents.digest(),
            revision: contents.contents().revision,
            at: head.map(|head| head.at),
        };
        Ok((past, before))
    }
}
