//! The connection that commits is cut, killed or silenced: no batch is lost, doubled or forked.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use merkle::LeafIndex;
use sqlx::Connection;
use store::contract::{Appender, ORIGIN, entry};
use store::{
    Batch, Collateral, CommitError, InboxItem, LogReader, LogStore, LogWriter, NewEntry, StorageFault,
    StoreError,
};
use store_postgres::Postgres;
use store_postgres::testing::Database;

use support::proxy::{Fault, Proxy};
use support::server::Server;

/// The message that asks for the insertion of collateral, counted from BEGIN: after the statement with all other rows.
const COLLATERAL: u32 = 3;

/// A log of one entry, behind a wire that can be cut.
struct Log {
    database: Database,
    proxy: Proxy,
    store: Arc<dyn LogStore>,
    appender: Appender,
}

impl Log {
    async fn new() -> Self {
        let database = Database::fresh().await;
        let proxy = Proxy::before(database.url()).await;
        let options = store_postgres::Options::from_url(&proxy.url).unwrap();
        let options = options.with_commit_timeout(Duration::from_secs(4));
        let store: Arc<dyn LogStore> = Arc::new(Postgres::connect(&options).await.unwrap());
        let appender = Appender::with(Arc::clone(&store), 1).await;
        Self { database, proxy, store, appender }
    }

    /// The next batch: two entries, one of them with collateral, which has a statement of its own.
    fn next_batch(&self) -> Batch {
        let next = self.appender.leaves().len() as u64;
        let collateral = vec![Collateral { kind: 1, bytes: Bytes::from_static(b"chain") }];
        self.appender.batch(vec![NewEntry { collateral, ..entry(next) }, entry(next + 1)])
    }

    /// Does what a sequencer does after a commit of unknown outcome; answers whether it had happened.
    async fn settle(&mut self, batch: &Batch) -> bool {
        let shown = self.store.take_over("settling").await.unwrap();
        assert_eq!(shown.epoch, batch.from.epoch + 1);
        self.appender.settle(batch, shown)
    }

    /// The same entries again, under the new epoch.
    async fn send_again(&mut self, batch: Batch) {
        let again = self.appender.batch(batch.entries);
        self.appender.commit(&again).await.unwrap();
    }

    /// I2, I5, I6: each entry is there, once, where it should be, for somebody who comes directly.
    async fn expect_whole(&self) {
        let direct = self.database.store().await;
        assert_eq!(direct.open(ORIGIN).await.unwrap(), *self.appender.head());
        let entries = direct.entries(LeafIndex::new(0), 1000).await.unwrap();
        let leaves: Vec<_> = entries.iter().map(|entry| entry.digest.leaf_hash()).collect();
        assert_eq!(leaves, self.appender.leaves());
        let heads = direct.heads(0, 1000).await.unwrap();
        assert_eq!(heads.last().map(|head| head.root), Some(self.appender.head().root()));
        assert_eq!(self.database.ask("SELECT count(*)::text FROM seen").await, leaves.len().to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r19_a_server_process_that_dies_at_any_statement_loses_and_doubles_nothing() {
    let mut log = Log::new().await;
    for statement in 1.. {
        assert!(statement < 100, "a batch is a constant number of messages");
        let batch = log.next_batch();
        log.proxy.fail(Fault::Termination(statement));
        let outcome = log.appender.commit(&batch).await;
        let was_spared = log.proxy.spared();
        match outcome {
            // A process that dies at BEGIN is replaced without a word.
            Ok(()) => assert!(was_spared || statement == 1, "at statement {statement}"),
            Err(CommitError::NotCommitted(_)) => {
                let shown = log.store.head().await.unwrap();
                assert_eq!(shown, *log.appender.head(), "nothing was changed at statement {statement}");
                log.send_again(batch).await;
            }
            Err(CommitError::Unknown(_)) => {
                let happened = log.settle(&batch).await;
                assert!(!happened, "the process was dead before it read COMMIT");
                log.send_again(batch).await;
            }
            Err(other) => panic!("at statement {statement}: {other}"),
        }
        log.expect_whole().await;
        if was_spared {
            assert!(statement > 4, "the faults reached all statements");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r20_a_commit_that_never_reached_the_server_is_unknown_until_a_take_over() {
    let mut log = Log::new().await;
    let batch = log.next_batch();
    log.proxy.fail(Fault::CommitLost);
    expect_unknown(log.appender.commit(&batch).await);
    assert!(!log.settle(&batch).await);
    log.send_again(batch).await;
    log.expect_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r20_a_commit_whose_answer_was_lost_is_unknown_until_a_take_over() {
    for fault in [Fault::AnswerLost, Fault::AnswerWithheld, Fault::Warning] {
        let mut log = Log::new().await;
        let batch = log.next_batch();
        log.proxy.fail(fault);
        expect_unknown(log.appender.commit(&batch).await);
        assert!(log.settle(&batch).await, "{fault:?}");
        log.appender.append(1).await;
        log.expect_whole().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_commit_of_unknown_outcome_the_old_epoch_commits_nothing() {
    for fault in [Fault::CommitLost, Fault::AnswerLost] {
        let mut log = Log::new().await;
        let batch = log.next_batch();
        log.proxy.fail(fault);
        expect_unknown(log.appender.commit(&batch).await);
        log.settle(&batch).await;
        let late = log.database.store().await.commit(&batch).await;
        assert!(matches!(late, Err(CommitError::Fenced)), "{late:?}");
        log.expect_whole().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r17_a_server_that_crashes_under_load_keeps_what_it_acknowledged() {
    let server = Arc::new(Server::start(&[]));
    let options = store_postgres::Options::from_url(&server.url).unwrap();
    Postgres::migrate(&options).await.unwrap();
    let store: Arc<dyn LogStore> = Arc::new(Postgres::connect(&options).await.unwrap());
    let mut appender = Appender::new(Arc::clone(&store)).await;
    for crash in 1..=3 {
        let crashing = tokio::task::spawn_blocking({
            let server = Arc::clone(&server);
            move || {
                std::thread::sleep(Duration::from_millis(100 * crash));
                server.crash();
            }
        });
        while !crashing.is_finished() {
            let next = appender.leaves().len() as u64;
            let batch = appender.batch(vec![entry(next), entry(next + 1)]);
            match appender.commit(&batch).await {
                Ok(()) => {}
                Err(CommitError::NotCommitted(StoreError::Unavailable(_))) => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(CommitError::Unknown(_)) => {
                    appender.settle(&batch, patiently(|| store.take_over("settling")).await);
                }
                Err(other) => panic!("{other}"),
            }
        }
        crashing.await.unwrap();
        let head = patiently(|| store.head()).await;
        assert_eq!(head, *appender.head(), "after crash {crash}");
        let entries = patiently(|| store.entries(LeafIndex::new(0), 100_000)).await;
        let leaves: Vec<_> = entries.iter().map(|entry| entry.digest.leaf_hash()).collect();
        assert_eq!(leaves, appender.leaves(), "after crash {crash}");
    }
}

/// Ends all sessions of the log.
const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                             WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// Asks until the server is back.
async fn patiently<T, A>(ask: impl Fn() -> A) -> T
where
    A: Future<Output = Result<T, StoreError>>,
{
    for _ in 0..500 {
        match ask().await {
            Ok(answer) => return answer,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the server does not come back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r17_a_session_that_died_between_batches_is_replaced() {
    let mut log = Log::new().await;
    log.database.run(END_SESSIONS).await;
    // A session that was idle for so long is tried before a batch is sent.
    tokio::time::sleep(Duration::from_millis(100)).await;
    log.appender.append(2).await;
    log.expect_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_dies_while_a_batch_is_sent_leaves_an_outcome_to_settle() {
    let mut log = Log::new().await;
    log.appender.append(1).await;
    log.database.run(END_SESSIONS).await;
    let batch = log.next_batch();
    match log.appender.commit(&batch).await {
        Err(CommitError::Unknown(_)) => {
            if !log.settle(&batch).await {
                log.send_again(batch).await;
            }
        }
        outcome => outcome.expect("the session was tried first"),
    }
    log.expect_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_goes_away_leaves_no_transaction_behind() {
    let mut log = Log::new().await;
    let batch = log.next_batch();
    log.proxy.fail(Fault::AnswerWithheld);
    tokio::select! {
        outcome = log.store.commit(&batch) => panic!("the answer is withheld: {outcome:?}"),
        () = log.proxy.met() => {}
    }
    if !log.settle(&batch).await {
        log.send_again(batch).await;
    }
    log.appender.append(1).await;
    log.expect_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r31_a_writer_that_stops_in_mid_transaction_is_taken_over_and_fenced() {
    // Between two statements the server's own timeout ends it; within one it knows of none.
    // Before that statement the head row is locked.
    for fault in [Fault::Silence(COLLATERAL), Fault::SilenceWithin(COLLATERAL)] {
        let mut log = Log::new().await;
        let batch = log.next_batch();
        log.proxy.fail(fault);
        let (store, stopped) = (Arc::clone(&log.store), batch.clone());
        let stopped = tokio::spawn(async move { store.commit(&stopped).await });
        log.proxy.met().await;
        assert!(!log.settle(&batch).await, "{fault:?}");
        let outcome = stopped.await.unwrap();
        assert!(matches!(outcome, Err(CommitError::NotCommitted(_))), "{fault:?}: {outcome:?}");
        assert!(matches!(log.store.commit(&batch).await, Err(CommitError::Fenced)), "{fault:?}");
        log.send_again(batch).await;
        log.expect_whole().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r25_a_lock_on_the_head_row_ends_in_an_error_and_not_in_waiting() {
    let mut log = Log::new().await;
    let mut session = log.database.sequencing_session().await;
    let mut holder = session.begin().await.unwrap();
    sqlx::query("SELECT FROM log FOR UPDATE").execute(&mut *holder).await.unwrap();
    sqlx::query("SET LOCAL idle_in_transaction_session_timeout = 0").execute(&mut *holder).await.unwrap();
    let batch = log.next_batch();
    let outcome = log.appender.commit(&batch).await;
    assert!(matches!(outcome, Err(CommitError::NotCommitted(StoreError::Unavailable(_)))), "{outcome:?}");
    assert_eq!(log.store.head().await.unwrap(), *log.appender.head(), "reads go on");
    drop(holder);
    drop(session);
    log.send_again(batch).await;
    log.expect_whole().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r26_serialization_failures_and_deadlocks_are_tried_again() {
    let mut log = Log::new().await;
    log.database
        .run(
            "CREATE FUNCTION fail_often() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               IF random() < 0.3 THEN
                 RAISE EXCEPTION 'forced' USING ERRCODE = CASE WHEN random() < 0.5 THEN '40001' ELSE '40P01' END;
               END IF;
               RETURN NEW;
             END $$;
             CREATE TRIGGER fail_often BEFORE INSERT ON batch FOR EACH ROW EXECUTE FUNCTION fail_often();",
        )
        .await;
    let mut given_up = 0;
    for _ in 0..40 {
        let batch = log.next_batch();
        match log.appender.commit(&batch).await {
            Ok(()) => {}
            Err(CommitError::NotCommitted(StoreError::Unavailable(_))) => given_up += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(given_up < 10, "{given_up} of 40 batches failed, where 1 in 37 should");
    log.expect_whole().await;
}

fn expect_unknown(outcome: Result<(), CommitError>) {
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
}

/// R25: whoever reads the log cannot keep the sequencer from its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r25_reads_that_hold_every_connection_keep_no_sequencer_waiting() {
    let database = Database::fresh().await;
    let store: Arc<dyn LogStore> = Arc::new(database.store().await);
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    let sequencing = store.for_sequencing().unwrap();
    let mut locker = database.sequencing_session().await;
    let mut lock = locker.begin().await.unwrap();
    sqlx::query("LOCK TABLE collateral IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let reads: Vec<_> = (0..2 * store_postgres::MAX_CONNECTIONS)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.collateral(LeafIndex::new(0)).await })
        })
        .collect();
    let waiting =
        "SELECT count(*)::text FROM pg_locks WHERE NOT granted AND relation = 'collateral'::regclass";
    while database.ask(waiting).await != store_postgres::MAX_CONNECTIONS.to_string() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let soon = Duration::from_secs(2);
    assert!(tokio::time::timeout(soon, store.head()).await.is_err(), "every connection for reads is taken");
    let found = tokio::time::timeout(soon, sequencing.find(&[entry(0).digest])).await;
    assert!(found.unwrap().unwrap()[0].is_some());
    lock.rollback().await.unwrap();
    for read in reads {
        // Some gave up waiting for a connection or for the lock.
        let _ = read.await.unwrap();
    }
    appender.append(1).await;
    assert_eq!(sequencing.head().await.unwrap(), *appender.head());
}

/// The error of a batch in a session that begins with a bad value of this setting. Once the setting is reset, the same store
/// commits the batch: in another session, as each keeps the settings with which it began.
async fn error_until_reset(setting: &str, value: &str) -> CommitError {
    let database = Database::fresh().await;
    let appender = Appender::with(Arc::new(database.store().await), 1).await;
    let batch = appender.batch(vec![entry(1)]);
    let store = database.store().await;
    database.alter(&format!("SET {setting} = {value}")).await;
    let error = store.commit(&batch).await.unwrap_err();
    database.alter(&format!("RESET {setting}")).await;
    store.commit(&batch).await.unwrap();
    error
}

#[tokio::test]
async fn r13_a_batch_is_committed_after_the_database_was_read_only_for_new_sessions() {
    match error_until_reset("default_transaction_read_only", "on").await {
        CommitError::NotCommitted(StoreError::Storage(StorageFault::ReadOnly, _)) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn r24_no_batch_is_committed_in_a_session_that_began_without_synchronous_commit() {
    match error_until_reset("synchronous_commit", "off").await {
        CommitError::NotCommitted(StoreError::Refused(why)) => {
            assert!(why.starts_with("synchronous_commit is off"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

/// As on a standby server, or with a login that may only read.
#[tokio::test]
async fn a_log_is_opened_for_reads_in_a_database_that_takes_no_writes() {
    let database = Database::fresh().await;
    let appender = Appender::with(Arc::new(database.store().await), 1).await;
    database.alter("SET default_transaction_read_only = on").await;
    let reader = Postgres::connect_read_only(&database.options()).await.unwrap();
    assert_eq!(reader.open(ORIGIN).await.unwrap(), *appender.head());
    match database.store().await.open(ORIGIN).await {
        Err(StoreError::Storage(StorageFault::ReadOnly, _)) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_database_without_a_log_is_not_opened_for_reads() {
    let database = Database::fresh().await;
    let reader = Postgres::connect_read_only(&database.options()).await.unwrap();
    let outcome = reader.open(ORIGIN).await;
    assert!(matches!(outcome, Err(StoreError::NoLog(_))), "{outcome:?}");
}

#[tokio::test]
async fn r11_r13_the_server_says_how_its_storage_fails_and_the_next_try_succeeds() {
    let database = Database::fresh().await;
    let store: Arc<dyn LogStore> = Arc::new(database.store().await);
    let mut appender = Appender::with(Arc::clone(&store), 1).await;
    for (code, fault) in
        [("53100", StorageFault::Full), ("58030", StorageFault::Io), ("25006", StorageFault::ReadOnly)]
    {
        let raise = format!(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN RAISE EXCEPTION 'it fails' USING ERRCODE = '{code}'; END $$;
             CREATE TRIGGER failing BEFORE INSERT ON inbox EXECUTE FUNCTION fail();
             CREATE TRIGGER failing BEFORE INSERT ON batch EXECUTE FUNCTION fail();"
        );
        database.run(&raise).await;
        let item = InboxItem { digest: entry(900).digest, submission: vec![1].into() };
        match store.enqueue(&item).await {
            Err(StoreError::Storage(found, _)) => assert_eq!(found, fault),
            other => panic!("{code}: {other:?}"),
        }
        let next = appender.leaves().len() as u64;
        let batch = appender.batch(vec![entry(next)]);
        match appender.commit(&batch).await {
            Err(CommitError::NotCommitted(StoreError::Storage(found, _))) => assert_eq!(found, fault),
            other => panic!("{code}: {other:?}"),
        }
        database.run("DROP FUNCTION fail() CASCADE").await;
        appender.commit(&batch).await.unwrap();
        store.enqueue(&item).await.unwrap();
        store.refuse(&item.digest, "the end of this round").await.unwrap();
    }
}
