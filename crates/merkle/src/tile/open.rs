//! The partial tiles of a growing tree, in memory.

use super::{FULL_WIDTH, HASH_LEN, MAX_LEVEL, TILE_HEIGHT, TileId, perfect_root};
use crate::{CompactRange, Hash, MAX_TREE_SIZE, TreeGrowth, TreeSize};

/// Length of a full tile, in bytes.
const FULL_LEN: usize = FULL_WIDTH as usize * HASH_LEN;

/// A tile with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The tile's level, number and width.
    pub id: TileId,
    /// The concatenated hashes.
    pub data: Vec<u8>,
}

/// The partial tile of each level. With these, a log writes its tiles without reading any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenTiles {
    size: TreeSize,
    /// Data of each level's partial tile; empty if the last tile is full.
    levels: Vec<Vec<u8>>,
}

/// Error of [`OpenTiles::grow`]: the growth starts at another tree size than that of the open tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the open tiles are of a tree of size {tiles}, and the batch grows one of size {growth}")]
pub struct OtherTree {
    /// Tree size of the open tiles.
    pub tiles: TreeSize,
    /// Tree size from which the growth starts.
    pub growth: TreeSize,
}

/// Errors of [`OpenTiles::restore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTile {
    /// The number of tiles is not that of [`OpenTiles::needed`].
    #[error("{given} tiles were given, and {needed} are needed")]
    Count {
        /// Number of given tiles.
        given: usize,
        /// Number of needed tiles.
        needed: usize,
    },
    /// The size exceeds [`MAX_TREE_SIZE`].
    #[error("{0} leaves are more than a tree can have")]
    TooLarge(TreeSize),
    /// The data of a tile is too short.
    #[error("tile {number} of level {level} has {given} bytes, and {needed} are needed")]
    Short {
        /// The tile's level.
        level: u8,
        /// The tile's number.
        number: u64,
        /// Number of given bytes.
        given: usize,
        /// Number of needed bytes.
        needed: usize,
    },
}

impl OpenTiles {
    /// The open tiles of the empty tree.
    pub const fn empty() -> Self {
        Self { size: TreeSize::EMPTY, levels: Vec::new() }
    }

    /// The stored tiles to read to continue from a tree of this size: at most one of each level, lowest level first.
    pub fn needed(size: TreeSize) -> Vec<TileId> {
        (0..=MAX_LEVEL).filter_map(|level| open_tile(level, size)).collect()
    }

    /// Restores the open tiles from the stored tiles named by [`needed`](Self::needed), in that order. Later versions
    /// of these tiles are accepted, too. To verify that they belong to this tree, compare [`range`](Self::range) with
    /// the stored edge.
    pub fn restore<T: AsRef<[u8]>>(size: TreeSize, tiles: &[T]) -> Result<Self, BadTile> {
        if size > MAX_TREE_SIZE {
            return Err(BadTile::TooLarge(size));
        }
        let needed = Self::needed(size);
        if tiles.len() != needed.len() {
            return Err(BadTile::Count { given: tiles.len(), needed: needed.len() });
        }
        let mut open = Self { size, levels: vec![Vec::new(); level_count(size)] };
        for (id, data) in needed.into_iter().zip(tiles) {
            open.levels[usize::from(id.level())] = restore_one(id, data.as_ref())?;
        }
        Ok(open)
    }

    /// The size of the tree.
    pub const fn size(&self) -> TreeSize {
        self.size
    }

    /// The right edge of the tree, computed from the tiles. A perfect subtree of 256 hashes would have filled its tile,
    /// so that its root is one tile level up.
    pub fn range(&self) -> CompactRange {
        let open = self.levels.iter().rev();
        let hashes = open.flat_map(|data| perfect_parts(data)).collect();
        CompactRange::of_edge(self.size, hashes)
    }

    /// Returns the open tiles after a batch, and all tiles that the batch changes. The receiver is unchanged, so that a
    /// failed commit needs no rollback.
    pub fn grow(&self, growth: &TreeGrowth) -> Result<(Self, Vec<Tile>), OtherTree> {
        if self.size != growth.from() {
            return Err(OtherTree { tiles: self.size, growth: growth.from() });
        }
        let mut open = Self { size: growth.size(), levels: Vec::with_capacity(level_count(growth.size())) };
        let mut touched = Vec::new();
        for level in 0..level_count(growth.size()) as u8 {
            open.levels.push(self.grow_level(level, growth, &mut touched));
        }
        Ok((open, touched))
    }

    /// Adds the nodes that the batch completed on one level; returns the level's partial tile.
    fn grow_level(&self, level: u8, growth: &TreeGrowth, touched: &mut Vec<Tile>) -> Vec<u8> {
        let height = level * TILE_HEIGHT;
        let mut data = self.levels.get(usize::from(level)).cloned().unwrap_or_default();
        let added = growth.completed(u32::from(height));
        if added.is_empty() {
            return data;
        }
        data.reserve_exact(size_of_val(added));
        data.extend(added.iter().flat_map(Hash::as_bytes));
        let first = self.size.get() >> height >> TILE_HEIGHT;
        for (number, data) in (first..).zip(data.chunks(FULL_LEN)) {
            touched.push(Tile {
                id: TileId { level, number, width: (data.len() / HASH_LEN) as u16 },
                data: data.to_vec(),
            });
        }
        let full = data.len() - data.len() % FULL_LEN;
        data.drain(..full);
        data
    }
}

/// The partial tile of a level; `None` if the last tile is full.
fn open_tile(level: u8, size: TreeSize) -> Option<TileId> {
    let last = size.get() >> (level * TILE_HEIGHT) >> TILE_HEIGHT;
    TileId::at(level, last, size).filter(|tile| !tile.is_full())
}

/// The number of levels that have a tile, full or not.
fn level_count(size: TreeSize) -> usize {
    match size.get().checked_ilog2() {
        Some(height) => height as usize / usize::from(TILE_HEIGHT) + 1,
        None => 0,
    }
}

fn restore_one(id: TileId, data: &[u8]) -> Result<Vec<u8>, BadTile> {
    let data = id.cut(data).ok_or(BadTile::Short {
        level: id.level(),
        number: id.number(),
        given: data.len(),
        needed: id.byte_len(),
    })?;
    Ok(data.to_vec())
}

/// The roots of the perfect subtrees in a partial tile, largest first.
fn perfect_parts(data: &[u8]) -> impl Iterator<Item = Hash> {
    let (mut rest, _) = data.as_chunks();
    std::iter::from_fn(move || {
        let largest = 1 << rest.len().checked_ilog2()?;
        let (part, after) = rest.split_at(largest);
        rest = after;
        perfect_root(part)
    })
}
