//! Every bound of this crate.

use std::time::Duration;

/// Longest wait of a statement for another connection's lock, or for a free connection.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of texts whose statements a connection keeps prepared. Those of scripts differ by their numbers of rows.
pub(crate) const STATEMENTS: usize = 200;

/// Number of keys that one statement looks up. A power of two.
pub(crate) const KEYS: usize = 256;

/// Maximum number of rows that one statement inserts or changes. A power of two.
pub(crate) const ROWS: usize = 64;

/// Maximum number of rows of a statement that shares a request to the connection's thread with others.
pub(crate) const TOGETHER: usize = 16;

/// Maximum number of rows of such a request whose prepared statements are cached: those with more differ too often.
pub(crate) const CACHED_TOGETHER: usize = 24;
