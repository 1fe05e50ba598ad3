//! Results that a call or a message brings from the passes before.

use std::sync::Arc;

use admission::clarify::HumanAnswer;
use admission::decide::JudgeAnswer;
use admission::session::{Account, ReservationId};
use admission::tool::CheckedArguments;

use super::copies::WorkingCopies;
use crate::annex::{DecisionInputs, JudgeOpinion};

/// Results of earlier passes over a call or a message: its reservation and the answers of a judge, a person or an
/// approver.
#[derive(Clone, Debug, Default)]
pub struct EarlierPasses {
    /// The reservation made in an earlier pass.
    pub held: Option<ReservationId>,
    /// The judge's conclusion.
    pub judged: Option<JudgeAnswer>,
    /// The answer of the person at the client.
    pub answer: Option<HumanAnswer>,
    /// The id of the question that was put to approvers.
    pub question: Option<String>,
    /// The arguments' check against the tool's schema, if it was repeated as the tool had changed meanwhile.
    pub checked: Option<CheckedArguments>,
    /// The judge's opinion with its wording, for the annex (V-27).
    pub opinion: Option<Arc<JudgeOpinion>>,
    /// Time of the first pass, in milliseconds since the Unix epoch.
    pub first_at: Option<i64>,
}

impl EarlierPasses {
    /// Returns whether the arguments may be checked again: once, and only before a judge or a person was asked about the
    /// call. An answer counts for the tool as it was then.
    pub const fn may_check_again(&self) -> bool {
        let Self { held, judged, answer, question, checked, .. } = self;
        let is_undecided = held.is_none() && judged.is_none() && answer.is_none() && question.is_none();
        checked.is_none() && is_undecided
    }

    /// The passes before the next one, in which the reservation `held` was made. Of their answers, only the judge's
    /// opinion is kept, for the annex, and the check of the arguments.
    pub fn next(&self, held: Option<ReservationId>) -> Self {
        let (opinion, checked) = (self.opinion.clone(), self.checked.clone());
        Self { held, opinion, checked, first_at: self.first_at, ..Self::default() }
    }

    /// Like [`next`](Self::next), with the judge's conclusion and its wording.
    pub fn judged(&self, held: Option<ReservationId>, judged: JudgeAnswer, words: &str) -> Self {
        let opinion = Some(Arc::new(JudgeOpinion::new(&judged, words)));
        Self { judged: Some(judged), opinion, ..self.next(held) }
    }

    /// Adds these passes to the inputs of a decision. `copies` are from after the decision, `account` is from before
    /// it.
    pub fn recorded(
        &self,
        inputs: DecisionInputs,
        copies: &WorkingCopies,
        account: Option<Account>,
    ) -> DecisionInputs {
        DecisionInputs {
            first_at: self.first_at,
            judge: self.opinion.as_deref().cloned(),
            held_for_others: copies.held_for_others(self.held),
            account,
            ..inputs
        }
    }
}
