//! An [`Indexer`] that indexes made-up terms, as a process of the service does with those of statements.

use std::sync::Arc;

use merkle::TreeSize;

use crate::lookup::{EntryTerms, RunWriter, SearchIndex};
use crate::{LogStore, Order, Page, Query, Term};

/// Index of one process over a log. Values are of kind 1, and are listed.
pub struct Indexer {
    /// The index.
    pub index: SearchIndex,
    /// Size of the newest head, whose runs stay.
    pub head: Option<TreeSize>,
    store: Arc<dyn LogStore>,
    writer: RunWriter,
}

impl Indexer {
    /// Opens the index of a log, in the form that it has.
    pub async fn of(store: Arc<dyn LogStore>) -> Self {
        let catalog = store.catalog().await.unwrap();
        let index = SearchIndex::new(catalog.form);
        index.align(&catalog);
        Self { index, head: None, store, writer: RunWriter::new() }
    }

    /// Adds the leaves up to the last one that has a value. The values are in the order of their leaves.
    pub fn add(&mut self, values: &[(u64, &str)]) {
        let Some((last, _)) = values.last() else { return };
        self.add_up_to(last + 1, |leaf| {
            let mut terms = EntryTerms::default();
            for (_, value) in values.iter().filter(|(of, _)| *of == leaf) {
                terms.add_listed(1, (*value).to_owned());
            }
            terms
        });
    }

    /// Adds the leaves up to `size`, with these terms.
    pub fn add_up_to(&mut self, size: u64, terms: impl Fn(u64) -> EntryTerms) {
        let from = self.index.size();
        assert!(self.index.append(from, (from.get()..size).map(terms).collect()));
    }

    /// Does the next part of what is to be written; returns whether there may be more.
    pub async fn step(&mut self) -> bool {
        let catalog = self.store.catalog().await.unwrap();
        self.index.align(&catalog);
        self.writer.step(&*self.store, &self.index, &catalog, self.head).await.unwrap()
    }

    /// Writes all that is to be written.
    pub async fn settle(&mut self) {
        while self.step().await {}
    }

    /// Runs a query.
    pub async fn search(&self, query: &Query) -> Page {
        self.index.search(&*self.store, query).await.unwrap()
    }

    /// Searches for one value of kind 1 and returns the entries found.
    pub async fn found(&self, value: &str) -> Vec<u64> {
        let query = Query {
            terms: vec![Term::exactly(1, value)],
            within: 0..u64::MAX,
            order: Order::OldestFirst,
            limit: usize::MAX,
        };
        let page = self.search(&query).await;
        assert_eq!(page.more_after, None);
        page.entries.iter().map(|entry| entry.get()).collect()
    }

    /// Lists values of kind 1.
    pub async fn values(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
        self.index.values(&*self.store, 1, prefix, after, limit).await.unwrap()
    }
}

/// The terms of an entry with one value of kind 1.
pub(super) fn one(value: &str) -> EntryTerms {
    let mut terms = EntryTerms::default();
    terms.add_listed(1, value.to_owned());
    terms
}
