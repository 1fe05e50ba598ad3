//! Every bound of this crate.

use std::time::Duration;

/// Maximum and default number of connections for reads. Two more write.
pub const MAX_CONNECTIONS: u32 = 6;

/// Maximum total time of a read or a small write. The server's own timeout is a little shorter.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

/// Time after which an unanswered commit counts as of unknown outcome.
pub const COMMIT: Duration = Duration::from_secs(30);

/// Time for which the session that commits counts as durable after a check of its settings, which an administrator may
/// change.
pub(crate) const CHECKED: Duration = Duration::from_secs(10);

/// Maximum wait for a commit in doubt to end: longer than the server lets it run.
pub(crate) const DOUBT: Duration = Duration::from_secs(60);

/// Number of attempts at a commit after errors for which the server recommends a retry.
pub(crate) const TRIES: u32 = 4;

/// Time in seconds after the end of an instance's lease at which its row is removed, if no other row refers to it.
pub(crate) const INSTANCE_KEPT: i32 = 86_400;
