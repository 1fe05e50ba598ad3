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
pub trait HeadSigner: Send + Sync + 'static {
    /// The signatures that [`sign`](Self::sign) makes: kind and kid of each. A head that has all
    /// of them is not signed again at start.
    fn makes(&self) -> Vec<(SignatureKind, Vec<u8>)>;

    /// Signs this head once for each kind. Called for one head at a time, from the sequencer's own
    /// task: a signer that is slow should leave the async workers (`block_in_place`).
    fn sign(&self, head: &CommittedHead) -> Result<Vec<HeadSignature>, SignFailed>;

    /// Whether a signature that the database kept is right. One that is not is published by nobody.
    fn knows(&self, _head: &CommittedHead, _kept: &HeadSignature) -> bool {
        true
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
    fn signatures_made(&self, _count: usize) {}
    /// A commit's outcome was not known and had to be settled.
    fn commit_unknown(&self) {}
    /// A signature could not be kept at once; it is tried again.
    fn signature_not_kept(&self) {}
    /// What this process does changed.
    fn role_changed(&self, _role: &Role) {}
    /// How much waits: submissions, and their bytes.
    fn queue(&self, _entries: usize, _bytes: usize) {}
}

/// Watches nothing.
impl Observer for () {}
