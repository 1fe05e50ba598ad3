//! Where requests come in: HTTP, who may speak to us at all, and whose matter a message is.
//!
//! In this order: address rate (V-11), path, Host and Origin, token, size and form of the message, headers that
//! mirror the body (section 1.1), and then one of two ways: to the [`Handlers`] what must be decided or carries something
//! for the gateway, to the upstream everything else, as it is.
//!
//! A request comes apart here: what its caller says about its own reasons (SEP-2817) goes [`Inbound::aside`], out of sight of
//! whatever decides; VAP's material stays in [`Inbound::frame`] and is gone from [`Inbound::exchange`] (V-35).
//!
//! Not here: what is decided (`calls`, `admission`), tokens (`oauth`), answers on their way (`relay`).

mod addresses;
mod admits;
mod client;
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

pub use admits::{Admits, Admitted, OpenDoor};
pub use client::Client;
pub use handlers::{Handlers, Late, Opening};
pub use headers::end_to_end;
pub use inbound::{Aside, Inbound, VAP_KEYS, VAP_SLOTS};
pub use listen::{Serving, Times};
pub use refusal::{UPSTREAM_FAILED, unanswered};
pub use service::Front;

use std::sync::Arc;

use axum::Router;

use crate::config::Intake;
use crate::upstream::Upstream;

/// What the front answers with. Each frame of the body is flushed as it comes.
pub type Response = axum::response::Response;

/// One endpoint, ready to be served.
pub struct Route {
    /// Its path: `/mcp`.
    pub path: String,
    /// What is behind it.
    pub upstream: Arc<dyn Upstream>,
    /// Who decides there.
    pub handlers: Arc<dyn Handlers>,
    /// Who comes in.
    pub admits: Arc<dyn Admits>,
    /// Whether the upstream gets `aiInvocation` (S-5).
    pub forward_invocation: bool,
}

/// What is served. It can be replaced while it is ([`Front::reload`]).
pub struct Plan {
    /// The endpoints.
    pub routes: Vec<Arc<Route>>,
    /// The names by which clients may ask for us (`Host`), without ports. If none is listed, any will do.
    pub hosts: Vec<String>,
    /// Web pages that may call us (`Origin`). Pages of this machine may where we are asked for by a name of this machine.
    pub origins: Vec<String>,
    /// How much is taken from clients (V-11).
    pub intake: Intake,
    /// Everything else that is served: metadata, keys, posture.
    pub pages: Router,
}
