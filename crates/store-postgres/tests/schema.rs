//! What the schema refuses, whoever asks; and which schema this program refuses.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use merkle::{CompactRange, Hash, LeafIndex, TreeSize};
use store::contract::{Appender, ORIGIN, entry};
use store::{
    Batch, Collateral, CommitError, Cosignature, Cosignatures, Custody, GuardKey, Head, HeadSignature, Inbox,
    InboxItem, KeyRotation, LogKey, LogKeys, LogReader, LogStore, LogWriter, NewEntry, Report, Reports,
    SignatureKind, SignatureStore, StoreError,
};
use store_postgres::testing::Database;
use store_postgres::{Postgres, schema_version};

#[tokio::test]
async fn what_is_written_once_cannot_be_changed_even_by_the_superuser() {
    let database = full_database().await;
    for statement in [
        "UPDATE batch SET at = at + 1",
        "DELETE FROM batch",
        "UPDATE head_signature SET bytes = 'x'",
        "DELETE FROM head_signature",
        "UPDATE entry SET admission = 7",
        "UPDATE admission SET rule = 'x'",
        "DELETE FROM admission",
        "TRUNCATE admission",
        "UPDATE entry SET statement = 'x'",
        "UPDATE entry SET statement = NULL, facts = 'x'",
        "DELETE FROM entry",
        "DELETE FROM entry_00000000",
        "TRUNCATE entry_00000000",
        "UPDATE seen SET idx = 7",
        "DELETE FROM seen",
        "UPDATE guard SET idx = 7",
        "DELETE FROM guard",
        "UPDATE collateral SET bytes = 'x'",
        "DELETE FROM collateral",
        "UPDATE inbox SET submission = 'x'",
        "DELETE FROM inbox",
        "UPDATE inbox_outcome SET failure = 'x'",
        "UPDATE log_key SET public = 'x'",
        "UPDATE log_key SET retired_at = 9 WHERE retired_at IS NOT NULL",
        "UPDATE log_key SET retired_size = 99",
        "UPDATE log_key SET compromised_size = 4",
        "UPDATE log_key SET compromised_size = NULL",
        "DELETE FROM log_key",
        "UPDATE cosignature SET at = at - 1",
        "UPDATE cosignature SET line = 'x'",
        "UPDATE cosignature SET witness = 'x', at = at + 1",
        "DELETE FROM cosignature",
        "DELETE FROM tile",
        "DELETE FROM log",
        "TRUNCATE log, batch, head_signature, entry, seen, guard, tile, collateral, inbox, inbox_outcome, log_key",
    ] {
        expect_refused(&database, statement).await;
    }
    for table in ["log", "entry", "seen", "guard", "tile", "collateral", "inbox", "inbox_outcome", "log_key"]
    {
        expect_refused(&database, &format!("TRUNCATE {table}")).await;
    }
}

#[tokio::test]
async fn a_head_only_moves_forward() {
    let database = full_database().await;
    for change in [
        "epoch = epoch - 1",
        "batch = batch - 1",
        "at = at - 1",
        "policy = policy - 1",
        "origin = 'elsewhere.example/log'",
        "root = decode(repeat('00', 32), 'hex')",
        "size = size - 1, edge = decode(repeat('00', 32 * bit_count((size - 1)::bit(64))::int), 'hex')",
    ] {
        expect_refused(&database, &format!("UPDATE log SET {change}")).await;
    }
    let edge = database.try_run("UPDATE log SET edge = edge || edge").await;
    assert!(edge.is_err(), "an edge has one hash for each bit of the size");
}

#[tokio::test]
async fn a_frozen_log_stays_frozen_and_only_an_empty_one_is_filled() {
    let database = full_database().await;
    expect_refused(&database, "UPDATE log SET filling = decode(repeat('07', 32), 'hex')").await;
    database.run("UPDATE log SET frozen_at = 5").await;
    for change in ["frozen_at = NULL", "frozen_at = 6", "epoch = epoch + 1", "holder = 'somebody'"] {
        expect_refused(&database, &format!("UPDATE log SET {change}")).await;
    }
}

#[tokio::test]
async fn a_tile_only_grows() {
    let database = full_database().await;
    for change in [
        "data = data",
        "data = substring(data FOR 32)",
        "data = decode(repeat('00', 64), 'hex') || data",
        "no = no + 1, data = data || data",
    ] {
        expect_refused(&database, &format!("UPDATE tile SET {change}")).await;
    }
    database.run("UPDATE tile SET data = data || data").await;
}

#[tokio::test]
async fn an_entry_and_its_collateral_can_be_erased() {
    let database = full_database().await;
    expect_refused(&database, "UPDATE collateral SET bytes = NULL").await;
    expect_refused(&database, "UPDATE entry SET statement = NULL WHERE idx = 1").await;
    database
        .run("UPDATE entry SET statement = NULL, facts = '{}' WHERE idx = 1; UPDATE collateral SET bytes = NULL")
        .await;
    let store = database.store().await;
    let erased = store.entry(LeafIndex::new(1)).await.unwrap().unwrap();
    assert_eq!((erased.statement, erased.digest), (None, entry(1).digest));
    assert_eq!(store.collateral(LeafIndex::new(1)).await.unwrap(), []);
    assert!(store.find(&[entry(1).digest]).await.unwrap()[0].is_some(), "it is still in the log");
    expect_refused(&database, "UPDATE entry SET statement = 'x' WHERE idx = 1").await;
}

#[tokio::test]
async fn an_entry_on_hold_stays_whole_and_the_hold_on_record() {
    let database = full_database().await;
    let store = database.store().await;
    store.hold(LeafIndex::new(1), "case", 5).await.unwrap();
    let erase = "UPDATE entry SET statement = NULL, facts = '{}' WHERE idx = 1";
    for statement in [
        erase,
        "DELETE FROM hold",
        "TRUNCATE hold",
        "UPDATE hold SET at = 6",
        "UPDATE hold SET matter = 'x', released_at = 6",
        "INSERT INTO hold (idx, matter, at) VALUES (99, 'case', 5)",
    ] {
        expect_refused(&database, statement).await;
    }
    assert!(store.release(LeafIndex::new(1), "case", 6).await.unwrap());
    expect_refused(&database, "UPDATE hold SET released_at = NULL").await;
    database.run(erase).await;
}

#[tokio::test]
async fn a_report_only_loses_its_statement() {
    let database = full_database().await;
    let report = Report {
        guard: GuardKey(b"guard".to_vec()),
        registered: (LeafIndex::new(1), entry(1).digest),
        refused: entry(9).digest,
        statement: Some(Bytes::from_static(b"refused")),
        at: 5,
    };
    database.store().await.keep_report(&report).await.unwrap();
    for statement in [
        "UPDATE report SET at = 6",
        "UPDATE report SET statement = 'x'",
        "UPDATE report SET statement = NULL, idx = 0",
        "DELETE FROM report",
        "TRUNCATE report",
    ] {
        expect_refused(&database, statement).await;
    }
    database.run("UPDATE report SET statement = NULL").await;
}

#[tokio::test]
async fn r50_a_newer_schema_is_refused_naming_both_versions() {
    let database = Database::fresh().await;
    let newer = schema_version() + 1;
    database
        .run(&format!(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES ({newer}, 'from the future', true, '', 0)"
        ))
        .await;
    for refused in
        [Postgres::connect(&database.options()).await.map(drop), Postgres::migrate(&database.options()).await]
    {
        let Err(StoreError::Refused(why)) = refused else { panic!("{refused:?}") };
        assert!(
            why.contains(&format!("version {newer}")) && why.contains(&format!("up to {}", newer - 1)),
            "{why}"
        );
    }
}

#[tokio::test]
async fn a_database_without_our_schema_is_refused_until_it_is_migrated() {
    let database = Database::empty().await;
    let Err(StoreError::NoLog(why)) = Postgres::connect(&database.options()).await else {
        panic!("it has no schema")
    };
    assert!(why.contains("migrate it first"), "{why}");
    Postgres::migrate(&database.options()).await.unwrap();
    Postgres::connect(&database.options()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrating_from_several_processes_at_once_works() {
    let database = Database::empty().await;
    let options = database.options();
    let all = (0..4).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { Postgres::migrate(&options).await })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_next_partition_is_made_when_the_newest_is_half_full() {
    let database = Database::fresh().await;
    let store = database.store().await;
    store.open(ORIGIN).await.unwrap();
    let head = pretend_size(&database, (1 << 21) - 1).await;
    assert_eq!(store.head().await.unwrap(), head);
    let partitions = "SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY 1) FROM pg_inherits
                       WHERE inhparent = 'entry'::regclass";
    assert_eq!(database.ask(partitions).await, "entry_00000000");
    store.commit(&batch_of_one(head, entry(0))).await.unwrap();
    assert_eq!(database.ask(partitions).await, "entry_00000000 entry_00000001");
    let storage = "SELECT attstorage::text FROM pg_attribute
                    WHERE attrelid = 'entry_00000001'::regclass AND attname = 'statement'";
    assert_eq!(database.ask(storage).await, "e", "statements are stored without trying to compress them");
    expect_refused(&database, "TRUNCATE entry_00000001").await;
}

#[tokio::test]
async fn without_a_partition_the_log_is_read_only_and_says_so() {
    let database = full_database().await;
    database.run("ALTER TABLE entry DETACH PARTITION entry_00000000").await;
    let store = database.store().await;
    let head = store.head().await.unwrap();
    let refused = store.commit(&batch_of_one(head.clone(), entry(9))).await;
    let Err(CommitError::NotCommitted(StoreError::Refused(why))) = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("read-only") && why.contains("create_entry_partition"), "{why}");
    assert_eq!(store.head().await.unwrap(), head, "reads go on");
}

#[tokio::test]
async fn a_guard_too_long_for_an_index_is_kept_all_the_same() {
    let database = Database::fresh().await;
    let mut appender = Appender::new(Arc::new(database.store().await)).await;
    let long = |last: u8| GuardKey([vec![7; 5000], vec![last]].concat());
    appender.append_entries(vec![NewEntry { guards: vec![long(1), long(2)], ..entry(0) }]).await.unwrap();
    let taken = appender.append_entries(vec![NewEntry { guards: vec![long(2)], ..entry(1) }]).await;
    assert!(matches!(taken, Err(CommitError::GuardTaken)), "{taken:?}");
    let answer = database.store().await.guards(&[long(1), long(3)]).await.unwrap();
    assert_eq!(answer, [Some(LeafIndex::new(0)), None]);
}

/// A log with at least one row in every table.
async fn full_database() -> Database {
    let database = Database::fresh().await;
    let store = Arc::new(database.store().await);
    let mut appender = Appender::with(Arc::clone(&store) as Arc<dyn LogStore>, 1).await;
    appender.take_over().await;
    let waiting = |n: u64| InboxItem { digest: entry(n).digest, submission: Bytes::from_static(b"waits") };
    store.enqueue(&waiting(1)).await.unwrap();
    store.enqueue(&waiting(5)).await.unwrap();
    store.refuse(&entry(5).digest, "no").await.unwrap();
    store.enqueue(&waiting(6)).await.unwrap();
    let collateral = vec![Collateral { kind: 1, bytes: Bytes::from_static(b"chain") }];
    let (guards, facts) = (vec![GuardKey(b"guard".to_vec())], r#"{"of":"somebody"}"#.into());
    let mut batch = appender.batch(vec![NewEntry { guards, facts, collateral, ..entry(1) }]);
    batch.to.policy = LeafIndex::new(1);
    batch.settled = vec![(entry(1).digest, LeafIndex::new(1))];
    appender.commit(&batch).await.unwrap();
    let signature = |kind| HeadSignature {
        size: TreeSize::new(2),
        kind,
        kid: b"key".to_vec(),
        bytes: Bytes::from_static(b"signature"),
    };
    store.keep_signature(&signature(SignatureKind::Receipt)).await.unwrap();
    let line = Bytes::from_static(b"line");
    let cosignature = Cosignature { size: TreeSize::new(2), witness: b"witness".to_vec(), at: 5, line };
    store.keep_cosignature(&cosignature).await.unwrap();
    let key = LogKey::new(b"key".to_vec(), Bytes::from_static(b"public"), TreeSize::new(0));
    store
        .keep_key(&LogKey { retired_at: Some(5), retired_size: Some(TreeSize::new(9)), ..key })
        .await
        .unwrap();
    store.mark_compromised(b"key", TreeSize::new(3)).await.unwrap();
    database
}

async fn expect_refused(database: &Database, statement: &str) {
    let refused = database.try_run(statement).await;
    let Err(sqlx::Error::Database(answer)) = refused else { panic!("{statement}: {refused:?}") };
    // integrity_constraint_violation is what our triggers raise; 0A000: a table that others refer to.
    assert!(matches!(answer.code().as_deref(), Some("23000" | "0A000")), "{statement}: {answer}");
}

/// Puts a made-up tree of that size into an empty log, past the triggers.
async fn pretend_size(database: &Database, size: u64) -> Head {
    let hashes: Vec<Hash> = (0..size.count_ones()).map(|n| Hash::from_bytes([n as u8; 32])).collect();
    let edge = CompactRange::from_parts(TreeSize::new(size), hashes).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (root, hashes) =
        (edge.root(), edge.hashes().iter().flat_map(|hash| *hash.as_bytes()).collect::<Vec<_>>());
    database
        .run(&format!(
            "UPDATE log SET size = {size}, batch = 1, edge = decode('{}', 'hex'), root = decode('{}', 'hex')",
            hex(&hashes),
            hex(root.as_bytes())
        ))
        .await;
    Head { epoch: 0, batch: 1, edge, at: 0, policy: LeafIndex::new(0) }
}

/// A batch without tiles: the store asks for none.
fn batch_of_one(from: Head, entry: NewEntry) -> Batch {
    let edge = from.edge.grow(&[entry.digest.leaf_hash()]).into_range();
    let to = Head { batch: from.batch + 1, edge, ..from.clone() };
    Batch {
        from,
        to,
        entries: vec![entry],
        tiles: Vec::new(),
        settled: Vec::new(),
        effects: Vec::new(),
        signatures: Vec::new(),
    }
}
