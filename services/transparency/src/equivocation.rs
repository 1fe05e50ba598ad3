//! Equivocation: an issuer that claims a place of a chain twice has signed the proof of it, and the proof is kept.
//!
//! One statement is an entry; the other was refused, and is nowhere if not here. A report never changes the answer: what
//! cannot be kept is told to the operator, and the refusal stands.
//!
//! Not here: what a chain is (`registration::vrf`), how many reports are kept of one place (`store`), and what
//! becomes of those who break their chain: whoever reads `/v1/equivocations` decides.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use registration::GuardKind;
use store::{GuardKey, LogStore, Report, StoreError};

use crate::metrics::Metrics;
use crate::watch::now;

/// A statement that was refused, and the claim by which.
pub struct Refused<'a> {
    /// Its digest.
    pub digest: EntryDigest,
    /// Its bytes.
    pub statement: &'a Bytes,
    /// What it claims.
    pub key: &'a GuardKey,
    /// The leaf that claims the same.
    pub held_by: LeafIndex,
}

/// Whether two claims of this key contradict each other.
pub fn is_proven_by(key: &GuardKey) -> bool {
    GuardKind::of_key(&key.0).is_some_and(GuardKind::is_of_a_chain)
}

/// Which entry holds the claim; keeps a report if that contradicts what was refused.
pub async fn look_into(
    store: &dyn LogStore,
    metrics: &Metrics,
    refused: &Refused<'_>,
) -> Option<EntryDigest> {
    if is_proven_by(refused.key) {
        metrics.equivocations.inc();
    }
    match look(store, refused).await {
        Ok(registered) => registered,
        Err(error) => {
            let Refused { digest, held_by, .. } = refused;
            tracing::error!(%error, refused = %digest, %held_by, "a report of equivocation was not kept");
            None
        }
    }
}

async fn look(store: &dyn LogStore, refused: &Refused<'_>) -> Result<Option<EntryDigest>, StoreError> {
    let Some(entry) = store.entry(refused.held_by).await? else { return Ok(None) };
    let registered = entry.digest;
    if is_proven_by(refused.key) {
        let report = Report {
            guard: refused.key.clone(),
            registered: (refused.held_by, registered),
            refused: refused.digest,
            // Beside an erased entry nothing is proven: the store keeps no statement that could not be erased any more.
            statement: Some(refused.statement.clone()),
            at: now(),
        };
        let kept = store.keep_report(&report).await?;
        tracing::warn!(%registered, refused = %refused.digest, kept, "an issuer contradicts an entry of its chain");
    }
    Ok(Some(registered))
}

/// Whether a report of a statement that was refused is kept already.
pub async fn is_reported(store: &dyn LogStore, refused: &Refused<'_>) -> Result<bool, StoreError> {
    if !is_proven_by(refused.key) {
        return Ok(false);
    }
    let kept = store.reports_about(&[refused.held_by]).await?;
    let same = |report: &Report| report.refused == refused.digest && report.guard == *refused.key;
    Ok(kept.iter().any(|kept| same(&kept.report)))
}

/// What the submitter of a statement out of the inbox is told.
pub fn told(key: &GuardKey, held_by: LeafIndex) -> String {
    let claim = format!("leaf {held_by} makes the same claim, and only one may");
    match GuardKind::of_key(&key.0) {
        Some(kind) => format!("{}: {claim}", kind.rule()),
        None => claim,
    }
}
