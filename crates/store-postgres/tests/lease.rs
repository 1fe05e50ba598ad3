//! Who may try to sequence, when connections die and processes sleep.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use store::contract::ORIGIN;
use store::{Lifecycle, LogWriter};
use store_postgres::testing::Database;
use store_postgres::{Options, Postgres};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_session_dies_is_lost_and_free() {
    let database = Database::fresh().await;
    let (one, other) = (database.store().await, database.store().await);
    one.open(ORIGIN).await.unwrap();
    let mut lease = one.lease("one").await.unwrap().expect("the lease is free");
    assert!(other.lease("other").await.unwrap().is_none());
    database
        .run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
               WHERE datname = current_database() AND application_name = 'tabellion lease'",
        )
        .await;
    timeout(Duration::from_secs(10), lease.lost()).await.expect("the loss is noticed by the next ping");
    assert!(other.lease("other").await.unwrap().is_some());
}

/// R31: the holder sleeps, the server waits for its pings in vain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r31_a_holder_that_sleeps_loses_its_lease() {
    let database = Database::fresh().await;
    let other = database.store().await;
    other.open(ORIGIN).await.unwrap();
    let options = database.options();
    let (held, holding) = tokio::sync::oneshot::channel();
    let sleeper = std::thread::spawn(move || {
        // One thread for everything: while it is blocked, nothing pings.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Postgres::connect(&options).await.unwrap();
            let mut lease = store.lease("sleeper").await.unwrap().expect("the lease is free");
            held.send(()).unwrap();
            std::thread::sleep(Duration::from_secs(16));
            timeout(Duration::from_secs(10), lease.lost()).await.expect("the loss is noticed on waking");
        });
    });
    holding.await.unwrap();
    let begun = Instant::now();
    while other.lease("other").await.unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(15), "the sleeper still holds the lease");
        sleep(Duration::from_millis(500)).await;
    }
    sleeper.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_kept_while_its_holder_pings() {
    let database = Database::fresh().await;
    let store = database.store().await;
    store.open(ORIGIN).await.unwrap();
    let mut lease = store.lease("one").await.unwrap().expect("the lease is free");
    assert!(timeout(Duration::from_secs(13), lease.lost()).await.is_err(), "longer than the idle timeout");
    assert!(store.lease("other").await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_in_schemas_of_one_database_have_leases_of_their_own() {
    let database = Database::fresh().await;
    database.run("CREATE SCHEMA other").await;
    let in_other = Options::from_url(&format!("{}?options[search_path]=other", database.url())).unwrap();
    Postgres::migrate(&in_other).await.unwrap();
    let first = database.store().await;
    let second = Postgres::connect(&in_other).await.unwrap();
    first.open(ORIGIN).await.unwrap();
    second.open("another.example/log").await.unwrap();
    let _held = first.lease("one").await.unwrap().expect("the lease is free");
    assert!(second.lease("two").await.unwrap().is_some());
}
