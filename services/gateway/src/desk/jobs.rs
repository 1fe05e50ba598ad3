//! What is handed in to be decided, and what comes back.

use admission::clarify::{Answer, Asked, Ticket};
use admission::decide::{Question, Ruling};
use admission::invocation::AiInvocation;
use admission::message::slot::{Received, Unreadable};
use admission::principal::Caller;
use admission::tool::CheckedArguments;

use super::held::{HeldCall, HeldMessage};
use super::told::Told;

/// A call, before anything of it went to an upstream.
#[derive(Debug)]
pub struct CallJob {
    /// The path of its route. It is decided under the rules that the route has by then.
    pub route: String,
    /// Who calls.
    pub caller: Caller,
    /// What came in its VAP slot; none if there is no VAP in the request.
    pub envelope: Option<Result<Received, Box<Unreadable>>>,
    /// The tool that will run.
    pub tool: String,
    /// `Mcp-Name`, decoded, in the modern era.
    pub header: Option<String>,
    /// The text of `params.arguments`, or `{}`.
    pub arguments: String,
    /// Whether the client can be asked something (V-26).
    pub can_ask: bool,
    /// Whether it can wait for an approver.
    pub can_wait: bool,
    /// Whether it carries an AgentROA envelope, which nothing here enforces.
    pub has_roa_envelope: bool,
    /// What its arguments were held against; none for what is no tool.
    pub checked: Option<CheckedArguments>,
    /// What the client calls itself.
    pub asserted_client: Option<String>,
    /// A state of ours that came back with the call.
    pub shown: Option<ShownState>,
    /// What the client says of itself: for the audit alone.
    pub aside: Option<AiInvocation>,
}

impl CallJob {
    /// Bytes of what came.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let envelope = self.envelope.as_ref().and_then(|envelope| envelope.as_ref().ok());
        self.arguments.len() + envelope.map_or(0, |received| received.text.len())
    }
}

/// A state of ours that came back (V-26, V-38). Whether it was used before, the desk finds out.
#[derive(Clone, Debug)]
pub struct ShownState {
    /// What it is bound to; none if it is not ours, or was altered.
    pub ticket: Option<Ticket>,
    /// What the person answered, where it was our question.
    pub answer: Option<Answer>,
}

/// A commitment or an amendment whose carrier succeeded.
#[derive(Debug)]
pub struct MessageJob {
    /// The path of its route. It is decided under the rules that the route has by then.
    pub route: String,
    /// Who calls. In the legacy era with the MCP session that the carrier's answer names.
    pub caller: Caller,
    /// What came in the slot.
    pub message: Result<Received, Box<Unreadable>>,
    /// What the client says of itself.
    pub aside: Option<AiInvocation>,
}

impl MessageJob {
    /// Bytes of what came.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |received| received.text.len())
    }
}

/// A request beside any call that is refused (V-37).
#[derive(Debug)]
pub struct RefusalJob {
    /// The path of its route.
    pub route: String,
    /// Who asks.
    pub caller: Caller,
    /// What for.
    pub method: String,
    /// The denial.
    pub ruling: Box<Ruling>,
    /// What the client says of itself.
    pub aside: Option<AiInvocation>,
}

/// How far a call has come. It never fails: what cannot be decided durably is denied.
#[derive(Debug)]
pub enum CallAnswer {
    /// It is decided.
    Ruled(Box<Told>),
    /// The judge is to be asked, and the answer to be brought to [`HeldCall::judged`].
    Judge(Box<Question>, HeldCall),
    /// A person is to be asked, and the answer to be brought to [`HeldCall::answered`].
    Ask(Box<Asked>, HeldCall),
}

/// How far a commitment or an amendment has come.
#[derive(Debug)]
pub enum MessageAnswer {
    /// It is decided.
    Ruled(Box<Told>),
    /// The judge is to be asked, and the answer to be brought to [`HeldMessage::judged`].
    Judge(Box<Question>, HeldMessage),
}
