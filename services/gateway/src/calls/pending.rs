//! A call that is being decided.

use std::sync::Arc;

use admission::clarify::HumanQuestion;
use admission::principal::Caller;

use super::additions::{Additions, VerdictSlot};
use super::unsent::UnsentCall;
use crate::decision_writer::{DecisionAnswer, HeldRequest, UndecidedCall};
use crate::frame::RawId;
use crate::mcp::Endpoint;
use crate::relay::Client;
use crate::upstream::SessionHold;

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSubject {
    /// A tool call.
    Tool,
    /// A method that the operator gates: it is decided like a tool, under the method's name (1.4).
    Method,
}

/// A call that is being decided, with all that its answer needs.
pub struct PendingCall {
    /// The endpoint of the request.
    pub endpoint: Arc<Endpoint>,
    /// The request for the upstream.
    pub request: HeldRequest,
    /// The JSON-RPC id of the request.
    pub id: RawId,
    /// The call among those of which nothing was sent.
    pub unsent: UnsentCall,
    /// The kind of the call.
    pub subject: CallSubject,
    /// The caller's identity.
    pub caller: Caller,
    /// The client's connection, on which the answer is awaited.
    pub client: Client,
    /// The position of the Verdict in the answer.
    pub place: VerdictSlot,
    /// `true` if the request carries a VAP message.
    pub speaks_vap: bool,
    /// `true` if the request returns a `requestState` of this gateway that was altered.
    pub has_altered_state: bool,
    /// The members that every answer to this call gets.
    pub echo: Additions,
}

impl PendingCall {
    /// Keeps the call's MCP session in use for as long as the returned value lives: an approver may take days.
    pub fn holds_session(&self) -> SessionHold {
        self.endpoint.upstream.hold(self.request.headers())
    }
}

/// An answer of the decision writer after which the judge need not be asked.
pub enum NextStep {
    /// The decision is made.
    Answer(Box<DecisionAnswer>),
    /// A person or an approver must be asked.
    Ask(Box<HumanQuestion>, Box<UndecidedCall>),
}
