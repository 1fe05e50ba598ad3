//! The front end: HTTP, the checks that all protocols share, and authentication of clients.
//!
//! The checks run in this order: rate limit per address (V-11), path, Host and Origin, the head of the request as
//! its [`Protocol`] demands, token and client certificate. The protocol of the endpoint then reads the message and answers it.
//!
//! Not here: the protocols (`mcp`, `a2a`), decisions (`calls`, `admission`), tokens (`oauth`).

mod authorizer;
mod client_certificate;
pub(crate) mod headers;
mod intake;
mod listen;
mod origin;
mod protocol;
mod refusal;
mod service;
pub(crate) mod watched;

pub use authorizer::{AllowAll, Authorized, Authorizer};
pub use listen::{Serving, Times, settings as listener_settings};
pub use protocol::{AuthorizedRequest, Draining, Protocol};
pub use refusal::{RequestRefusal, unanswered};
pub use service::Front;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;

use crate::config::Intake;

/// One endpoint, ready to be served.
pub struct Route {
    /// The path: `/mcp`.
    pub path: String,
    /// The authentication of clients.
    pub admits: Arc<dyn Authorizer>,
    /// The protocol that is spoken there.
    pub protocol: Arc<dyn Protocol>,
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
    /// Addresses of proxies that hand over client certificates.
    pub certificate_proxies: Vec<IpAddr>,
    /// Limits on requests of clients (V-11).
    pub intake: Intake,
    /// The other pages: metadata, keys, posture. The front end measures them.
    pub pages: Router,
}
