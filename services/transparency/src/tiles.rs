//! The tree as readers need it: proofs from stored tiles, through a bounded cache.
//!
//! A tile only ever grows, so a cached one that is long enough for the tree asked about is right.
//! A proof reads at most a few tiles: two levels at ten thousand leaves, three at ten million.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use merkle::proof::{self, NoProof, Plan};
use merkle::tile::{self, ShortTile, TileId};
use merkle::{Hash, LeafIndex, TreeSize};
use moka::sync::Cache;
use store::{LogStore, StoreError, TileAddress};

use crate::metrics::Metrics;

/// What a cached tile costs besides its data.
const OVERHEAD: usize = 96;

/// Reads proofs.
pub struct Tiles {
    store: Arc<dyn LogStore>,
    cache: Cache<TileAddress, Bytes>,
    metrics: Arc<Metrics>,
}

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// The tree has no such proof.
    #[error(transparent)]
    NoProof(#[from] NoProof),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tile that the tree must have is missing or short.
    #[error("tile {level}/{number} is missing or short: {why}")]
    Tile {
        /// Its level.
        level: u8,
        /// Its number.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl Tiles {
    /// A reader that keeps at most so many bytes.
    pub fn new(store: Arc<dyn LogStore>, cache_bytes: u64, metrics: Arc<Metrics>) -> Self {
        let cache = Cache::builder()
            .weigher(|_, data: &Bytes| u32::try_from(data.len() + OVERHEAD).unwrap_or(u32::MAX))
            .max_capacity(cache_bytes)
            .build();
        Self { store, cache, metrics }
    }

    /// The inclusion path of a leaf under a committed size.
    pub async fn inclusion(&self, leaf: LeafIndex, size: TreeSize) -> Result<Vec<Hash>, ProofError> {
        let started = Instant::now();
        let path = self.prove(&proof::inclusion(leaf, size)?).await;
        self.metrics.proof("inclusion", started.elapsed());
        path
    }

    /// That the tree of one committed size is the beginning of another.
    pub async fn consistency(&self, older: TreeSize, newer: TreeSize) -> Result<Vec<Hash>, ProofError> {
        let started = Instant::now();
        let path = self.prove(&proof::consistency(older, newer)?).await;
        self.metrics.proof("consistency", started.elapsed());
        path
    }

    /// A tile as wide as its name says.
    pub async fn tile(&self, tile: TileId) -> Result<Bytes, ProofError> {
        let found = self.read(&[tile]).await?;
        let data = found.get(&address(tile)).ok_or_else(|| missing(Some(tile)))?;
        let cut = tile.cut(data).ok_or_else(|| missing(Some(tile)))?;
        Ok(data.slice_ref(cut))
    }

    async fn prove(&self, plan: &Plan) -> Result<Vec<Hash>, ProofError> {
        let tiles = self.read(&tile::needed_for(plan)).await?;
        plan.fold(|node| {
            let part = tile::covering(node, plan.size());
            let found = part.and_then(|part| Some((part, tiles.get(&address(part.tile))?)));
            let (part, data) = found.ok_or_else(|| missing(part.map(|part| part.tile)))?;
            part.hash(data).map_err(|why| short(part.tile, &why))
        })
    }

    async fn read(&self, needed: &[TileId]) -> Result<HashMap<TileAddress, Bytes>, ProofError> {
        let mut found = HashMap::with_capacity(needed.len());
        let mut absent = Vec::new();
        for tile in needed {
            match self.cache.get(&address(*tile)).filter(|data| data.len() >= tile.byte_len()) {
                Some(data) => {
                    found.insert(address(*tile), data);
                }
                None => absent.push(address(*tile)),
            }
        }
        if absent.is_empty() {
            return Ok(found);
        }
        for (address, data) in absent.iter().zip(self.store.tiles(&absent).await?) {
            if let Some(data) = data {
                self.cache.insert(*address, data.clone());
                found.insert(*address, data);
            }
        }
        Ok(found)
    }
}

fn address(tile: TileId) -> TileAddress {
    TileAddress { level: tile.level(), number: tile.number() }
}

fn missing(tile: Option<TileId>) -> ProofError {
    let (level, number) = tile.map_or((0, 0), |tile| (tile.level(), tile.number()));
    ProofError::Tile { level, number, why: "not stored".into() }
}

fn short(tile: TileId, why: &ShortTile) -> ProofError {
    ProofError::Tile { level: tile.level(), number: tile.number(), why: why.to_string() }
}
