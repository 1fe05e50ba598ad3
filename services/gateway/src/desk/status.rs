//! What an operator should know: numbers for metrics, and lines in the log when something begins or ends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use evidence::{Backlog, Pending};
use tracing::{error, info, warn};

use super::outbox::Backpressure;
use crate::limits::OUTBOX_WARNING;

/// How the desk stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// What waits for the log.
    pub backlog: Backlog,
    /// For how many seconds the oldest record has waited.
    pub oldest_age: u64,
    /// The part of the outbox's limits that is taken; from 1 on, calls are denied.
    pub outbox_share: f64,
    /// Why calls are denied for the outbox's sake, if they are.
    pub backpressure: Option<String>,
    /// Why nothing goes to the log, if nothing does.
    pub log_silent: Option<String>,
    /// Records that the log refused since the start.
    pub refused: u64,
    /// Why nothing can be committed, if nothing can.
    pub store_failing: Option<String>,
    /// Commits since the start.
    pub commits: u64,
    /// Records committed since the start.
    pub records: u64,
    /// Times that another process had been there first.
    pub conflicts: u64,
    /// Commits whose outcome was in doubt.
    pub doubtful: u64,
    /// Sessions in memory.
    pub sessions_in_memory: u64,
    /// Calls that wait for another one's cost (V-12).
    pub waiting_for_cost: u64,
    /// Questions to approvers that this process put and that are open.
    pub open_questions: u64,
}

/// What goes wrong, told once when it begins and once when it ends.
#[derive(Debug, Default)]
pub struct Alarms {
    log_silent: Mutex<Option<String>>,
    store_failing: Mutex<Option<String>>,
    pressing: AtomicBool,
    doubting: AtomicBool,
    warned: AtomicBool,
    refused: AtomicU64,
    commits: AtomicU64,
    records: AtomicU64,
    conflicts: AtomicU64,
    doubtful: AtomicU64,
    in_memory: AtomicU64,
    parked: AtomicU64,
}

impl Alarms {
    /// The log answered.
    pub fn log_answers(&self) {
        if take(&self.log_silent).is_some() {
            info!("the log takes records again");
        }
    }

    /// The log did not take anything.
    pub fn log_is_silent(&self, why: &str) {
        if put(&self.log_silent, why).is_none() {
            error!(why, "ALARM: nothing goes to the log; records are kept and sent again");
        }
    }

    /// The log refused a record for good.
    pub fn refused(&self, record: &Pending, why: &str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let (id, stream, seq) = (&record.id, &record.stream, record.seq);
        error!(%id, stream, seq, why, "ALARM: the log refuses a record for good; it stays in the outbox");
    }

    /// The outbox was looked at: `share` of its limits is taken.
    pub fn outbox(&self, over: Option<Backpressure>, share: f64) {
        match over {
            Some(over) if !self.pressing.swap(true, Ordering::Relaxed) => {
                error!(%over, "ALARM: the outbox is full; calls are denied until the log takes records");
            }
            None if self.pressing.swap(false, Ordering::Relaxed) => info!("the outbox has room again"),
            _ => {}
        }
        match share >= OUTBOX_WARNING {
            true if !self.warned.swap(true, Ordering::Relaxed) => {
                warn!(share, "the outbox fills up; when it is full, calls are denied");
            }
            false => self.warned.store(false, Ordering::Relaxed),
            true => {}
        }
    }

    /// A commit came back.
    pub fn committed(&self, records: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(records, Ordering::Relaxed);
        if take(&self.store_failing).is_some() {
            info!("evidence is committed again");
        }
    }

    /// Nothing can be committed.
    pub fn store_fails(&self, why: &str) {
        if put(&self.store_failing, why).is_none() {
            error!(why, "ALARM: evidence cannot be committed; calls are denied");
        }
    }

    /// Another process came first.
    pub fn conflicted(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// It is not known whether a commit happened.
    pub fn doubted(&self, why: &str) {
        self.doubtful.fetch_add(1, Ordering::Relaxed);
        warn!(why, "a commit is in doubt; it is looked for before anything is said");
    }

    /// Whether the database does not even say if a commit happened. Until it does, nothing else is committed.
    pub fn doubting(&self, doubting: bool) {
        self.doubting.store(doubting, Ordering::Relaxed);
    }

    /// Whether it would be no use to wait for a decision.
    pub fn is_doubting(&self) -> bool {
        self.doubting.load(Ordering::Relaxed)
    }

    /// What is in memory.
    pub fn in_memory(&self, sessions: usize, parked: usize) {
        self.in_memory.store(number(sessions), Ordering::Relaxed);
        self.parked.store(number(parked), Ordering::Relaxed);
    }

    /// The numbers, without the outbox's.
    pub fn status(&self) -> Status {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Status {
            log_silent: copy(&self.log_silent),
            store_failing: copy(&self.store_failing),
            refused: read(&self.refused),
            commits: read(&self.commits),
            records: read(&self.records),
            conflicts: read(&self.conflicts),
            doubtful: read(&self.doubtful),
            sessions_in_memory: read(&self.in_memory),
            waiting_for_cost: read(&self.parked),
            ..Status::default()
        }
    }
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

type Text = Mutex<Option<String>>;

fn copy(text: &Text) -> Option<String> {
    text.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn take(text: &Text) -> Option<String> {
    text.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put(text: &Text, why: &str) -> Option<String> {
    text.lock().unwrap_or_else(PoisonError::into_inner).replace(why.to_owned())
}
