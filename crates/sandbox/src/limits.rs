//! Fixed bounds of the sandboxes, beside those of each job.

/// Files of one job. Each is a descriptor while the guest starts.
pub const MAX_FILES: usize = 512;

/// Bytes of the text of an exception; the rest is cut off.
pub const MAX_EXCEPTION: usize = 4096;
