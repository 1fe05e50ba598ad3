//! R24: a server that would forget what it acknowledged is refused, and what no standby may have is not promised.
#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use merkle::{LeafIndex, TreeSize};
use sqlx::{Connection, PgConnection};
use store::contract::{Appender, ORIGIN, entry};
use store::{
    CommitError, InboxItem, KeyAnnouncement, LogKey, LogStore, Progress, ServerChecks, State, StoreError,
};
use store_postgres::testing::Database;
use store_postgres::{Options, Postgres};

use support::proxy::Proxy;
use support::server::Server;

#[tokio::test]
async fn r24_synchronous_commit_off_is_refused_wherever_it_was_set() {
    let database = Database::fresh().await;
    let store = database.store().await;
    for value in ["local", "remote_write", "on"] {
        database.alter(&format!("SET synchronous_commit = {value}")).await;
        store.check_durability().await.unwrap();
    }
    database.alter("SET synchronous_commit = off").await;
    expect_refused(store, "synchronous_commit").await;
}

#[tokio::test]
async fn r24_a_server_without_fsync_or_full_page_writes_is_refused() {
    for setting in ["fsync", "full_page_writes"] {
        let server = Server::start(&[&format!("{setting}=off")]);
        let options = Options::from_url(&server.url).unwrap();
        Postgres::migrate(&options).await.unwrap();
        expect_refused(Postgres::connect(&options).await.unwrap(), setting).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_drops_the_settings_of_sessions_is_refused() {
    let database = Database::fresh().await;
    let pooler = Proxy::without_settings(database.url()).await;
    let options = Options::from_url(&pooler.url).unwrap();
    for outcome in [Postgres::migrate(&options).await, Postgres::connect(&options).await.map(drop)] {
        match outcome {
            Err(StoreError::Refused(why)) => assert!(why.contains("a connection pooler"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r24_what_perhaps_no_standby_has_is_not_promised_and_a_repetition_is_no_promise_either() {
    let server = Server::start(&[]);
    let store = new_log(&server).await;
    let appender = Appender::with(Arc::clone(&store), 2).await;
    store.keep_key(&LogKey::new(b"one".to_vec(), Bytes::from_static(b"1"), TreeSize::new(0))).await.unwrap();
    let replaces = b"one".to_vec();
    let two = KeyAnnouncement { kid: b"two".to_vec(), public: Bytes::from_static(b"2"), replaces, at: 1 };
    store.announce_key(&two).await.unwrap();

    require_standby(&server, "nobody").await;
    let operator = tokio::spawn(cancel_waits(PgConnection::connect(&server.url).await.unwrap()));
    let item = first_that_waits(&*store).await;
    expect_not_promised(store.enqueue(&item).await);
    assert_eq!(store.progress(&item.digest).await.unwrap(), Some(Progress::Pending));
    expect_not_promised(store.erase(&[LeafIndex::new(1)]).await);
    expect_not_promised(store.take_up_key(b"two", appender.head().epoch, 1).await);
    expect_not_promised(store.mark_compromised(b"one", TreeSize::new(1)).await);
    let mut batch = appender.batch(vec![]);
    batch.settled = vec![(item.digest, LeafIndex::new(1))];
    let outcome = store.commit(&batch).await;
    assert!(matches!(outcome, Err(CommitError::Unknown(_))), "{outcome:?}");
    assert_eq!(store.progress(&item.digest).await.unwrap(), Some(Progress::Registered(LeafIndex::new(1))));
    expect_not_promised(store.enqueue(&item).await);
    operator.abort();

    require_standby(&server, "").await;
    store.enqueue(&item).await.unwrap();
    assert_eq!(store.erase(&[LeafIndex::new(1)]).await.unwrap().erased, [LeafIndex::new(1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r24_a_freeze_that_perhaps_no_standby_has_is_not_promised_when_it_is_repeated_either() {
    let server = Server::start(&[]);
    let store = new_log(&server).await;
    store.open(ORIGIN).await.unwrap();

    require_standby(&server, "nobody").await;
    let operator = tokio::spawn(cancel_waits(PgConnection::connect(&server.url).await.unwrap()));
    first_that_waits(&*store).await;
    for _ in 0..2 {
        expect_not_promised(store.freeze("x", 1).await);
        assert_eq!(store.state().await.unwrap(), State::Frozen { at: 1 });
    }
    expect_not_promised(store.take_over("x").await);
    operator.abort();

    require_standby(&server, "").await;
    store.freeze("x", 1).await.unwrap();
    assert!(matches!(store.take_over("x").await, Err(StoreError::Frozen)));
}

async fn new_log(server: &Server) -> Arc<dyn LogStore> {
    let options = Options::from_url(&server.url).unwrap();
    Postgres::migrate(&options).await.unwrap();
    Arc::new(Postgres::connect(&options).await.unwrap())
}

/// Makes the server's commits wait for a standby of that name; with an empty one, for none.
async fn require_standby(server: &Server, name: &str) {
    let mut session = PgConnection::connect(&server.url).await.unwrap();
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
    sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut session).await.unwrap();
    sqlx::raw_sql("SELECT pg_reload_conf()").execute(&mut session).await.unwrap();
}

/// Cancels each wait for a standby, as an operator does whose standby is gone.
async fn cancel_waits(mut session: PgConnection) {
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    loop {
        sqlx::raw_sql(cancel).execute(&mut session).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Enqueues items until the server, which reads a new setting a moment later, waits for a standby. Returns the item for
/// which it did.
async fn first_that_waits(store: &dyn LogStore) -> InboxItem {
    for n in 100..2000 {
        let item = InboxItem { digest: entry(n).digest, submission: Bytes::from_static(b"submission") };
        match store.enqueue(&item).await {
            Ok(()) => tokio::time::sleep(Duration::from_millis(10)).await,
            outcome => {
                expect_not_promised(outcome);
                return item;
            }
        }
    }
    panic!("no commit is answered with a warning");
}

fn expect_not_promised<T: Debug>(outcome: Result<T, StoreError>) {
    match outcome {
        Err(StoreError::Unavailable(why)) => assert!(why.contains("answered with a warning"), "{why}"),
        other => panic!("{other:?}"),
    }
}

async fn expect_refused(store: Postgres, setting: &str) {
    match store.check_durability().await {
        Err(StoreError::Refused(why)) => assert!(why.starts_with(&format!("{setting} is off")), "{why}"),
        other => panic!("{setting}: {other:?}"),
    }
}
