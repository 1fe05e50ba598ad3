//! The gateway: an MCP reverse proxy that is transparent to clients and servers, until a call exceeds its session's
//! declaration.
//!
//! A request arrives at the [`front`] (transport, origin, token). The protocol of its endpoint ([`mcp`]) parses it as a
//! [`frame`] (the original text, with the byte ranges of its members). It is then relayed unchanged ([`relay`]), or handled by [`calls`]: a tool call, or
//! a request that carries a declaration. The crate `admission` decides; [`decision_writer`] is the single decision writer, which
//! makes a decision durable before the first byte is sent to an [`upstream`], and delivers the evidence to the log.
//!
//! Not here: the rules of admission (`admission`), storage of evidence (`evidence`), the client of the log (`client`).

pub mod a2a;
mod annex;
pub mod approvals;
pub mod audit_trail;
pub mod authority;
mod bounded_fetch;
pub mod calls;
pub mod check;
pub mod clarify;
pub mod config;
mod current_rules;
pub mod decision_writer;
mod evidence_store;
pub mod frame;
pub mod front;
pub mod gateway;
pub mod isolation;
pub mod judge;
mod jwk_set;
pub mod keys;
pub mod limits;
mod lines;
pub mod mcp;
pub mod memory;
pub mod oauth;
pub mod posture;
pub mod proof;
pub mod relay;
pub mod replay;
mod servers;
mod start_error;
pub mod stdio_client;
pub mod telemetry;
pub mod tools;
pub mod upstream;

pub use config::Config;
pub use gateway::{Gateway, LocalGateway};
pub use start_error::StartError;
