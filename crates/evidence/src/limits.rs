//! Every bound of this crate. The bounds apply to every store.

use crate::error::StoreError;

/// Maximum length of a stream's name in bytes: a `session_id` of 256 characters and the principal it belongs to.
pub const STREAM_NAME: usize = 2048;

/// Maximum length of a claim's key in bytes. Hash a longer one.
pub const CLAIM_KEY: usize = 256;

/// Maximum length of an instance's name in bytes.
pub const INSTANCE_NAME: usize = 256;

/// Checks the name of an instance.
///
/// # Errors
/// [`StoreError::Refused`] if it is empty, longer than [`INSTANCE_NAME`], or contains NUL, which PostgreSQL does not store.
pub fn check_instance_name(instance: &str) -> Result<(), StoreError> {
    if instance.is_empty() || instance.len() > INSTANCE_NAME || instance.contains('\0') {
        let reason = format!("an instance's name has 1 to {INSTANCE_NAME} bytes and no NUL");
        return Err(StoreError::Refused(reason));
    }
    Ok(())
}

/// Maximum length of [`StuckRecord::why`](crate::StuckRecord::why) in bytes; the rest is cut off.
pub const STUCK_REASON: usize = 1024;

/// One of so many places of [`Outbox::pending`](crate::Outbox::pending) is for a record that was stuck once: the records
/// before it may wait for just that one.
const RETRIED_SHARE: usize = 4;

/// Returns how many of `limit` places are for records that were never stuck, if so many others wait.
pub fn places_for_fresh(limit: usize, retried: usize) -> usize {
    limit - retried.min(limit / RETRIED_SHARE)
}

/// Exclusive upper bound of versions and sequence numbers, so that SQL's signed numbers hold them.
pub const NUMBER: u64 = 1 << 62;

/// Duration of a handle's first lease, until it is renewed.
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(30);
