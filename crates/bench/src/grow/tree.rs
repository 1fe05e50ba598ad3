//! The tree of a log that grows by large batches.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use merkle::tile::OpenTiles;
use store::proofs::address_of;
use store::{AppendedBatch, Batch, Head, LogWriter, NewEntry, TileAddress, TileStore};

/// The committed head, and the tiles that are not full.
pub(super) struct GrowingTree {
    head: Head,
    tiles: OpenTiles,
}

impl GrowingTree {
    /// Continues the stored tree in a new epoch.
    pub(super) async fn resume<S: LogWriter + TileStore + ?Sized>(
        store: &S,
        holder: &str,
    ) -> anyhow::Result<Self> {
        let head = store.take_over(holder).await?;
        let needed = OpenTiles::needed(head.size());
        let addresses: Vec<TileAddress> = needed.into_iter().map(address_of).collect();
        let stored = store.tiles(&addresses).await?;
        let stored: Option<Vec<_>> = stored.into_iter().collect();
        let tiles = OpenTiles::restore(head.size(), &stored.context("a tile of the right edge is missing")?)?;
        ensure!(tiles.range() == head.edge, "the tiles of the right edge are not those of the head");
        Ok(Self { head, tiles })
    }

    /// Begins a new epoch at the same head.
    pub(super) async fn begin_epoch<S: LogWriter + ?Sized>(
        &mut self,
        store: &S,
        holder: &str,
    ) -> anyhow::Result<()> {
        let taken = store.take_over(holder).await?;
        ensure!(taken.edge == self.head.edge, "another process has written to the log");
        self.head = taken;
        Ok(())
    }

    /// Commits the entries as one batch.
    pub(super) async fn append<S: LogWriter + ?Sized>(
        &mut self,
        store: &S,
        entries: Vec<NewEntry>,
    ) -> anyhow::Result<()> {
        let at = now().max(self.head.at);
        let AppendedBatch { batch, tiles, .. } = Batch::append(&self.head, &self.tiles, at, entries)?;
        store.commit(&batch).await?;
        (self.head, self.tiles) = (batch.to, tiles);
        Ok(())
    }

    /// Returns the committed head.
    pub(super) fn into_head(self) -> Head {
        self.head
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
