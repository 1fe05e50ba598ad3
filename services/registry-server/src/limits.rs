//! All bounds of the server, in one place.

use std::time::Duration;

/// Maximum number of connections.
pub const CONNECTIONS: usize = 256;
/// Maximum number of connections of one client. Loopback connections are not counted, because they come from the
/// reverse proxy.
pub const CLIENT_CONNECTIONS: usize = 32;
/// Maximum number of headers in a request.
pub const HEADERS: usize = 64;
/// Maximum size of a request head in bytes.
pub const HEAD_BYTES: usize = 16 << 10;
/// Timeout for a client that does not read the response.
pub const WRITE_TIME: Duration = Duration::from_secs(15);
/// Maximum age of a connection; it is closed between two requests.
pub const CONNECTION_AGE: Duration = Duration::from_secs(600);
