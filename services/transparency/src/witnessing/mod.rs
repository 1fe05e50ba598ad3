//! Witnesses: the log sends them its heads, stores their cosignatures, and serves the newest head with a quorum of
//! them.
//!
//! * `rounds`: the choice and time of the head to send. All witnesses get the same head, because otherwise under load
//!   no two of them would ever cosign one size;
//! * `ask`: one exchange with one witness: the start of the proof, the meaning of the response, and contradictions to
//!   the database;
//! * `confirm`: the sequencer's question before this process leads;
//! * `served`: the checkpoint of `/checkpoint`, on every process.
//!
//! Only the leading process contacts the witnesses. Cosignatures are stored in the database, so that the followers
//! serve them and a restart resumes from there. C2SP tlog-witness, tlog-policy, tlog-cosignature.
//!
//! A witness that claims to have seen more than the database contains stops the sequencing, without a proof: the
//! operator chose this witness, a fork is permanent, and a false claim only costs a restart without the witness.
//!
//! Not here: the formats (`tlog`), HTTP (`client::witness`), the witness service itself (`services/witness`).

mod ask;
mod confirm;
mod rounds;
mod served;
mod witness;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use client::ClientError;
use merkle::{RootHash, TreeSize};
use sequencer::Halt;
use store::{CosignedLog, SignatureKind, StoreError};
use tlog::note::Note;
use tlog::policy::WitnessPolicy;
use tokio::sync::{Notify, watch};

pub use confirm::WitnessConfirmation;
pub use rounds::start;
pub use served::{ServedCheckpoint, WitnessState, WitnessStatuses, with_cosignatures};

use crate::config::WitnessConfig;
use crate::keys::recorded::sound;
use crate::limits::WITNESS_TILES_BYTES;
use crate::metrics::Metrics;
use crate::proofs::tiles::Tiles;
use ask::SubmittedHead;
use witness::HttpWitness;
pub use witness::WitnessContradiction;

/// The witnesses of a log, and the state of their cosignatures.
pub struct Witnessing {
    origin: String,
    settings: WitnessConfig,
    store: Arc<dyn CosignedLog>,
    tiles: Tiles,
    metrics: Arc<Metrics>,
    /// The witnesses with a URL.
    remote: Vec<Arc<HttpWitness>>,
    /// The head of the current round; `None` while this process does not lead.
    shown: watch::Sender<Option<Arc<SubmittedHead>>>,
    /// Set once by the first witness that has seen a tree which the database does not contain.
    contradiction: watch::Sender<Option<Halt>>,
    /// Notified when a cosignature is stored.
    news: Notify,
    served: ArcSwapOption<ServedCheckpoint>,
    statuses: ArcSwap<WitnessStatuses>,
}

impl Witnessing {
    /// Creates the state; contacts no witness yet.
    ///
    /// # Errors
    /// If a witness's URL cannot be used.
    pub fn new(
        origin: &str,
        settings: &WitnessConfig,
        store: Arc<dyn CosignedLog>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ClientError> {
        let of_policy = settings.policy.iter().flat_map(WitnessPolicy::witnesses);
        let remote = of_policy.filter_map(|witness| HttpWitness::new(witness).transpose());
        let remote = remote.map(|witness| witness.map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        remote.iter().for_each(|witness| metrics.witness.name(&witness.name));
        Ok(Self {
            origin: origin.to_owned(),
            settings: settings.clone(),
            tiles: Tiles::new(store.clone(), WITNESS_TILES_BYTES, metrics.clone()),
            store,
            metrics,
            remote,
            shown: watch::Sender::new(None),
            contradiction: watch::Sender::new(None),
            news: Notify::new(),
            served: ArcSwapOption::empty(),
            statuses: ArcSwap::default(),
        })
    }

    /// Returns `true` if no witness is configured.
    pub fn is_idle(&self) -> bool {
        self.settings.policy.as_ref().is_none_or(|policy| policy.witnesses().is_empty())
    }

    /// Returns `true` if a head is served only with a quorum of cosignatures.
    pub fn needs_quorum(&self) -> bool {
        self.quorum_name().is_some()
    }

    /// The witness policy, if one is configured.
    pub fn policy(&self) -> Option<&WitnessPolicy> {
        self.settings.policy.as_ref()
    }

    /// The name of the witness or group that is the quorum.
    pub fn quorum_name(&self) -> Option<&str> {
        self.settings.policy.as_ref().and_then(WitnessPolicy::quorum_name)
    }

    /// The interval at which an unchanged newest head is sent again.
    pub fn every(&self) -> std::time::Duration {
        self.settings.every
    }

    /// The trees that witnesses have seen and the database does not contain, since this process started.
    pub fn contradictions(&self) -> Vec<WitnessContradiction> {
        self.remote.iter().filter_map(|witness| witness.contradiction()).collect()
    }

    /// The newest head whose signed checkpoint is stored in the database. Only stored heads are sent. A client may have
    /// shown a witness a newer one, published a moment before its signature was stored: the database has at least its
    /// committed head, which is signed again after a restart.
    async fn newest(&self) -> Result<Option<SubmittedHead>, StoreError> {
        let Some(signed) = self.store.newest_signed(SignatureKind::Checkpoint).await? else {
            return Ok(None);
        };
        let signature = sound(&*self.store, signed.signature).await?;
        let note = Note::parse(&signature.bytes).map_err(|why| {
            StoreError::Damaged(format!("the checkpoint of size {}: {why}", signed.head.size))
        })?;
        Ok(Some(SubmittedHead { size: signed.head.size, root: signed.head.root, note }))
    }

    /// The contradiction between the committed heads and a tree that a witness has seen; `None` if there is none. Without
    /// a root only the size is compared: the next consistency proof to the witness shows whether the trees agree.
    async fn objection(
        &self,
        witness: &HttpWitness,
        seen: TreeSize,
        root: Option<RootHash>,
    ) -> Result<Option<Halt>, StoreError> {
        // Read before the head of that size, which another process may commit meanwhile.
        let committed = self.store.head().await?.size();
        let head = self.store.head_of_size(seen).await?;
        let witness = witness.name.clone();
        Ok(match head {
            Some(head) if root.is_none_or(|root| root == head.root) => None,
            None if seen > committed => {
                Some(Halt::WitnessAhead { witness, database: committed, signed: seen })
            }
            _ => Some(Halt::WitnessDisagrees { witness, size: seen }),
        })
    }

    /// Reports a contradiction: from here on nothing is signed.
    fn contradicted(&self, halt: Halt) {
        tracing::error!(%halt, "a witness contradicts the database");
        self.contradiction.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(halt);
            first
        });
    }
}
