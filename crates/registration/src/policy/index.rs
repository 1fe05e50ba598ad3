//! The policy's rules for the search index of the log: who signs its heads, and how often.

use merkle::Hash;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::bound_key::{BoundKey, bound_key, key_document};
use crate::section::{Section, list, number, text};

/// Prefix of a digest in a policy.
const SHA_256: &str = "sha256:";

/// The rules for the search index of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexRules {
    /// SHA-256 of the table that gives the terms of a statement.
    pub table: Hash,
    /// The keys that sign heads of the index, and nothing else.
    pub keys: Vec<BoundKey>,
    /// The log admits at most one head in each interval of this many seconds, counted from 1970.
    pub every: u64,
}

/// Returns the digest of the table that this program reads search terms by: the value of `table` in its policies.
pub fn index_table_digest() -> Hash {
    Hash::from_bytes(search_terms::table_digest())
}

impl IndexRules {
    /// The series of heads under these rules: SHA-256 of their canonical JSON (RFC 8785).
    pub fn series(&self) -> Hash {
        Hash::from_bytes(Sha256::digest(jose::jcs::canonical(&document(self))).into())
    }

    /// Parses the table `index` of a policy.
    pub(super) fn read(mut section: Section<'_>) -> Option<Self> {
        let notes = section.notes();
        let table = section.required("table", digest);
        let keys = section.list("keys", |value, at| bound_key(value, at, notes));
        if section.is_empty_list("keys") {
            section.note("keys", "an index needs a key: without one the log admits no head of it");
        }
        let every = section.required("every", |value| match number(value)? {
            0 => Err("must be at least 1 second".to_owned()),
            every => Ok(every),
        });
        section.close();
        Some(Self { table: table?, keys, every: every? })
    }
}

/// Serializes the rules for the payload of a policy.
pub(super) fn document(rules: &IndexRules) -> Value {
    json!({
        "table": format!("{SHA_256}{}", rules.table),
        "keys": list(&rules.keys, key_document),
        "every": rules.every,
    })
}

fn digest(value: &Value) -> Result<Hash, String> {
    let digest = text(value)?.strip_prefix(SHA_256).and_then(|digest| digest.parse().ok());
    digest.ok_or_else(|| format!("`{SHA_256}` and 64 lower-case hexadecimal digits are needed here"))
}
