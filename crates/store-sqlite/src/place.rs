//! Lease within the process that holds the lock file.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use durable::LocationError;
use store::{Lease, StorageFault, StoreError};

/// Maps an error of the lock file to [`StoreError`].
pub(crate) fn store_error(error: LocationError) -> StoreError {
    match error {
        LocationError::InUse(text) => StoreError::InUse(text),
        LocationError::FileSystem { .. } => StoreError::Refused(format!("{error}, or set allow_filesystem")),
        LocationError::ReadOnly(text) => StoreError::Storage(StorageFault::ReadOnly, text),
        LocationError::Full(text) => StoreError::Storage(StorageFault::Full, text),
        LocationError::Refused(text) => StoreError::Refused(text),
        LocationError::Unknown(text) => StoreError::Storage(StorageFault::Io, text),
    }
}

/// Lease within the process that holds the lock file.
#[derive(Debug, Default)]
pub(crate) struct LeaseFlag {
    taken: AtomicBool,
}

pub(crate) struct SqliteLease(Arc<LeaseFlag>);

impl LeaseFlag {
    pub(crate) fn take(flag: &Arc<Self>) -> Option<SqliteLease> {
        (!flag.taken.swap(true, Ordering::AcqRel)).then(|| SqliteLease(Arc::clone(flag)))
    }
}

#[async_trait]
impl Lease for SqliteLease {
    /// Never resolves: the process keeps the lock until it ends.
    async fn lost(&mut self) {
        pending().await
    }
}

impl Drop for SqliteLease {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}
