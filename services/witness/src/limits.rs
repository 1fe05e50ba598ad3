//! All bounds of a witness, in one place.

use std::time::Duration;

use tlog::MAX_NOTE_BYTES;
use tlog::witness::MAX_PROOF;

/// Maximum size of a request: the old size, the longest proof, and the longest note.
pub const REQUEST_BYTES: usize = MAX_NOTE_BYTES + 45 * MAX_PROOF + 64;
/// Maximum size of the list of logs.
pub const LIST_BYTES: u64 = 16 << 20;
/// Maximum number of logs in the list.
pub const LOGS: usize = 100_000;
/// Timeout for reading a request with its body.
pub const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Maximum number of public connections; each has at most one request in flight.
pub const CONNECTIONS: usize = 256;
/// `Retry-After` of a 503.
pub const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Maximum number of forks saved as evidence for each log.
pub const FORKS: usize = 16;
/// Tolerated lag of the clock behind the last cosignature, in seconds; within it the last time is signed again.
pub const CLOCK_SLACK: u64 = 60;
/// Number of growths of one log that may occur in a burst; otherwise `qpd` spreads them over the day.
pub const GROWTH_BURST: u64 = 2;
/// Maximum number of connections of one peer: an IPv4 address or an IPv6 /64 network. Loopback connections are not
/// counted, because they come from the reverse proxy.
pub const PEER_CONNECTIONS: usize = 32;
