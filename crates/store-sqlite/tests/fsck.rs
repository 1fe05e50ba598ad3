//! Rows changed behind the log's back, and the finding that names each (R38 to R40).

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use merkle::{CompactRange, EntryDigest, Hash, LeafHash, LeafIndex, TreeSize};
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use store::contract::{Appender, entry, statement};
use store::fsck::{
    BadState, DeepCheck, Defect, DerivedGuards, Fsck, FsckFacts, FsckProgress, FsckReport, FsckState,
    FsckStep, NoFacts,
};
use store::{
    CommittedHead, Cosignature, Cosignatures, Entry, GuardKey, HeadSignature, LogKey, LogReader, LogWriter,
    NewEntry, SignatureKind, SignatureStore, StoreError,
};
use store_sqlite::{Settings, Sqlite};
use tempfile::TempDir;

const SIZE: u64 = 600;

/// Signs and guards in a way that needs no keys.
struct Toy;

impl Toy {
    fn sign(head: &CommittedHead) -> Vec<u8> {
        EntryDigest::of(format!("{} {} {}", head.size, head.root, head.at).as_bytes()).as_bytes().to_vec()
    }

    fn guard(statement: &[u8]) -> GuardKey {
        GuardKey([b"guard of ", statement].concat())
    }

    fn twin(statement: &[u8]) -> EntryDigest {
        EntryDigest::of(&[b"twin of ", statement].concat())
    }

    fn entry(n: u64) -> NewEntry {
        let bytes = statement(n);
        NewEntry { guards: vec![Self::guard(&bytes)], twin: Some(Self::twin(&bytes)), ..entry(n) }
    }
}

#[async_trait]
impl FsckFacts for Toy {
    async fn guards(&self, _: &dyn LogReader, entries: &[&Entry]) -> Result<DerivedGuards, StoreError> {
        let guard = |entry: &&Entry| Some((Self::guard(entry.statement.as_ref()?), entry.index));
        Ok(DerivedGuards { held: entries.iter().filter_map(guard).collect(), damaged: Vec::new() })
    }

    fn twin(&self, entry: &Entry) -> Option<EntryDigest> {
        entry.statement.as_ref().map(|bytes| Self::twin(bytes))
    }

    fn may_be_erased(&self, index: LeafIndex) -> bool {
        index == LeafIndex::new(42)
    }

    fn kinds(&self) -> &[SignatureKind] {
        &[SignatureKind::Receipt]
    }

    fn check_cosignature(&self, head: &CommittedHead, kept: &Cosignature) -> Result<(), String> {
        match kept.line == format!("seen {}", head.root).as_bytes() {
            true => Ok(()),
            false => Err("it does not verify".into()),
        }
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        _: &[LogKey],
    ) -> Result<(), String> {
        match Self::sign(head)[..] == signature.bytes[..] {
            true => Ok(()),
            false => Err("the signature does not verify".into()),
        }
    }
}

struct Tampered {
    store: Sqlite,
    path: PathBuf,
    _folder: TempDir,
}

/// A log of [`SIZE`] entries in batches of 60, every head signed, and then changed by hand.
async fn log_after(statements: &[&str]) -> Tampered {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = Sqlite::open(Settings::new(&path)).await.unwrap();
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    for batch in 0..SIZE / 60 {
        appender.append_entries((batch * 60..(batch + 1) * 60).map(Toy::entry).collect()).await.unwrap();
    }
    for head in store.heads(0, 100).await.unwrap() {
        let (size, bytes) = (head.size, Toy::sign(&head).into());
        let signature = HeadSignature { size, kind: SignatureKind::Receipt, kid: b"kid".to_vec(), bytes };
        store.keep_signature(&signature).await.unwrap();
    }
    by_hand(&path, statements).await;
    Tampered { store, path, _folder: folder }
}

/// What somebody with the file can do: no triggers, no foreign keys.
async fn by_hand(path: &Path, statements: &[&str]) {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let triggers: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        .fetch_all(&pool)
        .await
        .unwrap();
    for name in triggers {
        sqlx::query(AssertSqlSafe(format!("DROP TRIGGER {name}"))).execute(&pool).await.unwrap();
    }
    for statement in statements {
        let done = sqlx::query(AssertSqlSafe((*statement).to_owned())).execute(&pool).await;
        assert!(done.unwrap().rows_affected() > 0, "{statement}");
    }
    pool.close().await;
}

impl Tampered {
    async fn deep(&self) -> FsckReport {
        Fsck::new(&self.store, &Toy).deep().await.unwrap()
    }

    async fn quick(&self) -> FsckReport {
        Fsck::new(&self.store, &Toy).quick().await.unwrap()
    }
}

fn index(n: u64) -> LeafIndex {
    LeafIndex::new(n)
}

fn expect(report: &FsckReport, finding: Defect) {
    assert!(report.findings.contains(&finding), "no {finding:?} in {:#?}", report.findings);
}

#[tokio::test]
async fn a_sound_log_is_clean_and_everything_was_looked_at() {
    let log = log_after(&[]).await;
    let report = log.deep().await;
    assert_eq!(report.findings, []);
    assert_eq!((report.entries, report.heads, report.signatures), (SIZE, 10, 10));
    assert_eq!((report.size, report.root), (TreeSize::new(SIZE), log.store.head().await.unwrap().root()));
    let report = log.quick().await;
    assert_eq!(report.findings, []);
    assert_eq!(report.entries, SIZE);
}

#[tokio::test]
async fn an_empty_log_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap();
    store.open("empty.example").await.unwrap();
    assert!(Fsck::new(&store, &NoFacts).quick().await.unwrap().is_clean());
    assert!(Fsck::new(&store, &NoFacts).deep().await.unwrap().is_clean());
}

#[tokio::test]
async fn r61_every_size_is_clean_in_batches_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap();
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    for size in 1..=40 {
        appender.append(1).await;
        assert_eq!(Fsck::new(&store, &NoFacts).quick().await.unwrap().findings, [], "size {size}");
    }
    assert!(Fsck::new(&store, &NoFacts).deep().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_deep_check_says_how_far_it_is() {
    let log = log_after(&[]).await;
    let seen = Mutex::new(Vec::new());
    let note = |progress: FsckProgress| seen.lock().unwrap().push(progress);
    Fsck::new(&log.store, &Toy).reporting(&note).deep().await.unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted_by_key(|progress| progress.entries));
    assert_eq!(seen.last(), Some(&FsckProgress { entries: SIZE, of: SIZE }));
}

#[tokio::test]
async fn r38_a_flipped_bit_in_a_statement_is_named_and_not_served() {
    let log = log_after(&["UPDATE entry SET statement = CAST('statement 78' AS BLOB) WHERE idx = 77"]).await;
    let report = log.deep().await;
    expect(&report, Defect::StatementNotOfDigest { index: index(77) });
    assert!(!report.findings.iter().any(|finding| matches!(finding, Defect::HeadRoot { .. })));
    let read = log.store.entry(index(77)).await.unwrap().unwrap().verified();
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
}

#[tokio::test]
async fn r38_a_changed_digest_is_named_from_all_sides() {
    let log = log_after(&["UPDATE entry SET digest = randomblob(32) WHERE idx = 77"]).await;
    let report = log.deep().await;
    expect(&report, Defect::StatementNotOfDigest { index: index(77) });
    expect(&report, Defect::LeafNotInTile { index: index(77) });
    expect(&report, Defect::NotSeen { index: index(77) });
    expect(&report, Defect::LaterHeadRoots { batch: 2, count: 8 });
    let batch = log.store.head_of_size(TreeSize::new(120)).await.unwrap().unwrap();
    expect(&report, Defect::HeadRoot { batch: 2, size: batch.size, stored: batch.root });
}

#[tokio::test]
async fn r38_a_flipped_bit_in_a_tile_of_leaves_is_named_by_its_leaf() {
    let flip = "UPDATE tile SET data = CAST(substr(data, 1, 32 * 5) || zeroblob(32) || substr(data, 32 * 6 + 1) AS BLOB)
                WHERE level = 0 AND number = 1 AND first = 0";
    let report = log_after(&[flip]).await.deep().await;
    assert_eq!(report.findings, [Defect::LeafNotInTile { index: index(261) }]);
}

#[tokio::test]
async fn r38_a_flipped_bit_in_an_inner_tile_is_named_and_found_by_a_quick_check() {
    let flip =
        "UPDATE tile SET data = CAST(zeroblob(32) || substr(data, 33) AS BLOB) WHERE level = 1 AND first = 0";
    let log = log_after(&[flip]).await;
    let named = Defect::NodeNotOfTile { level: 1, number: 0, position: 0 };
    assert_eq!(log.deep().await.findings, [Defect::EdgeNotOfTiles, named]);
    expect(&log.quick().await, Defect::EdgeNotOfTiles);
}

#[tokio::test]
async fn r38_a_changed_root_in_the_history_is_named() {
    let log = log_after(&["UPDATE batch SET root = zeroblob(32) WHERE batch = 4"]).await;
    let (size, stored) = (TreeSize::new(240), merkle::RootHash::from_bytes([0; 32]));
    for report in [log.deep().await, log.quick().await] {
        expect(&report, Defect::HeadRoot { batch: 4, size, stored });
    }
    let report = log.deep().await;
    assert!(report.findings.iter().any(|finding| matches!(finding, Defect::SignatureWrong { .. })));
}

#[tokio::test]
async fn r38_a_changed_head_is_unreadable() {
    let log = log_after(&["UPDATE log SET root = zeroblob(32)"]).await;
    for report in [log.deep().await, log.quick().await] {
        assert!(matches!(report.findings[..], [Defect::HeadUnreadable { .. }]), "{:?}", report.findings);
    }
}

#[tokio::test]
async fn r38_lost_look_up_keys_are_named() {
    let log = log_after(&[
        "DELETE FROM seen WHERE key = (SELECT substr(digest, 1, 16) FROM entry WHERE idx = 9)",
        "UPDATE seen SET idx = 9 WHERE key = (SELECT substr(digest, 1, 16) FROM entry WHERE idx = 10)",
        "DELETE FROM guard WHERE idx = 11",
        "UPDATE guard SET idx = 0 WHERE idx = 12",
        "DELETE FROM seen WHERE idx = 13 AND key <> (SELECT substr(digest, 1, 16) FROM entry WHERE idx = 13)",
    ])
    .await;
    let guard = |n| Toy::guard(&statement(n));
    assert_eq!(
        log.deep().await.findings,
        [
            Defect::NotSeen { index: index(9) },
            Defect::NotSeen { index: index(10) },
            Defect::TwinNotSeen { index: index(13) },
            Defect::GuardNotHeld { index: index(11), key: guard(11) },
            Defect::GuardNotHeld { index: index(12), key: guard(12) },
        ]
    );
}

#[tokio::test]
async fn r39_a_statement_replaced_in_every_table_is_found_by_the_signatures() {
    let log = log_after(&[]).await;
    let forged = b"a statement that was never sent".to_vec();
    let leaves: Vec<LeafHash> = (0..SIZE)
        .map(|n| match n {
            77 => EntryDigest::of(&forged).leaf_hash(),
            _ => entry(n).digest.leaf_hash(),
        })
        .collect();
    rewrite(&log, 77, &forged, &leaves).await;
    let report = log.deep().await;
    let wrong: Vec<u64> = report
        .findings
        .iter()
        .map(|finding| match finding {
            Defect::SignatureWrong { size, .. } => size.get(),
            other => panic!("the forgery was to be perfect but for the signatures: {other}"),
        })
        .collect();
    assert_eq!(wrong, (2..=10).map(|batch| batch * 60).collect::<Vec<_>>());
}

/// Puts another statement in place of one, and every table in order with it.
async fn rewrite(log: &Tampered, at: u64, forged: &[u8], leaves: &[LeafHash]) {
    let (old, new) = (entry(at).digest, EntryDigest::of(forged));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut statements = vec![
        format!("UPDATE entry SET digest = x'{new}', statement = x'{}' WHERE idx = {at}", hex(forged)),
        format!("UPDATE seen SET key = substr(x'{new}', 1, 16) WHERE key = substr(x'{old}', 1, 16)"),
        format!("DELETE FROM seen WHERE key = substr(x'{}', 1, 16)", Toy::twin(&statement(at))),
        format!("INSERT INTO seen VALUES (substr(x'{}', 1, 16), {at})", Toy::twin(forged)),
        format!("UPDATE guard SET key = x'{}' WHERE idx = {at}", hex(&Toy::guard(forged).0)),
    ];
    statements.push("DELETE FROM tile WHERE first > 0".to_owned());
    let tiles = merkle::tile::OpenTiles::empty().grow(&CompactRange::empty().grow(leaves)).unwrap().1;
    for tile in tiles {
        let (level, number, data) = (tile.id.level(), tile.id.number(), hex(&tile.data));
        statements
            .push(format!("UPDATE tile SET data = x'{data}' WHERE level = {level} AND number = {number}"));
    }
    for batch in 1..=SIZE / 60 {
        let root = CompactRange::empty().grow(&leaves[..batch as usize * 60]).root();
        statements.push(format!("UPDATE batch SET root = x'{root}' WHERE batch = {batch}"));
    }
    let range = CompactRange::empty().grow(leaves).into_range();
    let edge: String = range.hashes().iter().map(Hash::to_string).collect();
    statements.push(format!("UPDATE log SET edge = x'{edge}', root = x'{}'", range.root()));
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    by_hand(&log.path, &statements).await;
}

#[tokio::test]
async fn r40_a_deleted_last_leaf_is_named_by_a_quick_check_too() {
    let log = log_after(&["DELETE FROM entry WHERE idx = 599"]).await;
    for report in [log.deep().await, log.quick().await] {
        let lost =
            |finding: &Defect| matches!(finding, Defect::EntryLost { index: at, .. } if *at == index(599));
        assert!(report.findings.iter().any(lost), "{:?}", report.findings);
    }
}

#[tokio::test]
async fn r40_a_deleted_middle_leaf_is_named_and_the_rest_is_still_checked() {
    let log = log_after(&["DELETE FROM entry WHERE idx = 300"]).await;
    let report = log.deep().await;
    assert!(matches!(&report.findings[..], [Defect::EntryLost { index: at, .. }] if *at == index(300)));
    assert_eq!((report.entries, report.heads), (SIZE - 1, 10));
    assert!(matches!(log.store.entry(index(300)).await, Err(StoreError::Damaged(_))));
    assert!(matches!(log.store.entries(index(290), 20).await, Err(StoreError::Damaged(_))));
}

#[tokio::test]
async fn r40_two_swapped_rows_are_both_named() {
    let log = log_after(&[
        "UPDATE entry SET idx = -1 WHERE idx = 200",
        "UPDATE entry SET idx = 200 WHERE idx = 201",
        "UPDATE entry SET idx = 201 WHERE idx = -1",
    ])
    .await;
    let report = log.deep().await;
    for at in [200, 201] {
        expect(&report, Defect::LeafNotInTile { index: index(at) });
        expect(&report, Defect::NotSeen { index: index(at) });
    }
    assert!(report.findings.iter().any(|finding| matches!(finding, Defect::HeadRoot { batch: 4, .. })));
}

#[tokio::test]
async fn r40_a_truncated_table_is_named_without_reading_all_that_is_gone() {
    let log = log_after(&["DELETE FROM entry"]).await;
    let report = log.deep().await;
    assert!(report.findings.iter().any(|finding| matches!(finding, Defect::EntryLost { .. })));
    assert_eq!(report.entries, 0);
}

#[tokio::test]
async fn r40_a_head_that_was_put_back_is_named_by_what_is_beyond_it() {
    let log = log_after(&[]).await;
    let leaves: Vec<LeafHash> = (0..540).map(|n| entry(n).digest.leaf_hash()).collect();
    let older = CompactRange::empty().grow(&leaves).into_range();
    let edge: String = older.hashes().iter().map(Hash::to_string).collect();
    let back =
        format!("UPDATE log SET size = 540, batch = 9, at = 9, edge = x'{edge}', root = x'{}'", older.root());
    by_hand(&log.path, &[&back]).await;
    for report in [log.deep().await, log.quick().await] {
        expect(
            &report,
            Defect::HistoryBeyondHead { batch: 10, size: TreeSize::new(600), head: TreeSize::new(540) },
        );
        expect(&report, Defect::TileWidth { level: 0, number: 2, stored: 88, expected: 28 });
    }
}

#[tokio::test]
async fn r40_lost_history_is_named() {
    let middle = log_after(&["DELETE FROM batch WHERE batch IN (3, 4)"]).await.deep().await;
    expect(&middle, Defect::HeadsLost { first: 3, last: 4 });
    let over_nothing = |finding: &&Defect| matches!(finding, Defect::SignatureOverNothing { .. });
    assert_eq!(middle.findings.iter().filter(over_nothing).count(), 2);
    let last = log_after(&["DELETE FROM batch WHERE batch = 10"]).await;
    expect(&last.quick().await, Defect::HeadNotInHistory { batch: 10, size: TreeSize::new(SIZE) });
}

#[tokio::test]
async fn a_lost_tile_is_named() {
    let log = log_after(&["DELETE FROM tile WHERE level = 0 AND number IN (0, 2)"]).await;
    let report = log.deep().await;
    expect(&report, Defect::TileLost { level: 0, number: 0 });
    expect(&report, Defect::TileLost { level: 0, number: 2 });
    expect(&log.quick().await, Defect::TileLost { level: 0, number: 2 });
}

#[tokio::test]
async fn a_history_whose_time_runs_back_is_named() {
    let log = log_after(&["UPDATE batch SET at = 1 WHERE batch = 5"]).await;
    expect(&log.deep().await, Defect::HistoryRunsBack { batch: 5 });
}

#[tokio::test]
async fn an_erasure_is_a_finding_unless_the_log_says_so() {
    let log = log_after(&["UPDATE entry SET statement = NULL WHERE idx IN (42, 43)"]).await;
    let report = log.deep().await;
    assert_eq!(report.findings, [Defect::ErasedSilently { index: index(43) }]);
}

#[tokio::test]
async fn a_log_that_grows_meanwhile_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap();
    let mut appender = Appender::with(Arc::new(store.clone()), 500).await;
    let growing = tokio::spawn(async move {
        for _ in 0..40 {
            appender.append(17).await;
        }
    });
    while !growing.is_finished() {
        assert_eq!(Fsck::new(&store, &NoFacts).quick().await.unwrap().findings, []);
        assert_eq!(Fsck::new(&store, &NoFacts).deep().await.unwrap().findings, []);
    }
    growing.await.unwrap();
}

/// A walk in small steps that is taken up again after each of them, as a restart would.
async fn walk_with_restarts(log: &Tampered) -> (Vec<String>, usize) {
    let mut restarts = 0;
    let mut state: FsckState =
        DeepCheck::begin(&log.store, &Toy).await.unwrap().state().expect("the head can be read");
    loop {
        let text = serde_json::to_string(&state).unwrap();
        assert!(text.len() < 64 << 10, "a state of {} bytes", text.len());
        let kept: FsckState = serde_json::from_str(&text).unwrap();
        let walk = DeepCheck::resume(&log.store, &Toy, &kept).await.unwrap().unwrap();
        let mut walk = walk.in_pages_of(7);
        if walk.step().await.unwrap() == FsckStep::Done {
            return (walk.findings(), restarts);
        }
        state = walk.state().unwrap();
        restarts += 1;
    }
}

#[tokio::test]
async fn a_walk_that_is_taken_up_again_after_every_step_finds_what_one_run_finds() {
    let damage = [
        "UPDATE entry SET statement = CAST('statement 78' AS BLOB) WHERE idx = 77",
        "UPDATE tile SET data = CAST(zeroblob(32) || substr(data, 33) AS BLOB)
         WHERE level = 0 AND number = 1 AND first = 0",
        "UPDATE batch SET root = zeroblob(32) WHERE batch = 4",
        "DELETE FROM head_signature WHERE size = 180",
    ];
    for damage in [&damage[..0], &damage] {
        let log = log_after(damage).await;
        let whole = log.deep().await.findings;
        let (found, restarts) = walk_with_restarts(&log).await;
        assert_eq!(found, whole.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(found.is_empty(), damage.is_empty());
        assert!(restarts > 80, "{restarts}");
    }
}

#[tokio::test]
async fn a_state_of_another_log_or_of_a_head_that_is_gone_is_refused() {
    let log = log_after(&[]).await;
    let mut walk = DeepCheck::begin(&log.store, &Toy).await.unwrap();
    for _ in 0..5 {
        walk.step().await.unwrap();
    }
    let state = walk.state().unwrap();
    let resumed = |other: Tampered| {
        let state = state.clone();
        async move { DeepCheck::resume(&other.store, &Toy, &state).await.unwrap().err() }
    };
    assert_eq!(resumed(log_after(&[]).await).await, None, "the same log in another file");
    let other = log_after(&["UPDATE entry SET digest = randomblob(32) WHERE idx = 0"]).await;
    assert!(matches!(resumed(other).await, Some(BadState::AnotherLog { .. })));
    let size = TreeSize::new(SIZE);
    for gone in
        ["DELETE FROM batch WHERE batch = 10", "UPDATE batch SET root = zeroblob(32) WHERE batch = 10"]
    {
        assert_eq!(resumed(log_after(&[gone]).await).await, Some(BadState::AnotherHistory { size }));
    }
    let text = serde_json::to_string(&state).unwrap();
    for (wrong, right) in [("\"version\":2", "\"version\":1"), ("\"next\":9", "\"next\":")] {
        let changed: FsckState = serde_json::from_str(&text.replacen(right, wrong, 1)).unwrap();
        let refused = DeepCheck::resume(&log.store, &Toy, &changed).await.unwrap().err();
        assert!(matches!(refused, Some(BadState::Unreadable(_))), "{wrong}: {refused:?}");
    }
}

#[tokio::test]
async fn a_walk_over_a_log_that_grows_checks_the_head_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(Settings::new(folder.path().join("log.db"))).await.unwrap();
    let mut appender = Appender::with(Arc::new(store.clone()), 300).await;
    let mut walk = DeepCheck::begin(&store, &NoFacts).await.unwrap().in_pages_of(16);
    while walk.step().await.unwrap() != FsckStep::Done {
        appender.append(3).await;
    }
    assert!(walk.is_clean(), "{:?}", walk.findings());
    assert_eq!(walk.report().entries, 300);
}

#[tokio::test]
async fn r40_lost_signatures_are_named() {
    let some = log_after(&["DELETE FROM head_signature WHERE size IN (120, 180, 360)"]).await.deep().await;
    assert_eq!(
        some.findings,
        [Defect::HeadsUnsigned { first: 2, last: 3 }, Defect::HeadsUnsigned { first: 6, last: 6 }]
    );
    let last = log_after(&["DELETE FROM head_signature WHERE size > 480"]).await.deep().await;
    assert_eq!(last.findings, [], "a process that was killed did not sign the last heads");
    let all = log_after(&["DELETE FROM head_signature"]).await.deep().await;
    assert_eq!(all.findings, [Defect::HeadsUnsigned { first: 1, last: 10 }]);
}

#[tokio::test]
async fn r38_a_damaged_cosignature_is_named() {
    let log = log_after(&[]).await;
    for head in log.store.heads(0, 100).await.unwrap() {
        for witness in [b"one", b"two"] {
            let (size, line) = (head.size, format!("seen {}", head.root).into());
            let cosignature = Cosignature { size, witness: witness.to_vec(), at: 7, line };
            log.store.keep_cosignature(&cosignature).await.unwrap();
        }
    }
    let report = log.deep().await;
    assert_eq!((report.findings, report.signatures), (vec![], 30));
    by_hand(
        &log.path,
        &["UPDATE cosignature SET line = x'00' WHERE size = 180 AND witness = CAST('two' AS BLOB)"],
    )
    .await;
    let (size, witness) = (TreeSize::new(180), b"two".to_vec());
    let wrong = Defect::CosignatureWrong { size, witness, why: "it does not verify".into() };
    assert_eq!(log.deep().await.findings, [wrong]);
}
