//! The audit trail of a session in clear: what was declared, why, what was decided and what came of it.
//!
//! A record on the log only commits to the texts of callers (V-40). The gateway's evidence has the texts, and the key of
//! each record. A [`Disclosure`] joins the record's statement, its key and the texts: anyone who has it can check each text
//! against the log, and nobody needs the gateway for that.
//!
//! Not here: whether the log has the statement (`verifier`), and who may read the evidence: it is a matter of the
//! database and of the files of the gateway.

mod disclosed_record;
mod disclosure;

use data_encoding::BASE64;
use evidence::{DeliveryState, StoredRecord};
use jose::json::JsonError;

pub use disclosed_record::{DisclosedRecord, DisclosedText, TextProof};
pub use disclosure::{Disclosure, DisclosureError};

use crate::annex::{DecisionAnnex, OutcomeAnnex};
use crate::config::Config;
use crate::decision_writer::states::StreamState;
use crate::evidence_store::EvidenceReader;
use crate::replay::{ReplayError, records};
use vap::record_key::StreamKey;

/// Reads the disclosures of all records of a session, in order.
///
/// # Errors
/// [`ReplayError`] if the evidence cannot be read or has no such session, or its key is no longer kept.
pub async fn disclosures(config: &Config, session: &str) -> Result<Vec<Disclosure>, ReplayError> {
    let records = records(config, session).await?;
    let key = stream_key(config, session).await?;
    records
        .iter()
        .map(|stored| disclosure(stored, &key).map_err(|error| unreadable(stored, &error)))
        .collect()
}

async fn stream_key(config: &Config, session: &str) -> Result<StreamKey, ReplayError> {
    let evidence = EvidenceReader::at(config).await?;
    let stored = evidence.streams(&[session]).await?.into_iter().flatten().next();
    evidence.close().await;
    let state = stored.map(|stream| StreamState::read(session, stream.agreed.as_ref(), &stream.running));
    match state.transpose() {
        Ok(Some(Some(StreamState::Session(state)))) => Ok(state.session.agreed.key().clone()),
        Ok(Some(Some(StreamState::Unbound(state)))) => Ok(state.key),
        _ => Err(ReplayError::NoKey(session.to_owned())),
    }
}

fn disclosure(stored: &StoredRecord, key: &StreamKey) -> Result<Disclosure, JsonError> {
    let texts = match stored.record.kind {
        evidence::RecordKind::Commitment
        | evidence::RecordKind::Amendment
        | evidence::RecordKind::Decision => DecisionAnnex::read(stored)?.committed(),
        evidence::RecordKind::Outcome => OutcomeAnnex::read(stored)?.committed(),
        _ => Default::default(),
    };
    let receipt = match &stored.delivery {
        DeliveryState::Delivered { receipt, .. } => receipt.as_ref().map(|receipt| BASE64.encode(receipt)),
        DeliveryState::Pending | DeliveryState::Stuck(_) => None,
    };
    Ok(Disclosure {
        statement: BASE64.encode(&stored.record.statement),
        receipt,
        key: key.record(stored.record.seq).to_text(),
        texts: texts.into_iter().map(|(member, text)| (member.to_owned(), text)).collect(),
    })
}

fn unreadable(stored: &StoredRecord, error: &JsonError) -> ReplayError {
    ReplayError::Record { seq: stored.record.seq, why: error.to_string() }
}
