//! A log of tiles, as anybody sees it (C2SP tlog-checkpoint, tlog-tiles): ours, or any other.
//!
//! Nothing that comes is believed here: a checkpoint is bytes, a tile is so many hashes, and a proof is what a verifier is
//! to check. What was fetched is forgotten after each call. A partial tile that is gone is cut out of the full one, as the
//! specification allows a log to expect.
//!
//! Not here: trying again, redirects, compressed bundles that were not asked for, and what any of it means.

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

/// What is replaced all the time; everything else is the same for ever.
const CHECKPOINT: &str = "checkpoint";
/// A full entry bundle with the longest entries that there can be.
const MAX_BUNDLE_BYTES: usize = FULL_WIDTH as usize * (2 + u16::MAX as usize);
/// A proof in JSON: 63 hashes in hex, with room for a checkpoint.
const MAX_PROOF_BYTES: usize = MAX_NOTE_BYTES * 2;

/// How a log is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long one exchange may take.
    pub time: Duration,
    /// Certificates to believe besides the system's, PEM.
    pub extra_roots: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), extra_roots: None }
    }
}

/// Why a log did not show what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TlogError {
    /// It says that there is no such thing.
    #[error("{path} is not there ({status})")]
    Missing {
        /// What was asked for.
        path: String,
        /// The HTTP status.
        status: StatusCode,
    },
    /// It will not answer this question, or not now.
    #[error("{path} was not answered ({status})")]
    Refused {
        /// What was asked for.
        path: String,
        /// The HTTP status.
        status: StatusCode,
    },
    /// No answer came.
    #[error("cannot reach the log: {0}")]
    Unreachable(String),
    /// The answer cannot be what was asked for.
    #[error("{path} makes no sense: {why}")]
    Nonsense {
        /// What was asked for.
        path: String,
        /// Why not.
        why: String,
    },
    /// There is no such proof.
    #[error(transparent)]
    NoProof(#[from] NoProof),
}

/// A checkpoint as it came.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The note's bytes. Nobody has verified them.
    pub note: Bytes,
    /// What the server says the time is: its `Date`.
    pub date: Option<String>,
}

/// A consistency proof as our service gives it: `GET /v1/proof/consistency`. Nobody has verified it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The larger size.
    pub second: TreeSize,
    /// The path (RFC 9162, 2.1.4.1).
    pub path: Vec<Hash>,
    /// The checkpoint of the larger size, if the service adds it.
    pub checkpoint: Option<Bytes>,
}

/// What asking has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests sent.
    pub requests: u64,
    /// Bytes of bodies that came.
    pub bytes: u64,
}

/// A log, seen from outside. Clones share connections and count together.
#[derive(Clone, Debug)]
pub struct TlogClient {
    base: Url,
    http: reqwest::Client,
    time: Duration,
    spent: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
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
    /// A client of the log that serves `checkpoint` and `tile/` below this prefix. Nothing is sent yet.
    ///
    /// # Errors
    /// If the prefix is not an HTTP URL, or the extra roots are not certificates.
    pub fn new(url: &str, options: Options) -> Result<Self, ClientError> {
        let setup = crate::Options { extra_roots: options.extra_roots, ..crate::Options::default() };
        Ok(Self {
            base: wire::prefix(url)?,
            http: http_client(&setup)?,
            time: options.time,
            spent: Arc::default(),
        })
    }

    /// The prefix, with a slash at its end.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// What asking has cost so far, clones included.
    pub fn spent(&self) -> Spent {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Spent { requests: read(&self.spent.requests), bytes: read(&self.spent.bytes) }
    }

    /// The newest checkpoint; no cache on the way is to answer with an older one.
    ///
    /// # Errors
    /// If none comes.
    pub async fn checkpoint(&self) -> Result<Fetched, TlogError> {
        let (note, headers) = self.get(CHECKPOINT, MAX_NOTE_BYTES).await?;
        let date = headers.get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        Ok(Fetched { note, date })
    }

    /// A tile: as many hashes as its name says.
    ///
    /// # Errors
    /// If it does not come whole.
    pub async fn tile(&self, tile: TileId) -> Result<Bytes, TlogError> {
        let path = TilePath::Hashes(tile).to_string();
        let full = match tile.is_full() {
            true => None,
            false => TileId::at(tile.level(), tile.number(), everything()).map(TilePath::Hashes),
        };
        let (data, came) = self.partial_or_full(&path, full, TileId::byte_len(full_of(tile))).await?;
        let exact = if came { tile.byte_len() } else { full_of(tile).byte_len() };
        let cut = tile.cut(&data).filter(|_| data.len() == exact);
        cut.map(|cut| data.slice_ref(cut))
            .ok_or_else(|| nonsense(&path, format!("{} bytes, and {exact} are due", data.len())))
    }

    /// The entries of a bundle: as many as its name says.
    ///
    /// # Errors
    /// If they do not all come.
    pub async fn bundle(&self, bundle: BundleId) -> Result<Vec<Bytes>, TlogError> {
        let path = TilePath::Entries(bundle).to_string();
        let full = match bundle.is_full() {
            true => None,
            false => BundleId::at(bundle.number(), everything()).map(TilePath::Entries),
        };
        let (data, came) = self.partial_or_full(&path, full, MAX_BUNDLE_BYTES).await?;
        let due = if came { usize::from(bundle.width()) } else { usize::from(FULL_WIDTH) };
        let mut entries = split(&data).filter(|entries| entries.len() == due).ok_or_else(|| {
            nonsense(&path, format!("{} bytes are not the {due} entries that are due", data.len()))
        })?;
        entries.truncate(usize::from(bundle.width()));
        Ok(entries)
    }

    /// The hashes of nodes of the tree of this size, out of its tiles: as many requests as tiles.
    ///
    /// # Errors
    /// If the tree has no such node, or a tile does not come.
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

    /// The consistency proof between two sizes, made out of the tiles of the larger tree.
    ///
    /// # Errors
    /// If there is no such proof, or a tile does not come.
    pub async fn consistency(&self, first: TreeSize, second: TreeSize) -> Result<Vec<Hash>, TlogError> {
        let plan = proof::consistency(first, second)?;
        let hashes = self.nodes(plan.nodes(), second).await?;
        plan.fold(|node| hashes.get(&node).copied().ok_or(NoProof::EmptyOlder)).map_err(Into::into)
    }

    /// The consistency proof as our service makes it, in one request; up to its newest size when no second is named, and then
    /// with the checkpoint of that size.
    ///
    /// # Errors
    /// If the log is none of ours, or does not answer.
    pub async fn grown(&self, first: TreeSize, second: Option<TreeSize>) -> Result<Grown, TlogError> {
        let mut path = format!("v1/proof/consistency?first={first}");
        if let Some(second) = second {
            path.push_str(&format!("&second={second}"));
        }
        let view: ProofView = self.json(&path, MAX_PROOF_BYTES).await?;
        let hashes = view.path.iter().map(|hash| hash.parse::<Hash>()).collect::<Result<Vec<_>, _>>();
        let hashes = hashes.map_err(|why| nonsense(&path, why.to_string()))?;
        let asked = second.is_none_or(|second| second.get() == view.second);
        if view.first != first.get() || !asked {
            return Err(nonsense(&path, format!("it is a proof from {} to {}", view.first, view.second)));
        }
        Ok(Grown {
            second: TreeSize::new(view.second),
            path: hashes,
            checkpoint: view.checkpoint.map(|note| note.into_bytes().into()),
        })
    }

    /// A JSON resource of a log that has more than the specification asks for.
    ///
    /// # Errors
    /// If there is none, or it does not read as `T`.
    pub async fn json<T: DeserializeOwned>(&self, path: &str, most: usize) -> Result<T, TlogError> {
        let (body, _) = self.get(path, most.min(MAX_ANSWER_BYTES)).await?;
        serde_json::from_slice(&body).map_err(|why| nonsense(path, why.to_string()))
    }

    /// The data under the first name, or under the second where the first is gone; whether it came under the first.
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
        let response = request.send().await.map_err(|why| said(path, wire::unreachable(why)))?;
        let (status, headers) = (response.status(), response.headers().clone());
        match status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                return Err(TlogError::Missing { path: path.to_owned(), status });
            }
            _ => return Err(TlogError::Refused { path: path.to_owned(), status }),
        }
        let body = wire::read_bounded(response, most).await.map_err(|why| said(path, why))?;
        self.spent.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        match headers.get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
            None | Some(b"identity") => Ok((body, headers)),
            Some(_) => Err(nonsense(path, "it is compressed, and that was not asked for".into())),
        }
    }
}

/// The largest tree: all its tiles that one can ask for are full.
const fn everything() -> TreeSize {
    TreeSize::new(u64::MAX)
}

/// The same tile with all its hashes.
fn full_of(tile: TileId) -> TileId {
    TileId::at(tile.level(), tile.number(), everything()).unwrap_or(tile)
}

/// A note at a URL of its own: another place's copy of a checkpoint.
///
/// # Errors
/// If none comes.
pub async fn note_at(url: &Url, options: Options) -> Result<Bytes, TlogError> {
    let client = TlogClient::new(url.as_str(), options).map_err(|why| said(url.as_str(), why))?;
    let (note, _) = client.get(url.as_str(), MAX_NOTE_BYTES).await?;
    Ok(note)
}

/// The entries of a bundle, each after its length in two bytes.
fn split(data: &Bytes) -> Option<Vec<Bytes>> {
    let (mut entries, mut rest) = (Vec::new(), &data[..]);
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let (entry, after) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        entries.push(data.slice_ref(entry));
        rest = after;
    }
    rest.is_empty().then_some(entries)
}

fn said(path: &str, error: ClientError) -> TlogError {
    match error {
        ClientError::Unreachable(why) => TlogError::Unreachable(why),
        other => nonsense(path, other.to_string()),
    }
}

fn nonsense(path: &str, why: String) -> TlogError {
    TlogError::Nonsense { path: path.to_owned(), why }
}
