//! Tests of faults that must be caused within the crate: a full disk, a connection in doubt.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use lookup_tree::limits::LEVEL_0_LEAVES;
use merkle::{LeafIndex, TreeSize};
use sqlx::{AssertSqlSafe, Row};
use store::contract::{Appender, Indexer, entry};
use store::fsck::{Fsck, NoFacts};
use store::lookup::{Build, EntryTerms, ListedValue, LookupIndex, ValueBlock};
use store::{
    Collateral, CommitError, Custody, GuardKey, HeadSignature, Inbox, InboxItem, LogReader, LogWriter,
    NewEntry, ServerChecks, SignatureKind, StorageFault, StoreError, TILE_PARTS,
};

use crate::{CHECKPOINT_BYTES, Settings, Sqlite, transaction};

async fn store(folder: &tempfile::TempDir, allow_filesystem: bool) -> Sqlite {
    let settings = Settings { allow_filesystem, ..Settings::new(folder.path().join("log.db")) };
    Sqlite::open(settings).await.unwrap()
}

async fn run(store: &Sqlite, sql: String) {
    sqlx::query(AssertSqlSafe(sql)).execute(store.write.pool()).await.unwrap();
}

fn large(n: u64) -> NewEntry {
    let statement = bytes::Bytes::from(vec![n as u8; 100_000]);
    NewEntry { digest: merkle::EntryDigest::of(&statement), statement, ..entry(n) }
}

#[tokio::test]
async fn the_database_and_the_files_beside_it_are_made_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let made: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        let databases = made.iter().filter(|path| !path.to_string_lossy().ends_with(".lock"));
        for path in databases {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
        assert!(made.contains(&folder.path().join("log.db")), "{made:?}");
        drop(store);
    }
}

/// Free space in kB when the disk is full, so that another write fails each time: that of a row, of COMMIT, or of
/// the commit after it.
const LEFT: [u64; 7] = [0, 4, 12, 28, 60, 120, 220];

#[test]
fn r11_a_full_disk_refuses_the_batch_and_the_same_batch_is_committed_once_there_is_space() {
    alone_on_a_small_disk(
        "tests::r11_a_full_disk_refuses_the_batch_and_the_same_batch_is_committed_once_there_is_space",
        |disk| async move {
            for allow_filesystem in [false, true] {
                for left in LEFT {
                    fill_and_give_back(&disk, allow_filesystem, left << 10).await;
                }
            }
        },
    );
}

async fn fill_and_give_back(disk: &Path, allow_filesystem: bool, left: u64) {
    let folder = tempfile::tempdir_in(disk).unwrap();
    let store = store(&folder, allow_filesystem).await;
    let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
    let filler = fill(disk, left);
    let mut next = 3;
    let batch = loop {
        let batch = appender.batch(vec![entry(next), large(next + 1000)]);
        match appender.commit(&batch).await {
            Ok(()) => next += 1,
            Err(CommitError::NotCommitted(StoreError::Storage(StorageFault::Full, _))) => break batch,
            Err(CommitError::Unknown(text)) if text.contains("full") => break batch,
            Err(other) => panic!("{other:?}"),
        }
    };
    for _ in 0..3 {
        let item = InboxItem { digest: entry(900).digest, submission: vec![1; 400_000].into() };
        let kept = store.enqueue(&item).await;
        assert!(matches!(kept, Err(StoreError::Storage(StorageFault::Full, _))), "{kept:?}");
        match store.take_over("again").await {
            Ok(head) => assert!(!appender.settle(&batch, head), "it did not happen"),
            Err(error) => assert!(matches!(error, StoreError::Storage(StorageFault::Full, _)), "{error:?}"),
        }
        assert_eq!(store.head().await.unwrap().size(), appender.head().size(), "reads go on");
        assert!(store.find(&[entry(next).digest]).await.unwrap()[0].is_none());
    }
    std::fs::remove_file(filler).unwrap();
    appender.take_over().await;
    let batch = appender.batch(batch.entries);
    appender.commit(&batch).await.unwrap();
    assert!(store.progress(&entry(900).digest).await.unwrap().is_none(), "what was refused does not appear");
    assert!(Fsck::new(&store, &NoFacts).deep().await.unwrap().is_clean());
    store.close().await;
}

/// Makes a file that leaves this many bytes of the disk free.
fn fill(disk: &Path, left: u64) -> PathBuf {
    let path = disk.join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    let page = vec![1; 4096];
    while file.write_all(&page).is_ok() {}
    let full = file.metadata().unwrap().len();
    file.set_len(full - left).unwrap();
    path
}

/// Environment variable with the folder of a small disk, for the child process that has it.
const DISK: &str = "TABELLION_TEST_SMALL_DISK";

/// Runs a test in a child process with a file system of 3 MB, which other processes do not see and which is
/// removed with the child.
fn alone_on_a_small_disk<F: Future<Output = ()>>(name: &str, test: impl FnOnce(PathBuf) -> F) {
    if let Ok(disk) = std::env::var(DISK) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(test(disk.into()));
    }
    let disk = tempfile::tempdir().unwrap();
    let run = format!(
        "mount -t tmpfs -o size=3m tmpfs '{}' && exec \"$0\" --exact {name} --nocapture",
        disk.path().display()
    );
    // Without --map-root-user, root keeps its rights over files of other users.
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .args((!rustix::process::geteuid().is_root()).then_some("--map-root-user"))
        .args(["sh", "-c", &run])
        .arg(std::env::current_exe().unwrap())
        .env(DISK, disk.path())
        .status();
    assert!(status.unwrap().success(), "{name} failed on a small disk");
}

#[tokio::test]
async fn nobody_writes_on_a_connection_whose_transaction_sqlite_ended_by_itself() {
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        let mut transaction = store.write.pool().begin_with("BEGIN IMMEDIATE").await.unwrap();
        sqlx::query("ROLLBACK").execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap_err();
        appender.append(1).await;
        store.check_durability().await.unwrap();
        assert_eq!(store.head().await.unwrap(), *appender.head());
    }
}

#[tokio::test]
async fn a_commit_whose_caller_is_gone_leaves_no_transaction_open() {
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        for n in 0..14 {
            let batch = appender.batch(vec![entry(1000 + n)]);
            let wait = async {
                for _ in 0..1 << n {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! { biased; _ = store.commit(&batch) => {}, () = wait => {} }
            let head = store.take_over("again").await.unwrap();
            appender.settle(&batch, head);
            appender.append_entries(vec![entry(2000 + n)]).await.unwrap();
        }
        assert!(Fsck::new(&store, &NoFacts).deep().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_script_whose_caller_is_gone_is_not_committed_by_the_next_one() {
    const SLOW: &str =
        "WITH RECURSIVE slow (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM slow WHERE n < 500000)
                        SELECT max(n) FROM slow";
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        let mut script = transaction::script();
        script.add("UPDATE log SET holder = 'gone'");
        script.add(SLOW);
        let cancelled = tokio::time::timeout(Duration::from_millis(10), store.write.commit(script)).await;
        assert!(cancelled.is_err(), "it ended in time");
        appender.append(1).await;
        let holder = sqlx::query_scalar::<_, String>("SELECT holder FROM log").fetch_one(store.write.pool());
        assert_eq!(holder.await.unwrap(), "");
    }
}

#[tokio::test]
async fn a_refused_batch_says_which_row_is_in_the_way() {
    for (row, why) in [
        ("batch VALUES (2, 99, zeroblob(32), 1, 1)", "beyond the head: .*batch.batch"),
        ("entry VALUES (3, zeroblob(32), 0, 'rule', '{}', NULL)", "beyond the head: .*entry.idx"),
        ("collateral VALUES (3, 2, x'00')", "collateral.idx"),
        ("tile VALUES (0, 0, 3, zeroblob(32))", "beyond the head: .*tile.level"),
        ("seen VALUES (KEY, 9)", "is in the log already"),
        ("guard VALUES (x'07', 9)", "guard of the batch is taken"),
        ("collateral VALUES (9, 9, x'00')", "no head of size 2"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, false).await;
        let appender = Appender::with(Arc::new(store.clone()), 3).await;
        let new = NewEntry {
            guards: vec![GuardKey(vec![7])],
            collateral: vec![Collateral { kind: 2, bytes: bytes::Bytes::from_static(b"more") }],
            ..entry(3)
        };
        let key: String = new.digest.as_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut batch = appender.batch(vec![new]);
        batch.signatures.extend([3, 2].map(signature));
        run(&store, format!("INSERT INTO {}", row.replace("KEY", &format!("x'{key}'")))).await;
        let refused = store.commit(&batch).await.unwrap_err().to_string();
        assert!(why.split(".*").all(|part| refused.contains(part)), "{row}: {refused}");
        assert_eq!(store.head().await.unwrap(), *appender.head(), "{row}");
        store.take_over("other").await.unwrap();
        assert!(
            matches!(store.commit(&batch).await, Err(CommitError::Fenced)),
            "{row}: the head comes first"
        );
    }
}

fn signature(size: u64) -> HeadSignature {
    let (size, kind) = (TreeSize::new(size), SignatureKind::Receipt);
    HeadSignature { size, kind, kid: vec![1], bytes: bytes::Bytes::from_static(b"signature") }
}

#[tokio::test]
async fn a_tile_that_many_batches_filled_becomes_one_row() {
    for (before, rows) in [(TILE_PARTS - 1, TILE_PARTS), (TILE_PARTS, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, false).await;
        let mut appender = Appender::new(Arc::new(store.clone())).await;
        for _ in 0..before {
            appender.append(1).await;
        }
        appender.append(300).await;
        let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tile WHERE level = 0 AND number = 0");
        assert_eq!(count.fetch_one(store.write.pool()).await.unwrap(), rows as i64);
        assert!(Fsck::new(&store, &NoFacts).deep().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn r07_after_a_flush_that_failed_the_write_ahead_log_is_flushed_anew_and_the_log_goes_on() {
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        let settled: i32 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(store.write.pool()).await.unwrap();
        store.write.note(&StoreError::Storage(StorageFault::Io, "disk I/O error".into()));
        appender.append(1).await;
        let version = sqlx::query_scalar::<_, i32>("PRAGMA user_version").fetch_one(store.write.pool());
        assert_eq!(version.await.unwrap(), settled + 1);
        assert!(Fsck::new(&store, &NoFacts).deep().await.unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_database_that_was_closed_is_complete_in_its_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    let appender = Appender::with(Arc::new(store.clone()), 300).await;
    store.close().await;
    let path = |name: &str| folder.path().join(name);
    assert!(!path("log.db-wal").exists());
    std::fs::copy(path("log.db"), path("copy.db")).unwrap();
    let copy = Sqlite::open(Settings::new(path("copy.db"))).await.unwrap();
    assert_eq!(copy.head().await.unwrap(), *appender.head());
    assert!(Fsck::new(&copy, &NoFacts).deep().await.unwrap().is_clean());
}

#[tokio::test]
async fn the_write_ahead_log_is_copied_before_it_grows_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    let mut appender = Appender::new(Arc::new(store.clone())).await;
    for n in 0..8 {
        appender.append_entries((n * 60..(n + 1) * 60).map(large_and_new).collect()).await.unwrap();
    }
    let length =
        |suffix: &str| std::fs::metadata(folder.path().join(format!("log.db{suffix}"))).unwrap().len();
    assert!(length("-wal") < 2 * CHECKPOINT_BYTES, "{}", length("-wal"));
    assert!(length("") > CHECKPOINT_BYTES, "{}", length(""));
}

fn large_and_new(n: u64) -> NewEntry {
    let mut bytes = vec![0; 100_000];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    let statement = bytes::Bytes::from(bytes);
    NewEntry { digest: merkle::EntryDigest::of(&statement), statement, ..entry(n) }
}

#[tokio::test]
async fn settings_that_would_forget_a_commit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    store.check_durability().await.unwrap();
    run(&store, "PRAGMA synchronous = NORMAL".into()).await;
    match store.check_durability().await {
        Err(StoreError::Refused(text)) => assert!(text.contains("synchronous"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_was_erased_is_in_none_of_the_files_any_more() {
    const SECRET: &[u8] = b"what nobody may read any more";
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        let mut appender = Appender::with(Arc::new(store.clone()), 3).await;
        let statement = bytes::Bytes::from([SECRET, &vec![7; 20_000]].concat());
        let secret = NewEntry {
            digest: merkle::EntryDigest::of(&statement),
            statement,
            facts: format!("{{\"said\":\"{}\"}}", String::from_utf8_lossy(SECRET)),
            collateral: vec![Collateral { kind: 2, bytes: bytes::Bytes::from_static(SECRET) }],
            ..entry(3)
        };
        appender.append_entries(vec![secret]).await.unwrap();
        appender.append(0).await;
        assert!(is_in_a_file(&folder, SECRET), "the search finds what is there");
        store.erase(&[LeafIndex::new(3)]).await.unwrap();
        assert!(!is_in_a_file(&folder, SECRET));
    }
}

#[tokio::test]
async fn an_erased_value_is_in_none_of_the_files_once_its_run_is_written_anew() {
    const SECRET: &str = "what nobody may search for any more";
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        Appender::with(Arc::new(store.clone()), LEVEL_0_LEAVES).await;
        let mut index = Indexer::of(Arc::new(store.clone())).await;
        index.add_up_to(LEVEL_0_LEAVES, |leaf| {
            let mut terms = EntryTerms::default();
            terms.add_listed(1, if leaf == 7 { SECRET } else { "any" }.to_owned());
            terms
        });
        index.settle().await;
        assert!(is_in_a_file(&folder, SECRET.as_bytes()), "the search finds what is there");
        store.erase(&[LeafIndex::new(7)]).await.unwrap();
        index.settle().await;
        assert!(!is_in_a_file(&folder, SECRET.as_bytes()));
    }
}

#[tokio::test]
async fn the_values_of_a_deleted_run_are_in_none_of_the_files_although_others_were_written_beside_it() {
    for allow_filesystem in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder, allow_filesystem).await;
        Appender::with(Arc::new(store.clone()), 1).await;
        let mut builds = Vec::new();
        for _ in 0..8 {
            builds.push(store.begin_run().await.unwrap());
        }
        let secret = |build: &Build| format!("run {}, value ", build.get());
        for n in 0..30 {
            for build in &builds {
                let rest = if n % 3 == 0 { 440 } else { 5 };
                let value = format!("{}{n:03}{}", secret(build), ".".repeat(rest));
                let block = ValueBlock { first: ListedValue { kind: 1, value }, bytes: vec![0; 6_000] };
                store.add_values(*build, &[block]).await.unwrap();
            }
        }
        for pair in builds.windows(2) {
            let secret = secret(&pair[0]);
            assert!(is_in_a_file(&folder, secret.as_bytes()), "the search finds what is there");
            while store.sweep(pair[1], 256).await.unwrap() {}
            assert!(!is_in_a_file(&folder, secret.as_bytes()), "{secret}");
        }
    }
}

fn is_in_a_file(folder: &tempfile::TempDir, what: &[u8]) -> bool {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.is_file()).any(|file| {
        let bytes = std::fs::read(file).unwrap();
        bytes.windows(what.len()).any(|window| window == what)
    })
}

#[tokio::test]
async fn searches_read_the_index_in_its_order_and_sort_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    for query in [
        "SELECT first, bytes FROM index_block WHERE build = 1 AND first >= x'07' AND first <= x'08' ORDER BY first LIMIT 3",
        "SELECT first FROM index_block WHERE build = 1 AND first <= x'08' ORDER BY first DESC LIMIT 3",
        "SELECT max(first) FROM index_block WHERE build = 1 AND first <= x'08'",
        "SELECT prefix, bytes FROM index_node WHERE build = 1 AND prefix >= x'07' ORDER BY prefix LIMIT 1",
        "SELECT first FROM index_value WHERE build = 1 AND (kind, first) <= (1, 'a') ORDER BY kind DESC, first DESC LIMIT 1",
        "SELECT first FROM index_value WHERE build = 1 AND (kind, first) > (1, 'a') ORDER BY kind, first LIMIT 3",
        "SELECT build, state FROM index_run WHERE state >= 2 ORDER BY state DESC LIMIT 1",
    ] {
        let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}")));
        let rows = rows.fetch_all(store.write.pool()).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(plan.iter().all(|step| step.starts_with("SEARCH index_")), "{query}: {plan:?}");
    }
}

#[tokio::test]
async fn a_frozen_log_stays_frozen_and_only_an_empty_one_is_filled() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder, false).await;
    Appender::with(Arc::new(store.clone()), 3).await;
    let refused = async |change: &str| {
        let update = sqlx::query(AssertSqlSafe(format!("UPDATE log SET {change}")));
        update.execute(store.write.pool()).await.unwrap_err().to_string()
    };
    assert!(refused("filling = zeroblob(32)").await.contains("only an empty log can be filled"));
    run(&store, "UPDATE log SET frozen_at = 5".into()).await;
    for change in ["frozen_at = NULL", "frozen_at = 6", "epoch = epoch + 1", "holder = 'somebody'"] {
        assert!(refused(change).await.contains("it is frozen"), "{change}");
    }
}
