//! What was decided: everything that the answer, the record and the outcome need.

use crate::approval::{self, Decision};
use crate::clarify::{Answer, Asked, Ticket};
use crate::digest::Digest;
use crate::message::slot::{Key, Shape};
use crate::principal::ProvenBy;
use crate::reason::Reason;
use crate::session::{Meters, ReservationId};
use crate::verdict::{Verdict, VerdictKind};

use super::semantic::Question;

/// What follows from a call.
#[derive(Clone, Debug)]
pub enum CallRuling {
    /// It is decided.
    Ruled(Box<Ruling>),
    /// Not yet: a call of a tool of unknown cost is under way (reading V-12), or too many calls are. Nothing changed; it is
    /// decided when a call of the session settles.
    Wait,
    /// The judge is asked first. The reservation holds the call's place.
    Judge {
        /// What the judge may see.
        question: Box<Question>,
        /// What holds the place.
        held: ReservationId,
    },
    /// A person is asked first, on the open stream (legacy), or an approver. The reservation holds the call's place, for as long
    /// as the question can be answered.
    Ask {
        /// What is asked.
        asked: Box<Asked>,
        /// What holds the place; none for a caller without a session.
        held: Option<ReservationId>,
    },
}

/// What follows from a commitment or an amendment.
#[derive(Clone, Debug)]
pub enum MessageRuling {
    /// It is decided.
    Ruled(Box<Ruling>),
    /// The judge is asked first (S2). Nothing changed but, in a session, what is reserved for the judge.
    Judge {
        /// What the judge may see.
        question: Box<Question>,
        /// What holds its price, in a session that is.
        held: Option<ReservationId>,
    },
}

/// A decision.
#[derive(Clone, Debug)]
pub struct Ruling {
    /// What was decided about.
    pub about: About,
    /// To which stream its record belongs.
    pub stream: Stream,
    /// What is answered; unsigned, without `audit_ref`.
    pub verdict: Verdict,
    /// How it is answered.
    pub telling: Telling,
    /// Why it was not simply served.
    pub reason: Option<Reason>,
    /// Whether the call goes to the upstream.
    pub forward: bool,
    /// What an admitted call has reserved: it is settled or refunded.
    pub reservation: Option<ReservationId>,
    /// What the meters stand at, reservations among them.
    pub meters: Meters,
    /// The agent, as the commitment names it.
    pub agent_id: Option<String>,
    /// How that name was shown.
    pub proven_by: ProvenBy,
    /// The tool.
    pub tool: Option<String>,
    /// What is odd about it, for the audit.
    pub flags: Vec<Flag>,
    /// What the client software calls itself; nothing shows it.
    pub asserted_client: Option<String>,
    /// What was said: committed to in the record, in clear only in the local store.
    pub said: Said,
    /// `sha256:` and the digest of the VAP message (reading V-25).
    pub req: Option<Digest>,
    /// Whether digests are taken over the bytes as they came (reading V-22).
    pub canon_raw: bool,
    /// What must not be used again: claimed in the transaction that keeps the decision.
    pub claims: Vec<Claim>,
    /// Who confirmed it, or declined.
    pub confirmation: Option<Confirmation>,
    /// Modern: the question that the caller takes to a person, to be sealed into `requestState`.
    pub pending: Option<Box<Asked>>,
    /// The question that a commitment or an amendment puts to approvers: it counts once it is sent again and approved.
    pub put: Option<Box<approval::Question>>,
    /// What an upstream's own question is bound to, should it ask one (reading V-38).
    pub ticket: Option<Box<Ticket>>,
    /// E(n), in JCS, when a commitment or an amendment was accepted: it is returned to the agent (reading V-17).
    pub effective: Option<String>,
    /// The digest of the rules.
    pub policy_digest: String,
    /// What the rules would have decided, of a call that the posture `advisory` let through.
    pub advised: Option<Advised>,
    /// Where arguments do not fit their schema, and by which keyword. It is told to whoever wrote them, and is in no record.
    pub fault_place: Option<String>,
}

/// What the rules would have decided about a call that was let through all the same: rules can be tried out so before they
/// are enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advised {
    /// The verdict.
    pub verdict: VerdictKind,
    /// Why it would not have been simply served.
    pub reason: Option<Reason>,
}

/// Who answered a question about a call or a message, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The client says that its user said so: nobody can show that there is one.
    Client(Answer),
    /// An approver signed it.
    Approver {
        /// The approver's name.
        approver: String,
        /// The key.
        kid: String,
        /// The question.
        question: String,
        /// The decision.
        decision: Decision,
        /// The digest of the signed approval.
        approval: Digest,
    },
}

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A scope commitment.
    Commitment,
    /// A scope amendment.
    Amendment,
    /// A call.
    Call,
}

/// To which stream a record belongs (reading X-5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The session: the caller is bound to it.
    Session(String),
    /// The gateway's own: there is no session, or the caller is not bound to it and must not write into it.
    Unbound,
}

/// How a verdict is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// In the shape and under the key that the caller used (reading V-4).
    Told(Shape, Key),
    /// Not at all: the answer stays untouched (reading V-33, advisory).
    Silent,
}

/// What was said, in the bytes that commitments are taken over: JCS, or the text as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What the session is for.
    pub goal: Option<String>,
    /// Why the call; or why the amendment.
    pub rationale: Option<String>,
    /// What it should bring about.
    pub expected_effect: Option<String>,
    /// The arguments.
    pub arguments: Option<Vec<u8>>,
    /// E(n), the commitment in force.
    pub effective_commitment: Option<Vec<u8>>,
    /// The principal.
    pub principal: Option<Vec<u8>>,
}

/// Something that must not be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What it is.
    pub kind: ClaimKind,
    /// Which.
    pub key: String,
}

/// What is used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// The `jti` of a signed message, in its session.
    Jti,
    /// A sealed state of ours.
    State,
    /// The answer to a question that was put to approvers.
    Approval,
}

impl ClaimKind {
    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ClaimKind::Jti => "jti",
            ClaimKind::State => "state",
            ClaimKind::Approval => "approval",
        }
    }
}

/// What is odd about a call, a message or a cost. It denies nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The session id looks short (reading V-2).
    ShortSessionId,
    /// A declared cost that is no number was ignored (reading V-13).
    CostNotANumber,
    /// A declared cost below zero was taken for zero (reading V-13).
    CostNegative,
    /// A declared cost was reduced to the operator's cap (reading V-13).
    CostCapped,
    /// A declared cost was rounded up.
    CostRounded,
    /// A cost was declared on more meters than are looked at (reading V-13).
    CostTooManyMeters,
    /// A meter went over its ceiling (reading V-12).
    Overrun,
    /// The name of the tool cannot stand in a record.
    ToolUnnamed,
    /// The agent declared a call less sensitive than the operator says (reading V-30).
    SensitivityRaised,
}

impl Flag {
    /// Its code.
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
