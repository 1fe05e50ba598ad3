//! Receipts: proof that a statement is in a log, verifiable without a query to the log (RFC 9942).
//!
//! A receipt is a signature over a tree's root, and a path from a leaf to that root. The path, the leaf index and the
//! tree size are in the unprotected header. As other pairs of size and index can verify with the same path and root,
//! the receipts of this implementation sign the size as a protected header parameter, "tree-size"; if it is present, a
//! proof of another size is refused.
//!
//! Two data structures are supported: RFC9162_SHA256 (vds 1), which this implementation issues, and CCF_LEDGER_SHA256
//! (vds 2), whose proofs are in `ledger.rs`. The log signs the choice of data structure.
//!
//! Parsing is strict: vds and alg count only in the protected header, and every proof must have a registered type.
//!
//! Several inclusion proofs may be of several leaves of the signed tree. A leaf is proven if one of them leads from it
//! to the signed root (RFC 9942, section 5.2.1); none of them may be impossible in any tree. The proofs of a CCF
//! ledger's receipt, and consistency proofs, must all lead to one root.
//!
//! Not here: the leaf of a statement (defined by the log), and which log's receipts to trust (`verifier`).

mod build;
mod ledger;
mod path;
mod proof;

use bytes::Bytes;
use merkle::{EntryDigest, LeafHash, ProofError, RootHash, TreeSize, verify};

pub use build::{ReceiptHeader, SignedRoot};
pub use ledger::{LedgerLeaf, LedgerProof, LedgerStep};
pub use proof::{ConsistencyProof, InclusionProof};

use crate::cbor::Item;
use crate::frame::{self, Sign1Frame};
use crate::header::{Header, Label, labels, read_entries};
use crate::key::{PublicKey, SignatureError};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

use proof::Proofs;

/// Number of RFC9162_SHA256 in the registry of verifiable data structures.
pub const RFC9162_SHA256: i64 = 1;
/// Number of CCF_LEDGER_SHA256, as the profile for CCF ledgers requests it.
pub const CCF_LEDGER_SHA256: i64 = 2;

/// Supported verifiable data structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    /// Merkle tree of RFC 9162.
    Rfc9162,
    /// Merkle tree of a CCF ledger.
    CcfLedger,
}

impl Structure {
    /// Returns the registry number, which label 395 (`vds`) carries.
    pub const fn to_cose(self) -> i64 {
        match self {
            Self::Rfc9162 => RFC9162_SHA256,
            Self::CcfLedger => CCF_LEDGER_SHA256,
        }
    }

    /// Returns the registry name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc9162 => "RFC9162_SHA256",
            Self::CcfLedger => "CCF_LEDGER_SHA256",
        }
    }

    fn from_cose(number: i64) -> Option<Self> {
        [Self::Rfc9162, Self::CcfLedger].into_iter().find(|structure| structure.to_cose() == number)
    }
}

/// A parsed receipt; parsing does not verify the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    bytes: Bytes,
    header: Header,
    structure: Structure,
    tree_size: Option<TreeSize>,
    proofs: Proofs,
    root: Option<RootHash>,
    signature: Vec<u8>,
}

/// Error of [`Receipt::parse`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The input is not a well-formed receipt.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The receipt uses another verifiable data structure, with this number. It may be valid, but cannot be verified
    /// here.
    #[error("verifiable data structure {0} is not supported")]
    UnsupportedStructure(i64),
}

/// Error of a receipt that does not prove the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptRefused {
    /// The receipt has no inclusion proof.
    #[error("the receipt has no inclusion proof")]
    NoInclusionProof,
    /// The receipt has no consistency proof.
    #[error("the receipt has no consistency proof")]
    NoConsistencyProof,
    /// A proof does not lead to a root.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Proofs that must lead to one root lead to different ones.
    #[error("the receipt's proofs lead to different roots")]
    SeveralRoots,
    /// The proof is for the leaf of another statement, with this digest.
    #[error("the receipt's leaf is that of another statement, {0}")]
    OtherStatement(EntryDigest),
    /// The attached root is not one that the proofs lead to.
    #[error("the root in the receipt is not the one its proof leads to")]
    OtherPayload,
    /// A consistency proof starts from another size than the requested one.
    #[error("the consistency proof starts from size {found}, not {expected}")]
    OlderSize {
        /// Requested size.
        expected: TreeSize,
        /// Size in the proof.
        found: TreeSize,
    },
    /// The signature over the root does not verify.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

impl Receipt {
    /// Parses a receipt.
    ///
    /// # Errors
    /// Returns [`ReceiptError::Malformed`] with the byte offset of the first mistake, or
    /// [`ReceiptError::UnsupportedStructure`].
    pub fn parse(input: impl Into<Bytes>) -> Result<Self, ReceiptError> {
        Self::parse_bytes(input.into())
    }

    fn parse_bytes(bytes: Bytes) -> Result<Self, ReceiptError> {
        let frame = Sign1Frame::read(&bytes, limits::RECEIPT_BYTES)?;
        let understood = [Label::Int(labels::VDS), Label::Text(labels::TREE_SIZE.into())];
        let header = Header::read(&bytes, frame.protected.clone(), &understood)?;
        let structure = read_structure(&header, frame.protected.start)?;
        let tree_size = match structure {
            Structure::Rfc9162 => signed_tree_size(&header, frame.protected.start)?,
            Structure::CcfLedger => None,
        };
        let proofs = Proofs::read(proofs_item(&frame.unprotected, &header)?, structure, tree_size)?;
        let root = match frame.payload.clone() {
            Some(span) => Some(attached_root(structure, &bytes[span.clone()], span.start)?),
            None => None,
        };
        let signature = bytes[frame.signature.clone()].to_vec();
        drop(frame);
        Ok(Self { header, structure, tree_size, proofs, root, signature, bytes })
    }

    /// Returns the receipt as received.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the protected header: `alg`, `kid`, and the CWT claims `iss`, `sub` and `iat`.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the verifiable data structure that the log signed (`vds`).
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// Returns the signed tree size ("tree-size"), if the log signs it.
    pub fn signed_tree_size(&self) -> Option<TreeSize> {
        self.tree_size
    }

    /// Returns the transaction of a CCF ledger that signed the root: the `txid` in the map "ccf.v1".
    pub fn ledger_transaction(&self) -> Option<String> {
        let ledger = self.header.get(&Label::Text(labels::CCF.into()))?;
        let id = ledger.get(&labels::CCF_TXID.into())?;
        id.value.as_text().map(str::to_owned)
    }

    /// Returns the inclusion proofs; empty for a CCF ledger's receipt.
    pub fn inclusion_proofs(&self) -> &[InclusionProof] {
        &self.proofs.inclusion
    }

    /// Returns the consistency proofs.
    pub fn consistency_proofs(&self) -> &[ConsistencyProof] {
        &self.proofs.consistency
    }

    /// Returns the inclusion proofs of a CCF ledger's receipt; empty for other receipts.
    pub fn ledger_proofs(&self) -> &[LedgerProof] {
        &self.proofs.ledger
    }

    /// Returns the root, if it is attached as the payload.
    pub fn attached_root(&self) -> Option<&RootHash> {
        self.root.as_ref()
    }

    /// Computes the root that all inclusion proofs lead to from this leaf: that of a receipt for one leaf.
    ///
    /// # Errors
    /// Returns the errors of [`implied_roots`](Self::implied_roots), and a [`ReceiptRefused`] if the proofs disagree
    /// with each other or with the attached root.
    pub fn implied_root(&self, leaf: &LeafHash) -> Result<RootHash, ReceiptRefused> {
        let roots = self.implied_roots(leaf)?;
        self.agreed(roots.into_iter().map(|(_, root)| Ok(root)), ReceiptRefused::NoInclusionProof)
    }

    /// Computes the root that each inclusion proof leads to from this leaf. Only a proof of this leaf leads to the
    /// signed root.
    ///
    /// # Errors
    /// Returns a [`ReceiptRefused`] if there is no proof, or a proof leads to no root from any leaf.
    pub fn implied_roots(&self, leaf: &LeafHash) -> Result<Vec<(&InclusionProof, RootHash)>, ReceiptRefused> {
        if self.proofs.inclusion.is_empty() {
            return Err(ReceiptRefused::NoInclusionProof);
        }
        let implied = self.proofs.inclusion.iter().map(|proof| {
            Ok((proof, verify::implied_root(*leaf, proof.leaf_index, proof.tree_size, &proof.path)?))
        });
        implied.collect()
    }

    /// Computes the root that all proofs of a CCF ledger's receipt lead to from the leaf of this statement.
    ///
    /// # Errors
    /// Returns a [`ReceiptRefused`] if there is no such proof, a proof is for another statement's leaf, or the proofs
    /// disagree.
    pub fn implied_ledger_root(&self, statement: &EntryDigest) -> Result<RootHash, ReceiptRefused> {
        let roots = self.proofs.ledger.iter().map(|proof| match proof.leaf.data == *statement {
            true => Ok(proof.root()),
            false => Err(ReceiptRefused::OtherStatement(proof.leaf.data)),
        });
        self.agreed(roots, ReceiptRefused::NoInclusionProof)
    }

    /// Verifies the signature over a root, which must come from [`implied_roots`](Self::implied_roots) or
    /// [`implied_ledger_root`](Self::implied_ledger_root), or be known already.
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the signature does not verify.
    pub fn verify_root(&self, root: &RootHash, key: &PublicKey) -> Result<(), SignatureError> {
        let header = &self.header;
        let signed = frame::sig_structure(header.bytes(), header.is_empty(), root.as_bytes());
        key.verify(header.signature_algorithm()?, &signed, &self.signature)
    }

    /// Verifies that the tree whose root this key signed contains this leaf, and returns the root.
    ///
    /// # Errors
    /// Returns the errors of [`find_inclusion`](Self::find_inclusion).
    pub fn verify_inclusion(&self, leaf: &LeafHash, key: &PublicKey) -> Result<RootHash, ReceiptRefused> {
        self.find_inclusion(leaf, key).map(|(_, root)| root)
    }

    /// Finds the inclusion proof that leads from this leaf to the root that this key signed, and returns both.
    ///
    /// # Errors
    /// Returns a [`ReceiptRefused`] if a proof leads to no root, or none leads to the attached or signed root.
    pub fn find_inclusion(
        &self,
        leaf: &LeafHash,
        key: &PublicKey,
    ) -> Result<(&InclusionProof, RootHash), ReceiptRefused> {
        let mut refused = ReceiptRefused::OtherPayload;
        for (proof, root) in self.implied_roots(leaf)? {
            if self.root.is_some_and(|attached| attached != root) {
                continue;
            }
            match self.verify_root(&root, key) {
                Ok(()) => return Ok((proof, root)),
                Err(why) => refused = why.into(),
            }
        }
        Err(refused)
    }

    /// Verifies that the tree whose root this key signed extends an older tree, and returns the newer root. The older
    /// root must have been verified before; a root that was sent with the receipt proves nothing.
    ///
    /// # Errors
    /// Returns a [`ReceiptRefused`] if a proof or the signature does not verify, or a proof starts from another size.
    pub fn verify_consistency(
        &self,
        older: TreeSize,
        older_root: &RootHash,
        key: &PublicKey,
    ) -> Result<RootHash, ReceiptRefused> {
        let roots = self.proofs.consistency.iter().map(|proof| {
            if proof.older != older {
                return Err(ReceiptRefused::OlderSize { expected: older, found: proof.older });
            }
            Ok(verify::implied_consistency(proof.older, proof.newer, *older_root, &proof.path)?)
        });
        let root = self.agreed(roots, ReceiptRefused::NoConsistencyProof)?;
        self.verify_root(&root, key)?;
        Ok(root)
    }

    fn agreed(
        &self,
        roots: impl Iterator<Item = Result<RootHash, ReceiptRefused>>,
        none: ReceiptRefused,
    ) -> Result<RootHash, ReceiptRefused> {
        let mut agreed = None;
        for root in roots {
            let root = root?;
            if *agreed.get_or_insert(root) != root {
                return Err(ReceiptRefused::SeveralRoots);
            }
        }
        let root = agreed.ok_or(none)?;
        match self.root {
            Some(attached) if attached != root => Err(ReceiptRefused::OtherPayload),
            _ => Ok(root),
        }
    }
}

/// Reads `vds` from the protected header, and checks that it also has `alg`.
fn read_structure(header: &Header, offset: usize) -> Result<Structure, ReceiptError> {
    let vds = Label::Int(labels::VDS);
    let Some(value) = header.get(&vds) else {
        return Err(Malformed::at(offset, MalformedKind::Missing(vds)).into());
    };
    let wrong = MalformedKind::Type { what: "vds (395)", expected: "an integer" };
    let number = value.as_i64().ok_or(Malformed::at(offset, wrong))?;
    let structure = Structure::from_cose(number).ok_or(ReceiptError::UnsupportedStructure(number))?;
    if header.alg().is_none() {
        return Err(Malformed::at(offset, MalformedKind::Missing(Label::Int(labels::ALG))).into());
    }
    Ok(structure)
}

fn signed_tree_size(header: &Header, offset: usize) -> Result<Option<TreeSize>, Malformed> {
    let Some(value) = header.get(&Label::Text(labels::TREE_SIZE.into())) else {
        return Ok(None);
    };
    let wrong = MalformedKind::Type { what: "\"tree-size\"", expected: "an unsigned integer" };
    value.as_u64().map(|size| Some(TreeSize::new(size))).ok_or(Malformed::at(offset, wrong))
}

/// Returns the proofs (label 396) of the unprotected header. A label in both headers is an error.
fn proofs_item<'i, 'a>(unprotected: &'i Item<'a>, header: &Header) -> Result<&'i Item<'a>, Malformed> {
    let entries = read_entries(unprotected, "the unprotected header")?;
    if let Some((label, offset)) = entries.labels().find(|(label, _)| header.contains(label)) {
        return Err(Malformed::at(offset, MalformedKind::LabelInBothHeaders(label.clone())));
    }
    if let Some(crit) = entries.int(labels::CRIT) {
        return Err(Malformed::at(crit.offset, MalformedKind::MustBeProtected(Label::Int(labels::CRIT))));
    }
    let none = Malformed::at(unprotected.offset, MalformedKind::NoProof);
    entries.int(labels::VDP).ok_or(none)
}

/// Reads an attached root. A CCF ledger's root is never attached: its profile requires that it be recomputed.
fn attached_root(structure: Structure, payload: &[u8], offset: usize) -> Result<RootHash, Malformed> {
    let (root, expected) = match structure {
        Structure::Rfc9162 => (payload.try_into().ok(), "a root of 32 bytes, or nil"),
        Structure::CcfLedger => (None, "nil"),
    };
    let wrong = MalformedKind::Type { what: "the payload", expected };
    root.map(RootHash::from_bytes).ok_or(Malformed::at(offset, wrong))
}
