//! The report of a run: the conclusion of every check, and the sums.

mod html;

use serde::Serialize;

use crate::check::{ConformanceCheck, RequirementLevel};
use crate::checks::{RECEIPT_VERIFIES, checks};
use crate::judgement::Shortfall;
use crate::observations::Observations;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckConclusion {
    /// The requirement is met.
    Passed,
    /// A MUST is violated.
    Failed,
    /// A SHOULD is not followed.
    Warning,
    /// The check does not apply, with the reason as its finding.
    NotApplicable,
    /// The service uses an option that this suite cannot check.
    Unsupported,
}

impl CheckConclusion {
    /// Returns the name, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Warning => "warning",
            Self::NotApplicable => "not-applicable",
            Self::Unsupported => "unsupported",
        }
    }
}

/// A check with its conclusion.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// Name of the check.
    pub name: &'static str,
    /// Specification and section.
    pub source: &'static str,
    /// Level of the requirement.
    pub level: RequirementLevel,
    /// What a conforming service does.
    pub expectation: &'static str,
    /// The result.
    pub conclusion: CheckConclusion,
    /// What the service did, or the reason why the check does not apply. Text of the service is escaped for terminals.
    pub finding: String,
}

impl CheckResult {
    fn of(check: &ConformanceCheck, observations: &Observations) -> Self {
        let (conclusion, finding) = match (check.judge)(observations) {
            Ok(finding) => (CheckConclusion::Passed, finding),
            Err(Shortfall::Violated(finding)) if check.level == RequirementLevel::Must => {
                (CheckConclusion::Failed, finding)
            }
            Err(Shortfall::Violated(finding)) => (CheckConclusion::Warning, finding),
            Err(Shortfall::NotApplicable(reason)) => (CheckConclusion::NotApplicable, reason),
            Err(Shortfall::Unsupported(what)) => (CheckConclusion::Unsupported, what),
        };
        let ConformanceCheck { name, source, level, expectation, .. } = *check;
        Self { name, source, level, expectation, conclusion, finding }
    }
}

/// Numbers of checks by conclusion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ConformanceSummary {
    /// Requirements that are met.
    pub passed: usize,
    /// Violated MUSTs.
    pub failed: usize,
    /// SHOULDs that are not followed.
    pub warning: usize,
    /// Checks that do not apply.
    pub not_applicable: usize,
    /// Checks of an option that this suite does not know.
    pub unsupported: usize,
    /// Checks of the suite that were not selected for this run.
    pub not_selected: usize,
}

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ConformanceReport {
    /// URL of the tested service.
    pub service: String,
    /// Time of the run (RFC 3339).
    pub at: String,
    /// `true` if no MUST of the selected checks is violated, and the run decides.
    pub conforms: bool,
    /// Reason why the run does not decide, although no MUST of the selected checks is violated.
    pub undecided: Option<&'static str>,
    /// Numbers of checks by conclusion.
    pub summary: ConformanceSummary,
    /// The selected checks, in the order of the suite.
    pub checks: Vec<CheckResult>,
}

impl ConformanceReport {
    /// Decides the selected checks. `service` and `at` are only quoted.
    pub fn of(
        selected: &[&ConformanceCheck],
        observations: &Observations,
        service: impl Into<String>,
        at: impl Into<String>,
    ) -> Self {
        let checks: Vec<_> = selected.iter().map(|check| CheckResult::of(check, observations)).collect();
        let summary = summary_of(&checks);
        let undecided = undecided(&checks, observations).filter(|_| summary.failed == 0);
        let conforms = summary.failed == 0 && undecided.is_none();
        Self { service: service.into(), at: at.into(), conforms, undecided, summary, checks }
    }
}

/// Returns the reason why a run without a violation does not show that the service conforms.
fn undecided(results: &[CheckResult], observations: &Observations) -> Option<&'static str> {
    if observations.ended_early() {
        return Some("the time of the run was over before all requests were sent");
    }
    let is_open = |check: &&CheckResult| check.conclusion == CheckConclusion::NotApplicable;
    let receipt = results.iter().find(|check| check.name == RECEIPT_VERIFIES);
    receipt.filter(is_open).map(|_| "no receipt was verified")
}

fn summary_of(results: &[CheckResult]) -> ConformanceSummary {
    let not_selected = checks().count() - results.len();
    let mut summary = ConformanceSummary { not_selected, ..ConformanceSummary::default() };
    for check in results {
        let count = match check.conclusion {
            CheckConclusion::Passed => &mut summary.passed,
            CheckConclusion::Failed => &mut summary.failed,
            CheckConclusion::Warning => &mut summary.warning,
            CheckConclusion::NotApplicable => &mut summary.not_applicable,
            CheckConclusion::Unsupported => &mut summary.unsupported,
        };
        *count += 1;
    }
    summary
}
