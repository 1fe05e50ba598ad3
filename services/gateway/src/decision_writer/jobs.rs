//! Jobs: what callers of the decision writer want decided or recorded. `decisions` carries each out as a work item.

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::clarify::{HumanAnswer, SealedCall};
use admission::decide::Ruling;
use admission::invocation::AiInvocation;
use admission::principal::Caller;
use admission::tool::CheckedArguments;
use vap::message::slot::Unreadable;

use crate::authority::PresentedChain;

/// A tool call to be decided, before anything of it is sent to an upstream.
#[derive(Debug)]
pub struct CallJob {
    /// The path of the route. The rules are looked up when the call is decided.
    pub route: String,
    /// The caller.
    pub caller: Caller,
    /// The content of the VAP slot; `None` if the request carries no VAP.
    pub envelope: Option<Result<Authenticated, Box<Unreadable>>>,
    /// The name of the tool that will run.
    pub tool: String,
    /// The decoded `Mcp-Name` header, in the modern era.
    pub header: Option<String>,
    /// The arguments.
    pub arguments: CallArguments,
    /// `true` if the client can be asked a question (V-26).
    pub can_ask: bool,
    /// `true` if the client can wait for an approver.
    pub can_wait: bool,
    /// `true` if the call carries a chain of AgentROA.
    pub has_roa_envelope: bool,
    /// The chain of the call, verified; `None` on a route that does not enforce AgentROA.
    pub chain: Option<PresentedChain>,
    /// The arguments' check against the tool's schema; `None` if the call is not for a tool.
    pub checked: Option<CheckedArguments>,
    /// The name that the client states for itself.
    pub asserted_client: Option<String>,
    /// The state token that the client returned with the call.
    pub state: Option<OpenedState>,
    /// The client's description of itself, for the audit only.
    pub invocation: Option<AiInvocation>,
}

impl CallJob {
    /// Returns the parsed VAP message; `None` if there is none that can be read.
    #[must_use]
    pub fn received(&self) -> Option<&Authenticated> {
        self.envelope.as_ref()?.as_ref().ok()
    }

    /// Returns whether a registered agent signed the call, with a verified proof of possession.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.chain.as_ref().is_some_and(|presented| presented.proof.is_some())
    }

    /// Returns the size of the arguments and of the message, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arguments.text().len() + self.received().map_or(0, |received| received.text.len())
    }
}

/// A state token that the client returned (V-26, V-38). The writer checks whether it was used before.
#[derive(Clone, Debug)]
pub struct OpenedState {
    /// The ticket in the token; `None` if this gateway did not issue it, or it was altered.
    pub ticket: Option<SealedCall>,
    /// The person's answer, if the token belongs to a question of this gateway.
    pub answer: Option<HumanAnswer>,
}

/// A commitment or an amendment whose carrier request succeeded.
#[derive(Debug)]
pub struct MessageJob {
    /// The path of the route. The rules are looked up when the message is decided.
    pub route: String,
    /// The caller. In the legacy era, with the MCP session that the carrier's response names.
    pub caller: Caller,
    /// The content of the VAP slot.
    pub message: Result<Authenticated, Box<Unreadable>>,
    /// The client's description of itself, for the audit only.
    pub invocation: Option<AiInvocation>,
}

impl MessageJob {
    /// Returns the size of the message, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |received| received.text.len())
    }
}

/// The kind of a [`MessageJob`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A scope commitment, decided by [`admission::decide::commitment`].
    Commitment,
    /// A scope amendment, decided by [`admission::decide::amendment`].
    Amendment,
}

/// A request that is not a tool call and is refused (V-37).
#[derive(Debug)]
pub struct RefusalJob {
    /// The path of the route.
    pub route: String,
    /// The caller.
    pub caller: Caller,
    /// The method of the request.
    pub method: String,
    /// The denial.
    pub ruling: Box<Ruling>,
    /// The client's description of itself, for the audit only.
    pub invocation: Option<AiInvocation>,
}
