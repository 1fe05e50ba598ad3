//! The decision about one message (section 9): S1 and S2 for a commitment, C1 to C5 for a call, S2 again for an amendment.
//!
//! In order, failing closed, and the first failure wins. A message is decided against a [`Scene`] (the rules, who calls, the
//! time, chance) and the [`Books`] (its session and what its principal holds), which change only by what is admitted: an
//! amendment is computed on a copy, and a call that is denied leaves nothing but a count (readings V-11, V-18).
//!
//! Where a judge or a person has to be asked, the answer is a question and a reservation that holds the call's place; the
//! same message is decided again, from C1 on, with what was [answered](Before).
//!
//! | file | what |
//! |---|---|
//! | `bind` | C1: whose message, whose session |
//! | `commitment`, `amendment` | S1, S2 and what E(n) is |
//! | `call`, `unaware` | a call with an envelope, and without |
//! | `hearing` | C2 to C5, in order |
//! | `person` | where a person decides |
//! | `budget` | C3: projection, reservation |
//! | `policy` | C4 |
//! | `semantic` | S2 and C5: whether the judge is asked, and what its answer means |
//! | `settle` | what became of a reservation |
//!
//! Not here: what a message looks like ([`message`](crate::message)), and how the ruling becomes durable (the gateway's desk).

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

/// Under which rules, for whom and when a message is decided.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The rules of the route.
    pub rules: &'a Rules,
    /// Who calls.
    pub caller: &'a Caller,
    /// The time.
    pub now: Timestamp,
    /// Chance, from a CSPRNG.
    pub dice: Dice,
}

/// What chance decides. Recorded, a decision can be made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dice {
    /// Whether the call is among those that the judge sees at random (reading V-28).
    pub sample: u32,
    /// The secret of a new session, or what makes a question single-use.
    pub secret: [u8; 32],
}

/// What is on record: the state of the session that the message names, and what the principal holds.
#[derive(Debug)]
pub struct Books<'a> {
    /// The session; none if the id was never committed, or is forgotten.
    pub session: &'a mut Option<Session>,
    /// What is kept under [`account_key`]; an empty one where there is no key.
    pub account: &'a mut Account,
}

/// What came in a VAP slot.
pub type Slot<'a> = Result<&'a Received, &'a Unreadable>;

/// A call as it would be forwarded.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What came in its slot; none if there is no VAP in the request.
    pub envelope: Option<Slot<'a>>,
    /// The tool that will run: `params.name`, unescaped.
    pub tool: &'a str,
    /// `Mcp-Name`, decoded, in the modern era.
    pub header: Option<&'a str>,
    /// The text of `params.arguments`, or `{}`.
    pub arguments: &'a str,
    /// Whether the client can be asked something (reading V-26).
    pub can_ask: bool,
    /// Whether the call can wait for an approver, and another question be put.
    pub can_wait: bool,
    /// Whether it carries an AgentROA envelope. None is enforced: where the call is decided, it is denied.
    pub has_roa_envelope: bool,
    /// What is wrong with its tool or its arguments. Where the call is decided, it is denied.
    pub tool_fault: Option<&'a ToolFault>,
    /// Whether the `jti` of the envelope was seen before in its session (reading V-21).
    pub replayed: bool,
    /// What was done about the call already.
    pub before: Before<'a>,
}

/// What was done about a message already.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before<'a> {
    /// The reservation of the earlier decision: it is given back first.
    pub held: Option<ReservationId>,
    /// What the judge said.
    pub judged: Option<Semantic>,
    /// What a person said, where the reservation was held meanwhile.
    pub answer: Option<Answer>,
    /// A state of ours that came back with the call, opened (readings V-26, V-38).
    pub shown: Option<Shown<'a>>,
    /// The question about it that was put to approvers, and what came of it.
    pub put: Option<Put<'a>>,
}

/// A question that was put to approvers.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The question.
    pub question: &'a ApprovalQuestion,
    /// The answer, as it was signed.
    pub answer: Option<&'a str>,
    /// Whether it was used before.
    pub spent: bool,
}

/// A commitment or an amendment whose carrier succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    /// What came in the slot.
    pub message: Slot<'a>,
    /// Whether its `jti` was seen before in its session.
    pub replayed: bool,
    /// Whether another question can be put to approvers.
    pub can_wait: bool,
    /// What was done about it already.
    pub before: Before<'a>,
}

/// Under which key what a caller holds is kept: its principal without the MCP session, so that a new one does not mint
/// budget (reading V-3). `signed_by` is the thumbprint of the key that signed, if a signature was verified.
#[must_use]
pub fn account_key(caller: &Caller, signed_by: Option<&str>) -> Option<String> {
    Principal::of(caller, signed_by).map(|principal| principal_key(&principal))
}

/// The key of a principal.
#[must_use]
pub fn principal_key(principal: &Principal) -> String {
    identity_key(principal.identity())
}

/// The key of what a principal is known by.
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
