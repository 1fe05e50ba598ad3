//! Results of a policy's decision: a [`Permit`] to register, a [`Refusal`], or no result yet.
//!
//! A [`Permit`] has no public constructor: only [`PolicyInForce::decide`](crate::PolicyInForce::decide) and the
//! admission of entry 0 return one. A function that takes a permit therefore handles a statement that a policy
//! admitted.

use merkle::{EntryDigest, LeafIndex, TreeSize};

use crate::clock_correction::{ClockCorrection, ClockCorrectionRule};
use crate::guard::Guard;
use crate::operator::Effect;
use crate::policy::log_end::{self, LOG_ENDED};
use crate::policy::{Policy, PolicyDigest};
use crate::time_window::{Bound, TimeWindow, rfc3339};
use crate::violation::{Place, RuleName, Violation};

/// The result of a policy's decision about a statement.
#[derive(Clone, Debug)]
pub enum Decision {
    /// The statement may be registered under the permit's conditions.
    Admit(Permit),
    /// The statement breaks a rule and may not be registered.
    Refuse(Refusal),
    /// A rule gave no answer in time; a later attempt may succeed.
    Undecided(Undecided),
}

impl Decision {
    /// Returns the permit, or [`NotPermitted`] if the statement was refused or is undecided.
    pub fn into_permit(self) -> Result<Permit, NotPermitted> {
        match self {
            Decision::Admit(permit) => Ok(permit),
            Decision::Refuse(refusal) => Err(NotPermitted::Refused(refusal)),
            Decision::Undecided(undecided) => Err(NotPermitted::Undecided(undecided)),
        }
    }
}

/// The reasons for a decision without a permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPermitted {
    /// The statement breaks a rule of the policy.
    #[error(transparent)]
    Refused(Refusal),
    /// A rule gave no answer in time.
    #[error(transparent)]
    Undecided(Undecided),
}

/// A rule that gave no answer within its time limit. This is not a refusal: a later attempt may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {why}")]
pub struct Undecided {
    /// The name of the rule.
    pub rule: RuleName,
    /// The reason for the missing answer, for display.
    pub why: String,
}

/// Permission to register one statement, with its conditions. The log stores it with the entry.
#[derive(Clone, Debug)]
pub struct Permit {
    pub(crate) statement: EntryDigest,
    pub(crate) policy: LeafIndex,
    pub(crate) policy_digest: PolicyDigest,
    pub(crate) rule: RuleName,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) largest_tree: Option<TreeSize>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) relied_absent: Vec<EntryDigest>,
    pub(crate) relied_free: Vec<Guard>,
    pub(crate) facts: String,
    pub(crate) successor: Option<Policy>,
    pub(crate) corrects: Option<ClockCorrection>,
    pub(crate) effect: Option<Box<Effect>>,
}

impl Permit {
    /// The digest of the admitted statement.
    pub fn statement(&self) -> EntryDigest {
        self.statement
    }

    /// The leaf index of the policy that admitted the statement.
    pub fn policy(&self) -> LeafIndex {
        self.policy
    }

    /// The digest of the policy that admitted the statement.
    pub fn policy_digest(&self) -> PolicyDigest {
        self.policy_digest
    }

    /// The name of the rule that admitted the statement.
    pub fn rule(&self) -> &RuleName {
        &self.rule
    }

    /// Returns the interval in which the entry may be committed: the intersection of all rules about time.
    pub fn valid(&self) -> TimeWindow {
        self.bounds.iter().fold(TimeWindow::ALWAYS, |window, bound| window.intersect(bound.window))
    }

    /// The largest tree that the entry may be part of when it is committed; `None` if the policy sets no bound.
    pub fn largest_tree(&self) -> Option<TreeSize> {
        self.largest_tree
    }

    /// The claims that no later entry may repeat; the log enforces their uniqueness.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The statements that the decision assumed to be absent from the log. If one of them is registered first, the
    /// decision must be repeated.
    pub fn relied_absent(&self) -> &[EntryDigest] {
        &self.relied_absent
    }

    /// The claims that the decision assumed to be made by no entry of the log. If one of them is made first, the
    /// decision must be repeated.
    pub fn relied_free(&self) -> &[Guard] {
        &self.relied_free
    }

    /// The facts that the log stores with the entry, as canonical JSON (RFC 8785): those that the statement does not
    /// contain. [`entry_facts`](crate::entry_facts) returns all of them. For display and search; no rule reads them.
    pub fn facts(&self) -> &str {
        &self.facts
    }

    /// The policy in force after this entry, if the statement is a policy.
    pub fn successor(&self) -> Option<&Policy> {
        self.successor.as_ref()
    }

    /// The clock correction, if the statement is one. Its entry must have the index `size`, and its batch may carry a
    /// time before that of the previous batch.
    pub fn clock_correction(&self) -> Option<&ClockCorrection> {
        self.corrects.as_ref()
    }

    /// The change that the commit of this entry applies in the same transaction, if the statement is an operator
    /// action.
    pub fn effect(&self) -> Option<&Effect> {
        self.effect.as_deref()
    }

    /// Returns the refusal for a commit at the time `at` (Unix seconds), or `None` if `at` lies in
    /// [`valid`](Self::valid).
    pub fn refusal_at(&self, at: u64) -> Option<Refusal> {
        let broken = self.bounds.iter().find(|bound| !bound.window.contains(at))?;
        Some(self.refuse(violation_at(broken, at)))
    }

    /// The refusal that this permit turns into at a leaf beyond the largest tree.
    pub fn refusal_at_leaf(&self, leaf: LeafIndex) -> Option<Refusal> {
        let largest = self.largest_tree.filter(|largest| !largest.holds(leaf))?;
        Some(self.refuse(log_end::log_full(largest)))
    }

    /// Returns the refusal for a clock correction that does not apply to the log's newest head.
    pub fn refusal_of_correction(&self, why: &str) -> Refusal {
        self.refuse(ClockCorrectionRule::NewestHead.in_payload("/size", why))
    }

    /// Returns the refusal for a permit whose `guard` the entry at leaf `held_by` already holds.
    pub fn refusal_for_guard(&self, guard: &[u8], held_by: LeafIndex) -> Refusal {
        let (rule, place) = match self.guards.iter().find(|own| own.as_bytes() == guard) {
            Some(own) => (own.rule(), own.place()),
            None => (RuleName::fixed("guard"), Place::Statement),
        };
        self.refuse(Violation {
            rule,
            place,
            detail: format!("leaf {held_by} makes the same claim, and only one may"),
        })
    }

    fn refuse(&self, violation: Violation) -> Refusal {
        Refusal { policy: self.policy, policy_digest: self.policy_digest, violation }
    }
}

/// Returns the violation of a rule about time at a time outside its window.
fn violation_at(bound: &Bound, at: u64) -> Violation {
    let detail = match (bound.rule.as_str(), bound.window.not_after) {
        (LOG_ENDED, Some(last)) => log_end::ended(at, last),
        _ => format!("the log's time is {}, {}", rfc3339(at), describe(bound.window)),
    };
    Violation { rule: bound.rule.clone(), place: bound.place.clone(), detail }
}

fn describe(window: TimeWindow) -> String {
    match (window.not_before.map(rfc3339), window.not_after.map(rfc3339)) {
        (Some(start), Some(end)) => format!("the statement stands from {start} to {end}"),
        (Some(start), None) => format!("the statement stands from {start} on"),
        (None, Some(end)) => format!("the statement stood until {end}"),
        (None, None) => "the statement always stands".to_owned(),
    }
}

/// A refused statement: the policy and the rule that the statement breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{violation}")]
pub struct Refusal {
    /// The leaf index of the policy that refused.
    pub policy: LeafIndex,
    /// The digest of the policy that refused.
    pub policy_digest: PolicyDigest,
    /// The broken rule, with the place in the statement and details.
    pub violation: Violation,
}
