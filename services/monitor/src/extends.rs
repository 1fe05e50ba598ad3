//! Consistency proofs: decides whether one tree is a prefix of another, from data that the log serves.
//!
//! A Tabellion log serves the proof in one request; for other logs the proof is assembled from tiles. If the proof
//! fails but its hashes lead to the newer root, they also yield the root that the older tree would need. That is a
//! self-contained proof against the log.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use client::tlog::{Grown, TlogClient, TlogError};
use merkle::{Hash, NodeId, RootHash, TreeSize, proof, verify};

use crate::evidence::TwoRootPath;
use crate::round::Cost;

/// Fetches and verifies consistency proofs of one log.
pub struct ConsistencyProver {
    client: TlogClient,
    /// Returns to `false` once the log answers a proof request with "not found".
    makes_proofs: AtomicBool,
    hashes: AtomicU64,
    /// The proof received with the last checkpoint, and the older size that it starts from.
    ready: Mutex<Option<(TreeSize, Grown)>>,
}

/// Size and root of a tree.
pub type TreeHead = (TreeSize, RootHash);

/// Result of a consistency check.
#[derive(Debug)]
pub enum Extends {
    /// The older tree is a prefix of the newer one.
    Yes,
    /// No append-only tree has both roots. The path shows it; `None` if the sizes are equal.
    No(Option<TwoRootPath>),
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
            makes_proofs: AtomicBool::new(true),
            hashes: AtomicU64::new(0),
            ready: Mutex::new(None),
        }
    }

    /// The client of the log.
    pub fn client(&self) -> &TlogClient {
        &self.client
    }

    /// Returns `false` once the log has shown that it serves no consistency proofs (only Tabellion logs do).
    pub fn makes_proofs(&self) -> bool {
        self.makes_proofs.load(Ordering::Relaxed)
    }

    /// The requests, bytes and hashes spent so far.
    pub fn cost(&self) -> Cost {
        let spent = self.client.spent();
        Cost { requests: spent.requests, bytes: spent.bytes, hashes: self.hashes.load(Ordering::Relaxed) }
    }

    /// Fetches the newest checkpoint with a proof that it extends the tree of size `known`, in one request. `None` if
    /// the log does not support this, or `known` is 0.
    pub async fn checkpoint_with_proof(&self, known: TreeSize) -> Result<Option<Bytes>, TlogError> {
        if known == TreeSize::EMPTY || !self.makes_proofs() {
            return Ok(None);
        }
        match self.client.grown(known, None).await {
            Ok(mut grown) => {
                let note = grown.checkpoint.take();
                self.count(grown.path.len());
                *self.ready.lock().unwrap_or_else(PoisonError::into_inner) = Some((known, grown));
                Ok(note)
            }
            Err(error @ TlogError::Unreachable(_)) => Err(error),
            Err(TlogError::Missing { .. }) => {
                self.makes_proofs.store(false, Ordering::Relaxed);
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    fn take_ready(&self, older: TreeSize, newer: TreeSize) -> Option<Vec<Hash>> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        ready.filter(|(first, grown)| (*first, grown.second) == (older, newer)).map(|(_, grown)| grown.path)
    }

    /// Adds `hashes` to the cost, for hashes that were received by other requests.
    pub fn count(&self, hashes: usize) {
        self.hashes.fetch_add(hashes as u64, Ordering::Relaxed);
    }

    /// Proves that `older` is a prefix of `newer`. The newer tree must not be smaller.
    pub async fn extends(&self, older: TreeHead, newer: TreeHead) -> Extends {
        if older.0 == newer.0 {
            return if older.1 == newer.1 { Extends::Yes } else { Extends::No(None) };
        }
        if older.0 == TreeSize::EMPTY {
            return Extends::Yes;
        }
        match self.in_one_request(older, newer).await {
            Some(outcome) => outcome,
            None => self.by_tiles(older, newer).await,
        }
    }

    /// Verifies the log's own proof. `None` if the log serves none, or a proof that neither holds nor shows a fork.
    async fn in_one_request(&self, older: TreeHead, newer: TreeHead) -> Option<Extends> {
        if !self.makes_proofs() {
            return None;
        }
        if let Some(path) = self.take_ready(older.0, newer.0) {
            return judge(older, newer, &path);
        }
        let path = match self.client.grown(older.0, Some(newer.0)).await {
            Ok(grown) => grown.path,
            Err(error @ TlogError::Unreachable(_)) => return Some(Extends::Unanswered(error)),
            Err(TlogError::Missing { .. }) => {
                self.makes_proofs.store(false, Ordering::Relaxed);
                return None;
            }
            Err(_) => return None,
        };
        self.count(path.len());
        judge(older, newer, &path)
    }

    /// Assembles the proof from the newer tree's tiles and verifies it.
    async fn by_tiles(&self, older: TreeHead, newer: TreeHead) -> Extends {
        let (start, siblings) = match self.path(older.0, newer.0).await {
            Ok(path) => path,
            Err(error) => return Extends::Unanswered(error),
        };
        self.count(siblings.len() + 1);
        match verify::implied_roots(older.0, newer.0, start, &siblings) {
            Ok(implied) if implied == (older.1, newer.1) => Extends::Yes,
            Ok((_, root)) if root == newer.1 => Extends::No(Some(TwoRootPath::of(start, &siblings))),
            Ok((_, root)) => Extends::Unproven(format!(
                "the tiles of size {} make the root {root}, and {} is signed",
                newer.0, newer.1
            )),
            Err(why) => Extends::Unproven(why.to_string()),
        }
    }

    /// Fetches the node at the older tree's right edge and its siblings in the newer tree, from the bottom up.
    async fn path(&self, older: TreeSize, newer: TreeSize) -> Result<(Hash, Vec<Hash>), TlogError> {
        let plan = proof::consistency(older, newer)?;
        let level = older.get().trailing_zeros();
        let start = NodeId { level: level as u8, index: (older.get() - 1) >> level };
        let mut needed = plan.nodes().to_vec();
        needed.push(start);
        let hashes = self.client.nodes(&needed, newer).await?;
        let hash = |node: NodeId| hashes.get(&node).copied().ok_or(proof::NoProof::EmptyOlder);
        let mut path = plan.fold(hash)?;
        if !older.get().is_power_of_two() {
            path.remove(0);
        }
        Ok((hash(start)?, path))
    }
}

/// Verifies a consistency proof (RFC 9162, 2.1.4.2). `None` if it neither holds nor shows a fork, so that tiles must
/// decide.
pub fn judge(older: TreeHead, newer: TreeHead, path: &[Hash]) -> Option<Extends> {
    if verify::consistency(older.0, newer.0, older.1, newer.1, path) == Ok(()) {
        return Some(Extends::Yes);
    }
    let (start, siblings) = path.split_first().filter(|_| !older.0.get().is_power_of_two())?;
    let (_, root) = verify::implied_roots(older.0, newer.0, *start, siblings).ok()?;
    (root == newer.1).then(|| Extends::No(Some(TwoRootPath::of(*start, siblings))))
}

impl TwoRootPath {
    /// Encodes a path in hex for [`Evidence`](crate::Evidence).
    pub fn of(start: Hash, siblings: &[Hash]) -> Self {
        Self { start: start.to_string(), siblings: siblings.iter().map(Hash::to_string).collect() }
    }
}
