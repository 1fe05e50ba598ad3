//! Every bound that a witness keeps, in one place.

use std::time::Duration;

use tlog::MAX_NOTE_BYTES;
use tlog::witness::MAX_PROOF;

/// The longest request: the old size, the longest proof, and the longest note.
pub const REQUEST_BYTES: usize = MAX_NOTE_BYTES + 45 * MAX_PROOF + 64;
/// The longest list of logs.
pub const LIST_BYTES: u64 = 16 << 20;
/// The most logs in it.
pub const LOGS: usize = 100_000;
/// How long a request may take, its body included.
pub const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Connections at one time: each has one request under way.
pub const CONNECTIONS: usize = 256;
/// Connections of the admin listener.
pub const ADMIN_CONNECTIONS: usize = 16;
/// How long a head may take, and how long a connection may rest between two requests: logs come back every few seconds.
pub const HEADER_TIME: Duration = Duration::from_secs(30);
/// Headers of a request.
pub const HEADERS: usize = 64;
/// Bytes of them.
pub const HEAD_BYTES: usize = 16 << 10;
/// How long requests under way may run on after a stop was asked for.
pub const DRAIN_TIME: Duration = Duration::from_secs(6);
/// How long to wait after a failed `accept` before trying again.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What is asked of those whom a witness cannot serve now.
pub const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Forks of one log that are kept as evidence.
pub const FORKS: usize = 16;
/// By so many seconds the clock may be behind the last cosignature, which is then the time that is signed.
pub const CLOCK_SLACK: u64 = 60;
/// Growths of one log that may come at once, of those that `qpd` spreads over the day.
pub const GROWTH_BURST: u64 = 2;
/// How long a peer may leave an answer unread.
pub const WRITE_TIME: Duration = Duration::from_secs(15);
/// How old a connection may become, however busy it is; it is closed between two requests.
pub const CONNECTION_AGE: Duration = Duration::from_secs(600);
/// Connections of one peer at one time: an address, or a network of 64 bits. This machine's own are not counted:
/// they are the proxy's.
pub const PEER_CONNECTIONS: usize = 32;
