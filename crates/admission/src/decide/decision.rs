//! The decision about a call: an ordered list of stages, of which the first that does not pass decides.
//!
//! [`run`] is the only place that composes a decision, and the only one that makes the proof that a [`CallPermit`]
//! needs. So no stage can admit a call that an earlier stage refused.

use crate::clarify::HumanQuestion;
use crate::rules::Decider;
use crate::session::ReservationId;
use vap::reason::Reason;

use super::ruling::Ruling;
use super::semantic::JudgeQuestion;

/// The decision about a call.
#[derive(Debug)]
pub enum CallDecision {
    /// The call is forwarded.
    Admit(CallPermit, Box<Ruling>),
    /// The judge or a human has to be asked first.
    Ask {
        /// The question.
        question: CallQuestion,
        /// The reservation that is held while the question is open; `None` for a caller without a session.
        held: Option<ReservationId>,
    },
    /// The call has to wait: another call with the same tool of unknown cost is in flight (reading V-12), or too many
    /// calls are. Nothing changed; it is decided again when a call of the session settles.
    Wait,
    /// The call is denied, or the client has to send it again with an answer.
    Refuse(Box<Ruling>),
}

/// A question about a call.
#[derive(Clone, Debug)]
pub enum CallQuestion {
    /// A question to the judge (C5).
    Judge(Box<JudgeQuestion>),
    /// A question to a human, with the state that its answer is bound to: to the client's user on the open stream
    /// (legacy), or to an approver.
    Human(Box<HumanQuestion>),
}

/// The permission to forward one call. Only a call that passed every stage has one, and it cannot be copied.
#[derive(Debug)]
pub struct CallPermit {
    reservation: Option<ReservationId>,
}

impl CallPermit {
    /// Creates the permit of a call that passed all stages.
    pub(super) fn new(_proof: EveryStagePassed, reservation: Option<ReservationId>) -> Self {
        CallPermit { reservation }
    }

    /// Returns the reservation of the call, which has to be settled or refunded; `None` without a session.
    #[must_use]
    pub fn reservation(&self) -> Option<ReservationId> {
        self.reservation
    }
}

/// The proof that every stage passed.
pub(super) struct EveryStagePassed(());

/// The finding of a stage: the call may go on to the next one, or is not admitted.
pub(super) type StageFinding = Result<(), CallNotAdmitted>;

/// The reason why a stage does not let a call go on.
#[derive(Debug)]
pub(super) enum CallNotAdmitted {
    /// The call is denied.
    Denied(Reason),
    /// The call has to wait for another one.
    Wait,
    /// The judge has to be asked.
    Judge(Box<JudgeQuestion>),
    /// A human has to be asked, for this reason.
    Ask(Reason, Decider),
}

impl From<Reason> for CallNotAdmitted {
    fn from(reason: Reason) -> Self {
        CallNotAdmitted::Denied(reason)
    }
}

/// Runs the stages in their order, until one of them does not pass.
pub(super) fn run<C>(
    stages: &[fn(&mut C) -> StageFinding],
    case: &mut C,
) -> Result<EveryStagePassed, CallNotAdmitted> {
    stages.iter().try_for_each(|stage| stage(case))?;
    Ok(EveryStagePassed(()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Findings that stages report one after the other, with the number of stages that ran.
    struct Script {
        findings: Vec<u8>,
        ran: usize,
    }

    fn scripted(script: &mut Script) -> StageFinding {
        script.ran += 1;
        match script.findings[script.ran - 1] {
            0 => Ok(()),
            1 => Err(Reason::ScopeEscape.into()),
            2 => Err(CallNotAdmitted::Wait),
            _ => Err(CallNotAdmitted::Ask(Reason::ConfirmationRequired, Decider::Client)),
        }
    }

    proptest! {
        #[test]
        fn no_order_of_findings_admits_after_one_that_does_not(findings in prop::collection::vec(0..4u8, 0..12)) {
            let stages: Vec<fn(&mut Script) -> StageFinding> = vec![scripted; findings.len()];
            let first = findings.iter().position(|finding| *finding != 0);
            let mut script = Script { findings: findings.clone(), ran: 0 };
            let result = run(&stages, &mut script);
            prop_assert_eq!(result.is_ok(), first.is_none());
            prop_assert_eq!(script.ran, first.map_or(findings.len(), |at| at + 1));
            let decided = match result.err() {
                None => 0,
                Some(CallNotAdmitted::Denied(_)) => 1,
                Some(CallNotAdmitted::Wait) => 2,
                Some(CallNotAdmitted::Judge(_) | CallNotAdmitted::Ask(..)) => 3,
            };
            prop_assert_eq!(decided, first.map_or(0, |at| findings[at]));
        }
    }
}
