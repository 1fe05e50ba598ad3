//! Tiles: the units in which a tree is stored and served (C2SP tlog-tiles).
//!
//! A tile holds up to 256 neighbouring hashes of every eighth tree level: tile level 0 holds leaf hashes, level 1 the
//! roots of 256 leaves each, level 2 those of 65,536. Full tiles are immutable; the right-most tile of a level only
//! grows. A tile holds hashes of perfect subtrees only, so partial tiles are never hashed upwards.
//!
//! A reader locates a node with [`covering`], reads the tile and hashes the part; one that keeps tiles keeps their
//! [`InnerNodes`], too. A writer keeps an [`OpenTiles`].
//!
//! Not here: reading or writing tiles, and the contents of entry bundles.

mod inner;
mod name;
mod open;

pub use inner::InnerNodes;
pub use name::{BundleId, NotATilePath, TilePath};
pub use open::{BadTile, OpenTiles, OtherTree, Tile};

use crate::{Hash, NodeId, TreeSize, hash_children, proof::ProofPlan};

/// Number of hashes in a full tile.
pub const FULL_WIDTH: u16 = 256;
/// Number of tree levels for each tile level: 2^8 hashes fill a tile.
const TILE_HEIGHT: u8 = 8;
/// Length of a hash, in bytes.
const HASH_LEN: usize = 32;
/// Highest tile level: node levels are at most 63.
const MAX_LEVEL: u8 = 63 / TILE_HEIGHT;

/// Identifies a tile by level, number and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileId {
    level: u8,
    number: u64,
    width: u16,
}

impl TileId {
    /// The tile as of a tree of this size; `None` if it has no hashes there.
    pub fn at(level: u8, number: u64, size: TreeSize) -> Option<Self> {
        if level > MAX_LEVEL {
            return None;
        }
        let nodes = size.get() >> (level * TILE_HEIGHT);
        let first = number.checked_mul(u64::from(FULL_WIDTH))?;
        let width = nodes.saturating_sub(first).min(u64::from(FULL_WIDTH)) as u16;
        (width > 0).then_some(Self { level, number, width })
    }

    /// The tile level; 0 for leaf hashes.
    pub const fn level(self) -> u8 {
        self.level
    }

    /// The tile's number on its level, from 0.
    pub const fn number(self) -> u64 {
        self.number
    }

    /// The number of hashes: 1 to 256.
    pub const fn width(self) -> u16 {
        self.width
    }

    /// Returns `true` if the tile has 256 hashes and is thus immutable.
    pub const fn is_full(self) -> bool {
        self.width == FULL_WIDTH
    }

    /// Length of the tile's data, in bytes.
    pub const fn byte_len(self) -> usize {
        self.width as usize * HASH_LEN
    }

    /// Returns `true` if a tree of this size has all hashes of the tile.
    pub fn is_in(self, size: TreeSize) -> bool {
        Self::at(self.level, self.number, size).is_some_and(|tile| self.width <= tile.width)
    }

    /// Cuts this tile's data out of the data of the same tile at any later size; `None` if `data` is too short.
    pub fn cut(self, data: &[u8]) -> Option<&[u8]> {
        data.get(..self.byte_len())
    }
}

/// The location of a node: the hash over some of a tile's hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TilePart {
    /// The tile, as of the tree size in question.
    pub tile: TileId,
    /// Position of the first hash in the tile, from 0.
    pub first: u16,
    /// Number of hashes: a power of two.
    pub count: u16,
}

/// Error: the tile's data is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tile has {given} bytes, and {needed} are needed")]
pub struct ShortTile {
    /// Length of the data, in bytes.
    pub given: usize,
    /// Required length for this part, in bytes.
    pub needed: usize,
}

/// Locates the hash of a perfect subtree; `None` if the tree does not have that subtree.
pub fn covering(node: NodeId, size: TreeSize) -> Option<TilePart> {
    let within = node.level % TILE_HEIGHT;
    let per_tile = TILE_HEIGHT - within;
    let tile = TileId::at(node.level / TILE_HEIGHT, node.index >> per_tile, size)?;
    let part =
        TilePart { tile, first: ((node.index & ((1 << per_tile) - 1)) << within) as u16, count: 1 << within };
    (part.first + part.count <= tile.width).then_some(part)
}

impl TilePart {
    /// Computes the node's hash from the data of the tile, or of a later version of it.
    pub fn hash(&self, data: &[u8]) -> Result<Hash, ShortTile> {
        let start = usize::from(self.first) * HASH_LEN;
        let end = start + usize::from(self.count) * HASH_LEN;
        let short = ShortTile { given: data.len(), needed: end };
        let (hashes, _) = data.get(start..end).ok_or(short)?.as_chunks();
        perfect_root(hashes).ok_or(short)
    }
}

/// The tiles to read for a plan, each once.
pub fn needed_for(plan: &ProofPlan) -> Vec<TileId> {
    let parts = plan.nodes().iter().map(|node| covering(*node, plan.size()));
    let mut tiles: Vec<TileId> = parts.flatten().map(|part| part.tile).collect();
    tiles.sort_unstable();
    tiles.dedup();
    tiles
}

/// The root over a power of two of hashes; `None` if there are none.
fn perfect_root(hashes: &[[u8; HASH_LEN]]) -> Option<Hash> {
    match hashes {
        [] => None,
        [hash] => Some(Hash::from_bytes(*hash)),
        _ => {
            let (left, right) = hashes.split_at(hashes.len() / 2);
            Some(hash_children(perfect_root(left)?, perfect_root(right)?))
        }
    }
}
