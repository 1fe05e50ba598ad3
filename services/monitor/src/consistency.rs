//! Consistency proofs between two trees of a log: fetched from the log, and verified.
//!
//! A Tabellion log serves the proof in one request; for other logs the proof is assembled from tiles. If the proof
//! fails but its hashes lead to the newer root, they also yield the root that the older tree would need. That is a
//! self-contained proof against the log.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use client::tlog::{Grown, TlogClient, TlogError};
use merkle::{Hash, NodeId, TreeSize, proof, verify};

use crate::evidence::TwoRootPath;
use crate::round::Cost;
use crate::signed_checkpoint::TreeHead;

/// Fetches and verifies consistency proofs of one log.
pub struct ConsistencyProver {
    client: TlogClient,
    /// Returns to `false` once the log answers a proof request with "not found".
    serves_proofs: AtomicBool,
    hashes: AtomicU64,
    /// The proof received with the last checkpoint.
    prefetched: Mutex<Option<PrefetchedProof>>,
}

/// A consistency proof that was received together with a checkpoint.
struct PrefetchedProof {
    older: TreeSize,
    grown: Grown,
}

/// A node at the older tree's right edge, and its siblings in the newer tree from the bottom up.
struct EdgePath {
    start: Hash,
    siblings: Vec<Hash>,
}

/// Result of a consistency check.
#[derive(Debug)]
pub enum ConsistencyResult {
    /// The older tree is a prefix of the newer one.
    Proven,
    /// No append-only tree has both roots. The path shows it; `None` if the sizes are equal.
    Contradicted(Option<TwoRootPath>),
    /// The served hashes do not yield the newer root, so nothing is proven.
    Unproven(String),
    /// The log does not serve the required tiles or proof.
    Unanswered(TlogError),
}

impl ConsistencyProver {
    /// Creates a prover for the log behind `client`; the log is assumed to serve proofs until it answers "not found".
    pub fn of(client: TlogClient) -> Self {
        Self {
            client,
            serves_proofs: AtomicBool::new(true),
            hashes: AtomicU64::new(0),
            prefetched: Mutex::new(None),
        }
    }

    /// The client of the log.
    pub fn client(&self) -> &TlogClient {
        &self.client
    }

    /// Returns `false` once the log has shown that it serves no consistency proofs (only Tabellion logs do).
    fn serves_proofs(&self) -> bool {
        self.serves_proofs.load(Ordering::Relaxed)
    }

    /// The requests, bytes and hashes spent so far.
    pub fn cost(&self) -> Cost {
        let spent = self.client.spent();
        Cost { requests: spent.requests, bytes: spent.bytes, hashes: self.hashes.load(Ordering::Relaxed) }
    }

    /// Fetches the newest checkpoint with a proof that it extends the tree of size `known`, in one request. `None` if
    /// the log does not support this, or `known` is 0.
    pub async fn checkpoint_with_proof(&self, known: TreeSize) -> Result<Option<Bytes>, TlogError> {
        if known == TreeSize::EMPTY || !self.serves_proofs() {
            return Ok(None);
        }
        match self.client.grown(known, None).await {
            Ok(mut grown) => {
                let note = grown.checkpoint.take();
                self.count(grown.path.len());
                *self.prefetched.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(PrefetchedProof { older: known, grown });
                Ok(note)
            }
            Err(error @ TlogError::Unreachable(_)) => Err(error),
            Err(TlogError::Missing { .. }) => {
                self.serves_proofs.store(false, Ordering::Relaxed);
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    /// Adds received hashes to the cost.
    fn count(&self, hashes: usize) {
        self.hashes.fetch_add(hashes as u64, Ordering::Relaxed);
    }

    /// Proves that `older` is a prefix of `newer`. The newer tree must not be smaller.
    pub async fn extends(&self, older: TreeHead, newer: TreeHead) -> ConsistencyResult {
        if older.size == newer.size {
            return match older.root == newer.root {
                true => ConsistencyResult::Proven,
                false => ConsistencyResult::Contradicted(None),
            };
        }
        if older.size == TreeSize::EMPTY {
            return ConsistencyResult::Proven;
        }
        match self.verify_served_proof(older, newer).await {
            Some(outcome) => outcome,
            None => self.verify_by_tiles(older, newer).await,
        }
    }

    /// Verifies the log's own proof. `None` if the log serves none, or a proof that neither holds nor shows a fork.
    async fn verify_served_proof(&self, older: TreeHead, newer: TreeHead) -> Option<ConsistencyResult> {
        if !self.serves_proofs() {
            return None;
        }
        if let Some(path) = self.take_prefetched(older.size, newer.size) {
            return verify_path(older, newer, &path);
        }
        let path = match self.client.grown(older.size, Some(newer.size)).await {
            Ok(grown) => grown.path,
            Err(error @ TlogError::Unreachable(_)) => return Some(ConsistencyResult::Unanswered(error)),
            Err(TlogError::Missing { .. }) => {
                self.serves_proofs.store(false, Ordering::Relaxed);
                return None;
            }
            Err(_) => return None,
        };
        self.count(path.len());
        verify_path(older, newer, &path)
    }

    /// Returns the prefetched proof if it is between these sizes.
    fn take_prefetched(&self, older: TreeSize, newer: TreeSize) -> Option<Vec<Hash>> {
        let proof = self.prefetched.lock().unwrap_or_else(PoisonError::into_inner).take();
        let proof = proof.filter(|proof| (proof.older, proof.grown.second) == (older, newer));
        proof.map(|proof| proof.grown.path)
    }

    /// Assembles the proof from the newer tree's tiles and verifies it.
    async fn verify_by_tiles(&self, older: TreeHead, newer: TreeHead) -> ConsistencyResult {
        let EdgePath { start, siblings } = match self.fetch_path(older.size, newer.size).await {
            Ok(path) => path,
            Err(error) => return ConsistencyResult::Unanswered(error),
        };
        self.count(siblings.len() + 1);
        match verify::implied_roots(older.size, newer.size, start, &siblings) {
            Ok(implied) if implied == (older.root, newer.root) => ConsistencyResult::Proven,
            Ok((_, root)) if root == newer.root => {
                ConsistencyResult::Contradicted(Some(TwoRootPath::of(start, &siblings)))
            }
            Ok((_, root)) => ConsistencyResult::Unproven(format!(
                "the tiles of size {} give the root {root}, but the log signed {}",
                newer.size, newer.root
            )),
            Err(why) => ConsistencyResult::Unproven(why.to_string()),
        }
    }

    /// Fetches the node at the older tree's right edge and its siblings in the newer tree, from the bottom up.
    async fn fetch_path(&self, older: TreeSize, newer: TreeSize) -> Result<EdgePath, TlogError> {
        let plan = proof::consistency(older, newer)?;
        let level = older.get().trailing_zeros();
        let start = NodeId { level: level as u8, index: (older.get() - 1) >> level };
        let mut needed = plan.nodes().to_vec();
        needed.push(start);
        let hashes = self.client.nodes(&needed, newer).await?;
        let hash = |node: NodeId| hashes.get(&node).copied().ok_or(proof::NoProof::EmptyOlder);
        let mut siblings = plan.fold(hash)?;
        if !older.get().is_power_of_two() {
            siblings.remove(0);
        }
        Ok(EdgePath { start: hash(start)?, siblings })
    }
}

/// Verifies a consistency proof (RFC 9162, 2.1.4.2). `None` if it neither holds nor shows a fork, so that tiles must
/// decide.
fn verify_path(older: TreeHead, newer: TreeHead, path: &[Hash]) -> Option<ConsistencyResult> {
    if verify::consistency(older.size, newer.size, older.root, newer.root, path) == Ok(()) {
        return Some(ConsistencyResult::Proven);
    }
    let (start, siblings) = path.split_first().filter(|_| !older.size.get().is_power_of_two())?;
    let (_, root) = verify::implied_roots(older.size, newer.size, *start, siblings).ok()?;
    (root == newer.root).then(|| ConsistencyResult::Contradicted(Some(TwoRootPath::of(*start, siblings))))
}

impl TwoRootPath {
    /// Encodes a path in hex for [`Evidence`](crate::Evidence).
    pub fn of(start: Hash, siblings: &[Hash]) -> Self {
        Self { start: start.to_string(), siblings: siblings.iter().map(Hash::to_string).collect() }
    }
}
