//! Checkpoints: copying the write-ahead log into the database file, in parallel with the commits.

use std::path::PathBuf;
use std::sync::Arc;

use durable::DatabaseLocation;
use sqlite::Doubt;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::Mutex;

use crate::{connect, limits};

/// Connection that runs checkpoints. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Checkpointer {
    connection: Arc<Mutex<CheckpointConnection>>,
    path: PathBuf,
    location: Arc<DatabaseLocation>,
    doubt: Arc<Doubt>,
}

#[derive(Debug)]
enum CheckpointConnection {
    Open(SqliteConnection),
    /// The last checkpoint failed; the next one opens another connection.
    Failed,
    Closed,
}

impl Checkpointer {
    pub(crate) fn new(
        connection: SqliteConnection,
        path: PathBuf,
        location: Arc<DatabaseLocation>,
        doubt: Arc<Doubt>,
    ) -> Self {
        Self {
            connection: Arc::new(Mutex::new(CheckpointConnection::Open(connection))),
            path,
            location,
            doubt,
        }
    }

    /// Starts a checkpoint in the background if the log exceeds [`limits::CHECKPOINT_BYTES`] and none is running.
    pub(crate) fn start_if_due(&self) {
        if self.location.wal_bytes() <= limits::CHECKPOINT_BYTES {
            return;
        }
        let Ok(mut connection) = Arc::clone(&self.connection).try_lock_owned() else { return };
        let this = self.clone();
        tokio::spawn(async move { this.copy_once(&mut connection).await });
    }

    async fn copy_once(&self, state: &mut CheckpointConnection) {
        let connection = match std::mem::replace(state, CheckpointConnection::Failed) {
            CheckpointConnection::Open(connection) => Ok(connection),
            CheckpointConnection::Failed => connect::checkpointer(&self.path).await,
            CheckpointConnection::Closed => {
                *state = CheckpointConnection::Closed;
                return;
            }
        };
        match connection {
            Ok(mut connection) => match copy(&mut connection, &self.doubt).await {
                true => *state = CheckpointConnection::Open(connection),
                false => drop(connection.close().await),
            },
            Err(error) => {
                tracing::error!(%error, "the write-ahead log could not be copied into the database")
            }
        }
    }

    /// Returns whether the write-ahead log exceeds [`limits::WAL_BYTES`], so that the writer has to wait for a
    /// checkpoint.
    pub(crate) fn must_wait(&self) -> bool {
        self.location.wal_bytes() > limits::WAL_BYTES
    }

    pub(crate) async fn close(&self) {
        let mut state = self.connection.lock().await;
        if let CheckpointConnection::Open(connection) =
            std::mem::replace(&mut *state, CheckpointConnection::Closed)
        {
            // The next process that opens the file copies the rest.
            let _ = connection.close().await;
        }
    }
}

/// Runs a passive checkpoint, which waits for no reader and delays no commit. A failure does not undo a commit,
/// which is in the write-ahead log; the connection must then be closed.
pub(crate) async fn copy(connection: &mut SqliteConnection, doubt: &Doubt) -> bool {
    match sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").fetch_all(connection).await {
        Ok(_) => true,
        Err(error) => {
            tracing::error!(%error, "the write-ahead log could not be copied into the database");
            doubt.note(&error);
            false
        }
    }
}
