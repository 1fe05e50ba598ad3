//! The tree beside the walk: every leaf against its tile, so that a row that was changed with its digest is named.

use merkle::tile::FULL_WIDTH;
use merkle::{CompactRange, LeafHash, LeafIndex};

use crate::finding::{Finding, Rule};
use crate::source::{Row, Source, SourceError};

/// The leaves so far, and the tile that holds the next one.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) range: CompactRange,
    tile: Option<(u64, Vec<LeafHash>)>,
}

impl Tree {
    pub(crate) fn from(range: CompactRange) -> Self {
        Self { range, tile: None }
    }

    /// Has the tile of this leaf at hand, read when it was needed last or now.
    pub(crate) async fn reach(&mut self, source: &dyn Source, leaf: LeafIndex) -> Result<(), SourceError> {
        let number = tile_of(leaf);
        let reaches =
            |(known, leaves): &(u64, Vec<LeafHash>)| *known == number && leaves.len() > place_of(leaf);
        if !self.tile.as_ref().is_some_and(reaches) {
            self.tile = Some((number, source.leaves(number).await?));
        }
        Ok(())
    }

    /// Appends the leaf of a row, and says what is wrong with it.
    ///
    /// Where row and tile disagree the tile is believed: it is what the roots were made of, so that one row that was
    /// changed does not make every later root wrong.
    pub(crate) fn append(&mut self, row: &Row) -> Option<Finding> {
        let index = row.index();
        let held = self.tile.as_ref().and_then(|(_, leaves)| leaves.get(place_of(index)).copied());
        let (leaf, finding) = match (row, held) {
            (Row::Kept(evidence), Some(held)) => {
                let wrong = evidence.digest.leaf_hash() != held;
                let detail = "the digest of the row is not the one that the tree was made of";
                (held, wrong.then(|| Finding::of_entry(Rule::Leaf, index, evidence.digest, detail)))
            }
            (Row::Kept(evidence), None) => (evidence.digest.leaf_hash(), Some(tile_lost(index))),
            (Row::Lost { why, .. }, Some(held)) => {
                (held, Some(Finding::of_leaf(Rule::EntryLost, index, why)))
            }
            (Row::Lost { why, .. }, None) => {
                let nothing = LeafHash::from_bytes([0; 32]);
                (
                    nothing,
                    Some(Finding::of_leaf(Rule::EntryLost, index, format!("{why}, and so is its tile"))),
                )
            }
        };
        self.range.append(leaf);
        finding
    }
}

fn tile_lost(index: LeafIndex) -> Finding {
    let detail = format!("tile {} is missing, or ends before this leaf", tile_of(index));
    Finding::of_leaf(Rule::TileLost, index, detail)
}

fn tile_of(leaf: LeafIndex) -> u64 {
    leaf.get() / u64::from(FULL_WIDTH)
}

fn place_of(leaf: LeafIndex) -> usize {
    (leaf.get() % u64::from(FULL_WIDTH)) as usize
}
