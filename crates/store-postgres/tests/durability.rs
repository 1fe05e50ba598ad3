//! R24: a server that would forget what it acknowledged is refused.
#![allow(clippy::unwrap_used)]

mod support;

use store::{ServerChecks, StoreError};
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

async fn expect_refused(store: Postgres, setting: &str) {
    match store.check_durability().await {
        Err(StoreError::Refused(why)) => assert!(why.starts_with(&format!("{setting} is off")), "{why}"),
        other => panic!("{setting}: {other:?}"),
    }
}
