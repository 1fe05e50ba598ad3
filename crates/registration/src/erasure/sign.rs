//! Making an erasure statement that the log admits.

use merkle::EntryDigest;
use scitt::{SignedStatement, Signer};
use serde_json::{Map, Value, json};

use super::ERASURE_CONTENT_TYPE;
use crate::operator::{self, SignError};
use crate::policy::BoundKey;

/// What shall be erased, and why. Entries may come in any order.
#[derive(Clone, Debug)]
pub struct NewErasure {
    /// The number after the newest erasure's.
    pub sequence: u64,
    /// The entries.
    pub entries: Vec<EntryDigest>,
    /// Why, in words.
    pub reason: String,
    /// Why, as a code.
    pub rule: String,
    /// When it was asked for.
    pub at: Option<String>,
    /// Who decided.
    pub authorized_by: Option<String>,
}

impl NewErasure {
    /// The canonical JSON, with the entries in order.
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

/// Signs an erasure with one of the operator keys of the policy in force, as the log of this `iss` and origin.
pub fn sign(
    erasure: &NewErasure,
    log: (&str, &str),
    operators: &[BoundKey],
    key: &dyn Signer,
) -> Result<SignedStatement, SignError> {
    operator::sign(ERASURE_CONTENT_TYPE, erasure.payload(), None, log, operators, key)
}
