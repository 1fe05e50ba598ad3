//! Results of checks.

use std::collections::BTreeMap;

use registration::vrf::{Results, Verdict};
use sandbox::Engine;

/// The results of all checks of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The checks, in the order of the request.
    pub details: Vec<Detail>,
    /// The engine that ran the work; for tier 1, which runs nothing, the validator.
    pub engine: Engine,
    /// Units of work of all runs together, if the engine counts them.
    pub fuel_used: Option<u64>,
    /// The seed of generated inputs (tier 2).
    pub seed: Option<String>,
    /// The number of generated inputs that were run, without smaller ones (tier 2).
    pub cases: Option<u64>,
    /// Further hashes of the receipt, such as those of the solvers' models (tier 3).
    pub hashes: BTreeMap<String, String>,
    /// Wall time of all runs together, in milliseconds.
    pub execution_ms: u64,
}

/// The result of one check (section 4.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The name of the check.
    pub name: String,
    /// The result.
    pub status: Status,
    /// The expected value, shortened.
    pub expected: Option<String>,
    /// The actual value, shortened.
    pub actual: Option<String>,
    /// The explanation of a result other than pass.
    pub message: Option<String>,
    /// Wall time of the check in milliseconds, if it ran in a sandbox.
    pub elapsed_ms: Option<u64>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The work fulfils the check.
    Pass,
    /// The work does not fulfil the check.
    Fail,
    /// The check could not be decided, for a reason that is not the work's.
    Error,
    /// The check was not tried.
    Skip,
}

impl Status {
    /// The value of `status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Skip => "skip",
        }
    }
}

impl Report {
    /// Counts the checks by result.
    #[must_use]
    pub fn results(&self) -> Results {
        let count = |status| self.details.iter().filter(|detail| detail.status == status).count() as u64;
        Results {
            total: self.details.len() as u64,
            passed: count(Status::Pass),
            failed: count(Status::Fail),
            errors: count(Status::Error),
        }
    }

    /// Returns the verdict (reading 15). A failed check decides, even if another could not be run: otherwise work could
    /// avoid "fail" by making one of its checks run out of time.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.results() {
            Results { failed: 1.., passed: 1.., .. } => Verdict::Partial,
            Results { failed: 1.., .. } => Verdict::Fail,
            Results { errors: 0, passed: 1.., .. } => Verdict::Pass,
            _ => Verdict::Error,
        }
    }
}
