//! An MCP server behind the gateway, reached over any transport, with the interface of Streamable HTTP.
//!
//! An [`Upstream`] takes one HTTP exchange and answers with a status, headers and a streaming body: over HTTP (`http`),
//! with child processes (`stdio`), or with several servers behind one endpoint (`federation`).

pub mod answer;
pub mod cancellation;
pub mod events;
pub mod federation;
pub mod fields;
pub mod headers;
pub mod http;
pub mod request;
pub mod stdio;
pub mod text;
pub mod time_limited;
pub mod without_challenges;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Method, StatusCode};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use thiserror::Error;

/// An MCP server, or several that are presented as one.
#[async_trait]
pub trait Upstream: Send + Sync + 'static {
    /// Executes one exchange. It is never sent twice, because a call may have effects.
    ///
    /// # Errors
    /// An [`UpstreamError`] if no answer arrives; it says whether the request can have had an effect.
    async fn exchange(&self, request: Exchange) -> Result<UpstreamAnswer, UpstreamError>;

    /// Keeps the legacy session that these headers of a request name from ending as idle, while the gateway holds the
    /// request back. Without effect at a server that ends its sessions itself.
    fn hold(&self, _headers: &HeaderMap) -> SessionHold {
        SessionHold::default()
    }
}

/// The use of legacy sessions, until it is dropped.
#[derive(Clone, Default)]
pub struct SessionHold(Vec<Arc<dyn Any + Send + Sync>>);

impl SessionHold {
    /// The use of this session, which counts as used while another than its table refers to it.
    pub fn of<T: Any + Send + Sync>(session: Arc<T>) -> Self {
        Self(vec![session])
    }

    /// The use of the sessions of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

/// A request for an upstream. Hop-by-hop headers, the gateway's own headers and the client's credentials are already
/// removed.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The HTTP method: POST, GET or DELETE.
    pub method: Method,
    /// The forwarded headers: `Mcp-Session-Id`, `MCP-Protocol-Version`, `Last-Event-ID`, `Mcp-Method`, …
    pub headers: HeaderMap,
    /// The client's message, without the members for the gateway. Empty except for POST.
    pub body: Bytes,
    /// The client on whose behalf the request is sent.
    pub client: ClientName,
    /// The longest time from when the request is sent to the end of its answer. `None` if the answer has no end, or if it is
    /// limited elsewhere.
    pub time_limit: Option<Duration>,
}

/// Identity of a client for sharing limited resources: the subject of its token, otherwise its network address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientName {
    /// The gateway itself.
    #[default]
    Gateway,
    /// A proxy on this machine, which stands for any number of clients.
    LocalProxy,
    /// Issuer and subject of the client's token.
    Token(String, String),
    /// The client's IP address; for IPv6 its /64 network.
    Address(std::net::IpAddr),
}

impl ClientName {
    /// Returns how many of `all` the client may have, where one client may have `of_one`. The gateway itself and a local
    /// proxy may have all.
    pub const fn share(&self, all: usize, of_one: usize) -> usize {
        match self {
            Self::Gateway | Self::LocalProxy => all,
            Self::Token(..) | Self::Address(_) => of_one,
        }
    }
}

/// An upstream's HTTP response.
pub struct UpstreamAnswer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The headers, without hop-by-hop ones.
    pub headers: HeaderMap,
    /// The streaming body.
    pub body: AnswerBody,
    /// `true` if the gateway gave the answer itself and sent the request to no server, so that it had no effect.
    pub is_unsent: bool,
}

impl UpstreamAnswer {
    /// The answer of the gateway to a request that it sent to no server.
    #[must_use]
    pub fn unsent(self) -> Self {
        Self { is_unsent: true, ..self }
    }
}

/// A streaming response body.
pub type AnswerBody = BoxStream<'static, Result<Bytes, UpstreamError>>;

/// Reason why an upstream's answer is missing or incomplete.
#[derive(Clone, Debug, Error)]
pub enum UpstreamError {
    /// Nothing was sent, so the request had no effect.
    #[error("the upstream cannot be reached: {0}")]
    NeverSent(String),
    /// The request was sent at least in part; its effect is unknown.
    #[error("the upstream's answer is lost: {0}")]
    Lost(String),
    /// No answer arrived in time; the effect of the request is unknown.
    #[error("the upstream gave no answer in time")]
    TimedOut,
    /// This server did not answer within this time; the effect of the request is unknown.
    #[error("{server} gave no answer within {after:?}")]
    Overdue {
        /// The server, in words that clients may read.
        server: Arc<str>,
        /// The time.
        after: Duration,
    },
}
