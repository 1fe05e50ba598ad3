//! The checks of the four tiers (section 7): from a request to a report.

mod cases;
mod conditions;
mod deadline;
mod outcome;
mod property;
mod session;
mod solvers;

use std::time::Duration;

use crate::jobs::{RunError, RunJobs};
use crate::report::Report;
use crate::request::{CheckRequest, Criteria};
use deadline::Deadline;

/// Runs all checks of a request. `elapsed` returns the time since they began: what has not been run when
/// `limits.total_ms` is over is an error. What was run is compared, with [`COMPARISON_TIME`](crate::limits::COMPARISON_TIME)
/// of its own.
///
/// # Errors
/// [`RunError`] if there is no engine for the request, or the runner failed.
pub fn run_checks(
    request: &CheckRequest,
    runner: &dyn RunJobs,
    elapsed: &dyn Fn() -> Duration,
) -> Result<Report, RunError> {
    let deadline = Deadline::new(elapsed, request.limits().total_ms);
    match request.criteria() {
        Criteria::Tests(tests) => cases::run(request, tests, runner, deadline),
        Criteria::Conditions(conditions) => Ok(conditions::run(request, conditions, deadline)),
        Criteria::Properties(properties) => property::run(request, properties, runner, deadline),
        Criteria::Obligation(obligation) => solvers::run(request, obligation, runner, deadline),
    }
}
