//! The check of the heads of the search index on the log: the index is computed again from the statements
//! (`index_audit`), and compared with each head.
//!
//! The form of every head is checked, and the runs of the newest head of each series: those before it differ from it in
//! the tail and in erased entries. Heads under a table of terms that this program does not have are left out. The stored
//! runs are not read: `store::fsck` compares them with the entries.
//!
//! Not here: the signatures of heads and their admission (`tabellion audit`).

use std::collections::BTreeMap;
use std::path::Path;

use index_audit::{IndexRecomputation, IndexedEntry, RecomputationError, RunComparison};
use lookup_tree::{HEAD_CONTENT_TYPE, IndexHead};
use merkle::{EntryDigest, Hash, LeafIndex};
use registration::policy::index_table_digest;
use registration::{POLICY_CONTENT_TYPE, Policy};
use scitt::SignedStatement;
use store::{Entry, LogReader, StoreError};

use crate::index::detached_payload;
use crate::log::content_type::is_type;

/// Number of entries that are read at once.
const PAGE: usize = 64;

/// Errors of the check.
#[derive(Debug, thiserror::Error)]
pub enum HeadCheckError {
    /// The database does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder for the computed index cannot be used.
    #[error(transparent)]
    Folder(#[from] RecomputationError),
}

/// Result of [`check_heads`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadFindings {
    /// Number of heads whose form was checked.
    pub heads: u64,
    /// Differences, each with the leaf of the head.
    pub findings: Vec<String>,
    /// Runs of the newest heads that could not be compared, with the reason.
    pub uncompared: Vec<String>,
}

/// Checks the heads among the first entries of the log, up to the size when the check begins. `folder` is an empty folder
/// for the computed index: about 8 bytes for a posting and 32 for an entry.
///
/// # Errors
/// Returns a [`HeadCheckError`] if the database does not answer, or the folder cannot be written.
pub async fn check_heads(store: &dyn LogReader, folder: &Path) -> Result<HeadFindings, HeadCheckError> {
    let end = store.head().await?.size().get();
    let index = IndexRecomputation::open(folder)?;
    let mut check =
        HeadCheck { store, index, policy: None, newest: BTreeMap::new(), result: HeadFindings::default() };
    match check.read(end).await {
        Ok(()) => check.compare_newest()?,
        // Which entries are damaged, the check of the entries finds.
        Err(HeadCheckError::Store(StoreError::Damaged(why))) => {
            check.result.uncompared.push(format!("heads of the search index: {why}"));
        }
        Err(error) => return Err(error),
    }
    Ok(check.result)
}

struct HeadCheck<'a> {
    store: &'a dyn LogReader,
    index: IndexRecomputation,
    /// The newest policy that was read, with the series that is computed again, if it has one.
    policy: Option<(LeafIndex, Option<Hash>)>,
    /// The newest head of each series, with its leaf.
    newest: BTreeMap<Hash, (LeafIndex, IndexHead)>,
    result: HeadFindings,
}

impl HeadCheck<'_> {
    /// Reads all entries before `end`, and checks the form of the heads among them.
    async fn read(&mut self, end: u64) -> Result<(), HeadCheckError> {
        while self.index.next().get() < end {
            self.read_page(end).await?;
        }
        Ok(())
    }

    async fn read_page(&mut self, end: u64) -> Result<(), HeadCheckError> {
        let from = self.index.next();
        let count = usize::try_from(end - from.get()).unwrap_or(PAGE).min(PAGE);
        let rows = rows(self.store, from, count).await?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            entries.push(indexed(self.store, row).await?);
        }
        self.index.read_on(entries)?;
        for row in &rows {
            if let Some(head) = head_in(row)
                && self.series(row.policy).await? == Some(head.series)
            {
                self.check_form(row.index, row.digest, head)?;
            }
        }
        Ok(())
    }

    /// The series of a policy's index, if this program knows its table of terms.
    async fn series(&mut self, policy: LeafIndex) -> Result<Option<Hash>, StoreError> {
        if let Some((_, series)) = self.policy.filter(|(known, _)| *known == policy) {
            return Ok(series);
        }
        let entry = one(self.store, policy).await?;
        let series = entry.as_ref().and_then(series_in);
        self.policy = Some((policy, series));
        Ok(series)
    }

    fn check_form(
        &mut self,
        leaf: LeafIndex,
        entry: EntryDigest,
        head: IndexHead,
    ) -> Result<(), RecomputationError> {
        self.result.heads += 1;
        for fault in self.index.check_form(&head, leaf, &entry)? {
            self.result.findings.push(format!("index head at leaf {leaf}: {fault}"));
        }
        self.newest.insert(head.series, (leaf, head));
        Ok(())
    }

    fn compare_newest(&mut self) -> Result<(), RecomputationError> {
        for (leaf, head) in std::mem::take(&mut self.newest).into_values() {
            let runs = head.scheduled_runs().unwrap_or_default();
            if head.size.get() > leaf.get() {
                continue;
            }
            let RunComparison { wrong, uncompared } = self.index.compare_runs(&runs, head.horizon)?;
            let of_head = |why: String| format!("index head at leaf {leaf}: {why}");
            self.result.findings.extend(wrong.iter().map(|run| of_head(run.to_string())));
            self.result.uncompared.extend(uncompared.iter().map(|run| of_head(run.to_string())));
        }
        Ok(())
    }
}

/// Reads exactly `count` entries, one by one if some are damaged.
async fn rows(store: &dyn LogReader, from: LeafIndex, count: usize) -> Result<Vec<Entry>, StoreError> {
    match store.entries(from, count).await {
        Ok(rows) if rows.len() == count => return Ok(rows),
        Ok(_) | Err(StoreError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
    let mut rows = Vec::with_capacity(count);
    for index in (from.get()..).take(count).map(LeafIndex::new) {
        rows.push(match one(store, index).await? {
            Some(entry) => entry,
            None => unreadable(store, index).await?,
        });
    }
    Ok(rows)
}

/// Reads an entry; `None` if it is missing or damaged.
async fn one(store: &dyn LogReader, index: LeafIndex) -> Result<Option<Entry>, StoreError> {
    match store.entry(index).await {
        Ok(entry) => Ok(entry),
        Err(StoreError::Damaged(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An entry whose row cannot be read, without its statement.
async fn unreadable(store: &dyn LogReader, index: LeafIndex) -> Result<Entry, StoreError> {
    let digest = store.digests(index, 1).await?.pop();
    let digest = digest.ok_or_else(|| StoreError::Damaged(format!("entry {index} is missing")))?;
    let (rule, facts) = (String::new(), String::new());
    Ok(Entry { index, digest, statement: None, policy: LeafIndex::new(0), rule, facts })
}

/// Reads an entry for the index. One whose bytes are not those of its digest is an entry without its statement.
async fn indexed(store: &dyn LogReader, row: &Entry) -> Result<IndexedEntry, StoreError> {
    let Ok(row) = row.clone().verified() else { return Ok(IndexedEntry::gone(row.digest.leaf_hash())) };
    let payload = match &row.statement {
        Some(statement) => detached_payload(store, row.index, statement).await?,
        None => None,
    };
    Ok(IndexedEntry::read(row.digest, row.statement.as_deref(), payload.as_deref()))
}

fn head_in(row: &Entry) -> Option<IndexHead> {
    let statement = statement_of(row, HEAD_CONTENT_TYPE)?;
    IndexHead::decode(statement.payload()?).ok()
}

fn series_in(row: &Entry) -> Option<Hash> {
    let statement = statement_of(row, POLICY_CONTENT_TYPE)?;
    let policy = Policy::from_payload(statement.payload()?).ok()?;
    let index = policy.contents().index.as_ref()?;
    (index.table == index_table_digest()).then(|| index.series())
}

/// The statement of an entry, if it has this content type.
fn statement_of(row: &Entry, content_type: &str) -> Option<SignedStatement> {
    let statement = SignedStatement::parse(row.statement.clone()?).ok()?;
    let named = statement.header().content_type().and_then(|name| name.as_text());
    named.is_some_and(|name| is_type(name, content_type)).then_some(statement)
}
