//! Limits on the lines between signer and runner, and on the waiting for them.

use std::time::Duration;

/// Maximum bytes of a batch's line.
pub const BATCH_LINE_BYTES: usize = 32 << 20;
/// Maximum bytes of a line of the runner: the output of a batch (`checks::limits::BATCH_OUTPUT`) in base64.
pub const ANSWER_LINE_BYTES: usize = 40 << 20;
/// Maximum nesting of a line.
pub const LINE_DEPTH: usize = 8;
/// Maximum bytes of the message of a failed call.
pub const MESSAGE_BYTES: usize = 1_024;
/// Time for the runner's start: it compiles an engine and tests the sandboxes.
pub const START_TIME: Duration = Duration::from_secs(120);
/// Time beyond the bounds of a batch after which the runner is killed.
pub const GRACE: Duration = Duration::from_secs(15);
/// Runners that are kept for later requests.
pub const IDLE_RUNNERS: usize = 4;
