//! Our checkpoints and tiles, read by an implementation of the C2SP formats that is not ours (crates `signed_note` and
//! `tlog_tiles`), given nothing but a URL and the log's key.

use std::cell::RefCell;
use std::collections::BTreeSet;

use black_box::{Connection, Log, Service, WitnessHome, on_both_databases};
use data_encoding::BASE64;
use signed_note::{Note, StandardVerifier, VerifierList};
use tlog_tiles::{Checkpoint, Error, Tile, TileHashReader, TileReader};

/// Statements: more than a full tile, and a rest.
const STATEMENTS: usize = 300;
/// Every so many of them, the checkpoint is kept.
const EVERY: usize = 37;
/// Hashes of a full tile, as a power of two.
const HEIGHT: u8 = 8;

on_both_databases! {
    fn checkpoints_tiles_and_proofs_verify_with_somebody_elses_software(log: Log) {
        let vkey = log.vkey();
        let service = log.serve();
        let mut connection = service.connection();
        let mut checkpoints = Vec::new();
        for n in 0..STATEMENTS {
            let answer = connection.post(log.statement().bytes());
            assert_eq!(answer.status, 201, "{answer:?}");
            if n % EVERY == 0 {
                checkpoints.push(checkpoint(&mut connection, &vkey));
            }
        }
        checkpoints.push(checkpoint(&mut connection, &vkey));
        let newest = checkpoints.last().unwrap();
        assert!(newest.size() > 256 && newest.size() % 256 != 0);

        let tiles = Fetched::from(&service);
        let (size, root) = (newest.size(), *newest.hash());
        // The reader recomputes the root from the tiles it fetches before it believes any of them.
        let hashes = TileHashReader::new(size, root, &tiles);
        let entries = entries(&mut connection, size);
        for (index, entry) in (0..).zip(&entries) {
            let leaf = tlog_tiles::record_hash(entry);
            let proof = tlog_tiles::prove_record(size, index, &hashes).unwrap();
            tlog_tiles::check_record(&proof, size, root, index, leaf).unwrap();
        }
        for older in &checkpoints {
            let proof = tlog_tiles::prove_tree(size, older.size(), &hashes).unwrap();
            tlog_tiles::check_tree(&proof, size, root, older.size(), *older.hash()).unwrap();
            // Each tree by its own partial tiles, as a client of that time would have read it.
            let then = TileHashReader::new(older.size(), *older.hash(), &tiles);
            assert_eq!(tlog_tiles::tree_hash(older.size(), &then).unwrap(), *older.hash());
        }
        assert!(tiles.fetched.borrow().iter().any(|path| path.contains(".p/")));
        service.stop();
    }
}

/// Cosignatures are lines of unknown keys to software that does not know them: the log's own signature is found beside them.
#[test]
fn a_cosigned_checkpoint_is_a_note_to_others() {
    let log = Log::sqlite();
    let service = log.serve();
    let key = log.vkey();
    let home = WitnessHome::of(&[&key]);
    let witness = home.serve();
    let ran = home.tabellion(&[
        "witness",
        "submit",
        "--log",
        service.url(),
        "--witness",
        &witness.url(),
        "-o",
        "cosigned",
    ]);
    ran.must_succeed();
    let note = Note::from_bytes(&std::fs::read(home.path("cosigned")).unwrap()).unwrap();
    let (verified, unverified) = note.verify(&verifiers(&key)).unwrap();
    assert_eq!((verified.len(), unverified.len()), (1, 1));
    assert_eq!(unverified[0].name(), black_box::WITNESS);
    assert_eq!(unverified[0].signature().len(), 72);
    service.stop();
    witness.stop();
}

fn verifiers(vkey: &str) -> VerifierList {
    VerifierList::new(vec![Box::new(StandardVerifier::new(vkey).unwrap())])
}

/// What the log says of itself now, once its signature is verified.
fn checkpoint(connection: &mut Connection, vkey: &str) -> Checkpoint {
    let answer = connection.get("/checkpoint");
    assert_eq!(answer.must_have("content-type"), "text/plain; charset=utf-8");
    let note = Note::from_bytes(&answer.body).unwrap();
    note.verify(&verifiers(vkey)).unwrap();
    let checkpoint = Checkpoint::from_bytes(note.text()).unwrap();
    assert_eq!(checkpoint.origin(), vkey.split('+').next().unwrap());
    assert_eq!(checkpoint.to_bytes(), note.text(), "it has no lines that nobody audits");
    let root = BASE64.encode(&checkpoint.hash().0);
    assert!(String::from_utf8_lossy(note.text()).contains(&root));
    checkpoint
}

/// Every entry, out of the entry bundles.
fn entries(connection: &mut Connection, size: u64) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    for bundle in 0..size.div_ceil(256) {
        let width = (size - 256 * bundle).min(256);
        let partial = if width < 256 { format!(".p/{width}") } else { String::new() };
        let answer = connection.get(&format!("/tile/entries/{bundle:03}{partial}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut rest = &answer.body[..];
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let (entry, after) = after.split_at(usize::from(u16::from_be_bytes(*length)));
            entries.push(entry.to_vec());
            rest = after;
        }
        assert!(rest.is_empty());
    }
    assert_eq!(entries.len() as u64, size);
    entries
}

/// Tiles as the specification names them: this crate also writes the height, which is always the same.
struct Fetched {
    connection: RefCell<Connection>,
    fetched: RefCell<BTreeSet<String>>,
}

impl Fetched {
    fn from(service: &Service) -> Self {
        Self { connection: RefCell::new(service.connection()), fetched: RefCell::default() }
    }
}

impl TileReader for Fetched {
    fn height(&self) -> u8 {
        HEIGHT
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        let read = |tile: &Tile| {
            let path = tile.path().replacen(&format!("tile/{HEIGHT}/"), "/tile/", 1);
            let answer = self.connection.borrow_mut().get(&path);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            assert_eq!(answer.must_have("content-type"), "application/octet-stream");
            self.fetched.borrow_mut().insert(path);
            answer.body
        };
        Ok(tiles.iter().map(read).collect())
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}
