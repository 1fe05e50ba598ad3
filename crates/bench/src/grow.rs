//! A large log, made by bulk writes: the entries that registrations would have made, without HTTP and small batches.
//!
//! Each statement is signed, and admitted by the policy in force of the log, on all processors; batches of the largest
//! size are committed by [`LogWriter::commit`](store::LogWriter::commit) while the next ones are signed. Heads are not
//! signed here, as the keys are the service's. The last batch has an epoch of its own: the service signs its head at its
//! start, and the heads of the epoch before stay unsigned, as those of a process that ended before it signed them.
//!
//! Not here: the policy and its decisions (an argument), the pin (`sequencer::pin::adopt`), the search index, which the
//! service makes when it runs.

mod tree;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use scitt::SignedStatement;
use store::{Head, NewEntry, SequencerStore};
use tokio::sync::mpsc;
use tokio::task;

use crate::existing::GrownEntries;
use crate::limits::{GROWN_AHEAD, GROWN_BATCH, INDEX_POLL, INDEX_POLLS};
use crate::service::{NewLog, RunningService, create_log};
use crate::statements::{OPAQUE, sign_each};
use tree::GrowingTree;

/// Name of this process for others that would lead the log.
const HOLDER: &str = "bench grow";

/// The decision about statements under the policy in force of a log.
pub trait AdmitStatements: Send + Sync + 'static {
    /// Returns the entry of a statement.
    ///
    /// # Errors
    /// If the policy refuses the statement.
    fn admit(&self, statement: &SignedStatement) -> anyhow::Result<NewEntry>;
}

/// The entries to write.
#[derive(Clone, Copy, Debug)]
pub struct GrowPlan {
    /// Number of entries.
    pub entries: u64,
    /// Length of a statement in bytes.
    pub bytes: usize,
}

/// Creates a log that admits the statements of this crate, with its first policy as entry 0.
///
/// # Errors
/// If the folder exists, the database is not empty, or the service does not start.
pub async fn create(log: NewLog<'_>) -> anyhow::Result<()> {
    create_log(log)?;
    RunningService::start(log.program, log.folder, 1, Vec::new()).await?.stop().await
}

/// Runs the service until its search index has all leaves, or makes no more progress, because an index may keep its
/// newest leaves in memory. It signs the newest head at its start.
///
/// # Errors
/// If the service does not start.
pub async fn make_index(program: &Path, folder: &Path) -> anyhow::Result<()> {
    let service = RunningService::start(program, folder, 1, Vec::new()).await?;
    let (mut lag, mut unchanged) = (f64::INFINITY, 0);
    while lag > 0.0 && unchanged < INDEX_POLLS {
        // The first look comes after the service has had time to compare index and log.
        tokio::time::sleep(INDEX_POLL).await;
        let now = service.metrics().await?.index_lag;
        unchanged = if now < lag { 0 } else { unchanged + 1 };
        lag = now;
    }
    service.stop().await
}

/// Appends the entries to a log that no process serves, and returns its head. `progress` receives the number of entries
/// of each committed batch.
///
/// # Errors
/// If a statement is refused, a process serves the log, or a commit fails.
pub async fn grow(
    store: &dyn SequencerStore,
    admission: Arc<dyn AdmitStatements>,
    plan: GrowPlan,
    mut progress: impl FnMut(u64),
) -> anyhow::Result<Head> {
    ensure!(plan.entries > 0, "a log grows by at least one entry");
    let _lease = store.lease(HOLDER).await?.context("a process serves the log: stop it first")?;
    let mut tree = GrowingTree::resume(store, HOLDER).await?;
    let (sender, mut receiver) = mpsc::channel(GROWN_AHEAD);
    let signing = task::spawn_blocking(move || sign_batches(&*admission, plan, &sender));
    let mut left = plan.entries;
    while let Some(entries) = receiver.recv().await {
        let count = entries.len() as u64;
        left -= count;
        if left == 0 {
            tree.begin_epoch(store, HOLDER).await?;
        }
        tree.append(store, entries).await?;
        progress(count);
    }
    signing.await??;
    Ok(tree.into_head())
}

/// Notes in the log's folder which entries were written, so that their receipts can be measured.
///
/// # Errors
/// If the file cannot be written.
pub fn note_entries(folder: &Path, plan: GrowPlan) -> anyhow::Result<()> {
    GrownEntries { entries: plan.entries, content_type: OPAQUE.to_owned(), bytes: plan.bytes }.write(folder)
}

/// Signs and admits all statements, batch by batch.
fn sign_batches(
    admission: &dyn AdmitStatements,
    plan: GrowPlan,
    batches: &mpsc::Sender<Vec<NewEntry>>,
) -> anyhow::Result<()> {
    for numbers in batch_numbers(plan.entries) {
        let admit = |statement: SignedStatement| admission.admit(&statement);
        let entries = sign_each(OPAQUE, numbers, plan.bytes, admit)?;
        if batches.blocking_send(entries).is_err() {
            break; // A commit failed, and its error is returned.
        }
    }
    Ok(())
}

/// Returns the numbers of the statements of each batch.
fn batch_numbers(entries: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = (0..entries).step_by(GROWN_BATCH);
    starts.map(move |start| start..(start + GROWN_BATCH as u64).min(entries))
}

#[cfg(test)]
mod tests {
    use merkle::{EntryDigest, LeafIndex, TreeSize};
    use store::{LogReader, LogWriter, Memory};

    use super::*;

    /// Admits everything as policy 0 would.
    struct AdmitAll;

    impl AdmitStatements for AdmitAll {
        fn admit(&self, statement: &SignedStatement) -> anyhow::Result<NewEntry> {
            Ok(NewEntry {
                digest: EntryDigest::of(statement.bytes()),
                twin: None,
                statement: statement.bytes().clone(),
                policy: LeafIndex::new(0),
                rule: "rule".to_owned(),
                facts: "{}".to_owned(),
                guards: Vec::new(),
                collateral: Vec::new(),
            })
        }
    }

    #[test]
    fn batches_cover_all_numbers() {
        let batch = GROWN_BATCH as u64;
        let numbers: Vec<_> = batch_numbers(batch * 2 + 1).collect();
        assert_eq!(numbers, [0..batch, batch..batch * 2, batch * 2..batch * 2 + 1]);
        assert_eq!(batch_numbers(0).count(), 0);
    }

    #[tokio::test]
    async fn a_log_grows_in_an_epoch_whose_last_batch_has_its_own() {
        let store = Memory::new();
        store.open("bench.example/log").await.unwrap();
        let plan = GrowPlan { entries: GROWN_BATCH as u64 + 3, bytes: 256 };
        let mut written = 0;
        let head = grow(&store, Arc::new(AdmitAll), plan, |count| written += count).await.unwrap();
        assert_eq!((head.size(), written), (TreeSize::new(plan.entries), plan.entries));
        let stored = store.head().await.unwrap();
        assert_eq!((stored.root(), stored.batch), (head.root(), 2));
        let heads = store.heads(1, 10).await.unwrap();
        assert_eq!(heads[1].epoch, heads[0].epoch + 1);
        let again = grow(&store, Arc::new(AdmitAll), GrowPlan { entries: 0, ..plan }, |_| ()).await;
        assert!(again.is_err());
    }
}
