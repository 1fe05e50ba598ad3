//! One exchange with one witness.
//!
//! The proof starts at the size that the witness is believed to have seen; if that is wrong it says so (409), and is asked
//! again from there. What it answers is kept only if it verifies with the witness's key; lines of others are passed over.
//!
//! A witness contradicts the database if it has seen a larger tree than the newest one signed there, or another tree. The
//! newest is read again before that is said: another process may lead by now.

use std::sync::Arc;
use std::time::Duration;

use client::witness::AddError;
use merkle::{RootHash, TreeSize, verify};
use sequencer::{Clock, Halt, Now, SystemClock};
use store::{Cosignature, StoreError};
use thiserror::Error;
use tlog::checkpoint::Origin;
use tlog::cosignature;
use tlog::note::{Note, SignatureLine};
use tlog::witness::AddCheckpoint;

use super::Witnessing;
use super::witness::Witness;
use crate::limits::WITNESS_CLOCK_TOLERANCE;
use crate::tiles::ProofError;
use crate::watch::now;

/// How often the size is corrected in one exchange.
const CORRECTIONS: usize = 2;

/// A head as witnesses are shown it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its size.
    pub size: TreeSize,
    /// Its root.
    pub root: RootHash,
    /// The checkpoint, signed by the log alone.
    pub note: Note,
}

/// Why a witness did not cosign.
#[derive(Debug, Error)]
pub enum Trouble {
    /// It said so, or could not be asked.
    #[error(transparent)]
    Asked(#[from] AddError),
    /// What came back is not signed by its key.
    #[error("its answer has no cosignature of its key over this checkpoint")]
    NotSigned,
    /// A newer one would never replace it: what is kept would count as fresh until then.
    #[error("its clock is {0} s ahead of ours")]
    Clock(u64),
    /// Another process has shown it a newer head meanwhile.
    #[error("it has been shown a larger tree meanwhile")]
    Overtaken,
    /// It has seen what the database does not hold.
    #[error("{0}")]
    Contradicted(Halt),
    /// It finds the proof wrong, and so do we.
    #[error("the stored tree does not prove that it has grown from size {0}: see fsck")]
    Damaged(TreeSize),
    /// The proof could not be made.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Trouble {
    /// One word for it, for metrics.
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

    /// How long the witness wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Asked(AddError::Busy { retry_after, .. }) => *retry_after,
            _ => None,
        }
    }
}

impl Witnessing {
    /// Shows a witness a head, and keeps its cosignature.
    pub(super) async fn ask(&self, witness: &Arc<Witness>, head: &Shown) -> Result<Cosignature, Trouble> {
        let (lines, asked) = self.submit(witness, head).await?;
        let answered = SystemClock.now();
        let cosignature = verified(witness, head, lines).ok_or(Trouble::NotSigned)?;
        witness.has_signed_at(cosignature.at, asked, answered);
        witness.has_seen(head.size);
        judge_clock(witness, cosignature.at)?;
        self.store.keep_cosignature(&cosignature).await?;
        self.news.notify_one();
        Ok(cosignature)
    }

    /// Finds the size from which the witness wants the proof. Answers with the time of the request that it granted.
    async fn submit(
        &self,
        witness: &Arc<Witness>,
        head: &Shown,
    ) -> Result<(Vec<SignatureLine>, Now), Trouble> {
        let mut old = self.believed_seen(witness).await?.min(head.size);
        for _ in 0..=CORRECTIONS {
            let request = self.request(old, head).await?;
            let asked = SystemClock.now();
            match witness.client.add_checkpoint(&request).await {
                Ok(lines) => return Ok((lines, asked)),
                // The first version of the protocol has no other way to say that it knows another root of this size.
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

    async fn believed_seen(&self, witness: &Witness) -> Result<TreeSize, StoreError> {
        match witness.seen() {
            Some(size) => Ok(size),
            None => {
                let kept = self.store.newest_cosignature(&witness.id()).await?;
                Ok(kept.map_or(TreeSize::EMPTY, |kept| kept.size))
            }
        }
    }

    async fn request(&self, old: TreeSize, head: &Shown) -> Result<AddCheckpoint, Trouble> {
        let proof = match old == TreeSize::EMPTY || old == head.size {
            true => Vec::new(),
            false => self.tiles.consistency(old, head.size).await?,
        };
        Ok(AddCheckpoint { old, proof, checkpoint: head.note.clone() })
    }

    /// The witness has seen a larger tree than the one it is shown.
    async fn beyond(&self, witness: &Arc<Witness>, seen: TreeSize) -> Result<Trouble, Trouble> {
        let newest = self.newest().await?.map_or(TreeSize::EMPTY, |newest| newest.size);
        if seen <= newest {
            witness.has_seen(seen);
            return Ok(Trouble::Overtaken);
        }
        let halt = Halt::WitnessAhead { witness: witness.name.clone(), database: newest, signed: seen };
        Ok(self.contradicts(witness, halt))
    }

    /// The witness finds that the head does not extend what it has seen. Either it has seen another tree, or the proof is
    /// wrong: that can be told here.
    async fn unproven(
        &self,
        witness: &Arc<Witness>,
        head: &Shown,
        request: &AddCheckpoint,
        why: String,
    ) -> Result<Trouble, Trouble> {
        let old = request.old;
        if old == TreeSize::EMPTY {
            return Ok(AddError::Unproven(why).into());
        }
        if old < head.size {
            let root = self.store.head_of_size(old).await?.map(|then| then.root);
            let holds = |root| verify::consistency(old, head.size, root, head.root, &request.proof).is_ok();
            if root.is_some_and(|root| !holds(root)) {
                return Ok(Trouble::Damaged(old));
            }
        }
        Ok(self.disagrees(witness, old))
    }

    fn disagrees(&self, witness: &Arc<Witness>, size: TreeSize) -> Trouble {
        let halt = Halt::WitnessDisagrees { witness: witness.name.clone(), size };
        self.contradicts(witness, halt)
    }

    /// Stops the signing first: what the witness shows is fetched beside, however long that takes.
    fn contradicts(&self, witness: &Arc<Witness>, halt: Halt) -> Trouble {
        self.contradicted(halt.clone());
        if let Ok(origin) = self.origin.parse() {
            tokio::spawn(tell_what_it_shows(witness.clone(), origin));
        }
        Trouble::Contradicted(halt)
    }
}

/// Its checkpoint is what a person needs to see; with the log's signature on it, it is the proof.
async fn tell_what_it_shows(witness: Arc<Witness>, origin: Origin) {
    match witness.client.latest(&origin).await {
        Ok(Some(note)) => {
            tracing::error!(witness = witness.name, checkpoint = %note, "this is what the witness shows");
        }
        Ok(None) => tracing::warn!(witness = witness.name, "the witness shows no checkpoint of this log"),
        Err(error) => tracing::warn!(witness = witness.name, %error, "the witness shows no checkpoint"),
    }
}

/// The newest line that this witness signed.
fn verified(witness: &Witness, head: &Shown, lines: Vec<SignatureLine>) -> Option<Cosignature> {
    let own: Vec<SignatureLine> = lines.into_iter().filter(|line| line.is_by(&witness.key)).collect();
    let note = Note::from_parts(head.note.text(), own).ok()?;
    let at = cosignature::verified(&note, &witness.key)?;
    let line = note.signatures().iter().find(|line| cosignature::time_of(line) == Some(at))?;
    let line = line.to_string().into_bytes().into();
    Some(Cosignature { size: head.size, witness: witness.id(), at, line })
}

/// Monitors tell freshness by the witness's clock.
fn judge_clock(witness: &Witness, at: u64) -> Result<(), Trouble> {
    let (here, tolerance) = (now(), WITNESS_CLOCK_TOLERANCE.as_secs());
    if at > here.saturating_add(tolerance) {
        return Err(Trouble::Clock(at - here));
    }
    if here.abs_diff(at) > tolerance {
        tracing::warn!(witness = witness.name, there = at, here, "the witness's clock is not this one's");
    }
    Ok(())
}
