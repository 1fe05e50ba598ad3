//! Inclusion proofs of a CCF ledger (draft-ietf-scitt-receipts-ccf-profile, vds 2).
//!
//! The tree of such a ledger uses no prefixes for leaves and nodes, and each step of a proof states the side of the
//! sibling. A leaf contains the hash of the statement, so that a proof names its statement.
//!
//! Such receipts are only read, never issued. Not here: consistency proofs (-2), which drafts still change and no
//! service is known to issue; they are refused as proofs of an unknown type.

use merkle::{EntryDigest, Hash, RootHash};
use sha2::{Digest, Sha256};

use super::path::{hash, parts, steps};
use crate::cbor::{Item, Value};
use crate::header::wrong_type;
use crate::limits;
use crate::malformed::Malformed;

const LEAF: u64 = 1;
const PATH: u64 = 2;

/// Path from a leaf to the root of a CCF ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProof {
    /// Components of the leaf.
    pub leaf: LedgerLeaf,
    /// Sibling hashes, from the leaf up; never empty.
    pub path: Vec<LedgerStep>,
}

/// Components of a leaf of a CCF ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLeaf {
    /// Hash of the ledger's own transaction data (`internal-transaction-hash`).
    pub transaction: Hash,
    /// Commit evidence as text (`internal-evidence`), of 1 to [`EVIDENCE_BYTES`](limits::EVIDENCE_BYTES) bytes.
    pub evidence: String,
    /// Digest of the registered statement (`data-hash`).
    pub data: EntryDigest,
}

/// One step of a [`LedgerProof`]: a sibling hash and its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerStep {
    /// `true` if the sibling is on the left.
    pub left: bool,
    /// Hash of the sibling.
    pub hash: Hash,
}

impl LedgerProof {
    /// Computes the root that the path leads to.
    pub fn root(&self) -> RootHash {
        let root = self.path.iter().fold(self.leaf.hash(), |node, step| match step.left {
            true => sha256([step.hash.as_bytes().as_slice(), node.as_bytes()]),
            false => sha256([node.as_bytes().as_slice(), step.hash.as_bytes()]),
        });
        RootHash::from_bytes(*root.as_bytes())
    }

    /// Reads `{1: leaf, 2: path}`; further members are refused.
    pub(super) fn read(item: &Item<'_>) -> Result<Self, Malformed> {
        let member = |label: u64| item.value.get(&label.into());
        match (item.value.as_map().map(<[_]>::len), member(LEAF), member(PATH)) {
            (Some(2), Some(leaf), Some(path)) => {
                Ok(Self { leaf: LedgerLeaf::read(leaf)?, path: steps(path, 1, LedgerStep::read)? })
            }
            _ => Err(wrong_type(item, "a ledger's inclusion proof", "a map of a leaf (1) and a path (2)")),
        }
    }
}

impl LedgerLeaf {
    fn hash(&self) -> Hash {
        let evidence = sha256([self.evidence.as_bytes()]);
        sha256([self.transaction.as_bytes().as_slice(), evidence.as_bytes(), self.data.as_bytes()])
    }

    fn read(item: &Item<'_>) -> Result<Self, Malformed> {
        let [transaction, evidence, data] = parts(item, "a ledger's leaf")?;
        let text = evidence.value.as_text().filter(|text| (1..=limits::EVIDENCE_BYTES).contains(&text.len()));
        let text =
            text.ok_or_else(|| wrong_type(evidence, "a leaf's evidence", "text of 1 to 1024 bytes"))?;
        let data = EntryDigest::from_bytes(*hash(data)?.as_bytes());
        Ok(Self { transaction: hash(transaction)?, evidence: text.to_owned(), data })
    }
}

impl LedgerStep {
    fn read(item: &Item<'_>) -> Result<Self, Malformed> {
        match item.value.as_array() {
            Some([Item { value: Value::Bool(left), .. }, sibling]) => {
                Ok(Self { left: *left, hash: hash(sibling)? })
            }
            _ => Err(wrong_type(item, "a step of a ledger's path", "an array of true or false and a hash")),
        }
    }
}

fn sha256<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Hash {
    let mut hasher = Sha256::new();
    parts.into_iter().for_each(|part| hasher.update(part));
    Hash::from_bytes(hasher.finalize().into())
}
