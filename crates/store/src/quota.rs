//! Counters of what was used in a window of time, shared by all processes of a log.
//!
//! They delay and refuse to decide; they are never part of a decision, and may be lost: a database
//! that crashed, or a process that started again, counts anew.
//!
//! Not here: whose counter, how long a window is, how much may be used (the service).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::StoreError;

/// How many bytes the name of a counter may have.
pub const BUCKET_BYTES: usize = 512;

/// Taking from counters.
#[async_trait]
pub trait Quotas: Send + Sync + 'static {
    /// Takes up to `want` of what is left of `limit` in this bucket's window; answers how much was
    /// taken, from 0 to `want`.
    ///
    /// A bucket counts one window: a later one starts at nothing, and whoever still names an
    /// earlier one (by a clock that is behind) takes from the later. A bucket of more than
    /// [`BUCKET_BYTES`] is [`StoreError::Refused`].
    async fn take_quota(&self, bucket: &str, window: u64, limit: u64, want: u64) -> Result<u64, StoreError>;

    /// Forgets the buckets whose window began before `before`; answers how many.
    async fn trim_quotas(&self, before: u64) -> Result<u64, StoreError>;
}

/// Counters in memory, for a database that one process uses.
#[derive(Debug, Default)]
pub struct Counters(Mutex<HashMap<String, Counter>>);

#[derive(Debug, Default)]
struct Counter {
    window: u64,
    used: u64,
}

impl Counters {
    /// As [`Quotas::take_quota`].
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

    /// As [`Quotas::trim_quotas`].
    pub fn trim(&self, before: u64) -> u64 {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counters.len();
        counters.retain(|_, counter| counter.window >= before);
        (count - counters.len()) as u64
    }
}

/// Refuses the name of a counter that no store keeps.
pub fn check_bucket(bucket: &str) -> Result<(), StoreError> {
    if bucket.len() > BUCKET_BYTES || bucket.contains('\0') {
        return Err(StoreError::Refused(format!(
            "a quota's name of at most {BUCKET_BYTES} bytes without NUL"
        )));
    }
    Ok(())
}
