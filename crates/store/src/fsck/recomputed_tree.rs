//! [`RecomputedTree`]: the Merkle tree of the log, computed again from the digests of the entries.

use independent_root::IndependentRoot;
use merkle::tile::{BadTile, OpenTiles};
use merkle::{CompactRange, Hash, LeafHash, RootHash, TreeSize, hash_children};

use crate::{HASH_BYTES, TILE_BYTES, TileAddress};

/// Highest level of tiles.
pub(super) const MAX_LEVEL: u8 = 7;
/// Number of tree levels in a tile: one hash covers 2^8 hashes of the tile below.
const TILE_HEIGHT: u32 = 8;

/// Tile as computed from the entries.
pub(super) struct ExpectedTile {
    pub(super) address: TileAddress,
    pub(super) data: Vec<u8>,
}

/// Tree of the entries so far: its size and edge, and the partial tile of each level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecomputedTree {
    size: u64,
    edge: Vec<Hash>,
    open: Vec<Vec<u8>>,
    /// Root of the same leaves by another implementation; `None` for a tree that was restored.
    independent: Option<IndependentRoot>,
}

impl Default for RecomputedTree {
    fn default() -> Self {
        Self { size: 0, edge: Vec::new(), open: Vec::new(), independent: Some(IndependentRoot::default()) }
    }
}

impl RecomputedTree {
    /// Restores a tree from [`size`](Self::size) and [`open`](Self::open).
    pub(super) fn restore(size: TreeSize, open: Vec<Vec<u8>>) -> Result<Self, BadTile> {
        let nodes = (0..=u32::from(MAX_LEVEL)).map(|level| size.get() >> (TILE_HEIGHT * level));
        let widths = nodes.take_while(|nodes| *nodes > 0).map(|nodes| (nodes % 256) as usize * HASH_BYTES);
        if !widths.eq(open.iter().map(Vec::len)) {
            return Err(BadTile::Count { given: open.len(), needed: OpenTiles::needed(size).len() });
        }
        let data: Vec<&Vec<u8>> = open.iter().filter(|data| !data.is_empty()).collect();
        let tiles = OpenTiles::restore(size, &data)?;
        Ok(Self { size: size.get(), edge: tiles.range().hashes().to_vec(), open, independent: None })
    }

    pub(super) fn size(&self) -> TreeSize {
        TreeSize::new(self.size)
    }

    /// Hashes of each level's partial tile; empty where the last tile is full.
    pub(super) fn open(&self) -> &[Vec<u8>] {
        &self.open
    }

    pub(super) fn root(&self) -> RootHash {
        let range = CompactRange::from_parts(self.size(), self.edge.clone());
        range.map_or_else(|_| merkle::empty_root(), |range| range.root())
    }

    /// Returns whether another implementation gives the same root, or was not asked.
    pub(super) fn agrees_with_independent_root(&self) -> bool {
        let theirs = self.independent.as_ref().and_then(IndependentRoot::root);
        theirs.is_none_or(|theirs| theirs == *self.root().as_bytes())
    }

    /// Appends a leaf, and returns the tiles that it filled.
    pub(super) fn append(&mut self, leaf: LeafHash) -> Vec<ExpectedTile> {
        if let Some(independent) = &mut self.independent {
            independent.append(*leaf.as_bytes());
        }
        let mut filled = Vec::new();
        let mut node = Hash::from(leaf);
        self.append_hash(0, node, &mut filled);
        for height in 1..=self.size.trailing_ones() {
            let Some(left) = self.edge.pop() else { break };
            node = hash_children(left, node);
            if height % TILE_HEIGHT == 0 {
                self.append_hash((height / TILE_HEIGHT) as u8, node, &mut filled);
            }
        }
        self.edge.push(node);
        self.size += 1;
        filled
    }

    /// Appends a hash to the partial tile of a level; a tile that is full moves to `filled`.
    fn append_hash(&mut self, level: u8, hash: Hash, filled: &mut Vec<ExpectedTile>) {
        if self.open.len() == usize::from(level) {
            self.open.push(Vec::new());
        }
        let number = self.last_tile(level);
        let open = &mut self.open[usize::from(level)];
        open.extend_from_slice(hash.as_bytes());
        if open.len() == TILE_BYTES {
            filled.push(ExpectedTile { address: TileAddress { level, number }, data: std::mem::take(open) });
        }
    }

    /// Number of a level's last tile.
    fn last_tile(&self, level: u8) -> u64 {
        self.size >> (TILE_HEIGHT * (u32::from(level) + 1))
    }

    /// The partial tile of each level.
    pub(super) fn partial(&self) -> impl Iterator<Item = ExpectedTile> {
        let tiles = (0u8..).zip(&self.open).filter(|(_, data)| !data.is_empty());
        tiles.map(|(level, data)| ExpectedTile {
            address: TileAddress { level, number: self.last_tile(level) },
            data: data.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use merkle::EntryDigest;

    use super::*;

    #[test]
    fn a_tree_whose_root_another_implementation_does_not_give_is_noticed() {
        let mut tree = RecomputedTree::default();
        for n in 0..300u64 {
            tree.append(EntryDigest::of(&n.to_be_bytes()).leaf_hash());
            assert!(tree.agrees_with_independent_root(), "{n}");
        }
        tree.edge[0] = hash_children(tree.edge[0], tree.edge[0]);
        assert!(!tree.agrees_with_independent_root());
    }
}
