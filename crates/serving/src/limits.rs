//! Limits that the daemons share, most of them of their listeners. Limits that differ between daemons are in [`ListenerSettings`](crate::listener::ListenerSettings).

use std::time::Duration;

/// Maximum number of clients that a rate limiter counts one by one. Above it, all new clients share one count.
pub const COUNTED_CLIENTS: usize = 100_000;
/// Maximum number of connections of an admin listener.
pub const ADMIN_CONNECTIONS: usize = 64;
/// Default time limit for a request head, and for an idle connection between two requests.
pub const HEADER_TIME: Duration = Duration::from_secs(30);
/// Default maximum number of header fields.
pub const HEADERS: usize = 128;
/// Default maximum size of a request head, in bytes.
pub const HEAD_BYTES: usize = 64 << 10;
/// Maximum number of header fields in a request to one of [`two_listeners`](crate::two_listeners).
pub const FEW_HEADERS: usize = 64;
/// Maximum size of the head of such a request, in bytes.
pub const SHORT_HEAD_BYTES: usize = 16 << 10;
/// Timeout for a client of such a listener that does not read the response.
pub const WRITE_TIME: Duration = Duration::from_secs(15);
/// Maximum age of a connection to such a listener, even if busy; it is closed between two requests.
pub const CONNECTION_AGE: Duration = Duration::from_secs(600);
/// Default maximum number of concurrent streams of one HTTP/2 connection.
pub const HTTP2_STREAMS: u32 = 128;
/// Default time for requests in flight to finish after a stop.
pub const DRAIN_TIME: Duration = Duration::from_secs(6);
/// Time limit of a TLS handshake.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Pause after a failed `accept`, for example without free file descriptors.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a request body that are read and dropped after the service has stopped reading it, so that the client can read the
/// response.
pub const DISCARD_BYTES: usize = 16 << 20;
/// Time for reading and dropping the rest of a request body.
pub const DISCARD_TIME: Duration = Duration::from_secs(2);
/// Interval of HTTP/2 pings.
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// Timeout for the acknowledgement of an HTTP/2 ping.
pub const PING_TIME: Duration = Duration::from_secs(10);
/// Interval at which a process checks whether the owner of the admin socket has ended.
pub const ADMIN_SOCKET_POLL: Duration = Duration::from_secs(2);
/// Maximum number of operations of a database whose histograms are looked up once. Those of further ones are looked up each time.
pub const DATABASE_OPERATIONS: usize = 128;
/// Time for which `/readyz` reports a write that failed. Then it is 200 again, so that a load balancer sends the next request,
/// which finds out whether the storage works.
pub const FAILED_WRITE_REPORTED: Duration = Duration::from_secs(10);
/// Maximum time, after a stop, for a client on standard input and output to read the last messages. SDKs kill a process that
/// goes on for 2 s.
pub const LOCAL_READ_TIME: Duration = Duration::from_millis(500);
