//! The gateway before real and hostile MCP clients and servers.
#![allow(clippy::unwrap_used)]

mod a2a;
mod approvals;
mod audits;
mod authority;
mod budgets;
mod bypasses;
mod clients;
mod conformance;
mod crashes;
mod evidence;
mod federation;
mod hostile;
mod isolation;
mod local;
mod oauth;
mod operator;
mod questions;
mod sessions;
mod telemetry;
mod tools;
mod transparency;
