//! Limits of a run, in one place. They bound what a hostile service can cost.

use std::time::Duration;

/// Maximum size of a response body in bytes: that of the largest receipt or key set that is read.
pub const RESPONSE_BYTES: usize = 256 << 10;

/// Total time of a run. Requests that would begin later are not sent.
pub const RUN_TIME: Duration = Duration::from_secs(600);

/// Total time of polling for the receipt of the registered statement.
pub const POLL_TIME: Duration = Duration::from_secs(60);

/// Pause between two requests for the receipt, if the service does not say one.
pub const POLL_PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of repetitions of a request that is answered with 429.
pub const RATE_LIMITED_RETRIES: usize = 5;

/// Maximum wait before a repetition, whatever `Retry-After` says.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Size in bytes of the body that is too large for a statement. The limit of this project's log is 8 MiB.
pub const TOO_LARGE_BYTES: usize = 9 << 20;

/// Number of nested arrays in the hostile unprotected header.
pub const NESTED_ARRAYS: usize = 50_000;

/// Number of pieces in which a body is sent slowly.
pub const SLOW_PIECES: usize = 5;

/// Pause between two pieces of a slow body; the whole stays far below the time limit of any service.
pub const SLOW_PAUSE: Duration = Duration::from_millis(200);

/// Maximum length in characters of a text that a conclusion quotes: enough for a sentence with two hashes.
pub const QUOTED_CHARACTERS: usize = 240;

/// Length in bytes of a date in a header field (RFC 9110, section 5.6.7).
pub const DATE_BYTES: usize = 29;
