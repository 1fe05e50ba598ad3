//! A call under examination, with the results of the stages that it passed.

use serde_json::{Value, json};

use crate::approval::Subject;
use crate::cache::VerdictKey;
use crate::clarify::{Purpose, SealedCall};
use crate::principal::{Principal, ProvenBy};
use crate::rules::{Decider, Posture};
use crate::session::{Account, Ledgers, Reservation, ReservationId, Session, ShortHash, Stage};
use vap::reason::Reason;

use super::draft::{Draft, principal_bytes};
use super::person::{Approved, call_subject, holder, ticket};
use super::policy::RuleInput;
use super::semantic::RiskAssessment;
use super::signals::{Recurrence, shape};
use super::{DecisionContext, ToolCall};

/// A call under examination. Stages change the draft and add their results here; the session and the account stay as
/// they are until the decision.
pub(super) struct CallCase<'a> {
    pub context: &'a DecisionContext<'a>,
    pub call: &'a ToolCall<'a>,
    pub draft: Draft,
    pub account: &'a mut Account,
    /// The session with the message's id, until the message is bound to it.
    pub claimed: Option<&'a mut Session>,
    /// The session that the call is bound to; `None` before C1, and for a call without an envelope.
    pub session: Option<&'a mut Session>,
    pub approved: Approved,
    pub reservation: Option<Reservation>,
    /// The risk of a call of a session, once it is computed.
    pub assessment: Option<RiskAssessment>,
    /// The reason for a confirmation, and the party that has to give it; `None` if no rule of the operator requires one.
    pub confirm: Option<(Reason, Decider)>,
    pub semantic: SemanticCheck,
}

/// The result of C5.
#[derive(Clone, Copy, Default)]
pub(super) struct SemanticCheck {
    /// The cache key for the judge's verdict, if it has just answered "consistent".
    pub consistent: Option<VerdictKey>,
    /// `true` if the judge is uncertain.
    pub unsure: bool,
    /// The expiry of the answer in the cache, in Unix seconds.
    pub until: Option<i64>,
}

/// The hashes of a call, which its risk score compares with those of earlier calls.
#[derive(Clone, Copy)]
pub(super) struct CallHashes {
    pub tool: ShortHash,
    pub call: ShortHash,
    pub shape: ShortHash,
}

impl<'a> CallCase<'a> {
    /// Starts the examination of a call. `claimed` is the session with the id in the call's envelope.
    pub fn new(
        context: &'a DecisionContext<'a>,
        claimed: Option<&'a mut Session>,
        account: &'a mut Account,
        call: &'a ToolCall<'a>,
    ) -> Self {
        let mut draft = match call.envelope {
            Some(Ok(received)) => Draft::of(received),
            Some(Err(unreadable)) => Draft::of_unreadable(unreadable, account.only_session()),
            None => Draft::without_message(account.only_session()),
        };
        draft.set_call(call.tool, call.arguments.canonical());
        if call.envelope.is_none() {
            draft.texts.principal = Principal::of(context.caller, None).as_ref().map(principal_bytes);
            if let Some(agent) = agent_of(context) {
                (draft.agent_id, draft.proven_by) = (Some(agent.to_owned()), ProvenBy::Token);
            }
        }
        CallCase {
            context,
            call,
            draft,
            account,
            claimed,
            session: None,
            approved: Approved::default(),
            reservation: None,
            assessment: None,
            confirm: None,
            semantic: SemanticCheck::default(),
        }
    }

    /// Returns `true` for a call without an envelope under [`Posture::Advisory`], which is forwarded without checks.
    pub fn is_advisory(&self) -> bool {
        self.call.envelope.is_none() && self.context.rules.posture == Posture::Advisory
    }

    /// Returns `true` for a call without an envelope that AgentROA authorizes, under [`Posture::Roa`].
    pub fn is_authorized_alone(&self) -> bool {
        self.call.envelope.is_none() && self.context.rules.posture == Posture::Roa
    }

    /// Returns the id of the agent: that of the session, or of the caller's token.
    pub fn agent_id(&self) -> Option<&str> {
        match &self.session {
            Some(session) => Some(session.agreed.agent_id()),
            None => agent_of(self.context),
        }
    }

    /// Adds the reservation of C3 to its ledgers.
    pub fn reserve(&mut self, stage: Stage) -> Option<ReservationId> {
        let session = self.session.as_deref_mut()?;
        let reservation = Reservation { stage, ..self.reservation.take()? };
        if let Some(ceiling) = &self.context.rules.principal_ceiling {
            self.account.spent = self.account.spent.within(ceiling.window, self.context.now);
        }
        Some(Ledgers::of(session, self.account).reserve(reservation))
    }

    /// Returns the subject of a question to an approver about this call.
    pub fn subject(&self) -> Subject {
        let commitment = self.session.as_ref().map(|session| session.agreed.digest());
        let (session_id, holder) = self.holder();
        call_subject(
            self.context,
            self.call.tool,
            self.call.arguments.canonical(),
            (&session_id, &holder),
            commitment,
        )
    }

    /// Returns the content of a sealed state about this call.
    pub fn ticket(&self, purpose: Purpose) -> SealedCall {
        let (session_id, holder) = self.holder();
        ticket(self.context, self.call.tool, self.call.arguments.canonical(), purpose, &session_id, &holder)
    }

    fn holder(&self) -> (String, String) {
        holder(self.context, self.session.as_deref())
    }

    /// Returns the input of the operator's rules.
    pub fn rule_input(&self) -> RuleInput<'a> {
        let (principal, session) = match &self.session {
            Some(session) => (principal_input(session, self.draft.proven_by), session_input(session)),
            None => (caller_input(self.context), json!({ "calls": 0, "meters": {}, "limits": {} })),
        };
        let assessment =
            self.assessment.unwrap_or_else(|| RiskAssessment::of_tool(self.context.rules, self.call.tool));
        RuleInput {
            tool: self.call.tool,
            arguments: self.call.arguments.text(),
            principal,
            session,
            assessment,
        }
    }

    /// Returns the hashes of the call.
    pub fn hashes(&self) -> CallHashes {
        let tool = self.call.tool.as_bytes();
        CallHashes {
            tool: ShortHash::of(&[tool]),
            call: ShortHash::of(&[tool, &self.call.arguments.canonical().bytes]),
            shape: ShortHash::of(&[tool, shape(self.call.arguments.text()).as_bytes()]),
        }
    }
}

impl CallHashes {
    /// Compares the call with the recent ones of the session.
    pub fn recurrence(self, session: &Session) -> Recurrence {
        let recent = &session.running.recent;
        Recurrence {
            repeats: recent.repeats(self.call),
            known_tool: recent.knows_tool(self.tool),
            known_shape: recent.knows_shape(self.shape),
        }
    }
}

/// Returns the `input.principal` of rules. `agent_id` is included only if there is evidence for it: a mere claim must
/// not decide anything.
fn principal_input(session: &Session, proven_by: ProvenBy) -> Value {
    let agreed = &session.agreed;
    let mut input = json!({
        "proven_by": proven_by.as_str(),
        "delegated_by": agreed.effective().principal.delegated_by,
        "identity": agreed.principal().identity(),
    });
    if proven_by != ProvenBy::Asserted {
        input["agent_id"] = agreed.agent_id().into();
    }
    input
}

/// Returns the `input.principal` of rules for a call without an envelope.
fn caller_input(context: &DecisionContext<'_>) -> Value {
    let identity = Principal::of(context.caller, None).map_or(Value::Null, |who| json!(who.identity()));
    let mut principal = json!({ "identity": identity });
    if let Some(agent) = agent_of(context) {
        principal["agent_id"] = agent.into();
        principal["proven_by"] = ProvenBy::Token.as_str().into();
    }
    principal
}

fn session_input(session: &Session) -> Value {
    let budget = session.agreed.budget();
    let used = |meter: &String| Value::from(session.running.used(meter).to_f64());
    let meters = budget.limits.keys().map(|meter| (meter.clone(), used(meter)));
    let limits = budget.limits.iter().map(|(meter, ceiling)| (meter.clone(), Value::from(ceiling.to_f64())));
    json!({
        "id": session.agreed.session_id(),
        "calls": session.running.calls(),
        "max_calls": budget.max_calls,
        "meters": meters.collect::<serde_json::Map<_, _>>(),
        "limits": limits.collect::<serde_json::Map<_, _>>(),
    })
}

/// Returns the id of the agent that the caller's access token belongs to.
fn agent_of<'a>(context: &DecisionContext<'a>) -> Option<&'a str> {
    context.rules.keyring.agent_of(context.caller.token.as_ref()?)
}
