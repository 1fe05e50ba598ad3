//! Witnesses: the log shows them its heads, keeps what they sign, and serves the newest head that enough of them cosigned.
//!
//! * `rounds`: which head is shown, and when. All witnesses are shown the same one, or under load no two of them would ever
//!   have cosigned one size;
//! * `ask`: one exchange with one witness: from which size, what its answer means, and when it contradicts the database;
//! * `confirm`: what the sequencer asks before this process leads;
//! * `served`: the checkpoint that `/checkpoint` answers with, at every process.
//!
//! Only the process that leads asks. What it is told is kept in the database, so that the others serve it and a restart
//! goes on from there. C2SP tlog-witness, tlog-policy, tlog-cosignature.
//!
//! A witness that says it has seen more than the database holds stops the sequencing, without a proof: it was chosen by the
//! operator, a fork is for ever, and a wrong word costs a restart without it.
//!
//! Not here: the formats (`tlog`), HTTP (`client::witness`), being a witness (`services/witness`).

mod ask;
mod confirm;
mod metrics;
mod rounds;
mod served;
mod witness;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use client::ClientError;
use sequencer::Halt;
use store::{LogStore, SignatureKind, StoreError};
use tlog::note::Note;
use tlog::policy::Policy;
use tokio::sync::{Notify, watch};

pub use confirm::Word;
pub use metrics::WitnessMetrics;
pub use rounds::start;
pub use served::{OneWitness, Served, Standing, with_cosignatures};

use crate::config::Witnesses;
use crate::limits::WITNESS_TILES_BYTES;
use crate::meaning::sound;
use crate::metrics::Metrics;
use crate::tiles::Tiles;
use ask::Shown;
use witness::Witness;

/// The witnesses of a log, and what they have said.
pub struct Witnessing {
    origin: String,
    settings: Witnesses,
    store: Arc<dyn LogStore>,
    tiles: Tiles,
    metrics: Arc<Metrics>,
    /// Those that have a URL.
    asked: Vec<Arc<Witness>>,
    /// The head that they are shown now; `None` while this process does not lead.
    shown: watch::Sender<Option<Arc<Shown>>>,
    /// Set once and for ever by the first witness that has seen what the database does not hold.
    contradiction: watch::Sender<Option<Halt>>,
    /// A cosignature was kept.
    news: Notify,
    served: ArcSwapOption<Served>,
    standing: ArcSwap<Standing>,
}

impl Witnessing {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// If a witness's URL cannot be used.
    pub fn new(
        origin: &str,
        settings: &Witnesses,
        store: Arc<dyn LogStore>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ClientError> {
        let of_policy = settings.policy.iter().flat_map(Policy::witnesses);
        let asked = of_policy.filter_map(|witness| Witness::new(witness).transpose());
        let asked = asked.map(|witness| witness.map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        asked.iter().for_each(|witness| metrics.witness.name(&witness.name));
        Ok(Self {
            origin: origin.to_owned(),
            settings: settings.clone(),
            tiles: Tiles::new(store.clone(), WITNESS_TILES_BYTES, metrics.clone()),
            store,
            metrics,
            asked,
            shown: watch::Sender::new(None),
            contradiction: watch::Sender::new(None),
            news: Notify::new(),
            served: ArcSwapOption::empty(),
            standing: ArcSwap::default(),
        })
    }

    /// Whether any witness is configured.
    pub fn is_idle(&self) -> bool {
        self.settings.policy.as_ref().is_none_or(|policy| policy.witnesses().is_empty())
    }

    /// Whether a head is served only once enough witnesses have cosigned it.
    pub fn needs_quorum(&self) -> bool {
        self.quorum_name().is_some()
    }

    /// The name of the witness or group that must agree.
    pub fn quorum_name(&self) -> Option<&str> {
        self.settings.policy.as_ref().and_then(Policy::quorum_name)
    }

    /// How often a head that stays the newest is shown again.
    pub fn every(&self) -> std::time::Duration {
        self.settings.every
    }

    /// The newest head whose checkpoint is kept in the database. A head is shown only once it is: what a witness has
    /// seen is then never beyond a database that forgot nothing.
    async fn newest(&self) -> Result<Option<Shown>, StoreError> {
        let Some(signed) = self.store.newest_signed(SignatureKind::Checkpoint).await? else {
            return Ok(None);
        };
        let signature = sound(&*self.store, signed.signature).await?;
        let note = Note::parse(&signature.bytes).map_err(|why| {
            StoreError::Damaged(format!("the checkpoint of size {}: {why}", signed.head.size))
        })?;
        Ok(Some(Shown { size: signed.head.size, root: signed.head.root, note }))
    }

    /// From here on nothing is signed.
    fn contradicted(&self, halt: Halt) {
        tracing::error!(%halt, "a witness contradicts the database");
        self.contradiction.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(halt);
            first
        });
    }
}
