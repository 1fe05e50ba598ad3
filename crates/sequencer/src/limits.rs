//! [`Limits`]: all numbers that bound the sequencer.

use std::time::Duration;

use store::InboxBounds;

/// Bounds on memory and waiting. `Limits::default()` has the values of the design.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of entries in one batch.
    pub batch_entries: usize,
    /// Maximum bytes in one batch; one larger submission still gets a batch of its own.
    pub batch_bytes: usize,
    /// Maximum number of waiting submissions, including the batch in progress; more are
    /// [`SubmitError::QueueFull`](crate::SubmitError::QueueFull).
    pub queue_entries: usize,
    /// Maximum bytes of waiting submissions, including the batch in progress.
    pub queue_bytes: usize,
    /// Time for which a batch waits for more submissions while the log is busy. Zero never waits; an idle log
    /// never waits either.
    pub linger: Duration,
    /// Time for which the signatures of the newest head wait for a batch that stores them with its entries.
    pub keep_after: Duration,
    /// Time after which a client should retry when the queue or the inbox is full
    /// ([`SubmitError::QueueFull`](crate::SubmitError::QueueFull),
    /// [`SubmitError::InboxFull`](crate::SubmitError::InboxFull)).
    pub retry_after: Duration,
    /// Time for which a submission waits for its position in the leading process, before it is stored in the inbox
    /// and answered as accepted. Longer than a full queue takes to drain, so that overload does not also write
    /// every statement twice.
    pub wait_leading: Duration,
    /// Time for which a submission waits for its position in a following process.
    pub wait_following: Duration,
    /// Interval at which a follower checks whether waiting statements have been placed.
    pub follow_poll: Duration,
    /// Interval at which a follower asks for the lease, and for the newest signed head.
    pub lease_poll: Duration,
    /// Batch size from which on the log counts as busy: for smaller batches, waiting for more submissions costs
    /// more than it saves.
    pub busy_entries: usize,
    /// Interval at which the leader looks into an empty inbox.
    pub inbox_poll: Duration,
    /// Number of inbox keys read at once.
    pub inbox_batch: usize,
    /// Bounds of the inbox; a submission beyond them is [`SubmitError::InboxFull`](crate::SubmitError::InboxFull).
    pub inbox: InboxBounds,
    /// Number of attempts that failed last whose reasons are kept in the inbox.
    pub inbox_failures: u64,
    /// Maximum number of submissions from the inbox that the leader holds in memory, in addition to the queue.
    pub inbox_held_entries: usize,
    /// Maximum bytes of those submissions; one larger submission is held alone.
    pub inbox_held_bytes: usize,
    /// First pause before an undecided inbox item is decided again; doubles up to [`Self::undecided_longest`].
    pub undecided_first: Duration,
    /// Longest pause before an undecided inbox item is decided again.
    pub undecided_longest: Duration,
    /// Number of attempts to commit a batch that certainly did not happen, before its submitters receive the error.
    pub commit_attempts: u32,
    /// Number of batches that are looked up before their commit after the database knew a submission: others like it
    /// may follow, and a refused commit costs more than a look-up.
    pub look_ups_after_known: u32,
    /// Time within which the database must answer. A commit that takes longer is
    /// [`CommitError::Unknown`](store::CommitError::Unknown).
    pub patience: Duration,
    /// Interval at which the leader calls [`ServerChecks::check_durability`](store::ServerChecks::check_durability).
    pub durability_check: Duration,
    /// Interval at which a leader checks whether the log was frozen.
    pub frozen_check: Duration,
    /// Interval at which a leader compares its clock with those of the database's server and of the witnesses.
    pub clock_check: Duration,
    /// Longest pause before a process that may not lead checks again whether it may.
    pub longest_wait: Duration,
    /// Time for witnesses to confirm the newest signed head to a process that has no pin
    /// ([`Witnesses::confirm`](crate::Witnesses::confirm)).
    pub confirm_patience: Duration,
    /// Time for witnesses to object to a process that has a pin.
    pub objection_patience: Duration,
    /// Time for which a [`ClockCorrection`](crate::ClockCorrection) waits for the process that received it to take
    /// over.
    pub correction_patience: Duration,
    /// Number of attempts to sign before sequencing stops with [`Halt::Signer`](crate::Halt::Signer).
    pub sign_attempts: u32,
    /// First pause before a retry; doubles up to [`Self::longest_pause`].
    pub first_pause: Duration,
    /// Longest pause before a retry.
    pub longest_pause: Duration,
    /// Longest pause before a halted process checks again whether it may sequence.
    pub longest_halt: Duration,
    /// Time for which stopping waits until all signatures are stored.
    pub stop_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_entries: 4096,
            batch_bytes: 8 << 20,
            queue_entries: 16_384,
            queue_bytes: 64 << 20,
            linger: Duration::ZERO,
            keep_after: Duration::from_millis(10),
            retry_after: Duration::from_secs(1),
            wait_leading: Duration::from_secs(5),
            wait_following: Duration::from_secs(1),
            follow_poll: Duration::from_millis(20),
            lease_poll: Duration::from_millis(500),
            busy_entries: 8,
            inbox_poll: Duration::from_millis(100),
            inbox_batch: 1024,
            inbox: INBOX_BOUNDS,
            inbox_failures: FAILURES_KEPT,
            inbox_held_entries: 4096,
            inbox_held_bytes: 16 << 20,
            undecided_first: Duration::from_secs(1),
            undecided_longest: Duration::from_secs(60),
            commit_attempts: 4,
            look_ups_after_known: 64,
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
    /// Pause before attempt `attempt` (1 is the first repetition), between [`Self::first_pause`] and
    /// [`Self::longest_pause`].
    pub(crate) fn pause(&self, attempt: u32) -> Duration {
        doubled(self.first_pause, attempt).min(self.longest_pause)
    }

    /// Pause before the `attempt`-th try of a halted process to continue, at most [`Self::longest_halt`].
    pub(crate) fn halt_pause(&self, attempt: u32) -> Duration {
        doubled(self.first_pause, attempt).min(self.longest_halt)
    }

    /// Pause before a process that may not lead checks again, after this many attempts; at most
    /// [`Self::longest_wait`].
    pub(crate) fn wait(&self, attempt: u32) -> Duration {
        doubled(self.first_pause, attempt).min(self.longest_wait)
    }

    /// Pause before the `attempt`-th time that an inbox item is decided again.
    pub(crate) fn undecided_pause(&self, attempt: u32) -> Duration {
        doubled(self.undecided_first, attempt).min(self.undecided_longest)
    }
}

fn doubled(first: Duration, attempt: u32) -> Duration {
    first.saturating_mul(1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// Default bounds of the inbox: one issuer may use a quarter of it.
pub const INBOX_BOUNDS: InboxBounds =
    InboxBounds { rows: 32_768, bytes: 4 << 30, issuer_rows: 8_192, issuer_bytes: 1 << 30 };

/// Default number of failed attempts whose reasons are kept: about 20 MB, twice as many as the inbox has items.
pub const FAILURES_KEPT: u64 = 65_536;

/// Maximum number of heads that a take-over signs again because a crash lost their signatures.
pub const LEFT_UNSIGNED: usize = 1024;

/// Maximum number of times that one take-over raises the epoch to exceed that of the pin, after a database was
/// restored.
pub const EPOCHS_AT_ONCE: usize = 10_000;

/// Attempts of [`pin::adopt`](crate::pin::adopt) to get the lease, with [`ADOPT_PAUSE`] after each, before it
/// reports that a process leads.
pub const ADOPT_ATTEMPTS: u32 = 50;

/// Pause between two of the [`ADOPT_ATTEMPTS`].
pub const ADOPT_PAUSE: Duration = Duration::from_millis(100);

/// Tolerance of the wall clock in whole seconds: its difference from the monotonic clock's expectation, from the
/// clocks of the database's server and of the witnesses, and the time that it may be behind the last committed
/// time at start.
pub const CLOCK_TOLERANCE: u64 = 60;

/// Time for which one reading of the clocks serves as the reference. Short enough that ordinary drift never adds
/// up to the tolerance; long enough that a series of small steps does.
pub const CLOCK_REFERENCE: Duration = Duration::from_secs(600);
