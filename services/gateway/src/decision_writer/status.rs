//! Status for the operator: numbers for metrics, and a log line when a fault begins or ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use evidence::Backlog;
use outbox::PendingStatement;
use serving::failed_write::FailedWrite;
use tracing::{error, info, warn};

use super::backlog::Backpressure;
use super::clock_difference::ClockDifference;
use crate::limits::OUTBOX_WARNING;

/// Counters and faults of the decision writer and its outbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriterStatus {
    /// The records that wait for the log.
    pub backlog: Backlog,
    /// Age of the oldest waiting record, in seconds.
    pub oldest_age: u64,
    /// Largest used fraction of the [`OutboxLimits`](super::OutboxLimits); from 1.0 on, calls are denied.
    pub outbox_share: f64,
    /// The limit of the outbox that is reached, for which calls are denied; `None` below the limits.
    pub backpressure: Option<String>,
    /// The reason why the log accepts nothing; `None` if it does.
    pub log_silent: Option<String>,
    /// Number of records that the log has refused since the start.
    pub refused: u64,
    /// The reason why the last commit failed; `None` if one has succeeded since, or none was tried for a while
    /// ([`FAILED_WRITE_REPORTED`](serving::limits::FAILED_WRITE_REPORTED)).
    pub store_failing: Option<String>,
    /// Number of commits since the start.
    pub commits: u64,
    /// Number of records committed since the start.
    pub records: u64,
    /// Number of commits since the start that were decided again: another process was first, or a message was used before.
    pub conflicts: u64,
    /// Number of times since the start that the database had an older version of a stream than this process.
    pub set_back: u64,
    /// Number of commits whose outcome was unknown at first.
    pub doubtful: u64,
    /// Number of streams (sessions, accounts and others) whose state is cached in memory.
    pub sessions_in_memory: u64,
    /// Number of calls that wait for the cost of another one (V-12).
    pub waiting_for_cost: u64,
    /// Number of open questions to approvers that this process asked.
    pub open_questions: u64,
    /// The difference from the clock of the database's server; `None` if it has none or has not been read.
    pub clock_difference: Option<ClockDifference>,
}

/// Faults and counters. Each fault is logged once when it begins and once when it ends.
#[derive(Debug, Default)]
pub struct Alarms {
    log_silent: Mutex<Option<String>>,
    failed_write: FailedWrite,
    store_failing: AtomicBool,
    outbox_is_full: AtomicBool,
    commit_is_in_doubt: AtomicBool,
    outbox_warned: AtomicBool,
    refused: AtomicU64,
    commits: AtomicU64,
    records: AtomicU64,
    conflicts: AtomicU64,
    set_back: AtomicU64,
    doubtful: AtomicU64,
    in_memory: AtomicU64,
    parked: AtomicU64,
    clock_difference: Mutex<Option<ClockDifference>>,
}

impl Alarms {
    /// Notes that the log accepts records.
    pub fn log_answers(&self) {
        if lock(&self.log_silent).take().is_some() {
            info!("the log takes records again");
        }
    }

    /// Notes that nothing could be delivered to the log.
    pub fn log_is_silent(&self, why: &str) {
        if lock(&self.log_silent).replace(why.to_owned()).is_none() {
            error!(why, "ALARM: nothing goes to the log; records are kept and sent again");
        }
    }

    /// Counts and logs a record that the log refused for good.
    pub fn refused(&self, record: &PendingStatement, why: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let (id, stream, seq) = (&record.id, &record.stream, record.seq);
        error!(%id, stream, seq, why, "ALARM: the log refuses a record for good; it stays in the outbox");
    }

    /// Updates the alarms of the outbox. `share` is the used fraction of its limits.
    pub fn outbox(&self, over: Option<Backpressure>, share: f64) {
        match over {
            Some(over) if !self.outbox_is_full.swap(true, Ordering::Relaxed) => {
                error!(%over, "ALARM: the outbox is full; calls are denied until the log takes records");
            }
            None if self.outbox_is_full.swap(false, Ordering::Relaxed) => info!("the outbox has room again"),
            _ => {}
        }
        match share >= OUTBOX_WARNING {
            true if !self.outbox_warned.swap(true, Ordering::Relaxed) => {
                warn!(share, "the outbox fills up; when it is full, calls are denied");
            }
            false => self.outbox_warned.store(false, Ordering::Relaxed),
            true => {}
        }
    }

    /// Notes the difference from the clock of the database's server.
    pub fn clock_differs_by(&self, difference: ClockDifference) {
        let before = lock(&self.clock_difference).replace(difference).unwrap_or_default();
        match (before.is_tolerated(), difference.is_tolerated()) {
            (true, false) => warn!(
                "the clock is {difference}: deadlines, the windows of ceilings and the times of records are wrong by as \
                 much if it is the wrong one, and differ from those of other gateways on the database; set the time of \
                 both hosts by NTP"
            ),
            (false, true) => info!("the clock agrees with the database server's again"),
            _ => {}
        }
    }

    /// Counts a commit and its records.
    pub fn committed(&self, records: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records, Ordering::Relaxed);
        self.failed_write.succeeded(Instant::now());
        if self.store_failing.swap(false, Ordering::Relaxed) {
            info!("evidence is committed again");
        }
    }

    /// Notes that nothing can be committed.
    pub fn store_fails(&self, why: &str) {
        self.failed_write.failed(why);
        if !self.store_failing.swap(true, Ordering::Relaxed) {
            error!(why, "ALARM: evidence cannot be committed; calls are denied");
        }
    }

    /// Counts a commit that conflicted with what the database has.
    pub fn conflicted(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts and logs a stream of which the database has an older version than this process.
    pub fn set_back(&self, stream: &str, known: u64, found: u64) {
        self.set_back.fetch_add(1, Ordering::Relaxed);
        error!(
            stream,
            known,
            found,
            "ALARM: the evidence database was set back: an old copy was restored, or a fail-over lost commits. Records are \
             lost that callers have Verdicts of, and what they spent can be spent again"
        );
    }

    /// Counts and logs a commit whose outcome is unknown.
    pub fn doubted(&self, why: &str) {
        self.doubtful.fetch_add(1, Ordering::Relaxed);
        warn!(why, "a commit is in doubt; its outcome is determined before any caller is answered");
    }

    /// Sets whether the database cannot even say if a commit happened. Until it can, nothing else is committed.
    pub fn set_commit_in_doubt(&self, is_in_doubt: bool) {
        self.commit_is_in_doubt.store(is_in_doubt, Ordering::Relaxed);
    }

    /// Returns whether a commit's outcome is unknown, so that waiting for a decision is of no use.
    pub fn is_commit_in_doubt(&self) -> bool {
        self.commit_is_in_doubt.load(Ordering::Relaxed)
    }

    /// Sets the numbers of cached streams and of parked calls.
    pub fn in_memory(&self, sessions: usize, parked: usize) {
        self.in_memory.store(number(sessions), Ordering::Relaxed);
        self.parked.store(number(parked), Ordering::Relaxed);
    }

    /// Returns the counters and faults, without the figures of the outbox.
    pub fn status(&self) -> WriterStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WriterStatus {
            log_silent: lock(&self.log_silent).clone(),
            store_failing: self.failed_write.reported(),
            refused: read(&self.refused),
            commits: read(&self.commits),
            records: read(&self.records),
            conflicts: read(&self.conflicts),
            set_back: read(&self.set_back),
            doubtful: read(&self.doubtful),
            sessions_in_memory: read(&self.in_memory),
            waiting_for_cost: read(&self.parked),
            clock_difference: *lock(&self.clock_difference),
            ..WriterStatus::default()
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_that_differs_is_logged_once_when_that_begins_and_once_when_it_ends() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let lines = tracing_subscriber::fmt().with_writer(Arc::new(log.reopen().unwrap())).finish();
        tracing::subscriber::with_default(lines, || {
            let alarms = Alarms::default();
            for ahead in [0, 6_000, 7_000, 0, 0, 8_000] {
                alarms.clock_differs_by(ClockDifference::between(Duration::ZERO, (ahead, ahead)));
            }
        });
        let text = std::fs::read_to_string(log.path()).unwrap();
        let told: Vec<&str> = text
            .lines()
            .map(|line| if line.contains("agrees") { "agrees" } else { line.split("is ").nth(1).unwrap() })
            .map(|line| line.split(" of").next().unwrap())
            .collect();
        assert_eq!(told, ["6.0 s ahead", "agrees", "8.0 s ahead"], "{text}");
    }
}
