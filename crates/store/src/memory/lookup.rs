//! `LookupIndex` in memory.

use std::ops::Range;

use async_trait::async_trait;
use merkle::{LeafIndex, TreeSize};

use super::Memory;
use super::tables::Tables;
use crate::lookup::{Rows, check_rows, search, stored_value};
use crate::{Indexed, Lookup, LookupIndex, Order, Page, Query, StoreError, Term};

#[async_trait]
impl LookupIndex for Memory {
    async fn indexed(&self) -> Result<Indexed, StoreError> {
        Ok(self.tables().indexed)
    }

    async fn index(&self, from: Indexed, to: TreeSize, rows: &[Lookup]) -> Result<bool, StoreError> {
        check_rows(from, to, rows)?;
        let mut tables = self.tables();
        if tables.indexed != from {
            return Ok(false);
        }
        if to > tables.head()?.size() {
            return Err(StoreError::Refused(format!("no tree of size {to} was committed")));
        }
        tables.replace(from.to.get()..to.get(), rows);
        tables.indexed.to = to;
        Ok(true)
    }

    async fn drop_index(&self, form: u32) -> Result<(), StoreError> {
        self.tables().indexed = Indexed { form, to: TreeSize::new(0) };
        Ok(())
    }

    async fn search(&self, query: &Query) -> Result<Page, StoreError> {
        let indexed = self.indexed().await?;
        search(self, indexed, query).await
    }

    async fn values(
        &self,
        kind: u8,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let tables = self.tables();
        let mut values: Vec<String> = tables
            .lookups
            .iter()
            .filter(|row| row.kind == kind && row.value.starts_with(prefix))
            .filter(|row| after.is_none_or(|after| row.value.as_str() > after))
            .map(|row| row.value.clone())
            .collect();
        values.dedup();
        values.truncate(limit);
        Ok(values)
    }

    async fn lookups(&self, entries: &[LeafIndex]) -> Result<Vec<Lookup>, StoreError> {
        let tables = self.tables();
        let indexed = |entry: &LeafIndex| tables.indexed.to.holds(*entry);
        let mut rows: Vec<Lookup> = tables
            .lookups
            .iter()
            .filter(|row| entries.contains(&row.entry) && indexed(&row.entry))
            .cloned()
            .collect();
        rows.sort_by(|a, b| (a.entry, a.kind, &a.value).cmp(&(b.entry, b.kind, &b.value)));
        Ok(rows)
    }
}

#[async_trait]
impl Rows for Memory {
    async fn follow(
        &self,
        term: &Term,
        within: Range<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<LeafIndex>, StoreError> {
        let tables = self.tables();
        let mut entries = tables.of(term).filter(|entry| within.contains(&entry.get())).collect::<Vec<_>>();
        entries.sort_unstable();
        entries.dedup();
        if order == Order::NewestFirst {
            entries.reverse();
        }
        entries.truncate(limit);
        Ok(entries)
    }

    async fn among(&self, term: &Term, entries: &[LeafIndex]) -> Result<Vec<LeafIndex>, StoreError> {
        Ok(self.tables().of(term).filter(|entry| entries.contains(entry)).collect())
    }

    async fn count(&self, term: &Term, most: usize) -> Result<usize, StoreError> {
        Ok(self.tables().of(term).take(most).count())
    }
}

impl Tables {
    fn of<'a>(&'a self, term: &'a Term) -> impl Iterator<Item = LeafIndex> + 'a {
        let is_of = |row: &&Lookup| row.kind == term.kind && term.values.contains(&row.value);
        self.lookups.iter().filter(is_of).map(|row| row.entry)
    }

    fn replace(&mut self, range: Range<u64>, rows: &[Lookup]) {
        self.lookups.retain(|row| !range.contains(&row.entry.get()));
        let entries = &self.entries;
        let is_there = |row: &&Lookup| entries[row.entry.get() as usize].statement.is_some();
        let stored = |row: &Lookup| Lookup { value: stored_value(&row.value).into_owned(), ..row.clone() };
        self.lookups.extend(rows.iter().filter(is_there).map(stored));
    }
}
