//! Tiles of the log's tree.

use async_trait::async_trait;
use bytes::Bytes;

use crate::{StoreError, TileAddress};

/// Reading of the tree's tiles.
#[async_trait]
pub trait TileStore: Send + Sync + 'static {
    /// Reads tiles as stored: one answer per address, in order. The right-most tile of a level may be partial, or
    /// have grown since it was last read.
    async fn tiles(&self, addresses: &[TileAddress]) -> Result<Vec<Option<Bytes>>, StoreError>;
}
