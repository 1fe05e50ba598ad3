//! MCP over Streamable HTTP, behind the front end: messages, sessions and streams, and the choice of the handler.
//!
//! The checks run in this order: HTTP method and headers, owner of the session, form of the message, headers
//! that mirror the body (section 1.1). A message that needs a decision or carries material for the gateway then goes to
//! the [`Handlers`]; any other message goes to the upstream unchanged.
//!
//! A request is split here: the caller's statement about its reasons (SEP-2817) goes to [`Inbound::invocation`], which the
//! code that decides cannot read; VAP material stays in [`Inbound::frame`] and is removed from
//! [`Inbound::exchange`] (V-35).
//!
//! Not here: decisions (`calls`, `admission`), the checks of all protocols (`front`), forwarding of answers (`relay`).

mod dispatch;
mod handlers;
mod inbound;
mod mirrors;
mod owners;
mod refusal;
mod resumption;
mod taps;
mod timed;
mod visit;

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use http::request::Parts;

use crate::front::{AuthorizedRequest, Protocol, RequestRefusal, headers};
use crate::relay::Response;
use crate::telemetry::Telemetry;
use crate::upstream::Upstream;
use crate::upstream::request::{LAST_EVENT, METHOD, SESSION, VERSION};

pub use handlers::{ClientMessages, Handlers, Late, Opening, RequestKind, ServerMessages, SessionEvents};
pub use inbound::{Inbound, InvocationMember, ROA_KEYS, VAP_KEYS, VAP_SLOTS};

use owners::Owners;
use resumption::Resumptions;
use visit::Visit;

/// An MCP endpoint with its handlers.
pub struct Endpoint {
    /// The path: `/mcp`.
    pub path: String,
    /// The upstream.
    pub upstream: Arc<dyn Upstream>,
    /// The handlers of messages that need a decision.
    pub handlers: Arc<dyn Handlers>,
    /// True if `aiInvocation` is forwarded to the upstream (S-5).
    pub forward_invocation: bool,
}

/// The sessions and streams of all MCP endpoints. They outlive a configuration.
#[derive(Default)]
pub struct McpSessions {
    owners: Owners,
    resumptions: Resumptions,
    telemetry: Option<Arc<Telemetry>>,
}

impl McpSessions {
    /// Creates an empty table, whose messages this telemetry measures.
    #[must_use]
    pub fn measured(telemetry: Arc<Telemetry>) -> Self {
        Self { telemetry: Some(telemetry), ..Self::default() }
    }
}

/// A mark of requests for a stream whose client tells responses apart by their ids, as clients do that have one stream for
/// all. No request that came over a network has it.
#[derive(Clone, Copy, Debug)]
pub struct MatchesById;

/// MCP at one endpoint.
pub struct Mcp {
    endpoint: Arc<Endpoint>,
    sessions: Arc<McpSessions>,
}

impl Mcp {
    /// Creates the protocol of an endpoint.
    #[must_use]
    pub fn new(endpoint: Endpoint, sessions: Arc<McpSessions>) -> Self {
        Self { endpoint: Arc::new(endpoint), sessions }
    }
}

#[async_trait]
impl Protocol for Mcp {
    fn check(&self, head: &Parts) -> Result<(), RequestRefusal> {
        if !matches!(head.method, Method::POST | Method::GET | Method::DELETE) {
            return Err(RequestRefusal::Method("GET, POST, DELETE"));
        }
        headers::refuse_repeated(&head.headers, &[SESSION, VERSION, METHOD, LAST_EVENT])
    }

    async fn answer(&self, request: AuthorizedRequest) -> Response {
        let (endpoint, sessions) = (self.endpoint.clone(), &*self.sessions);
        Visit { endpoint, sessions, request }.answer().await
    }
}
