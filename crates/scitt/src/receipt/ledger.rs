//! Inclusion proofs of a CCF ledger (draft-ietf-scitt-receipts-ccf-profile, vds 2).
//!
//! The tree of such a ledger prefixes neither leaves nor nodes, and a proof says for each step on which side the
//! sibling stands. A leaf carries the hash of the statement itself, so that a proof says whose leaf it is.
//!
//! Read only: we issue none. Not here: its consistency proofs (-2), which drafts still change and no service
//! is known to issue: they are refused as proofs of an unknown type.

use merkle::{EntryDigest, Hash, RootHash};
use sha2::{Digest, Sha256};

use super::proof::{hash, parts, steps};
use crate::cbor::{Item, Value};
use crate::header::wrong_type;
use crate::limits;
use crate::malformed::Malformed;

const LEAF: u64 = 1;
const PATH: u64 = 2;

/// The way from a leaf to the root of a CCF ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProof {
    /// What the leaf is made of.
    pub leaf: LedgerLeaf,
    /// From the leaf up; never empty.
    pub path: Vec<LedgerStep>,
}

/// What a leaf of a CCF ledger is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLeaf {
    /// Hash of what the ledger wrote beside the statement.
    pub transaction: Hash,
    /// What the ledger revealed when it had committed, in its own words.
    pub evidence: String,
    /// The hash of the statement that was registered.
    pub data: EntryDigest,
}

/// One sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerStep {
    /// Whether the sibling stands to the left.
    pub left: bool,
    /// The sibling.
    pub hash: Hash,
}

impl LedgerProof {
    /// The root that it leads to.
    pub fn root(&self) -> RootHash {
        let root = self.path.iter().fold(self.leaf.hash(), |node, step| match step.left {
            true => sha256([step.hash.as_bytes().as_slice(), node.as_bytes()]),
            false => sha256([node.as_bytes().as_slice(), step.hash.as_bytes()]),
        });
        RootHash::from_bytes(*root.as_bytes())
    }

    /// `{1: leaf, 2: path}` and nothing else.
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
