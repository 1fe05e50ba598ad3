//! All bounds of the server, in one place.

/// Maximum number of connections.
pub const CONNECTIONS: usize = 256;
/// Maximum number of connections of one client. Loopback connections are not counted, because they come from the
/// reverse proxy.
pub const CLIENT_CONNECTIONS: usize = 32;
