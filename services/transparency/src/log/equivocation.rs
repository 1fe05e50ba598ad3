//! Reports of equivocation: an issuer that claims a position of a chain twice has signed the proof of it, and the proof
//! is kept.
//!
//! One of the two statements is an entry; the other was refused, and is stored only in the report. A report never
//! changes the response: if it cannot be stored, that is logged for the operator, and the refusal stands.
//!
//! Not here: the definition of a chain (`registration::vrf`), the number of reports kept per position (`store`), and
//! sanctions, which are left to the readers of `/v1/equivocations`.

use bytes::Bytes;
use merkle::{EntryDigest, LeafIndex};
use registration::GuardKind;
use store::{AdmissionStore, GuardKey, Report, Reports, StoreError};

use crate::metrics::Metrics;
use crate::time::now;

/// A refused statement with the guard that refuses it.
pub struct RefusedStatement<'a> {
    /// Digest of the refused statement.
    pub digest: EntryDigest,
    /// Bytes of the refused statement.
    pub statement: &'a Bytes,
    /// The guard that the statement claims.
    pub key: &'a GuardKey,
    /// The leaf that has taken this guard.
    pub held_by: LeafIndex,
}

/// Returns `true` if a second claim of this guard proves equivocation: it is a position of a chain.
pub fn is_proven_by(key: &GuardKey) -> bool {
    GuardKind::of_key(&key.0).is_some_and(GuardKind::is_of_a_chain)
}

/// Returns the entry that has taken the guard, and keeps a report if the two claims prove equivocation.
pub async fn look_into(
    store: &dyn AdmissionStore,
    metrics: &Metrics,
    refused: &RefusedStatement<'_>,
) -> Option<EntryDigest> {
    if is_proven_by(refused.key) {
        metrics.equivocations.inc();
    }
    match look(store, refused).await {
        Ok(registered) => registered,
        Err(error) => {
            let RefusedStatement { digest, held_by, .. } = refused;
            tracing::error!(%error, refused = %digest, %held_by, "a report of equivocation was not kept");
            None
        }
    }
}

async fn look(
    store: &dyn AdmissionStore,
    refused: &RefusedStatement<'_>,
) -> Result<Option<EntryDigest>, StoreError> {
    let Some(entry) = store.entry(refused.held_by).await? else { return Ok(None) };
    let registered = entry.digest;
    if is_proven_by(refused.key) {
        let report = Report {
            guard: refused.key.clone(),
            registered: (refused.held_by, registered),
            refused: refused.digest,
            // Next to an erased entry nothing is proven: the store keeps no statement that could not be erased later.
            statement: Some(refused.statement.clone()),
            at: now(),
        };
        let kept = store.keep_report(&report).await?;
        tracing::warn!(%registered, refused = %refused.digest, kept, "an issuer contradicts an entry of its chain");
    }
    Ok(Some(registered))
}

/// Returns `true` if a report of this refused statement is kept already.
pub async fn is_reported(store: &dyn Reports, refused: &RefusedStatement<'_>) -> Result<bool, StoreError> {
    if !is_proven_by(refused.key) {
        return Ok(false);
    }
    let kept = store.reports_about(&[refused.held_by]).await?;
    let same = |report: &Report| report.refused == refused.digest && report.guard == *refused.key;
    Ok(kept.iter().any(|kept| same(&kept.report)))
}

/// The refusal's text for the submitter of a statement from the inbox.
pub fn explanation(key: &GuardKey, held_by: LeafIndex) -> String {
    let claim = format!("leaf {held_by} makes the same claim, and only one may");
    match GuardKind::of_key(&key.0) {
        Some(kind) => format!("{}: {claim}", kind.rule()),
        None => claim,
    }
}
