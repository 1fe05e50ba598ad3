//! Checks of the entries: each statement against its digest, and recent digests against the tiles of leaves.

use merkle::{EntryDigest, LeafHash, LeafIndex};

use super::{Defect, Fsck, FsckReport, PAGE, PAGE_BYTES, QUICK_ENTRIES, damage};
use crate::{Entry, HASH_BYTES, Head, StoreError, TileAddress};

/// Size of the first page, before the size of the entries is known.
const FIRST_PAGE: usize = 8;

impl Fsck<'_> {
    /// Checks the last [`QUICK_ENTRIES`] entries: statement against digest, and digest against the tile of leaves.
    pub(super) async fn check_recent_entries(
        &self,
        head: &Head,
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        let size = head.size().get();
        let mut at = size.saturating_sub(QUICK_ENTRIES);
        while at < size {
            let page = self.page(at, size, PAGE, report).await?;
            let entries: Vec<&Entry> = page.iter().flatten().collect();
            self.facts.prepare(self.store, &entries).await?;
            for (index, entry) in (at..).map(LeafIndex::new).zip(&page) {
                let Some(entry) = entry else { continue };
                self.check_statement(entry, report);
                // A missing tile is reported by the check of the open tiles or of the recent roots.
                let stored = self.stored_leaf(index).await?;
                if stored.is_some_and(|stored| stored != *entry.digest.leaf_hash().as_bytes()) {
                    report.add(Defect::LeafNotInTile { index });
                }
            }
            at += page.len() as u64;
        }
        Ok(())
    }

    /// Reads the next entries; `None` for one that is missing or unreadable.
    pub(super) async fn page(
        &self,
        from: u64,
        end: u64,
        limit: usize,
        report: &mut FsckReport,
    ) -> Result<Vec<Option<Entry>>, StoreError> {
        let count = (end - from).min(limit as u64) as usize;
        if let Ok(page) = damage(self.store.entries(LeafIndex::new(from), count).await)?
            && page.len() == count
        {
            return Ok(page.into_iter().map(Some).collect());
        }
        let mut page = Vec::with_capacity(count);
        for index in (from..from + count as u64).map(LeafIndex::new) {
            let entry = damage(self.store.entry(index).await)?;
            let entry = entry.and_then(|entry| entry.ok_or_else(|| "missing".to_owned()));
            page.push(entry.map_err(|why| report.add(Defect::EntryLost { index, why })).ok());
        }
        Ok(page)
    }

    /// Checks the statement against its digest; returns whether the statement is present and right.
    pub(super) fn check_statement(&self, entry: &Entry, report: &mut FsckReport) -> bool {
        report.entries += 1;
        let index = entry.index;
        match &entry.statement {
            Some(bytes) if EntryDigest::of(bytes) == entry.digest => return true,
            Some(_) => report.add(Defect::StatementNotOfDigest { index }),
            None if !self.facts.may_be_erased(index) => report.add(Defect::ErasedSilently { index }),
            None => {}
        }
        false
    }

    /// Returns the leaf hash of a lost entry from its tile, so that the rest of the tree can still be checked.
    pub(super) async fn leaf_of_lost(&self, index: LeafIndex) -> Result<LeafHash, StoreError> {
        Ok(LeafHash::from_bytes(self.stored_leaf(index).await?.unwrap_or_default()))
    }

    async fn stored_leaf(&self, index: LeafIndex) -> Result<Option<[u8; HASH_BYTES]>, StoreError> {
        let address = TileAddress { level: 0, number: index.get() / 256 };
        let tile = self.store.tiles(&[address]).await?.pop().flatten();
        let position = (index.get() % 256) as usize;
        Ok(tile.and_then(|tile| tile.as_chunks().0.get(position).copied()))
    }
}

/// Number of entries to read at once: smaller where statements are large.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageSize {
    most: usize,
    pub(super) next: usize,
}

impl PageSize {
    pub(super) fn new(most: usize) -> Self {
        let most = most.max(1);
        Self { most, next: most.min(FIRST_PAGE) }
    }

    /// Adjusts the size of the next page to the statements of the last one.
    pub(super) fn adjust(&mut self, page: &[Option<Entry>]) {
        let statements = page.iter().flatten().filter_map(|entry| entry.statement.as_ref());
        let bytes: usize = statements.map(|bytes| bytes.len()).sum();
        self.next = (PAGE_BYTES * page.len() / bytes.max(1)).clamp(1, self.most);
    }
}
