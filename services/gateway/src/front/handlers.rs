//! What the front asks of whoever decides.

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;

use super::{Inbound, Response};
use crate::frame::Frame;
use crate::relay::Passing;

/// Decides about what must not simply pass. Each request runs in a task of its own: it is not dropped when its client goes
/// away ([`Inbound::client`] tells, and the era says what that means).
#[async_trait]
pub trait Handlers: Send + Sync + 'static {
    /// `tools/call`: a request with an id, parameters that are an object, mirrored headers that agree.
    async fn tools_call(&self, inbound: Inbound) -> Response;

    /// A request with VAP material in its `_meta`, on any method but those of the other functions.
    async fn carrier(&self, inbound: Inbound) -> Response;

    /// `vap/amend`, which is never forwarded.
    async fn amend(&self, inbound: Inbound) -> Response;

    /// A request of a method for which [`Handlers::gates`] said yes.
    async fn gated(&self, inbound: Inbound) -> Response;

    /// Whether requests of this method are [`Handlers::gated`]: `tasks/*`, what the operator listed, `tools/list` where it is
    /// filtered.
    fn gates(&self, method: &str) -> bool;

    /// A response of the client. True if it answers a question of the gateway's own: it is swallowed with 202.
    async fn answered(&self, inbound: &Inbound) -> bool;

    /// A notification of the client, before it is forwarded: a cancellation may concern a question of the gateway's own. True
    /// if it is not to be forwarded.
    async fn notified(&self, inbound: &Inbound) -> bool;

    /// The answer to an `initialize` or `server/discover` that carries nothing (the text of the whole message): with what the
    /// gateway adds to its capabilities, if it is a result (V-34).
    fn advertise(&self, opening: &Opening, message: Bytes) -> Bytes;

    /// A response that comes on a GET stream, or among the answers to another request. Legacy servers end a POST's stream
    /// whenever they like, and the client fetches the rest with a GET. It may be the answer to a tool call, and it may be one
    /// that a tap has seen already.
    async fn late(&self, late: Late<'_>) -> Passing;

    /// Whether the upstream was seen to give out an MCP session of this name here. What is written in a request is anybody's.
    fn gave(&self, mcp_session: &str) -> bool;

    /// The caller ended its MCP session (DELETE), and the upstream agreed or had forgotten it.
    async fn ended(&self, caller: &Caller);
}

/// A response where its request was not answered.
#[derive(Debug)]
pub struct Late<'a> {
    /// Who listens there, and in which MCP session.
    pub caller: &'a Caller,
    /// The message.
    pub message: Bytes,
}

/// An `initialize` or `server/discover` that was answered.
#[derive(Debug)]
pub struct Opening {
    /// What the client asked.
    pub frame: Frame,
    /// Who asked; after `initialize`, its MCP session is the one that the answer named.
    pub caller: Caller,
}
