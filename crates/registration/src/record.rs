//! What an authenticated statement says, as far as its content type lets us understand it.

use scitt::header::{ContentType, HashEnvelope, Header};

use crate::authenticate::Authenticated;
use crate::facts::Facts;
use crate::policy::{Policy, is_policy};
use crate::violation::{Place, RuleName, Violation};
use crate::vrf::{Chain, Form, VrfRecord};

/// A statement's content. The content type decides which; no policy can make a VRF receipt opaque.
#[derive(Clone, Debug)]
pub enum Record {
    /// A registration policy.
    Policy(Policy),
    /// A verification receipt.
    Vrf(Box<VrfRecord>),
    /// The hash of something that is not here (RFC 9995).
    HashEnvelope,
    /// Bytes.
    Opaque,
}

impl Record {
    /// Reads the payload as its content type asks. A rule broken here refuses the statement under any policy.
    pub fn read(statement: &Authenticated<'_>) -> Result<Record, Violation> {
        let header = statement.header();
        if let Some(envelope) = header.hash_envelope() {
            return check_hash_algorithm(envelope).map(|()| Record::HashEnvelope);
        }
        let Some(name) = header.content_type().and_then(ContentType::as_text) else {
            return Ok(Record::Opaque);
        };
        if is_policy(name) {
            return read_policy(statement.payload());
        }
        match Form::of_content_type(name) {
            Some(form) => {
                VrfRecord::read(form, header, statement.payload()).map(|record| Record::Vrf(Box::new(record)))
            }
            None => Ok(Record::Opaque),
        }
    }

    pub(crate) fn state(&self, facts: &mut Facts) {
        match self {
            Record::Policy(policy) => facts.put("revision", policy.contents().revision.into()),
            Record::Vrf(record) => vrf_facts(record, facts),
            Record::HashEnvelope => facts.put("hash_envelope", true.into()),
            Record::Opaque => {}
        }
    }
}

/// The content type, or that of what was hashed.
pub(crate) fn content_type(header: &Header) -> Option<&ContentType> {
    match header.hash_envelope() {
        Some(envelope) => envelope.preimage_content_type.as_ref(),
        None => header.content_type(),
    }
}

/// SHA-256, SHA-384 and SHA-512: the digests whose length was checked and whose strength is not in doubt.
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
        detail: mistakes.to_string(),
    })
}

fn vrf_facts(record: &VrfRecord, facts: &mut Facts) {
    let receipt = &record.receipt;
    facts.text("receipt_id", &receipt.receipt_id);
    facts.text("verdict", receipt.verdict.as_str());
    facts.put("structural", receipt.structural.into());
    facts.put("tier", receipt.tier.into());
    facts.put("verified_at", receipt.verified_at.unix_seconds.into());
    facts.text("output_hash", &receipt.output);
    for (name, text) in [("task_id", &receipt.task_id), ("task_type", &receipt.task_type)] {
        if let Some(text) = text {
            facts.text(name, text);
        }
    }
    let position = match record.chain {
        Chain::Unchained => return,
        Chain::Genesis => 0,
        Chain::Link { position, previous } => {
            facts.text("previous", &previous.to_string());
            position
        }
    };
    facts.put("chain_position", position.into());
}
