//! Check of the tree: grown again from the digests and compared with every tile and every root.

use merkle::tile::{BadTile, OpenTiles, TileId};
use merkle::{CompactRange, Hash, LeafHash, LeafIndex, RootHash, TreeSize, hash_children};

use super::entries::Pages;
use super::history::Roots;
use super::{Finding, Fsck, Report, Target};
use crate::proofs::address_of;
use crate::{Entry, HASH_BYTES, Head, StoreError, TILE_BYTES, TileAddress};

/// Highest level of tiles.
const MAX_LEVEL: u8 = 7;
/// Number of tree levels in a tile: one hash covers 2^8 hashes of the tile below.
const TILE_HEIGHT: u32 = 8;

impl Fsck<'_> {
    /// Checks the partial tiles against the head's edge.
    pub(super) async fn check_open_tiles(&self, head: &Head, report: &mut Report) -> Result<(), StoreError> {
        let needed = OpenTiles::needed(head.size());
        let addresses: Vec<TileAddress> = needed.iter().copied().map(address_of).collect();
        let stored = self.store.tiles(&addresses).await?;
        let mut complete = true;
        for (tile, data) in needed.iter().zip(&stored) {
            let width = data.as_ref().map_or(0, |data| data.len() / HASH_BYTES);
            // A wider tile is right if the log has grown meanwhile.
            if width < usize::from(tile.width()) {
                report.add(wrong_width(tile.level(), tile.number(), width, tile.width()));
                complete = false;
            }
        }
        if !complete {
            return Ok(());
        }
        let data: Vec<_> = stored.into_iter().flatten().collect();
        if OpenTiles::restore(head.size(), &data).is_ok_and(|open| open.range() == head.edge) {
            return Ok(());
        }
        report.add(Finding::EdgeNotOfTiles);
        Ok(())
    }

    /// Checks the next entries: statements, look-up keys, the tiles they fill and the roots. Returns the number of
    /// entries, or `None` once the partial tiles at the end were compared, too.
    pub(super) async fn check_entries(
        &self,
        head: &Target,
        tree: &mut Tree,
        roots: &mut Roots<'_>,
        pages: &mut Pages,
        report: &mut Report,
    ) -> Result<Option<u64>, StoreError> {
        let (at, size) = (tree.size().get(), head.size.get());
        if at < size {
            let page = self.page(at, size, pages.next, report).await?;
            pages.saw(&page);
            if report.omitted == 0 || page.iter().any(Option::is_some) {
                self.check_page(at, &page, tree, roots, report).await?;
                return Ok(Some(page.len() as u64));
            }
            // More pages of lost entries would give findings that are neither listed nor read.
        } else {
            for tile in tree.partial() {
                self.check_tile(&tile, report).await?;
            }
        }
        roots.wrong.finish(report);
        Ok(None)
    }

    async fn check_page(
        &self,
        at: u64,
        page: &[Option<Entry>],
        tree: &mut Tree,
        roots: &mut Roots<'_>,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let entries: Vec<&Entry> = page.iter().flatten().collect();
        self.meaning.prepare(self.store, &entries).await?;
        let sound: Vec<&Entry> =
            entries.iter().copied().filter(|entry| self.check_statement(entry, report)).collect();
        self.check_look_ups(at, &entries, &sound, report).await?;
        for entry in &sound {
            if let Some(why) = self.meaning.effect_missing(self.store, entry).await? {
                report.add(Finding::EffectMissing { index: entry.index, why });
            }
        }
        for (index, entry) in (at..).map(LeafIndex::new).zip(page) {
            let leaf = match entry {
                Some(entry) => entry.digest.leaf_hash(),
                None => self.leaf_of_lost(index).await?,
            };
            for tile in tree.append(leaf) {
                self.check_tile(&tile, report).await?;
            }
            roots.compare(tree, report).await?;
        }
        Ok(())
    }

    async fn check_tile(&self, expected: &Expected, report: &mut Report) -> Result<(), StoreError> {
        let TileAddress { level, number } = expected.address;
        let stored = self.store.tiles(&[expected.address]).await?.pop().flatten();
        let Some(stored) = stored else {
            report.add(Finding::TileLost { level, number });
            return Ok(());
        };
        let (wanted, found) = (expected.data.as_chunks::<HASH_BYTES>().0, stored.as_chunks::<HASH_BYTES>().0);
        if found.len() < wanted.len() {
            report.add(wrong_width(level, number, found.len(), wanted.len() as u16));
        }
        for (position, _) in
            wanted.iter().zip(found).enumerate().filter(|(_, (wanted, found))| wanted != found)
        {
            report.add(match level {
                0 => Finding::LeafNotInTile { index: LeafIndex::new(number * 256 + position as u64) },
                _ => Finding::NodeNotOfTile { level, number, position },
            });
        }
        Ok(())
    }

    /// Checks that the tiles hold no hashes beyond the head: they would show that an older head was restored.
    pub(super) async fn check_nothing_beyond(
        &self,
        head: &Head,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        for level in 0..=MAX_LEVEL {
            let nodes = head.size().get() >> (8 * u32::from(level));
            let last = nodes.saturating_sub(1) / 256;
            for number in [last, last + 1] {
                self.check_end(TileAddress { level, number }, report).await?;
            }
        }
        Ok(())
    }

    async fn check_end(&self, address: TileAddress, report: &mut Report) -> Result<(), StoreError> {
        let TileAddress { level, number } = address;
        let stored = self.store.tiles(&[address]).await?.pop().flatten();
        let stored = stored.map_or(0, |data| data.len() / HASH_BYTES);
        if stored == 0 {
            return Ok(());
        }
        // The head is read after the tile, so it covers all that a commit has added meanwhile.
        let size = self.store.head().await?.size();
        let expected = TileId::at(level, number, size).map_or(0, TileId::width);
        if stored > usize::from(expected) {
            report.add(wrong_width(level, number, stored, expected));
        }
        Ok(())
    }
}

fn wrong_width(level: u8, number: u64, stored: usize, expected: u16) -> Finding {
    match stored {
        0 => Finding::TileLost { level, number },
        _ => Finding::TileWidth { level, number, stored, expected: expected.into() },
    }
}

/// Tile as computed from the entries.
pub(super) struct Expected {
    address: TileAddress,
    data: Vec<u8>,
}

/// Tree grown so far: its size and edge, and the partial tile of each level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    size: u64,
    edge: Vec<Hash>,
    open: Vec<Vec<u8>>,
}

impl Tree {
    /// Restores a tree from [`size`](Self::size) and [`open`](Self::open).
    pub(super) fn restore(size: TreeSize, open: Vec<Vec<u8>>) -> Result<Self, BadTile> {
        let nodes = (0..=u32::from(MAX_LEVEL)).map(|level| size.get() >> (TILE_HEIGHT * level));
        let widths = nodes.take_while(|nodes| *nodes > 0).map(|nodes| (nodes % 256) as usize * HASH_BYTES);
        if !widths.eq(open.iter().map(Vec::len)) {
            return Err(BadTile::Count { given: open.len(), needed: OpenTiles::needed(size).len() });
        }
        let data: Vec<&Vec<u8>> = open.iter().filter(|data| !data.is_empty()).collect();
        let tiles = OpenTiles::restore(size, &data)?;
        Ok(Self { size: size.get(), edge: tiles.range().hashes().to_vec(), open })
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

    /// Appends a leaf, and returns the tiles that it filled.
    fn append(&mut self, leaf: LeafHash) -> Vec<Expected> {
        let mut filled = Vec::new();
        let mut node = Hash::from(leaf);
        self.complete(0, node, &mut filled);
        for height in 1..=self.size.trailing_ones() {
            let Some(left) = self.edge.pop() else { break };
            node = hash_children(left, node);
            if height % TILE_HEIGHT == 0 {
                self.complete((height / TILE_HEIGHT) as u8, node, &mut filled);
            }
        }
        self.edge.push(node);
        self.size += 1;
        filled
    }

    /// Appends a hash to a level.
    fn complete(&mut self, level: u8, hash: Hash, filled: &mut Vec<Expected>) {
        if self.open.len() == usize::from(level) {
            self.open.push(Vec::new());
        }
        let number = self.number(level);
        let open = &mut self.open[usize::from(level)];
        open.extend_from_slice(hash.as_bytes());
        if open.len() == TILE_BYTES {
            filled.push(Expected { address: TileAddress { level, number }, data: std::mem::take(open) });
        }
    }

    /// Number of a level's last tile.
    fn number(&self, level: u8) -> u64 {
        self.size >> (TILE_HEIGHT * (u32::from(level) + 1))
    }

    fn partial(&self) -> impl Iterator<Item = Expected> {
        let tiles = (0u8..).zip(&self.open).filter(|(_, data)| !data.is_empty());
        tiles.map(|(level, data)| Expected {
            address: TileAddress { level, number: self.number(level) },
            data: data.clone(),
        })
    }
}
