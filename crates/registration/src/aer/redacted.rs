//! A receipt registered by its hash: for a log that anyone may read, when arguments could be guessed from their hash.
//!
//! The log sees whose receipt it is and nothing in it. Where `sub` is the `aer_id`, that is used up as by the receipt
//! itself: a gateway cannot register a permit by its hash and a denial in clear under one name. What is disclosed on
//! audit is checked by [`AerRecord::verify`](super::AerRecord::verify).

use scitt::header::{HashEnvelope, Header};
use serde_json::Value;

use super::{is_aer, is_aer_id};
use crate::facts::Facts;
use crate::lookups::{LookupKind, Lookups};

/// What can be said of a receipt by its hash alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AerRedacted {
    /// Which receipt it is, when the statement is about the receipt and not about its session.
    pub aer_id: Option<String>,
}

impl AerRedacted {
    /// Whether a statement is the hash of an execution receipt.
    pub(crate) fn is_meant(envelope: &HashEnvelope) -> bool {
        envelope.preimage_content_type.as_ref().and_then(|name| name.as_text()).is_some_and(is_aer)
    }

    /// Reads a statement's protected header.
    pub(crate) fn read(header: &Header) -> AerRedacted {
        let sub = header.claims().and_then(|claims| claims.sub());
        AerRedacted { aer_id: sub.filter(|sub| is_aer_id(sub)).map(str::to_owned) }
    }

    /// What an entry says of it.
    pub(crate) fn state(&self, facts: &mut Facts) {
        facts.put("hash_envelope", Value::Bool(true));
        if let Some(aer_id) = &self.aer_id {
            facts.text("aer_id", aer_id);
        }
    }

    /// Under which values it is found.
    pub(crate) fn lookups(&self, found: &mut Lookups) {
        if let Some(aer_id) = &self.aer_id {
            found.add(LookupKind::AerId, aer_id);
        }
    }

    /// What a policy's expressions can ask.
    pub fn document(&self) -> Value {
        serde_json::json!({ "aer_id": self.aer_id, "redacted": true })
    }
}
