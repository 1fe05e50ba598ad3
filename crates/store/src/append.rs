//! Building a batch that appends entries, with the tree after it.
//!
//! Not here: which entries may be appended (`sequencer`), and the commit ([`LogWriter`](crate::LogWriter)).

use merkle::tile::{OpenTiles, OtherTree, Tile};
use merkle::{LeafHash, TreeGrowth};

use crate::proofs::address_of;
use crate::{Batch, Head, NewEntry, TileWrite};

/// A batch that is ready to be committed, with the tree after it.
#[derive(Clone, Debug)]
pub struct AppendedBatch {
    /// The batch. It settles nothing, and has no effects and signatures.
    pub batch: Batch,
    /// The growth of the tree, which has the paths of the new leaves.
    pub growth: TreeGrowth,
    /// The tiles that are not full after the batch.
    pub tiles: OpenTiles,
}

impl Batch {
    /// Builds the batch that appends entries to a log with this head, at the time `at`. `tiles` are the tiles of its right
    /// edge. The policy in force stays that of `from`. Without entries, the head stays as it is.
    ///
    /// # Errors
    /// [`OtherTree`] if the tiles are not those of the head.
    pub fn append(
        from: &Head,
        tiles: &OpenTiles,
        at: u64,
        entries: Vec<NewEntry>,
    ) -> Result<AppendedBatch, OtherTree> {
        let leaves: Vec<LeafHash> = entries.iter().map(|entry| entry.digest.leaf_hash()).collect();
        let growth = from.edge.grow(&leaves);
        let (tiles, touched) = tiles.grow(&growth)?;
        let to = match entries.is_empty() {
            true => from.clone(),
            false => Head {
                epoch: from.epoch,
                batch: from.batch + 1,
                edge: growth.range().clone(),
                at,
                policy: from.policy,
            },
        };
        let batch = Batch {
            from: from.clone(),
            to,
            entries,
            tiles: touched.into_iter().map(TileWrite::from).collect(),
            settled: Vec::new(),
            effects: Vec::new(),
            signatures: Vec::new(),
        };
        Ok(AppendedBatch { batch, growth, tiles })
    }
}

impl From<Tile> for TileWrite {
    fn from(tile: Tile) -> Self {
        Self { address: address_of(tile.id), data: tile.data.into() }
    }
}
