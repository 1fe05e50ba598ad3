//! Every bound of this crate.

use std::time::Duration;

/// Oldest supported server, as `server_version_num`: `idle_session_timeout` and `bit_count` were added in version 14.
pub(crate) const OLDEST_SERVER: i32 = 140_000;

/// Maximum time to establish a connection, and to wait for a free one.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// Time after which a pool replaces a session, so that what an administrator changes for new sessions (`ALTER ROLE … SET`)
/// comes into force. Shorter than the 30 s in which a service must recover from a fault.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(20);

/// Time after its last use for which a session is used without a test. If it died meanwhile, the query fails as if it had
/// died during the query.
pub const UNTESTED: Duration = Duration::from_millis(100);
