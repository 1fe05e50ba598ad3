//! Checks of the tiles: every tile against the tree that is computed again from the digests of the entries.

use merkle::LeafIndex;
use merkle::tile::{OpenTiles, TileId};

use super::deep_check::EntriesPosition;
use super::entries::PageSize;
use super::history::RootComparison;
use super::recomputed_tree::{ExpectedTile, MAX_LEVEL, RecomputedTree};
use super::{CheckedHead, Defect, Fsck, FsckReport};
use crate::proofs::address_of;
use crate::{Entry, HASH_BYTES, Head, StoreError, TileAddress};

impl Fsck<'_> {
    /// Checks the partial tiles against the head's edge.
    pub(super) async fn check_open_tiles(
        &self,
        head: &Head,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
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
        report.add(Defect::EdgeNotOfTiles);
        Ok(())
    }

    /// Checks the next entries: statements, look-up keys, the tiles they fill and the roots. Returns the number of
    /// entries, or `None` once the partial tiles at the end were compared, too.
    pub(super) async fn check_entries(
        &self,
        head: &CheckedHead,
        position: &mut EntriesPosition<'_>,
        page_size: &mut PageSize,
        report: &mut FsckReport,
    ) -> Result<Option<u64>, StoreError> {
        let EntriesPosition { tree, roots } = position;
        let (at, size) = (tree.size().get(), head.size.get());
        if at < size {
            let page = self.page(at, size, page_size.next, report).await?;
            page_size.adjust(&page);
            if report.omitted == 0 || page.iter().any(Option::is_some) {
                self.check_page(at, &page, tree, roots, report).await?;
                return Ok(Some(page.len() as u64));
            }
            // More pages of lost entries would give findings that are neither listed nor read.
        } else {
            for tile in tree.partial() {
                self.check_tile(&tile, report).await?;
            }
            if !tree.agrees_with_independent_root() {
                report.add(Defect::HeadRoot { batch: head.batch, size: head.size, stored: tree.root() });
            }
        }
        roots.wrong.finish(report);
        Ok(None)
    }

    async fn check_page(
        &self,
        at: u64,
        page: &[Option<Entry>],
        tree: &mut RecomputedTree,
        roots: &mut RootComparison<'_>,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        let entries: Vec<&Entry> = page.iter().flatten().collect();
        self.facts.prepare(self.store, &entries).await?;
        let sound: Vec<&Entry> =
            entries.iter().copied().filter(|entry| self.check_statement(entry, report)).collect();
        self.check_look_ups(at, &entries, &sound, report).await?;
        for entry in &sound {
            if let Some(why) = self.facts.effect_missing(self.store, entry).await? {
                report.add(Defect::EffectMissing { index: entry.index, why });
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

    async fn check_tile(&self, expected: &ExpectedTile, report: &mut FsckReport) -> Result<(), StoreError> {
        let TileAddress { level, number } = expected.address;
        let stored = self.store.tiles(&[expected.address]).await?.pop().flatten();
        let Some(stored) = stored else {
            report.add(Defect::TileLost { level, number });
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
                0 => Defect::LeafNotInTile { index: LeafIndex::new(number * 256 + position as u64) },
                _ => Defect::NodeNotOfTile { level, number, position },
            });
        }
        Ok(())
    }

    /// Checks that the tiles hold no hashes beyond the head: they would show that an older head was restored.
    pub(super) async fn check_nothing_beyond(
        &self,
        head: &Head,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        for level in 0..=MAX_LEVEL {
            let nodes = head.size().get() >> (8 * u32::from(level));
            let last = nodes.saturating_sub(1) / 256;
            for number in [last, last + 1] {
                self.check_width(TileAddress { level, number }, report).await?;
            }
        }
        Ok(())
    }

    /// Checks that a tile has no hashes beyond the head.
    async fn check_width(&self, address: TileAddress, report: &mut FsckReport) -> Result<(), StoreError> {
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

fn wrong_width(level: u8, number: u64, stored: usize, expected: u16) -> Defect {
    match stored {
        0 => Defect::TileLost { level, number },
        _ => Defect::TileWidth { level, number, stored, expected: expected.into() },
    }
}
