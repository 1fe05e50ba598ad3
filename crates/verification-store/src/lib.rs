//! The durable state of a verification service, in one SQLite file that one process has at a time.
//!
//! Promises: a change is on the disk before its function returns `Ok`. A position of a chain has at most one statement, a
//! client's request about an agent one job, and a job one statement; the transaction that stores a statement also moves its chain, ends
//! its job, and puts it into the outbox. After an error of a write, its outcome is unknown until the next read.
//!
//! | module | content |
//! |---|---|
//! | `chains` | ends of receipt chains, and the transaction that extends one |
//! | `jobs` | requests of clients and their results |
//! | `outbox` | statements that wait for the log |
//! | `connection` | the connection and its recovery after a failed write |
//!
//! Not here: signing, the order of jobs, and delivery.

mod chains;
mod connection;
mod error;
mod jobs;
pub mod limits;
mod model;
mod outbox;
mod rows;

use std::path::Path;
use std::sync::Arc;

use connection::Database;
use operation_times::OperationObserver;

pub use connection::WRITE;
pub use error::StoreError;
pub use model::{
    ChainEnd, DeliveredEntry, JobState, NewJob, NewReceipt, StoredJob, StoredReceipt, WaitingStatement,
};

/// The state of a verification service.
#[derive(Debug)]
pub struct VerificationStore {
    database: Database,
}

impl VerificationStore {
    /// Opens the database in this file, and creates it if there is none. Its folder must exist.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has the database; other errors if the file cannot be used.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Database::open(path).await? })
    }

    /// Reports the duration of each operation to `observer` from now on.
    pub fn observed_by(self, observer: Arc<dyn OperationObserver>) -> Self {
        Self { database: self.database.observed_by(observer) }
    }

    /// Waits for the running statement and closes the file.
    pub async fn close(&self) {
        self.database.close().await;
    }
}
