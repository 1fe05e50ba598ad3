//! Checks of the tables `seen` (digests) and `guard` (unique claims), whose keys lead to entries, and of what is stored
//! beside statements, from which some guards are derived.
//!
//! Not here: the lookup index (`lookup_index`).

use merkle::{EntryDigest, LeafIndex};

use super::{Defect, Fsck, FsckReport, damage};
use crate::{Entry, GuardKey, StoreError};

impl Fsck<'_> {
    /// Checks that every key that must lead to these entries does so. Twins and guards are checked for `sound`
    /// entries only: those whose statement is present and right.
    pub(super) async fn check_look_ups(
        &self,
        from: u64,
        entries: &[&Entry],
        sound: &[&Entry],
        report: &mut FsckReport,
    ) -> Result<(), StoreError> {
        let from = LeafIndex::new(from);
        let add_damage = |outcome: Result<(), String>, report: &mut FsckReport| {
            if let Err(why) = outcome {
                report.add(Defect::LookUpUnreadable { from, why });
            }
        };
        add_damage(self.check_seen(entries, sound, report).await?, report);
        add_damage(self.check_guards(sound, report).await?, report);
        add_damage(self.check_index(from.get(), entries, sound, report).await?, report);
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
        keys.extend(sound.iter().filter_map(|entry| Some((self.facts.twin(entry)?, *entry))));
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
        let derived = match damage(self.facts.guards(self.store, entries).await)? {
            Ok(derived) => derived,
            Err(why) => return Ok(Err(why)),
        };
        for (index, why) in derived.damaged {
            report.add(Defect::CollateralWrong { index, why });
        }
        let guarded = derived.held;
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
}
