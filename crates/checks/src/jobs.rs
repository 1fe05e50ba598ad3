//! The interface to a runner: batches of calls, and how each ended.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox::{Call, Limits, Outcome};

use crate::engines::{Engines, Facility};
use crate::report::Report;
use crate::request::CheckRequest;

/// Runs the checks of requests.
pub trait RunChecks: Send + Sync {
    /// Runs all checks of a request, and waits for them. Work that fails its checks is a report, not an error.
    ///
    /// # Errors
    /// [`RunError`] if the checks could not be run; a later attempt may succeed unless the engine is unavailable.
    fn run(&self, request: &CheckRequest) -> Result<Report, RunError>;

    /// Returns the engines, for the tiers and languages that can be checked.
    fn engines(&self) -> &Engines;
}

/// Runs batches of calls, each call in a fresh guest.
pub trait RunJobs {
    /// Runs the calls in order. The result has one end for each call, in the same order.
    ///
    /// # Errors
    /// [`RunError`] if the runner itself failed.
    fn run_jobs(&self, batch: &Batch) -> Result<Vec<JobEnd>, RunError>;

    /// Returns the engines.
    fn engines(&self) -> &Engines;
}

/// A runner without engines, for requests of tier 1.
#[derive(Clone, Debug, Default)]
pub struct NoEngines(Engines);

impl RunJobs for NoEngines {
    fn run_jobs(&self, batch: &Batch) -> Result<Vec<JobEnd>, RunError> {
        Err(RunError::Unavailable { facility: batch.facility.name(), refused: Vec::new() })
    }

    fn engines(&self) -> &Engines {
        &self.0
    }
}

/// Calls into the same files, each of which gets a fresh guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The kind of run, which chooses the engine.
    pub facility: Facility,
    /// The files of the guests by relative path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The calls.
    pub calls: Vec<Call>,
    /// The bounds of each run.
    pub limits: Limits,
    /// The bound on the wall time of all runs: calls after it are not started.
    pub total_time: Duration,
}

/// The end of one call of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// The guest ran; the outcome says how it ended.
    Ran(Outcome),
    /// The sandbox failed.
    Failed(String),
    /// The time of the batch was used up before.
    NotStarted,
}

/// The reason why checks were not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// This runner has no engine for the request.
    #[error("{facility} cannot be run here{}", detail(.refused))]
    Unavailable {
        /// What has no engine.
        facility: &'static str,
        /// Why engines are missing.
        refused: Vec<String>,
    },
    /// The runner could not be started, broke its protocol, or did not answer in time.
    #[error("the runner failed: {0}")]
    Failed(String),
}

fn detail(refused: &[String]) -> String {
    match refused {
        [] => String::new(),
        refused => format!(": {}", refused.join("; ")),
    }
}
