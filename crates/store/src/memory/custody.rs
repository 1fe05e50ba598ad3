//! `Custody` and `Reports` in memory.

use std::collections::BTreeSet;

use async_trait::async_trait;
use merkle::LeafIndex;

use super::Memory;
use super::tables::Tables;
use crate::custody::{check_case, to_erase};
use crate::{Custody, EntryStatus, Erased, Hold, KeptReport, REPORTS_PER_GUARD, Report, Reports, StoreError};

#[async_trait]
impl Custody for Memory {
    async fn erase(&self, entries: &[LeafIndex]) -> Result<Erased, StoreError> {
        let entries = to_erase(entries)?;
        let mut tables = self.tables();
        if let Some(unknown) = entries.iter().find(|entry| tables.entry(**entry).is_none()) {
            return Err(not_in_the_log(*unknown));
        }
        let (held, erased): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| tables.is_held(*entry));
        for entry in &erased {
            tables.erase(*entry);
        }
        Ok(Erased { erased, held })
    }

    async fn hold(&self, entry: LeafIndex, case: &str, at: u64) -> Result<(), StoreError> {
        check_case(case)?;
        let mut tables = self.tables();
        let stored = tables.entry(entry).ok_or_else(|| not_in_the_log(entry))?;
        if stored.statement.is_none() {
            return Err(StoreError::Refused(format!("entry {entry} was erased: nothing of it can be held")));
        }
        tables.hold(entry, case, at);
        Ok(())
    }

    async fn release(&self, entry: LeafIndex, case: &str, at: u64) -> Result<bool, StoreError> {
        Ok(self.tables().release(entry, case, at))
    }

    async fn holds(&self, after: Option<LeafIndex>, limit: usize) -> Result<Vec<Hold>, StoreError> {
        let mut holds: Vec<Hold> =
            self.tables().holds.iter().filter(|hold| Some(hold.entry) > after).cloned().collect();
        holds.sort_by_key(|hold| hold.entry);
        if let Some(last) = limit.checked_sub(1).and_then(|last| holds.get(last)).map(|hold| hold.entry) {
            holds.retain(|hold| hold.entry <= last);
        }
        holds.truncate(if limit == 0 { 0 } else { usize::MAX });
        Ok(holds)
    }

    async fn held(&self, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        let tables = self.tables();
        let entries: BTreeSet<LeafIndex> = entries.iter().copied().collect();
        Ok(entries.into_iter().filter(|entry| tables.is_held(*entry)).collect())
    }

    async fn statuses(&self, entries: &[LeafIndex]) -> Result<Vec<EntryStatus>, StoreError> {
        let tables = self.tables();
        let entries: BTreeSet<LeafIndex> = entries.iter().copied().collect();
        let status = |stored: &crate::Entry| EntryStatus {
            entry: stored.index,
            rule: stored.rule.clone(),
            has_statement: stored.statement.is_some(),
        };
        Ok(entries.into_iter().filter_map(|entry| tables.entry(entry).map(status)).collect())
    }
}

#[async_trait]
impl Reports for Memory {
    async fn keep_report(&self, report: &Report) -> Result<bool, StoreError> {
        let mut tables = self.tables();
        let kept: Vec<&Report> = tables
            .reports
            .iter()
            .map(|kept| &kept.report)
            .filter(|kept| kept.guard == report.guard)
            .collect();
        if kept.iter().any(|kept| kept.refused == report.refused) {
            return Ok(true);
        }
        if kept.len() >= REPORTS_PER_GUARD {
            return Ok(false);
        }
        let number = tables.reports.len() as u64 + 1;
        let contradicted = tables.entry(report.registered.0).and_then(|entry| entry.statement.as_ref());
        let statement = contradicted.and(report.statement.clone());
        tables.reports.push(KeptReport { number, report: Report { statement, ..report.clone() } });
        Ok(true)
    }

    async fn reports(&self, after: Option<u64>, limit: usize) -> Result<Vec<KeptReport>, StoreError> {
        let tables = self.tables();
        Ok(tables.reports.iter().filter(|kept| Some(kept.number) > after).take(limit).cloned().collect())
    }

    async fn reports_about(&self, registered: &[LeafIndex]) -> Result<Vec<KeptReport>, StoreError> {
        let tables = self.tables();
        let about = |kept: &&KeptReport| registered.contains(&kept.report.registered.0);
        Ok(tables.reports.iter().filter(about).cloned().collect())
    }
}

impl Tables {
    fn entry(&self, index: LeafIndex) -> Option<&crate::Entry> {
        self.entries.get(usize::try_from(index.get()).ok()?)
    }

    /// Begins a hold, unless the case holds the entry already or the entry was erased.
    pub(super) fn hold(&mut self, entry: LeafIndex, case: &str, at: u64) {
        let is_there = self.entry(entry).is_some_and(|stored| stored.statement.is_some());
        if is_there && !self.holds.iter().any(|hold| is_active(hold, entry) && hold.case == case) {
            self.holds.push(Hold { entry, case: case.to_owned(), at, released: None });
        }
    }

    /// Ends the hold of a case; returns whether there was one.
    pub(super) fn release(&mut self, entry: LeafIndex, case: &str, at: u64) -> bool {
        let hold = self.holds.iter_mut().find(|hold| is_active(hold, entry) && hold.case == case);
        hold.map(|hold| hold.released = Some(at)).is_some()
    }

    fn is_held(&self, entry: LeafIndex) -> bool {
        self.holds.iter().any(|hold| is_active(hold, entry))
    }

    fn erase(&mut self, index: LeafIndex) {
        let Some(entry) = self.entries.get_mut(index.get() as usize) else { return };
        if entry.statement.take().is_some() {
            self.index.erase(index);
        }
        entry.facts = "{}".into();
        let digest = entry.digest;
        if self.finished.contains(&digest) {
            self.finished.retain(|finished| *finished != digest);
            self.outcomes.remove(&digest);
        }
        self.collateral.remove(&index.get());
        for kept in self.reports.iter_mut().filter(|kept| kept.report.registered.0 == index) {
            kept.report.statement = None;
        }
    }
}

fn is_active(hold: &Hold, entry: LeafIndex) -> bool {
    hold.entry == entry && hold.released.is_none()
}

fn not_in_the_log(entry: LeafIndex) -> StoreError {
    StoreError::Refused(format!("entry {entry} is not in the log"))
}
