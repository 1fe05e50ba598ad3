//! Test entries, and an [`Appender`] that builds valid batches without a sequencer.

use std::sync::Arc;

use bytes::Bytes;
use merkle::{EntryDigest, Hash, LeafHash, LeafIndex, hash_children};

use crate::{Batch, CommitError, Head, LogStore, NewEntry, TileAddress, TileWrite};

/// Origin of every log in this suite.
pub const ORIGIN: &str = "contract.example/log";

/// Returns the bytes of the n-th test statement.
pub fn statement(n: u64) -> Bytes {
    Bytes::from(format!("statement {n}"))
}

/// Returns the n-th test entry, without twin, guards and collateral.
pub fn entry(n: u64) -> NewEntry {
    NewEntry {
        digest: EntryDigest::of(&statement(n)),
        twin: None,
        statement: statement(n),
        policy: LeafIndex::new(0),
        rule: "rule".into(),
        facts: "{}".into(),
        guards: Vec::new(),
        collateral: Vec::new(),
    }
}

/// Writer of one log that holds the [`Head`] in memory, as a sequencer does.
pub struct Appender {
    store: Arc<dyn LogStore>,
    head: Head,
    leaves: Vec<LeafHash>,
}

impl Appender {
    /// Opens a log and asserts that it is empty.
    pub async fn new(store: Arc<dyn LogStore>) -> Self {
        let head = store.open(ORIGIN).await.expect("an empty log opens");
        assert_eq!(head.size().get(), 0, "the appender starts with an empty log");
        Self { store, head, leaves: Vec::new() }
    }

    /// Opens a log and commits entries `0..count` in one batch.
    pub async fn with(store: Arc<dyn LogStore>, count: u64) -> Self {
        let mut appender = Self::new(store).await;
        appender.append(count).await;
        appender
    }

    /// The head after the last append.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Leaf hashes of all entries appended so far.
    pub fn leaves(&self) -> &[LeafHash] {
        &self.leaves
    }

    /// Calls `take_over` and continues under the new epoch.
    pub async fn take_over(&mut self) {
        self.head = self.store.take_over("appender").await.expect("a take-over succeeds");
    }

    /// Commits the next `count` numbered entries in one batch.
    pub async fn append(&mut self, count: u64) {
        let from = self.leaves.len() as u64;
        self.append_entries((from..from + count).map(entry).collect()).await.expect("a batch is committed");
    }

    /// Commits these entries, and keeps the new head if that succeeds.
    pub async fn append_entries(&mut self, entries: Vec<NewEntry>) -> Result<(), CommitError> {
        let batch = self.batch(entries);
        self.commit(&batch).await
    }

    /// Commits a batch made by [`batch`](Self::batch), and keeps the new head if that succeeds.
    pub async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.store.commit(batch).await?;
        self.leaves.extend(batch.entries.iter().map(|entry| entry.digest.leaf_hash()));
        self.head = batch.to.clone();
        Ok(())
    }

    /// Continues from the head that a take-over returned after a commit of unknown outcome; returns whether the
    /// commit had happened.
    pub fn settle(&mut self, batch: &Batch, shown: Head) -> bool {
        let happened = shown.edge == batch.to.edge;
        assert!(happened || shown.edge == batch.from.edge, "the batch is there in full or not at all");
        if happened {
            self.leaves.extend(batch.entries.iter().map(|entry| entry.digest.leaf_hash()));
        }
        self.head = shown;
        happened
    }

    /// Builds the [`Batch`] that would append these entries.
    pub fn batch(&self, entries: Vec<NewEntry>) -> Batch {
        let from = self.head.clone();
        let added: Vec<LeafHash> = entries.iter().map(|entry| entry.digest.leaf_hash()).collect();
        if added.is_empty() {
            return Batch {
                to: from.clone(),
                from,
                entries,
                tiles: Vec::new(),
                settled: Vec::new(),
                effects: Vec::new(),
                signatures: Vec::new(),
            };
        }
        let edge = from.edge.grow(&added).into_range();
        let to = Head { batch: from.batch + 1, edge, at: from.at + 1, ..from.clone() };
        let leaves: Vec<LeafHash> = self.leaves.iter().copied().chain(added).collect();
        let tiles = touched_tiles(self.leaves.len() as u64, &leaves);
        Batch { from, to, entries, tiles, settled: Vec::new(), effects: Vec::new(), signatures: Vec::new() }
    }
}

/// Computes every tile that changes when a tree grows from `old` leaves to these, by the simple and slow algorithm.
fn touched_tiles(old: u64, leaves: &[LeafHash]) -> Vec<TileWrite> {
    let mut tiles = Vec::new();
    let mut nodes: Vec<Hash> = leaves.iter().copied().map(Hash::from).collect();
    for level in 0u8.. {
        let before = old >> (8 * u32::from(level));
        for (number, hashes) in (0u64..).zip(nodes.chunks(256)) {
            if number * 256 + hashes.len() as u64 > before {
                let data: Vec<u8> = hashes.iter().flat_map(|hash| *hash.as_bytes()).collect();
                tiles.push(TileWrite { address: TileAddress { level, number }, data: data.into() });
            }
        }
        for _ in 0..8 {
            nodes = nodes.as_chunks().0.iter().map(|[left, right]| hash_children(*left, *right)).collect();
        }
        if nodes.is_empty() {
            return tiles;
        }
    }
    tiles
}
