//! The served checkpoint: the newest signed head with a quorum of cosignatures.
//!
//! Every process reads it from the database, so that followers and restarts serve the same. Until a first head has met
//! the quorum no checkpoint is served; later heads without a quorum wait, and the last one with a quorum stays. If no
//! quorum is required, the newest signed head is served with all of its cosignatures.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use merkle::TreeSize;
use store::{Cosignature, CosignedLog, SignatureKind, StoreError};
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{Note, SignatureLine};
use tlog::policy::WitnessPolicy;
use tokio::time::{sleep, timeout};

use super::Witnessing;
use super::witness::{WitnessFailure, id_of};
use crate::keys::recorded::sound;
use crate::limits::{
    WITNESS_FRESH_ROUNDS, WITNESS_PAGE, WITNESS_POLL, WITNESS_RECALL, WITNESS_RETRY, WITNESS_SCAN,
};
use crate::time::now;

/// A checkpoint with cosignatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedCheckpoint {
    /// The checkpoint's size.
    pub size: TreeSize,
    /// The signed note.
    pub note: Bytes,
}

/// The state of all witnesses.
#[derive(Clone, Debug, Default)]
pub struct WitnessStatuses {
    /// `true` if a quorum of them has cosigned recently.
    pub met: bool,
    /// The witnesses in the order of the policy.
    pub witnesses: Vec<WitnessState>,
}

/// The state of one witness.
#[derive(Clone, Debug)]
pub struct WitnessState {
    /// The witness's name in the policy.
    pub name: String,
    /// The witness's verifier key, as text.
    pub key: String,
    /// The witness's URL, if it has one.
    pub url: Option<String>,
    /// The largest tree that the witness cosigned, and the time by its clock, in Unix seconds.
    pub cosigned: Option<(TreeSize, u64)>,
    /// `true` if that time is recent.
    pub fresh: bool,
    /// Result of this process's last exchange with the witness, if it failed.
    pub trouble: Option<WitnessFailure>,
}

impl Witnessing {
    /// The newest checkpoint with cosignatures; with a quorum of them if one is required.
    pub fn served(&self) -> Option<Arc<ServedCheckpoint>> {
        self.served.load_full()
    }

    /// The state of all witnesses.
    pub fn statuses(&self) -> Arc<WitnessStatuses> {
        self.statuses.load_full()
    }

    /// Seconds for which a cosignature counts as fresh.
    fn fresh_for(&self) -> u64 {
        (self.settings.every.as_secs() * WITNESS_FRESH_ROUNDS).max(1)
    }

    async fn look_up_statuses(&self, policy: &WitnessPolicy) -> Result<(), StoreError> {
        let mut witnesses = Vec::with_capacity(policy.witnesses().len());
        for witness in policy.witnesses() {
            let kept = self.store.newest_cosignature(&id_of(&witness.key)).await?;
            let asked = self.remote.iter().find(|asked| asked.name == witness.name);
            if let Some(kept) = &kept {
                self.metrics.witness.cosigned(&witness.name, kept.size.get(), kept.at);
            }
            witnesses.push(WitnessState {
                name: witness.name.clone(),
                key: witness.key.to_string(),
                url: witness.url.clone(),
                fresh: kept.as_ref().is_some_and(|kept| now().abs_diff(kept.at) <= self.fresh_for()),
                cosigned: kept.map(|kept| (kept.size, kept.at)),
                trouble: asked.and_then(|asked| asked.trouble()),
            });
        }
        self.show_statuses(policy, witnesses);
        Ok(())
    }

    fn show_statuses(&self, policy: &WitnessPolicy, witnesses: Vec<WitnessState>) {
        let fresh: HashSet<&str> =
            witnesses.iter().filter(|one| one.fresh).map(|one| one.name.as_str()).collect();
        let met = policy.is_met_by(&fresh);
        let before = self.statuses.load();
        if before.met != met && !before.witnesses.is_empty() {
            match met {
                true => tracing::info!(?fresh, "enough witnesses cosign again"),
                false => tracing::warn!(?fresh, "too few witnesses have cosigned lately"),
            }
        }
        self.metrics.witness.quorum_met.set(met.into());
        self.statuses.store(Arc::new(WitnessStatuses { met, witnesses }));
    }

    /// Reads the served checkpoint once at the start, among the last [`WITNESS_RECALL`] cosignatures, so that a
    /// restarted service serves it at once.
    pub async fn recall(&self) {
        let Some(policy) = &self.settings.policy else { return };
        if let Err(error) = self.look_up(policy, WITNESS_RECALL).await {
            tracing::warn!(%error, "cosigned checkpoints cannot be read yet");
        }
    }

    async fn look_up(&self, policy: &WitnessPolicy, rows: usize) -> Result<(), StoreError> {
        self.look_up_served(policy, rows).await?;
        self.look_up_statuses(policy).await
    }

    async fn look_up_served(&self, policy: &WitnessPolicy, rows: usize) -> Result<(), StoreError> {
        let found = match policy.quorum_name() {
            Some(_) => {
                let floor = self.served().map(|served| served.size);
                self.newest_that_meets(policy, floor, rows).await?
            }
            None => self.newest_signed().await?,
        };
        if let Some(found) = found {
            // Without a quorum the published head is the served one, and `background` sets the gauge.
            if self.needs_quorum() {
                self.metrics.witness.served_size.set(i64::try_from(found.size.get()).unwrap_or(i64::MAX));
            }
            self.served.store(Some(Arc::new(found)));
        }
        Ok(())
    }

    /// The newest head that meets the quorum, not below `floor`, among the last `rows` cosignatures. A head that was
    /// passed over gains no more cosignatures, because a witness signs in order of size.
    async fn newest_that_meets(
        &self,
        policy: &WitnessPolicy,
        floor: Option<TreeSize>,
        rows: usize,
    ) -> Result<Option<ServedCheckpoint>, StoreError> {
        let (mut below, mut read) = (None, 0);
        while read < rows {
            let page = self.store.cosigned(below, WITNESS_PAGE).await?;
            let Some(last) = page.last() else { return Ok(None) };
            (below, read) = (Some(last.size), read + page.len());
            for of_one in page.chunk_by(|one, other| one.size == other.size) {
                let size = of_one[0].size;
                if floor.is_some_and(|floor| size < floor) {
                    return Ok(None);
                }
                if !may_meet(policy, of_one) {
                    continue;
                }
                let note = match merged(&*self.store, size, of_one).await {
                    Err(StoreError::Damaged(why)) => {
                        tracing::error!(why, "a checkpoint that is kept is damaged, and not served");
                        continue;
                    }
                    read => read?.filter(|note| policy.judge(note).met),
                };
                if let Some(note) = note {
                    return Ok(Some(ServedCheckpoint { size, note: note.to_string().into() }));
                }
            }
        }
        Ok(None)
    }

    async fn newest_signed(&self) -> Result<Option<ServedCheckpoint>, StoreError> {
        let Some(newest) = self.newest().await? else { return Ok(None) };
        let note = with_cosignatures(&*self.store, newest.size).await?;
        Ok(note.map(|note| ServedCheckpoint { size: newest.size, note: note.to_string().into() }))
    }
}

/// Returns `true` if the quorum is met in case all these cosignatures verify. It avoids reading heads that cannot meet
/// the quorum.
fn may_meet(policy: &WitnessPolicy, kept: &[Cosignature]) -> bool {
    let signed = policy.witnesses().iter().filter(|witness| {
        let id = id_of(&witness.key);
        kept.iter().any(|kept| kept.witness == id)
    });
    policy.is_met_by(&signed.map(|witness| witness.name.as_str()).collect())
}

/// Reads the checkpoint again when a cosignature was stored here, and periodically for those that another process
/// stored.
pub async fn keep_up(witnessing: Arc<Witnessing>) {
    let Some(policy) = &witnessing.settings.policy else { return };
    // The first time through more rows; a head that is passed over then gains no more cosignatures.
    let mut rows = WITNESS_SCAN;
    loop {
        match witnessing.look_up(policy, rows).await {
            Ok(()) => {
                rows = WITNESS_PAGE;
                let _ = timeout(WITNESS_POLL, witnessing.news.notified()).await;
            }
            Err(error) => {
                tracing::warn!(%error, "cosigned checkpoints cannot be read");
                sleep(WITNESS_RETRY).await;
            }
        }
    }
}

/// The checkpoint of this size with all of its stored cosignatures; `None` if none was signed.
pub async fn with_cosignatures(store: &dyn CosignedLog, size: TreeSize) -> Result<Option<Note>, StoreError> {
    let cosignatures = store.cosignatures(size).await?;
    merged(store, size, &cosignatures).await
}

async fn merged(
    store: &dyn CosignedLog,
    size: TreeSize,
    cosignatures: &[Cosignature],
) -> Result<Option<Note>, StoreError> {
    let before = size.get().checked_sub(1).map(TreeSize::new);
    let signatures = store.signatures(before, 1).await?;
    let own = signatures.into_iter().rfind(|one| one.size == size && one.kind == SignatureKind::Checkpoint);
    let Some(own) = own else { return Ok(None) };
    let own = sound(store, own).await?;
    let mut note = Note::parse(&own.bytes)
        .map_err(|why| StoreError::Damaged(format!("the checkpoint of size {size}: {why}")))?;
    for kept in cosignatures {
        match line_of(kept, note.text()) {
            // Lines beyond the limit of a note are left out: the log's own line is the first.
            Some(line) => drop(note.add(line)),
            None => {
                tracing::error!(
                    size = size.get(),
                    at = kept.at,
                    "a cosignature that is kept does not verify, and is not served"
                )
            }
        }
    }
    Ok(Some(note))
}

/// A stored line, if it verifies under the witness's key: one invalid line would make the whole note invalid.
fn line_of(kept: &Cosignature, text: &str) -> Option<SignatureLine> {
    let key: VerifierKey = std::str::from_utf8(&kept.witness).ok()?.parse().ok()?;
    let line: SignatureLine = std::str::from_utf8(&kept.line).ok()?.parse().ok()?;
    let alone = Note::from_parts(text, vec![line.clone()]).ok()?;
    cosignature::verified(&alone, &key).map(|_| line)
}
