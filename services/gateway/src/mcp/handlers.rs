//! The interface between the protocol and the decisions on its messages: a trait for each part of the protocol that
//! needs one.

use std::sync::Arc;
use std::time::Duration;

use admission::principal::Caller;
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;

use super::Inbound;
use crate::frame::Frame;
use crate::relay::{Passing, Response, Tap};
use crate::upstream::UpstreamAnswer;

/// All handlers of an endpoint. Only wiring names it; a consumer requests the trait with its methods.
pub trait Handlers: ClientMessages + ServerMessages + SessionEvents {}

impl<T: ClientMessages + ServerMessages + SessionEvents> Handlers for T {}

/// Handlers of clients' messages.
pub trait ClientMessages: Send + Sync + 'static {
    /// Returns whether requests of this method are [`RequestKind::Gated`]: `tasks/*`, the methods that the operator
    /// listed, and `tools/list` where it is filtered. A message of such a method without an id is refused.
    fn gates(&self, method: &str) -> bool;

    /// Returns the longest time from when a message of this method is sent to the end of its answer. `None` if the handlers
    /// limit it themselves, as they do with calls.
    fn time_limit(&self, method: &str) -> Option<Duration>;

    /// Handles a request that needs a decision. The future runs in a task of its own, which is not dropped when the client
    /// disconnects ([`Inbound::client`] reports the disconnect; its meaning depends on the era). What the client's next
    /// message may refer to is known before the future begins.
    fn request(self: Arc<Self>, kind: RequestKind, inbound: Inbound) -> BoxFuture<'static, Response>;

    /// Handles a notification or a response before it is forwarded: a response may answer a question of the gateway's
    /// own, and a cancellation may concern one. Returns true if the message must not be forwarded; it is then answered
    /// with 202.
    fn takes(&self, inbound: &Inbound) -> bool;
}

/// Handlers of servers' messages.
#[async_trait]
pub trait ServerMessages: Send + Sync + 'static {
    /// Adds the gateway's capabilities to the answer to an `initialize` or `server/discover` without VAP material
    /// (V-34). `message` is the text of the whole answer; an error is returned unchanged.
    fn advertise(&self, opening: &Opening, message: Bytes) -> Bytes;

    /// Returns the tap for this answer to a request, after whose end the server may send the response on another stream,
    /// where [`Self::late`] receives it.
    fn resumable(
        &self,
        _caller: &Caller,
        _request: &Frame,
        _answer: &UpstreamAnswer,
        tap: Box<dyn Tap>,
    ) -> Box<dyn Tap> {
        tap
    }

    /// Handles a response on a GET stream, or among the answers to another request. Legacy servers may end the stream
    /// of a POST at any time, and the client fetches the rest with a GET. The response may answer a tool call, and a
    /// tap may have seen it before.
    async fn late(&self, late: Late<'_>) -> Passing;
}

/// Handlers of the beginning and the end of MCP sessions.
#[async_trait]
pub trait SessionEvents: Send + Sync + 'static {
    /// Returns whether the upstream was seen to issue an MCP session with this id on this route. The id in a request
    /// alone proves nothing.
    fn gave(&self, mcp_session: &str) -> bool;

    /// Records that the caller ended its MCP session (DELETE), and that the upstream agreed or did not know the
    /// session.
    async fn ended(&self, caller: &Caller);
}

/// The kind of a request that needs a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// `tools/call`: a request with an id, an object as parameters, and matching mirrored headers.
    ToolCall,
    /// `vap/amend`, which is never forwarded.
    Amendment,
    /// A request of a method that is decided whatever it carries ([`ClientMessages::gates`]).
    Gated,
    /// A request of any other method with VAP material in its `_meta`.
    Carrier,
}

/// A response that arrives elsewhere than in the answer to its request.
#[derive(Debug)]
pub struct Late<'a> {
    /// The caller that reads the stream, with its MCP session.
    pub caller: &'a Caller,
    /// `true` if the stream resumes that of a request, and the client may take any response on it for the answer.
    pub is_resumed: bool,
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
