//! Every bound of this crate. The bounds apply to every store.

/// Maximum length of a stream's name in bytes: a `session_id` of 256 characters and the principal it belongs to.
pub const STREAM_NAME: usize = 2048;

/// Maximum length of a claim's key in bytes. Hash a longer one.
pub const CLAIM_KEY: usize = 256;

/// Maximum length of an instance's name in bytes.
pub const INSTANCE_NAME: usize = 256;

/// Maximum length of [`Stuck::why`](crate::Stuck::why) in bytes; the rest is cut off.
pub const STUCK_REASON: usize = 1024;

/// Exclusive upper bound of versions and sequence numbers, so that SQL's signed numbers hold them.
pub const NUMBER: u64 = 1 << 62;

/// Duration of a handle's first lease, until it is renewed.
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(30);
