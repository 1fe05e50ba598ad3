//! Rulings: the result of a decision, with all data for the Verdict, the record and the settlement.

use crate::approval::{self, Decision};
use crate::clarify::{HumanAnswer, HumanQuestion, SealedCall};
use crate::principal::ProvenBy;
use crate::session::{Meters, ReservationId};
use vap::digest::Digest;
use vap::message::slot::{Key, Shape};
use vap::reason::Reason;
use vap::verdict::{Verdict, VerdictKind};

use super::semantic::JudgeQuestion;

/// The result of deciding about a commitment or an amendment.
#[derive(Clone, Debug)]
pub enum MessageRuling {
    /// The message is decided.
    Ruled(Box<Ruling>),
    /// The judge has to be asked first (S2). Nothing changed except, in an existing session, the reservation for the
    /// judge.
    Judge {
        /// The question to the judge.
        question: Box<JudgeQuestion>,
        /// The reservation for the judge's cost; `None` for a commitment, which has no session yet.
        held: Option<ReservationId>,
    },
}

/// The contents of a decision for the Verdict and the record. It permits nothing: only a
/// [`CallPermit`](super::CallPermit) does.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// The type of the message.
    pub about: About,
    /// The stream of the record.
    pub stream: Stream,
    /// The Verdict; unsigned and without `audit_ref`.
    pub verdict: Verdict,
    /// The form in which the Verdict is delivered.
    pub delivery: VerdictDelivery,
    /// The reason for a verdict other than `served`.
    pub reason: Option<Reason>,
    /// The amounts of the session's meters, including reservations.
    pub meters: Meters,
    /// The agent's id, as the commitment claims it.
    pub agent_id: Option<String>,
    /// The evidence for that id.
    pub proven_by: ProvenBy,
    /// The tool's name, if it can be part of a record.
    pub tool: Option<String>,
    /// Irregularities, for the audit store.
    pub flags: Vec<Flag>,
    /// The identifier of the execution receipt of the call (reading X-5).
    pub aer_id: Option<String>,
    /// The client software's name according to the client; unverified.
    pub asserted_client: Option<String>,
    /// The texts of the message: committed to in the record, and stored in clear only locally.
    pub texts: MessageTexts,
    /// The digest of the VAP message, for the Verdict's `req` (reading V-25).
    pub req: Option<Digest>,
    /// `true` if a digest is over text as received, for lack of a canonical form (reading V-22).
    pub canon_raw: bool,
    /// The keys that may be used only once. They are claimed in the transaction that stores the decision.
    pub claims: Vec<Claim>,
    /// The answer of a human, if there was one.
    pub confirmation: Option<Confirmation>,
    /// Modern era: the question that the client passes to its user, to be sealed into `requestState`.
    pub pending: Option<Box<HumanQuestion>>,
    /// The question to approvers about a commitment or an amendment. The message takes effect when it is sent again
    /// after the approval.
    pub approver_question: Option<Box<approval::Question>>,
    /// The state to seal if the upstream server asks a question of its own (reading V-38).
    pub ticket: Option<Box<SealedCall>>,
    /// E(n) as canonical text, if a commitment or an amendment was accepted; it is returned to the agent (reading
    /// V-17).
    pub effective: Option<String>,
    /// The digest of the rules.
    pub policy_digest: String,
    /// The decision that the rules would have made about a call that
    /// [`Posture::Advisory`](crate::rules::Posture::Advisory) let through.
    pub advised: Option<Advised>,
    /// The position of an argument that violates its schema, with the keyword. Returned to the caller, and not part of
    /// any record.
    pub fault_place: Option<String>,
}

/// The decision that the rules would have made about a call that was let through regardless. It lets operators test
/// rules before they enforce them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advised {
    /// The verdict.
    pub verdict: VerdictKind,
    /// The reason for a verdict other than `served`.
    pub reason: Option<Reason>,
}

/// An answer to a question about a call or a message, with its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The client reports its user's answer; there is no proof of it.
    Client(HumanAnswer),
    /// An approver signed the answer.
    Approver {
        /// The approver's name.
        approver: String,
        /// The `kid` of the approver's key.
        kid: String,
        /// The id of the question.
        question: String,
        /// The approver's decision.
        decision: Decision,
        /// The digest of the signed approval.
        approval: Digest,
    },
}

/// The type of message that a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A Scope Commitment.
    Commitment,
    /// A Scope Amendment.
    Amendment,
    /// A tool call, with or without an envelope.
    Call,
}

/// The stream of a record (reading X-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The stream of the session with this id, which the caller is bound to.
    Session(String),
    /// The gateway's own stream: there is no session, or the caller is not bound to it and must not write into its
    /// stream.
    Unbound,
}

/// The form in which a Verdict is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictDelivery {
    /// The response has the Verdict, in the shape and under the key of the caller's message (reading V-4).
    Sent(Shape, Key),
    /// The response has no Verdict and is not changed (reading V-33, advisory).
    NotSent,
}

/// The texts of a message as the bytes that the record commits to: JCS, or the text as received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageTexts {
    /// The session's goal.
    pub goal: Option<String>,
    /// The rationale of a call, or the reason of an amendment.
    pub rationale: Option<String>,
    /// The expected effect of a call.
    pub expected_effect: Option<String>,
    /// The arguments of a call.
    pub arguments: Option<Vec<u8>>,
    /// E(n), the commitment in force.
    pub effective_commitment: Option<Vec<u8>>,
    /// The principal.
    pub principal: Option<Vec<u8>>,
}

/// A key that may be used only once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The kind of the key.
    pub kind: ClaimKind,
    /// The key itself: a `jti`, a nonce or a question's id.
    pub key: String,
}

/// The kind of a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// The `jti` of a signed message in its session.
    Jti,
    /// The nonce of a sealed state.
    State,
    /// The id of a question to approvers whose answer is used.
    Approval,
}

impl ClaimKind {
    /// Returns a name for the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ClaimKind::Jti => "jti",
            ClaimKind::State => "state",
            ClaimKind::Approval => "approval",
        }
    }
}

/// An irregularity of a call, a message or a cost. It does not lead to a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The session id is shorter than [`SHORT_SESSION_ID`](crate::limits::SHORT_SESSION_ID) bytes (reading V-2).
    ShortSessionId,
    /// A declared cost that is not a number was ignored (reading V-13).
    CostNotANumber,
    /// A declared cost below zero was treated as zero (reading V-13).
    CostNegative,
    /// A declared cost was reduced to the operator's cap (reading V-13).
    CostCapped,
    /// A declared cost had too many digits and was rounded up.
    CostRounded,
    /// The cost names more meters than [`MAX_METERS`](vap::limits::MAX_METERS) (reading V-13).
    CostTooManyMeters,
    /// A meter exceeded its ceiling (reading V-12).
    Overrun,
    /// The tool's name cannot be part of a record.
    ToolUnnamed,
    /// The agent declared a lower sensitivity than the operator's class (reading V-30).
    SensitivityRaised,
}

impl Flag {
    /// Returns the flag's code in the audit store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Flag::ShortSessionId => "short_session_id",
            Flag::CostNotANumber => "cost_not_a_number",
            Flag::CostNegative => "cost_negative",
            Flag::CostCapped => "cost_capped",
            Flag::CostRounded => "cost_rounded",
            Flag::CostTooManyMeters => "cost_too_many_meters",
            Flag::Overrun => "overrun",
            Flag::ToolUnnamed => "tool_unnamed",
            Flag::SensitivityRaised => "sensitivity_raised",
        }
    }
}
