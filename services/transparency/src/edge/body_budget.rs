//! The memory budget of request bodies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{SHARE_PART, SMALL_BODIES, SMALL_BODIES_PART, SMALL_BODY_BYTES, TOKENS_PART};
use crate::quota::meter::RateBucket;

/// The budget for all bodies in flight together.
pub struct BodyBudget {
    /// Pool for the first bytes of each body.
    small: Arc<BytePool>,
    /// Pool for all further bytes.
    large: Arc<BytePool>,
    small_bytes: usize,
    bytes: usize,
}

impl BodyBudget {
    /// Creates a budget of `bytes`. A client's share has room for one body of `largest` bytes ([`fit`](Self::fit));
    /// `reserved` shows how many bytes are taken.
    pub fn new(bytes: usize, largest: usize, reserved: &IntGauge) -> Self {
        let small = bytes / SMALL_BODIES_PART;
        let budget = Self {
            small: BytePool::new(small, small / SHARE_PART, reserved),
            large: BytePool::new(bytes, bytes / SHARE_PART, reserved),
            small_bytes: SMALL_BODY_BYTES.min(small / SHARE_PART / SMALL_BODIES),
            bytes,
        };
        budget.fit(largest);
        budget
    }

    /// Changes a client's share so that it has room for one body of `largest` bytes, or of as many as the budget has.
    pub fn fit(&self, largest: usize) {
        let share = (self.bytes / SHARE_PART).max(largest).min(self.bytes);
        self.large.share.store(share, Ordering::Relaxed);
    }

    /// Size of the largest body that a client's share has room for, in bytes.
    pub fn largest(&self) -> usize {
        self.large.share.load(Ordering::Relaxed)
    }

    /// Reserves `more` bytes for a body of which `before` bytes have arrived; `None` if there is no room.
    pub fn reserve(&self, client: RateBucket, before: usize, more: usize) -> Option<ReservedBytes> {
        let pool = if before + more <= self.small_bytes { &self.small } else { &self.large };
        pool.reserve(client, more)
    }
}

/// A number of bytes that clients share.
struct BytePool {
    all: Arc<Semaphore>,
    /// Additional permits for callers with a token.
    reserve: Arc<Semaphore>,
    /// The largest number of bytes one client may reserve.
    share: AtomicUsize,
    used: Mutex<HashMap<RateBucket, usize>>,
    reserved: IntGauge,
}

impl BytePool {
    fn new(bytes: usize, share: usize, reserved: &IntGauge) -> Arc<Self> {
        let semaphore = |bytes: usize| Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            all: semaphore(bytes),
            reserve: semaphore(bytes / TOKENS_PART),
            share: AtomicUsize::new(share),
            used: Mutex::default(),
            reserved: reserved.clone(),
        })
    }

    fn reserve(self: &Arc<Self>, client: RateBucket, bytes: usize) -> Option<ReservedBytes> {
        let count = u32::try_from(bytes).ok()?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let of_client = used.get(&client).copied().unwrap_or_default();
        if of_client + bytes > self.share.load(Ordering::Relaxed) {
            return None;
        }
        let taken = self.all.clone().try_acquire_many_owned(count);
        let taken = match client {
            RateBucket::Token(_) => taken.or_else(|_| self.reserve.clone().try_acquire_many_owned(count)),
            _ => taken,
        };
        let permit = taken.ok()?;
        used.insert(client, of_client + bytes);
        self.reserved.add(bytes as i64);
        Some(ReservedBytes { pool: self.clone(), client, bytes, _permit: permit })
    }

    fn refund(&self, client: RateBucket, bytes: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.reserved.sub(bytes as i64);
        let left = used.get(&client).copied().unwrap_or_default().saturating_sub(bytes);
        match left {
            0 => used.remove(&client),
            left => used.insert(client, left),
        };
    }
}

/// Bytes reserved for a client, released on drop.
pub struct ReservedBytes {
    pool: Arc<BytePool>,
    client: RateBucket,
    bytes: usize,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.pool.refund(self.client, self.bytes);
    }
}
