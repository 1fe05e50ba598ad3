//! [`SequencerParts`]: the parts of a sequencer that its service provides.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};
use store::{CommittedHead, GuardKey, HeadSignature, SequencerStore, SignatureKind};

use crate::{Clock, Limits, PinStore, Role, Submission, Witnesses};

/// Parts of a sequencer.
pub struct SequencerParts {
    /// Origin of the log, as the database and the pin know it.
    pub origin: String,
    /// Name of this process as the holder of the lease, for people to read: host and process.
    pub holder: String,
    /// Database of the log.
    pub store: Arc<dyn SequencerStore>,
    /// Signer of committed heads; see [`HeadSigner`].
    pub signer: Arc<dyn HeadSigner>,
    /// Storage of the newest signed head, outside of the database; see [`pin`](crate::pin).
    pub pin: Arc<dyn PinStore>,
    /// Witnesses that have seen the log's heads.
    pub witnesses: Arc<dyn Witnesses>,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Policy decision for statements that waited in the inbox while the policy changed; see [`Redecide`].
    pub redecide: Arc<dyn Redecide>,
    /// Receiver of metrics; see [`Observer`].
    pub observer: Arc<dyn Observer>,
    /// Bounds of the sequencer.
    pub limits: Limits,
}

/// Signer of heads that are committed and pinned, and of nothing else.
///
/// The size of a head determines the key that signs it. Keys change between two batches only: the leader calls
/// [`take_up`](Self::take_up) when no head is being signed or committed.
#[async_trait]
pub trait HeadSigner: Send + Sync + 'static {
    /// Kind and kid of each signature that [`sign`](Self::sign) makes over a head of this size. A head that has
    /// all of them is not signed again at start.
    fn makes(&self, size: TreeSize) -> Vec<(SignatureKind, Vec<u8>)>;

    /// Signs this head once for each kind. Called for one head at a time, from the sequencer's own task: a slow
    /// signer should leave the async workers (`block_in_place`).
    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed>;

    /// Returns whether a stored signature is right. Wrong ones are not published.
    fn knows(&self, _head: &CommittedHead, _kept: &HeadSignature) -> bool {
        true
    }

    /// Reason why this process cannot sign the next head: a private key is missing. The process then does not ask
    /// to lead.
    fn missing(&self) -> Option<String> {
        None
    }

    /// Reads again which keys sign. Called after the epoch was raised, before anything is signed.
    ///
    /// # Errors
    ///
    /// If that cannot be read, or a key is [`missing`](Self::missing): the process must not lead.
    async fn refresh(&self) -> Result<(), SignFailed> {
        Ok(())
    }

    /// Resolves while an announced key waits to be taken up.
    async fn key_waits(&self) {
        std::future::pending().await
    }

    /// Takes up the announced keys, under the leader's epoch.
    ///
    /// # Errors
    ///
    /// If the outcome is not known: the process stops leading, and the next leader reads the outcome.
    async fn take_up(&self, _epoch: u64) -> Result<(), SignFailed> {
        Ok(())
    }
}

/// Error of a [`HeadSigner`].
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SignFailed(pub String);

/// Decides statements from the inbox again, if the decision that admitted them no longer holds.
#[async_trait]
pub trait Redecide: Send + Sync + 'static {
    /// Decides under the policy now in force.
    async fn redecide(&self, submission: Submission) -> Redecision;

    /// Reports a statement that is about to be refused because an entry makes the same claim; returns the text for
    /// its submitter. May be called twice for one statement.
    async fn guard_taken(&self, submission: &Submission, key: &GuardKey, by: LeafIndex) -> String {
        let _ = submission;
        crate::SubmitError::GuardTaken { key: key.clone(), index: by }.to_string()
    }

    /// Returns the text for the submitter of a statement whose decision does not hold at this time, in Unix seconds.
    async fn outside_window(&self, submission: &Submission, at: u64) -> String {
        crate::SubmitError::OutsideWindow { at, window: submission.valid }.to_string()
    }

    /// Returns the text for the submitter of a statement that is refused because the log has `size` entries, and the
    /// decision allows no more.
    async fn log_full(&self, submission: &Submission, size: TreeSize) -> String {
        let largest = submission.largest_tree.unwrap_or(size);
        crate::SubmitError::LogFull { size, largest }.to_string()
    }
}

/// Outcome of [`Redecide::redecide`].
#[derive(Clone, Debug)]
pub enum Redecision {
    /// Still admitted, under the new decision in this submission.
    Admit(Box<Submission>),
    /// No longer admitted. Final; the text is for the submitter.
    Refuse(String),
    /// Cannot be decided at present; [`Redecide::redecide`] is called again later.
    Later,
}

/// [`Redecide`] that refuses every statement that was decided under an older policy.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefuseOutdated;

#[async_trait]
impl Redecide for RefuseOutdated {
    async fn redecide(&self, _submission: Submission) -> Redecision {
        Redecision::Refuse("the policy changed before the statement was sequenced".into())
    }
}

/// Receiver of events, for metrics. Called from the sequencer's own task, so methods must return at once.
pub trait Observer: Send + Sync + 'static {
    /// A batch was committed.
    fn batch_committed(&self, _entries: usize, _bytes: usize, _took: Duration) {}
    /// A head is signed and may be shown. `took` is measured from taking the batch out of the queue.
    fn head_published(&self, _size: TreeSize, _took: Duration) {}
    /// The signer made this many signatures over one head.
    fn signatures_made(&self, _count: usize, _took: Duration) {}
    /// The outcome of a commit was unknown and had to be settled.
    fn commit_unknown(&self) {}
    /// A signature could not be stored at once; storing is retried.
    fn signature_not_kept(&self) {}
    /// The [`Role`] of this process changed.
    fn role_changed(&self, _role: &Role) {}
    /// A statement from the inbox was refused, finally ([`Inbox::refuse`](store::Inbox::refuse)).
    fn inbox_refused(&self) {}
    /// Number of waiting submissions, and their size in bytes.
    fn queue(&self, _entries: usize, _bytes: usize) {}
}

/// [`Observer`] that ignores all events.
impl Observer for () {}
