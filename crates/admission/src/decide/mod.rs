//! Decisions about messages (section 9): S1 and S2 for a commitment, C1 to C5 for a call, S2 again for an amendment.
//!
//! The checks run in this order and fail closed; the first failure decides. A message is decided with a [`Scene`]
//! (rules, caller, time, random numbers) and the [`Books`] (the state of its session and its principal). The books
//! change only if the message is admitted: an amendment is computed on a copy, and a denied call only increments the
//! counters of denials (readings V-11, V-18).
//!
//! If the judge or a human has to be asked, the result is a question, with a reservation for the call. Then the same
//! message is decided again, from C1 on, with the [answer](Before).
//!
//! | module | content |
//! |---|---|
//! | `bind` | C1: the message's principal and session |
//! | `commitment`, `amendment` | S1, S2 and the computation of E(n) |
//! | `call`, `unaware` | a call with an envelope, and without |
//! | `hearing` | C2 to C5, in order |
//! | `person` | questions to a human and their answers |
//! | `budget` | C3: projection and reservation |
//! | `policy` | C4: the operator's rules |
//! | `semantic` | S2 and C5: questions to the judge and their answers |
//! | `signals` | the inputs of the risk score |
//! | `settle` | settlement and refund of reservations |
//! | `task` | requests about tasks |
//!
//! Not here: the format of messages ([`message`](crate::message)), and the durability of rulings (the gateway).

mod amendment;
mod bind;
mod budget;
mod call;
mod commitment;
mod draft;
mod hearing;
mod person;
mod policy;
mod ruling;
mod semantic;
mod settle;
mod signals;
mod task;
mod unaware;

pub use amendment::amendment;
pub use bind::{claimed_jti, signed_by};
pub use call::call;
pub use commitment::commitment;
pub use draft::{CALLS_METER, JUDGE_METER};
pub use ruling::{
    About, Advised, CallRuling, Claim, ClaimKind, Confirmation, Flag, MessageRuling, Ruling, Said, Stream,
    Telling,
};
pub use semantic::{Field, Finding, Question, Semantic};
pub use settle::{Outcome, Settled, Status, close, hold_again, refund, refund_questions, settle};
pub use task::{FollowUp, Task, follow_up, unknown_task};
pub use unaware::denied_to_all;

use jiff::Timestamp;

use crate::approval::Question as ApprovalQuestion;
use crate::clarify::{Answer, Shown};
use crate::message::slot::{Received, Unreadable};
use crate::principal::{Caller, Identity, Principal};
use crate::rules::Rules;
use crate::session::{Account, ReservationId, Session};
use crate::tool::ToolFault;

/// The rules, the caller, the time and the random numbers of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The rules of the route.
    pub rules: &'a Rules,
    /// The caller as the transport identified it.
    pub caller: &'a Caller,
    /// The time of the decision.
    pub now: Timestamp,
    /// Random numbers from a CSPRNG.
    pub dice: Dice,
}

/// The random inputs of a decision. They are recorded, so that the decision can be reproduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dice {
    /// A random number; below [`JudgeRules::sample`](crate::rules::JudgeRules::sample), the call is shown to the judge
    /// (reading V-28).
    pub sample: u32,
    /// Random bytes for the secret of a new session, or for the nonce of a question.
    pub secret: [u8; 32],
}

/// The stored state for a decision: the message's session and the principal's account.
#[derive(Debug)]
pub struct Books<'a> {
    /// The session; `None` if the id was never committed or is no longer remembered.
    pub session: &'a mut Option<Session>,
    /// The account under [`account_key`]; an empty one if there is no key.
    pub account: &'a mut Account,
}

/// The content of a VAP slot: a parsed message or an unreadable one.
pub type Slot<'a> = Result<&'a Received, &'a Unreadable>;

/// A tool call as it would be forwarded.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The content of the slot; `None` if the request has no VAP message.
    pub envelope: Option<Slot<'a>>,
    /// The tool of the forwarded call: `params.name`, unescaped.
    pub tool: &'a str,
    /// The decoded header `Mcp-Name`, in the modern era.
    pub header: Option<&'a str>,
    /// The text of `params.arguments`, or `{}`.
    pub arguments: &'a str,
    /// `true` if the client can ask its user (reading V-26).
    pub can_ask: bool,
    /// `true` if the call can wait for an approver, and the limit of open questions is not reached.
    pub can_wait: bool,
    /// `true` if the call has an AgentROA envelope. The gateway enforces none, so such a call is denied.
    pub has_roa_envelope: bool,
    /// A defect of the tool or its arguments, for which the call is denied.
    pub tool_fault: Option<&'a ToolFault>,
    /// `true` if the envelope's `jti` was seen before in its session (reading V-21).
    pub replayed: bool,
    /// The results of earlier decisions about the call.
    pub before: Before<'a>,
}

/// The results of earlier decisions about a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before<'a> {
    /// The reservation of the earlier decision, released before the next one.
    pub held: Option<ReservationId>,
    /// The judge's answer.
    pub judged: Option<Semantic>,
    /// The human's answer, if the gateway held the request and the reservation.
    pub answer: Option<Answer>,
    /// A sealed state that the client returned with the call, opened (readings V-26, V-38).
    pub shown: Option<Shown<'a>>,
    /// The question to approvers about the message, with its answer.
    pub put: Option<Put<'a>>,
}

/// A question to approvers, with its answer.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The question.
    pub question: &'a ApprovalQuestion,
    /// The signed answer; `None` if there is none yet.
    pub answer: Option<&'a str>,
    /// `true` if the answer was used before.
    pub spent: bool,
}

/// A commitment or an amendment whose carrier request succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    /// The content of the slot.
    pub message: Slot<'a>,
    /// `true` if the message's `jti` was seen before in its session.
    pub replayed: bool,
    /// `true` if another question to approvers can be opened.
    pub can_wait: bool,
    /// The results of earlier decisions about the message.
    pub before: Before<'a>,
}

/// Returns the key of the caller's [`Account`]; `None` if the request identifies no principal. The key of a principal
/// with a token, a certificate or a signing key does not depend on its MCP session, so that opening a new one does not
/// give a new budget (reading V-3). `signed_by` is the thumbprint of the key whose signature was verified.
#[must_use]
pub fn account_key(caller: &Caller, signed_by: Option<&str>) -> Option<String> {
    Principal::of(caller, signed_by).map(|principal| principal_key(&principal))
}

/// Returns the account key of a principal.
#[must_use]
pub fn principal_key(principal: &Principal) -> String {
    identity_key(principal.identity())
}

/// Returns the account key of an identity: a digest of its kind and parts.
#[must_use]
pub fn identity_key(identity: &Identity) -> String {
    let (kind, parts) = match identity {
        Identity::Token(token) => {
            let client = token.client_id.as_deref().unwrap_or_default();
            ("token", vec![token.iss.as_str(), token.sub.as_str(), client])
        }
        Identity::Certificate(thumbprint) => ("certificate", vec![thumbprint.as_str()]),
        Identity::McpSession { route, id } => ("mcp", vec![route.as_str(), id.as_str()]),
        Identity::SigningKey(thumbprint) => ("key", vec![thumbprint.as_str()]),
    };
    let mut all = vec![kind];
    all.extend(parts);
    crate::digest::Digest::of(&jose::jcs::canonical(&serde_json::json!(all))).to_string()
}
