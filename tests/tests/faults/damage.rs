//! One bit of the stored log is flipped (R38): it is named by a check by hand and by the running service within its
//! period, and nobody is ever served what is wrong.

use std::sync::Mutex;
use std::thread;

use black_box::{Answer, Cell, Holds, Log, Service, on_both_databases};
use merkle::EntryDigest;
use scitt::{KeySet, Receipt, SignedStatement};

/// How often each cell is damaged, another bit each time; 100 by hand.
const ROUNDS: usize = 1;
/// The running service checks the whole log again after a second.
const QUICKLY: &str = "fsck_rate = 100000\nfsck_every_seconds = 1";
/// So many that the tree has a node above a full tile.
const ENTRIES: usize = 270;
const WRITERS: usize = 6;
/// The entry that is damaged.
const VICTIM: usize = 5;

/// Every kind of row that a log is made of, and the words in which its damage is told.
const CELLS: &[(Cell, &str)] = &[
    (cell("entry", "statement", "idx = 5"), "entry 5: the statement does not hash to its digest"),
    (cell("entry", "digest", "idx = 5"), "entry 5: its leaf hash differs from the one in the tile"),
    (
        tile("level = 0 AND number = 0", "level = 0 AND no = 0"),
        "its leaf hash differs from the one in the tile",
    ),
    (
        tile("level = 0 AND number = 1", "level = 0 AND no = 1 AND first = 0"),
        "its leaf hash differs from the one in the tile",
    ),
    (tile("level = 1 AND number = 0", "level = 1 AND no = 0"), "tile 0 of level 1: hash 0 differs"),
    (cell("batch", "root", "batch = 2"), "batch 2: the root of size"),
    (cell("head_signature", "bytes", "kind = 1 AND size = 1"), "head_signature: Receipt over size 1:"),
    (cell("head_signature", "bytes", "kind = 2 AND size = 1"), "head_signature: Checkpoint over size 1:"),
    (cell("log_key", "public", "length(kid) = 32"), "log_key: the key"),
    (cell("log_key", "public", "length(kid) = 4"), "log_key: the key"),
    (
        Cell { holds: Holds::Key, postgres: Some(SEEN_POSTGRES), ..cell("seen", "key", SEEN_SQLITE) },
        "seen: the digest of entry 5 does not lead to it",
    ),
    (
        Cell { holds: Holds::Number, postgres: Some(SEEN_POSTGRES), ..cell("seen", "idx", SEEN_SQLITE) },
        "seen: the digest of entry 5 does not lead to it",
    ),
    (cell("guard", "key", GUARD), "guard: a guard of entry 1"),
    (Cell { holds: Holds::Number, ..cell("guard", "idx", GUARD) }, "guard: a guard of entry 1"),
];

/// Entry 1 claims the place of its record.
const GUARD: &str = "key = (SELECT key FROM guard WHERE idx = 1 ORDER BY key LIMIT 1)";
const SEEN_SQLITE: &str = "key = (SELECT substr(digest, 1, 16) FROM entry WHERE idx = 5)";
const SEEN_POSTGRES: &str =
    "key = (SELECT encode(substr(digest, 1, 16), 'hex')::uuid FROM entry WHERE idx = 5)";

const fn cell(table: &'static str, column: &'static str, row: &'static str) -> Cell {
    Cell { table, column, sqlite: row, postgres: None, holds: Holds::Bytes }
}

const fn tile(sqlite: &'static str, postgres: &'static str) -> Cell {
    Cell { postgres: Some(postgres), ..cell("tile", "data", sqlite) }
}

/// A log with entries, and all that was served of it while it was whole.
struct Whole {
    entries: Vec<SignedStatement>,
    served: Vec<(String, Answer)>,
    keys: KeySet,
}

impl Whole {
    fn fill(log: &Log, service: &Service) -> Self {
        assert_eq!(service.connection().post(testkit::vrf(1).bytes()).status, 201);
        let statements = Mutex::new((0..ENTRIES).map(|_| log.statement()).collect::<Vec<_>>());
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    let mut connection = service.connection();
                    loop {
                        let Some(statement) = statements.lock().unwrap().pop() else { return };
                        assert_eq!(connection.post(statement.bytes()).status, 201);
                    }
                });
            }
        });
        let mut connection = service.connection();
        let page = connection.get("/v1/entries?limit=100").json();
        let ids: Vec<String> = page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["entry_id"].as_str().unwrap().to_owned())
            .collect();
        let fetch = |id: &String| connection.get(&format!("/v1/entries/{id}/statement")).body;
        let bodies: Vec<Vec<u8>> = ids.iter().take(VICTIM + 3).map(fetch).collect();
        let entries: Vec<SignedStatement> =
            bodies.into_iter().map(|body| SignedStatement::parse(body).unwrap()).collect();
        let size = ENTRIES + 2;
        let mut paths = vec![
            "/checkpoint".to_owned(),
            "/tile/0/000".to_owned(),
            format!("/tile/0/001.p/{}", size - 256),
            "/tile/1/000.p/1".to_owned(),
            "/tile/entries/000".to_owned(),
        ];
        paths.extend(entries.iter().map(|entry| format!("/v1/entries/{}/statement", entry.digest())));
        let served = paths.into_iter().map(|path| (path.clone(), connection.get(&path)));
        let served: Vec<(String, Answer)> = served.collect();
        assert!(served.iter().all(|(path, answer)| answer.status == 200 || panic!("{path}: {answer:?}")));
        let keys = KeySet::parse(&connection.get("/.well-known/scitt-keys").body).unwrap();
        Self { entries, served, keys }
    }

    /// What was served before is served as it was, or refused with a reason.
    fn nothing_wrong_is_served(&self, service: &Service, damage: &str) {
        let mut connection = service.connection();
        for (path, before) in &self.served {
            let now = connection.get(path);
            match now.status {
                200 => assert!(now.body == before.body, "{damage}: {path} is not what it was"),
                404 if damage.starts_with("seen") => {}
                _ => is_named(&now, damage, path),
            }
        }
        for entry in &self.entries {
            let path = format!("/entries/{}", entry.digest());
            let now = connection.get(&path);
            match now.status {
                200 => self.must_verify(entry.digest(), &now, damage),
                404 if damage.starts_with("seen") => {}
                _ => is_named(&now, damage, &path),
            }
        }
        let keys = connection.get("/.well-known/scitt-keys");
        for key in KeySet::parse(&keys.body).unwrap().keys() {
            assert!(self.keys.keys().contains(key), "{damage}: a key is not what it was");
        }
    }

    fn must_verify(&self, entry: EntryDigest, answer: &Answer, damage: &str) {
        let receipt = Receipt::parse(answer.body.clone()).unwrap();
        let key = self.keys.with_kid(receipt.header().kid().unwrap()).next().unwrap();
        let verified = receipt.verify_inclusion(&entry.leaf_hash(), &key.key);
        assert!(verified.is_ok(), "{damage}: a receipt of {entry} does not verify: {verified:?}");
    }
}

#[track_caller]
fn is_named(answer: &Answer, damage: &str, path: &str) {
    assert!(answer.status >= 500 && !answer.body.is_empty(), "{damage}: {path}: {answer:?}");
}

on_both_databases! {
    fn r38_one_flipped_bit_is_found_by_the_running_service_and_by_hand_and_never_served(log: Log) {
        log.configure(QUICKLY);
        let service = log.serve();
        let whole = Whole::fill(&log, &service);
        service.must_become_ready();
        for (cell, finding) in CELLS.iter().flat_map(|cell| std::iter::repeat_n(cell, ROUNDS)) {
            let bit = fastrand::u32(..1 << 16);
            let damage = format!("{}.{}, bit {bit}", cell.table, cell.column);
            log.database().flip(cell, bit);
            service.must_find(finding);
            log.fsck_must_name(finding);
            whole.nothing_wrong_is_served(&service, &damage);
            log.database().mend(cell.table);
            service.must_become_ready();
        }
        assert!(service.metric("tabellion_fsck_mismatch_total") >= CELLS.len() as f64);
        assert!(service.metric("tabellion_fsck_last_success_timestamp_seconds") > 1e9);
        service.stop();
        log.must_be_sound();
    }

    fn r38_one_flipped_bit_while_the_service_is_stopped_is_never_served_once_it_runs(log: Log) {
        log.configure(QUICKLY);
        let service = log.serve();
        let whole = Whole::fill(&log, &service);
        service.stop();
        let newest = [
            cell("head_signature", "bytes", "kind = 1 AND size = (SELECT max(size) FROM batch)"),
            cell("head_signature", "bytes", "kind = 2 AND size = (SELECT max(size) FROM batch)"),
        ];
        let stored = CELLS.iter().map(|(cell, _)| cell).filter(|cell| cell.holds == Holds::Bytes);
        for cell in stored.chain(&newest) {
            let bit = fastrand::u32(..1 << 16);
            let damage = format!("{}.{} where {}, bit {bit}", cell.table, cell.column, cell.sqlite);
            log.database().flip(cell, bit);
            let service = log.serve();
            whole.nothing_wrong_is_served(&service, &damage);
            service.must_find("");
            service.stop();
            log.database().mend(cell.table);
        }
        log.must_be_sound();
    }

    fn r38_damage_is_told_as_damage_to_whoever_registers_decides_or_resolves(log: Log) {
        log.configure("fsck_rate = 0");
        let service = log.serve();
        let victim = log.statement();
        assert_eq!(service.connection().post(victim.bytes()).status, 201);
        // A process that registered a statement remembers it, and needs no row to answer with a receipt.
        service.stop();
        log.database().flip(&cell("entry", "digest", "idx = 1"), 7);
        let service = log.serve();
        let mut connection = service.connection();
        let cose = [("Content-Type", "application/cose")];
        for answer in [
            connection.post(victim.bytes()),
            connection.get(&format!("/entries/{}", victim.digest())),
            connection.send("POST", "/v1/policy/evaluate", &cose, victim.bytes()),
        ] {
            assert_eq!(answer.status, 500, "{answer:?}");
            assert!(answer.header("retry-after").is_none(), "{answer:?}");
            let body = String::from_utf8_lossy(&answer.body);
            assert!(body.contains("database-damaged") && !body.contains("again is safe"), "{body}");
        }
        log.database().mend("entry");
        assert_eq!(service.connection().post(victim.bytes()).status, 201);
        service.stop();
        log.must_be_sound();
    }
}
