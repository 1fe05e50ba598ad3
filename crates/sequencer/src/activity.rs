//! Signs of progress for readiness and liveness checks: the step that the sequencer waits for, and the last time
//! that the inbox could be read.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Step of sequencing that waits for something outside of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Looking up digests and guards in the database ([`LogReader::find`](store::LogReader::find),
    /// [`LogReader::guards`](store::LogReader::guards)).
    LookUp,
    /// Committing a batch ([`LogWriter::commit`](store::LogWriter::commit)).
    Commit,
    /// Settling a commit of unknown outcome ([`LogWriter::take_over`](store::LogWriter::take_over)).
    Settle,
    /// Claiming or raising the pin ([`PinStore`](store::PinStore)).
    Pin,
    /// Signing a head ([`HeadSigner::sign`](crate::HeadSigner::sign)).
    Sign,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LookUp => "a look-up in the database",
            Self::Commit => "a commit",
            Self::Settle => "settling a commit of unknown outcome",
            Self::Pin => "raising the pin",
            Self::Sign => "signing a head",
        })
    }
}

/// Value with the moment at which it was set. Clones share it.
#[derive(Clone, Debug)]
struct Since<T>(Arc<Mutex<Option<(T, Instant)>>>);

impl<T> Default for Since<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Copy> Since<T> {
    fn set(&self, value: Option<T>) {
        *self.lock() = value.map(|value| (value, Instant::now()));
    }

    fn get(&self) -> Option<(T, Duration)> {
        self.lock().map(|(value, since)| (value, since.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(T, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Step in progress. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity(Since<Step>);

impl Activity {
    pub(crate) fn begin(&self, step: Step) {
        self.0.set(Some(step));
    }

    pub(crate) fn end(&self) {
        self.0.set(None);
    }

    /// Returns the step in progress and its duration; `None` while the sequencer waits for work.
    pub(crate) fn current(&self) -> Option<(Step, Duration)> {
        self.0.get()
    }
}

/// Time of a task's last success. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heartbeat(Since<()>);

impl Heartbeat {
    pub(crate) fn beat(&self) {
        self.0.set(Some(()));
    }

    pub(crate) fn stop(&self) {
        self.0.set(None);
    }

    /// Time since the last beat; `None` while the task does not run.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.0.get().map(|((), age)| age)
    }
}
