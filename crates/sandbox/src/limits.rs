//! Fixed bounds of the sandboxes, beside those of each job.

/// The `oom_score_adj` of guests: the largest, so that the kernel kills them first if memory is short.
pub const OOM_SCORE_OF_GUESTS: i16 = 1000;

/// Files of one job. Each is a descriptor while the guest starts.
pub const MAX_FILES: usize = 512;

/// Bytes of the text of an exception; the rest is cut off.
pub const MAX_EXCEPTION: usize = 4096;
