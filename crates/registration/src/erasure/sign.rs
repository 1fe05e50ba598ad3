//! Creation and signature of erasure statements.

use merkle::EntryDigest;
use scitt::{SignedStatement, Signer};
use serde_json::{Map, Value, json};

use super::{ERASURE_CONTENT_TYPE, Erasure};
use crate::bound_key::BoundKey;
use crate::operator_signature::{SignError, sign_as_operator};

/// The contents of a new erasure statement. `entries` may be in any order.
#[derive(Clone, Debug)]
pub struct NewErasure {
    /// The number that follows that of the newest erasure.
    pub sequence: u64,
    /// The entries to erase.
    pub entries: Vec<EntryDigest>,
    /// The reason as text.
    pub reason: String,
    /// The reason as a code; see [`Erasure::rule`](super::Erasure::rule).
    pub rule: String,
    /// The time of the request, if stated.
    pub at: Option<String>,
    /// The person who decided, if stated.
    pub authorized_by: Option<String>,
}

impl NewErasure {
    /// Serializes the erasure as canonical JSON (RFC 8785), with sorted and deduplicated entries.
    pub fn payload(&self) -> Vec<u8> {
        let mut entries = self.entries.clone();
        entries.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        entries.dedup();
        let entries: Vec<String> = entries.iter().map(EntryDigest::to_string).collect();
        let mut document = Map::from_iter([
            ("sequence".to_owned(), json!(self.sequence)),
            ("entries".to_owned(), json!(entries)),
            ("reason".to_owned(), json!(self.reason)),
            ("rule".to_owned(), json!(self.rule)),
        ]);
        for (name, text) in [("at", &self.at), ("authorized_by", &self.authorized_by)] {
            if let Some(text) = text {
                document.insert(name.to_owned(), json!(text));
            }
        }
        jose::jcs::canonical(&Value::Object(document))
    }
}

/// Signs an erasure with an operator key of the policy in force; `log` holds the log's `iss` and origin.
pub fn sign(
    erasure: &NewErasure,
    log: (&str, &str),
    operators: &[BoundKey],
    key: &dyn Signer,
) -> Result<SignedStatement, SignError> {
    let payload = erasure.payload();
    Erasure::from_payload(&payload).map_err(|why| SignError::violates(&why))?;
    sign_as_operator(ERASURE_CONTENT_TYPE, payload, None, log, operators, key)
}
