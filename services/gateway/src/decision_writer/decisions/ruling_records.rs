//! Records of rulings. The record is written and signed first: its digest is its address at the log, and the Verdict, which
//! is signed next, contains that address. Both become durable in the commit of the batch.

use admission::decide::{About, CallPermit, ClaimKind, Ruling, Stream, claimed_jti};
use admission::invocation::AiInvocation;
use admission::record;
use bytes::Bytes;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use evidence::{Claim, RecordKind};
use merkle::EntryDigest;
use serde_json::json;
use sha2::Digest as _;
use vap::digest::Digest;
use vap::message::UNBOUND;
use vap::message::slot::Received;
use vap::record_key::RecordKey;
use vap::verdict::Binding;

use super::audit_records::{SignedAuditRecord, sign_next};
use crate::annex::{DecisionAnnex, RecordedInputs, Reserved};
use crate::authority::{ReceiptReference, UsedEnvelope};
use crate::decision_writer::error::WriterError;
use crate::decision_writer::states::{STATES_STREAM, random};
use crate::decision_writer::transactions::{Batch, NewRecord};
use crate::limits::FOR_EVER;

/// A ruling whose record is in its stream, in force once the batch is committed.
pub struct RecordedRuling {
    /// The stream of the record.
    pub stream: String,
    /// The record's entry ID.
    pub id: EntryDigest,
    /// The signed Verdict.
    pub text: String,
    /// The location of the record.
    pub evidence: RecordReference,
    /// The execution receipt of the decision, if AgentROA was enforced.
    pub receipt: Option<ReceiptReference>,
}

/// The parts of a call's ruling that other rulings do not have.
#[derive(Default)]
pub struct CallRecordParts<'a> {
    /// The permit to forward the call.
    pub permit: Option<&'a CallPermit>,
    /// The amounts that the call reserved under its envelope.
    pub envelope: Option<&'a UsedEnvelope>,
    /// The stream of the client, for a record without a session.
    pub client_stream: Option<&'a str>,
    /// The statements of AgentROA about the decision.
    pub roa_statements: Vec<NewRecord>,
}

/// The location of a record, and the key that opens its commitments and no others (4.10).
#[derive(Clone, Debug)]
pub struct RecordReference {
    /// The URL of the record at the log.
    pub audit_ref: String,
    /// The record's entry ID.
    pub id: EntryDigest,
    /// The record's sequence number in its stream.
    pub seq: u64,
    /// The key of the record's commitments.
    pub key: RecordKey,
    /// The log's receipt, if one was waited for.
    pub receipt: Option<Bytes>,
}

impl RecordReference {
    /// Returns the JSON for the member `dev.tabellion/evidence` of an answer's `_meta`.
    pub fn to_json(&self) -> String {
        let mut evidence = json!({ "audit_ref": self.audit_ref, "seq": self.seq, "key": self.key.to_text() });
        if let Some(receipt) = &self.receipt {
            evidence["receipt"] = BASE64URL_NOPAD.encode(receipt).into();
        }
        evidence.to_string()
    }
}

/// Returns the claims that a Verdict's signature covers besides the Verdict (V-25). `now` is in milliseconds since the
/// Unix epoch.
///
/// # Errors
/// [`WriterError::Unsigned`] if the system provides no randomness.
pub fn binding(now: u64, req: Option<Digest>) -> Result<Binding, WriterError> {
    Ok(Binding { iat: now / 1000, jti: HEXLOWER.encode(&random::<16>()?), req })
}

/// Returns the stream for a ruling's record: the session's, unless it is closed, since no record follows a closing
/// record.
///
/// A record without a session goes into the stream of its client, once a call of that client was forwarded, or else
/// into the gateway's own.
fn stream_of(
    batch: &mut Batch<'_>,
    ruling: &Ruling,
    permit: Option<&CallPermit>,
    client_stream: Option<&str>,
) -> Result<String, WriterError> {
    if let Stream::Session(session_id) = &ruling.stream {
        let copy = batch.loaded(session_id)?;
        if !copy.is_closed() {
            return Ok(session_id.clone());
        }
    }
    if let Some(client) = client_stream {
        let copy = batch.loaded(client)?;
        if !copy.is_closed() && (permit.is_some() || copy.state().is_some()) {
            return Ok(client.to_owned());
        }
    }
    Ok(batch.context.own_stream())
}

/// Records a ruling in its stream, whose state must be the one after the ruling. The client's description of itself
/// (`invocation`) and the inputs of the decision go into the annex.
pub fn record_ruling(
    batch: &mut Batch<'_>,
    ruling: &mut Ruling,
    invocation: Option<&AiInvocation>,
    inputs: RecordedInputs,
) -> Result<RecordedRuling, WriterError> {
    record_call_ruling(batch, ruling, CallRecordParts::default(), invocation, inputs)
}

/// Records the ruling of a call, which stays open in its stream if there is a permit to forward it. All statements about
/// the decision are appended here, so that one commit has all of them or none.
pub fn record_call_ruling(
    batch: &mut Batch<'_>,
    ruling: &mut Ruling,
    parts: CallRecordParts<'_>,
    invocation: Option<&AiInvocation>,
    inputs: RecordedInputs,
) -> Result<RecordedRuling, WriterError> {
    let CallRecordParts { permit, envelope, client_stream, roa_statements } = parts;
    let stream = stream_of(batch, ruling, permit, client_stream)?;
    let reserved = Reserved {
        in_session: permit.and_then(CallPermit::reservation),
        under_envelope: envelope.filter(|held| !held.spending.is_known).cloned(),
    };
    let SignedRuling { record, recorded } = sign_ruling(batch, ruling, stream, reserved, invocation, inputs)?;
    for record in roa_statements.into_iter().chain([record]) {
        batch.append(record)?;
    }
    if permit.is_some() {
        batch.loaded(&recorded.stream)?.open_decision(recorded.id);
    }
    use_claims(batch, ruling, &recorded.stream)?;
    Ok(recorded)
}

/// A ruling whose record and Verdict are signed.
struct SignedRuling {
    /// The record, which is to be appended.
    record: NewRecord,
    recorded: RecordedRuling,
}

/// Signs the record of a ruling for this stream, and then the Verdict, which names the record.
fn sign_ruling(
    batch: &mut Batch<'_>,
    ruling: &mut Ruling,
    stream: String,
    reserved: Reserved,
    invocation: Option<&AiInvocation>,
    inputs: RecordedInputs,
) -> Result<SignedRuling, WriterError> {
    let context = batch.context;
    let binding = binding(batch.now, ruling.req.clone())?;
    let SignedAuditRecord { signed, seq, key } =
        sign_next(batch, &stream, |position| record::decided(position, ruling, Some(&binding), invocation))?;
    let (id, audit_ref) = (signed.id, context.record_signer.audit_ref(signed.id));
    ruling.verdict.audit_ref = Some(audit_ref.clone());
    let text = ruling.verdict.sign(&context.verdict, &binding)?;
    let kind = match ruling.about {
        About::Commitment => RecordKind::Commitment,
        About::Amendment => RecordKind::Amendment,
        About::Call => RecordKind::Decision,
    };
    let annex = DecisionAnnex::new(ruling, reserved, invocation, inputs).into_bytes(ruling);
    let verdict = Some(text.clone().into());
    let evidence = RecordReference { audit_ref, id, seq, key: key.record(seq), receipt: None };
    let recorded = RecordedRuling { stream: stream.clone(), id, text, evidence, receipt: None };
    Ok(SignedRuling { record: NewRecord { stream, kind, signed, verdict, annex }, recorded })
}

/// Returns a claim as the store keeps it: its key is the SHA-256 of `key`, so it always has 32 bytes.
pub fn claim(stream: &str, kind: evidence::ClaimKind, key: &str) -> Claim {
    let key = Bytes::copy_from_slice(&sha2::Sha256::digest(key.as_bytes()));
    Claim { stream: stream.to_owned(), kind, key }
}

/// Returns the claim on a message's `jti`, which is accepted once in its session (V-21).
pub fn message_id_claim(received: &Received) -> Option<Claim> {
    Some(claim(received.message.session_id(), evidence::ClaimKind::MessageId, &claimed_jti(received)?))
}

/// Returns the stream that holds the claims on state tokens: the session's, or the one that all instances share.
pub fn state_token_stream(session_id: Option<&str>) -> &str {
    session_id.unwrap_or(STATES_STREAM)
}

/// Uses up the claims of a ruling whose record is in this stream. A replay has a record too, but does not use its claims
/// again.
fn use_claims(batch: &mut Batch<'_>, ruling: &Ruling, stream: &str) -> Result<(), WriterError> {
    let session = Some(stream).filter(|stream| !stream.starts_with(UNBOUND));
    let mut claims = claims_of(ruling, session);
    claims.retain(|claim| !batch.is_used(claim));
    for claim in claims {
        let copy = batch.loaded(&claim.stream)?;
        if claim.stream == STATES_STREAM {
            copy.set_due(FOR_EVER);
        }
        copy.use_claim(claim);
    }
    Ok(())
}

/// Returns the claims that a ruling uses up. A `jti` counts within its session; outside a session there is nothing to
/// protect.
fn claims_of(ruling: &Ruling, session: Option<&str>) -> Vec<Claim> {
    let stored = ruling.claims.iter().filter_map(|used| match (used.kind, session) {
        (ClaimKind::Jti, Some(session)) => Some(claim(session, evidence::ClaimKind::MessageId, &used.key)),
        // The use of an approval is part of its question's state.
        (ClaimKind::Jti, None) | (ClaimKind::Approval, _) => None,
        (ClaimKind::State, session) => {
            Some(claim(state_token_stream(session), evidence::ClaimKind::Question, &used.key))
        }
    });
    stored.collect()
}
