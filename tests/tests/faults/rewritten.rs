//! Somebody with access to the database rewrites the log (R39, R40) or its files (R10): it is named by hand, by the
//! running service, at the start or at the next signing.

use std::fs;
use std::path::PathBuf;

use black_box::{Database, Log, Outcome, Recorder, Service, on_both_databases};
use merkle::{CompactRange, EntryDigest, Hash, LeafHash};
use scitt::SignedStatement;

/// The running service checks the whole log again after a second.
const QUICKLY: &str = "fsck_rate = 100000\nfsck_every_seconds = 1";
/// Entries besides the policy, each in a batch of its own.
const ENTRIES: u64 = 6;

/// Entries of a log that runs, in the order of their leaves; entry 0 is the policy.
fn filled(log: &Log, service: &Service) -> Vec<EntryDigest> {
    let mut connection = service.connection();
    for _ in 0..ENTRIES {
        assert_eq!(connection.post(log.statement().bytes()).status, 201);
    }
    let page = connection.get("/v1/entries?limit=100").json();
    let entries = page["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["entry_id"].as_str().unwrap().parse().unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Changes a table with the same words on both databases, but for how bytes are written.
fn change(log: &Log, table: &str, statements: &[String]) {
    let sqlite: Vec<String> = statements.iter().map(|statement| statement.replace("BYTES'", "x'")).collect();
    let postgres: Vec<String> =
        statements.iter().map(|statement| statement.replace("BYTES'", "'\\x")).collect();
    log.database().by_hand(
        table,
        &sqlite.iter().map(String::as_str).collect::<Vec<_>>(),
        &postgres.iter().map(String::as_str).collect::<Vec<_>>(),
    );
}

/// Puts another statement, which is valid, in the place of entry 3: the row, and the key that leads to it.
fn replace_the_row(log: &Log, old: EntryDigest, forged: &SignedStatement) {
    let (bytes, new) = (hex(forged.bytes()), forged.digest());
    change(
        log,
        "entry",
        &[format!("UPDATE entry SET statement = BYTES'{bytes}', digest = BYTES'{new}' WHERE idx = 3")],
    );
    let (sqlite, postgres) = (
        format!("UPDATE seen SET key = substr(x'{new}', 1, 16) WHERE key = substr(x'{old}', 1, 16)"),
        format!(
            "UPDATE seen SET key = encode(substr('\\x{new}'::bytea, 1, 16), 'hex')::uuid
             WHERE key = encode(substr('\\x{old}'::bytea, 1, 16), 'hex')::uuid"
        ),
    );
    log.database().by_hand("seen", &[&sqlite], &[&postgres]);
}

/// The tree, every root and the head, as if the leaves had always been these. Nothing is left but what was signed.
fn rewrite_the_tree(log: &Log, leaves: &[LeafHash]) {
    let tile: String = leaves.iter().map(|leaf| hex(leaf.as_bytes())).collect();
    log.database().by_hand(
        "tile",
        &["DELETE FROM tile WHERE first > 0", &format!("UPDATE tile SET data = x'{tile}' WHERE level = 0")],
        &["DELETE FROM tile WHERE first > 0", &format!("UPDATE tile SET data = '\\x{tile}' WHERE level = 0")],
    );
    let mut range = CompactRange::empty();
    let mut roots = Vec::new();
    for leaf in leaves {
        range.append(*leaf);
        let (root, size) = (range.root(), range.size());
        roots.push(format!("UPDATE batch SET root = BYTES'{root}' WHERE size = {size}"));
    }
    change(log, "batch", &roots);
    let edge: String = range.hashes().iter().map(Hash::to_string).collect();
    let root = range.root();
    change(log, "log", &[format!("UPDATE log SET edge = BYTES'{edge}', root = BYTES'{root}'")]);
}

on_both_databases! {
    fn r39_a_statement_replaced_with_the_hashes_of_its_row_is_found(log: Log) {
        log.configure(QUICKLY);
        let service = log.serve();
        let entries = filled(&log, &service);
        service.must_become_ready();
        replace_the_row(&log, entries[3], &log.statement());
        service.must_find("entry 3: its leaf hash differs from the one in the tile");
        log.fsck_must_name("entry 3: its leaf hash differs from the one in the tile");
        service.stop();
        log.fsck_must_name("entry 3: its leaf hash differs from the one in the tile");
    }

    fn r39_a_log_rewritten_in_every_table_is_found_by_what_was_signed_and_never_signed_again(log: Log) {
        log.configure(QUICKLY);
        let service = log.serve();
        let entries = filled(&log, &service);
        service.must_become_ready();
        let forged = log.statement();
        let mut leaves: Vec<LeafHash> = entries.iter().map(EntryDigest::leaf_hash).collect();
        leaves[3] = forged.digest().leaf_hash();
        replace_the_row(&log, entries[3], &forged);
        rewrite_the_tree(&log, &leaves);
        // The first three heads do not have entry 3. What leads to it is not rewritten, either: only some findings are told.
        service.must_find("head_signature: Checkpoint over size 4");
        service.must_find("head_signature: Receipt over size 5");
        log.fsck_must_name("head_signature: Checkpoint over size 4");
        // At the next signing: what is in memory is not what the database has now.
        let recorder = Recorder::new();
        let outcome = recorder.register(&mut service.connection(), &log.statement());
        assert!(!matches!(outcome, Outcome::Registered), "{outcome:?}");
        service.kill();
        // At the start: the pin has another root.
        let service = log.serve();
        service.must_find("this log has signed root");
        let outcome = recorder.register(&mut service.connection(), &log.statement());
        assert_eq!(outcome, Outcome::TurnedAway);
        service.stop();
    }

    fn r40_a_deleted_last_leaf_is_found(log: Log) {
        tampered(&log, "entry", &["DELETE FROM entry WHERE idx = 6"], "entry 6:");
    }

    fn r40_a_deleted_middle_leaf_is_found(log: Log) {
        tampered(&log, "entry", &["DELETE FROM entry WHERE idx = 3"], "entry 3:");
    }

    fn r40_two_swapped_rows_are_found(log: Log) {
        let far = "UPDATE entry SET idx = 50 WHERE idx = 2";
        let swap = ["UPDATE entry SET idx = 2 WHERE idx = 3", "UPDATE entry SET idx = 3 WHERE idx = 50"];
        tampered(&log, "entry", &[far, swap[0], swap[1]], "entry 2: its leaf hash differs from the one in the tile");
    }

    fn r40_a_truncated_table_of_entries_is_found(log: Log) {
        tampered(&log, "entry", &["DELETE FROM entry"], "entry 0:");
    }

    fn r40_a_truncated_table_of_tiles_is_found(log: Log) {
        tampered(&log, "tile", &["DELETE FROM tile"], "tile 0 of level 0: missing");
    }

    fn r40_a_truncated_table_of_look_up_keys_is_found(log: Log) {
        tampered(&log, "seen", &["DELETE FROM seen"], "seen: the digest of entry 0 does not lead to it");
    }

    fn r40_a_truncated_table_of_signatures_is_found(log: Log) {
        found(&log, "head_signature", &["DELETE FROM head_signature"], "signatures are missing");
        // The heads up to the pin were signed, so a service that starts on them signs them again.
        let service = log.serve();
        service.must_become_ready();
        service.stop();
        let ran = log.tabellion(&["log", "fsck", "--deep", "--json"]);
        assert_eq!(ran.code, Some(0), "{ran}");
    }

    fn r40_a_truncated_history_is_found(log: Log) {
        let begun = ["DELETE FROM batch WHERE batch > 1"];
        tampered(&log, "batch", &begun, "log: the head of size 7 differs from the row of batch 7");
    }
}

/// Found while it runs; found by hand; and found by a service that starts on it, which serves or says why not.
#[track_caller]
fn tampered(log: &Log, table: &str, statements: &[&str], finding: &str) {
    found(log, table, statements, finding);
    match Service::started(log) {
        // Without its history or its tiles a log is not taken up: its sequencer says why.
        Ok(service) => service.must_find("amage"),
        Err(ran) => assert!(ran.stderr.contains("damaged"), "{ran}"),
    }
}

/// Found while it runs, and found by hand.
#[track_caller]
fn found(log: &Log, table: &str, statements: &[&str], finding: &str) {
    log.configure(QUICKLY);
    let service = log.serve();
    filled(log, &service);
    service.must_become_ready();
    log.database().by_hand(table, statements, statements);
    service.must_find(finding);
    log.fsck_must_name(finding);
    service.kill();
    log.fsck_must_name(finding);
}

#[test]
fn r10_a_write_ahead_log_that_is_deleted_or_swapped_while_stopped_is_found_at_the_start() {
    for swapped in [false, true] {
        let log = Log::sqlite();
        let recorder = Recorder::new();
        let service = log.serve();
        assert_eq!(recorder.register(&mut service.connection(), &log.statement()), Outcome::Registered);
        let old = fs::read(journal(&log)).unwrap();
        for _ in 0..ENTRIES {
            assert_eq!(recorder.register(&mut service.connection(), &log.statement()), Outcome::Registered);
        }
        service.kill();
        match swapped {
            true => fs::write(journal(&log), old).unwrap(),
            false => fs::remove_file(journal(&log)).unwrap(),
        }
        match Service::started(&log) {
            Ok(service) => {
                service.must_find("this log has signed");
                let outcome = recorder.register(&mut service.connection(), &log.statement());
                assert_eq!(outcome, Outcome::TurnedAway);
                service.stop();
            }
            // Nothing at all was in the file itself.
            Err(ran) => {
                assert!(ran.stderr.contains("this log has signed") || ran.stderr.contains("pin"), "{ran}")
            }
        }
    }
}

/// SQLite's write-ahead log.
fn journal(log: &Log) -> PathBuf {
    let Database::Sqlite(file) = log.database() else { panic!("not SQLite") };
    let mut name = file.clone().into_os_string();
    name.push("-wal");
    name.into()
}
