//! The interface between the protocol and the decisions on requests.

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;

use super::Inbound;
use crate::frame::Frame;
use crate::relay::Passing;
use crate::relay::Response;

/// Handlers of requests that need a decision. Each request runs in a task of its own, which is not dropped when the
/// client disconnects ([`Inbound::client`] reports the disconnect; its meaning depends on the era).
#[async_trait]
pub trait Handlers: Send + Sync + 'static {
    /// Handles `tools/call`: a request with an id, an object as parameters, and matching mirrored headers.
    async fn tools_call(&self, inbound: Inbound) -> Response;

    /// Handles a request with VAP material in its `_meta`, of any method without a handler of its own.
    async fn carrier(&self, inbound: Inbound) -> Response;

    /// Handles `vap/amend`, which is never forwarded.
    async fn amend(&self, inbound: Inbound) -> Response;

    /// Handles a request of a method for which [`Handlers::gates`] returns true.
    async fn gated(&self, inbound: Inbound) -> Response;

    /// Returns whether requests of this method go to [`Handlers::gated`]: `tasks/*`, the methods that the operator
    /// listed, and `tools/list` where it is filtered.
    fn gates(&self, method: &str) -> bool;

    /// Handles a client's response. Returns true if it answers a question of the gateway's own; it is then not
    /// forwarded, and answered with 202.
    async fn answered(&self, inbound: &Inbound) -> bool;

    /// Handles a client's notification before it is forwarded: a cancellation may concern a question of the gateway's
    /// own. Returns true if it must not be forwarded.
    async fn notified(&self, inbound: &Inbound) -> bool;

    /// Adds the gateway's capabilities to the answer to an `initialize` or `server/discover` without VAP material
    /// (V-34). `message` is the text of the whole answer; an error is returned unchanged.
    fn advertise(&self, opening: &Opening, message: Bytes) -> Bytes;

    /// Handles a response on a GET stream, or among the answers to another request. Legacy servers may end the stream
    /// of a POST at any time, and the client fetches the rest with a GET. The response may answer a tool call, and a
    /// tap may have seen it before.
    async fn late(&self, late: Late<'_>) -> Passing;

    /// Returns whether the upstream was seen to issue an MCP session with this id on this route. The id in a request
    /// alone proves nothing.
    fn gave(&self, mcp_session: &str) -> bool;

    /// Records that the caller ended its MCP session (DELETE), and that the upstream agreed or did not know the
    /// session.
    async fn ended(&self, caller: &Caller);
}

/// A response that arrives elsewhere than in the answer to its request.
#[derive(Debug)]
pub struct Late<'a> {
    /// The caller that reads the stream, with its MCP session.
    pub caller: &'a Caller,
    /// The message.
    pub message: Bytes,
}

/// An `initialize` or `server/discover` that was answered.
#[derive(Debug)]
pub struct Opening {
    /// The client's request.
    pub frame: Frame,
    /// The caller; after `initialize`, with the MCP session that the answer named.
    pub caller: Caller,
}
