//! Typed records: the payload of an authenticated statement, parsed as its content type requires.

use data_encoding::HEXLOWER;
use scitt::header::{ContentType, HashEnvelope, Header};
use sha2::{Digest, Sha256};

use crate::aer::{AerRecord, AerRedacted, is_aer};
use crate::authenticate::Authenticated;
use crate::clock_correction::{ClockCorrection, is_clock_correction};
use crate::conversation::{self, AGENT_CONVERSATION, ConversationRecord};
use crate::erasure::{Erasure, is_erasure};
use crate::facts::Facts;
use crate::jwk_set::{JWK_SET, JwkSetRecord};
use crate::lookups::{Lookup, LookupKind, Lookups};
use crate::operator::{Action, Approval, OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE};
use crate::policy::{Policy, essence, is_policy, spell};
use crate::vap::{AuditRecord, VAP_AUDIT, VAP_VERDICT, VerdictRecord};
use crate::violation::{Place, RuleName, Violation};
use crate::vrf::{Form, VrfRecord, VrfRedacted};

/// The content of a statement. The content type alone selects the variant: no policy can make a VRF receipt opaque.
#[derive(Clone, Debug)]
pub enum Record {
    /// A registration policy (`POLICY_CONTENT_TYPE`).
    Policy(Policy),
    /// An erasure of entries' bytes ([`ERASURE_CONTENT_TYPE`](crate::ERASURE_CONTENT_TYPE)).
    Erasure(Box<Erasure>),
    /// A correction of the log's time ([`CLOCK_CORRECTION_CONTENT_TYPE`](crate::CLOCK_CORRECTION_CONTENT_TYPE)).
    ClockCorrection(Box<ClockCorrection>),
    /// A freeze, hold or release ([`OPERATOR_ACTION_CONTENT_TYPE`]).
    OperatorAction(Box<Action>),
    /// An operator's approval of a statement to be registered later ([`OPERATOR_APPROVAL_CONTENT_TYPE`]).
    OperatorApproval(Box<Approval>),
    /// A verification receipt (VRF).
    Vrf(Box<VrfRecord>),
    /// A verification receipt registered by its hash.
    VrfRedacted(Box<VrfRedacted>),
    /// An AgentROA execution receipt.
    Aer(Box<AerRecord>),
    /// An execution receipt registered by its hash.
    AerRedacted(AerRedacted),
    /// A wire Verdict of VAP.
    VapVerdict(Box<VerdictRecord>),
    /// An audit record of a VAP gateway.
    VapAudit(Box<AuditRecord>),
    /// A JWK Set of public keys ([`JWK_SET`]).
    JwkSet(Box<JwkSetRecord>),
    /// A record of an agent's conversation ([`AGENT_CONVERSATION`]).
    Conversation(Box<ConversationRecord>),
    /// A hash envelope (RFC 9995) around any other content.
    HashEnvelope,
    /// A payload that is not parsed.
    Opaque,
}

impl Record {
    /// Parses the payload as its content type requires. A violation refuses the statement under any policy.
    pub fn read(statement: &Authenticated<'_>) -> Result<Record, Violation> {
        Record::of(statement.header(), statement.payload())
    }

    /// Parses a payload without an authenticated issuer: for search and display, never for a decision.
    pub fn of(header: &Header, payload: &[u8]) -> Result<Record, Violation> {
        if let Some(envelope) = header.hash_envelope() {
            if VrfRedacted::is_meant(envelope) {
                let redacted = VrfRedacted::read(header, payload)?;
                return Ok(Record::VrfRedacted(Box::new(redacted)));
            }
            check_hash_algorithm(envelope)?;
            return Ok(match AerRedacted::is_meant(envelope) {
                true => Record::AerRedacted(AerRedacted::read(header)),
                false => Record::HashEnvelope,
            });
        }
        let Some(name) = header.content_type().and_then(ContentType::as_text) else {
            return Ok(Record::Opaque);
        };
        if is_erasure(name) {
            return Erasure::from_payload(payload).map(|erasure| Record::Erasure(Box::new(erasure)));
        }
        if is_clock_correction(name) {
            let correction = ClockCorrection::from_payload(payload)?;
            return Ok(Record::ClockCorrection(Box::new(correction)));
        }
        if is_policy(name) {
            return read_policy(payload);
        }
        if is_aer(name) {
            return AerRecord::read(header, payload).map(|record| Record::Aer(Box::new(record)));
        }
        match essence(name).as_str() {
            VAP_VERDICT => {
                return VerdictRecord::read(payload).map(|record| Record::VapVerdict(Box::new(record)));
            }
            VAP_AUDIT => return AuditRecord::read(payload).map(|record| Record::VapAudit(Box::new(record))),
            AGENT_CONVERSATION => {
                let record = ConversationRecord::read(header, payload)?;
                return Ok(Record::Conversation(Box::new(record)));
            }
            OPERATOR_ACTION_CONTENT_TYPE => {
                return Action::from_payload(payload).map(|action| Record::OperatorAction(Box::new(action)));
            }
            OPERATOR_APPROVAL_CONTENT_TYPE => {
                let approval = Approval::from_payload(payload)?;
                return Ok(Record::OperatorApproval(Box::new(approval)));
            }
            JWK_SET => return JwkSetRecord::read(payload).map(|record| Record::JwkSet(Box::new(record))),
            _ => {}
        }
        match Form::of_content_type(name) {
            Some(form) => VrfRecord::read(form, header, payload).map(|record| Record::Vrf(Box::new(record))),
            None => Ok(Record::Opaque),
        }
    }

    /// Parses plain JSON as a conversation record, because a policy may have admitted it as one.
    fn record_in_json(&self, header: &Header, payload: Option<&[u8]>) -> Option<ConversationRecord> {
        let name = header.content_type().and_then(ContentType::as_text)?;
        let plain = matches!(self, Record::Opaque) && essence(name) == conversation::JSON;
        plain.then(|| ConversationRecord::read(header, payload?).ok()).flatten()
    }

    /// Returns the search values of the statement.
    pub fn lookups(&self, header: &Header, payload: Option<&[u8]>) -> Vec<Lookup> {
        let mut found = Lookups::default();
        let claims = header.claims();
        if let Some(iss) = claims.and_then(|claims| claims.iss()) {
            found.add(LookupKind::Issuer, iss);
        }
        if let Some(sub) = claims.and_then(|claims| claims.sub()) {
            found.add(LookupKind::Subject, sub);
            // The subject of a verification receipt is the agent whose work was verified.
            if matches!(self, Record::Vrf(_) | Record::VrfRedacted(_)) {
                found.add(LookupKind::Agent, sub);
            }
        }
        if let Some(kid) = header.kid() {
            found.add(LookupKind::Key, HEXLOWER.encode(kid));
        }
        if let Some(content_type) = content_type(header) {
            found.add(LookupKind::ContentType, spell(content_type));
        }
        if let Some(digest) = payload_digest(header, payload) {
            found.add(LookupKind::PayloadDigest, &digest);
            found.add(LookupKind::Digest, &digest);
        }
        match self {
            Record::Vrf(record) => record.lookups(&mut found),
            Record::VrfRedacted(record) => record.lookups(&mut found),
            Record::VapVerdict(record) => record.lookups(&mut found),
            Record::Erasure(erasure) => erasure.lookups(&mut found),
            Record::OperatorAction(action) => action.lookups(&mut found),
            Record::OperatorApproval(approval) => approval.lookups(&mut found),
            Record::VapAudit(record) => record.lookups(&mut found),
            Record::JwkSet(record) => record.lookups(&mut found),
            Record::Aer(record) => record.lookups(&mut found),
            Record::AerRedacted(record) => record.lookups(&mut found),
            Record::Conversation(record) => record.lookups(payload, &mut found),
            Record::Opaque => {
                if let Some(record) = self.record_in_json(header, payload) {
                    record.lookups(payload, &mut found);
                }
            }
            Record::Policy(_) | Record::ClockCorrection(_) | Record::HashEnvelope => {}
        }
        found.into_vec()
    }

    /// Returns the typed record as the document that a policy's expressions evaluate; null if the record has no typed
    /// form.
    pub fn document(&self) -> serde_json::Value {
        match self {
            Record::Vrf(record) => record.document(),
            Record::VrfRedacted(record) => record.document(),
            Record::VapVerdict(record) => record.document(),
            Record::VapAudit(record) => record.document(),
            Record::JwkSet(record) => record.document(),
            Record::Aer(record) => record.document(),
            Record::AerRedacted(record) => record.document(),
            Record::Conversation(record) => record.document(),
            Record::Policy(_)
            | Record::Erasure(_)
            | Record::ClockCorrection(_)
            | Record::OperatorAction(_)
            | Record::OperatorApproval(_)
            | Record::HashEnvelope
            | Record::Opaque => serde_json::Value::Null,
        }
    }

    pub(crate) fn state(&self, facts: &mut Facts) {
        match self {
            Record::Policy(policy) => facts.put("revision", policy.contents().revision.into()),
            Record::Vrf(record) => record.state(facts),
            Record::VrfRedacted(record) => record.state(facts),
            Record::VapVerdict(record) => record.state(facts),
            Record::Erasure(erasure) => erasure.state(facts),
            Record::ClockCorrection(correction) => correction.state(facts),
            Record::OperatorAction(action) => action.state(facts),
            Record::OperatorApproval(approval) => approval.state(facts),
            Record::VapAudit(record) => record.state(facts),
            Record::JwkSet(record) => record.state(facts),
            Record::Aer(record) => record.state(facts),
            Record::AerRedacted(record) => record.state(facts),
            Record::Conversation(record) => record.state(facts),
            Record::HashEnvelope => facts.put("hash_envelope", true.into()),
            Record::Opaque => {}
        }
    }
}

/// Returns the content type, or the preimage content type of a hash envelope.
pub(crate) fn content_type(header: &Header) -> Option<&ContentType> {
    match header.hash_envelope() {
        Some(envelope) => envelope.preimage_content_type.as_ref(),
        None => header.content_type(),
    }
}

/// Returns `sha256:` and the digest of the payload, or of the preimage of a hash envelope with SHA-256; `None` for
/// other hash algorithms.
fn payload_digest(header: &Header, payload: Option<&[u8]>) -> Option<String> {
    let payload = payload?;
    let hex = match header.hash_envelope() {
        Some(envelope) if envelope.algorithm == -16 => HEXLOWER.encode(payload),
        Some(_) => return None,
        None => HEXLOWER.encode(&Sha256::digest(payload)),
    };
    Some(format!("sha256:{hex}"))
}

/// Admits SHA-256, SHA-384 and SHA-512, whose digest lengths are checked and whose strength is undisputed.
fn check_hash_algorithm(envelope: &HashEnvelope) -> Result<(), Violation> {
    match envelope.algorithm {
        -16 | -43 | -44 => Ok(()),
        other => Err(Violation {
            rule: RuleName::fixed("hash-envelope-algorithm"),
            place: Place::protected("258"),
            detail: format!(
                "hash algorithm {other} is not one of SHA-256 (-16), SHA-384 (-43), SHA-512 (-44)"
            ),
        }),
    }
}

fn read_policy(payload: &[u8]) -> Result<Record, Violation> {
    Policy::from_payload(payload).map(Record::Policy).map_err(|mistakes| Violation {
        rule: RuleName::fixed("policy-payload"),
        place: Place::payload(""),
        detail: mistakes.brief(),
    })
}
