//! Decisions about messages (section 9): S1 and S2 for a commitment, C1 to C5 for a call, S2 again for an amendment.
//!
//! The checks run in this order and fail closed; the first failure decides. A message is decided with a [`DecisionContext`]
//! (rules, caller, time, random numbers) and the [`DecisionState`] (the state of its session and its principal). The state
//! changes only if the message is admitted: an amendment is computed on a copy, and a denied call only increments the
//! counters of denials (readings V-11, V-18).
//!
//! If the judge or a human has to be asked, the result is a question, with a reservation for the call. Then the same
//! message is decided again, from C1 on, with the [answer](EarlierResults).
//!
//! | module | content |
//! |---|---|
//! | `bind` | C1: the message's principal and session |
//! | `commitment`, `amendment` | S1, S2 and the computation of E(n) |
//! | `call` | a call, with an envelope or without: permit, question or refusal |
//! | `decision` | the fold over the stages of a call: the first that does not pass decides |
//! | `stages`, `case` | C1 to C5 of a call, in order, and the call under examination |
//! | `person` | questions to a human and their answers |
//! | `budget` | C3: projection and reservation |
//! | `policy` | C4: the operator's rules |
//! | `semantic` | S2 and C5: questions to the judge and their answers |
//! | `signals` | the inputs of the risk score |
//! | `settle` | settlement and refund of reservations |
//! | `task` | requests about tasks |
//! | `draft`, `ruling` | a ruling under construction, and the finished one |
//!
//! Not here: the format of messages ([`message`](vap::message)), and the durability of rulings (the gateway).

mod amendment;
mod bind;
mod budget;
mod call;
mod case;
mod commitment;
mod decision;
mod draft;
mod person;
mod policy;
mod ruling;
mod semantic;
mod settle;
mod signals;
mod stages;
mod task;

pub use amendment::amendment;
pub use bind::{claimed_jti, signed_by};
pub use call::call;
pub use commitment::commitment;
pub use decision::{CallDecision, CallPermit, CallQuestion};
pub use draft::{CALLS_METER, JUDGE_METER};
pub use person::repeats_counted_call;
pub use ruling::{
    About, Advised, Claim, ClaimKind, Confirmation, Flag, MessageRuling, MessageTexts, Ruling, Stream,
    VerdictDelivery,
};
pub use semantic::{JudgeAnswer, JudgeFinding, JudgeQuestion, JudgedText};
pub use settle::{
    CallOutcome, CostOnMeter, Settled, close, cost_on, refund, refund_questions, restore_reservation, settle,
};
pub use stages::denied_to_all;
pub use task::{FollowUp, Task, follow_up, unknown_task};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::approval::Question as ApprovalQuestion;
use crate::arguments::CallArguments;
use crate::authenticated::Authenticated;
use crate::clarify::{HumanAnswer, ReturnedState};
use crate::principal::Caller;
use crate::rules::Rules;
use crate::session::{Account, ReservationId, Session};
use crate::tool::ToolFault;
use vap::message::slot::Unreadable;
use vap::reason::Reason;

/// The rules, the caller, the time and the random numbers of a decision.
#[derive(Clone, Copy, Debug)]
pub struct DecisionContext<'a> {
    /// The rules of the route.
    pub rules: &'a Rules,
    /// The caller as the transport identified it.
    pub caller: &'a Caller,
    /// The time of the decision.
    pub now: Timestamp,
    /// Random numbers from a CSPRNG.
    pub random: RandomInputs,
}

/// The random inputs of a decision. They are recorded, so that the decision can be reproduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomInputs {
    /// A random number; below [`JudgeRules::sample`](crate::rules::JudgeRules::sample), the judge is asked about
    /// the call (reading V-28).
    pub sample: u32,
    /// Random bytes for the secret of a new session, or for the nonce of a question.
    pub secret: [u8; 32],
}

/// The stored state that a decision reads and changes: the message's session and the principal's account.
#[derive(Debug)]
pub struct DecisionState<'a> {
    /// The session; `None` if the id was never committed or is no longer remembered.
    pub session: &'a mut Option<Session>,
    /// The account under [`account_key`](crate::principal::account_key); an empty one if there is no key.
    pub account: &'a mut Account,
}

/// The content of a VAP slot: a parsed message or an unreadable one.
pub type Slot<'a> = Result<&'a Authenticated, &'a Unreadable>;

/// A tool call as it would be forwarded.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// The content of the slot; `None` if the request has no VAP message.
    pub envelope: Option<Slot<'a>>,
    /// The tool of the forwarded call: `params.name`, unescaped.
    pub tool: &'a str,
    /// The decoded header `Mcp-Name`, in the modern era.
    pub header: Option<&'a str>,
    /// The arguments.
    pub arguments: &'a CallArguments,
    /// `true` if the client can ask its user (reading V-26).
    pub can_ask: bool,
    /// `true` if the call can wait for an approver, and the limit of open questions is not reached.
    pub can_wait: bool,
    /// The decision of AgentROA about the call.
    pub authority: &'a Authority,
    /// A defect of the tool or its arguments, for which the call is denied.
    pub tool_fault: Option<&'a ToolFault>,
    /// `true` if the envelope's `jti` was seen before in its session (reading V-21).
    pub replayed: bool,
    /// The results of earlier decisions about the call.
    pub before: EarlierResults<'a>,
}

/// The decision of AgentROA about a call (reading X-4). It is made in the transaction that decides the call, with the
/// registry in force and the envelope's use so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Authority {
    /// The route does not enforce AgentROA, and the call has no chain.
    #[default]
    NotRequired,
    /// The route does not enforce AgentROA, and the call has a chain.
    NotEnforced,
    /// The chain authorizes the call.
    Permitted,
    /// The call is denied.
    Denied(Reason),
}

/// The results of earlier decisions about a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierResults<'a> {
    /// The reservation of the earlier decision, released before the next one.
    pub held: Option<ReservationId>,
    /// The judge's answer.
    pub judged: Option<JudgeAnswer>,
    /// The human's answer, if the gateway held the request and the reservation.
    pub answer: Option<HumanAnswer>,
    /// The sealed state that the client returned with the call, after it was opened (readings V-26, V-38).
    pub returned_state: Option<ReturnedState<'a>>,
    /// The question to approvers about the message, with its answer.
    pub approver_question: Option<ApproverQuestion<'a>>,
}

/// A question to approvers, with its answer.
#[derive(Clone, Copy, Debug)]
pub struct ApproverQuestion<'a> {
    /// The question.
    pub question: &'a ApprovalQuestion,
    /// The signed answer; `None` if there is none yet.
    pub answer: Option<&'a str>,
    /// `true` if the answer was used before.
    pub spent: bool,
}

/// A commitment or an amendment whose carrier request succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'a> {
    /// The content of the slot.
    pub message: Slot<'a>,
    /// `true` if the message's `jti` was seen before in its session.
    pub replayed: bool,
    /// `true` if another question to approvers can be opened.
    pub can_wait: bool,
    /// The results of earlier decisions about the message.
    pub before: EarlierResults<'a>,
}
