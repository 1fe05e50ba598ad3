//! Records of rulings (section 7 of the design): the record is written and signed, which gives its reference at the
//! log, and then the Verdict is signed, which contains that reference.

use admission::decide::{About, ClaimKind, Ruling, Stream, claimed_jti};
use admission::invocation::AiInvocation;
use admission::message::UNBOUND;
use admission::message::slot::Received;
use admission::record::{self, Place, StreamKey};
use bytes::Bytes;
use evidence::{Claim, RecordKind};
use jiff::Timestamp;
use merkle::EntryDigest;
use serde_json::Value;
use sha2::Digest as _;

use crate::desk::annex::of_decision;
use crate::desk::error::DeskError;
use crate::desk::states::{STATES_STREAM, State, Unbound};
use crate::desk::told::{self, Evidence};
use crate::desk::writer::{Books, NewRecord};
use crate::limits::FOR_EVER;

/// A ruling that is written into its stream, in force once the batch is committed.
pub struct Written {
    /// The stream of the record.
    pub stream: String,
    /// The record's entry ID.
    pub id: EntryDigest,
    /// The signed Verdict.
    pub text: String,
    /// The location of the record.
    pub evidence: Evidence,
}

/// Converts milliseconds since the Unix epoch to a timestamp; a value out of range becomes the maximum.
pub fn timestamp(milliseconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}

/// Converts the time of a batch to the signed form that `DecisionInputs` stores.
pub fn milliseconds(now: u64) -> i64 {
    i64::try_from(now).unwrap_or(i64::MAX)
}

/// Returns the stream for a ruling's record: the session's, unless it is closed, since no record follows a closing
/// record.
///
/// A record without a session goes into the stream of its client, once a call of that client was forwarded, or else
/// into the gateway's own.
fn stream_of(books: &mut Books<'_>, ruling: &Ruling, client: Option<&str>) -> Result<String, DeskError> {
    if let Stream::Session(session_id) = &ruling.stream {
        let sheet = books.sheet(session_id).ok_or_else(|| not_open(session_id))?;
        if !sheet.is_closed() {
            return Ok(session_id.clone());
        }
    }
    if let Some(client) = client {
        let sheet = books.sheet(client).ok_or_else(|| not_open(client))?;
        if !sheet.is_closed() && (ruling.forward || sheet.state().is_some()) {
            return Ok(client.to_owned());
        }
    }
    Ok(books.house.unbound.clone())
}

/// Writes a ruling into its stream, whose state must be the one after the ruling. The client's description of itself
/// (`aside`) and the decision inputs (`beside`) go into the annex.
pub fn write(
    books: &mut Books<'_>,
    ruling: &mut Ruling,
    aside: Option<&AiInvocation>,
    beside: Value,
) -> Result<Written, DeskError> {
    write_for(books, ruling, aside, beside, None)
}

/// Like [`write()`]; a record without a session may go into the client stream `client`.
pub fn write_for(
    books: &mut Books<'_>,
    ruling: &mut Ruling,
    aside: Option<&AiInvocation>,
    beside: Value,
    client: Option<&str>,
) -> Result<Written, DeskError> {
    let (house, now) = (books.house, books.now);
    let stream = stream_of(books, ruling, client)?;
    let binding = told::binding(now, ruling.req.clone())?;
    let (signed, key, seq) = {
        let (place, seq) = place(books, &stream)?;
        let place =
            Place { at: timestamp(now), gateway: house.notary.issuer(), stream: &stream, seq, key: &place };
        let signed = house.notary.audit_record(record::decided(&place, ruling, Some(&binding)), &stream)?;
        (signed, place.record_key(), seq)
    };
    let audit_ref = house.notary.audit_ref(signed.id);
    ruling.verdict.audit_ref = Some(audit_ref.clone());
    let text = ruling.verdict.sign(&house.verdict, &binding)?;
    let annex = annex(ruling, aside, beside);
    let id = signed.id;
    let kind = match ruling.about {
        About::Commitment => RecordKind::Commitment,
        About::Amendment => RecordKind::Amendment,
        About::Call => RecordKind::Decision,
    };
    // A replay has a record too, but does not consume its claims again.
    let mut claims = claims(ruling, Some(stream.as_str()).filter(|stream| !stream.starts_with(UNBOUND)));
    claims.retain(|claim| !books.is_used(claim));
    let sheet = books.sheet(&stream).ok_or_else(|| not_open(&stream))?;
    sheet.record(&stream, now, NewRecord { kind, signed, verdict: Some(text.clone().into()), annex });
    if ruling.forward {
        sheet.open(id);
    }
    for claim in claims {
        let sheet = books.sheet(&claim.stream).ok_or_else(|| not_open(&claim.stream))?;
        if claim.stream == STATES_STREAM {
            sheet.keep(FOR_EVER);
        }
        sheet.claim(claim);
    }
    Ok(Written { id, text, evidence: Evidence { audit_ref, id, seq, key, receipt: None }, stream })
}

/// Returns a stream's commitment key and its next sequence number. The gateway's own streams begin with their first
/// record.
pub fn place(books: &mut Books<'_>, stream: &str) -> Result<(StreamKey, u64), DeskError> {
    let is_own = stream == books.house.unbound;
    let is_ours = stream.starts_with(&books.house.unbound);
    let due = match is_own {
        true => books.house.unbound_due(books.now / 1000),
        false => books.now / 1000 + books.house.settings.session_idle.as_secs(),
    };
    let sheet = books.sheet(stream).ok_or_else(|| not_open(stream))?;
    if is_ours && sheet.state().is_none() {
        sheet.put(State::Unbound(Unbound::generate()?), false);
        sheet.keep(due);
    }
    if is_ours && !is_own && !sheet.is_closed() {
        sheet.keep(due);
    }
    let key = match sheet.state() {
        Some(State::Session(state)) => state.session.agreed.key().clone(),
        Some(State::Unbound(unbound)) => unbound.key.clone(),
        _ => {
            return Err(DeskError::Unrecordable(format!("there is no stream {stream}")));
        }
    };
    Ok((key, sheet.next_seq()))
}

/// A claim as the store keeps it: the key is the SHA-256 of `key`, so it always has 32 bytes.
pub fn claim(stream: &str, kind: evidence::ClaimKind, key: &str) -> Claim {
    let key = Bytes::copy_from_slice(&sha2::Sha256::digest(key.as_bytes()));
    Claim { stream: stream.to_owned(), kind, key }
}

/// The claim on a message's `jti`, which is accepted once in its session (V-21).
pub fn jti_of(received: &Received) -> Option<Claim> {
    Some(claim(received.message.session_id(), evidence::ClaimKind::MessageId, &claimed_jti(received)?))
}

/// Returns the stream that holds the claims on state tokens: the session's, or the one that all instances share.
pub fn states_stream(session_id: Option<&str>) -> &str {
    session_id.unwrap_or(STATES_STREAM)
}

/// The claims that a ruling consumes. A `jti` counts within its session; outside a session there is nothing to protect.
fn claims(ruling: &Ruling, session: Option<&str>) -> Vec<Claim> {
    let kept = ruling.claims.iter().filter_map(|used| match (used.kind, session) {
        (ClaimKind::Jti, Some(session)) => Some(claim(session, evidence::ClaimKind::MessageId, &used.key)),
        // The consumption of an approval is part of its question's state.
        (ClaimKind::Jti, None) | (ClaimKind::Approval, _) => None,
        (ClaimKind::State, session) => {
            Some(claim(states_stream(session), evidence::ClaimKind::Question, &used.key))
        }
    });
    kept.collect()
}

fn annex(ruling: &Ruling, aside: Option<&AiInvocation>, beside: Value) -> Bytes {
    let mut annex = record::annex(ruling, aside);
    annex["reservation"] = ruling.reservation.map_or(Value::Null, |held| held.0.into());
    annex["tool"] = ruling.tool.clone().map_or(Value::Null, Value::from);
    annex["replay"] = beside;
    of_decision(ruling, annex)
}

fn not_open(stream: &str) -> DeskError {
    DeskError::Unrecordable(format!("the stream {stream} is not open"))
}
