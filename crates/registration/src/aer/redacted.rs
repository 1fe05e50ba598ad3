//! Execution receipts registered by their hash, for public logs in which arguments could be guessed from their
//! hash.
//!
//! The log knows the receipt's gateway and not its contents. If `sub` is the `aer_id`, it is claimed as by the receipt
//! itself: a gateway cannot register a permit by its hash and a denial in clear under one identifier.
//! [`AerRecord::verify`](super::AerRecord::verify) checks a receipt that is disclosed on audit.

use scitt::header::{HashEnvelope, Header};
use serde_json::Value;

use super::{is_aer, is_aer_id};
use crate::facts::Facts;
use crate::lookups::{LookupKind, Lookups};

/// The properties of a receipt that its hash envelope shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AerRedacted {
    /// The receipt's identifier, if `sub` is not the session.
    pub aer_id: Option<String>,
    /// The session of the receipt, when the statement is about that: the gateway's word until the receipt is shown.
    pub session: Option<String>,
}

impl AerRedacted {
    /// Returns whether a hash envelope is that of an execution receipt.
    pub(crate) fn is_meant(envelope: &HashEnvelope) -> bool {
        envelope.preimage_content_type.as_ref().and_then(|name| name.as_text()).is_some_and(is_aer)
    }

    /// Parses a statement's protected header.
    pub(crate) fn read(header: &Header) -> AerRedacted {
        match header.claims().and_then(|claims| claims.sub()).map(str::to_owned) {
            Some(sub) if is_aer_id(&sub) => AerRedacted { aer_id: Some(sub), session: None },
            session => AerRedacted { aer_id: None, session },
        }
    }

    /// Adds the facts of the statement.
    pub(crate) fn state(&self, facts: &mut Facts) {
        facts.put("hash_envelope", Value::Bool(true));
        if let Some(aer_id) = &self.aer_id {
            facts.text("aer_id", aer_id);
        }
    }

    /// Adds the search values of the statement.
    pub(crate) fn lookups(&self, found: &mut Lookups) {
        if let Some(aer_id) = &self.aer_id {
            found.add(LookupKind::AerId, aer_id);
        }
        if let Some(session) = &self.session {
            found.add(LookupKind::Session, session);
        }
    }

    /// The document that a policy's expressions evaluate.
    pub fn document(&self) -> Value {
        serde_json::json!({ "aer_id": self.aer_id, "redacted": true })
    }
}
