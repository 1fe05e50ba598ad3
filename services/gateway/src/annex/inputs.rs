//! The inputs of a decision besides the state of its session, kept so that the decision can be replayed. Most members
//! are left out if they have their default value.
//!
//! Not here: the session, which a replay computes from the earlier records, and the principal's account, unless the
//! decision depends on more than the session.

use admission::approval::Question;
use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::clarify::{HumanAnswer, ReturnedState, SealedCall};
use admission::decide::{
    ApproverQuestion, Authority, DecisionContext, Declaration, EarlierResults, JudgeAnswer, JudgeFinding,
    Slot, ToolCall,
};
use admission::principal::{Caller, Era, TokenSubject};
use admission::risk::Degree;
use admission::session::{Account, Reservation};
use admission::tool::ToolFault;
use decimal::Decimal;
use serde::{Deserialize, Serialize};
use vap::verdict::Trigger;

use super::text::{NotWhole, Text, whole};

/// The inputs of a decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionInputs {
    /// The path of the route.
    pub route: String,
    /// The caller.
    pub caller: CallerInputs,
    /// Time of the decision, in milliseconds since the Unix epoch.
    pub at: i64,
    /// Time of the first pass, if a judge or a person was asked after it, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_at: Option<i64>,
    /// The VAP message as received; `None` if there was none that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// `true` if the operator wrote the message for a client without VAP.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_operator: bool,
    /// `true` if the VAP slot held something that could not be read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unreadable: bool,
    /// The name of the called tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// The `Mcp-Name` header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Text>,
    /// The arguments as sent, if rules read them otherwise than their canonical form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Text>,
    /// The method of a refused request that is not a call; its refusal cannot be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Text>,
    /// The random number that determines whether the judge sees the call (V-28).
    pub sample: u32,
    /// `true` if the client could be asked a question.
    pub can_ask: bool,
    /// `true` if the call could wait for an approver.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub can_wait: bool,
    /// The decision of AgentROA about the call.
    #[serde(default, skip_serializing_if = "is_not_required")]
    pub authority: Authority,
    /// The fault of its tool or its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_fault: Option<ToolFault>,
    /// `true` if the `jti` of the message was used before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replayed: bool,
    /// The judge's opinion, if the judge was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeOpinion>,
    /// The person's answer, if the call was held for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<HumanAnswer>,
    /// The sealed state that the client returned with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateInputs>,
    /// The question that was put to approvers, with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<ApproverQuestionInputs>,
    /// The reservations held for questions about other messages of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_for_others: Vec<Reservation>,
    /// The principal's account before the decision, if it depends on more than the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// The caller, without its route.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallerInputs {
    era: Era,
    token: Option<TokenSubject>,
    certificate: Option<String>,
    mcp_session: Option<String>,
    is_given: bool,
}

/// The judge's opinion with its wording, which is kept only here: outside, a code is given (V-27).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgeOpinion {
    finding: JudgeFinding,
    confidence: f64,
    trigger: Trigger,
    cost: Decimal,
    /// The wording.
    pub(super) words: Text,
}

/// A sealed state that a client returned with a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateInputs {
    /// The ticket; `None` if the state was not this gateway's, or was altered.
    pub ticket: Option<SealedCall>,
    /// `true` if the ticket was bound to the rules in force.
    pub of_these_rules: bool,
    /// `true` if the state was used before.
    pub spent: bool,
    /// The person's answer.
    pub answer: Option<HumanAnswer>,
}

/// A question that was put to approvers, in its state at the time of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverQuestionInputs {
    /// The question as it was asked.
    pub question: Question,
    /// The approver's signed answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// `true` if the answer was consumed, or the question withdrawn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub spent: bool,
}

impl ApproverQuestionInputs {
    /// Returns the question in the form that `admission` takes.
    #[must_use]
    pub fn to_question(&self) -> ApproverQuestion<'_> {
        let Self { question, answer, spent } = self;
        ApproverQuestion { question, answer: answer.as_deref(), spent: *spent }
    }
}

impl From<ApproverQuestion<'_>> for ApproverQuestionInputs {
    fn from(put: ApproverQuestion<'_>) -> Self {
        let ApproverQuestion { question, answer, spent } = put;
        Self { question: question.clone(), answer: answer.map(str::to_owned), spent }
    }
}

impl DecisionInputs {
    /// The inputs of the decision about a call, from which [`call`](Self::call) restores it.
    #[must_use]
    pub fn of_call(route: &str, context: &DecisionContext<'_>, call: &ToolCall<'_>) -> Self {
        let state = call.before.returned_state.map(|state| StateInputs {
            ticket: state.ticket.cloned(),
            of_these_rules: state.ticket.is_some_and(|ticket| ticket.policy == context.rules.policy_digest),
            spent: state.spent,
            answer: state.answer,
        });
        let message = Self::of_message(route, context, call.envelope, &call.before);
        Self {
            tool: Some(Text::whole(call.tool)),
            header: call.header.map(Text::whole),
            arguments: sent_arguments(call.arguments),
            sample: context.random.sample,
            can_ask: call.can_ask,
            can_wait: call.can_wait,
            authority: call.authority.clone(),
            tool_fault: call.tool_fault.cloned(),
            replayed: call.replayed,
            answer: call.before.answer,
            state,
            ..message
        }
    }

    /// The inputs of the decision about a declaration, from which [`declaration`](Self::declaration) restores it.
    #[must_use]
    pub fn of_declaration(route: &str, context: &DecisionContext<'_>, declared: &Declaration<'_>) -> Self {
        let message = Self::of_message(route, context, Some(declared.message), &declared.before);
        Self { can_wait: declared.can_wait, replayed: declared.replayed, ..message }
    }

    fn of_message(
        route: &str,
        context: &DecisionContext<'_>,
        slot: Option<Slot<'_>>,
        before: &EarlierResults<'_>,
    ) -> Self {
        Self {
            message: slot.and_then(Result::ok).map(|received| Text::whole(&received.text)),
            by_operator: slot.and_then(Result::ok).is_some_and(Authenticated::is_by_operator),
            unreadable: slot.is_some_and(|slot| slot.is_err()),
            put: before.approver_question.map(ApproverQuestionInputs::from),
            ..Self::of(route, context.caller, context.now.as_millisecond())
        }
    }

    /// Returns the call, as it was first decided: without a judge's or a person's answer.
    ///
    /// # Errors
    /// [`NotWhole`] if only a part of a text was kept.
    pub fn call<'a>(
        &'a self,
        envelope: Option<Slot<'a>>,
        arguments: &'a CallArguments,
    ) -> Result<ToolCall<'a>, NotWhole> {
        let returned_state = self.state.as_ref().map(|state| ReturnedState {
            ticket: state.ticket.as_ref(),
            spent: state.spent,
            answer: state.answer,
        });
        // A call that was sent again brought the state that names the question; a held call is first decided without
        // it.
        let approver_question =
            self.put.as_ref().filter(|_| returned_state.is_some()).map(ApproverQuestionInputs::to_question);
        Ok(ToolCall {
            envelope,
            tool: whole(self.tool.as_ref())?.unwrap_or_default(),
            header: whole(self.header.as_ref())?,
            arguments,
            can_ask: self.can_ask,
            can_wait: self.can_wait,
            authority: &self.authority,
            tool_fault: self.tool_fault.as_ref(),
            replayed: self.replayed,
            before: EarlierResults { returned_state, approver_question, ..EarlierResults::default() },
        })
    }

    /// Returns the declaration, as it was first decided: without a judge's answer.
    #[must_use]
    pub fn declaration<'a>(&'a self, message: Slot<'a>) -> Declaration<'a> {
        let approver_question = self.put.as_ref().map(ApproverQuestionInputs::to_question);
        Declaration {
            message,
            replayed: self.replayed,
            can_wait: self.can_wait,
            before: EarlierResults { approver_question, ..EarlierResults::default() },
        }
    }

    /// The inputs for a message of this caller at this time, with defaults for everything else.
    #[must_use]
    pub fn of(route: &str, caller: &Caller, at: i64) -> Self {
        let Caller { era, token, certificate, mcp_session, is_session_issued: is_given, route: _ } =
            caller.clone();
        Self {
            route: route.to_owned(),
            caller: CallerInputs { era, token, certificate, mcp_session, is_given },
            at,
            first_at: None,
            message: None,
            by_operator: false,
            unreadable: false,
            tool: None,
            header: None,
            arguments: None,
            method: None,
            sample: 0,
            can_ask: true,
            can_wait: true,
            authority: Authority::NotRequired,
            tool_fault: None,
            replayed: false,
            judge: None,
            answer: None,
            state: None,
            put: None,
            held_for_others: Vec::new(),
            account: None,
        }
    }

    /// Returns the caller, with its route.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let CallerInputs { era, token, certificate, mcp_session, is_given } = self.caller.clone();
        Caller {
            era,
            token,
            certificate,
            mcp_session,
            is_session_issued: is_given,
            route: self.route.clone(),
        }
    }
}

impl JudgeOpinion {
    /// The judge's conclusion and its wording.
    #[must_use]
    pub fn new(judged: &JudgeAnswer, words: &str) -> Self {
        let JudgeAnswer { finding, confidence, trigger, cost } = *judged;
        Self { finding, confidence: confidence.score().get(), trigger, cost, words: Text::whole(words) }
    }

    /// Returns the judge's conclusion, as `admission` takes it.
    #[must_use]
    pub fn semantic(&self) -> JudgeAnswer {
        let Self { finding, confidence, trigger, cost, words: _ } = *self;
        JudgeAnswer { finding, confidence: Degree::of(confidence), trigger, cost }
    }
}

/// Returns the text of the arguments if rules can read it, and not its canonical form.
fn sent_arguments(arguments: &CallArguments) -> Option<Text> {
    arguments.is_canonical_ambiguous().then(|| Text::whole(arguments.text()))
}

fn is_not_required(authority: &Authority) -> bool {
    *authority == Authority::NotRequired
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !value
}
