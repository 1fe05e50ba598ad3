//! Writing an archive from a database that may be in use.
//!
//! An archive is a prefix of the log, up to one signed head. Entries, heads and claims of that prefix never change, so
//! they are read page by page while the service continues. Only statements can disappear: an entry that is erased
//! meanwhile may be read before or after. If after, the statement that declares the erasure may lie beyond the prefix;
//! then the archive is extended to the newest signed head, until every erasure is explained.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use data_encoding::HEXLOWER;
use merkle::{LeafIndex, TreeSize};
use store::{
    ArchiveSource, Collateral, CommittedHead, HeadSignature, SignatureKind, SignatureStore, State, StoreError,
};

use crate::end_record::EndRecord;
use crate::frame::ArchiveWriter;
use crate::limits::{PAGE_ENTRIES, PAGE_ROWS, ROUNDS, ROWS};
use crate::{ArchiveHeader, ArchivePurpose, ArchiveRecord, ArchiveSummary, Checker, StatementInspector};

/// Pause before looking again for a newer signed head that explains an erasure.
const PAUSE: Duration = Duration::from_millis(250);

/// Errors of `write`, which writes an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveWriteError {
    /// A database error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An [`ArchivePurpose::Export`] of a log that is not frozen: entries added later would be missing at the
    /// destination.
    #[error("the log is not frozen: entries added from now on would be missing at the destination")]
    NotFrozen,
    /// The last head of a frozen log is not signed yet, for [`ArchivePurpose::Export`].
    #[error("the last head, of size {size}, is not signed yet: the newest signed head has size {signed}")]
    NotSigned {
        /// The log's tree size.
        size: TreeSize,
        /// The tree size of the newest signed head.
        signed: TreeSize,
    },
    /// The log has no signed head.
    #[error("the log has no signed head yet")]
    Empty,
    /// The stored data is inconsistent.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

/// Writes a log to `out`. After an error the output is incomplete and must be discarded.
pub async fn write(
    store: &dyn ArchiveSource,
    inspector: &dyn StatementInspector,
    header: ArchiveHeader,
    out: impl Write + Send,
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<ArchiveSummary, ArchiveWriteError> {
    let target = first_target(store, header.purpose).await?;
    let mut builder = ArchiveBuilder {
        store,
        checker: Checker::new(inspector),
        writer: ArchiveWriter::new(out)?,
        signatures: VecDeque::new(),
        batch: 0,
        progress,
    };
    let origin = header.origin.clone();
    builder.put(ArchiveRecord::Header(header))?;
    for key in store.keys().await? {
        builder.put(ArchiveRecord::Key(key))?;
    }
    builder.write_history(target).await?;
    builder.extend_to_erasures().await?;
    builder.write_side_tables().await?;
    builder.write_end(origin).await
}

/// The newest head that has both a receipt signature and a checkpoint signature.
async fn newest_signed(store: &dyn SignatureStore) -> Result<Option<CommittedHead>, StoreError> {
    let mut newest: Option<CommittedHead> = None;
    for kind in [SignatureKind::Receipt, SignatureKind::Checkpoint] {
        let Some(signed) = store.newest_signed(kind).await? else { return Ok(None) };
        newest = match newest {
            Some(known) if known.size < signed.head.size => Some(known),
            _ => Some(signed.head),
        };
    }
    Ok(newest)
}

async fn first_target(
    store: &dyn ArchiveSource,
    purpose: ArchivePurpose,
) -> Result<TreeSize, ArchiveWriteError> {
    let head = store.head().await?;
    let signed = newest_signed(store).await?.ok_or(ArchiveWriteError::Empty)?.size;
    if purpose == ArchivePurpose::Export {
        if !matches!(store.state().await?, State::Frozen { .. }) {
            return Err(ArchiveWriteError::NotFrozen);
        }
        if signed != head.size() {
            return Err(ArchiveWriteError::NotSigned { size: head.size(), signed });
        }
    }
    Ok(signed)
}

struct ArchiveBuilder<'a, W> {
    store: &'a dyn ArchiveSource,
    checker: Checker<'a>,
    writer: ArchiveWriter<W>,
    /// Signatures read ahead of their heads.
    signatures: VecDeque<HeadSignature>,
    /// Number of the last batch written.
    batch: u64,
    progress: &'a (dyn Fn(u64) + Send + Sync),
}

impl<W: Write> ArchiveBuilder<'_, W> {
    fn put(&mut self, record: ArchiveRecord) -> Result<(), ArchiveWriteError> {
        self.checker.accept(&record).map_err(ArchiveWriteError::Damaged)?;
        Ok(self.writer.write(&record)?)
    }

    fn size(&self) -> u64 {
        self.checker.counts().entries
    }

    /// Writes all batches up to the head of this size.
    async fn write_history(&mut self, target: TreeSize) -> Result<(), ArchiveWriteError> {
        // Discard signatures read ahead: they were read before all heads up to the target had been signed.
        self.signatures.clear();
        while self.size() < target.get() {
            let heads = self.store.heads(self.batch + 1, PAGE_ROWS).await?;
            if heads.is_empty() {
                return Err(ArchiveWriteError::Damaged(format!("there is no batch {}", self.batch + 1)));
            }
            for head in heads.into_iter().take_while(|head| head.size <= target) {
                self.write_batch(&head).await?;
            }
        }
        Ok(())
    }

    async fn write_batch(&mut self, head: &CommittedHead) -> Result<(), ArchiveWriteError> {
        while self.size() < head.size.get() {
            self.write_entries(head.size.get()).await?;
        }
        self.put(ArchiveRecord::Head(*head))?;
        self.batch = head.batch;
        for signature in self.signatures_of(head.size).await? {
            self.put(ArchiveRecord::Signature(signature))?;
        }
        for cosignature in self.store.cosignatures(head.size).await? {
            self.put(ArchiveRecord::Cosignature(cosignature))?;
        }
        (self.progress)(self.size());
        Ok(())
    }

    async fn write_entries(&mut self, end: u64) -> Result<(), ArchiveWriteError> {
        let from = self.size();
        let limit = (end - from).min(PAGE_ENTRIES as u64);
        let entries = self.store.entries(LeafIndex::new(from), limit as usize).await?;
        if entries.len() as u64 != limit {
            return Err(ArchiveWriteError::Damaged(format!(
                "there is no entry {}",
                from + entries.len() as u64
            )));
        }
        let rows = self.store.collateral_rows(from..from + limit).await?;
        let mut rows = VecDeque::from(rows);
        for entry in entries {
            let mut collateral: Vec<Collateral> = Vec::new();
            while let Some((_, item)) = rows.pop_front_if(|(index, _)| *index <= entry.index) {
                collateral.push(item);
            }
            self.put(ArchiveRecord::Entry(entry, collateral))?;
        }
        Ok(())
    }

    async fn signatures_of(&mut self, size: TreeSize) -> Result<Vec<HeadSignature>, ArchiveWriteError> {
        if self.signatures.is_empty() {
            let before = size.get().checked_sub(1).map(TreeSize::new);
            self.signatures = self.store.signatures(before, PAGE_ROWS).await?.into();
        }
        let mut of_this = Vec::new();
        while let Some(signature) = self.signatures.pop_front_if(|signature| signature.size <= size) {
            if signature.size == size {
                of_this.push(signature);
            }
        }
        Ok(of_this)
    }

    /// Extends the archive until it contains the statements that declare all erasures.
    async fn extend_to_erasures(&mut self) -> Result<(), ArchiveWriteError> {
        for _ in 0..ROUNDS {
            let Some(index) = self.checker.unexplained() else { return Ok(()) };
            let newest = newest_signed(self.store).await?.ok_or(ArchiveWriteError::Empty)?.size;
            if newest.get() > self.size() {
                self.write_history(newest).await?;
            } else if self.store.head().await?.size() == newest {
                let why = format!("entry {index} has no statement, and no erasure statement names it");
                return Err(ArchiveWriteError::Damaged(why));
            } else {
                tokio::time::sleep(PAUSE).await; // the head that explains it is about to be signed
            }
        }
        Err(StoreError::Unavailable("entries are erased faster than the archive is written".into()).into())
    }

    /// Writes the data that does not belong to a batch: holds, reports, index rows and the inbox.
    async fn write_side_tables(&mut self) -> Result<(), ArchiveWriteError> {
        self.write_holds().await?;
        self.write_reports().await?;
        self.write_seen().await?;
        self.write_guards().await?;
        self.write_waiting().await
    }

    async fn write_holds(&mut self) -> Result<(), ArchiveWriteError> {
        let mut after = None;
        loop {
            let page = self.store.holds(after, PAGE_ROWS).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.entry);
            for hold in page {
                if hold.entry.get() < self.size() {
                    self.put(ArchiveRecord::Hold(hold))?;
                }
            }
        }
    }

    async fn write_reports(&mut self) -> Result<(), ArchiveWriteError> {
        let mut after = None;
        loop {
            let page = self.store.reports(after, PAGE_ENTRIES).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.number);
            for kept in page {
                if kept.report.registered.0.get() < self.size() {
                    self.put(ArchiveRecord::Report(kept.report))?;
                }
            }
        }
    }

    async fn write_seen(&mut self) -> Result<(), ArchiveWriteError> {
        let mut after = None;
        loop {
            let mut page = self.store.seen_rows(after, ROWS).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(*last);
            page.retain(|(_, entry)| entry.get() < self.size());
            self.put(ArchiveRecord::Seen(page))?;
        }
    }

    async fn write_guards(&mut self) -> Result<(), ArchiveWriteError> {
        let mut after = None;
        loop {
            let mut page = self.store.guard_rows(after.as_ref(), ROWS).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            page.retain(|(_, entry)| entry.get() < self.size());
            self.put(ArchiveRecord::Guards(page))?;
        }
    }

    async fn write_waiting(&mut self) -> Result<(), ArchiveWriteError> {
        let mut after = None;
        loop {
            let page = self.store.waiting(after, PAGE_ENTRIES).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(*last);
            for (_, item) in page {
                self.put(ArchiveRecord::Waiting(item))?;
            }
        }
    }

    async fn write_end(mut self, origin: String) -> Result<ArchiveSummary, ArchiveWriteError> {
        let head = self.store.head().await?;
        let policy = self.policy_in_force(head.policy).await?;
        let written = self.checker.head().copied().ok_or(ArchiveWriteError::Empty)?;
        let mut end = EndRecord {
            origin,
            size: written.size.get(),
            root: written.root.to_string(),
            batch: written.batch,
            epoch: head.epoch,
            policy: policy.get(),
            counts: self.checker.counts(),
            checkpoint: self.checker.checkpoint().map(str::to_owned),
            sha256: String::new(),
        };
        let checksum = end.checksum_after(self.writer.checksum());
        end.sha256 = HEXLOWER.encode(&checksum);
        self.put(ArchiveRecord::End(Box::new(end)))?;
        self.writer.finish()?;
        self.checker.finish(checksum).map_err(ArchiveWriteError::Damaged)
    }

    /// The newest policy in the archive, found by following each policy to the one that admitted it.
    async fn policy_in_force(&self, newest: LeafIndex) -> Result<LeafIndex, ArchiveWriteError> {
        let mut policy = newest;
        while policy.get() >= self.size() {
            let entry = self.store.entry(policy).await?.filter(|entry| entry.policy < policy);
            let before =
                entry.ok_or_else(|| ArchiveWriteError::Damaged(format!("there is no policy {policy}")))?;
            policy = before.policy;
        }
        Ok(policy)
    }
}
