//! Execution receipts registered by their hash, for public logs in which arguments could be guessed from their
//! hash.
//!
//! The log knows the receipt's gateway and not its contents. If `sub` is the `aer_id`, it is claimed as by the receipt
//! itself: a gateway cannot register a permit by its hash and a denial in clear under one identifier.
//! [`AerRecord::verify`](super::AerRecord::verify) checks a receipt that is disclosed on audit.

use roa::text::AerId;
use scitt::header::Header;
use serde_json::Value;

use crate::facts::Facts;
use crate::profile::ProfileRecord;

/// The properties of a receipt that its hash envelope shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AerRedacted {
    /// The receipt's identifier, if `sub` is not the session.
    pub aer_id: Option<String>,
}

impl AerRedacted {
    /// Parses a statement's protected header.
    pub(crate) fn read(header: &Header) -> AerRedacted {
        let sub = header.sub();
        AerRedacted { aer_id: sub.filter(|sub| sub.parse::<AerId>().is_ok()).map(str::to_owned) }
    }
}

impl ProfileRecord for AerRedacted {
    fn facts(&self, facts: &mut Facts) {
        facts.put("hash_envelope", Value::Bool(true));
        if let Some(aer_id) = &self.aer_id {
            facts.text("aer_id", aer_id);
        }
    }

    fn document(&self) -> Value {
        serde_json::json!({ "aer_id": self.aer_id, "redacted": true })
    }
}
