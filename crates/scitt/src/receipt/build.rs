//! Issues receipts: signs a root once, then builds a receipt for any leaf under it.
//!
//! The protected header does not depend on the leaf, so that one signature serves all receipts under a root, and
//! serving a receipt needs no key.

use bytes::Bytes;
use ciborium::Value;
use merkle::{Hash, LeafIndex, RootHash, TreeSize};

use super::proof::{self, CONSISTENCY, INCLUSION};
use super::{RFC9162_SHA256, Structure, read_structure, signed_tree_size};
use crate::alg::Algorithm;
use crate::cbor::ItemWriter;
use crate::frame::{self, Sign1Frame};
use crate::header::{Header, Label, labels};
use crate::key::{PublicKey, SignatureError};
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};
use crate::receipt::ReceiptError;
use crate::signer::{SignError, Signer};

/// Protected header of all receipts under one root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptHeader {
    /// Algorithm of the log's receipt key.
    pub alg: Algorithm,
    /// Key identifier of that key.
    pub kid: Vec<u8>,
    /// Issuer (`iss`): the log's URL.
    pub iss: String,
    /// Subject (`sub`): the log's origin.
    pub sub: String,
    /// Commit time of the batch in Unix seconds (`iat`).
    pub iat: u64,
    /// Size of the tree whose root is signed ("tree-size").
    pub tree_size: TreeSize,
}

impl ReceiptHeader {
    /// Returns the deterministic encoding: `{1: alg, 4: kid, 15: {1: iss, 2: sub, 6: iat}, 395: 1, "tree-size": n}`.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = ItemWriter::new();
        writer.map(5).int(labels::ALG).int(self.alg.to_cose()).int(labels::KID).bytes(&self.kid);
        writer.int(labels::CWT_CLAIMS).map(3);
        writer.int(labels::ISS).text(&self.iss).int(labels::SUB).text(&self.sub);
        writer.int(labels::IAT).unsigned(self.iat);
        writer.int(labels::VDS).int(RFC9162_SHA256);
        writer.text(labels::TREE_SIZE).unsigned(self.tree_size.get());
        writer.into_bytes()
    }

    /// Signs the root of the tree of size `tree_size`.
    ///
    /// # Errors
    /// Returns [`SignError::AlgorithmMismatch`] if the signer's algorithm is not the header's, or the signer's error.
    pub fn sign_root(&self, signer: &dyn Signer, root: &RootHash) -> Result<SignedRoot, SignError> {
        let (header, algorithm) = (self.alg, signer.algorithm());
        if header != algorithm {
            return Err(SignError::AlgorithmMismatch { header, signer: algorithm });
        }
        let protected = self.encode();
        let signature = signer.sign(&frame::sig_structure(&protected, false, root.as_bytes()))?;
        Ok(SignedRoot { protected: protected.into(), signature: signature.into(), tree_size: self.tree_size })
    }
}

/// A signed root, from which receipts are built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRoot {
    protected: Bytes,
    signature: Bytes,
    tree_size: TreeSize,
}

impl SignedRoot {
    /// Returns the size of the tree whose root is signed.
    pub fn tree_size(&self) -> TreeSize {
        self.tree_size
    }

    /// Returns the signed `iat`: the commit time of the batch in Unix seconds.
    pub fn committed_at(&self) -> Option<u64> {
        let iat = self.header().ok()?.iat()?;
        u64::try_from(iat).ok()
    }

    /// Encodes the signed root for storage: a COSE_Sign1 with an empty unprotected header and a detached payload.
    pub fn to_bytes(&self) -> Vec<u8> {
        frame::write(&self.protected, coset::Header::default(), None, &self.signature)
    }

    /// Parses the encoding of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// Returns a [`ReceiptError`] if the bytes have another form, or the header lacks the tree size.
    pub fn parse(input: impl Into<Bytes>) -> Result<Self, ReceiptError> {
        let input = input.into();
        let frame = Sign1Frame::read(&input, limits::RECEIPT_BYTES)?;
        let (protected, signature) = (frame.protected.clone(), frame.signature.clone());
        let start = protected.start;
        drop(frame);
        let tree_size = Label::Text(labels::TREE_SIZE.into());
        let header = Header::read(&input, protected.clone(), &[Label::Int(labels::VDS), tree_size.clone()])?;
        if read_structure(&header, start)? != Structure::Rfc9162 {
            return Err(ReceiptError::UnsupportedStructure(super::CCF_LEDGER_SHA256));
        }
        let missing = Malformed::at(start, MalformedKind::Missing(tree_size));
        let tree_size = signed_tree_size(&header, start)?.ok_or(missing)?;
        Ok(Self { protected: input.slice(protected), signature: input.slice(signature), tree_size })
    }

    /// Verifies the signature with this key; a log does so with stored signatures.
    ///
    /// # Errors
    /// Returns a [`SignatureError`] if the signature does not verify.
    pub fn verify(&self, root: &RootHash, key: &PublicKey) -> Result<(), SignatureError> {
        let header = self.header().map_err(|_| SignatureError::NoAlgorithm)?;
        let algorithm = header.signature_algorithm()?;
        let signed = frame::sig_structure(&self.protected, false, root.as_bytes());
        key.verify(algorithm, &signed, &self.signature)
    }

    /// Builds a receipt that proves that the leaf at `leaf_index` is in the tree; `path` is its inclusion proof.
    pub fn inclusion_receipt(&self, leaf_index: LeafIndex, path: &[Hash]) -> Vec<u8> {
        self.receipt(INCLUSION, &proof::encode(self.tree_size.get(), leaf_index.get(), path))
    }

    /// Builds a receipt that proves that the tree extends the one of size `older`; `path` is the consistency proof.
    /// `older` must be neither 0 nor the tree's own size.
    pub fn consistency_receipt(&self, older: TreeSize, path: &[Hash]) -> Vec<u8> {
        self.receipt(CONSISTENCY, &proof::encode(older.get(), self.tree_size.get(), path))
    }

    fn header(&self) -> Result<Header, Malformed> {
        let whole = 0..self.protected.len();
        Header::read(&self.protected, whole, &[Label::Int(labels::VDS), labels::TREE_SIZE.into()])
    }

    fn receipt(&self, proof_type: i64, proof: &[u8]) -> Vec<u8> {
        let proofs = Value::Array(vec![Value::Bytes(proof.to_vec())]);
        let proofs = Value::Map(vec![(proof_type.into(), proofs)]);
        let rest = vec![(coset::Label::Int(labels::VDP), proofs)];
        let unprotected = coset::Header { rest, ..coset::Header::default() };
        frame::write(&self.protected, unprotected, None, &self.signature)
    }
}
