//! Checks of the keys that lead to entries: the tables `seen` and `guard`, and the lookup index.

use std::borrow::Cow;

use merkle::{EntryDigest, LeafIndex, TreeSize};

use super::{Defect, Fsck, FsckReport, damage};
use crate::lookup::stored_value;
use crate::{Entry, GuardKey, Lookup, StoreError};

impl Fsck<'_> {
    /// Checks that every key that must lead to these entries does so. Twins, guards and index rows are checked for
    /// `sound` entries only: those whose statement is present and right.
    pub(super) async fn check_look_ups(
        &self,
        from: u64,
        entries: &[&Entry],
        sound: &[&Entry],
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        let from = LeafIndex::new(from);
        let told = |outcome: Result<(), String>, report: &mut FsckReport| {
            if let Err(why) = outcome {
                report.add(Defect::LookUpUnreadable { from, why });
            }
        };
        told(self.check_seen(entries, sound, report).await?, report);
        told(self.check_guards(sound, report).await?, report);
        told(self.check_index(sound, report).await?, report);
        Ok(())
    }

    async fn check_seen(
        &self,
        entries: &[&Entry],
        sound: &[&Entry],
        report: &mut FsckReport,
    ) -> Result<Result<(), String>, StoreError> {
        let mut keys: Vec<(EntryDigest, &Entry)> =
            entries.iter().map(|entry| (entry.digest, *entry)).collect();
        keys.extend(sound.iter().filter_map(|entry| Some((self.meaning.twin(entry)?, *entry))));
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
                true => Defect::NotSeen { index },
                false => Defect::TwinNotSeen { index },
            });
        }
        Ok(Ok(()))
    }

    async fn check_guards(
        &self,
        entries: &[&Entry],
        report: &mut FsckReport,
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
                report.add(Defect::GuardNotHeld { index, key });
            }
        }
        Ok(Ok(()))
    }

    /// Checks the lookup index, as far as it was read in the form that [`FsckFacts`](super::FsckFacts) knows.
    async fn check_index(
        &self,
        entries: &[&Entry],
        report: &mut FsckReport,
    ) -> Result<Result<(), String>, StoreError> {
        let indexes: Vec<LeafIndex> = entries.iter().map(|entry| entry.index).collect();
        let (to, stored) = match self.indexed(&indexes).await? {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Ok(())),
            Err(why) => return Ok(Err(why)),
        };
        for entry in entries.iter().filter(|entry| to.holds(entry.index)) {
            let Some(expected) = self.expected(entry).await? else { continue };
            if expected != rows_of(entry.index, &stored) && self.is_still_wrong(entry, &expected).await? {
                report.add(Defect::LookupWrong { index: entry.index });
            }
        }
        Ok(Ok(()))
    }

    /// Reads the index rows of these entries, and how far the index goes; no rows while it has another form.
    async fn indexed(
        &self,
        entries: &[LeafIndex],
    ) -> Result<Result<Option<(TreeSize, Vec<Lookup>)>, String>, StoreError> {
        let Some(form) = self.meaning.lookup_form() else { return Ok(Ok(None)) };
        let indexed = self.store.indexed().await?;
        let entries: Vec<LeafIndex> =
            entries.iter().copied().filter(|index| indexed.to.holds(*index)).collect();
        if indexed.form != form || entries.is_empty() {
            return Ok(Ok(None));
        }
        let rows = damage(self.store.lookups(&entries).await)?;
        Ok(rows.map(|rows| Some((indexed.to, rows))))
    }

    /// Returns the rows that the index must have for an entry, with values in stored form.
    async fn expected(&self, entry: &Entry) -> Result<Option<Vec<Lookup>>, StoreError> {
        let Some(mut rows) = self.meaning.lookups(self.store, entry).await? else { return Ok(None) };
        for row in &mut rows {
            if let Cow::Owned(hashed) = stored_value(&row.value) {
                row.value = hashed;
            }
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(Some(rows))
    }

    /// Reads entry and index again: the entry may have been erased, or the index dropped, between the two reads.
    async fn is_still_wrong(&self, entry: &Entry, expected: &[Lookup]) -> Result<bool, StoreError> {
        let now = damage(self.store.entry(entry.index).await)?.ok().flatten();
        if now.is_none_or(|now| now.statement.is_none()) {
            return Ok(false);
        }
        let found = self.indexed(&[entry.index]).await?;
        Ok(found.is_ok_and(|found| found.is_some_and(|(_, rows)| rows_of(entry.index, &rows) != expected)))
    }
}

fn rows_of(index: LeafIndex, rows: &[Lookup]) -> Vec<Lookup> {
    let mut rows: Vec<Lookup> = rows.iter().filter(|row| row.entry == index).cloned().collect();
    rows.sort_unstable();
    rows
}
