//! Compares every leaf with its tile during the audit, which reveals a row that was changed together with its digest.

use independent_root::IndependentRoot;
use merkle::tile::FULL_WIDTH;
use merkle::{CompactRange, LeafHash, LeafIndex};

use crate::finding::{AuditFinding, LogRule};
use crate::source::{AuditSource, LeafRow, SourceError};

/// Compact range of the leaves so far, and the tile that holds the next one.
#[derive(Debug)]
pub(crate) struct TileCheck {
    pub(crate) range: CompactRange,
    /// Root of the same leaves by another implementation, if this audit began with the first leaf.
    independent: Option<IndependentRoot>,
    tile: Option<(u64, Vec<LeafHash>)>,
}

impl TileCheck {
    pub(crate) fn from(range: CompactRange) -> Self {
        let independent = (range.size().get() == 0).then(IndependentRoot::default);
        Self { range, independent, tile: None }
    }

    /// Reads the tile of this leaf, unless the tile read last covers it.
    pub(crate) async fn reach(
        &mut self,
        source: &dyn AuditSource,
        leaf: LeafIndex,
    ) -> Result<(), SourceError> {
        let number = tile_of(leaf);
        let reaches =
            |(known, leaves): &(u64, Vec<LeafHash>)| *known == number && leaves.len() > offset_in_tile(leaf);
        if !self.tile.as_ref().is_some_and(reaches) {
            self.tile = Some((number, source.leaves(number).await?));
        }
        Ok(())
    }

    /// Appends the leaf of a row. Returns a finding if row and tile disagree or one is missing.
    ///
    /// If they disagree, the tile's hash is appended, since the roots were computed from tiles. One changed row
    /// therefore does not make every later root wrong.
    pub(crate) fn append(&mut self, row: &LeafRow) -> Option<AuditFinding> {
        let index = row.index();
        let held = self.tile.as_ref().and_then(|(_, leaves)| leaves.get(offset_in_tile(index)).copied());
        let (leaf, finding) = match (row, held) {
            (LeafRow::Kept(evidence), Some(held)) => {
                let wrong = evidence.digest.leaf_hash() != held;
                let detail = "the digest of the row is not the one that the tree was made of";
                (held, wrong.then(|| AuditFinding::of_entry(LogRule::Leaf, index, evidence.digest, detail)))
            }
            (LeafRow::Kept(evidence), None) => (evidence.digest.leaf_hash(), Some(tile_lost(index))),
            (LeafRow::Lost { why, .. }, Some(held)) => {
                (held, Some(AuditFinding::of_leaf(LogRule::EntryLost, index, why)))
            }
            (LeafRow::Lost { why, .. }, None) => {
                let nothing = LeafHash::from_bytes([0; 32]);
                (
                    nothing,
                    Some(AuditFinding::of_leaf(
                        LogRule::EntryLost,
                        index,
                        format!("{why}, and so is its tile"),
                    )),
                )
            }
        };
        self.range.append(leaf);
        if let Some(independent) = &mut self.independent {
            independent.append(*leaf.as_bytes());
        }
        finding
    }

    /// Returns a finding if another implementation gives another root for the leaves so far.
    pub(crate) fn check_independent_root(&self) -> Option<AuditFinding> {
        let theirs = self.independent.as_ref().and_then(IndependentRoot::root)?;
        let (size, ours) = (self.range.size(), self.range.root());
        let detail = format!("the root of size {size} is {ours} by our tree, and another one by rs_merkle");
        (theirs != *ours.as_bytes()).then(|| AuditFinding::of_log(LogRule::Root, detail))
    }
}

fn tile_lost(index: LeafIndex) -> AuditFinding {
    let detail = format!("tile {} is missing, or ends before this leaf", tile_of(index));
    AuditFinding::of_leaf(LogRule::TileLost, index, detail)
}

fn tile_of(leaf: LeafIndex) -> u64 {
    leaf.get() / u64::from(FULL_WIDTH)
}

fn offset_in_tile(leaf: LeafIndex) -> usize {
    (leaf.get() % u64::from(FULL_WIDTH)) as usize
}
