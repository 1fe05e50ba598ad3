//! Every bound of this crate, in one place.

use std::time::Duration;

/// The oldest server that has all we use.
pub(crate) const OLDEST_SERVER: i32 = 140_000;

/// Connections that answer reads, at most and by default. Two more write.
pub const MAX_CONNECTIONS: u32 = 6;

/// How long a connection may take to be made.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// How long a read or a small write may take, all told. The server gives up a little earlier.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

/// How long a commit may go unanswered before its outcome counts as unknown.
pub const COMMIT: Duration = Duration::from_secs(30);

/// How long to wait for a commit in doubt to end: longer than the server lets it run.
pub(crate) const DOUBT: Duration = Duration::from_secs(60);

/// How often a commit is tried when the server says that trying again is the remedy.
pub(crate) const TRIES: u32 = 4;

/// How long after its end the row of an instance goes, once nothing of it is left; seconds.
pub(crate) const INSTANCE_KEPT: i32 = 86_400;
