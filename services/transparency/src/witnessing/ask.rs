//! One exchange with one witness.
//!
//! The consistency proof starts at the size that the witness last saw, as far as this process knows; a witness that
//! knows another size responds with it (409), and gets a proof from there. A cosignature is stored only if it verifies
//! with the witness's key; other lines are ignored.
//!
//! A witness contradicts the database if it has seen a larger tree than the committed one, or another tree. The
//! committed head is read again before a contradiction is reported, because another process may lead by now.

use std::sync::Arc;
use std::time::Duration;

use client::witness::AddError;
use merkle::{RootHash, TreeSize, verify};
use sequencer::{Clock, Halt, Now, SystemClock};
use store::{Cosignature, StoreError};
use thiserror::Error;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::cosignature;
use tlog::note::{Note, SignatureLine};
use tlog::witness::AddCheckpoint;

use super::Witnessing;
use super::witness::HttpWitness;
use crate::limits::WITNESS_CLOCK_TOLERANCE;
use crate::proofs::tiles::ProofFailure;
use crate::time::now;

/// Corrections of the size in one exchange.
const CORRECTIONS: usize = 2;

/// A signed head in the form sent to witnesses.
#[derive(Clone, Debug)]
pub struct SubmittedHead {
    /// Size of the head.
    pub size: TreeSize,
    /// Root of the head.
    pub root: RootHash,
    /// The checkpoint, signed by the log only.
    pub note: Note,
}

/// Reason why a witness did not cosign.
#[derive(Debug, Error)]
pub enum WitnessError {
    /// The witness refused, or the request failed.
    #[error(transparent)]
    Asked(#[from] AddError),
    /// The response contains no valid cosignature of the witness's key.
    #[error("its answer has no cosignature of its key over this checkpoint")]
    NotSigned,
    /// The witness's clock is ahead, by this many seconds. A stored cosignature from the future would not be replaced by
    /// a newer one, and would count as fresh until then.
    #[error("its clock is {0} s ahead of ours")]
    Clock(u64),
    /// The witness has seen a newer head, from another process or from a client.
    #[error("it has been shown a larger tree meanwhile")]
    Overtaken,
    /// The witness has seen a tree that the database does not contain.
    #[error("{0}")]
    Contradicted(Halt),
    /// The witness rejects the proof, and this process finds it wrong too.
    #[error("the stored tree does not prove that it has grown from size {0}: see fsck")]
    Damaged(TreeSize),
    /// The proof could not be built.
    #[error(transparent)]
    Proof(#[from] ProofFailure),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WitnessError {
    /// The reason as one word, for metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Asked(error) => error.code(),
            Self::NotSigned => "not_signed",
            Self::Clock(_) => "clock",
            Self::Overtaken => "overtaken",
            Self::Contradicted(Halt::WitnessAhead { .. }) => "ahead",
            Self::Contradicted(_) => "disagrees",
            Self::Damaged(_) => "damaged",
            Self::Proof(_) | Self::Store(_) => "store",
        }
    }

    /// The pause that the witness asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Asked(AddError::Busy { retry_after, .. }) => *retry_after,
            _ => None,
        }
    }
}

impl Witnessing {
    /// Sends a head to a witness, and stores its cosignature.
    pub(super) async fn ask(
        &self,
        witness: &Arc<HttpWitness>,
        head: &SubmittedHead,
    ) -> Result<Cosignature, WitnessError> {
        let (lines, sent) = self.submit(witness, head).await?;
        let answered = SystemClock.now();
        let cosignature = verified(witness, head, lines).ok_or(WitnessError::NotSigned)?;
        witness.has_signed_at(cosignature.at, sent, answered);
        witness.has_seen(head.size);
        judge_clock(witness, cosignature.at)?;
        self.store.keep_cosignature(&cosignature).await?;
        self.news.notify_one();
        Ok(cosignature)
    }

    /// Finds the size that the witness wants the proof from. Returns the signature lines and the time of the successful
    /// request.
    async fn submit(
        &self,
        witness: &Arc<HttpWitness>,
        head: &SubmittedHead,
    ) -> Result<(Vec<SignatureLine>, Now), WitnessError> {
        let mut old = self.believed_seen(witness).await?.min(head.size);
        for _ in 0..=CORRECTIONS {
            let request = self.request(old, head).await?;
            let sent = SystemClock.now();
            match witness.client.add_checkpoint(&request).await {
                Ok(lines) => return Ok((lines, sent)),
                // In the first version of the protocol this is the only way for a witness to report another root of
                // this size.
                Err(AddError::Conflict(seen)) if seen == head.size && old == head.size => {
                    return Err(self.disagrees(witness, head.size));
                }
                Err(AddError::Conflict(seen)) if seen > head.size => {
                    return Err(self.beyond(witness, seen).await?);
                }
                Err(AddError::Conflict(seen)) => {
                    witness.has_seen(seen);
                    old = seen;
                }
                Err(AddError::Unproven(why)) => {
                    return Err(self.unproven(witness, head, &request, why).await?);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(AddError::Nonsense("it names another size each time".into()).into())
    }

    async fn believed_seen(&self, witness: &HttpWitness) -> Result<TreeSize, StoreError> {
        match witness.seen() {
            Some(size) => Ok(size),
            None => {
                let kept = self.store.newest_cosignature(&witness.id()).await?;
                Ok(kept.map_or(TreeSize::EMPTY, |kept| kept.size))
            }
        }
    }

    async fn request(&self, old: TreeSize, head: &SubmittedHead) -> Result<AddCheckpoint, WitnessError> {
        let proof = match old == TreeSize::EMPTY || old == head.size {
            true => Vec::new(),
            false => self.tiles.consistency(old, head.size).await?,
        };
        Ok(AddCheckpoint { old, proof, checkpoint: head.note.clone() })
    }

    /// Handles a witness that has seen a larger tree than the one it was sent.
    async fn beyond(&self, witness: &Arc<HttpWitness>, seen: TreeSize) -> Result<WitnessError, WitnessError> {
        let mut objection = self.objection(witness, seen, None).await?;
        if objection.is_none()
            && let Some(root) = self.latest_root(witness, seen).await
        {
            objection = self.objection(witness, seen, Some(root)).await?;
        }
        Ok(match objection {
            Some(halt) => self.contradicts(witness, seen, halt),
            None => {
                witness.has_seen(seen);
                WitnessError::Overtaken
            }
        })
    }

    /// The root of the checkpoint that the witness shows, if it shows one of this size.
    async fn latest_root(&self, witness: &HttpWitness, size: TreeSize) -> Option<RootHash> {
        let origin: Origin = self.origin.parse().ok()?;
        let note = witness.client.latest(&origin).await.ok()??;
        let checkpoint = checkpoint_of(&note, &origin).filter(|checkpoint| checkpoint.size() == size)?;
        Some(checkpoint.root())
    }

    /// Handles a witness that rejects the consistency proof: either it has seen another tree, or the proof is wrong,
    /// which this process can verify itself.
    async fn unproven(
        &self,
        witness: &Arc<HttpWitness>,
        head: &SubmittedHead,
        request: &AddCheckpoint,
        why: String,
    ) -> Result<WitnessError, WitnessError> {
        let old = request.old;
        if old == TreeSize::EMPTY {
            return Ok(AddError::Unproven(why).into());
        }
        if old < head.size {
            let root = self.store.head_of_size(old).await?.map(|then| then.root);
            let holds = |root| verify::consistency(old, head.size, root, head.root, &request.proof).is_ok();
            if root.is_some_and(|root| !holds(root)) {
                return Ok(WitnessError::Damaged(old));
            }
        }
        Ok(self.disagrees(witness, old))
    }

    fn disagrees(&self, witness: &Arc<HttpWitness>, size: TreeSize) -> WitnessError {
        let halt = Halt::WitnessDisagrees { witness: witness.name.clone(), size };
        self.contradicts(witness, size, halt)
    }

    /// Stops signing first. The witness's own checkpoint is fetched in a separate task, which may take long.
    fn contradicts(&self, witness: &Arc<HttpWitness>, seen: TreeSize, halt: Halt) -> WitnessError {
        self.contradicted(halt.clone());
        witness.contradicts(seen);
        if let Ok(origin) = self.origin.parse() {
            tokio::spawn(record_outcome(witness.clone(), origin));
        }
        WitnessError::Contradicted(halt)
    }
}

/// Logs and keeps the checkpoint that the witness shows, for the operator and the page of alarms: with the log's
/// signature on it, it is the proof of the contradiction.
async fn record_outcome(witness: Arc<HttpWitness>, origin: Origin) {
    match witness.client.latest(&origin).await {
        Ok(Some(note)) => {
            tracing::error!(witness = witness.name, checkpoint = %note, "the checkpoint that the witness shows");
            witness.shows(note);
        }
        Ok(None) => tracing::warn!(witness = witness.name, "the witness shows no checkpoint of this log"),
        Err(error) => tracing::warn!(witness = witness.name, %error, "the witness shows no checkpoint"),
    }
}

/// The checkpoint in a note that a witness shows, not verified; `None` if it is not one of this log.
pub(super) fn checkpoint_of(note: &Note, origin: &Origin) -> Option<Checkpoint> {
    Checkpoint::parse_text(note.text()).ok().filter(|checkpoint| checkpoint.origin() == origin)
}

/// The newest valid cosignature of this witness.
fn verified(witness: &HttpWitness, head: &SubmittedHead, lines: Vec<SignatureLine>) -> Option<Cosignature> {
    let own: Vec<SignatureLine> = lines.into_iter().filter(|line| line.is_by(&witness.key)).collect();
    let note = Note::from_parts(head.note.text(), own).ok()?;
    let at = cosignature::verified(&note, &witness.key)?;
    let line = note.signatures().iter().find(|line| cosignature::time_of(line) == Some(at))?;
    let line = line.to_string().into_bytes().into();
    Some(Cosignature { size: head.size, witness: witness.id(), at, line })
}

/// Refuses a cosignature too far in the future, and warns about one too old: monitors measure freshness by the
/// witness's clock.
fn judge_clock(witness: &HttpWitness, at: u64) -> Result<(), WitnessError> {
    let (here, tolerance) = (now(), WITNESS_CLOCK_TOLERANCE.as_secs());
    if at > here.saturating_add(tolerance) {
        return Err(WitnessError::Clock(at - here));
    }
    if here.abs_diff(at) > tolerance {
        tracing::warn!(witness = witness.name, there = at, here, "the witness's clock differs from this one");
    }
    Ok(())
}
