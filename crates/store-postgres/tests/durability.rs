//! R24: a server that would forget what it acknowledged is refused.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use store::{LogStore, StoreError};
use store_postgres::testing::Database;
use store_postgres::{Options, Postgres};

#[tokio::test]
async fn r24_synchronous_commit_off_is_refused_wherever_it_was_set() {
    let database = Database::fresh().await;
    database.store().await.check_durability().await.unwrap();
    let name = database.ask("SELECT current_database()::text").await;
    for value in ["local", "remote_write", "on"] {
        database.run(&format!("ALTER DATABASE {name} SET synchronous_commit = {value}")).await;
        database.store().await.check_durability().await.unwrap();
    }
    database.run(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).await;
    expect_refused(database.store().await, "synchronous_commit").await;
}

#[tokio::test]
async fn r24_a_server_without_fsync_or_full_page_writes_is_refused() {
    for setting in ["fsync", "full_page_writes"] {
        let server = Server::start(&format!("{setting}=off"));
        let options = Options::from_url(&server.url).unwrap();
        Postgres::migrate(&options).await.unwrap();
        expect_refused(Postgres::connect(&options).await.unwrap(), setting).await;
    }
}

async fn expect_refused(store: Postgres, setting: &str) {
    match store.check_durability().await {
        Err(StoreError::Refused(why)) => assert!(why.starts_with(&format!("{setting} is off")), "{why}"),
        other => panic!("{setting}: {other:?}"),
    }
}

/// A server of its own, for settings that belong to the whole server.
struct Server {
    tool: PathBuf,
    data: tempfile::TempDir,
    url: String,
}

impl Server {
    fn start(setting: &str) -> Self {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/throwaway-postgres");
        let data = tempfile::tempdir().unwrap();
        // The server may run as another user, who has to get through.
        Command::new("chmod").arg("711").arg(data.path()).status().unwrap();
        let started =
            Command::new(&tool).arg("start").arg(data.path().join("it")).args(["-c", setting]).output();
        let started = started.unwrap();
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        let url = String::from_utf8(started.stdout).unwrap().trim().to_owned();
        Self { tool, data, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new(&self.tool).arg("stop").arg(self.data.path().join("it")).status();
    }
}
