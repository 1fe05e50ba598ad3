//! What a policy answers: a permit to register, or the rule that refuses.
//!
//! Nothing here has a public constructor: a [`Permit`] comes out of [`PolicyInForce::decide`](crate::PolicyInForce)
//! and out of nowhere else, so an entry that needs one to be made was decided.

use merkle::{EntryDigest, LeafIndex};
use serde_json::{Map, Value};

use crate::clock_correction::{ClockCorrection, ClockCorrectionRule};
use crate::guard::Guard;
use crate::operator::Effect;
use crate::policy::{Policy, PolicyDigest};
use crate::violation::{Place, RuleName, Violation};

/// Seconds of Unix time, both ends included; an absent end is open.
///
/// Nothing in this crate knows what time it is. Rules about time answer with the times at which they hold, and
/// whoever knows the time compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first second.
    pub not_before: Option<u64>,
    /// The last second.
    pub not_after: Option<u64>,
}

impl TimeWindow {
    /// All of time.
    pub const ALWAYS: TimeWindow = TimeWindow { not_before: None, not_after: None };

    /// From a second on.
    pub fn from(not_before: u64) -> Self {
        TimeWindow { not_before: Some(not_before), not_after: None }
    }

    /// Up to a second.
    pub fn until(not_after: u64) -> Self {
        TimeWindow { not_before: None, not_after: Some(not_after) }
    }

    /// Whether a time lies within.
    pub fn contains(&self, at: u64) -> bool {
        self.not_before.is_none_or(|start| start <= at) && self.not_after.is_none_or(|end| at <= end)
    }

    /// The times that lie within both.
    pub fn intersect(self, other: TimeWindow) -> TimeWindow {
        TimeWindow {
            not_before: self.not_before.max(other.not_before),
            not_after: match (self.not_after, other.not_after) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// Whether no time lies within.
    pub fn is_empty(&self) -> bool {
        matches!((self.not_before, self.not_after), (Some(start), Some(end)) if start > end)
    }
}

/// A rule about time, and when it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub rule: RuleName,
    pub place: Place,
    pub window: TimeWindow,
}

/// The answer of a policy.
#[derive(Clone, Debug)]
pub enum Decision {
    /// It may be registered, under the permit's conditions.
    Admit(Permit),
    /// It may not.
    Refuse(Refusal),
    /// Nobody can say now; asked again it may be said.
    Undecided(Undecided),
}

impl Decision {
    /// The permit, or why there is none as an error.
    pub fn into_permit(self) -> Result<Permit, NotPermitted> {
        match self {
            Decision::Admit(permit) => Ok(permit),
            Decision::Refuse(refusal) => Err(NotPermitted::Refused(refusal)),
            Decision::Undecided(undecided) => Err(NotPermitted::Undecided(undecided)),
        }
    }
}

/// Why there is no permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPermitted {
    /// The policy refuses.
    #[error(transparent)]
    Refused(Refusal),
    /// The policy has no answer.
    #[error(transparent)]
    Undecided(Undecided),
}

/// A rule that did not come to an answer within its bounds. Never a refusal: the next attempt may come to one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {why}")]
pub struct Undecided {
    /// The rule.
    pub rule: RuleName,
    /// Why it has no answer.
    pub why: String,
}

/// Leave to register one statement, and on what conditions. Kept with the entry.
#[derive(Clone, Debug)]
pub struct Permit {
    pub(crate) statement: EntryDigest,
    pub(crate) policy: LeafIndex,
    pub(crate) policy_digest: PolicyDigest,
    pub(crate) rule: RuleName,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) relied_absent: Vec<EntryDigest>,
    pub(crate) relied_free: Vec<Guard>,
    pub(crate) facts: String,
    /// What deciding found out; it goes into the facts.
    pub(crate) learned: Map<String, Value>,
    pub(crate) successor: Option<Policy>,
    pub(crate) corrects: Option<ClockCorrection>,
    pub(crate) effect: Option<Box<Effect>>,
}

impl Permit {
    /// The statement it is for.
    pub fn statement(&self) -> EntryDigest {
        self.statement
    }

    /// The leaf of the policy that decided.
    pub fn policy(&self) -> LeafIndex {
        self.policy
    }

    /// The digest of that policy.
    pub fn policy_digest(&self) -> PolicyDigest {
        self.policy_digest
    }

    /// The rule that admitted.
    pub fn rule(&self) -> &RuleName {
        &self.rule
    }

    /// When the entry may be committed: every rule about time holds within.
    pub fn valid(&self) -> TimeWindow {
        self.bounds.iter().fold(TimeWindow::ALWAYS, |window, bound| window.intersect(bound.window))
    }

    /// Claims that no later entry may repeat. The log keeps them unique.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Statements the decision took to be absent from the log: if one turned up, decide again.
    pub fn relied_absent(&self) -> &[EntryDigest] {
        &self.relied_absent
    }

    /// Claims that the decision took to be made by no entry of the log: if one was made, decide again.
    pub fn relied_free(&self) -> &[Guard] {
        &self.relied_free
    }

    /// What was read from the statement, as canonical JSON, for display and look-up. Nothing decides by it.
    pub fn facts(&self) -> &str {
        &self.facts
    }

    /// The policy that is in force after this entry, when the statement is a policy.
    pub fn successor(&self) -> Option<&Policy> {
        self.successor.as_ref()
    }

    /// The correction of the log's time, when the statement is one: the entry stands at the index that this names, and its
    /// batch may then carry a time before that of the batch before it.
    pub fn clock_correction(&self) -> Option<&ClockCorrection> {
        self.corrects.as_ref()
    }

    /// What the entry does in the transaction that commits it, when the statement is an operator's action.
    pub fn effect(&self) -> Option<&Effect> {
        self.effect.as_deref()
    }

    /// The refusal that this permit turns into at a time outside its window.
    pub fn refusal_at(&self, at: u64) -> Option<Refusal> {
        let broken = self.bounds.iter().find(|bound| !bound.window.contains(at))?;
        Some(self.refuse(Violation {
            rule: broken.rule.clone(),
            place: broken.place.clone(),
            detail: format!("the log's time is {at}, {}", told(broken.window)),
        }))
    }

    /// The refusal that the permit of a clock correction turns into when the correction does not apply to the log.
    pub fn refusal_of_correction(&self, why: &str) -> Refusal {
        self.refuse(ClockCorrectionRule::NewestHead.in_payload("/size", why))
    }

    /// The refusal that this permit turns into when the log holds one of its guards already.
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

fn told(window: TimeWindow) -> String {
    match (window.not_before, window.not_after) {
        (Some(start), Some(end)) => format!("the statement stands from {start} to {end}"),
        (Some(start), None) => format!("the statement stands from {start} on"),
        (None, Some(end)) => format!("the statement stood until {end}"),
        (None, None) => "the statement always stands".to_owned(),
    }
}

/// Why a policy does not admit a statement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{violation}")]
pub struct Refusal {
    /// The leaf of the policy that decided.
    pub policy: LeafIndex,
    /// The digest of that policy.
    pub policy_digest: PolicyDigest,
    /// The rule, where it was broken, and what was found.
    pub violation: Violation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_intersect_as_sets_of_seconds() {
        let window = |a: Option<u64>, b: Option<u64>| TimeWindow { not_before: a, not_after: b };
        assert_eq!(TimeWindow::from(5).intersect(TimeWindow::until(9)), window(Some(5), Some(9)));
        assert_eq!(window(Some(1), Some(9)).intersect(window(Some(5), Some(20))), window(Some(5), Some(9)));
        assert_eq!(TimeWindow::ALWAYS.intersect(TimeWindow::until(3)), TimeWindow::until(3));
        assert!(TimeWindow::from(5).intersect(TimeWindow::until(4)).is_empty());
        assert!(!TimeWindow::from(5).intersect(TimeWindow::until(5)).is_empty());
        assert!(TimeWindow::from(5).contains(5) && !TimeWindow::from(5).contains(4));
        assert!(TimeWindow::until(5).contains(5) && !TimeWindow::until(5).contains(6));
    }
}
