//! Usage counters per window of time, shared by all processes of a log.
//!
//! A counter can delay a decision or refuse to make one now; it is never part of a decision, and it may be lost:
//! after a crash of the database, or a restart of the process, counting begins again.
//!
//! Not here: the owner of a counter, the length of a window, and the limit (the service).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::StoreError;

/// Maximum length of a counter's name, in bytes.
pub const BUCKET_BYTES: usize = 512;

/// Usage counters, called buckets.
#[async_trait]
pub trait Quotas: Send + Sync + 'static {
    /// Takes up to `want` of the rest of `limit` in this bucket's window; returns the amount taken, from 0 to `want`.
    ///
    /// A bucket counts one window. A later window starts at zero, and a caller that still names an earlier one
    /// (because its clock is behind) takes from the later. A name of more than [`BUCKET_BYTES`] is
    /// [`StoreError::Refused`].
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError>;

    /// Removes the buckets whose window does not begin in `keep`; returns their number.
    async fn trim_quotas(&self, keep: Range<u64>) -> Result<u64, StoreError>;
}

/// Counters in memory, for a database that only one process uses.
#[derive(Debug, Default)]
pub struct Counters(Mutex<HashMap<String, Counter>>);

#[derive(Debug, Default)]
struct Counter {
    window: u64,
    used: u64,
}

impl Counters {
    /// Takes from a bucket as [`Quotas::take_quota`] does.
    pub fn take(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError> {
        check_bucket(bucket)?;
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counters.entry(bucket.to_owned()).or_default();
        if window > counter.window {
            *counter = Counter { window, used: 0 };
        }
        let granted = want.min(limit.saturating_sub(counter.used));
        counter.used += granted;
        Ok(granted)
    }

    /// Removes buckets as [`Quotas::trim_quotas`] does.
    pub fn trim(&self, keep: Range<u64>) -> u64 {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counters.len();
        counters.retain(|_, counter| keep.contains(&counter.window));
        (count - counters.len()) as u64
    }
}

/// Checks the name of a counter: at most [`BUCKET_BYTES`] bytes, without NUL.
pub fn check_bucket(bucket: &str) -> Result<(), StoreError> {
    if bucket.len() > BUCKET_BYTES || bucket.contains('\0') {
        return Err(StoreError::Refused(format!(
            "a quota's name of at most {BUCKET_BYTES} bytes without NUL"
        )));
    }
    Ok(())
}
