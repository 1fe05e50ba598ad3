//! Receipts (RFC 9942) and the errors of a transparency service (RFC 9290).

use merkle::{LeafHash, RootHash, TreeSize};
use scitt::receipt::InclusionProof;
use scitt::{Problem, Receipt, ReceiptError, ReceiptRefused};
use serde::Deserialize;
use serde_json::{Value, json};
use verifier::{KnownTree, TrustStore, verify_consistency};

use crate::bytes::{ByteString, HashText};
use crate::error::CoreError;
use crate::keys::public_key;

/// Verifies that a known tree is the beginning of the one that a receipt signs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyConsistency {
    receipt: ByteString,
    known: KnownTreeText,
    /// A `trust.toml`.
    trust: String,
    /// Current time in Unix seconds.
    now: u64,
}

/// Verifies one receipt by one key: its inclusion proof for a leaf, or its consistency proof for a known tree.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptRoot {
    receipt: ByteString,
    public_key: String,
    leaf: Option<HashText>,
    known: Option<KnownTreeText>,
}

/// Reads a receipt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadReceipt {
    receipt: ByteString,
}

/// A tree that was verified before.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownTreeText {
    size: u64,
    root: HashText,
}

/// Reads concise problem details.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadProblem {
    problem: ByteString,
}

impl KnownTreeText {
    fn tree(&self) -> KnownTree {
        KnownTree { size: TreeSize::new(self.size), root: RootHash::from_bytes(*self.root.0.as_bytes()) }
    }
}

impl VerifyConsistency {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let trust =
            TrustStore::from_toml(&self.trust).map_err(|error| CoreError::new("trust-unusable", error))?;
        let verdict = verify_consistency(&self.receipt.0, &self.known.tree(), &trust, self.now);
        serde_json::to_value(verdict).map_err(|error| CoreError::new("malformed-request", error))
    }
}

impl ReceiptRoot {
    pub(crate) fn verify(self) -> Result<Value, CoreError> {
        let receipt = Receipt::parse(self.receipt.0)?;
        let key = public_key(&self.public_key)?;
        let proven = match (&self.leaf, &self.known) {
            (Some(leaf), None) => {
                let leaf = LeafHash::from_bytes(*leaf.0.as_bytes());
                receipt.find_inclusion(&leaf, &key).map(|(proof, root)| (root, Some(proof)))
            }
            (None, Some(known)) => {
                let known = known.tree();
                receipt.verify_consistency(known.size, &known.root, &key).map(|root| (root, None))
            }
            _ => return Err(CoreError::new("malformed-request", "either a leaf or a known tree is needed")),
        };
        let (root, inclusion) = proven.map_err(|refused| CoreError::new(refusal_code(&refused), refused))?;
        Ok(proven_root(&receipt, &root, inclusion))
    }
}

impl ReadReceipt {
    /// Tells receipts from other bytes, such as a page of a proxy. One of another structure is a receipt, too.
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        match Receipt::parse(self.receipt.0) {
            Ok(_) => Ok(json!({ "supported": true })),
            Err(ReceiptError::UnsupportedStructure(_)) => Ok(json!({ "supported": false })),
            Err(malformed) => Err(malformed.into()),
        }
    }
}

fn proven_root(receipt: &Receipt, root: &RootHash, inclusion: Option<&InclusionProof>) -> Value {
    let size = inclusion.map(|proof| proof.tree_size);
    let size = size.or_else(|| receipt.consistency_proofs().first().map(|proof| proof.newer));
    json!({
        "root": root.to_string(),
        "tree_size": size.map(TreeSize::get),
        "signed_tree_size": receipt.signed_tree_size().map(TreeSize::get),
        "leaf_index": inclusion.map(|proof| proof.leaf_index.get()),
    })
}

const fn refusal_code(refused: &ReceiptRefused) -> &'static str {
    match refused {
        ReceiptRefused::Signature(_) => "receipt-signature-invalid",
        ReceiptRefused::Proof(_) => "receipt-proof-invalid",
        ReceiptRefused::OtherPayload => "receipt-payload-differs",
        ReceiptRefused::SeveralRoots => "receipt-roots-differ",
        ReceiptRefused::NoInclusionProof => "no-inclusion-proof",
        ReceiptRefused::NoConsistencyProof => "no-consistency-proof",
        ReceiptRefused::OlderSize { .. } => "consistency-other-size",
        ReceiptRefused::OtherStatement(_) => "receipt-statement-differs",
    }
}

impl ReadProblem {
    pub(crate) fn read(self) -> Result<Value, CoreError> {
        let problem =
            Problem::parse(&self.problem.0).map_err(|error| CoreError::new("malformed-problem", error))?;
        Ok(json!({
            "title": problem.title,
            "detail": problem.detail,
            "instance": problem.instance,
            "code": problem.get_code(),
            "rule": problem.get_rule(),
            "offset": problem.get_offset(),
        }))
    }
}
