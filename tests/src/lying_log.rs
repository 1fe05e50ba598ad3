//! A log of tiles (C2SP tlog-tiles) that lies on demand, for tests of who watches logs.
//!
//! It holds the keys of a log and of a witness that cosigns whatever it is shown, so that each lie is as well signed as a
//! lie can be. Nothing is hidden behind timing: what it serves changes when the test says so.
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

/// The log's name.
pub const ORIGIN: &str = "lying.example/log";
/// Its witness's.
const WITNESS: &str = "witness.example";
/// The hashes of a full tile.
const TILE: usize = 256;

/// A server that is killed when dropped.
pub struct LyingLog {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    log: LocalKey,
    /// Another key of the same name: a stranger's, or the successor's.
    other_key: LocalKey,
    witness: LocalKey,
    shown: Mutex<Shown>,
}

/// What is served.
#[derive(Clone, Default)]
struct Shown {
    /// To everybody, and below `/other/` where `other` is not set.
    view: View,
    /// Below `/other/`.
    other: Option<View>,
    /// Every answer is this status.
    status: Option<u16>,
    /// The server is gone.
    gone: bool,
    clocks: Clocks,
}

/// One tree, and how it is shown.
#[derive(Clone, Default)]
struct View {
    entries: Vec<EntryDigest>,
    /// The checkpoint that is shown, in place of one of all entries that was cosigned just now.
    pinned: Option<String>,
    /// Paths that are not there.
    missing: BTreeSet<String>,
    /// Signed by the other key.
    other_key: bool,
    /// How old the newest cosignature is, in seconds.
    age: u64,
}

/// The clocks of the log's server and of its witness, in seconds ahead of ours.
#[derive(Clone, Copy, Default)]
struct Clocks {
    server: i64,
    witness: i64,
}

impl LyingLog {
    /// An honest log of so many entries.
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

    /// Where it is served, with a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Where another client is served.
    pub fn other_url(&self) -> String {
        format!("http://{}/other/", self.address)
    }

    /// The log's key.
    pub fn vkey(&self) -> String {
        self.shared.log.key().to_string()
    }

    /// The other key.
    pub fn other_vkey(&self) -> String {
        self.shared.other_key.key().to_string()
    }

    /// Its witness's key.
    pub fn witness_vkey(&self) -> String {
        self.shared.witness.key().to_string()
    }

    /// Adds entries, as honest logs do.
    pub fn grow(&self, count: u64) {
        let mut shown = self.shown();
        let size = shown.view.entries.len() as u64;
        shown
            .view
            .entries
            .extend((size..size + count).map(|n| EntryDigest::of(format!("entry {n}").as_bytes())));
    }

    /// Forgets all entries from here on.
    pub fn truncate(&self, size: usize) {
        self.shown().view.entries.truncate(size);
    }

    /// Puts another entry in the place of this one: of the last one, or of one that lies deep.
    pub fn fork_at(&self, leaf: usize) {
        self.shown().view.entries[leaf] = EntryDigest::of(b"never registered");
    }

    /// Shows the checkpoint of now for ever, cosigned so many seconds ago; the log goes on for others.
    pub fn freeze(&self, age: u64) {
        let mut shown = self.shown();
        shown.view.age = age;
        let note = self.shared.checkpoint(&shown.view, shown.clocks);
        shown.view.pinned = Some(note);
    }

    /// Shows an older checkpoint of its own, all tiles of the newer one being there.
    pub fn show_checkpoint_of(&self, size: usize) {
        let mut shown = self.shown();
        let older = View { entries: shown.view.entries[..size].to_vec(), ..shown.view.clone() };
        let note = self.shared.checkpoint(&older, shown.clocks);
        shown.view.pinned = Some(note);
    }

    /// Is honest again: shows all there is.
    pub fn recover(&self) {
        let mut shown = self.shown();
        shown.status = None;
        shown.other = None;
        let entries = std::mem::take(&mut shown.view.entries);
        shown.view = View { entries, ..View::default() };
    }

    /// No longer serves what is below a path.
    pub fn drop_path(&self, path: &str) {
        self.shown().view.missing.insert(path.to_owned());
    }

    /// Answers everything with this status.
    pub fn answer(&self, status: u16) {
        self.shown().status = Some(status);
    }

    /// Signs with the other key, which nobody knows who was not told.
    pub fn sign_with_other_key(&self) {
        self.shown().view.other_key = true;
    }

    /// From now on, what is done is not shown to the other client.
    pub fn split(&self) {
        let mut shown = self.shown();
        shown.other = Some(shown.view.clone());
    }

    /// Sets the clocks of its server and of its witness so many seconds ahead of ours.
    pub fn set_clocks(&self, server: i64, witness: i64) {
        self.shown().clocks = Clocks { server, witness };
    }

    /// Is gone: connections are closed without a word. What was said must speak for itself.
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

    /// One question to a connection. Who breaks off is not waited for.
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

/// The root over entries, each of which is a digest.
fn root(entries: &[EntryDigest]) -> RootHash {
    let mut range = CompactRange::empty();
    entries.iter().for_each(|entry| range.append(entry.leaf_hash()));
    range.root()
}

/// Unix seconds, by a clock that is so far ahead of ours.
fn now(ahead: i64) -> u64 {
    let ours = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    ours.saturating_add_signed(ahead)
}

fn http_date(seconds: u64) -> String {
    let time = jiff::Timestamp::from_second(seconds as i64).expect("a time of this age");
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
