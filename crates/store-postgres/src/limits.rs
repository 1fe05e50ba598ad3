//! Every bound of this crate.

use std::time::Duration;

/// Maximum and default number of connections for reads and small writes.
pub const MAX_CONNECTIONS: u32 = 8;

/// Number of connections for small reads and writes of the sequencer and for the inbox, in addition to those for public
/// reads, which must not delay a batch, and to the sequencer's session for look-ups.
pub(crate) const SEQUENCER_CONNECTIONS: u32 = 3;

/// Maximum time to begin or to roll back a transaction.
pub(crate) const BEGIN: Duration = Duration::from_secs(5);

/// Maximum total time of a read or a small write. The server's own timeout is a little shorter.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

/// Time for which a session that was used counts as usable. After more time it is tried first, as the server may have
/// been restarted.
pub(crate) const USED_LATELY: Duration = Duration::from_millis(50);

/// Maximum total time of the statements of a batch, before COMMIT is sent.
pub(crate) const APPEND: Duration = Duration::from_secs(30);

/// Time after which an unanswered COMMIT counts as of unknown outcome.
pub(crate) const COMMIT: Duration = Duration::from_secs(30);

/// Maximum time of a take-over: the wait for a batch in progress and for its own acknowledgement.
pub(crate) const TAKE_OVER: Duration = Duration::from_secs(60);

/// Time for which a take-over waits for a batch in progress before it terminates it. Longer than the server lets a
/// session be idle in a transaction.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

/// Number of attempts at a batch after errors for which the server recommends a retry.
pub(crate) const APPEND_TRIES: u32 = 3;

/// Interval of the pings of a lease holder.
pub(crate) const PING: Duration = Duration::from_secs(2);

/// Time after which an unanswered ping means that the lease is lost.
pub(crate) const PING_ANSWER: Duration = Duration::from_secs(5);

/// Time between a failure to create a partition and the next attempt.
pub(crate) const PARTITION_RETRY: Duration = Duration::from_secs(60);

/// Maximum size of a guard that is stored as it is, in bytes; a longer one is stored as its hash.
pub(crate) const GUARD_BYTES: usize = 128;
