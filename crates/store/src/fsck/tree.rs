//! The tree, grown again from the digests and compared with every tile and every root.

use merkle::tile::{OpenTiles, TileId};
use merkle::{CompactRange, Hash, LeafHash, LeafIndex, hash_children};

use super::history::Roots;
use super::{Finding, Fsck, Progress, Report};
use crate::proofs::address_of;
use crate::{HASH_BYTES, Head, StoreError, TILE_BYTES, TileAddress};

/// The highest level that tiles have.
const MAX_LEVEL: u8 = 7;

impl Fsck<'_> {
    /// The partial tiles against the head's edge.
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

    /// Every statement, every look-up key, every tile, every root.
    pub(super) async fn check_tree(&self, head: &Head, report: &mut Report) -> Result<(), StoreError> {
        let size = head.size().get();
        let mut tree = Tree::default();
        let mut roots = Roots::new(self.store).await?;
        let mut at = 0;
        while at < size {
            let page = self.page(at, size, report).await?;
            if report.omitted > 0 && page.iter().all(Option::is_none) {
                break; // more of the same would be neither listed nor looked at
            }
            self.check_look_ups(at, &page, report).await?;
            for (index, entry) in (at..).map(LeafIndex::new).zip(&page) {
                let leaf = match entry {
                    Some(entry) => {
                        self.check_statement(entry, report);
                        entry.digest.leaf_hash()
                    }
                    None => self.leaf_of_lost(index).await?,
                };
                for tile in tree.append(leaf) {
                    self.check_tile(&tile, report).await?;
                }
                roots.compare(&tree.range, report).await?;
            }
            at += page.len() as u64;
            (self.progress)(Progress { entries: at, of: size });
        }
        for tile in tree.partial() {
            self.check_tile(&tile, report).await?;
        }
        roots.finish(report);
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

    /// Nothing stands in the tiles beyond the head: a head that was put back leaves a trace there.
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
        // The head after the tile: what a commit has added meanwhile is in both.
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

/// A tile as the entries give it.
struct Expected {
    address: TileAddress,
    data: Vec<u8>,
}

/// The tree so far: its edge, and the tile of each level that is not full.
#[derive(Default)]
struct Tree {
    range: CompactRange,
    open: Vec<Expected>,
}

impl Tree {
    /// Appends a leaf, and gives the tiles that it filled.
    fn append(&mut self, leaf: LeafHash) -> Vec<Expected> {
        self.range.append(leaf);
        let mut filled = Vec::new();
        let mut hash = Hash::from(leaf);
        for level in 0u8.. {
            if self.open.len() == usize::from(level) {
                self.open.push(Expected { address: TileAddress { level, number: 0 }, data: Vec::new() });
            }
            let open = &mut self.open[usize::from(level)];
            open.data.extend_from_slice(hash.as_bytes());
            if open.data.len() < TILE_BYTES {
                break;
            }
            let next = TileAddress { level, number: open.address.number + 1 };
            let full = std::mem::replace(open, Expected { address: next, data: Vec::new() });
            hash = root_of_full(&full.data);
            filled.push(full);
        }
        filled
    }

    fn partial(self) -> impl Iterator<Item = Expected> {
        self.open.into_iter().filter(|tile| !tile.data.is_empty())
    }
}

fn root_of_full(data: &[u8]) -> Hash {
    let mut nodes: Vec<Hash> = data.as_chunks().0.iter().map(|hash| Hash::from_bytes(*hash)).collect();
    while nodes.len() > 1 {
        nodes = nodes.as_chunks().0.iter().map(|[left, right]| hash_children(*left, *right)).collect();
    }
    nodes[0]
}
