//! Inclusion and consistency proofs (RFC 9942, sections 5.2 and 5.3), and parsing shared with proofs of other
//! structures.

use std::borrow::Cow;

use merkle::{Hash, LeafIndex, TreeSize};

use super::Structure;
use super::ledger::LedgerProof;
use super::path::{hash, parts, steps};
use crate::cbor::{self, Item, ItemWriter, Value};
use crate::header::wrong_type;
use crate::limits;
use crate::malformed::{Malformed, MalformedKind};

pub(super) const INCLUSION: i64 = -1;
pub(super) const CONSISTENCY: i64 = -2;

const PROOF_LIMITS: cbor::Limits = cbor::Limits { depth: 2, items: limits::PATH + 4 };
/// Limits for a ledger's proof, in which each step of the path is an array of two.
const LEDGER_LIMITS: cbor::Limits = cbor::Limits { depth: 3, items: 4 * limits::PATH };

/// Path from a leaf to the root of a tree of RFC 9162.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof {
    /// Tree size.
    pub tree_size: TreeSize,
    /// Leaf index, below `tree_size`.
    pub leaf_index: LeafIndex,
    /// Sibling hashes, from the leaf up; empty if the tree has one leaf.
    pub path: Vec<Hash>,
}

/// Path from an older root to a newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistencyProof {
    /// Size of the older tree; not 0.
    pub older: TreeSize,
    /// Size of the newer tree; larger than `older`.
    pub newer: TreeSize,
    /// Hashes in the order of RFC 9162, section 2.1.4.1; never empty.
    pub path: Vec<Hash>,
}

impl InclusionProof {
    fn read(item: &Item<'_>, signed: Option<TreeSize>) -> Result<Self, Malformed> {
        let [size, index, path] = parts(item, "an inclusion proof")?;
        let (tree_size, leaf_index) = (TreeSize::new(number(size)?), LeafIndex::new(number(index)?));
        expect_signed(size, tree_size, signed)?;
        if !tree_size.holds(leaf_index) {
            let kind = MalformedKind::LeafOutsideTree { index: leaf_index.get(), size: tree_size.get() };
            return Err(Malformed::at(index.offset, kind));
        }
        Ok(Self { tree_size, leaf_index, path: hashes(path, 0)? })
    }
}

impl ConsistencyProof {
    fn read(item: &Item<'_>, signed: Option<TreeSize>) -> Result<Self, Malformed> {
        let [older_item, newer_item, path] = parts(item, "a consistency proof")?;
        let (older, newer) = (TreeSize::new(number(older_item)?), TreeSize::new(number(newer_item)?));
        expect_signed(newer_item, newer, signed)?;
        if older == TreeSize::EMPTY || older >= newer {
            let kind = MalformedKind::ConsistencySizes { older: older.get(), newer: newer.get() };
            return Err(Malformed::at(older_item.offset, kind));
        }
        Ok(Self { older, newer, path: hashes(path, 1)? })
    }
}

/// Proofs under label 396 (`vdp`), by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Proofs {
    pub(super) inclusion: Vec<InclusionProof>,
    pub(super) consistency: Vec<ConsistencyProof>,
    pub(super) ledger: Vec<LedgerProof>,
}

impl Proofs {
    /// Reads the proofs. Types that are not registered for `structure` are refused.
    pub(super) fn read(
        item: &Item<'_>,
        structure: Structure,
        signed: Option<TreeSize>,
    ) -> Result<Self, Malformed> {
        let map = item.value.as_map().ok_or_else(|| wrong_type(item, "proofs (396)", "a map"))?;
        let mut proofs = Self::default();
        for (kind, list) in map {
            match (structure, kind.value.as_i64()) {
                (Structure::Rfc9162, Some(INCLUSION)) => {
                    proofs.inclusion = each(list, PROOF_LIMITS, |proof| InclusionProof::read(proof, signed))?;
                }
                (Structure::Rfc9162, Some(CONSISTENCY)) => {
                    proofs.consistency =
                        each(list, PROOF_LIMITS, |proof| ConsistencyProof::read(proof, signed))?;
                }
                (Structure::CcfLedger, Some(INCLUSION)) => {
                    proofs.ledger = each(list, LEDGER_LIMITS, LedgerProof::read)?;
                }
                _ => return Err(Malformed::at(kind.offset, MalformedKind::UnknownProof)),
            }
        }
        if map.is_empty() {
            return Err(Malformed::at(item.offset, MalformedKind::NoProof));
        }
        Ok(proofs)
    }
}

/// Encodes `[tree size, leaf index, path]` or `[older size, newer size, path]`.
pub(super) fn encode(first: u64, second: u64, path: &[Hash]) -> Vec<u8> {
    const PER_HASH: usize = 34;
    let mut writer = ItemWriter::with_capacity(path.len() * PER_HASH + 24);
    writer.array(3).unsigned(first).unsigned(second).array(path.len());
    path.iter().for_each(|hash| {
        writer.bytes(hash.as_bytes());
    });
    writer.into_bytes()
}

/// Reads a list of proofs, `[+ bstr .cbor proof]`.
fn each<P>(
    list: &Item<'_>,
    cost: cbor::Limits,
    read: impl Fn(&Item<'_>) -> Result<P, Malformed>,
) -> Result<Vec<P>, Malformed> {
    let proofs = list.value.as_array().ok_or_else(|| wrong_type(list, "a list of proofs", "an array"))?;
    if !(1..=limits::PROOFS).contains(&proofs.len()) {
        let kind = MalformedKind::Count { what: "a list of proofs", least: 1, most: limits::PROOFS };
        return Err(Malformed::at(list.offset, kind));
    }
    proofs.iter().map(|proof| embedded(proof, cost, &read)).collect()
}

/// Parses the CBOR in a byte string; error offsets count from the start of the receipt.
fn embedded<P>(
    item: &Item<'_>,
    cost: cbor::Limits,
    read: impl Fn(&Item<'_>) -> Result<P, Malformed>,
) -> Result<P, Malformed> {
    let Value::Bytes(bytes) = &item.value else {
        return Err(wrong_type(item, "a proof", "a byte string"));
    };
    let start = match bytes {
        Cow::Borrowed(bytes) => item.end - bytes.len(),
        Cow::Owned(_) => item.offset,
    };
    let proof = cbor::parse(bytes, cost).map_err(Malformed::from);
    proof.and_then(|proof| read(&proof)).map_err(|error| Malformed::at(start + error.offset, error.kind))
}

fn number(item: &Item<'_>) -> Result<u64, Malformed> {
    item.value.as_u64().ok_or_else(|| wrong_type(item, "a size or index", "an unsigned integer"))
}

fn expect_signed(item: &Item<'_>, size: TreeSize, signed: Option<TreeSize>) -> Result<(), Malformed> {
    match signed {
        Some(signed) if signed != size => {
            let kind = MalformedKind::TreeSize { signed: signed.get(), proof: size.get() };
            Err(Malformed::at(item.offset, kind))
        }
        _ => Ok(()),
    }
}

fn hashes(item: &Item<'_>, least: usize) -> Result<Vec<Hash>, Malformed> {
    steps(item, least, hash)
}
