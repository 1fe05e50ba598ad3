//! The task that makes heads of the index, and registers them on the log like any other statement.
//!
//! Only the leading process makes heads: at most one in each interval that the policy gives, and none if only heads were
//! registered since the last one. A head waits until all erasures so far are carried out and have left all runs, so that its
//! horizon is its size. The statement of a head whose registration has no known outcome is registered again, never another
//! one in its place.
//!
//! Not here: the roots (`store::lookup`), and the rules of a head (`registration::index_head`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lookup_tree::{HEAD_CONTENT_TYPE, IndexHead};
use merkle::{LeafIndex, TreeSize};
use registration::operator::SignError;
use registration::policy::IndexRules;
use registration::{LookupKind, index_head};
use scitt::{SignedStatement, Signer, SigningKey};
use sequencer::Role;
use store::lookup::{HeadRuns, HeadSnapshot};
use store::{Order, StoreError};
use tokio::time::sleep;

use super::heads::RegisteredHead;
use super::{Index, term};
use crate::keys::key_files::{KeyFileError, signing_key};
use crate::limits::{INDEX_HEAD_CLOCKS, INDEX_HEAD_POLL, INDEX_HEAD_RETRY, INDEX_HEADS_READ};
use crate::log::admission::NotAdmitted;
use crate::log::erasures::leaves;
use crate::log::policies::PolicyEntry;
use crate::log::registration_outcome::{RegisterError, Registered};
use crate::log::state::Log;
use crate::proofs::tiles::ProofFailure;
use crate::time::now;

/// Reason why a head that is due was not made.
#[derive(Debug, thiserror::Error)]
pub enum HeadNotMade {
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key of the index cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The root of the log at the size of the head cannot be computed.
    #[error(transparent)]
    Root(#[from] ProofFailure),
    /// Signing the head failed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The log did not register the head.
    #[error("the head was not registered: {0}")]
    NotRegistered(String),
}

/// Makes heads for as long as the process runs, signed with the key in this file.
pub async fn keep_making_heads(index: Arc<Index>, key: Option<PathBuf>) {
    let mut maker = HeadMaker { index, key, term: None };
    loop {
        let pause = match maker.round().await {
            Ok(()) => INDEX_HEAD_POLL,
            Err(error) => {
                tracing::warn!(%error, "a head of the search index is due, and not made");
                INDEX_HEAD_RETRY
            }
        };
        sleep(pause).await;
    }
}

/// The maker of heads of one process.
struct HeadMaker {
    index: Arc<Index>,
    /// Path of the key that signs.
    key: Option<PathBuf>,
    /// The time in which this process leads; `None` while another one does.
    term: Option<LeadingTerm>,
}

/// The time in which a process leads.
struct LeadingTerm {
    epoch: u64,
    /// Its beginning, in Unix seconds.
    since: u64,
    /// No head is due before this time, in Unix seconds.
    not_before: u64,
    /// Size of the index that was found to have nothing new for a head.
    without_news: Option<TreeSize>,
    /// A head whose registration has no known outcome.
    pending: Option<PendingHead>,
    /// Leaf of the policy about which a warning was logged.
    warned: Option<LeafIndex>,
}

/// A signed head that is to be registered.
struct PendingHead {
    statement: SignedStatement,
    runs: HeadRuns,
    issued_at: u64,
}

impl HeadMaker {
    /// Makes a head if this process leads, and one is due.
    async fn round(&mut self) -> Result<(), HeadNotMade> {
        let Some(term) = leading_term(&mut self.term, &self.index.log) else { return Ok(()) };
        let Some(policy) = self.index.log.policies.current() else { return Ok(()) };
        let Some(rules) = &policy.in_force.policy().contents().index else { return Ok(()) };
        if let Some(pending) = term.pending.take() {
            return term.register(&self.index, rules, pending).await;
        }
        if !term.is_due(&self.index, rules).await? {
            return Ok(());
        }
        let size = self.index.indexed().to;
        if !self.index.has_news(size).await? {
            term.without_news = Some(size);
            return Ok(());
        }
        let Some(key) = term.key_of(self.key.as_deref(), rules, &policy)? else { return Ok(()) };
        let Some(pending) = self.index.sign_next_head(&policy, rules, &key).await? else { return Ok(()) };
        term.register(&self.index, rules, pending).await
    }
}

/// The term of this process as the leader, a new one after each change of the epoch; `None` while another process leads.
fn leading_term<'t>(term: &'t mut Option<LeadingTerm>, log: &Log) -> Option<&'t mut LeadingTerm> {
    let Role::Leading { epoch } = log.sequencer.status().borrow().role else {
        *term = None;
        return None;
    };
    term.take_if(|term| term.epoch != epoch);
    let new =
        LeadingTerm { epoch, since: now(), not_before: 0, without_news: None, pending: None, warned: None };
    Some(term.get_or_insert(new))
}

impl LeadingTerm {
    /// Returns whether it is time for a head: one interval after the newest head, and after this process began to lead, when
    /// the log no longer registers a head that the leader before it signed. So no older head comes after a newer one.
    async fn is_due(&mut self, index: &Index, rules: &IndexRules) -> Result<bool, StoreError> {
        if now() < self.not_before || self.without_news == Some(index.indexed().to) {
            return Ok(false);
        }
        // The newest head may be among the entries that are not indexed yet.
        if index.caught_up().await?.is_behind() {
            return Ok(false);
        }
        let newest = index.newest_head(rules).await?;
        let newest = newest.map_or(0, |head| head.issued_at).saturating_add(rules.every);
        let others_end = self.since.saturating_add(rules.every).saturating_add(INDEX_HEAD_CLOCKS);
        self.not_before = newest.max(others_end);
        Ok(now() >= self.not_before)
    }

    /// Reads the key that signs; `None`, with a warning for each policy, if there is none that the policy lists.
    fn key_of(
        &mut self,
        path: Option<&Path>,
        rules: &IndexRules,
        policy: &PolicyEntry,
    ) -> Result<Option<SigningKey>, KeyFileError> {
        let key = path.map(signing_key).transpose()?;
        let listed = key.filter(|key| rules.keys.iter().any(|bound| bound.key == *key.public_key()));
        let leaf = policy.in_force.leaf();
        if listed.is_none() && self.warned.replace(leaf) != Some(leaf) {
            tracing::warn!(%leaf, "index_key is not a key that [index] of the policy lists: no heads of the index are made");
        }
        Ok(listed)
    }

    /// Registers a head. One whose registration has no known outcome is kept for the next round.
    async fn register(
        &mut self,
        index: &Index,
        rules: &IndexRules,
        pending: PendingHead,
    ) -> Result<(), HeadNotMade> {
        match index.log.register(&pending.statement, None).await {
            Ok(Registered::Receipt { index: leaf, .. }) => {
                index.note_head(pending, leaf);
                Ok(())
            }
            Ok(Registered::Later) => {
                self.pending = Some(pending);
                Ok(())
            }
            Err(error) => {
                match is_refused(&error) {
                    true => self.not_before = next_interval(pending.issued_at, rules.every),
                    false => self.pending = Some(pending),
                }
                Err(HeadNotMade::NotRegistered(format!("{error:?}")))
            }
        }
    }
}

/// Returns whether the log will never register the statement, so that another head may be made.
fn is_refused(error: &RegisterError) -> bool {
    matches!(
        error,
        RegisterError::NotAdmitted(NotAdmitted::Untrusted(_) | NotAdmitted::Refused(_))
            | RegisterError::GuardTaken { .. }
            | RegisterError::OutsideWindow(_)
            | RegisterError::Twin(_)
            | RegisterError::Frozen
    )
}

/// The beginning of the interval of `every` seconds after the one that a time is in.
fn next_interval(at: u64, every: u64) -> u64 {
    (at / every).saturating_add(1).saturating_mul(every)
}

impl Index {
    /// Signs a head of all indexed leaves; `None` while runs are to be written first, or erased entries to leave them.
    async fn sign_next_head(
        &self,
        policy: &PolicyEntry,
        rules: &IndexRules,
        key: &SigningKey,
    ) -> Result<Option<PendingHead>, HeadNotMade> {
        let Some(snapshot) = self.settled_snapshot().await? else { return Ok(None) };
        let size = snapshot.size();
        let log_root = self.log.receipts.tiles().root(size).await?;
        let runs = tokio::task::spawn_blocking(|| snapshot.hash()).await;
        let runs = runs.unwrap_or_else(|why| Err(StoreError::Unavailable(why.to_string())))?;
        let horizon = LeafIndex::new(size.get());
        let head = IndexHead { series: rules.series(), size, log_root, horizon, runs: runs.in_head() };
        let contents = policy.in_force.policy().contents();
        let issued_at = now();
        let statement = index_head::sign(&head, issued_at, (&contents.iss, &contents.origin), rules, key)?;
        Ok(Some(PendingHead { statement, runs, issued_at }))
    }

    /// The runs and the tail, without the postings of exactly those entries that were erased by statements among the indexed
    /// leaves. `None` while that is not so.
    ///
    /// The number of erasures that are carried out comes first, the catalog after it, and last the question whether the log
    /// has one more. If it has none then, it had none when the catalog was read.
    async fn settled_snapshot(&self) -> Result<Option<HeadSnapshot>, StoreError> {
        let store = &*self.log.store;
        let Some(erasures) = self.log.carried_out.count() else { return Ok(None) };
        let snapshot = self.terms.snapshot(&store.catalog().await?);
        let last = erasures.saturating_sub(1);
        let found = leaves(store, last..erasures + 1).await?;
        let is_settled = |snapshot: &HeadSnapshot| {
            found.len() as u64 == erasures - last && found.iter().all(|leaf| snapshot.size().holds(*leaf))
        };
        Ok(snapshot.filter(is_settled))
    }

    /// Returns whether a tree of this size has another entry than heads after the newest head.
    async fn has_news(&self, size: TreeSize) -> Result<bool, StoreError> {
        let from = self.heads.size().map_or(0, TreeSize::get);
        let new = usize::try_from(size.get().saturating_sub(from)).unwrap_or(usize::MAX);
        if new > INDEX_HEADS_READ {
            return Ok(true);
        }
        let heads = vec![term(LookupKind::ContentType, HEAD_CONTENT_TYPE)];
        let heads = self.search(heads, from..size.get(), Order::OldestFirst, INDEX_HEADS_READ).await?;
        Ok(heads.entries.len() < new)
    }

    fn note_head(&self, made: PendingHead, leaf: LeafIndex) {
        let head = RegisteredHead::made_here(made.statement, leaf, made.runs);
        if let Some(head) = head {
            tracing::info!(%leaf, size = head.head.size.get(), "registered a head of the search index");
            self.heads.put(Arc::new(head), &self.log.metrics);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_head_is_followed_by_one_of_the_next_interval() {
        assert_eq!([0, 59, 60, 119].map(|at| next_interval(at, 60)), [60, 60, 120, 120]);
        assert_eq!(next_interval(u64::MAX, 1), u64::MAX);
    }
}
