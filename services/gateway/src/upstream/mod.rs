//! An MCP server behind the gateway, however it is reached: it speaks Streamable HTTP to us.
//!
//! Over HTTP (`http`), as child processes (`stdio`), or as several servers behind one endpoint (`federation`), an
//! [`Upstream`] takes one HTTP exchange and answers with a status, headers and a body that streams.

pub mod answer;
pub mod discreet;
pub mod federation;
pub mod http;
pub mod request;
pub mod stdio;
pub mod text;

use ::http::{HeaderMap, Method, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use thiserror::Error;

/// One MCP server, or what looks like one.
#[async_trait]
pub trait Upstream: Send + Sync + 'static {
    /// One exchange. Never sent twice: a call may have effects.
    ///
    /// # Errors
    /// If no answer came; the error says whether the request can have had an effect.
    async fn exchange(&self, request: Exchange) -> Result<Answer, UpstreamError>;
}

/// A request for an upstream. Hop-by-hop headers, the gateway's own and the client's credentials are already gone.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// POST, GET or DELETE.
    pub method: Method,
    /// What goes with it: `Mcp-Session-Id`, `MCP-Protocol-Version`, `Last-Event-ID`, `Mcp-Method`, …
    pub headers: HeaderMap,
    /// The message, as the client wrote it (less what was for the gateway). Empty but for POST.
    pub body: Bytes,
    /// On whose behalf.
    pub client: ClientName,
}

/// Who uses an upstream, for sharing what is scarce: the subject of a token, or else a network address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientName {
    /// The gateway itself.
    #[default]
    Gateway,
    /// A proxy on this machine, which stands for any number of clients.
    LocalProxy,
    /// Issuer and subject of a token.
    Token(String, String),
    /// An address, or an IPv6 network of 64 bits.
    Address(std::net::IpAddr),
}

/// What an upstream said.
pub struct Answer {
    /// The status, passed on.
    pub status: StatusCode,
    /// The headers, without hop-by-hop ones.
    pub headers: HeaderMap,
    /// The body as it comes.
    pub body: AnswerBody,
}

/// A body that streams.
pub type AnswerBody = BoxStream<'static, Result<Bytes, UpstreamError>>;

/// Why an upstream gave no answer, or no more of it.
#[derive(Clone, Debug, Error)]
pub enum UpstreamError {
    /// Nothing was sent: the request had no effect.
    #[error("the upstream cannot be reached: {0}")]
    NeverSent(String),
    /// The request was sent, or part of it; what came of it is unknown.
    #[error("the upstream's answer is lost: {0}")]
    Lost(String),
    /// No answer in time; what came of it is unknown.
    #[error("the upstream gave no answer in time")]
    TimedOut,
}
