//! What the sequencer is given by the service that runs it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};
use store::{CommittedHead, GuardKey, HeadSignature, LogStore, SignatureKind};

use crate::{Clock, Limits, PinStore, Role, Submission, Witnesses};

/// All that a sequencer needs.
pub struct Parts {
    /// The log's name, as the database and the pin know it.
    pub origin: String,
    /// Who holds the lease, for people to read: host and process.
    pub holder: String,
    /// The database.
    pub store: Arc<dyn LogStore>,
    /// Signs committed heads.
    pub signer: Arc<dyn HeadSigner>,
    /// What this log has signed, outside of the database.
    pub pin: Arc<dyn PinStore>,
    /// Who has seen its heads from outside.
    pub witnesses: Arc<dyn Witnesses>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Decides again what waited in the inbox while the policy moved.
    pub redecide: Arc<dyn Redecide>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
    /// What bounds it.
    pub limits: Limits,
}

/// Signs heads that are committed and pinned, and nothing else.
///
/// Which key signs depends on the size of the head. Keys change between two batches only: the leader calls
/// [`take_up`](Self::take_up) when no head is on its way.
#[async_trait]
pub trait HeadSigner: Send + Sync + 'static {
    /// The signatures that [`sign`](Self::sign) makes over a head of this size: kind and kid of each. A head
    /// that has all of them is not signed again at start.
    fn makes(&self, size: TreeSize) -> Vec<(SignatureKind, Vec<u8>)>;

    /// Signs this head once for each kind. Called for one head at a time, from the sequencer's own
    /// task: a signer that is slow should leave the async workers (`block_in_place`).
    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed>;

    /// Whether a signature that the database kept is right. One that is not is published by nobody.
    fn knows(&self, _head: &CommittedHead, _kept: &HeadSignature) -> bool {
        true
    }

    /// Why this process cannot sign the next head: a private key is missing. It then does not ask to lead.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Reads again which keys sign. Called after the epoch was raised, before anything is signed.
    ///
    /// # Errors
    /// If that is not known, or [`missing`](Self::missing): the process must not lead.
    async fn refresh(&self) -> Result<(), SignFailed> {
        Ok(())
    }

    /// Resolves while a key waits to be taken up.
    async fn key_waits(&self) {
        std::future::pending().await
    }

    /// Takes up the keys that wait, under the leader's epoch.
    ///
    /// # Errors
    /// If the outcome is not known: the process stops leading, and whoever takes over reads it.
    async fn take_up(&self, _epoch: u64) -> Result<(), SignFailed> {
        Ok(())
    }
}

/// The signer could not sign.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SignFailed(pub String);

/// Decides statements from the inbox again, when the decision that let them in no longer holds.
#[async_trait]
pub trait Redecide: Send + Sync + 'static {
    /// Decides under the policy in force now.
    async fn redecide(&self, submission: Submission) -> Redecision;

    /// Hears of a statement that is refused as an entry makes the same claim, before that is written down; answers what its
    /// submitter is told. May be asked twice for one statement.
    async fn guard_taken(&self, submission: &Submission, key: &GuardKey, by: LeafIndex) -> String {
        let _ = submission;
        crate::SubmitError::GuardTaken { key: key.clone(), index: by }.to_string()
    }

    /// Returns what the submitter of a statement is told that is refused because the decision does not
    /// hold at this time, in Unix seconds.
    async fn outside_window(&self, submission: &Submission, at: u64) -> String {
        crate::SubmitError::OutsideWindow { at, window: submission.valid }.to_string()
    }
}

/// The outcome of deciding again.
#[derive(Clone, Debug)]
pub enum Redecision {
    /// Still admitted, under the decision in here.
    Admit(Box<Submission>),
    /// No longer admitted. Final; the text is for the submitter.
    Refuse(String),
    /// Cannot be decided at present: asked again later.
    Later,
}

/// Never decides anything again: what was decided under an older policy is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverAgain;

#[async_trait]
impl Redecide for NeverAgain {
    async fn redecide(&self, _submission: Submission) -> Redecision {
        Redecision::Refuse("the policy changed before the statement was sequenced".into())
    }
}

/// Is told what happens, for metrics. Called from the sequencer's own task: return at once.
pub trait Observer: Send + Sync + 'static {
    /// A batch is committed.
    fn batch_committed(&self, _entries: usize, _bytes: usize, _took: Duration) {}
    /// A head is signed and may be seen. `took` is from taking the batch out of the queue.
    fn head_published(&self, _size: TreeSize, _took: Duration) {}
    /// The signer made this many signatures, over one head.
    fn signatures_made(&self, _count: usize, _took: Duration) {}
    /// A commit's outcome was not known and had to be settled.
    fn commit_unknown(&self) {}
    /// A signature could not be kept at once; it is tried again.
    fn signature_not_kept(&self) {}
    /// What this process does changed.
    fn role_changed(&self, _role: &Role) {}
    /// A statement from the inbox is refused for good.
    fn inbox_refused(&self) {}
    /// How much waits: submissions, and their bytes.
    fn queue(&self, _entries: usize, _bytes: usize) {}
}

/// Watches nothing.
impl Observer for () {}
