//! The messages of an agent (VAP, sections 5 to 7): Scope Commitment, Intent Envelope and Scope Amendment, as strict
//! types from their schemas.
//!
//! A message is parsed from its text, never from a parsed copy: meters are exact decimals, and a signature covers the
//! text as written. Unknown members are refused, since they would be signed but not understood.
//!
//! Not here: signatures, and whether a session accepts the message (`admission`).

mod deadline;
mod members;
mod read;
pub mod slot;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use deadline::{Deadline, NotADeadline};

use crate::digest::Digest;
use crate::glob::Pattern;
use crate::reason::Reason;
use crate::word::words;
use decimal::Decimal;

/// The VAP version that this crate implements.
pub const VERSION: &str = "0.1";
/// The session id in a Verdict that belongs to no session (reading X-2).
pub const NO_SESSION: &str = "none";
/// Prefix of the name of a record stream outside any session (reading X-5).
pub const UNBOUND: &str = "unbound:";
/// Prefix of the ids of sessions that an operator's commitment opens for clients without VAP; no agent may use it.
pub const OPERATOR: &str = "operator:";

/// Returns whether a session was opened by an operator's commitment, as its id says.
#[must_use]
pub fn is_operator_session(session_id: &str) -> bool {
    session_id.starts_with(OPERATOR)
}

/// A VAP message of an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Declares a session's goal, scope and budget, once.
    ScopeCommitment(ScopeCommitment),
    /// Declares the reason for one tool call.
    IntentEnvelope(IntentEnvelope),
    /// Widens the scope or raises the budget of a session.
    ScopeAmendment(ScopeAmendment),
}

words! {
    /// The type of a [`Message`]: the value of its member `type`, and of a Verdict's `in_response_to`.
    pub enum MessageType {
        /// `scope_commitment`, for a [`ScopeCommitment`].
        ScopeCommitment = "scope_commitment",
        /// `intent_call`, for an [`IntentEnvelope`].
        IntentCall = "intent_call",
        /// `scope_amendment`, for a [`ScopeAmendment`].
        ScopeAmendment = "scope_amendment",
    }
}

/// A Scope Commitment (`scope_commitment`): a session's goal, scope and budget, declared once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeCommitment {
    /// The session's id, chosen by the agent.
    pub session_id: String,
    /// The goal of the session, in the agent's words.
    pub goal: String,
    /// The tools that may be called.
    pub scope: Scope,
    /// The limits on calls, time and meters.
    pub budget: Budget,
    /// A digest of the agent's plan; opaque.
    pub plan_digest: Option<Digest>,
    /// The agent that the sender claims to be.
    pub principal: ClaimedPrincipal,
    /// A compact JWS over the message without this member.
    pub signature: Option<String>,
}

/// Patterns for the tools that a session may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Patterns of allowed tools, at least one.
    pub tools_allow: Vec<Pattern>,
    /// Patterns of denied tools, which take precedence. `None` and an empty list are kept apart, since their texts
    /// differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_deny: Option<Vec<Pattern>>,
}

/// Limits on what a session may spend, at least one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// The time after which no call is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// The ceiling of each meter, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Decimal>,
}

/// The identity that the sender of a commitment claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimedPrincipal {
    /// The agent's id.
    pub agent_id: String,
    /// A reference to a credential; opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// The party that delegated to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated_by: Option<String>,
}

/// An Intent Envelope (`intent_call`): the declared reason for one tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct IntentEnvelope {
    /// The id of a committed session.
    pub session_id: String,
    /// The agent's reason for the call.
    pub intent: Intent,
    /// The call that the reason is for; it must equal the forwarded call.
    pub call: DeclaredCall,
    /// A compact JWS over the message without this member.
    pub signature: Option<String>,
}

/// The agent's reason for a call: attacker-controlled text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The agent's explanation of how the call serves the goal.
    pub rationale: String,
    /// The result that the agent expects.
    pub expected_effect: String,
    /// The step of the agent's plan.
    pub step: Option<u64>,
    /// The sensitivity that the agent declares.
    pub sensitivity: Option<Sensitivity>,
    /// A digest of the agent's reasoning, which the agent keeps.
    pub reasoning_digest: Option<Digest>,
}

words! {
    /// The sensitivity of a call, in the order of the VAP schema.
    pub enum Sensitivity {
        /// The call reads only.
        Reads = "reads",
        /// The call writes data.
        WritesData = "writes_data",
        /// The call moves money.
        WritesMoney = "writes_money",
        /// The call deletes data.
        Deletes = "deletes",
        /// The call sends data to an external party.
        SendsExternal = "sends_external",
        /// The call grants access.
        GrantsAccess = "grants_access",
    }
}

/// The call that an [`IntentEnvelope`] declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredCall {
    /// The tool's name.
    pub tool: String,
    /// The text of a JSON object, as written.
    pub arguments: String,
}

/// A Scope Amendment (`scope_amendment`): widens a session's scope or raises its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeAmendment {
    /// The id of a committed session.
    pub session_id: String,
    /// The digest of the commitment that this one amends.
    pub prev_commitment_digest: Digest,
    /// The patterns to add.
    pub add_scope: Option<AddScope>,
    /// The amounts to add to the budget.
    pub increase_budget: Option<IncreaseBudget>,
    /// The agent's reason for the amendment.
    pub reason: String,
    /// A digest of the agent's new plan; opaque.
    pub new_plan_digest: Option<Digest>,
    /// A compact JWS over the message without this member.
    pub signature: Option<String>,
}

/// Patterns that an amendment adds to a [`Scope`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddScope {
    /// Patterns to allow.
    pub tools_allow: Vec<Pattern>,
    /// Patterns to deny.
    pub tools_deny: Vec<Pattern>,
}

/// Amounts that an amendment adds to a [`Budget`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncreaseBudget {
    /// The number of calls to add.
    pub add_calls: Option<u64>,
    /// The new deadline, later than the present one.
    pub extend_deadline: Option<Deadline>,
    /// The amount to add to each meter, by its name.
    pub add_limits: BTreeMap<String, Decimal>,
}

/// The reason why a message cannot be read, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", if pointer.is_empty() { "the message" } else { pointer })]
pub struct Flaw {
    /// A JSON pointer into the message; empty for the message as a whole.
    pub pointer: String,
    /// The reason code for the Verdict.
    pub reason: Reason,
    /// A description that may quote the message, so it is only for its sender and the audit store.
    pub what: String,
}

impl Message {
    /// Parses a message from its text.
    ///
    /// # Errors
    /// A [`Flaw`] if the text is not strict JSON or violates the schema.
    pub fn read(text: &str) -> Result<Message, Flaw> {
        read::message(text)
    }

    /// Returns the message's type.
    pub const fn kind(&self) -> MessageType {
        match self {
            Message::ScopeCommitment(_) => MessageType::ScopeCommitment,
            Message::IntentEnvelope(_) => MessageType::IntentCall,
            Message::ScopeAmendment(_) => MessageType::ScopeAmendment,
        }
    }

    /// Returns the id of the session that the message belongs to.
    pub fn session_id(&self) -> &str {
        match self {
            Message::ScopeCommitment(commitment) => &commitment.session_id,
            Message::IntentEnvelope(envelope) => &envelope.session_id,
            Message::ScopeAmendment(amendment) => &amendment.session_id,
        }
    }

    /// Returns the message's signature, as received.
    pub fn signature(&self) -> Option<&str> {
        match self {
            Message::ScopeCommitment(commitment) => commitment.signature.as_deref(),
            Message::IntentEnvelope(envelope) => envelope.signature.as_deref(),
            Message::ScopeAmendment(amendment) => amendment.signature.as_deref(),
        }
    }
}

impl Budget {
    /// Returns `true` if neither calls nor time nor any meter is bounded (reading V-10).
    pub fn is_empty(&self) -> bool {
        self.max_calls.is_none() && self.deadline.is_none() && self.limits.is_empty()
    }
}

impl Scope {
    /// Returns `true` if a pattern allows the tool and none denies it.
    pub fn allows(&self, tool: &str) -> bool {
        crate::glob::allows(&self.tools_allow, self.tools_deny.as_deref().unwrap_or_default(), tool)
    }
}
