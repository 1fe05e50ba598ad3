//! Inclusion and consistency proofs (RFC 9162), computed from stored tiles.
//!
//! A proof for an older size is made from the present tiles: a tile only grows, so its older content is a prefix
//! of the present one. A checked proof is hashed up to the root of its head, so that a damaged tile is an error
//! here and does not become a receipt that fails verification.
//!
//! Not here: encodings of proofs, and which heads may be proven against.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use merkle::proof::{self, NoProof, ProofPlan};
use merkle::tile::{self, TileId};
use merkle::{Hash, LeafHash, LeafIndex, TreeSize, verify};

use crate::{CommittedHead, StoreError, TileAddress, TileStore};

/// Reason why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum TileProofError {
    /// No tree has such a proof: the leaf is not in the tree, or the tree shrinks.
    #[error(transparent)]
    NoProof(#[from] NoProof),
    /// The tiles could not be read, or do not lead to the root.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Cache of full tiles, which never change. Partial tiles are never passed to it.
pub trait TileCache: Send + Sync {
    /// Returns a tile that was kept earlier.
    fn get(&self, address: TileAddress) -> Option<Bytes>;
    /// Offers a full tile, which the cache may keep.
    fn keep(&self, address: TileAddress, data: &Bytes);
}

/// Computes proofs from the tiles of one store.
#[derive(Clone, Copy)]
pub struct Prover<'a> {
    store: &'a dyn TileStore,
    cache: Option<&'a dyn TileCache>,
}

impl<'a> Prover<'a> {
    /// Makes a prover that reads every tile from the store.
    pub fn new(store: &'a dyn TileStore) -> Self {
        Self { store, cache: None }
    }

    /// Makes a prover that looks up tiles in the cache first.
    pub fn cached(store: &'a dyn TileStore, cache: &'a dyn TileCache) -> Self {
        Self { store, cache: Some(cache) }
    }

    /// Computes the inclusion path of a leaf in the tree of a committed head, and checks it against the head's root.
    pub async fn inclusion(
        &self,
        leaf: LeafHash,
        index: LeafIndex,
        head: &CommittedHead,
    ) -> Result<Vec<Hash>, TileProofError> {
        let path = self.inclusion_path(index, head.size).await?;
        match verify::inclusion(leaf, index, head.size, &path, head.root) {
            Ok(()) => Ok(path),
            Err(error) => Err(damaged(format!("leaf {index} in size {}: {error}", head.size)).into()),
        }
    }

    /// Computes the consistency path between two committed heads, and checks it against both roots.
    pub async fn consistency(
        &self,
        older: &CommittedHead,
        newer: &CommittedHead,
    ) -> Result<Vec<Hash>, TileProofError> {
        let path = self.consistency_path(older.size, newer.size).await?;
        match verify::consistency(older.size, newer.size, older.root, newer.root, &path) {
            Ok(()) => Ok(path),
            Err(error) => Err(damaged(format!("sizes {} and {}: {error}", older.size, newer.size)).into()),
        }
    }

    /// Computes an inclusion path without checking it. The size must have been committed.
    pub async fn inclusion_path(
        &self,
        index: LeafIndex,
        size: TreeSize,
    ) -> Result<Vec<Hash>, TileProofError> {
        Ok(self.fold(&proof::inclusion(index, size)?).await?)
    }

    /// Computes a consistency path without checking it. Both sizes must have been committed.
    pub async fn consistency_path(
        &self,
        older: TreeSize,
        newer: TreeSize,
    ) -> Result<Vec<Hash>, TileProofError> {
        Ok(self.fold(&proof::consistency(older, newer)?).await?)
    }

    async fn fold(&self, plan: &ProofPlan) -> Result<Vec<Hash>, StoreError> {
        let tiles = self.read(&tile::needed_for(plan)).await?;
        plan.fold(|node| {
            let part =
                tile::covering(node, plan.size()).ok_or_else(|| damaged("a proof needs no such node"))?;
            let address = address_of(part.tile);
            let data = tiles.get(&address).ok_or_else(|| missing(address))?;
            part.hash(data).map_err(|short| damaged(format!("{}: {short}", name(address))))
        })
    }

    async fn read(&self, needed: &[TileId]) -> Result<HashMap<TileAddress, Bytes>, StoreError> {
        let mut tiles = HashMap::with_capacity(needed.len());
        let mut absent = Vec::new();
        for address in needed.iter().copied().map(address_of) {
            match self.cache.and_then(|cache| cache.get(address)) {
                Some(data) => drop(tiles.insert(address, data)),
                None => absent.push(address),
            }
        }
        if absent.is_empty() {
            return Ok(tiles);
        }
        for (address, data) in absent.iter().zip(self.store.tiles(&absent).await?) {
            let data = data.ok_or_else(|| missing(*address))?;
            if data.len() == crate::TILE_BYTES
                && let Some(cache) = self.cache
            {
                cache.keep(*address, &data);
            }
            tiles.insert(*address, data);
        }
        Ok(tiles)
    }
}

/// [`TileCache`] in two generations, which evicts the tiles that were not used recently.
#[derive(Debug)]
pub struct RecentTiles {
    half: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<TileAddress, Bytes>,
    old: HashMap<TileAddress, Bytes>,
}

impl RecentTiles {
    /// Holds at most this many tiles of 8 KiB.
    pub fn new(tiles: usize) -> Self {
        Self { half: tiles / 2, generations: Mutex::default() }
    }
}

impl TileCache for RecentTiles {
    fn get(&self, address: TileAddress) -> Option<Bytes> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(data) = generations.young.get(&address) {
            return Some(data.clone());
        }
        let data = generations.old.remove(&address)?;
        generations.keep(self.half, address, data.clone());
        Some(data)
    }

    fn keep(&self, address: TileAddress, data: &Bytes) {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        generations.keep(self.half, address, data.clone());
    }
}

impl Generations {
    fn keep(&mut self, half: usize, address: TileAddress, data: Bytes) {
        if self.young.len() >= half {
            self.old = std::mem::take(&mut self.young);
        }
        if half > 0 {
            self.young.insert(address, data);
        }
    }
}

/// Storage address of a tile. The width is not part of it: a partial tile grows in place.
pub fn address_of(tile: TileId) -> TileAddress {
    TileAddress { level: tile.level(), number: tile.number() }
}

fn name(TileAddress { level, number }: TileAddress) -> String {
    format!("tile {number} of level {level}")
}

fn missing(address: TileAddress) -> StoreError {
    damaged(format!("{} is missing", name(address)))
}

fn damaged(why: impl Into<String>) -> StoreError {
    StoreError::Damaged(why.into())
}
