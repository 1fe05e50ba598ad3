//! All bounds of the service, in one place.

use std::time::Duration;

/// Default time for which a request waits for its result, before it is answered with 202.
pub const WAIT: Duration = Duration::from_secs(10);
/// Default time for which a request waits for the log's receipt, once the verification receipt is signed.
pub const RECEIPT_WAIT: Duration = Duration::from_secs(2);
/// Longest configurable wait: connections are not kept open for longer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Default number of requests that are checked at the same time.
pub const WORKERS: usize = 2;
/// Largest configurable number of workers.
pub const MOST_WORKERS: usize = 256;
/// Default number of accepted requests whose checks have not run yet.
pub const QUEUE: usize = 64;
/// Largest configurable queue.
pub const LARGEST_QUEUE: usize = 10_000;
/// Number of checked requests of one client that may wait until the log answers and they can be signed.
pub const UNSIGNED_JOBS: usize = 256;
/// Number of times that the process may end during the checks of a job, before the job is not run any more by a start.
pub const UNENDED_CHECKS: u64 = 2;
/// Default time for which results are kept.
pub const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
/// Default quota of a client, in requests a minute.
pub const REQUESTS_PER_MINUTE: u32 = 60;
/// Maximum number of clients.
pub const CLIENTS: usize = 10_000;
/// Timeout for reading a request's body.
pub const BODY_TIME: Duration = Duration::from_secs(30);
/// `Retry-After` of a 503, and of a 202.
pub const RETRY_AFTER: Duration = Duration::from_secs(2);
/// First wait before a receipt is tried again that could not be signed; it doubles with each attempt.
pub const SIGN_FIRST_WAIT: Duration = Duration::from_millis(200);
/// Upper bound of the wait that begins with [`SIGN_FIRST_WAIT`].
pub const SIGN_LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of pages of a chain that are read from the log.
pub const CHAIN_PAGES: usize = 10_000;
/// Time limit of requests to the log about a chain, retries included.
pub const LOG_PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which old results are removed.
pub const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// Maximum number of connections.
pub const CONNECTIONS: usize = 1024;
/// Maximum number of connections of one client. Loopback connections are not counted, because they come from the
/// reverse proxy.
pub const CLIENT_CONNECTIONS: usize = 64;
