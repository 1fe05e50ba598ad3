//! A log with a key of its own, a witness in this process, and HTTP by hand: what is tested is bytes.
#![allow(dead_code, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ed25519_dalek::SigningKey;
use merkle::{Hash, LeafIndex, NodeId, RootHash, TreeSize, empty_root, hash_children, hash_leaf, proof};
use tempfile::TempDir;
use tlog::checkpoint::{Checkpoint, Origin};
use tlog::key::VerifierKey;
use tlog::note::{LocalKey, Note, NoteSigner};
use tlog::witness::AddCheckpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use witness::{Config, InDoubt, StartError, Witness};

/// The name of every witness here.
pub const NAME: &str = "witness.example/w1";

/// A log whose leaves are numbers, up to a fork where they become others.
pub struct Log {
    pub origin: Origin,
    pub key: LocalKey,
    fork: u64,
}

impl Log {
    pub fn new(name: &str) -> Self {
        let mut seed = [7; 32];
        seed[..name.len().min(32)].copy_from_slice(&name.as_bytes()[..name.len().min(32)]);
        let key = LocalKey::new(name.parse().unwrap(), SigningKey::from_bytes(&seed)).unwrap();
        Self { origin: name.parse().unwrap(), key, fork: u64::MAX }
    }

    /// The same log, lying from this leaf on.
    pub fn forked(name: &str, at: u64) -> Self {
        Self { fork: at, ..Self::new(name) }
    }

    pub fn vkey(&self) -> &VerifierKey {
        self.key.key()
    }

    /// Its lines in a list.
    pub fn listed(&self) -> String {
        format!("vkey {}\n", self.vkey())
    }

    pub fn root(&self, size: u64) -> RootHash {
        match size {
            0 => empty_root(),
            _ => RootHash::from_bytes(*self.node(0, size).as_bytes()),
        }
    }

    pub fn text(&self, size: u64) -> String {
        Checkpoint::new(self.origin.clone(), TreeSize::new(size), self.root(size)).unwrap().text()
    }

    pub fn checkpoint(&self, size: u64) -> Note {
        Note::sign(&self.text(size), &[&self.key]).unwrap()
    }

    pub fn proof(&self, old: u64, size: u64) -> Vec<Hash> {
        let plan = match proof::consistency(TreeSize::new(old), TreeSize::new(size)) {
            Ok(plan) => plan,
            Err(_) => return Vec::new(),
        };
        let range = |node: NodeId| (node.index << node.level, (node.index + 1) << node.level);
        plan.fold(|node| Ok::<_, ()>(self.node(range(node).0, range(node).1))).unwrap()
    }

    /// What an honest log sends.
    pub fn request(&self, old: u64, size: u64) -> AddCheckpoint {
        AddCheckpoint {
            old: TreeSize::new(old),
            proof: self.proof(old, size),
            checkpoint: self.checkpoint(size),
        }
    }

    /// The tree hash by its definition (RFC 9162, 2.1.1).
    fn node(&self, from: u64, to: u64) -> Hash {
        if to - from == 1 {
            let leaf = if from < self.fork { from } else { from ^ (1 << 40) };
            return hash_leaf(&leaf.to_be_bytes()).into();
        }
        let split = (to - from).next_power_of_two() / 2;
        hash_children(self.node(from, from + split), self.node(from + split, to))
    }

    pub fn leaf(index: u64) -> LeafIndex {
        LeafIndex::new(index)
    }
}

/// A folder for a witness, with a list of logs.
pub struct Home {
    folder: TempDir,
}

impl Home {
    pub fn of(logs: &[&Log]) -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        home.list(&logs.iter().map(|log| log.listed()).collect::<String>());
        home
    }

    pub fn list(&self, lines: &str) {
        std::fs::write(self.folder.path().join("logs.txt"), format!("logs/v0\n{lines}")).unwrap();
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.state().join(name)
    }

    /// The file of a log.
    pub fn log(&self, log: &Log) -> PathBuf {
        self.file("logs").join(log.origin.digest())
    }

    pub fn config(&self) -> Config {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            admin_listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            state: self.state(),
            key: None,
            name: Some(NAME.parse().unwrap()),
            unused_key: false,
            clock_was_ahead: false,
            logs: self.folder.path().join("logs.txt"),
        }
    }

    pub async fn start(&self) -> Running {
        Running::start(self.config()).await.unwrap()
    }

    pub async fn refused(&self) -> StartError {
        Running::start(self.config()).await.err().expect("it must not start")
    }
}

pub struct Running {
    pub address: SocketAddr,
    pub admin: SocketAddr,
    pub key: VerifierKey,
    stop: oneshot::Sender<()>,
    reread: Arc<Notify>,
    ended: JoinHandle<Result<(), InDoubt>>,
}

impl Running {
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let witness = Witness::start(config).await?;
        let (stop, stopped) = oneshot::channel();
        let reread = Arc::new(Notify::new());
        let asked = reread.clone();
        let (address, admin) = (witness.address(), witness.admin_address().unwrap());
        let key = witness.key().clone();
        let ended = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            witness.run_until(asked, stopped).await
        });
        Ok(Self { address, admin, key, stop, reread, ended })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn read_list_again(&self) {
        self.reread.notify_one();
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
    }

    /// How it ended, by itself.
    pub async fn ended(self) -> Result<(), InDoubt> {
        let Self { ended, stop: _stop, .. } = self;
        ended.await.unwrap()
    }

    pub async fn add(&self, request: &AddCheckpoint) -> Answer {
        self.post(request.to_string().as_bytes()).await
    }

    pub async fn post(&self, body: &[u8]) -> Answer {
        let head = format!(
            "POST /add-checkpoint HTTP/1.1\r\nhost: w\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        exchange(self.address, &[head.as_bytes(), body].concat()).await
    }

    pub async fn latest(&self, log: &Log) -> Answer {
        self.get(&format!("/{}/checkpoint", log.origin.digest())).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        get(self.address, path).await
    }

    /// The size that monitors are shown.
    pub async fn seen(&self, log: &Log) -> u64 {
        let answer = self.latest(log).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let note = Note::parse(answer.body.as_bytes()).unwrap();
        Checkpoint::parse_text(note.text()).unwrap().size().get()
    }
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        self.headers.lines().find_map(|line| line.strip_prefix(start.as_str()))
    }

    #[track_caller]
    pub fn must_be(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    let head = format!("GET {path} HTTP/1.1\r\nhost: w\r\nconnection: close\r\n\r\n");
    exchange(address, head.as_bytes()).await
}

/// Sends what may not be read to its end, and reads the answer.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let (first, headers) = head.split_once("\r\n").unwrap();
    Answer {
        status: first.split(' ').nth(1).unwrap().parse().unwrap(),
        headers: headers.replace("\r\n", "\n"),
        body: body.to_owned(),
    }
}

pub fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}
