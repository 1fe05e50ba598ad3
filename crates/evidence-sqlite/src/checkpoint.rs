//! Copying the write-ahead log into the database file, beside the commits and not before them.

use std::sync::Arc;

use durable::Place;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::Mutex;

use crate::{Health, limits};

/// Clones share the connection.
#[derive(Clone, Debug)]
pub(crate) struct Checkpointer {
    connection: Arc<Mutex<Option<SqliteConnection>>>,
    place: Arc<Place>,
    health: Arc<Health>,
}

impl Checkpointer {
    pub(crate) fn new(connection: SqliteConnection, place: Arc<Place>, health: Arc<Health>) -> Self {
        Self { connection: Arc::new(Mutex::new(Some(connection))), place, health }
    }

    /// Copies in the background if there is enough to copy and nobody does it already.
    pub(crate) fn start_if_due(&self) {
        if self.place.wal_bytes() <= limits::CHECKPOINT_BYTES {
            return;
        }
        let Ok(mut connection) = Arc::clone(&self.connection).try_lock_owned() else { return };
        let health = Arc::clone(&self.health);
        tokio::spawn(async move {
            if let Some(connection) = connection.as_mut() {
                copy(connection, &health).await;
            }
        });
    }

    /// Whether the write-ahead log has become so long that the writer has to stand still for it.
    pub(crate) fn must_wait(&self) -> bool {
        self.place.wal_bytes() > limits::WAL_BYTES
    }

    pub(crate) async fn close(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            // What is not copied now is copied by whoever opens the file next.
            let _ = connection.close().await;
        }
    }
}

/// Passive: waits for no reader, and holds up no commit. A failure does not undo a commit, which is in the write-ahead
/// log; but it is the last one.
pub(crate) async fn copy(connection: &mut SqliteConnection, health: &Health) {
    if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").fetch_all(connection).await {
        tracing::error!(%error, "the write-ahead log could not be copied into the database");
        health.poison_if_in_doubt(&error);
    }
}
