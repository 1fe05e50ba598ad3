//! The front end: HTTP, authentication of clients, and the choice of the handler for a message.
//!
//! The checks run in this order: rate limit per address (V-11), path, Host and Origin, token, size and form of
//! the message, headers that mirror the body (section 1.1). A message that needs a decision or carries material
//! for the gateway then goes to the [`Handlers`]; any other message goes to the upstream unchanged.
//!
//! A request is split here: the caller's statement about its reasons (SEP-2817) goes to [`Inbound::invocation`], which the
//! code that decides cannot read; VAP material stays in [`Inbound::frame`] and is removed from
//! [`Inbound::exchange`] (V-35).
//!
//! Not here: decisions (`calls`, `admission`), tokens (`oauth`), forwarding of answers (`relay`).

mod authorizer;
mod handlers;
mod headers;
mod inbound;
mod intake;
mod listen;
mod mirrors;
mod origin;
mod owners;
mod pace;
mod refusal;
mod resumption;
mod service;
mod taps;
mod timed;
mod watched;

pub use authorizer::{AllowAll, Authorized, Authorizer};
pub use handlers::{Handlers, Late, Opening};
pub use inbound::{Inbound, InvocationMember, ROA_KEYS, VAP_KEYS, VAP_SLOTS};
pub use listen::{Serving, Times, settings as listener_settings};
pub use refusal::{UPSTREAM_FAILED, unanswered};
pub use service::Front;

use std::sync::Arc;

use axum::Router;

use crate::config::Intake;
use crate::upstream::Upstream;

/// One endpoint with its handlers, ready to be served.
pub struct Route {
    /// The path: `/mcp`.
    pub path: String,
    /// The upstream.
    pub upstream: Arc<dyn Upstream>,
    /// The handlers of requests that need a decision.
    pub handlers: Arc<dyn Handlers>,
    /// The authentication of clients.
    pub admits: Arc<dyn Authorizer>,
    /// True if `aiInvocation` is forwarded to the upstream (S-5).
    pub forward_invocation: bool,
}

/// The routes and settings that are served. They can be replaced while serving ([`Front::reload`]).
pub struct Plan {
    /// The endpoints.
    pub routes: Vec<Arc<Route>>,
    /// Accepted names of the `Host` header, without port. An empty list accepts any name.
    pub hosts: Vec<String>,
    /// Accepted web origins (`Origin` header). Pages of this machine are also accepted if the `Host` is a loopback
    /// name.
    pub origins: Vec<String>,
    /// Limits on requests of clients (V-11).
    pub intake: Intake,
    /// The other pages: metadata, keys, posture.
    pub pages: Router,
}
