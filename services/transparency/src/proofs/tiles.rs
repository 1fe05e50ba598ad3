//! Proofs from stored tiles, through a bounded cache.
//!
//! A tile from the database is verified before it is used: a full tile against the tile above it, another one against
//! the edge of the committed head. So a damaged tile is a [`ProofFailure::Tile`], and never a proof that fails at the
//! client.
//!
//! A tile only ever grows, so a cached one that is long enough for the requested tree is right. A proof reads only a
//! few tiles: two levels at ten thousand leaves, three at ten million. A tile is cached with the nodes above its hashes,
//! so a proof from cached tiles hashes nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use merkle::proof::{self, NoProof, ProofPlan};
use merkle::tile::{self, FULL_WIDTH, InnerNodes, ShortTile, TileId, TilePart};
use merkle::{Hash, LeafIndex, RootHash, TreeSize};
use moka::sync::Cache;
use store::{HASH_BYTES, Head, StoreError, TileAddress, TreeReader};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::limits::{TILE_LOCKS, TILE_WAIT};
use crate::metrics::Metrics;

/// Memory of a cached tile besides its data, in bytes.
const OVERHEAD: usize = 96;

/// A reader of proofs and tiles with a cache.
pub struct Tiles {
    store: Arc<dyn TreeReader>,
    cache: Cache<TileAddress, Arc<HashedTile>>,
    /// Of the requests that need the same tile, one reads it from the database, and the others find it in the cache.
    fetching: [Mutex<()>; TILE_LOCKS],
    metrics: Arc<Metrics>,
}

/// A tile with the nodes above its hashes.
struct HashedTile {
    data: Bytes,
    inner: InnerNodes,
}

/// Tiles that one proof needs, by address.
type KnownTiles = HashMap<TileAddress, Arc<HashedTile>>;

/// Reason why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum ProofFailure {
    /// The tree has no such proof.
    #[error(transparent)]
    NoProof(#[from] NoProof),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tile that the tree must have is missing, short or damaged.
    #[error("tile {level}/{number} cannot be used: {why}")]
    Tile {
        /// The tile's level.
        level: u8,
        /// The tile's number.
        number: u64,
        /// The defect, in words.
        why: String,
    },
}

impl Tiles {
    /// Creates a reader whose cache keeps at most `cache_bytes`.
    pub fn new(store: Arc<dyn TreeReader>, cache_bytes: u64, metrics: Arc<Metrics>) -> Self {
        let cache = Cache::builder()
            .weigher(|_, tile: &Arc<HashedTile>| u32::try_from(tile.memory()).unwrap_or(u32::MAX))
            .max_capacity(cache_bytes)
            .build();
        Self { store, cache, fetching: std::array::from_fn(|_| Mutex::default()), metrics }
    }

    /// The inclusion path of a leaf in the tree of a committed size.
    pub async fn inclusion(&self, leaf: LeafIndex, size: TreeSize) -> Result<Vec<Hash>, ProofFailure> {
        let started = Instant::now();
        let path = self.prove(&proof::inclusion(leaf, size)?).await;
        self.metrics.proof("inclusion", started.elapsed());
        path
    }

    /// The consistency proof between two committed sizes.
    pub async fn consistency(&self, older: TreeSize, newer: TreeSize) -> Result<Vec<Hash>, ProofFailure> {
        let started = Instant::now();
        let path = self.prove(&proof::consistency(older, newer)?).await;
        self.metrics.proof("consistency", started.elapsed());
        path
    }

    /// The root of the tree of any size that is not above the committed one.
    pub async fn root(&self, size: TreeSize) -> Result<RootHash, ProofFailure> {
        let roots = self.prove(&proof::root(size)?).await?;
        roots.first().map(|root| RootHash::from_bytes(*root.as_bytes())).ok_or_else(|| missing(None))
    }

    /// A tile of exactly the width in its ID.
    pub async fn tile(&self, tile: TileId) -> Result<Bytes, ProofFailure> {
        let found = self.read(&[tile]).await?;
        let data = &found.get(&address(tile)).ok_or_else(|| missing(Some(tile)))?.data;
        let cut = tile.cut(data).ok_or_else(|| missing(Some(tile)))?;
        Ok(data.slice_ref(cut))
    }

    async fn prove(&self, plan: &ProofPlan) -> Result<Vec<Hash>, ProofFailure> {
        let tiles = self.read(&tile::needed_for(plan)).await?;
        plan.fold(|node| {
            let part = tile::covering(node, plan.size());
            let found = part.and_then(|part| Some((part, tiles.get(&address(part.tile))?)));
            let (part, tile) = found.ok_or_else(|| missing(part.map(|part| part.tile)))?;
            tile.hash(&part).map_err(|why| short(part.tile, &why))
        })
    }

    /// Tiles from the cache, or from the database and then verified. A returned tile may be wider than requested.
    async fn read(&self, needed: &[TileId]) -> Result<KnownTiles, ProofFailure> {
        let (found, absent) = self.in_cache(needed);
        let Some(first) = absent.first() else { return Ok(found) };
        let _alone = timeout(TILE_WAIT, self.fetching[first.number as usize % TILE_LOCKS].lock()).await;
        let (mut found, absent) = self.in_cache(needed);
        if absent.is_empty() {
            return Ok(found);
        }
        // Read the head first: the tiles read after it contain all of its hashes.
        let head = self.store.head().await?;
        let checked = self.fetch(&head, &absent).await?;
        found.extend(absent.iter().filter_map(|address| Some((*address, checked.get(address)?.clone()))));
        Ok(found)
    }

    /// The tiles that are in the cache, and the addresses of the others.
    fn in_cache(&self, needed: &[TileId]) -> (KnownTiles, Vec<TileAddress>) {
        let mut found = HashMap::with_capacity(needed.len());
        let mut absent = Vec::new();
        for tile in needed {
            match self.cached(address(*tile), tile.byte_len()) {
                Some(known) => drop(found.insert(address(*tile), known)),
                None => absent.push(address(*tile)),
            }
        }
        (found, absent)
    }

    /// A tile of at least so many bytes from the cache.
    fn cached(&self, address: TileAddress, bytes: usize) -> Option<Arc<HashedTile>> {
        self.cache.get(&address).filter(|tile| tile.data.len() >= bytes)
    }

    /// Reads tiles, with the uncached ones above them, and verifies them from the head's edge downwards.
    async fn fetch(&self, head: &Head, absent: &[TileAddress]) -> Result<KnownTiles, ProofFailure> {
        let mut known = HashMap::new();
        let mut wanted = BTreeSet::new();
        for address in absent {
            self.want(head, *address, &mut known, &mut wanted);
        }
        let wanted: Vec<TileAddress> = wanted.into_iter().collect();
        let stored = self.store.tiles(&wanted).await?;
        for (address, data) in wanted.into_iter().zip(stored).rev() {
            let Some((tile, data)) = whole(head, address, data) else { continue };
            let hashed = Arc::new(HashedTile::of(data));
            check(head, tile, &hashed, &known)?;
            self.cache.insert(address, hashed.clone());
            known.insert(address, hashed);
        }
        Ok(known)
    }

    /// Collects a tile, and those above it up to one that is cached or not full.
    fn want(
        &self,
        head: &Head,
        address: TileAddress,
        known: &mut KnownTiles,
        wanted: &mut BTreeSet<TileAddress>,
    ) {
        let mut next = Some(address);
        while let Some(address) = next.take().filter(|address| wanted.insert(*address)) {
            let Some(above) = above(head, address) else { continue };
            let enough = (position(address) + 1) * HASH_BYTES;
            match self.cached(above, enough) {
                Some(tile) => drop(known.insert(above, tile)),
                None => next = Some(above),
            }
        }
    }
}

impl HashedTile {
    fn of(data: Bytes) -> Self {
        Self { inner: InnerNodes::of(&data), data }
    }

    /// The hash over a part of the tile.
    fn hash(&self, part: &TilePart) -> Result<Hash, ShortTile> {
        self.inner.get(part).map_or_else(|| part.hash(&self.data), Ok)
    }

    /// Bytes that a cached tile takes.
    fn memory(&self) -> usize {
        self.data.len() + self.inner.byte_len() + OVERHEAD
    }
}

/// The tile that contains this one's root; `None` for one that is not full: its hashes are in the head's edge.
fn above(head: &Head, address: TileAddress) -> Option<TileAddress> {
    let tile = TileId::at(address.level, address.number, head.size())?;
    let TileAddress { level, number } = address;
    tile.is_full().then_some(TileAddress { level: level + 1, number: number / u64::from(FULL_WIDTH) })
}

/// The position of a tile's root in the tile above it.
fn position(address: TileAddress) -> usize {
    (address.number % u64::from(FULL_WIDTH)) as usize
}

/// A tile cut to the width it has in the head's tree: hashes added since then are not verified.
fn whole(head: &Head, address: TileAddress, data: Option<Bytes>) -> Option<(TileId, Bytes)> {
    let tile = TileId::at(address.level, address.number, head.size())?;
    let data = data?;
    let cut = tile.cut(&data)?;
    Some((tile, data.slice_ref(cut)))
}

/// Verifies a tile against the tile above it or the head's edge; a damaged one is an error.
fn check(head: &Head, tile: TileId, hashed: &HashedTile, known: &KnownTiles) -> Result<(), ProofFailure> {
    let is_right = match above(head, address(tile)) {
        None => roots_of(tile, hashed)?.as_slice() == in_edge(head, tile),
        Some(above) => {
            let at = position(address(tile)) * HASH_BYTES;
            let root = hashed
                .hash(&TilePart { tile, first: 0, count: FULL_WIDTH })
                .map_err(|why| short(tile, &why))?;
            let above = known
                .get(&above)
                .ok_or_else(|| missing(TileId::at(above.level, above.number, head.size())))?;
            above.data.get(at..at + HASH_BYTES) == Some(&root.as_bytes()[..])
        }
    };
    match is_right {
        true => Ok(()),
        false => Err(ProofFailure::Tile {
            level: tile.level(),
            number: tile.number(),
            why: "its hashes do not lead to the root of the log: it is damaged".into(),
        }),
    }
}

/// The roots of the perfect subtrees in a tile that is not full, largest first.
fn roots_of(tile: TileId, hashed: &HashedTile) -> Result<Vec<Hash>, ProofFailure> {
    let counts = (0..u16::BITS).rev().map(|height| 1 << height).filter(|count| tile.width() & count != 0);
    let parts = counts.scan(0, |first, count| {
        let part = TilePart { tile, first: *first, count };
        *first += count;
        Some(part)
    });
    parts.map(|part| hashed.hash(&part).map_err(|why| short(tile, &why))).collect()
}

/// The part of the head's edge with the same roots. The edge is ordered by level, the highest first.
fn in_edge(head: &Head, tile: TileId) -> &[Hash] {
    let larger = head.size().get().checked_shr(8 * (u32::from(tile.level()) + 1)).unwrap_or(0);
    let first = larger.count_ones() as usize;
    let count = tile.width().count_ones() as usize;
    head.edge.hashes().get(first..first + count).unwrap_or_default()
}

fn address(tile: TileId) -> TileAddress {
    TileAddress { level: tile.level(), number: tile.number() }
}

fn missing(tile: Option<TileId>) -> ProofFailure {
    let (level, number) = tile.map_or((0, 0), |tile| (tile.level(), tile.number()));
    ProofFailure::Tile { level, number, why: "not stored".into() }
}

fn short(tile: TileId, why: &ShortTile) -> ProofFailure {
    ProofFailure::Tile { level: tile.level(), number: tile.number(), why: why.to_string() }
}
