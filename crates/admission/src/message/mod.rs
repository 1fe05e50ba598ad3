//! What an agent sends (VAP, sections 5 to 7): a Scope Commitment, an Intent Envelope or a Scope Amendment, as strict types
//! from their schemas.
//!
//! A message is read from its text, never from a parsed copy: meters are exact decimals, and a signature covers what was
//! written. Unknown members are refused, since they would be signed but not understood.
//!
//! Not here: what a signature proves (`signature`), and whether the message is acceptable to a session (`decide`).

mod deadline;
mod members;
mod read;
pub mod slot;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use deadline::{Deadline, NotADeadline};

use crate::decimal::Decimal;
use crate::digest::Digest;
use crate::glob::Pattern;
use crate::reason::Reason;

/// The version of VAP that is spoken here.
pub const VERSION: &str = "0.1";
/// The session id of a Verdict that belongs to no session (reading X-2).
pub const NO_SESSION: &str = "none";
/// What begins the name of a stream outside any session (reading X-5).
pub const UNBOUND: &str = "unbound:";

/// One of the three.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What a session is for, once.
    ScopeCommitment(ScopeCommitment),
    /// Why one call is made.
    IntentEnvelope(IntentEnvelope),
    /// A wider scope or a larger budget.
    ScopeAmendment(ScopeAmendment),
}

/// Which of the three: the value of `type`, and of a Verdict's `in_response_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MessageType {
    /// [`ScopeCommitment`].
    #[serde(rename = "scope_commitment")]
    ScopeCommitment,
    /// [`IntentEnvelope`].
    #[serde(rename = "intent_call")]
    IntentCall,
    /// [`ScopeAmendment`].
    #[serde(rename = "scope_amendment")]
    ScopeAmendment,
}

/// A session's goal, scope and budget, declared once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeCommitment {
    /// The session, by the name that the agent gives it.
    pub session_id: String,
    /// What the session is for.
    pub goal: String,
    /// Which tools may be called.
    pub scope: Scope,
    /// How much may be spent.
    pub budget: Budget,
    /// The agent's plan, opaque.
    pub plan_digest: Option<Digest>,
    /// Who says it is calling.
    pub principal: ClaimedPrincipal,
    /// A compact JWS.
    pub signature: Option<String>,
}

/// Which tools may be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// At least one pattern.
    pub tools_allow: Vec<Pattern>,
    /// Patterns that win over those allowed. Absent is not the same text as empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_deny: Option<Vec<Pattern>>,
}

/// How much may be spent: at least one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// How many calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// How much of each meter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Decimal>,
}

/// Who says it is calling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimedPrincipal {
    /// The agent.
    pub agent_id: String,
    /// A reference to a credential, opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// Who delegated to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated_by: Option<String>,
}

/// Why one call is made.
#[derive(Clone, Debug, PartialEq)]
pub struct IntentEnvelope {
    /// The session.
    pub session_id: String,
    /// The reason for the call.
    pub intent: Intent,
    /// The call.
    pub call: DeclaredCall,
    /// A compact JWS.
    pub signature: Option<String>,
}

/// The reason for a call, as its agent puts it: attacker-controllable text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Why the call serves the goal.
    pub rationale: String,
    /// What the agent expects of it.
    pub expected_effect: String,
    /// Where in its plan the agent is.
    pub step: Option<u64>,
    /// How dangerous the agent says the call is.
    pub sensitivity: Option<Sensitivity>,
    /// What the agent thought, kept on its side.
    pub reasoning_digest: Option<Digest>,
}

/// How dangerous a call is, in the schema's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sensitivity {
    /// It reads.
    Reads,
    /// It writes data.
    WritesData,
    /// It moves money.
    WritesMoney,
    /// It deletes.
    Deletes,
    /// It sends something out.
    SendsExternal,
    /// It grants access.
    GrantsAccess,
}

/// The call that was declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredCall {
    /// The tool.
    pub tool: String,
    /// The text of an object.
    pub arguments: String,
}

/// A wider scope or a larger budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeAmendment {
    /// The session.
    pub session_id: String,
    /// The commitment that this one follows.
    pub prev_commitment_digest: Digest,
    /// More patterns.
    pub add_scope: Option<AddScope>,
    /// More budget.
    pub increase_budget: Option<IncreaseBudget>,
    /// Why.
    pub reason: String,
    /// The agent's new plan.
    pub new_plan_digest: Option<Digest>,
    /// A compact JWS.
    pub signature: Option<String>,
}

/// More patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddScope {
    /// To allow.
    pub tools_allow: Vec<Pattern>,
    /// To deny.
    pub tools_deny: Vec<Pattern>,
}

/// More budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncreaseBudget {
    /// So many calls more.
    pub add_calls: Option<u64>,
    /// Until this later time.
    pub extend_deadline: Option<Deadline>,
    /// So much more of each meter.
    pub add_limits: BTreeMap<String, Decimal>,
}

/// Why a message cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", if pointer.is_empty() { "the message" } else { pointer })]
pub struct Flaw {
    /// JSON pointer into the message.
    pub pointer: String,
    /// The code.
    pub reason: Reason,
    /// In words. They may quote the message, so they are for its sender and for the audit store.
    pub what: String,
}

impl Message {
    /// Reads a message's text.
    pub fn read(text: &str) -> Result<Message, Flaw> {
        read::message(text)
    }

    /// Which of the three.
    pub const fn kind(&self) -> MessageType {
        match self {
            Message::ScopeCommitment(_) => MessageType::ScopeCommitment,
            Message::IntentEnvelope(_) => MessageType::IntentCall,
            Message::ScopeAmendment(_) => MessageType::ScopeAmendment,
        }
    }

    /// The session it speaks of.
    pub fn session_id(&self) -> &str {
        match self {
            Message::ScopeCommitment(commitment) => &commitment.session_id,
            Message::IntentEnvelope(envelope) => &envelope.session_id,
            Message::ScopeAmendment(amendment) => &amendment.session_id,
        }
    }

    /// Its signature, as it was sent.
    pub fn signature(&self) -> Option<&str> {
        match self {
            Message::ScopeCommitment(commitment) => commitment.signature.as_deref(),
            Message::IntentEnvelope(envelope) => envelope.signature.as_deref(),
            Message::ScopeAmendment(amendment) => amendment.signature.as_deref(),
        }
    }
}

impl MessageType {
    /// All of them.
    pub const ALL: [MessageType; 3] =
        [MessageType::ScopeCommitment, MessageType::IntentCall, MessageType::ScopeAmendment];

    /// The value of `type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            MessageType::ScopeCommitment => "scope_commitment",
            MessageType::IntentCall => "intent_call",
            MessageType::ScopeAmendment => "scope_amendment",
        }
    }

    /// The type of this name.
    pub fn from_word(word: &str) -> Option<MessageType> {
        MessageType::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl Sensitivity {
    /// All of them.
    pub const ALL: [Sensitivity; 6] = [
        Sensitivity::Reads,
        Sensitivity::WritesData,
        Sensitivity::WritesMoney,
        Sensitivity::Deletes,
        Sensitivity::SendsExternal,
        Sensitivity::GrantsAccess,
    ];

    /// The schema's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Sensitivity::Reads => "reads",
            Sensitivity::WritesData => "writes_data",
            Sensitivity::WritesMoney => "writes_money",
            Sensitivity::Deletes => "deletes",
            Sensitivity::SendsExternal => "sends_external",
            Sensitivity::GrantsAccess => "grants_access",
        }
    }
}

impl Budget {
    /// Whether nothing is bounded (reading V-10).
    pub fn is_empty(&self) -> bool {
        self.max_calls.is_none() && self.deadline.is_none() && self.limits.is_empty()
    }
}

impl Scope {
    /// Whether this tool may be called.
    pub fn allows(&self, tool: &str) -> bool {
        crate::glob::allows(&self.tools_allow, self.tools_deny.as_deref().unwrap_or_default(), tool)
    }
}
