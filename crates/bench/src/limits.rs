//! Bounds and durations of measurements.

use std::time::Duration;

/// Time within which a service must become ready. A large log is read at its edge only.
pub(crate) const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// Time within which a service must end after `SIGTERM`.
pub(crate) const STOPS_WITHIN: Duration = Duration::from_secs(60);
/// Pause between two checks whether a process is ready or has ended.
pub(crate) const POLL: Duration = Duration::from_millis(5);
/// Pause before each look at the progress of a search index.
pub(crate) const INDEX_POLL: Duration = Duration::from_secs(2);
/// Looks without progress after which an index counts as complete.
pub(crate) const INDEX_POLLS: u32 = 5;

/// Statements signed for each second of a load: more than the machines that we know can register.
pub(crate) const STATEMENTS_PER_SECOND: usize = 20_000;
/// Statements that are signed between two looks at the clock.
pub(crate) const SIGNED_AT_ONCE: usize = 1024;
/// Statements that the service registers before it is measured, so that caches and plans are those of a running log.
pub(crate) const WARM_UP: usize = 256;
/// Maximum number of requests of a load with one client.
pub(crate) const ALONE: usize = 10_000;
/// Maximum duration of a load with one client.
pub(crate) const ALONE_FOR: Duration = Duration::from_secs(2);
/// Time for which a load waits for the search index before its writes are counted.
pub(crate) const INDEX_SETTLES: Duration = Duration::from_secs(5);
/// Connections of an open loop, over which its requests are distributed.
pub(crate) const OPEN_CONNECTIONS: usize = 1024;
/// Entries whose receipts are read to measure proofs.
pub(crate) const PROVEN: usize = 2_000;
/// Clients that read receipts at the same time.
pub(crate) const PROOF_CLIENTS: usize = 8;

/// Records of the session, and receipts of the chain, that are registered before pages are measured: several pages of 50.
pub(crate) const LISTED_ENTRIES: u64 = 150;
/// Rows on a page of a list, as the explorer shows them.
pub(crate) const PAGE_ROWS: u64 = 50;
/// Milliseconds in which a page is rendered: the goal for the median.
pub(crate) const PAGE_GOAL_MS: f64 = 50.0;

/// Rows in one transaction of raw inserts.
pub(crate) const RAW_ROWS: usize = 4096;
/// Length of the response of the echo server, in bytes, as long as a typical receipt.
pub(crate) const ECHO_BYTES: usize = 600;

/// Entries in one transaction of [`grow`](crate::grow), the largest batch that a sequencer commits.
pub(crate) const GROWN_BATCH: usize = 4096;
/// Batches that are signed and wait for their commit.
pub(crate) const GROWN_AHEAD: usize = 2;

/// Maximum size of a response in bytes; a larger one is an error.
pub(crate) const MAX_RESPONSE: usize = 4 << 20;
/// Maximum size of a file with a result in bytes.
pub(crate) const MAX_RESULT: usize = 64 << 20;
/// Maximum nesting of such a file.
pub(crate) const RESULT_DEPTH: usize = 16;
