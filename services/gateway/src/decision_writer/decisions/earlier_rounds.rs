//! [`EarlierRounds`]: what a call or a message brings from its earlier rounds.
//!
//! A round ends without a ruling if a judge, a person at the client or an approver must answer first. The next round decides
//! again from the beginning, with that answer and the reservation of the round before.

use std::sync::Arc;

use admission::clarify::HumanAnswer;
use admission::decide::JudgeAnswer;
use admission::session::{Account, ReservationId};
use admission::tool::CheckedArguments;

use super::session_with_account::SessionWithAccount;
use crate::annex::{DecisionInputs, JudgeOpinion};

/// Results of the earlier rounds of a call or a message: its reservation, and the answer of a judge, a person or an
/// approver.
#[derive(Clone, Debug, Default)]
pub struct EarlierRounds {
    /// The reservation made in an earlier round.
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
    /// Time of the first round, in milliseconds since the Unix epoch.
    pub first_at: Option<i64>,
    /// The random number that determines whether the judge is asked (V-28): one for all rounds, so that the recorded one is
    /// the one that counted.
    pub sample: Option<u32>,
}

impl EarlierRounds {
    /// Returns whether the arguments may be checked again: once, and only before a judge or a person was asked about the
    /// call. An answer counts for the tool as it was then.
    pub const fn may_check_again(&self) -> bool {
        let Self { held, judged, answer, question, checked, .. } = self;
        let is_undecided = held.is_none() && judged.is_none() && answer.is_none() && question.is_none();
        checked.is_none() && is_undecided
    }

    /// Returns the results for the next round; this one has made the reservation `held`. Of the earlier answers, only the
    /// judge's opinion is kept, for the annex, and the check of the arguments.
    pub fn next(&self, held: Option<ReservationId>) -> Self {
        let (opinion, checked) = (self.opinion.clone(), self.checked.clone());
        let (first_at, sample) = (self.first_at, self.sample);
        Self { held, opinion, checked, first_at, sample, ..Self::default() }
    }

    /// Like [`next`](Self::next), with the judge's conclusion and its wording.
    pub fn next_judged(&self, held: Option<ReservationId>, judged: JudgeAnswer, words: &str) -> Self {
        let opinion = Some(Arc::new(JudgeOpinion::new(&judged, words)));
        Self { judged: Some(judged), opinion, ..self.next(held) }
    }

    /// Adds these results to the recorded inputs of a decision. `working` is from after the decision, `account` from before
    /// it.
    pub fn add_to_inputs(
        &self,
        inputs: DecisionInputs,
        working: &SessionWithAccount,
        account: Option<Account>,
    ) -> DecisionInputs {
        DecisionInputs {
            first_at: self.first_at,
            judge: self.opinion.as_deref().cloned(),
            held_for_others: working.held_for_others(self.held),
            account,
            ..inputs
        }
    }
}
