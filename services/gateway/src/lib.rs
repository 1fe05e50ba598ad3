//! The gateway: an MCP reverse proxy that nobody notices, until a call escapes what was declared.
//!
//! A request comes in at the [`front`] (transport, origin, token), is looked at as a [`frame`] (the original text, with
//! the places of what matters in it), and is either relayed as it is ([`relay`]) or is a matter of the [`calls`]: a tool
//! call, or a request that carries a declaration. What may happen is decided by the crate `admission`; the [`desk`] is the
//! one writer that makes a decision durable before the first byte goes to an [`upstream`], and brings the evidence to the
//! log.
//!
//! Not here: what is admitted (`admission`), how evidence is kept (`evidence`), the log's side (`client`).

pub mod again;
pub mod approvals;
pub mod calls;
pub mod check;
pub mod clarify;
pub mod config;
mod decision_inputs;
pub mod desk;
pub mod frame;
pub mod front;
pub mod gateway;
pub mod isolation;
pub mod judge;
pub mod keys;
pub mod limits;
mod listener;
pub mod memory;
pub mod oauth;
pub mod posture;
pub mod proof;
pub mod relay;
pub mod telemetry;
pub mod tools;
pub mod upstream;

pub use config::Config;
pub use gateway::{Gateway, StartError};
