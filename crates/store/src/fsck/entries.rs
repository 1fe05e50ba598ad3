//! The rows that hold statements, and the keys that lead to them.

use merkle::{EntryDigest, LeafHash, LeafIndex};

use super::{Finding, Fsck, PAGE, QUICK_ENTRIES, Report, damage};
use crate::{Entry, GuardKey, HASH_BYTES, Head, StoreError, TileAddress};

impl Fsck<'_> {
    /// The last entries: the bytes, the digest, the tile.
    pub(super) async fn check_recent_entries(
        &self,
        head: &Head,
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let size = head.size().get();
        let mut at = size.saturating_sub(QUICK_ENTRIES);
        while at < size {
            let page = self.page(at, size, report).await?;
            for (index, entry) in (at..).map(LeafIndex::new).zip(&page) {
                let Some(entry) = entry else { continue };
                self.check_statement(entry, report);
                // A tile that is missing is found with the open tiles, or above.
                let stored = self.stored_leaf(index).await?;
                if stored.is_some_and(|stored| stored != *entry.digest.leaf_hash().as_bytes()) {
                    report.add(Finding::LeafNotInTile { index });
                }
            }
            at += page.len() as u64;
        }
        Ok(())
    }

    /// The next entries; `None` for one that is lost.
    pub(super) async fn page(
        &self,
        from: u64,
        end: u64,
        report: &mut Report,
    ) -> Result<Vec<Option<Entry>>, StoreError> {
        let count = (end - from).min(PAGE as u64) as usize;
        if let Ok(page) = damage(self.store.entries(LeafIndex::new(from), count).await)?
            && page.len() == count
        {
            return Ok(page.into_iter().map(Some).collect());
        }
        let mut page = Vec::with_capacity(count);
        for index in (from..from + count as u64).map(LeafIndex::new) {
            let entry = damage(self.store.entry(index).await)?;
            let entry = entry.and_then(|entry| entry.ok_or_else(|| "missing".to_owned()));
            page.push(entry.map_err(|why| report.add(Finding::EntryLost { index, why })).ok());
        }
        Ok(page)
    }

    /// The bytes against the digest.
    pub(super) fn check_statement(&self, entry: &Entry, report: &mut Report) {
        report.entries += 1;
        let index = entry.index;
        match &entry.statement {
            Some(bytes) if EntryDigest::of(bytes) != entry.digest => {
                report.add(Finding::StatementNotOfDigest { index });
            }
            None if !self.meaning.may_be_erased(index) => report.add(Finding::ErasedSilently { index }),
            _ => {}
        }
    }

    /// Whether every key that must lead to these entries does.
    pub(super) async fn check_look_ups(
        &self,
        from: u64,
        page: &[Option<Entry>],
        report: &mut Report,
    ) -> Result<(), StoreError> {
        let from = LeafIndex::new(from);
        let entries: Vec<&Entry> = page.iter().flatten().collect();
        if let Err(why) = self.check_seen(&entries, report).await? {
            report.add(Finding::LookUpUnreadable { from, why });
        }
        if let Err(why) = self.check_guards(&entries, report).await? {
            report.add(Finding::LookUpUnreadable { from, why });
        }
        Ok(())
    }

    async fn check_seen(
        &self,
        entries: &[&Entry],
        report: &mut Report,
    ) -> Result<Result<(), String>, StoreError> {
        let mut keys: Vec<(EntryDigest, &Entry)> =
            entries.iter().map(|entry| (entry.digest, *entry)).collect();
        keys.extend(entries.iter().filter_map(|entry| Some((self.meaning.twin(entry)?, *entry))));
        let digests: Vec<EntryDigest> = keys.iter().map(|(digest, _)| *digest).collect();
        let found = match damage(self.store.find(&digests).await)? {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        };
        for ((digest, entry), found) in keys.iter().zip(found) {
            let index = entry.index;
            if found.is_some_and(|found| found.index == index && found.digest == entry.digest) {
                continue;
            }
            report.add(match *digest == entry.digest {
                true => Finding::NotSeen { index },
                false => Finding::TwinNotSeen { index },
            });
        }
        Ok(Ok(()))
    }

    async fn check_guards(
        &self,
        entries: &[&Entry],
        report: &mut Report,
    ) -> Result<Result<(), String>, StoreError> {
        let guarded: Vec<(GuardKey, LeafIndex)> = entries
            .iter()
            .flat_map(|entry| self.meaning.guards(entry).into_iter().map(|key| (key, entry.index)))
            .collect();
        let keys: Vec<GuardKey> = guarded.iter().map(|(key, _)| key.clone()).collect();
        let holders = match damage(self.store.guards(&keys).await)? {
            Ok(holders) => holders,
            Err(why) => return Ok(Err(why)),
        };
        for ((key, index), holder) in guarded.into_iter().zip(holders) {
            if holder != Some(index) {
                report.add(Finding::GuardNotHeld { index, key });
            }
        }
        Ok(Ok(()))
    }

    /// The leaf hash of a lost entry, so that the rest of the tree can still be checked.
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
