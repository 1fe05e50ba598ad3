//! Receipts: proof that a statement is in a log, checkable without asking the log (RFC 9942).
//!
//! A receipt is a signature over a tree's root, and a path from a leaf to that root. The path, the leaf's
//! index and the tree's size stand in the unprotected header: for one path and root other pairs of size and
//! index verify too. Our own receipts sign the size as a header parameter, "tree-size"; where it is present,
//! a proof of another size is refused.
//!
//! Two data structures are read: RFC9162_SHA256 (vds 1), which is ours, and CCF_LEDGER_SHA256 (vds 2), whose proofs
//! are in `ledger.rs`. Which one it is, the log has signed.
//!
//! Read strictly: vds and alg count only from the protected header, every proof must be of a registered
//! type, and all proofs of one receipt must lead to one root.
//!
//! Not here: what the leaf of a statement is (the log's rule), and whose receipts to trust (`verifier`).

mod build;
mod ledger;
mod proof;

use bytes::Bytes;
use merkle::{EntryDigest, LeafHash, ProofError, RootHash, TreeSize, verify};

pub use build::{ReceiptHeader, SignedRoot};
pub use ledger::{LedgerLeaf, LedgerProof, LedgerStep};
pub use proof::{ConsistencyProof, InclusionProof};

use crate::cbor::Item;
use crate::frame::{self, Frame};
use crate::header::{Header, Label, labels, read_entries};
use crate::key::{PublicKey, SignatureError};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

use proof::Proofs;

/// RFC9162_SHA256 in the registry of verifiable data structures.
pub const RFC9162_SHA256: i64 = 1;
/// CCF_LEDGER_SHA256, as the profile for CCF ledgers asks for it to be registered.
pub const CCF_LEDGER_SHA256: i64 = 2;

/// The verifiable data structures whose receipts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    /// The tree of RFC 9162.
    Rfc9162,
    /// The tree of a CCF ledger.
    CcfLedger,
}

impl Structure {
    /// Its number in the registry, which label 395 carries.
    pub const fn to_cose(self) -> i64 {
        match self {
            Self::Rfc9162 => RFC9162_SHA256,
            Self::CcfLedger => CCF_LEDGER_SHA256,
        }
    }

    /// Its name in the registry.
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

/// A receipt that parsed; nothing is said about its signature.
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

/// Why bytes are not a receipt that we can check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// Not a receipt.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A receipt over another verifiable data structure: nothing is wrong with it, but we cannot check it.
    #[error("verifiable data structure {0} is not supported")]
    UnsupportedStructure(i64),
}

/// Why a receipt does not prove what it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptRefused {
    /// It has no inclusion proof.
    #[error("the receipt has no inclusion proof")]
    NoInclusionProof,
    /// It has no consistency proof.
    #[error("the receipt has no consistency proof")]
    NoConsistencyProof,
    /// A proof proves nothing.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Its proofs lead to different roots.
    #[error("the receipt's proofs lead to different roots")]
    SeveralRoots,
    /// Its proof is of the leaf of another statement.
    #[error("the receipt's leaf is that of another statement, {0}")]
    OtherStatement(EntryDigest),
    /// The payload it carries is not the root that its proofs lead to.
    #[error("the root in the receipt is not the one its proof leads to")]
    OtherPayload,
    /// A consistency proof that starts from another size than the one asked about.
    #[error("the consistency proof starts from size {found}, not {expected}")]
    OlderSize {
        /// The size asked about.
        expected: TreeSize,
        /// The size in the proof.
        found: TreeSize,
    },
    /// The signature over the root does not verify.
    #[error(transparent)]
    Signature(#[from] SignatureError),
}

impl Receipt {
    /// Reads a receipt.
    ///
    /// # Errors
    /// With the byte offset of the first thing that is wrong, or the data structure we do not know.
    pub fn parse(input: impl Into<Bytes>) -> Result<Self, ReceiptError> {
        Self::parse_bytes(input.into())
    }

    fn parse_bytes(bytes: Bytes) -> Result<Self, ReceiptError> {
        let frame = Frame::read(&bytes, limits::RECEIPT_BYTES)?;
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

    /// The receipt as it came.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The protected header: alg, kid, and in claims iss, sub and iat.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The verifiable data structure, as the log signed it.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// The tree size that is signed, if the log signs it.
    pub fn signed_tree_size(&self) -> Option<TreeSize> {
        self.tree_size
    }

    /// Which transaction of a CCF ledger signed the root: the `txid` that such ledgers put under "ccf.v1".
    pub fn ledger_transaction(&self) -> Option<String> {
        let ledger = self.header.get(&Label::Text(labels::CCF.into()))?;
        let id = ledger.get(&labels::CCF_TXID.into())?;
        id.value.as_text().map(str::to_owned)
    }

    /// The inclusion proofs, unless this is a ledger's receipt.
    pub fn inclusion_proofs(&self) -> &[InclusionProof] {
        &self.proofs.inclusion
    }

    /// The consistency proofs.
    pub fn consistency_proofs(&self) -> &[ConsistencyProof] {
        &self.proofs.consistency
    }

    /// The inclusion proofs of a CCF ledger's receipt.
    pub fn ledger_proofs(&self) -> &[LedgerProof] {
        &self.proofs.ledger
    }

    /// The root, where it came attached.
    pub fn attached_root(&self) -> Option<&RootHash> {
        self.root.as_ref()
    }

    /// The root that every inclusion proof leads to from this leaf.
    ///
    /// # Errors
    /// When there is no proof, one proves nothing, or they disagree with each other or with the payload.
    pub fn implied_root(&self, leaf: &LeafHash) -> Result<RootHash, ReceiptRefused> {
        let roots =
            self.proofs.inclusion.iter().map(|proof| {
                Ok(verify::implied_root(*leaf, proof.leaf_index, proof.tree_size, &proof.path)?)
            });
        self.agreed(roots, ReceiptRefused::NoInclusionProof)
    }

    /// The root that every proof of a CCF ledger's receipt leads to from the leaf of this statement.
    ///
    /// # Errors
    /// When there is no such proof, one is of another statement's leaf, or they disagree.
    pub fn implied_ledger_root(&self, statement: &EntryDigest) -> Result<RootHash, ReceiptRefused> {
        let roots = self.proofs.ledger.iter().map(|proof| match proof.leaf.data == *statement {
            true => Ok(proof.root()),
            false => Err(ReceiptRefused::OtherStatement(proof.leaf.data)),
        });
        self.agreed(roots, ReceiptRefused::NoInclusionProof)
    }

    /// Checks the signature over a root, which must come from [`implied_root`](Self::implied_root),
    /// [`implied_ledger_root`](Self::implied_ledger_root), or be known already.
    ///
    /// # Errors
    /// When the signature proves nothing.
    pub fn verify_root(&self, root: &RootHash, key: &PublicKey) -> Result<(), SignatureError> {
        let header = &self.header;
        let signed = frame::sig_structure(header.bytes(), header.is_empty(), root.as_bytes());
        key.verify(header.signature_algorithm()?, &signed, &self.signature)
    }

    /// Checks that a tree whose root this key signed has this leaf, and gives the root.
    ///
    /// # Errors
    /// When any of that is not proven.
    pub fn verify_inclusion(&self, leaf: &LeafHash, key: &PublicKey) -> Result<RootHash, ReceiptRefused> {
        let root = self.implied_root(leaf)?;
        self.verify_root(&root, key)?;
        Ok(root)
    }

    /// Checks that a tree whose root this key signed extends an older one, and gives the newer root. The older
    /// root must be one that was verified before: one that came with the receipt proves nothing.
    ///
    /// # Errors
    /// When any of that is not proven.
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

/// alg and vds are required, and count from the protected header only.
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

/// The proofs (396); no label may be in both headers.
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

/// A ledger's root never comes attached: its profile wants it recomputed.
fn attached_root(structure: Structure, payload: &[u8], offset: usize) -> Result<RootHash, Malformed> {
    let (root, expected) = match structure {
        Structure::Rfc9162 => (payload.try_into().ok(), "a root of 32 bytes, or nil"),
        Structure::CcfLedger => (None, "nil"),
    };
    let wrong = MalformedKind::Type { what: "the payload", expected };
    root.map(RootHash::from_bytes).ok_or(Malformed::at(offset, wrong))
}
