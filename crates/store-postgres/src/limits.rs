//! Every bound of this crate, in one place.

use std::time::Duration;

/// The oldest server that has all we use: `idle_session_timeout` and `bit_count` came with 14.
pub(crate) const OLDEST_SERVER: u32 = 140_000;

/// Connections that answer reads and small writes, at most and by default.
pub const MAX_CONNECTIONS: u32 = 8;

/// Connections for the look-ups and small writes of the sequencer and for the inbox, beside those that answer reads: slow
/// reads of the public must not keep a batch waiting.
pub(crate) const SEQUENCER_CONNECTIONS: u32 = 4;

/// How long a connection may take to be made, and how long a free one is waited for.
pub(crate) const CONNECT: Duration = Duration::from_secs(5);

/// How long a read or a small write may take, all told. The server gives up a little earlier.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);

/// How long the statements of a batch may take together, before COMMIT is sent.
pub(crate) const APPEND: Duration = Duration::from_secs(30);

/// How long COMMIT may go unanswered before its outcome counts as unknown.
pub(crate) const COMMIT: Duration = Duration::from_secs(30);

/// How long a take-over may wait for the batch in flight and for its own acknowledgement.
pub(crate) const TAKE_OVER: Duration = Duration::from_secs(60);

/// How long a take-over waits for the batch in flight before it ends it. Longer than the server
/// lets a session stand idle in a transaction.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

/// How often a batch is tried when the server says that trying again is the remedy.
pub(crate) const APPEND_TRIES: u32 = 3;

/// How often the holder of the lease shows that it is alive.
pub(crate) const PING: Duration = Duration::from_secs(2);

/// How long the server may leave a ping unanswered before the lease counts as lost.
pub(crate) const PING_ANSWER: Duration = Duration::from_secs(5);

/// How long after a failure to make a partition it is tried again.
pub(crate) const PARTITION_RETRY: Duration = Duration::from_secs(60);

/// Guards up to this many bytes are stored as they are; of longer ones the hash is stored.
pub(crate) const GUARD_BYTES: usize = 128;
