//! Every number that bounds the sequencer, in one place.

use std::time::Duration;

use store::InboxBounds;

/// What bounds memory and waiting. `Limits::default()` is the design's.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Entries in one batch.
    pub batch_entries: usize,
    /// Bytes in one batch; one larger submission still gets a batch of its own.
    pub batch_bytes: usize,
    /// Submissions that may wait, the batch in flight included.
    pub queue_entries: usize,
    /// Bytes of submissions that may wait, the batch in flight included.
    pub queue_bytes: usize,
    /// How long a batch waits for company while the log is busy. Zero never waits; an idle log
    /// never waits either.
    pub linger: Duration,
    /// What a client is told when the queue is full.
    pub retry_after: Duration,
    /// How long a submission waits for its place in the process that sequences, before it is kept
    /// in the inbox and answered as accepted. Longer than a full queue takes to drain, so that
    /// overload does not also write every statement twice.
    pub wait_leading: Duration,
    /// How long a submission waits for its place in a process that follows.
    pub wait_following: Duration,
    /// How often a follower asks whether statements that wait have been placed.
    pub follow_poll: Duration,
    /// How often a follower asks for the lease, and for the newest signed head.
    pub lease_poll: Duration,
    /// The batch size from which on the log counts as busy: with fewer, waiting for company costs
    /// more than it brings.
    pub busy_entries: usize,
    /// How often the leader looks into the inbox when it was empty.
    pub inbox_poll: Duration,
    /// Keys of inbox items read at once.
    pub inbox_batch: usize,
    /// What the inbox may hold; a submission beyond it is turned away.
    pub inbox: InboxBounds,
    /// Submissions from the inbox that the leader holds in memory, beside those in the queue.
    pub inbox_held_entries: usize,
    /// Their bytes; one larger submission is held alone.
    pub inbox_held_bytes: usize,
    /// The first pause before an inbox item is decided again that could not be decided; doubles up
    /// to [`Self::undecided_longest`].
    pub undecided_first: Duration,
    /// The longest pause before it is decided again.
    pub undecided_longest: Duration,
    /// How often a batch that certainly did not happen is sent again before its waiters are told.
    pub commit_attempts: u32,
    /// How long the database may take to answer. A commit that takes longer is of unknown outcome.
    pub patience: Duration,
    /// How often the leader asks whether the database still keeps what it acknowledges.
    pub durability_check: Duration,
    /// How often a leader looks whether the log was frozen.
    pub frozen_check: Duration,
    /// How often a leader compares its clock with those of the database's server and of the witnesses.
    pub clock_check: Duration,
    /// The longest pause before a process that may not lead looks whether it may.
    pub longest_wait: Duration,
    /// How long witnesses may take to confirm the newest signed head to a process that has no pin.
    pub confirm_patience: Duration,
    /// How long they may take to say that a process with a pin must not lead all the same.
    pub objection_patience: Duration,
    /// How long a clock correction waits for the process that got it to take over.
    pub correction_patience: Duration,
    /// How often signing is tried before sequencing stops.
    pub sign_attempts: u32,
    /// The first pause before something is tried again; doubles up to [`Self::longest_pause`].
    pub first_pause: Duration,
    /// The longest pause before something is tried again.
    pub longest_pause: Duration,
    /// The longest pause before a halted process looks again whether it may sequence.
    pub longest_halt: Duration,
    /// How long stopping waits for signatures that are not yet kept.
    pub stop_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_entries: 4096,
            batch_bytes: 8 << 20,
            queue_entries: 16_384,
            queue_bytes: 64 << 20,
            linger: Duration::from_millis(2),
            retry_after: Duration::from_secs(1),
            wait_leading: Duration::from_secs(5),
            wait_following: Duration::from_secs(1),
            follow_poll: Duration::from_millis(20),
            lease_poll: Duration::from_millis(500),
            busy_entries: 8,
            inbox_poll: Duration::from_millis(100),
            inbox_batch: 1024,
            inbox: INBOX_BOUNDS,
            inbox_held_entries: 4096,
            inbox_held_bytes: 16 << 20,
            undecided_first: Duration::from_secs(1),
            undecided_longest: Duration::from_secs(60),
            commit_attempts: 4,
            patience: Duration::from_secs(30),
            durability_check: Duration::from_secs(60),
            frozen_check: Duration::from_secs(2),
            clock_check: Duration::from_secs(30),
            longest_wait: Duration::from_secs(10),
            confirm_patience: Duration::from_secs(10),
            objection_patience: Duration::from_secs(2),
            correction_patience: Duration::from_secs(30),
            sign_attempts: 5,
            first_pause: Duration::from_millis(25),
            longest_pause: Duration::from_secs(2),
            longest_halt: Duration::from_secs(5),
            stop_patience: Duration::from_secs(5),
        }
    }
}

impl Limits {
    /// The pause before attempt `attempt` (1 is the first repetition).
    pub(crate) fn pause(&self, attempt: u32) -> Duration {
        doubled(self.first_pause, attempt).min(self.longest_pause)
    }

    /// The pause before a halted process tries for the `attempt`-th time to go on.
    pub(crate) fn halt_pause(&self, attempt: u32) -> Duration {
        doubled(self.first_pause, attempt).min(self.longest_halt)
    }

    /// The pause before a process that may not lead looks again, after so many attempts.
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        doubled(self.first_pause, attempt).min(self.longest_wait)
    }

    /// The pause before an inbox item is decided again for the `attempt`-th time.
    pub(crate) fn undecided_pause(&self, attempt: u32) -> Duration {
        doubled(self.undecided_first, attempt).min(self.undecided_longest)
    }
}

fn doubled(first: Duration, attempt: u32) -> Duration {
    first.saturating_mul(1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// What the inbox may hold unless set otherwise: one issuer a quarter of it.
pub const INBOX_BOUNDS: InboxBounds =
    InboxBounds { rows: 32_768, bytes: 4 << 30, issuer_rows: 8_192, issuer_bytes: 1 << 30 };

/// The most heads that are signed again at a take-over because a crash took their signatures.
pub const LEFT_UNSIGNED: usize = 1024;

/// How often one take-over raises the epoch to get beyond that of the pin, after a database was restored.
pub const EPOCHS_AT_ONCE: usize = 10_000;

/// How often adopting a head asks for the lease, with [`ADOPT_PAUSE`] after each, before it says that a process leads.
pub const ADOPT_ATTEMPTS: u32 = 50;

/// The pause between two attempts to get the lease.
pub const ADOPT_PAUSE: Duration = Duration::from_millis(100);

/// How far the wall clock may be from where the monotonic clock says it should be, and how far it
/// may be behind the last committed time at start, and from the clocks of the database's server and of the witnesses. Whole
/// seconds.
pub const CLOCK_TOLERANCE: u64 = 60;

/// How long one reading of the clocks serves as the reference. Short enough that honest drift
/// never adds up to the tolerance; long enough that small steps, one after another, do.
pub const CLOCK_REFERENCE: Duration = Duration::from_secs(600);
