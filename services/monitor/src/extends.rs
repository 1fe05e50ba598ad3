//! Whether one tree is the beginning of another, by what the log shows of the larger one.
//!
//! A log of ours makes the proof itself, in one request; of any other log the proof is put together from tiles. Where the
//! proof does not hold, the hashes that lead to the newer root tell what the older root would have to be: that is a proof
//! against the log, which needs nobody's word.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use client::tlog::{Grown, TlogClient, TlogError};
use merkle::{Hash, NodeId, RootHash, TreeSize, proof, verify};

use crate::evidence::Path;
use crate::round::Cost;

/// Asks one log for proofs.
pub struct Prover {
    client: TlogClient,
    /// Whether the log makes proofs itself, as far as is known.
    makes_proofs: AtomicBool,
    hashes: AtomicU64,
    /// A proof that came together with a checkpoint.
    ready: Mutex<Option<(TreeSize, Grown)>>,
}

/// A tree, by its head.
pub type TreeHead = (TreeSize, RootHash);

/// Whether the older tree is the beginning of the newer one.
#[derive(Debug)]
pub enum Extends {
    /// It is.
    Yes,
    /// It is not, and no tree can have both roots. The path shows it, unless the sizes are equal.
    No(Option<Path>),
    /// What the log serves does not make the root that it signed.
    Unproven(String),
    /// It does not serve what it takes.
    Unanswered(TlogError),
}

impl Prover {
    /// Asks the log behind this client.
    pub fn of(client: TlogClient) -> Self {
        Self {
            client,
            makes_proofs: AtomicBool::new(true),
            hashes: AtomicU64::new(0),
            ready: Mutex::new(None),
        }
    }

    /// The log itself.
    pub fn client(&self) -> &TlogClient {
        &self.client
    }

    /// Whether it may be one of ours.
    pub fn makes_proofs(&self) -> bool {
        self.makes_proofs.load(Ordering::Relaxed)
    }

    /// What asking has cost so far.
    pub fn cost(&self) -> Cost {
        let spent = self.client.spent();
        Cost { requests: spent.requests, bytes: spent.bytes, hashes: self.hashes.load(Ordering::Relaxed) }
    }

    /// The newest checkpoint, and with it the proof that it extends a tree of this size: one request. `None` if the log does
    /// not answer so.
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

    /// Counts hashes that came otherwise.
    pub fn count(&self, hashes: usize) {
        self.hashes.fetch_add(hashes as u64, Ordering::Relaxed);
    }

    /// Whether the older tree is the beginning of the newer one, which must not be smaller.
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

    /// The log's own proof, if it makes one that holds or that shows a fork.
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

    /// The proof out of the newer tree's tiles.
    async fn by_tiles(&self, older: TreeHead, newer: TreeHead) -> Extends {
        let (start, siblings) = match self.path(older.0, newer.0).await {
            Ok(path) => path,
            Err(error) => return Extends::Unanswered(error),
        };
        self.count(siblings.len() + 1);
        match verify::implied_roots(older.0, newer.0, start, &siblings) {
            Ok(implied) if implied == (older.1, newer.1) => Extends::Yes,
            Ok((_, root)) if root == newer.1 => Extends::No(Some(Path::of(start, &siblings))),
            Ok((_, root)) => Extends::Unproven(format!(
                "the tiles of {} leaves make the root {root}, and {} is signed",
                newer.0, newer.1
            )),
            Err(why) => Extends::Unproven(why.to_string()),
        }
    }

    /// The node at the older tree's right edge, and its siblings upwards in the newer tree.
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

/// What a proof of RFC 9162 says by itself; `None` if tiles have to tell.
pub fn judge(older: TreeHead, newer: TreeHead, path: &[Hash]) -> Option<Extends> {
    if verify::consistency(older.0, newer.0, older.1, newer.1, path) == Ok(()) {
        return Some(Extends::Yes);
    }
    let (start, siblings) = path.split_first().filter(|_| !older.0.get().is_power_of_two())?;
    let (_, root) = verify::implied_roots(older.0, newer.0, *start, siblings).ok()?;
    (root == newer.1).then(|| Extends::No(Some(Path::of(*start, siblings))))
}

impl Path {
    /// The way from a node.
    pub fn of(start: Hash, siblings: &[Hash]) -> Self {
        Self { start: start.to_string(), siblings: siblings.iter().map(Hash::to_string).collect() }
    }
}
