//! A log in memory, served over real HTTP, that can be made to lie.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use ed25519_dalek::SigningKey;
use merkle::tile::TilePath;
use merkle::{CompactRange, EntryDigest, Hash, NodeId, RootHash, TreeSize, hash_children, proof};
use monitor::{AlarmKind, Config, Round, Sink, WatchedLog};
use tlog::checkpoint::Checkpoint;
use tlog::cosignature;
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, NoteSigner};

/// The name of the log and of its key.
pub const ORIGIN: &str = "log.example";

/// A tree with all its perfect subtrees.
#[derive(Clone, Default)]
pub struct Tree {
    pub entries: Vec<[u8; 32]>,
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// Leaves `0..size`; those from `fork` on are others than those of another fork.
    pub fn of(size: u64, fork: u64, branch: u8) -> Self {
        let mut tree = Self::default();
        tree.grow(size, fork, branch);
        tree
    }

    pub fn grow(&mut self, size: u64, fork: u64, branch: u8) {
        for leaf in self.entries.len() as u64..size {
            let branch = if leaf >= fork { branch } else { 0 };
            self.append([leaf.to_be_bytes().as_slice(), &[branch]].concat());
        }
    }

    fn append(&mut self, statement: Vec<u8>) {
        let digest = EntryDigest::of(&statement);
        self.entries.push(*digest.as_bytes());
        let (mut node, mut level) = (Hash::from(digest.leaf_hash()), 0);
        loop {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(node);
            let count = self.levels[level].len();
            if count % 2 == 1 {
                return;
            }
            node = hash_children(self.levels[level][count - 2], self.levels[level][count - 1]);
            level += 1;
        }
    }

    pub fn node(&self, node: NodeId) -> Hash {
        self.levels[usize::from(node.level)][node.index as usize]
    }

    pub fn root(&self, size: u64) -> RootHash {
        let mut hashes = Vec::new();
        let mut at = 0;
        while let Some(level) = (size - at).checked_ilog2() {
            hashes.push(self.node(NodeId { level: level as u8, index: at >> level }));
            at += 1 << level;
        }
        CompactRange::from_parts(TreeSize::new(size), hashes).unwrap().root()
    }

    pub fn consistency(&self, first: u64, second: u64) -> Option<Vec<Hash>> {
        let plan = proof::consistency(TreeSize::new(first), TreeSize::new(second)).ok()?;
        Some(plan.fold(|node| Ok::<_, std::convert::Infallible>(self.node(node))).unwrap())
    }
}

/// What the log shows, and how it lies.
#[derive(Clone)]
pub struct Shows {
    pub tree: Tree,
    /// The size of the checkpoint and of the largest tree that is served.
    pub size: u64,
    /// The cosignature's time, if a witness cosigns.
    pub cosigned: Option<u64>,
    /// Whether it makes proofs itself, as ours do.
    pub makes_proofs: bool,
    /// A path that is answered with 404.
    pub dropped: Option<String>,
    /// A path that is answered with one wrong byte.
    pub damaged: Option<String>,
    /// What the first request for the checkpoint is answered with.
    pub first_checkpoint: Option<String>,
    /// Everything is answered with this.
    pub status: Option<u16>,
    /// Everything but the checkpoint is answered with this.
    pub tiles_status: Option<u16>,
    /// Everything is answered with this page.
    pub page: Option<String>,
    /// A leaf whose entry is another one than in the tree.
    pub other_entry: Option<u64>,
    /// Tiles are served up to this size, if not up to the checkpoint's.
    pub tiles_up_to: Option<u64>,
    /// Paths that begin so are never answered.
    pub stalled: Option<String>,
    /// Its checkpoints are signed by another key of the same name.
    pub other_key: bool,
    /// What its server says the time is; else no time that is read.
    pub date: Option<u64>,
}

#[derive(Clone)]
pub struct Log {
    pub shows: Arc<Mutex<Shows>>,
    pub address: SocketAddr,
}

pub fn log_key() -> LocalKey {
    LocalKey::new(ORIGIN.parse().unwrap(), SigningKey::from_bytes(&[1; 32])).unwrap()
}

pub fn other_log_key() -> LocalKey {
    LocalKey::new(ORIGIN.parse().unwrap(), SigningKey::from_bytes(&[7; 32])).unwrap()
}

pub fn witness_key() -> LocalKey {
    LocalKey::cosigner("witness.example".parse().unwrap(), SigningKey::from_bytes(&[2; 32])).unwrap()
}

pub fn vkey() -> VerifierKey {
    log_key().key().clone()
}

impl Shows {
    pub fn tree(tree: Tree) -> Self {
        let size = tree.entries.len() as u64;
        Self {
            tree,
            size,
            cosigned: None,
            makes_proofs: false,
            dropped: None,
            damaged: None,
            first_checkpoint: None,
            status: None,
            tiles_status: None,
            page: None,
            other_entry: None,
            tiles_up_to: None,
            stalled: None,
            other_key: false,
            date: None,
        }
    }

    pub fn checkpoint(&self) -> String {
        let (size, root) = (TreeSize::new(self.size), self.tree.root(self.size));
        let checkpoint = Checkpoint::new(vkey().name().clone().into(), size, root).unwrap();
        let signer = match self.other_key {
            false => log_key(),
            true => other_log_key(),
        };
        let mut note = checkpoint.sign(&signer).unwrap();
        if let Some(time) = self.cosigned {
            note.add(cosignature::cosign(&witness_key(), &checkpoint.text(), time).unwrap()).unwrap();
        }
        note.to_string()
    }

    fn tile(&self, path: &str) -> Option<Vec<u8>> {
        let size = TreeSize::new(self.tiles_up_to.unwrap_or(self.size));
        match path.parse().ok()? {
            TilePath::Hashes(tile) if tile.is_in(size) => {
                let first = tile.number() as usize * 256;
                let level = &self.tree.levels[usize::from(tile.level()) * 8];
                let hashes = &level[first..first + usize::from(tile.width())];
                Some(hashes.iter().flat_map(|hash| *hash.as_bytes()).collect())
            }
            TilePath::Entries(bundle) if bundle.is_in(size) => {
                let first = bundle.number() as usize * 256;
                let mut data = Vec::new();
                for (leaf, entry) in
                    (first as u64..).zip(&self.tree.entries[first..first + usize::from(bundle.width())])
                {
                    let mut entry = *entry;
                    if self.other_entry == Some(leaf) {
                        entry[0] ^= 1;
                    }
                    data.extend(32_u16.to_be_bytes());
                    data.extend(entry);
                }
                Some(data)
            }
            _ => None,
        }
    }
}

impl Log {
    pub async fn serve(shows: Shows) -> Self {
        let shows = Arc::new(Mutex::new(shows));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(answer).with_state(shows.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { shows, address }
    }

    pub async fn of(size: u64) -> Self {
        Self::serve(Shows::tree(Tree::of(size, u64::MAX, 0))).await
    }

    pub fn change(&self, change: impl FnOnce(&mut Shows)) {
        change(&mut self.shows.lock().unwrap());
    }

    pub fn checkpoint(&self) -> String {
        self.shows.lock().unwrap().checkpoint()
    }

    pub fn target(&self) -> WatchedLog {
        let url = format!("http://{}/", self.address).parse().unwrap();
        WatchedLog::new("log", url, vkey())
    }
}

#[derive(serde::Deserialize)]
struct Between {
    first: u64,
    second: Option<u64>,
}

async fn answer(State(shows): State<Arc<Mutex<Shows>>>, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let stalled = shows.lock().unwrap().stalled.clone();
    if stalled.is_some_and(|stalled| path.starts_with(&stalled)) {
        std::future::pending::<()>().await;
    }
    let mut shows = shows.lock().unwrap();
    let path = uri.path().trim_start_matches('/');
    if let Some(note) = shows.first_checkpoint.take_if(|_| path == "checkpoint") {
        return note.into_response();
    }
    if let Some(status) = shows.status {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    if let Some(status) = shows.tiles_status.filter(|_| path != "checkpoint") {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    if let Some(page) = &shows.page {
        return page.clone().into_response();
    }
    if shows.dropped.as_deref() == Some(path) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let date = shows.date.and_then(|at| jiff::Timestamp::from_second(at as i64).ok());
    let date = date.map(|at| [("date", at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())]);
    match path {
        "checkpoint" => (date, shows.checkpoint()).into_response(),
        // As a witness shows it.
        path if path == format!("{}/checkpoint", EntryDigest::of(ORIGIN.as_bytes())) => {
            shows.checkpoint().into_response()
        }
        "v1/proof/consistency" if shows.makes_proofs => {
            let Ok(Query(asked)) = Query::<Between>::try_from_uri(&uri) else {
                return StatusCode::BAD_REQUEST.into_response();
            };
            let second = asked.second.unwrap_or(shows.size);
            let path = (second <= shows.size).then(|| shows.tree.consistency(asked.first, second)).flatten();
            let Some(path) = path else { return StatusCode::BAD_REQUEST.into_response() };
            let path: Vec<String> = path.iter().map(Hash::to_string).collect();
            let checkpoint = asked.second.is_none().then(|| shows.checkpoint());
            let view = serde_json::json!({
                "first": asked.first, "second": second, "path": path, "checkpoint": checkpoint
            });
            axum::Json(view).into_response()
        }
        _ => match shows.tile(path) {
            Some(mut data) => {
                data[0] ^= u8::from(shows.damaged.as_deref() == Some(path));
                data.into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        },
    }
}

/// Rounds go nowhere.
pub struct Nowhere;

#[async_trait]
impl Sink for Nowhere {
    async fn round(&self, _: &Round) {}
}

/// One log, one folder.
pub fn config(folder: &std::path::Path, target: WatchedLog) -> Config {
    Config::new(folder.to_owned(), vec![target])
}

pub fn kinds(round: &Round) -> Vec<AlarmKind> {
    round.alarms.iter().map(|alarm| alarm.kind).collect()
}
