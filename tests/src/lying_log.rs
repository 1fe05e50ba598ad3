//! A log of tiles (C2SP tlog-tiles) that misbehaves on request, for tests of monitors and witnesses.
//!
//! It holds the keys of a log and of a witness that cosigns everything it sees, so that each wrong statement is
//! correctly signed. No timing is involved: the served data changes when the test says so.
//!
//! Not here: SCRAPI, statements, and the mistakes of an honest log.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ed25519_dalek::SigningKey;
use merkle::tile::TilePath;
use merkle::{CompactRange, EntryDigest, Hash, RootHash, TreeSize};
use tlog::checkpoint::Checkpoint;
use tlog::cosignature::cosign;
use tlog::note::{LocalKey, Note, NoteSigner};

/// Origin of the log.
pub const ORIGIN: &str = "lying.example/log";
/// Name of the witness.
const WITNESS: &str = "witness.example";
/// Number of hashes in a full tile.
const TILE: usize = 256;

/// A log server, shut down on drop.
pub struct LyingLog {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    log: LocalKey,
    /// A second key with the same name: a forger's, or the successor's.
    other_key: LocalKey,
    witness: LocalKey,
    shown: Mutex<Shown>,
}

/// Data that is served.
#[derive(Clone, Default)]
struct Shown {
    /// View of all clients, including those below `/other/` unless `other` is set.
    view: View,
    /// View of clients below `/other/`.
    other: Option<View>,
    /// Status of all responses, if set.
    status: Option<u16>,
    /// `true` if connections are closed without a response.
    gone: bool,
    clocks: Clocks,
}

/// One tree, and deviations from serving it honestly.
#[derive(Clone, Default)]
struct View {
    entries: Vec<EntryDigest>,
    /// Checkpoint to serve, in place of a fresh one of all entries.
    pinned: Option<String>,
    /// Paths that are answered with 404.
    missing: BTreeSet<String>,
    /// `true` if checkpoints are signed with the second key.
    other_key: bool,
    /// Age of the newest cosignature in seconds.
    age: u64,
}

/// Clocks of the log server and of the witness, in seconds ahead of the test's clock.
#[derive(Clone, Copy, Default)]
struct Clocks {
    server: i64,
    witness: i64,
}

impl LyingLog {
    /// Starts an honest log with this number of entries.
    pub fn of(entries: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let name = |text: &str| text.parse().expect("a key name");
        let log = LocalKey::new(name(ORIGIN), SigningKey::from_bytes(&[1; 32])).expect("a key");
        let other_key = LocalKey::new(name(ORIGIN), SigningKey::from_bytes(&[9; 32])).expect("a key");
        let witness = LocalKey::cosigner(name(WITNESS), SigningKey::from_bytes(&[2; 32])).expect("a key");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared { log, other_key, witness, shown: Mutex::default() });
        let serving = shared.clone();
        std::thread::spawn(move || serving.serve(&listener));
        let this = Self { address, shared };
        this.grow(entries);
        this
    }

    /// Returns the base URL, which ends in a slash.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the base URL of the other client's view.
    pub fn other_url(&self) -> String {
        format!("http://{}/other/", self.address)
    }

    /// Returns the log's public key as a vkey.
    pub fn vkey(&self) -> String {
        self.shared.log.key().to_string()
    }

    /// Returns the second key as a vkey.
    pub fn other_vkey(&self) -> String {
        self.shared.other_key.key().to_string()
    }

    /// Returns the witness's public key as a vkey.
    pub fn witness_vkey(&self) -> String {
        self.shared.witness.key().to_string()
    }

    /// Adds entries, as an honest log does.
    pub fn grow(&self, count: u64) {
        let mut shown = self.shown();
        let size = shown.view.entries.len() as u64;
        shown
            .view
            .entries
            .extend((size..size + count).map(|n| EntryDigest::of(format!("entry {n}").as_bytes())));
    }

    /// Removes all entries from index `size` on.
    pub fn truncate(&self, size: usize) {
        self.shown().view.entries.truncate(size);
    }

    /// Replaces the entry at a leaf.
    pub fn fork_at(&self, leaf: usize) {
        self.shown().view.entries[leaf] = EntryDigest::of(b"never registered");
    }

    /// Serves the present checkpoint from now on, cosigned `age` seconds ago, while the tree may still grow.
    pub fn freeze(&self, age: u64) {
        let mut shown = self.shown();
        shown.view.age = age;
        let note = self.shared.checkpoint(&shown.view, shown.clocks);
        shown.view.pinned = Some(note);
    }

    /// Serves a checkpoint of an older size of the same tree, with all tiles of the newer one.
    pub fn show_checkpoint_of(&self, size: usize) {
        let mut shown = self.shown();
        let older = View { entries: shown.view.entries[..size].to_vec(), ..shown.view.clone() };
        let note = self.shared.checkpoint(&older, shown.clocks);
        shown.view.pinned = Some(note);
    }

    /// Serves all data honestly again.
    pub fn recover(&self) {
        let mut shown = self.shown();
        shown.status = None;
        shown.other = None;
        let entries = std::mem::take(&mut shown.view.entries);
        shown.view = View { entries, ..View::default() };
    }

    /// Answers requests below a path with 404.
    pub fn drop_path(&self, path: &str) {
        self.shown().view.missing.insert(path.to_owned());
    }

    /// Answers all requests with this status.
    pub fn answer(&self, status: u16) {
        self.shown().status = Some(status);
    }

    /// Signs checkpoints with the second key, which clients know only if the test configures it.
    pub fn sign_with_other_key(&self) {
        self.shown().view.other_key = true;
    }

    /// Freezes the view of the other client: later changes affect only the main view.
    pub fn split(&self) {
        let mut shown = self.shown();
        shown.other = Some(shown.view.clone());
    }

    /// Sets the clocks of log server and witness, in seconds ahead of the test's clock.
    pub fn set_clocks(&self, server: i64, witness: i64) {
        self.shown().clocks = Clocks { server, witness };
    }

    /// Closes all connections without a response, so that only collected evidence remains.
    pub fn die(&self) {
        self.shown().gone = true;
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shared.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LyingLog {
    fn drop(&mut self) {
        self.die();
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let this = self.clone();
            if !shown.gone {
                std::thread::spawn(move || this.answer(stream, &shown));
            }
        }
    }

    /// Answers one request per connection. Write errors are ignored.
    fn answer(&self, mut stream: TcpStream, shown: &Shown) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        let first = lines.next()?.ok()?;
        while lines.next()?.ok().is_some_and(|line| !line.is_empty()) {}
        let path = first.split(' ').nth(1)?.trim_start_matches('/').to_owned();
        let (status, body) = match shown.status {
            Some(status) => (status, Vec::new()),
            None => self.find(&path, shown).map_or((404, Vec::new()), |body| (200, body)),
        };
        let head = format!(
            "HTTP/1.1 {status} x\r\nDate: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            http_date(now(shown.clocks.server)),
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat()).ok()
    }

    fn find(&self, path: &str, shown: &Shown) -> Option<Vec<u8>> {
        let (view, path) = match path.strip_prefix("other/") {
            Some(path) => (shown.other.as_ref().unwrap_or(&shown.view), path),
            None => (&shown.view, path),
        };
        if view.missing.iter().any(|missing| path.starts_with(missing.as_str())) {
            return None;
        }
        match path {
            "checkpoint" => {
                let note = view.pinned.clone().unwrap_or_else(|| self.checkpoint(view, shown.clocks));
                Some(note.into_bytes())
            }
            _ => view.tile(path.parse().ok()?),
        }
    }

    fn checkpoint(&self, view: &View, clocks: Clocks) -> String {
        let head = Checkpoint::new(ORIGIN.parse().expect("an origin"), view.size(), view.root());
        let head = head.expect("a checkpoint");
        let key = if view.other_key { &self.other_key } else { &self.log };
        let mut note: Note = head.sign(key).expect("a note");
        let line = cosign(&self.witness, note.text(), now(clocks.witness).saturating_sub(view.age))
            .expect("a cosignature");
        note.add(line).expect("there is room");
        note.to_string()
    }
}

impl View {
    fn size(&self) -> TreeSize {
        TreeSize::new(self.entries.len() as u64)
    }

    fn root(&self) -> RootHash {
        root(&self.entries)
    }

    fn tile(&self, path: TilePath) -> Option<Vec<u8>> {
        match path {
            TilePath::Hashes(tile) => {
                let leaves = TILE.checked_pow(u32::from(tile.level()))?;
                let first = usize::try_from(tile.number()).ok()?.checked_mul(TILE)?;
                let hashes = (first..first + usize::from(tile.width())).map(|node| {
                    let entries = self.entries.get(node * leaves..(node + 1) * leaves)?;
                    Some(*Hash::from(root(entries)).as_bytes())
                });
                hashes.collect::<Option<Vec<_>>>().map(|hashes| hashes.concat())
            }
            TilePath::Entries(bundle) => {
                let first = usize::try_from(bundle.number()).ok()?.checked_mul(TILE)?;
                let entries = self.entries.get(first..first + usize::from(bundle.width()))?;
                let framed = entries.iter().map(|entry| [[0, 32].as_slice(), entry.as_bytes()].concat());
                Some(framed.collect::<Vec<_>>().concat())
            }
        }
    }
}

/// Computes the root over entries, each of which is a digest.
fn root(entries: &[EntryDigest]) -> RootHash {
    let mut range = CompactRange::empty();
    entries.iter().for_each(|entry| range.append(entry.leaf_hash()));
    range.root()
}

/// Returns the time in Unix seconds of a clock that is `ahead` seconds ahead of the test's.
fn now(ahead: i64) -> u64 {
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    ours.saturating_add_signed(ahead)
}

fn http_date(seconds: u64) -> String {
    let time = jiff::Timestamp::from_second(seconds as i64).expect("a time of this age");
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
