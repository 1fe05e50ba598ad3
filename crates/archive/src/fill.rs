//! Filling an empty database from an archive.
//!
//! The archive must have been verified completely before ([`verify`](crate::verify)), and is checked again while it is
//! read. Batches are inserted as they were committed, several at once; entries erased in the source are erased
//! again, after the holds that had ended by then. The database stays closed to other users until [`finish`]: after an
//! interruption, [`fill`] with the same file continues where it stopped.

use std::io::Read;

use bytes::Bytes;
use merkle::LeafIndex;
use merkle::tile::OpenTiles;
use store::custody::ERASED_AT_ONCE;
use store::proofs::address_of;
use store::{
    AppendedBatch, ArchiveTarget, Batch, Collateral, CommittedHead, Cosignature, Entry, Head, HeadSignature,
    History, HistoryImport, Hold, NewEntry, StoreError, TileAddress, TileStore,
};

use crate::limits::{FILL_BYTES, FILL_ENTRIES, FILL_HEADS};
use crate::{ArchiveError, ArchiveReader, ArchiveRecord, ArchiveSummary, Checker, StatementInspector};

/// Errors of [`fill`].
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// A database error, or a database that cannot be filled.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The archive cannot be read or is inconsistent.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// An entry that must be erased is on hold.
    #[error("entry {0} is erased and on hold")]
    ErasedAndHeld(LeafIndex),
    /// The checksum is not that of the verified archive.
    #[error("the file changed while it was read")]
    Changed,
}

/// Result of [`fill`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillResult {
    /// Number of entries inserted by earlier attempts.
    pub already_present: u64,
    /// Number of entries inserted by this attempt.
    pub written: u64,
}

/// Inserts a verified archive into an empty database, which stays closed until [`finish`].
pub async fn fill(
    store: &dyn ArchiveTarget,
    archive: impl Read,
    (summary, inspector): (&ArchiveSummary, &dyn StatementInspector),
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<FillResult, FillError> {
    let mut reader = ArchiveReader::new(archive)?;
    let mut checker = Checker::new(inspector);
    let head = store.begin_filling(&summary.origin, &summary.source).await?;
    let already_present = head.size().get();
    let tiles = open_tiles(store, &head).await?;
    let mut import = Import {
        store,
        summary,
        tiles,
        head,
        chunk: Chunk::default(),
        erased: Vec::new(),
        holds: PendingHolds::default(),
    };
    while let Some(record) = reader.read()? {
        checker.accept(&record).map_err(|what| reader.contradicts(what))?;
        if let ArchiveRecord::Head(head) = &record {
            progress(head.size.get());
        }
        import.apply(record).await?;
    }
    match reader.checksum() == summary.source.0 {
        true => Ok(FillResult { already_present, written: import.head.size().get() - already_present }),
        false => Err(FillError::Changed),
    }
}

/// Opens the filled database for use.
pub async fn finish(store: &dyn HistoryImport, summary: &ArchiveSummary) -> Result<Head, StoreError> {
    durable::crash::visit("before-end-of-filling");
    store.end_filling(&summary.source, summary.epoch, summary.policy).await
}

/// Batches to be inserted together.
#[derive(Default)]
struct Chunk {
    entries: Vec<NewEntry>,
    bytes: usize,
    policy: u64,
    heads: Vec<CommittedHead>,
    signatures: Vec<HeadSignature>,
    cosignatures: Vec<Cosignature>,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.bytes >= FILL_BYTES || self.entries.len() >= FILL_ENTRIES || self.heads.len() >= FILL_HEADS
    }
}

/// The holds of the entry whose holds are being applied.
#[derive(Default)]
struct PendingHolds {
    entry: Option<LeafIndex>,
    /// Holds that the database has already.
    existing: Vec<Hold>,
    next: usize,
}

/// An import in progress.
struct Import<'a> {
    store: &'a dyn ArchiveTarget,
    summary: &'a ArchiveSummary,
    head: Head,
    tiles: OpenTiles,
    chunk: Chunk,
    erased: Vec<LeafIndex>,
    holds: PendingHolds,
}

impl Import<'_> {
    async fn apply(&mut self, record: ArchiveRecord) -> Result<(), FillError> {
        let is_history = matches!(
            record,
            ArchiveRecord::Entry(..)
                | ArchiveRecord::Head(_)
                | ArchiveRecord::Signature(_)
                | ArchiveRecord::Cosignature(_)
        );
        if !is_history && !self.chunk.heads.is_empty() {
            self.write_chunk().await?;
        }
        match record {
            ArchiveRecord::Header(_) => {}
            ArchiveRecord::Key(key) => self.store.keep_key(&key).await?,
            ArchiveRecord::Entry(entry, collateral) => self.add_entry(entry, collateral).await?,
            ArchiveRecord::Head(head) if head.batch <= self.head.batch => {}
            ArchiveRecord::Head(head) => self.chunk.heads.push(head),
            ArchiveRecord::Signature(signature) if signature.size <= self.head.size() => {}
            ArchiveRecord::Signature(signature) => self.chunk.signatures.push(signature),
            ArchiveRecord::Cosignature(cosignature) if cosignature.size <= self.head.size() => {}
            ArchiveRecord::Cosignature(cosignature) => self.chunk.cosignatures.push(cosignature),
            ArchiveRecord::Hold(hold) => self.apply_hold(hold).await?,
            ArchiveRecord::Report(report) => {
                self.erase_entries().await?;
                self.store.keep_report(&report).await?;
            }
            ArchiveRecord::Seen(rows) => self.store.fill_claims(&self.summary.source, &rows, &[]).await?,
            ArchiveRecord::Guards(rows) => self.store.fill_claims(&self.summary.source, &[], &rows).await?,
            ArchiveRecord::Waiting(item) => self.store.enqueue(&item).await?,
            ArchiveRecord::End(_) => self.erase_entries().await?,
        }
        Ok(())
    }

    /// Adds an entry. The first entry of a batch inserts the preceding batches if the chunk is full.
    async fn add_entry(&mut self, entry: Entry, collateral: Vec<Collateral>) -> Result<(), FillError> {
        if entry.statement.is_none() {
            self.erased.push(entry.index);
        }
        if entry.index.get() < self.head.size().get() {
            return Ok(());
        }
        let begins = self.chunk.heads.last().is_some_and(|last| last.size.get() == entry.index.get());
        if begins && self.chunk.is_full() {
            self.write_chunk().await?;
        }
        self.chunk.bytes += entry.statement.as_ref().map_or(0, Bytes::len);
        self.chunk.policy = entry.policy.get();
        self.chunk.entries.push(NewEntry {
            digest: entry.digest,
            twin: None,
            statement: entry.statement.unwrap_or_default(),
            policy: entry.policy,
            rule: entry.rule,
            facts: entry.facts,
            guards: Vec::new(),
            collateral,
        });
        Ok(())
    }

    /// Inserts the batches of the chunk in one transaction.
    async fn write_chunk(&mut self) -> Result<(), FillError> {
        let chunk = std::mem::take(&mut self.chunk);
        let Some(last) = chunk.heads.last().copied() else { return Ok(()) };
        let appended = Batch::append(&self.head, &self.tiles, last.at, chunk.entries);
        let AppendedBatch { mut batch, tiles, .. } =
            appended.map_err(|error| StoreError::Damaged(error.to_string()))?;
        let policy = LeafIndex::new(chunk.policy.max(self.head.policy.get()));
        batch.to = Head { epoch: last.epoch, batch: last.batch, policy, ..batch.to };
        let to = batch.to.clone();
        let (heads, signatures, cosignatures) = (chunk.heads, chunk.signatures, chunk.cosignatures);
        let history = History { batch, heads, signatures, cosignatures };
        self.store.fill(&self.summary.source, &history).await?;
        (self.head, self.tiles) = (to, tiles);
        Ok(())
    }

    /// Inserts a hold and its end, unless an earlier attempt did so.
    async fn apply_hold(&mut self, hold: Hold) -> Result<(), FillError> {
        if self.holds.entry != Some(hold.entry) {
            let before = hold.entry.get().checked_sub(1).map(LeafIndex::new);
            let mut existing = self.store.holds(before, 1).await?;
            existing.retain(|existing| existing.entry == hold.entry);
            self.holds = PendingHolds { entry: Some(hold.entry), existing, next: 0 };
        }
        let there = self.holds.existing.get(self.holds.next);
        self.holds.next += 1;
        if there.is_none() {
            self.store.hold(hold.entry, &hold.case, hold.at).await?;
        }
        if let Some(at) = hold.released
            && there.is_none_or(|there| there.released.is_none())
        {
            self.store.release(hold.entry, &hold.case, at).await?;
        }
        Ok(())
    }

    /// Erases the entries without a statement in the archive.
    async fn erase_entries(&mut self) -> Result<(), FillError> {
        for entries in std::mem::take(&mut self.erased).chunks(ERASED_AT_ONCE) {
            let done = self.store.erase(entries).await?;
            if let Some(held) = done.held.first() {
                return Err(FillError::ErasedAndHeld(*held));
            }
        }
        Ok(())
    }
}

/// Loads the partial tiles at a head's right edge: at most one for each level.
async fn open_tiles(store: &dyn TileStore, head: &Head) -> Result<OpenTiles, StoreError> {
    let needed: Vec<TileAddress> = OpenTiles::needed(head.size()).into_iter().map(address_of).collect();
    let stored = store.tiles(&needed).await?.into_iter().collect::<Option<Vec<Bytes>>>();
    let stored = stored.ok_or_else(|| StoreError::Damaged("a tile of its right edge is missing".into()))?;
    match OpenTiles::restore(head.size(), &stored) {
        Ok(tiles) if tiles.range() == head.edge => Ok(tiles),
        Ok(_) => Err(StoreError::Damaged("its tiles differ from those of its head".into())),
        Err(error) => Err(StoreError::Damaged(error.to_string())),
    }
}
