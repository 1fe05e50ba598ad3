//! `HistoryExport` and `HistoryImport` in memory: reading and filling a database.

use std::ops::Range;

use async_trait::async_trait;
use merkle::LeafIndex;

use super::Memory;
use super::tables::{Tables, not_open};
use crate::moving::{half_filled, not_empty, not_filling, other_claim};
use crate::{
    Collateral, GuardKey, GuardRow, Head, HeadSignature, History, HistoryExport, HistoryImport, SeenKey,
    SeenRow, Source, State, StoreError,
};

#[async_trait]
impl HistoryExport for Memory {
    async fn seen_rows(&self, after: Option<SeenKey>, limit: usize) -> Result<Vec<SeenRow>, StoreError> {
        let tables = self.tables();
        let mut rows: Vec<SeenRow> = tables
            .seen
            .iter()
            .filter(|(key, _)| Some(**key) > after)
            .map(|(key, index)| (*key, LeafIndex::new(*index)))
            .collect();
        rows.sort_unstable();
        rows.truncate(limit);
        Ok(rows)
    }

    async fn guard_rows(&self, after: Option<&GuardKey>, limit: usize) -> Result<Vec<GuardRow>, StoreError> {
        let tables = self.tables();
        let mut rows: Vec<GuardRow> = tables
            .guards
            .iter()
            .filter(|(key, _)| Some(*key) > after)
            .map(|(key, index)| (key.clone(), LeafIndex::new(*index)))
            .collect();
        rows.sort_unstable();
        rows.truncate(limit);
        Ok(rows)
    }

    async fn collateral_rows(&self, entries: Range<u64>) -> Result<Vec<(LeafIndex, Collateral)>, StoreError> {
        let tables = self.tables();
        let of =
            |index: u64| tables.collateral.get(&index).into_iter().flatten().map(move |item| (index, item));
        Ok(entries.flat_map(of).map(|(index, item)| (LeafIndex::new(index), item.clone())).collect())
    }
}

#[async_trait]
impl HistoryImport for Memory {
    async fn begin_filling(&self, origin: &str, source: &Source) -> Result<Head, StoreError> {
        let mut tables = self.tables();
        match (&tables.head, tables.state) {
            (Some(_), State::Filling { source: known }) if known == *source => {}
            (Some(_), State::Filling { .. }) => return Err(half_filled()),
            (Some(head), _) if head.epoch > 0 || head.batch > 0 || !tables.keys.is_empty() => {
                let known = tables.origin.as_deref().unwrap_or_default();
                return Err(not_empty(known, head.size()));
            }
            _ => {}
        }
        let head = tables.open(origin)?;
        tables.state = State::Filling { source: *source };
        Ok(head)
    }

    async fn fill(&self, source: &Source, history: &History) -> Result<(), StoreError> {
        history.check()?;
        let mut tables = self.tables();
        let head = tables.filling(source)?;
        let from = &history.batch.from;
        if (head.batch, &head.edge) != (from.batch, &from.edge) {
            return Err(StoreError::Refused("the database is not where this history begins".into()));
        }
        let fits = tables
            .check_unique(&history.batch.entries)
            .and_then(|()| tables.check_growth(&history.batch.tiles));
        fits.map_err(|error| StoreError::Damaged(error.to_string()))?;
        tables.append(&history.batch);
        tables.batches.extend(&history.heads);
        for HeadSignature { size, kind, kid, bytes } in &history.signatures {
            tables.signatures.insert((*size, *kind, kid.clone()), bytes.clone());
        }
        for cosignature in &history.cosignatures {
            let key = (cosignature.size, cosignature.witness.clone());
            tables.cosignatures.insert(key, cosignature.clone());
        }
        Ok(())
    }

    async fn fill_claims(
        &self,
        source: &Source,
        seen: &[SeenRow],
        guards: &[GuardRow],
    ) -> Result<(), StoreError> {
        let mut tables = self.tables();
        tables.filling(source)?;
        for (key, entry) in seen {
            if *tables.seen.entry(*key).or_insert(entry.get()) != entry.get() {
                return Err(other_claim(*entry));
            }
        }
        for (key, entry) in guards {
            if *tables.guards.entry(key.clone()).or_insert(entry.get()) != entry.get() {
                return Err(other_claim(*entry));
            }
        }
        Ok(())
    }

    async fn end_filling(&self, source: &Source, epoch: u64, policy: LeafIndex) -> Result<Head, StoreError> {
        let mut tables = self.tables();
        tables.filling(source)?;
        let head = tables.head.as_mut().ok_or_else(not_open)?;
        if epoch < head.epoch || policy < head.policy || !head.edge.size().holds(policy) {
            return Err(StoreError::Refused("the epoch or the policy is not that of the history".into()));
        }
        (head.epoch, head.policy) = (epoch, policy);
        let head = head.clone();
        tables.state = State::Open;
        Ok(head)
    }
}

impl Tables {
    /// Returns the head if the log is being filled from this source.
    fn filling(&self, source: &Source) -> Result<&Head, StoreError> {
        match self.state {
            State::Filling { source: known } if known == *source => self.head(),
            _ => Err(not_filling()),
        }
    }

    /// Refuses a log that is frozen or being filled.
    pub(super) fn must_grow(&self) -> Result<(), StoreError> {
        match self.state {
            State::Open => Ok(()),
            State::Frozen { .. } => Err(StoreError::Frozen),
            State::Filling { .. } => Err(half_filled()),
        }
    }
}
