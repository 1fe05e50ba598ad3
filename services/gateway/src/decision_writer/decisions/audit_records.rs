//! Audit records: each takes the next position of its stream, and is signed.

use admission::record::RecordPosition;
use bytes::Bytes;
use evidence::RecordKind;
use vap::record_key::StreamKey;

use crate::decision_writer::clock::{due_after, timestamp};
use crate::decision_writer::error::WriterError;
use crate::decision_writer::record_signer::SignedRecord;
use crate::decision_writer::states::{StreamState, UnboundState};
use crate::decision_writer::transactions::{Batch, NewRecord};

/// A signed audit record, with its position in its stream.
pub struct SignedAuditRecord {
    /// The signed statement.
    pub signed: SignedRecord,
    /// The record's sequence number.
    pub seq: u64,
    /// The key of the stream's commitments.
    pub key: StreamKey,
}

/// Signs the next audit record of a stream; `encode` returns the record at this position.
///
/// # Errors
/// [`WriterError::Unrecordable`] if there is no such stream, [`WriterError::Unsigned`] if the key cannot sign.
pub fn sign_next(
    batch: &mut Batch<'_>,
    stream: &str,
    encode: impl FnOnce(&RecordPosition<'_>) -> Vec<u8>,
) -> Result<SignedAuditRecord, WriterError> {
    let (context, at) = (batch.context, timestamp(batch.now));
    let (key, seq) = next_position(batch, stream)?;
    let gateway = context.record_signer.issuer();
    let position = RecordPosition { gateway, stream, seq, at, key: &key };
    let signed = context.record_signer.audit_record(encode(&position), stream)?;
    Ok(SignedAuditRecord { signed, seq, key })
}

/// Appends the next audit record of a stream: one without a Verdict.
///
/// # Errors
/// As for [`sign_next`].
pub fn append_next(
    batch: &mut Batch<'_>,
    stream: &str,
    kind: RecordKind,
    annex: Bytes,
    encode: impl FnOnce(&RecordPosition<'_>) -> Vec<u8>,
) -> Result<(), WriterError> {
    let SignedAuditRecord { signed, .. } = sign_next(batch, stream, encode)?;
    batch.append(NewRecord { stream: stream.to_owned(), kind, signed, verdict: None, annex })
}

/// Returns a stream's commitment key and its next sequence number. The gateway's own stream and client streams begin with
/// their first record, and each record postpones the due time of a client stream.
fn next_position(batch: &mut Batch<'_>, stream: &str) -> Result<(StreamKey, u64), WriterError> {
    let is_own_stream = stream == batch.context.own_stream();
    let is_own_or_client_stream = stream.starts_with(&batch.context.first_own_stream);
    let due_at = match is_own_stream {
        true => batch.context.own_stream_due(batch.now / 1000),
        false => due_after(batch.now / 1000, batch.context.settings.session_idle),
    };
    let copy = batch.loaded(stream)?;
    if is_own_or_client_stream && copy.state().is_none() {
        copy.set_state(StreamState::Unbound(UnboundState::generate()?));
        copy.set_due(due_at);
    }
    if is_own_or_client_stream && !is_own_stream && !copy.is_closed() {
        copy.set_due(due_at);
    }
    let key = match copy.state() {
        Some(StreamState::Session(state)) => state.session.agreed.key().clone(),
        Some(StreamState::Unbound(unbound)) => unbound.key.clone(),
        _ => {
            return Err(WriterError::Unrecordable(format!("there is no stream {stream}")));
        }
    };
    Ok((key, copy.next_seq()))
}
