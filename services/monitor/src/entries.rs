//! The entries check: recomputes the signed root from the log's entries.
//!
//! Every new entry bundle is fetched and hashed into the compact range of the entries so far. The work is done in steps
//! (`ENTRIES_STEP`), so that the monitor can catch up with a large log in parts. A step counts only after its root was
//! proven to be the root of a prefix of the signed tree. If the entries do not yield the root, the accusation names the
//! first leaf whose entry differs from the level-0 tile.

use std::time::{Duration, Instant};

use bytes::Bytes;
use client::tlog::{TlogClient, TlogError};
use data_encoding::BASE64;
use futures::StreamExt;
use merkle::tile::{BundleId, FULL_WIDTH, TileId, TilePath};
use merkle::{CompactRange, LeafHash, TreeSize, hash_leaf};

use crate::alarm::{AlarmKind, AlarmSubject};
use crate::check_name::CheckName;
use crate::config::WatchedLog;
use crate::consistency::{ConsistencyProver, ConsistencyResult};
use crate::evidence::Evidence;
use crate::growth::{record_missing_tiles, tiles_trouble};
use crate::limits::{BUNDLES_AT_ONCE, ENTRIES_STEP};
use crate::round_results::RoundResults;
use crate::signed_checkpoint::{SignedCheckpoint, TreeHead};
use crate::state::{Edge, LogState};

/// The entries check of one round.
pub struct EntriesCheck<'a> {
    /// The log's configuration.
    pub target: &'a WatchedLog,
    /// Client and proof verifier for the log.
    pub prover: &'a ConsistencyProver,
    /// The log's state; `entries` holds the right edge of the entries checked so far.
    pub state: &'a mut LogState,
    /// The round's checks and alarms.
    pub results: &'a mut RoundResults,
    /// Time limit; unlimited if `None`.
    pub at_most: Option<Duration>,
    /// Additional time for requests in flight after `at_most`.
    pub grace: Duration,
}

/// Reasons for which a step does not count.
enum StepError {
    /// The log does not serve the entries or the proof.
    Missing(TlogError),
    /// The entries are not those of the signed tree; with a description and the evidence.
    Wrong(String, Option<Evidence>),
}

/// An entry whose hash differs from the one in the level-0 tile.
struct DifferingEntry {
    leaf: u64,
    /// Path of the bundle that holds the entry.
    path: String,
    bytes: Bytes,
}

impl EntriesCheck<'_> {
    /// Checks the entries up to the verified checkpoint `shown`. `kept` saves the state after each step and returns
    /// whether that succeeded.
    pub async fn check(&mut self, shown: &SignedCheckpoint, kept: impl Fn(&LogState) -> bool) {
        let Some(at_most) = self.at_most else { return self.read(shown, kept).await };
        if tokio::time::timeout(at_most + self.grace, self.read(shown, kept)).await.is_err() {
            let at = self.state.entries.as_ref().map_or(0, |edge| edge.size);
            let words = format!("out of time: entries so far: {at} of {}", shown.size);
            self.results.not_checked(CheckName::Entries, words);
        }
    }

    async fn read(&mut self, shown: &SignedCheckpoint, kept: impl Fn(&LogState) -> bool) {
        let from = self.state.entries.as_ref().map_or(0, |edge| edge.size);
        if from > shown.size.get() {
            let words = format!("entries were checked up to size {from}, and the log shows fewer");
            self.results.not_checked(CheckName::Entries, words);
            return;
        }
        let started = Instant::now();
        loop {
            let at = self.state.entries.as_ref().map_or(0, |edge| edge.size);
            if at == shown.size.get() {
                break;
            }
            match self.step(shown, started).await {
                Ok(edge) => {
                    self.state.entries = Some(edge);
                    self.state.end_trouble(&tiles_trouble(CheckName::Entries, ""));
                    self.results.count_as_made(CheckName::Entries);
                }
                Err(StepError::Missing(error)) => {
                    return record_missing_tiles(
                        self.target,
                        self.state,
                        self.results,
                        (CheckName::Entries, ""),
                        &error,
                    );
                }
                Err(StepError::Wrong(words, evidence)) => {
                    let (kind, about) = (AlarmKind::Inconsistent, AlarmSubject::Log);
                    return self.results.accuse(CheckName::Entries, kind, about, words, evidence);
                }
            }
            if !kept(self.state) {
                let words = "the position of this check cannot be saved";
                return self.results.not_checked(CheckName::Entries, words);
            }
            let at = self.state.entries.as_ref().map_or(0, |edge| edge.size);
            if at < shown.size.get() && self.is_over(started) {
                let words = format!("entries so far: {at} of {}; the rest in the next rounds", shown.size);
                return self.results.not_checked(CheckName::Entries, words);
            }
        }
        self.state.end_trouble(&tiles_trouble(CheckName::Entries, ""));
        let words = format!(
            "all entries up to size {} give the signed root; new ones: {}",
            shown.size,
            shown.size.get() - from
        );
        self.results.ok(CheckName::Entries, words);
    }

    fn is_over(&self, started: Instant) -> bool {
        self.at_most.is_some_and(|most| started.elapsed() > most)
    }

    /// Checks one step and returns its right edge. A step ends early when the time limit is reached, so that a slow log
    /// does not block the round.
    async fn step(&mut self, shown: &SignedCheckpoint, started: Instant) -> Result<Edge, StepError> {
        let edge = self.state.entries.clone().unwrap_or_default();
        let mut range = edge.range().map_err(|why| StepError::Wrong(why, None))?;
        let end = (edge.size / ENTRIES_STEP + 1).saturating_mul(ENTRIES_STEP).min(shown.size.get());
        let width = u64::from(FULL_WIDTH);
        // All bundles of a tree are full except the last: request the bundles of the signed tree's size.
        let numbers = edge.size / width..end.div_ceil(width);
        let client = self.prover.client();
        let bundles = futures::stream::iter(numbers)
            .map(|number| bundle(client, number, shown.size))
            .buffered(BUNDLES_AT_ONCE);
        futures::pin_mut!(bundles);
        while let Some(answer) = bundles.next().await {
            let (number, entries) = answer.map_err(StepError::Missing)?;
            let first = number * width;
            let new = range.size().get().saturating_sub(first) as usize;
            for entry in entries.iter().skip(new).take((end - range.size().get()) as usize) {
                range.append(hash_leaf(entry));
            }
            if self.is_over(started) {
                break;
            }
        }
        self.check_prefix(&range, shown, started).await?;
        Ok(Edge::of(&range))
    }

    /// Proves that the range's entries are a prefix of the signed tree.
    async fn check_prefix(
        &self,
        range: &CompactRange,
        shown: &SignedCheckpoint,
        started: Instant,
    ) -> Result<(), StepError> {
        let head = TreeHead { size: range.size(), root: range.root() };
        let outcome = self.prover.extends(head, shown.head()).await;
        match outcome {
            ConsistencyResult::Proven => Ok(()),
            ConsistencyResult::Unanswered(error) => Err(StepError::Missing(error)),
            ConsistencyResult::Contradicted(_) | ConsistencyResult::Unproven(_) => {
                Err(self.find_wrong_entry_in_time(range.size(), shown, started).await)
            }
        }
    }

    /// Finds the wrong entry within the remaining time; without a result the accusation names only the range.
    async fn find_wrong_entry_in_time(
        &self,
        end: TreeSize,
        shown: &SignedCheckpoint,
        started: Instant,
    ) -> StepError {
        let search = self.find_wrong_entry(end, shown);
        let Some(at_most) = self.at_most else { return search.await };
        let left = (at_most + self.grace / 2).saturating_sub(started.elapsed());
        tokio::time::timeout(left, search).await.unwrap_or_else(|_| {
            self.wrong_entries(
                end,
                shown,
                "do not give the signed root; the search for the wrong entry ran out of time",
            )
        })
    }

    /// The accusation that the entries up to `end` are wrong, without the one that is.
    fn wrong_entries(&self, end: TreeSize, shown: &SignedCheckpoint, why: &str) -> StepError {
        let words = format!("the entries up to leaf {} {why}", end.get().saturating_sub(1));
        StepError::Wrong(words, Some(Evidence::checkpoint(self.target, &shown.sighting)))
    }

    /// Finds the first new entry whose hash differs from the one in the level-0 tile.
    async fn find_wrong_entry(&self, end: TreeSize, shown: &SignedCheckpoint) -> StepError {
        let width = u64::from(FULL_WIDTH);
        let from = self.state.entries.as_ref().map_or(0, |edge| edge.size);
        for number in from / width..end.get().div_ceil(width) {
            match self.find_differing_leaf(number, shown).await {
                Ok(None) => {}
                Ok(Some(DifferingEntry { leaf, path, bytes })) => {
                    let words = format!("the entry at leaf {leaf} is not the one in the signed tree");
                    let evidence = Evidence::Served {
                        vkey: self.target.vkey.to_string(),
                        checkpoint: shown.sighting.clone(),
                        path,
                        bytes: BASE64.encode(&bytes),
                    };
                    return StepError::Wrong(words, Some(evidence));
                }
                Err(error) => {
                    let why = format!(
                        "do not give the signed root; what would show the wrong one was not served: {error}"
                    );
                    return self.wrong_entries(end, shown, &why);
                }
            }
        }
        self.wrong_entries(end, shown, "and the tiles agree with each other, but do not give the signed root")
    }

    /// Returns the first entry of a bundle whose hash differs from the level-0 tile.
    async fn find_differing_leaf(
        &self,
        number: u64,
        shown: &SignedCheckpoint,
    ) -> Result<Option<DifferingEntry>, TlogError> {
        let client = self.prover.client();
        let (_, entries) = bundle(client, number, shown.size).await?;
        let Some(tile) = TileId::at(0, number, shown.size) else { return Ok(None) };
        let hashes = client.tile(tile).await?;
        let (hashes, _) = hashes.as_chunks::<32>();
        let differs = |(hash, entry): (&[u8; 32], &Bytes)| LeafHash::from_bytes(*hash) != hash_leaf(entry);
        let Some(place) = hashes.iter().zip(&entries).position(differs) else { return Ok(None) };
        let path = BundleId::at(number, shown.size).map(|id| TilePath::Entries(id).to_string());
        Ok(Some(DifferingEntry {
            leaf: number * u64::from(FULL_WIDTH) + place as u64,
            path: path.unwrap_or_default(),
            bytes: entries[place].clone(),
        }))
    }
}

async fn bundle(client: &TlogClient, number: u64, size: TreeSize) -> Result<(u64, Vec<Bytes>), TlogError> {
    let Some(id) = BundleId::at(number, size) else { return Ok((number, Vec::new())) };
    client.bundle(id).await.map(|entries| (number, entries))
}
