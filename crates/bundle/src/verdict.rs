//! The result of verifying a bundle.

use serde::Serialize;
use verifier::{Check, CheckState, CheckpointVerdict, Code, StatementVerdict, VerificationOutcome};

/// Complete result of the verification of a bundle.
///
/// Details quote text of the bundle: escape them before printing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BundleVerdict {
    /// Overall result: `failed` if anything failed, else `not-verified` if anything was not verified.
    pub outcome: VerificationOutcome,
    /// Reason why `outcome` is not [`VerificationOutcome::Verified`].
    pub reason: Option<Code>,
    /// Result of the checkpoint by itself.
    pub checkpoint: CheckpointVerdict,
    /// Results of the entries, in the order of the bundle.
    pub entries: Vec<StatementVerdict>,
    /// Results of the policies, in the order of the bundle.
    pub policies: Vec<StatementVerdict>,
    /// Checks of the bundle as a whole, including those not done.
    pub checks: Vec<Check>,
}

impl BundleVerdict {
    /// Combines the results of the parts.
    pub(crate) fn of(
        checkpoint: CheckpointVerdict,
        entries: Vec<StatementVerdict>,
        policies: Vec<StatementVerdict>,
        checks: Vec<Check>,
    ) -> Self {
        let mut verdict = Self {
            outcome: VerificationOutcome::Verified,
            reason: None,
            checkpoint,
            entries,
            policies,
            checks,
        };
        verdict.conclude();
        verdict
    }

    /// Returns `true` if everything in the bundle is verified.
    pub fn is_verified(&self) -> bool {
        self.outcome == VerificationOutcome::Verified
    }

    /// Determines outcome and reason again, after checks were added to the results of entries or policies.
    pub fn conclude(&mut self) {
        let outcomes = self.part_outcomes();
        let first =
            |outcome: VerificationOutcome| outcomes.iter().find(|(part, _)| *part == outcome).copied();
        let decisive = first(VerificationOutcome::Failed).or(first(VerificationOutcome::NotVerified));
        (self.outcome, self.reason) = decisive.unwrap_or((VerificationOutcome::Verified, None));
    }

    /// Returns outcome and reason of every part. The bundle's own checks count only if they failed.
    fn part_outcomes(&self) -> Vec<(VerificationOutcome, Option<Code>)> {
        let own = self.checks.iter().filter(|check| check.state == CheckState::Failed);
        let own = own.map(|check| (VerificationOutcome::Failed, check.code));
        let statements = self.entries.iter().chain(&self.policies);
        let statements = statements.map(|verdict| (verdict.outcome, verdict.reason));
        let checkpoint = (self.checkpoint.outcome, self.checkpoint.reason);
        let empty = (VerificationOutcome::NotVerified, Some(Code::EmptyBundle));
        let empty = self.entries.is_empty().then_some(empty);
        statements.chain([checkpoint]).chain(own).chain(empty).collect()
    }
}
