//! Client for the tiles of a transparency log (C2SP tlog-checkpoint, tlog-tiles).
//!
//! Received data is not verified here: a checkpoint is bytes, a tile is hashes, and a proof is for a verifier. Nothing
//! is cached between calls. A partial tile that the log no longer serves is cut out of the full tile, as the
//! specification permits.
//!
//! Not here: retries, redirects, compressed bundles, and verification.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, DATE};
use http::{HeaderMap, StatusCode};
use merkle::proof::{self, NoProof};
use merkle::tile::{self, BundleId, FULL_WIDTH, TileId, TilePath};
use merkle::{Hash, NodeId, TreeSize};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tlog::MAX_NOTE_BYTES;

use crate::wire::{self, MAX_ANSWER_BYTES};
use crate::{ClientError, http_client};

/// The only mutable resource; all others are immutable.
const CHECKPOINT: &str = "checkpoint";
/// Maximum size of an entry bundle: 256 entries of maximum length.
const MAX_BUNDLE_BYTES: usize = FULL_WIDTH as usize * (2 + u16::MAX as usize);
/// Maximum size of a proof in JSON: 63 hashes in hex and a checkpoint.
const MAX_PROOF_BYTES: usize = MAX_NOTE_BYTES * 2;

/// Settings of a [`TlogClient`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Timeout of one HTTP exchange.
    pub time: Duration,
    /// Additional root certificates, in PEM.
    pub extra_roots: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), extra_roots: None }
    }
}

/// Errors of a [`TlogClient`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TlogError {
    /// 404 or 410: the log has no such resource.
    #[error("{path} is not there ({status})")]
    Missing {
        /// Path of the request.
        path: String,
        /// The HTTP status.
        status: StatusCode,
    },
    /// Any other status than 200.
    #[error("{path} was not answered ({status})")]
    Refused {
        /// Path of the request.
        path: String,
        /// The HTTP status.
        status: StatusCode,
    },
    /// No response was received.
    #[error("cannot reach the log: {0}")]
    Unreachable(String),
    /// The response violates the specification.
    #[error("{path} makes no sense: {why}")]
    Nonsense {
        /// Path of the request.
        path: String,
        /// Description of the violation.
        why: String,
    },
    /// No consistency proof exists between these sizes.
    #[error(transparent)]
    NoProof(#[from] NoProof),
}

/// A checkpoint as received.
#[derive(Clone, Debug)]
pub struct FetchedCheckpoint {
    /// The note's bytes; not verified.
    pub note: Bytes,
    /// The `Date` header of the response.
    pub date: Option<String>,
}

/// A consistency proof of Tabellion's own endpoint, `GET /v1/proof/consistency`; not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The larger tree size.
    pub second: TreeSize,
    /// The consistency path (RFC 9162, 2.1.4.1).
    pub path: Vec<Hash>,
    /// The checkpoint of the larger size, if the service includes it.
    pub checkpoint: Option<Bytes>,
}

/// Requests and bytes spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferTotals {
    /// Number of requests sent.
    pub requests: u64,
    /// Number of body bytes received.
    pub bytes: u64,
}

/// A client of one log. Clones share connections and the counters of [`spent`](Self::spent).
#[derive(Clone, Debug)]
pub struct TlogClient {
    base: Url,
    http: reqwest::Client,
    time: Duration,
    spent: Arc<TransferCounters>,
}

#[derive(Debug, Default)]
struct TransferCounters {
    requests: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Deserialize)]
struct ProofView {
    first: u64,
    second: u64,
    path: Vec<String>,
    checkpoint: Option<String>,
}

impl TlogClient {
    /// Creates a client of the log that serves `checkpoint` and `tile/` below `url`. No request is sent yet.
    ///
    /// # Errors
    /// [`ClientError::Setup`] if `url` is not an HTTP URL, or the extra roots are not certificates;
    /// [`ClientError::NoHttpClient`] if there are no certificates for HTTPS.
    pub fn new(url: &str, options: Options) -> Result<Self, ClientError> {
        let setup = crate::Options { extra_roots: options.extra_roots, ..crate::Options::default() };
        let base = wire::prefix(url)?;
        let http = http_client(&setup, &[&base])?;
        Ok(Self { base, http, time: options.time, spent: Arc::default() })
    }

    /// The URL prefix, with a trailing slash.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Requests and bytes spent so far by this client and its clones.
    pub fn spent(&self) -> TransferTotals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TransferTotals { requests: read(&self.spent.requests), bytes: read(&self.spent.bytes) }
    }

    /// Fetches the newest checkpoint, with `Cache-Control: no-cache`.
    ///
    /// # Errors
    /// [`TlogError`] if no checkpoint is received.
    pub async fn checkpoint(&self) -> Result<FetchedCheckpoint, TlogError> {
        let (note, headers) = self.get(CHECKPOINT, MAX_NOTE_BYTES).await?;
        let date = headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        Ok(FetchedCheckpoint { note, date })
    }

    /// Fetches a tile: exactly as many hashes as `tile` names.
    ///
    /// # Errors
    /// [`TlogError`] if the tile is missing or incomplete.
    pub async fn tile(&self, tile: TileId) -> Result<Bytes, TlogError> {
        let path = TilePath::Hashes(tile).to_string();
        let full = match tile.is_full() {
            true => None,
            false => TileId::at(tile.level(), tile.number(), everything()).map(TilePath::Hashes),
        };
        let (data, is_partial) = self.partial_or_full(&path, full, TileId::byte_len(full_of(tile))).await?;
        let exact = if is_partial { tile.byte_len() } else { full_of(tile).byte_len() };
        let cut = tile.cut(&data).filter(|_| data.len() == exact);
        cut.map(|cut| data.slice_ref(cut))
            .ok_or_else(|| nonsense(&path, format!("{} bytes, and {exact} are due", data.len())))
    }

    /// Fetches the entries of a bundle: exactly as many as `bundle` names.
    ///
    /// # Errors
    /// [`TlogError`] if the bundle is missing or incomplete.
    pub async fn bundle(&self, bundle: BundleId) -> Result<Vec<Bytes>, TlogError> {
        let path = TilePath::Entries(bundle).to_string();
        let full = match bundle.is_full() {
            true => None,
            false => BundleId::at(bundle.number(), everything()).map(TilePath::Entries),
        };
        let (data, is_partial) = self.partial_or_full(&path, full, MAX_BUNDLE_BYTES).await?;
        let due = if is_partial { usize::from(bundle.width()) } else { usize::from(FULL_WIDTH) };
        let mut entries = split(&data).filter(|entries| entries.len() == due).ok_or_else(|| {
            nonsense(&path, format!("{} bytes are not the {due} entries that are due", data.len()))
        })?;
        entries.truncate(usize::from(bundle.width()));
        Ok(entries)
    }

    /// Fetches the hashes of nodes of the tree of size `size` from its tiles, with one request for each tile.
    ///
    /// # Errors
    /// [`TlogError`] if the tree has no such node, or a tile is missing.
    pub async fn nodes(&self, nodes: &[NodeId], size: TreeSize) -> Result<HashMap<NodeId, Hash>, TlogError> {
        let parts: Vec<_> = nodes.iter().map(|node| (*node, tile::covering(*node, size))).collect();
        let mut needed: Vec<TileId> =
            parts.iter().filter_map(|(_, part)| part.map(|part| part.tile)).collect();
        needed.sort_unstable();
        needed.dedup();
        let mut tiles = HashMap::with_capacity(needed.len());
        for tile in needed {
            tiles.insert(tile, self.tile(tile).await?);
        }
        let mut hashes = HashMap::with_capacity(nodes.len());
        for (node, part) in parts {
            let found = part.and_then(|part| part.hash(tiles.get(&part.tile)?).ok());
            let hash = found.ok_or_else(|| nonsense("tile", format!("a tree of {size} has no {node:?}")))?;
            hashes.insert(node, hash);
        }
        Ok(hashes)
    }

    /// Assembles the consistency proof between two sizes from the tiles of the larger tree.
    ///
    /// # Errors
    /// [`TlogError::NoProof`] if no such proof exists, or another error if a tile is missing.
    pub async fn consistency(&self, first: TreeSize, second: TreeSize) -> Result<Vec<Hash>, TlogError> {
        let plan = proof::consistency(first, second)?;
        let hashes = self.nodes(plan.nodes(), second).await?;
        plan.fold(|node| hashes.get(&node).copied().ok_or(NoProof::EmptyOlder)).map_err(Into::into)
    }

    /// Fetches Tabellion's own consistency proof in one request. Without `second`, the proof leads to the newest size
    /// and includes its checkpoint.
    ///
    /// # Errors
    /// [`TlogError::Missing`] if the log does not have the endpoint, or another error if the request fails.
    pub async fn grown(&self, first: TreeSize, second: Option<TreeSize>) -> Result<Grown, TlogError> {
        let mut path = format!("v1/proof/consistency?first={first}");
        if let Some(second) = second {
            path.push_str(&format!("&second={second}"));
        }
        let view: ProofView = self.json(&path, MAX_PROOF_BYTES).await?;
        let hashes = view.path.iter().map(|hash| hash.parse::<Hash>()).collect::<Result<Vec<_>, _>>();
        let hashes = hashes.map_err(|why| nonsense(&path, why.to_string()))?;
        let matches_size = second.is_none_or(|second| second.get() == view.second);
        if view.first != first.get() || !matches_size {
            return Err(nonsense(&path, format!("it is a proof from {} to {}", view.first, view.second)));
        }
        Ok(Grown {
            second: TreeSize::new(view.second),
            path: hashes,
            checkpoint: view.checkpoint.map(|note| note.into_bytes().into()),
        })
    }

    /// Fetches a JSON resource of at most `most` bytes, from a log with endpoints beyond the specification.
    ///
    /// # Errors
    /// If the resource does not exist, or does not parse as `T`.
    pub async fn json<T: DeserializeOwned>(&self, path: &str, most: usize) -> Result<T, TlogError> {
        let (body, _) = self.get(path, most.min(MAX_ANSWER_BYTES)).await?;
        serde_json::from_slice(&body).map_err(|why| nonsense(path, why.to_string()))
    }

    /// Fetches `path`, or `full` if that is missing. The flag is `true` if the data is that of `path`.
    async fn partial_or_full(
        &self,
        path: &str,
        full: Option<TilePath>,
        most: usize,
    ) -> Result<(Bytes, bool), TlogError> {
        match (self.get(path, most).await, full) {
            (Err(gone @ TlogError::Missing { .. }), Some(full)) => {
                match self.get(&full.to_string(), most).await {
                    Ok((data, _)) => Ok((data, false)),
                    Err(TlogError::Missing { .. }) => Err(gone),
                    Err(other) => Err(other),
                }
            }
            (answer, _) => answer.map(|(data, _)| (data, true)),
        }
    }

    async fn get(&self, path: &str, most: usize) -> Result<(Bytes, HeaderMap), TlogError> {
        let url = self.base.join(path).map_err(|why| nonsense(path, why.to_string()))?;
        self.spent.requests.fetch_add(1, Ordering::Relaxed);
        let mut request = self.http.get(url).timeout(self.time);
        if path == CHECKPOINT {
            request = request.header(CACHE_CONTROL, "no-cache");
        }
        let response = request.send().await.map_err(|why| into_tlog_error(path, wire::unreachable(why)))?;
        let (status, headers) = (response.status(), response.headers().clone());
        match status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                return Err(TlogError::Missing { path: path.to_owned(), status });
            }
            _ => return Err(TlogError::Refused { path: path.to_owned(), status }),
        }
        let body = wire::read_bounded(response, most).await.map_err(|why| into_tlog_error(path, why))?;
        self.spent.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        match headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
            None | Some(b"identity") => Ok((body, headers)),
            Some(_) => Err(nonsense(path, "it is compressed, and that was not asked for".into())),
        }
    }
}

/// The largest tree size: in it every addressable tile is full.
const fn everything() -> TreeSize {
    TreeSize::new(u64::MAX)
}

/// The full tile with the same level and number.
fn full_of(tile: TileId) -> TileId {
    TileId::at(tile.level(), tile.number(), everything()).unwrap_or(tile)
}

/// Fetches a note from an arbitrary URL, such as a copy of a checkpoint.
///
/// # Errors
/// [`TlogError`] if no note is received.
pub async fn note_at(url: &Url, options: Options) -> Result<Bytes, TlogError> {
    let client = TlogClient::new(url.as_str(), options).map_err(|why| into_tlog_error(url.as_str(), why))?;
    let (note, _) = client.get(url.as_str(), MAX_NOTE_BYTES).await?;
    Ok(note)
}

/// Splits a bundle into entries, each prefixed with its length in two bytes.
fn split(data: &Bytes) -> Option<Vec<Bytes>> {
    let (mut entries, mut rest) = (Vec::new(), &data[..]);
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (entry, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(data.slice_ref(entry));
        rest = after;
    }
    rest.is_empty().then_some(entries)
}

fn into_tlog_error(path: &str, error: ClientError) -> TlogError {
    match error {
        ClientError::Unreachable(why) => TlogError::Unreachable(why),
        other => nonsense(path, other.to_string()),
    }
}

fn nonsense(path: &str, why: String) -> TlogError {
    TlogError::Nonsense { path: path.to_owned(), why }
}
