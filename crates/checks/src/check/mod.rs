//! The checks of the four tiers (section 7): from a request to a report.

mod cases;
mod conditions;
mod outcome;
mod property;
mod session;
mod solvers;

use crate::jobs::{RunError, RunJobs};
use crate::report::Report;
use crate::request::{CheckRequest, Criteria};

/// Runs all checks of a request.
///
/// # Errors
/// [`RunError`] if there is no engine for the request, or the runner failed.
pub fn run_checks(request: &CheckRequest, runner: &dyn RunJobs) -> Result<Report, RunError> {
    match request.criteria() {
        Criteria::Tests(tests) => cases::run(request, tests, runner),
        Criteria::Conditions(conditions) => Ok(conditions::run(request, conditions)),
        Criteria::Properties(properties) => property::run(request, properties, runner),
        Criteria::Obligation(obligation) => solvers::run(request, obligation, runner),
    }
}
