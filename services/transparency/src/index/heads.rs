//! The newest head of the index that the log has registered, and what its answers are proven from.
//!
//! Every process finds it by a search for its content type. The process that made it has the tail in memory; another one reads
//! the entries of the tail again.
//!
//! Not here: making a head (`head_maker`), and answers (`proof`).

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use lookup_tree::{HEAD_CONTENT_TYPE, IndexHead, LeafRange, Posting, schedule};
use merkle::{EntryDigest, Hash, LeafIndex, TreeSize};
use registration::LookupKind;
use registration::policy::IndexRules;
use scitt::SignedStatement;
use store::lookup::HeadRuns;
use store::{Entry, ErasureStore, LogReader, Order, StoreError};
use tokio::sync::{Mutex, OnceCell};

use super::read::ValueReader;
use super::{Index, term};
use crate::limits::{ERASURES_READ, INDEX_HEADS_READ};
use crate::log::erasures::{at, count_before, erased_leaves, leaves};
use crate::log::terms::entry_terms;
use crate::metrics::Metrics;

/// The newest registered head that this process knows.
#[derive(Default)]
pub struct NewestHead(ArcSwapOption<RegisteredHead>);

impl NewestHead {
    /// The number of leaves that it indexes.
    pub fn size(&self) -> Option<TreeSize> {
        self.0.load().as_ref().map(|head| head.head.size)
    }

    /// The newest head of a series.
    fn of(&self, series: Hash) -> Option<Arc<RegisteredHead>> {
        self.0.load_full().filter(|head| head.head.series == series)
    }

    /// Makes a head the newest one, unless a newer one of its series is known.
    pub(super) fn put(&self, head: Arc<RegisteredHead>, metrics: &Metrics) {
        if self.of(head.head.series).is_some_and(|known| known.leaf >= head.leaf) {
            return;
        }
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        metrics.index.head_size.set(gauge(head.head.size.get()));
        metrics.index.head_timestamp.set(gauge(head.issued_at));
        self.0.store(Some(head));
    }
}

/// A head of the index that the log has registered.
pub struct RegisteredHead {
    /// The head.
    pub head: IndexHead,
    /// The leaf of its statement.
    pub leaf: LeafIndex,
    /// The entry ID of its statement.
    pub entry: EntryDigest,
    /// Its statement.
    pub statement: SignedStatement,
    /// The time of the head (`iat`), in Unix seconds.
    pub issued_at: u64,
    /// The runs; `None` if the entries of the tail are no longer those of the head.
    runs: OnceCell<Option<HeadRuns>>,
    erased: Mutex<ErasedSince>,
}

/// The entries that erasure statements from the head's horizon on name, as far as they were read.
#[derive(Default)]
struct ErasedSince {
    /// Number of the next erasure to be read.
    next: Option<u64>,
    leaves: BTreeSet<LeafIndex>,
}

impl RegisteredHead {
    /// A head with its statement at a leaf; `None` if the statement is not a head.
    fn parse(statement: SignedStatement, leaf: LeafIndex) -> Option<Self> {
        let head = IndexHead::decode(statement.payload()?).ok()?;
        let issued_at = statement.header().iat().and_then(|at| u64::try_from(at).ok())?;
        let entry = statement.digest();
        let (runs, erased) = (OnceCell::new(), Mutex::default());
        Some(Self { head, leaf, entry, statement, issued_at, runs, erased })
    }

    /// A head that this process made and registered, with its runs.
    pub(super) fn made_here(statement: SignedStatement, leaf: LeafIndex, runs: HeadRuns) -> Option<Self> {
        Some(Self { runs: OnceCell::new_with(Some(Some(runs))), ..Self::parse(statement, leaf)? })
    }

    /// The runs of the head; `None` if an entry of its tail is not what it was.
    pub(super) async fn runs(&self, store: &dyn LogReader) -> Result<Option<&HeadRuns>, StoreError> {
        self.runs.get_or_try_init(|| self.read_runs(store)).await.map(Option::as_ref)
    }

    /// Reads the entries of the tail again.
    async fn read_runs(&self, store: &dyn LogReader) -> Result<Option<HeadRuns>, StoreError> {
        let mut postings = Vec::new();
        if let Some(tail) = schedule(self.head.size).last().filter(|run| run.id.is_tail()) {
            postings = read_postings(store, tail.leaves).await?;
        }
        let head = self.head.clone();
        let hashed = tokio::task::spawn_blocking(move || {
            postings.sort_unstable();
            postings.dedup();
            HeadRuns::of(&head, postings)
        });
        hashed.await.unwrap_or_else(|why| Err(StoreError::Unavailable(why.to_string())))
    }

    /// The entries that were to be erased after the head was made: it commits to their postings.
    pub(super) async fn erased_since(
        &self,
        store: &dyn ErasureStore,
    ) -> Result<BTreeSet<LeafIndex>, StoreError> {
        let mut erased = self.erased.lock().await;
        let mut next = match erased.next {
            Some(next) => next,
            None => count_before(store, self.head.horizon).await?,
        };
        loop {
            let found = leaves(store, next..next + ERASURES_READ).await?;
            for leaf in &found {
                match at(store, *leaf).await {
                    Ok(found) => erased.leaves.extend(erased_leaves(store, &found.erasure).await?),
                    // Nothing can be erased by a statement that cannot be read.
                    Err(StoreError::Damaged(_)) => {}
                    Err(error) => return Err(error),
                }
                next += 1;
            }
            erased.next = Some(next);
            if (found.len() as u64) < ERASURES_READ {
                return Ok(erased.leaves.clone());
            }
        }
    }
}

async fn read_postings(store: &dyn LogReader, leaves: LeafRange) -> Result<Vec<Posting>, StoreError> {
    let (start, end) = (leaves.start.get(), leaves.end.get());
    let entries = ValueReader::new().read_all(store, start..end, entry_terms).await?;
    let mut postings = Vec::new();
    for (leaf, entry) in (start..end).map(LeafIndex::new).zip(entries) {
        postings.extend(entry.keys.into_iter().map(|key| Posting { key, leaf }));
    }
    Ok(postings)
}

impl Index {
    /// The newest head under these rules among the indexed entries.
    pub async fn newest_head(&self, rules: &IndexRules) -> Result<Option<Arc<RegisteredHead>>, StoreError> {
        let series = rules.series();
        let known = self.heads.of(series);
        let from = known.as_ref().map_or(0, |known| known.leaf.get() + 1);
        let heads = vec![term(LookupKind::ContentType, HEAD_CONTENT_TYPE)];
        let page = self.search(heads, from..u64::MAX, Order::NewestFirst, INDEX_HEADS_READ).await?;
        for leaf in page.entries {
            let Some(entry) = self.log.store.entry(leaf).await?.map(Entry::verified).transpose()? else {
                continue;
            };
            let statement = entry.statement.and_then(|bytes| SignedStatement::parse(bytes).ok());
            let head = statement.and_then(|statement| RegisteredHead::parse(statement, leaf));
            if let Some(head) = head.filter(|head| head.head.series == series) {
                let head = Arc::new(head);
                self.heads.put(head.clone(), &self.log.metrics);
                return Ok(Some(head));
            }
        }
        Ok(known)
    }
}
