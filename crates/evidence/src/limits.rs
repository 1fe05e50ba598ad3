//! Every bound of this crate, in one place. They bind every keeper.

/// A stream's name, in bytes: a `session_id` of 256 characters and the principal it belongs to.
pub const STREAM_NAME: usize = 2048;

/// A claim's key, in bytes. Hash what is longer.
pub const CLAIM_KEY: usize = 256;

/// An instance's name, in bytes.
pub const INSTANCE_NAME: usize = 256;

/// Why a record is stuck, in bytes; the rest is cut off.
pub const STUCK_REASON: usize = 1024;

/// Versions and sequence numbers stay below this, so that SQL's signed numbers hold them.
pub const NUMBER: u64 = 1 << 62;

/// How long the lease of a handle lasts that was opened and not renewed yet.
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(30);
