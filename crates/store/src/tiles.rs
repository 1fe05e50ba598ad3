//! Tiles of the log's tree.

use async_trait::async_trait;
use bytes::Bytes;
use merkle::tile::TileId;

use crate::{HASH_BYTES, Head, StoreError, TILE_BYTES, TileAddress, TileWrite};

/// Number of parts of a tile at which the batch that fills the tile replaces them by one, in an implementation that
/// stores the hashes of each batch as a part of their own.
pub const TILE_PARTS: usize = 8;

impl TileWrite {
    /// Returns the hashes that a batch on this head adds to the tile, and the position of the first of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if there are none.
    pub fn added(&self, from: &Head) -> Result<(u16, &[u8]), StoreError> {
        let TileAddress { level, number } = self.address;
        let first = TileId::at(level, number, from.size()).map_or(0, TileId::width);
        let added = self.data.get(usize::from(first) * HASH_BYTES..).filter(|added| !added.is_empty());
        let refused =
            || StoreError::Refused(format!("tile {level}/{number} would change instead of growing"));
        Ok((first, added.ok_or_else(refused)?))
    }

    /// Returns the 256 hashes of a tile that is full.
    pub fn full(&self) -> Option<&[u8]> {
        (self.data.len() == TILE_BYTES).then_some(&self.data[..])
    }
}

/// Reading of the tree's tiles.
#[async_trait]
pub trait TileStore: Send + Sync + 'static {
    /// Reads tiles as stored: one answer per address, in order. The right-most tile of a level may be partial, or
    /// have grown since it was last read.
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError>;
}
