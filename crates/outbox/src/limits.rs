//! All bounds of the delivery, in one place.

use std::time::Duration;

/// Maximum number of statements in one request to the log.
pub const SUBMIT_BATCH: usize = 256;
/// Maximum number of bytes of statements in one request to the log; a single statement may be larger.
pub const SUBMIT_BATCH_BYTES: usize = 4 << 20;
/// Number of statements that are posted one by one before the receipts of those that the log only accepted are awaited.
pub const SUBMIT_AT_ONCE: usize = 16;
/// Number of statements in a row, submitted one by one, of which nothing is decided before a round ends. Fewer than these at
/// which the log fails do not hold up the next ones, and a log that always fails is not asked about all of them.
pub const UNDECIDED_IN_A_ROW: usize = SUBMIT_AT_ONCE;
/// Time after which a batch is submitted again to a log that did not seem to offer batches: a proxy may have answered.
pub const RETRY_BATCHES_EVERY: Duration = Duration::from_secs(300);
/// First wait after the log refuses or fails; it doubles with each retry.
pub const SUBMIT_FIRST_WAIT: Duration = Duration::from_millis(100);
/// Upper bound of the wait that begins with [`SUBMIT_FIRST_WAIT`], and of the pause while the outbox is empty.
pub const SUBMIT_LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Time after the stop in which the statements that were committed last are submitted, and answers awaited. MCP clients
/// wait for about this long before they kill a process.
pub const LAST_ROUNDS: Duration = Duration::from_secs(2);
/// Interval at which permanently refused statements are submitted again.
pub const RETRY_REFUSED_EVERY: Duration = Duration::from_secs(600);
